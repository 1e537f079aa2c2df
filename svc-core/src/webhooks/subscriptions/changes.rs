//! The checks and the consequences when a subscription is created, changed or deleted.

use async_trait::async_trait;

use super::{SETTLE_AT_ONCE, SETTLE_PAUSE, WebhookCreate, WebhookSubscription, WebhookUpdate};
use crate::accounts::clocks::WriteTime;
use crate::accounts::tenants;
use crate::env::Env;
use crate::error::{Error, Violations};
use crate::operation::Outside;
use crate::resources::{Create, Delete, NewRecord, Update};
use crate::store::Tx;
use crate::values::{EventKind, EventSet, Patch, TenantId, Timestamp, WebhookUrl};
use crate::webhooks::addresses;
use crate::webhooks::deliveries::FailureReason;
use crate::webhooks::options::{Ordering, Payload, SignatureScheme, SigningSecret, Unredacted};
use crate::webhooks::signatures::{self, SigningKeys};

#[async_trait]
impl Create for WebhookSubscription {
    type Input = WebhookCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: WebhookCreate) -> Result<Self, Error> {
        check_input(tx.env(), Some(&input.url), &input.events, None)?;
        check_count(tx, new.tenant_id).await?;
        let created = Self::of_input(tx, new, input);
        created.check_authentication(tx.env(), None)?;
        Ok(created)
    }

    fn created_events(&self) -> Vec<EventKind> {
        Vec::new()
    }
}

impl WebhookSubscription {
    /// Returns a subscription with these settings.
    pub(super) fn of_input(tx: &dyn Tx, new: NewRecord, input: WebhookCreate) -> Self {
        let signature = input.signature.filter(|signature| *signature != SignatureScheme::Hmac);
        Self {
            id: new.id.into(),
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
            headers: input.headers.map(|Unredacted(headers)| headers).filter(|headers| !headers.is_empty()),
            authentication: input.authentication.map(|Unredacted(authentication)| authentication),
            filter: input.filter,
            payload: input.payload.filter(|payload| *payload != Payload::Contract),
            max_per_second: input.max_per_second,
            max_in_flight: input.max_in_flight,
            timeout: input.timeout,
            retry_schedule: input.retry_schedule,
            ordering: input.ordering.filter(|ordering| *ordering != Ordering::None),
            signature,
            signing_keys: signature.map(|_| SigningKeys::generate(tx.env())),
            client_certificate: input.client_certificate.map(|Unredacted(certificate)| certificate),
            certificate_authority: input.certificate_authority.map(|Unredacted(authority)| authority),
            paced_until: None,
            stream_url: None,
            backoff_until: None,
            secret: match input.secret {
                Some(Unredacted(SigningSecret(secret))) => secret,
                None => signatures::new_webhook_secret(tx.env()),
            },
            previous_secret: None,
            previous_until: None,
            updated_at: new.now,
            deleted_at: None,
            stopped_at: None,
            expires_at: None,
            grant_id: tx.actor().grant(),
            responses_kept: 0,
            responses_deleted_until: None,
        }
    }
}

#[async_trait]
impl Update for WebhookSubscription {
    type Input = WebhookUpdate;

    fn outside(change: &WebhookUpdate) -> Outside {
        Outside {
            webhook: change.url.clone().sent().map(|url| ("url", url)),
            certificate: change.client_certificate.clone().sent().flatten().map(|Unredacted(certificate)| certificate),
            authority: change.certificate_authority.clone().sent().flatten().map(|Unredacted(authority)| authority),
            stream: None,
        }
    }

