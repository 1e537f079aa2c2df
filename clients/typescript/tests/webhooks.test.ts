// The webhook cases, and the vectors of the repository.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Verifier, VerifyError } from "../src/webhooks.js";
import { matches, table, vectors } from "./table.js";

/** Returns the code with which a verification is refused. */
async function codeOf(verification: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await verification();
    return undefined;
  } catch (error) {
    if (error instanceof VerifyError) return error.code;
    throw error;
  }
}

for (const each of table.webhooks) {
  test(each.name, async () => {
    const options = {
      secrets: each.secrets ?? [], publicKeys: each.public_keys ?? [], now: () => each.now * 1000,
      ...(each.max_age_seconds !== undefined && { maxAgeSeconds: each.max_age_seconds }),
    };
    for (const headers of [each.headers, new Headers(each.headers)]) {
      const verify = () => new Verifier(options).verify(headers, Buffer.from(each.body));
      assert.equal(await codeOf(verify), each.error);
      if (each.result) matches(await verify(), each.result, "event");
    }
  });
}

test("every vector has its result", async () => {
  assert.ok(vectors.length > 100);
  for (const vector of vectors) {
    const text = (name: string) => vector[name] as string | undefined;
    const headers = {
      "x-svc-signature": text("signature"), "webhook-id": text("webhook_id"),
      "webhook-timestamp": text("webhook_timestamp"), "webhook-signature": text("webhook_signature"),
    };
    const body = Buffer.from(text("body") ?? text("body_base64") ?? "", vector["body_base64"] === undefined ? "utf8" : "base64");
    const [secret, publicKey] = [text("secret"), text("public_key")];
    const options = {
      secrets: secret === undefined ? [] : [secret], publicKeys: publicKey === undefined ? [] : [publicKey],
      maxAgeSeconds: (vector["max_age_seconds"] as number | undefined) ?? null, now: () => ((vector["now"] as number | undefined) ?? 0) * 1000,
    };
    const code = await codeOf(async () => new Verifier(options).verifySignature(headers, body));
    if (vector["lenient"] && code === undefined) continue;
    // WebCrypto does not tell a key that is no point of the curve from one that did not sign.
    const expected = vector["error"] === "invalid_public_key" ? "mismatch" : vector["error"];
    assert.equal(code, expected, text("name"));
  }
});
