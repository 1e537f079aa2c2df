from flow import *
import requests
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

session = OAuth2Session(ID, redirect_uri=REDIRECT_URI, scope=["read", "write"], pkce="S256")
url, state = session.authorization_url(ISSUER + "/oauth/authorize")
returned = consent(url)
how = {
    "basic": {"auth": HTTPBasicAuth(ID, SECRET)},
    "body": {"client_secret": SECRET, "include_client_id": True},
    "none": {"include_client_id": True},
}[AUTHENTICATION]
tokens = dict(session.fetch_token(ISSUER + "/oauth/token", authorization_response=returned, **how))
assert session.get(ISSUER + "/api/v1/contacts").json()["data"] == []
again = {
    "basic": {"auth": HTTPBasicAuth(ID, SECRET)},
    "body": {"client_id": ID, "client_secret": SECRET},
    "none": {"client_id": ID},
}[AUTHENTICATION]
refreshed = dict(session.refresh_token(ISSUER + "/oauth/token", **again))
check_refreshed(tokens, refreshed)
url, headers, body = session._client.prepare_token_revocation_request(
    ISSUER + "/oauth/revoke", refreshed["refresh_token"], "refresh_token"
)
form = dict(urllib.parse.parse_qsl(body)) | {name: value for name, value in again.items() if name != "auth"}
assert requests.post(url, form, headers=headers, auth=again.get("auth")).status_code == 200
check_revoked(refreshed)
