//! The request log: the newest API requests of each tenant, without their bodies.
//!
//! A request is logged beside its response and never in its transaction, so a crash loses the last few seconds of the log
//! and nothing else. A tenant keeps its newest [`MAX_REQUESTS`], for at most [`MAX_AGE`].
//!
//! A logged request names the first and the last event that it wrote. The events of one transaction follow each other in
//! the order of their tenant, so these two name all of them: [`events`] returns them, and
//! [`RequestFilter::event_id`] finds the request that wrote an event.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::accounts::keys::KeyId;
use crate::env::time_of_id;
use crate::error::Error;
use crate::input::Record;
use crate::store::{Store, Tx};
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::events::{Event, EventId};

/// The number of requests that a tenant keeps.
pub const MAX_REQUESTS: u32 = 1_000;

/// How long a request is kept.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The id of an entry of the request log.
pub type ApiRequestId = Id<ApiRequest>;

/// A request with an API key, and how it ended, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct ApiRequest {
    /// The unique identifier of the entry.
    pub id: ApiRequestId,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// The `X-Request-Id` of the response. A client may choose it, so it need not be unique.
    pub request_id: String,
    /// The `id` of the API key.
    pub key_id: KeyId,
    /// The method, such as `POST`.
    pub method: String,
    /// The path, such as `/api/v1/contacts`.
    pub path: String,
    /// The query, with `***` in place of values that may be confidential. Null if there was none.
    pub query: Option<String>,
    /// The status of the response.
    pub status: u16,
    /// The code of the error, such as `validation_failed`. Null if the request succeeded.
    pub code: Option<String>,
    /// The fields that failed, each with the code of its mistake, such as `email invalid_format, total out_of_range`: at most five. Null
    /// if no field failed.
    pub failing_fields: Option<String>,
    /// When the request arrived.
    pub started_at: Timestamp,
    /// The time from the arrival of the request to its response, in microseconds.
    pub duration_us: u64,
    /// The number of events that the request wrote.
    pub events: u32,
    /// The first of these events.
    #[serde(skip)]
    pub first_event_id: Option<EventId>,
    /// The last of these events.
    #[serde(skip)]
    pub last_event_id: Option<EventId>,
}

impl ApiRequest {
    /// Returns whether the request wrote this event.
    pub fn wrote(&self, event: EventId) -> bool {
        self.first_event_id.is_some_and(|first| first <= event) && self.last_event_id.is_some_and(|last| event <= last)
    }
}

/// Selects requests of the log. Every condition that is set must hold.
#[derive(Clone, Debug, Default)]
pub struct RequestFilter {
    /// Requests with this `X-Request-Id`.
    pub request_id: Option<String>,
    /// Requests with this API key.
    pub key_id: Option<KeyId>,
    /// Requests with this method.
    pub method: Option<String>,
    /// Requests whose path contains this text.
    pub path: Option<String>,
    /// Requests whose responses have one of these statuses.
    pub status: Option<RangeInclusive<u16>>,
    /// Requests at or after this time.
    pub since: Option<Timestamp>,
    /// Requests before this time.
    pub until: Option<Timestamp>,
    /// The request that wrote this event.
    pub event_id: Option<EventId>,
}

impl RequestFilter {
    /// Returns whether a request meets every condition.
    pub fn matches(&self, request: &ApiRequest) -> bool {
        fn holds<T>(condition: &Option<T>, is_met: impl FnOnce(&T) -> bool) -> bool {
            condition.as_ref().is_none_or(is_met)
        }
        holds(&self.request_id, |id| request.request_id == *id)
            && holds(&self.key_id, |id| request.key_id == *id)
            && holds(&self.method, |method| request.method.eq_ignore_ascii_case(method))
            && holds(&self.path, |text| request.path.contains(text.as_str()))
            && holds(&self.status, |statuses| statuses.contains(&request.status))
            && holds(&self.since, |since| request.started_at >= *since)
            && holds(&self.until, |until| request.started_at < *until)
            && holds(&self.event_id, |id| request.wrote(*id))
    }
}

