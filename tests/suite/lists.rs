//! Lists (docs/contract.md, "Lists and incremental sync"): order, pages, filters and cursors.

use serde_json::{Value, json};
use svc_core::resources::invoices;
use svc_core::values::Decimal;

use crate::harness::{Call, SeededServer, id_name, sample};
use crate::seed;

const COLLECTIONS: [&str; 6] = ["contacts", "invoices", "bookings", "quotes", "jobs", "webhooks"];

/// Adds `count` rows through the rules, without HTTP.
async fn add(server: &SeededServer, collection: &'static str, count: usize) {
    if collection == "invoices" {
        let (tenant, contact) = (server.tenant, server.id("contact_id"));
        let made = server.store().write("invoices", (count, contact, tenant), async |tx, (count, contact, tenant)| {
            for number in 0..*count {
                let body = json!({ "contact_id": contact, "total": number });
                invoices::create(tx, *tenant, seed::body(body)?).await?;
            }
            Ok(())
        });
        return made.await.unwrap();
    }
    for number in 0..count {
        server.expect(201, Call::post(&format!("/{collection}"), sample(server, collection, number))).await;
    }
}

fn rows(page: &Value) -> Vec<Value> {
    page["data"].as_array().unwrap().clone()
}

fn ids(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

async fn page(server: &SeededServer, path: &str) -> Value {
    server.expect(200, Call::get(path)).await.json()
}

/// Follows `next_cursor` to the end and returns the rows of each page.
async fn walk(server: &SeededServer, path: &str) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut next = None;
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let target = match &next {
            None => path.to_owned(),
            Some(cursor) => format!("{path}{joint}cursor={cursor}"),
        };
        let page = page(server, &target).await;
        pages.push(rows(&page));
        assert!(pages.len() < 100, "{path} has no last page");
        match page["next_cursor"].as_str() {
            Some(cursor) => next = Some(cursor.to_owned()),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn pages_have_no_gap_and_no_overlap() {
    let server = SeededServer::new();
    for collection in COLLECTIONS {
        add(&server, collection, 6).await;
        let all = page(&server, &format!("/{collection}?limit=200")).await;
        let all = rows(&all);
        assert_eq!(all.len(), 7);
        let created = |row: &Value| row["created_at"].as_str().unwrap().to_owned();
        assert!(all.windows(2).all(|pair| created(&pair[0]) > created(&pair[1])), "newest first");
        for limit in 1..=8 {
            let pages = walk(&server, &format!("/{collection}?limit={limit}")).await;
            // There is no empty last page, even at exact multiples of the limit.
            assert_eq!(pages.len(), 7_usize.div_ceil(limit), "{collection} by {limit}");
            assert_eq!(pages.concat(), all);
            let since = walk(&server, &format!("/{collection}?limit={limit}&updated_since=2026-03-14T00:00:00Z")).await;
            let mut backwards = since.concat();
            backwards.reverse();
            assert_eq!((ids(&backwards), since.len()), (ids(&all), 7_usize.div_ceil(limit)), "oldest change first");
        }
        assert_eq!(rows(&page(&server, &format!("/{collection}")).await), all);
    }
}

#[tokio::test]
async fn a_page_has_50_rows_by_default() {
    let server = SeededServer::new();
    add(&server, "invoices", 50).await;
    let first = page(&server, "/invoices").await;
    assert_eq!(rows(&first).len(), 50);
    let last = page(&server, &format!("/invoices?cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((rows(&last).len(), &last["next_cursor"]), (1, &Value::Null));
    assert_eq!(page(&server, "/invoices?limit=51").await["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_cursor_is_valid_for_its_own_list_only() {
    let server = SeededServer::new();
    for collection in COLLECTIONS {
        add(&server, collection, 3).await;
    }
    let since = "updated_since=2026-03-14T00:00:00Z";
    for collection in COLLECTIONS {
        let cursor = async |query: &str| {
            page(&server, &format!("/{collection}?limit=1{query}")).await["next_cursor"].as_str().unwrap().to_owned()
        };
        let plain = cursor("").await;
        let walking = cursor(&format!("&{since}")).await;
        assert_eq!(uuid::Uuid::parse_str(&plain).unwrap().get_version_num(), 8);
        // Another limit, other letter case and another spelling of the same time are accepted.
        for good in [
            format!("cursor={plain}&limit=200"),
            format!("cursor={plain}"),
            format!("cursor={}", plain.to_uppercase()),
            format!("cursor={walking}&{since}&limit=2"),
            format!("cursor={walking}&updated_since=2026-03-14T11:00:00%2B11:00"),
        ] {
            assert_eq!(server.send(Call::get(&format!("/{collection}?{good}"))).await.status, 200, "{good}");
        }
        let mut flipped = plain.clone().into_bytes();
        flipped[0] = if flipped[0] == b'0' { b'1' } else { b'0' };
        let mut bad = vec![
            format!("cursor={walking}"),
            format!("cursor={plain}&{since}"),
            format!("cursor={walking}&updated_since=2026-03-14T00:00:00.000001Z"),
            format!("cursor={}", String::from_utf8(flipped).unwrap()),
            format!("cursor={}", server.id("unknown_id")),
            format!("cursor={}", server.id(&id_name(collection))),
            format!("cursor={}", plain.replace('-', "")),
            "cursor=00000000-0000-0000-0000-000000000000".to_owned(),
            "cursor=0".to_owned(),
        ];
        match collection {
            "contacts" => bad.push(format!("cursor={plain}&include_deleted=true")),
            "invoices" | "quotes" => bad.push(format!("cursor={plain}&status=draft")),
            "jobs" => bad.push(format!("cursor={plain}&status=quoted")),
            _ => {}
        }
        for query in bad {
            let response = server.expect(400, Call::get(&format!("/{collection}?{query}"))).await;
            assert_eq!(
                (response.code().as_str(), &response.json()["field"]),
                ("invalid_cursor", &json!("cursor")),
                "{query}"
            );
        }
        for other in COLLECTIONS.iter().filter(|other| **other != collection) {
            server.expect(400, Call::get(&format!("/{other}?cursor={plain}"))).await;
        }
    }
}

#[tokio::test]
async fn unknown_and_malformed_parameters_are_refused() {
    let server = SeededServer::new();
    for collection in COLLECTIONS {
        for (query, field, code) in [
            ("limit=0", "limit", "validation_failed"),
            ("limit=201", "limit", "validation_failed"),
            ("limit=-1", "limit", "validation_failed"),
            ("limit=ten", "limit", "validation_failed"),
            ("limit=1.0", "limit", "validation_failed"),
            ("limit=1e1", "limit", "validation_failed"),
            ("limit=%2B1", "limit", "validation_failed"),
            ("limit=%201", "limit", "validation_failed"),
            ("limit=99999999999999999999", "limit", "validation_failed"),
            ("limit=", "limit", "validation_failed"),
            ("limit", "limit", "validation_failed"),
            ("limit=5&limit=5", "limit", "validation_failed"),
            ("cursor=", "cursor", "validation_failed"),
            ("updated_since=", "updated_since", "validation_failed"),
            ("updated_since=2026-03-14", "updated_since", "validation_failed"),
            ("updated_since=2026-03-14T00:00:00", "updated_since", "validation_failed"),
            ("updated_since=yesterday", "updated_since", "validation_failed"),
            ("page=2", "page", "unknown_parameter"),
            ("Limit=2", "Limit", "unknown_parameter"),
            ("limit=2&offset=4", "offset", "unknown_parameter"),
            ("limit[]=2", "limit[]", "unknown_parameter"),
            ("=2", "", "unknown_parameter"),
        ] {
            let response = server.expect(400, Call::get(&format!("/{collection}?{query}"))).await;
            let (got, json) = (response.code(), response.json());
            assert_eq!((got.as_str(), &json["field"]), (code, &json!(field)), "{query}");
        }
    }
    let response = server.expect(200, Call::get("/contacts?&limit=1&")).await;
    assert_eq!(rows(&response.json()).len(), 1);
    // The filter of the dashboard is none of the API.
    let response = server.expect(400, Call::get("/bookings?status=confirmed")).await;
    assert_eq!((response.code().as_str(), &response.json()["field"]), ("unknown_parameter", &json!("status")));
}

async fn only(server: &SeededServer, path: &str) -> Vec<String> {
    ids(&walk(server, path).await.concat())
}

#[tokio::test]
async fn contacts_can_be_filtered_by_email_and_include_deleted_ones() {
    let server = SeededServer::new();
    let (mine, gone) = (server.id("contact_id"), server.id("deleted_contact_id"));
    let other = server.expect(201, Call::post("/contacts", json!({ "email": "Other@Example.com" }))).await.id();
    for email in ["other@example.com", "OTHER@EXAMPLE.COM", "Other%40Example.com", "other@example.com%20"] {
        assert_eq!(only(&server, &format!("/contacts?email={email}")).await, [other.as_str()], "{email}");
    }
    assert_eq!(only(&server, "/contacts?email=nobody@example.com").await, [""; 0]);
    assert_eq!(only(&server, "/contacts?email=gone@example.com").await, [""; 0]);
    assert_eq!(only(&server, "/contacts?email=gone@example.com&include_deleted=true").await, [gone.as_str()]);
    assert_eq!(only(&server, "/contacts").await, [other.clone(), mine.clone()]);
    assert_eq!(only(&server, "/contacts?include_deleted=false").await, [other.clone(), mine.clone()]);
    for limit in [1, 2, 200] {
        let all = walk(&server, &format!("/contacts?include_deleted=true&limit={limit}")).await.concat();
        assert_eq!(ids(&all), [other.clone(), gone.clone(), mine.clone()], "deleted contacts are in the same order");
        let deleted: Vec<bool> = all.iter().map(|row| row["deleted_at"].is_string()).collect();
        assert_eq!(deleted, [false, true, false]);
        assert_eq!(all[1]["deleted_at"], all[1]["updated_at"], "a deletion sets updated_at");
    }
    // A client that syncs by `updated_since` sees the deletion with `include_deleted` and not without it.
    server.expect(204, Call::delete(&format!("/contacts/{other}"))).await;
    let since = "updated_since=2026-03-14T00:00:00Z";
    assert_eq!(only(&server, &format!("/contacts?{since}")).await, [mine.as_str()]);
    let all = only(&server, &format!("/contacts?{since}&include_deleted=true&limit=2")).await;
    assert_eq!(all, [mine, gone, other]);
}

#[tokio::test]
async fn jobs_and_quotes_can_be_filtered_by_status_and_number() {
    let server = SeededServer::new();
    for (collection, statuses, first) in [
        ("quotes", "draft sent viewed accepted declined expired converted", "draft"),
        ("jobs", "quoted scheduled in_progress on_hold completed invoiced cancelled", "quoted"),
    ] {
        let seeded = server.id(&id_name(collection));
        for status in statuses.split(' ') {
            let id =
                server.expect(201, Call::post(&format!("/{collection}"), sample(&server, collection, 1))).await.id();
            let path = format!("/{collection}/{id}");
            server.expect(200, Call::patch(&path, json!({ "status": status }))).await;
            let found = only(&server, &format!("/{collection}?status={status}&limit=1")).await;
            let want = if status == first { vec![id, seeded.clone()] } else { vec![id] };
            assert_eq!(found, want, "{status}");
        }
        for bad in ["Draft", "open", "draft,sent", "null"] {
            let response = server.expect(400, Call::get(&format!("/{collection}?status={bad}"))).await;
            assert_eq!(response.json()["errors"][0]["code"], "invalid_enum", "{bad}");
        }
    }
    assert_eq!(only(&server, "/jobs?job_number=JOB-0001").await, [server.id("job_id")]);
    for number in ["JOB-0099", "job-0001", "JOB-1", "QUO-0001", "JOB-000%25"] {
        assert_eq!(only(&server, &format!("/jobs?job_number={number}")).await, [""; 0], "{number}");
    }
    assert_eq!(only(&server, "/jobs?job_number=JOB-0002&status=quoted").await.len(), 1);
    assert_eq!(only(&server, "/jobs?job_number=JOB-0002&status=invoiced").await, [""; 0]);
}

#[tokio::test]
async fn invoices_can_be_filtered_by_status_and_number() {
    let server = SeededServer::new();
    let invoice = server.id("invoice_id");
    assert_eq!(only(&server, "/invoices?number=INV-0001").await, [invoice.as_str()]);
    assert_eq!(only(&server, "/invoices?number=INV-0002").await, [""; 0]);
    let (tenant, id) = (server.tenant, invoice.parse().unwrap());
    for status in ["draft", "sent", "viewed", "partial", "paid"] {
        let done = server.store().write("step", (status, tenant, id), async |tx, &(status, tenant, id)| match status {
            "sent" => invoices::send(tx, tenant, id).await,
            "viewed" => invoices::view(tx, tenant, id).await,
            "partial" => {
                invoices::pay(tx, tenant, id, invoices::PaymentCreate::of(Decimal::parse("0.5").unwrap())).await
            }
            "paid" => invoices::pay(tx, tenant, id, invoices::PaymentCreate::default()).await,
            _ => svc_core::resources::crud::get(tx, tenant, id).await,
        });
        done.await.unwrap();
        for wanted in ["draft", "sent", "viewed", "partial", "paid", "overdue", "cancelled"] {
            let found = only(&server, &format!("/invoices?status={wanted}")).await;
            assert_eq!(found.len(), usize::from(wanted == status), "{wanted} when {status}");
        }
    }
}

#[tokio::test]
async fn updated_since_is_inclusive_to_the_nanosecond() {
    let server = SeededServer::new();
    add(&server, "jobs", 3).await;
    let all = walk(&server, "/jobs?updated_since=2026-03-14T00:00:00Z").await.concat();
    for (at, row) in all.iter().enumerate() {
        let time = row["updated_at"].as_str().unwrap();
        let from = |time: &str| format!("/jobs?updated_since={time}");
        assert_eq!(only(&server, &from(time)).await, ids(&all[at..]));
        // One nanosecond later excludes the row.
        assert_eq!(only(&server, &from(&time.replace('Z', "001Z"))).await, ids(&all[at + 1..]));
    }
}
