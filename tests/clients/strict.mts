// Reads the lists of a server, of which SVC_URL and SVC_KEY tell, with the strict schemas that @hey-api/openapi-ts makes of the
// OpenAPI document for Zod. strict.py has created what is hard to read.
import { zContactList, zJobList, zWebhookSubscriptionList } from "./zod/zod.gen.js";

const lists = { contacts: zContactList, jobs: zJobList, webhooks: zWebhookSubscriptionList };
for (const [collection, schema] of Object.entries(lists)) {
  const headers = { authorization: `Bearer ${process.env.SVC_KEY}` };
  const response = await fetch(`${process.env.SVC_URL}/api/v1/${collection}?limit=200`, { headers });
  const list = schema.parse(await response.json());
  if (list.data.length < 4) throw new Error(`${collection} has ${list.data.length} records`);
}
