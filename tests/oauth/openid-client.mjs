import assert from 'node:assert/strict';
import * as client from 'openid-client';
import { authentication, checkRefreshed, checkRevoked, consent, id, issuer, redirectUri, secret } from './flow.mjs';

const methods = {
  basic: () => client.ClientSecretBasic(secret),
  body: () => client.ClientSecretPost(secret),
  none: () => client.None(),
};
const config = await client.discovery(new URL(issuer), id, undefined, methods[authentication](), {
  algorithm: 'oauth2',
  execute: [client.allowInsecureRequests],
});

const pkceCodeVerifier = client.randomPKCECodeVerifier();
const expectedState = client.randomState();
const authorize = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  scope: 'read write',
  state: expectedState,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: 'S256',
});
const tokens = await client.authorizationCodeGrant(config, await consent(authorize), { pkceCodeVerifier, expectedState });
const contacts = await client.fetchProtectedResource(config, tokens.access_token, new URL(`${issuer}/api/v1/contacts`), 'GET');
assert.deepEqual((await contacts.json()).data, []);

const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token);
await checkRefreshed(tokens, refreshed);
await client.tokenRevocation(config, refreshed.refresh_token, { token_type_hint: 'refresh_token' });
await checkRevoked(refreshed);
