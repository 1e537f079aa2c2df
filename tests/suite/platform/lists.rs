//! Lists: their pages, their filters and the search.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::values::{TenantId, parse_uuid};

use super::{PlatformServer, one_of_each, send};

#[tokio::test]
async fn the_list_of_each_kind_of_record_is_searched() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    one_of_each(&fixture, &fixture.account("Other").await).await;
    let ids = one_of_each(&fixture, &account).await;
    let list = async |path: &str| fixture.call(&Method::GET, &format!("/accounts/{account}/{path}"), None, &[]).await;
    for (collection, text) in [
        ("contacts", "ADA@example.com"),
        ("invoices", "inv-0001"),
        ("quotes", "quo-0"),
        ("bookings", "drain"),
        ("jobs", "fix%20tap"),
    ] {
        let found = list(&format!("{collection}?search={text}")).await.body;
        // A record is in the same form as in the whole list.
        assert_eq!(found, list(collection).await.body);
        assert_eq!(found["data"][0]["id"], ids[collection]);
        let nothing = list(&format!("{collection}?search=nothing")).await.body;
        assert_eq!(nothing, json!({ "data": [], "next_cursor": null }));
        for other in ["cursor=0195a3c8-8a00-8000-8000-0000000000ff", "updated_since=2026-01-01T00:00:00Z"] {
            let refused = list(&format!("{collection}?search={text}&{other}")).await;
            let field = other.split('=').next().unwrap();
            let error = format!("{field} cannot be combined with search.");
            assert_eq!((refused.code(), &refused.body["error"]), ("validation_failed", &json!(error)));
        }
    }
    assert_eq!(list("invoices?search=inv-0001&status=paid").await.body["data"], json!([]));
    assert_eq!(list("webhooks?search=ada").await.body["errors"][0]["code"], "unknown_field");
    let tenant = TenantId(parse_uuid(&account).unwrap());
    let key = KeyCreate { name: None, ..KeyCreate::default() };
    let key = fixture
        .svc
        .store()
        .write("test", (tenant, key), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await);
    let key = key.await.unwrap();
    let path = "/api/v1/contacts?search=ada";
    let public = send(&fixture.public, key.text.reveal(), &Method::GET, path, None, &[]).await;
    assert_eq!(public.body["errors"][0]["code"], "unknown_field", "only the platform API searches");
}

#[tokio::test]
async fn deliveries_are_listed_until_a_time() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    one_of_each(&fixture, &account).await;
    let path = format!("/accounts/{account}/deliveries");
    let all = fixture.call(&Method::GET, &path, None, &[]).await.body["data"].as_array().unwrap().clone();
    assert!(all.len() > 3);
    // The newest event is not before its own time.
    let until = all[0]["created_at"].as_str().unwrap();
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = fixture.call(&Method::GET, &format!("{path}?until={until}&limit=2{cursor}"), None, &[]).await;
        found.extend(page.body["data"].as_array().unwrap().clone());
        let Some(next) = page.body["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, all[1..]);
}

#[tokio::test]
async fn lists_return_everything_once_in_pages() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("One").await;
    for name in ["Two", "Three", "Four"] {
        fixture.account(name).await;
    }
    one_of_each(&fixture, &account).await;
    let webhook = json!({ "url": "https://127.0.0.1/more", "events": ["*"] });
    fixture.post(&format!("/accounts/{account}/webhooks"), webhook).await;
    for number in 0..4 {
        let data = json!({ "id": number });
        let event = json!({ "kind": "stay.created", "data": data });
        fixture.post(&format!("/accounts/{account}/events"), event).await;
    }
    let paths = ["events", "deliveries", "deliveries?status=pending", "audit-log"];
    let paths = paths.map(|list| format!("/accounts/{account}/{list}"));
    for path in paths.iter().map(String::as_str).chain(["/accounts"]) {
        let separator = if path.contains('?') { '&' } else { '?' };
        let whole = fixture.call(&Method::GET, &format!("{path}{separator}limit=200"), None, &[]).await;
        let all = whole.body["data"].as_array().unwrap().clone();
        assert!(all.len() >= 4 && whole.body["next_cursor"].is_null(), "{path}: {}", whole.body);
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = fixture.call(&Method::GET, &format!("{path}{separator}limit=2{cursor}"), None, &[]).await;
            paged.extend(page.body["data"].as_array().unwrap().clone());
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let sorted = |rows: &[Value]| rows.iter().map(|row| row["id"].to_string()).collect::<BTreeSet<_>>();
        assert_eq!((paged.len(), sorted(&paged)), (all.len(), sorted(&all)), "{path}");
    }
}
