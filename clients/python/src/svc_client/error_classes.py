# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""A class for each code of an error."""

from __future__ import annotations

from .errors import ApiError


class InvalidJson(ApiError):
    """The body is not one JSON object in UTF-8, or nests deeper than 32 levels. The code is `invalid_json`."""


class ValidationFailed(ApiError):
    """Fields of the body, query, path or headers are not valid; `errors` lists them. The code is `validation_failed`."""


class UnknownParameter(ApiError):
    """The operation has no query parameter of this name. The code is `unknown_parameter`."""


class InvalidCursor(ApiError):
    """The cursor was not returned by this list with these filters. The code is `invalid_cursor`."""


class EmptyPatch(ApiError):
    """The PATCH has no field. The code is `empty_patch`."""


class ReferenceNotFound(ApiError):
    """The `contact_id` is not a contact of this account, or the contact is deleted. The code is `reference_not_found`."""


class IdempotencyKeyReused(ApiError):
    """The `Idempotency-Key` was used with another request. The code is `idempotency_key_reused`."""


class MissingCredentials(ApiError):
    """The request has no `Authorization: Bearer` header. The code is `missing_credentials`."""


class InvalidKey(ApiError):
    """The API key is malformed or unknown, or the header is repeated. The code is `invalid_key`."""


class KeyRevoked(ApiError):
    """The API key was revoked. The code is `key_revoked`."""


class KeyExpired(ApiError):
    """The API key has expired. The code is `key_expired`."""


class SignatureRequired(ApiError):
    """The API key requires signed writes, and a signature header is missing. The code is `signature_required`."""


class SignatureInvalid(ApiError):
    """The request signature is wrong, stale or malformed. The code is `signature_invalid`."""


class SignatureReused(ApiError):
    """The request signature was used before. The code is `signature_reused`."""


class InsufficientScope(ApiError):
    """The API key lacks the `write` scope. The code is `insufficient_scope`."""


class AccessNotApproved(ApiError):
    """Developer access of the account is pending or suspended. The code is `access_not_approved`."""


class NotFound(ApiError):
    """The account has no record with this id. The code is `not_found`."""


class RouteNotFound(ApiError):
    """No operation has this path. The code is `route_not_found`."""


class MethodNotAllowed(ApiError):
    """The path does not have this method; `Allow` lists those that it has. The code is `method_not_allowed`."""


class BodyIncomplete(ApiError):
    """The body did not arrive in full, or not in time. The code is `body_incomplete`."""


class EmailTaken(ApiError):
    """Another contact that is not deleted has the email address. The code is `email_taken`."""


class LimitReached(ApiError):
    """The account has as many webhook subscriptions as it can have. The code is `limit_reached`."""


class IdempotencyInProgress(ApiError):
    """The first request with this `Idempotency-Key` is still running. The code is `idempotency_in_progress`."""


class NotAllowed(ApiError):
    """The state of the record does not allow this step, such as a replay to a disabled webhook. The code is `not_allowed`."""


class PreconditionFailed(ApiError):
    """The record has none of the ETags in `If-Match`. The code is `precondition_failed`."""


class BodyTooLarge(ApiError):
    """The body is larger than 1 MiB. The code is `body_too_large`."""


class UriTooLong(ApiError):
    """The request target is longer than 8 KiB. The code is `uri_too_long`."""


class UnsupportedMediaType(ApiError):
    """The body is not sent as JSON, or has a `Content-Encoding`. The code is `unsupported_media_type`."""


class RateLimited(ApiError):
    """A rate limit is used up. The code is `rate_limited`."""


class HeadersTooLarge(ApiError):
    """All headers together are larger than 16 KiB. The code is `headers_too_large`."""


class InternalError(ApiError):
    """The service failed. The code is `internal_error`."""


class Unavailable(ApiError):
    """The service is not available right now. The code is `unavailable`."""


BY_CODE: dict[str | None, type[ApiError]] = {
    "invalid_json": InvalidJson,
    "validation_failed": ValidationFailed,
    "unknown_parameter": UnknownParameter,
    "invalid_cursor": InvalidCursor,
    "empty_patch": EmptyPatch,
    "reference_not_found": ReferenceNotFound,
    "idempotency_key_reused": IdempotencyKeyReused,
    "missing_credentials": MissingCredentials,
    "invalid_key": InvalidKey,
    "key_revoked": KeyRevoked,
    "key_expired": KeyExpired,
    "signature_required": SignatureRequired,
    "signature_invalid": SignatureInvalid,
    "signature_reused": SignatureReused,
    "insufficient_scope": InsufficientScope,
    "access_not_approved": AccessNotApproved,
    "not_found": NotFound,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "body_incomplete": BodyIncomplete,
    "email_taken": EmailTaken,
    "limit_reached": LimitReached,
    "idempotency_in_progress": IdempotencyInProgress,
    "not_allowed": NotAllowed,
    "precondition_failed": PreconditionFailed,
    "body_too_large": BodyTooLarge,
    "uri_too_long": UriTooLong,
    "unsupported_media_type": UnsupportedMediaType,
    "rate_limited": RateLimited,
    "headers_too_large": HeadersTooLarge,
    "internal_error": InternalError,
    "unavailable": Unavailable,
}
