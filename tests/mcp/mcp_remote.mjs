// mcp-remote, which makes a server on the network one that a host of tools starts itself and talks to by stdio.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { adapt, headers, program, readonlyUrl, url, walk, walkReadonly } from './walk.mjs';

const proxy = fileURLToPath(new URL('node_modules/.bin/mcp-remote', import.meta.url));
/** Where mcp-remote keeps the tokens of servers. */
const home = mkdtempSync(join(tmpdir(), 'mcp-remote-'));

try {
  // `auto` speaks MCP 2026-07-28 to the server, and `legacy` passes on what the host says, in 2025-11-25.
  for (const [address, protocol, steps] of [
    [url, 'legacy', walk], [url, 'auto', walk], [readonlyUrl, 'legacy', walkReadonly], [readonlyUrl, 'auto', walkReadonly],
  ]) {
    const client = new Client(program);
    const header = ['--header', 'Authorization:${AUTHORIZATION}'];
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [proxy, address.href, '--transport', 'http-only', '--protocol', protocol, '--silent', ...header],
      env: { ...process.env, HOME: home, MCP_REMOTE_CONFIG_DIR: home, AUTHORIZATION: headers.authorization },
    });
    await client.connect(transport);
    assert.ok(client.getServerVersion().name);
    await steps(adapt(client));
    await client.close();
  }
} finally {
  rmSync(home, { recursive: true });
}
console.log('ok');
