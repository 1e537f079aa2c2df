//! The clients: each sends one request after the other and asks again, in the same words, when a kill swallowed
//! the answer, and mostly when it was refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use svc_core::env::{Env, SeededEntropy, SystemClock};
use tokio::sync::watch;

use crate::journal::{Collection, Entry, Operation};
use crate::outage::Outage;
use svc_tests::Result;
use svc_tests::http::{HttpClient, TestRequest, TestResponse};

/// How long a client waits for the server to come back after a broken connection, before it tries the old address.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Between two requests: with none, the clients would leave the server no time for deliveries.
const PAUSE: Duration = Duration::from_millis(2);

/// Before it asks again after a refusal.
const AGAIN: Duration = Duration::from_millis(20);
/// Of so many clients that are refused one gives up, to see whether it was really not done.
const GIVE_UP: usize = 3;

/// One client.
pub(crate) struct Client {
    pub(crate) tenant: usize,
    pub(crate) key: String,
    /// Among all clients.
    pub(crate) number: u32,
    pub(crate) http: HttpClient,
    /// Where the server listens; `None` while it does not.
    pub(crate) server: watch::Receiver<Option<SocketAddr>>,
    /// Becomes `true` when there is enough.
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) random: Random,
    pub(crate) outage: Arc<Outage>,
    pub(crate) journal: Vec<Entry>,
    contacts: Vec<String>,
    quotes: Vec<String>,
    made: u32,
}

/// Randomness that repeats itself.
pub(crate) struct Random(Env);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Env::new(SystemClock, SeededEntropy::new(seed)))
    }

    /// Below `end`, which is not 0.
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

    /// Works until it is stopped, and returns its journal.
    ///
    /// # Errors
    /// An answer that is none of the expected ones.
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

    /// What it wants next. Records are changed only by who made them, so the order of changes is known.
    fn operation(&mut self) -> Operation {
        self.made += 1;
        let (client, made) = (self.number, self.made);
        let create = |collection, unique_value, with_idempotency_key| Operation::Create {
            collection,
            unique_value,
            with_idempotency_key,
        };
        match self.random.below(8) {
            // Everything else is about a contact.
            _ if self.contacts.is_empty() => create(Collection::Contacts, address(client, made), true),
            0 | 1 => {
                let contact = self.contacts[self.random.below(self.contacts.len())].clone();
                Operation::ChangeCity { contact, city: format!("City {client}-{made}") }
            }
            2 if !self.quotes.is_empty() => {
                // Each only once.
                let quote = self.quotes.swap_remove(self.random.below(self.quotes.len()));
                Operation::AcceptQuote { quote }
            }
            3 | 4 => create(Collection::Bookings, json!(format!("Booking {client}-{made}")), true),
            5 => create(Collection::Quotes, json!(u64::from(client) * 1_000_000 + u64::from(made)), true),
            // Without an Idempotency-Key nobody asks again, and either outcome is right.
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
        let (with_idempotency_key, again) = match &operation {
            Operation::Create { with_idempotency_key, .. } => (*with_idempotency_key, *with_idempotency_key),
            // The same change once more changes nothing.
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
                    // What was done before needs no disk.
                    entry.acknowledged_during_outage = entry.sent == 1 && self.outage.has_lasted_since(before);
                    self.outage.record_write();
                    entry.replayed = replayed;
                    entry.response = Some(body["data"].take());
                    break;
                }
                Ok(response) if self.outage.is_expected() && is_refusal(&response) => {
                    entry.refused += u32::from(is_definite(&response));
                    if !again || self.random.below(GIVE_UP) == 0 {
                        break;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                Ok(TestResponse { status, body, .. }) => {
                    return Err(format!("{} {path} was answered with {status}: {body}", request.method).into());
                }
                Err(_) if again => {
                    // Either it comes back elsewhere, or the connection alone was broken.
                    let _ = tokio::time::timeout(COMES_BACK, self.server.changed()).await;
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

    /// Where the server listens, once it does; `None` when the run is over.
    async fn listening(&mut self) -> Option<SocketAddr> {
        self.server.wait_for(Option::is_some).await.ok().and_then(|address| *address)
    }
}

/// Whether it says, in the form of the contract, that the service is away.
fn is_refusal(response: &TestResponse) -> bool {
    response.status == StatusCode::SERVICE_UNAVAILABLE
        && response.body["code"] == "unavailable"
        && response.headers.contains_key("retry-after")
}

/// Whether it says that nothing was done, rather than that this is not known.
fn is_definite(response: &TestResponse) -> bool {
    !response.body["error"].as_str().unwrap_or_default().contains("may be made or not")
}

fn address(client: u32, made: u32) -> Value {
    json!(format!("c{client}-{made}@example.com"))
}
