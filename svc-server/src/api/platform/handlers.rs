//! The handlers of the platform API: they parse a request, and call the functions that `svc` calls.

use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::Serialize;
use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate};
use svc_core::accounts::keys::{self, ApiKey, KeyCreate, KeyId};
use svc_core::accounts::members;
use svc_core::accounts::tenants;
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::input::Input;
use svc_core::platform::{
    self, Account, AccountCreate, AccountUpdate, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret, DashboardLink,
    DeliveryDetails, EmittedEvent, EventCreate, MemberCreate, MemberUpdate, OperatorLink, OperatorLinkCreate,
    SampleEventCreate, Seconds, SecretRotation, Statistics, TemporaryWebhookCreate, WebhookLifetime, WebhookTest,
};
use svc_core::resources::quotes::{self, Quote};
use svc_core::resources::{Resource, crud};
use svc_core::store::{Repository, Tx};
use svc_core::values::{Id, TenantId};
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::events::{self, Event};
use svc_core::webhooks::replays::{self, Replay, ReplayCreate};
use svc_core::webhooks::statistics;
use svc_core::webhooks::subscriptions::{self, WebhookSubscription, WebhookSubscriptionWithSecret};

use crate::api::handlers::{Data, ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::{ApiResponse, etag};

/// What parses a request: see [`ParseFn`](crate::api::handlers::ParseFn).
pub(super) type Parsed = Result<ParsedRequest, Problem>;

/// How long an old key or secret stays valid beside a new one, unless the request says otherwise.
const DEFAULT_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the overlap of a rotation.
fn overlap(sent: Option<Seconds>) -> Duration {
    sent.map_or(DEFAULT_OVERLAP, Seconds::duration)
}

/// The work of a handler.
pub(super) type Work<'t, T> = BoxFuture<'t, Result<T, Error>>;

fn respond<T: Serialize>(status: StatusCode, data: T) -> Result<ApiResponse, Error> {
    Ok(ApiResponse::json(status, &Data { data })?)
}

/// Responds to a GET of one record.
pub(super) fn get_with<T: Serialize>(
    parts: &RequestParts<'_>,
    work: impl for<'t> Fn(&'t mut dyn Tx, TenantId) -> Work<'t, T> + Clone + Send + Sync + 'static,
) -> Parsed {
    parts.no_query()?;
    let get = ParsedRequest::new(move |tx, tenant| {
        let work = work.clone();
        Box::pin(async move { Ok(respond(StatusCode::OK, work(tx, tenant).await?)?.with_etag()) })
    });
    Ok(get.reading(1))
}

/// Responds to a step of a record, which returns it. The response has the ETag of the record if a GET would return it so.
fn step<I: 'static, T: Serialize + 'static>(
    parts: &RequestParts<'_>,
    run: for<'t> fn(&'t mut dyn Tx, TenantId, Id<I>) -> Work<'t, T>,
    has_etag: bool,
) -> Parsed {
    step_as::<I, T, T>(parts, run, has_etag)
}

/// Does the same for a record that is returned as an `O`, which has more than the record.
pub(super) fn step_as<I: 'static, T: 'static, O: From<T> + Serialize>(
    parts: &RequestParts<'_>,
    run: for<'t> fn(&'t mut dyn Tx, TenantId, Id<I>) -> Work<'t, T>,
    has_etag: bool,
) -> Parsed {
    let id: Id<I> = parts.id()?;
    parts.no_query()?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            let response = respond(StatusCode::OK, O::from(run(tx, tenant, id).await?))?;
            Ok(if has_etag { response.with_etag() } else { response })
        })
    }))
}

/// Responds to a request with a body.
fn with_body<I, T>(
    parts: &RequestParts<'_>,
    status: StatusCode,
    run: impl for<'t> Fn(&'t mut dyn Tx, TenantId, I) -> Work<'t, T> + Clone + Send + Sync + 'static,
) -> Parsed
where
    I: Input + Clone,
    T: Serialize + 'static,
{
    parts.no_query()?;
    let input = I::from_body(parts.body)?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        let (input, run) = (input.clone(), run.clone());
        Box::pin(async move { respond(status, run(tx, tenant, input).await?) })
    }))
}

