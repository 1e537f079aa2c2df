//! The tenants of a run, their keys and their subscriptions.

use std::net::SocketAddr;

use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::EventKind;
use svc_core::values::{EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use uuid::Uuid;

use crate::options::Options;
use svc_tests::Result;
use svc_tests::database::Database;

/// All tenants.
pub(crate) struct World {
    pub(crate) tenants: Vec<Tenant>,
}

pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    /// The text of its API key.
    pub(crate) key: String,
    pub(crate) hooks: Vec<Hook>,
}

/// A subscription, which stays as it is during the run.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) id: Uuid,
    pub(crate) secret: String,
    pub(crate) events: EventSet,
    pub(crate) temper: Temper,
}

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temper {
    /// At once.
    Prompt,
    /// After a while, so that a kill always finds attempts under way.
    Slow,
    /// Refuses the first attempt at every eighth delivery.
    Moody,
}

/// The subscriptions of each tenant: everything, some kinds, and one kind that nothing fires.
fn wanted() -> [(EventSet, Temper); 5] {
    use EventKind::{BookingCreated, ContactCreated, ContactUpdated, JobCreated, QuoteAccepted, QuoteCreated};
    [
        (EventSet::All, Temper::Slow),
        (EventSet::Kinds(vec![ContactCreated, QuoteCreated]), Temper::Prompt),
        (EventSet::Kinds(vec![BookingCreated]), Temper::Prompt),
        (EventSet::Kinds(vec![ContactUpdated, QuoteAccepted]), Temper::Moody),
        (EventSet::Kinds(vec![JobCreated]), Temper::Prompt),
    ]
}

impl World {
    /// Adds tenants whose endpoints lie behind `receiver`: `/<tenant>/<subscription>` by position.
    pub(crate) async fn make(database: &Database, options: &Options, receiver: SocketAddr) -> Result<Self> {
        let store = database.open().await?;
        let mut made = Vec::new();
        for position in 0..options.tenants {
            let tenant = store.write("crash.tenant", move |tx| Box::pin(tenant(tx, position, receiver)));
            made.push(tenant.await?);
        }
        Ok(Self { tenants: made })
    }

    /// All subscriptions, by the path of their URL.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = (String, &Hook)> {
        self.tenants.iter().enumerate().flat_map(|(position, tenant)| {
            tenant.hooks.iter().enumerate().map(move |(number, hook)| (format!("/{position}/{number}"), hook))
        })
    }
}

async fn tenant(tx: &mut dyn Tx, position: u32, receiver: SocketAddr) -> std::result::Result<Tenant, Error> {
    let id = tenants::create(tx, TenantCreate::named(&format!("Tenant {position}"))).await?.id;
    // A contact that was created twice must not be hidden by this rule.
    tenants::update(tx, id.0, |tenant| tenant.unique_contact_email = false).await?;
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    let key = keys::create(tx, id, input).await?.text.reveal().to_owned();
    let mut hooks = Vec::new();
    for (number, (events, temper)) in wanted().into_iter().enumerate() {
        let url =
            WebhookUrl::parse(&format!("http://{receiver}/{position}/{number}")).map_err(|error| error.on("url"))?;
        let input = WebhookCreate { url, events: events.clone(), description: None };
        let made = crud::create::<WebhookSubscription>(tx, id, input).await?;
        hooks.push(Hook { id: made.id, secret: made.secret.reveal().to_owned(), events, temper });
    }
    Ok(Tenant { id, key, hooks })
}
