// What only this client can do wrong: signals, timers, other realms and the numbers of JavaScript. The rest is in cases.json.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { Extensions } from "../src/extensions.js";
import { ApiError, Client, InvalidArgumentError, TransportError, UnexpectedResponseError } from "../src/index.js";
import type { AppCredentials, ClientOptions } from "../src/index.js";
import { Verifier, VerifyError } from "../src/webhooks.js";

const id = "0195a3c8-8a00-7000-8000-00000000c001";
const ping = { ok: true, tenantId: id, timestamp: "2026-03-14T15:09:26.535897Z" };
const never = new Promise<never>(() => {});

type Sent = { url: URL; init: RequestInit & { headers: Record<string, string> } };
const respond = (body: unknown, init: ResponseInit = {}): Response => new Response(JSON.stringify(body), { headers: { etag: '"v1"' }, ...init });
const refused = (status: number, code: string, headers = {}): Response => respond({ error: "No.", code }, { status, headers });

/** Returns a client whose requests this function gets, in the order of the requests. */
function clientOf(fetch: (sent: Sent, count: number) => Response | Promise<Response>, options: Partial<ClientOptions> = {}): Client {
  let count = 0;
  const sent = async (url: URL, init: RequestInit) => fetch({ url, init: init as Sent["init"] }, ++count);
  return new Client({ url: "https://svc.example.com", ...(!options.app && { key: "svc_live_x" }), fetch: sent, ...options });
}

function appOf(store: AppCredentials["store"] = () => undefined): AppCredentials {
  return { clientId: "svcapp_a", tokens: { access_token: "svc_oat_1", refresh_token: "svc_ort_1" }, store };
}

/** Responds as a service at which an access token has ended, and `refresh` is the response of the endpoint for tokens. */
const expired = (refresh: () => Promise<Response>) => ({ url, init }: Sent) => {
  if (url.pathname === "/oauth/token") return refresh();
  return init.headers["authorization"] === "Bearer svc_oat_2" ? respond(ping) : refused(401, "invalid_token");
};

const isTimedOut = (error: unknown) => error instanceof TransportError && error.reason === "timed_out";
const soon = (ms = 20) => new Promise((done) => setTimeout(done, ms));

test("a call that waits for the refresh of another one can be cancelled", async () => {
  const client = clientOf(expired(() => never), { app: appOf() });
  void client.ping().catch(() => undefined);
  await soon();
  const controller = new AbortController();
  const second = client.ping({ signal: controller.signal });
  await soon();
  controller.abort(new Error("enough"));
  await assert.rejects(second, /enough/);
});

test("the total of a call covers the refresh of its tokens", async () => {
  const client = clientOf(expired(() => never), { app: appOf() });
  await assert.rejects(client.ping({ totalMs: 100 }), isTimedOut);
  await assert.rejects(client.ping({ totalMs: 100 }), isTimedOut);
});

test("a store that never ends does not hold other calls longer than their total", async () => {
  const tokens = async () => respond({ access_token: "svc_oat_2" });
  const client = clientOf(expired(tokens), { app: appOf(() => never) });
  await assert.rejects(client.ping({ totalMs: 100 }), isTimedOut);
});

test("a deletion that was done before the token ended succeeds", async () => {
  const responses = [refused(503, "unavailable"), refused(401, "invalid_token"), respond({ access_token: "svc_oat_2" }), refused(404, "not_found")];
  const client = clientOf(() => responses.shift() as Response, { app: appOf(), env: { sleep: async () => undefined } });
  await client.contacts.delete(id);
  assert.equal(responses.length, 0);
});

