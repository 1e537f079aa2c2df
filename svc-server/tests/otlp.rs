//! Tests of the export to a collector: the program as operators start it, with a mock collector and a webhook receiver.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use svc_test_support::node::{self, Node};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// The timeout of every wait, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Returns the length-delimited fields of a protobuf message, and those of eight bytes, with their numbers. Other fields are
/// skipped.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).unwrap(),
            5 => 4,
            other => unreachable!("wire type {other}"),
        };
        let (value, rest) = message.split_at(length);
        if matches!(tag & 7, 1 | 2) {
            found.push((tag >> 3, value));
        }
        message = rest;
    }
    found
}

fn all<'a>(messages: impl IntoIterator<Item = &'a [u8]>, number: u64) -> Vec<&'a [u8]> {
    let fields = messages.into_iter().flat_map(fields);
    fields.filter(|(found, _)| *found == number).map(|(_, value)| value).collect()
}

fn text(message: &[u8], number: u64) -> String {
    all([message], number).first().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The parts of a span that the tests check. Field numbers are those of `opentelemetry/proto/trace/v1/trace.proto`.
#[derive(Debug)]
struct Span {
    service: String,
    trace: String,
    parent: String,
    name: String,
    /// The attributes with string values.
    attributes: Vec<(String, String)>,
}

impl Span {
    fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}

fn attributes(message: &[u8], number: u64) -> Vec<(String, String)> {
    let value = |pair: &[u8]| all([pair], 2).first().map(|value| text(value, 1)).unwrap_or_default();
    all([message], number).into_iter().map(|pair| (text(pair, 1), value(pair))).collect()
}

fn spans(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for group in all([request], 1) {
        let resource: Vec<_> = all([group], 1).into_iter().flat_map(|resource| attributes(resource, 1)).collect();
        let service = resource.into_iter().find(|(name, _)| name == "service.name").unwrap_or_default().1;
        for span in all(all([group], 2), 2) {
            spans.push(Span {
                service: service.clone(),
                trace: hex(all([span], 1)[0]),
                parent: all([span], 4).first().map(|id| hex(id)).unwrap_or_default(),
                name: text(span, 5),
                attributes: attributes(span, 9),
            });
        }
    }
    spans
}

/// Returns the points of a metric, with their labels and whole numbers. Field numbers are those of
/// `opentelemetry/proto/metrics/v1/metrics.proto`.
fn points(request: &[u8], metric: &str) -> Vec<(Vec<(String, String)>, u64)> {
    let metrics = all(all(all([request], 1), 2), 2);
    let found = metrics.into_iter().filter(|found| text(found, 1) == metric);
    let points = found.flat_map(|metric| [all(all([metric], 5), 1), all(all([metric], 7), 1)].concat());
    let number = |point| all([point], 6).first().map_or(0, |bytes| u64::from_le_bytes((*bytes).try_into().unwrap()));
    points.map(|point| (attributes(point, 7), number(point))).collect()
}

/// The parts of a log record that the tests check. Field numbers are those of `opentelemetry/proto/logs/v1/logs.proto`.
#[derive(Debug)]
struct Record {
    target: String,
    level: String,
    message: String,
    attributes: Vec<(String, String)>,
    trace: String,
}

fn records(request: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    for scope in all(all([request], 1), 2) {
        let target = all([scope], 1).first().map(|scope| text(scope, 1)).unwrap_or_default();
        for record in all([scope], 2) {
            records.push(Record {
                target: target.clone(),
                level: text(record, 3),
                message: all([record], 5).first().map(|body| text(body, 1)).unwrap_or_default(),
                attributes: attributes(record, 6),
                trace: all([record], 9).first().map(|id| hex(id)).unwrap_or_default(),
            });
        }
    }
    records
}

/// A running server with sample data.
struct Demo {
    node: Node,
    key: String,
}

impl Demo {
    async fn start(environment: &[(&str, &str)]) -> Self {
        let mut command = node::command(env!("CARGO_BIN_EXE_svc-server"));
        command.args(["--demo", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]);
        command.envs(environment.iter().copied());
        // The log has only what a test asks for, and nobody reads so long a one.
        command.stderr(if environment.contains(&("SVC_LOG", "trace")) { Stdio::null() } else { Stdio::inherit() });
        let mut node = Node::start(command).await.unwrap();
        loop {
            let line = node.line().await.unwrap();
            assert!(!line.is_empty(), "the key is not printed");
            if let Some(key) = line.strip_prefix("API key: ") {
                return Self { node, key: key.trim_end().to_owned() };
            }
        }
    }

    async fn post(&self, path: &str, body: Value) -> Response<Bytes> {
        let request = Request::post(format!("http://{}/api/v1{path}", self.node.address))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .header("traceparent", format!("00-{TRACE}-{PARENT}-01"))
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = tokio::time::timeout(TIMEOUT, client.request(request)).await.unwrap().unwrap();
        let (head, body) = response.into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    /// Stops the server by SIGTERM and waits for its end.
    async fn stop(self) {
        self.node.stop().await.unwrap();
    }
}

async fn accepting(method_and_path: (&str, &str)) -> MockServer {
    let server = MockServer::start().await;
    respond(&server, method_and_path, 200).await;
    server
}

async fn respond(server: &MockServer, method_and_path: (&str, &str), status: u16) {
    let mock = Mock::given(method(method_and_path.0)).and(path(method_and_path.1));
    mock.respond_with(ResponseTemplate::new(status)).mount(server).await;
}

/// Returns the bodies of the requests that a collector got on a path.
async fn bodies(collector: &MockServer, path: &str) -> Vec<Vec<u8>> {
    let requests = collector.received_requests().await.unwrap();
    requests.into_iter().filter(|request| request.url.path() == path).map(|request| request.body).collect()
}

async fn until<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            match found().await {
                Some(found) => return found,
                None => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
}

#[tokio::test]
async fn spans_of_requests_and_deliveries_are_exported_and_requests_continue_the_trace_of_the_client() {
    let (collector, receiver) = (accepting(("POST", "/v1/traces")).await, accepting(("POST", "/hooks")).await);
    let demo = Demo::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.uri()),
        ("OTEL_SERVICE_NAME", "business-api"),
        // Longer than the test, so that the spans that arrive are those that the server exports when it stops.
        ("OTEL_BSP_SCHEDULE_DELAY", "600000"),
        ("SVC_LOG", "error"),
    ])
    .await;
    let subscription = json!({ "url": format!("{}/hooks", receiver.uri()), "events": ["contact.created"] });
    assert_eq!(demo.post("/webhooks", subscription).await.status(), 201);
    let created = demo.post("/contacts", json!({ "email": "grace@example.com" })).await;
    assert_eq!(created.status(), 201);
    let delivered = until(async || receiver.received_requests().await.unwrap().pop()).await;
    demo.stop().await;

    let requests = collector.received_requests().await.unwrap();
    assert!(requests.iter().all(|request| request.headers["content-type"] == "application/x-protobuf"));
    let spans: Vec<Span> = requests.iter().flat_map(|request| spans(&request.body)).collect();
    let id = created.headers()["x-request-id"].to_str().unwrap();
    let request = spans.iter().find(|span| span.attribute("request_id") == id);
    let request = request.unwrap_or_else(|| unreachable!("no span of {id}: {spans:#?}"));
    assert_eq!((request.service.as_str(), request.name.as_str()), ("business-api", "createContact"));
    assert_eq!((request.trace.as_str(), request.parent.as_str()), (TRACE, PARENT));
    assert_eq!((request.attribute("operation"), request.attribute("url.path")), ("createContact", "/api/v1/contacts"));
    let delivery = delivered.headers["x-svc-delivery"].to_str().unwrap();
    let attempt = spans.iter().find(|span| span.attribute("delivery") == delivery);
    let attempt = attempt.unwrap_or_else(|| unreachable!("no span of {delivery}: {spans:#?}"));
    assert_eq!((attempt.name.as_str(), attempt.attribute("event")), ("delivery", "contact.created"));
    assert_eq!((attempt.attribute("tenant").len(), attempt.attribute("tenant")), (36, request.attribute("tenant")));
    assert!(attempt.parent.is_empty() && attempt.trace != TRACE);
}

