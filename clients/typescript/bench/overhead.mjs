// How much longer a call takes than plain fetch: both read one contact from the same server, in turn, in one run.
import { createServer } from "node:http";
import { Client } from "../dist/index.js";

const [SECONDS, CALLS] = [6, 20];
const id = "0195a3c8-8a00-7000-8000-00000000c001";
const contact = { id, email: "ada@example.com", first_name: "Ada", last_name: null, phone: null, company_name: null, city: null, state: null,
  postcode: null, created_at: "2026-03-14T15:09:26.535897Z", updated_at: "2026-03-14T15:09:26.535897Z" };
const body = JSON.stringify({ data: contact });
const server = createServer((_, response) => response.writeHead(200, { "content-type": "application/json", etag: '"v1"' }).end(body));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}`;
const client = new Client({ url, key: "svc_live_x" });

const ways = {
  fetch: async () => (await (await fetch(`${url}/api/v1/contacts/${id}`, { headers: { authorization: "Bearer svc_live_x" } })).json()).data,
  client: () => client.contacts.get(id),
};

/** Returns the microseconds of a call, over many calls one after the other. */
async function time(call) {
  const begun = performance.now();
  for (let made = 0; made < CALLS; made++) await call();
  return ((performance.now() - begun) / CALLS) * 1000;
}

const times = { fetch: [], client: [] };
for (const call of Object.values(ways)) await time(call);
for (const end = performance.now() + SECONDS * 1000; performance.now() < end; ) {
  for (const [name, call] of Object.entries(ways)) times[name].push(await time(call));
}
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const [plain, ours] = [median(times.fetch), median(times.client)];
console.log(`fetch ${plain.toFixed(0)} µs, client ${ours.toFixed(0)} µs a call: ratio ${(ours / plain).toFixed(2)}`);
server.close();
server.closeAllConnections();
