//! Bulk replays of an account.

use super::Account;
use crate::error::Error;
use crate::webhooks::replays::{self, Replay, ReplayCreate, ReplayId};

/// The bulk replays of an account: time ranges of deliveries that are sent again.
#[derive(Clone, Copy)]
pub struct Replays<'e> {
    account: Account<'e>,
}

impl<'e> Replays<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Starts a bulk replay. The webhook sender carries it out.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the subscription is disabled or paused.
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
    /// let replay = account.replays().create(ReplayCreate::new(webhook.id, webhook.created_at)).await?;
    /// assert_eq!(replay.finished_at, None);
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: ReplayCreate) -> Result<Replay, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .write("svc.replays.create", (tenant, input), async |tx, (tenant, input)| {
                replays::create(tx, *tenant, input.clone()).await
            })
            .await
    }

    /// Returns the bulk replay that [`create`](Self::create) would start now, with how much it would go through, and starts
    /// none.
    ///
    /// # Errors
    /// As of [`create`](Self::create).
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
    /// let replay = account.replays().preview(ReplayCreate::new(webhook.id, webhook.created_at)).await?;
    /// assert_eq!(replay.total, 0);
    /// # Ok(()) });
    /// ```
    pub async fn preview(self, input: ReplayCreate) -> Result<Replay, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.replays.preview", (tenant, input), async |tx, (tenant, input)| {
                replays::preview(tx, *tenant, input.clone()).await
            })
            .await
    }

    /// Returns the replay with this id, and its progress.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such replay.
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
    /// let replay = account.replays().create(ReplayCreate::new(webhook.id, webhook.created_at)).await?;
    /// assert_eq!(account.replays().get(replay.id).await?, replay);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: ReplayId) -> Result<Replay, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.replays.get", (tenant, id), async |tx, &(tenant, id)| {
                tx.replay(tenant, id).await?.ok_or(Error::NotFound)
            })
            .await
    }

    /// Returns the newest replays, at most `limit`.
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
    /// let replay = account.replays().create(ReplayCreate::new(webhook.id, webhook.created_at)).await?;
    /// assert_eq!(account.replays().list(10).await?, [replay]);
    /// # Ok(()) });
    /// ```
    pub async fn list(self, limit: u32) -> Result<Vec<Replay>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.replays.list", (tenant, limit), async |tx, &(tenant, limit)| {
                Ok(tx.replays(tenant, limit).await?)
            })
            .await
    }
}
