"""What a call can fail with. An argument that cannot be sent is a ValueError or a TypeError instead.

Each code of the API has a class of its own in `svc_client.error_classes`, such as `EmailTaken`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .types import ErrorCode, FieldError

OAuthCode = Literal["invalid_token", "invalid_grant", "invalid_client", "invalid_request", "unauthorized_client"]


class SvcError(Exception):
    """The base of all errors of a call."""

    status: int | None = None
    """The HTTP status of the response. None if no response arrived."""
    code: ErrorCode | OAuthCode | None = None
    """What failed, for programs, such as `email_taken`. Codes do not change. None if the service reported nothing."""
    request_id: str | None = None
    """The id by which the operator of the service finds the request in the log."""
    retry_after: float | None = None
    """When the next request is welcome, in seconds from the response, if the response says so."""
    attempts: int = 0
    """How many attempts the client made."""

    def __init__(self, message: str, **fields: Any) -> None:
        """Sets the fields of the error beside its message."""
        super().__init__(message)
        vars(self).update(fields)

    @property
    def message(self) -> str:
        """One English sentence that says what is wrong. It may be reworded."""
        return str(self.args[0])

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later: the service is busy or not reached."""
        is_lost, is_busy = isinstance(self, TransportError), self.status in (429, 502, 503, 504)
        return is_lost or is_busy or self.code == "idempotency_in_progress"


class ApiError(SvcError):
    """A failure that the service reports. Each code has a class of its own, such as `error_classes.EmailTaken`."""

    field: str | None = None
    """The first failing field, if a field failed."""
    errors: Sequence[FieldError] = ()
    """Every failing field, 100 at most."""
    existing_id: str | None = None
    """The id of the contact that has the email address, with the code `email_taken`."""

    def __str__(self) -> str:
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message} (status {self.status}, code {self.code}{request})"


class TransportError(SvcError):
    """No response arrived. Unless `kind` is `not_connected`, the service may have done what was asked."""

    kind: Literal["not_connected", "timed_out", "connection_lost"]
    """What happened: there was no connection, the time for an attempt was over, or the connection ended early."""


class UnexpectedResponse(SvcError):
    """A response arrived that is not one of the API: a page of a proxy, JSON of another form, or too much of it."""

    start: str
    """The first characters of the body."""


class TokensNotStored(SvcError):
    """The service gave an app new tokens, and the app could not store them. The next call gets them again."""
