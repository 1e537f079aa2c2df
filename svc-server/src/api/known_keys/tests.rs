//! A key that is known saves a look-up, and changes no response.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, DeveloperAccess, TenantCreate};
use svc_core::env::{Clock as _, Env, ManualClock, SystemEntropy};
use svc_core::error::Error;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork, UnitOfWorkFn};
use svc_core::values::TenantId;

use super::*;
use crate::api::{Api, Settings};

/// A store that notes the names of what it runs.
struct NotingStore {
    store: MemoryStore,
    noted: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl StoreWrapper for NotingStore {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        lock(&self.noted).push(name);
        self.store.run(access, name, work).await
    }
}

/// An account with a key.
struct Fixture {
    store: Arc<NotingStore>,
    clock: ManualClock,
    tenant: TenantId,
    key: keys::NewKey,
}

impl Fixture {
    async fn new(key: KeyCreate) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let env = Env::new(clock.clone(), SystemEntropy);
        let store = Arc::new(NotingStore { store: MemoryStore::new(env), noted: Mutex::default() });
        let made = (&*store as &dyn Store).write("test", key, async |tx, key| {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            Ok((tenant, keys::create(tx, tenant, key.clone()).await?))
        });
        let (tenant, key) = made.await.unwrap();
        Self { store, clock, tenant, key }
    }

    fn api(&self) -> Api {
        Api::new(Arc::clone(&self.store) as Arc<dyn Store>, Settings::default())
    }

    async fn change<I, T>(&self, input: I, change: impl UnitOfWorkFn<I, T>)
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        (&*self.store as &dyn Store).write("test", input, change).await.unwrap();
    }

    /// Sends a request, and returns the status, the headers apart from the id of the request, and the body.
    async fn send(
        &self,
        api: &Api,
        (method, path, media_type, body): (&str, &str, &str, &str),
    ) -> (StatusCode, BTreeMap<String, String>, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", media_type)
            .header("authorization", format!("Bearer {}", self.key.text.reveal()))
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let (parts, body) = api.call(request, Ipv4Addr::LOCALHOST.into()).await.into_parts();
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let mut headers: BTreeMap<String, String> = parts.headers.iter().map(header).collect();
        headers.remove("x-request-id");
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, headers, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn create_contact(&self, api: &Api, email: &str) -> StatusCode {
        let body = format!(r#"{{"email": "{email}"}}"#);
        self.send(api, ("POST", "/api/v1/contacts", JSON, &body)).await.0
    }

    /// Returns what the store has run since the last call.
    fn noted(&self) -> Vec<&'static str> {
        std::mem::take(&mut *lock(&self.store.noted))
    }
}

const JSON: &str = "application/json";
const WRITES: KeyCreate = KeyCreate { name: None, write: true, expires_in: None, signed: false };

