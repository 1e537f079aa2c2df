// The Inspector on the command line, in both versions of MCP. Each step is one process, as when a person types it:
//
//     npx @modelcontextprotocol/inspector --cli http://127.0.0.1:8080/mcp --transport http \
//       --header "Authorization: Bearer $SVC_KEY" --protocol-era modern --method tools/list
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headers, readonlyUrl, url, walk, walkReadonly } from './walk.mjs';

const inspector = fileURLToPath(new URL('node_modules/.bin/mcp-inspector', import.meta.url));
/** Where the Inspector keeps what it remembers of servers. */
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
/** The exit statuses of a success, and of a tool that does not exist or whose result is an error. */
const [SUCCESS, TOOL_FAILED] = [0, 5];

function run(address, era, ...args) {
  const server = [address.href, '--transport', 'http', '--header', `Authorization: ${headers.authorization}`];
  const all = [inspector, '--cli', ...server, '--protocol-era', era, '--format', 'json', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, {
    env: { ...process.env, HOME: home }, encoding: 'utf8',
  });
  return { status, stderr, result: stdout && JSON.parse(stdout).result };
}

const client = (address, era) => ({
  tools: async () => {
    // A schema that some host of tools cannot read makes it fail.
    const { status, stderr, result } = run(address, era, '--method', 'tools/list', '--strict');
    assert.equal(status, SUCCESS, stderr);
    return result.tools;
  },
  call: async (name, args) => {
    const call = ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)];
    const { status, stderr, result } = run(address, era, ...call);
    // The Inspector calls no tool that the server does not list.
    if (status === TOOL_FAILED && !result) throw Object.assign(new Error(stderr), { code: status });
    assert.ok(result, stderr);
    assert.equal(status, result.isError ? TOOL_FAILED : SUCCESS, stderr);
    return result;
  },
});

try {
  await walk(client(url, 'modern'));
  await walkReadonly(client(readonlyUrl, 'legacy'));
} finally {
  rmSync(home, { recursive: true });
}
console.log('ok');
