//! Lists, their pages as streams, and copies.

use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use svc_client::prelude::*;
use wiremock::ResponseTemplate;

use crate::fixture::{ID, client, contact, problem, requests, serve};

const CURSOR: &str = "aaaaaaaa-aaaa-8aaa-8aaa-aaaaaaaaaaaa";

fn page(records: &[&str], next_cursor: Option<&str>) -> ResponseTemplate {
    let records: Vec<Value> = records
        .iter()
        .map(|updated_at| {
            let mut record = contact();
            record["updated_at"] = (*updated_at).into();
            record
        })
        .collect();
    ResponseTemplate::new(200).set_body_json(json!({ "data": records, "next_cursor": next_cursor }))
}

const T1: &str = "2026-03-14T15:09:26.000001Z";
const T2: &str = "2026-03-14T15:09:26.000002Z";
const T3: &str = "2026-03-14T15:09:26.000003Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn queries(server: &wiremock::MockServer) -> Vec<String> {
    requests(server).await.iter().map(|request| request.url.query().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_starting_cursor_that_comes_back_ends_the_stream() {
    let server = serve(vec![page(&[T1], Some(CURSOR))]).await;
    let contacts = client(&server).0.contacts();
    let mut pages = std::pin::pin!(contacts.list().cursor(CURSOR.parse().unwrap()).pages());
    assert_eq!(pages.try_next().await.unwrap().unwrap().data.len(), 1);
    let error = pages.try_next().await.unwrap_err();
    assert!(matches!(error, Error::UnexpectedResponse(_)), "{error}");
    assert_eq!(queries(&server).await.len(), 1);
}

#[tokio::test]
async fn a_page_is_asked_for_with_its_filters() {
    let server = serve(vec![page(&[T1], Some(CURSOR))]).await;
    let contacts = client(&server).0.contacts();
    contacts.list().page().await.unwrap();
    let filter = ContactFilter { email: Some("a+b&c@example.com".parse().unwrap()), include_deleted: Some(true) };
    let list = contacts.list().filter(filter).limit(7).updated_since(time(T2)).cursor(CURSOR.parse().unwrap());
    let page = list.page().await.unwrap();
    assert_eq!(page.next_cursor.unwrap().to_string(), CURSOR);
    assert_eq!(
        queries(&server).await,
        [
            String::new(),
            format!(
                "limit=7&cursor={CURSOR}&updated_since=2026-03-14T15%3A09%3A26.000002Z\
                 &email=a%2Bb%26c%40example.com&include_deleted=true"
            ),
        ]
    );
    for limit in [0, 201] {
        let error = contacts.list().limit(limit).page().await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
}

#[tokio::test]
async fn all_records_of_all_pages_are_a_stream() {
    let server = serve(vec![page(&[T1, T2], Some(CURSOR)), page(&[], Some(ID)), page(&[T3], None)]).await;
    let all: Vec<Contact> = client(&server).0.contacts().list().all().try_collect().await.unwrap();
    assert_eq!(all.iter().map(|contact| contact.updated_at).collect::<Vec<_>>(), [T1, T2, T3].map(time));
    assert_eq!(
        queries(&server).await,
        ["limit=200".to_owned(), format!("limit=200&cursor={CURSOR}"), format!("limit=200&cursor={ID}")]
    );
}

#[tokio::test]
async fn a_page_is_read_when_it_is_asked_for() {
    let server = serve(vec![page(&[T1, T2], Some(CURSOR)), page(&[T3], None)]).await;
    let mut all = std::pin::pin!(client(&server).0.contacts().list().limit(2).all());
    all.next().await.unwrap().unwrap();
    all.next().await.unwrap().unwrap();
    assert_eq!(requests(&server).await.len(), 1);
}

#[tokio::test]
async fn a_stream_ends_after_an_error() {
    let server = serve(vec![page(&[T1], Some(CURSOR)), problem(403, "access_not_approved")]).await;
    let all: Vec<_> = client(&server).0.contacts().list().all().collect().await;
    assert!(all.len() == 2 && all[0].is_ok());
    assert_eq!(all[1].as_ref().unwrap_err().code(), Some("access_not_approved"));
}

#[tokio::test]
async fn a_copy_goes_on_from_the_position_of_its_last_page() {
    let server = serve(vec![page(&[T1, T2], Some(CURSOR)), page(&[T3], None)]).await;
    let contacts = client(&server).0.contacts();
    let pages: Vec<_> = contacts.sync_since(SyncPosition::default()).try_collect().await.unwrap();
    let positions: Vec<_> = pages.iter().map(|page| page.position).collect();
    assert_eq!(positions, [SyncPosition::after(time(T2)), SyncPosition::after(time(T3))]);
    assert_eq!(pages[0].records.len(), 2);
    let since = "updated_since=1970-01-01T00%3A00%3A00.000000Z";
    assert_eq!(
        queries(&server).await,
        [
            format!("limit=200&{since}&include_deleted=true"),
            format!("limit=200&cursor={CURSOR}&{since}&include_deleted=true")
        ]
    );

    let stored = serde_json::to_string(&positions[1]).unwrap();
    assert_eq!(stored, format!(r#"{{"updated_at":"{T3}"}}"#));
    let server = serve(vec![page(&[], None)]).await;
    let jobs = client(&server).0.contacts();
    let rest: Vec<_> = jobs.sync_since(serde_json::from_str(&stored).unwrap()).try_collect().await.unwrap();
    assert_eq!(rest, []);
    assert!(queries(&server).await[0].contains("updated_since=2026-03-14T15%3A09%3A26.000003Z"));
}
