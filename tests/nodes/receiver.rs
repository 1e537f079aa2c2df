//! A webhook endpoint that records deliveries, and accepts, refuses or holds them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use svc_core::webhooks::deliveries::DeliveryId;
use svc_test_support::Result;
use svc_test_support::endpoint;
use tokio::sync::watch;
use tokio::time::Instant;

/// A delivery attempt that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The header `webhook-id`.
    pub(crate) delivery: DeliveryId,
    /// The header `X-SVC-Attempt`.
    pub(crate) attempt: u32,
    pub(crate) path: String,
    pub(crate) at: Instant,
}

/// How the endpoint responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    Accept,
    Refuse,
    /// Does not respond before the behaviour changes.
    Hold,
}

#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    arrivals: Mutex<Vec<Arrival>>,
    count: watch::Sender<usize>,
    behavior: watch::Sender<Behavior>,
}

impl Receiver {
    pub(crate) async fn listen(behavior: Behavior) -> Result<Self> {
        let inner = Arc::new(Inner {
            arrivals: Mutex::default(),
            count: watch::Sender::new(0),
            behavior: watch::Sender::new(behavior),
        });
        let shared = Arc::clone(&inner);
        let address = endpoint::listen(move |request| {
            let inner = Arc::clone(&shared);
            async move { inner.respond(request).await }
        });
        let address = address.await?;
        Ok(Self { address, inner })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn set(&self, behavior: Behavior) {
        self.inner.behavior.send_replace(behavior);
    }

    /// Returns what has arrived so far.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.inner.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this many attempts have arrived.
    pub(crate) async fn until(&self, count: usize, patience: Duration) -> Result<()> {
        let mut counted = self.inner.count.subscribe();
        let came = tokio::time::timeout(patience, counted.wait_for(|counted| *counted >= count)).await;
        match came {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("{} of {count} arrived within {patience:?}", self.arrivals().len()).into()),
        }
    }
}

impl Inner {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (delivery, attempt) = (header("webhook-id").parse(), header("x-svc-attempt").parse());
        let (Ok(_), Ok(delivery), Ok(attempt)) = (body.collect().await, delivery, attempt) else {
            return response(StatusCode::BAD_REQUEST, 0);
        };
        let path = parts.uri.path().trim_start_matches('/').to_owned();
        let at = Instant::now();
        let count = {
            let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            arrivals.push(Arrival { delivery, attempt, path, at });
            arrivals.len()
        };
        self.count.send_modify(|counted| *counted = count.max(*counted));
        let mut behavior = self.behavior.subscribe();
        // The sender of the channel lives as long as `self`.
        let current = behavior
            .wait_for(|behavior| *behavior != Behavior::Hold)
            .await
            .map_or(Behavior::Refuse, |behavior| *behavior);
        let status = if current == Behavior::Accept { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        response(status, attempt)
    }
}

/// The body names the attempt, so that a log shows which response it contains.
fn response(status: StatusCode, attempt: u32) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("attempt {attempt}")));
    *response.status_mut() = status;
    response
}
