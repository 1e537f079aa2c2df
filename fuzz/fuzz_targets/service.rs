//! The whole service over a store in memory: no body makes an operation of either API fail with a 5xx.
//!
//! A body begins as the example of its operation in the OpenAPI document, with ids of records that exist, and a few of its
//! fields are changed. So most inputs pass the parsers and reach the rules.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};
use svc_core::accounts::platform_keys::{PlatformKeyCreate, PlatformScope};
use svc_core::env::Env;
use svc_core::operation::AnyOperation;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_server::api::openapi;
use svc_server::kernel::versions::method_of;
use svc_server::{Api, Settings};
use tokio::runtime::Runtime;

/// After so many requests the service is made anew, as its records are kept in memory.
const REQUESTS: u32 = 2_000;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    operation: u16,
    body: Body<'a>,
}

#[derive(Arbitrary, Debug)]
enum Body<'a> {
    /// The example with some fields changed.
    Changed(Vec<(u8, Field<'a>)>),
    /// Only these fields.
    Only(Vec<(u8, Field<'a>)>),
    Raw(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Field<'a> {
    Missing,
    Value(Value<'a>),
    List(Vec<Value<'a>>),
    Object(Vec<(&'a str, Value<'a>)>),
    /// A field that the operation does not have.
    Unknown(&'a str, Value<'a>),
    /// The field once more.
    Twice(Value<'a>),
}

#[derive(Arbitrary, Debug)]
enum Value<'a> {
    Null,
    Bool(bool),
    Whole(i64),
    Fraction(f64),
    Exponent(i32, i16),
    Long(u16),
    Text(&'a str),
    Email(&'a str),
    Url(&'a str),
    Day(u16, u8, u8),
    Time(i64),
    /// The id of a record that exists.
    Id(u8),
    /// A value that an example has somewhere.
    Known(u16),
    Raw(&'a [u8]),
}

/// An operation with the example of its body and the names of its fields.
struct Target {
    operation: &'static dyn AnyOperation,
    is_platform: bool,
    example: Vec<(String, Json)>,
    fields: Vec<String>,
}

struct Service {
    runtime: Runtime,
    api: Api,
    targets: Vec<Target>,
    account: TenantId,
    key: String,
    platform_key: String,
    /// The ids of a record of each collection.
    ids: BTreeMap<String, String>,
    /// The values of all examples.
    values: Vec<Json>,
    requests: u32,
}

static SERVICE: Mutex<Option<Service>> = Mutex::new(None);

impl Service {
    fn new() -> Self {
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
        let mut targets = targets("v1", svc_core::platform::operations::public());
        targets.extend(self::targets("platform-v1", svc_core::platform::operations::platform()));
        let values = targets.iter().flat_map(|target| target.example.iter().map(|(_, value)| value.clone())).collect();
        let ids = BTreeMap::new();
        let mut service = Self { runtime, api, targets, account, key, platform_key, ids, values, requests: 0 };
        service.create_records();
        service
    }

    /// Creates a record with each example of a body that creates one.
    fn create_records(&mut self) {
        for position in 0..self.targets.len() {
            let target = &self.targets[position];
            let (path, is_post) = (target.operation.path_in_account(), method_of(target.operation) == Method::POST);
            if target.is_platform || !is_post || path.contains('{') {
                continue;
            }
            let body = self.body(target, &[], true);
            let (status, body) = self.send(target, body);
            let id = body["data"]["id"].as_str().map(str::to_owned);
            let id = id.unwrap_or_else(|| panic!("{path}: {status} {body}"));
            self.ids.insert(path.trim_start_matches('/').to_owned(), id);
        }
    }

    fn body(&self, target: &Target, changes: &[(u8, Field<'_>)], with_example: bool) -> String {
        let mut fields: Vec<(String, String)> = Vec::new();
        if with_example {
            for (name, value) in &target.example {
                let collection = name.strip_suffix("_id").map(|name| format!("{name}s"));
                let id = collection.and_then(|collection| self.ids.get(&collection));
                fields.push((name.clone(), id.map_or_else(|| value.to_string(), |id| json!(id).to_string())));
            }
        }
        for (position, change) in changes.iter().take(8) {
            let Some(name) = target.fields.get(usize::from(*position) % target.fields.len().max(1)) else { continue };
            let list = |values: &[Value<'_>]| {
                let values: Vec<String> = values.iter().map(|value| self.value(value)).collect();
                format!("[{}]", values.join(","))
            };
            let text = match change {
                Field::Missing => {
                    fields.retain(|(field, _)| field != name);
                    continue;
                }
                Field::Unknown(name, value) => {
                    fields.push(((*name).to_owned(), self.value(value)));
                    continue;
                }
                Field::Twice(value) => {
                    fields.push((name.clone(), self.value(value)));
                    continue;
                }
                Field::Value(value) => self.value(value),
                Field::List(values) => list(values),
                Field::Object(members) => {
                    let members: Vec<String> =
                        members.iter().map(|(name, value)| format!("{}:{}", json!(name), self.value(value))).collect();
                    format!("{{{}}}", members.join(","))
                }
            };
            match fields.iter_mut().find(|(field, _)| field == name) {
                Some((_, value)) => *value = text,
                None => fields.push((name.clone(), text)),
            }
        }
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        format!("{{{}}}", fields.join(","))
    }

    fn value(&self, value: &Value<'_>) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Fraction(value) => json!(value).to_string(),
            Value::Exponent(digits, exponent) => format!("{digits}e{exponent}"),
            Value::Long(digits) => "9".repeat(usize::from(*digits).max(1)),
            Value::Text(text) => json!(text).to_string(),
            Value::Email(text) => json!(format!("{text}@example.com")).to_string(),
            Value::Url(text) => json!(format!("https://example.com/{text}")).to_string(),
            Value::Day(year, month, day) => {
                json!(format!("{:04}-{:02}-{:02}", year % 10_000, month % 14, day % 33)).to_string()
            }
            Value::Time(micros) => {
                let seconds = micros.div_euclid(1_000_000).rem_euclid(86_400);
                let text = format!("T{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
                json!(format!("20{:02}-03-14{text}.{:06}Z", micros.rem_euclid(100), micros.rem_euclid(1_000_000)))
                    .to_string()
            }
            Value::Id(position) => {
                let id = self.ids.values().nth(usize::from(*position) % self.ids.len().max(1));
                json!(id).to_string()
            }
            Value::Known(position) => self.values[usize::from(*position) % self.values.len()].to_string(),
            Value::Raw(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// Sends a body, and returns the status and the body of the response.
    fn send(&self, target: &Target, body: impl Into<Bytes>) -> (u16, Json) {
        let operation = target.operation;
        let path = if target.is_platform { operation.path() } else { operation.path_in_account() };
        let mut path = path.replace("{account_id}", &self.account.to_string());
        let (collection, _) = path.split_once("/{id}").unwrap_or((&path, ""));
        let id = self.ids.get(collection.rsplit('/').next().unwrap_or_default());
        path = path.replace("{id}", id.map_or(&self.account.to_string(), |id| id));
        let (api, base, key) = match target.is_platform {
            true => (self.api.for_platform(), "/platform/v1", &self.platform_key),
            false => (self.api.clone(), "/api/v1", &self.key),
        };
        let request = Request::builder()
            .method(method_of(operation))
            .uri(format!("{base}{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::new(body.into()))
            .unwrap();
        self.runtime.block_on(async {
            let response: Response<_> = api.call(request, [127, 0, 0, 1].into()).await;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            (status, serde_json::from_slice(&body).unwrap_or_default())
        })
    }
}

/// Returns the operations of an API that change something, with the examples of its OpenAPI document.
fn targets(version: &str, operations: Vec<&'static dyn AnyOperation>) -> Vec<Target> {
    let document: Json = serde_json::from_str(&openapi::text(version).unwrap()).unwrap();
    let target = |operation: &'static dyn AnyOperation| {
        let described = document["paths"].as_object()?.values().flat_map(|path| path.as_object().unwrap().values());
        let described = described.into_iter().find(|described| described["operationId"] == operation.id)?;
        let content = &described["requestBody"]["content"]["application/json"];
        let name = content["schema"]["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let schema = &document["components"]["schemas"][name];
        let fields =
            schema["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
        let examples = [schema["examples"].get(0), content.get("example")];
        let example = examples.into_iter().flatten().find_map(Json::as_object).cloned().unwrap_or_default();
        Some(Target { operation, is_platform: version != "v1", example: example.into_iter().collect(), fields })
    };
    // What is deleted would be missing for the next inputs.
    let writes = |operation: &&'static dyn AnyOperation| !matches!(method_of(operation), Method::GET | Method::DELETE);
    operations.into_iter().filter(writes).filter_map(target).collect()
}

fn service() -> MutexGuard<'static, Option<Service>> {
    let mut service = SERVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if service.as_ref().is_none_or(|service| service.requests >= REQUESTS) {
        *service = Some(Service::new());
    }
    service
}

fuzz_target!(|input: Input<'_>| {
    let mut service = service();
    let Some(service) = &mut *service else { return };
    service.requests += 1;
    let target = &service.targets[usize::from(input.operation) % service.targets.len()];
    let body = match &input.body {
        Body::Changed(changes) => service.body(target, changes, true).into_bytes(),
        Body::Only(changes) => service.body(target, changes, false).into_bytes(),
        Body::Raw(bytes) => bytes.to_vec(),
    };
    let (status, _) = service.send(target, body);
    assert!(status < 500, "{} {status}", target.operation.id);
});
