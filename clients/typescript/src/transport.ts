import { ApiError, InvalidArgumentError, SvcError, TokensNotStoredError, TransportError, UnexpectedResponseError, type FieldError } from "./errors.js";
import { bytes, isObject, orUndefined, parse, stringify } from "./json.js";

/** The most characters or bytes that are read of a response. A page of 200 records, each as large as it can be, has fewer. */
const MAX_BODY = 32 << 20;
/** A clock that differs by so much from that of the service is corrected. Signatures may be 300 seconds off. */
const WRONG_CLOCK_MS = 60_000;

/** The methods of the API. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** The tokens of an app for one account, as `/oauth/token` gives them for a code. */
export interface Tokens {
  /** The access token, `svc_oat_…`, which lasts an hour. */
  access_token: string;
  /** The refresh token, `svc_ort_…`, which lasts 90 days after its last use. */
  refresh_token: string;
}

/**
 * An app that works on an account (OAuth 2.0). When the service refuses the access token, the client gets another one, once
 * for all calls in flight, stores the new tokens, and makes the calls again. The code `invalid_grant` says that the account
 * has ended the access. Programs that share the tokens of a public app must share one client.
 */
export interface AppCredentials {
  /** The client id, `svcapp_…`. */
  clientId: string;
  /** The secret of a confidential app, `svc_ocs_…`. */
  clientSecret?: string;
  /** The tokens that the app has stored. */
  tokens: Tokens;
  /** Stores new tokens where the app finds them when it is started again. They are used once this has succeeded. */
  store: (tokens: Tokens) => Promise<void> | void;
}

/**
 * How often and for how long a call is tried: when the service is busy (429, 503), a proxy does not reach it (502, 504), no
 * response arrives, or the first attempt of a create is still running. The wait before the next attempt is chosen at random
 * between zero and a bound that doubles; a `Retry-After` is waited for in full, and that time is added to it.
 */
export interface RetryPolicy {
  /** The greatest number of attempts, 4 by default. 1 means that nothing is repeated. */
  attempts?: number;
  /** The time for all attempts and the waits between them, 90,000 by default: more than the window of a rate limit. */
  totalMs?: number;
  /** The longest wait after the first attempt, 250 by default. */
  firstWaitMs?: number;
  /** The longest wait after any attempt without a `Retry-After`, 10,000 by default. */
  longestWaitMs?: number;
}

/** The settings of a client. */
export interface ClientOptions {
  /** The URL of the service, such as `https://svc.example.com`. A service that is mounted under a path has it in its URL. */
  url: string;
  /** The API key, `svc_live_…` or `svc_test_…`. */
  key?: string;
  /** The credentials of an app, in place of a key. */
  app?: AppCredentials;
  /** The secret `svcsig_…` of a key that signs: every request that changes something is signed with it, each attempt anew. */
  signingSecret?: string;
  /** How often and for how long a call is tried. */
  retry?: RetryPolicy;
  /** The longest time for one attempt, 30,000 by default. */
  timeoutMs?: number;
  /** The header `User-Agent`. By default it is that of the platform. */
  userAgent?: string;
  /** Sends a request: `fetch` by default. A proxy or tests have another. */
  fetch?: (url: URL, init: RequestInit) => Promise<Response>;
  /** The clock, in milliseconds since 1970, the randomness and the waits, for tests. */
  env?: { now?: () => number; random?: () => number; sleep?: (ms: number, signal?: AbortSignal) => Promise<void> };
}

/** What every call takes. */
export interface CallOptions {
  /** Cancels the call, which then throws the reason of the signal. Whether the service did what was asked is not known. */
  signal?: AbortSignal | undefined;
  /** The time for all attempts of this call, in place of {@link RetryPolicy.totalMs}. */
  totalMs?: number | undefined;
}

/** What a call that creates something takes. */
export interface CreateOptions extends CallOptions {
  /**
   * An `Idempotency-Key` of yours, such as the id of an order: 1 to 255 printable ASCII characters. Within 24 hours, a repeat
   * of the same request does nothing and gets the same response, also after a restart of your program. Without it, each call
   * has a new key, which covers its retries.
   */
  idempotencyKey?: string | undefined;
}

