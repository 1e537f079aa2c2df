//! Test data: rows in every table, with extreme values.

use std::num::NonZeroU32;
use std::time::Duration;

use svc_core::accounts::apps::{self, AppCreate};
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::grants::{AuthorizationCode, Grant, Token};
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::{self, KeyCreate, Scope};
use svc_core::accounts::members;
use svc_core::accounts::operational::{OperationalEvent, OperationalKind};
use svc_core::accounts::platform_keys::{self, PlatformKeyCreate, PlatformScope};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::shared_links::{self, SharedLinkPurpose};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::requests::ApiRequest;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{self, Invoice};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{Create, Resource as _, Update, crud};
use svc_core::store::{DeliveryFilter, KeyUse, Store, Tx};
use svc_core::values::{Email, Id, RedirectUri, TenantId, Text, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AfterFailure, AttemptCause, AttemptLog, DeliveryStatus};
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::samples;
use svc_core::webhooks::statistics::{ALL_ENDPOINTS, AttemptCount, AttemptOutcome};
use svc_core::webhooks::streams::{Stream, StreamKey};
use svc_core::webhooks::subscriptions::{self, SubscriptionId, WebhookSubscription};

const HOUR: Duration = Duration::from_secs(3600);

pub(super) async fn fill(store: &dyn Store) {
    let filled = store.write("fill", (), async |tx, ()| {
        for name in ["Harbour Plumbing", "Zoë & Söhne 🛠️ 港湾配管"] {
            let tenant = tenants::create(tx, TenantCreate::named(name)).await?.id;
            tenants::update(tx, tenant.0, |tenant| tenant.limits.rate_limit = NonZeroU32::new(600)).await?;
            fill_keys(tx, tenant).await?;
            fill_webhooks(tx, tenant).await?;
            fill_records(tx, tenant).await?;
            fill_deliveries(tx, tenant).await?;
            fill_requests(tx, tenant).await?;
            fill_streams(tx, tenant).await?;
        }
        Ok(())
    });
    filled.await.unwrap();
}

async fn fill_streams(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let now = tx.env().now();
    for key in [StreamKey::SERVER, StreamKey { tenant_id: tenant, id: tx.env().id(now) }] {
        tx.insert_stream(&Stream::new(key, now)).await?;
        let clock = tx.clock(tenant).await?.unwrap_or_default();
        tx.advance_stream(key, tenant, clock).await?;
    }
    tx.claim_stream(StreamKey::SERVER, tx.env().id(now), now, now.next()).await?;
    Ok(())
}

async fn create<R: Create>(tx: &mut dyn Tx, tenant: TenantId, body: String) -> Result<R, Error> {
    crud::create(tx, tenant, R::Input::from_body(body.as_bytes())?).await
}

async fn update<R: Update>(tx: &mut dyn Tx, tenant: TenantId, id: Id<R>, body: &str) -> Result<R, Error> {
    crud::update(tx, tenant, id, R::Input::from_body(body.as_bytes())?).await
}

async fn fill_keys(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let now = tx.env().now();
    let input = KeyCreate { name: Some("Schlüssel".to_owned()), write: true, expires_in: Some(HOUR), signed: true };
    let key = keys::create(tx, tenant, input.clone()).await?.key.id;
    keys::rotate(tx, key, HOUR).await?;
    let other = keys::create(tx, tenant, KeyCreate { name: None, expires_in: None, signed: false, ..input }).await?;
    keys::revoke(tx, other.key.id).await?;
    for (email, role) in [("ada@example.com", Role::Owner), ("bob@example.com", Role::Viewer)] {
        members::add(tx, tenant, &Email::from_stored(email), role).await?;
    }
    for (purpose, record) in
        [(SharedLinkPurpose::Invoice, Some(uuid::Uuid::max())), (SharedLinkPurpose::Calendar, None)]
    {
        shared_links::share(tx, tenant, purpose, record, false).await?;
    }
    tx.record_key_uses(&[KeyUse { key_id: key, used_at: now }]).await?;
    tx.claim_signature(key, &[255; 32], now).await?;
    let input = PlatformKeyCreate { name: None, scopes: PlatformScope::all().collect(), expires_in: Some(HOUR) };
    let platform_key = platform_keys::create(tx, input).await?.key.id;
    platform_keys::revoke(tx, platform_key).await?;
    fill_apps(tx, tenant).await?;
    let body = (0..=255).collect();
    let recorded = StoredResponse {
        fingerprint: [7; 32],
        status: 201,
        location: None,
        etag: Some("e".to_owned()),
        body,
        created_at: now,
    };
    Ok(tx.store_response(tenant, "a 'key' of “anything”", &recorded).await?)
}

