// oauth4webapi, which checks responses as strictly as the RFCs allow.
import assert from 'node:assert/strict';
import * as oauth from 'oauth4webapi';
import { authentication, checkRefreshed, checkRevoked, consent, id, issuer, redirectUri, secret } from './flow.mjs';

const options = { [oauth.allowInsecureRequests]: true };

// From the API to its authorization server.
const resource = new URL(`${issuer}/api/v1`);
const found = await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, options));
const url = new URL(found.authorization_servers[0]);
const discovery = await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...options });
const server = await oauth.processDiscoveryResponse(url, discovery);

const client = { client_id: id };
const methods = {
  basic: () => oauth.ClientSecretBasic(secret),
  body: () => oauth.ClientSecretPost(secret),
  none: () => oauth.None(),
};
const method = methods[authentication]();

const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const authorize = new URL(server.authorization_endpoint);
authorize.search = new URLSearchParams({
  client_id: id,
  redirect_uri: redirectUri,
  response_type: 'code',
  scope: 'read write',
  state,
  resource: resource.href,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
}).toString();
const parameters = oauth.validateAuthResponse(server, client, await consent(authorize), state);

const exchange = oauth.authorizationCodeGrantRequest(server, client, method, parameters, redirectUri, verifier, options);
const tokens = await oauth.processAuthorizationCodeResponse(server, client, await exchange);
assert.equal(tokens.token_type, 'bearer');
const ping = new URL(`${issuer}/api/v1/ping`);
const response = await oauth.protectedResourceRequest(tokens.access_token, 'GET', ping, undefined, undefined, options);
assert.equal((await response.json()).tenantId, tokens.tenant_id);

// A token that is not valid gets a challenge that the library understands.
await assert.rejects(
  oauth.protectedResourceRequest('svc_oat_wrong', 'GET', ping, undefined, undefined, options),
  (error) => error instanceof oauth.WWWAuthenticateChallengeError && error.status === 401
    && error.cause[0].parameters.error === 'invalid_token' && 'resource_metadata' in error.cause[0].parameters,
);

const refresh = await oauth.refreshTokenGrantRequest(server, client, method, tokens.refresh_token, options);
const refreshed = await oauth.processRefreshTokenResponse(server, client, refresh);
await checkRefreshed(tokens, refreshed);

// An error of the token endpoint is one that the library understands.
const wrong = await oauth.refreshTokenGrantRequest(server, client, method, 'svc_ort_wrong', options);
await assert.rejects(
  oauth.processRefreshTokenResponse(server, client, wrong),
  (error) => error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant',
);

await oauth.processRevocationResponse(
  await oauth.revocationRequest(server, client, method, refreshed.refresh_token, options),
);
await checkRevoked(refreshed);
