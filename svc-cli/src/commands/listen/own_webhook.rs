//! The webhook of `svc listen`, which exists for as long as the command runs.
//!
//! The command deletes it at its end. It may also be killed, or its machine stop, so the webhook expires, and the command
//! puts that off again and again while it runs. A server deletes what has expired.

use std::time::Duration;

use svc_core::error::Error;
use svc_core::input::{FromJson as _, json::Json};
use svc_core::resources::crud;
use svc_core::store::Store;
use svc_core::values::{EventKind, EventSet, TenantId, Text, WebhookUrl};
use svc_core::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription};

use crate::exit::{Exit, Failure};
use crate::output;

/// How long after its last sign of life the webhook expires.
const LIFETIME: Duration = Duration::from_secs(60);
/// The time between two signs of life. Three of them may fail.
const KEEP_INTERVAL: Duration = Duration::from_secs(15);

/// A webhook that is deleted at the end.
pub(super) struct OwnWebhook {
    tenant: TenantId,
    pub(super) subscription: WebhookSubscription,
}

impl OwnWebhook {
    /// Creates a webhook at this URL for these kinds of events, or for all if there are none.
    pub(super) async fn create(
        store: &dyn Store,
        tenant: TenantId,
        url: &str,
        events: &[EventKind],
    ) -> Result<Self, Failure> {
        let kinds = match events {
            [] => vec![Json::String("*".to_owned())],
            kinds => kinds.iter().map(|kind| Json::String(kind.to_string())).collect(),
        };
        let text = |text: &str| Json::String(text.to_owned());
        let input = WebhookCreate {
            url: WebhookUrl::from_json(text(url)).map_err(|issue| issue.on("url"))?,
            events: EventSet::from_json(Json::Array(kinds)).map_err(|issue| issue.on("events"))?,
            description: Some(Text::from_json(text("svc listen")).map_err(|issue| issue.on("description"))?),
        };
        let created = store.write("webhook.create", move |tx| {
            let input = input.clone();
            Box::pin(async move {
                let created = crud::create::<WebhookSubscription>(tx, tenant, input).await?;
                subscriptions::keep_for(tx, tenant, created.id, LIFETIME).await?;
                Ok(created)
            })
        });
        let subscription = created.await?;
        output::note(&format!(
            "Created webhook {} for as long as this command runs. A server on this database delivers to it if it runs with \
             --allow-private-webhooks.",
            subscription.id
        ));
        Ok(Self { tenant, subscription })
    }

    /// Keeps the webhook until this future is dropped. It is ready, with the reason, only when the webhook is gone.
    pub(super) async fn keep(&self, store: &dyn Store) -> Failure {
        let (tenant, id) = (self.tenant, self.subscription.id);
        loop {
            tokio::time::sleep(KEEP_INTERVAL).await;
            let kept =
                store.write("webhook.keep", move |tx| Box::pin(subscriptions::keep_for(tx, tenant, id, LIFETIME)));
            match kept.await {
                Ok(()) => {}
                Err(Error::NotFound) => {
                    let reason = format!("Webhook {id} of this command was deleted. Start the command again.");
                    return Failure::new(Exit::Failed, reason);
                }
                Err(error) => output::warning(&format!("Webhook {id} cannot be kept; trying again: {error}")),
            }
        }
    }

    /// Deletes the webhook.
    pub(super) async fn delete(self, store: &dyn Store) -> Result<(), Failure> {
        delete(store, self.tenant, &self.subscription).await
    }
}

async fn delete(store: &dyn Store, tenant: TenantId, subscription: &WebhookSubscription) -> Result<(), Failure> {
    let id = subscription.id;
    let deleted =
        store.write("webhook.delete", move |tx| Box::pin(crud::delete::<WebhookSubscription>(tx, tenant, id)));
    match deleted.await {
        // Someone else deleted it.
        Ok(()) | Err(Error::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::{Env, ManualClock, SystemEntropy};
    use svc_core::store::memory::MemoryStore;
    use svc_core::values::{HostPolicy, Timestamp};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_webhook_expires_when_its_command_no_longer_keeps_it() {
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let mut env = Env::new(clock.clone(), SystemEntropy);
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let store = MemoryStore::new(env);
        let store: &dyn Store = &store;
        let tenant =
            store.write("test", |tx| Box::pin(tenants::create(tx, TenantCreate::named("Test")))).await.unwrap();
        let webhook = OwnWebhook::create(store, tenant.id, "http://127.0.0.1:9000", &[]).await.unwrap();
        {
            let mut kept = std::pin::pin!(webhook.keep(store));
            for _ in 0..10 {
                clock.advance(KEEP_INTERVAL);
                let interval = tokio::time::sleep(KEEP_INTERVAL + Duration::from_millis(1));
                tokio::select! {
                    gone = &mut kept => panic!("{}", gone.message()),
                    () = interval => {}
                }
                assert_eq!(subscriptions::delete_expired(store).await, Ok(0));
            }
        }
        clock.advance(LIFETIME);
        assert_eq!(subscriptions::delete_expired(store).await, Ok(1));
        assert!(webhook.keep(store).await.message().contains("was deleted"));
    }
}
