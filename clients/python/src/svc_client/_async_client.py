"""The client. The one without `async` is made from this file."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import httpx
from anyio import Lock, fail_after, sleep

from . import core, types
from ._async_collections import AsyncCollections
from .core import AsyncStore, Page, R, Response, RetryPolicy, Settings, SyncPage, Tokens
from .errors import SvcError, TokensNotStored, TransportError


class AsyncTokenSource:
    """The tokens of an app for one account, in place of an API key.

    When the service refuses the access token, the client gets another one, stores it by `store`, and sends the request
    once more. Calls at the same time wait for one refresh. When the account has ended the access, the call fails with the
    code `invalid_grant`: delete the tokens, and offer to connect again. Programs that share the tokens of a public app
    must share one source, as a refresh token that comes again later ends the access.
    """

    def __init__(self, client_id: str, tokens: Tokens, store: AsyncStore, *, client_secret: str | None = None) -> None:
        """Begins with these tokens.

        `store` keeps new ones where the app finds them when it is started again. If it fails, they are not used.
        """
        self._form = {"client_id": client_id} | ({"client_secret": client_secret} if client_secret else {})
        self._tokens, self._store, self._lock = tokens, store, Lock()

    async def access_token(self, client: AsyncClient, refused: str | None = None) -> str:
        """Returns the access token. If it is the one that the service refused, it is replaced first."""
        async with self._lock:
            if self._tokens.access_token == refused:
                form = {**self._form, "grant_type": "refresh_token", "refresh_token": self._tokens.refresh_token}
                request = httpx.Request("POST", f"{client.settings.root}oauth/token", data=form)
                found = core.decode(await client.attempts(request, None), core.NewTokens)
                core.bearer(found.access_token)
                new = Tokens(found.access_token, found.refresh_token or self._tokens.refresh_token)
                try:
                    await self._store(new)
                except Exception as error:
                    raise TokensNotStored(f"the new tokens of the app could not be stored: {error}") from error
                self._tokens = new
            return self._tokens.access_token


class AsyncClient(AsyncCollections):
    """A client for one API key, or one access of an app, and so for one account. Close it, or use it in a `with` block.

    A call that is cancelled ends at once. Whether the service did what was asked is then not known, as after a lost
    connection: create with an idempotency key of yours what you may have to repeat.
    """

    def __init__(
        self, url: str, key: str | None = None, *, tokens: AsyncTokenSource | None = None, signing_secret: str | None = None,
        timeout: float = 30, connect_timeout: float = 5, retry: RetryPolicy | None = None,
        http: httpx.AsyncClient | None = None, now: Callable[[], float] = time.time, sleep: Callable[[float], Any] = sleep,
    ) -> None:  # fmt: skip
        """Takes the URL of the service, such as `https://svc.example.com`, and a key, or the tokens of an app.

        A key that was created with `--signed` has a `signing_secret`. `timeout` is the longest time for one attempt in
        seconds, and `connect_timeout` that for a connection; `retry` bounds all attempts of a call. `http` is a client of
        httpx with settings of yours, such as a proxy or other certificates. `now` and `sleep` are for tests.
        """
        if (key is None) == (tokens is None) or (tokens and signing_secret):
            raise ValueError("pass a key, with its signing secret if it has one, or the tokens of an app")
        core.bearer("tokens" if key is None else key)
        signer, policy = core.Signer(signing_secret, now) if signing_secret else None, retry or RetryPolicy()
        self.settings = Settings(core.base_url(url), signer, timeout, connect_timeout, policy, now, sleep)
        self._credential, self._http = tokens or cast(str, key), http or httpx.AsyncClient()

    async def ping(self) -> types.Ping:
        """Checks the key and the connection."""
        return core.decode(await self.call("GET", "ping"), types.Ping)

    def with_options(self, *, timeout: float | None = None, retry: RetryPolicy | None = None) -> AsyncClient:
        """Returns this client with other deadlines. Both share their connections."""
        other, old = copy(self), self.settings
        other.settings = replace(old, timeout=timeout or old.timeout, retry=retry or old.retry)
        return other

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None, key: str | None = None,
    ) -> Response:  # fmt: skip
        """Sends a request to a path below the API until it succeeds, or fails for good. The methods of records use it."""
        sent = dict(headers or {})
        if key is not None and not re.fullmatch("[ -~]{1,255}", key):
            raise ValueError(f"an idempotency key must have 1 to 255 printable ASCII characters, unlike {key!r}")
        sent |= {"Idempotency-Key": key or str(uuid4())} if method == "POST" else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        content = b"" if body is None else core.encode(core.text(body))
        pairs = {name: core.text(value) for name, value in (query or {}).items() if value is not None}
        url = httpx.URL(f"{self.settings.root}api/v1/{path}", params=pairs or None)
        request, source = httpx.Request(method, url, headers=sent, content=content), self._credential
        if isinstance(source, str):
            return await self.attempts(request, source)
        token = await source.access_token(self)
        try:
            return await self.attempts(request, token)
        except SvcError as error:
            if error.status != 401:
                raise
        return await self.attempts(request, await source.access_token(self, token))

    async def pages(self, path: str, kind: type[R], query: Mapping[str, Any]) -> AsyncIterator[Page[R]]:
        """Iterates over the pages of a list."""
        seen = {query.get("cursor")}
        while True:
            response = await self.call("GET", path, query=query)
            page = core.decode_page(response, kind)
            yield page
            if page.next_cursor is None:
                return
            if page.next_cursor in seen:
                raise core.unexpected(response, f"its next_cursor {page.next_cursor} was that of an earlier page")
            seen.add(page.next_cursor)
            query = {**query, "cursor": page.next_cursor}

    async def items(self, path: str, kind: type[R], query: Mapping[str, Any]) -> AsyncIterator[R]:
        """Iterates over the records of a list."""
        async for page in self.pages(path, kind, query):
            for record in page.data:
                yield record

    async def synced(self, path: str, kind: type[R], query: Mapping[str, Any], time: str) -> AsyncIterator[SyncPage[R]]:
        """Iterates over the pages of a list, each with its position by this field."""
        async for page in self.pages(path, kind, query):
            if page.data:
                yield SyncPage(page.data, {"updated_at": core.text(getattr(page.data[-1], time))})

    async def attempts(self, request: httpx.Request, credential: str | None) -> Response:
        """Sends a request with this key or token, or without one, until it succeeds or fails for good."""
        steps = core.attempts(self.settings, request, credential)
        wait, sent = next(steps)
        try:
            while True:
                if wait is not None:
                    await self.settings.sleep(wait)
                wait, sent = steps.send(await self._exchange(sent))
        except StopIteration as end:
            return cast(Response, end.value)

    async def _exchange(self, request: httpx.Request) -> Response | TransportError:
        seconds = request.extensions["timeout"]["read"]
        end, body = time.monotonic() + seconds, bytearray()
        try:
            with fail_after(seconds):
                async with aclosing(await self._http.send(request, auth=None, follow_redirects=False, stream=True)) as response:
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > core.LARGEST:
                            break
                        # Without async, each read has a time-out of its own.
                        if time.monotonic() > end:
                            raise TimeoutError
        except (httpx.RequestError, TimeoutError) as error:
            return core.lost(error)
        return Response(response.status_code, response.headers, bytes(body))
