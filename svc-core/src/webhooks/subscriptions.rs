//! Webhook subscriptions: the endpoints that receive events (`docs/contract.md`, "Webhooks").
//!
//! A subscription sends deliveries while it is enabled. Its owner can disable it, and the service pauses it after ten
//! failed attempts in a row. While it is paused, its deliveries are held for a replay; while it is disabled by its owner,
//! it gets none.
//!
//! # Stopping
//!
//! A subscription that stops sending, because it is disabled, paused or deleted, may have a million deliveries pending. The
//! change of the subscription itself is what stops them, at once. Their rows follow in steps ([`settle`]): the first in the
//! same transaction, the others in batches of the delivery engine. Until the last step,
//! `stopped_at` says which deliveries are left: those that are pending and of events before it. So a subscription that is
//! enabled again in between sends what is new once these are held, and nothing that was pending when it stopped.

mod changes;
mod inputs;
mod operations;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::grants::GrantId;
use crate::accounts::platform_keys::Area;
use crate::env::Env;
use crate::error::{Error, FieldCode, Issue};
use crate::input::Record;
use crate::operation::{OperationText, Profile};
use crate::resources::{NoFilter, Resource};
use crate::values::EventKind;
use crate::values::{EventSet, Id, Secret, StreamUrl, Text, TextEnum, Timestamp, WebhookUrl};
use crate::webhooks::addresses;
use crate::webhooks::deliveries::{
    AfterFailure, Delivery, DeliveryId, DeliveryStatus, FailureReason, MatchedSubscription, PAUSE_AFTER, RetrySchedule,
};
use crate::webhooks::engine::{AttemptOptions, AttemptResult};
use crate::webhooks::filters::Filter;
use crate::webhooks::options::{
    AttemptsInFlight, Authentication, CertificateAuthority, ClientCertificate, ClientCredentials, CustomHeaders,
    Ordering, Payload, PerSecond, RetryDelays, SignatureScheme, TimeoutSeconds, TlsOptions,
};
use crate::webhooks::signatures::SigningKeys;

pub use self::changes::settle;
pub use self::inputs::{StreamCreate, WebhookCreate, WebhookUpdate};
pub use self::operations::{delete_expired, finish_rotation, keep_for, rotate_secret, send_test};
pub use self::streams::create_stream;

/// The id of a webhook subscription.
pub type SubscriptionId = Id<WebhookSubscription>;

/// The highest number of deliveries that are held or ended together with the change that stops a subscription.
pub const SETTLE_AT_ONCE: u32 = 200;
/// The highest number of deliveries that each later step of [`settle`] holds or ends. It takes about as long as any write.
pub const SETTLE_STEP: u32 = 25;
/// The pause between two such steps, in which other writes run.
pub const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// The header that authentication sets.
const AUTHORIZATION: &str = "authorization";

/// Why the service disabled a subscription by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum DisabledReason {
    /// Ten delivery attempts in a row failed.
    AutoPaused,
}

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Webhooks,
    memory: 4,
    with_article: "a webhook subscription",
    singular: "webhook subscription",
    plural: "webhook subscriptions",
    list: OperationText::new(
        "listWebhooks",
        "Signing secrets are not included; they are only returned when a subscription is created.",
    ),
    get: "getWebhook",
    create: OperationText::new(
        "createWebhook",
        "Creates a webhook subscription, which is enabled from the start. The host of `url` and all addresses that it \
         resolves to must be public. If the account has as many subscriptions as it can have, 100 by default, the \
         request fails with 409 `limit_reached`.\n\n\
         The response contains the signing `secret`. Store it, as no other request returns it.",
    ),
    update: OperationText::new(
        "updateWebhook",
        "To end an automatic pause, set `enabled` to true. Pending deliveries are sent to a new `url` as well.",
    ),
    delete: OperationText::new(
        "deleteWebhook",
        "Deletes a webhook subscription. Its pending deliveries are not sent, and no further events are delivered.",
    ),
};

