// The TypeScript SDK as a public app, from the first 401 to records, and from a token that may read to one that may write.
//
// `SVC_CLIENT_ID` is the id of a registered app, or the URL of a metadata document.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport as Transport1, StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  Client as Client2, StreamableHTTPClientTransport as Transport2, discoverAuthorizationServerMetadata,
} from '@modelcontextprotocol/client';
import { consent } from './flow.mjs';
import { data, origin, program, url, variable } from './walk.mjs';

const id = variable('SVC_CLIENT_ID');
const redirectUrl = variable('SVC_REDIRECT_URI');
/** Whether the SDK takes the id for the URL of a document. It takes no URL with `http`, which is passed as a plain id. */
const isDocument = id.startsWith('https:');

const metadata = await discoverAuthorizationServerMetadata(origin);
if (id.startsWith('http')) assert.equal(metadata.client_id_metadata_document_supported, true);

/** What the SDK asks of an app: its identity, a place for its tokens, and a browser. */
class Provider {
  redirectUrl = redirectUrl;
  clientMetadata = { client_name: 'Route Planner', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' };
  clientMetadataUrl = isDocument ? id : undefined;
  #client = isDocument ? undefined : { client_id: id, issuer: origin };
  #tokens;
  #verifier;
  #state;
  #discovered;
  /** If set, the app asks for this in place of what the SDK would ask for. */
  scope;
  /** Where the browser returned. */
  returned;
  /** The scopes that the owner was asked for, in turn. */
  asked = [];

  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  state = () => (this.#state = randomUUID());
  discoveryState = () => this.#discovered;
  saveDiscoveryState = (discovered) => void (this.#discovered = discovered);

  async redirectToAuthorization(authorize) {
    const query = authorize.searchParams;
    assert.equal(query.get('client_id'), id);
    assert.equal(query.get('resource'), url.href);
    assert.equal(query.get('code_challenge_method'), 'S256');
    if (this.scope) query.set('scope', this.scope);
    this.asked.push(query.get('scope'));
    this.returned = (await consent(authorize)).searchParams;
    assert.equal(this.returned.get('state'), this.#state);
    assert.equal(this.returned.get('iss'), origin);
  }
}

const create = () => ({
  name: 'create_contact',
  arguments: { first_name: 'Ada', last_name: 'Lovelace', email: `ada-${randomUUID()}@example.com` },
});

async function run(makeClient, Transport, finish, stepUp) {
  const provider = new Provider();
  const statuses = [];
  const watched = async (...request) => {
    const response = await fetch(...request);
    statuses.push(response.status);
    return response;
  };
  const transport = () => new Transport(url, { authProvider: provider, fetch: watched });
  const unauthorized = (error) => error.constructor.name === 'UnauthorizedError';

  // The first request has no token, so the SDK sends the owner to the page of consent.
  provider.scope = 'read';
  const first = transport();
  await assert.rejects(makeClient().connect(first), unauthorized);
  assert.equal(statuses[0], 401);
  await finish(first, provider.returned);
  provider.scope = undefined;

  const second = transport();
  const client = makeClient();
  await client.connect(second);
  assert.ok(Array.isArray(data(await client.callTool({ name: 'list_contacts', arguments: { limit: 1 } }))));
  assert.equal(provider.tokens().scope, 'read');

  // A tool that changes records needs more than the owner has allowed.
  statuses.length = 0;
  await stepUp({ client, transport: second, provider, unauthorized, statuses });
  assert.ok(provider.asked[1].split(' ').includes('write'), provider.asked);
  assert.ok(provider.tokens().scope.includes('write'));
  const contact = data(await client.callTool(create()));
  await client.callTool({ name: 'delete_contact', arguments: { id: contact.id } });
  await client.close();

  // The next one begins without a grant.
  const body = new URLSearchParams({ client_id: id, token: provider.tokens().refresh_token });
  assert.equal((await fetch(metadata.revocation_endpoint, { method: 'POST', body })).status, 200);
}

// Version 1 gets a new access token with its refresh token, which may do no more than the one before, and gives up. The app
// forgets its tokens and asks for more itself.
await run(() => new Client1(program), Transport1, (transport, returned) => transport.finishAuth(returned.get('code')),
  async ({ client, provider, statuses }) => {
    await assert.rejects(
      client.callTool(create()),
      (error) => error instanceof StreamableHTTPError && error.code === 403 && /upscoping/.test(error.message),
    );
    assert.equal(statuses.filter((status) => status === 403).length, 2);
    provider.saveTokens(undefined);
    assert.equal(await auth(provider, { serverUrl: url, scope: 'read write' }), 'REDIRECT');
    await auth(provider, { serverUrl: url, authorizationCode: provider.returned.get('code') });
  });

// Version 2 sends the owner to the page of consent again, for what the response says is missing.
const modes = [undefined, { mode: { pin: '2026-07-28' } }];
for (const versionNegotiation of modes) {
  await run(() => new Client2(program, { versionNegotiation }), Transport2,
    (transport, returned) => transport.finishAuth(returned),
    async ({ client, transport, provider, unauthorized, statuses }) => {
      await assert.rejects(client.callTool(create()), unauthorized);
      assert.ok(statuses.includes(403), statuses);
      await transport.finishAuth(provider.returned);
    });
}
console.log('ok');
