//! The whole service over a store in memory: no body makes an operation of either API fail with a 5xx.

#![no_main]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use svc_core::accounts::platform_keys::{PlatformKeyCreate, PlatformScope};
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_server::api::routes::Operation;
use svc_server::{Api, Settings};
use tokio::runtime::Runtime;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    operation: u16,
    body: &'a [u8],
}

struct Service {
    runtime: Runtime,
    api: Api,
    operations: Vec<Operation>,
    account: TenantId,
    key: String,
    platform_key: String,
}

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (svc, account, key, platform_key) = runtime.block_on(async {
        let mut env = Env::system();
        env.event_kinds.register_with_check("order.shipped", json!({ "examples": [{}] }), |_| Vec::new()).unwrap();
        let svc = Svc::new(MemoryStore::new(env));
        let account = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let input = KeyCreate { write: true, ..KeyCreate::default() };
        let key = svc.account(account).keys().create(input).await.unwrap().text.reveal().to_owned();
        let input = PlatformKeyCreate { name: None, scopes: vec![PlatformScope::All], expires_in: None };
        let platform = svc.store().write("key", input, async |tx, input| {
            svc_core::accounts::platform_keys::create(tx, input.clone()).await
        });
        let platform_key = platform.await.unwrap().text.reveal().to_owned();
        (svc, account, key, platform_key)
    });
    let settings = Settings { limit_rates: false, ..Settings::default() };
    let api = Api::new(Arc::clone(svc.store()), settings);
    let writes = |operation: &Operation| operation.method != Method::GET;
    let operations = svc_server::api::routes::operations().into_iter().chain(svc_server::api::platform::operations());
    let operations = operations.filter(writes).collect();
    Service { runtime, api, operations, account, key, platform_key }
});

fuzz_target!(|input: Input<'_>| {
    let Service { runtime, api, operations, account, key, platform_key } = &*SERVICE;
    let operation = &operations[usize::from(input.operation) % operations.len()];
    let is_platform = operation.path.contains("{account_id}") || operation.area.is_some();
    let path = operation.path.replace("{account_id}", &account.to_string()).replace("{id}", &account.to_string());
    let (api, base, key) = match is_platform {
        true => (api.for_platform(), "/platform/v1", platform_key),
        false => (api.clone(), "/api/v1", key),
    };
    let request = Request::builder()
        .method(operation.method.clone())
        .uri(format!("{base}{path}"))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {key}"))
        .body(Full::new(Bytes::copy_from_slice(input.body)))
        .unwrap();
    let response = runtime.block_on(api.call(request, [127, 0, 0, 1].into()));
    assert!(response.status().as_u16() < 500, "{} {}", operation.id, response.status());
});
