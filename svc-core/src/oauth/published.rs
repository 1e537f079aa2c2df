//! Apps that publish what they are at a URL, which is their client id (draft-ietf-oauth-client-id-metadata-document). Nobody
//! registers them.
//!
//! The operator has to allow them. The document is read when an owner is asked, and stored as an
//! [app](crate::accounts::apps) once the owner has allowed the access: so the requests of others fill no table.

use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::revocation;
use crate::accounts::apps::{App, CLIENT_ID_PREFIX};
use crate::accounts::keys;
use crate::error::{Error, StoreError};
use crate::store::{Store, Tx};
use crate::values::{RedirectUri, Text, WebhookUrl};

/// The longest URL of a document, in bytes.
const MAX_URL: usize = 2000;
/// How long an app is kept to which nobody grants access.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of redirect URIs that are kept of a document.
const MAX_REDIRECT_URIS: usize = 20;

/// The document that an app publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedApp {
    url: String,
    name: Text<100>,
    website: Option<WebhookUrl>,
    redirect_uris: Vec<RedirectUri>,
}

/// Returns whether a client id is the URL of a document, whatever is wrong with it.
pub fn is_url(client_id: &str) -> bool {
    !client_id.starts_with(CLIENT_ID_PREFIX) && client_id.contains("://")
}

/// Checks the URL of a document.
///
/// ```
/// use svc_core::oauth::published::document_url;
/// assert!(document_url("https://app.example.com/oauth/client.json").is_ok());
/// assert!(document_url("https://app.example.com").is_err());
/// ```
///
/// # Errors
/// The mistake, as a sentence: it has no path, but a fragment, a user or a segment of dots, or is too long. That its
/// host is public is another check.
pub fn document_url(client_id: &str) -> Result<WebhookUrl, &'static str> {
    let invalid = "The client_id must be the https URL of a document, with a path, in its canonical form.";
    let url = WebhookUrl::parse(client_id).map_err(|_| invalid)?;
    let canonical: &Url = url.url();
    let has_dots = client_id.split('/').any(|segment| matches!(segment, "." | ".."));
    let is_plain = canonical.as_str() == client_id && canonical.fragment().is_none() && canonical.username().is_empty();
    if client_id.len() > MAX_URL || !is_plain || has_dots || canonical.path().len() < 2 {
        return Err(invalid);
    }
    Ok(url)
}

impl PublishedApp {
    /// Reads a document. `url` is where it was found.
    ///
    /// # Errors
    /// The mistake, as a sentence.
    pub fn read(url: &WebhookUrl, document: &[u8]) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Document {
            client_id: String,
            client_name: Option<String>,
            client_uri: Option<String>,
            #[serde(default)]
            redirect_uris: Vec<String>,
            token_endpoint_auth_method: Option<String>,
            client_secret: Option<serde::de::IgnoredAny>,
        }
        let read = serde_json::from_slice(document);
        let Document { client_id, client_name, client_uri, redirect_uris, token_endpoint_auth_method, client_secret } =
            read.map_err(|_| "The document at the client_id is no JSON object with client_id and redirect_uris.")?;
        if client_id != url.url().as_str() {
            return Err("The document at the client_id has another client_id.");
        }
        if client_secret.is_some() || token_endpoint_auth_method.is_some_and(|method| method != "none") {
            return Err("The document at the client_id must have none as token_endpoint_auth_method, and no secret.");
        }
        // Forms of redirect URIs that this service does not take are of no use here, but may be elsewhere.
        let mut known: Vec<RedirectUri> = Vec::new();
        for uri in redirect_uris.iter().filter_map(|uri| RedirectUri::parse(uri).ok()) {
            if !known.contains(&uri) && known.len() < MAX_REDIRECT_URIS {
                known.push(uri);
            }
        }
        if known.is_empty() {
            return Err("The document at the client_id has no redirect_uris that this service takes.");
        }
        let host = url.host();
        let name = client_name.and_then(|name| name.parse().ok());
        // The host is a name if there is no other.
        let name = name.or_else(|| host.parse().ok()).ok_or("The document at the client_id has no client_name.")?;
        // A website elsewhere would be a claim that nobody checks.
        let website = client_uri.and_then(|uri| WebhookUrl::parse(&uri).ok()).filter(|uri| uri.host() == host);
        Ok(Self { url: client_id, name, website, redirect_uris: known })
    }

    /// Returns the app as it is stored, or as it would be.
    pub(super) async fn app(&self, tx: &mut dyn Tx) -> Result<App, StoreError> {
        let stored = tx.app_by_client_id(&self.url).await?;
        let now = tx.env().now();
        let app = stored.unwrap_or_else(|| App {
            id: tx.env().id(now),
            client_id: self.url.clone(),
            tenant_id: None,
            name: self.name.clone(),
            website: None,
            redirect_uris: Vec::new(),
            confidential: false,
            scopes: keys::scopes(true),
            disconnect_url: None,
            webhook_id: None,
            created_at: now,
            created_by: tx.actor().to_string(),
            disabled_at: None,
            secret_hash: None,
            previous_hash: None,
            previous_until: None,
        });
        let (name, website) = (self.name.clone(), self.website.clone());
        Ok(App { name, website, redirect_uris: self.redirect_uris.clone(), ..app })
    }
}

