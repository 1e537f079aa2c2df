"""A web app that owners connect to their accounts (OAuth 2.0), with FastAPI.

Register it as a confidential app with the redirect URI http://127.0.0.1/callback, start it, and open http://127.0.0.1:9000. It
has one account; yours keeps the tokens of each account in its database.

    pip install ./clients/python fastapi uvicorn
    export SVC_URL=http://127.0.0.1:8080 SVC_CLIENT_ID=svcapp_… SVC_CLIENT_SECRET=svc_ocs_…
    uvicorn --app-dir clients/python/examples oauth_app:app --port 9000
"""

import base64
import hashlib
import html
import json
import os
import secrets
from pathlib import Path

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from svc_client import ApiError, AsyncClient, AsyncTokenSource, Tokens

SVC = os.environ["SVC_URL"]
CLIENT_ID, CLIENT_SECRET = os.environ["SVC_CLIENT_ID"], os.environ["SVC_CLIENT_SECRET"]
REDIRECT_URI = os.environ.get("SVC_REDIRECT_URI", "http://127.0.0.1:9000/callback")
TOKENS = Path("tokens.json")

app = FastAPI()
verifiers: dict[str, str] = {}  # The verifier of each state that waits for its browser.
connected: list[AsyncClient] = []  # The client of the account that is connected.


async def store(tokens: Tokens) -> None:
    """Keeps new tokens. The client uses them once this has returned."""
    new = TOKENS.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"access_token": tokens.access_token, "refresh_token": tokens.refresh_token}))
    new.replace(TOKENS)


def connect_with(tokens: Tokens) -> None:
    """Makes the client of an account. All calls share it, and so its tokens, which are refreshed once for all of them."""
    source = AsyncTokenSource(CLIENT_ID, tokens, store, client_secret=CLIENT_SECRET)
    connected[:] = [AsyncClient(SVC, tokens=source)]


if TOKENS.exists():
    connect_with(Tokens(**json.loads(TOKENS.read_text())))


@app.get("/")
async def home() -> HTMLResponse:
    """Shows the contacts of the account, or a link to connect one."""
    if not connected:
        return HTMLResponse('<a href="/connect">Connect your account</a>')
    try:
        page = await connected[0].contacts.page()
    except ApiError as error:
        if error.code != "invalid_grant":
            raise
        # The owner has ended the access.
        TOKENS.unlink()
        connected.clear()
        return HTMLResponse('<a href="/connect">Connect your account again</a>')
    return HTMLResponse(f"Contacts: {html.escape(', '.join(contact.email or '' for contact in page.data))}")


@app.get("/connect")
async def connect() -> RedirectResponse:
    """Sends the browser to the page of consent."""
    state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
    verifiers[state] = verifier
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    parameters = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "scope": "read",
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    response = RedirectResponse(str(httpx.URL(f"{SVC}/oauth/authorize", params=parameters)), status_code=303)
    # The cookie tells whether it is the same browser that returns.
    response.set_cookie("state", state, httponly=True, samesite="lax")
    return response


@app.get("/callback")
async def callback(request: Request, state: str = "", iss: str = "", code: str | None = None) -> Response:
    """Takes the browser back, and exchanges the code for tokens."""
    verifier = verifiers.pop(state, None)
    if verifier is None or request.cookies.get("state") != state or iss != SVC:
        return Response("This is not the answer to a request of this browser.\n", status_code=400)
    if code is not None:
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": REDIRECT_URI}
        async with httpx.AsyncClient() as http:
            given = await http.post(f"{SVC}/oauth/token", data=form, auth=(CLIENT_ID, CLIENT_SECRET))
        given.raise_for_status()
        tokens = Tokens(given.json()["access_token"], given.json()["refresh_token"])
        await store(tokens)
        connect_with(tokens)
    return RedirectResponse("/", status_code=303)
