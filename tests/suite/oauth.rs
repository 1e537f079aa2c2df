//! OAuth 2.0 (docs/oauth.md): an app gets access to an account, works on it, and loses it again.

mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use serde_json::{Value, json};
use svc_core::Svc;
use svc_core::accounts::apps::{AppCreate, AppUpdate, NewApp};
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::TenantCreate;
use svc_core::crypto::sha256;
use svc_core::store::{DeliveryFilter, Store};
use svc_core::values::{RedirectUri, TenantId};
use svc_core::webhooks::engine::{Attempt, DueWork, InFlight, Policy, poll, run_batch};
use svc_server::{Api, DashboardSettings, OauthSettings, Settings, Surfaces};

use crate::harness::{Call, Response, SeededServer, settings};

const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";
const RETURN: &str = "https://app.example.com/callback";
const HOUR: Duration = Duration::from_secs(60 * 60);

fn apps() -> Surfaces {
    let oauth = Some(OauthSettings::new("https://api.example.com".parse().unwrap()));
    Surfaces { dashboard: Some(DashboardSettings { oauth, ..DashboardSettings::default() }), ..Surfaces::default() }
}

fn with_apps(settings: Settings) -> SeededServer {
    SeededServer::serving(apps(), settings)
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(sha256(VERIFIER.as_bytes()))
}

fn query(parameters: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

/// An app, and an owner in whose browser it asks.
struct Client<'s> {
    server: &'s SeededServer,
    svc: Svc,
    new: NewApp,
    tenant: TenantId,
    cookie: String,
}

impl<'s> Client<'s> {
    async fn new(server: &'s SeededServer, public: bool) -> Self {
        let uris = vec![RedirectUri::parse(RETURN).unwrap()];
        let input = AppCreate { public, write: true, ..AppCreate::new("Route Planner".parse().unwrap(), uris) };
        let svc = server.svc.clone();
        let new = svc.apps().create(input).await.unwrap();
        let cookie = sign_in(&svc, server.tenant).await;
        Self { server, svc, new, tenant: server.tenant, cookie }
    }

    /// Asks for access as a browser does. The owner allows it if there is a page.
    async fn authorize(&self, more: &[(&str, &str)]) -> HashMap<String, String> {
        let response = self.ask(more).await;
        let response = match response.status {
            200 => self.decide(more, &response, "allow").await,
            _ => response,
        };
        returned(&response)
    }

    fn request(&self, more: &[(&str, &str)]) -> String {
        let challenge = challenge();
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", self.new.app.client_id.as_str()),
            ("redirect_uri", RETURN),
            ("scope", "read write"),
            ("state", "a&b"),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        parameters.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        parameters.extend(more);
        format!("/oauth/authorize?{}", query(&parameters))
    }

    async fn ask(&self, more: &[(&str, &str)]) -> Response {
        self.server.send(browser(Method::GET, &self.request(more), &self.cookie)).await
    }

