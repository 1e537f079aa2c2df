//! Secrets, tests and backlogs of webhook subscriptions.

use std::time::Duration;

use super::executor::Account;
use super::records::Records;
use crate::error::Error;
use crate::platform::operations;
use crate::values::EventKind;
use crate::webhooks::deliveries::Delivery;
use crate::webhooks::statistics::{self, Backlog};
use crate::webhooks::subscriptions::{self, SubscriptionId, WebhookSubscription};

/// Secrets, tests and backlogs.
impl Records<'_, WebhookSubscription> {
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
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.webhooks.rotate_secret", (tenant, id, overlap), async |tx, &(tenant, id, overlap)| {
                subscriptions::rotate_secret(tx, tenant, id, overlap).await
            })
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
        self.account.call_on(&operations::FINISH_WEBHOOK_ROTATION, id, ()).await
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
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.webhooks.send_test", (tenant, id, kind), async |tx, &(tenant, id, kind)| {
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
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.webhooks.backlog", (tenant, id), async |tx, &(tenant, id)| {
                statistics::backlog(tx, tenant, id).await
            })
            .await
    }
}
