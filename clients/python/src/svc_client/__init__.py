"""A client of the SVC API: contacts, invoices, quotes, bookings, jobs and webhook subscriptions of an account.

`Client` is for programs without async, and `AsyncClient` for those with it, on asyncio or trio. Both do the same: they try
again when the service is busy or a response is lost, without a second record; they iterate over lists, keep copies exact,
and send the version of a record with its change. `svc_client.types` has the records and inputs, `svc_client.webhooks` the
verification of deliveries, and `svc_client.extensions` what a service with `--extensions on` has besides.

The logger `svc_client` tells of each call at the level DEBUG, without keys, bodies and queries.
"""

from . import types as types
from ._async_client import (
    AsyncClient, AsyncCollection, AsyncContacts, AsyncDeletable, AsyncRecords, AsyncSyncable, AsyncTokenSource, AsyncWebhooks,
    AsyncWritable,
)  # fmt: skip
from .core import Env, NoFilter, Page, RetryPolicy, SyncPage, SyncPosition, Tokens
from ._sync_client import Client, Collection, Contacts, Deletable, Records, Syncable, TokenSource, Webhooks, Writable
from .errors import (
    ApiError, EmailTaken, NotFound, PreconditionFailed, RateLimited, SvcError, TokensNotStored, TransportError,
    UnexpectedResponse, ValidationFailed,
)  # fmt: skip

__all__ = [
    "ApiError", "AsyncClient", "AsyncCollection", "AsyncContacts", "AsyncDeletable", "AsyncRecords", "AsyncSyncable",
    "AsyncTokenSource", "AsyncWebhooks", "AsyncWritable", "Client", "Collection", "Contacts", "Deletable", "EmailTaken", "Env",
    "NoFilter", "NotFound", "Page", "PreconditionFailed", "RateLimited", "Records", "RetryPolicy", "SvcError", "SyncPage",
    "SyncPosition", "Syncable", "TokenSource", "Tokens", "TokensNotStored", "TransportError", "UnexpectedResponse",
    "ValidationFailed", "Webhooks", "Writable", "types",
]  # fmt: skip
