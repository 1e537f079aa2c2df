// The browser of an owner who is signed in.
import assert from 'node:assert/strict';
import { variable } from './walk.mjs';

const cookie = variable('SVC_COOKIE');

/** Opens the page of consent and allows what it asks for, and returns where the browser goes. */
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
