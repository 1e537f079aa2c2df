//! Events and the audit log of an account.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Account;
use crate::accounts::audit::{self, Entry};
use crate::error::{Error, StoreError};
use crate::values::{EventKind, Timestamp};
use crate::webhooks::deliveries::Delivery;
use crate::webhooks::events::{self, Event, EventId};

/// The events of a tenant.
#[derive(Clone, Copy)]
pub struct Events<'e> {
    account: Account<'e>,
}

impl<'e> Events<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Writes an event of a record that svc does not store, with its deliveries. Its kind is of a stay or a cohort, or one of
    /// the application's own, which is registered in [`Env::event_kinds`](crate::env::Env::event_kinds). `data` is the record:
    /// a JSON object of the schema of its kind, or with an `id` for a stay or a cohort.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such tenant; [`Error::Validation`] for the kind and the data.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.tenant(tenant);
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// assert_eq!(emitted.event.kind, EventKind::StayCreated);
    /// assert!(emitted.deliveries.is_empty(), "nobody has subscribed");
    /// # Ok(()) });
    /// ```
    pub async fn emit(self, kind: EventKind, data: impl Serialize) -> Result<EmittedEvent, Error> {
        let Account { runner, id: tenant } = self.account;
        let data = serde_json::value::to_raw_value(&data).map_err(|error| StoreError::Internal(error.to_string()))?;
        let emit = runner.write("service.event.emit", move |tx| {
            let data: Box<RawValue> = data.clone();
            Box::pin(async move {
                let (event, deliveries) = events::record_external(tx, tenant, kind, &data).await?;
                Ok(EmittedEvent { event, deliveries })
            })
        });
        emit.await
    }

    /// Returns the event with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the tenant has no such event, or it is older than events are kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.tenant(tenant);
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// let event = account.events().get(emitted.event.id).await?;
    /// assert_eq!(event.created_at, emitted.event.created_at);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: EventId) -> Result<Event, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("service.event.get", move |tx| {
                Box::pin(async move { tx.event(tenant, id).await?.ok_or(Error::NotFound) })
            })
            .await
    }

    /// Returns the events after this time, the oldest first and at most `limit`. The `created_at` of the last one is the `after`
    /// of the next call.
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
    /// # let account = svc.tenant(tenant);
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// let events = account.events().since(Timestamp::from_micros(0), 100).await?;
    /// assert_eq!(events.len(), 1);
    /// # Ok(()) });
    /// ```
    pub async fn since(self, after: Timestamp, limit: u32) -> Result<Vec<Event>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("service.event.since", move |tx| {
                Box::pin(async move { Ok(tx.events_after(tenant, after, limit).await?) })
            })
            .await
    }
}

/// An event and its deliveries, one for each subscription that it matches.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmittedEvent {
    /// The event.
    pub event: Event,
    /// Its deliveries.
    pub deliveries: Vec<Delivery>,
}

/// The audit log of a tenant: who changed what, and when.
#[derive(Clone, Copy)]
pub struct AuditLog<'e> {
    account: Account<'e>,
}

impl<'e> AuditLog<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the entries at or after this time, newest first and at most `limit`.
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
    /// let log = svc.tenant(tenant).audit_log().since(Timestamp::from_micros(0), 10).await?;
    /// assert_eq!((log[0].object_kind.as_str(), log[0].action.as_str()), ("tenant", "create"));
    /// # Ok(()) });
    /// ```
    pub async fn since(self, since: Timestamp, limit: u32) -> Result<Vec<Entry>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.read("service.audit_log.since", move |tx| Box::pin(audit::list(tx, tenant, since, limit))).await
    }
}