    async fn decide(&self, more: &[(&str, &str)], page: &Response, decision: &str) -> Response {
        let text = &page.text;
        let field = |name: &str| {
            let rest = text.split_once(&format!("name=\"{name}\" value=\"")).map_or("", |(_, rest)| rest);
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        let form = query(&[("csrf", &field("csrf")), ("account", &field("account")), ("decision", decision)]);
        let call = browser(Method::POST, &self.request(more), &self.cookie);
        self.server.send(call.form(form)).await
    }

    async fn token_at(&self, api: &Api, parameters: &[(&str, &str)]) -> Response {
        let call = Call::absolute(Method::POST, "/oauth/token");
        let call = match &self.new.secret {
            Some(secret) => {
                let pair = format!("{}:{}", self.new.app.client_id, secret.reveal());
                call.form(query(parameters)).header("authorization", &format!("Basic {}", STANDARD.encode(pair)))
            }
            None => {
                let id = [("client_id", self.new.app.client_id.as_str())];
                call.form(query(&[&id[..], parameters].concat()))
            }
        };
        self.server.send_to(api, call).await
    }

    async fn token(&self, parameters: &[(&str, &str)]) -> Response {
        self.token_at(&self.server.api, parameters).await
    }

    async fn exchange(&self, code: &str) -> Response {
        self.token(&exchange_of(code)).await
    }

    async fn refresh(&self, token: &str) -> Response {
        self.token(&[("grant_type", "refresh_token"), ("refresh_token", token)]).await
    }

    async fn revoke(&self, parameters: &[(&str, &str)]) -> Response {
        let pair = format!("{}:{}", self.new.app.client_id, self.new.secret.as_ref().unwrap().reveal());
        let call = Call::absolute(Method::POST, "/oauth/revoke").form(query(parameters));
        self.server.send(call.header("authorization", &format!("Basic {}", STANDARD.encode(pair)))).await
    }

    /// Returns the tokens that a new code gives.
    async fn connect(&self) -> Value {
        let code = self.authorize(&[]).await["code"].clone();
        let response = self.exchange(&code).await;
        assert_eq!(response.status, 200, "{}", response.text);
        response.json()
    }

    async fn grants(&self) -> usize {
        self.svc.account(self.tenant).grants().list().await.unwrap().len()
    }
}

fn exchange_of(code: &str) -> [(&str, &str); 4] {
    [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", RETURN), ("code_verifier", VERIFIER)]
}

async fn sign_in(svc: &Svc, tenant: TenantId) -> String {
    let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Owner)).await.unwrap();
    let new = svc.dashboard().sign_in(link.token.reveal()).await.unwrap();
    format!("svc_session={}", new.token.reveal())
}

fn browser(method: Method, target: &str, cookie: &str) -> Call {
    let call = Call::absolute(method, target).anonymous();
    call.header("cookie", cookie).header("origin", "http://api.example.com")
}