/// Stores what an app has published, and returns the stored app, which is locked. `app` is one that [`PublishedApp::app`] has
/// returned.
pub(super) async fn store(tx: &mut dyn Tx, app: &App) -> Result<App, Error> {
    let stored = match tx.app_by_client_id(&app.client_id).await? {
        Some(stored) => tx.lock_app(stored.id).await?,
        None => None,
    };
    let Some(stored) = stored else {
        let app = App { created_by: tx.actor().to_string(), ..app.clone() };
        tx.insert_app(&app).await?;
        return Ok(app);
    };
    let App { name, website, redirect_uris, .. } = app.clone();
    let published = App { name, website, redirect_uris, ..stored.clone() };
    if published != stored {
        tx.update_app(&published).await?;
    }
    Ok(published)
}

/// Deletes apps to which no account grants access any more, a day after their first consent at the earliest. One that is disabled
/// stays, so that it is kept out.
///
/// # Errors
/// [`Error::Store`].
pub async fn delete_unused(store: &dyn Store) -> Result<(), Error> {
    let unused = store.read("published_apps.unused", (), async |tx, ()| {
        let mut unused = Vec::new();
        for app in tx.apps(None).await? {
            if is_unused(tx, &app).await? {
                unused.push(app.id);
            }
        }
        Ok(unused)
    });
    for id in unused.await? {
        let deleted = store.write("published_apps.delete", id, async |tx, &id| {
            // Another node may have deleted it, an operator may have disabled it, and an account may have connected it.
            let Some(app) = tx.lock_app(id).await? else { return Ok(()) };
            match is_unused(tx, &app).await? {
                true => revocation::delete(tx, id).await.map(drop),
                false => Ok(()),
            }
        });
        deleted.await?;
    }
    Ok(())
}

