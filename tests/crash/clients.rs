//! The clients. Each sends one request at a time, repeats it unchanged when a kill leaves its outcome unknown, and
//! usually repeats it when it was refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use svc_core::env::{Env, SeededEntropy, SystemClock};
use tokio::sync::watch;

use crate::journal::{Collection, Entry, Operation};
use crate::outage::Outage;
use svc_test_support::Result;
use svc_test_support::http::{HttpClient, TestRequest, TestResponse};

/// How long a client waits for the server's new address after a broken connection, before it tries the old one may_repeat.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two requests, so that the server has time for deliveries.
const PAUSE: Duration = Duration::from_millis(2);

/// Pause before a refused request is repeated.
const REPEAT_PAUSE: Duration = Duration::from_millis(20);
/// One in this many refused requests is given up, to check that it was really not done.
const GIVE_UP_ONE_IN: usize = 3;

/// A client.
pub(crate) struct Client {
    pub(crate) tenant: usize,
    pub(crate) key: String,
    /// The client's number among all clients.
    pub(crate) number: u32,
    pub(crate) http: HttpClient,
    /// The server's address, or `None` while no server runs.
    pub(crate) server: watch::Receiver<Option<SocketAddr>>,
    /// Becomes `true` at the end of the run.
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) random: Random,
    pub(crate) outage: Arc<Outage>,
    pub(crate) journal: Vec<Entry>,
    contacts: Vec<String>,
    quotes: Vec<String>,
    made: u32,
}

/// Seeded randomness.
pub(crate) struct Random(Env);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Env::new(SystemClock, SeededEntropy::new(seed)))
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        usize::try_from(u64::from_be_bytes(self.0.bytes()) % end as u64).unwrap_or_default()
    }
}

impl Client {
    pub(crate) fn new(
        (tenant, key): (usize, &str),
        number: u32,
        http: HttpClient,
        server: watch::Receiver<Option<SocketAddr>>,
        stop: watch::Receiver<bool>,
        random: Random,
        outage: Arc<Outage>,
    ) -> Self {
        let (journal, contacts, quotes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            tenant,
            key: key.to_owned(),
            number,
            http,
            server,
            stop,
            random,
            outage,
            journal,
            contacts,
            quotes,
            made: 0,
        }
    }

