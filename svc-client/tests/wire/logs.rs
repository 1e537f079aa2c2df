//! What the client logs.

use std::sync::{Arc, Mutex};

use svc_client::prelude::*;
use tracing_subscriber::fmt::MakeWriter;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::fixture::KEY;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_call_is_a_span_without_secrets() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
        .with_writer(log.clone())
        .finish();
    // With a single subscriber, an event that another thread records first is never collected (tokio-rs/tracing#3611).
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _collecting = tracing::subscriber::set_default(subscriber);
    let server = MockServer::start().await;
    let busy = ResponseTemplate::new(503)
        .insert_header("x-request-id", "req-7")
        .set_body_string(r#"{"error": "Try again.", "code": "unavailable"}"#);
    Mock::given(any()).respond_with(busy).mount(&server).await;
    let client = Client::builder(&server.uri(), KEY)
        .signing_secret("svcsig_secret")
        .retry(RetryPolicy::default().attempts(2))
        .sleep(|_| Box::pin(std::future::ready(())))
        .build()
        .unwrap();
    let filter = ContactFilter { email: Some("ada@example.com".parse().unwrap()), include_deleted: None };
    client.contacts().list().filter(filter).page().await.unwrap_err();
    client.contacts().create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap_err();

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    // The HTTP library logs on its own, at its own levels.
    let ours: Vec<&str> = logged.lines().filter(|line| line.contains("svc_client")).collect();
    let all = ours.join("\n");
    for part in ["svc_request", "method=GET", "path=\"/api/v1/contacts\"", "status=503", "attempts=2"] {
        assert!(all.contains(part), "no {part} in {all}");
    }
    for part in ["method=POST", "request_id=\"req-7\"", "is tried again", "the call failed"] {
        assert!(all.contains(part), "no {part} in {all}");
    }
    for secret in [KEY, "svcsig_secret", "ada@example.com", "ada%40example.com"] {
        assert!(!all.contains(secret), "{all}");
    }
}
