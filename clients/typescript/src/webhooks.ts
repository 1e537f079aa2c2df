/**
 * Verifies that a webhook delivery was sent by the service a short time ago and was not changed on its way.
 *
 * @module
 */
import { InvalidArgumentError, SvcError } from "./errors.js";
import type { webhooks } from "./generated/schema.js";
import { bytes, isObject, orUndefined, parse } from "./json.js";

/** The body of a delivery of each kind, such as `WebhookEvents["invoice.paid"]`. Amounts are decimal strings. */
export type WebhookEvents = { [K in keyof webhooks]: webhooks[K]["post"]["requestBody"]["content"]["application/json"] };
/** The body of a delivery: `event` tells its kind, and so the type of `data`. Newer services may have further kinds. */
export type WebhookEvent = WebhookEvents[keyof WebhookEvents];

/** The settings of a verifier. It needs a secret or a public key. */
export interface VerifierOptions {
  /** The whole secrets of the subscription, `whsec_…`: two while one of them replaces the other. */
  secrets?: readonly string[];
  /** The public keys of a subscription whose `signature` is `ed25519`, `whpk_…`. They verify and cannot sign. */
  publicKeys?: readonly string[];
  /** Refuses deliveries that were sent longer ago, 300 seconds by default. Null: those that somebody recorded are accepted. */
  maxAgeSeconds?: number | null;
  /** How far the clock of the sender may be ahead, 60 seconds by default. */
  futureToleranceSeconds?: number;
  /** The clock, in milliseconds since 1970, for tests. */
  now?: () => number;
}

/** The headers of a request: those of `fetch`, or an object, as Node and Express have it. */
export type DeliveryHeaders = Headers | { readonly [name: string]: string | readonly string[] | undefined };

const REASONS = {
  empty_secret: "the secret is empty; pass the `secret` that was returned when the subscription was created",
  secret_whitespace: "the secret contains white space; remove it, such as the line feed at the end of a file",
  secret_not_base64: "the secret is not `whsec_` followed by base64; pass the whole secret unchanged",
  public_key_as_secret: "the secret is a public key, with which anyone could sign; pass it in `publicKeys`",
  empty_public_key: "the public key is empty; pass the public key of the subscription, which begins with `whpk_`",
  not_public_key: "the public key does not begin with `whpk_`; pass it unchanged, and no secret or private key",
  public_key_not_base64: "the public key is not base64 after `whpk_`; pass it unchanged, without white space",
  public_key_wrong_length: "the public key does not have 32 bytes after `whpk_`; pass it unchanged",
  no_secret: "X-SVC-Signature is made with the secret, and the verifier has only public keys; add the secret",
  empty_header: "the signature header is empty or missing; check that no proxy removes it",
  missing_prefix: "the signature does not begin with `sha256=`; pass X-SVC-Signature unchanged",
  wrong_length: "the signature does not have 64 digits after `sha256=`; pass X-SVC-Signature unchanged and once",
  not_hex: "the signature is not hex; pass X-SVC-Signature unchanged",
  upper_case_hex: "the signature is in upper-case hex; pass X-SVC-Signature unchanged",
  mismatch: "the signature does not match; pass the bytes of the body as received, and the whole secret of this subscription",
  missing_delivered_at: "the body has no string `delivered_at`, which the maximum age requires; pass the whole body",
  invalid_delivered_at: "`delivered_at` is not an RFC 3339 time in UTC; pass the whole body",
  stale: "the delivery was sent longer ago than the maximum age; check the clock of this machine",
  from_future: "the delivery was sent in the future; check the clock of this machine",
  malformed_body: "the body is signed, and is no event",
  invalid_id: "webhook-id is empty, missing or contains a dot; pass the header unchanged",
  invalid_timestamp: "webhook-timestamp is missing or not in Unix seconds; pass the header unchanged",
  no_v1_signature: "webhook-signature has no entry that begins with `v1,`; pass the whole header",
  not_base64: "webhook-signature is not base64 of 32 bytes after `v1,`; pass the header unchanged",
  no_v1a_signature: "webhook-signature has no entry that begins with `v1a,`; set `signature` of the subscription to `ed25519`",
  v1a_not_base64: "webhook-signature is not base64 of 64 bytes after `v1a,`; pass the header unchanged",
  too_many_signatures: "webhook-signature has more entries than the service sends; pass the header unchanged and once",
};

/** Why a delivery was refused. Respond with a status such as 401: the service counts a failed attempt and tries again. */
export class VerifyError extends SvcError {
  readonly kind = "verify";
  override name = "VerifyError";

