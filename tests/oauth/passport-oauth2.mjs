// passport-oauth2 asks and exchanges. It refreshes through the client that it has inside, and has no revocation.
import assert from 'node:assert/strict';
import { promisify } from 'node:util';
import OAuth2Strategy from 'passport-oauth2';
import { call, checkRefreshed, checkRevoked, consent, id, issuer, redirectUri, secret } from './flow.mjs';

const strategy = new OAuth2Strategy(
  {
    authorizationURL: `${issuer}/oauth/authorize`,
    tokenURL: `${issuer}/oauth/token`,
    clientID: id,
    clientSecret: secret,
    callbackURL: redirectUri,
    scope: ['read', 'write'],
    scopeSeparator: ' ',
    state: true,
    pkce: true,
  },
  (_access, refresh_token, parameters, _profile, done) => done(null, { ...parameters, refresh_token }),
);

/** The session in which the strategy keeps the state and the verifier. */
const session = {};

/** Handles a request as passport does, and returns where the browser is sent, or what the app got. */
function handle(query) {
  return new Promise((resolve, reject) => {
    const action = Object.create(strategy);
    Object.assign(action, { redirect: resolve, success: resolve, error: reject });
    action.fail = (challenge) => reject(new Error(JSON.stringify(challenge)));
    action.authenticate({ query, session, headers: {} }, {});
  });
}

const returned = await consent(await handle({}));
const tokens = await handle(Object.fromEntries(returned.searchParams));
assert.equal(await call(tokens.access_token), 200);

// An app that is sent back without its own state stops there.
await assert.rejects(handle({ code: 'svc_oac_x', state: 'forged' }), /state/);

const refresh = promisify((token, done) => strategy._oauth2.getOAuthAccessToken(
  token,
  { grant_type: 'refresh_token' },
  (error, _access, refresh_token, parameters) => done(error, { ...parameters, refresh_token }),
));
const refreshed = await refresh(tokens.refresh_token);
await checkRefreshed(tokens, refreshed);

const body = new URLSearchParams({ client_id: id, client_secret: secret, token: refreshed.refresh_token });
assert.equal((await fetch(`${issuer}/oauth/revoke`, { method: 'POST', body })).status, 200);
await checkRevoked(refreshed);
