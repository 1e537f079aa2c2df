//! Webhook subscriptions of an account.

use std::time::Duration;

use futures_util::stream::BoxStream;

use super::Account;
use super::executor::operation;
use super::records::Records;
use crate::error::Error;
use crate::pages::{ListParams, Page};
use crate::resources::NoFilter;
use crate::values::{EventKind, Timestamp};
use crate::webhooks::deliveries::Delivery;
use crate::webhooks::statistics::{self, Backlog};
use crate::webhooks::subscriptions::{self, SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

/// The webhook subscriptions of an account: the endpoints that receive its events.
#[derive(Clone, Copy)]
pub struct Webhooks<'e> {
    records: Records<'e, WebhookSubscription>,
}

impl<'e> Webhooks<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { records: Records::new(account.runner, account.id) }
    }

    /// Creates a subscription. The result has the secret that signs its deliveries.
    ///
    /// # Errors
    /// [`Error::Validation`] for a URL that is not `https` or whose host is not public; [`Error::LimitReached`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// assert!(webhook.secret.reveal().starts_with("whsec_"));
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: WebhookCreate) -> Result<WebhookSubscription, Error> {
        self.records.create(operation!("svc.webhooks.create"), input).await
    }

    /// Returns the webhook with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such webhook, or it is deleted.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// assert_eq!(svc.account(tenant).webhooks().get(webhook.id).await?, webhook);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: SubscriptionId) -> Result<WebhookSubscription, Error> {
        self.records.get(operation!("svc.webhooks.get"), id).await
    }

    /// Returns a page of the webhook subscriptions, newest first, or in the order of their changes with `updated_since`.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned by this list with these filters.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let page = svc.account(tenant).webhooks().list(ListParams::default()).await?;
    /// assert_eq!((page.data, page.next_cursor), (vec![webhook], None));
    /// # Ok(()) });
    /// ```
    pub async fn list(self, params: ListParams) -> Result<Page<WebhookSubscription>, Error> {
        self.records.list(operation!("svc.webhooks.list"), NoFilter {}, params).await
    }

    /// Streams the webhook subscriptions, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
    /// is bounded however many there are. What is created after the stream began is not part of it.
    ///
    /// Use [`StreamExt`](futures_util::StreamExt) or [`TryStreamExt`](futures_util::TryStreamExt) of the crate
    /// `futures-util` to take its items.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let mut all = svc.account(tenant).webhooks().stream();
    /// while let Some(webhook) = all.try_next().await? {
    ///     println!("{}", webhook.id);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream(self) -> BoxStream<'e, Result<WebhookSubscription, Error>> {
        self.records.stream(operation!("svc.webhooks.list"), NoFilter {}, None)
    }

    /// Streams the webhook subscriptions that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// webhook that changes while the stream runs comes again.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let since = webhook.updated_at;
    /// let changed: Vec<_> = svc.account(tenant).webhooks().changed_since(since).try_collect().await?;
    /// assert_eq!(changed, [webhook]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, since: Timestamp) -> BoxStream<'e, Result<WebhookSubscription, Error>> {
        self.records.stream(operation!("svc.webhooks.list"), NoFilter {}, Some(since))
    }

    /// Changes the subscription. Disabling it holds its pending deliveries.
    ///
    /// # Errors
    /// [`Error::NotFound`], and the errors of the rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let change = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
    /// let webhook = svc.account(tenant).webhooks().update(webhook.id, change).await?;
    /// assert!(!webhook.enabled);
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: SubscriptionId, change: WebhookUpdate) -> Result<WebhookSubscription, Error> {
        self.records.update(operation!("svc.webhooks.update"), id, change).await
    }

    /// Deletes the subscription. Its pending deliveries fail.
    ///
    /// # Errors
    /// [`Error::NotFound`], also if it is deleted already.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// svc.account(tenant).webhooks().delete(webhook.id).await?;
    /// assert_eq!(svc.account(tenant).webhooks().get(webhook.id).await, Err(Error::NotFound));
    /// # Ok(()) });
    /// ```
    pub async fn delete(self, id: SubscriptionId) -> Result<(), Error> {
        self.records.delete(operation!("svc.webhooks.delete"), id).await
    }

    /// Replaces the signing secret. The previous one keeps signing beside it for the length of `overlap`.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use std::time::Duration;
    ///
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let rotated = account.webhooks().rotate_secret(webhook.id, Duration::from_secs(24 * 60 * 60)).await?;
    /// assert_ne!(rotated.secret, webhook.secret);
    /// # Ok(()) });
    /// ```
    pub async fn rotate_secret(self, id: SubscriptionId, overlap: Duration) -> Result<WebhookSubscription, Error> {
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .write(
                operation!("svc.webhooks.rotate_secret", id),
                (tenant, id, overlap),
                async |tx, &(tenant, id, overlap)| subscriptions::rotate_secret(tx, tenant, id, overlap).await,
            )
            .await
    }

    /// Ends the overlap of a rotation: the new secret alone signs.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # use std::time::Duration;
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// account.webhooks().rotate_secret(webhook.id, Duration::from_secs(24 * 60 * 60)).await?;
    /// let finished = account.webhooks().finish_rotation(webhook.id).await?;
    /// assert_eq!(finished.previous_secret, None);
    /// # Ok(()) });
    /// ```
    pub async fn finish_rotation(self, id: SubscriptionId) -> Result<WebhookSubscription, Error> {
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .write(operation!("svc.webhooks.finish_rotation", id), (tenant, id), async |tx, &(tenant, id)| {
                subscriptions::finish_rotation(tx, tenant, id).await
            })
            .await
    }

    /// Sends a test event to this subscription alone, with sample data of a kind that it is for. Without a kind, the first of
    /// its own is taken.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the subscription is disabled or paused, or is not for the kind.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let delivery = account.webhooks().send_test(webhook.id, Some(EventKind::InvoicePaid)).await?;
    /// assert_eq!(delivery.subscription_id, webhook.id);
    /// # Ok(()) });
    /// ```
    pub async fn send_test(self, id: SubscriptionId, kind: Option<EventKind>) -> Result<Delivery, Error> {
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .write(operation!("svc.webhooks.send_test", id), (tenant, id, kind), async |tx, &(tenant, id, kind)| {
                subscriptions::send_test(tx, tenant, id, kind).await
            })
            .await
    }

    /// Returns how many deliveries of this subscription are pending, and how many are held.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let endpoint = "https://hooks.example.com/svc".parse()?;
    /// let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// account.webhooks().send_test(webhook.id, None).await?;
    /// assert_eq!(account.webhooks().backlog(webhook.id).await?.pending, 1);
    /// # Ok(()) });
    /// ```
    pub async fn backlog(self, id: SubscriptionId) -> Result<Backlog, Error> {
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .read(operation!("svc.webhooks.backlog", id), (tenant, id), async |tx, &(tenant, id)| {
                statistics::backlog(tx, tenant, id).await
            })
            .await
    }
}
