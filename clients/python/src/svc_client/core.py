"""One call without input and output: requests, signatures, retries and errors, for both clients. Internal."""

from __future__ import annotations

import hashlib
import hmac
import logging
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import count
from typing import Any, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar, cast

import httpx
import msgspec

from .error_classes import BY_CODE
from .errors import ApiError, SvcError, TransportError, UnexpectedResponse
from .types import Problem

VERSION = "0.1.0"
# A page of 200 records, each as large as it can be, has fewer bytes.
LARGEST = 32 << 20
EPOCH = "1970-01-01T00:00:00.000000Z"
R = TypeVar("R")
AsyncStore: TypeAlias = "Callable[[Tokens], Awaitable[object]]"
SyncStore: TypeAlias = "Callable[[Tokens], object]"
# The wait and the request of each attempt, what came of it, and the response of the call.
Steps: TypeAlias = "Generator[tuple[float | None, httpx.Request], Response | TransportError, Response]"
Time: TypeAlias = "datetime | str | None"
log = logging.getLogger("svc_client")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and for how long a call is tried. Times are in seconds.

    A call is tried again when the service is busy, when no response arrives, and while the first attempt of a create is
    still running. The wait before attempt n + 1 is chosen at random between zero and `first_wait` × 2ⁿ⁻¹, at most
    `longest_wait`, and comes after a `Retry-After` of the service. A wait that would end after `total` is not begun.
    """

    attempts: int = 4
    """The greatest number of attempts. 1 means that nothing is repeated."""
    total: float = 90
    """The time for all attempts and the waits between them: more than the window of a rate limit."""
    first_wait: float = 0.25
    """The longest wait after the first attempt."""
    longest_wait: float = 10
    """The longest wait after any attempt without a `Retry-After`."""


@dataclass
class Tokens:
    """The tokens of an app for one account. Store both."""

    access_token: str = field(repr=False)
    """The access token, `svc_oat_…`, which lasts an hour."""
    refresh_token: str = field(repr=False, default="")
    """The refresh token, `svc_ort_…`, which lasts 90 days after its last use."""


@dataclass
class NewTokens:
    access_token: str
    refresh_token: str | None = None


@dataclass
class Page(Generic[R]):
    """A page of a list."""

    data: list[R]
    """The records."""
    next_cursor: str | None
    """The position after this page, for `page`. None on the last one."""


class SyncPosition(TypedDict):
    """How far a copy goes: a small JSON object, which belongs to one account and one collection."""

    updated_at: str
    """The `updated_at` of the last record in the copy, or the `created_at` of the last event."""


@dataclass
class SyncPage(Generic[R]):
    """Records to store in a copy, and how far it goes then. Store both in one transaction."""

    records: list[R]
    """Records that changed, the oldest change first. Each replaces the one that the copy has under its `id`."""
    position: SyncPosition
    """The position to go on from."""


class Response(NamedTuple):
    """A response. That of a call has a status of success, or 304."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Data(Generic[R]):
    data: R


class Signer:
    """Signs requests, each with a time of its own, and corrects its clock by that of the service."""

    def __init__(self, secret: str, now: Callable[[], float]) -> None:
        self._secret, self._now, self.ahead, self._last, self._lock = secret.encode(), now, 0, 0, threading.Lock()

    def headers(self, method: str, target: bytes, body: bytes) -> dict[str, str]:
        with self._lock:
            self._last = max(round(self._now() * 1_000_000) + self.ahead, self._last + 1)
            timestamp = f"{self._last // 1_000_000}.{self._last % 1_000_000:06}"
        lines = [timestamp, method, target.decode(), hashlib.sha256(body).hexdigest()]
        signature = hmac.new(self._secret, "\n".join(lines).encode(), "sha256").hexdigest()
        return {"X-SVC-Timestamp": timestamp, "X-SVC-Signature": f"sha256={signature}"}

    def corrects(self, date: str, used: int) -> bool:
        """Whether a clock `used` microseconds ahead was wrong by a minute or more. It goes by this date from now on."""
        at = http_date(date)
        if at is None or abs((ahead := round((at - self._now()) * 1_000_000)) - used) < 60_000_000:
            return False
        with self._lock:
            # Another call may have corrected it meanwhile.
            if abs(ahead - self.ahead) >= 60_000_000:
                self.ahead, self._last = ahead, 0
        return True


