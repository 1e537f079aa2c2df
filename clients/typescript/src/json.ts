import { InvalidArgumentError } from "./errors.js";
import { AMOUNTS } from "./generated/amounts.js";

/** An object that a response or a request has. */
export type Fields = Record<string, unknown>;

// A quote inside of a string has a backslash before it, so `{"` and `,"` only ever begin a name.
const NUMBERS = new RegExp(`([{,]\\s*"(?:${AMOUNTS.join("|")})"\\s*:\\s*)(-?\\d[\\d.eE+-]*)`, "g");

/** Parses JSON in which amounts of money are numbers into one in which they are the same digits as strings. */
export function parse(text: string): unknown {
  return JSON.parse(text.replace(NUMBERS, '$1"$2"'));
}

/** Writes an input as JSON, in which amounts are the digits of their strings. */
export function stringify(input: object): string {
  const members = Object.entries(input).filter(([, value]) => value !== undefined);
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${member(name, value)}`).join(",")}}`;
}

function member(name: string, value: unknown): string {
  if (!AMOUNTS.includes(name) || value === null) return JSON.stringify(value);
  if (typeof value === "string" && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(value)) return value;
  throw new InvalidArgumentError(`${name} must be a decimal string such as "99.95", not ${JSON.stringify(value)}`);
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
