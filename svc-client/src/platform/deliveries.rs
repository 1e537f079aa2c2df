//! Events and deliveries, and what the operator does with webhook subscriptions.

use std::time::Duration;

use futures_util::stream::{self, Stream, TryStreamExt as _};
use svc_core::pages::Since;
use svc_core::platform::{
    AnyObject, AttemptListParams, Delivery, DeliveryAttemptListParams, EmittableKind, EmittedEvent, Event, EventCreate,
    SampleEventCreate, SecretRotation, Statistics, TemporaryWebhookCreate, WebhookLifetime, WebhookTest, operations,
};
use svc_core::values::{EventKind, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use svc_core::webhooks::subscriptions::{
    StreamCreate, SubscriptionId, WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret,
};

use super::Platform;
use crate::collection::Collection;
use crate::error::Result;
use crate::etag::Versioned;
use crate::list::walk;

impl Collection<Event, Platform> {
    /// Writes an event of a record that the service does not store: of a stay or a cohort, or of a registered kind. All
    /// webhook subscriptions to its kind receive it.
    ///
    /// # Errors
    /// `validation_failed` for another kind or data that it does not allow, and any other [`Error`](crate::Error).
    pub async fn emit(&self, kind: EventKind, data: AnyObject) -> Result<EmittedEvent> {
        self.call(&operations::EMIT_EVENT, None, &EventCreate { kind: EmittableKind(kind), data }).await
    }

    /// Writes an event with the sample record of its kind, for receivers that are being developed. It changes no record.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub async fn emit_sample(&self, kind: EventKind) -> Result<EmittedEvent> {
        self.call(&operations::EMIT_SAMPLE_EVENT, None, &SampleEventCreate { kind }).await
    }
}

impl Collection<Delivery, Platform> {
    /// Sends a delivery again: its next attempt is due now, and all its retries are ahead.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` if its webhook subscription is disabled, paused or deleted, and any other
    /// [`Error`](crate::Error).
    pub async fn replay(&self, id: DeliveryId) -> Result<Delivery> {
        self.call(&operations::REPLAY_DELIVERY, Some(id.uuid()), &()).await
    }

    /// Reads the attempts at a delivery, the newest first. The stream ends after the first error.
    pub fn attempts(&self, id: DeliveryId) -> impl Stream<Item = Result<AttemptLog>> + Send + use<> {
        let deliveries = self.clone();
        let pages = walk(None, move |cursor| {
            let deliveries = deliveries.clone();
            let params = DeliveryAttemptListParams { cursor: cursor.map(Into::into) };
            async move { deliveries.call(&operations::LIST_DELIVERY_ATTEMPTS, Some(id.uuid()), &params).await }
        });
        pages.map_ok(|page| stream::iter(page.data.into_iter().map(Ok))).try_flatten()
    }
}

/// Operations that the API has as well, with `--extensions on`.
impl<C> Collection<WebhookSubscription, C> {
    /// Replaces the signing secret. The previous one signs beside it for the overlap: 24 hours, unless it is given. The
    /// response contains the new secret, which no other response does.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn rotate_secret(
        &self,
        id: SubscriptionId,
        overlap: Option<Duration>,
    ) -> Result<WebhookSubscriptionWithSecret> {
        let rotation = SecretRotation { overlap: overlap.map(Into::into) };
        self.call(&operations::ROTATE_WEBHOOK_SECRET, Some(id.uuid()), &rotation).await
    }

    /// Sends an event with the sample record of this kind, or of the first kind that the subscription is for, to this
    /// subscription alone.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` if the subscription is disabled or paused or is not for the kind, and any other
    /// [`Error`](crate::Error).
    pub async fn test(&self, id: SubscriptionId, kind: Option<EventKind>) -> Result<Delivery> {
        self.call(&operations::TEST_WEBHOOK, Some(id.uuid()), &WebhookTest { kind }).await
    }
}

impl Collection<WebhookSubscription, Platform> {
    /// Ends the overlap of a rotation at once: from the next attempt on, the new secret alone signs.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn finish_rotation(&self, id: SubscriptionId) -> Result<Versioned<WebhookSubscription>> {
        self.call_versioned(&operations::FINISH_WEBHOOK_ROTATION, Some(id.uuid()), &()).await
    }

    /// Creates a subscription that the service deletes after this time, unless it is [kept](Self::keep) for longer until
    /// then: for a receiver that runs for a while.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_temporary(
        &self,
        webhook: WebhookCreate,
        expires_in: Duration,
    ) -> Result<Versioned<WebhookSubscriptionWithSecret>> {
        let temporary = TemporaryWebhookCreate { webhook, expires_in: expires_in.into() };
        self.call_versioned(&operations::CREATE_TEMPORARY_WEBHOOK, None, &temporary).await
    }

    /// Creates a subscription whose events go to a broker, such as NATS, in place of deliveries.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_stream(&self, stream: &StreamCreate) -> Result<Versioned<WebhookSubscription>> {
        self.call_versioned(&operations::CREATE_STREAM_WEBHOOK, None, stream).await
    }

    /// Keeps a temporary subscription: the service deletes it this long after the request.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn keep(&self, id: SubscriptionId, expires_in: Duration) -> Result<Versioned<WebhookSubscription>> {
        let lifetime = WebhookLifetime { expires_in: expires_in.into() };
        self.call_versioned(&operations::KEEP_WEBHOOK, Some(id.uuid()), &lifetime).await
    }

    /// Reads the attempts at the deliveries of events at or after a time, those of the oldest event first, for statistics
    /// of any time span. The stream ends after the first error.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt as _;
    /// use svc_client::platform::prelude::*;
    /// use svc_client::svc_core::webhooks::statistics::Tally;
    ///
    /// # async fn example(account: AccountClient, webhook: WebhookSubscription, week_ago: Timestamp) -> Result<(), Error> {
    /// let mut tally = Tally::default();
    /// let mut attempts = std::pin::pin!(account.webhooks().attempts(webhook.id, week_ago));
    /// while let Some(attempt) = attempts.try_next().await? {
    ///     tally.add(&attempt);
    /// }
    /// println!("{:?} ms", tally.percentile(95));
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(
        &self,
        id: SubscriptionId,
        since: Timestamp,
    ) -> impl Stream<Item = Result<AttemptSummary>> + Send + use<> {
        let webhooks = self.clone();
        let pages = walk(None, move |cursor| {
            let webhooks = webhooks.clone();
            let params = AttemptListParams { since: Some(Since(since)), cursor: cursor.map(Into::into) };
            async move { webhooks.call(&operations::LIST_WEBHOOK_ATTEMPTS, Some(id.uuid()), &params).await }
        });
        pages.map_ok(|page| stream::iter(page.data.into_iter().map(Ok))).try_flatten()
    }

    /// Returns the attempts of the last 24 hours at this endpoint by hour, and how many of its deliveries are pending and
    /// held.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn statistics(&self, id: SubscriptionId) -> Result<Statistics> {
        self.call(&operations::GET_WEBHOOK_STATISTICS, Some(id.uuid()), &()).await
    }
}
