//! The webhook endpoints. They verify each delivery, record it, and respond according to their behaviour.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::Value;
use svc_core::webhooks::deliveries::DeliveryId;

use crate::fixture::{Behavior, Subscription, Tenants};
use crate::journal::Arrival;
use svc_test_support::Result;
use svc_test_support::endpoint;

/// The delay of a slow endpoint.
const SLOW: Duration = Duration::from_millis(20);

/// All endpoints, behind one port.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Subscriptions by the path of their URL.
    subscriptions: OnceLock<HashMap<String, Subscription>>,
    journal: Mutex<ReceiverJournal>,
}

/// What arrived at the endpoints.
#[derive(Default)]
pub(crate) struct ReceiverJournal {
    pub(crate) arrivals: Vec<Arrival>,
    /// Reasons why a request was not a valid delivery.
    pub(crate) refused: Vec<String>,
}

impl Receiver {
    pub(crate) async fn listen() -> Result<Self> {
        let inner = Arc::<Inner>::default();
        let shared = Arc::clone(&inner);
        let address = endpoint::listen(move |request| {
            let inner = Arc::clone(&shared);
            async move {
                let mut response = Response::new(Full::default());
                *response.status_mut() = inner.respond(request).await;
                response
            }
        });
        let address = address.await?;
        Ok(Self { address, inner })
    }

    /// Sets the subscriptions, before the first delivery.
    pub(crate) fn expect(&self, fixture: &Tenants) {
        let subscriptions = fixture.subscriptions().map(|(path, subscription)| (path, subscription.clone())).collect();
        // This is called only once.
        let _ = self.inner.subscriptions.set(subscriptions);
    }

    /// Takes the journal so far.
    pub(crate) fn take(&self) -> ReceiverJournal {
        std::mem::take(&mut *self.inner.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    async fn respond(&self, request: Request<Incoming>) -> StatusCode {
        let (parts, body) = request.into_parts();
        // An incomplete request did not arrive.
        let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST };
        let path = parts.uri.path();
        let Some(subscription) = self.subscriptions.get().and_then(|subscriptions| subscriptions.get(path)) else {
            return self.refuse(format!("a delivery to {path}, which is no endpoint"));
        };
        match arrival(subscription, &parts.headers, &body.to_bytes()) {
            Ok(arrival) => {
                let accepted = arrival.accepted;
                self.record(|journal| journal.arrivals.push(arrival));
                if subscription.behavior == Behavior::Slow {
                    tokio::time::sleep(SLOW).await;
                }
                if accepted { StatusCode::NO_CONTENT } else { StatusCode::SERVICE_UNAVAILABLE }
            }
            Err(error) => self.refuse(format!("a delivery to {path} is invalid: {error}")),
        }
    }

    fn refuse(&self, reason: String) -> StatusCode {
        self.record(|journal| journal.refused.push(reason));
        StatusCode::BAD_REQUEST
    }

    fn record(&self, change: impl FnOnce(&mut ReceiverJournal)) {
        change(&mut self.journal.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn arrival(subscription: &Subscription, headers: &HeaderMap, body: &[u8]) -> Result<Arrival> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).ok_or(format!("no {name}"));
    svc_webhook_verify::verify(&subscription.secret, header("x-svc-signature")?, body)?;
    let delivery: DeliveryId = header("x-svc-delivery")?.parse()?;
    if header("webhook-id")? != header("x-svc-delivery")? {
        return Err("webhook-id differs from X-SVC-Delivery".into());
    }
    let attempt: u32 = header("x-svc-attempt")?.parse()?;
    let mut body: Value = serde_json::from_slice(body)?;
    let kind = body["event"].as_str().ok_or("no event in the body")?.to_owned();
    if kind != header("x-svc-event")? {
        return Err("the event of the body differs from X-SVC-Event".into());
    }
    let accepted =
        subscription.behavior != Behavior::Flaky || attempt > 1 || !delivery.uuid().as_u128().is_multiple_of(8);
    Ok(Arrival { subscription: subscription.id, delivery, attempt, kind, data: body["data"].take(), accepted })
}
