import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { AuthorizationCode } from 'simple-oauth2';
import { authentication, call, checkRefreshed, checkRevoked, consent, id, issuer, redirectUri, secret } from './flow.mjs';

const client = new AuthorizationCode({
  client: { id, secret },
  auth: { tokenHost: issuer, authorizePath: '/oauth/authorize', tokenPath: '/oauth/token', revokePath: '/oauth/revoke' },
  options: { authorizationMethod: authentication === 'basic' ? 'header' : 'body' },
});

const verifier = randomBytes(32).toString('base64url');
const returned = await consent(client.authorizeURL({
  redirect_uri: redirectUri,
  scope: 'read write',
  state: 'a state',
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
}));
assert.equal(returned.searchParams.get('state'), 'a state');

const code = returned.searchParams.get('code');
const tokens = await client.getToken({ code, redirect_uri: redirectUri, code_verifier: verifier });
assert.equal(tokens.expired(), false);
assert.equal(await call(tokens.token.access_token), 200);
const refreshed = await tokens.refresh();
await checkRefreshed(tokens.token, refreshed.token);
await refreshed.revokeAll();
await checkRevoked(refreshed.token);
