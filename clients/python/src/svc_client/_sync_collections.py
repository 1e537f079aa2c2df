# Written by generate.py from _async_collections.py with unasync. Do not edit it.
# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The records of the API and their operations."""

from __future__ import annotations

from typing import Any, cast

from . import types
from ._sync_records import Deletable, Syncable, Writable
from .types import NoFilter


class Contacts(
    Syncable[types.Contact, types.ContactFilter],
    Writable[types.Contact, types.Contact, types.ContactCreate, types.ContactUpdate, types.ContactFilter],
    Deletable[types.Contact, types.ContactFilter],
):
    """The contacts of the account."""


class Invoices(
    Syncable[types.Invoice, types.InvoiceFilter],
):
    """The invoices of the account."""


class Bookings(
    Syncable[types.Booking, NoFilter],
    Writable[types.Booking, types.Booking, types.BookingCreate, types.BookingUpdate, NoFilter],
):
    """The bookings of the account."""


class Quotes(
    Syncable[types.Quote, types.QuoteFilter],
    Writable[types.Quote, types.Quote, types.QuoteCreate, types.QuoteUpdate, types.QuoteFilter],
):
    """The quotes of the account."""


class Jobs(
    Syncable[types.Job, types.JobFilter],
    Writable[types.Job, types.Job, types.JobCreate, types.JobUpdate, types.JobFilter],
):
    """The jobs of the account."""


class Webhooks(
    Writable[types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter],
    Deletable[types.WebhookSubscription, NoFilter],
):
    """The webhooks of the account."""


class Collections:
    """A property for the records of each kind."""

    @property
    def contacts(self) -> Contacts:
        """The contacts of the account."""
        return Contacts(cast(Any, self), "contacts", types.Contact, everything={"include_deleted": True})

    @property
    def invoices(self) -> Invoices:
        """The invoices of the account."""
        return Invoices(cast(Any, self), "invoices", types.Invoice)

    @property
    def bookings(self) -> Bookings:
        """The bookings of the account."""
        return Bookings(cast(Any, self), "bookings", types.Booking)

    @property
    def quotes(self) -> Quotes:
        """The quotes of the account."""
        return Quotes(cast(Any, self), "quotes", types.Quote)

    @property
    def jobs(self) -> Jobs:
        """The jobs of the account."""
        return Jobs(cast(Any, self), "jobs", types.Job)

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of the account."""
        return Webhooks(cast(Any, self), "webhooks", types.WebhookSubscription, types.WebhookSubscriptionWithSecret)
