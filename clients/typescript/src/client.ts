import { Collections } from "./generated/collections.js";
import type { components, paths } from "./generated/schema.js";
import { isObject } from "./json.js";
import { json, Transport, type CallOptions, type CallParts, type ClientOptions, type Method, type RawResponse } from "./transport.js";

/** The types of the API: `Schemas["Contact"]`. In them, amounts of money are decimal strings. */
export type Schemas = components["schemas"];

/** The filters of a list, such as `Filter<"/contacts">`. */
export type Filter<P extends keyof paths> = QueryOf<paths[P]>;

/** The query of the list of a path. */
export type QueryOf<Path> = Path extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

/**
 * A client of the API for one API key or one access of an app, and so for one account.
 *
 * Every call can be repeated: GET changes nothing, a POST carries an `Idempotency-Key`, a PATCH sets the same values again, and
 * what was deleted stays so. So the client repeats what a lost connection or a busy service may have kept from being done.
 */
export class Client extends Collections {
  /** @internal */
  readonly transport: Transport;

  /** Makes a client. It does not connect before its first call. Throws {@link InvalidArgumentError}. */
  constructor(options: ClientOptions) {
    const transport = new Transport(options);
    super(transport);
    this.transport = transport;
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
