// Runs the steps of a case with a client.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { Extensions } from "../src/extensions.js";
import { ApiError, Client, InvalidArgumentError, TokensNotStoredError, TransportError, UnexpectedResponseError } from "../src/index.js";
import type { KnownVersion, List, SyncPosition, Versioned } from "../src/index.js";
import { Verifier } from "../src/webhooks.js";
import { matches } from "./table.js";
import type { Fields, Json, Step } from "./table.js";

type Any = Record<string, unknown>;
interface AnyCollection {
  get(id: string, options: object): Promise<Any>;
  getIfChanged(known: KnownVersion, options: object): Promise<Any | null>;
  create(input: Fields, options: object): Promise<Any>;
  update(target: unknown, input: Fields, options: object): Promise<Any>;
  delete(target: unknown, options: object): Promise<void>;
  list(filter: object, options: object): List<Any>;
  sync(position: SyncPosition | null, options: object): AsyncIterable<Any>;
}

export interface Context {
  client: Client;
  /** Resolves once the server has seen so many requests. */
  received: (count: number) => Promise<void>;
  unique: string;
}

/** Replaces `{unique}`, and `$1.id` by what step 1 returned. */
function resolve(value: Json | undefined, results: unknown[], unique: string): unknown {
  if (typeof value === "string" && /^\$\d/.test(value)) {
    const [step, ...names] = value.slice(1).split(".");
    return names.reduce((found, name) => (found as Any)[name], results[Number(step)]);
  }
  if (typeof value === "string") return value.replaceAll("{unique}", unique);
  if (Array.isArray(value)) return value.map((item) => resolve(item, results, unique));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item, results, unique)]));
}

async function take(items: AsyncIterable<unknown>, most: number | undefined, partial: unknown[]): Promise<unknown[]> {
  for await (const item of items) {
    partial.push(item);
    if (partial.length === most) break;
  }
  return partial;
}

async function call(step: Step, context: Context, results: unknown[], partial: unknown[], signal: AbortSignal): Promise<unknown> {
  const { client } = context;
  const extensions = new Extensions(client);
  const options = { signal, ...(step.idempotency_key !== undefined && { idempotencyKey: step.idempotency_key }) };
  const name = step.collection ?? "";
  const collection = (name === "events" ? extensions.events : client[name as "contacts"]) as unknown as AnyCollection;
  const record = step.record === undefined ? undefined : (results[step.record] as Versioned<KnownVersion>);
  const id = step.id ?? "";
  const input = step.input ?? {};
  const query = Object.fromEntries(Object.entries({ ...step.filter, limit: step.limit, cursor: step.cursor, updated_since: step.updated_since }).filter(([, value]) => value !== undefined));
  switch (step.call) {
    case "ping": return client.ping(options);
    case "get": return collection.get(id, options);
    case "get_if_changed": return collection.getIfChanged(record as KnownVersion, options);
    case "create": return collection.create(input, options);
    case "update": return collection.update(record ?? id, input, options);
    case "delete": return (await collection.delete(record ?? id, options)) ?? null;
    case "page": return collection.list(query, options).page();
    case "all": return take(collection.list(query, options), step.take, partial);
    case "sync": return take(collection.sync(step.position ?? null, options), step.take, partial);
    case "sync_events": return take(extensions.sync(step.position ?? null, options), step.take, partial);
    case "webhook_deliveries": return take(extensions.deliveries(id, query, options), step.take, partial);
    case "delivery": return extensions.delivery(id, options);
    case "replay_delivery": return extensions.replayDelivery(id, options);
    case "replay_webhook": return extensions.replay(id, input as { since: string }, options);
    case "bulk_replay": return extensions.bulkReplay(id, options);
    case "receive": return receive(client, step.events as ["contact.created"], step.trigger as { email: string });
    default: return assert.fail(`unknown call ${step.call}`);
  }
}

/** Subscribes a receiver, and returns the event that it gets for a new contact. */
async function receive(client: Client, events: ["contact.created"], trigger: { email: string }): Promise<unknown> {
  const server = http.createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { secret } = await client.webhooks.create({ url, events });
    const arrived = once(server, "request") as Promise<[http.IncomingMessage, http.ServerResponse]>;
    await client.contacts.create(trigger);
    const [request, response] = await arrived;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.writeHead(204).end();
    return await new Verifier({ secrets: [secret] }).verify(request.headers, Buffer.concat(chunks));
  } finally {
    server.close();
  }
}

/** Returns an error as the table has it. */
function described(error: unknown, cancelled: boolean): Any {
  if (cancelled && (error as Error).name === "AbortError") return { kind: "cancelled" };
  if (error instanceof ApiError) {
    const { kind, status, code, message, field, errors, existingId, retryAfterMs, requestId, attempts } = error;
    assert.ok(error.is("rate_limited") === (code === "rate_limited"));
    return { kind, status, code, message, field, errors, existing_id: existingId, retry_after_ms: retryAfterMs, request_id: requestId, attempts };
  }
  if (error instanceof TransportError) return { kind: error.kind, transport: error.reason, attempts: error.attempts };
  if (error instanceof UnexpectedResponseError) {
    const { kind, status, start, attempts } = error;
    assert.ok(start.length <= 200);
    return { kind, status, start, attempts };
  }
  if (error instanceof InvalidArgumentError || error instanceof TokensNotStoredError) return { kind: error.kind };
  throw error;
}

function checkError(actual: Any, expected: Fields, where: string): void {
  for (const [name, value] of Object.entries(expected)) {
    const found = actual[name];
    const bounds = value as { from?: number; to?: number } | null;
    if (name === "retry_after_ms" && typeof bounds === "object" && bounds?.from !== undefined) {
      assert.ok((found as number) >= bounds.from && (found as number) <= (bounds.to ?? 0), `${where}.${name} is ${found}`);
    } else if (value === null) assert.equal(found, undefined, `${where}.${name}`);
    else matches(found, value, `${where}.${name}`);
  }
}

/** Runs the steps of a case, one after the other. */
export async function run(steps: Step[], context: Context): Promise<void> {
  const results: unknown[] = [];
  for (const [index, unresolved] of steps.entries()) {
    const step = resolve(unresolved as unknown as Json, results, context.unique) as unknown as Step;
    const where = `step ${index} (${step.call})`;
    const [controller, partial] = [new AbortController(), [] as unknown[]];
    if (step.cancel_after_requests) void context.received(step.cancel_after_requests).then(() => controller.abort());
    const once = () => call(step, context, results, partial, controller.signal);
    const begun = performance.now();
    let [result, error] = [undefined as unknown, undefined as unknown];
    try {
      for (let repeated = 0; repeated < (step.repeat_until_error ?? 1); repeated++) {
        const all = await Promise.all(Array.from({ length: step.parallel ?? 1 }, once));
        result = all[0];
        if (step.result !== undefined) all.forEach((each) => matches(each, step.result as Json, where));
      }
    } catch (caught) {
      if (!step.error || caught instanceof assert.AssertionError) throw caught;
      error = caught;
    }
    assert.ok(performance.now() - begun <= (step.within_ms ?? Infinity), `${where} took too long`);
    if (step.error) {
      assert.ok(error, `${where} should fail: ${JSON.stringify(result)}`);
      checkError(described(error, controller.signal.aborted), step.error, where);
      if (step.partial) matches(partial, step.partial, where);
    }
    results.push(result);
  }
}
