//! The platform API as its clients use it: the operations, the scopes, what is refused, and the borders between
//! accounts and listeners.

mod bad_input;
mod borders;
mod lists;
mod transfer;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use svc_core::Svc;
use svc_core::accounts::apps::App;
use svc_core::accounts::grants::Grant;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{Area, PlatformKeyCreate, PlatformScope};
use svc_core::operation::AnyOperation;
use svc_core::values::{Id, TenantId, parse_uuid};
use svc_core::webhooks::subscriptions;
use svc_server::api::openapi;
use svc_server::{Api, Settings};
use svc_test_support::fixture::local_env;

use crate::database::Database;
use crate::harness::{Call, settings};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&openapi::text("platform-v1").unwrap()).unwrap());

/// The API and the platform API over an empty database, with a platform key for everything.
struct PlatformServer {
    svc: Svc,
    public: Api,
    platform: Api,
    key: String,
    /// Declared last, so that it is dropped after the store.
    _database: Database,
}

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Reply {
    fn data(&self, field: &str) -> String {
        self.body["data"][field].as_str().unwrap_or_else(|| panic!("no {field} in {}", self.body)).to_owned()
    }

    fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

impl PlatformServer {
    async fn new() -> Self {
        Self::with(settings()).await
    }

    async fn with(settings: Settings) -> Self {
        let database = Database::new();
        let svc = Svc::new(database.open(local_env()));
        let public = Api::new(Arc::clone(svc.store()), settings);
        let mut fixture =
            Self { svc, platform: public.for_platform(), public, key: String::new(), _database: database };
        let everything = [PlatformScope::All, PlatformScope::Of(Area::Operators, Scope::Write)];
        fixture.key = fixture.new_key(&everything).await;
        fixture
    }

    async fn new_key(&self, scopes: &[PlatformScope]) -> String {
        let input = PlatformKeyCreate { name: None, scopes: scopes.to_vec(), expires_in: None };
        let new = self.svc.platform_keys().create(input).await.unwrap();
        new.text.reveal().to_owned()
    }

    async fn call(&self, method: &Method, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Reply {
        self.call_as(&self.key, method, path, body, headers).await
    }

    async fn call_as(
        &self,
        key: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Reply {
        send(&self.platform, key, method, &format!("/platform/v1{path}"), body, headers).await
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        let reply = self.call(&Method::POST, path, Some(&body), &[]).await;
        assert!(reply.status.is_success(), "{path}: {} {}", reply.status, reply.body);
        reply
    }

    async fn account(&self, name: &str) -> String {
        self.post("/accounts", json!({ "name": name })).await.data("id")
    }
}

async fn send(
    api: &Api,
    key: &str,
    method: &Method,
    path: &str,
    body: Option<&Value>,
    headers: &[(&str, &str)],
) -> Reply {
    let call = Call::absolute(method.clone(), path).header("authorization", &format!("Bearer {key}")).headers(headers);
    let response = body.into_iter().fold(call, Call::json).send(api).await;
    let body = serde_json::from_slice(&response.body).unwrap_or_default();
    Reply { status: StatusCode::from_u16(response.status).unwrap(), headers: response.headers, body }
}

/// An id that nothing has.
const UNKNOWN: &str = "0195a3c8-8a00-7000-8000-0000000000ff";

/// Returns a body that the operation takes, by the examples of the OpenAPI document.
fn body_of(operation: &dyn AnyOperation) -> Option<Value> {
    operation.takes_body().then(|| {
        let method = operation.method.as_str().to_ascii_lowercase();
        DOCUMENT["paths"][&operation.path()][method]["requestBody"]["content"]["application/json"]["example"].clone()
    })
}

fn path_of(operation: &dyn AnyOperation, account: &str, id: &str) -> String {
    let path = operation.path().replace("{account_id}", account).replace("{id}", id);
    match operation.id {
        "findAccounts" => format!("{path}?kind=invoice&id={id}"),
        "findRecords" => format!("{path}?text=ada"),
        "findIds" => format!("{path}?kind=contact&part=0195a3c8"),
        _ => path,
    }
}

/// Makes one record of each kind in an account, and returns their ids by collection.
async fn one_of_each(fixture: &PlatformServer, account: &str) -> BTreeMap<&'static str, String> {
    let path = |rest: &str| format!("/accounts/{account}/{rest}");
    let mut ids = BTreeMap::new();
    let webhook = json!({ "url": "https://127.0.0.1/hooks", "events": ["*"] });
    ids.insert("webhooks", fixture.post(&path("webhooks"), webhook).await.data("id"));
    let contact = fixture.post(&path("contacts"), json!({ "email": "ada@example.com" })).await.data("id");
    for (collection, body) in [
        ("invoices", json!({ "contact_id": contact, "total": 100 })),
        ("bookings", json!({ "contact_id": contact, "service_name": "Drain", "start_time": "2026-03-20T09:00:00Z" })),
        ("quotes", json!({ "contact_id": contact, "total": 100 })),
        ("jobs", json!({ "title": "Fix tap" })),
        ("keys", json!({ "scopes": ["read"] })),
        ("members", json!({ "email": "ada@example.com", "role": "owner" })),
    ] {
        ids.insert(collection, fixture.post(&path(collection), body).await.data("id"));
    }
    ids.insert("contacts", contact);
    let data = json!({ "id": "stay-1", "price": 1.50 });
    let emitted = fixture.post(&path("events"), json!({ "kind": "stay.created", "data": data })).await;
    ids.insert("events", emitted.body["data"]["event"]["id"].as_str().unwrap().to_owned());
    ids.insert("deliveries", emitted.body["data"]["deliveries"][0]["id"].as_str().unwrap().to_owned());
    let replay = json!({ "subscription_id": ids["webhooks"], "since": "2026-03-01T00:00:00Z" });
    ids.insert("replays", fixture.post(&path("replays"), replay).await.data("id"));
    ids.insert("apps", grant(fixture, account).await);
    ids
}

/// Lets an app work on an account, and returns the id of the grant.
async fn grant(fixture: &PlatformServer, account: &str) -> String {
    let app = json!({ "name": "Route Planner", "redirect_uris": ["https://example.com/callback"] });
    let app = fixture.post("/apps", app).await.data("id");
    let ids = (TenantId(parse_uuid(account).unwrap()), Id::<App>::from(parse_uuid(&app).unwrap()));
    let granted = fixture.svc.store().write("test", ids, async |tx, &(tenant_id, app_id)| {
        let created_at = tx.env().now();
        let id = tx.env().id(created_at);
        let (scopes, member) = (vec![Scope::Read], "ada@example.com".to_owned());
        let grant = Grant { id, tenant_id, app_id, scopes, member, created_at, last_used_at: None, requests: 0 };
        tx.insert_grant(&grant).await?;
        Ok(id)
    });
    granted.await.unwrap().to_string()
}

#[tokio::test]
async fn an_account_is_made_changed_and_used() {
    let fixture = PlatformServer::new().await;
    let made = fixture.post("/accounts", json!({ "name": "Harbour", "time_zone": "Australia/Sydney" })).await;
    let id = made.data("id");
    assert_eq!(made.headers["location"], format!("/platform/v1/accounts/{id}"));
    let path = format!("/accounts/{id}");
    let got = fixture.call(&Method::GET, &path, None, &[]).await;
    assert_eq!((&got.body, &got.headers["etag"]), (&made.body, &made.headers["etag"]));

    let change = json!({ "developer_access": "suspended", "rate_limit": 9, "write_rate_limits": { "quotes": 5 } });
    let stale = fixture.call(&Method::PATCH, &path, Some(&change), &[("if-match", "\"0\"")]).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    let etag = made.headers["etag"].to_str().unwrap();
    let changed = fixture.call(&Method::PATCH, &path, Some(&change), &[("if-match", etag)]).await;
    assert_eq!(changed.body["data"]["write_rate_limits"]["quotes"], 5, "{}", changed.body);
    assert_eq!(
        (&changed.body["data"]["rate_limit"], changed.data("developer_access").as_str()),
        (&json!(9), "suspended")
    );
    for (body, field) in [
        (json!({ "time_zone": "Mars/Olympus" }), "time_zone"),
        (json!({ "rate_limit": 0 }), "rate_limit"),
        (json!({ "write_rate_limits": { "invoices": 1 } }), "write_rate_limits.invoices"),
        (json!({ "max_webhooks": 1001 }), "max_webhooks"),
        (json!({ "colour": "red" }), "colour"),
    ] {
        let refused = fixture.call(&Method::PATCH, &path, Some(&body), &[]).await;
        assert_eq!(
            (refused.status, &refused.body["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{}",
            refused.body
        );
    }
    // A platform key works on an account that is not approved, and its actor is the key.
    let contact = fixture.post(&format!("{path}/contacts"), json!({ "email": "ada@example.com" })).await;
    assert_eq!(contact.headers["location"], format!("/platform/v1{path}/contacts/{}", contact.data("id")));
    let log = fixture.call(&Method::GET, &format!("{path}/audit-log"), None, &[]).await;
    let entries = log.body["data"].as_array().unwrap();
    assert_eq!(entries.len(), 3, "{}", log.body);
    assert!(entries.iter().all(|entry| entry["actor"].as_str().unwrap().starts_with("platform_key:")), "{}", log.body);
}

/// What a POST creates is at its `Location`, with its ETag.
#[tokio::test]
async fn a_sandbox_is_made_reset_and_deleted() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("Harbour").await;
    let path = format!("/accounts/{account}/sandbox");
    let none = fixture.call(&Method::GET, &path, None, &[]).await;
    assert_eq!((none.status, none.code()), (StatusCode::NOT_FOUND, "not_found"));
    for action in ["reset", "delete"] {
        let none = fixture.call(&Method::POST, &format!("{path}/{action}"), None, &[]).await;
        assert_eq!((none.status, none.code()), (StatusCode::NOT_FOUND, "not_found"), "{action}");
    }
    let made = fixture.call(&Method::POST, &path, None, &[("idempotency-key", "one")]).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let repeated = fixture.call(&Method::POST, &path, None, &[("idempotency-key", "one")]).await;
    assert_eq!(repeated.body, made.body, "a repeat has the key as well");
    let (sandbox, key) = (&made.body["data"]["account"], &made.body["data"]["key"]);
    assert_eq!((&sandbox["sandbox_of"], &sandbox["name"]), (&json!(account), &json!("Harbour (sandbox)")));
    assert!(key["key"].as_str().unwrap().starts_with("svc_test_") && key["tenant_id"] == sandbox["id"], "{key}");
    let again = fixture.call(&Method::POST, &path, None, &[]).await;
    assert_eq!((again.status, again.code()), (StatusCode::CONFLICT, "not_allowed"));
    let id = sandbox["id"].as_str().unwrap();
    let nested = fixture.call(&Method::POST, &format!("/accounts/{id}/sandbox"), None, &[]).await;
    assert_eq!((nested.status, nested.code()), (StatusCode::CONFLICT, "not_allowed"));
    assert_eq!(fixture.call(&Method::GET, &path, None, &[]).await.body["data"], *sandbox);
    assert_eq!(fixture.call(&Method::GET, &format!("/accounts/{id}"), None, &[]).await.body["data"], *sandbox);

    let listed = async |query: &str| {
        let list = fixture.call(&Method::GET, &format!("/accounts{query}"), None, &[]).await;
        list.body["data"].as_array().unwrap().iter().map(|account| account["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, [json!(account)]);
    assert_eq!(listed("?sandboxes=false").await, [json!(account)]);
    assert_eq!(listed("?sandboxes=true").await, [json!(account), json!(id)]);
    assert_eq!(fixture.call(&Method::GET, "/accounts?sandboxes=1", None, &[]).await.status, StatusCode::BAD_REQUEST);

    let contacts = format!("/accounts/{id}/contacts");
    fixture.post(&contacts, json!({ "email": "eve@example.com" })).await;
    let count = async || fixture.call(&Method::GET, &contacts, None, &[]).await.body["data"].as_array().unwrap().len();
    assert_eq!(count().await, 4);
    let step = fixture.call(&Method::POST, &format!("{path}/reset"), None, &[]).await;
    assert!(step.body["data"]["is_done"] == true && step.body["data"]["deleted"].as_u64() > Some(30), "{}", step.body);
    assert_eq!(count().await, 3);
    let step = fixture.call(&Method::POST, &format!("{path}/delete"), None, &[]).await;
    assert_eq!(step.body["data"]["is_done"], true, "{}", step.body);
    let gone = fixture.call(&Method::GET, &contacts, None, &[]).await;
    assert_eq!((gone.status, gone.code()), (StatusCode::NOT_FOUND, "not_found"));
    assert_eq!(fixture.call(&Method::GET, &path, None, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_new_record_comes_with_its_place_and_its_version() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    let ids = one_of_each(&fixture, &account).await;
    let webhook = json!({ "url": "https://127.0.0.1/hooks", "events": ["*"], "expires_in": 60 });
    for (collection, body) in [
        ("keys", json!({ "scopes": ["read"] })),
        ("members", json!({ "email": "grace@example.com", "role": "viewer" })),
        ("replays", json!({ "subscription_id": ids["webhooks"], "since": "2026-03-01T00:00:00Z" })),
        ("webhooks/temporary", webhook),
    ] {
        let made = fixture.post(&format!("/accounts/{account}/{collection}"), body).await;
        let place = made.headers["location"].to_str().unwrap().strip_prefix("/platform/v1").unwrap();
        let got = fixture.call(&Method::GET, place, None, &[]).await;
        assert_eq!((got.data("id"), &got.headers["etag"]), (made.data("id"), &made.headers["etag"]), "{collection}");
    }
}

#[tokio::test]
async fn a_temporary_webhook_is_deleted_unless_it_is_kept() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    let webhooks = format!("/accounts/{account}/webhooks");
    let new = json!({ "url": "https://127.0.0.1/hooks", "events": ["*"], "expires_in": 0 });
    let expired = fixture.post(&format!("{webhooks}/temporary"), new.clone()).await.data("id");
    let kept = fixture.post(&format!("{webhooks}/temporary"), new).await.data("id");
    fixture.post(&format!("{webhooks}/{kept}/keep"), json!({ "expires_in": 60 })).await;
    assert_eq!(subscriptions::delete_expired(&**fixture.svc.store()).await, Ok(1));
    for (id, status) in [(expired, StatusCode::NOT_FOUND), (kept, StatusCode::OK)] {
        let reply = fixture.call(&Method::GET, &format!("{webhooks}/{id}"), None, &[]).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}

#[tokio::test]
async fn a_repeat_with_the_same_idempotency_key_changes_nothing() {
    let fixture = PlatformServer::new().await;
    let again = [("idempotency-key", "a")];
    let body = json!({ "name": "Harbour" });
    let first = fixture.call(&Method::POST, "/accounts", Some(&body), &again).await;
    let second = fixture.call(&Method::POST, "/accounts", Some(&body), &again).await;
    assert_eq!((second.status, &second.body), (StatusCode::CREATED, &first.body));
    assert_eq!(second.headers["idempotent-replayed"], "true");
    let other = fixture.account("Other").await;
    let contact = json!({ "email": "ada@example.com" });
    let [one, other] = [first.data("id"), other].map(|account| format!("/accounts/{account}/contacts"));
    let once = [("idempotency-key", "b")];
    assert_eq!(fixture.call(&Method::POST, &one, Some(&contact), &once).await.status, StatusCode::CREATED);
    let reused = fixture.call(&Method::POST, &other, Some(&contact), &once).await;
    assert_eq!(reused.code(), "idempotency_key_reused", "the account is part of the request");
    let key = fixture.new_key(&[PlatformScope::Of(Area::Records, Scope::Write)]).await;
    let own = fixture.call_as(&key, &Method::POST, &other, Some(&contact), &once).await;
    assert_eq!(own.status, StatusCode::CREATED, "each platform key has its own: {}", own.body);
}

#[tokio::test]
async fn the_limits_of_an_account_count_for_it_alone() {
    let fixture = PlatformServer::with(Settings { rate_limit: 5, limit_rates: true, ..settings() }).await;
    let (one, other) = (fixture.account("One").await, fixture.account("Other").await);
    let list = async |account: &str| {
        fixture.call(&Method::GET, &format!("/accounts/{account}/contacts"), None, &[]).await.status
    };
    for _ in 0..5 {
        assert_eq!(list(&one).await, StatusCode::OK);
    }
    assert_eq!(list(&one).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(list(&other).await, StatusCode::OK);
}

#[tokio::test]
async fn the_back_office_works_on_an_invoice_and_a_quote() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    let ids = one_of_each(&fixture, &account).await;
    let invoice = format!("/accounts/{account}/invoices/{}", ids["invoices"]);
    for (step, body, status) in [
        ("send", json!({}), "sent"),
        ("view", json!({}), "viewed"),
        ("pay", json!({ "amount": 40 }), "partial"),
        ("pay", json!({}), "paid"),
        ("refund", json!({}), "cancelled"),
    ] {
        assert_eq!(fixture.post(&format!("{invoice}/{step}"), body).await.data("status"), status, "{step}");
    }
    let refused = fixture.call(&Method::POST, &format!("{invoice}/void"), None, &[]).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "not_allowed"));
    let quote = format!("/accounts/{account}/quotes/{}", ids["quotes"]);
    let sent = fixture.call(&Method::PATCH, &quote, Some(&json!({ "status": "sent" })), &[]).await;
    assert_eq!(sent.data("status"), "sent");
    assert_eq!(fixture.post(&format!("{quote}/accept"), json!({})).await.data("status"), "accepted");

    let late = json!({ "total": 5, "due_date": "2020-01-01" });
    let late = fixture.post(&format!("/accounts/{account}/invoices"), late).await.data("id");
    fixture.post(&format!("/accounts/{account}/invoices/{late}/send"), json!({})).await;
    let marked = fixture.post(&format!("/accounts/{account}/invoices/mark-overdue"), json!({})).await;
    assert_eq!((&marked.body["data"][0]["id"], &marked.body["next"]), (&json!(late), &Value::Null), "{}", marked.body);
}
