from flow import *
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

METHODS = {"basic": "client_secret_basic", "body": "client_secret_post", "none": "none"}
session = OAuth2Session(
    ID,
    SECRET or None,
    scope="read write",
    redirect_uri=REDIRECT_URI,
    token_endpoint_auth_method=METHODS[AUTHENTICATION],
    revocation_endpoint_auth_method=METHODS[AUTHENTICATION],
    code_challenge_method="S256",
)
verifier = generate_token(48)
url, state = session.create_authorization_url(ISSUER + "/oauth/authorize", code_verifier=verifier)
returned = consent(url)
tokens = dict(
    session.fetch_token(ISSUER + "/oauth/token", authorization_response=returned, state=state, code_verifier=verifier)
)
assert session.get(ISSUER + "/api/v1/contacts").json()["data"] == []
refreshed = dict(session.refresh_token(ISSUER + "/oauth/token", refresh_token=tokens["refresh_token"]))
check_refreshed(tokens, refreshed)
revoked = session.revoke_token(
    ISSUER + "/oauth/revoke", token=refreshed["refresh_token"], token_type_hint="refresh_token"
)
assert revoked.status_code == 200, revoked.text
check_revoked(refreshed)