/// Adds what the response to a new or changed record of the public API has.
fn with_record<R: Resource, I: Input + Clone>(
    parts: &RequestParts<'_>,
    status: StatusCode,
    run: impl for<'t> Fn(&'t mut dyn Tx, TenantId, I) -> Work<'t, R> + Clone + Send + Sync + 'static,
) -> Parsed {
    with_record_as::<R, R, I>(parts, status, run)
}

/// Does the same for a record that is returned as an `O`, which has more than the record.
pub(super) fn with_record_as<R: Resource, O: From<R> + Serialize, I: Input + Clone>(
    parts: &RequestParts<'_>,
    status: StatusCode,
    run: impl for<'t> Fn(&'t mut dyn Tx, TenantId, I) -> Work<'t, R> + Clone + Send + Sync + 'static,
) -> Parsed {
    parts.no_query()?;
    let input = I::from_body(parts.body)?;
    let collection = format!("{}/{}", parts.base, R::COLLECTION);
    Ok(ParsedRequest::new(move |tx, tenant| {
        let (input, run, collection) = (input.clone(), run.clone(), collection.clone());
        Box::pin(async move {
            let record: R = run(tx, tenant, input).await?;
            let location = (status == StatusCode::CREATED).then(|| format!("{collection}/{}", record.id()));
            Ok(ApiResponse { location, ..respond(status, O::from(record))?.with_etag() })
        })
    }))
}

/// Responds to a POST with a new record, which a GET of `path` returns as `record`, and this response as `data`.
fn created<T: Serialize>(path: String, record: &impl Serialize, data: T) -> Result<ApiResponse, Error> {
    let tag = etag(&ApiResponse::json(StatusCode::OK, &Data { data: record })?.body);
    Ok(ApiResponse { location: Some(path), etag: Some(tag), ..respond(StatusCode::CREATED, data)? })
}

/// Creates a record of the account from the body.
fn create<I: Input + Clone>(
    parts: &RequestParts<'_>,
    run: impl for<'t> Fn(&'t mut dyn Tx, TenantId, I, &'t str) -> Work<'t, ApiResponse> + Clone + Send + Sync + 'static,
) -> Parsed {
    parts.no_query()?;
    let (input, base) = (I::from_body(parts.body)?, parts.base.to_owned());
    Ok(ParsedRequest::new(move |tx, tenant| {
        let (input, base, run) = (input.clone(), base.clone(), run.clone());
        Box::pin(async move { run(tx, tenant, input, &base).await })
    }))
}

/// Handles `POST /accounts`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_account(parts: &RequestParts<'_>) -> Parsed {
    create(parts, |tx, _, input: AccountCreate, base| {
        Box::pin(async move {
            let account = Account::from(tenants::create(tx, input.into()).await?);
            created(format!("{base}/accounts/{}", account.id), &account, &account)
        })
    })
}

/// Handles `GET /accounts/{account_id}`.
///
/// # Errors
///
/// Fails when there is a query parameter.
pub fn get_account(parts: &RequestParts<'_>) -> Parsed {
    get_with(parts, |tx, tenant| Box::pin(async move { Ok(Account::from(tenants::get(tx, tenant).await?)) }))
}

/// Handles `PATCH /accounts/{account_id}`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn update_account(parts: &RequestParts<'_>) -> Parsed {
    parts.no_query()?;
    let input = AccountUpdate::from_body(parts.body)?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        let input = input.clone();
        Box::pin(async move {
            let changed = tenants::update(tx, tenant.0, |tenant| input.apply(tenant)).await?;
            Ok(respond(StatusCode::OK, Account::from(changed))?.with_etag())
        })
    }))
}

/// Returns a key of the account. Keys have ids of their own, which say nothing of the account.
async fn own_key(tx: &mut dyn Tx, tenant: TenantId, id: KeyId) -> Result<ApiKey, Error> {
    let key = keys::get(tx, id).await?;
    if key.tenant_id == tenant { Ok(key) } else { Err(Error::NotFound) }
}

