//! Reads what apps publish at the URL that is their client id, and keeps it for a while.
//!
//! The server at such a URL belongs to a stranger, who may let each read wait for its whole time. So an account, or a person who
//! is in none, has a share of the reads, and nobody waits for those of others for longer than [`WAIT`]. People who are in no account
//! have half of the reads together, as one who invites them may have many names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_core::accounts::sessions::Session;
use svc_core::oauth::published::{PublishedApp, document_url};
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::deliver::WebhookClient;

/// How long a document is kept.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long it is known that there is none, or none that is valid.
const FAILURE_LIFETIME: Duration = Duration::from_secs(30);
/// How many documents are read at a time.
const READ_AT_ONCE: usize = 64;
/// How many of them are read for people who are in no account, or have not chosen one.
const FOR_PEOPLE: usize = READ_AT_ONCE / 2;
/// How many of them are read for one account.
const SHARE: usize = 2;
/// How long a person waits until reading begins.
const WAIT: Duration = Duration::from_secs(2);
/// The number of documents that are kept.
const MAX_DOCUMENTS: usize = 1_000;
const BUSY: &str =
    "This service reads the documents of other apps right now. Open the link of the app again in a few seconds.";

/// The documents of apps that nobody has registered.
pub(crate) struct PublishedApps {
    client: Arc<dyn WebhookClient>,
    documents: Mutex<HashMap<String, CachedDocument>>,
    /// The permits to read a document.
    reading: Semaphore,
    /// Those among them that people have who are in no account.
    for_people: Semaphore,
    shares: Mutex<HashMap<Reader, Arc<Semaphore>>>,
}

struct CachedDocument {
    app: Result<PublishedApp, String>,
    until: Instant,
}

/// For whom a document is read.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Reader {
    Account(TenantId),
    Person(String),
}

impl Reader {
    fn of(session: &Session) -> Self {
        session.tenant_id.map_or_else(|| Self::Person(session.identity.clone()), Self::Account)
    }
}

impl PublishedApps {
    pub(crate) fn new(client: Arc<dyn WebhookClient>) -> Self {
        let [reading, for_people] = [READ_AT_ONCE, FOR_PEOPLE].map(Semaphore::new);
        Self { client, documents: Mutex::default(), reading, for_people, shares: Mutex::default() }
    }

    /// Returns what an app publishes, or what is wrong with it as a sentence for its developer.
    pub(crate) async fn of(&self, client_id: &str, session: &Session) -> Result<PublishedApp, String> {
        if let Some(app) = self.cached(client_id) {
            return app;
        }
        let url = document_url(client_id)?;
        let share = self.share(Reader::of(session));
        let permits = async {
            let own = share.acquire().await;
            let of_people = match session.tenant_id {
                None => Some(self.for_people.acquire().await),
                Some(_) => None,
            };
            (own, of_people, self.reading.acquire().await)
        };
        let Ok(_permits) = timeout(WAIT, permits).await else { return Err(BUSY.to_owned()) };
        // Another request may have read it meanwhile.
        if let Some(app) = self.cached(client_id) {
            return app;
        }
        let app = match self.client.get(url.clone()).await {
            Ok(document) => PublishedApp::read(&url, &document).map_err(str::to_owned),
            Err(reason) => Err(format!("The document at the client_id cannot be read: {reason}.")),
        };
        self.keep(client_id, &app);
        app
    }

    fn cached(&self, client_id: &str) -> Option<Result<PublishedApp, String>> {
        let documents = lock(&self.documents);
        documents.get(client_id).filter(|document| Instant::now() < document.until).map(|document| document.app.clone())
    }

    fn keep(&self, client_id: &str, app: &Result<PublishedApp, String>) {
        let now = Instant::now();
        let lifetime = if app.is_ok() { LIFETIME } else { FAILURE_LIFETIME };
        let mut documents = lock(&self.documents);
        if documents.len() >= MAX_DOCUMENTS {
            documents.retain(|_, document| now < document.until);
        }
        if documents.len() >= MAX_DOCUMENTS {
            documents.clear();
        }
        documents.insert(client_id.to_owned(), CachedDocument { app: app.clone(), until: now + lifetime });
    }

