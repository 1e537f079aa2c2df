//! An account with its records, in a store of its own.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use svc_core::accounts::actor::Actor;
use svc_core::accounts::keys::NewKey;
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::resources::{Create, crud};
use svc_core::store::Store;
use svc_core::store::memory::MemoryStore;
use svc_core::values::HostPolicy;
use svc_core::webhooks::deliveries::AttemptLog;

/// The time of the clock at the start of a test.
pub const START: &str = "2026-03-14T15:09:26.535897Z";

/// An account.
#[derive(Clone)]
pub struct Fixture {
    /// The store of the account.
    pub svc: Svc,
    pub tenant: TenantId,
    /// The clock of a store in memory, which stands still. A store that was made by the test has the time that the test gave it.
    pub clock: ManualClock,
}

/// A key, with what its owner knows.
#[derive(Clone)]
pub struct Key {
    pub id: KeyId,
    pub text: String,
    pub secret: Option<Secret>,
}

impl From<NewKey> for Key {
    fn from(new: NewKey) -> Self {
        Self { id: new.key.id, text: new.text.reveal().to_owned(), secret: new.key.signing_secret }
    }
}

/// Returns the account of most tests.
pub fn account() -> TenantCreate {
    TenantCreate::named("Harbour Plumbing")
}

/// Returns what the log says of an attempt without an error.
pub fn attempt_log(attempt: u32, started_at: Timestamp, status: i32) -> AttemptLog {
    AttemptLog {
        attempt,
        started_at,
        duration_ms: 5,
        status,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

/// Returns the environment of an application that receives its webhooks itself: the time of the system, and private addresses.
pub fn local_env() -> Env {
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    env
}

impl Default for Fixture {
    fn default() -> Self {
        Self::at(START, account(), |_| {})
    }
}

impl Fixture {
    /// Creates an account in a store in memory, under a clock that stands still at [`START`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an account in a store in memory, under a clock that stands still. `set` changes the environment of the store.
    pub fn at(now: &str, account: TenantCreate, set: impl FnOnce(&mut Env)) -> Self {
        let clock = ManualClock::at(Timestamp::parse(now).unwrap());
        let mut env = Env::new(clock.clone(), SeededEntropy::new(1));
        set(&mut env);
        let fixture = Self::create(MemoryStore::new(env), account).now_or_never().unwrap();
        Self { clock, ..fixture }
    }

    /// Creates an account in a store.
    pub async fn on(store: impl Store) -> Self {
        Self::create(store, account()).await
    }

    async fn create(store: impl Store, account: TenantCreate) -> Self {
        let svc = Svc::new(store);
        let tenant = svc.accounts().create(account).await.unwrap().id;
        Self { clock: ManualClock::at(svc.store().env().now()), svc, tenant }
    }

    /// Returns another account in the same store.
    pub fn of(&self, tenant: TenantId) -> Self {
        Self { tenant, ..self.clone() }
    }

    /// Returns the account as somebody changes it.
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { svc: self.svc.acting_as(actor), ..self.clone() }
    }

    pub fn account(&self) -> Account<'_> {
        self.svc.account(self.tenant)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        self.svc.store()
    }

    /// Creates a key that reads and writes.
    pub async fn key(&self) -> Key {
        self.account().keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await.unwrap().into()
    }

    /// Creates a record of the JSON that a client sends.
    pub async fn record<R: Create>(&self, body: Value) -> Result<R, Error> {
        let create = self.store().write("test", (self.tenant, body.to_string()), async |tx, (tenant, body)| {
            crud::create(tx, *tenant, R::Input::from_body(body.as_bytes())?).await
        });
        create.await
    }

    pub async fn contact(&self, email: &str) -> Contact {
        self.record(json!({ "email": email })).await.unwrap()
    }

    pub async fn named_contact(&self, email: &str, first_name: &str) -> Contact {
        self.record(json!({ "email": email, "first_name": first_name })).await.unwrap()
    }

    /// Creates a draft of an invoice.
    pub async fn invoice(&self, contact: impl Into<Option<ContactId>>, total: &str) -> Invoice {
        let invoice = InvoiceCreate { contact_id: contact.into(), ..InvoiceCreate::new(total.parse().unwrap()) };
        self.account().invoices().create(invoice).await.unwrap()
    }

    /// Creates a draft of a quote.
    pub async fn quote(&self, contact: ContactId, total: &str) -> Quote {
        self.account().quotes().create(QuoteCreate::new(contact, total.parse().unwrap())).await.unwrap()
    }

    /// Creates a booking of one hour.
    pub async fn booking(&self, contact: ContactId, start: &str) -> Booking {
        self.record(json!({ "contact_id": contact, "service_name": "New tap", "start_time": start })).await.unwrap()
    }

    pub async fn job(&self, title: &str) -> Job {
        self.record(json!({ "title": title })).await.unwrap()
    }

    /// Creates a webhook for an event, or for all by `*`.
    pub async fn webhook(&self, url: &str, event: &str) -> WebhookSubscription {
        self.record(json!({ "url": url, "events": [event] })).await.unwrap()
    }
}