/// Returns the requests of a tenant that a filter selects, newest first. Reads the whole log of the tenant, which has at
/// most [`MAX_REQUESTS`] entries.
///
/// # Errors
/// [`Error::Store`].
pub async fn list(tx: &mut dyn Tx, tenant: TenantId, filter: &RequestFilter) -> Result<Vec<ApiRequest>, Error> {
    let mut requests = newest(tx, tenant, MAX_REQUESTS).await?;
    requests.retain(|request| filter.matches(request));
    Ok(requests)
}

/// Returns the newest requests of a tenant, at most `limit`, newest first.
///
/// # Errors
/// [`Error::Store`].
pub async fn newest(tx: &mut dyn Tx, tenant: TenantId, limit: u32) -> Result<Vec<ApiRequest>, Error> {
    let oldest = tx.env().now().minus(MAX_AGE);
    Ok(tx.logged_requests(tenant, oldest, limit).await?)
}

/// Returns one request of the log.
///
/// # Errors
/// [`Error::NotFound`] if the log of the tenant does not have it, or no longer.
pub async fn get(tx: &mut dyn Tx, tenant: TenantId, id: ApiRequestId) -> Result<ApiRequest, Error> {
    let requests = list(tx, tenant, &RequestFilter::default()).await?;
    requests.into_iter().find(|request| request.id == id).ok_or(Error::NotFound)
}

/// Returns the first events that a request wrote, at most `limit`. Those that are older than events are kept are missing.
///
/// # Errors
/// [`Error::Store`].
pub async fn events(tx: &mut dyn Tx, request: &ApiRequest, limit: u32) -> Result<Vec<Event>, Error> {
    let Some(first) = request.first_event_id else { return Ok(Vec::new()) };
    let before = time_of_id(first.uuid()).minus(Duration::from_micros(1));
    let mut events = tx.events_after(request.tenant_id, before, limit.min(request.events)).await?;
    events.retain(|event| request.wrote(event.id));
    Ok(events)
}

/// The number of rows that one transaction writes or deletes at most, so that other writes do not wait long.
const BATCH: u32 = 250;

/// Of this many requests, one deletes those of its tenant that are more than a tenant keeps. So some tenants have a few
/// hundred too many for a while, which [`list`] leaves out, and looking for them costs little.
const TRIM_INTERVAL: usize = 100;

/// Adds requests to the log, oldest first, and deletes those of their tenants that are more than a tenant keeps.
///
/// # Errors
/// [`Error::Store`]. Some of the requests may have been added.
pub async fn record(store: &dyn Store, requests: &[ApiRequest]) -> Result<(), Error> {
    for batch in requests.chunks(BATCH as usize) {
        let batch: Arc<[ApiRequest]> = batch.into();
        let write = store.write("requests.record", batch, async |tx, batch| {
            tx.insert_requests(batch).await?;
            let chosen = batch.iter().rev().step_by(TRIM_INTERVAL).map(|request| request.tenant_id);
            for tenant in chosen.collect::<BTreeSet<_>>() {
                tx.delete_surplus_requests(tenant, MAX_REQUESTS).await?;
            }
            Ok(())
        });
        write.await?;
    }
    Ok(())
}

/// Deletes the requests of all tenants that are older than [`MAX_AGE`], in small transactions. Returns how many.
///
/// # Errors
/// [`Error::Store`]. The next call continues.
pub async fn delete_expired(store: &dyn Store) -> Result<u64, Error> {
    let delete = store.delete_in_steps("requests.delete_expired", BATCH, (), async |tx, ()| {
        let oldest = tx.env().now().minus(MAX_AGE);
        Ok(tx.delete_requests_before(oldest, BATCH).await?)
    });
    delete.await
}
