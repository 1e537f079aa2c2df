import { ApiError, requireArgument, SvcError, TransportError, UnexpectedResponseError } from "./errors.js";
import { PROBLEM } from "./generated/problems.js";
import { bytes, has, hex, orUndefined, parse, stringify, type Fields, type Shape } from "./json.js";
import { AppTokens, type AppCredentials, type NewTokens, type Tokens } from "./tokens.js";

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
export interface RawResponse extends Pick<Response, "status" | "headers"> {
  /** The body. */
  text: string;
}

/** Sends requests: what all calls of a client share. */
export class Transport {
  readonly base: string;
  #options: ClientOptions;
  #tokens: AppTokens | null;
  #now = (): number => (this.#options.env?.now ?? Date.now)();
  /** How far the clock of the service is ahead of ours, and the last timestamp of a signature, in microseconds. */
  #clockAheadMs = 0;
  #lastTimestamp = 0;

  constructor(options: ClientOptions) {
    const { url, key, app, signingSecret } = options;
    const base = URL.canParse(url) ? new URL(url) : undefined;
    const isValid = base && /^https?:$/.test(base.protocol) && !base.username && !base.password;
    requireArgument(isValid, "the URL of the service must begin with https:// or http://, without a user name and a password");
    requireArgument(!key !== !app && !(app && signingSecret), "pass a key, with its signing secret if it has one, or the tokens of an app");
    this.base = base.origin + base.pathname.replace(/\/+$/, "");
    this.#options = options;
    this.#tokens = app ? new AppTokens(app, (form) => this.#newTokens(form)) : null;
  }

