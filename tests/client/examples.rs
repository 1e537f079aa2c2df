//! The examples of svc-client, against live servers.

use std::time::Duration;

use svc_client::prelude::*;
use svc_server::Settings;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::live::{LiveServer, databases, unlimited};
use crate::{city, contact};

#[path = "../../svc-client/examples/bulk_create.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod bulk_create;
#[path = "../../svc-client/examples/nightly_sync.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod nightly_sync;
#[path = "../../svc-client/examples/webhook_receiver.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod webhook_receiver;

/// Returns the columns `email` and `city` of a copy.
fn rows(folder: &std::path::Path) -> Vec<(String, String)> {
    let mut file = csv::Reader::from_path(folder.join("contacts.csv")).unwrap();
    let header = file.headers().unwrap().clone();
    let column = |name| header.iter().position(|column| column == name).unwrap();
    let (email, city) = (column("email"), column("city"));
    let mut rows: Vec<_> = file
        .records()
        .map(|row| {
            let row = row.unwrap();
            (row[email].to_owned(), row[city].to_owned())
        })
        .collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn nightly_sync_copies_what_changed() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let client = server.client();
        let folder = tempfile::tempdir().unwrap();
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(client.contacts().create(&contact(number)).await.unwrap().id);
        }
        client.jobs().create(&JobCreate::new("Tap, \"hot\"".parse().unwrap())).await.unwrap();
        assert_eq!(nightly_sync::run(&client, folder.path()).await.unwrap(), 4);
        let pair = |email: &str, city: &str| (email.to_owned(), city.to_owned());
        let person = |number| format!("person{number}@example.com");
        assert_eq!(rows(folder.path()), [0, 1, 2].map(|number| pair(&person(number), "")));

        client.contacts().update(ids[1], &city("Perth")).await.unwrap();
        client.contacts().delete(ids[0]).await.unwrap();
        // The last record of each copy is read again.
        assert_eq!(nightly_sync::run(&client, folder.path()).await.unwrap(), 4);
        assert_eq!(rows(folder.path()), [pair(&person(1), "Perth"), pair(&person(2), "")]);
        let jobs = std::fs::read_to_string(folder.path().join("jobs.csv")).unwrap();
        assert!(jobs.contains("\"Tap, \"\"hot\"\"\""), "{jobs}");
    }
}

#[tokio::test]
async fn bulk_create_waits_for_the_rate_limit_and_creates_nothing_twice() {
    for database in databases() {
        let settings = Settings { rate_limit: 50, ..Settings::default() };
        let server = LiveServer::start(&database, settings).await;
        let patient = RetryPolicy::default().attempts(u32::MAX).total(Duration::from_secs(1_000_000));
        let client = server.builder().retry(patient).build().unwrap();
        let ada = ContactCreate::new("ada@example.com".parse().unwrap());
        client.contacts().create(&ada).await.unwrap();

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contacts.csv");
        let mut text = "email,first_name,last_name\nada@example.com,Ada,Lovelace\nnot an email,No,One\n".to_owned();
        for number in 0..100 {
            text += &format!("bulk{number}@example.com,Person,{number}\n");
        }
        std::fs::write(&file, text).unwrap();
        // A second run is that after a crash.
        for _ in 0..2 {
            let report = bulk_create::run(&client, &file).await.unwrap();
            assert_eq!((report.created, report.existing, report.refused.len()), (100, 1, 1));
            assert!(report.refused[0].starts_with("not an email: "), "{:?}", report.refused);
        }
        assert!(server.waits.load(std::sync::atomic::Ordering::SeqCst) > 0);
        let page = client.contacts().list().limit(200).page().await.unwrap();
        assert_eq!((page.data.len(), page.next_cursor), (101, None));
    }
}

#[tokio::test]
async fn webhook_receiver_reads_the_contact_of_each_delivery() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let client = server.client();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let webhook = WebhookCreate::new(url, svc_core::values::EventSet::All);
        let webhook = client.webhooks().create(&webhook).await.unwrap();
        let (sender, mut printed) = mpsc::unbounded_channel();
        let receiver = webhook_receiver::run(client.clone(), listener, &webhook.secret, move |line| {
            let _ = sender.send(line);
        });
        let steps = async {
            client.jobs().create(&JobCreate::new("Tap".parse().unwrap())).await.unwrap();
            let ada = client.contacts().create(&contact(1)).await.unwrap();
            assert_eq!(printed.recv().await.unwrap(), format!("contact.created {} {}", ada.id, ada.etag));
            client.contacts().delete(ada.id).await.unwrap();
            assert_eq!(printed.recv().await.unwrap(), format!("contact.deleted {} is deleted", ada.id));
        };
        tokio::select! {
            ended = receiver => panic!("the receiver ended: {ended:?}"),
            done = tokio::time::timeout(Duration::from_secs(20), steps) => done.unwrap(),
        }
    }
}