test("a fetch that does not heed its signal is given up", async () => {
  const client = clientOf(() => never, { timeoutMs: 50, retry: { attempts: 1 } });
  await assert.rejects(client.ping(), isTimedOut);
  await assert.rejects(client.ping({ signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
});

test("nothing is sent once the total is over", async () => {
  let sent = 0;
  const client = clientOf(() => (sent++, respond(ping)));
  await assert.rejects(client.ping({ totalMs: 0 }), isTimedOut);
  assert.equal(sent, 0);
});

test("times may be longer than a timer can be", async () => {
  const endless = { timeoutMs: Infinity, retry: { totalMs: Infinity } };
  assert.equal((await clientOf(async () => (await soon(), respond(ping)), endless).ping()).ok, true);
  let sent = 0;
  const client = clientOf(() => (sent++, refused(429, "rate_limited", { "retry-after": "9999999999" })), endless);
  const controller = new AbortController();
  const waiting = client.ping({ signal: controller.signal });
  await soon(100);
  controller.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  assert.equal(sent, 1, "the wait ended at once");
});

test("no call leaves a listener on its signal", async () => {
  const { signal } = new AbortController();
  const app = appOf();
  const busy = clientOf((_, count) => (count < 3 ? refused(503, "unavailable") : respond(ping)), { retry: { firstWaitMs: 1 } });
  await busy.ping({ signal });
  await clientOf(expired(async () => respond({ access_token: "svc_oat_2" })), { app }).ping({ signal });
  await assert.rejects(clientOf(() => refused(404, "not_found")).ping({ signal }), ApiError);
  await assert.rejects(clientOf(() => never, { timeoutMs: 10, retry: { attempts: 1 } }).ping({ signal }), isTimedOut);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("all calls that were signed by a wrong clock are made again", async () => {
  const stamps: string[] = [];
  let arrived: () => void = () => undefined;
  const both = new Promise<void>((done) => (arrived = done));
  const client = clientOf(
    async ({ init }, count) => {
      stamps.push(init.headers["x-svc-timestamp"] ?? "");
      if (count > 2) return new Response(null, { status: 204 });
      if (count === 2) arrived();
      await both;
      return refused(401, "signature_invalid", { date: "Sat, 14 Mar 2026 15:00:00 GMT" });
    },
    { signingSecret: "svcsig_x", env: { now: () => Date.parse("2026-03-14T14:00:00Z") } },
  );
  await Promise.all([client.contacts.delete(id), client.contacts.delete(id)]);
  assert.equal(new Set(stamps).size, 4, `a timestamp came twice: ${stamps.join()}`);
  assert.deepEqual(stamps.slice(2).sort(), ["1773500400.000000", "1773500400.000001"]);
});

test("a list that comes back to its first cursor ends with an error", async () => {
  let sent = 0;
  const client = clientOf(() => (sent++, respond({ data: [], next_cursor: "a" })));
  const all = async () => {
    for await (const _ of client.jobs.list({ cursor: "a" }));
  };
  await assert.rejects(all, UnexpectedResponseError);
  assert.equal(sent, 1);
});

test("a limit that is null is left out", async () => {
  const client = clientOf(({ url }) => (assert.equal(url.search, ""), respond({ data: [], next_cursor: null })));
  await client.jobs.list({ limit: null } as unknown as object).page();
});

test("a record without a version cannot be compared", async () => {
  const client = clientOf(() => assert.fail("it was sent"));
  const listed = { id } as { id: string; etag: string };
  await assert.rejects(client.contacts.getIfChanged(listed), InvalidArgumentError);
  await assert.rejects(client.contacts.update(listed, {}), InvalidArgumentError);
});

test("an id that is none is a rejection, and not thrown at once", async () => {
  const extensions = new Extensions(clientOf(() => assert.fail("it was sent")));
  await assert.rejects(extensions.replayDelivery("../webhooks"), InvalidArgumentError);
});

test("a page without https, which has no randomUUID, can create", async () => {
  const { randomUUID } = crypto;
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true, writable: true });
  try {
    const keys = new Set<string | undefined>();
    const client = clientOf(({ init }) => (keys.add(init.headers["idempotency-key"]), respond({ data: { id } }, { status: 201, headers: { etag: '"v1"' } })));
    await client.jobs.create({ title: "Tap" });
    await client.jobs.create({ title: "Tap" });
    assert.equal(keys.size, 2);
  } finally {
    crypto.randomUUID = randomUUID;
  }
});

test("a certificate that is not trusted means that nothing was sent", async () => {
  const cause = Object.assign(new Error("certificate has expired"), { code: "CERT_HAS_EXPIRED" });
  const failure = new TypeError("fetch failed", { cause });
  const client = clientOf(() => Promise.reject(failure), { retry: { attempts: 1 } });
  await assert.rejects(client.ping(), (error) => error instanceof TransportError && error.reason === "not_connected" && error.cause === failure);
});

test("the failure of a store is the cause of the error", async () => {
  const failure = new Error("the disk is full");
  const store = () => {
    throw failure;
  };
  const client = clientOf(expired(async () => respond({ access_token: "svc_oat_2" })), { app: appOf(store) });
  await assert.rejects(client.ping(), { name: "TokensNotStoredError", cause: failure });
});

test("amounts are exact, whatever is beside them", async () => {
  let body = "";
  const text = `{"data":{"id":"${id}","total": 0.10 ,"note":"{\\"total\\":1}","nested":[{"amount":12345678901234567.89}],"__proto__":{"total":1e2}}}`;
  const client = clientOf(({ init }) => ((body = String(init.body)), new Response(text, { headers: { etag: '"v1"' } })));
  const input = { title: '","total":"', estimated_total: "0.10", nested: { amount: "7" }, odd: () => 1 };
  const record = (await client.jobs.update(id, input as object)) as unknown as Record<string, unknown>;
  assert.equal(body, '{"title":"\\",\\"total\\":\\"","estimated_total":0.10,"nested":{"amount":7}}');
  assert.equal(record["total"], "0.10");
  assert.deepEqual(record["nested"], [{ amount: "12345678901234567.89" }]);
  assert.equal(record["note"], '{"total":1}');
  assert.deepEqual(Object.getOwnPropertyDescriptor(record, "__proto__")?.value, { total: "1e2" });
  assert.equal(({} as Record<string, unknown>)["total"], undefined);
  for (const total of [5, 5n, {}, "1e3", "0x1", " 1", "NaN"]) {
    await assert.rejects(client.jobs.update(id, { estimated_total: total as string }), InvalidArgumentError);
  }
});

test("a number that JSON does not have is no amount", async () => {
  const client = clientOf(() => new Response(`{"data":{"id":"${id}","total":01.5}}`, { headers: { etag: '"v1"' } }));
  await assert.rejects(client.quotes.get(id), UnexpectedResponseError);
});

test("a response that is aborted in its body ends the call", async () => {
  const controller = new AbortController();
  const client = clientOf(({ init }) => {
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => {
        stream.enqueue(new TextEncoder().encode('{"ok":'));
        init.signal?.addEventListener("abort", () => stream.error(new Error("aborted")));
      },
    });
    setTimeout(() => controller.abort(), 20);
    return new Response(body);
  });
  await assert.rejects(client.ping({ signal: controller.signal }), { name: "AbortError" });
});

const secret = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
const signature = "sha256=a6b61cd6258c4ba2cd4ad5123acce1386872971facc0bc21894c6347157382bf";
const codeOf = (code: string) => (error: unknown) => error instanceof VerifyError && error.code === code;

test("bodies and headers may be of another realm or library", async () => {
  const verifier = new Verifier({ secrets: [secret], maxAgeSeconds: null });
  const other = runInNewContext("({ bytes: new Uint8Array(0), buffer: new ArrayBuffer(0) })") as { bytes: Uint8Array; buffer: ArrayBuffer };
  const shared = new Uint8Array([1, 2, 3]).subarray(3);
  for (const body of ["", Buffer.alloc(0), new ArrayBuffer(0), other.bytes, other.buffer, shared]) {
    await verifier.verifySignature({ "X-Svc-Signature": signature }, body);
  }
  const headers = { get: (name: string) => (name === "x-svc-signature" ? signature : null) };
  await verifier.verifySignature(headers as unknown as Headers, "");
  await verifier.verifySignature({ "X-SVC-SIGNATURE": undefined, "x-svc-signature": [signature] }, "");
  await assert.rejects(verifier.verifySignature({ "x-svc-signature": signature }, {} as string), InvalidArgumentError);
  await assert.rejects(verifier.verifySignature({ "x-svc-signature": [signature, signature] }, ""), codeOf("wrong_length"));
});

test("an age that is no number refuses every delivery", async () => {
  const body = '{"delivered_at":"2026-03-14T09:26:53.000000Z"}';
  const headers = {
    "webhook-id": "019a0000-0000-7000-8000-00000000d001",
    "webhook-timestamp": "1773480413",
    "webhook-signature": "v1a,78jPvZst3PxKKpsn8alA6WL9Uck8lB9oXTFPr+idcxL3Iwx/1SRBFrH2fc2FOPz8xRQe+PDj4SEz3lVA4+TNDw==",
  };
  const options = { publicKeys: ["whpk_XVXAvYitvdsIQdpeflH9GAWiHK8UhPcdQZATxlDsiUc="], now: () => 1773480413_000 };
  await new Verifier(options).verifySignature(headers, body);
  await assert.rejects(new Verifier({ ...options, maxAgeSeconds: NaN }).verifySignature(headers, body), codeOf("stale"));
  await assert.rejects(new Verifier({ ...options, futureToleranceSeconds: NaN }).verifySignature(headers, body), codeOf("from_future"));
});

test("a header of many signatures does not occupy the receiver", async () => {
  const entry = `v1,${Buffer.alloc(32).toString("base64")}`;
  const verify = (count: number) => {
    const headers = { "webhook-id": "a", "webhook-timestamp": "1773480413", "webhook-signature": Array(count).fill(entry).join(" ") };
    return new Verifier({ secrets: [secret] }).verifySignature(headers, "{}");
  };
  await assert.rejects(verify(8), codeOf("mismatch"));
  await assert.rejects(verify(9), codeOf("too_many_signatures"));
});