    fn apply(&mut self, change: WebhookUpdate, at: WriteTime) -> Result<(), Error> {
        if let Patch::Set(url) = change.url
            && url != self.url
        {
            if !url.has_origin_of(&self.url) {
                // They were stored for another host. The change may have others, which follow.
                self.headers = None;
                self.authentication = None;
                self.client_certificate = None;
            }
            self.url = url;
            self.backoff_until = None;
        }
        change.events.apply(&mut self.events);
        change.description.apply(&mut self.description);
        if let Patch::Set(headers) = change.headers {
            self.headers = headers.map(|Unredacted(headers)| headers).filter(|headers| !headers.is_empty());
        }
        if let Patch::Set(authentication) = change.authentication {
            self.authentication = authentication.map(|Unredacted(authentication)| authentication);
        }
        change.filter.apply(&mut self.filter);
        if let Patch::Set(payload) = change.payload {
            self.payload = payload.filter(|payload| *payload != Payload::Contract);
        }
        if let Patch::Set(rate) = change.max_per_second {
            self.max_per_second = rate;
            self.paced_until = None;
        }
        change.max_in_flight.apply(&mut self.max_in_flight);
        change.timeout.apply(&mut self.timeout);
        change.retry_schedule.apply(&mut self.retry_schedule);
        if let Patch::Set(ordering) = change.ordering {
            self.ordering = ordering.filter(|ordering| *ordering != Ordering::None);
        }
        if let Patch::Set(signature) = change.signature {
            self.signature = signature.filter(|signature| *signature != SignatureScheme::Hmac);
        }
        if let Patch::Set(certificate) = change.client_certificate {
            self.client_certificate = certificate.map(|Unredacted(certificate)| certificate);
        }
        if let Patch::Set(authority) = change.certificate_authority {
            self.certificate_authority = authority.map(|Unredacted(authority)| authority);
        }
        if let Patch::Set(enabled) = change.enabled {
            if self.enabled && !enabled {
                self.stopped_at = Some(at.now);
            }
            self.enabled = enabled;
            self.disabled_reason = None;
            self.paused_at = None;
            if enabled {
                self.consecutive_failures = 0;
                self.backoff_until = None;
            }
        }
        Ok(())
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    async fn check(&mut self, tx: &mut dyn Tx, tenant: TenantId, before: &Self) -> Result<(), Error> {
        self.check_owner(tx, before)?;
        if self.stream_url.is_some() {
            return self.check_stream(tx, tenant, before).await;
        }
        let new_url = (self.url != before.url).then_some(&self.url);
        check_input(tx.env(), new_url, &self.events, Some(&before.events))?;
        self.check_authentication(tx.env(), before.authentication.as_ref())?;
        if self.signature != before.signature {
            self.signing_keys = self.signature.map(|_| SigningKeys::generate(tx.env()));
        }
        if self.stopped_at != before.stopped_at {
            settle(tx, tenant, self, SETTLE_AT_ONCE).await?;
        }
        // What waited for the end of the back-off is sent now.
        if self.is_active()
            && self.backoff_until < before.backoff_until
            && let Some(due_at) = tx.next_delivery_due(tenant, self.id).await?
        {
            tx.schedule_endpoint_by(tenant, self.id, due_at).await?;
        }
        Ok(())
    }

    fn changed_events(&self, _before: &Self) -> Vec<EventKind> {
        Vec::new()
    }
}

impl WebhookSubscription {
    /// Checks that the actor may change more of the subscription than whether it sends: that of an app goes to the host of the app
    /// and is signed with the secret of the app, so the app alone changes it.
    ///
    /// # Errors
    /// [`Error::NotAllowed`].
    pub(super) fn require_owner(&self, tx: &dyn Tx) -> Result<(), Error> {
        if self.grant_id.is_none() || self.grant_id == tx.actor().grant() {
            return Ok(());
        }
        let reason = "The webhook belongs to an app, which alone changes it and knows its secret. It can be disabled, enabled and \
                      deleted, and the app can be disconnected.";
        Err(Error::NotAllowed(reason.to_owned()))
    }

    /// Checks that a change is one that its actor may make.
    fn check_owner(&self, tx: &dyn Tx, before: &Self) -> Result<(), Error> {
        let state = self.clone();
        let only_state = Self {
            enabled: state.enabled,
            disabled_reason: state.disabled_reason,
            paused_at: state.paused_at,
            consecutive_failures: state.consecutive_failures,
            backoff_until: state.backoff_until,
            stopped_at: state.stopped_at,
            updated_at: state.updated_at,
            ..before.clone()
        };
        if only_state == state { Ok(()) } else { self.require_owner(tx) }
    }
}

#[async_trait]
impl Delete for WebhookSubscription {
    fn mark_deleted(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.deleted_at = Some(now);
        self.stopped_at = Some(now);
    }

    async fn on_delete(&mut self, tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
        if self.stream_url.is_some() {
            self.stopped_at = None;
            return self.end_stream(tx, tenant).await;
        }
        settle(tx, tenant, self, SETTLE_AT_ONCE).await
    }

    fn deleted_events(&self) -> Vec<EventKind> {
        Vec::new()
    }
}

/// Holds the next `limit` deliveries that were pending when a subscription stopped sending or, if it is deleted, ends the
/// next that are pending or held. After the last one it clears `stopped_at`; until then it schedules the endpoint for the next step.
///
/// The caller stores the subscription.
///
/// # Errors
/// [`Error::Store`].
pub async fn settle(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: &mut WebhookSubscription,
    limit: u32,
) -> Result<(), Error> {
    let id = subscription.id;
    let settled = if subscription.deleted_at.is_some() {
        tx.fail_deliveries(tenant, id, FailureReason::SubscriptionDeleted, limit).await?
    } else {
        let before = subscription.stopped_at.unwrap_or(Timestamp::from_micros(i64::MAX));
        tx.hold_deliveries(tenant, id, before, limit).await?
    };
    if settled < u64::from(limit) {
        subscription.stopped_at = None;
    } else {
        let next = tx.env().now().checked_add(SETTLE_PAUSE);
        tx.schedule_endpoint(tenant, id, next).await?;
    }
    Ok(())
}

/// Checks what depends on the settings of the service: the host of a new URL, and kinds of events that are new.
fn check_input(
    env: &Env,
    new_url: Option<&WebhookUrl>,
    events: &EventSet,
    before: Option<&EventSet>,
) -> Result<(), Error> {
    let mut violations = Violations::default();
    if let Some(Err(issue)) = new_url.map(|url| addresses::check_url(url, env.webhook_hosts)) {
        violations.push("url", issue);
    }
    if let Err(issue) = env.event_kinds.check(events, before) {
        violations.push("events", issue);
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::Validation(violations)) }
}

/// Checks that a tenant may have one more subscription. The tenant is locked, so the count is exact.
pub(super) async fn check_count(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let own = tenants::get(tx, tenant).await?.max_webhooks;
    let limit = own.unwrap_or(tx.env().max_webhooks);
    if tx.count_live_subscriptions(tenant).await? < u64::from(limit) {
        Ok(())
    } else {
        Err(Error::LimitReached { limit })
    }
}
