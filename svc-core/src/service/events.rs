//! Events and the audit log of an account.

use std::ops::Range;

use serde::Serialize;

use super::Account;
use crate::accounts::audit::{self, AuditEntry};
use crate::changes::{self, ChangeFilter, Changes};
use crate::error::{Error, StoreError};
use crate::store::EventFilter;
use crate::values::{EventKind, Timestamp};
use crate::webhooks::deliveries::Delivery;
use crate::webhooks::events::{self, Event, EventId};

/// The events of an account.
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
    /// [`Error::UnknownTenant`] if there is no such account; [`Error::Validation`] for the kind and the data.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// assert_eq!(emitted.event.kind, EventKind::StayCreated);
    /// assert!(emitted.deliveries.is_empty(), "nobody has subscribed");
    /// # Ok(()) });
    /// ```
    pub async fn emit(self, kind: EventKind, data: impl Serialize) -> Result<EmittedEvent, Error> {
        let Account { runner, id: tenant } = self.account;
        let data = serde_json::value::to_raw_value(&data).map_err(|error| StoreError::Internal(error.to_string()))?;
        let emit = runner.write("svc.events.emit", (tenant, kind, data), async |tx, (tenant, kind, data)| {
            let (event, deliveries) = events::record_external(tx, *tenant, *kind, data).await?;
            Ok(EmittedEvent { event, deliveries })
        });
        emit.await
    }

    /// Returns the event with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such event, or it is older than events are kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// let event = account.events().get(emitted.event.id).await?;
    /// assert_eq!(event.created_at, emitted.event.created_at);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: EventId) -> Result<Event, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.events.get", (tenant, id), async |tx, &(tenant, id)| {
                tx.event(tenant, id).await?.ok_or(Error::NotFound)
            })
            .await
    }

    /// Returns the events of a list of deliveries that are still there, in any order: one for each event, however many of its
    /// deliveries are listed.
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
    /// let deliveries = account.deliveries().list(DeliveryFilter::default()).await?;
    /// let events = account.events().of_deliveries(&deliveries).await?;
    /// assert!(events.is_empty(), "nothing has happened");
    /// # Ok(()) });
    /// ```
    pub async fn of_deliveries(self, deliveries: &[Delivery]) -> Result<Vec<Event>, Error> {
        let mut ids: Vec<EventId> = deliveries.iter().map(|delivery| delivery.event_id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let Account { runner, id: tenant } = self.account;
        let read = runner.read("svc.events.of_deliveries", (tenant, ids), async |tx, (tenant, ids)| {
            Ok(tx.events(*tenant, ids).await?)
        });
        read.await
    }

    /// Returns the newest events at or after this time, the newest first and at most `limit`; fewer when these have
    /// [`MAX_EVENT_BYTES`](crate::store::MAX_EVENT_BYTES) of data.
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
    /// let emitted = account.events().emit(EventKind::StayCreated, serde_json::json!({ "id": 7 })).await?;
    /// let newest = account.events().newest(Timestamp::from_micros(0), 1).await?;
    /// assert_eq!(newest[0].id, emitted.event.id);
    /// # Ok(()) });
    /// ```
    pub async fn newest(self, since: Timestamp, limit: u32) -> Result<Vec<Event>, Error> {
        self.newest_in(since..Timestamp::MAX, limit).await
    }

    /// Returns the newest events of a time span as [`newest`](Self::newest) does. The `created_at` of the last one is the end of
    /// the span of the next call, and there is no older event in the span when none is returned.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn newest_in(self, times: Range<Timestamp>, limit: u32) -> Result<Vec<Event>, Error> {
        let Account { runner, id: tenant } = self.account;
        let input = (tenant, EventFilter::newest(times, limit));
        let read = runner.read("svc.events.newest", input, async |tx, (tenant, newest)| {
            let events = tx.list_events(*tenant, newest).await?;
            Ok(events.into_iter().map(|with_actor| with_actor.event).collect())
        });
        read.await
    }

    /// Returns the events after this time, the oldest first and at most `limit`; fewer when these have
    /// [`MAX_EVENT_BYTES`](crate::store::MAX_EVENT_BYTES) of data. The `created_at` of the last one is the `after` of the next
    /// call, and there is no event after it when none is returned.
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
    /// let stay = serde_json::json!({ "id": 7, "room": "12" });
    /// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
    /// let events = account.events().since(Timestamp::from_micros(0), 100).await?;
    /// assert_eq!(events.len(), 1);
    /// # Ok(()) });
    /// ```
    pub async fn since(self, after: Timestamp, limit: u32) -> Result<Vec<Event>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.events.since", (tenant, after, limit), async |tx, &(tenant, after, limit)| {
                Ok(tx.events_after(tenant, after, limit).await?)
            })
            .await
    }
}

/// An event and its deliveries, one for each subscription that it matches.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct EmittedEvent {
    /// The event.
    pub event: Event,
    /// Its deliveries.
    pub deliveries: Vec<Delivery>,
}

/// The audit log of an account: who changed what, and when.
#[derive(Clone, Copy)]
pub struct AuditLog<'e> {
    account: Account<'e>,
}

impl<'e> AuditLog<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the newest changes that a filter selects, with the fields that they set.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::changes::ChangeFilter;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoices = svc.account(tenant).invoices();
    /// let invoice = invoices.create(InvoiceCreate::new("149.50".parse().unwrap())).await?;
    /// invoices.send(invoice.id).await?;
    /// let changes = svc.account(tenant).audit_log().changes(ChangeFilter::of(invoice.id.uuid()), 10).await?;
    /// let status = &changes.data[0].fields()[0];
    /// assert_eq!((status.name.as_str(), &status.before, &status.after), ("status", &"draft".into(), &"sent".into()));
    /// # Ok(()) });
    /// ```
    pub async fn changes(self, filter: ChangeFilter, limit: u32) -> Result<Changes, Error> {
        let Account { runner, id: tenant } = self.account;
        let list =
            runner.read("svc.audit_log.changes", (tenant, filter, limit), async |tx, (tenant, filter, limit)| {
                changes::list(tx, *tenant, filter, *limit).await
            });
        list.await
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
    /// let log = svc.account(tenant).audit_log().since(Timestamp::from_micros(0), 10).await?;
    /// assert_eq!((log[0].object_kind.as_str(), log[0].action.as_str()), ("tenant", "create"));
    /// # Ok(()) });
    /// ```
    pub async fn since(self, since: Timestamp, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.audit_log.since", (tenant, since, limit), async |tx, &(tenant, since, limit)| {
                audit::list(tx, tenant, since, limit).await
            })
            .await
    }

    /// Returns the newest changes before this time, or of all, newest first. At most `limit` are returned, and fewer when their
    /// events have [`MAX_EVENT_BYTES`](crate::store::MAX_EVENT_BYTES) of data: there are no older ones when none is returned.
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
    /// let newest = svc.account(tenant).audit_log().before(None, 1).await?;
    /// assert_eq!(newest[0].action, "create");
    /// assert!(svc.account(tenant).audit_log().before(Some(newest[0].at), 1).await?.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn before(self, until: Option<Timestamp>, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let Account { runner, id: tenant } = self.account;
        let range = Timestamp::from_micros(0)..until.unwrap_or(Timestamp::MAX);
        let list = runner.read("svc.audit_log.before", (tenant, range, limit), async |tx, (tenant, range, limit)| {
            Ok(audit::list_range(tx, *tenant, range.clone(), *limit).await?.0)
        });
        list.await
    }
}
