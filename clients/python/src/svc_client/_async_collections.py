# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The records of the API and their operations."""

from __future__ import annotations

from typing import Any, cast

from . import types
from ._async_records import AsyncDeletable, AsyncSyncable, AsyncWritable
from .types import NoFilter


class AsyncContacts(
    AsyncSyncable[types.Contact, types.ContactFilter],
    AsyncWritable[types.Contact, types.Contact, types.ContactCreate, types.ContactUpdate, types.ContactFilter],
    AsyncDeletable[types.Contact, types.ContactFilter],
):
    """The contacts of the account."""


class AsyncInvoices(
    AsyncSyncable[types.Invoice, types.InvoiceFilter],
):
    """The invoices of the account."""


class AsyncBookings(
    AsyncSyncable[types.Booking, NoFilter],
    AsyncWritable[types.Booking, types.Booking, types.BookingCreate, types.BookingUpdate, NoFilter],
):
    """The bookings of the account."""


class AsyncQuotes(
    AsyncSyncable[types.Quote, types.QuoteFilter],
    AsyncWritable[types.Quote, types.Quote, types.QuoteCreate, types.QuoteUpdate, types.QuoteFilter],
):
    """The quotes of the account."""


class AsyncJobs(
    AsyncSyncable[types.Job, types.JobFilter],
    AsyncWritable[types.Job, types.Job, types.JobCreate, types.JobUpdate, types.JobFilter],
):
    """The jobs of the account."""


class AsyncWebhooks(
    AsyncWritable[types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter],
    AsyncDeletable[types.WebhookSubscription, NoFilter],
):
    """The webhooks of the account."""


class AsyncCollections:
    """A property for the records of each kind."""

    @property
    def contacts(self) -> AsyncContacts:
        """The contacts of the account."""
        return AsyncContacts(cast(Any, self), "contacts", types.Contact, everything={"include_deleted": True})

    @property
    def invoices(self) -> AsyncInvoices:
        """The invoices of the account."""
        return AsyncInvoices(cast(Any, self), "invoices", types.Invoice)

    @property
    def bookings(self) -> AsyncBookings:
        """The bookings of the account."""
        return AsyncBookings(cast(Any, self), "bookings", types.Booking)

    @property
    def quotes(self) -> AsyncQuotes:
        """The quotes of the account."""
        return AsyncQuotes(cast(Any, self), "quotes", types.Quote)

    @property
    def jobs(self) -> AsyncJobs:
        """The jobs of the account."""
        return AsyncJobs(cast(Any, self), "jobs", types.Job)

    @property
    def webhooks(self) -> AsyncWebhooks:
        """The webhooks of the account."""
        return AsyncWebhooks(cast(Any, self), "webhooks", types.WebhookSubscription, types.WebhookSubscriptionWithSecret)
