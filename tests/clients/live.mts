// Uses a client that openapi-typescript and openapi-fetch make of the OpenAPI document with a server, of which SVC_URL
// and SVC_KEY tell: create, list by cursors, change a version, be refused, reach the rate limit.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated";

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
  baseUrl: `${process.env.SVC_URL}/api/v1`,
  headers: { authorization: `Bearer ${process.env.SVC_KEY}` },
});

function check(condition: unknown, what: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(what));
}

// Create. A repeat under the same key returns the same record.
const header = { "Idempotency-Key": "typescript" };
const body = { email: "grace@typescript.example.com", first_name: "Grace" };
const created = await client.POST("/contacts", { params: { header }, body });
check(created.data, created.error);
const repeated = await client.POST("/contacts", { params: { header }, body });
check(repeated.data?.data.id === created.data.data.id, repeated);

// List by cursors.
for (const name of ["ada", "alan"]) {
  const { error } = await client.POST("/contacts", { body: { email: `${name}@typescript.example.com` } });
  check(!error, error);
}
const newest: components["schemas"]["Contact"][] = [];
let cursor: string | undefined;
do {
  const page = await client.GET("/contacts", { params: { query: { limit: 1, ...(cursor && { cursor }) } } });
  check(page.data, page.error);
  newest.push(...page.data.data);
  cursor = page.data.next_cursor ?? undefined;
} while (cursor && newest.length < 3);
const emails = newest.map((contact) => contact.email).join();
check(emails === "alan@typescript.example.com,ada@typescript.example.com,grace@typescript.example.com", emails);

// Change a version, and be refused once it is old.
const path = { id: created.data.data.id };
const etag = created.response.headers.get("ETag") ?? "";
const change = { params: { path, header: { "If-Match": etag } }, body: { phone: "0491 570 156" } };
const changed = await client.PATCH("/contacts/{id}", change);
check(changed.data?.data.phone === "0491 570 156", changed);
const stale = await client.PATCH("/contacts/{id}", change);
check(stale.response.status === 412 && stale.error?.code === "precondition_failed", stale);

// A field that is not valid is named.
const refused = await client.POST("/contacts", { body: { email: "nobody" } });
check(refused.response.status === 400 && refused.error && "errors" in refused.error, refused);
const failing = (refused.error.errors ?? []).map(({ field, code }) => `${field} ${code}`).join();
check(refused.error.field === "email" && failing === "email invalid_format", refused.error);

// The rate limit says when the next request is accepted.
for (let requests = 0; ; requests++) {
  check(requests < 1000, "no rate limit");
  const ping = await client.GET("/ping");
  if (ping.response.status === 429) {
    check(ping.error && "retry_after_ms" in ping.error && ping.error.retry_after_ms > 0, ping.error);
    check(ping.error.code === "rate_limited" && Number(ping.response.headers.get("Retry-After")) > 0, ping.error);
    break;
  }
}