/// Handles `POST /accounts/{account_id}/keys`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_key(parts: &RequestParts<'_>) -> Parsed {
    create(parts, |tx, tenant, input: ApiKeyCreate, base| {
        Box::pin(async move {
            let input = KeyCreate {
                name: input.name.map(|name| name.as_str().to_owned()),
                write: input.scopes.write,
                expires_in: input.expires_in.map(Seconds::duration),
                signed: input.signed.unwrap_or_default(),
            };
            let new = keys::create(tx, tenant, input).await?;
            let key = platform::ApiKey::from(new.key.clone());
            created(format!("{base}/keys/{}", key.id), &key, ApiKeyWithSecret::from(new))
        })
    })
}

/// Handles `GET /accounts/{account_id}/keys/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get_key(parts: &RequestParts<'_>) -> Parsed {
    let id: KeyId = parts.id()?;
    get_with(parts, move |tx, tenant| {
        Box::pin(async move { Ok(platform::ApiKey::from(own_key(tx, tenant, id).await?)) })
    })
}

/// Handles `POST /accounts/{account_id}/keys/{id}/revoke`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn revoke_key(parts: &RequestParts<'_>) -> Parsed {
    step(
        parts,
        |tx, tenant, id: KeyId| {
            Box::pin(async move {
                own_key(tx, tenant, id).await?;
                Ok(platform::ApiKey::from(keys::revoke(tx, id).await?))
            })
        },
        false,
    )
}

/// Handles `POST /accounts/{account_id}/keys/{id}/rotate`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn rotate_key(parts: &RequestParts<'_>) -> Parsed {
    let id: KeyId = parts.id()?;
    with_body(parts, StatusCode::CREATED, move |tx, tenant, input: ApiKeyRotation| {
        Box::pin(async move {
            own_key(tx, tenant, id).await?;
            Ok(ApiKeyWithSecret::from(keys::rotate(tx, id, overlap(input.overlap)).await?))
        })
    })
}

/// Handles `POST /accounts/{account_id}/dashboard-links`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_dashboard_link(parts: &RequestParts<'_>) -> Parsed {
    with_body(parts, StatusCode::CREATED, |tx, tenant, input: platform::DashboardLinkCreate| {
        Box::pin(async move {
            let link = DashboardLinkCreate::to(tenant, input.role);
            let link = match &input.identity {
                Some(identity) => link.identity(identity.as_str()),
                None => link,
            };
            Ok(DashboardLink::new(tenant, dashboard_links::create(tx, link).await?))
        })
    })
}

/// Handles `POST /operator-links`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_operator_link(parts: &RequestParts<'_>) -> Parsed {
    with_body(parts, StatusCode::CREATED, |tx, _, input: OperatorLinkCreate| {
        Box::pin(async move {
            let link = DashboardLinkCreate::for_operator();
            let link = match &input.identity {
                Some(identity) => link.identity(identity.as_str()),
                None => link,
            };
            Ok(OperatorLink::from(dashboard_links::create(tx, link).await?))
        })
    })
}

/// Handles `POST /accounts/{account_id}/members`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn add_member(parts: &RequestParts<'_>) -> Parsed {
    create(parts, |tx, tenant, input: MemberCreate, base| {
        Box::pin(async move {
            let member = members::add(tx, tenant, &input.email, input.role).await?;
            created(format!("{base}/members/{}", member.id), &member, &member)
        })
    })
}

/// Handles `GET /accounts/{account_id}/members/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get_member(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    get_with(parts, move |tx, tenant| Box::pin(members::get(tx, tenant, id)))
}

/// Handles `PATCH /accounts/{account_id}/members/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn update_member(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    parts.no_query()?;
    let MemberUpdate { role } = MemberUpdate::from_body(parts.body)?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            let member = members::set_role(tx, tenant, id, role).await?;
            Ok(respond(StatusCode::OK, member)?.with_etag())
        })
    }))
}

