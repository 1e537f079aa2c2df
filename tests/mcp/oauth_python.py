"""The Python SDK as a public app, from the first 401 to records, and from a token that may read to one that may write.

`SVC_CLIENT_ID` is the id of a registered app, or the URL of a metadata document.
"""

import asyncio
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
import uuid

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

from walk import ORIGIN, URL, data

ID = os.environ["SVC_CLIENT_ID"]
REDIRECT_URI = os.environ["SVC_REDIRECT_URI"]
COOKIE = os.environ["SVC_COOKIE"]
# Whether the SDK takes the id for the URL of a document. It takes no URL with http, which is passed as a plain id.
IS_DOCUMENT = ID.startswith("https:")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


BROWSER = urllib.request.build_opener(NoRedirect)


def send(request):
    """Sends a request of the owner's browser, and returns the status, the headers and the text."""
    try:
        with BROWSER.open(request) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as response:
        return response.code, response.headers, response.read().decode()


def consent(url):
    """Opens the page of consent and allows what it asks for, and returns where the browser goes."""
    status, headers, html = send(urllib.request.Request(url, headers={"Cookie": COOKIE}))
    # The owner is not asked about what has been granted before.
    if "Location" in headers:
        return headers["Location"]
    assert status == 200, html
    field = lambda name: re.search(f'name="{name}" value="([^"]*)"', html)[1]
    form = {"csrf": field("csrf"), "account": field("account"), "decision": "allow"}
    headers = {"Cookie": COOKIE, "Origin": ORIGIN}
    status, headers, html = send(urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers))
    assert status == 303, html
    return headers["Location"]


class Storage:
    """Where the SDK keeps what it has to remember."""

    tokens = None
    client = None if IS_DOCUMENT else OAuthClientInformationFull(
        client_id=ID, redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none", issuer=ORIGIN
    )

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def run(mode):
    storage = Storage()
    # The scopes that the owner was asked for, in turn, and the query with which the browser returned.
    asked, returned = [], {}

    async def redirect(url):
        address, _, query = url.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        assert query["client_id"] == ID, query
        assert query["resource"] == URL, query
        assert query["code_challenge_method"] == "S256", query
        # The app asks for little at first, whatever the SDK would ask for.
        if not asked:
            query["scope"] = "read"
        asked.append(query["scope"])
        location = consent(address + "?" + urllib.parse.urlencode(query))
        assert location.startswith(REDIRECT_URI + "?"), location
        returned.update(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))

    async def callback():
        return AuthorizationCodeResult(code=returned["code"], state=returned["state"], iss=returned["iss"])

    provider = OAuthClientProvider(
        server_url=URL,
        client_metadata=OAuthClientMetadata(redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"),
        storage=storage,
        redirect_handler=redirect,
        callback_handler=callback,
        client_metadata_url=ID if IS_DOCUMENT else None,
    )
    # The statuses of all responses, also those that the SDK deals with itself.
    statuses = []

    async def watch(response):
        statuses.append(response.status_code)

    async with httpx2.AsyncClient(auth=provider, timeout=30, event_hooks={"response": [watch]}) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
            assert isinstance(data(await client.call_tool("list_contacts", {"limit": 1})), list)
            assert asked == ["read"], asked
            assert storage.tokens.scope == "read", storage.tokens

            # A tool that changes records needs more than the owner has allowed, and the SDK asks for it by itself.
            email = f"ada-{uuid.uuid4()}@example.com"
            arguments = {"first_name": "Ada", "last_name": "Lovelace", "email": email}
            contact = data(await client.call_tool("create_contact", arguments))
            assert len(asked) == 2 and "write" in asked[1].split(), asked
            assert "write" in storage.tokens.scope.split(), storage.tokens
            await client.call_tool("delete_contact", {"id": contact["id"]})
    assert statuses[0] == 401, statuses
    assert 403 in statuses, statuses

    # The next one begins without a grant.
    _, _, metadata = send(urllib.request.Request(ORIGIN + "/.well-known/oauth-authorization-server"))
    form = urllib.parse.urlencode({"client_id": ID, "token": storage.tokens.refresh_token}).encode()
    status, _, text = send(urllib.request.Request(json.loads(metadata)["revocation_endpoint"], form))
    assert status == 200, text


for mode in ["legacy", "auto"]:
    asyncio.run(run(mode))
print("ok")
