//! The behaviours that all clients share: every case of `clients/cases.json`, whose page is `clients/README.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use svc_client::prelude::*;
use svc_client::{ClientBuilder, TokenSource, Tokens};
use svc_core::accounts::keys::KeyCreate;
use svc_core::env::{Env, ManualClock, SeededEntropy, SystemEntropy};
use svc_server::{Settings as ServerSettings, Surfaces};
use svc_webhook_verify::{Event as Delivered, Verifier, VerifyError};
use tokio::sync::Notify;

use crate::cutting_proxy;
use crate::hostile::{Exchange, HostileServer};
use crate::live::{LiveServer, databases};
use crate::steps::{Context, matches, run};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    version: u32,
    now: Timestamp,
    key: String,
    vectors: String,
    bodies: BTreeMap<String, Value>,
    hostile: Vec<Case>,
    live: Vec<Case>,
    webhooks: Vec<WebhookCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    name: String,
    #[serde(default)]
    pub(crate) client: Settings,
    server: Option<String>,
    #[serde(default)]
    pub(crate) script: Vec<Exchange>,
    #[serde(default)]
    pub(crate) routes: Vec<Exchange>,
    steps: Vec<Value>,
    waits_ms: Option<Vec<(u64, u64)>>,
    stored: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(default)]
    path: String,
    pub(crate) signing_secret: Option<String>,
    tokens: Option<AppTokens>,
    attempts: Option<u32>,
    total_ms: Option<u64>,
    first_wait_ms: Option<u64>,
    longest_wait_ms: Option<u64>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    real_waits: bool,
    key: Option<String>,
    lose_responses: Option<usize>,
    clock_ahead_ms: Option<i64>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppTokens {
    client_id: String,
    client_secret: Option<String>,
    access_token: String,
    refresh_token: String,
    #[serde(default)]
    store_fails: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookCase {
    name: String,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    public_keys: Vec<String>,
    headers: BTreeMap<String, String>,
    body: String,
    now: u64,
    #[serde(default, deserialize_with = "present")]
    max_age_seconds: Option<Option<u64>>,
    result: Option<Value>,
    error: Option<String>,
}

/// Tells null from a field that is absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn table() -> Table {
    let table: Table =
        serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/cases.json"))).unwrap();
    assert_eq!(table.version, 1);
    table
}

fn with_policy(builder: ClientBuilder, settings: &Settings) -> ClientBuilder {
    let default = RetryPolicy::default();
    let or = |ms: Option<u64>, other| ms.map_or(other, Duration::from_millis);
    let policy = RetryPolicy::default()
        .attempts(settings.attempts.unwrap_or(default.attempts))
        .total(or(settings.total_ms, default.total))
        .waits(or(settings.first_wait_ms, default.first_wait), or(settings.longest_wait_ms, default.longest_wait));
    let builder = builder.retry(policy);
    match settings.timeout_ms {
        Some(timeout) => builder.timeout(Duration::from_millis(timeout)),
        None => builder,
    }
}

fn token_source(tokens: &AppTokens, stored: &Arc<Mutex<Vec<Value>>>) -> TokenSource {
    let first = Tokens {
        access_token: Secret::new(tokens.access_token.as_str()),
        refresh_token: Secret::new(tokens.refresh_token.as_str()),
    };
    let (stored, failures) = (Arc::clone(stored), Mutex::new(tokens.store_fails));
    let source = TokenSource::new(&tokens.client_id, first, move |tokens: Tokens| {
        let mut failures = failures.lock().unwrap();
        let fails = *failures > 0;
        *failures = failures.saturating_sub(1);
        if !fails {
            let (access, refresh) = (tokens.access_token.reveal(), tokens.refresh_token.reveal());
            stored.lock().unwrap().push(json!({ "access_token": access, "refresh_token": refresh }));
        }
        std::future::ready(if fails { Err("the disk is full") } else { Ok(()) })
    });
    match &tokens.client_secret {
        Some(secret) => source.client_secret(secret),
        None => source,
    }
}

