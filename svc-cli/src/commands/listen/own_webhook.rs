//! The webhook of `svc listen`, which exists for as long as the command runs.
//!
//! The command deletes it at its end. It may also be killed, so it starts a process first that waits for the end of a pipe:
//! the kernel closes the pipe however the command ends, and the process deletes the webhook.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use svc_core::error::Error;
use svc_core::input::{FromJson as _, json::Json};
use svc_core::resources::crud;
use svc_core::store::Store;
use svc_core::values::{EventKind, EventSet, TenantId, Text, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};

use crate::exit::{Exit, Failure};
use crate::output;

/// A webhook that is deleted at the end.
pub(super) struct OwnWebhook {
    tenant: TenantId,
    pub(super) subscription: WebhookSubscription,
    /// The process that deletes the webhook once its stdin ends.
    _guard: Child,
}

impl OwnWebhook {
    /// Creates a webhook at this URL for these kinds of events, or for all if there are none.
    pub(super) async fn create(
        store: &dyn Store,
        database_url: &str,
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
            Box::pin(crud::create::<WebhookSubscription>(tx, tenant, input))
        });
        let subscription = created.await?;
        let guard = match guard(database_url, tenant, &subscription) {
            Ok(guard) => guard,
            Err(error) => {
                delete(store, tenant, &subscription).await?;
                let reason = format!("The process that deletes the webhook at the end cannot be started: {error}.");
                return Err(Failure::new(Exit::Failed, reason));
            }
        };
        output::note(&format!(
            "Created webhook {} for as long as this command runs. A server on this database delivers to it if it runs with \
             --allow-private-webhooks.",
            subscription.id
        ));
        Ok(Self { tenant, subscription, _guard: guard })
    }

    /// Deletes the webhook.
    pub(super) async fn delete(self, store: &dyn Store) -> Result<(), Failure> {
        delete(store, self.tenant, &self.subscription).await
    }
}

/// Starts the process that deletes the webhook once this one has ended. It is in a process group of its own, so a Ctrl-C
/// does not reach it.
fn guard(database_url: &str, tenant: TenantId, subscription: &WebhookSubscription) -> io::Result<Child> {
    let (tenant, id) = (tenant.to_string(), subscription.id.to_string());
    Command::new(std::env::current_exe()?)
        .args(["webhook", "delete", &id, "--tenant", &tenant, "--when-stdin-ends", "--yes"])
        .env("SVC_DATABASE_URL", database_url)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
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
