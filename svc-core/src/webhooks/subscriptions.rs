//! Webhook subscriptions: the endpoints that receive events (`docs/contract.md`, "Webhook subscriptions").
//!
//! A subscription sends deliveries while it is enabled. Its owner can disable it, and the service pauses it after ten
//! failed attempts in a row. While it is paused, its deliveries are held for a replay; while it is disabled by its owner,
//! it gets none.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::error::Error;
use crate::input::{input, record};
use crate::resources::crud::{self, Create, Delete, NewRecord, NoFilter, Update, advance_clock, resource};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{EventSet, Patch, Secret, TenantId, Text, Timestamp, WebhookUrl, text_enum};
use crate::webhooks::deliveries::{AttemptLog, Delivery, MatchedSubscription, PAUSE_AFTER};
use crate::webhooks::events;
use crate::webhooks::{addresses, signatures};

text_enum! {
    /// Why the service disabled a subscription by itself.
    pub enum DisabledReason {
        AutoPaused = "auto_paused",
    }
}

record! {
    /// An endpoint that receives events.
    #[schemars(rename = "WebhookSubscription")]
    pub struct WebhookSubscription {
        /// Identifier.
        pub id: Uuid,
        /// Where deliveries are posted.
        pub url: WebhookUrl,
        /// Kinds of events that are delivered; the single element `*` means all.
        pub events: EventSet,
        /// Whether deliveries are sent.
        pub enabled: bool,
        /// What it is for.
        pub description: Option<Text<500>>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When the last attempt at a delivery ended.
        pub last_delivery_at: Option<Timestamp>,
        /// HTTP status of the last attempt; 0 for a network failure or time-out, -1 for a blocked address.
        pub last_delivery_status: Option<i32>,
        /// Why the service disabled it: `auto_paused` after 10 failed attempts in a row.
        pub disabled_reason: Option<DisabledReason>,
        /// When the service disabled it.
        pub paused_at: Option<Timestamp>,
        /// Failed attempts since the last success.
        pub consecutive_failures: u32,
        /// Key of its signatures; handed out once, at creation.
        #[serde(skip)]
        pub secret: Secret,
        /// The secret before, which signs beside the new one for a while.
        #[serde(skip)]
        pub previous_secret: Option<Secret>,
        /// Until when the secret before signs.
        #[serde(skip)]
        pub previous_until: Option<Timestamp>,
        /// When its settings last changed.
        #[serde(skip)]
        pub updated_at: Timestamp,
        /// When it was deleted.
        #[serde(skip)]
        pub deleted_at: Option<Timestamp>,
    }
}

resource!(WebhookSubscription, "webhooks", NoFilter, deleted: deleted_at, audited: "webhook");

/// A new subscription with its signing secret, which is returned only once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookSubscriptionWithSecret")]
pub struct WebhookSubscriptionWithSecret {
    /// The subscription.
    #[serde(flatten)]
    pub subscription: WebhookSubscription,
    /// The signing secret: `whsec_` and 32 random bytes in base64. It is returned only in this response. The whole text is
    /// the key of `X-SVC-Signature`.
    pub secret: String,
}

impl From<WebhookSubscription> for WebhookSubscriptionWithSecret {
    fn from(subscription: WebhookSubscription) -> Self {
        let secret = subscription.secret.reveal().to_owned();
        Self { subscription, secret }
    }
}

input! {
    /// A new subscription, which is enabled.
    pub struct WebhookCreate for WebhookSubscription {
        /// `https` URL on a public host, without user name and password.
        url: WebhookUrl,
        /// Kinds of events; `["*"]` for all.
        events: EventSet,
        /// What it is for.
        description: Option<Text<500>>,
    }
}

input! {
    /// Changes to a subscription: what is left out stays.
    pub struct WebhookUpdate for WebhookSubscription, patch true {
        /// `https` URL on a public host, without user name and password.
        url: Patch<WebhookUrl>,
        /// Kinds of events; `["*"]` for all.
        events: Patch<EventSet>,
        /// Whether deliveries are sent; true also ends an automatic pause.
        enabled: Patch<bool>,
        /// What it is for; null clears.
        description: Patch<Option<Text<500>>>,
    }
}

/// What happens to the events that a subscription is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventHandling {
    /// Each event becomes a delivery that is sent at once: the subscription is enabled.
    Deliver,
    /// Each event becomes a delivery that is held for a replay: the service has paused the subscription.
    Hold,
    /// No deliveries are created: the subscription is deleted, or disabled by its owner.
    Ignore,
}

