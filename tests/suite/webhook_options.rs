//! What a subscription asks for beyond the contract: left out of responses unless it is set, and secret where it is secret.

use std::sync::LazyLock;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::{Value, json};
use svc_core::webhooks::options;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::harness::{Call, SeededServer, sample};

static CERTIFICATE: LazyLock<CertifiedKey<KeyPair>> =
    LazyLock::new(|| generate_simple_self_signed(["svc.example.com".to_owned()]).unwrap());

/// Returns the fingerprint of the certificate.
fn sha256() -> String {
    let CertifiedKey { cert, signing_key } = &*CERTIFICATE;
    options::ClientCertificate::new(&cert.pem(), &signing_key.serialize_pem()).unwrap().sha256().to_owned()
}

fn client_certificate() -> Value {
    let CertifiedKey { cert, signing_key } = &*CERTIFICATE;
    json!({ "certificate": cert.pem(), "private_key": signing_key.serialize_pem() })
}

fn all() -> Value {
    json!({
        "headers": { "X-Team": "ledger", "X-Key": "s3cret-value" },
        "authentication": { "type": "basic", "username": "svc", "password": "s3cret-word" },
        "filter": "data.city == \"Perth\"",
        "payload": "thin",
        "max_per_second": 10,
        "max_in_flight": 2,
        "timeout": 5,
        "retry_schedule": [60, 600],
        "ordering": "record",
        "signature": "ed25519",
        "client_certificate": client_certificate(),
        "certificate_authority": CERTIFICATE.cert.pem().repeat(2),
    })
}

/// Returns the options as a response has them.
fn shown() -> Value {
    let mut shown = all();
    shown["headers"] = json!(["x-team", "x-key"]);
    shown["authentication"] = json!({ "type": "basic", "username": "svc" });
    shown["client_certificate"] = json!({ "sha256": sha256() });
    shown["certificate_authority"] = json!({ "sha256": [sha256(), sha256()] });
    shown
}

fn with(options: &Value) -> Value {
    let mut body = json!({ "url": "https://hooks.example.com/svc", "events": ["*"] });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    body
}

/// The fields that a request has: keys are made by the service.
fn fields() -> impl Iterator<Item = &'static str> {
    options::FIELDS.into_iter().filter(|field| *field != "signing_keys")
}

