// The conformance suite of MCP: its scenarios for servers in both versions, and those for authorization servers if
// `SVC_CLIENT_ID` is that of a public app. `SVC_REDIRECT_URI` is then `http://127.0.0.1:PORT/callback` with a free port.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { consent } from './flow.mjs';
import { proxy } from './proxy.mjs';
import { headers, origin, url, variable } from './walk.mjs';

const suite = fileURLToPath(new URL('node_modules/.bin/conformance', import.meta.url));
const expected = fileURLToPath(new URL('expected-failures.yaml', import.meta.url));

/** Runs the suite, and shows what it printed if it fails. `read` gets each piece of it. */
async function run(args, read = () => {}) {
  const child = spawn(process.execPath, [suite, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    read(output);
  });
  const status = await new Promise((exited) => child.on('exit', exited));
  assert.equal(status, 0, `conformance ${args.join(' ')}\n${output}`);
}

const front = await proxy(origin, headers.authorization);
try {
  const server = ['server', '--url', `${front.origin}${url.pathname}`];
  for (const revision of ['2025-11-25', '2026-07-28']) {
    await run([...server, '--requirements', revision, '--expected-failures', expected]);
  }
  // Whether the headers of a request agree with its body, which the suite does not require of a server yet.
  await run([...server, '--scenario', 'http-header-validation', '--spec-version', '2026-07-28']);
} finally {
  front.stop();
}

const id = variable('SVC_CLIENT_ID');
if (id) {
  const { port } = new URL(variable('SVC_REDIRECT_URI'));
  let visited;
  // The suite prints the address of the page of consent, and waits for the browser to return.
  await run(['authorization', '--url', origin, '--client-id', id, '--resource', url.href, '--port', port], (output) => {
    const address = /^https?:\S+response_type=code\S+$/m.exec(output)?.[0];
    if (address) visited ??= consent(address).then(fetch);
  });
  assert.ok(visited, 'the suite did not open the page of consent');
  await visited;
}
console.log('ok');
