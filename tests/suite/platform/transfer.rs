//! Records on their way to and from other programs: exports and imports.

use http::{Method, StatusCode};
use serde_json::Value;

use super::{Fixture, one_of_each};

/// Returns all records of an account, read on pages of this many.
async fn export(fixture: &Fixture, account: &str, limit: usize) -> Vec<Value> {
    let (mut records, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/accounts/{account}/export?limit={limit}{cursor}");
        let page = fixture.call(&Method::GET, &path, None, &[]).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.body);
        let data = page.body["data"].as_array().unwrap();
        assert!(data.len() <= limit);
        records.extend(data.clone());
        let Some(next) = page.body["next_cursor"].as_str() else { return records };
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn an_export_has_all_records_of_its_account_and_no_others() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.account("One").await, fixture.account("Other").await);
    let ids = one_of_each(&fixture, &one).await;
    one_of_each(&fixture, &other).await;
    let contact = format!("/accounts/{one}/contacts/{}", ids["contacts"]);
    assert_eq!(fixture.call(&Method::DELETE, &contact, None, &[]).await.status, StatusCode::NO_CONTENT);
    let all = export(&fixture, &one, 200).await;
    let exported: Vec<(&str, &str)> =
        all.iter().map(|record| (record["kind"].as_str().unwrap(), record["id"].as_str().unwrap())).collect();
    let kinds = ["contacts", "invoices", "quotes", "bookings", "jobs"];
    assert_eq!(exported, kinds.map(|kind| (kind, ids[kind].as_str())));
    assert!(all[0]["deleted_at"].is_string() && all[1]["amount_paid"] == 0, "{all:?}");
    for limit in 1..=5 {
        assert_eq!(export(&fixture, &one, limit).await, all, "{limit}");
    }
    let path = format!("/accounts/{one}/export");
    let since = format!("{path}?since={}", all[3]["updated_at"].as_str().unwrap());
    let changed = fixture.call(&Method::GET, &since, None, &[]).await;
    // The contact was deleted after the others were made.
    assert_eq!(changed.body["data"], Value::from([&all[..1], &all[2..]].concat()));

    let page = fixture.call(&Method::GET, &format!("{path}?limit=1"), None, &[]).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    for foreign in [
        format!("/accounts/{other}/export?cursor={cursor}"),
        format!("{path}?since=2026-03-14T15:09:26Z&cursor={cursor}"),
        format!("{path}?cursor=x{cursor}"),
    ] {
        let reply = fixture.call(&Method::GET, &foreign, None, &[]).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::BAD_REQUEST, "invalid_cursor"), "{}", reply.body);
    }
}