async fn fill_apps(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let now = tx.env().now();
    let uris = ["https://example.com/cb?a='", "com.example.app:/cb"].map(RedirectUri::from_stored);
    let mut input = AppCreate::new(Text::from_stored("Zoë's 🗺"), uris.to_vec());
    (input.owner, input.website) = (Some(tenant), WebhookUrl::parse("https://example.com/ü").ok());
    let app = apps::create(tx, input.clone()).await?.app.id;
    apps::rotate_secret(tx, app, HOUR).await?;
    apps::create(tx, AppCreate { owner: None, public: true, write: true, ..input }).await?;
    let grant = Grant {
        id: tx.env().id(now),
        tenant_id: tenant,
        app_id: app,
        scopes: vec![Scope::Read, Scope::Write],
        member: "ada@example.com".to_owned(),
        created_at: now,
        last_used_at: Some(now),
        requests: 1 << 40,
    };
    tx.insert_grant(&grant).await?;
    let code = AuthorizationCode {
        id: Id::max(),
        tenant_id: tenant,
        grant_id: grant.id,
        app_id: app,
        writes: true,
        redirect_uri: None,
        challenge: [255; 32],
        resource: Some("/api/v1".to_owned()),
        expires_at: now,
        is_used: true,
    };
    tx.insert_code(&code, &tx.env().bytes()).await?;
    let token = Token {
        authorization: code.id,
        tenant_id: tenant,
        grant_id: grant.id,
        app_id: app,
        is_refresh: true,
        writes: true,
        resource: None,
        expires_at: now,
        nonce: [0; 32],
        successor: Some([1; 32]),
        replaced_at: Some(now),
    };
    Ok(tx.insert_token(&token, &tx.env().bytes()).await?)
}

async fn fill_requests(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let now = tx.env().now();
    let bare = ApiRequest {
        id: tx.env().id(now),
        tenant_id: tenant,
        request_id: "-".to_owned(),
        key_id: Id::nil(),
        method: "GET".to_owned(),
        path: String::new(),
        query: None,
        status: 200,
        code: None,
        failing_fields: None,
        started_at: now,
        duration_us: 0,
        events: 0,
        first_event_id: None,
        last_event_id: None,
    };
    let full = ApiRequest {
        id: tx.env().id(now),
        path: "/ü".to_owned(),
        query: Some("a=***&'".to_owned()),
        status: u16::MAX,
        code: Some("conflict".to_owned()),
        failing_fields: Some("email invalid_format".to_owned()),
        duration_us: 60 * 60 * 1_000_000,
        events: u32::MAX,
        first_event_id: Some(Id::nil()),
        last_event_id: Some(Id::max()),
        ..bare.clone()
    };
    Ok(tx.insert_requests(&[bare, full]).await?)
}

async fn fill_webhooks(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let all = r#"{"url": "https://example.com/ü?a=1", "events": ["*"], "description": "alles"}"#.to_owned();
    let all: WebhookSubscription = create(tx, tenant, all).await?;
    subscriptions::rotate_secret(tx, tenant, all.id, HOUR).await?;
    let some = r#"{"url": "https://example.com/2", "events": ["contact.created", "job.created"]}"#.to_owned();
    let some: WebhookSubscription = create(tx, tenant, some).await?;
    crud::delete::<WebhookSubscription>(tx, tenant, some.id).await?;
    let paused = r#"{"url": "https://example.com/3", "events": ["job.updated"]}"#.to_owned();
    let mut paused: WebhookSubscription = create(tx, tenant, paused).await?;
    paused.pause(advance_clock(tx, tenant).await?);
    subscriptions::settle(tx, tenant, &mut paused, 1).await?;
    Ok(WebhookSubscription::repository(tx).update(tenant, &paused).await?)
}

