//! The tenants of a run with their keys and subscriptions.

use std::net::SocketAddr;

use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::EventKind;
use svc_core::values::{EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription};

use crate::options::Options;
use svc_test_support::Result;
use svc_test_support::database::Database;

/// All tenants of a run.
pub(crate) struct Tenants {
    pub(crate) tenants: Vec<Tenant>,
}

pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    /// The text of the tenant's API key.
    pub(crate) key: String,
    pub(crate) subscriptions: Vec<Subscription>,
}

/// A webhook subscription, which does not change during the run.
#[derive(Clone)]
pub(crate) struct Subscription {
    pub(crate) id: SubscriptionId,
    pub(crate) secret: String,
    pub(crate) events: EventSet,
    pub(crate) behavior: Behavior,
}

/// How an endpoint responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Accepts each attempt immediately.
    Immediate,
    /// Accepts each attempt after a delay, so that every kill finds attempts in progress.
    Slow,
    /// Refuses the first attempt of one in eight deliveries.
    Flaky,
}

/// Returns the events and the behaviour of each tenant's subscriptions: all events, some events, and one event that
/// never occurs.
fn subscription_plan() -> [(EventSet, Behavior); 5] {
    use EventKind::{BookingCreated, ContactCreated, ContactUpdated, JobCreated, QuoteAccepted, QuoteCreated};
    [
        (EventSet::All, Behavior::Slow),
        (EventSet::Kinds(vec![ContactCreated, QuoteCreated]), Behavior::Immediate),
        (EventSet::Kinds(vec![BookingCreated]), Behavior::Immediate),
        (EventSet::Kinds(vec![ContactUpdated, QuoteAccepted]), Behavior::Flaky),
        (EventSet::Kinds(vec![JobCreated]), Behavior::Immediate),
    ]
}

impl Tenants {
    /// Creates the tenants. The endpoint of each subscription is `/<tenant>/<subscription>` at `receiver`, by
    /// position.
    pub(crate) async fn create(database: &Database, options: &Options, receiver: SocketAddr) -> Result<Self> {
        let store = database.open().await?;
        let mut made = Vec::new();
        for position in 0..options.tenants {
            let tenant = store.write("crash.tenant", (position, receiver), async |tx, &(position, receiver)| {
                tenant(tx, position, receiver).await
            });
            made.push(tenant.await?);
        }
        Ok(Self { tenants: made })
    }

    /// Returns all subscriptions by the path of their URL.
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
    // Duplicate contacts must not be hidden by this rule.
    tenants::update(tx, id.0, |tenant| tenant.unique_contact_email = false).await?;
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    let key = keys::create(tx, id, input).await?.text.reveal().to_owned();
    let mut subscriptions = Vec::new();
    for (number, (events, behavior)) in subscription_plan().into_iter().enumerate() {
        let url =
            WebhookUrl::parse(&format!("http://{receiver}/{position}/{number}")).map_err(|error| error.on("url"))?;
        let input = WebhookCreate::new(url, events.clone());
        let made = crud::create::<WebhookSubscription>(tx, id, input).await?;
        subscriptions.push(Subscription { id: made.id, secret: made.secret.reveal().to_owned(), events, behavior });
    }
    Ok(Tenant { id, key, subscriptions })
}
