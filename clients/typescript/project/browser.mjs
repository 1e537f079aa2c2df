// Uses the installed package in Chromium: a page calls a service of another origin, and verifies a delivery.
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { promisify } from "node:util";
import { build } from "esbuild";

const chromium = process.env.SVC_TEST_CHROMIUM ?? "chromium";
const id = "0195a3c8-8a00-7000-8000-00000000c001";
const source = (url) => `
  import { Client } from "svc-client";
  import { Verifier } from "svc-client/webhooks";
  const run = async () => {
    const svc = new Client({ url: "${url}", key: "svc_live_x", signingSecret: "svcsig_x" });
    const quote = await svc.quotes.update("${id}", { total: "1.1" });
    const verifier = new Verifier({ secrets: ["whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o="], maxAgeSeconds: null });
    const signature = "sha256=a6b61cd6258c4ba2cd4ad5123acce1386872971facc0bc21894c6347157382bf";
    await verifier.verifySignature(new Headers({ "x-svc-signature": signature }), "");
    return "total " + quote.total + " of version " + quote.etag;
  };
  run().then((text) => (document.body.textContent = text), (error) => (document.body.textContent = String(error)));
`;
let attempts = 0;
const listen = (handler) => new Promise((done) => {
  const server = createServer(handler).listen(0, "127.0.0.1", () => done({ server, url: `http://127.0.0.1:${server.address().port}` }));
});
const service = await listen((request, response) => {
  const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "authorization,content-type,x-svc-timestamp,x-svc-signature",
    "access-control-allow-methods": "PATCH", "access-control-expose-headers": "etag" };
  if (request.method === "OPTIONS") return response.writeHead(204, cors).end();
  const signed = /^sha256=/.test(request.headers["x-svc-signature"] ?? "");
  // The first attempt loses its response.
  if (attempts++ === 0 || !signed) return request.socket.destroy();
  response.writeHead(200, { ...cors, "content-type": "application/json", etag: '"v2"' }).end(`{"data":{"id":"${id}","total":1.10}}`);
});
const { outputFiles } = await build({ stdin: { contents: source(service.url), resolveDir: "." }, bundle: true, format: "iife", write: false });
const page = await listen((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(`<body><script>${outputFiles[0].text}</script>`));
try {
  const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom", page.url];
  const { stdout } = await promisify(execFile)(chromium, options, { timeout: 120_000 });
  if (!stdout.includes('total 1.10 of version "v2"')) throw new Error(`the page shows ${stdout}`);
  console.log("the package works in Chromium");
} finally {
  for (const { server } of [service, page]) server.close().closeAllConnections?.();
}
process.exit(0);
