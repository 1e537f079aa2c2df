// The table of behaviours (../../README.md), and what is common to reading it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

export interface Reply { status?: number; headers?: Record<string, string>; body?: string; json?: Json; text?: string; problem?: string; fault?: string }
export interface Exchange {
  request: string; query?: Record<string, string>; headers?: Record<string, string | null>; json?: Json; text?: string;
  form?: Record<string, string>; signed?: boolean; repeat?: number; count?: number; barrier?: boolean; respond: Reply;
}
export interface Settings {
  path?: string; signing_secret?: string; attempts?: number; total_ms?: number; first_wait_ms?: number; longest_wait_ms?: number;
  timeout_ms?: number; real_waits?: boolean; key?: string; lose_responses?: number; clock_ahead_ms?: number;
  tokens?: { client_id: string; client_secret?: string; access_token: string; refresh_token: string; store_fails?: number };
}
export interface Step {
  call: string; collection?: string; id?: string; record?: number; input?: Fields; idempotency_key?: string; filter?: Fields; limit?: number;
  cursor?: string; updated_since?: string; position?: { updated_at: string } | null; take?: number; parallel?: number; events?: string[];
  trigger?: Fields; cancel_after_requests?: number; within_ms?: number; repeat_until_error?: number; result?: Json; error?: Fields; partial?: Json;
}
export interface Case {
  name: string; client?: Settings; server?: string; script?: Exchange[]; routes?: Exchange[]; steps: Step[]; waits_ms?: [number, number][];
  stored?: { access_token: string; refresh_token: string }[];
}
export interface WebhookCase {
  name: string; secrets?: string[]; public_keys?: string[]; headers: Record<string, string>; body: string; now: number;
  max_age_seconds?: number | null; result?: Fields; error?: string;
}
interface Table { version: number; now: string; key: string; vectors: string; bodies: Fields; hostile: Case[]; live: Case[]; webhooks: WebhookCase[] }

const file = new URL("../../../cases.json", import.meta.url);
export const table = JSON.parse(readFileSync(file, "utf8")) as Table;
export const vectors = JSON.parse(readFileSync(new URL(table.vectors, file), "utf8")) as Fields[];

const KNOWN = {
  table: "version now key vectors bodies hostile live webhooks",
  case: "name client server script routes steps waits_ms stored",
  client: "path signing_secret tokens attempts total_ms first_wait_ms longest_wait_ms timeout_ms real_waits key lose_responses clock_ahead_ms",
  tokens: "client_id client_secret access_token refresh_token store_fails",
  exchange: "request query headers json text form signed repeat count barrier respond",
  reply: "status headers body json text problem fault",
  step:
    "call collection id record input idempotency_key filter limit cursor updated_since position take parallel events trigger " +
    "cancel_after_requests within_ms repeat_until_error result error partial",
  error: "kind status code message field errors existing_id retry_after_ms request_id attempts transport start",
  webhook: "name secrets public_keys headers body now max_age_seconds result error",
};

/** Fails on a field that these tests do not know: it would not be tested. */
function check(kind: keyof typeof KNOWN, value: object): void {
  const unknown = Object.keys(value).filter((name) => !KNOWN[kind].split(" ").includes(name));
  assert.deepEqual(unknown, [], `unknown fields of a ${kind}: ${JSON.stringify(value)}`);
}

check("table", table);
assert.equal(table.version, 1);
for (const each of [...table.hostile, ...table.live]) {
  check("case", each);
  check("client", each.client ?? {});
  check("tokens", each.client?.tokens ?? {});
  for (const exchange of [...(each.script ?? []), ...(each.routes ?? [])]) {
    check("exchange", exchange);
    check("reply", exchange.respond);
  }
  for (const step of each.steps) {
    check("step", step);
    check("error", step.error ?? {});
    assert.notEqual("result" in step, "error" in step, `${each.name}: a step has either a result or an error`);
  }
}
table.webhooks.forEach((each) => check("webhook", each));

/** Fails unless `actual` has everything that is expected: objects may have more members. */
export function matches(actual: unknown, expected: Json, where: string): void {
  if (expected === null || typeof expected !== "object") {
    assert.equal(actual, expected, where);
    return;
  }
  assert.ok(typeof actual === "object" && actual !== null, `${where} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  assert.equal(Array.isArray(actual), Array.isArray(expected), where);
  if (Array.isArray(expected)) assert.equal((actual as unknown[]).length, expected.length, `${where}: ${JSON.stringify(actual)}`);
  for (const [name, value] of Object.entries(expected)) matches((actual as Fields)[name], value, `${where}.${name}`);
}
