"""The operations of records. Those without `async` are made from this file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import core
from .core import Page, R, Response, SyncPage, SyncPosition, Time

if TYPE_CHECKING:
    from ._async_client import AsyncClient

N = TypeVar("N")
C = TypeVar("C")
U = TypeVar("U")
F = TypeVar("F")


class AsyncRecords(Generic[R, F]):
    """The records of one kind, which can be read and listed."""

    def __init__(self, client: AsyncClient, path: str, kind: type[R], new: Any = None, everything: F | None = None) -> None:
        """Has the path below the API, the type, that of a new record, and the filter of a list with everything."""
        self._client, self._path, self._kind, self._everything = client, path, kind, everything
        self._new: Any = new or kind

    async def get(self, id: str) -> R:
        """Returns the record with this id, with its version in `etag`."""
        return core.with_etag(await self._call("GET", id), self._kind)

    async def get_if_changed(self, record: R | str, *, etag: str | None = None) -> R | None:
        """Returns the record if its version is another one, else None, which costs nothing of the rate limit.

        It takes a record, or an id with a stored version.
        """
        response = await self._call("GET", record, etag, "If-None-Match")
        return None if response.status == 304 else core.with_etag(response, self._kind)

    async def page(
        self, filter: F | None = None, *, limit: int | None = None, cursor: str | None = None, updated_since: Time = None
    ) -> Page[R]:
        """Returns one page of the list: the newest records first, or with `updated_since` the oldest changes first."""
        query = core.asked(filter, limit, cursor=cursor, updated_since=updated_since)
        return core.decode_page(await self._client.call("GET", self._path, query=query), self._kind)

    def list(self, filter: F | None = None, *, limit: int = 200, updated_since: Time = None) -> AsyncIterator[R]:
        """Iterates over the records of all pages, each read when it is asked for. A page has `limit` records."""
        return self._client.items(self._path, self._kind, core.asked(filter, limit, updated_since=updated_since))

    async def _call(
        self, method: str, record: Any, etag: str | None = None, header: str = "If-Match", body: Any = None
    ) -> Response:
        id, version = core.condition(record, etag)
        return await self._client.call(method, f"{self._path}/{id}", body, headers={header: version} if version else {})


class AsyncSyncable(AsyncRecords[R, F]):
    """Records that can be copied and kept in sync."""

    def sync(self, position: SyncPosition | None = None) -> AsyncIterator[SyncPage[R]]:
        """Iterates over what changed since a position, page by page: everything, for an empty copy.

        Store each page with its position, in one transaction, before the next one is asked for. A program that is stopped
        goes on from the position that it stored, and misses nothing. A record replaces the one with its `id`; a deleted
        contact has `deleted_at`. The first record is the last one of the run before.
        """
        since = position["updated_at"] if position else core.EPOCH
        query = core.asked(self._everything, 200, updated_since=since)
        return self._client.synced(self._path, self._kind, query, "updated_at")


class AsyncWritable(AsyncRecords[R, F], Generic[R, N, C, U, F]):
    """Records that can be created and changed."""

    async def create(self, new: C, *, idempotency_key: str | None = None) -> N:
        """Creates a record, once, however often the request is sent.

        With a key of yours, such as the id of an order, a repeat within 24 hours returns the same record, also after a
        restart of your program.
        """
        new_kind: type[N] = self._new
        return core.with_etag(await self._client.call("POST", self._path, new, key=idempotency_key), new_kind)

    async def update(self, record: R | N | str, change: U, *, etag: str | None = None) -> R:
        """Changes a record if nobody else has changed it since it was read, else fails with PreconditionFailed.

        With its id, it is changed whatever its version is, unless `etag` is given. A field that is left out stays as it
        is; None clears it.
        """
        return core.with_etag(await self._call("PATCH", record, etag, body=change), self._kind)


class AsyncDeletable(AsyncRecords[R, F]):
    """Records that can be deleted."""

    async def delete(self, record: R | str, *, etag: str | None = None) -> None:
        """Deletes a record if nobody else has changed it since it was read. With its id, whatever its version is."""
        await self._call("DELETE", record, etag)
