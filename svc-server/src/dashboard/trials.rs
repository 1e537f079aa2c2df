//! Trying an endpoint: one signed test request that is sent at once, by the client and the rules of deliveries. So it goes to
//! public addresses alone unless the service allows others, follows no redirect, and ends within the time-out of an attempt.
//! Nothing of it is stored.

use std::sync::{Arc, Mutex};

use maud::{Markup, html};
use serde_json::value::to_raw_value;
use svc_core::env::Env;
use svc_core::sync::lock;
use svc_core::values::{EventKind, TenantId, WebhookUrl};
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::events::Event;
use svc_core::webhooks::samples;
use svc_core::webhooks::signatures::new_webhook_secret;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::components::{Tone, badge, number};
use super::page_response::PageError;
use super::{failures, json};
use crate::deliver::{Trial, WebhookClient};

/// The number of endpoints that the process tries at a time. Each may take as long as the time-out of an attempt.
const MAX_TRIALS: usize = 20;
/// How many of them are of one account.
const MAX_OF_ACCOUNT: usize = 4;
/// The number of headers of a response that are shown, and of the bytes of each.
const MAX_HEADERS: usize = 40;
const MAX_HEADER: usize = 500;

/// Sends test requests.
pub(super) struct Trials {
    client: Arc<dyn WebhookClient>,
    permits: Semaphore,
    /// The accounts with trials of endpoints under way, each as often as it has trials.
    accounts: Mutex<Vec<TenantId>>,
}

/// A trial that counts towards the share of its account.
struct TrialPermit<'t>(&'t Mutex<Vec<TenantId>>, TenantId);

impl Drop for TrialPermit<'_> {
    fn drop(&mut self) {
        let mut accounts = lock(self.0);
        if let Some(at) = accounts.iter().position(|account| *account == self.1) {
            accounts.swap_remove(at);
        }
    }
}

/// A test request, and what came back.
pub(super) struct TrialResult {
    url: WebhookUrl,
    kind: EventKind,
    trial: Trial,
    /// Whether it went to another host than the endpoint has, and so without what is stored for that.
    is_other_host: bool,
}

/// Returns a test request with a sample of this kind of event, or of `contact.created`. It is made as a delivery to the endpoint,
/// with its secrets, or signed with a new secret if there is none at this host.
pub(super) fn request(
    env: &Env,
    tenant: TenantId,
    endpoint: Option<&WebhookSubscription>,
    url: WebhookUrl,
    kind: Option<EventKind>,
) -> Attempt {
    let now = env.now();
    let kind = kind.filter(|kind| env.event_kinds.contains(*kind)).unwrap_or(EventKind::ContactCreated);
    let data = samples::data(&env.event_kinds, kind).unwrap_or_default();
    let subscription = endpoint.map_or_else(|| SubscriptionId::from(Uuid::nil()), |endpoint| endpoint.id);
    let event = Event {
        id: env.id(now),
        tenant_id: tenant,
        kind,
        data: to_raw_value(&data).unwrap_or_default(),
        created_at: now,
        only_for: Some(subscription),
    };
    let mut delivery = event.delivery_to(env.id(now), subscription, false);
    delivery.attempts = 1;
    let secrets = endpoint.map_or_else(|| vec![new_webhook_secret(env)], |endpoint| endpoint.signing_secrets(now));
    // The event is marked as a test, whatever the account is.
    let options = endpoint.map(|endpoint| endpoint.attempt_options(now)).unwrap_or_default();
    Attempt { delivery, event, url, secrets, is_sandbox: false, options }
}

impl Trials {
    pub(super) fn new(client: Arc<dyn WebhookClient>) -> Self {
        Self { client, permits: Semaphore::new(MAX_TRIALS), accounts: Mutex::default() }
    }

    /// Counts a trial of an account. `None` if too many are under way.
    fn count(&self, account: TenantId) -> Option<TrialPermit<'_>> {
        let mut accounts = lock(&self.accounts);
        if accounts.iter().filter(|other| **other == account).count() >= MAX_OF_ACCOUNT {
            return None;
        }
        accounts.push(account);
        Some(TrialPermit(&self.accounts, account))
    }

    /// Sends a test request. `is_other_host` says that it goes to another host than the endpoint has.
    ///
    /// # Errors
    ///
    /// Returns [`PageError::Refused`] if too many are under way.
    pub(super) async fn send(&self, request: Attempt, is_other_host: bool) -> Result<TrialResult, PageError> {
        let Some(_counted) = self.count(request.event.tenant_id) else {
            let reason = "Several endpoints of this account are being tried at this moment, so this one was not. Try it again when \
                          they have responded.";
            return Err(PageError::Refused(reason.to_owned()));
        };
        let Ok(_permit) = self.permits.try_acquire() else {
            let reason =
                "Many endpoints are being tried at this moment, so this one was not. Try it again in a few seconds.";
            return Err(PageError::Refused(reason.to_owned()));
        };
        let (url, kind) = (request.url.clone(), request.event.kind);
        let trial = self.client.try_endpoint(request).await;
        Ok(TrialResult { url, kind, trial, is_other_host })
    }
}

impl TrialResult {
    /// Returns what came back. `is_new` says that the endpoint has no secret yet.
    pub(super) fn card(&self, is_new: bool) -> Markup {
        let log = &self.trial.log;
        let (tone, status) = match (log.succeeded(), log.status) {
            (true, status) => (Tone::Good, status.to_string()),
            (false, -1) => (Tone::Bad, "blocked".to_owned()),
            (false, 0) => (Tone::Bad, "no response".to_owned()),
            (false, status) => (Tone::Bad, status.to_string()),
        };
        html! {
            section.card role="status" {
                h2 { "Response" }
                div.line { (badge(tone, &status)) span { "after " (number(u64::from(log.duration_ms))) " ms" } }
                p { "A test of " code { (self.kind) } " was sent to " (self.url) ". Nothing was saved." }
                @if let Some(text) = failures::explain(log) { p { (text) } }
                @if let Some(error) = &log.error { p.soft { "The error was: " (error) } }
                @if self.is_other_host {
                    p.soft { "It went to another host than the saved URL, so it had none of the headers, credentials and certificates of the \
                        endpoint, and was signed with a secret made for this try alone." }
                }
                @if is_new {
                    p.soft { "It was signed with a secret made for this try alone. A program that verifies signatures refuses it until it \
                        has the secret that you get when you add the endpoint." }
                }
                @if !self.trial.headers.is_empty() {
                    h3 { "Headers" }
                    pre tabindex="0" { code {
                        @for (name, value) in self.trial.headers.iter().take(MAX_HEADERS) {
                            (name) ": " (json::beginning(&String::from_utf8_lossy(value.as_bytes()), MAX_HEADER).0) "\n"
                        }
                    } }
                }
                @if log.status > 0 {
                    h3 { "Body" }
                    @match log.response_body.as_deref() {
                        Some(body) if !body.is_empty() => { (json::body("tried-body", body)) }
                        _ => { p.soft { "The body was empty." } }
                    }
                }
            }
        }
    }
}