/// An endpoint that receives events, with the selection of events that are sent to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "webhooks", filter = NoFilter, profile = PROFILE, soft_delete, unversioned, own_only, audited = "webhook")]
pub struct WebhookSubscription {
    /// The unique identifier of the subscription, a UUID of version 7 that the service assigns.
    pub id: SubscriptionId,
    /// The URL of the endpoint. Each delivery is a POST to it. If the operator sends the events of the subscription to a broker
    /// in place of deliveries, it is that of the broker, such as `nats://nats.example.com/svc`, without its credentials.
    pub url: WebhookUrl,
    /// The kinds of events that are delivered to the endpoint. The single element `*` stands for all kinds, including
    /// those that are added later.
    pub events: EventSet,
    /// Whether deliveries are sent. It is true at creation, changes with a PATCH, and becomes false when the service
    /// pauses the subscription after ten failed attempts in a row.
    pub enabled: bool,
    /// A description of the subscription, for your own use. Null if none was given.
    pub description: Option<Text<500>>,
    /// When the subscription was created.
    pub created_at: Timestamp,
    /// When the last delivery attempt ended. Null before the first attempt.
    pub last_delivery_at: Option<Timestamp>,
    /// The result of the last delivery attempt: the HTTP status of the response, 0 for a network failure or a timeout,
    /// or -1 if nothing was sent because the URL is not `https` or its host is not public. Null before the first
    /// attempt.
    pub last_delivery_status: Option<i32>,
    /// The reason why the service paused the subscription. Null while the subscription is enabled, and while it is
    /// disabled by a PATCH.
    pub disabled_reason: Option<DisabledReason>,
    /// When the service paused the subscription. Null while it is not paused.
    pub paused_at: Option<Timestamp>,
    /// The number of delivery attempts that have failed in a row, one after the other: attempts that were in flight
    /// when one of them failed are not counted. A success sets it to 0, and so does a PATCH with `enabled` true. At 10
    /// the service pauses the subscription.
    pub consecutive_failures: u32,
    /// The names of the headers that each delivery has in addition. Their values are secret. Null unless set.
    #[serde(default)]
    pub headers: Option<CustomHeaders>,
    /// How deliveries are authenticated at the endpoint, without the secret. Null unless set.
    #[serde(default)]
    pub authentication: Option<Authentication>,
    /// Which events of these kinds are delivered, by what is in them. Null unless set: then all are.
    #[serde(default)]
    pub filter: Option<Filter>,
    /// The `data` in the body of a delivery, if it is not the record. Null unless set.
    #[serde(default)]
    pub payload: Option<Payload>,
    /// The highest rate of deliveries, in deliveries a second. Null unless set.
    #[serde(default)]
    pub max_per_second: Option<PerSecond>,
    /// The highest number of delivery attempts at the same time. Null unless set.
    #[serde(default)]
    pub max_in_flight: Option<AttemptsInFlight>,
    /// The timeout of a delivery attempt in seconds. Null unless set: then it is that of the service.
    #[serde(default)]
    pub timeout: Option<TimeoutSeconds>,
    /// The waits before the retries of a delivery in seconds. Null unless set: then they are those of the
    /// service.
    #[serde(default)]
    pub retry_schedule: Option<RetryDelays>,
    /// Which deliveries wait for earlier ones. Null unless set: then none do.
    #[serde(default)]
    pub ordering: Option<Ordering>,
    /// How deliveries are signed, if it is not with the secret alone. Null unless set.
    #[serde(default)]
    pub signature: Option<SignatureScheme>,
    /// The public keys that verify the `v1a` signatures of deliveries, the newest first. Null unless `signature` is `ed25519`.
    #[serde(default)]
    pub signing_keys: Option<SigningKeys>,
    /// The certificate that deliveries show to the endpoint, without its key. Null unless set.
    #[serde(default)]
    pub client_certificate: Option<ClientCertificate>,
    /// The certificate authorities that are trusted at the endpoint. Null unless set: then they are the public ones.
    #[serde(default)]
    pub certificate_authority: Option<CertificateAuthority>,
    /// Until when the rate of deliveries is used up. `None` without a rate, and before the first delivery.
    #[serde(skip)]
    pub paced_until: Option<Timestamp>,
    /// The stream that the events go to in place of deliveries, for a subscription that an operator has made so. `url` shows it
    /// without its credentials.
    #[serde(skip)]
    pub stream_url: Option<StreamUrl>,
    /// While the endpoint gets one attempt at a time, after a failure: the time from which the next one can be made, or the
    /// end of the lease of the one in flight. `None` once such an attempt has succeeded.
    #[serde(skip)]
    pub backoff_until: Option<Timestamp>,
    /// The secret that signs the deliveries; during the overlap after a rotation, the new one of the two. The response to
    /// the create is the only one that has it.
    #[serde(skip)]
    pub secret: Secret,
    /// The secret before the rotation. It signs until `previous_until`: `X-SVC-Signature` alone, and
    /// `webhook-signature` beside the new secret.
    #[serde(skip)]
    pub previous_secret: Option<Secret>,
    /// When the overlap of the rotation ends, and with it the use of the previous secret.
    #[serde(skip)]
    pub previous_until: Option<Timestamp>,
    /// When the settings last changed, the service paused the subscription, or its secret was rotated. Delivery
    /// attempts do not change it.
    #[serde(skip)]
    pub updated_at: Timestamp,
    /// When the subscription was deleted. `None` while it is live.
    #[serde(skip)]
    pub deleted_at: Option<Timestamp>,
    /// When the subscription last stopped sending, as long as deliveries that were pending then are still to be held or
    /// ended.
    #[serde(skip)]
    pub stopped_at: Option<Timestamp>,
    /// When the service deletes the subscription by itself, unless it is [kept](keep_for) for longer until then. `None` if it
    /// stays until someone deletes it.
    #[serde(skip)]
    pub expires_at: Option<Timestamp>,
    /// The grant of the app that made the subscription. `None` for one of the account itself.
    #[serde(skip)]
    pub grant_id: Option<GrantId>,
    /// How many attempts of the day have kept the bodies of their responses.
    #[serde(skip)]
    pub responses_kept: u32,
    /// The delivery up to which those bodies were deleted. Its id also says which day `responses_kept` counts. `None` before
    /// the first response with a body.
    #[serde(skip)]
    pub responses_deleted_until: Option<DeliveryId>,
}

