import { requireArgument } from "./errors.js";
import { json, unexpected, type Transport } from "./transport.js";
import type { CallOptions, CallParts, CreateOptions, Method, Query, RawResponse } from "./transport.js";

/** A time before everything that the service has. */
export const BEGINNING = "1970-01-01T00:00:00.000000Z";

/** A record with its version, from the header `ETag`. The version is not a part of the record as JSON. */
export type Versioned<R> = R & { readonly etag: string };

/** A record whose version is known: what {@link Readable.get} and its like return, or an id and an etag that you stored. */
export type KnownVersion = { readonly id: string; readonly etag: string };

/** A page of a list. */
export interface Page<R> {
  /** The records. */
  data: R[];
  /** The `cursor` of the next page, and null when there is none. */
  next_cursor: string | null;
}

/** How far a copy of a collection goes: a small JSON object, which belongs to one account and one collection. */
export interface SyncPosition {
  /** The `updated_at` of the last record in the copy; of events, the `created_at` of the last one. */
  readonly updated_at: string;
}

/** Records to store in a copy, and how far it goes then. */
export interface SyncPage<R> {
  /** What changed, the oldest change first. Each replaces the record of the copy with the same `id`. */
  records: R[];
  /** How far the copy goes once these records are stored. Store both in one transaction. */
  position: SyncPosition;
}

/** A collection whose records can be read. `F` are the filters of its list. */
export type Readable<R, F> = Pick<Collection<R, F>, "get" | "getIfChanged" | "list">;
/** A collection in which records can be created. `R` is what the response has, which may be more than later ones have. */
export type Creatable<R, I> = Pick<Collection<R, object, I>, "create">;
/** A collection whose records can be changed. */
export type Updatable<R, I> = Pick<Collection<R, object, I>, "update">;
/** A collection whose records can be deleted. */
export type Deletable = Pick<Collection<object>, "delete">;
/** A collection whose copies can be kept exact. */
export type Syncable<R> = Pick<Collection<R>, "sync">;

/** A list of records. Nothing is read before it is asked for. */
export class List<R> implements AsyncIterable<R> {
  /** @internal */
  constructor(
    private readonly transport: Transport, private readonly path: string, private readonly query: Query,
    private readonly options?: CallOptions, private readonly time?: "updated_at" | "created_at",
  ) {}

  /** Reads one page: the first, or that of the `cursor` in the filter. It has 50 records unless the filter has a `limit`. */
  async page(): Promise<Page<R>> {
    return json(await this.#read(this.query), { data: [{}], next_cursor: "string|null" });
  }

  /** Reads page after page, with 200 records unless the filter has a `limit`. */
  async *pages(): AsyncGenerator<Page<R>, void, undefined> {
    const seen = new Set<unknown>([this.query["cursor"]]);
    for (let query: Query = { limit: 200, ...this.query }; ; ) {
      const response = await this.#read(query);
      const page = json<Page<R>>(response, { data: [this.time ? { [this.time]: "string" } : {}], next_cursor: "string|null" });
      yield page;
      if (page.next_cursor === null) return;
      if (seen.has(page.next_cursor)) throw unexpected(response, "its next_cursor was that of an earlier page");
      seen.add(page.next_cursor);
      query = { ...query, cursor: page.next_cursor };
    }
  }

  async #read(query: Query): Promise<RawResponse> {
    const limit = query["limit"] ?? 1;
    requireArgument(Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= 200, `the limit must be from 1 to 200, not ${limit}`);
    return this.transport.call("GET", this.path, { query, options: this.options });
  }

  /** Reads page after page, each with the time of its last record. @internal */
  async *synced(): AsyncGenerator<SyncPage<R>, void, undefined> {
    for await (const { data } of this.pages()) {
      const last = data.at(-1) as { [time: string]: string } | undefined;
      if (last) yield { records: data, position: { updated_at: last[this.time ?? ""] ?? BEGINNING } };
    }
  }

  /** Reads all records, page after page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<R, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}

/**
 * The operations of all collections. `R` is a record, `F` are the filters of a list, and `I` is an input. What the API does not
 * have is left out by the types of the client.
 */
export class Collection<R, F = object, I = object> {
  constructor(private readonly transport: Transport, private readonly name: string) {}

  /** Returns the record with this id, or throws `not_found`. */
  async get(id: string, options?: CallOptions): Promise<Versioned<R>> {
    return versioned(await this.transport.call("GET", path(this.name, id), { options }));
  }

  /** Returns the record if it has another version than this one, else null, which costs nothing of the rate limit. */
  async getIfChanged(known: KnownVersion, options?: CallOptions): Promise<Versioned<R> | null> {
    const response = await this.#call("GET", known, "if-none-match", { options });
    return response.status === 304 ? null : versioned(response);
  }

  /** Creates a record. However often the client has to send the request, the record is created once. */
  async create(input: I, options?: CreateOptions): Promise<Versioned<R>> {
    return versioned(await this.transport.call("POST", this.name, { input: input as object, options }));
  }

  /**
   * Changes the record with this id. Given a record, it is changed only if nobody else has changed it since, else the call
   * throws `precondition_failed`; with more than one of `attempts`, the version may be that of this change: read the record.
   */
  async update(target: string | KnownVersion, change: I, options?: CallOptions): Promise<Versioned<R>> {
    return versioned(await this.#call("PATCH", target, "if-match", { input: change as object, options }));
  }

  /** Deletes the record with this id. Given a record, it is deleted only if nobody else has changed it since. */
  async delete(target: string | KnownVersion, options?: CallOptions): Promise<void> {
    await this.#call("DELETE", target, "if-match", { options });
  }

  /** Returns the list of the records: `for await` reads all of them, page after page. The newest come first. */
  list(filter?: F, options?: CallOptions): List<R> {
    return new List(this.transport, this.name, { ...filter }, options);
  }

  /**
   * Reads what changed since a position, page by page: everything, if it is null. Store each page before you ask for the
   * next one. A program that stops in between goes on from the position that it stored and misses nothing. A deleted contact
   * comes with `deleted_at`. The first record after a stored position is the last one before it.
   */
  sync(position: SyncPosition | null, options?: CallOptions): AsyncGenerator<SyncPage<R>, void, undefined> {
    const filter = { updated_since: position?.updated_at ?? BEGINNING, ...(this.name === "contacts" && { include_deleted: true }) };
    return new List<R>(this.transport, this.name, filter, options, "updated_at").synced();
  }

  async #call(method: Method, target: string | KnownVersion, header: string, rest: CallParts): Promise<RawResponse> {
    if (typeof target === "string") return this.transport.call(method, path(this.name, target), rest);
    const { id, etag } = target;
    requireArgument(etag, "the record has no etag, as it is from a list; pass its id, or read it with get");
    return this.transport.call(method, path(this.name, id), { ...rest, headers: { [header]: etag } });
  }
}

/** Returns the path of a record, or of an action on it, unless its id is none: a path has no other text. */
export function path(collection: string, id: string, action = ""): string {
  requireArgument(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id), `${JSON.stringify(id)} is no id; ids are UUIDs`);
  return `${collection}/${id}${action}`;
}

/** Returns what a response has in `data`. */
export const data = <T>(response: RawResponse, read?: (text: string) => unknown): T => json<{ data: T }>(response, { data: {} }, read).data;

function versioned<R>(response: RawResponse): Versioned<R> {
  const etag = response.headers.get("etag");
  const record = data<Versioned<R>>(response);
  if (!etag) throw unexpected(response, "it has no ETag");
  return Object.defineProperty(record, "etag", { value: etag });
}
