//! The sample endpoints of the demo: they receive its webhooks in this process, and each responds in its own way. So the
//! dashboard has deliveries of every outcome, which were really made.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::{NoFilter, Resource as _, crud};
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use tokio::net::TcpListener;

use super::input;

/// A sample endpoint.
struct Endpoint {
    path: &'static str,
    description: &'static str,
    events: &'static [&'static str],
    response: StatusCode,
    /// Whether it is turned off after the sample records were created, so that its deliveries are held.
    is_disabled: bool,
}

/// The body of a response of an endpoint that is down.
const DOWN: &str = r#"{"error":"the sample endpoint is down"}"#;

const ENDPOINTS: [Endpoint; 4] = [
    Endpoint {
        path: "/accounting",
        description: "Accounting, which takes everything",
        events: &["*"],
        response: StatusCode::NO_CONTENT,
        is_disabled: false,
    },
    Endpoint {
        path: "/newsletter",
        description: "Newsletter, which is down",
        events: &["contact.created", "contact.updated"],
        response: StatusCode::INTERNAL_SERVER_ERROR,
        is_disabled: false,
    },
    Endpoint {
        path: "/calendar",
        description: "Calendar, which is gone for good",
        events: &["booking.created", "booking.updated", "booking.cancelled"],
        response: StatusCode::GONE,
        is_disabled: false,
    },
    Endpoint {
        path: "/warehouse",
        description: "Warehouse, which is turned off",
        events: &["job.created", "job.updated", "job.scheduled", "job.completed"],
        response: StatusCode::NO_CONTENT,
        is_disabled: true,
    },
];

/// Starts to receive, and returns the URL of the receivers.
///
/// # Errors
/// No port of this machine can be bound.
pub(in crate::program) async fn start() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        // A listener that fails ends the receivers, and deliveries to them fail.
        while let Ok((stream, _)) = listener.accept().await {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond));
            tokio::spawn(connection);
        }
    });
    Ok(url)
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == request.uri().path());
    let mut response = Response::new(Full::default());
    *response.status_mut() = endpoint.map_or(StatusCode::NOT_FOUND, |endpoint| endpoint.response);
    if response.status().is_server_error() {
        *response.body_mut() = Full::from(DOWN);
    }
    Ok(response)
}

/// Subscribes the receivers to events of the tenant.
pub(super) async fn subscribe(tx: &mut dyn Tx, tenant: TenantId, url: &str) -> Result<(), Error> {
    for Endpoint { path, description, events, .. } in ENDPOINTS {
        let body = json!({ "url": format!("{url}{path}"), "events": events, "description": description });
        crud::create::<WebhookSubscription>(tx, tenant, input(&body)?).await?;
    }
    Ok(())
}

/// Turns those off that are to be, after the sample records were created.
pub(super) async fn disable(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.is_disabled) {
        change(tx, tenant, endpoint, &json!({ "enabled": false })).await?;
    }
    Ok(())
}

/// Sends to the receivers of this process from now on. Those of an earlier one had another port.
pub(super) async fn move_to(tx: &mut dyn Tx, tenant: TenantId, url: &str) -> Result<(), Error> {
    for endpoint in &ENDPOINTS {
        change(tx, tenant, endpoint, &json!({ "url": format!("{url}{}", endpoint.path) })).await?;
    }
    Ok(())
}

/// Changes the subscription of a receiver, unless someone has deleted it or changed its description.
async fn change(tx: &mut dyn Tx, tenant: TenantId, endpoint: &Endpoint, change: &Value) -> Result<(), Error> {
    let all = ListQuery { limit: 100, order: Order::NewestFirst { before: None }, filter: NoFilter {} };
    for known in WebhookSubscription::repository(tx).list(tenant, &all).await? {
        if known.description.as_ref().is_some_and(|text| text.as_str() == endpoint.description) {
            crud::update::<WebhookSubscription>(tx, tenant, known.id, input(change)?).await?;
        }
    }
    Ok(())
}

/// Returns how an endpoint responded to an attempt of the history at `now`, which was `minutes_ago`. `n` counts the attempts.
pub(super) fn past_response(attempt: &Attempt, now: Timestamp, minutes_ago: u64, n: u32) -> AttemptLog {
    let (origin, path) = attempt.url.as_str().rsplit_once('/').unwrap_or_default();
    let is_first = attempt.delivery.attempts == 1;
    // Accounting is slow in the middle of the day, and out of order now and then.
    let usual = 35 + n * 37 % 90 + if (300..720).contains(&minutes_ago) { 60 + n * 53 % 240 } else { 0 };
    let fails = is_first && n.is_multiple_of(if (240..480).contains(&minutes_ago) { 4 } else { 19 });
    let (status, duration_ms) = match path {
        "newsletter" if minutes_ago < 16 * 60 => (500, 20 + n * 11 % 40),
        "calendar" if minutes_ago < 60 => (410, 12 + n * 7 % 20),
        "accounting" if fails && n.is_multiple_of(2) => (0, 10_000),
        "accounting" if fails => (503, 900 + n * 31 % 400),
        _ => (204, usual),
    };
    let error = match StatusCode::from_u16(status) {
        Ok(status) if status.is_success() => None,
        Ok(status) => Some(format!("status: {status}")),
        Err(_) => Some("timeout: no complete response within 10 s".to_owned()),
    };
    let response = match status {
        0 => None,
        500.. => Some(DOWN.to_owned()),
        _ => Some(String::new()),
    };
    AttemptLog {
        attempt: attempt.delivery.attempts,
        started_at: now,
        duration_ms,
        status: status.into(),
        error,
        response_body: response,
        response_truncated: false,
        remote_addr: (status > 0).then(|| origin.trim_start_matches("http://").to_owned()),
    }
}
