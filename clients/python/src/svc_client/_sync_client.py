# Written by generate.py from _async_client.py with unasync. Do not edit it.
"""The client and its collections. The client without `async` is made from this file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import httpx

from . import core, types
from .core import SyncStore, Env, NoFilter, Page, Response, RetryPolicy, Settings, SyncPage, SyncPosition, Tokens
from .errors import SvcError, TokensNotStored, TransportError

R = TypeVar("R")
N = TypeVar("N")
C = TypeVar("C")
U = TypeVar("U")
F = TypeVar("F")


class TokenSource:
    """The tokens of an app for one account, in place of an API key.

    When the service refuses the access token, the client gets another one, stores it by `store`, and sends the request
    once more. Calls at the same time wait for one refresh. When the account has ended the access, the call fails with the
    code `invalid_grant`: delete the tokens, and offer to connect again. Programs that share the tokens of a public app
    must share one source, as a refresh token that comes again later ends the access.
    """

    def __init__(self, client_id: str, tokens: Tokens, store: SyncStore, *, client_secret: str | None = None) -> None:
        """Begins with these tokens.

        `store` keeps new ones where the app finds them when it is started again. If it fails, they are not used.
        """
        self._form = {"grant_type": "refresh_token", "client_id": client_id}
        self._form |= {"client_secret": client_secret} if client_secret else {}
        self._tokens, self._store, self._lock = tokens, store, core.sync_lock()

    def access_token(self, transport: Transport, refused: str | None = None) -> str:
        """Returns the access token. If it is the one that the service refused, it is replaced first."""
        with self._lock:
            if self._tokens.access_token == refused:
                form = {**self._form, "refresh_token": self._tokens.refresh_token}
                request = httpx.Request("POST", f"{transport.settings.root}oauth/token", data=form)
                new = core.decode(transport.attempts(request, None), Tokens)
                core.bearer(new.access_token)
                new.refresh_token = new.refresh_token or self._tokens.refresh_token
                try:
                    self._store(new)
                except Exception as error:
                    raise TokensNotStored(f"the new tokens of the app could not be stored: {error}") from error
                self._tokens = new
            return self._tokens.access_token


class Transport:
    """What all calls of a client go through."""

    def __init__(self, settings: Settings, http: httpx.Client, credential: TokenSource | str) -> None:
        """Sends requests by a client of httpx, with a key or the tokens of an app."""
        self.settings, self.http, self.credential = settings, http, credential

    def call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None, key: str | None = None,
    ) -> Response:  # fmt: skip
        """Sends a request until it succeeds, or fails for good."""
        sent = {name: value for name, value in (headers or {}).items() if value is not None}
        if key is not None and not re.fullmatch("[ -~]{1,255}", key):
            raise ValueError(f"an idempotency key must have 1 to 255 printable ASCII characters, unlike {key!r}")
        sent |= {"Idempotency-Key": key or str(uuid4())} if method == "POST" else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        content = b"" if body is None else core.encode(core.text(body))
        pairs = {name: core.text(value) for name, value in (query or {}).items() if value is not None}
        url = httpx.URL(f"{self.settings.root}api/v1/{path}", params=pairs or None)
        request = httpx.Request(method, url, headers=sent, content=content)
        if isinstance(self.credential, str):
            return self.attempts(request, self.credential)
        token = self.credential.access_token(self)
        try:
            return self.attempts(request, token)
        except SvcError as error:
            if error.status != 401:
                raise
        return self.attempts(request, self.credential.access_token(self, token))

    def data(self, method: str, path: str, kind: type[R], body: Any = None) -> R:
        """Returns the record of a response that has no version."""
        return core.decode_data(self.call(method, path, body), kind)

    def pages(self, path: str, kind: type[R], query: Mapping[str, Any]) -> Iterator[Page[R]]:
        """Iterates over the pages of a list."""
        seen: set[str] = set()
        while True:
            response = self.call("GET", path, query=query)
            page = core.decode_page(response, kind)
            yield page
            if page.next_cursor is None:
                return
            if page.next_cursor in seen:
                raise core.unexpected(response, f"its next_cursor {page.next_cursor} was that of an earlier page")
            seen.add(page.next_cursor)
            query = {**query, "cursor": page.next_cursor}

    def attempts(self, request: httpx.Request, credential: str | None) -> Response:
        """Sends a request with this key or token, or without one, until it succeeds or fails for good."""
        steps = core.attempts(self.settings, request, credential)
        wait, sent = next(steps)
        try:
            while True:
                if wait is not None:
                    (self.settings.env.sleep or core.sync_sleep)(wait)
                wait, sent = steps.send(self._exchange(sent))
        except StopIteration as end:
            return cast(Response, end.value)

    def _exchange(self, request: httpx.Request) -> Response | TransportError:
        seconds = request.extensions["timeout"]["read"]
        end, body = time.monotonic() + seconds, bytearray()
        try:
            with core.sync_deadline(seconds):
                response = self.http.send(request, auth=None, follow_redirects=False, stream=True)
                try:
                    for chunk in response.iter_raw():
                        body += chunk
                        if len(body) > core.largest(response.status_code):
                            break
                        # Without async, each read has a time-out of its own.
                        if time.monotonic() > end:
                            return core.lost(TimeoutError())
                finally:
                    response.close()
        except (httpx.TransportError, TimeoutError) as error:
            return core.lost(error)
        return Response(response.status_code, response.headers, bytes(body))


class Records(Generic[R, F]):
    """The records of one kind, which can be read and listed."""

    def __init__(self, transport: Transport, path: str, kind: type[R], everything: F | None = None) -> None:
        """Has the path below the API, the type, and the filter with which the list has everything."""
        self._transport, self._path, self._kind, self._everything = transport, path, kind, everything

    def get(self, id: str) -> R:
        """Returns the record with this id, with its version in `etag`."""
        return core.with_etag(self._call("GET", id), self._kind)

    def get_if_changed(self, record: R | str, *, etag: str | None = None) -> R | None:
        """Returns the record if its version is another one, else None, which costs nothing of the rate limit.

        It takes a record, or an id with a stored version.
        """
        response = self._call("GET", record, etag, "If-None-Match")
        return None if response.status == 304 else core.with_etag(response, self._kind)

    def page(
        self, filter: F | None = None, *, limit: int | None = None, cursor: str | None = None,
        updated_since: datetime | str | None = None,
    ) -> Page[R]:  # fmt: skip
        """Returns one page of the list: the newest records first, or with `updated_since` the oldest changes first."""
        query = core.asked(filter, limit, cursor=cursor, updated_since=updated_since)
        return core.decode_page(self._transport.call("GET", self._path, query=query), self._kind)

    def list(
        self, filter: F | None = None, *, limit: int = 200, updated_since: datetime | str | None = None
    ) -> Iterator[R]:
        """Iterates over the records of all pages, each read when it is asked for. A page has `limit` records."""
        query = core.asked(filter, limit, updated_since=updated_since)
        for page in self._transport.pages(self._path, self._kind, query):
            for record in page.data:
                yield record

    def _call(
        self, method: str, record: Any, etag: str | None = None, header: str = "If-Match", body: Any = None
    ) -> Response:
        id, version = core.condition(record, etag)
        return self._transport.call(method, f"{self._path}/{id}", body, headers={header: version})


class Syncable(Records[R, F]):
    """Records that can be copied and kept in sync."""

    def sync(self, position: SyncPosition | None = None) -> Iterator[SyncPage[R]]:
        """Iterates over what changed since a position, page by page: everything, for an empty copy.

        Store each page with its position, in one transaction, before the next one is asked for. A program that is stopped
        goes on from the position that it stored, and misses nothing. A record replaces the one with its `id`; a deleted
        contact has `deleted_at`. The first record is the last one of the run before.
        """
        since = position["updated_at"] if position else core.EPOCH
        query = core.asked(self._everything, 200, updated_since=since)
        for page in self._transport.pages(self._path, self._kind, query):
            if page.data:
                last = cast(Any, page.data[-1]).updated_at
                yield SyncPage(page.data, {"updated_at": core.text(last)})


class Writable(Records[R, F], Generic[R, N, C, U, F]):
    """Records that can be created and changed."""

    def __init__(self, transport: Transport, path: str, kind: type[R], new: type[N], everything: F | None = None) -> None:
        """Has the type of a new record besides."""
        super().__init__(transport, path, kind, everything)
        self._new = new

    def create(self, new: C, *, idempotency_key: str | None = None) -> N:
        """Creates a record, once, however often the request is sent.

        With a key of yours, such as the id of an order, a repeat within 24 hours returns the same record, also after a
        restart of your program.
        """
        return core.with_etag(self._transport.call("POST", self._path, new, key=idempotency_key), self._new)

    def update(self, record: R | N | str, change: U, *, etag: str | None = None) -> R:
        """Changes a record if nobody else has changed it since it was read, else fails with PreconditionFailed.

        With its id, it is changed whatever its version is, unless `etag` is given. A field that is left out stays as it
        is; None clears it.
        """
        return core.with_etag(self._call("PATCH", record, etag, body=change), self._kind)


class Deletable(Records[R, F]):
    """Records that can be deleted."""

    def delete(self, record: R | str, *, etag: str | None = None) -> None:
        """Deletes a record if nobody else has changed it since it was read. With its id, whatever its version is."""
        self._call("DELETE", record, etag)


class Collection(Syncable[R, F], Writable[R, R, C, U, F], Generic[R, C, U, F]):
    """Bookings, quotes or jobs."""


class Contacts(Collection[R, C, U, F], Deletable[R, F], Generic[R, C, U, F]):
    """The contacts of the account."""


class Webhooks(Writable[R, N, C, U, F], Deletable[R, F], Generic[R, N, C, U, F]):
    """The webhook subscriptions of the account, or of the app."""


class Client:
    """A client for one API key, or one access of an app, and so for one account. Close it, or use it in a `with` block.

    A call that is cancelled ends at once. Whether the service did what was asked is then not known, as after a lost
    connection: create with an idempotency key of yours what you may have to repeat.
    """

    contacts: Contacts[types.Contact, types.ContactCreate, types.ContactUpdate, types.ContactFilter]
    """The contacts."""
    invoices: Syncable[types.Invoice, types.InvoiceFilter]
    """The invoices, which the API can only read."""
    bookings: Collection[types.Booking, types.BookingCreate, types.BookingUpdate, NoFilter]
    """The bookings."""
    quotes: Collection[types.Quote, types.QuoteCreate, types.QuoteUpdate, types.QuoteFilter]
    """The quotes."""
    jobs: Collection[types.Job, types.JobCreate, types.JobUpdate, types.JobFilter]
    """The jobs."""
    webhooks: Webhooks[
        types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter
    ]
    """The webhook subscriptions. A new one has its `secret`, which is not shown again."""

    def __init__(
        self, url: str, key: str | None = None, *, tokens: TokenSource | None = None, signing_secret: str | None = None,
        timeout: float = 30, connect_timeout: float = 5, retry: RetryPolicy = RetryPolicy(),  # noqa: B008
        http: httpx.Client | None = None, env: Env = Env(),  # noqa: B008
    ) -> None:  # fmt: skip
        """Takes the URL of the service, such as `https://svc.example.com`, and a key, or the tokens of an app.

        A key that was created with `--signed` has a `signing_secret`. `timeout` is the longest time for one attempt in
        seconds, and `connect_timeout` that for a connection; `retry` bounds all attempts of a call. `http` is a client of
        httpx with settings of yours, such as a proxy or other certificates, which you close yourself.
        """
        if (key is None) == (tokens is None) or (tokens and signing_secret):
            raise ValueError("pass a key, with its signing secret if it has one, or the tokens of an app")
        core.bearer(key or "tokens")
        signer = core.Signer(signing_secret, env.now) if signing_secret else None
        settings = Settings(core.base_url(url), signer, timeout, connect_timeout, retry, env)
        self._own = None if http else httpx.Client()
        self._use(Transport(settings, http or cast(httpx.Client, self._own), tokens or cast(str, key)))

    def _use(self, transport: Transport) -> None:
        self.transport = transport
        self.contacts = Contacts(transport, "contacts", types.Contact, types.Contact, {"include_deleted": True})
        self.invoices = Syncable(transport, "invoices", types.Invoice)
        self.bookings = Collection(transport, "bookings", types.Booking, types.Booking)
        self.quotes = Collection(transport, "quotes", types.Quote, types.Quote)
        self.jobs = Collection(transport, "jobs", types.Job, types.Job)
        kinds = types.WebhookSubscription, types.WebhookSubscriptionWithSecret
        self.webhooks = Webhooks(transport, "webhooks", *kinds)

    def with_options(self, *, timeout: float | None = None, retry: RetryPolicy | None = None) -> Client:
        """Returns this client with other deadlines. Both share their connections."""
        other, settings = copy(self), self.transport.settings
        settings = replace(settings, timeout=timeout or settings.timeout, retry=retry or settings.retry)
        other._use(Transport(settings, self.transport.http, self.transport.credential))
        return other

    def ping(self) -> types.Ping:
        """Checks the key and the connection."""
        return core.decode(self.transport.call("GET", "ping"), types.Ping)

    def close(self) -> None:
        """Closes the connections."""
        if self._own:
            self._own.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