impl WebhookSubscription {
    /// Returns what happens to the events that the subscription is for.
    pub fn event_handling(&self) -> EventHandling {
        if self.deleted_at.is_some() {
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

    /// Records the outcome of an attempt that ended at `ended_at`: the last delivery, and the number of failures in a row.
    ///
    /// Returns whether the caller must [`pause`](Self::pause) the subscription now, because this is the tenth failure in a
    /// row. Further failures, of attempts that were in flight at the same time, return false.
    #[must_use]
    pub fn record_attempt(&mut self, log: &AttemptLog, ended_at: Timestamp) -> bool {
        if self.last_delivery_at <= Some(ended_at) {
            self.last_delivery_at = Some(ended_at);
            self.last_delivery_status = Some(log.status);
        }
        if log.succeeded() {
            self.consecutive_failures = 0;
            return false;
        }
        if !self.is_active() || self.consecutive_failures >= PAUSE_AFTER {
            return false;
        }
        self.consecutive_failures += 1;
        self.consecutive_failures == PAUSE_AFTER
    }

    /// Pauses the subscription until its owner enables it again.
    pub fn pause(&mut self, now: Timestamp) {
        self.enabled = false;
        self.disabled_reason = Some(DisabledReason::AutoPaused);
        self.paused_at = Some(now);
        self.updated_at = now;
    }

    /// Returns the secrets that sign a delivery at `now`, the newest first: the current one and, during the overlap after a
    /// rotation, the previous one.
    pub fn signing_secrets(&self, now: Timestamp) -> Vec<Secret> {
        let previous = self.previous_secret.iter().filter(|_| self.previous_until > Some(now));
        std::iter::once(&self.secret).chain(previous).cloned().collect()
    }

    /// Returns the match with events of a kind, or `None` if the subscription gets no delivery of them.
    pub fn match_event(&self, kind: EventKind) -> Option<MatchedSubscription> {
        let paused = match self.event_handling() {
            EventHandling::Deliver => false,
            EventHandling::Hold => true,
            EventHandling::Ignore => return None,
        };
        self.events.contains(kind).then_some(MatchedSubscription { subscription_id: self.id, paused })
    }
}

#[async_trait]
impl Create for WebhookSubscription {
    type Input = WebhookCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: WebhookCreate) -> Result<Self, Error> {
        check_url(tx, &input.url)?;
        Ok(Self {
            id: new.id,
            url: input.url,
            events: input.events,
            enabled: true,
            description: input.description,
            created_at: new.now,
            last_delivery_at: None,
            last_delivery_status: None,
            disabled_reason: None,
            paused_at: None,
            consecutive_failures: 0,
            secret: signatures::new_webhook_secret(tx.env()),
            previous_secret: None,
            previous_until: None,
            updated_at: new.now,
            deleted_at: None,
        })
    }

    fn created_events(&self) -> Vec<EventKind> {
        Vec::new()
    }
}

#[async_trait]
impl Update for WebhookSubscription {
    type Input = WebhookUpdate;

    fn apply(&mut self, change: WebhookUpdate, _now: Timestamp) -> Result<(), Error> {
        change.url.apply(&mut self.url);
        change.events.apply(&mut self.events);
        change.description.apply(&mut self.description);
        if change.enabled == Patch::Set(true) {
            self.disabled_reason = None;
            self.paused_at = None;
            self.consecutive_failures = 0;
        }
        change.enabled.apply(&mut self.enabled);
        Ok(())
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    async fn check(&self, tx: &mut dyn Tx, tenant: TenantId, before: &Self) -> Result<(), Error> {
        if self.url != before.url {
            check_url(tx, &self.url)?;
        }
        if before.enabled && !self.enabled {
            tx.hold_deliveries(tenant, self.id).await?;
        }
        Ok(())
    }

    fn changed_events(&self, _before: &Self) -> Vec<EventKind> {
        Vec::new()
    }
}

#[async_trait]
impl Delete for WebhookSubscription {
    fn mark_deleted(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.deleted_at = Some(now);
    }

    async fn on_delete(&self, tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
        Ok(tx.hold_deliveries(tenant, self.id).await?)
    }

    fn deleted_events(&self) -> Vec<EventKind> {
        Vec::new()
    }
}

fn check_url(tx: &mut dyn Tx, url: &WebhookUrl) -> Result<(), Error> {
    addresses::check_url(url, tx.env().webhook_hosts).map_err(|issue| issue.on("url"))
}

/// Replaces the signing secret. For the length of `overlap` the previous secret signs as well, in `webhook-signature`.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn rotate_secret(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    overlap: Duration,
) -> Result<WebhookSubscription, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: WebhookSubscription = crud::get(tx, tenant, id).await?;
    let mut subscription = before.clone();
    let secret = signatures::new_webhook_secret(tx.env());
    subscription.previous_secret = Some(std::mem::replace(&mut subscription.secret, secret));
    subscription.previous_until = Some(now.checked_add(overlap).unwrap_or(now));
    subscription.set_updated_at(now);
    Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
    crud::audit_change(tx, tenant, "rotate", Some(&before), Some(&subscription)).await?;
    Ok(subscription)
}

/// Sends a test event to one subscription, by the same way as every event. No other subscription receives it.
///
/// Its data is `{"id": …, "test": true}`. Without a `kind`, it is of the first kind that the subscription is for, or
/// `contact.created` if that is all kinds.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when the subscription is disabled or paused, or is not for `kind`.
pub async fn send_test(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    kind: Option<EventKind>,
) -> Result<Delivery, Error> {
    let now = advance_clock(tx, tenant).await?;
    let subscription: WebhookSubscription = crud::get(tx, tenant, id).await?;
    if !subscription.is_active() {
        let state = if subscription.disabled_reason.is_some() { "paused" } else { "disabled" };
        return Err(Error::NotAllowed(format!("The subscription is {state}; enable it first.")));
    }
    let kind = match (kind, &subscription.events) {
        (Some(kind), events) if !events.contains(kind) => {
            let takes = events.names().join(", ");
            return Err(Error::NotAllowed(format!("The subscription does not take {kind}; it takes {takes}.")));
        }
        (Some(kind), _) => kind,
        (None, EventSet::Kinds(kinds)) => kinds.first().copied().unwrap_or(EventKind::ContactCreated),
        (None, EventSet::All) => EventKind::ContactCreated,
    };
    let data = json!({ "id": tx.env().id(now), "test": true });
    events::emit_to(tx, tenant, now, kind, &data, MatchedSubscription { subscription_id: id, paused: false }).await
}
