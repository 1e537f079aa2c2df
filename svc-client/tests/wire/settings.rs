//! The builder, and what the client shows of its secrets.

use svc_client::prelude::*;

use crate::fixture::{ID, KEY, builder, problem, serve};

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
    for (pem, part) in [
        (&b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"[..], "cannot be read"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "TLS cannot be set up"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "there is no certificate"),
        (b"", "there is no certificate"),
    ] {
        let error = Client::builder("https://svc.example.com", KEY).add_root_certificates(pem).build().unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument(reason) if reason.contains(part)), "{error}");
    }
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

#[tokio::test]
async fn no_secret_is_shown() {
    let server = serve(vec![problem(404, "not_found")]).await;
    let (builder, _) = builder(&server.uri());
    let builder = builder.signing_secret("svcsig_secret");
    let mut shown = format!("{builder:?}");
    let client = builder.build().unwrap();
    shown += &format!("{client:?} {:?}", client.contacts());
    shown += &format!("{:?}", client.contacts().get(ID.parse().unwrap()).await.unwrap_err());
    for secret in [KEY, "svcsig_secret"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
