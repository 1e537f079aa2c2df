//! The sample endpoints of the demo: they receive its webhooks in this process, and each responds in its own way. So the
//! dashboard has deliveries of every outcome, which were really made.
//!
//! One of them verifies what it receives, as a subscriber does, and says so: that is the first webhook that a person sees.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::{NoFilter, Resource as _, crud};
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_webhook_verify::Verifier;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

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

/// The endpoint that verifies its deliveries: it receives all events.
const VERIFYING: &Endpoint = &ENDPOINTS[0];
/// The largest delivery that is verified, in bytes.
const MAX_BODY: usize = 2 << 20;

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

/// The port of the receivers.
pub(in crate::program) struct Receivers {
    listener: TcpListener,
    url: String,
}

impl Receivers {
    /// Binds a port of this machine.
    ///
    /// # Errors
    /// No port can be bound.
    pub(in crate::program) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, url })
    }

    /// Returns the URL of the receivers, without the path of one of them.
    pub(in crate::program) fn url(&self) -> &str {
        &self.url
    }

    /// Starts to receive. Returns a line for each delivery that was verified, or that failed to be, with the secret of
    /// the endpoint that verifies. Without a verifier, there are no lines.
    pub(in crate::program) fn receive(self, env: Env, verifier: Option<Verifier>) -> mpsc::Receiver<String> {
        let (lines, received) = mpsc::channel(MAX_LINES);
        let verifying = verifier.map(|verifier| Arc::new(Verifying { env, verifier, lines }));
        tokio::spawn(async move {
            // A listener that fails ends the receivers, and deliveries to them fail.
            while let Ok((stream, _)) = self.listener.accept().await {
                let verifying = verifying.clone();
                let service = service_fn(move |request| respond(request, verifying.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        received
    }
}

/// How many deliveries are shown at most before the lines are read.
const MAX_LINES: usize = 16;

/// The needs of an endpoint that verifies its deliveries.
struct Verifying {
    env: Env,
    verifier: Verifier,
    lines: mpsc::Sender<String>,
}

impl Verifying {
    /// Verifies a delivery and tells of it, unless nobody reads the lines any more.
    async fn receive(&self, request: Request<Incoming>) {
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else { return };
        let now = UNIX_EPOCH + Duration::from_micros(self.env.now().as_micros().unsigned_abs());
        let verified = self.verifier.verify_headers_at(&head.headers, &body.to_bytes(), now);
        let event = head.headers.get("x-svc-event").and_then(|event| event.to_str().ok()).unwrap_or_default();
        let verdict = match verified {
            Ok(_) => "signature verified".to_owned(),
            Err(error) => format!("not verified: {error}"),
        };
        let _ = self.lines.try_send(format!("{event} received at {}: {verdict}", head.uri.path()));
    }
}

async fn respond(
    request: Request<Incoming>,
    verifying: Option<Arc<Verifying>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == request.uri().path());
    if let Some(verifying) = verifying.filter(|_| endpoint.is_some_and(|it| it.path == VERIFYING.path)) {
        verifying.receive(request).await;
    }
    let mut response = Response::new(Full::default());
    *response.status_mut() = endpoint.map_or(StatusCode::NOT_FOUND, |endpoint| endpoint.response);
    if response.status().is_server_error() {
        *response.body_mut() = Full::from(DOWN);
    }
    Ok(response)
}

/// Returns what verifies the deliveries of the endpoint that receives all events, unless someone has deleted it.
pub(super) async fn verifier(tx: &mut dyn Tx, tenant: TenantId) -> Result<Option<Verifier>, Error> {
    let subscription = find(tx, tenant, VERIFYING).await?;
    Ok(subscription.and_then(|subscription| Verifier::new(subscription.secret.reveal()).ok()))
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
    if let Some(subscription) = find(tx, tenant, endpoint).await? {
        crud::update::<WebhookSubscription>(tx, tenant, subscription.id, input(change)?).await?;
    }
    Ok(())
}

/// Finds the subscription of a receiver by its description.
async fn find(tx: &mut dyn Tx, tenant: TenantId, endpoint: &Endpoint) -> Result<Option<WebhookSubscription>, Error> {
    let all = ListQuery { limit: 100, order: Order::NewestFirst { before: None }, filter: NoFilter {} };
    let known = WebhookSubscription::repository(tx).list(tenant, &all).await?;
    let is_it =
        |it: &WebhookSubscription| it.description.as_ref().is_some_and(|text| text.as_str() == endpoint.description);
    Ok(known.into_iter().find(is_it))
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
    let response = match status {
        0 => None,
        500.. => Some(DOWN.to_owned()),
        _ => Some(String::new()),
    };
    let mut log = AttemptLog {
        attempt: attempt.delivery.attempts,
        started_at: now,
        duration_ms,
        status: status.into(),
        error: None,
        cause: None,
        response_body: response,
        response_truncated: false,
        remote_addr: (status > 0).then(|| origin.trim_start_matches("http://").to_owned()),
    };
    match StatusCode::from_u16(status) {
        Ok(status) if status.is_success() => {}
        Ok(status) => log.fail(AttemptCause::Status, status),
        Err(_) => log.fail(AttemptCause::ResponseTimeout, "no complete response within 10 s"),
    }
    log
}
