import { Collection } from "./collection.js";
import type { Creatable, Deletable, Readable, Syncable, Updatable } from "./collection.js";
import type { components, paths } from "./generated/schema.js";
import { isObject } from "./json.js";
import { json, Transport } from "./transport.js";
import type { CallOptions, CallParts, ClientOptions, Method, RawResponse } from "./transport.js";

/** The types of the API: `Schemas["Contact"]`. In them, amounts of money are decimal strings. */
export type Schemas = components["schemas"];

/** The filters of a list, such as `Filter<"/contacts">`. */
export type Filter<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

type Readables<N extends "contacts" | "invoices" | "bookings" | "quotes" | "jobs" | "webhooks", R> = Readable<R, Filter<`/${N}`>>;

/**
 * A client of the API for one API key or one access of an app, and so for one account.
 *
 * Every call can be repeated: GET changes nothing, a POST carries an `Idempotency-Key`, a PATCH sets the same values again, and
 * what was deleted stays so. So the client repeats what a lost connection or a busy service may have kept from being done.
 */
export class Client {
  /** The contacts: people and companies that the business deals with. */
  readonly contacts: Readables<"contacts", Schemas["Contact"]> & Creatable<Schemas["Contact"], Schemas["ContactCreate"]> &
    Updatable<Schemas["Contact"], Schemas["ContactUpdate"]> & Deletable & Syncable<Schemas["Contact"] & { deleted_at?: string }>;
  /** The invoices, which the API can only read. */
  readonly invoices: Readables<"invoices", Schemas["Invoice"]> & Syncable<Schemas["Invoice"]>;
  /** The bookings: appointments with a contact. */
  readonly bookings: Readables<"bookings", Schemas["Booking"]> & Creatable<Schemas["Booking"], Schemas["BookingCreate"]> &
    Updatable<Schemas["Booking"], Schemas["BookingUpdate"]> & Syncable<Schemas["Booking"]>;
  /** The quotes: offers of work at a price. */
  readonly quotes: Readables<"quotes", Schemas["Quote"]> & Creatable<Schemas["Quote"], Schemas["QuoteCreate"]> &
    Updatable<Schemas["Quote"], Schemas["QuoteUpdate"]> & Syncable<Schemas["Quote"]>;
  /** The jobs: work at a site, from the first quote to the invoice. */
  readonly jobs: Readables<"jobs", Schemas["Job"]> & Creatable<Schemas["Job"], Schemas["JobCreate"]> &
    Updatable<Schemas["Job"], Schemas["JobUpdate"]> & Syncable<Schemas["Job"]>;
  /** The webhook subscriptions. They cannot be synced, as responses do not have their `updated_at`. */
  readonly webhooks: Readables<"webhooks", Schemas["WebhookSubscription"]> &
    Creatable<Schemas["WebhookSubscriptionWithSecret"], Schemas["WebhookCreate"]> &
    Updatable<Schemas["WebhookSubscription"], Schemas["WebhookUpdate"]> & Deletable;
  /** @internal */
  readonly transport: Transport;

  /** Makes a client. It does not connect before its first call. Throws {@link InvalidArgumentError}. */
  constructor(options: ClientOptions) {
    const transport = new Transport(options);
    const of = <T>(name: string) => new Collection(transport, name) as unknown as T;
    this.transport = transport;
    this.contacts = of("contacts");
    this.invoices = of("invoices");
    this.bookings = of("bookings");
    this.quotes = of("quotes");
    this.jobs = of("jobs");
    this.webhooks = of("webhooks");
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