#[tokio::test]
async fn metrics_are_exported_at_each_interval_and_nothing_else_if_the_others_are_off() {
    let collector = accepting(("POST", "/v1/metrics")).await;
    let demo = Demo::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.uri()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20example"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
        ("SVC_LOG", "error"),
    ])
    .await;
    assert_eq!(demo.post("/contacts", json!({ "email": "grace@example.com" })).await.status(), 201);
    let labels =
        [("operation", "createContact"), ("status", "201")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    until(async || {
        let exported = bodies(&collector, "/v1/metrics").await;
        let points = exported.iter().flat_map(|body| points(body, "svc_http_requests"));
        points.into_iter().find(|point| *point == (labels.to_vec(), 1))
    })
    .await;
    demo.stop().await;
    let requests = collector.received_requests().await.unwrap();
    assert!(requests.iter().all(|request| request.url.path() == "/v1/metrics"));
    assert!(requests.iter().all(|request| request.headers["content-type"] == "application/x-protobuf"));
    assert!(requests.iter().all(|request| request.headers["authorization"] == "Bearer example"));
    let last = &requests.last().unwrap().body;
    assert_eq!(
        points(last, "svc_build_info"),
        [(vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())], 1)]
    );
}

#[tokio::test]
async fn the_log_is_exported_by_its_own_filter_and_with_the_trace_of_the_request() {
    let collector = accepting(("POST", "/v1/traces")).await;
    respond(&collector, ("POST", "/records"), 200).await;
    let demo = Demo::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.uri()),
        // The address of one signal is taken as it is.
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", &format!("{}/records", collector.uri())),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "600000"),
        ("SVC_LOG", "error,svc_server::access=info"),
    ])
    .await;
    let created = demo.post("/contacts", json!({ "email": "grace@example.com" })).await;
    demo.stop().await;

    let exported: Vec<Record> = bodies(&collector, "/records").await.iter().flat_map(|body| records(body)).collect();
    assert!(exported.iter().all(|record| record.target == "svc_server::access"), "{exported:#?}");
    let id = created.headers()["x-request-id"].to_str().unwrap();
    let line = exported.iter().find(|record| record.attributes.contains(&("request_id".to_owned(), id.to_owned())));
    let line = line.unwrap_or_else(|| unreachable!("no record of {id}: {exported:#?}"));
    assert_eq!((line.level.as_str(), line.message.as_str(), line.trace.as_str()), ("INFO", "request", TRACE));
    assert!(line.attributes.contains(&("operation".to_owned(), "createContact".to_owned())), "{line:#?}");
}

#[tokio::test]
async fn what_the_log_says_of_an_export_is_not_exported() {
    let collector = accepting(("POST", "/v1/logs")).await;
    respond(&collector, ("POST", "/v1/metrics"), 500).await;
    let demo = Demo::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.uri()),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "20"),
        ("SVC_LOG", "trace"),
    ])
    .await;
    until(async || bodies(&collector, "/v1/metrics").await.get(10).cloned()).await;
    demo.stop().await;
    let exported: Vec<Record> = bodies(&collector, "/v1/logs").await.iter().flat_map(|body| records(body)).collect();
    let is_of_export = |record: &&Record| {
        record.target.starts_with("opentelemetry") || record.message.starts_with("cannot export metrics")
    };
    assert!(!exported.is_empty());
    assert_eq!(exported.iter().filter(is_of_export).map(|record| &record.target).collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test]
async fn an_unavailable_collector_delays_neither_requests_nor_the_shutdown() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{closed}");
    let demo = Demo::start(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("SVC_LOG", "off")]).await;
    assert_eq!(demo.post("/contacts", json!({ "email": "grace@example.com" })).await.status(), 201);
    demo.stop().await;
}
