//! Deliveries of events to the webhook subscriptions of an account.

use super::Account;
use crate::error::Error;
use crate::store::DeliveryFilter;
use crate::webhooks::deliveries::{self, AttemptLog, Delivery, DeliveryId, SearchResult};
use crate::webhooks::replays;
use crate::webhooks::statistics::{self, HourOfAttempts};
use crate::webhooks::subscriptions::SubscriptionId;

/// The number of attempts that [`Deliveries::attempts`] returns at most.
pub const MAX_ATTEMPTS: u32 = 50;

/// The deliveries of an account: its events, on their way to each subscription.
#[derive(Clone, Copy)]
pub struct Deliveries<'e> {
    account: Account<'e>,
}

impl<'e> Deliveries<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the attempts of the last 24 hours by hour, oldest first, at one endpoint or at all of them. The current hour is
    /// the last, and lacks the last ten seconds.
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
    /// let hours = svc.account(tenant).deliveries().attempts_by_hour(None).await?;
    /// assert_eq!((hours.len(), hours[23].tally.success_rate()), (24, None));
    /// # Ok(()) });
    /// ```
    pub async fn attempts_by_hour(self, to: Option<SubscriptionId>) -> Result<Vec<HourOfAttempts>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.deliveries.attempts_by_hour", (tenant, to), async |tx, &(tenant, to)| {
                statistics::attempts_by_hour(tx, tenant, to).await
            })
            .await
    }

    /// Returns the delivery with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such delivery.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let endpoint = "https://hooks.example.com/svc".parse()?;
    /// # let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let sent = account.webhooks().send_test(webhook.id, None).await?;
    /// assert_eq!(account.deliveries().get(sent.id).await?, sent);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: DeliveryId) -> Result<Delivery, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.deliveries.get", (tenant, id), async |tx, &(tenant, id)| {
                tx.delivery(tenant, id).await?.ok_or(Error::NotFound)
            })
            .await
    }

    /// Returns the deliveries that a filter selects, newest first. Set its `limit`; without one, all are returned.
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
    /// # let endpoint = "https://hooks.example.com/svc".parse()?;
    /// # let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let sent = account.webhooks().send_test(webhook.id, None).await?;
    /// let filter = DeliveryFilter { subscription_id: Some(webhook.id), limit: 50, ..DeliveryFilter::default() };
    /// assert_eq!(account.deliveries().list(filter).await?, [sent]);
    /// # Ok(()) });
    /// ```
    pub async fn list(self, filter: DeliveryFilter) -> Result<Vec<Delivery>, Error> {
        let Account { runner, id: tenant } = self.account;
        let list = runner.read("svc.deliveries.list", (tenant, filter), async |tx, (tenant, filter)| {
            Ok(tx.list_deliveries(*tenant, filter).await?)
        });
        list.await
    }

    /// Returns the newest deliveries that a filter selects, among the newest 10,000 that an index finds for it, so at a
    /// bounded cost. [`SearchResult::next_until`] is where the next search goes on.
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
    /// let filter = DeliveryFilter { kind: Some(EventKind::InvoicePaid), limit: 50, ..DeliveryFilter::default() };
    /// let found = svc.account(tenant).deliveries().search(filter).await?;
    /// assert!(found.deliveries.is_empty() && found.next_until.is_none());
    /// # Ok(()) });
    /// ```
    pub async fn search(self, filter: DeliveryFilter) -> Result<SearchResult, Error> {
        let Account { runner, id: tenant } = self.account;
        let search = runner.read("svc.deliveries.search", (tenant, filter), async |tx, (tenant, filter)| {
            deliveries::search(tx, *tenant, filter).await
        });
        search.await
    }

    /// Returns what was logged of the newest [`MAX_ATTEMPTS`] attempts at a delivery, in their order.
    /// [`attempts_before`](Self::attempts_before) returns earlier ones.
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
    /// # let endpoint = "https://hooks.example.com/svc".parse()?;
    /// # let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let sent = account.webhooks().send_test(webhook.id, None).await?;
    /// assert_eq!(account.deliveries().attempts(sent.id).await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn attempts(self, id: DeliveryId) -> Result<Vec<AttemptLog>, Error> {
        self.attempts_before(id, u32::MAX, MAX_ATTEMPTS).await
    }

    /// Returns what was logged of the attempts at a delivery whose numbers are below `before`, in their order: the newest of
    /// them, `limit` at most. Each may have 16 KiB of the endpoint's response.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn attempts_before(self, id: DeliveryId, before: u32, limit: u32) -> Result<Vec<AttemptLog>, Error> {
        let Account { runner, id: tenant } = self.account;
        let read = runner.on(id).read(
            "svc.deliveries.attempts",
            (tenant, id, before, limit),
            async |tx, &(tenant, id, before, limit)| {
                let mut attempts = tx.attempts(tenant, id, before, limit).await?;
                attempts.reverse();
                Ok(attempts)
            },
        );
        read.await
    }

    /// Sends a delivery again: it becomes due now, and has all its retries ahead.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if its subscription does not send, or an attempt is in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let endpoint = "https://hooks.example.com/svc".parse()?;
    /// # let webhook = account.webhooks().create(WebhookCreate::new(endpoint, EventSet::All)).await?;
    /// let sent = account.webhooks().send_test(webhook.id, None).await?;
    /// assert_eq!(account.deliveries().replay(sent.id).await?.id, sent.id);
    /// # Ok(()) });
    /// ```
    pub async fn replay(self, id: DeliveryId) -> Result<Delivery, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.deliveries.replay", (tenant, id), async |tx, &(tenant, id)| {
                replays::replay_delivery(tx, tenant, id).await
            })
            .await
    }
}
