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
pub(crate) struct Fixture {
    pub(crate) tenants: Vec<Tenant>,
}

pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    /// The text of its API key.
    pub(crate) key: String,
    pub(crate) subscriptions: Vec<Subscription>,
}

/// A subscription, which stays as it is during the run.
#[derive(Clone)]
pub(crate) struct Subscription {
    pub(crate) id: Uuid,
    pub(crate) secret: String,
    pub(crate) events: EventSet,
    pub(crate) behavior: Behavior,
}

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// At once.
    Immediate,
    /// After a while, so that a kill always finds attempts under way.
    Slow,
    /// Refuses the first attempt at every eighth delivery.
    Flaky,
}

/// The subscriptions of each tenant: everything, some kinds, and one kind that nothing fires.
fn wanted() -> [(EventSet, Behavior); 5] {
    use EventKind::{BookingCreated, ContactCreated, ContactUpdated, JobCreated, QuoteAccepted, QuoteCreated};
    [
        (EventSet::All, Behavior::Slow),
        (EventSet::Kinds(vec![ContactCreated, QuoteCreated]), Behavior::Immediate),
        (EventSet::Kinds(vec![BookingCreated]), Behavior::Immediate),
        (EventSet::Kinds(vec![ContactUpdated, QuoteAccepted]), Behavior::Flaky),
        (EventSet::Kinds(vec![JobCreated]), Behavior::Immediate),
    ]
}

impl Fixture {
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
    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = (String, &Subscription)> {
        self.tenants.iter().enumerate().flat_map(|(position, tenant)| {
            tenant
                .subscriptions
                .iter()
                .enumerate()
                .map(move |(number, subscription)| (format!("/{position}/{number}"), subscription))
        })
    }
}

async fn tenant(tx: &mut dyn Tx, position: u32, receiver: SocketAddr) -> std::result::Result<Tenant, Error> {
    let id = tenants::create(tx, TenantCreate::named(&format!("Tenant {position}"))).await?.id;
    // A contact that was created twice must not be hidden by this rule.
    tenants::update(tx, id.0, |tenant| tenant.unique_contact_email = false).await?;
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    let key = keys::create(tx, id, input).await?.text.reveal().to_owned();
    let mut subscriptions = Vec::new();
    for (number, (events, behavior)) in wanted().into_iter().enumerate() {
        let url =
            WebhookUrl::parse(&format!("http://{receiver}/{position}/{number}")).map_err(|error| error.on("url"))?;
        let input = WebhookCreate { url, events: events.clone(), description: None };
        let made = crud::create::<WebhookSubscription>(tx, id, input).await?;
        subscriptions.push(Subscription { id: made.id, secret: made.secret.reveal().to_owned(), events, behavior });
    }
    Ok(Tenant { id, key, subscriptions })
}