    /// Sends requests until it is stopped, and returns its journal.
    ///
    /// # Errors
    ///
    /// A response that a client must not get.
    pub(crate) async fn run(mut self) -> Result<Vec<Entry>> {
        while !*self.stop.borrow() {
            let operation = self.operation();
            let entry = self.carry_out(operation).await?;
            if let (Some(id), Operation::Create { collection, .. }) =
                (entry.response.as_ref().and_then(|response| response["id"].as_str()), &entry.operation)
            {
                match collection {
                    Collection::Contacts => self.contacts.push(id.to_owned()),
                    Collection::Quotes => self.quotes.push(id.to_owned()),
                    Collection::Bookings => {}
                }
            }
            self.journal.push(entry);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(self.journal)
    }

    /// Returns the next operation. Each record is changed by one client only, so the order of its changes is known.
    fn operation(&mut self) -> Operation {
        self.made += 1;
        let (client, made) = (self.number, self.made);
        let create = |collection, unique_value, with_idempotency_key| Operation::Create {
            collection,
            unique_value,
            with_idempotency_key,
        };
        match self.random.below(8) {
            // All other operations need a contact.
            _ if self.contacts.is_empty() => create(Collection::Contacts, address(client, made), true),
            0 | 1 => {
                let contact = self.contacts[self.random.below(self.contacts.len())].clone();
                Operation::ChangeCity { contact, city: format!("City {client}-{made}") }
            }
            2 if !self.quotes.is_empty() => {
                // Each quote is accepted only once.
                let quote = self.quotes.swap_remove(self.random.below(self.quotes.len()));
                Operation::AcceptQuote { quote }
            }
            3 | 4 => create(Collection::Bookings, json!(format!("Booking {client}-{made}")), true),
            5 => create(Collection::Quotes, json!(u64::from(client) * 1_000_000 + u64::from(made)), true),
            // Without an Idempotency-Key the request is not repeated, and either outcome is allowed.
            6 => create(Collection::Contacts, address(client, made), false),
            _ => create(Collection::Contacts, address(client, made), true),
        }
    }

    async fn carry_out(&mut self, operation: Operation) -> Result<Entry> {
        let (method, path, body) = match &operation {
            Operation::Create { collection, unique_value, .. } => {
                (Method::POST, format!("/{}", collection.name()), self.body(*collection, unique_value))
            }
            Operation::ChangeCity { contact, city } => {
                (Method::PATCH, format!("/contacts/{contact}"), json!({ "city": city }))
            }
            Operation::AcceptQuote { quote } => {
                (Method::PATCH, format!("/quotes/{quote}"), json!({ "status": "accepted" }))
            }
        };
        let idempotency_key = format!("{}-{}", self.number, self.made);
        let (with_idempotency_key, may_repeat) = match &operation {
            Operation::Create { with_idempotency_key, .. } => (*with_idempotency_key, *with_idempotency_key),
            // Repeating the same change has no further effect.
            Operation::ChangeCity { .. } | Operation::AcceptQuote { .. } => (false, true),
        };
        let mut entry = Entry {
            tenant: self.tenant,
            operation,
            sent: 0,
            refused: 0,
            acknowledged_during_outage: false,
            replayed: false,
            response: None,
        };
        let key = self.key.clone();
        let request = TestRequest {
            method,
            path: &path,
            key: &key,
            idempotency_key: with_idempotency_key.then_some(idempotency_key.as_str()),
            body: Some(&body),
            headers: &[],
        };
        while let Some(server) = self.listening().await {
            entry.sent += 1;
            let before = self.outage.number();
            match self.http.send(server, &request).await {
                Ok(TestResponse { status, replayed, mut body, .. }) if status.is_success() => {
                    // A repeat of a completed write needs no disk.
                    entry.acknowledged_during_outage = entry.sent == 1 && self.outage.has_lasted_since(before);
                    self.outage.record_write();
                    entry.replayed = replayed;
                    entry.response = Some(body["data"].take());
                    break;
                }
                Ok(response) if self.outage.is_expected() && is_refusal(&response) => {
                    entry.refused += u32::from(is_definite(&response));
                    if !may_repeat || self.random.below(GIVE_UP_ONE_IN) == 0 {
                        break;
                    }
                    tokio::time::sleep(REPEAT_PAUSE).await;
                }
                Ok(TestResponse { status, body, .. }) => {
                    return Err(format!("{} {path} got {status}: {body}", request.method).into());
                }
                Err(_) if may_repeat => {
                    // Either the server comes back at a new address, or only the connection broke.
                    let _ = tokio::time::timeout(ADDRESS_TIMEOUT, self.server.changed()).await;
                }
                Err(_) => break,
            }
        }
        Ok(entry)
    }

    fn body(&self, collection: Collection, unique_value: &Value) -> Value {
        let contact = self.contacts.last();
        match collection {
            Collection::Contacts => json!({ "email": unique_value, "first_name": "Ada", "last_name": "Lovelace" }),
            Collection::Bookings => json!({
                "contact_id": contact, "service_name": "Tap repair", "start_time": "2026-04-01T09:00:00Z", "notes": unique_value,
            }),
            Collection::Quotes => json!({ "contact_id": contact, "total": unique_value }),
        }
    }

    /// Waits for the server's address; returns `None` when the run is over.
    async fn listening(&mut self) -> Option<SocketAddr> {
        self.server.wait_for(Option::is_some).await.ok().and_then(|address| *address)
    }
}

/// Returns whether the response is the 503 of docs/contract.md, "Statuses".
fn is_refusal(response: &TestResponse) -> bool {
    response.status == StatusCode::SERVICE_UNAVAILABLE
        && response.body["code"] == "unavailable"
        && response.headers.contains_key("retry-after")
}

/// Returns whether the response says that nothing was done, rather than that the outcome is unknown.
fn is_definite(response: &TestResponse) -> bool {
    let error = response.body["error"].as_str().unwrap_or_default();
    !["may be made or not", "may or may not have been made"].iter().any(|unknown| error.contains(unknown))
}

fn address(client: u32, made: u32) -> Value {
    json!(format!("c{client}-{made}@example.com"))
}