/// Returns an address at which nothing listens.
async fn absent() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn run_hostile(case: &Case, table: &Table) {
    let server = match case.server.as_deref() {
        None => Some(HostileServer::start(case, &table.bodies).await),
        Some("absent") => None,
        Some(other) => panic!("{}: unknown server {other}", case.name),
    };
    let address = match &server {
        Some(server) => server.url.clone(),
        None => absent().await,
    };
    let url = address + &case.client.path;
    let (waits, stored) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
    let clock = ManualClock::at(table.now);
    let builder = match &case.client.tokens {
        Some(tokens) => Client::builder_with_tokens(&url, token_source(tokens, &stored)),
        None => Client::builder(&url, &table.key),
    };
    let mut builder = with_policy(builder, &case.client).env(Env::new(clock.clone(), SeededEntropy::new(1)));
    if let Some(secret) = &case.client.signing_secret {
        builder = builder.signing_secret(secret);
    }
    let wait_began = case.client.real_waits.then(|| Arc::new(Notify::new()));
    if let Some(began) = wait_began.clone() {
        builder = builder.sleep(move |wait| {
            began.notify_one();
            Box::pin(tokio::time::sleep(wait))
        });
    } else {
        let noted = Arc::clone(&waits);
        builder = builder.sleep(move |wait| {
            noted.lock().unwrap().push(wait);
            clock.advance(wait);
            Box::pin(std::future::ready(()))
        });
    }
    let context =
        Context { client: builder.build().unwrap(), server: server.clone(), wait_began, name: &case.name, unique: "" };
    run(&case.steps, &context).await;
    if let Some(server) = server {
        server.check(&case.name);
    }
    if let Some(expected) = &case.stored {
        assert_eq!(*stored.lock().unwrap(), *expected, "{}", case.name);
    }
    if let Some(expected) = &case.waits_ms {
        let waits = waits.lock().unwrap();
        assert_eq!(waits.len(), expected.len(), "{}: {waits:?}", case.name);
        for (wait, (from, to)) in waits.iter().zip(expected) {
            let bounds = Duration::from_millis(*from)..=Duration::from_millis(*to);
            assert!(bounds.contains(wait), "{}: {waits:?}", case.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_with_a_hostile_server_passes() {
    let table = table();
    for case in &table.hostile {
        let begun = Instant::now();
        run_hostile(case, &table).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "{} took too long", case.name);
    }
}

async fn run_live(case: &Case, server: &LiveServer, unique: &str) {
    let lost = case.client.lose_responses.unwrap_or(0);
    let (proxy, left) = cutting_proxy(server, lost).await;
    let url = if lost > 0 { proxy } else { format!("http://{}", server.address) };
    let builder = match case.client.key.as_deref() {
        None => server.builder_at(&url),
        Some("signed") => {
            let key = KeyCreate { write: true, signed: true, ..KeyCreate::default() };
            let key = server.account().keys().create(key).await.unwrap();
            let secret = key.key.signing_secret.unwrap();
            server.builder_for(&url, key.text.reveal()).signing_secret(secret.reveal())
        }
        Some(other) => panic!("{}: unknown key {other}", case.name),
    };
    let mut builder = with_policy(builder, &case.client);
    if let Some(ahead) = case.client.clock_ahead_ms {
        let wrong = Timestamp::from_micros(Env::system().now().as_micros() + ahead * 1000);
        builder = builder.env(Env::new(ManualClock::at(wrong), SystemEntropy));
    }
    run(
        &case.steps,
        &Context { client: builder.build().unwrap(), server: None, wait_began: None, name: &case.name, unique },
    )
    .await;
    assert_eq!(left.load(std::sync::atomic::Ordering::SeqCst), 0, "{}: no response was lost", case.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_with_a_live_server_passes() {
    let table = table();
    for (index, case) in table.live.iter().enumerate() {
        for database in databases() {
            let surfaces = Surfaces { extensions: true, ..Surfaces::default() };
            let server = LiveServer::of(&database, surfaces, ServerSettings::default(), |server| server).await;
            run_live(case, &server, &format!("case{index}")).await;
        }
    }
}

impl WebhookCase {
    fn verifier(&self) -> Result<Verifier, VerifyError> {
        let mut verifier: Option<Verifier> = None;
        for secret in &self.secrets {
            verifier = Some(match verifier {
                None => Verifier::new(secret)?,
                Some(verifier) => verifier.with_secret(secret)?,
            });
        }
        for key in &self.public_keys {
            verifier = Some(match verifier {
                None => Verifier::from_public_key(key)?,
                Some(verifier) => verifier.with_public_key(key)?,
            });
        }
        let verifier = verifier.ok_or(VerifyError::EmptySecret)?;
        Ok(match self.max_age_seconds {
            None => verifier,
            Some(None) => verifier.without_max_age(),
            Some(Some(seconds)) => verifier.max_age(Duration::from_secs(seconds)),
        })
    }

    fn event(&self) -> Result<Delivered<Invoice>, VerifyError> {
        let mut headers = http::HeaderMap::new();
        for (name, value) in &self.headers {
            headers.insert(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let now = UNIX_EPOCH + Duration::from_secs(self.now);
        self.verifier()?.verify_event_headers_at(&headers, self.body.as_bytes(), now)
    }
}

/// The vectors are run by the tests of svc-webhook-verify.
#[test]
fn every_webhook_case_passes() {
    let table = table();
    assert_eq!(table.vectors, "../fixtures/webhooks/vectors.json");
    for case in &table.webhooks {
        assert_ne!(case.result.is_some(), case.error.is_some(), "{}", case.name);
        match case.event() {
            Err(error) => assert_eq!(Some(error.code()), case.error.as_deref(), "{}", case.name),
            Ok(event) => {
                assert_eq!(None, case.error, "{}", case.name);
                let mut found = serde_json::to_value(&event).unwrap();
                found["data"]["total"] = event.data.total.to_string().into();
                matches(&found, case.result.as_ref().unwrap(), &case.name);
            }
        }
    }
}

/// Makes all calls at the same time.
pub(crate) async fn at_once<T>(count: usize, call: impl AsyncFn() -> T) -> Vec<T> {
    join_all((0..count).map(|_| call())).await
}