/// Returns the parameters with which the browser goes back to the app.
fn returned(response: &Response) -> HashMap<String, String> {
    assert_eq!(response.status, 303, "{}", response.text);
    let location = response.header("location").unwrap();
    let query = location.strip_prefix(&format!("{RETURN}?")).unwrap_or_else(|| panic!("{location}"));
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn with_token(call: Call, tokens: &Value) -> Call {
    call.header("authorization", &format!("Bearer {}", text(tokens, "access_token")))
}

fn assert_refused(response: &Response, status: u16, error: &str) {
    assert_eq!((response.status, &response.json()["error"]), (status, &json!(error)), "{}", response.text);
    assert_eq!(response.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_confidential_app_gets_access_works_and_is_disconnected() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;

    let page = client.ask(&[]).await;
    assert_eq!(page.status, 200);
    for shown in ["Route Planner", "app.example.com", "name=\"decision\" value=\"allow\"", "value=\"deny\""] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));

    let denied = returned(&client.decide(&[], &page, "deny").await);
    assert_eq!((denied["error"].as_str(), denied["state"].as_str()), ("access_denied", "a&b"));
    assert_eq!((denied["iss"].as_str(), client.grants().await), ("https://api.example.com", 0));

    let allowed = client.authorize(&[]).await;
    assert_eq!((allowed["state"].as_str(), allowed["iss"].as_str()), ("a&b", "https://api.example.com"));
    assert!(allowed["code"].starts_with("svc_oac_"));
    let response = client.exchange(&allowed["code"]).await;
    assert_eq!((response.status, response.header("cache-control")), (200, Some("no-store")));
    assert_eq!(response.header("access-control-allow-origin"), Some("*"));
    let tokens = response.json();
    let names: Vec<&String> = tokens.as_object().unwrap().keys().collect();
    assert_eq!(names, ["access_token", "token_type", "expires_in", "refresh_token", "scope", "tenant_id"]);
    assert!(text(&tokens, "access_token").starts_with("svc_oat_"));
    assert!(text(&tokens, "refresh_token").starts_with("svc_ort_"));
    assert_eq!((&tokens["expires_in"], &tokens["scope"]), (&json!(3600), &json!("read write")));
    assert_eq!((text(&tokens, "token_type"), text(&tokens, "tenant_id")), ("Bearer", &*client.tenant.to_string()));

    server.expect(200, with_token(Call::get("/contacts"), &tokens)).await;
    let made = with_token(Call::post("/contacts", json!({ "email": "grace@example.com" })), &tokens);
    server.expect(201, made).await;

    // The refresh token of a confidential app stays, and its old access token lasts.
    let refreshed = client.refresh(text(&tokens, "refresh_token")).await.json();
    assert_eq!(refreshed["refresh_token"], tokens["refresh_token"]);
    assert_ne!(refreshed["access_token"], tokens["access_token"]);
    for tokens in [&tokens, &refreshed] {
        server.expect(200, with_token(Call::get("/contacts"), tokens)).await;
    }

    // It is asked again only for more.
    assert!(client.authorize(&[]).await.contains_key("code"));
    assert_eq!(client.ask(&[]).await.status, 303);
    assert_eq!(client.ask(&[("prompt", "consent")]).await.status, 200);

    server.api.jobs().flush_last_used().await.unwrap();
    let (grant, app) = client.svc.account(client.tenant).grants().list().await.unwrap().remove(0);
    assert_eq!((grant.requests, grant.member.as_str(), app.id), (4, "owner@link", client.new.app.id));
    assert!(grant.last_used_at.is_some());
    client.svc.account(client.tenant).grants().revoke(grant.id).await.unwrap();
    for tokens in [&tokens, &refreshed] {
        let refused = server.expect(401, with_token(Call::get("/contacts"), tokens)).await;
        assert_eq!(refused.code(), "invalid_token");
        let challenge = "Bearer error=\"invalid_token\", \
            resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource/api/v1\"";
        assert_eq!(refused.header("www-authenticate"), Some(challenge));
    }
    // So does any other text that is no valid token, but no request without one (RFC 6750 §3.1).
    for (token, error) in [("Bearer svc_live_1", true), ("Bearer x", true), ("Basic eA==", false)] {
        let refused = server.expect(401, Call::get("/contacts").header("authorization", token)).await;
        let challenge = refused.header("www-authenticate").unwrap();
        assert_eq!(challenge.contains("error=\"invalid_token\""), error, "{token}: {challenge}");
    }
    // Of two, neither is wrong.
    let twice = with_token(Call::get("/contacts"), &tokens).and_header("authorization", "Bearer svc_live_1");
    let refused = server.expect(401, twice).await;
    assert_eq!(refused.json()["error"], "Send exactly one Authorization header.");
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer error=\"invalid_request\", "), "{challenge}");
    let missing = "Send an API key or the access token of an app as: Authorization: Bearer …; the URL cannot have it.";
    for call in [Call::get("/contacts"), Call::get("/contacts?access_token=svc_oat_1")] {
        assert_eq!(server.expect(401, call.anonymous()).await.json()["error"], missing);
    }
    assert_refused(&client.refresh(text(&tokens, "refresh_token")).await, 400, "invalid_grant");
}

#[tokio::test]
async fn the_audit_log_and_the_events_name_the_app() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let since = server.store().env().now();
    let tokens = client.connect().await;
    server.clock.advance(Duration::from_secs(1));
    let made = with_token(Call::post("/contacts", json!({ "email": "grace@example.com" })), &tokens);
    server.expect(201, made).await;
    let log = client.svc.account(client.tenant).audit_log().since(since, 50).await.unwrap();
    let log: Vec<(String, String)> =
        log.into_iter().map(|entry| (entry.actor, format!("{} {}", entry.action, entry.object_kind))).collect();
    let app = format!("app:{}", client.new.app.id);
    assert_eq!(log[0], (app, "created contact".to_owned()));
    assert!(log.contains(&("dashboard:owner@link".to_owned(), "create grant".to_owned())), "{log:?}");
}

