//! The set-up of a test: a server over a database of its own, with a manual clock and seeded randomness, so that ids, times
//! and bodies are exact.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;
use svc_core::Svc;
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::operation::AnyOperation;
use svc_core::platform::operations::public;
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::events::Event;
use svc_server::{Api, Settings, Surfaces};
use svc_test_support::fixture::Key;
pub(crate) use svc_test_support::server::{guarded, settings};
pub(crate) use svc_test_support::{Call, Response};
use svc_test_support::{Fixture, TestServer};

use crate::conform;
use crate::database::Database;
use crate::seed::{self, Seed};

/// An API over a copy of the seeded database. Each response is checked against the OpenAPI document.
pub(crate) struct SeededServer {
    pub(crate) server: TestServer,
    pub(crate) seed: Seed,
    /// Declared last, so that it is dropped after the store.
    pub(crate) database: Database,
}

impl Deref for SeededServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

/// Returns settings with rate limits.
pub(crate) fn limited() -> Settings {
    Settings { limit_rates: true, ..settings() }
}

impl SeededServer {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn limited() -> Self {
        Self::with(limited())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::serving(Surfaces::default(), settings)
    }

    /// Creates a server with these surfaces and settings.
    pub(crate) fn serving(surfaces: Surfaces, settings: Settings) -> Self {
        Self::of(surfaces, settings, |store| store)
    }

    /// Creates a server whose API has a store that is wrapped by `wrap`.
    pub(crate) fn of(
        surfaces: Surfaces,
        settings: Settings,
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let (database, seed) = seed::copy();
        let clock = ManualClock::at(seed::start());
        let store = database.open(Env::new(clock.clone(), SeededEntropy::new(2)));
        let api = Api::with_surfaces(wrap(Arc::clone(&store)), settings, surfaces);
        let fixture = Fixture { svc: Svc::new(store), tenant: seed.tenant, clock };
        let key = Some(seed.keys["write"].text.clone());
        Self { server: TestServer { fixture, api, key, check: conform::check }, seed, database }
    }

    /// Opens a second store on the same database, as another process does.
    pub(crate) fn second_store(&self) -> Arc<dyn Store> {
        self.database.open(Env::new(self.clock.clone(), SeededEntropy::new(3)))
    }

    pub(crate) fn key(&self, role: &str) -> &Key {
        self.seed.keys.get(role).unwrap_or_else(|| panic!("no key {role}"))
    }

    /// Returns the id of a placeholder such as `contact_id`.
    pub(crate) fn id(&self, name: &str) -> String {
        self.seed.ids.get(name).unwrap_or_else(|| panic!("no id {name}")).to_string()
    }

    /// Returns the tenant's events after an instant.
    pub(crate) async fn events_after(&self, after: Timestamp) -> Vec<Event> {
        let read = self.store().read("events", (self.tenant, after), async |tx, &(tenant, after)| {
            Ok(tx.events_after(tenant, after, 10_000).await?)
        });
        read.await.unwrap()
    }

    /// Returns the kinds of the tenant's events since the seed.
    pub(crate) async fn new_events(&self) -> Vec<String> {
        let all = self.events_after(Timestamp::from_micros(0)).await;
        let seeded = SEEDED_EVENTS.len();
        assert_eq!(all[..seeded].iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), SEEDED_EVENTS);
        all[seeded..].iter().map(|event| event.kind.to_string()).collect()
    }
}

/// The kinds of the events that the seed writes.
const SEEDED_EVENTS: [&str; 7] = [
    "contact.created",
    "booking.created",
    "quote.created",
    "job.created",
    "invoice.created",
    "contact.created",
    "contact.deleted",
];

/// Returns the operations of the contract.
pub(crate) fn operations() -> Vec<&'static dyn AnyOperation> {
    public()
}

/// Returns a body that creates a record in this collection.
pub(crate) fn sample(server: &SeededServer, collection: &str, number: usize) -> Value {
    let contact = server.id("contact_id");
    match collection {
        "contacts" => serde_json::json!({ "email": format!("person{number}@example.com"), "first_name": "Grace" }),
        "bookings" => serde_json::json!({
            "contact_id": contact, "service_name": "Blocked drain", "start_time": "2026-03-21T09:00:00Z",
        }),
        "quotes" => serde_json::json!({ "contact_id": contact, "total": 99.95 }),
        "jobs" => serde_json::json!({ "title": format!("Job {number}"), "contact_id": contact }),
        "webhooks" => serde_json::json!({ "url": "https://hooks.example.com/more", "events": ["contact.created"] }),
        other => panic!("nothing is created in {other}"),
    }
}

/// Creates bookings of the largest size.
pub(crate) async fn create_large_bookings(server: &SeededServer, count: usize) {
    let mut booking = sample(server, "bookings", 0);
    // Control characters take most room in JSON.
    booking["notes"] = "\u{1}".repeat(4096).into();
    booking["service_name"] = "\u{10ffff}".repeat(255).into();
    for _ in 0..count {
        server.expect(201, Call::post("/bookings", booking.clone())).await;
    }
}

/// Returns a body that changes a record of this collection.
pub(crate) fn change(collection: &str) -> Value {
    match collection {
        "contacts" => serde_json::json!({ "city": "Perth" }),
        "bookings" => serde_json::json!({ "notes": "Ring twice." }),
        "quotes" => serde_json::json!({ "total": 120 }),
        "jobs" => serde_json::json!({ "priority": "high" }),
        "webhooks" => serde_json::json!({ "description": "Ledger" }),
        other => panic!("nothing is changed in {other}"),
    }
}

/// Returns the placeholder of a collection's id: `contact_id` for `contacts`.
pub(crate) fn id_name(collection: &str) -> String {
    format!("{}_id", collection.trim_end_matches('s'))
}
