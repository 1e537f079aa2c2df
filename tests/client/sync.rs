//! Copies of collections, by a program that is killed again and again while others write.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use svc_client::Client;
use svc_client::prelude::*;
use svc_core::values::EventSet;
use svc_server::Surfaces;

use crate::live::{LiveServer, databases, unlimited};
use crate::{city, contact};

/// What a program keeps on its disk, written as a whole.
#[derive(Default)]
struct Stored {
    copy: BTreeMap<ContactId, Contact>,
    position: String,
}

/// Reads one page, and is killed: after it stored the page, or before. Returns whether there was none to read.
async fn run_until_killed(client: &Client, stored: &mut Stored, stores: bool) -> bool {
    let position = if stored.position.is_empty() {
        SyncPosition::default()
    } else {
        serde_json::from_str(&stored.position).unwrap()
    };
    let mut pages = std::pin::pin!(client.contacts().sync_since(position));
    let Some(page) = pages.try_next().await.unwrap() else { return true };
    // The last record of the copy is returned again, as it may have changed since.
    let news = page.records.iter().any(|record| stored.copy.get(&record.id) != Some(record));
    if stores {
        stored.copy.extend(page.records.into_iter().map(|record| (record.id, record)));
        stored.position = serde_json::to_string(&page.position).unwrap();
    }
    !news
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_exact_however_often_its_program_is_killed() {
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let client = server.client();
        let contacts = client.contacts();
        let create = async |number| contacts.create(&contact(number)).await.unwrap().id;
        let ids: Vec<ContactId> = stream::iter(0..450).map(create).buffer_unordered(16).collect().await;

        // Four writers create, change and delete while the copy is made.
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (contacts, ids) = (client.contacts(), ids.clone());
                tokio::spawn(async move {
                    for step in 0..40 {
                        let id = ids[writer + 4 * step];
                        match step % 4 {
                            0 => drop(contacts.create(&contact(1000 * (writer + 1) + step)).await.unwrap()),
                            1 => contacts.delete(id).await.unwrap(),
                            _ => drop(contacts.update(id, &city(&format!("City {step}"))).await.unwrap()),
                        }
                    }
                })
            })
            .collect();
        let mut stored = Stored::default();
        let (mut kills, mut written) = (0, false);
        loop {
            kills += 1;
            // Before the run, so that one more run follows the last write.
            let all_written = writers.iter().all(|writer| writer.is_finished());
            let up_to_date = run_until_killed(&client, &mut stored, kills % 3 != 0).await;
            if up_to_date && written {
                break;
            }
            written = all_written;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert!(kills > 4, "{kills} kills");

        let everything = ContactFilter { include_deleted: Some(true), ..Default::default() };
        let held: Vec<Contact> = contacts.list().filter(everything).all().try_collect().await.unwrap();
        assert!(held.iter().filter(|contact| contact.deleted_at.is_some()).count() == 40 && held.len() == 490);
        let held: BTreeMap<_, _> = held.into_iter().map(|contact| (contact.id, contact)).collect();
        assert!(stored.copy == held, "the copy has {} of {} records", stored.copy.len(), held.len());
    }
}

/// What a program that follows the events keeps on its disk.
#[derive(Default)]
struct Followed {
    events: Vec<Event>,
    position: SyncPosition,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_are_followed_exactly_however_often_the_program_is_killed() {
    for database in databases() {
        let server = LiveServer::serving(&database, Surfaces { extensions: true, ..Surfaces::default() }).await;
        let client = server.client();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let contacts = client.contacts();
                tokio::spawn(async move {
                    for step in 0..100 {
                        contacts.create(&contact(1000 * (writer + 1) + step)).await.unwrap();
                    }
                })
            })
            .collect();
        let mut followed = Followed::default();
        let (mut kills, mut written) = (0, false);
        loop {
            kills += 1;
            let all_written = writers.iter().all(|writer| writer.is_finished());
            let mut pages = std::pin::pin!(client.sync_events(followed.position));
            match pages.try_next().await.unwrap() {
                // The program is killed after it has stored the page, or before.
                Some(page) if kills % 3 != 0 => {
                    followed.events.extend(page.records);
                    followed.position = serde_json::from_str(&serde_json::to_string(&page.position).unwrap()).unwrap();
                }
                Some(_) => {}
                None if written => break,
                None => {}
            }
            written = all_written;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(followed.events.len(), 400, "after {kills} kills");
        let oldest = EventListFilter { order: Some(EventOrder::OldestFirst), ..Default::default() };
        let all: Vec<Event> = client.events().list().filter(oldest).all().try_collect().await.unwrap();
        assert_eq!(followed.events, all, "nothing twice, nothing missed, in the order of the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_read_and_sent_again() {
    for database in databases() {
        let server = LiveServer::serving(&database, Surfaces { extensions: true, ..Surfaces::default() }).await;
        let client = server.client();
        let webhook = WebhookCreate::new("https://hooks.example.com/".parse().unwrap(), EventSet::All);
        let webhook = client.webhooks().create(&webhook).await.unwrap().subscription.id;
        for number in 0..3 {
            client.contacts().create(&contact(number)).await.unwrap();
        }
        let deliveries = client.webhooks().deliveries(webhook, WebhookDeliveryListFilter::default());
        let deliveries: Vec<Delivery> = deliveries.try_collect().await.unwrap();
        assert_eq!(deliveries.len(), 3);
        let details = client.delivery(deliveries[0].id).await.unwrap();
        let event = client.events().get(details.event.id).await.unwrap();
        assert_eq!(event.record, details.event);
        assert_eq!(client.replay_delivery(deliveries[0].id).await.unwrap().id, deliveries[0].id);
        let selection = ReplaySelection::new(deliveries[2].created_at);
        let replay = client.webhooks().replay(webhook, &selection).await.unwrap();
        assert_eq!(client.bulk_replay(replay.id).await.unwrap().id, replay.id);
        let test = client.webhooks().test(webhook, None).await.unwrap();
        assert_eq!(test.subscription_id, webhook);
        let rotated = client.webhooks().rotate_secret(webhook, None).await.unwrap();
        assert!(rotated.secret.starts_with("whsec_"));
    }
}