#[tokio::test]
async fn a_read_token_changes_nothing() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let code = client.authorize(&[("scope", "read offline_access")]).await["code"].clone();
    let tokens = client.exchange(&code).await.json();
    assert_eq!(tokens["scope"], "read");
    let made = with_token(Call::post("/contacts", json!({ "email": "grace@example.com" })), &tokens);
    let refused = server.expect(403, made).await;
    assert_eq!(refused.code(), "insufficient_scope");
    assert!(refused.text.contains("The account has not granted write to this app;"), "{}", refused.text);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer error=\"insufficient_scope\", scope=\"read write\""), "{challenge}");
    // The owner is asked when more is asked for.
    assert_eq!(client.ask(&[]).await.status, 200);
    let more = [("grant_type", "refresh_token"), ("refresh_token", text(&tokens, "refresh_token")), ("scope", "write")];
    assert_refused(&client.token(&more).await, 400, "invalid_scope");
}

#[tokio::test]
async fn an_app_sees_no_webhooks_but_its_own_and_loses_them_with_its_access() {
    let server = SeededServer::serving(Surfaces { extensions: true, ..apps() }, settings());
    let client = Client::new(&server, false).await;
    let tokens = client.connect().await;
    let webhook = json!({ "url": "https://hooks.example.com/", "events": ["contact.created"] });
    let foreign = server.expect(201, Call::post("/webhooks", webhook.clone())).await.id();
    let own = server.expect(201, with_token(Call::post("/webhooks", webhook), &tokens)).await.id();
    let list = async |call| {
        let list = server.expect(200, call).await.json();
        list["data"].as_array().unwrap().iter().map(|webhook| text(webhook, "id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(with_token(Call::get("/webhooks"), &tokens)).await, [own.as_str()]);
    assert!(list(Call::get("/webhooks")).await.contains(&own), "the account sees all");
    for call in [
        Call::get(&format!("/webhooks/{foreign}")),
        Call::patch(&format!("/webhooks/{foreign}"), json!({ "enabled": false })),
        Call::delete(&format!("/webhooks/{foreign}")),
    ] {
        server.expect(404, with_token(call, &tokens)).await;
    }
    server.expect(200, with_token(Call::get(&format!("/webhooks/{own}")), &tokens)).await;

    // Nor what is delivered to them.
    server.expect(201, Call::post("/contacts", json!({ "email": "new@example.com" }))).await;
    let since = json!({ "since": "2026-03-01T00:00:00Z" });
    for (webhook, status) in [(&foreign, 404), (&own, 200)] {
        let page = server.expect(200, Call::get(&format!("/webhooks/{webhook}/deliveries"))).await.json();
        let delivery = text(&page["data"][0], "id").to_owned();
        let replay = server.expect(201, Call::post(&format!("/webhooks/{webhook}/replay"), since.clone())).await.id();
        let created = if status == 200 { 201 } else { status };
        for (expected, call) in [
            (status, Call::get(&format!("/webhooks/{webhook}/deliveries"))),
            (status, Call::get(&format!("/deliveries/{delivery}"))),
            (status, Call::get(&format!("/replays/{replay}"))),
            (status, Call::new(Method::POST, &format!("/deliveries/{delivery}/replay"))),
            (created, Call::post(&format!("/webhooks/{webhook}/replay"), since.clone())),
            (created, Call::post(&format!("/webhooks/{webhook}/test"), json!({}))),
            (status, Call::post(&format!("/webhooks/{webhook}/rotate-secret"), json!({}))),
        ] {
            server.expect(expected, with_token(call, &tokens)).await;
        }
    }
    server.expect(200, with_token(Call::get("/events"), &tokens)).await;

    let revoked = [("token", text(&tokens, "refresh_token"))];
    let response = client.revoke(&revoked).await;
    assert_eq!((response.status, response.text.as_str()), (200, "{}\n"));
    assert_eq!(client.grants().await, 0, "it was its last refresh token");
    server.expect(404, Call::get(&format!("/webhooks/{own}"))).await;
    server.expect(200, Call::get(&format!("/webhooks/{foreign}"))).await;
    server.expect(401, with_token(Call::get("/webhooks"), &tokens)).await;
    // A token that is not known is revoked already.
    assert_eq!(client.revoke(&revoked).await.status, 200);
}

#[tokio::test]
async fn a_secret_is_rotated_with_an_overlap_and_an_app_is_disabled_at_once() {
    let server = with_apps(settings());
    let mut client = Client::new(&server, false).await;
    let tokens = client.connect().await;
    let refresh = text(&tokens, "refresh_token");
    let rotated = client.svc.apps().rotate_secret(client.new.app.id, HOUR).await.unwrap();
    server.clock.advance(HOUR - Duration::from_micros(1));
    assert_eq!(client.refresh(refresh).await.status, 200);
    server.clock.advance(Duration::from_micros(1));
    assert_refused(&client.refresh(refresh).await, 401, "invalid_client");
    client.new = rotated;
    let tokens = client.refresh(refresh).await.json();
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    client.svc.apps().update(client.new.app.id, disable).await.unwrap();
    assert_refused(&client.refresh(refresh).await, 401, "invalid_client");
    server.expect(401, with_token(Call::get("/contacts"), &tokens)).await;
    assert_eq!(client.ask(&[]).await.status, 400);
}

/// Takes what the sender would send next on a node that has looked for it already.
async fn start_deliveries(node: &dyn Store, due: DueWork) -> Vec<Attempt> {
    let policy = Policy::default();
    let mut attempts = Vec::new();
    for batch in InFlight::default().plan(&policy, &due, BTreeMap::new()) {
        let run =
            node.write("test", (policy.clone(), batch), async |tx, (policy, batch)| run_batch(tx, policy, batch).await);
        attempts.extend(run.await.unwrap().attempts);
    }
    attempts
}

async fn due_deliveries(node: &dyn Store) -> DueWork {
    node.read("test", (), async |tx, ()| poll(tx).await).await.unwrap()
}

/// Whichever comes first: once access has ended, no token of it works and no delivery to the app starts, on any node.
#[tokio::test]
async fn access_that_ends_beside_a_refresh_and_a_delivery_has_ended() {
    let server = with_apps(settings());
    let second = server.second_store();
    let node = Api::with_surfaces(Arc::clone(&second), settings(), apps());
    for round in 0..20 {
        let client = Client::new(&server, round % 2 == 0).await;
        let tokens = client.connect().await;
        let url = format!("https://hooks.example.com/{round}");
        let webhook = json!({ "url": url, "events": ["contact.created"] });
        server.expect(201, with_token(Call::post("/webhooks", webhook), &tokens)).await;
        let contact = json!({ "email": format!("person{round}@example.com") });
        server.expect(201, Call::post("/contacts", contact)).await;
        let due = due_deliveries(&*second).await;
        let (grant, _) = client.svc.account(client.tenant).grants().list().await.unwrap().remove(0);

        let refresh = [("grant_type", "refresh_token"), ("refresh_token", text(&tokens, "refresh_token"))];
        let account = client.svc.account(client.tenant);
        let (refreshed, revoked, started) = tokio::join!(
            client.token_at(&node, &refresh),
            account.grants().revoke(grant.id),
            start_deliveries(&*second, due),
        );
        revoked.unwrap();
        assert_eq!(client.grants().await, 0);
        match refreshed.status {
            200 => {
                let new = refreshed.json();
                server.expect(401, with_token(Call::get("/contacts"), &new)).await;
                assert_refused(&client.refresh(text(&new, "refresh_token")).await, 400, "invalid_grant");
            }
            _ => assert_refused(&refreshed, 400, "invalid_grant"),
        }
        server.expect(401, with_token(Call::get("/contacts"), &tokens)).await;
        let to_app = |attempts: &[Attempt]| attempts.iter().filter(|attempt| attempt.url.as_str() == url).count();
        assert!(to_app(&started) <= 1);
        let due = due_deliveries(&*second).await;
        assert_eq!(to_app(&start_deliveries(&*second, due).await), 0);
    }
    second.close().await;
}

/// The app is told at the URL that it has registered, also when there is no platform webhook.
#[tokio::test]
async fn an_app_learns_of_its_disconnection() {
    let server = with_apps(settings());
    let mut client = Client::new(&server, false).await;
    let url = Some(Some("https://app.example.com/gone".parse().unwrap()));
    let change = AppUpdate { disconnect_url: url, ..AppUpdate::default() };
    let changed = client.svc.apps().update(client.new.app.id, change).await.unwrap();
    assert!(changed.webhook_secret.unwrap().reveal().starts_with("whsec_"));
    client.new.app = changed.app;
    client.connect().await;
    let (grant, _) = client.svc.account(client.tenant).grants().list().await.unwrap().remove(0);
    client.svc.apps().delete(client.new.app.id).await.unwrap();
    assert_eq!(server.api.jobs().publish_operational_events().await, Ok(1));
    let deliveries = client.svc.account(PLATFORM_ACCOUNT).deliveries().list(DeliveryFilter::default()).await.unwrap();
    assert_eq!(deliveries.len(), 1);
    let event = client.svc.account(PLATFORM_ACCOUNT).events().get(deliveries[0].event_id).await.unwrap();
    assert_eq!((event.kind.as_str(), event.only_for), ("app.disconnected", None));
    let data: Value = serde_json::from_str(event.data.get()).unwrap();
    let expected = json!({
        "id": grant.id,
        "account_id": client.tenant,
        "occurred_at": data["occurred_at"],
        "client_id": client.new.app.client_id,
        "reason": "app_deleted",
        "webhook_id": deliveries[0].subscription_id,
    });
    assert_eq!(data, expected);
}

#[tokio::test]
async fn another_account_learns_nothing_of_a_grant() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let tokens = client.connect().await;
    let other = client.svc.accounts().create(TenantCreate::named("Hill Electric")).await.unwrap().id;
    assert!(client.svc.account(other).grants().list().await.unwrap().is_empty());
    let (grant, _) = client.svc.account(client.tenant).grants().list().await.unwrap().remove(0);
    assert!(client.svc.account(other).grants().revoke(grant.id).await.is_err());
    server.expect(200, with_token(Call::get("/contacts"), &tokens)).await;
}

#[tokio::test]
async fn without_oauth_there_are_no_apps() {
    let server = SeededServer::new();
    for path in ["/oauth/authorize", "/oauth/token", "/.well-known/oauth-authorization-server"] {
        let response = server.send(Call::absolute(Method::GET, path)).await;
        assert_eq!((response.status, response.code().as_str()), (404, "route_not_found"));
    }
    let refused = server.expect(401, Call::get("/contacts").header("authorization", "Bearer svc_oat_1")).await;
    assert_eq!((refused.code().as_str(), refused.header("www-authenticate")), ("invalid_key", Some("Bearer")));
}

#[tokio::test]
async fn the_metadata_says_where_everything_is() {
    let server = with_apps(settings());
    let get = async |path: &str| -> Response {
        let response = server.send(Call::absolute(Method::GET, path).anonymous()).await;
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, Some("*")), "{path}");
        response
    };
    let authorization_server = get("/.well-known/oauth-authorization-server").await;
    insta::assert_snapshot!("authorization_server", authorization_server.text);
    let resource = get("/.well-known/oauth-protected-resource/api/v1").await.json();
    assert_eq!(resource["resource"], "https://api.example.com/api/v1");
    assert_eq!(resource["authorization_servers"], json!(["https://api.example.com"]));
    assert_eq!(get("/.well-known/oauth-protected-resource").await.json()["resource"], "https://api.example.com");
    let unknown = server.send(Call::absolute(Method::GET, "/.well-known/oauth-protected-resource/api/v9")).await;
    assert_eq!(unknown.status, 404);
}
