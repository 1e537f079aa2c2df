//! Changes of an app that meet: another process holds its row until both have begun, so each reads before the other has
//! committed.

use futures_util::future::{try_join, try_join3};
use svc_core::Svc;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::apps::{App, AppCreate, AppId, AppUpdate, NewApp};
use svc_core::accounts::grants::Grant;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::accounts::platform_keys::{self, PlatformKeyCreate, PlatformScope};
use svc_core::accounts::sessions::{Role as AccountRole, Session};
use svc_core::oauth::Parameters;
use svc_core::oauth::authorization::{self, AuthorizationRequest, Issuer};
use svc_core::oauth::published::{self, PublishedApp};
use svc_core::prelude::{DashboardLinkCreate, ListParams, NoFilter};
use svc_core::values::Secret;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

pub(super) struct AppDatabase {
    pub(super) url: String,
    pub(super) svc: Svc,
    pub(super) app: App,
}

/// An owner who is signed in, with the account.
pub(super) struct Owner {
    session: Session,
    pub(super) tenant: TenantId,
}

impl AppDatabase {
    async fn new(server: &svc_test_support::postgres::Server) -> Self {
        Self::on(server.database()).await
    }

    pub(super) async fn on(url: String) -> Self {
        let svc = Svc::new(store(&url).await);
        let uris = vec!["https://app.example.com/callback".parse().unwrap()];
        let app = svc.apps().create(AppCreate::new("Planner".parse().unwrap(), uris)).await.unwrap().app;
        Self { url, svc, app }
    }

    /// Runs two writes that both wait for the row of the app before one of them goes on.
    async fn meet<A, B>(
        &self,
        first: impl Future<Output = Result<A, Error>>,
        second: impl Future<Output = Result<B, Error>>,
    ) -> Result<(A, B), Error> {
        let lock = lock_app(&self.url, &self.app).await;
        let release = async {
            wait_for_locks(&self.url, 2).await;
            lock.client.batch_execute("COMMIT").await.unwrap();
            Ok(())
        };
        try_join(try_join(first, second), release).await.map(|(both, ())| both)
    }

    async fn stored(&self) -> App {
        self.svc.apps().get(self.app.id).await.unwrap()
    }

    async fn rotate(&self) -> Result<NewApp, Error> {
        self.svc.apps().rotate_secret(self.app.id, HOUR).await
    }

    async fn update(&self, change: AppUpdate) -> Result<NewApp, Error> {
        self.svc.apps().update(self.app.id, change).await
    }

    pub(super) async fn owner(&self) -> Owner {
        let tenant = self.svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let link = self.svc.dashboard().create_link(DashboardLinkCreate::to(tenant, AccountRole::Owner)).await.unwrap();
        let session = self.svc.dashboard().sign_in(link.token.reveal()).await.unwrap().session;
        Owner { session, tenant }
    }

    /// Returns the request of the app for access to an account.
    pub(super) async fn request(&self) -> AuthorizationRequest {
        let input = (parameters(&self.app.client_id), issuer());
        let request = self
            .svc
            .store()
            .read("test", input, async |tx, (parameters, issuer)| authorization::check(tx, parameters, issuer).await);
        request.await.unwrap().unwrap()
    }

    /// Returns the request of an app that publishes what it is.
    pub(super) async fn request_of(&self, app: PublishedApp) -> AuthorizationRequest {
        let input = (parameters("https://app.example.com/client.json"), issuer(), app);
        let request = self.svc.store().read("test", input, async |tx, (parameters, issuer, app)| {
            authorization::check_published(tx, parameters, issuer, app).await
        });
        request.await.unwrap().unwrap()
    }

    pub(super) async fn allow(&self, owner: &Owner, request: AuthorizationRequest) -> Result<Secret, Error> {
        let input = (owner.session.clone(), owner.tenant, request);
        let allow = self.svc.store().write("test", input, async |tx, (session, tenant, request)| {
            authorization::allow(tx, session, *tenant, request).await
        });
        allow.await
    }

    pub(super) async fn grants_to(&self, app: AppId) -> Vec<Grant> {
        let grants = self.svc.store().read("test", app, async |tx, &app| Ok(tx.grants_to(app, 10).await?));
        grants.await.unwrap()
    }
}

