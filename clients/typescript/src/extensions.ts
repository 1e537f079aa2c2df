/**
 * What a service with `--extensions on` has beyond the contract: events and deliveries are read, and sent again. On another
 * service these calls throw `route_not_found`.
 *
 * @module
 */
import { BEGINNING, Collection, List, type Readable, type SyncPage, type SyncPosition } from "./collection.js";
import { InvalidArgumentError } from "./errors.js";
import { Operations, type ExtensionFilter, type ExtensionSchemas } from "./generated/operations.js";
import type { CallOptions } from "./transport.js";

export type { ExtensionFilter, ExtensionSchemas };

/** The operations that extensions add to a client. */
export class Extensions extends Operations {
  /** The events, which can be listed and read. */
  readonly events: Readable<ExtensionSchemas["Event"], ExtensionFilter<"/events">> = new Collection(this.client.transport, "events");

  /**
   * Reads the events since a position, the oldest first, page by page: all that the service keeps, if it is null. Store each
   * page with its position, in one transaction, before you ask for the next one: then no event comes twice and none is missed.
   */
  async *sync(position: SyncPosition | null, options?: CallOptions): AsyncGenerator<SyncPage<ExtensionSchemas["Event"]>, void, undefined> {
    // The time of an event is unique in its account.
    const filter = { since: position ? nextMicrosecond(position.updated_at) : BEGINNING, order: "oldest_first" };
    yield* new List<ExtensionSchemas["Event"]>(this.client.transport, "events", filter, options, "created_at").synced();
  }
}

function nextMicrosecond(time: string): string {
  const [, seconds, fraction = ""] = /^(.{19})(?:\.(\d{1,6}))?Z$/.exec(time) ?? [];
  const begin = Date.parse(`${seconds}Z`);
  if (Number.isNaN(begin)) throw new InvalidArgumentError(`${JSON.stringify(time)} is no created_at of an event`);
  const micros = Number(fraction.padEnd(6, "0")) + 1;
  const second = new Date(begin + (micros === 1e6 ? 1000 : 0)).toISOString().slice(0, 19);
  return `${second}.${String(micros % 1e6).padStart(6, "0")}Z`;
}
