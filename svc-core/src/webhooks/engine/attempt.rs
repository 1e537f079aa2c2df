//! One attempt at a delivery: the request to send, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use crate::values::{Secret, Timestamp, WebhookUrl};
use crate::webhooks::deliveries::{AttemptLog, Delivery};
use crate::webhooks::events::{self, Event};
use crate::webhooks::options::{ClientCredentials, TlsOptions};
use crate::webhooks::signatures;

/// An attempt that was claimed and is to be made now.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The delivery, with the lease and the number of this attempt.
    pub delivery: Delivery,
    /// The event that is delivered.
    pub event: Event,
    /// The URL of the subscription.
    pub url: WebhookUrl,
    /// The secrets that sign the request, the newest first.
    pub secrets: Vec<Secret>,
    /// Whether the tenant is the sandbox of an account. Its receivers are told so.
    pub is_sandbox: bool,
    /// The options of the subscription beyond the contract.
    pub options: AttemptOptions,
}

/// The parts and the limits of the request of an attempt beyond the contract. The `Default` is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptOptions {
    /// Further headers, with names in lower case.
    pub headers: Vec<(String, Secret)>,
    /// The credentials for the access token of the request, if it needs one.
    pub credentials: Option<ClientCredentials>,
    /// Whether the body has the `id` of the record alone, and that of the event.
    pub is_thin: bool,
    /// The timeout, in place of that of the service.
    pub timeout: Option<Duration>,
    /// The private keys that sign the request beside its secrets, the newest first.
    pub private_keys: Vec<Secret>,
    /// How long the attempt waits before it begins, so that those of an endpoint with a rate are apart.
    pub delay: Duration,
    /// The TLS options of this endpoint alone, if it has any. Its connections are not shared with those of another
    /// subscription.
    pub tls: Option<Arc<TlsOptions>>,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptResult {
    /// The delivery as the attempt had it, with its lease.
    pub delivery: Delivery,
    /// The log of the attempt: its status, duration, error and response.
    pub log: AttemptLog,
    /// The delay that the endpoint asked for with `Retry-After`, on 429 and 503 only.
    pub retry_after: Option<Duration>,
}

impl Attempt {
    /// Returns the body of the request: a JSON object with `event`, `data`, `delivered_at` (which is `now`) and `tenant_id`.
    ///
    /// That of a thin event has the `id` of the record alone in `data`, and `event_id`, with which the event is read.
    pub fn body(&self, now: Timestamp) -> Vec<u8> {
        events::body(&self.event, self.options.is_thin, now)
    }

    /// Returns the headers that identify and sign the request (`docs/contract.md`, "Webhook deliveries" and "Webhook
    /// signatures"), with names in lower case. `Content-Type` and `User-Agent` are the client's.
    pub fn headers(&self, now: Timestamp, body: &[u8]) -> Vec<(&'static str, String)> {
        let (id, timestamp) = (self.delivery.id.to_string(), now.as_seconds().to_string());
        let standard = |secret| signatures::standard_webhook_signature(secret, &id, &timestamp, body);
        let asymmetric = |key| signatures::asymmetric_webhook_signature(key, &id, &timestamp, body);
        let asymmetric = self.options.private_keys.iter().filter_map(asymmetric);
        let standard: Vec<String> = self.secrets.iter().map(standard).chain(asymmetric).collect();
        // It has room for one signature, so a receiver must know its secret: the old one until the overlap ends.
        let own = self.secrets.last().map(|oldest| signatures::webhook_signature(oldest, body));
        let mut headers = vec![
            ("x-svc-event", self.event.kind.as_str().to_owned()),
            ("x-svc-signature", own.unwrap_or_default()),
            ("x-svc-delivery", id.clone()),
            ("x-svc-attempt", self.delivery.attempts.to_string()),
            ("webhook-signature", standard.join(" ")),
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
        ];
        if self.is_sandbox || self.event.is_test() {
            headers.push(("x-svc-test", "true".to_owned()));
        }
        headers
    }
}
