# Written by generate.py from _async_extended_collections.py with unasync. Do not edit it.
# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The records of the extensions and their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import extension_types as types
from ._sync_records import Deletable, Records, Writable
from .types import NoFilter

if TYPE_CHECKING:
    from ._sync_client import Client


class ExtendedWebhooks(
    Writable[types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter],
    Deletable[types.WebhookSubscription, NoFilter],
):
    """The webhooks of the account."""


class Events(
    Records[types.Event, types.EventFilter],
):
    """The events of the account."""


class ExtendedCollections:
    """A property for the records of each kind."""

    _client: Client

    @property
    def webhooks(self) -> ExtendedWebhooks:
        """The webhooks of the account."""
        return ExtendedWebhooks(self._client, "webhooks", types.WebhookSubscription, types.WebhookSubscriptionWithSecret)

    @property
    def events(self) -> Events:
        """The events of the account."""
        return Events(self._client, "events", types.Event)