async fn is_unused(tx: &mut dyn Tx, app: &App) -> Result<bool, Error> {
    let now = tx.env().now();
    let may_be_unused = app.is_published() && app.disabled_at.is_none() && now.since(app.created_at) > KEPT;
    Ok(may_be_unused && tx.grants_to(app.id, 1).await?.is_empty())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::accounts::grants::Grant;
    use crate::accounts::tenants::{self, TenantCreate};
    use crate::env::{Env, ManualClock, SeededEntropy};
    use crate::store::memory::MemoryStore;
    use crate::values::Timestamp;

    const URL: &str = "https://app.example.com/client.json";

    fn read(document: &serde_json::Value) -> Result<PublishedApp, &'static str> {
        PublishedApp::read(&document_url(URL).unwrap(), document.to_string().as_bytes())
    }

    #[test]
    fn the_url_of_a_document_is_https_with_a_path_and_nothing_else() {
        assert!(document_url(URL).is_ok());
        for url in [
            "https://app.example.com",
            "https://app.example.com/",
            "https://app.example.com/a/../client.json",
            "https://app.example.com/client.json#a",
            "https://ada@app.example.com/client.json",
            "https://APP.example.com/client.json",
            "ftp://app.example.com/client.json",
            "HTTPS://app.example.com/client.json",
            "svcapp_1",
        ] {
            assert!(document_url(url).is_err(), "{url}");
        }
        assert!(document_url(&format!("https://app.example.com/{}", "a".repeat(MAX_URL))).is_err());
        assert!(is_url("ftp://a") && !is_url("svcapp_a://") && !is_url("abc"));
    }

    #[test]
    fn a_document_names_the_app_and_where_it_returns() {
        let document = serde_json::json!({
            "client_id": URL,
            "client_name": "Claude",
            "client_uri": "https://app.example.com",
            "redirect_uris": [
                "http://localhost/callback", "cursor://x/cb", "cursor:/x", "http://localhost/callback", "https://app.example.com/cb",
            ],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code"],
        });
        let app = read(&document).unwrap();
        assert_eq!(app.name.as_str(), "Claude");
        assert_eq!(app.website.as_ref().map(WebhookUrl::host), Some("app.example.com"));
        let uris: Vec<&str> = app.redirect_uris.iter().map(RedirectUri::as_str).collect();
        assert_eq!(uris, ["http://localhost/callback", "cursor://x/cb", "https://app.example.com/cb"]);
        let mut unnamed = document.clone();
        unnamed["client_name"] = serde_json::Value::Null;
        unnamed["client_uri"] = "https://bank.example.com".into();
        let app = read(&unnamed).unwrap();
        assert_eq!((app.name.as_str(), app.website), ("app.example.com", None));
    }

    #[test]
    fn other_documents_are_refused() {
        let good = serde_json::json!({ "client_id": URL, "redirect_uris": ["https://app.example.com/cb"] });
        assert!(read(&good).is_ok());
        for (field, value) in [
            ("client_id", serde_json::json!("https://app.example.com/other.json")),
            ("redirect_uris", serde_json::json!([])),
            ("redirect_uris", serde_json::json!(["http://app.example.com/cb"])),
            ("redirect_uris", serde_json::json!("https://app.example.com/cb")),
            ("token_endpoint_auth_method", serde_json::json!("client_secret_basic")),
            ("client_secret", serde_json::json!("hush")),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert!(read(&bad).is_err(), "{bad}");
        }
        let url = document_url(URL).unwrap();
        for text in ["", "[]", "<html>", "{}"] {
            assert!(PublishedApp::read(&url, text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_app_that_no_account_uses_any_more_is_deleted_unless_it_is_disabled() {
        let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
        let store = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let store: &dyn Store = &store;
        let document = |name: &str| {
            let url = document_url(&format!("https://app.example.com/{name}.json")).unwrap();
            let text =
                serde_json::json!({ "client_id": url.url().as_str(), "redirect_uris": ["https://app.example.com/cb"] });
            PublishedApp::read(&url, text.to_string().as_bytes()).unwrap()
        };
        let all = [document("unused"), document("disabled"), document("used")];
        let made = store.write("test", all, async |tx, [unused, disabled, used]| {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
            let app = unused.app(tx).await?;
            super::store(tx, &app).await?;
            let app = disabled.app(tx).await?;
            super::store(tx, &App { disabled_at: Some(app.created_at), ..app }).await?;
            let app = used.app(tx).await?;
            let app = super::store(tx, &app).await?;
            let grant = Grant {
                id: tx.env().id(app.created_at),
                tenant_id: tenant,
                app_id: app.id,
                scopes: keys::scopes(false),
                member: "ada@example.com".to_owned(),
                created_at: app.created_at,
                last_used_at: None,
                requests: 0,
            };
            Ok(tx.insert_grant(&grant).await?)
        });
        made.now_or_never().unwrap().unwrap();
        let names = || {
            let apps = store.read("test", (), async |tx, ()| Ok(tx.apps(None).await?)).now_or_never().unwrap().unwrap();
            let mut names: Vec<String> =
                apps.into_iter().map(|app| app.client_id.rsplit('/').next().unwrap().to_owned()).collect();
            names.sort_unstable();
            names
        };
        delete_unused(store).now_or_never().unwrap().unwrap();
        assert_eq!(names(), ["disabled.json", "unused.json", "used.json"]);
        clock.advance(KEPT + Duration::from_secs(1));
        delete_unused(store).now_or_never().unwrap().unwrap();
        assert_eq!(names(), ["disabled.json", "used.json"]);
    }
}
