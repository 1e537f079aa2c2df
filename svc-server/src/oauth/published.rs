//! Reads what apps publish at the URL that is their client id, and keeps it for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use svc_core::oauth::published::{PublishedApp, document_url};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::deliver::WebhookClient;

/// How long a document is kept.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long it is known that there is none, or none that is valid.
const FAILURE_LIFETIME: Duration = Duration::from_secs(30);
/// How many documents are read at a time.
const READ_AT_ONCE: usize = 8;
/// The number of documents that are kept.
const MAX_KEPT: usize = 1_000;

/// The documents of apps that nobody has registered.
pub(crate) struct PublishedApps {
    client: Arc<dyn WebhookClient>,
    kept: Mutex<HashMap<String, Kept>>,
    /// The permits to read a document.
    reading: Semaphore,
}

struct Kept {
    app: Result<PublishedApp, String>,
    until: Instant,
}

impl PublishedApps {
    pub(crate) fn new(client: Arc<dyn WebhookClient>) -> Self {
        Self { client, kept: Mutex::default(), reading: Semaphore::new(READ_AT_ONCE) }
    }

    /// Returns what an app publishes, or what is wrong with it as a sentence for its developer.
    pub(crate) async fn of(&self, client_id: &str) -> Result<PublishedApp, String> {
        let now = Instant::now();
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(client_id)
            && now < kept.until
        {
            return kept.app.clone();
        }
        let app = self.read(client_id).await;
        let lifetime = if app.is_ok() { LIFETIME } else { FAILURE_LIFETIME };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, kept| now < kept.until);
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(client_id.to_owned(), Kept { app: app.clone(), until: Instant::now() + lifetime });
        app
    }

    async fn read(&self, client_id: &str) -> Result<PublishedApp, String> {
        let url = document_url(client_id)?;
        // They are never closed.
        let _permit = self.reading.acquire().await;
        let document = self
            .client
            .get(url.clone())
            .await
            .map_err(|reason| format!("The document at the client_id cannot be read: {reason}."))?;
        Ok(PublishedApp::read(&url, &document)?)
    }
}
