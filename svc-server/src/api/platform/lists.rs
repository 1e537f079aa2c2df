//! The lists of the platform API that are not of records.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::Serialize;
use svc_core::accounts::{audit, members};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::pages::{CursorScope, ListParams, MAX_LIMIT, Order, Page};
use svc_core::platform::{
    Account, AccountListParams, ApiKey, AttemptListParams, AuditEntry, Delivery, DeliveryListFilter, Event, LogFilter,
    LogParams, NewestParams, Replay,
};
use svc_core::store::{DeliveryFilter, Repository, Tx};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use svc_core::webhooks::{deliveries, statistics};

use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;

fn respond<T: Serialize>(page: &Page<T>) -> Result<ApiResponse, Error> {
    Ok(ApiResponse::json(StatusCode::OK, page)?)
}

/// A place in a list that is sorted by time, mostly the newest first.
struct Position {
    scope: CursorScope,
    limit: u32,
    /// The time in the cursor: only what happened before it is left, or of a list with the oldest first, at or after it.
    before: Option<Timestamp>,
}

impl Position {
    fn of(
        tx: &mut dyn Tx,
        tenant: TenantId,
        list: &str,
        params: &LogParams,
        filter: &impl Serialize,
    ) -> Result<Self, Error> {
        let scope = CursorScope::new(tenant, list, None, filter);
        let params = ListParams { limit: params.limit, cursor: params.cursor, updated_since: None };
        let query = params.query(tx.cursor_key(), &scope, &())?;
        let before = match query.order {
            Order::NewestFirst { before } => before,
            Order::OldestChangeFirst { .. } => None,
        };
        Ok(Self { scope, limit: params.limit.unwrap_or_default().get(), before })
    }

    /// Returns the page whose cursor has the time `before`.
    fn page<T>(&self, tx: &mut dyn Tx, data: Vec<T>, before: Option<Timestamp>) -> Page<T> {
        Page::new(data, before.map(|before| tx.cursor_key().seal(&self.scope, before)))
    }
}

/// Handles `GET /accounts`. Its cursor is the id of the last account, by which the accounts are sorted.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn accounts(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let AccountListParams { limit, cursor } = parts.query(AccountListParams::take)?;
    let limit = limit.unwrap_or_default().get();
    let list = ParsedRequest::new(move |tx, _| {
        Box::pin(async move {
            let mut tenants = tx.tenants(cursor.map(TenantId), limit + 1).await?;
            let has_more = tenants.len() > limit as usize;
            tenants.truncate(limit as usize);
            let next_cursor = tenants.last().filter(|_| has_more).map(|last| last.id.0);
            respond(&Page::new(tenants.into_iter().map(Account::from).collect(), next_cursor))
        })
    });
    Ok(list.reading(limit))
}

/// Handles `GET /accounts/{account_id}/keys`.
///
/// # Errors
///
/// Fails when there is a query parameter.
pub fn keys(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    parts.no_query()?;
    let list = ParsedRequest::new(|tx, tenant| {
        Box::pin(async move {
            let keys = tx.api_keys(tenant).await?;
            respond(&Page::whole(keys.into_iter().map(ApiKey::from).collect()))
        })
    });
    Ok(list.reading(1))
}

/// Handles `GET /accounts/{account_id}/members`.
///
/// # Errors
///
/// Fails when there is a query parameter.
pub fn members(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    parts.no_query()?;
    let list = ParsedRequest::new(|tx, tenant| {
        Box::pin(async move {
            let members = members::list(tx, tenant).await?;
            respond(&Page::whole(members))
        })
    });
    Ok(list.reading(1))
}

/// Handles `GET /accounts/{account_id}/replays`.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn replays(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let limit = parts.query(NewestParams::take)?.limit.unwrap_or_default().get();
    let list = ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            let replays = tx.replays(tenant, limit).await?;
            respond(&Page::whole(replays.into_iter().map(Replay::from).collect()))
        })
    });
    Ok(list.reading(limit))
}

/// Handles `GET /accounts/{account_id}/events`. The time of an event is unique within its account.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn events(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    log(parts, "events", |tx, tenant, times, limit| {
        Box::pin(async move {
            let mut events = tx.events_with_actor(tenant, times.start, times.end, limit + 1).await?;
            let has_more = events.len() > limit as usize;
            events.truncate(limit as usize);
            let last = events.last().filter(|_| has_more).map(|last| last.event.created_at);
            Ok((events.into_iter().map(|with_actor| Event::from(with_actor.event)).collect(), last))
        })
    })
}

