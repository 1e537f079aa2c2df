// The cases against svc-server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/index.js";
import { losing, skipped, startServer } from "./live.js";
import { run } from "./steps.js";
import { table } from "./table.js";

for (const [index, each] of table.live.entries()) {
  test(each.name, { skip: skipped, timeout: 120_000 }, async () => {
    const server = await startServer();
    const { key, lose_responses = 0, clock_ahead_ms = 0, attempts } = each.client ?? {};
    const proxy = await losing(server.url, lose_responses);
    try {
      assert.ok(key === undefined || key === "signed");
      const client = new Client({
        url: lose_responses ? proxy.url : server.url,
        ...(key ? await server.signedKey() : { key: server.key }),
        env: { now: () => Date.now() + clock_ahead_ms },
        ...(attempts && { retry: { attempts } }),
      });
      await run(each.steps, { client, received: () => assert.fail("a live case cancels nothing"), unique: `case${index}` });
      assert.ok(proxy.left() <= 0, "no response was lost");
    } finally {
      proxy.stop();
      await server.stop();
    }
  });
}
