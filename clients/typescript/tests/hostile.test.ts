// The cases against a server that misbehaves.
import assert from "node:assert/strict";
import net from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import { Client } from "../src/index.js";
import type { ClientOptions, Tokens } from "../src/index.js";
import { HostileServer } from "./hostile.js";
import { run } from "./steps.js";
import { table } from "./table.js";

/** Returns an address at which nothing listens. */
async function absent(): Promise<string> {
  const server = net.createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as net.AddressInfo;
  await once(server.close(), "close");
  return `http://127.0.0.1:${port}`;
}

for (const each of table.hostile) {
  test(each.name, { timeout: 120_000 }, async () => {
    const server = each.server === "absent" ? undefined : await HostileServer.start(each);
    const settings = each.client ?? {};
    const [waits, stored]: [number[], Tokens[]] = [[], []];
    let [now, failures] = [Date.parse(table.now), settings.tokens?.store_fails ?? 0];
    const sleep = (ms: number) => {
      waits.push(ms);
      now += ms;
      return Promise.resolve();
    };
    const store = (tokens: Tokens) => {
      if (failures-- > 0) throw new Error("the disk is full");
      stored.push(tokens);
    };
    const { attempts, total_ms, first_wait_ms, longest_wait_ms, timeout_ms, signing_secret, tokens } = settings;
    const retry = {
      ...(attempts && { attempts }), ...(total_ms && { totalMs: total_ms }),
      ...(first_wait_ms && { firstWaitMs: first_wait_ms }), ...(longest_wait_ms && { longestWaitMs: longest_wait_ms }),
    };
    const options: ClientOptions = {
      url: (server?.url ?? (await absent())) + (settings.path ?? ""), retry,
      env: { now: () => now, ...(!settings.real_waits && { sleep }) },
      ...(timeout_ms && { timeoutMs: timeout_ms }), ...(signing_secret && { signingSecret: signing_secret }),
    };
    if (tokens) {
      const { client_id: clientId, client_secret, access_token, refresh_token } = tokens;
      options.app = { clientId, tokens: { access_token, refresh_token }, store, ...(client_secret && { clientSecret: client_secret }) };
    } else options.key = table.key;
    try {
      // A wait that takes its time has begun by then.
      const into = () => new Promise<void>((done) => setTimeout(done, settings.real_waits ? 500 : 0));
      const received = async (count: number) => server?.received(count).then(into);
      await run(each.steps, { client: new Client(options), received, unique: "" });
    } finally {
      server?.stop();
    }
    if (each.stored) assert.deepEqual(stored, each.stored);
    if (!each.waits_ms) return;
    assert.equal(waits.length, each.waits_ms.length, `the client waited ${waits.join()} ms`);
    each.waits_ms.forEach(([from, to], index) => assert.ok((waits[index] ?? -1) >= from && (waits[index] ?? Infinity) <= to, `the client waited ${waits.join()} ms`));
  });
}