/// A new subscription with its signing secret. No later response contains the secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WebhookSubscriptionWithSecret")]
#[non_exhaustive]
pub struct WebhookSubscriptionWithSecret {
    /// The subscription.
    #[serde(flatten)]
    pub subscription: WebhookSubscription,
    /// The signing secret: `whsec_` and the base64 of 32 random bytes. Store it now, as it is returned only once. The
    /// HMAC key of `X-SVC-Signature` is the whole text, including `whsec_`.
    pub secret: String,
}

impl From<WebhookSubscription> for WebhookSubscriptionWithSecret {
    fn from(subscription: WebhookSubscription) -> Self {
        let secret = subscription.secret.reveal().to_owned();
        Self { subscription, secret }
    }
}

/// The fate of the events that a subscription is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventHandling {
    /// Each event becomes a delivery that is sent at once: the subscription is enabled.
    Deliver,
    /// Each event becomes a delivery that is held for a replay: the service has paused the subscription.
    Hold,
    /// No deliveries are created: the subscription is deleted, disabled by its owner, or its events go to a stream.
    Ignore,
}

impl WebhookSubscription {
    /// Returns what happens to the events that the subscription is for.
    pub fn event_handling(&self) -> EventHandling {
        if self.deleted_at.is_some() || self.stream_url.is_some() {
            EventHandling::Ignore
        } else if self.enabled {
            EventHandling::Deliver
        } else if self.disabled_reason.is_some() {
            EventHandling::Hold
        } else {
            EventHandling::Ignore
        }
    }

    /// Returns whether deliveries are sent: the subscription is enabled and not deleted.
    pub fn is_active(&self) -> bool {
        self.enabled && self.deleted_at.is_none()
    }

    /// Records the outcome of an attempt at `now`: the last delivery, the number of failures in a row, and the back-off.
    ///
    /// During the back-off only the attempt that was [made by itself](Self::begin_single_attempt) says anything new. The
    /// others were in flight when an earlier one failed, so their failures do not count, and their successes do not end the
    /// back-off. A failure with a `Retry-After` is back-pressure: it begins a back-off, and counts only during one.
    ///
    /// Returns whether the caller must [`pause`](Self::pause) the subscription now, because this is the tenth failure in a
    /// row.
    #[must_use]
    pub fn record_attempt(&mut self, outcome: &AttemptResult, retry: &RetrySchedule, now: Timestamp) -> bool {
        let AttemptResult { delivery, log, retry_after } = outcome;
        let ended_at = log.ended_at();
        if self.last_delivery_at <= Some(ended_at) {
            self.last_delivery_at = Some(ended_at);
            self.last_delivery_status = Some(log.status);
        }
        let was_in_backoff = self.backoff_until.is_some();
        let says_something_new = !was_in_backoff || self.backoff_until == delivery.next_attempt_at;
        if log.succeeded() {
            self.consecutive_failures = 0;
            self.backoff_until = self.backoff_until.filter(|_| !says_something_new);
            return false;
        }
        if !self.is_active() || !says_something_new {
            return false;
        }
        let counts = was_in_backoff || retry_after.is_none();
        self.consecutive_failures += u32::from(counts);
        let delay = retry.backoff(self.consecutive_failures, *retry_after);
        self.backoff_until = Some(now.checked_add(delay).unwrap_or(now));
        self.consecutive_failures == PAUSE_AFTER
    }