/** The parameters of a query. Those that are null or undefined are left out. */
export type Query = { readonly [name: string]: string | number | boolean | null | undefined };

/** The parts of a call. */
export interface CallParts {
  /** The query. */
  query?: Query;
  /** The body, which is sent as JSON. */
  input?: object;
  /** Headers, such as `if-match`. */
  headers?: Record<string, string>;
  /** How the call is cancelled, and the idempotency key of a POST. */
  options?: CreateOptions | undefined;
}

/** A request before it is signed. */
type RawRequest = { method: Method; url: URL; headers: Record<string, string>; body?: string };

/** A response with a status of success, or 304. */
export interface RawResponse {
  /** The HTTP status. */
  status: number;
  /** The headers, such as `etag`. */
  headers: Headers;
  /** The body. */
  text: string;
}

/** Sends requests: what all calls of a client share. */
export class Transport {
  readonly base: string;
  #options: ClientOptions;
  #tokens: Tokens | undefined;
  #refresh: Promise<void> | undefined;
  #signingKey: Promise<CryptoKey> | undefined;
  /** How far the clock of the service is ahead of ours, and the last timestamp of a signature, in microseconds. */
  #clockAheadMs = 0;
  #lastTimestamp = 0;

  constructor(options: ClientOptions) {
    const { url, key, app, signingSecret } = options;
    const base = URL.canParse(url) ? new URL(url) : undefined;
    if (!base || !/^https?:$/.test(base.protocol)) throw new InvalidArgumentError("the URL of the service must begin with https:// or http://");
    if (base.username || base.password) throw new InvalidArgumentError("the URL of the service must have no user name and no password");
    if (!key === !app) throw new InvalidArgumentError("a client needs either a key or an app");
    if (app && signingSecret) throw new InvalidArgumentError("apps do not sign their requests; leave the signing secret out");
    this.base = base.origin + base.pathname.replace(/\/$/, "");
    this.#options = options;
    this.#tokens = app?.tokens;
  }

