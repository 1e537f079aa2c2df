/**
 * A client of the SVC API. {@link Client} is where to begin; webhooks and extensions are entries of their own.
 *
 * @module
 */
export { Client, type Filter, type Schemas } from "./client.js";
export { List, type Creatable, type Deletable, type KnownVersion, type Page, type Readable, type Syncable, type SyncPage, type SyncPosition, type Updatable, type Versioned } from "./collection.js";
export { ApiError, InvalidArgumentError, SvcError, TokensNotStoredError, TransportError, UnexpectedResponseError, type ErrorCode, type FieldError } from "./errors.js";
export type { AppCredentials, CallOptions, CallParts, ClientOptions, CreateOptions, Method, Query, RawResponse, RetryPolicy, Tokens } from "./transport.js";
