//! The builder, and what the client shows of its secrets.

use std::sync::{Arc, Mutex};

use svc_client::prelude::*;
use tracing_subscriber::fmt::MakeWriter;

use crate::fixture::{ID, KEY, builder, ok, problem, serve};

#[test]
fn an_argument_that_cannot_be_used_is_refused() {
    for (url, key) in [
        ("", KEY),
        ("svc.example.com", KEY),
        ("ftp://svc.example.com", KEY),
        ("https://ada@svc.example.com", KEY),
        ("https://:secret@svc.example.com", KEY),
        ("https://svc.example.com", "svc_live_\n"),
    ] {
        let error = Client::builder(url, key).build().unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{url}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let error = Client::builder("https://svc.example.com", KEY).user_agent("a\nb").build().unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    let broken = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let error = Client::builder("https://svc.example.com", KEY).add_root_certificates(broken).build().unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
}

#[test]
fn a_client_can_be_shared_between_tasks() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    check::<Client>();
    fn check_future<T: Send>(_: &T) {}
    let client = Client::builder("https://svc.example.com", KEY).build().unwrap();
    check_future(&client.contacts().list().all());
    check_future(&client.jobs().sync_since(SyncPosition::default()));
    check_future(&client.contacts().get(ID.parse().unwrap()));
}

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
async fn no_secret_is_shown_or_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = serve(vec![problem(503, "unavailable"), ok(200), problem(404, "not_found")]).await;
    let (builder, _) = builder(&server.uri());
    let builder = builder.signing_secret("svcsig_secret");
    let mut shown = format!("{builder:?}");
    let client = builder.build().unwrap();
    let filter = ContactFilter { email: Some("ada@example.com".parse().unwrap()), include_deleted: None };
    let list = client.contacts().list().filter(filter);
    shown += &format!("{client:?} {:?}", client.contacts());
    client.contacts().get(ID.parse().unwrap()).await.unwrap();
    shown += &format!("{:?}", list.page().await.unwrap_err());
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for part in ["svc_request", "method=GET", "attempts=2", "status=200", "request_id=\"req-7\"", "tried again"] {
        assert!(logged.contains(part), "no {part} in {logged}");
    }
    for secret in [KEY, "svcsig_secret", "ada@example.com", "ada%40example.com"] {
        assert!(!shown.contains(secret), "{shown}");
        // The HTTP library logs on its own, at its own levels.
        let ours = logged.lines().filter(|line| line.contains("svc_client"));
        assert!(ours.clone().count() > 0 && !ours.clone().any(|line| line.contains(secret)), "{logged}");
    }
}
