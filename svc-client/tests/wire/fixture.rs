//! A server, and a client with a clock, randomness and waits that the test knows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use svc_client::{Client, ClientBuilder};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::values::Timestamp;
use wiremock::{MockServer, Request, Respond, ResponseTemplate};

pub(crate) const KEY: &str = "svc_live_0123456789abcdefghijklmnopqrstuvwxyzAB";
pub(crate) const ID: &str = "0195a3c8-8a00-7000-8000-00000000c001";
pub(crate) const NOW: &str = "2026-03-14T15:09:26.535897Z";

/// The waits of a client between its attempts. None of them takes any time.
#[derive(Clone, Default)]
pub(crate) struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Waits {
    pub(crate) fn all(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }
}

/// Returns a client of the server at this URL that notes its waits, with a clock that stands still.
pub(crate) fn builder(url: &str) -> (ClientBuilder, Waits) {
    let waits = Waits::default();
    let noted = waits.clone();
    let env = Env::new(ManualClock::at(Timestamp::parse(NOW).unwrap()), SeededEntropy::new(1));
    let builder = Client::builder(url, KEY).env(env).sleep(move |wait| {
        noted.0.lock().unwrap().push(wait);
        Box::pin(std::future::ready(()))
    });
    (builder, waits)
}

pub(crate) fn client(server: &MockServer) -> (Client, Waits) {
    let (builder, waits) = builder(&server.uri());
    (builder.build().unwrap(), waits)
}

/// Responds with these, one after the other, and then with the last one.
pub(crate) struct InTurn(Mutex<Vec<ResponseTemplate>>);

impl InTurn {
    pub(crate) fn new(mut responses: Vec<ResponseTemplate>) -> Self {
        responses.reverse();
        Self(Mutex::new(responses))
    }
}

impl Respond for InTurn {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let mut left = self.0.lock().unwrap();
        if left.len() > 1 { left.pop().unwrap() } else { left[0].clone() }
    }
}

/// Starts a server that gives these responses, one after the other.
pub(crate) async fn serve(responses: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    wiremock::Mock::given(wiremock::matchers::any()).respond_with(InTurn::new(responses)).mount(&server).await;
    server
}

pub(crate) async fn requests(server: &MockServer) -> Vec<Request> {
    server.received_requests().await.unwrap()
}

pub(crate) fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().unwrap())
}

pub(crate) fn contact() -> Value {
    json!({
        "id": ID, "email": "ada@example.com", "first_name": "Ada", "last_name": null, "phone": null,
        "company_name": null, "city": null, "state": null, "postcode": null, "created_at": NOW, "updated_at": NOW,
        "a_field_of_a_later_version": {"nested": [1, 2]},
    })
}

pub(crate) fn ok(status: u16) -> ResponseTemplate {
    ResponseTemplate::new(status).insert_header("etag", "\"v1\"").set_body_json(json!({ "data": contact() }))
}

pub(crate) fn problem(status: u16, code: &str) -> ResponseTemplate {
    ResponseTemplate::new(status)
        .insert_header("x-request-id", "req-7")
        .set_body_json(json!({ "error": "It is wrong.", "code": code }))
}
