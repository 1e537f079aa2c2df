//! The requests, sent at their scheduled times.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use svc_core::env::{Env, SeededEntropy, SystemClock};
use svc_test_support::Result;
use svc_test_support::http::{HttpClient, TestRequest};
use tokio::sync::Semaphore;

use crate::fixture::Tenant;
use crate::stats::Measurements;

/// The greatest number of requests in progress. Further requests are not sent and count as errors.
const MAX_CONCURRENT: usize = 10_000;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    List,
    Post,
    Patch,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Get, Self::List, Self::Post, Self::Patch];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "list",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }

    fn from_random(number: u64) -> Self {
        match number % 10 {
            0..5 => Self::Get,
            5..7 => Self::List,
            7..9 => Self::Post,
            _ => Self::Patch,
        }
    }
}

/// What all requests share.
pub(crate) struct Traffic {
    pub(crate) server: SocketAddr,
    pub(crate) http: HttpClient,
    pub(crate) tenants: Arc<[Tenant]>,
    pub(crate) measurements: Arc<Mutex<Measurements>>,
}

/// A request.
struct Request {
    kind: Kind,
    tenant: usize,
    contact: usize,
    /// The request's number in the run.
    number: u64,
}

impl Traffic {
    pub(crate) fn measurements(&self) -> MutexGuard<'_, Measurements> {
        self.measurements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `rate` requests per second for `length`, and waits until all have completed. Blocks its thread, because
    /// timers of the runtime are up to a millisecond late.
    pub(crate) fn send_all(
        self: &Arc<Self>,
        rate: u32,
        length: Duration,
        runtime: &tokio::runtime::Handle,
    ) -> Result<()> {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let random = Env::new(SystemClock, SeededEntropy::new(1));
        let started = Instant::now();
        let count = (length.as_secs_f64() * f64::from(rate)) as u64;
        for number in 0..count {
            let due = started + Duration::from_secs_f64(number as f64 / f64::from(rate));
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                self.measurements().record_error("not sent: too many requests in progress".to_owned());
                continue;
            };
            let picked = u64::from_be_bytes(random.bytes());
            let tenant = (picked >> 8) as usize % self.tenants.len();
            let contact = (picked >> 24) as usize % self.tenants[tenant].contacts.len();
            let request = Request { kind: Kind::from_random(picked & 0xff), tenant, contact, number };
            let traffic = Arc::clone(self);
            runtime.spawn(async move {
                traffic.send(&request, due).await;
                drop(permit);
            });
        }
        runtime.block_on(async { permits.acquire_many(MAX_CONCURRENT as u32).await.map(drop) })?;
        Ok(())
    }

    async fn send(&self, request: &Request, due: Instant) {
        let tenant = &self.tenants[request.tenant];
        let contact = format!("/contacts/{}", tenant.contacts[request.contact]);
        let (email, city) = (format!("n{}@example.com", request.number), format!("City {}", request.number));
        let (method, path, body) = match request.kind {
            Kind::Get => (Method::GET, contact.as_str(), None),
            Kind::List => (Method::GET, "/contacts", None),
            Kind::Post => (Method::POST, "/contacts", Some(json!({ "email": email, "first_name": "Ada" }))),
            Kind::Patch => (Method::PATCH, contact.as_str(), Some(json!({ "city": city }))),
        };
        let kind = request.kind;
        let request = TestRequest { method, body: body.as_ref(), ..TestRequest::get(path, &tenant.key) };
        let response = self.http.send(self.server, &request).await;
        let mut measurements = self.measurements();
        match response {
            Ok(response) if response.status.is_success() => {
                measurements.record_latency(kind, due.elapsed());
                if body.is_some() {
                    measurements.record_acknowledged(change(&response.body["data"]));
                }
            }
            Ok(response) => {
                measurements.record_error(format!("{} {path}: {} {}", request.method, response.status, response.body))
            }
            Err(error) => measurements.record_error(format!("{} {path}: {error}", request.method)),
        }
    }
}

/// Returns a text that identifies a change of a record.
pub(crate) fn change(record: &Value) -> String {
    let text = |field: &str| record[field].as_str().unwrap_or_default();
    format!("{} {}", text("id"), text("updated_at"))
}