    /// Records that the one attempt which the back-off allows has been claimed until `lease_ends`. No process makes another
    /// one before its outcome is recorded or its lease ends.
    pub fn begin_single_attempt(&mut self, lease_ends: Timestamp) {
        self.backoff_until = Some(lease_ends);
    }

    /// Pauses the subscription until its owner enables it again. The caller must [`settle`] its deliveries.
    pub fn pause(&mut self, now: Timestamp) {
        self.enabled = false;
        self.stopped_at = Some(now);
        self.disabled_reason = Some(DisabledReason::AutoPaused);
        self.paused_at = Some(now);
        self.updated_at = now;
    }

    /// Returns what becomes of a delivery to this subscription that has a retry left.
    pub fn after_failure(&self, delivery: &Delivery) -> AfterFailure {
        if self.deleted_at.is_some() {
            AfterFailure::Fail(FailureReason::SubscriptionDeleted)
        } else if !self.enabled
            // It was held during the attempt, or is to be held, even if the subscription has been enabled again.
            || delivery.status != DeliveryStatus::Pending
            || self.stopped_at.is_some_and(|stopped_at| delivery.created_at < stopped_at)
        {
            AfterFailure::Hold
        } else {
            AfterFailure::Retry
        }
    }

    /// Returns the secrets that sign a delivery at `now`, the newest first: the current one and, during the overlap after a
    /// rotation, the previous one.
    pub fn signing_secrets(&self, now: Timestamp) -> Vec<Secret> {
        std::iter::once(&self.secret).chain(self.overlapping_secret(now)).cloned().collect()
    }

    /// Returns the previous secret while it signs as well.
    fn overlapping_secret(&self, now: Timestamp) -> Option<&Secret> {
        self.previous_secret.as_ref().filter(|_| self.previous_until > Some(now))
    }

    /// Checks that not both the headers and the authentication set `Authorization`, and the host of a new token endpoint.
    fn check_authentication(&self, env: &Env, before: Option<&Authentication>) -> Result<(), Error> {
        let credentials = self.authentication.as_ref().and_then(Authentication::client_credentials);
        if let Some(ClientCredentials { token_url, .. }) = credentials
            && self.authentication.as_ref() != before
        {
            let checked = addresses::check_url(token_url, env.webhook_hosts);
            checked.map_err(|issue| issue.within("token_url").on("authentication"))?;
        }
        let mut names = self.headers.iter().flat_map(CustomHeaders::iter).map(|(name, _)| name);
        if self.authentication.is_some() && names.any(|name| name == AUTHORIZATION) {
            let reason = "must not have authorization beside authentication, which sets it";
            return Err(Issue::new(FieldCode::InvalidFormat, reason).on("headers"));
        }
        Ok(())
    }

    /// Returns whether the deliveries of a record wait for each other.
    pub fn is_ordered(&self) -> bool {
        self.ordering == Some(Ordering::Record)
    }

    /// Returns what TLS to the endpoint has beyond that to all others, if anything.
    fn tls_options(&self) -> Option<Arc<TlsOptions>> {
        let options = TlsOptions {
            client_certificate: self.client_certificate.clone(),
            certificate_authority: self.certificate_authority.clone(),
        };
        (options != TlsOptions::default()).then(|| Arc::new(options))
    }

    /// Returns what requests to the endpoint at `now` have and what limits them, beyond the contract.
    pub fn attempt_options(&self, now: Timestamp) -> AttemptOptions {
        let authentication = self.authentication.as_ref();
        let authorization = authentication.and_then(Authentication::authorization);
        let authorization = authorization.map(|value| (AUTHORIZATION.to_owned(), value));
        let headers = self.headers.iter().flat_map(CustomHeaders::iter);
        AttemptOptions {
            headers: headers.map(|(name, value)| (name.to_owned(), value.clone())).chain(authorization).collect(),
            credentials: authentication.and_then(Authentication::client_credentials).cloned(),
            is_thin: self.payload == Some(Payload::Thin),
            timeout: self.timeout.map(TimeoutSeconds::duration),
            private_keys: self.signing_keys.iter().flat_map(|keys| keys.private_keys(now)).cloned().collect(),
            delay: Duration::ZERO,
            tls: self.tls_options(),
        }
    }

    /// Returns the match with events of a kind, or `None` if the subscription gets no delivery of them.
    pub fn match_event(&self, kind: EventKind) -> Option<MatchedSubscription> {
        let paused = match self.event_handling() {
            EventHandling::Deliver => false,
            EventHandling::Hold => true,
            EventHandling::Ignore => return None,
        };
        self.events.contains(kind).then(|| MatchedSubscription {
            subscription_id: self.id,
            paused,
            filter: self.filter.clone(),
            is_ordered: self.is_ordered(),
        })
    }
}