    /// Returns the permits of a reader. Those that nobody uses are forgotten.
    fn share(&self, reader: Reader) -> Arc<Semaphore> {
        let mut shares = lock(&self.shares);
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        Arc::clone(shares.entry(reader).or_insert_with(|| Arc::new(Semaphore::new(SHARE))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use futures_util::future::{BoxFuture, join_all};
    use svc_core::accounts::sessions::Role;
    use svc_core::values::{Id, Timestamp, WebhookUrl};
    use svc_core::webhooks::engine::{Attempt, AttemptResult};
    use uuid::Uuid;

    use super::*;

    /// Documents below `/slow` never come, and all others at once.
    #[derive(Default)]
    struct Documents {
        read: AtomicUsize,
    }

    impl WebhookClient for Documents {
        fn attempt(&self, _: Attempt) -> BoxFuture<'static, AttemptResult> {
            Box::pin(std::future::pending())
        }

        fn get(&self, url: WebhookUrl) -> BoxFuture<'static, Result<Bytes, String>> {
            self.read.fetch_add(1, Ordering::SeqCst);
            if url.url().path().starts_with("/slow") {
                return Box::pin(std::future::pending());
            }
            let (id, back) = (url.url().as_str(), "https://app.example.com/callback");
            let document = serde_json::json!({ "client_id": id, "redirect_uris": [back] }).to_string();
            Box::pin(std::future::ready(Ok(document.into())))
        }
    }

    fn session(tenant: u128) -> Session {
        let now = Timestamp::from_micros(0);
        Session {
            id: Id::nil(),
            tenant_id: Some(TenantId(Uuid::from_u128(tenant))),
            email: None,
            role: Role::Owner,
            identity: "ada@example.com".to_owned(),
            created_at: now,
            expires_at: now,
            last_used_at: now,
            viewed_tenant_id: None,
            member_id: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_documents_of_an_account_hold_nobody_else_up() {
        let documents = Arc::new(Documents::default());
        let apps = PublishedApps::new(Arc::clone(&documents) as Arc<dyn WebhookClient>);
        let (own, other) = (session(1), session(2));
        let slow: Vec<String> = (0..24).map(|at| format!("https://slow.example/slow/{at}.json")).collect();
        let mut slow = join_all(slow.iter().map(|url| apps.of(url, &own)));
        assert!((&mut slow).now_or_never().is_none());
        assert_eq!(documents.read.load(Ordering::SeqCst), SHARE);
        let app = apps.of("https://app.example.com/client.json", &other).now_or_never();
        assert!(app.unwrap().is_ok());
        // The account itself waits for its own documents, and not for long.
        let began = Instant::now();
        assert_eq!(apps.of("https://app.example.com/another.json", &own).await.unwrap_err(), BUSY);
        assert_eq!(began.elapsed(), WAIT);
        drop(slow);
        assert!(apps.of("https://app.example.com/another.json", &own).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_places_are_taken_nobody_waits_for_long() {
        let documents = Arc::new(Documents::default());
        let apps = PublishedApps::new(Arc::clone(&documents) as Arc<dyn WebhookClient>);
        let sessions: Vec<Session> = (0..64).map(session).collect();
        let slow = sessions.iter().map(|session| apps.of("https://slow.example/slow", session));
        let mut slow = join_all(slow);
        assert!((&mut slow).now_or_never().is_none());
        let refused = apps.of("https://app.example.com/client.json", &session(1000)).await;
        assert_eq!(refused.unwrap_err(), BUSY);
    }
    #[tokio::test(start_paused = true)]
    async fn people_of_no_account_leave_places_to_the_accounts() {
        let documents = Arc::new(Documents::default());
        let apps = PublishedApps::new(Arc::clone(&documents) as Arc<dyn WebhookClient>);
        let person =
            |number: usize| Session { tenant_id: None, identity: format!("p{number}@example.com"), ..session(0) };
        let people: Vec<Session> = (0..64).map(person).collect();
        let urls: Vec<String> = (0..128).map(|at| format!("https://slow.example/slow/{at}.json")).collect();
        let slow = join_all(urls.iter().enumerate().map(|(at, url)| apps.of(url, &people[at / 2])));
        let mut slow = Box::pin(tokio::task::unconstrained(slow));
        assert!((&mut slow).now_or_never().is_none());
        assert_eq!(documents.read.load(Ordering::SeqCst), FOR_PEOPLE);
        let account = session(1);
        let app = tokio::task::unconstrained(apps.of("https://app.example.com/client.json", &account)).now_or_never();
        assert!(app.unwrap().is_ok());
    }
}