fn options_of(webhook: &Value) -> Value {
    let members = webhook.as_object().unwrap().iter();
    members
        .filter(|(name, _)| fields().any(|field| field == *name))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn options_are_shown_only_where_they_are_set_and_without_secrets() {
    let server = SeededServer::new();
    let plain = server.expect(201, Call::post("/webhooks", sample(&server, "webhooks", 1))).await;
    assert_eq!(options_of(&plain.data()), json!({}));
    let created = server.expect(201, Call::post("/webhooks", with(&all()))).await;
    assert_eq!(options_of(&created.data()), shown());
    let path = format!("/webhooks/{}", created.id());
    let read = server.expect(200, Call::get(&path)).await;
    assert_eq!((options_of(&read.data()), read.etag()), (shown(), created.etag()));
    let list = server.expect(200, Call::get("/webhooks")).await;
    assert_eq!(options_of(&list.json()["data"][0]), shown());
    assert_eq!(options_of(&list.json()["data"][1]), json!({}));
    for response in [&created, &read, &list] {
        assert!(!response.text.contains("s3cret"), "{}", response.text);
        assert!(!response.text.contains("BEGIN"), "{}", response.text);
    }
    let stored = server.store().read("test", (server.tenant, created.id()), async |tx, (tenant, id)| {
        let found: Option<WebhookSubscription> = tx.get(*tenant, id.parse().unwrap()).await?;
        Ok(found.unwrap())
    });
    let tls = stored.await.unwrap().attempt_options(server.store().env().now()).tls.unwrap();
    let (certificate, authority) =
        (tls.client_certificate.as_ref().unwrap(), tls.certificate_authority.as_ref().unwrap());
    assert_eq!(
        certificate.certificate().replace('\n', ""),
        CERTIFICATE.cert.pem().replace("\r\n", "").replace('\n', "")
    );
    assert_eq!(certificate.private_key().reveal(), CERTIFICATE.signing_key.serialize_pem().replace('\r', ""));
    assert_eq!(authority.certificates(), certificate.certificate().repeat(2));
    // A change of one leaves the others.
    let changed = server
        .expect(200, Call::patch(&path, json!({ "timeout": 7, "payload": "contract" })).header("if-match", read.etag()))
        .await;
    let mut want = shown();
    want["timeout"] = 7.into();
    want.as_object_mut().unwrap().remove("payload");
    assert_eq!(options_of(&changed.data()), want);
    let nothing: Value =
        fields().map(|field| (field.to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    let cleared = server.expect(200, Call::patch(&path, nothing)).await;
    assert_eq!(options_of(&cleared.data()), json!({}));
    server.expect(412, Call::delete(&path).header("if-match", read.etag())).await;
    server.expect(204, Call::delete(&path).header("if-match", cleared.etag())).await;
}

#[tokio::test]
async fn bad_options_name_the_field_and_the_reason() {
    let server = SeededServer::new();
    let mut refused = String::new();
    for options in [
        json!({ "headers": { "X-SVC-Event": "a", "Host": "b" } }),
        json!({ "headers": { "X-Team": "line\nbreak" } }),
        json!({ "headers": ["X-Team"] }),
        json!({ "headers": { "Authorization": "Key 1" }, "authentication": { "type": "bearer", "token": "t" } }),
        json!({ "authentication": { "type": "oauth1" } }),
        json!({ "authentication": { "type": "basic", "username": "svc" } }),
        json!({ "filter": "data.city = 1" }),
        json!({ "filter": 7 }),
        json!({ "payload": "fat" }),
        json!({ "max_per_second": 0, "max_in_flight": 65, "timeout": 31 }),
        json!({ "retry_schedule": [1] }),
        json!({ "retry_schedule": [60, 60, 60, 60, 60, 60] }),
        json!({ "ordering": "tenant" }),
        json!({ "signature": "rsa", "signing_keys": [] }),
    ] {
        let body = server.expect(400, Call::post("/webhooks", with(&options))).await.json();
        refused.push_str(&format!("{options}\n  {body}\n"));
    }
    insta::assert_snapshot!(refused);
}

/// What PEM shows is checked by the rules, and the rest by the server.
#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused() {
    let server = SeededServer::new();
    let another = generate_simple_self_signed(["svc.example.com".to_owned()]).unwrap().signing_key.serialize_pem();
    let (certificate, key) = (CERTIFICATE.cert.pem(), CERTIFICATE.signing_key.serialize_pem());
    let pem = |label: &str, base64: &str| format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n");
    let pair = |certificate: &str, key: &str| json!({ "client_certificate": { "certificate": certificate, "private_key": key } });
    let webhook = server.expect(201, Call::post("/webhooks", with(&json!({})))).await.id();
    for (options, field, reason) in [
        (
            pair(&certificate, &another),
            "client_certificate.private_key",
            "must be that of the certificate, and belongs to another one",
        ),
        (
            pair(&certificate, &pem("PRIVATE KEY", "MAA=")),
            "client_certificate.private_key",
            "must be an RSA key of 2048 bits or more, an ECDSA key on P-256 or P-384, or an Ed25519 key",
        ),
        (
            pair(&certificate, &pem("ENCRYPTED PRIVATE KEY", "MAA=")),
            "client_certificate.private_key",
            "must not be encrypted with a passphrase; it is stored encrypted, and never shown",
        ),
        (
            pair(&pem("CERTIFICATE", "MAA="), &key),
            "client_certificate.certificate",
            "must have X.509 certificates of version 3 alone",
        ),
        (
            pair(&certificate, ""),
            "client_certificate.private_key",
            "must be PEM with its line breaks: it has no line -----BEGIN PRIVATE KEY-----",
        ),
        (
            json!({ "client_certificate": { "certificate": certificate } }),
            "client_certificate.private_key",
            "is required",
        ),
        (
            json!({ "client_certificate": certificate }),
            "client_certificate",
            "must be an object with certificate and private_key",
        ),
        (
            json!({ "certificate_authority": "MAA=" }),
            "certificate_authority",
            "must be PEM with its line breaks: it has no line -----BEGIN CERTIFICATE-----",
        ),
        (
            json!({ "certificate_authority": pem("CERTIFICATE", "MAA=") }),
            "certificate_authority",
            "must have X.509 certificates alone, and one is none",
        ),
        (
            json!({ "certificate_authority": format!("{certificate}{key}") }),
            "certificate_authority",
            "must have certificates alone, and has something else",
        ),
        (json!({ "certificate_authority": 1 }), "certificate_authority", "must be a string"),
    ] {
        for call in
            [Call::post("/webhooks", with(&options)), Call::patch(&format!("/webhooks/{webhook}"), options.clone())]
        {
            let refused = server.expect(400, call).await;
            let json = refused.json();
            let failing = &json["errors"][0];
            assert_eq!(
                (&failing["field"], &failing["message"]),
                (&json!(field), &json!(format!("{field} {reason}"))),
                "{json}"
            );
            let body: String = key.lines().nth(1).unwrap().to_owned();
            assert!(!refused.text.contains(&body), "{json}");
        }
    }
}

/// A filter decides before a delivery is written.
#[tokio::test]
async fn an_event_that_does_not_pass_the_filter_has_no_delivery() {
    let server = SeededServer::new();
    let webhook =
        server.expect(201, Call::post("/webhooks", with(&json!({ "filter": "data.city == \"Perth\"" })))).await.id();
    for city in ["Perth", "Sydney"] {
        let contact = json!({ "email": format!("{city}@example.com"), "city": city });
        server.expect(201, Call::post("/contacts", contact)).await;
    }
    let tenant = server.tenant;
    let deliveries = server.store().read("test", (tenant, webhook), async |tx, (tenant, webhook)| {
        let filter = svc_core::store::DeliveryFilter { subscription_id: webhook.parse().ok(), ..Default::default() };
        Ok(tx.list_deliveries(*tenant, &filter).await?)
    });
    assert_eq!(deliveries.await.unwrap().len(), 1);
}