#[tokio::test]
async fn a_write_looks_up_a_key_that_is_not_known_and_no_other() {
    let fixture = Fixture::new(WRITES).await;
    let api = fixture.api();
    fixture.noted();
    assert_eq!(fixture.create_contact(&api, "a@example.com").await, StatusCode::CREATED);
    assert_eq!(fixture.noted(), ["authenticate", "createContact"]);
    // Each write confirms that the key is valid.
    for email in ["b@example.com", "c@example.com"] {
        fixture.clock.advance(KNOWN_FOR - Duration::from_micros(1));
        assert_eq!(fixture.create_contact(&api, email).await, StatusCode::CREATED);
        assert_eq!(fixture.noted(), ["createContact"]);
    }
    fixture.clock.advance(KNOWN_FOR);
    assert_eq!(fixture.create_contact(&api, "d@example.com").await, StatusCode::CREATED);
    assert_eq!(fixture.noted(), ["authenticate", "createContact"]);
    // An error is returned when the key has been looked up, and a name server asked only then.
    for (body, noted) in
        [("{", &["authenticate"][..]), (r#"{"email": "d@example.com"}"#, &["createContact", "authenticate"])]
    {
        fixture.send(&api, ("POST", "/api/v1/contacts", JSON, body)).await;
        assert_eq!(fixture.noted(), noted);
    }
    let webhook = r#"{"url": "https://203.0.113.1/hook", "events": ["*"]}"#;
    fixture.send(&api, ("POST", "/api/v1/webhooks", JSON, webhook)).await;
    assert_eq!(fixture.noted()[0], "authenticate");
}

#[tokio::test]
async fn a_key_that_signs_its_writes_is_never_known() {
    let fixture = Fixture::new(KeyCreate { signed: true, ..WRITES }).await;
    let known = KnownKeys::default();
    let hash = KeyHash::of(fixture.key.text.reveal()).unwrap();
    let now = fixture.clock.now();
    let looked_up =
        (&*fixture.store as &dyn Store).read("test", hash, async |tx, &hash| keys::authenticate(tx, hash).await);
    known.add(hash, &looked_up.await.unwrap(), now);
    assert!(known.get(hash, now).is_none());
}

/// An API that knows the key answers like one that has never seen it.
#[tokio::test]
async fn a_known_key_that_is_no_longer_valid_is_refused_like_any_other() {
    let requests = [
        ("POST", "/api/v1/contacts", JSON, r#"{"email": "new@example.com"}"#),
        ("POST", "/api/v1/contacts", JSON, "{"),
        ("POST", "/api/v1/contacts", "text/plain", "{}"),
        ("POST", "/api/v1/webhooks", JSON, r#"{"url": "https://127.0.0.1/hook", "events": ["*"]}"#),
        ("PATCH", "/api/v1/contacts/018f0000-0000-7000-8000-000000000000", JSON, "{}"),
        ("DELETE", "/api/v1/contacts/018f0000-0000-7000-8000-000000000000", JSON, ""),
    ];
    for what in ["revoked", "expired", "suspended"] {
        for request in requests {
            let lifetime = Some(Duration::from_secs(3));
            let fixture = Fixture::new(KeyCreate { expires_in: lifetime, ..WRITES }).await;
            let (knowing, other) = (fixture.api(), fixture.api());
            assert_eq!(fixture.create_contact(&knowing, "ada@example.com").await, StatusCode::CREATED);
            let (tenant, key) = (fixture.tenant, fixture.key.key.id);
            match what {
                "revoked" => fixture.change(key, async |tx, &key| keys::revoke(tx, key).await).await,
                "expired" => fixture.clock.advance(Duration::from_secs(4)),
                _ => {
                    let suspend = |tenant: &mut tenants::Tenant| tenant.developer_access = DeveloperAccess::Suspended;
                    fixture
                        .change((tenant, suspend), async |tx, &(tenant, suspend)| {
                            tenants::update(tx, tenant.0, suspend).await
                        })
                        .await;
                }
            }
            let (answer, expected) = (fixture.send(&knowing, request).await, fixture.send(&other, request).await);
            let (status, mut headers, body) = answer;
            let (expected_status, mut expected_headers, expected_body) = expected;
            if what == "suspended" {
                // The API that knows the key has counted a request more.
                for headers in [&mut headers, &mut expected_headers] {
                    headers.retain(|name, _| !name.contains("ratelimit"));
                }
            }
            assert_eq!(
                (status, headers, body),
                (expected_status, expected_headers, expected_body),
                "{what} {request:?}"
            );
            assert!(matches!(status.as_u16(), 401 | 403), "{what} {request:?}: {status}");
        }
    }
}

#[tokio::test]
async fn changed_rate_limits_count_at_the_next_write() {
    let fixture = Fixture::new(WRITES).await;
    let api = fixture.api();
    assert_eq!(fixture.create_contact(&api, "a@example.com").await, StatusCode::CREATED);
    let mut statuses = Vec::new();
    for (limit, email) in [(1, "b@example.com"), (2, "c@example.com"), (2, "d@example.com"), (3, "e@example.com")] {
        let (tenant, limit) = (fixture.tenant, NonZeroU32::new(limit));
        let set_limit = move |tenant: &mut tenants::Tenant| tenant.limits.rate_limit = limit;
        fixture
            .change((tenant, set_limit), async |tx, &(tenant, set_limit)| {
                tenants::update(tx, tenant.0, set_limit).await
            })
            .await;
        statuses.push(fixture.create_contact(&api, email).await.as_u16());
    }
    assert_eq!(statuses, [429, 201, 429, 201]);
}
