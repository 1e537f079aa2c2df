"""A client of the SVC API: contacts, invoices, quotes, bookings, jobs and webhook subscriptions of an account.

`Client` is for programs without async, and `AsyncClient` for those with it, on asyncio or trio. Both do the same: they try
again when the service is busy or a response is lost, without a second record; they iterate over lists, keep copies exact,
and send the version of a record with its change. `svc_client.types` has the records and inputs, `svc_client.webhooks` the
verification of deliveries, and `svc_client.extensions` what a service with `--extensions on` has besides.

The logger `svc_client` tells of each call at the level DEBUG, without keys, bodies and queries.
"""

from . import error_classes, types
from ._async_client import AsyncClient, AsyncTokenSource
from ._async_collections import AsyncBookings, AsyncContacts, AsyncInvoices, AsyncJobs, AsyncQuotes, AsyncWebhooks
from ._sync_client import Client, TokenSource
from ._sync_collections import Bookings, Contacts, Invoices, Jobs, Quotes, Webhooks
from .core import Page, RetryPolicy, SyncPage, SyncPosition, Tokens
from .errors import ApiError, SvcError, TokensNotStored, TransportError, UnexpectedResponse

__all__ = ["ApiError", "AsyncBookings", "AsyncClient", "AsyncContacts", "AsyncInvoices", "AsyncJobs", "AsyncQuotes",
    "AsyncTokenSource", "AsyncWebhooks", "Bookings", "Client", "Contacts", "Invoices", "Jobs", "Page", "Quotes",
    "RetryPolicy", "SvcError", "SyncPage", "SyncPosition", "TokenSource", "Tokens", "TokensNotStored",
    "TransportError", "UnexpectedResponse", "Webhooks", "error_classes", "types"]  # fmt: skip
