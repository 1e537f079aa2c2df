import type { ErrorCode, FieldError } from "./generated/problems.js";

/** The field that comes with a code. */
type Details = { email_taken: "existingId"; rate_limited: "retryAfterMs"; validation_failed: "field" };

type FieldsOf<C> = C extends keyof Details ? Required<Pick<ApiError, Details[C]>> : unknown;

/** The base of all errors of this package but cancellation, which throws the reason of the signal, as `fetch` does. */
export abstract class SvcError extends Error {
  /** The kind of error, for a `switch`. */
  abstract readonly kind: "api" | "transport" | "unexpected_response" | "invalid_argument" | "tokens_not_stored" | "verify";
  /** How many attempts the client made. */
  attempts = 0;
  /** The HTTP status of the response, if one arrived. */
  declare readonly status?: number;
  /** When the service accepts the next request, in milliseconds from the response, if the response says so. */
  declare readonly retryAfterMs?: number;
  /** The id by which the operator of the service finds the request in the log, if the response has one. */
  declare readonly requestId?: string;

  /** @internal */
  constructor(message: string, { cause, ...fields }: ErrorOptions & { [name: string]: unknown } = {}) {
    super(message, cause === undefined ? {} : { cause });
    Object.assign(this, fields);
  }

  /** Whether the same request may succeed later: the service is busy or not reached. */
  get isTransient(): boolean {
    const { kind, status = 0, code } = this as { kind: string; status?: number; code?: string };
    return kind === "transport" || [429, 502, 503, 504].includes(status) || code === "idempotency_in_progress";
  }
}

/** A failure that the service reports: it refused the request, or failed, and said why. */
export class ApiError extends SvcError {
  readonly kind = "api";
  override name = "ApiError";
  declare readonly status: number;
  /** What failed, for programs, such as `email_taken`. {@link is} narrows the fields that come with it. */
  declare readonly code: ErrorCode | (string & {});
  /** The first failing field, if a field failed. */
  declare readonly field?: string;
  /** Every failing field, 100 at most. */
  declare readonly errors: readonly FieldError[];
  /** The id of the contact that has the email address, with the code `email_taken`. */
  declare readonly existingId?: string;
  /** The time of the service. @internal */
  declare readonly date?: string;

  /** Returns whether the failure has this code, and so the fields that come with it. */
  is<C extends ErrorCode>(code: C): this is ApiError & { readonly code: C } & FieldsOf<C> {
    return this.code === code;
  }
}

/** No response arrived. Unless it was not connected, the service may have done what was asked. */
export class TransportError extends SvcError {
  readonly kind = "transport";
  override name = "TransportError";
  /** What happened. Browsers do not say whether there was a connection: there it is always `connection_lost`. */
  declare readonly reason: "not_connected" | "timed_out" | "connection_lost";
}

/** A response that is not one of the API: an error page of a proxy, JSON of another form, or too much of it. */
export class UnexpectedResponseError extends SvcError {
  readonly kind = "unexpected_response";
  override name = "UnexpectedResponseError";
  declare readonly status: number;
  /** The first characters of the body, 200 at most. */
  declare readonly start: string;
}

/** The request cannot be sent, as an argument is not valid. */
export class InvalidArgumentError extends SvcError {
  readonly kind = "invalid_argument";
  override name = "InvalidArgumentError";
}

/** The service gave an app new tokens, and `store` failed. They are not used; the next call gets them again. */
export class TokensNotStoredError extends SvcError {
  readonly kind = "tokens_not_stored";
  override name = "TokensNotStoredError";
}

/** Throws unless an argument is valid. */
export function requireArgument(isValid: unknown, message: string): asserts isValid {
  if (!isValid) throw new InvalidArgumentError(message);
}