/// Handles `DELETE /accounts/{account_id}/members/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn remove_member(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    parts.no_query()?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            members::remove(tx, tenant, id).await?;
            Ok(ApiResponse::no_content())
        })
    }))
}

/// Handles `POST /accounts/{account_id}/quotes/{id}/accept`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn accept_quote(parts: &RequestParts<'_>) -> Parsed {
    step::<Quote, Quote>(parts, |tx, tenant, id| Box::pin(quotes::accept(tx, tenant, id)), true)
}

/// Handles `POST /accounts/{account_id}/quotes/{id}/decline`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn decline_quote(parts: &RequestParts<'_>) -> Parsed {
    step::<Quote, Quote>(parts, |tx, tenant, id| Box::pin(quotes::decline(tx, tenant, id)), true)
}

fn emitted((event, deliveries): (Event, Vec<Delivery>)) -> EmittedEvent {
    EmittedEvent { event: event.into(), deliveries: deliveries.into_iter().map(platform::Delivery::from).collect() }
}

/// Handles `POST /accounts/{account_id}/events`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn emit_event(parts: &RequestParts<'_>) -> Parsed {
    with_body(parts, StatusCode::CREATED, |tx, tenant, input: EventCreate| {
        Box::pin(async move {
            let EventCreate { kind, data } = input;
            Ok(emitted(events::record_external(tx, tenant, kind, &data.0).await?))
        })
    })
}

/// Handles `POST /accounts/{account_id}/events/samples`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn emit_sample(parts: &RequestParts<'_>) -> Parsed {
    with_body(parts, StatusCode::CREATED, |tx, tenant, input: SampleEventCreate| {
        Box::pin(async move { Ok(emitted(events::record_sample(tx, tenant, input.kind).await?)) })
    })
}

/// Handles `GET /accounts/{account_id}/events/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get_event(parts: &RequestParts<'_>) -> Parsed {
    let id: Id<Event> = parts.id()?;
    get_with(parts, move |tx, tenant| {
        Box::pin(async move { Ok(platform::Event::from(tx.event(tenant, id).await?.ok_or(Error::NotFound)?)) })
    })
}

/// Handles `POST /accounts/{account_id}/webhooks/{id}/rotate-secret`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn rotate_webhook_secret(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    with_body(parts, StatusCode::OK, move |tx, tenant, input: SecretRotation| {
        Box::pin(async move {
            let rotated = subscriptions::rotate_secret(tx, tenant, id, overlap(input.overlap)).await?;
            Ok(WebhookSubscriptionWithSecret::from(rotated))
        })
    })
}

/// Handles `POST /accounts/{account_id}/webhooks/{id}/finish-rotation`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn finish_webhook_rotation(parts: &RequestParts<'_>) -> Parsed {
    step::<WebhookSubscription, WebhookSubscription>(
        parts,
        |tx, tenant, id| Box::pin(subscriptions::finish_rotation(tx, tenant, id)),
        true,
    )
}

/// Handles `POST /accounts/{account_id}/webhooks/temporary`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_temporary_webhook(parts: &RequestParts<'_>) -> Parsed {
    parts.no_query()?;
    let TemporaryWebhookCreate { webhook, expires_in } =
        TemporaryWebhookCreate::from_body_with_kinds(parts.body, parts.event_kinds)?;
    let (webhook_url, base) = (Some(webhook.url.clone()), parts.base.to_owned());
    let create = ParsedRequest::new(move |tx, tenant| {
        let (webhook, base) = (webhook.clone(), base.clone());
        Box::pin(async move {
            let record: WebhookSubscription = crud::create(tx, tenant, webhook).await?;
            subscriptions::keep_for(tx, tenant, record.id, expires_in.duration()).await?;
            let path = format!("{base}/webhooks/{}", record.id);
            created(path, &record, WebhookSubscriptionWithSecret::from(record.clone()))
        })
    });
    Ok(ParsedRequest { webhook_url, ..create })
}

