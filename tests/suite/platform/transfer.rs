//! Records on their way to and from other programs: exports and imports.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{PlatformServer, one_of_each};

/// Returns all records of an account, read on pages of this many.
async fn export(fixture: &PlatformServer, account: &str, limit: usize) -> Vec<Value> {
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
    let fixture = PlatformServer::new().await;
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

/// Imports records, and returns what came of each row.
async fn import(fixture: &PlatformServer, account: &str, kind: &str, rows: &[Value], options: Value) -> Vec<Value> {
    let rows: Vec<Value> = rows.iter().map(|record| json!({ "record": record })).collect();
    report(fixture, account, json!({ "kind": kind, "rows": rows }), options).await["rows"].as_array().unwrap().clone()
}

async fn report(fixture: &PlatformServer, account: &str, mut body: Value, options: Value) -> Value {
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    fixture.post(&format!("/accounts/{account}/import"), body).await.body["data"].clone()
}

fn results(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["result"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_import_says_of_each_row_what_came_of_it() {
    let fixture = PlatformServer::new().await;
    let (one, other) = (fixture.account("One").await, fixture.account("Other").await);
    let webhook = json!({ "url": "https://127.0.0.1/hooks", "events": ["contact.created"] });
    fixture.post(&format!("/accounts/{one}/webhooks"), webhook).await;
    let rows = [
        json!({ "email": "ada@example.com", "first_name": "Ada" }),
        json!({ "email": "x", "colour": "red" }),
        json!({ "email": "ADA@example.com", "first_name": "Ada" }),
        json!({ "email": "ada@example.com", "first_name": "Eve" }),
        json!({ "first_name": "Grace" }),
        json!({ "first_name": "Grace" }),
    ];
    let nothing = json!({});
    let tried = import(&fixture, &one, "contacts", &rows, json!({ "dry_run": true })).await;
    let want = ["added", "refused", "there_already", "differs", "added", "added"];
    assert_eq!(results(&tried), want);
    assert_eq!(export(&fixture, &one, 200).await, [Value::Null; 0], "a dry run changes nothing");
    let done = import(&fixture, &one, "contacts", &rows, nothing.clone()).await;
    assert_eq!(results(&done), want);
    let contacts = export(&fixture, &one, 200).await;
    assert_eq!((&done[3]["existing_id"], &done[3]["fields"]), (&contacts[0]["id"], &json!(["first_name"])));
    let refused = json!({ "kind": "contacts", "rows": [{ "record": { "email": "x", "colour": "red" } }] });
    let problem = &report(&fixture, &one, refused, nothing.clone()).await["rows"][0]["problem"];
    let create = fixture.call(&Method::POST, &format!("/accounts/{one}/contacts"), Some(&rows[1]), &[]).await;
    assert_eq!(problem, &create.body, "a problem is that of a request with the row alone");

    // Again nothing is added, and the equal rows are known by their count.
    let again = import(&fixture, &one, "contacts", &rows, nothing.clone()).await;
    assert_eq!(
        results(&again),
        ["there_already", "refused", "there_already", "differs", "there_already", "there_already"]
    );
    let next = |count: u32| json!({ "kind": "contacts", "rows": [{ "record": rows[4], "duplicates_before": count }] });
    let with = report(&fixture, &one, next(1), nothing.clone()).await;
    assert_eq!((&with["rows"][0]["result"], &with["webhooks"]), (&json!("there_already"), &json!(1)));
    let third = report(&fixture, &one, next(2), json!({ "events": false })).await;
    assert_eq!((&third["rows"][0]["result"], &third["webhooks"]), (&json!("added"), &json!(0)));
    let updated = import(&fixture, &one, "contacts", &rows[3..4], json!({ "update": true })).await;
    assert_eq!(results(&updated), ["updated"]);

    let log = fixture.call(&Method::GET, &format!("/accounts/{one}/audit-log"), None, &[]).await;
    let imports: Vec<&Value> =
        log.body["data"].as_array().unwrap().iter().filter(|entry| entry["action"] == "import").collect();
    assert_eq!(imports.len(), 1, "an import with events is recorded by its events: {}", log.body);
    assert!(imports[0]["actor"].as_str().unwrap().starts_with("platform_key:"), "{}", imports[0]);
    let deliveries = fixture.call(&Method::GET, &format!("/accounts/{one}/deliveries"), None, &[]).await;
    assert_eq!(deliveries.body["data"].as_array().unwrap().len(), 3, "{}", deliveries.body);
    assert_eq!(export(&fixture, &other, 200).await, [Value::Null; 0], "another account has none of it");
}

#[tokio::test]
async fn all_records_move_to_another_account() {
    let fixture = PlatformServer::new().await;
    let (one, other) = (fixture.account("One").await, fixture.account("Other").await);
    let ids = one_of_each(&fixture, &one).await;
    fixture.post(&format!("/accounts/{one}/invoices/{}/send", ids["invoices"]), json!({})).await;
    fixture.post(&format!("/accounts/{one}/invoices/{}/pay", ids["invoices"]), json!({ "amount": 40 })).await;
    let records = export(&fixture, &one, 200).await;
    assert_eq!(records[1]["amount_paid"], 40);
    for result in ["added", "there_already"] {
        let done = import(&fixture, &other, "all", &records, json!({})).await;
        assert_eq!(results(&done), [result; 5], "{done:?}");
        assert_eq!(export(&fixture, &other, 200).await, records);
    }
    let events = fixture.call(&Method::GET, &format!("/accounts/{other}/events"), None, &[]).await;
    assert_eq!(events.body["data"], json!([]), "records that move fire no events");
    // The invoice refers to a contact of this account only.
    let third = fixture.account("Third").await;
    let alone = import(&fixture, &third, "all", &records[1..2], json!({})).await;
    assert_eq!(
        (&alone[0]["problem"]["code"], &alone[0]["problem"]["field"]),
        (&json!("reference_not_found"), &json!("contact_id"))
    );
}
