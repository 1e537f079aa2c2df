// What the programs of this folder share: the app that they are, the browser of an owner, and the end of each.
import assert from 'node:assert/strict';

/** @param {string} name */
const variable = (name) => process.env[name] ?? '';

export const issuer = variable('SVC_ISSUER');
export const id = variable('SVC_CLIENT_ID');
/** Empty for a public app. */
export const secret = variable('SVC_CLIENT_SECRET');
/** How the app authenticates: `basic`, `body` or `none`. */
export const authentication = variable('SVC_CLIENT_AUTH');
export const redirectUri = variable('SVC_REDIRECT_URI');
const cookie = variable('SVC_COOKIE');

/** Sends the form of the page of consent as the browser of an owner does, and returns where the browser goes. */
export async function consent(url) {
  const page = await fetch(url, { headers: { cookie }, redirect: 'manual' });
  const html = await page.text();
  // The owner is not asked about what has been granted before.
  if (page.headers.has('location')) return new URL(page.headers.get('location'), url);
  assert.equal(page.status, 200, html);
  const field = (name) => new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
  const body = new URLSearchParams({ csrf: field('csrf'), account: field('account'), decision: 'allow' });
  const headers = { cookie, origin: new URL(url).origin };
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual' });
  assert.equal(response.status, 303, await response.text());
  return new URL(response.headers.get('location'));
}

/** Calls the API, and returns the status. */
export async function call(token) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${issuer}/api/v1/contacts`, { headers });
  await response.text();
  return response.status;
}

/** Checks that a refresh gave tokens that work. Those of a public app are new, and a confidential app keeps its own. */
export async function checkRefreshed(before, after) {
  assert.notEqual(before.access_token, after.access_token);
  assert.equal(before.refresh_token === after.refresh_token, authentication !== 'none');
  assert.equal(await call(after.access_token), 200);
}

/** Checks that nothing is left after the refresh token was revoked. */
export async function checkRevoked(tokens) {
  assert.equal(await call(tokens.access_token), 401);
  console.log('revoked');
}
