import { Collections, type Schemas } from "./generated/collections.js";
import { json, Transport, type CallOptions, type CallParts, type ClientOptions, type Method, type RawResponse } from "./transport.js";

/**
 * A client of the API for one API key or one access of an app, and so for one account.
 *
 * Every call can be repeated: GET changes nothing, a POST carries an `Idempotency-Key`, a PATCH sets the same values again, and
 * what was deleted stays so. So the client repeats what a lost connection or a busy service may have kept from being done.
 */
export class Client extends Collections {
  /** Makes a client. It does not connect before its first call. Throws {@link InvalidArgumentError}. */
  constructor(options: ClientOptions) {
    super(new Transport(options));
  }

  /** Checks the key and the connection, and returns the account of the key and the time of the service. */
  async ping(options?: CallOptions): Promise<Schemas["Ping"]> {
    return json(await this.transport.call("GET", "ping", { options }), { ok: "boolean" });
  }

  /** Calls an operation that this version does not know, at a path below `/api/v1`, as every other call is made. */
  send(method: Method, path: string, parts: CallParts = {}): Promise<RawResponse> {
    return this.transport.call(method, path, parts);
  }
}
