//! Operations of a service with `--extensions on` beyond the contract: read events and deliveries, and send them again. On another
//! service these calls fail with `not_found`.

use futures_util::stream::{self, Stream, TryStreamExt as _};
use svc_core::operation::Listing;
use svc_core::pages::{Limit, MAX_LIMIT, Since};
use svc_core::platform::{
    Delivery, DeliveryAttemptListParams, DeliveryDetails, Event, EventListFilter, EventOrder, LogParams, Replay,
    ReplaySelection, WebhookDeliveryListFilter, operations,
};
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId};
use svc_core::webhooks::replays::ReplayId;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use crate::client::Client;
use crate::collection::Collection;
use crate::error::Result;
use crate::list::walk;
use crate::sync::{SyncPage, SyncPosition};

impl Client {
    /// Returns the events, which can be listed and read.
    pub fn events(&self) -> Collection<Event> {
        Collection::new(self.clone())
    }

    /// Reads the events since a position, the oldest first, page by page: all that the service keeps, from the default
    /// position. The stream ends when there are no more; ask again later from the last position. It is a full alternative to
    /// receiving webhooks.
    ///
    /// # Exactness
    ///
    /// Store each page before you ask for the next one, in one transaction with its position. A program that stops in between,
    /// for whatever reason, goes on from the position that it stored: no event is returned twice, and none is missed, as long
    /// as the program asks again before the retention of the service has passed, 30 days by default.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt as _;
    /// use svc_client::prelude::*;
    ///
    /// # async fn example(client: Client, stored: SyncPosition) -> Result<(), Error> {
    /// # fn store(_: &[Event], _: SyncPosition) {}
    /// let mut pages = std::pin::pin!(client.sync_events(stored));
    /// while let Some(page) = pages.try_next().await? {
    ///     store(&page.records, page.position); // in one transaction
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync_events(&self, position: SyncPosition) -> impl Stream<Item = Result<SyncPage<Event>>> + Send + use<> {
        // The time of an event is unique in its account.
        let since = position.last().map_or(Timestamp::from_micros(0), Timestamp::next);
        let filter = EventListFilter {
            since: Some(Since(since)),
            order: Some(EventOrder::OldestFirst),
            ..EventListFilter::default()
        };
        self.events().list().filter(filter).pages().try_filter_map(async |page| {
            let last = page.data.last().map(|last| last.created_at);
            Ok(last.map(|last| SyncPage { records: page.data, position: SyncPosition::after(last) }))
        })
    }

    /// Returns the delivery with this id, with its event and the log of its newest attempts.
    /// [`delivery_attempts`](Self::delivery_attempts) reads all of them.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn delivery(&self, id: DeliveryId) -> Result<DeliveryDetails> {
        let operation = &operations::GET_DELIVERY;
        self.output(operation, &self.send(operation, Some(id.uuid()), &(), None).await?)
    }

    /// Reads the attempts at a delivery, the newest first. The stream ends after the first error.
    pub fn delivery_attempts(&self, id: DeliveryId) -> impl Stream<Item = Result<AttemptLog>> + Send + use<> {
        let client = self.clone();
        let pages = walk(None, move |cursor| {
            let client = client.clone();
            let params = DeliveryAttemptListParams { cursor: cursor.map(Into::into) };
            async move {
                let operation = &operations::LIST_DELIVERY_ATTEMPTS;
                client.output(operation, &client.send(operation, Some(id.uuid()), &params, None).await?)
            }
        });
        pages.map_ok(|page| stream::iter(page.data.into_iter().map(Ok))).try_flatten()
    }

    /// Sends a delivery again: its next attempt is due now, and all its retries are ahead.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` if its webhook subscription is disabled, paused or deleted, and any other [`Error`](crate::Error).
    pub async fn replay_delivery(&self, id: DeliveryId) -> Result<Delivery> {
        let operation = &operations::REPLAY_DELIVERY;
        self.output(operation, &self.send(operation, Some(id.uuid()), &(), None).await?)
    }

    /// Returns a bulk replay with its progress.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn bulk_replay(&self, id: ReplayId) -> Result<Replay> {
        let operation = &operations::GET_REPLAY;
        self.output(operation, &self.send(operation, Some(id.uuid()), &(), None).await?)
    }
}

impl Collection<WebhookSubscription> {
    /// Reads the deliveries to a subscription, the newest event first. The stream ends after the first error.
    pub fn deliveries(
        &self,
        id: SubscriptionId,
        filter: WebhookDeliveryListFilter,
    ) -> impl Stream<Item = Result<Delivery>> + Send + use<> {
        let webhooks = self.clone();
        let pages = walk(None, move |cursor| {
            let webhooks = webhooks.clone();
            let page = LogParams { limit: Limit::new(MAX_LIMIT), cursor: cursor.map(Into::into) };
            let query = Listing { page, filter };
            async move { webhooks.call(&operations::LIST_WEBHOOK_DELIVERIES, Some(id.uuid()), &query).await }
        });
        pages.map_ok(|page| stream::iter(page.data.into_iter().map(Ok))).try_flatten()
    }

    /// Sends the deliveries of a time span to a subscription again, in the background. [`Client::bulk_replay`] returns the
    /// progress.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` if the subscription is disabled or paused, and any other [`Error`](crate::Error).
    pub async fn replay(&self, id: SubscriptionId, selection: &ReplaySelection) -> Result<Replay> {
        self.call(&operations::REPLAY_WEBHOOK, Some(id.uuid()), selection).await
    }
}