@dataclass(frozen=True)
class Settings:
    """What all calls of a client share."""

    root: str
    signer: Signer | None
    timeout: float
    connect_timeout: float
    retry: RetryPolicy
    now: Callable[[], float]
    sleep: Callable[[float], Any]


def base_url(url: str) -> str:
    """Returns the URL of the service with a slash at its end, without a query and a fragment."""
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise ValueError(f"the URL of the service must begin with https:// or http://, without a user name, not {url!r}")
    return str(parsed.copy_with(query=None, fragment=None)).rstrip("/") + "/"


def bearer(credential: str) -> str:
    if not re.fullmatch("[!-~]+", credential):
        raise ValueError("the key or token has characters that none has")
    return f"Bearer {credential}"


def segment(id: str) -> str:
    if not re.fullmatch("[0-9A-Za-z-]+", id):
        raise ValueError(f"{id!r} is no id of a record")
    return id


def condition(record: Any, etag: str | None) -> tuple[str, str | None]:
    """Returns the id of a record and the version that it must have."""
    id, version = (record, etag) if isinstance(record, str) else (record.id, etag or record.etag)
    if version is None and id is not record:
        raise ValueError("records of lists and events have no version; get the record first, or pass its id")
    return segment(id), version


def asked(filter: Any, limit: int | None, **others: Any) -> dict[str, Any]:
    """Returns the query of a list."""
    if limit is not None and not 1 <= limit <= 200:
        raise ValueError(f"the limit must be from 1 to 200, not {limit}")
    return {"limit": limit, **others, **(filter or {})}