  /** Sends a request to a path below `/api/v1`. A POST has an idempotency key. */
  async call(method: Method, path: string, { query = {}, input, headers = {}, options }: CallParts): Promise<RawResponse> {
    const url = new URL(`${this.base}/api/v1/${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const request: RawRequest = { method, url, headers: { ...headers } };
    if (method === "POST") {
      const key = options?.idempotencyKey ?? crypto.randomUUID();
      if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new InvalidArgumentError("an idempotency key must have 1 to 255 printable ASCII characters");
      request.headers["idempotency-key"] = key;
    }
    if (input) {
      request.body = stringify(input);
      request.headers["content-type"] = "application/json";
    }
    return this.#send(request, options);
  }

  /** Sends a request until it succeeds, or fails for good. An app whose access token is refused gets another one. */
  async #send(request: RawRequest, options: CallOptions = {}): Promise<RawResponse> {
    const { app, key } = this.#options;
    if (!app || !this.#tokens) return this.#sendAs(request, options, key);
    await this.#refresh?.catch(() => undefined);
    const old = this.#tokens;
    try {
      return await this.#sendAs(request, options, old.access_token);
    } catch (error) {
      if (!(error instanceof SvcError) || error.status !== 401) throw error;
    }
    if (this.#tokens.access_token === old.access_token) {
      this.#refresh ??= this.#getTokens(app, this.#tokens.refresh_token).finally(() => (this.#refresh = undefined));
      await orAborted(this.#refresh, options.signal);
    }
    return this.#sendAs(request, options, this.#tokens.access_token);
  }

  async #getTokens(app: AppCredentials, old: string): Promise<void> {
    const secret = app.clientSecret ? { client_secret: app.clientSecret } : {};
    const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: old, client_id: app.clientId, ...secret }).toString();
    const [url, headers] = [new URL(`${this.base}/oauth/token`), { "content-type": "application/x-www-form-urlencoded" }];
    const response = await this.#sendAs({ method: "POST", url, headers, body }, {}, undefined);
    const { access_token, refresh_token = old } = json<Partial<Tokens>>(response, isObject);
    if (typeof access_token !== "string") throw unexpected(response, "it has no access_token");
    // What no header can carry is not stored.
    checkHeaders({ authorization: access_token });
    const tokens = { access_token, refresh_token };
    try {
      await app.store(tokens);
    } catch (cause) {
      throw new TokensNotStoredError(`the new tokens of the app could not be stored: ${String(cause)}`, { cause });
    }
    this.#tokens = tokens;
  }

  async #sendAs(request: RawRequest, { signal, totalMs }: CallOptions, credential: string | undefined): Promise<RawResponse> {
    const { retry = {}, timeoutMs = 30_000, env = {} } = this.#options;
    const { attempts = 4, firstWaitMs = 250, longestWaitMs = 10_000 } = retry;
    const total = totalMs ?? retry.totalMs ?? 90_000;
    const begun = performance.now();
    let [waited, mayBeDone, corrected] = [0, false, false];
    const spent = () => Math.max(performance.now() - begun, waited);
    for (let attempt = 1; ; attempt++) {
      const left = total - spent();
      try {
        return await this.#attempt(request, credential, Math.min(timeoutMs, left), signal);
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        error.attempts = attempt;
        const { status } = error;
        // An earlier attempt deleted the record, and its response was lost.
        if (mayBeDone && request.method === "DELETE" && status === 404) return { status: 204, headers: new Headers(), text: "" };
        mayBeDone ||= error instanceof TransportError ? error.reason !== "not_connected" : [502, 503, 504].includes(status ?? 0);
        if (!corrected && error instanceof ApiError && error.code === "signature_invalid" && this.#correctClock(error)) {
          corrected = true;
          continue;
        }
        const longest = Math.min(firstWaitMs * 2 ** (attempt - 1), longestWaitMs);
        const wait = (error.retryAfterMs ?? 0) + longest * (env.random ?? Math.random)();
        const wasCut = error instanceof TransportError && error.reason === "timed_out" && left < timeoutMs;
        if (attempt >= attempts || !error.isTransient || wasCut || spent() + wait > total) throw error;
        await (env.sleep ?? sleep)(wait, signal);
        waited += wait;
      }
    }
  }

  /** Sends the request once, with a signature of its own, and throws unless it succeeds. */
  async #attempt(request: RawRequest, credential: string | undefined, timeoutMs: number, signal?: AbortSignal): Promise<RawResponse> {
    const { fetch = (url: URL, init: RequestInit) => globalThis.fetch(url, init), userAgent } = this.#options;
    const { method, url, body = null } = request;
    const headers = { ...request.headers, ...(await this.#sign(request)) };
    signal?.throwIfAborted();
    if (credential) headers["authorization"] = `Bearer ${credential}`;
    if (userAgent) headers["user-agent"] = userAgent;
    checkHeaders(headers);
    const controller = new AbortController();
    const cancel = () => controller.abort();
    const timer = setTimeout(cancel, timeoutMs);
    signal?.addEventListener("abort", cancel);
    try {
      // The service redirects nothing, and the key is for this host alone.
      const init: RequestInit = { method, headers, body, signal: controller.signal, redirect: "manual", credentials: "omit" };
      const response = await fetch(url, init).then(read);
      if ((response.status >= 200 && response.status < 300) || response.status === 304) return response;
      throw this.#failure(response);
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof SvcError) throw cause;
      // Not by the caller, and so by the timer.
      const timedOut = controller.signal.aborted;
      throw new TransportError(timedOut ? "timed_out" : isNotConnected(cause) ? "not_connected" : "connection_lost", { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Returns the headers with the timestamp and the signature of a request that changes something, if the key signs. */
  async #sign({ method, url, body = "" }: RawRequest): Promise<Record<string, string>> {
    const { signingSecret } = this.#options;
    if (!signingSecret || method === "GET") return {};
    const { subtle } = crypto;
    this.#signingKey ??= subtle.importKey("raw", bytes(signingSecret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const [key, digest] = await Promise.all([this.#signingKey, subtle.digest("SHA-256", bytes(body))]);
    // A signature is accepted once, so no two have the same timestamp.
    const micros = Math.max(Math.round((this.#now() + this.#clockAheadMs) * 1000), this.#lastTimestamp + 1);
    this.#lastTimestamp = micros;
    const timestamp = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}`;
    const lines = [timestamp, method, url.pathname + url.search, hex(digest)].join("\n");
    const signature = await subtle.sign("HMAC", key, bytes(lines));
    return { "x-svc-timestamp": timestamp, "x-svc-signature": `sha256=${hex(signature)}` };
  }

  /** Returns whether the clock was wrong, and takes that of the service from now on. */
  #correctClock({ date }: ApiError): boolean {
    const ahead = Date.parse(date ?? "") - this.#now();
    if (!(Math.abs(ahead - this.#clockAheadMs) >= WRONG_CLOCK_MS)) return false;
    [this.#clockAheadMs, this.#lastTimestamp] = [ahead, 0];
    return true;
  }

  #now(): number {
    return (this.#options.env?.now ?? Date.now)();
  }

  #failure(response: RawResponse): SvcError {
    const { status, headers, text } = response;
    const problem = orUndefined(() => parse(text));
    const { error, code, error_description, field, errors, existing_id, retry_after_ms } = isObject(problem) ? problem : {};
    const after = headers.get("retry-after")?.trim();
    const ms = !after ? NaN : /^\d+$/.test(after) ? Number(after) * 1000 : Math.max(0, Date.parse(after) - this.#now());
    const retryAfterMs = typeof retry_after_ms === "number" ? retry_after_ms : ms;
    const fields = { status, ...known({ date: headers.get("date"), requestId: headers.get("x-request-id"), retryAfterMs }) };
    // The endpoint for tokens has another form (RFC 6749 §5.2).
    const [message, name] = typeof code === "string" ? [error, code] : [error_description, error];
    if (typeof message !== "string" || typeof name !== "string") return unexpected(response, "it is no error of the API", fields);
    const failed = Array.isArray(errors) ? (errors as FieldError[]) : [];
    return new ApiError(message, { ...fields, ...known({ field, existingId: existing_id }), code: name, errors: failed });
  }
}

function checkHeaders(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\x20-\x7e]*$/.test(value)) throw new InvalidArgumentError(`${name} has characters that a header cannot have`);
  }
}

/** Reads the body of a response that is what it has to be. */
export function json<T>(response: RawResponse, check: (value: unknown) => boolean): T {
  const value = orUndefined(() => parse(response.text));
  if (!check(value)) throw unexpected(response, value === undefined ? "it is not JSON" : "it is JSON of another form");
  return value as T;
}

/** Returns the error of a response that is not one of the API. */
export function unexpected({ status, text, headers }: RawResponse, reason: string, fields: object = {}): UnexpectedResponseError {
  return new UnexpectedResponseError(reason, { ...known({ requestId: headers.get("x-request-id") }), ...fields, status, start: text.slice(0, 200) });
}

/** Returns the fields that are a text or a number. */
function known(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => typeof value === "string" || Number.isFinite(value)));
}

