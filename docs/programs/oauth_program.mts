/** A program on its user's device that connects to an account with OAuth 2.0: a public app (docs/oauth.md). */

import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Tokens {
  access_token: string;
  refresh_token: string;
}

const svc = process.env.SVC_URL ?? 'http://127.0.0.1:8080';
const clientId = process.env.SVC_CLIENT_ID ?? '';
const file = 'tokens.json';

/** The refresh token of a public app is used up by each refresh, so the new one is stored before it is used. */
function save(tokens: Tokens): Tokens {
  writeFileSync(file, JSON.stringify(tokens), { mode: 0o600 });
  return tokens;
}

async function post(path: string, form: Record<string, string>): Promise<Response> {
  const body = new URLSearchParams({ client_id: clientId, ...form });
  return fetch(svc + path, { method: 'POST', body });
}

/** Sends the browser to the page of consent, and waits until it returns to this device. */
async function connect(): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'read',
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  console.log(`Open ${svc}/oauth/authorize?${query}`);
  const code = await new Promise<string | null>((resolve) => {
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', redirectUri);
      const isOurs = pathname === '/callback' && searchParams.get('state') === state && searchParams.get('iss') === svc;
      response.writeHead(isOurs ? 200 : 400, { Connection: 'close' }).end(isOurs ? 'Close this window.' : '');
      if (isOurs) resolve(searchParams.get('code'));
    });
  });
  server.close();
  if (code === null) throw new Error('The owner of the account said no.');
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier };
  const response = await post('/oauth/token', form);
  if (!response.ok) throw new Error(await response.text());
  return save((await response.json()) as Tokens);
}

/** Gets new tokens. If the account has disconnected the app, connects it again. */
async function refresh(tokens: Tokens): Promise<Tokens> {
  const response = await post('/oauth/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token });
  if (response.ok) return save((await response.json()) as Tokens);
  const { error } = (await response.json()) as { error: string };
  if (error !== 'invalid_grant') throw new Error(error);
  rmSync(file);
  return connect();
}

async function contacts(tokens: Tokens): Promise<Response> {
  return fetch(`${svc}/api/v1/contacts`, { headers: { Authorization: `Bearer ${tokens.access_token}` } });
}

let tokens = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Tokens) : await connect();
if (process.argv[2] === 'disconnect') {
  await post('/oauth/revoke', { token: tokens.refresh_token });
  rmSync(file);
} else {
  let response = await contacts(tokens);
  if (response.status === 401) {
    tokens = await refresh(tokens);
    response = await contacts(tokens);
  }
  const { data } = (await response.json()) as { data: { email: string | null }[] };
  console.log(`Contacts: ${data.map((contact) => contact.email).join(', ')}`);
}
