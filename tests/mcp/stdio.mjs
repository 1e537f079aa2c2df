// A server that the client starts itself and talks to by stdio, in both versions of MCP. `SVC_COMMAND` is a JSON array
// with the program and its arguments.
import assert from 'node:assert/strict';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio';
import { adapt, checkTools, data, program, variable } from './walk.mjs';

const [command, ...args] = JSON.parse(variable('SVC_COMMAND'));
const modes = [
  [() => new Client1(program), Transport1],
  [() => new Client2(program), Transport2],
  [() => new Client2(program, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), Transport2],
];
for (const [make, Transport] of modes) {
  const client = make();
  // A line of stdout that is no message ends up here.
  let failure;
  client.onerror = (error) => (failure = error);
  await client.connect(new Transport({ command, args, env: process.env }));
  const { tools, call } = adapt(client);
  checkTools(await tools());
  assert.ok(Array.isArray(data(await call('list_contacts', { limit: 1 }))));
  await client.close();
  assert.equal(failure, undefined);
}
console.log('ok');