/// Handles `POST /accounts/{account_id}/webhooks/{id}/keep`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn keep_webhook(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    with_record(parts, StatusCode::OK, move |tx, tenant, WebhookLifetime { expires_in }| {
        Box::pin(async move {
            subscriptions::keep_for(tx, tenant, id, expires_in.duration()).await?;
            crud::get::<WebhookSubscription>(tx, tenant, id).await
        })
    })
}

/// Handles `POST /accounts/{account_id}/webhooks/{id}/test`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn test_webhook(parts: &RequestParts<'_>) -> Parsed {
    let id = parts.id()?;
    with_body(parts, StatusCode::CREATED, move |tx, tenant, input: WebhookTest| {
        Box::pin(
            async move { Ok(platform::Delivery::from(subscriptions::send_test(tx, tenant, id, input.kind).await?)) },
        )
    })
}

/// Handles `GET /accounts/{account_id}/webhooks/{id}/statistics`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn webhook_statistics(parts: &RequestParts<'_>) -> Parsed {
    let id: Id<WebhookSubscription> = parts.id()?;
    parts.no_query()?;
    let get = ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            if Repository::<WebhookSubscription>::get(tx, tenant, id).await?.is_none() {
                return Err(Error::NotFound);
            }
            let hours = statistics::attempts_by_hour(tx, tenant, Some(id)).await?;
            let backlog = statistics::backlog(tx, tenant, id).await?;
            respond(StatusCode::OK, Statistics::new(hours, Some(backlog)))
        })
    });
    Ok(get.reading(1))
}

/// Handles `GET /accounts/{account_id}/statistics`.
///
/// # Errors
///
/// Fails when there is a query parameter.
pub fn statistics(parts: &RequestParts<'_>) -> Parsed {
    parts.no_query()?;
    let get = ParsedRequest::new(|tx, tenant| {
        Box::pin(async move {
            let hours = statistics::attempts_by_hour(tx, tenant, None).await?;
            respond(StatusCode::OK, Statistics::new(hours, None))
        })
    });
    Ok(get.reading(1))
}

/// Handles `GET /accounts/{account_id}/deliveries/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get_delivery(parts: &RequestParts<'_>) -> Parsed {
    let id: Id<Delivery> = parts.id()?;
    get_with(parts, move |tx, tenant| {
        Box::pin(async move {
            let delivery = tx.delivery(tenant, id).await?.ok_or(Error::NotFound)?;
            let event = tx.event(tenant, delivery.event_id).await?.ok_or(Error::NotFound)?;
            let log = tx.attempts(tenant, id).await?;
            Ok(DeliveryDetails { delivery: delivery.into(), event: event.into(), log })
        })
    })
}

/// Handles `POST /accounts/{account_id}/deliveries/{id}/replay`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn replay_delivery(parts: &RequestParts<'_>) -> Parsed {
    step(
        parts,
        |tx, tenant, id: Id<Delivery>| {
            Box::pin(async move { Ok(platform::Delivery::from(replays::replay_delivery(tx, tenant, id).await?)) })
        },
        false,
    )
}

/// Handles `POST /accounts/{account_id}/replays`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create_replay(parts: &RequestParts<'_>) -> Parsed {
    create(parts, |tx, tenant, input: platform::ReplayCreate, base| {
        Box::pin(async move {
            let input = ReplayCreate {
                until: input.until,
                statuses: input.statuses.unwrap_or_default().0,
                missed: input.missed.unwrap_or_default(),
                ..ReplayCreate::new(input.subscription_id, input.since)
            };
            if input.until.is_some_and(|until| until < input.since) {
                return Err(Issue::new(FieldCode::OutOfRange, "must not be before since").on("until"));
            }
            let replay = platform::Replay::from(replays::create(tx, tenant, input).await?);
            created(format!("{base}/replays/{}", replay.id), &replay, &replay)
        })
    })
}

/// Handles `GET /accounts/{account_id}/replays/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get_replay(parts: &RequestParts<'_>) -> Parsed {
    let id: Id<Replay> = parts.id()?;
    get_with(parts, move |tx, tenant| {
        Box::pin(async move { Ok(platform::Replay::from(tx.replay(tenant, id).await?.ok_or(Error::NotFound)?)) })
    })
}