  /** @internal */
  constructor(
    /** The reason, for programs and metrics. Codes do not change. */
    readonly code: keyof typeof REASONS,
  ) {
    super(REASONS[code]);
  }
}

type Code = VerifyError["code"];
type Bytes = Uint8Array<ArrayBuffer>;
type Key = { key: Promise<CryptoKey>; algorithm: string };
/** A version of `webhook-signature`: how its entries begin, the bytes of a signature, and how many are checked. */
type Version = { prefix: string; length: number; most: number; missing: Code; malformed: Code };

const V1: Version = { prefix: "v1,", length: 32, most: Infinity, missing: "no_v1_signature", malformed: "not_base64" };
// The service sends two at most, and each costs a hash of the body.
const V1A: Version = { prefix: "v1a,", length: 64, most: 8, missing: "no_v1a_signature", malformed: "v1a_not_base64" };

/** Verifies deliveries by their headers. Make one and share it. */
export class Verifier {
  #options: VerifierOptions;
  /** The keys of `X-SVC-Signature`, of `v1` and of `v1a`. A secret that is not base64 has none of `v1`. */
  #whole: Key[];
  #decoded: (Key | undefined)[];
  #public: Key[];

  /** Makes a verifier. Throws a {@link VerifyError} for a secret or a public key that is not valid. */
  constructor(options: VerifierOptions) {
    const { secrets = [], publicKeys = [] } = options;
    this.#options = options;
    this.#whole = secrets.map((secret) => importKey("HMAC", wholeKey(secret)));
    this.#decoded = secrets.map((secret) => {
      const key = decode(secret.replace(/^whsec_/, ""));
      return key?.length ? importKey("HMAC", key) : undefined;
    });
    this.#public = publicKeys.map((key) => importKey("Ed25519", publicKey(key)));
    if (secrets.length + publicKeys.length === 0) throw new VerifyError("empty_secret");
  }

  /** Verifies a delivery and returns its event. `body` is as it was received, before anything parses it. */
  async verify(headers: DeliveryHeaders, body: Uint8Array | ArrayBuffer | string): Promise<WebhookEvent> {
    await this.verifySignature(headers, body);
    const event = orUndefined(() => parse(new TextDecoder("utf-8", { fatal: true }).decode(raw(body))));
    if (isObject(event) && isObject(event["data"]) && typeof event["event"] === "string") return event as unknown as WebhookEvent;
    throw new VerifyError("malformed_body");
  }

  /** Verifies the signature and the age of a delivery, whatever its body is. `webhook-signature` wins if it is there. */
  async verifySignature(headers: DeliveryHeaders, body: Uint8Array | ArrayBuffer | string): Promise<void> {
    const { maxAgeSeconds = 300, futureToleranceSeconds = 60, now = Date.now } = this.#options;
    const [received, at] = [raw(body), now() / 1000];
    const standard = header(headers, "webhook-signature");
    const sent = standard === undefined ? await this.#bySecret(headers, received) : await this.#standard(headers, standard, received);
    if (maxAgeSeconds === null) return;
    const age = at - sent();
    if (age > maxAgeSeconds) throw new VerifyError("stale");
    if (-age > futureToleranceSeconds) throw new VerifyError("from_future");
  }

  async #bySecret(headers: DeliveryHeaders, body: Bytes): Promise<() => number> {
    const text = header(headers, "x-svc-signature") ?? "";
    if (this.#whole.length === 0 && text) throw new VerifyError("no_secret");
    if (!(await matches(this.#whole, [parseSignature(text)], body))) throw new VerifyError("mismatch");
    return () => deliveredAt(body);
  }

  async #standard(headers: DeliveryHeaders, entries: string, body: Bytes): Promise<() => number> {
    const id = header(headers, "webhook-id") ?? "";
    const timestamp = header(headers, "webhook-timestamp") ?? "";
    // With a dot in the id, part of the body could be passed off as the timestamp.
    if (!id || id.includes(".")) throw new VerifyError("invalid_id");
    if (!/^\d+$/.test(timestamp) || !Number.isSafeInteger(Number(timestamp))) throw new VerifyError("invalid_timestamp");
    if (!entries) throw new VerifyError("empty_header");
    const prefix = bytes(`${id}.${timestamp}.`);
    const signed = new Uint8Array(prefix.length + body.length);
    signed.set(prefix);
    signed.set(body, prefix.length);
    const refusals: (Code | undefined)[] = [];
    if (this.#decoded.length > 0) refusals.push(await refusal(V1, this.#decoded, entries.split(" "), signed));
    if (this.#public.length > 0) refusals.push(await refusal(V1A, this.#public, entries.split(" "), signed));
    if (refusals.includes(undefined)) return () => Number(timestamp);
    // The error is about the entries that are there.
    throw new VerifyError(refusals.find((code) => code !== V1.missing && code !== V1A.missing) ?? refusals[0] ?? "mismatch");
  }
}

/** Returns why no entry of a version matches a key, or undefined if one does. Entries of other versions are ignored. */
async function refusal(version: Version, keys: (Key | undefined)[], entries: string[], signed: Bytes): Promise<Code | undefined> {
  const { prefix, length, most, missing, malformed } = version;
  const signatures = entries.filter((entry) => entry.startsWith(prefix)).map((entry) => decode(entry.slice(prefix.length)));
  if (signatures.length === 0) return missing;
  if (!signatures.every((signature) => signature?.length === length)) return malformed;
  if (keys.includes(undefined)) return "secret_not_base64";
  if (signatures.length > most) return "too_many_signatures";
  return (await matches(keys as Key[], signatures as Bytes[], signed)) ? undefined : "mismatch";
}

function header(headers: DeliveryHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name] ?? Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1];
  return typeof value === "string" ? value : value?.join(", ");
}

function raw(body: unknown): Bytes {
  if (typeof body === "string") return bytes(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array) return body as Bytes;
  throw new InvalidArgumentError("pass the body as it was received: bytes or text, and not what a parser made of it");
}

function importKey(algorithm: string, key: Bytes): Key {
  const parameters = algorithm === "HMAC" ? { name: algorithm, hash: "SHA-256" } : { name: algorithm };
  const imported = crypto.subtle.importKey("raw", key, parameters, false, ["verify"]);
  // What fails is thrown where the key is used.
  imported.catch(() => undefined);
  return { key: imported, algorithm };
}

/** Returns whether any key verifies any signature. All are tried, so that the time does not tell which one matched. */
async function matches(keys: Key[], signatures: Bytes[], signed: Bytes): Promise<boolean> {
  const results = keys.flatMap(({ key, algorithm }) =>
    signatures.map(async (signature) => crypto.subtle.verify(algorithm, await key, signature, signed)),
  );
  return (await Promise.all(results)).includes(true);
}

function wholeKey(secret: string): Bytes {
  if (!secret) throw new VerifyError("empty_secret");
  if (secret.startsWith("whpk_")) throw new VerifyError("public_key_as_secret");
  if (/\s/.test(secret)) throw new VerifyError("secret_whitespace");
  return bytes(secret);
}

function publicKey(text: string): Bytes {
  if (!text) throw new VerifyError("empty_public_key");
  if (!text.startsWith("whpk_")) throw new VerifyError("not_public_key");
  const key = decode(text.slice(5));
  if (!key) throw new VerifyError("public_key_not_base64");
  if (key.length !== 32) throw new VerifyError("public_key_wrong_length");
  return key;
}

/** Decodes base64 in its one canonical form. */
function decode(text: string): Bytes | undefined {
  const binary = orUndefined(() => atob(text));
  return binary !== undefined && btoa(binary) === text ? Uint8Array.from(binary, (char) => char.charCodeAt(0)) : undefined;
}

function parseSignature(text: string): Bytes {
  if (!text) throw new VerifyError("empty_header");
  if (!text.startsWith("sha256=")) throw new VerifyError("missing_prefix");
  const digits = text.slice(7);
  // The length is that of the bytes in UTF-8.
  if (bytes(digits).length !== 64) throw new VerifyError("wrong_length");
  if (!/^[0-9a-fA-F]*$/.test(digits)) throw new VerifyError("not_hex");
  if (/[A-F]/.test(digits)) throw new VerifyError("upper_case_hex");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Returns the time in the body, in Unix seconds. */
function deliveredAt(body: Bytes): number {
  const event = orUndefined(() => JSON.parse(new TextDecoder().decode(body)) as { delivered_at?: unknown } | null);
  const text = event?.delivered_at;
  if (typeof text !== "string") throw new VerifyError("missing_delivered_at");
  const [, seconds, fraction = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z$/.exec(text) ?? [];
  const time = Date.parse(`${seconds}Z`);
  if (!(time >= 0) || new Date(time).toISOString().slice(0, 19) !== seconds) throw new VerifyError("invalid_delivered_at");
  return time / 1000 + Number(`0${fraction}`);
}
