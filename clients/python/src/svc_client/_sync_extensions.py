# Written by generate.py from _async_extensions.py with unasync. Do not edit it.
"""The extensions. Those without `async` are made from this file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from . import core
from . import extension_types as types
from .core import NoFilter, SyncPage, SyncPosition
from ._sync_client import Client, Records, Webhooks


class Extensions:
    """What a service with `--extensions on` has beyond the contract. On another one, its calls fail with NotFound."""

    events: Records[types.Event, types.EventFilter]
    """The events, which can be listed and read."""
    webhooks: Webhooks[
        types.WebhookSubscription, types.WebhookSubscriptionWithSecret, types.WebhookCreate, types.WebhookUpdate, NoFilter
    ]
    """The webhook subscriptions with all their options, such as filters, headers and public keys."""

    def __init__(self, client: Client) -> None:
        """Shares the connections and settings of the client."""
        self._transport = client.transport
        self.events = Records(self._transport, "events", types.Event)
        kinds = types.WebhookSubscription, types.WebhookSubscriptionWithSecret
        self.webhooks = Webhooks(self._transport, "webhooks", *kinds)

    def sync_events(self, position: SyncPosition | None = None) -> Iterator[SyncPage[types.Event]]:
        """Iterates over the events since a position, the oldest first, each exactly once: all that the service keeps, from
        none. It is a full alternative to webhooks.

        Store each page with its position, in one transaction, before the next one is asked for. Ask again, from the last
        position, before the retention of the service has passed: 30 days by default.
        """
        # The time of an event is unique in its account.
        last = position and datetime.fromisoformat(position["updated_at"].replace("Z", "+00:00"))
        since = last + timedelta(microseconds=1) if last else core.EPOCH
        query = core.asked(None, 200, since=since, order="oldest_first")
        for page in self._transport.pages("events", types.Event, query):
            if page.data:
                yield SyncPage(page.data, {"updated_at": core.text(page.data[-1].created_at)})

    def deliveries(
        self, webhook: str, filter: types.WebhookDeliveryFilter | None = None
    ) -> Iterator[types.Delivery]:
        """Iterates over the deliveries to a subscription, the newest event first."""
        path = f"webhooks/{core.segment(webhook)}/deliveries"
        for page in self._transport.pages(path, types.Delivery, core.asked(filter, 200)):
            for delivery in page.data:
                yield delivery

    def delivery(self, id: str) -> types.DeliveryDetails:
        """Returns a delivery with its event and the log of its newest attempts."""
        return self._transport.data("GET", f"deliveries/{core.segment(id)}", types.DeliveryDetails)

    def delivery_attempts(self, id: str) -> Iterator[types.AttemptLog]:
        """Iterates over the attempts at a delivery, the newest first."""
        for page in self._transport.pages(f"deliveries/{core.segment(id)}/attempts", types.AttemptLog, {}):
            for attempt in page.data:
                yield attempt

    def replay_delivery(self, id: str) -> types.Delivery:
        """Sends a delivery again: its next attempt is due now, and all its retries are ahead."""
        return self._transport.data("POST", f"deliveries/{core.segment(id)}/replay", types.Delivery)

    def replay(self, webhook: str, selection: types.ReplaySelection) -> types.Replay:
        """Sends deliveries of a time span to a subscription again, in the background."""
        return self._transport.data("POST", f"webhooks/{core.segment(webhook)}/replay", types.Replay, selection)

    def bulk_replay(self, id: str) -> types.Replay:
        """Returns a replay with its progress."""
        return self._transport.data("GET", f"replays/{core.segment(id)}", types.Replay)

    def send_test(self, webhook: str, test: types.WebhookTest) -> types.Delivery:
        """Sends a test event to a subscription alone."""
        return self._transport.data("POST", f"webhooks/{core.segment(webhook)}/test", types.Delivery, test)

    def rotate_secret(
        self, webhook: str, rotation: types.SecretRotation
    ) -> types.WebhookSubscriptionWithSecret:
        """Replaces the signing secret of a subscription. Both sign until the overlap ends."""
        kind = types.WebhookSubscriptionWithSecret
        return self._transport.data("POST", f"webhooks/{core.segment(webhook)}/rotate-secret", kind, rotation)
