import { ApiError, InvalidArgumentError, SvcError, TransportError, UnexpectedResponseError, type FieldError } from "./errors.js";
import { bytes, isObject, orUndefined, parse, stringify } from "./json.js";
import { AppTokens, type AppCredentials, type Tokens } from "./tokens.js";

/** The most characters or bytes that are read of a response. A page of 200 records, each as large as it can be, has fewer. */
const MAX_BODY = 32 << 20;
/** A clock that differs by so much from that of the service is corrected. Signatures may be 300 seconds off. */
const WRONG_CLOCK_MS = 60_000;
/** The longest time that a timer can have. One with more ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The methods of the API. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

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
  #tokens: AppTokens | null;
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
    this.base = base.origin + base.pathname.replace(/\/+$/, "");
    this.#options = options;
    this.#tokens = app ? new AppTokens(app) : null;
  }

  /** Sends a request to a path below `/api/v1`. A POST has an idempotency key. */
  async call(method: Method, path: string, { query = {}, input, headers = {}, options }: CallParts): Promise<RawResponse> {
    const request: RawRequest = { method, url: new URL(`${this.base}/api/v1/${path}`), headers: { ...headers } };
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) request.url.searchParams.set(name, String(value));
    }
    if (method === "POST") {
      // A page without https has no `crypto.randomUUID`.
      const key = options?.idempotencyKey ?? hex(crypto.getRandomValues(new Uint8Array(16)));
      if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new InvalidArgumentError("an idempotency key must have 1 to 255 printable ASCII characters");
      request.headers["idempotency-key"] = key;
    }
    if (input) {
      request.body = stringify(input);
      request.headers["content-type"] = "application/json";
    }
    return this.#send(request, options);
  }

  /** Sends a request until it succeeds, or fails for good. An app whose access token is refused gets another one, once. */
  async #send(request: RawRequest, { signal, totalMs }: CallOptions = {}, app = this.#tokens): Promise<RawResponse> {
    const { key, retry = {}, timeoutMs = 30_000, env = {} } = this.#options;
    const { attempts = 4, firstWaitMs = 250, longestWaitMs = 10_000 } = retry;
    const total = totalMs ?? retry.totalMs ?? 90_000;
    const begun = performance.now();
    let [waited, mayBeDone, isCorrected, isRefreshed] = [0, false, false, false];
    const left = () => total - Math.max(performance.now() - begun, waited);
    for (let attempt = 1; ; attempt++) {
      const tokens = app && (await within(left(), signal, app.current()));
      const [leftMs, clockAheadMs] = [left(), this.#clockAheadMs];
      try {
        return await this.#attempt(request, tokens?.access_token ?? key, Math.min(timeoutMs, leftMs), signal);
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        error.attempts = attempt;
        // An earlier attempt deleted the record, and its response was lost.
        if (mayBeDone && request.method === "DELETE" && error.status === 404) return { status: 204, headers: new Headers(), text: "" };
        mayBeDone ||= error instanceof TransportError ? error.reason !== "not_connected" : [502, 503, 504].includes(error.status ?? 0);
        if (app && tokens && error.status === 401 && !isRefreshed) {
          const renewed = await within(left(), signal, app.after(tokens, (form) => this.#newTokens(form)));
          if (!renewed) throw lost("timed_out", { attempts: attempt });
          [isRefreshed, attempt] = [true, 0];
          continue;
        }
        if (!isCorrected && error instanceof ApiError && this.#correctClock(error, clockAheadMs)) {
          isCorrected = true;
          continue;
        }
        const longest = Math.min(firstWaitMs * 2 ** (attempt - 1), longestWaitMs);
        const wait = (error.retryAfterMs ?? 0) + longest * (env.random ?? Math.random)();
        const wasCut = error instanceof TransportError && error.reason === "timed_out" && leftMs < timeoutMs;
        if (attempt >= attempts || !error.isTransient || wasCut || wait > left()) throw error;
        await (env.sleep ?? sleep)(wait, signal);
        waited += wait;
      }
    }
  }

  async #newTokens(form: URLSearchParams): Promise<Partial<Tokens>> {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const request: RawRequest = { method: "POST", url: new URL(`${this.base}/oauth/token`), headers, body: form.toString() };
    const { access_token, refresh_token } = json<Tokens>(await this.#send(request, {}, null), areTokens);
    // What no header can carry is not stored.
    checkHeaders({ authorization: access_token });
    return { access_token, ...(refresh_token && { refresh_token }) };
  }

  /** Sends the request once, with a signature of its own, and throws unless it succeeds. */
  async #attempt(request: RawRequest, credential: string | undefined, timeoutMs: number, signal?: AbortSignal): Promise<RawResponse> {
    const { fetch = (url: URL, init: RequestInit) => globalThis.fetch(url, init), userAgent } = this.#options;
    const { method, url, body = null } = request;
    const headers = { ...request.headers, ...(await this.#sign(request)) };
    signal?.throwIfAborted();
    if (timeoutMs <= 0) throw lost("timed_out");
    if (credential) headers["authorization"] = `Bearer ${credential}`;
    if (userAgent) headers["user-agent"] = userAgent;
    checkHeaders(headers);
    const controller = new AbortController();
    try {
      // The service redirects nothing, and the key is for this host alone.
      const init: RequestInit = { method, headers, body, signal: controller.signal, redirect: "manual", credentials: "omit" };
      const response = await within(timeoutMs, signal, fetch(url, init).then(read));
      if (!response) throw lost("timed_out");
      if ((response.status >= 200 && response.status < 300) || response.status === 304) return response;
      throw this.#failure(response);
    } catch (cause) {
      controller.abort();
      signal?.throwIfAborted();
      throw cause instanceof SvcError ? cause : lost(isNotConnected(cause) ? "not_connected" : "connection_lost", { cause });
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

  /** Returns whether a signature was refused as the clock was wrong by which it was made. That of the service is taken from now on. */
  #correctClock({ code, date }: ApiError, clockAheadMs: number): boolean {
    const ahead = httpDate(date) - this.#now();
    const isWrong = (used: number) => Math.abs(ahead - used) >= WRONG_CLOCK_MS;
    if (code !== "signature_invalid" || !isWrong(clockAheadMs)) return false;
    // Another call may have corrected it meanwhile.
    if (isWrong(this.#clockAheadMs)) [this.#clockAheadMs, this.#lastTimestamp] = [ahead, 0];
    return true;
  }

  #now(): number {
    return (this.#options.env?.now ?? Date.now)();
  }

  #failure(response: RawResponse): SvcError {
    const { status, headers, text } = response;
    const problem = orUndefined(() => parse(text));
    const { error, code, error_description, field, errors = [], existing_id, retry_after_ms } = isObject(problem) ? problem : {};
    const after = headers.get("retry-after")?.trim() ?? "";
    const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Math.max(0, httpDate(after) - this.#now());
    const retryAfterMs = typeof retry_after_ms === "number" ? retry_after_ms : ms;
    // The endpoint for tokens has another form (RFC 6749 §5.2).
    const [message, name] = typeof code === "string" ? [error, code] : [error_description, error];
    const isProblem = isText(message) && isText(name) && isText(field ?? "") && isText(existing_id ?? "") && areFieldErrors(errors);
    if (!isProblem) return unexpected(response, "it is no error of the API", { retryAfterMs });
    const fields = about(response, { date: headers.get("date"), retryAfterMs, field, existingId: existing_id });
    return new ApiError(message, { ...fields, code: name, errors });
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
export function unexpected(response: RawResponse, reason: string, fields: object = {}): UnexpectedResponseError {
  const start = response.text.slice(0, 200);
  const message = `the response with status ${response.status} is not one of the API: ${reason}; it begins with ${JSON.stringify(start)}`;
  return new UnexpectedResponseError(message, { ...about(response, fields), attempts: 1, start });
}

/** Returns what an error tells of its response, and these fields as far as they are a text or a number. */
function about({ status, headers }: RawResponse, fields: object): object {
  const all = { status, requestId: headers.get("x-request-id"), ...fields };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => isText(value) || Number(value ?? NaN) >= 0));
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function areFieldErrors(value: unknown): value is FieldError[] {
  const isOne = (error: unknown) => isObject(error) && [error["field"], error["code"], error["message"]].every(isText);
  return Array.isArray(value) && value.every(isOne);
}

function areTokens(value: unknown): boolean {
  return isObject(value) && isText(value["access_token"]) && value["access_token"] !== "" && isText(value["refresh_token"] ?? "");
}

/** Returns the error of an attempt without a response. */
function lost(reason: TransportError["reason"], fields: object = {}): TransportError {
  const texts = {
    not_connected: "no connection to the service",
    timed_out: "the service did not respond in time",
    connection_lost: "the connection ended before the response did",
  };
  return new TransportError(texts[reason], { ...fields, reason });
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
    if ((length += chunk.value.length) > MAX_BODY) throw unexpected({ status, headers, text }, `it has more than ${MAX_BODY} bytes`);
  }
  return { status, headers, text: text + decoder.decode() };
}

/** Returns the time of a header in milliseconds. `Date.parse` takes much else for a date. */
function httpDate(text: string | null | undefined): number {
  return /^[A-Z][a-z]+, \d\d[ -][A-Z][a-z]{2}[ -]\d+ [\d:]{8} GMT$/.test(text ?? "") ? Date.parse(String(text)) : NaN;
}

const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;
/** The codes of a server whose certificate is not trusted, which gets no request. */
const NOT_TRUSTED = /^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT)/;

/** Returns whether a failure of `fetch` says that the request was not sent. */
function isNotConnected(error: unknown): boolean {
  const { message = "", cause } = error as Error;
  const code = String((cause as { code?: string } | undefined)?.code);
  return NOT_CONNECTED.test(code) || NOT_TRUSTED.test(code) || /\(Connect\)/.test(message);
}

/** Returns what `work` does, or undefined once this time has passed. Throws the reason of the signal if it is aborted before. */
async function within<T>(ms: number, signal: AbortSignal | undefined, work: Promise<T>): Promise<T | undefined> {
  let end = () => {};
  const ended = new Promise<undefined>((resolve, reject) => {
    const timer = setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS));
    const abort = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
  });
  return Promise.race([work, ended]).finally(end);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return within(ms, signal, new Promise<never>(() => {}));
}

/** Writes bytes in lower-case hex. */
function hex(bytes: ArrayBuffer | Uint8Array): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
