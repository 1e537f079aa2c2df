//! Messages of assistants: none of them fails with a 5xx, and none writes without a tool that writes.

#![no_main]

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_server::{Api, Settings, Surfaces};
use tokio::runtime::Runtime;

/// After so many messages the service is made anew, as its records are kept in memory.
const MESSAGES: u32 = 2_000;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// A body of any bytes, and whether it says that it is of the current revision.
    Raw(&'a [u8], bool),
    /// A message with these parameters, which are JSON in most cases.
    Method(&'a str, &'a str),
    /// The call of a tool with these arguments.
    Call(u8, &'a str, Vec<(&'a str, &'a str)>),
}

struct Service {
    runtime: Runtime,
    api: Api,
    key: String,
    tools: Vec<String>,
    messages: u32,
}

static SERVICE: Mutex<Option<Service>> = Mutex::new(None);

impl Service {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (svc, key) = runtime.block_on(async {
            let svc = Svc::new(MemoryStore::new(Env::system()));
            let account = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
            let input = KeyCreate { write: true, ..KeyCreate::default() };
            let key = svc.account(account).keys().create(input).await.unwrap().text.reveal().to_owned();
            (svc, key)
        });
        let settings = Settings { limit_rates: false, ..Settings::default() };
        let surfaces = Surfaces { mcp: Some(Vec::new()), ..Surfaces::default() };
        let api = Api::with_surfaces(Arc::clone(svc.store()), settings, surfaces);
        let mut service = Self { runtime, api, key, tools: Vec::new(), messages: 0 };
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let (_, listed) = service.send(list.into(), false);
        let listed: Json = serde_json::from_slice(&listed).unwrap();
        let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        service.tools = names.map(str::to_owned).collect();
        service
    }

    fn send(&mut self, body: Bytes, is_current: bool) -> (u16, Bytes) {
        self.messages += 1;
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if is_current {
            request = request.header("mcp-protocol-version", "2026-07-28");
        }
        let request = request.body(Full::new(body)).unwrap();
        self.runtime.block_on(async {
            let response = self.api.call(request, [127, 0, 0, 1].into()).await;
            let status = response.status().as_u16();
            (status, response.into_body().collect().await.unwrap().to_bytes())
        })
    }
}

fuzz_target!(|input: Input<'_>| {
    let mut service = SERVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if service.as_ref().is_none_or(|service| service.messages > MESSAGES) {
        *service = Some(Service::new());
    }
    let service = service.as_mut().unwrap();
    let parsed = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_else(|_| text.into());
    let (body, is_current) = match input {
        Input::Raw(bytes, is_current) => (Bytes::copy_from_slice(bytes), is_current),
        Input::Method(method, params) => {
            (json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parsed(params) }).to_string().into(), false)
        }
        Input::Call(tool, id, arguments) => {
            let name = &service.tools[usize::from(tool) % service.tools.len()];
            let mut all: serde_json::Map<String, Json> =
                arguments.into_iter().map(|(name, value)| (name.to_owned(), parsed(value))).collect();
            all.entry("id").or_insert_with(|| id.into());
            let params = json!({ "name": name, "arguments": all });
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string().into(), false)
        }
    };
    let (status, answer) = service.send(body.clone(), is_current);
    assert!(status < 500, "{status} {}", String::from_utf8_lossy(&answer));
    assert!(
        answer.is_empty() || serde_json::from_slice::<Json>(&answer).is_ok(),
        "{}",
        String::from_utf8_lossy(&answer)
    );
});