/** Reads a response, unless it is too long. */
async function read(response: Response): Promise<RawResponse> {
  const { status, headers, body } = response;
  // A body whose length is known is read at once, which is faster. That of a compressed one is another.
  const known = headers.has("content-encoding") ? NaN : Number(headers.get("content-length") ?? NaN);
  if (known <= MAX_BODY) return { status, headers, text: await response.text() };
  const [decoder, reader] = [new TextDecoder(), body?.getReader()];
  let [text, length] = ["", 0];
  for (let chunk; reader && !(chunk = await reader.read()).done; ) {
    text += decoder.decode(chunk.value, { stream: true });
    if ((length += chunk.value.length) <= MAX_BODY) continue;
    await reader.cancel();
    throw unexpected({ status, headers, text }, `it has more than ${MAX_BODY} bytes`);
  }
  return { status, headers, text: text + decoder.decode() };
}

/** Returns whether a failure of `fetch` says that the request was not sent. */
function isNotConnected(error: unknown): boolean {
  const { message = "", cause } = error as Error;
  const code = String((cause as { code?: string } | undefined)?.code);
  return /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code) || /\(Connect\)/.test(message);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const waits = new Promise<void>((done) => (timer = setTimeout(done, ms)));
  return orAborted(waits, signal).finally(() => clearTimeout(timer));
}

/** Returns what a promise does, or throws the reason of a signal that is aborted before. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Writes bytes in lower-case hex. */
function hex(buffer: ArrayBuffer): string {
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
