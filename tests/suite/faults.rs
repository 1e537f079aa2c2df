//! What clients see when the store fails or is slow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_server::{Settings, Surfaces};
use tokio::sync::Semaphore;

use crate::harness::{Call, SeededServer, guarded, settings};

/// A store that fails or delays transactions on demand, and otherwise passes them to another store.
pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    failure: Mutex<Option<(Access, StoreError)>>,
    held: Mutex<Option<&'static str>>,
    arrived: Semaphore,
    released: Semaphore,
}

impl Gate {
    /// Creates a server whose store is wrapped in a gate.
    pub(crate) fn server() -> (SeededServer, Arc<Self>) {
        Self::server_with(settings())
    }

    pub(crate) fn server_with(settings: Settings) -> (SeededServer, Arc<Self>) {
        Self::server_of(Surfaces::default(), settings)
    }

    pub(crate) fn server_of(surfaces: Surfaces, settings: Settings) -> (SeededServer, Arc<Self>) {
        let mut gate = None;
        let server = SeededServer::of(surfaces, settings, |inner| {
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
        (server, gate.unwrap())
    }

    /// Makes every transaction of this kind fail from now on.
    pub(crate) fn fail(&self, access: Access, error: StoreError) {
        *self.failure.lock().unwrap() = Some((access, error));
    }

    /// Ends the failures.
    pub(crate) fn heal(&self) {
        *self.failure.lock().unwrap() = None;
    }

    /// Holds transactions of this name from now on, until [`Gate::release`].
    pub(crate) fn hold(&self, name: &'static str) {
        *self.held.lock().unwrap() = Some(name);
    }

    /// Holds no further transactions.
    pub(crate) fn open(&self) {
        *self.held.lock().unwrap() = None;
    }

    /// Waits until a transaction is held.
    pub(crate) async fn arrival(&self) {
        guarded(self.arrived.acquire()).await.unwrap().forget();
    }

    /// Releases one held transaction.
    pub(crate) fn release(&self) {
        self.released.add_permits(1);
    }
}

#[async_trait]
impl StoreWrapper for Gate {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if let Some((failing, error)) = self.failure.lock().unwrap().clone()
            && failing == access
        {
            return Err(error.into());
        }
        if *self.held.lock().unwrap() == Some(name) {
            self.arrived.add_permits(1);
            guarded(self.released.acquire()).await.unwrap().forget();
        }
        self.inner.run(access, name, work).await
    }

    fn check_writable_wrapped(&self) -> Result<(), StoreError> {
        match self.failure.lock().unwrap().clone() {
            Some((Access::Write, error @ StoreError::ClockSkew(_))) => Err(error),
            _ => self.inner.check_writable(),
        }
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
async fn a_store_error_gives_5xx_without_internal_details() {
    let (server, gate) = Gate::server();
    let contact = server.id("contact_id");
    for (error, status, code) in all_kinds() {
        gate.fail(Access::Read, error.clone());
        for path in ["/ping", "/contacts", &format!("/contacts/{contact}")] {
            let response = server.expect(status, Call::get(path)).await;
            assert_eq!(response.code(), code);
            assert_eq!(response.header("retry-after"), (status == 503).then_some("2"));
            for internal in ["disk", "svc.db", "table", "column", "constraint", "contacts."] {
                assert!(!response.text.contains(internal), "{}", response.text);
            }
        }
        // A write first reads a key that it does not know, which fails here; below, the write transaction itself fails.
        server.clock.advance(Duration::from_secs(60));
        server.expect(status, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
        gate.fail(Access::Write, error);
        let response = server.expect(status, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
        assert!(!response.text.contains("disk"), "{}", response.text);
        server.expect(200, Call::get("/contacts")).await;
        gate.heal();
    }
    assert_eq!(server.new_events().await, [""; 0], "a failed request must write no event");
    server.expect(201, Call::post("/contacts", json!({ "email": "a@example.com" }))).await;
}

#[tokio::test]
async fn readyz_reports_the_database_and_healthz_the_process() {
    let (server, gate) = Gate::server();
    let probe = |path| Call::absolute(http::Method::GET, path).anonymous();
    assert_eq!(server.expect(200, probe("/readyz")).await.text, "{\"status\":\"ready\"}\n");
    gate.fail(Access::Read, StoreError::Unavailable(INTERNALS.to_owned()));
    let response = server.expect(503, probe("/readyz")).await;
    assert_eq!((response.code().as_str(), response.header("retry-after")), ("unavailable", Some("2")));
    assert_eq!(server.expect(200, probe("/healthz")).await.text, "{\"status\":\"ok\"}\n");
}

#[tokio::test]
async fn a_server_whose_clock_is_wrong_is_not_ready() {
    let (server, gate) = Gate::server();
    gate.fail(Access::Write, StoreError::ClockSkew(INTERNALS.to_owned()));
    for call in [
        Call::absolute(http::Method::GET, "/readyz").anonymous(),
        Call::post("/contacts", json!({ "email": "a@example.com" })),
    ] {
        let response = server.expect(503, call).await;
        assert_eq!((response.code().as_str(), response.header("retry-after")), ("unavailable", Some("2")));
        assert!(response.text.contains("The clock of this server is wrong"), "{}", response.text);
    }
    server.expect(200, Call::get("/contacts")).await;
    gate.heal();
    server.expect(200, Call::absolute(http::Method::GET, "/readyz").anonymous()).await;
}

/// A failed write can be retried with its idempotency key, because no response was stored.
#[tokio::test]
async fn a_5xx_response_is_not_stored_under_an_idempotency_key() {
    let (server, gate) = Gate::server();
    let call = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    gate.fail(Access::Write, StoreError::Unavailable(INTERNALS.to_owned()));
    server.expect(503, call.clone()).await;
    gate.heal();
    let response = server.expect(201, call).await;
    assert_eq!(response.header("idempotent-replayed"), None);
}

/// The client disconnects while its write is held before the database.
#[tokio::test]
async fn a_disconnected_client_can_repeat_its_write() {
    let (server, gate) = Gate::server();
    let server = Arc::new(server);
    gate.hold("createContact");
    let call = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    let (sender, client) = (Arc::clone(&server), call.clone());
    let request = tokio::spawn(async move { sender.send(client).await });
    gate.arrival().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    // The transaction had not reached the database, so nothing was written and the idempotency key is free again.
    gate.open();
    server.expect(201, call.clone()).await;
    assert_eq!(server.expect(201, call).await.header("idempotent-replayed"), Some("true"));
    assert_eq!(server.new_events().await, ["contact.created"]);
}
