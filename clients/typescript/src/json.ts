import { InvalidArgumentError } from "./errors.js";
import { AMOUNTS } from "./generated/amounts.js";

/** An object that a response or a request has. */
export type Fields = Record<string, unknown>;

// A quote inside of a string has a backslash before it, so `{"` and `,"` only ever begin a name.
const NAME = `([{,]\\s*"(?:${AMOUNTS.join("|")})"\\s*:\\s*)`;
const NUMBERS = new RegExp(`${NAME}(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?=\\s*[,}])`, "g");
const STRINGS = new RegExp(`${NAME}"([^"]*)"`, "g");

/** Parses JSON in which amounts of money are numbers into one in which they are the same digits as strings. */
export function parse(text: string): unknown {
  return JSON.parse(text.replace(NUMBERS, '$1"$2"'));
}

/** Writes an input as JSON, in which amounts are the digits of their strings. */
export function stringify(input: object): string {
  return JSON.stringify(input, checked).replace(STRINGS, "$1$2");
}

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

/** Returns the bytes of a text in UTF-8. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

/** Returns whether a value is an object, and no array. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
