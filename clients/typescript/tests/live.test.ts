// The cases against svc-server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
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

test("the client has the extensions that the service has", { skip: skipped, timeout: 120_000 }, async () => {
  const server = await startServer();
  try {
    const documented = (await (await fetch(`${server.url}/api/v1/openapi.json`)).json()) as { paths: object };
    const v1 = JSON.parse(await readFile(new URL("../../../../svc-server/openapi/v1.json", import.meta.url), "utf8")) as { paths: object };
    const added = Object.keys(documented.paths).filter((path) => !(path in v1.paths));
    assert.deepEqual(added.sort(), [
      "/deliveries/{id}", "/deliveries/{id}/attempts", "/deliveries/{id}/replay", "/events", "/events/{id}", "/replays/{id}",
      "/webhooks/{id}/deliveries", "/webhooks/{id}/replay", "/webhooks/{id}/rotate-secret", "/webhooks/{id}/test",
    ]);
  } finally {
    await server.stop();
  }
});