fn parameters(client_id: &str) -> Parameters {
    let challenge = "A".repeat(43);
    let query =
        format!("response_type=code&client_id={client_id}&code_challenge={challenge}&code_challenge_method=S256");
    Parameters::of(query.as_bytes())
}

fn issuer() -> Issuer {
    Issuer { url: "https://api.example.com".to_owned(), resources: Vec::new() }
}

/// Locks the row of an app in a transaction of another process, and returns its connection.
async fn lock_app(url: &str, app: &App) -> PostgresConnection {
    let other = direct_connection(url).await;
    let lock = format!("BEGIN; SELECT 1 FROM oauth_apps WHERE id = '{}' FOR UPDATE", app.id);
    other.client.batch_execute(&lock).await.unwrap();
    other
}

/// Locks the table of codes, which a consent writes to at its end, and returns the connection.
pub(super) async fn lock_codes(url: &str) -> PostgresConnection {
    let other = direct_connection(url).await;
    other.client.batch_execute("BEGIN; LOCK TABLE oauth_codes IN SHARE MODE").await.unwrap();
    other
}

/// Waits until so many connections wait for a lock.
pub(super) async fn wait_for_locks(url: &str, count: i64) {
    let watch = direct_connection(url).await;
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let wait = async {
        while watch.client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < count {
            tokio::task::yield_now().await;
        }
    };
    timeout(30 * SECOND, wait).await.unwrap_or_else(|_| panic!("{count} connections do not wait for a lock"));
}

fn name(name: &str) -> AppUpdate {
    AppUpdate { name: Some(name.parse().unwrap()), ..AppUpdate::default() }
}

#[tokio::test]
async fn a_change_undoes_no_rotation() {
    let Some(server) = server() else { return };
    let fixture = AppDatabase::new(server).await;
    let (rotated, _) = fixture.meet(fixture.rotate(), fixture.update(name("Router"))).await.unwrap();
    let (stored, secret) = (fixture.stored().await, rotated.secret.unwrap());
    assert!(stored.has_secret(secret.reveal(), fixture.svc.store().env().now()));
    assert_eq!((stored.name.as_str(), stored.previous_hash), ("Router", fixture.app.secret_hash));
}

#[tokio::test]
async fn of_two_rotations_both_secrets_work() {
    let Some(server) = server() else { return };
    let fixture = AppDatabase::new(server).await;
    let (one, two) = fixture.meet(fixture.rotate(), fixture.rotate()).await.unwrap();
    let (stored, now) = (fixture.stored().await, fixture.svc.store().env().now());
    assert!([one, two].into_iter().all(|new| stored.has_secret(new.secret.unwrap().reveal(), now)));
}

#[tokio::test]
async fn a_change_enables_no_app_that_is_disabled_meanwhile() {
    let Some(server) = server() else { return };
    let fixture = AppDatabase::new(server).await;
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    fixture.meet(fixture.update(disable), fixture.update(name("Router"))).await.unwrap();
    let stored = fixture.stored().await;
    assert!(stored.disabled_at.is_some() && stored.name.as_str() == "Router");
}

#[tokio::test]
async fn an_app_gets_one_webhook() {
    let Some(server) = server() else { return };
    let fixture = AppDatabase::new(server).await;
    let url = |path: &str| {
        let url = format!("https://app.example.com/{path}").parse().unwrap();
        AppUpdate { disconnect_url: Some(Some(url)), ..AppUpdate::default() }
    };
    let (one, two) = fixture.meet(fixture.update(url("a")), fixture.update(url("b"))).await.unwrap();
    assert_eq!([one, two].iter().filter(|new| new.webhook_secret.is_some()).count(), 1);
    let webhooks = fixture.svc.account(PLATFORM_ACCOUNT).webhooks();
    let webhooks = webhooks.list(NoFilter {}, ListParams::default()).await.unwrap();
    assert_eq!(webhooks.data.len(), 1);
}

/// The document that an app publishes at its client id, once with each name.
pub(super) fn published(name: &str) -> PublishedApp {
    let url = published::document_url("https://app.example.com/client.json").unwrap();
    let document = serde_json::json!({
        "client_id": url.url().as_str(), "client_name": name, "redirect_uris": ["https://app.example.com/callback"],
    });
    PublishedApp::read(&url, document.to_string().as_bytes()).unwrap()
}

