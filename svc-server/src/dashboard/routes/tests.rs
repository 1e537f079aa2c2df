//! The memory that pages reserve.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{COOKIE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use svc_core::accounts::sessions::Role;
use svc_core::input::Input as _;
use svc_core::prelude::*;

use super::*;
use crate::api::run::tests::{Largest, RESPONSE};
use crate::kernel::response_memory::RECORD;
use crate::{Api, Builder};

/// The pages of an account, as a member of it sees them.
struct Pages {
    api: Api,
    router: Router,
    cookie: String,
}

impl Pages {
    async fn of(svc: &Svc, tenant: TenantId) -> Self {
        let email: Email = "ada@example.com".parse().unwrap();
        svc.account(tenant).members().add(email.clone(), Role::Owner).await.unwrap();
        let session = svc.dashboard().sign_in_member(email).await.unwrap();
        let (api, _) = Builder::new(svc).dashboard(true).build();
        Self { api, router: Router::new(true), cookie: format!("svc_session={}", session.token.reveal()) }
    }

    /// Checks that the memory of a page is enough for this number of bytes and its HTML.
    async fn check(&self, path: &str, read: usize) {
        let request = Request::get(format!("/dashboard{path}")).header(HOST, "localhost").header(COOKIE, &self.cookie);
        let response = self.api.call(request.body(Full::<Bytes>::default()).unwrap(), [127, 0, 0, 1].into()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let page = response.into_body().collect().await.unwrap().to_bytes();
        let (known, _) = self.router.find(&Method::GET, path.split('?').next().unwrap()).ok().unwrap();
        let (needed, reserved) = (read + page.len(), known.records() as usize * RECORD);
        assert!(needed <= reserved, "{path} needs {needed} bytes and has {reserved}");
    }
}

#[tokio::test]
async fn the_memory_of_a_page_is_enough_for_the_largest_events() {
    let largest = Largest::new().await;
    let pages = Pages::of(&largest.svc, largest.tenant).await;
    let (event, attempts) = (Largest::EVENT, 50 * RESPONSE);
    let (id, delivery) = (largest.event, largest.delivery);
    // A request is made of a copy of the event, as bytes and as text, and the text stays.
    let request = 3 * event;
    for (path, read) in [
        ("/events".to_owned(), 3 * event),
        (format!("/events/{id}"), event),
        ("/audit".to_owned(), 3 * event),
        ("/audit?format=csv".to_owned(), 3 * event),
        (format!("/deliveries/{delivery}"), event + attempts + request),
        (format!("/deliveries/{delivery}?compare=59,60"), event + attempts + event + request),
    ] {
        pages.check(&path, read).await;
    }
}

/// Returns PEM of a certificate with this number of bytes. They are not looked at before a delivery.
fn pem(label: &str, bytes: u16) -> String {
    let der = [&[0x30, 0x82], &bytes.to_be_bytes()[..], &vec![0; bytes.into()]].concat();
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A list keeps no certificates and headers of endpoints, but five endpoints are read at a time with all they have.
#[tokio::test]
async fn the_memory_of_a_page_is_enough_for_the_largest_endpoints() {
    let largest = Largest::new().await;
    let account = largest.svc.account(largest.tenant);
    let headers: serde_json::Map<_, _> =
        (0..20).map(|number| (format!("x-{number}"), "x".repeat(4096).into())).collect();
    let options = json!({
        "headers": headers,
        "authentication": { "type": "bearer", "token": "t".repeat(4000) },
        "client_certificate": {
            "certificate": pem("CERTIFICATE", 48_000),
            "private_key": pem("PRIVATE KEY", 12_000),
        },
        "certificate_authority": pem("CERTIFICATE", 48_000),
    });
    let options = options.to_string();
    assert!(options.len() > 220 * 1024 - 8 * 1024, "{}", options.len());
    let change = |id| account.webhooks().update(id, WebhookUpdate::from_body(options.as_bytes()).unwrap());
    change(largest.webhook).await.unwrap();
    for number in 0..6 {
        let url = WebhookUrl::parse(&format!("https://example.com/{number}")).unwrap();
        change(account.webhooks().create(WebhookCreate::new(url, EventSet::All)).await.unwrap().id).await.unwrap();
    }
    let pages = Pages::of(&largest.svc, largest.tenant).await;
    let webhook = largest.webhook;
    for path in [
        "/".to_owned(),
        "/webhooks".to_owned(),
        format!("/webhooks/{webhook}"),
        format!("/webhooks/{webhook}/edit"),
        "/deliveries".to_owned(),
        format!("/deliveries/replay-matching?endpoint={webhook}&status=failed"),
        format!("/events/{}", largest.event),
    ] {
        pages.check(&path, 5 * options.len()).await;
    }
}

/// The fields of records are read into a record each, and from there into a list of fields.
#[tokio::test]
async fn the_memory_of_a_page_is_enough_for_the_largest_records() {
    let largest = Largest::new().await;
    let account = largest.svc.account(largest.tenant);
    let contact = account.contacts().create(ContactCreate::new("eve@example.com".parse().unwrap())).await.unwrap();
    let longest = |characters| "\u{10ffff}".repeat(characters);
    let mut read = 0;
    for _ in 0..50 {
        let at = "2026-03-20T09:00:00Z".parse().unwrap();
        let mut input = BookingCreate::new(contact.id, Text::parse(&longest(255)).unwrap(), at);
        input.notes = Some(Note::parse(&longest(4096)).unwrap());
        let booking = account.bookings().create(input).await.unwrap();
        read += 2 * serde_json::to_string(&booking).unwrap().len();
    }
    let pages = Pages::of(&largest.svc, largest.tenant).await;
    for path in ["/bookings", "/bookings?format=csv"] {
        pages.check(path, read).await;
    }
}
