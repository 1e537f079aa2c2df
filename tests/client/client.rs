//! svc-client against live servers on both databases: what it does with the service that it was made for.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

mod cases;
mod examples;
mod hostile;
mod live;
mod platform;
mod steps;
mod sync;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use svc_client::TransportErrorKind;
use svc_client::prelude::*;
use svc_core::accounts::keys::KeyCreate;
use svc_server::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use self::live::{LiveServer, databases, unlimited};

fn contact(number: usize) -> ContactCreate {
    ContactCreate::new(format!("person{number}@example.com").parse().unwrap())
}

fn city(name: &str) -> ContactUpdate {
    let details = ContactDetails { city: Patch::Set(Some(name.parse().unwrap())), ..Default::default() };
    ContactUpdate { details, ..Default::default() }
}

#[tokio::test]
async fn every_operation_works() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let client = server.client();
        assert_eq!(client.ping().await.unwrap().tenant_id, server.tenant);

        // Contacts: create, read, change under a condition, refuse, delete.
        let contacts = client.contacts();
        let ada = contacts.create(&contact(1)).await.unwrap();
        assert_eq!(contacts.get(ada.id).await.unwrap(), ada);
        assert_eq!(contacts.get_if_changed(ada.id, &ada.etag).await.unwrap(), None);
        let moved = contacts.update_if(&ada.etag, ada.id, &city("Perth")).await.unwrap();
        assert_ne!(moved.etag, ada.etag);
        let stale = contacts.update_if(&ada.etag, ada.id, &city("Hobart")).await.unwrap_err();
        assert_eq!((stale.status(), stale.code()), (Some(412), Some("precondition_failed")));
        let taken = contacts.create(&contact(1)).await.unwrap_err();
        assert_eq!(taken.api().unwrap().existing_id, Some(ada.id.uuid()));

        // The others.
        let start = "2026-03-21T09:00:00+11:00".parse().unwrap();
        let booking = BookingCreate::new(ada.id, "Blocked drain".parse().unwrap(), start);
        let booking = client.bookings().create(&booking).await.unwrap();
        let change = BookingUpdate { status: Patch::Set(BookingStatus::NoShow), ..Default::default() };
        assert_eq!(client.bookings().update(booking.id, &change).await.unwrap().status, BookingStatus::NoShow);
        let quote = client.quotes().create(&QuoteCreate::new(ada.id, "99.95".parse().unwrap())).await.unwrap();
        assert_eq!((quote.quote_number.as_str(), quote.total.to_string().as_str()), ("QUO-0001", "99.95"));
        let job = JobCreate { contact_id: Some(ada.id), ..JobCreate::new("Hot water".parse().unwrap()) };
        let job = client.jobs().create(&job).await.unwrap();
        let change = JobUpdate { actual_total: Patch::Set(Some("480.50".parse().unwrap())), ..Default::default() };
        let job = client.jobs().update(job.id, &change).await.unwrap();
        assert_eq!(job.actual_total.map(|total| total.to_string()).as_deref(), Some("480.5"));
        let new = WebhookCreate::new("http://127.0.0.1:9/svc".parse().unwrap(), svc_core::values::EventSet::All);
        let webhook = client.webhooks().create(&new).await.unwrap();
        assert!(webhook.secret.starts_with("whsec_"));
        client.webhooks().delete(webhook.subscription.id).await.unwrap();
        let invoice = svc_core::prelude::InvoiceCreate::new("149.50".parse().unwrap());
        let invoice = server.account().invoices().create(invoice).await.unwrap();
        assert_eq!(client.invoices().get(invoice.id).await.unwrap().record, invoice);
        let draft = InvoiceFilter { status: Some(InvoiceStatus::Draft), ..Default::default() };
        assert_eq!(client.invoices().list().filter(draft).page().await.unwrap().data, [invoice]);

        contacts.delete_if(&moved.etag, ada.id).await.unwrap();
        assert_eq!(contacts.delete(ada.id).await.unwrap_err().code(), Some("not_found"));
    }
}

#[tokio::test]
async fn a_refused_field_is_named() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let unknown = "0195a3c8-0000-7000-8000-000000000001".parse().unwrap();
        let start = "2026-03-21T09:00:00Z".parse().unwrap();
        let mut booking = BookingCreate::new(unknown, "Blocked drain".parse().unwrap(), start);
        booking.end_time = Some("2026-03-21T08:00:00Z".parse().unwrap());
        let Error::Api(error) = server.client().bookings().create(&booking).await.unwrap_err() else {
            panic!("the service did not respond")
        };
        assert_eq!(
            (error.status, error.code.as_str(), error.field.as_deref()),
            (400, "validation_failed", Some("end_time"))
        );
        assert_eq!((error.errors[0].field.as_str(), error.errors[0].code.as_str()), ("end_time", "out_of_range"));
        assert!(error.request_id.is_some());
    }
}

