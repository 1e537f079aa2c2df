import { InvalidArgumentError } from "./errors.js";
import { AMOUNTS } from "./generated/amounts.js";

/** An object that a response or a request has. */
export type Fields = Record<string, unknown>;

// A quote inside of a string has a backslash before it, so `{"` and `,"` only ever begin a name.
const NAME = `([{,]\\s*"(?:${AMOUNTS.join("|")})"\\s*:\\s*)`;
const NUMBERS = new RegExp(`${NAME}(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?=\\s*[,}])`, "g");
const STRINGS = new RegExp(`${NAME}"([^"]*)"`, "g");

/** Parses JSON in which amounts of money are numbers into one in which they are the same digits as strings. */
export const parse = (text: string): unknown => JSON.parse(text.replace(NUMBERS, '$1"$2"'));

/** Writes an input as JSON, in which amounts are the digits of their strings. */
export const stringify = (input: object): string => JSON.stringify(input, checked).replace(STRINGS, "$1$2");

/** Returns a member of an input, unless it is an amount that is not valid. */
function checked(name: string, value: unknown): unknown {
  const isAmount = AMOUNTS.includes(name) && value !== undefined && value !== null;
  if (!isAmount || (typeof value === "string" && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(value))) return value;
  throw new InvalidArgumentError(`${name} must be a decimal string such as "99.95", not the ${typeof value} ${JSON.stringify(String(value))}`);
}

/** Returns what a function returns, or undefined if it throws. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The shape of JSON: kinds of values such as `string|null`, an array of one shape, or members that an object has beside others. */
export type Shape = string | readonly [Shape] | { readonly [name: string]: Shape };

/** Returns whether a value has a shape. */
export function has(value: unknown, shape: Shape): value is Fields {
  if (typeof shape === "string") return shape.split("|").includes(value === null ? "null" : typeof value);
  if (Array.isArray(shape)) return Array.isArray(value) && value.every((item) => has(item, shape[0] as Shape));
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.entries(shape).every(([name, member]) => has((value as Fields)[name], member as Shape));
}

/** Bytes of their own buffer, which WebCrypto takes. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Returns the bytes of a text in UTF-8. */
export const bytes = (text: string): Bytes => new TextEncoder().encode(text) as Bytes;

/** Writes bytes in lower-case hex. */
export const hex = (bytes: ArrayBuffer | Bytes): string => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
