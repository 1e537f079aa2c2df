//! Copies of collections, by a program that is killed again and again while others write.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use svc_client::Client;
use svc_client::prelude::*;

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