#[tokio::test]
async fn a_list_is_walked_by_its_cursors() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let contacts = server.client().contacts();
        let mut created = Vec::new();
        for number in 0..25 {
            created.push(contacts.create(&contact(number)).await.unwrap().id);
        }
        created.reverse();
        let first = contacts.list().limit(7).page().await.unwrap();
        let second = contacts.list().limit(7).cursor(first.next_cursor.unwrap()).page().await.unwrap();
        let ids = |records: &[Contact]| records.iter().map(|record| record.id).collect::<Vec<_>>();
        assert_eq!([ids(&first.data), ids(&second.data)].concat(), created[..14]);
        let all: Vec<Contact> = contacts.list().limit(7).all().try_collect().await.unwrap();
        assert_eq!(ids(&all), created);
        let jobs = server.client().jobs().list().cursor(first.next_cursor.unwrap()).page().await.unwrap_err();
        assert_eq!(jobs.code(), Some("invalid_cursor"));
    }
}

#[tokio::test]
async fn a_key_that_signs_is_signed_for() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let key = KeyCreate { write: true, signed: true, ..KeyCreate::default() };
        let key = server.account().keys().create(key).await.unwrap();
        let unsigned = server.builder_with(key.text.reveal()).build().unwrap();
        assert_eq!(unsigned.contacts().create(&contact(1)).await.unwrap_err().code(), Some("signature_required"));
        let secret = key.key.signing_secret.unwrap();
        let client = server.builder_with(key.text.reveal()).signing_secret(secret.reveal()).build().unwrap();
        let ada = client.contacts().create(&contact(1)).await.unwrap();
        // The same change a second later has another signature.
        for _ in 0..2 {
            server.clock.advance(Duration::from_secs(1));
            client.contacts().update(ada.id, &city("Perth")).await.unwrap();
        }
        client.contacts().delete(ada.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_rate_limit_is_waited_for() {
    for database in databases() {
        let settings = Settings { rate_limit: 5, ..Settings::default() };
        let server = LiveServer::start(&database, settings).await;
        // The waits of this client pass on the clock of the server.
        let client = server.client();
        for _ in 0..18 {
            client.ping().await.unwrap();
        }
        assert_eq!(server.waits.load(Ordering::SeqCst), 3);
        let hasty = server.builder().retry(RetryPolicy::never()).build().unwrap();
        let mut limited = None;
        for _ in 0..6 {
            limited = hasty.ping().await.err();
        }
        let limited = limited.unwrap();
        assert_eq!((limited.status(), limited.code()), (Some(429), Some("rate_limited")));
        assert!(limited.retry_after().is_some_and(|wait| wait <= Duration::from_secs(60)));
    }
}

/// Forwards connections to the server, and ends the first so many of them instead of returning a response.
async fn cutting_proxy(server: &LiveServer, cuts: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (left, target) = (Arc::new(AtomicUsize::new(cuts)), server.address);
    let counter = Arc::clone(&left);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(target).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            let left = Arc::clone(&left);
            tokio::spawn(async move {
                let mut response = vec![0; 65_536];
                while let Ok(length @ 1..) = from_server.read(&mut response).await {
                    // The service has done what was asked: its response is here.
                    if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                        return;
                    }
                    to_client.write_all(&response[..length]).await.unwrap();
                }
            });
        }
    });
    (url, counter)
}

#[tokio::test]
async fn a_create_whose_response_is_lost_creates_one_record() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let (url, left) = cutting_proxy(&server, 2).await;
        let client = server.builder_at(&url).build().unwrap();
        let job = client.jobs().create(&JobCreate::new("Tap".parse().unwrap())).await.unwrap();
        assert_eq!(left.load(Ordering::SeqCst), 0);
        let jobs: Vec<Job> = client.jobs().list().all().try_collect().await.unwrap();
        assert_eq!(jobs, [job.into_record()]);

        // The same with a signature, which the service accepts once.
        let key = KeyCreate { write: true, signed: true, ..KeyCreate::default() };
        let key = server.account().keys().create(key).await.unwrap();
        let secret = key.key.signing_secret.unwrap();
        let (url, _) = cutting_proxy(&server, 1).await;
        let client = server.builder_for(&url, key.text.reveal()).signing_secret(secret.reveal()).build().unwrap();
        client.contacts().create(&contact(1)).await.unwrap();

        // A delete that was done is done.
        let ada = client.contacts().list().page().await.unwrap().data.remove(0);
        let (url, _) = cutting_proxy(&server, 1).await;
        server.builder_at(&url).build().unwrap().contacts().delete(ada.id).await.unwrap();
        assert_eq!(client.contacts().get(ada.id).await.unwrap_err().code(), Some("not_found"));
    }
}

#[tokio::test]
async fn a_certificate_of_an_authority_of_ones_own_can_be_trusted() {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let database = &databases()[0];
    let server = LiveServer::start_with(database, unlimited(), |server| server.with_tls(&cert, &key).unwrap()).await;
    let url = format!("https://{}", server.address);
    let strict = server.builder_at(&url).retry(RetryPolicy::never()).build().unwrap();
    let Error::Transport(error) = strict.ping().await.unwrap_err() else { panic!("an unknown authority was trusted") };
    assert_eq!(error.kind, TransportErrorKind::NotConnected);
    let pem = certificate.cert.pem();
    let trusting = server.builder_at(&url).add_root_certificates(pem.as_bytes()).build().unwrap();
    assert!(trusting.ping().await.unwrap().ok);
}
