# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The records of the extensions and their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import extension_types as types
from ._async_records import AsyncDeletable, AsyncRecords, AsyncWritable
from .types import NoFilter

if TYPE_CHECKING:
    from ._async_client import AsyncClient


class AsyncExtendedWebhooks(
    AsyncWritable[types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter],
    AsyncDeletable[types.WebhookSubscription, NoFilter],
):
    """The webhooks of the account."""


class AsyncEvents(
    AsyncRecords[types.Event, types.EventFilter],
):
    """The events of the account."""


class AsyncExtendedCollections:
    """A property for the records of each kind."""

    _client: AsyncClient

    @property
    def webhooks(self) -> AsyncExtendedWebhooks:
        """The webhooks of the account."""
        return AsyncExtendedWebhooks(self._client, "webhooks", types.WebhookSubscription, types.WebhookSubscriptionWithSecret)

    @property
    def events(self) -> AsyncEvents:
        """The events of the account."""
        return AsyncEvents(self._client, "events", types.Event)