/// Handles `GET /accounts/{account_id}/audit-log`. Changes of the same time are never on two pages.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn audit_log(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    log(parts, "audit-log", |tx, tenant, times, limit| {
        Box::pin(async move {
            let mut entries = audit::list_range(tx, tenant, times, limit).await?;
            let last = entries.last().filter(|_| entries.len() == limit as usize).map(|last| last.at);
            if let Some(at) = last {
                entries.retain(|entry| entry.at != at);
                entries.extend(audit::list_range(tx, tenant, at..at.next(), MAX_OF_ONE_TIME).await?);
            }
            Ok((entries.into_iter().map(AuditEntry::from).collect(), last))
        })
    })
}

/// Reads the newest rows of a time range, and returns the time before which there may be more.
type ReadLog<T> = for<'t> fn(
    &'t mut dyn Tx,
    TenantId,
    Range<Timestamp>,
    u32,
) -> BoxFuture<'t, Result<(Vec<T>, Option<Timestamp>), Error>>;

/// Responds with a page of a list of what happened.
fn log<T: Serialize + Send + 'static>(
    parts: &RequestParts<'_>,
    name: &'static str,
    read: ReadLog<T>,
) -> Result<ParsedRequest, Problem> {
    let (params, filter) = parts.query(|fields| {
        let (params, filter) = (LogParams::take(fields), LogFilter::take(fields));
        params.zip(filter)
    })?;
    let since = filter.since.map_or(Timestamp::from_micros(0), |since| since.0);
    let limit = params.limit.unwrap_or_default().get();
    let params = Arc::new(params);
    let list = ParsedRequest::new(move |tx, tenant| {
        let params = Arc::clone(&params);
        Box::pin(async move {
            let position = Position::of(tx, tenant, name, &params, &since)?;
            let times = since..position.before.unwrap_or(Timestamp::MAX);
            let (data, last) = read(tx, tenant, times, position.limit).await?;
            respond(&position.page(tx, data, last))
        })
    });
    Ok(list.reading(limit))
}

/// Handles `GET /accounts/{account_id}/webhooks/{id}/attempts`. A page has the attempts at a bounded number of deliveries.
///
/// # Errors
///
/// Fails when the id is malformed, or a query parameter is unknown or not valid.
pub fn webhook_attempts(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id: SubscriptionId = parts.id()?;
    let AttemptListParams { since, cursor } = parts.query(AttemptListParams::take)?;
    let list = ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            if Repository::<WebhookSubscription>::get(tx, tenant, id).await?.is_none() {
                return Err(Error::NotFound);
            }
            let params = LogParams { limit: None, cursor };
            let position = Position::of(tx, tenant, "attempts", &params, &(id, since))?;
            let since = since.map_or(Timestamp::from_micros(0), |since| since.0);
            let (attempts, next) = statistics::attempts(tx, tenant, id, position.before.unwrap_or(since)).await?;
            respond(&position.page(tx, attempts, next))
        })
    });
    Ok(list.reading(MAX_LIMIT))
}

/// The highest number of changes or deliveries of one time: an event has one delivery for each subscription.
const MAX_OF_ONE_TIME: u32 = 1000;

/// Handles `GET /accounts/{account_id}/deliveries`. The deliveries of one event have its time, and are never on two pages.
///
/// One request reads a bounded number of rows, so a page of a rare kind may be short although there are more.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn deliveries(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let input = parts.query(|fields| {
        let (params, filter) = (LogParams::take(fields), DeliveryListFilter::take(fields));
        params.zip(filter)
    })?;
    let limit = input.0.limit.unwrap_or_default().get();
    let input = Arc::new(input);
    let list = ParsedRequest::new(move |tx, tenant| {
        let input = Arc::clone(&input);
        Box::pin(async move {
            let (params, sent) = &*input;
            let position = Position::of(tx, tenant, "deliveries", params, &sent.scope())?;
            let filter = DeliveryFilter {
                subscription_id: sent.subscription_id,
                status: sent.status,
                kind: sent.kind,
                since: sent.since.map(|since| since.0),
                until: position.before.into_iter().chain(sent.until.map(|until| until.0)).min(),
                limit: position.limit,
                ..DeliveryFilter::default()
            };
            let found = deliveries::search(tx, tenant, &filter).await?;
            let mut rows = found.deliveries;
            let is_full = rows.len() == position.limit as usize;
            let last = rows.last().filter(|_| is_full).map(|last| last.created_at);
            if let Some(at) = last {
                let of_event =
                    DeliveryFilter { since: Some(at), until: Some(at.next()), limit: MAX_OF_ONE_TIME, ..filter };
                rows.retain(|delivery| delivery.created_at != at);
                rows.extend(tx.list_deliveries(tenant, &of_event).await?);
            }
            let data = rows.into_iter().map(Delivery::from).collect();
            respond(&position.page(tx, data, last.or(found.next_until)))
        })
    });
    Ok(list.reading(limit))
}
