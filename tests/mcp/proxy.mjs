// A proxy on this machine that adds the API key to each request, for programs that can send none, such as the conformance
// suite. It passes on everything else unchanged, also the wrong hosts and origins that the suite tries.
import http from 'node:http';

/** Starts a proxy in front of `origin`. Returns its own origin, and a function that stops it. */
export async function proxy(origin, authorization) {
  const { hostname, port, host } = new URL(origin);
  const server = http.createServer((request, response) => {
    // To the server, a request to the proxy is one to itself.
    const own = `127.0.0.1:${server.address().port}`;
    const headers = { ...request.headers, authorization };
    if (headers.host === own) headers.host = host;
    if (headers.origin === `http://${own}`) headers.origin = origin;
    const upstream = http.request({ hostname, port, path: request.url, method: request.method, headers });
    upstream.on('response', (received) => {
      response.writeHead(received.statusCode, received.rawHeaders);
      received.pipe(response);
    });
    upstream.on('error', (error) => response.destroy(error));
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const stop = () => { server.close(); server.closeAllConnections(); };
  return { origin: `http://127.0.0.1:${server.address().port}`, stop };
}
