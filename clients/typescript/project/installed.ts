// Uses the installed package with a server, of which SVC_URL and SVC_KEY tell: in a project that has nothing else.
import { ApiError, Client, InvalidArgumentError } from "svc-client";
import type { Schemas } from "svc-client";
import { Extensions } from "svc-client/extensions";
import { Verifier, VerifyError } from "svc-client/webhooks";
import type { WebhookEvent } from "svc-client/webhooks";

function check(condition: unknown, what: unknown): asserts condition {
  if (!condition) throw new Error(String(what));
}

const svc = new Client({ url: process.env["SVC_URL"] ?? "", key: process.env["SVC_KEY"] ?? "" });
const ada = await svc.contacts.create({ email: "ada@installed.example.com" });
check(JSON.stringify(ada).includes("etag") === false && ada.etag.startsWith('"'), ada.etag);
const moved = await svc.contacts.update(ada, { city: "Perth" });
const stale = await svc.contacts.update(ada, { city: "Hobart" }).catch((error: unknown) => error);
check(stale instanceof ApiError && stale.is("precondition_failed"), stale);
const taken = await svc.contacts.create({ email: "ada@installed.example.com" }).catch((error: unknown) => error);
check(taken instanceof ApiError && taken.is("email_taken") && taken.existingId === ada.id, taken);
const quote: Schemas["Quote"] = await svc.quotes.create({ contact_id: ada.id, total: "99.95" });
check(quote.total === "99.95", quote.total);
let count = 0;
for await (const contact of svc.contacts.list({ limit: 10 })) if (contact.id === moved.id) count++;
check(count === 1, count);
for await (const { records } of new Extensions(svc).sync({ updated_at: ada.created_at })) check(records[0]?.kind === "contact.updated", records);
await svc.contacts.delete(moved);

const verifier = new Verifier({ publicKeys: ["whpk_XVXAvYitvdsIQdpeflH9GAWiHK8UhPcdQZATxlDsiUc="], maxAgeSeconds: null });
const headers = {
  "webhook-id": "019a0000-0000-7000-8000-00000000d001",
  "webhook-timestamp": "1773480413",
  "webhook-signature": "v1a,78jPvZst3PxKKpsn8alA6WL9Uck8lB9oXTFPr+idcxL3Iwx/1SRBFrH2fc2FOPz8xRQe+PDj4SEz3lVA4+TNDw==",
};
await verifier.verifySignature(headers, '{"delivered_at":"2026-03-14T09:26:53.000000Z"}');
const refused = await verifier.verify(headers, "{}").catch((error: unknown) => error);
check(refused instanceof VerifyError && refused.code === "mismatch", refused);

// Mistakes, each of which the compiler has to find, or it reports that the comment is not needed.
export const mistakes = async (event: WebhookEvent) => {
  // @ts-expect-error amounts are decimal strings
  await svc.quotes.create({ contact_id: ada.id, total: 99.95 });
  // @ts-expect-error the field has another name
  await svc.contacts.create({ email: "ada@example.com", firstname: "Ada" });
  // @ts-expect-error no such status
  svc.quotes.list({ status: "open" });
  // @ts-expect-error the API deletes no quotes
  await svc.quotes.delete(ada.id);
  // @ts-expect-error the API creates no invoices
  await svc.invoices.create({});
  // @ts-expect-error the record of a list has no version
  await svc.contacts.update((await svc.contacts.list().page()).data[0], {});
  // @ts-expect-error only an invoice has a number
  if (event.event === "contact.created") console.log(event.data.invoice_number);
  if (event.event === "invoice.refunded") console.log(event.data.refunded_amount satisfies string);
};
const float = await svc.quotes.create({ contact_id: ada.id, total: 99.95 as unknown as string }).catch((error: unknown) => error);
check(float instanceof InvalidArgumentError, float);
console.log("the installed package works");