def text(value: Any) -> Any:
    """Returns a value of a query or a body in the form that is sent."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"the time {value} has no offset from UTC; add one, such as tzinfo=timezone.utc")
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, float) or (isinstance(value, Decimal) and not value.is_finite()):
        raise TypeError(f"{value!r} is no exact amount; pass a Decimal, such as Decimal('9.95'), in place of a float")
    if isinstance(value, dict):
        return {name: text(item) for name, item in cast("dict[str, Any]", value).items()}
    return [text(item) for item in cast("Any", value)] if isinstance(value, list) else value


encode = msgspec.json.Encoder(decimal_format="number").encode


@cache
def decoder(kind: Any) -> Any:
    # Numbers of a record that has no type are exact as well.
    return msgspec.json.Decoder(kind, float_hook=Decimal)


def decode(response: Response, kind: type[R]) -> R:
    try:
        return cast(R, decoder(cast(Any, kind)).decode(response.body))
    except (msgspec.MsgspecError, RecursionError, ArithmeticError) as error:
        raise unexpected(response, str(error)) from None


def decode_page(response: Response, kind: type[R]) -> Page[R]:
    return decode(response, cast(Any, Page)[kind])


def decode_data(response: Response, kind: type[R]) -> R:
    return cast(R, decode(response, cast(Any, Data)[kind]).data)


def with_etag(response: Response, kind: type[R]) -> R:
    """Returns the record of a response with its version."""
    record, etag = decode_data(response, kind), response.headers.get("etag")
    if etag is None:
        raise unexpected(response, "it has no ETag")
    cast(Any, record).etag = etag
    return record


def about(response: Response, now: float) -> dict[str, Any]:
    """Returns the fields that the errors of responses have."""
    wait, headers = response.headers.get("retry-after", ""), response.headers
    at = http_date(wait)
    retry_after = float(wait) if re.fullmatch("[0-9]{1,18}", wait) else None if at is None else max(at - now, 0)
    return dict(status=response.status, request_id=headers.get("x-request-id"), retry_after=retry_after, attempts=1)


def unexpected(response: Response, reason: str, now: float | None = None) -> UnexpectedResponse:
    start = response.body[:800].decode(errors="replace")[:200]
    message = f"the response with status {response.status} is not one of the API: {reason}; it begins with {start!r}"
    return UnexpectedResponse(message, start=start, **about(response, time.time() if now is None else now))


def failure(response: Response, now: float) -> SvcError:
    """Returns the error that a response reports."""
    try:
        problem = decode(response, Problem)
    except UnexpectedResponse:
        return unexpected(response, "it is no error", now)
    fields = about(response, now) | dict(code=problem.code, field=problem.field, existing_id=problem.existing_id)
    if problem.error_description is not None:
        problem.error, fields["code"] = problem.error_description, problem.error
    if problem.retry_after_ms is not None:
        fields["retry_after"] = problem.retry_after_ms / 1000
    return BY_CODE.get(fields["code"], ApiError)(problem.error, errors=problem.errors or [], **fields)


def lost(error: Exception) -> TransportError:
    """Returns the error of an attempt without a response."""
    is_connected = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
    is_late = isinstance(error, (httpx.TimeoutException, TimeoutError))
    kind = "not_connected" if not is_connected else "timed_out" if is_late else "connection_lost"
    return TransportError("no response of the service: " + kind.replace("_", " "), kind=kind)


def http_date(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def attempts(settings: Settings, request: httpx.Request, credential: str | None) -> Steps:
    """Makes a call: yields a wait and the request of each attempt, and is sent what came of it."""
    policy, signer, wait, waited, begun = settings.retry, settings.signer, None, 0.0, time.monotonic()
    is_corrected = False
    # Without the query, which may contain an email address.
    name, method, body = f"{request.method} {request.url.path}", request.method, request.content
    for attempt in count(1):
        left = min(settings.timeout, max(policy.total - max(time.monotonic() - begun, waited), 0.001))
        headers = {**request.headers, "User-Agent": f"svc-client-python/{VERSION}", "Accept": "application/json"}
        headers |= {"Authorization": bearer(credential)} if credential else {}
        used = signer.ahead if signer else 0
        headers |= signer.headers(method, request.url.raw_path, body) if signer and method != "GET" else {}
        timeout = httpx.Timeout(left, connect=min(left, settings.connect_timeout)).as_dict()
        sent = httpx.Request(method, request.url, headers=headers, content=body, extensions={"timeout": timeout})
        outcome = yield wait, sent
        if isinstance(outcome, Response):
            # An earlier attempt deleted the record, and its response was lost.
            is_deleted = "may_be_done" in request.extensions and method == "DELETE" and outcome.status == 404
            if len(outcome.body) > LARGEST:
                raise unexpected(outcome, f"it has more than {LARGEST} bytes")
            if 200 <= outcome.status < 300 or outcome.status == 304 or is_deleted:
                log.debug("%s: status %s after %s attempts", name, outcome.status, attempt)
                return outcome
        error = failure(outcome, settings.now()) if isinstance(outcome, Response) else outcome
        error.attempts, wait = attempt, None
        date = outcome.headers.get("date", "") if isinstance(outcome, Response) else ""
        if signer and error.code == "signature_invalid" and not is_corrected and signer.corrects(date, used):
            is_corrected = True
            continue
        if error.status in (502, 503, 504) or getattr(error, "kind", "not_connected") != "not_connected":
            # The call may go on with new tokens.
            request.extensions["may_be_done"] = True
        longest = min(policy.first_wait * 2.0 ** (attempt - 1), policy.longest_wait)
        wait = (error.retry_after or 0) + longest * random.random()
        spent = max(time.monotonic() - begun, waited)
        if attempt >= policy.attempts or not error.is_transient or spent + wait > policy.total:
            raise error
        log.debug("%s is tried again in %.3f s: %s", name, wait, error)
        waited += wait
    raise AssertionError
