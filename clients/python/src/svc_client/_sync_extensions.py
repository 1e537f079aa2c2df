# Written by generate.py from _async_extensions.py with unasync. Do not edit it.
"""The extensions. Those without `async` are made from this file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from . import core
from . import extension_types as types
from ._sync_client import Client
from ._sync_extended_collections import ExtendedCollections
from .core import SyncPage, SyncPosition, segment


class Extensions(ExtendedCollections):
    """What a service with `--extensions on` has beyond the contract. On another one, its calls fail with NotFound."""

    def __init__(self, client: Client) -> None:
        """Shares the connections and settings of the client."""
        self._client = client

    def sync_events(self, position: SyncPosition | None = None) -> Iterator[SyncPage[types.Event]]:
        """Iterates over the events since a position, the oldest first, each exactly once: a full alternative to webhooks.

        Store each page with its position, in one transaction, before the next one is asked for. Ask again, from the last
        position, before the retention of the service has passed: 30 days by default.
        """
        last = position and datetime.fromisoformat(position["updated_at"].replace("Z", "+00:00"))
        # The time of an event is unique in its account.
        since = last + timedelta(microseconds=1) if last else core.EPOCH
        query = core.asked(None, 200, since=since, order="oldest_first")
        return self._client.synced("events", types.Event, query, "created_at")

    def deliveries(self, id: str, filter: types.WebhookDeliveryFilter | None = None) -> Iterator[types.Delivery]:
        """Iterates over the deliveries to a subscription, the newest event first."""
        return self._client.items(f"webhooks/{segment(id)}/deliveries", types.Delivery, core.asked(filter, 200))

    def delivery_attempts(self, id: str) -> Iterator[types.AttemptLog]:
        """Iterates over the attempts at a delivery, the newest first."""
        return self._client.items(f"deliveries/{segment(id)}/attempts", types.AttemptLog, {})

    def delivery(self, id: str) -> types.DeliveryDetails:
        """Returns a delivery with its event and the log of its newest attempts."""
        return core.decode_data(self._client.call("GET", f"deliveries/{segment(id)}"), types.DeliveryDetails)

    def replay_delivery(self, id: str) -> types.Delivery:
        """Sends a delivery again: its next attempt is due now, and all its retries are ahead."""
        return core.decode_data(self._client.call("POST", f"deliveries/{segment(id)}/replay"), types.Delivery)

    def replay(self, id: str, selection: types.ReplaySelection) -> types.Replay:
        """Sends deliveries of a time span to a subscription again, in the background."""
        return core.decode_data(self._client.call("POST", f"webhooks/{segment(id)}/replay", selection), types.Replay)

    def bulk_replay(self, id: str) -> types.Replay:
        """Returns a replay with its progress."""
        return core.decode_data(self._client.call("GET", f"replays/{segment(id)}"), types.Replay)

    def send_test(self, id: str, test: types.WebhookTest) -> types.Delivery:
        """Sends a test event to a subscription alone."""
        return core.decode_data(self._client.call("POST", f"webhooks/{segment(id)}/test", test), types.Delivery)

    def rotate_secret(self, id: str, rotation: types.SecretRotation) -> types.WebhookSubscriptionWithSecret:
        """Replaces the signing secret of a subscription. Both sign until the overlap ends."""
        response = self._client.call("POST", f"webhooks/{segment(id)}/rotate-secret", rotation)
        return core.decode_data(response, types.WebhookSubscriptionWithSecret)
