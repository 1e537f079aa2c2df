//! Changes of an app that meet: another process holds its row until both have begun, so each reads before the other has
//! committed.

use futures_util::future::{try_join, try_join3};
use svc_core::Svc;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::apps::{App, AppCreate, AppUpdate, NewApp};
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::accounts::platform_keys::{self, PlatformKeyCreate, PlatformScope};
use svc_core::accounts::sessions::Role;
use svc_core::oauth::Parameters;
use svc_core::oauth::authorization::{self, Issuer};
use svc_core::prelude::{DashboardLinkCreate, ListParams, NoFilter};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

struct Fixture {
    url: String,
    svc: Svc,
    app: App,
}

impl Fixture {
    async fn new(server: &svc_postgres_server::Server) -> Self {
        let url = server.database();
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
        let other = direct_connection(&self.url).await;
        let lock = format!("BEGIN; SELECT 1 FROM oauth_apps WHERE id = '{}' FOR UPDATE", self.app.id);
        other.client.batch_execute(&lock).await.unwrap();
        let release = async {
            wait_for_locks(&self.url, 2).await;
            other.client.batch_execute("COMMIT").await.unwrap();
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
}

/// Waits until so many connections wait for a row.
async fn wait_for_locks(url: &str, count: i64) {
    let watch = direct_connection(url).await;
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while watch.client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < count {
        tokio::task::yield_now().await;
    }
}

fn name(name: &str) -> AppUpdate {
    AppUpdate { name: Some(name.parse().unwrap()), ..AppUpdate::default() }
}

#[tokio::test]
async fn a_change_undoes_no_rotation() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server).await;
    let (rotated, _) = fixture.meet(fixture.rotate(), fixture.update(name("Router"))).await.unwrap();
    let (stored, secret) = (fixture.stored().await, rotated.secret.unwrap());
    assert!(stored.has_secret(secret.reveal(), fixture.svc.store().env().now()));
    assert_eq!((stored.name.as_str(), stored.previous_hash), ("Router", fixture.app.secret_hash));
}

#[tokio::test]
async fn of_two_rotations_both_secrets_work() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server).await;
    let (one, two) = fixture.meet(fixture.rotate(), fixture.rotate()).await.unwrap();
    let (stored, now) = (fixture.stored().await, fixture.svc.store().env().now());
    assert!([one, two].into_iter().all(|new| stored.has_secret(new.secret.unwrap().reveal(), now)));
}

#[tokio::test]
async fn a_change_enables_no_app_that_is_disabled_meanwhile() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server).await;
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    fixture.meet(fixture.update(disable), fixture.update(name("Router"))).await.unwrap();
    let stored = fixture.stored().await;
    assert!(stored.disabled_at.is_some() && stored.name.as_str() == "Router");
}

#[tokio::test]
async fn an_app_gets_one_webhook() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server).await;
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

#[tokio::test]
async fn an_app_that_an_account_is_connecting_is_deleted_with_its_access() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server).await;
    let store = fixture.svc.store();
    let tenant = fixture.svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    let link = fixture.svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Owner)).await.unwrap();
    let session = fixture.svc.dashboard().sign_in(link.token.reveal()).await.unwrap().session;
    let query = format!(
        "response_type=code&client_id={}&code_challenge={}&code_challenge_method=S256",
        fixture.app.client_id,
        "A".repeat(43)
    );
    let issuer = Issuer { url: "https://api.example.com".to_owned(), resources: Vec::new() };
    let request = store.read("test", (Parameters::of(query.as_bytes()), issuer), async |tx, (parameters, issuer)| {
        authorization::check(tx, parameters, issuer).await
    });
    let request = request.await.unwrap().unwrap();

    // The consent has written its grant and waits; the deletion waits for the consent.
    let other = direct_connection(&fixture.url).await;
    other.client.batch_execute("BEGIN; LOCK TABLE oauth_codes IN SHARE MODE").await.unwrap();
    let consent = store.write("test", (session, tenant, request), async |tx, (session, tenant, request)| {
        authorization::allow(tx, session, *tenant, request).await
    });
    let delete = async {
        wait_for_locks(&fixture.url, 1).await;
        fixture.svc.apps().delete(fixture.app.id).await
    };
    let release = async {
        wait_for_locks(&fixture.url, 2).await;
        other.client.batch_execute("COMMIT").await.unwrap();
        Ok(())
    };
    try_join3(consent, delete, release).await.unwrap();
    assert_eq!(fixture.svc.apps().get(fixture.app.id).await, Err(Error::NotFound));
    let grants = store.read("test", fixture.app.id, async |tx, &id| Ok(tx.grants_to(id, 1).await?)).await;
    assert_eq!(grants, Ok(Vec::new()));
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
