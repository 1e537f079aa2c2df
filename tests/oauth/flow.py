"""What the programs of this folder share: the app that they are, the browser of an owner, and the end of each."""

import os
import re
import urllib.error
import urllib.parse
import urllib.request

# The libraries refuse plain HTTP otherwise, also on this machine.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

ISSUER = os.environ["SVC_ISSUER"]
ID = os.environ["SVC_CLIENT_ID"]
# Empty for a public app.
SECRET = os.environ["SVC_CLIENT_SECRET"]
# How the app authenticates: `basic`, `body` or `none`.
AUTHENTICATION = os.environ["SVC_CLIENT_AUTH"]
REDIRECT_URI = os.environ["SVC_REDIRECT_URI"]
COOKIE = os.environ["SVC_COOKIE"]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


BROWSER = urllib.request.build_opener(NoRedirect)


def consent(url):
    """Sends the form of the page of consent as the browser of an owner does, and returns where the browser goes."""
    with BROWSER.open(urllib.request.Request(url, headers={"Cookie": COOKIE})) as page:
        html = page.read().decode()
    field = lambda name: re.search(f'name="{name}" value="([^"]*)"', html)[1]
    form = {"csrf": field("csrf"), "account": field("account"), "decision": "allow"}
    headers = {"Cookie": COOKIE, "Origin": ISSUER}
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)
    try:
        BROWSER.open(request)
    except urllib.error.HTTPError as response:
        assert response.code == 303, response.read()
        return response.headers["Location"]
    raise AssertionError("the form did not lead back to the app")


def call(token):
    """Calls the API, and returns the status."""
    request = urllib.request.Request(ISSUER + "/api/v1/contacts", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def check_refreshed(before, after):
    """Checks that a refresh gave tokens that work. Those of a public app are new, and a confidential app keeps its own."""
    assert before["access_token"] != after["access_token"]
    assert (before["refresh_token"] == after["refresh_token"]) == (AUTHENTICATION != "none")
    assert call(after["access_token"]) == 200


def check_revoked(tokens):
    """Checks that nothing is left after the refresh token was revoked."""
    assert call(tokens["access_token"]) == 401
    print("revoked")
