// Uses of a client that openapi-typescript generates from the OpenAPI document. It must compile: each line below
// "@ts-expect-error" is a mistake that the compiler has to find, or it reports that the comment is not needed.
import type { components, paths, webhooks } from "./generated";

type Schemas = components["schemas"];
type Data<Kind extends keyof webhooks> =
  webhooks[Kind]["post"]["requestBody"]["content"]["application/json"]["data"];

const contact_id = "0195a3c8-8a00-7000-8000-00000000c001";

// What has a default, or one of the account's own, can be left out.
const quote: Schemas["QuoteCreate"] = { contact_id, total: 480 };
const job: Schemas["JobCreate"] = { title: "Replace hot water system" };

export const quotes: Schemas["QuoteCreate"][] = [
  quote,
  { ...quote, currency: "NZD", valid_until: "2026-04-13" },
  { ...quote, currency: null, valid_until: null },
  // @ts-expect-error a date is a text
  { ...quote, valid_until: 20260413 },
  // @ts-expect-error the field has another name
  { contact_id, total: 480, curency: "NZD" },
];

export const quoteUpdates: Schemas["QuoteUpdate"][] = [
  { status: "accepted", valid_until: "2026-04-13" },
  // @ts-expect-error no such status
  { status: "acepted" },
  // @ts-expect-error it cannot be cleared
  { valid_until: null },
];

export const jobs: Schemas["JobCreate"][] = [
  job,
  { ...job, status: "scheduled", scheduled_start: "2026-03-22T09:00:00+11:00" },
  // @ts-expect-error a time is a text
  { ...job, scheduled_start: 1773500967 },
  // @ts-expect-error no such status
  { ...job, status: "planned" },
];

export const contactUpdates: Schemas["ContactUpdate"][] = [
  { email: null, phone: "0491 570 156" },
  // @ts-expect-error an email address is a text
  { email: 1 },
];

const url = "https://hooks.example.com/svc";
export const subscriptions: Schemas["WebhookCreate"][] = [
  { url, events: ["*"] },
  { url, events: ["invoice.paid", "contact.created"] },
  // @ts-expect-error no such kind
  { url, events: ["invoice.payed"] },
  // @ts-expect-error a list is needed
  { url, events: "*" },
];

// An enum is one type wherever it is used.
export const status: Schemas["QuoteStatus"] = "draft" satisfies Schemas["Quote"]["status"];
type Filter = NonNullable<paths["/quotes"]["get"]["parameters"]["query"]>;
export const filters: Filter[] = [
  { status },
  // @ts-expect-error no such status
  { status: "open" },
];

// Events have the record of their kind.
export const total = (data: Data<"invoice.paid">): number => data.total;
export const refunded = (data: Data<"invoice.refunded">): [number, string] => [data.refunded_amount, data.refunded_at];
export const deletedAt = (data: Data<"contact.deleted">): string => data.deleted_at;
// @ts-expect-error an invoice has no such field
export const typo = (data: Data<"invoice.paid">): number => data.totl;
// @ts-expect-error only a refund has an amount of it
export const refund = (data: Data<"invoice.paid">): number => data.refunded_amount;
