//! The requests, at their moments.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use svc_core::env::{Env, SeededEntropy, SystemClock};
use svc_tests::Result;
use svc_tests::http::{Ask, Http};
use tokio::sync::Semaphore;

use crate::figures::Noted;
use crate::world::Tenant;

/// Requests under way at most: where a server stands still for longer, what is not sent counts as an error.
const UNDER_WAY: usize = 10_000;

/// What is asked for.
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

    fn pick(number: u64) -> Self {
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
    pub(crate) http: Http,
    pub(crate) tenants: Arc<[Tenant]>,
    pub(crate) noted: Arc<Mutex<Noted>>,
}

/// One request.
struct Request {
    kind: Kind,
    tenant: usize,
    contact: usize,
    /// Among all.
    number: u64,
}

impl Traffic {
    pub(crate) fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends so many a second for so long, and waits until all are over. Blocks its thread: a timer of the runtime is
    /// a millisecond late.
    pub(crate) fn send_all(
        self: &Arc<Self>,
        rate: u32,
        length: Duration,
        runtime: &tokio::runtime::Handle,
    ) -> Result<()> {
        let places = Arc::new(Semaphore::new(UNDER_WAY));
        let random = Env::new(SystemClock, SeededEntropy::new(1));
        let begin = Instant::now();
        let count = (length.as_secs_f64() * f64::from(rate)) as u64;
        for number in 0..count {
            let due = begin + Duration::from_secs_f64(number as f64 / f64::from(rate));
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.noted().failed("not sent: too many were under way".to_owned());
                continue;
            };
            let picked = u64::from_be_bytes(random.bytes());
            let tenant = (picked >> 8) as usize % self.tenants.len();
            let contact = (picked >> 24) as usize % self.tenants[tenant].contacts.len();
            let request = Request { kind: Kind::pick(picked & 0xff), tenant, contact, number };
            let traffic = Arc::clone(self);
            runtime.spawn(async move {
                traffic.send(&request, due).await;
                drop(place);
            });
        }
        runtime.block_on(async { places.acquire_many(UNDER_WAY as u32).await.map(drop) })?;
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
        let ask = Ask { method, body: body.as_ref(), ..Ask::get(path, &tenant.key) };
        let reply = self.http.send(self.server, &ask).await;
        let mut noted = self.noted();
        match reply {
            Ok(reply) if reply.status.is_success() => {
                noted.took(request.kind, due.elapsed());
                if body.is_some() {
                    noted.answered(change(&reply.body["data"]));
                }
            }
            Ok(reply) => noted.failed(format!("{} {path}: {} {}", ask.method, reply.status, reply.body)),
            Err(error) => noted.failed(format!("{} {path}: {error}", ask.method)),
        }
    }
}

/// What tells a change of a record from all others.
pub(crate) fn change(record: &Value) -> String {
    let text = |field: &str| record[field].as_str().unwrap_or_default();
    format!("{} {}", text("id"), text("updated_at"))
}
