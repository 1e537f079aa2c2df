/**
 * Verifies that a webhook delivery was sent by the service a short time ago and was not changed on its way.
 *
 * @module
 */
import { InvalidArgumentError, SvcError } from "./errors.js";
import { REFUSALS } from "./generated/refusals.js";
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

/** Why a delivery was refused. Respond with a status such as 401: the service counts a failed attempt and tries again. */
export class VerifyError extends SvcError {
  readonly kind = "verify";
  override name = "VerifyError";

  /** @internal */
  constructor(
    /** The reason, for programs and metrics. Codes do not change. */
    readonly code: keyof typeof REFUSALS,
  ) {
    super(REFUSALS[code]);
  }
}

type Code = VerifyError["code"];
type Bytes = Uint8Array<ArrayBuffer>;
/** Returns for each signature of a body whether this key made it. */
type Key = (signatures: Bytes[], body: Bytes) => Promise<boolean[]>;
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
    if (secrets.length + publicKeys.length === 0) throw new VerifyError("empty_secret");
    for (const secret of secrets) {
      check(secret, { empty_secret: /./s, public_key_as_secret: /^(?!whpk_)/, secret_whitespace: /^\S+$/ });
    }
    this.#whole = secrets.map((secret) => secretKey(bytes(secret)));
    this.#decoded = secrets.map((secret) => {
      const key = decode(secret.replace(/^whsec_/, ""));
      return key?.length ? secretKey(key) : undefined;
    });
    this.#public = publicKeys.map(publicKey);
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
    if (standard === undefined) await this.#checkOwn(header(headers, "x-svc-signature") ?? "", received);
    else await this.#checkStandard(headers, standard, received);
    if (maxAgeSeconds === null) return;
    const age = at - (standard === undefined ? deliveredAt(received) : Number(header(headers, "webhook-timestamp")));
    // No time is within a bound that is no number.
    if (!(age <= maxAgeSeconds)) throw new VerifyError("stale");
    if (!(-age <= futureToleranceSeconds)) throw new VerifyError("from_future");
  }

  async #checkOwn(signature: string, body: Bytes): Promise<void> {
    check(signature, { empty_header: /./s });
    if (this.#whole.length === 0) throw new VerifyError("no_secret");
    check(signature, { missing_prefix: /^sha256=/, wrong_length: /^.{71}$|[^\0-\x7f]/su, not_hex: /^.{7}[\da-f]*$/i, upper_case_hex: /^[^A-F]*$/ });
    const digits = signature.slice(7).match(/../g) ?? [];
    if (!(await isSigned(this.#whole, [Uint8Array.from(digits, (pair) => parseInt(pair, 16))], body))) throw new VerifyError("mismatch");
  }

  async #checkStandard(headers: DeliveryHeaders, entries: string, body: Bytes): Promise<void> {
    const id = header(headers, "webhook-id") ?? "";
    const timestamp = header(headers, "webhook-timestamp") ?? "";
    // With a dot in the id, part of the body could be passed off as the timestamp.
    check(id, { invalid_id: /^[^.]+$/ });
    check(timestamp, { invalid_timestamp: /^\d{1,18}$/ });
    check(entries, { empty_header: /./s });
    const signed = new Uint8Array(await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer());
    const refusals: (Code | undefined)[] = [];
    if (this.#decoded.length > 0) refusals.push(await refusal(V1, this.#decoded, entries.split(" "), signed));
    if (this.#public.length > 0) refusals.push(await refusal(V1A, this.#public, entries.split(" "), signed));
    // The error is about the entries that are there.
    const code = refusals.find((code) => code !== V1.missing && code !== V1A.missing) ?? refusals[0];
    if (!refusals.includes(undefined)) throw new VerifyError(code ?? "mismatch");
  }
}

/** Throws the first code whose pattern a text does not match. */
function check(text: string, patterns: { [C in Code]?: RegExp }): void {
  for (const [code, pattern] of Object.entries(patterns)) {
    if (!pattern.test(text)) throw new VerifyError(code as Code);
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
  return (await isSigned(keys as Key[], signatures as Bytes[], signed)) ? undefined : "mismatch";
}

/** Returns whether any key made any signature. All are tried, so that the time does not tell which one matched. */
async function isSigned(keys: Key[], signatures: Bytes[], body: Bytes): Promise<boolean> {
  const results = await Promise.all(keys.map((key) => key(signatures, body)));
  return results.flat().includes(true);
}

/** Returns a header. `Headers` may be of another realm or library, so that they are no instance of this one. */
function header(headers: DeliveryHeaders, name: string): string | undefined {
  if (typeof headers.get === "function") return (headers as Headers).get(name) ?? undefined;
  const found = Object.entries(headers).find(([other, value]) => other.toLowerCase() === name && value !== undefined);
  return found && [found[1]].flat().join(", ");
}

/** Returns the bytes of a body, which may be of another realm. */
function raw(body: unknown): Bytes {
  if (typeof body === "string") return bytes(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer as ArrayBuffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body as ArrayBuffer);
  throw new InvalidArgumentError("pass the body as it was received: bytes or text, and not what a parser made of it");
}

function importKey(key: Bytes, algorithm: { name: string; hash?: string }, usage: KeyUsage): Promise<CryptoKey> {
  const imported = crypto.subtle.importKey("raw", key, algorithm, false, [usage]);
  // What fails is thrown where the key is used.
  imported.catch(() => undefined);
  return imported;
}

function secretKey(secret: Bytes): Key {
  const key = importKey(secret, { name: "HMAC", hash: "SHA-256" }, "sign");
  return async (signatures, body) => {
    // The body is hashed once, however many signatures there are, and each byte compared, wherever they differ.
    const mac = new Uint8Array(await crypto.subtle.sign("HMAC", await key, body));
    return signatures.map((signature) => mac.reduce((differs, byte, at) => differs | (byte ^ Number(signature[at])), 0) === 0);
  };
}

function publicKey(text: string): Key {
  check(text, { empty_public_key: /./s, not_public_key: /^whpk_/ });
  const decoded = decode(text.slice(5));
  if (decoded?.length !== 32) throw new VerifyError(decoded ? "public_key_wrong_length" : "public_key_not_base64");
  const key = importKey(decoded, { name: "Ed25519" }, "verify");
  const verifies = async (signature: Bytes, body: Bytes) => crypto.subtle.verify("Ed25519", await key, signature, body);
  return (signatures, body) => Promise.all(signatures.map((signature) => verifies(signature, body)));
}

/** Decodes base64 in its one canonical form. */
function decode(text: string): Bytes | undefined {
  const binary = orUndefined(() => atob(text));
  return binary !== undefined && btoa(binary) === text ? Uint8Array.from(binary, (char) => char.charCodeAt(0)) : undefined;
}

/** Returns the time in the body, in Unix seconds. */
function deliveredAt(body: Bytes): number {
  const event = orUndefined(() => JSON.parse(new TextDecoder().decode(body)) as unknown);
  const text = isObject(event) && event["delivered_at"];
  if (typeof text !== "string") throw new VerifyError("missing_delivered_at");
  const [, seconds, fraction = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z$/.exec(text) ?? [];
  const time = Date.parse(`${seconds}Z`);
  if (!(time >= 0) || new Date(time).toISOString().slice(0, 19) !== seconds) throw new VerifyError("invalid_delivered_at");
  return time / 1000 + Number(`0${fraction}`);
}
