/**
 * Verifies that a webhook delivery was sent by the service a short time ago and was not changed on its way.
 *
 * @module
 */
import { InvalidArgumentError, SvcError } from "./errors.js";
import { FORMS, TEXTS } from "./generated/refusals.js";
import type { webhooks } from "./generated/schema.js";
import { bytes, has, orUndefined, parse, type Bytes } from "./json.js";

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

  /** The reason, for programs and metrics. Codes do not change. */
  declare readonly code: Code;

  /** @internal */
  constructor(code: Code) {
    super(TEXTS[code], { code });
  }
}

type Code = keyof typeof TEXTS;
/** A version of `webhook-signature`: how its entries begin, the bytes of a signature, and the codes for none and a wrong one. */
type Version = { prefix: string; length: number; missing: Code; malformed: Code; algorithm: Algorithm; keys?: (Bytes | undefined)[] };

const HMAC = { name: "HMAC", hash: "SHA-256" };
const V1: Version = { prefix: "v1,", length: 32, missing: "no_v1_signature", malformed: "not_base64", algorithm: HMAC };
const V1A: Version = { prefix: "v1a,", length: 64, missing: "no_v1a_signature", malformed: "v1a_not_base64", algorithm: { name: "Ed25519" } };
/** The most entries of a version that are checked. The service sends two, and each costs a hash of the body. */
const MOST = 8;

/** Verifies deliveries by their headers. Make one and share it. */
export class Verifier {
  #options: VerifierOptions;
  #secrets: readonly string[];
  #publicKeys: Bytes[];

  /** Makes a verifier. Throws a {@link VerifyError} for a secret or a public key that is not valid. */
  constructor(options: VerifierOptions) {
    const { secrets = [], publicKeys = [] } = options;
    if (secrets.length + publicKeys.length === 0) throw new VerifyError("empty_secret");
    this.#options = options;
    this.#secrets = secrets.map((secret) => check("secret", secret));
    this.#publicKeys = publicKeys.map(publicKey);
  }

  /** Verifies a delivery and returns its event. `body` is as it was received, before anything parses it. */
  async verify(headers: DeliveryHeaders, body: Uint8Array | ArrayBuffer | string): Promise<WebhookEvent> {
    await this.verifySignature(headers, body);
    const event = orUndefined(() => parse(new TextDecoder("utf-8", { fatal: true }).decode(raw(body))));
    if (has(event, { event: "string", data: {} })) return event as unknown as WebhookEvent;
    throw new VerifyError("malformed_body");
  }

  /** Verifies the signature and the age of a delivery, whatever its body is. `webhook-signature` wins if it is there. */
  async verifySignature(headers: DeliveryHeaders, body: Uint8Array | ArrayBuffer | string): Promise<void> {
    const { maxAgeSeconds = 300, futureToleranceSeconds = 60, now = Date.now } = this.#options;
    const [received, at] = [raw(body), now() / 1000];
    const isStandard = header(headers, "webhook-signature") !== undefined;
    await (isStandard ? this.#checkStandard(headers, received) : this.#checkOwn(header(headers, "x-svc-signature") ?? "", received));
    if (maxAgeSeconds === null) return;
    const age = at - (isStandard ? Number(header(headers, "webhook-timestamp")) : deliveredAt(received));
    // No time is within a bound that is no number.
    if (!(age <= maxAgeSeconds)) throw new VerifyError("stale");
    if (!(-age <= futureToleranceSeconds)) throw new VerifyError("from_future");
  }

  async #checkOwn(signature: string, body: Bytes): Promise<void> {
    if (!signature) throw new VerifyError("empty_header");
    if (this.#secrets.length === 0) throw new VerifyError("no_secret");
    check("signature", signature);
    const decoded = Uint8Array.from(signature.slice(7).match(/../g) ?? [], (digits) => parseInt(digits, 16));
    if (!(await isSigned(HMAC, this.#secrets.map(bytes), [decoded], body))) throw new VerifyError("mismatch");
  }

  async #checkStandard(headers: DeliveryHeaders, body: Bytes): Promise<void> {
    // With a dot in the id, part of the body could be passed off as the timestamp.
    const parts = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
    const [id, timestamp, signatures = ""] = parts.map((part) => check(part, header(headers, part) ?? ""));
    const signed = new Uint8Array(await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer());
    const secrets = this.#secrets.map((secret) => decode(secret.replace(/^whsec_/, "")));
    const versions = [{ ...V1, keys: secrets }, { ...V1A, keys: this.#publicKeys }].filter(({ keys }) => keys.length > 0);
    const refusals = await Promise.all(versions.map((version) => refusal(version, signatures.split(" "), signed)));
    // The error is about the entries that are there.
    const code = refusals.find((code) => code !== V1.missing && code !== V1A.missing) ?? refusals[0];
    if (!refusals.includes(undefined)) throw new VerifyError(code ?? "mismatch");
  }
}

/** Returns a text, or throws the first code whose form it does not have. */
function check(part: keyof typeof FORMS, text: string): string {
  const refused = Object.entries(FORMS[part]).find(([, form]) => !new RegExp(`^(?:${form})$`, "su").test(text));
  if (refused) throw new VerifyError(refused[0] as Code);
  return text;
}

/** Returns why no entry of a version matches a key, or undefined if one does. Entries of other versions are ignored. */
async function refusal(version: Version, entries: string[], signed: Bytes): Promise<Code | undefined> {
  const { prefix, length, missing, malformed, algorithm, keys = [] } = version;
  const signatures = entries.filter((entry) => entry.startsWith(prefix)).map((entry) => decode(entry.slice(prefix.length)));
  if (signatures.length === 0) return missing;
  if (!signatures.every((signature) => signature?.length === length)) return malformed;
  if (!keys.every((key) => key?.length)) return "secret_not_base64";
  if (signatures.length > MOST) return "too_many_signatures";
  return (await isSigned(algorithm, keys as Bytes[], signatures as Bytes[], signed)) ? undefined : "mismatch";
}

/** Returns whether any key made any signature. All are tried, so that the time does not tell which one matched. */
async function isSigned(algorithm: Algorithm, keys: Bytes[], signatures: Bytes[], body: Bytes): Promise<boolean> {
  const results = keys.map(async (bytes) => {
    const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
    return Promise.all(signatures.map((signature) => crypto.subtle.verify(algorithm, key, signature, body)));
  });
  return (await Promise.all(results)).flat().includes(true);
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

function publicKey(text: string): Bytes {
  const key = decode(check("public_key", text).slice(5));
  if (key?.length === 32) return key;
  throw new VerifyError(key ? "public_key_wrong_length" : "public_key_not_base64");
}

/** Decodes base64 in its one canonical form. */
function decode(text: string): Bytes | undefined {
  const binary = orUndefined(() => atob(text));
  return binary !== undefined && btoa(binary) === text ? Uint8Array.from(binary, (char) => char.charCodeAt(0)) : undefined;
}

/** Returns the time in the body, in Unix seconds. */
function deliveredAt(body: Bytes): number {
  const event = orUndefined(() => JSON.parse(new TextDecoder().decode(body)) as unknown);
  if (!has(event, { delivered_at: "string" })) throw new VerifyError("missing_delivered_at");
  const [, seconds, fraction = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z$/.exec(String(event["delivered_at"])) ?? [];
  const time = Date.parse(`${seconds}Z`);
  if (!(time >= 0) || new Date(time).toISOString().slice(0, 19) !== seconds) throw new VerifyError("invalid_delivered_at");
  return time / 1000 + Number(`0${fraction}`);
}