  /** Sends a request to a path below `/api/v1`. A POST has an idempotency key. */
  async call(method: Method, path: string, { query = {}, input, headers = {}, options }: CallParts): Promise<RawResponse> {
    const url = new URL(`${this.base}/api/v1/${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const sent: RawRequest["headers"] = { ...headers, ...(input && { "content-type": "application/json" }) };
    if (method === "POST") {
      // A page without https has no `crypto.randomUUID`.
      const key = options?.idempotencyKey ?? hex(crypto.getRandomValues(new Uint8Array(16)));
      requireArgument(/^[\x20-\x7e]{1,255}$/.test(key), "an idempotency key must have 1 to 255 printable ASCII characters");
      sent["idempotency-key"] = key;
    }
    return this.#send({ method, url, headers: sent, ...(input && { body: stringify(input) }) }, options);
  }

  /** Sends a request until it succeeds, or fails for good. An app whose access token is refused gets another one, once. */
  async #send(request: RawRequest, { signal, totalMs }: CallOptions = {}, app = this.#tokens): Promise<RawResponse> {
    const { key, retry = {}, timeoutMs = 30_000, env = {} } = this.#options;
    const { attempts = 4, firstWaitMs = 250, longestWaitMs = 10_000 } = retry;
    const total = totalMs ?? retry.totalMs ?? 90_000;
    const begun = performance.now();
    let [waited, mayBeDone, isCorrected] = [0, false, false];
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
        if (!isCorrected && (await this.#correct(error, tokens, clockAheadMs, left(), signal))) {
          isCorrected = true;
          continue;
        }
        const longest = Math.min(firstWaitMs * 2 ** (attempt - 1), longestWaitMs);
        const wait = (error.retryAfterMs ?? 0) + longest * (env.random ?? Math.random)();
        const wasCut = error instanceof TransportError && error.reason === "timed_out" && leftMs < timeoutMs;
        if (attempt >= attempts || !error.isTransient || wasCut || wait > left()) throw error;
        await (env.sleep ?? within)(wait, signal);
        waited += wait;
      }
    }
  }

  async #newTokens(form: URLSearchParams): Promise<NewTokens> {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const response = await this.#send({ method: "POST", url: new URL(`${this.base}/oauth/token`), headers, body: form.toString() }, {}, null);
    const { access_token, refresh_token } = json<NewTokens>(response, { access_token: "string", refresh_token: "string|null|undefined" });
    // What no header can carry is not stored.
    checkHeaders({ authorization: access_token });
    return { access_token, ...(refresh_token && { refresh_token }) };
  }

  /** Sends the request once, with a signature of its own, and throws unless it succeeds. */
  async #attempt(request: RawRequest, credential: string | undefined, timeoutMs: number, signal?: AbortSignal): Promise<RawResponse> {
    const { fetch = (url: URL, init: RequestInit) => globalThis.fetch(url, init), userAgent } = this.#options;
    const identity = { ...(credential && { authorization: `Bearer ${credential}` }), ...(userAgent && { "user-agent": userAgent }) };
    const headers = { ...request.headers, ...identity, ...(await this.#sign(request)) };
    signal?.throwIfAborted();
    if (timeoutMs <= 0) throw lost("timed_out");
    checkHeaders(headers);
    const controller = new AbortController();
    try {
      // The service redirects nothing, and the key is for this host alone.
      const init: RequestInit = { ...request, headers, signal: controller.signal, redirect: "manual", credentials: "omit" };
      const response = await within(timeoutMs, signal, fetch(request.url, init).then(read));
      if ((response.status >= 200 && response.status < 300) || response.status === 304) return response;
      throw this.#failure(response);
    } catch (cause) {
      controller.abort();
      signal?.throwIfAborted();
      throw cause instanceof SvcError ? cause : lost(isNotSent(cause) ? "not_connected" : "connection_lost", { cause });
    }
  }

  /** Returns the headers with the timestamp and the signature of a request that changes something, if the key signs. */
  async #sign({ method, url, body = "" }: RawRequest): Promise<Record<string, string>> {
    const { signingSecret } = this.#options;
    if (!signingSecret || method === "GET") return {};
    // A signature is accepted once, so no two have the same timestamp.
    const micros = Math.max(Math.round((this.#now() + this.#clockAheadMs) * 1000), this.#lastTimestamp + 1);
    this.#lastTimestamp = micros;
    const timestamp = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}`;
    const { subtle } = crypto;
    const key = await subtle.importKey("raw", bytes(signingSecret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const lines = [timestamp, method, url.pathname + url.search, hex(await subtle.digest("SHA-256", bytes(body)))].join("\n");
    const signature = await subtle.sign("HMAC", key, bytes(lines));
    return { "x-svc-timestamp": timestamp, "x-svc-signature": `sha256=${hex(signature)}` };
  }

  /** Returns whether what the service refused is another one now: the tokens of an app, or the clock by which requests are signed. */
  async #correct(error: SvcError, tokens: Tokens | null, clockAheadMs: number, ms: number, signal?: AbortSignal): Promise<boolean> {
    if (tokens && this.#tokens && error.status === 401) {
      await within(ms, signal, this.#tokens.after(tokens));
      return true;
    }
    if (!(error instanceof ApiError) || error.code !== "signature_invalid") return false;
    const ahead = httpDate(error.date) - this.#now();
    const isWrong = (used: number) => Math.abs(ahead - used) >= WRONG_CLOCK_MS;
    // Another call may have corrected it meanwhile.
    if (isWrong(this.#clockAheadMs)) [this.#clockAheadMs, this.#lastTimestamp] = [ahead, 0];
    return isWrong(clockAheadMs);
  }

  #failure(response: RawResponse): SvcError {
    const after = response.headers.get("retry-after")?.trim() ?? "";
    const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Math.max(0, httpDate(after) - this.#now());
    const body = orUndefined(() => parse(response.text));
    // The endpoint for tokens has another form (RFC 6749 §5.2).
    const isOAuth = has(body, { error: "string", error_description: "string" });
    const problem: Fields = { errors: [], ...(isOAuth ? { error: body["error_description"], code: body["error"] } : (body as object)) };
    if (!has(problem, PROBLEM)) return unexpected(response, "it is no error of the API", { retryAfterMs: ms });
    const { error, code, errors, field, existing_id: existingId, retry_after_ms } = problem;
    const fields = { date: response.headers.get("date"), retryAfterMs: retry_after_ms ?? ms, field, existingId };
    return new ApiError(String(error), { ...about(response, fields), code, errors });
  }
}

function checkHeaders(headers: RawRequest["headers"]): void {
  for (const [name, value] of Object.entries(headers)) {
    requireArgument(/^[\x20-\x7e]*$/.test(value), `${name} has characters that a header cannot have`);
  }
}

/** Reads the body of a response that is what it has to be. */
export function json<T>(response: RawResponse, shape: Shape, read = parse): T {
  const value: unknown = orUndefined(() => read(response.text));
  if (!has(value, shape)) throw unexpected(response, value === undefined ? "it is not JSON" : "it is JSON of another form");
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
  const all = Object.entries({ status, requestId: headers.get("x-request-id"), ...fields });
  return Object.fromEntries(all.filter(([, value]) => typeof value === "string" || Number(value ?? NaN) >= 0));
}

/** Returns the error of an attempt without a response. */
const lost = (reason: TransportError["reason"], fields: object = {}): TransportError =>
  new TransportError(`no response of the service: ${reason.replace("_", " ")}`, { attempts: 1, ...fields, reason });

/** Reads a response, unless it is too long. */
async function read(response: Response): Promise<RawResponse> {
  const { status, headers, body } = response;
  const [decoder, reader] = [new TextDecoder(), body?.getReader()];
  let [text, length] = ["", 0];
  for (let chunk; reader && !(chunk = await reader.read()).done; ) {
    text += decoder.decode(chunk.value, { stream: true });
    if ((length += chunk.value.length) > MAX_BODY) throw unexpected({ status, headers, text }, `it has more than ${MAX_BODY} bytes`);
  }
  return { status, headers, text: text + decoder.decode() };
}

/** A date of HTTP. `Date.parse` takes much else for one. */
const HTTP_DATE = /^[A-Z][a-z]+, \d\d[ -][A-Z][a-z]{2}[ -]\d+ [\d:]{8} GMT$/;
const httpDate = (text = ""): number => (HTTP_DATE.test(text) ? Date.parse(text) : NaN);

/** How the codes of failures begin that come before the request: there is no connection, or its certificate is not trusted. */
const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT|CERT_|ERR_TLS_|UNABLE_TO_|\w*SELF_SIGNED)/;

/** Returns whether a failure of `fetch` says that the request was not sent. */
const isNotSent = (error: unknown): boolean =>
  NOT_SENT.test(String((error as { cause?: { code?: string } } | null)?.cause?.code)) || /\(Connect\)/.test(String(error));

/**
 * Returns what `work` does, or throws the reason of the signal if it is aborted before, or that the time has passed. Without
 * work, it returns once the time has passed.
 */
function within<T = void>(ms: number, signal?: AbortSignal, work?: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let abort = () => {};
  const ended = new Promise<T>((resolve, reject) => {
    timer = setTimeout(() => (work ? reject(lost("timed_out")) : resolve(undefined as T)), Math.min(ms, LONGEST_TIMER_MS));
    abort = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    work?.then(resolve, reject);
  });
  return ended.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
}
