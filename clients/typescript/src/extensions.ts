/**
 * What a service with `--extensions on` has beyond the contract: events and deliveries are read, and sent again. On another
 * service these calls throw `route_not_found`.
 *
 * @module
 */
import type { Client, QueryOf, Schemas } from "./client.js";
import { BEGINNING, Collection, data, List, path, type Readable, type SyncPage, type SyncPosition } from "./collection.js";
import { InvalidArgumentError } from "./errors.js";
import type { components, paths } from "./generated/extensions.js";
import type { CallOptions, CreateOptions, Query } from "./transport.js";

/** The types of the extensions: `ExtensionSchemas["Delivery"]`. */
export type ExtensionSchemas = components["schemas"];
/** The filters of a list, such as `ExtensionFilter<"/events">`. */
export type ExtensionFilter<P extends keyof paths> = QueryOf<paths[P]>;

/** The operations that extensions add to a client. */
export class Extensions {
  /** The events, which can be listed and read. */
  readonly events: Readable<ExtensionSchemas["Event"], ExtensionFilter<"/events">>;
  #client: Client;

  /** Makes the operations of a client. */
  constructor(client: Client) {
    this.#client = client;
    this.events = new Collection(client.transport, "events");
  }

  /**
   * Reads the events since a position, the oldest first, page by page: all that the service keeps, if it is null. Store each
   * page with its position, in one transaction, before you ask for the next one: then no event comes twice and none is missed.
   */
  async *sync(position: SyncPosition | null, options?: CallOptions): AsyncGenerator<SyncPage<ExtensionSchemas["Event"]>, void, undefined> {
    // The time of an event is unique in its account.
    const filter = { since: position ? nextMicrosecond(position.updated_at) : BEGINNING, order: "oldest_first" };
    yield* new List<ExtensionSchemas["Event"]>(this.#client.transport, "events", filter, options, "created_at").synced();
  }

  /** Returns a delivery with its event and the log of its newest attempts. */
  async delivery(id: string, options?: CallOptions): Promise<ExtensionSchemas["DeliveryDetails"]> {
    return data(await this.#client.send("GET", path("deliveries", id), { options }));
  }

  /** Returns the list of the attempts at a delivery, the newest first, 20 on a page. */
  attempts(id: string, options?: CallOptions): List<ExtensionSchemas["AttemptLog"]> {
    return new List(this.#client.transport, path("deliveries", id, "/attempts"), { limit: undefined }, options);
  }

  /** Returns the list of the deliveries to a subscription, the newest event first. */
  deliveries(id: string, filter: ExtensionFilter<"/webhooks/{id}/deliveries"> = {}, options?: CallOptions): List<ExtensionSchemas["Delivery"]> {
    return new List(this.#client.transport, path("webhooks", id, "/deliveries"), filter as Query, options);
  }

  /** Sends a delivery again: its next attempt is due now, and all its retries are ahead. */
  async replayDelivery(id: string, options?: CreateOptions): Promise<ExtensionSchemas["Delivery"]> {
    return data(await this.#client.send("POST", path("deliveries", id, "/replay"), { options }));
  }

  /** Sends the deliveries of a time span to a subscription again, in the background. */
  async replay(id: string, input: ExtensionSchemas["ReplaySelection"], options?: CreateOptions): Promise<ExtensionSchemas["Replay"]> {
    return replay(data(await this.#client.send("POST", path("webhooks", id, "/replay"), { input, options })));
  }

  /** Returns the progress of a bulk replay. */
  async bulkReplay(id: string, options?: CallOptions): Promise<ExtensionSchemas["Replay"]> {
    return replay(data(await this.#client.send("GET", path("replays", id), { options })));
  }

  /** Sends a test event to a subscription alone. */
  async test(id: string, input: ExtensionSchemas["WebhookTest"] = {}, options?: CreateOptions): Promise<ExtensionSchemas["Delivery"]> {
    return data(await this.#client.send("POST", path("webhooks", id, "/test"), { input, options }));
  }

  /** Replaces the signing secret of a subscription. The old one signs as well for `overlap` seconds, 24 hours by default. */
  async rotateSecret(
    id: string, input: ExtensionSchemas["SecretRotation"] = {}, options?: CreateOptions,
  ): Promise<Schemas["WebhookSubscriptionWithSecret"]> {
    return data(await this.#client.send("POST", path("webhooks", id, "/rotate-secret"), { input, options }));
  }
}

/** Returns a replay as it was sent: its `total` is a count, and no amount. */
function replay(value: ExtensionSchemas["Replay"]): ExtensionSchemas["Replay"] {
  return { ...value, total: Number(value.total) };
}

function nextMicrosecond(time: string): string {
  const [, seconds, fraction = ""] = /^(.{19})(?:\.(\d{1,6}))?Z$/.exec(time) ?? [];
  const begin = Date.parse(`${seconds}Z`);
  if (Number.isNaN(begin)) throw new InvalidArgumentError(`${JSON.stringify(time)} is no created_at of an event`);
  const micros = Number(fraction.padEnd(6, "0")) + 1;
  const second = new Date(begin + (micros === 1e6 ? 1000 : 0)).toISOString().slice(0, 19);
  return `${second}.${String(micros % 1e6).padStart(6, "0")}Z`;
}
