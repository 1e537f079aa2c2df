//! The webhook of `svc listen`, which exists for as long as the command runs.
//!
//! The command deletes it at its end. It may also be killed, or its machine stop, so the webhook expires, and the command
//! puts that off again and again while it runs. A server deletes what has expired.

use std::time::Duration;

use svc_core::error::Error;
use svc_core::input::{Input as _, json::Json};
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{TemporaryWebhookCreate, WebhookLifetime};
use svc_core::values::{EventKind, TenantId};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::service::{CallError, Service};

/// How long after its last sign of life the webhook expires.
const LIFETIME: Duration = Duration::from_secs(60);
/// The time between two signs of life. Three of them may fail.
const KEEP_INTERVAL: Duration = Duration::from_secs(15);

/// A webhook that is deleted at the end.
pub(super) struct OwnWebhook {
    account: TenantId,
    pub(super) created: WebhookSubscriptionWithSecret,
}

impl OwnWebhook {
    /// Creates a webhook at this URL for these kinds of events, or for all if there are none.
    pub(super) async fn create(
        service: &Service,
        account: TenantId,
        url: &str,
        events: &[EventKind],
    ) -> Result<Self, Failure> {
        let kinds = match events {
            [] => vec![Json::String("*".to_owned())],
            kinds => kinds.iter().map(|kind| Json::String(kind.to_string())).collect(),
        };
        let member = |name: &str, value| (name.to_owned(), value);
        let text = |text: &str| Json::String(text.to_owned());
        let input = WebhookCreate::from_members(vec![
            member("url", text(url)),
            member("events", Json::Array(kinds)),
            member("description", text("svc listen")),
        ])?;
        let input = TemporaryWebhookCreate { webhook: input, expires_in: LIFETIME.into() };
        let created = match service.call(&operations::CREATE_TEMPORARY_WEBHOOK, account, input).await {
            Err(CallError::Rules(Error::Validation(refused)))
                if refused.as_slice().iter().any(|it| it.field == "url") =>
            {
                let reason = "The server delivers to no private address such as that of this machine; `svc listen` needs \
                              one that runs with --allow-private-webhooks.";
                return Err(Failure::new(Exit::Refused, reason));
            }
            created => created?,
        };
        let server = if service.is_server() { "The server" } else { "A server on this database" };
        output::note(&format!(
            "Created webhook {} for as long as this command runs. {server} delivers to it if it runs on this machine with \
             --allow-private-webhooks.",
            created.subscription.id
        ));
        Ok(Self { account, created })
    }

    /// Keeps the webhook until this future is dropped. It is ready, with the reason, only when the webhook is gone.
    pub(super) async fn keep(&self, service: &Service) -> Failure {
        let id = self.created.subscription.id;
        let lifetime = WebhookLifetime { expires_in: LIFETIME.into() };
        loop {
            tokio::time::sleep(KEEP_INTERVAL).await;
            match service.call(&operations::KEEP_WEBHOOK, (self.account, id), lifetime).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {
                    let reason = format!("Webhook {id} of this command was deleted. Start the command again.");
                    return Failure::new(Exit::Failed, reason);
                }
                Err(error) => {
                    let error = Failure::from(error);
                    let reason = error.message();
                    output::warning(&format!("Webhook {id} cannot be kept; trying again: {reason}"));
                }
            }
        }
    }

    /// Deletes the webhook.
    pub(super) async fn delete(self, service: &Service) -> Result<(), Failure> {
        match service
            .call(&Records::<WebhookSubscription>::DELETE, (self.account, self.created.subscription.id), ())
            .await
        {
            // Someone else deleted it.
            Err(error) if error.is_not_found() => Ok(()),
            deleted => Ok(deleted?),
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::{Env, ManualClock, SystemEntropy};
    use svc_core::store::Store;
    use svc_core::store::memory::MemoryStore;
    use svc_core::values::{HostPolicy, Timestamp};
    use svc_core::webhooks::subscriptions;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_webhook_expires_when_its_command_no_longer_keeps_it() {
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let mut env = Env::new(clock.clone(), SystemEntropy);
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let store: std::sync::Arc<dyn Store> = std::sync::Arc::new(MemoryStore::new(env));
        let service = &Service::of_database(std::sync::Arc::clone(&store));
        let store = &*store;
        let account = store
            .write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await)
            .await
            .unwrap();
        let webhook = OwnWebhook::create(service, account.id, "http://127.0.0.1:9000", &[]).await.unwrap();
        {
            let mut kept = std::pin::pin!(webhook.keep(service));
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
        assert!(webhook.keep(service).await.message().contains("was deleted"));
    }
}
