//! A store that fails or waits when told to, and what clients see of it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use tokio::sync::Semaphore;

use crate::harness::{Call, World, guarded, settings};

/// A store around another one.
pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    failure: Mutex<Option<(Access, StoreError)>>,
    held: Mutex<Option<&'static str>>,
    arrived: Semaphore,
    released: Semaphore,
}

impl Gate {
    /// A world whose service works through a gate.
    pub(crate) fn world() -> (World, Arc<Self>) {
        Self::world_with(settings())
    }

    pub(crate) fn world_with(settings: svc_server::Settings) -> (World, Arc<Self>) {
        let mut gate = None;
        let world = World::with(settings, |inner| {
            let made = Arc::new(Self {
                inner,
                failure: Mutex::default(),
                held: Mutex::default(),
                arrived: Semaphore::new(0),
                released: Semaphore::new(0),
            });
            gate = Some(Arc::clone(&made));
            made
        });
        (world, gate.unwrap())
    }

    /// From now on jobs of this kind fail.
    pub(crate) fn fail(&self, access: Access, error: StoreError) {
        *self.failure.lock().unwrap() = Some((access, error));
    }

    pub(crate) fn heal(&self) {
        *self.failure.lock().unwrap() = None;
    }

    /// From now on jobs of this name wait until they are released.
    pub(crate) fn hold(&self, name: &'static str) {
        *self.held.lock().unwrap() = Some(name);
    }

    /// From now on no job waits.
    pub(crate) fn open(&self) {
        *self.held.lock().unwrap() = None;
    }

    /// Waits until a job is being held.
    pub(crate) async fn arrival(&self) {
        guarded(self.arrived.acquire()).await.unwrap().forget();
    }

    /// Lets one held job go.
    pub(crate) fn release(&self) {
        self.released.add_permits(1);
    }
}

#[async_trait]
impl StoreWrapper for Gate {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        if let Some((failing, error)) = self.failure.lock().unwrap().clone()
            && failing == access
        {
            return Err(error.into());
        }
        if *self.held.lock().unwrap() == Some(name) {
            self.arrived.add_permits(1);
            guarded(self.released.acquire()).await.unwrap().forget();
        }
        self.inner.run(access, name, job).await
    }
}

const INTERNALS: &str = "disk I/O error: /var/lib/svc/svc.db table contacts column email";

fn all_kinds() -> [(StoreError, u16, &'static str); 5] {
    let text = INTERNALS.to_owned();
    [
        (StoreError::Unavailable(text.clone()), 503, "unavailable"),
        (StoreError::OutcomeUnknown(text.clone()), 503, "unavailable"),
        (StoreError::Internal(text.clone()), 500, "internal_error"),
        (StoreError::Conflict { constraint: text.clone() }, 500, "internal_error"),
        (StoreError::Corrupt { table: "contacts", column: "email", reason: text }, 500, "internal_error"),
    ]
}

#[tokio::test]
async fn a_fault_is_told_without_internals() {
    let (world, gate) = Gate::world();
    let contact = world.id("contact_id");
    for (error, status, code) in all_kinds() {
        gate.fail(Access::Read, error.clone());
        for path in ["/ping", "/contacts", &format!("/contacts/{contact}")] {
            let reply = world.expect(status, Call::get(path)).await;
            assert_eq!(reply.code(), code);
            assert_eq!(reply.header("retry-after"), (status == 503).then_some("2"));
            for internal in ["disk", "svc.db", "table", "column", "constraint", "contacts."] {
                assert!(!reply.text().contains(internal), "{}", reply.text());
            }
        }
        // A write looks the key up first; then its own job fails.
        world.expect(status, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
        gate.fail(Access::Write, error);
        let reply = world.expect(status, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
        assert!(!reply.text().contains("disk"), "{}", reply.text());
        world.expect(200, Call::get("/contacts")).await;
        gate.heal();
    }
    assert_eq!(world.new_events().await, [""; 0], "nothing was done");
    world.expect(201, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
}

#[tokio::test]
async fn ready_tells_of_the_database_and_health_of_the_process() {
    let (world, gate) = Gate::world();
    let probe = |path| Call::absolute(http::Method::GET, path).anonymous();
    assert_eq!(world.expect(200, probe("/readyz")).await.text(), r#"{"status":"ready"}"#);
    gate.fail(Access::Read, StoreError::Unavailable(INTERNALS.to_owned()));
    let reply = world.expect(503, probe("/readyz")).await;
    assert_eq!((reply.code().as_str(), reply.header("retry-after")), ("unavailable", Some("2")));
    assert_eq!(world.expect(200, probe("/healthz")).await.text(), r#"{"status":"ok"}"#);
}

/// A failed write can be sent again under its key: nothing was kept.
#[tokio::test]
async fn a_fault_is_not_kept_under_an_idempotency_key() {
    let (world, gate) = Gate::world();
    let call = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    gate.fail(Access::Write, StoreError::Unavailable(INTERNALS.to_owned()));
    world.expect(503, call.clone()).await;
    gate.heal();
    let reply = world.expect(201, call).await;
    assert_eq!(reply.header("idempotent-replayed"), None);
}

/// The client hangs up while its write runs: all of it happens, and a repeat gets its answer.
#[tokio::test]
async fn a_write_outlives_its_client() {
    let (world, gate) = Gate::world();
    let world = Arc::new(world);
    gate.hold("createContact");
    let call = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    let (sender, client) = (Arc::clone(&world), call.clone());
    let request = tokio::spawn(async move { sender.send(client).await });
    gate.arrival().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    // The job had not reached the database: nothing happened, and the key is free again.
    gate.open();
    world.expect(201, call.clone()).await;
    assert_eq!(world.expect(201, call).await.header("idempotent-replayed"), Some("true"));
    assert_eq!(world.new_events().await, ["contact.created"]);
}
