"""One call without input and output: requests, signatures, retries and errors, for both clients. Internal."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import logging
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import count
from typing import Any, Generic, TypedDict, TypeVar, cast

import httpx
import msgspec

from .errors import CLASSES, ApiError, SvcError, TransportError, UnexpectedResponse
from .types import FieldError

VERSION = "0.1.0"
EPOCH = "1970-01-01T00:00:00.000000Z"
R = TypeVar("R")
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


@dataclass(frozen=True)
class Env:
    """The clock and the waits of a client, for tests."""

    now: Callable[[], float] = time.time
    """Returns the Unix time in seconds."""
    sleep: Callable[[float], Any] | None = None
    """Waits for so many seconds. That of an `AsyncClient` is a coroutine function."""


@dataclass
class Tokens:
    """The tokens of an app for one account. Store both."""

    access_token: str = field(repr=False)
    """The access token, `svc_oat_…`, which lasts an hour."""
    refresh_token: str = field(repr=False, default="")
    """The refresh token, `svc_ort_…`, which lasts 90 days after its last use."""


@dataclass
class Page(Generic[R]):
    """A page of a list."""

    data: list[R]
    """The records."""
    next_cursor: str | None
    """The position after this page, for `page`. None on the last one."""


class NoFilter(TypedDict):
    """The filters of a list that has none."""


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


@dataclass
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Data(Generic[R]):
    data: R


@dataclass
class Problem:
    error: str
    code: str | None = None
    error_description: str | None = None
    errors: list[FieldError] = field(default_factory=list[FieldError])
    field: str | None = None
    existing_id: str | None = None
    retry_after_ms: int | None = None


class Signer:
    """Signs requests, each with a time of its own, and corrects its clock by that of the service."""

    def __init__(self, secret: str, now: Callable[[], float]) -> None:
        self._secret, self._now, self._ahead, self._last, self._lock = secret.encode(), now, 0, 0, threading.Lock()

    def headers(self, method: str, target: bytes, body: bytes) -> dict[str, str]:
        with self._lock:
            self._last = max(round(self._now() * 1_000_000) + self._ahead, self._last + 1)
            timestamp = f"{self._last // 1_000_000}.{self._last % 1_000_000:06}"
        lines = [timestamp, method, target.decode(), hashlib.sha256(body).hexdigest()]
        signature = hmac.new(self._secret, "\n".join(lines).encode(), "sha256").hexdigest()
        return {"X-SVC-Timestamp": timestamp, "X-SVC-Signature": f"sha256={signature}"}

    def corrects(self, date: str) -> bool:
        """Whether the clock was wrong by a minute or more. It goes by this date of the service from now on."""
        at = http_date(date)
        if at is None or abs(ahead := round((at - self._now()) * 1_000_000)) < 60_000_000:
            return False
        with self._lock:
            self._ahead, self._last = ahead, 0
        return True


@dataclass(frozen=True)
class Settings:
    """What all calls of a client share."""

    root: str
    signer: Signer | None
    timeout: float
    connect_timeout: float
    retry: RetryPolicy
    env: Env


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
    if isinstance(record, str):
        return segment(record), etag
    if not (etag or record.etag):
        raise ValueError("records of lists and events have no version; get the record first, or pass its id")
    return segment(record.id), etag or record.etag


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
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a binary float, in which not every amount fits; pass a Decimal, such as Decimal('9.95')")
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
    except (msgspec.MsgspecError, RecursionError) as error:
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
    at = now + int(wait) if re.fullmatch("[0-9]{1,9}", wait) else http_date(wait)
    retry_after = None if at is None else max(at - now, 0)
    return dict(status=response.status, request_id=headers.get("x-request-id"), retry_after=retry_after, attempts=1)


def unexpected(response: Response, reason: str, now: float = 0) -> UnexpectedResponse:
    start = response.body[:800].decode(errors="replace")[:200]
    return UnexpectedResponse(reason, start=start, **about(response, now))


def failure(response: Response, now: float) -> SvcError:
    """Returns the error that a response reports."""
    try:
        problem = decode(response, Problem)
    except UnexpectedResponse as error:
        return unexpected(response, f"it is no error of the API: {error.message}", now)
    fields = about(response, now) | {name: getattr(problem, name) for name in ("code", "field", "errors", "existing_id")}
    if problem.error_description is not None:
        problem.error, fields["code"] = problem.error_description, problem.error
    if problem.retry_after_ms is not None:
        fields["retry_after"] = problem.retry_after_ms / 1000
    kinds = {re.sub("(?!^)([A-Z])", r"_\1", kind.__name__).lower(): kind for kind in CLASSES}
    return kinds.get(fields["code"], ApiError)(problem.error, **fields)


def lost(error: Exception) -> TransportError:
    """Returns the error of an attempt without a response."""
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return TransportError("no connection to the service", kind="not_connected")
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return TransportError("the service did not respond in time", kind="timed_out")
    return TransportError("the connection ended before the response did", kind="connection_lost")


def http_date(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None


sync_deadline: Callable[[float], AbstractContextManager[object]] = nullcontext
sync_lock, sync_sleep = threading.Lock, time.sleep
SyncStore = Callable[[Tokens], object]
AsyncStore = Callable[[Tokens], Awaitable[object]]


def async_deadline(seconds: float) -> AbstractContextManager[object]:
    # Programs without async need not load anyio, on which httpx waits.
    return cast("AbstractContextManager[object]", importlib.import_module("anyio").fail_after(seconds))


def async_lock() -> AbstractAsyncContextManager[object]:
    return cast("AbstractAsyncContextManager[object]", importlib.import_module("anyio").Lock())


def async_sleep(seconds: float) -> Awaitable[None]:
    return cast("Awaitable[None]", importlib.import_module("anyio").sleep(seconds))


def largest(status: int) -> int:
    """Returns the most bytes that are read of a response. A page of 200 records as large as they can be has fewer."""
    return 32 << 20 if status < 400 else 1 << 20


def attempts(
    settings: Settings, request: httpx.Request, credential: str | None
) -> Generator[tuple[float | None, httpx.Request], Response | TransportError, Response]:
    """Makes a call: yields a wait and the request of each attempt, and is sent what came of it."""
    policy, signer, wait, waited, begun = settings.retry, settings.signer, None, 0.0, time.monotonic()
    may_be_done = is_corrected = False
    # Without the query, which may contain an email address.
    name, method, body = f"{request.method} {request.url.path}", request.method, request.content
    for attempt in count(1):
        left = min(settings.timeout, max(policy.total - max(time.monotonic() - begun, waited), 0.001))
        headers = {**request.headers, "User-Agent": f"svc-client-python/{VERSION}", "Accept": "application/json"}
        headers |= {"Authorization": bearer(credential)} if credential else {}
        headers |= signer.headers(method, request.url.raw_path, body) if signer and method != "GET" else {}
        timeout = httpx.Timeout(left, connect=min(left, settings.connect_timeout)).as_dict()
        sent = httpx.Request(method, request.url, headers=headers, content=body, extensions={"timeout": timeout})
        outcome = yield wait, sent
        if isinstance(outcome, Response):
            # An earlier attempt deleted the record, and its response was lost.
            is_deleted = may_be_done and method == "DELETE" and outcome.status == 404
            if len(outcome.body) > largest(outcome.status):
                raise unexpected(outcome, f"it has more than {largest(outcome.status)} bytes")
            if 200 <= outcome.status < 300 or outcome.status == 304 or is_deleted:
                log.debug("%s: status %s after %s attempts", name, outcome.status, attempt)
                return outcome
        error = failure(outcome, settings.env.now()) if isinstance(outcome, Response) else outcome
        error.attempts, wait = attempt, None
        if signer and error.code == "signature_invalid" and not is_corrected:
            is_corrected = signer.corrects(cast(Response, outcome).headers.get("date", ""))
            if is_corrected:
                continue
        may_be_done |= error.status in (502, 503, 504) or getattr(error, "kind", "not_connected") != "not_connected"
        longest = min(policy.first_wait * 2.0 ** (attempt - 1), policy.longest_wait)
        wait = (error.retry_after or 0) + longest * random.random()
        spent = max(time.monotonic() - begun, waited)
        if attempt >= policy.attempts or not error.is_transient or spent + wait > policy.total:
            log.debug("%s failed after %s attempts: %s", name, attempt, error)
            raise error
        log.debug("%s is tried again in %.3f s: %s", name, wait, error)
        waited += wait
    raise AssertionError
