import { Collection, type Creatable, type Deletable, type Readable, type Syncable, type Updatable } from "./collection.js";
import type { components, paths } from "./generated/schema.js";
import { isObject } from "./json.js";
import { json, Transport, type CallOptions, type CallParts, type ClientOptions, type Method, type RawResponse } from "./transport.js";

/** The types of the API: `Schemas["Contact"]`. In them, amounts of money are decimal strings. */
export type Schemas = components["schemas"];

/** The filters of a list, such as `Filter<"/contacts">`. */
export type Filter<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

type Kept<N extends "Contact" | "Invoice" | "Booking" | "Quote" | "Job", R = Schemas[N]> = Readable<Schemas[N], Filter<`/${Lowercase<N>}s`>> & Syncable<R>;
type Written<N extends "Contact" | "Booking" | "Quote" | "Job" | "Webhook", R, C = R> = Creatable<C, Schemas[`${N}Create`]> & Updatable<R, Schemas[`${N}Update`]>;
type Work<N extends "Booking" | "Quote" | "Job"> = Kept<N> & Written<N, Schemas[N]>;
type Contact = Schemas["Contact"];
type Subscription = Schemas["WebhookSubscription"];

/**
 * A client of the API for one API key or one access of an app, and so for one account.
 *
 * Every call can be repeated: GET changes nothing, a POST carries an `Idempotency-Key`, a PATCH sets the same values again, and
 * what was deleted stays so. So the client repeats what a lost connection or a busy service may have kept from being done.
 */
export class Client {
  /** The contacts: people and companies that the business deals with. */
  readonly contacts!: Kept<"Contact", Contact & { deleted_at?: string }> & Written<"Contact", Contact> & Deletable;
  /** The invoices, which the API can only read. */
  readonly invoices!: Kept<"Invoice">;
  /** The bookings: appointments with a contact. */
  readonly bookings!: Work<"Booking">;
  /** The quotes: offers of work at a price. */
  readonly quotes!: Work<"Quote">;
  /** The jobs: work at a site, from the first quote to the invoice. */
  readonly jobs!: Work<"Job">;
  /** The webhook subscriptions. They cannot be synced, as responses do not have their `updated_at`. */
  readonly webhooks!: Readable<Subscription, Filter<"/webhooks">> & Written<"Webhook", Subscription, Schemas["WebhookSubscriptionWithSecret"]> & Deletable;
  /** @internal */
  readonly transport: Transport;

  /** Makes a client. It does not connect before its first call. Throws {@link InvalidArgumentError}. */
  constructor(options: ClientOptions) {
    this.transport = new Transport(options);
    const names = ["contacts", "invoices", "bookings", "quotes", "jobs", "webhooks"] as const;
    for (const name of names) Object.assign(this, { [name]: new Collection(this.transport, name) });
  }

  /** Checks the key and the connection, and returns the account of the key and the time of the service. */
  async ping(options?: CallOptions): Promise<Schemas["Ping"]> {
    return json(await this.transport.call("GET", "ping", { options }), (value) => isObject(value) && value["ok"] === true);
  }

  /** Calls an operation that this version does not know, at a path below `/api/v1`, as every other call is made. */
  send(method: Method, path: string, parts: CallParts = {}): Promise<RawResponse> {
    return this.transport.call(method, path, parts);
  }
}