/// The operator disables an app while an owner consents, after the consent has read it.
#[tokio::test]
async fn a_consent_enables_no_published_app_that_is_disabled_meanwhile() {
    let Some(server) = server() else { return };
    for is_disabled_first in [true, false] {
        let fixture = AppDatabase::new(server).await;
        let (owner, other) = (fixture.owner().await, fixture.owner().await);
        let request = fixture.request_of(published("Planner")).await;
        fixture.allow(&other, request).await.unwrap();
        let apps = fixture.svc.store().read("test", (), async |tx, ()| Ok(tx.apps(None).await?)).await.unwrap();
        let app = apps.into_iter().find(App::is_published).unwrap();
        // Its document has changed, so that the consent writes the app.
        let request = fixture.request_of(published("Router")).await;

        let lock = lock_app(&fixture.url, &app).await;
        let (first, second) = if is_disabled_first { (0, 1) } else { (1, 0) };
        let disable = async {
            wait_for_locks(&fixture.url, first).await;
            let change = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
            fixture.svc.apps().update(app.id, change).await
        };
        let consent = async {
            wait_for_locks(&fixture.url, second).await;
            Ok(fixture.allow(&owner, request).await)
        };
        let release = async {
            wait_for_locks(&fixture.url, 2).await;
            lock.client.batch_execute("COMMIT").await.unwrap();
            Ok(())
        };
        let (_, consent, ()) = try_join3(disable, consent, release).await.unwrap();
        let stored = fixture.svc.apps().get(app.id).await.unwrap();
        assert!(stored.disabled_at.is_some(), "disabled first: {is_disabled_first}");
        let (granted, name) = if is_disabled_first { (Err(Error::NotFound), "Planner") } else { (Ok(()), "Router") };
        assert_eq!((consent.map(drop), stored.name.as_str()), (granted.clone(), name));
        let grants = fixture.grants_to(app.id).await;
        assert_eq!(grants.len(), if granted.is_ok() { 2 } else { 1 });
    }
}

#[tokio::test]
async fn an_app_that_an_account_is_connecting_is_deleted_with_its_access() {
    let Some(server) = server() else { return };
    deletes_an_app_that_an_account_is_connecting(AppDatabase::new(server).await).await;
}

pub(super) async fn deletes_an_app_that_an_account_is_connecting(fixture: AppDatabase) {
    let owner = fixture.owner().await;
    let request = fixture.request().await;
    // The consent has written its grant and waits; the deletion waits for the consent.
    let lock = lock_codes(&fixture.url).await;
    let delete = async {
        wait_for_locks(&fixture.url, 1).await;
        fixture.svc.apps().delete(fixture.app.id).await
    };
    let release = async {
        wait_for_locks(&fixture.url, 2).await;
        lock.client.batch_execute("COMMIT").await.unwrap();
        Ok(())
    };
    try_join3(fixture.allow(&owner, request), delete, release).await.unwrap();
    assert_eq!(fixture.svc.apps().get(fixture.app.id).await, Err(Error::NotFound));
    assert_eq!(fixture.grants_to(fixture.app.id).await, Vec::new());
}

#[tokio::test]
async fn of_two_revocations_of_a_platform_key_the_first_counts() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let input = PlatformKeyCreate { name: None, scopes: vec![PlatformScope::All], expires_in: None };
    let create = store.write("test", input, async |tx, input| platform_keys::create(tx, input.clone()).await);
    let id = create.await.unwrap().key.id;
    let revoke = |actor: &str| {
        let actor = Actor::Cli(actor.to_owned());
        store.write("test", (id, actor), async |tx, (id, actor)| {
            tx.act_as(actor.clone());
            platform_keys::revoke(tx, *id).await
        })
    };
    let other = direct_connection(&url).await;
    other.client.batch_execute("BEGIN; SELECT 1 FROM platform_keys FOR UPDATE").await.unwrap();
    let release = async {
        wait_for_locks(&url, 2).await;
        other.client.batch_execute("COMMIT").await.unwrap();
        Ok(())
    };
    let (one, two, ()) = try_join3(revoke("ada"), revoke("bob"), release).await.unwrap();
    assert_eq!(one.revoked_by, two.revoked_by);
}
