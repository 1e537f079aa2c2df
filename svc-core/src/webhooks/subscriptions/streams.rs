//! Subscriptions whose events go to a broker in place of deliveries (`docs/streams.md`). Operators alone set them up.

use super::changes::check_count;
use super::{StreamCreate, WebhookCreate, WebhookSubscription};
use crate::accounts::actor::Actor;
use crate::accounts::audit::AuditAction;
use crate::accounts::clocks::advance_clock;
use crate::error::{Error, FieldCode, Issue};
use crate::resources::{NewRecord, crud};
use crate::store::{Repository, Tx};
use crate::values::{TenantId, WebhookUrl};
use crate::webhooks::options::Unredacted;
use crate::webhooks::streams::{Stream, StreamKey};

/// Creates a subscription whose events go to a broker, from now on.
///
/// # Errors
/// [`Error::Validation`] for `events`; [`Error::LimitReached`].
pub async fn create_stream(
    tx: &mut dyn Tx,
    tenant: TenantId,
    input: &StreamCreate,
) -> Result<WebhookSubscription, Error> {
    require_operator(tx)?;
    let now = advance_clock(tx, tenant).await?;
    tx.env().event_kinds.check(&input.events, None).map_err(|issue| issue.on("events"))?;
    check_count(tx, tenant).await?;
    let Unredacted(to) = &input.to;
    let url = WebhookUrl::of_stream(to).map_err(|issue| issue.on("to"))?;
    let StreamCreate { events, description, filter, payload, .. } = input.clone();
    let settings = WebhookCreate { description, filter, payload, ..WebhookCreate::new(url, events) };
    let new = NewRecord { tenant_id: tenant, id: tx.env().id(now), now };
    let subscription =
        WebhookSubscription { stream_url: Some(to.clone()), ..WebhookSubscription::of_input(tx, new, settings) };
    Repository::<WebhookSubscription>::insert(tx, tenant, &subscription).await?;
    tx.insert_stream(&Stream::new(subscription.stream_key(tenant), now)).await?;
    crud::audit_change(tx, tenant, AuditAction::Create, None, Some(&subscription)).await?;
    Ok(subscription)
}

fn require_operator(tx: &dyn Tx) -> Result<(), Error> {
    match tx.actor() {
        Actor::System | Actor::Cli(_) | Actor::PlatformKey(_) => Ok(()),
        _ => Err(Error::NotAllowed(
            "The events of this subscription go to a broker of the operator, who alone can set it up, change it and \
             delete it."
                .to_owned(),
        )),
    }
}

impl WebhookSubscription {
    /// Returns what identifies the stream of the subscription.
    fn stream_key(&self, tenant: TenantId) -> StreamKey {
        StreamKey { tenant_id: tenant, id: self.id }
    }

    /// Checks that the subscription has deliveries, for what concerns these.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if its events go to a stream.
    pub(crate) fn require_deliveries(&self) -> Result<(), Error> {
        if self.stream_url.is_none() {
            return Ok(());
        }
        let reason = "The events of this subscription go to a broker, so it has no deliveries, tests or secrets.";
        Err(Error::NotAllowed(reason.to_owned()))
    }

    /// Checks a change of the subscription, and begins or ends its stream if it was enabled or disabled.
    pub(super) async fn check_stream(&mut self, tx: &mut dyn Tx, tenant: TenantId, before: &Self) -> Result<(), Error> {
        require_operator(tx)?;
        let without_meaning = [
            ("url", self.url != before.url),
            ("headers", self.headers.is_some()),
            ("authentication", self.authentication.is_some()),
            ("max_per_second", self.max_per_second.is_some()),
            ("max_in_flight", self.max_in_flight.is_some()),
            ("timeout", self.timeout.is_some()),
            ("retry_schedule", self.retry_schedule.is_some()),
            ("ordering", self.ordering.is_some()),
            ("signature", self.signature.is_some()),
            ("client_certificate", self.client_certificate.is_some()),
            ("certificate_authority", self.certificate_authority.is_some()),
        ];
        if let Some((field, _)) = without_meaning.into_iter().find(|(_, is_set)| *is_set) {
            let reason = "cannot be set, as the events of this subscription go to a broker";
            return Err(Issue::new(FieldCode::ReadOnlyField, reason).on(field));
        }
        tx.env().event_kinds.check(&self.events, Some(&before.events)).map_err(|issue| issue.on("events"))?;
        // It has no deliveries that would have to be held.
        self.stopped_at = None;
        match (before.enabled, self.enabled) {
            (false, true) => {
                let now = tx.clock(tenant).await?.ok_or(Error::NotFound)?;
                Ok(tx.insert_stream(&Stream::new(self.stream_key(tenant), now)).await?)
            }
            (true, false) => self.end_stream(tx, tenant).await,
            _ => Ok(()),
        }
    }

    /// Ends the stream of a subscription that is disabled or deleted.
    pub(super) async fn end_stream(&self, tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
        require_operator(tx)?;
        Ok(tx.delete_stream(self.stream_key(tenant)).await?)
    }
}
