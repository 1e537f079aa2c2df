// The TypeScript SDK: version 1, which speaks MCP 2025-11-25, and version 2, which speaks 2026-07-28 as well.
import assert from 'node:assert/strict';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { adapt, headers, program, readonlyUrl, url, walk, walkReadonly } from './walk.mjs';

const modes = [
  ['2025-11-25', () => new Client1(program), Transport1],
  ['2025-11-25', () => new Client2(program), Transport2],
  ['2026-07-28', () => new Client2(program, { versionNegotiation: { mode: 'auto' } }), Transport2],
  ['2026-07-28', () => new Client2(program, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), Transport2],
];
for (const [version, make, Transport] of modes) {
  for (const [address, steps] of [[url, walk], [readonlyUrl, walkReadonly]]) {
    const client = make();
    // A failure that no call reports, such as one of the stream that the client opens by GET.
    let failure;
    client.onerror = (error) => (failure = error);
    const transport = new Transport(address, { requestInit: { headers } });
    await client.connect(transport);
    assert.equal(transport.protocolVersion ?? client.getNegotiatedProtocolVersion(), version);
    assert.equal(transport.sessionId, undefined, 'the server has no sessions');
    assert.ok(client.getServerVersion().name);
    assert.ok(client.getServerCapabilities().tools);
    await steps(adapt(client));
    assert.equal(failure, undefined);
    await client.close();
  }
}
console.log('ok');