async fn fill_records(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let contact = r#"{"email": "Ada@example.com", "first_name": "Ада 🦀", "city": "東京"}"#.to_owned();
    let contact = create::<Contact>(tx, tenant, contact).await?.id;
    let gone =
        create::<Contact>(tx, tenant, r#"{"email": "bob@example.com", "first_name": "Bob"}"#.to_owned()).await?.id;
    crud::delete::<Contact>(tx, tenant, gone).await?;
    for body in [
        format!(
            r#"{{"contact_id": "{contact}", "total": 1000000000000, "currency": "JPY", "due_date": "9999-12-31"}}"#
        ),
        format!(r#"{{"contact_id": "{contact}", "total": 0.001, "currency": "BHD", "issue_date": "0000-01-01"}}"#),
    ] {
        let input = invoices::InvoiceCreate::from_body(body.as_bytes())?;
        let invoice: Invoice = invoices::create(tx, tenant, input).await?;
        invoices::send(tx, tenant, invoice.id).await?;
        invoices::pay(tx, tenant, invoice.id, invoices::PaymentCreate::default()).await?;
    }
    let quote = format!(r#"{{"contact_id": "{contact}", "total": 999999999999.9999, "currency": "UYW"}}"#);
    create::<Quote>(tx, tenant, quote).await?;
    let times = r#""start_time": "1970-01-01T00:00:00Z", "end_time": "9999-12-31T23:59:59.999999Z""#;
    let booking = format!(r#"{{"contact_id": "{contact}", "service_name": "x", {times}, "notes": "a\nb\t☃"}}"#);
    create::<Booking>(tx, tenant, booking).await?;
    let job = create::<Job>(tx, tenant, format!(r#"{{"title": "\\ ' \" %", "contact_id": "{contact}"}}"#)).await?;
    update::<Job>(tx, tenant, job.id, r#"{"actual_total": 1000000000000, "status": "completed"}"#).await?;
    Ok(())
}

async fn fill_deliveries(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let deliveries = tx.list_deliveries(tenant, &DeliveryFilter { limit: 3, ..DeliveryFilter::default() }).await?;
    for (attempt, mut delivery) in (1..).zip(deliveries) {
        let log = AttemptLog {
            attempt,
            started_at: delivery.created_at,
            duration_ms: u32::MAX,
            status: if attempt == 1 { 204 } else { -1 },
            error: (attempt > 1).then(|| "blocked: 10.0.0.1".to_owned()),
            cause: (attempt > 1).then_some(AttemptCause::NotPublic),
            response_body: Some("a NUL is \0 and a heart ♥".to_owned()),
            response_truncated: attempt == 2,
            remote_addr: None,
        };
        tx.insert_attempt(tenant, delivery.id, &log).await?;
        delivery.attempts = 1;
        delivery.record_outcome(&log, None, delivery.created_at, AfterFailure::Retry);
        tx.update_delivery(&delivery, None).await?;
    }
    let hour = Timestamp::from_micros(0);
    let (outcome, duration_ms, attempts) = (AttemptOutcome::NoResponse, u32::MAX, 1 << 40);
    let count =
        AttemptCount { hour, tenant_id: tenant, subscription_id: ALL_ENDPOINTS, outcome, duration_ms, attempts };
    tx.add_attempt_counts(&[count]).await?;
    let kind = OperationalKind::AccountApproved.event_kind().unwrap();
    let data = serde_json::value::to_raw_value(&samples::operational(OperationalKind::AccountApproved)).unwrap();
    tx.insert_operational_event(&OperationalEvent { id: tx.env().id(hour), kind, data }).await?;
    let (subscription, since) = (webhook(tx, tenant).await?, Timestamp::from_micros(0));
    let replay = ReplayCreate { subscription, since, until: None, statuses: Vec::new(), missed: true };
    replays::create(tx, tenant, replay).await?;
    subscriptions::send_test(tx, tenant, subscription, None).await?;
    Ok(())
}

/// Returns the subscription to all events.
async fn webhook(tx: &mut dyn Tx, tenant: TenantId) -> Result<SubscriptionId, Error> {
    let pending = DeliveryFilter { status: Some(DeliveryStatus::Pending), limit: 1, ..DeliveryFilter::default() };
    Ok(tx.list_deliveries(tenant, &pending).await?[0].subscription_id)
}
