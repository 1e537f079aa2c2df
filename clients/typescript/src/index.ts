/**
 * A client of the SVC API. {@link Client} is where to begin; webhooks and extensions are entries of their own.
 *
 * @module
 */
export { Client } from "./client.js";
export { List } from "./collection.js";
export type { Creatable, Deletable, KnownVersion, Page, Readable, Syncable, SyncPage, SyncPosition, Updatable, Versioned } from "./collection.js";
export { ApiError, InvalidArgumentError, SvcError, TokensNotStoredError, TransportError, UnexpectedResponseError } from "./errors.js";
export type { Filter, Schemas } from "./generated/collections.js";
export type { ErrorCode, FieldError } from "./generated/problems.js";
export type { AppCredentials, Tokens } from "./tokens.js";
export type { CallOptions, CallParts, ClientOptions, CreateOptions, Method, Query, RawResponse, RetryPolicy } from "./transport.js";
