//! The search field finds records of the account that is shown.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Server, encode};

#[tokio::test]
async fn what_is_found_alone_is_shown_and_others_are_listed_by_kind() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@find.example", "Ada").await;
    let browser = server.signed_in(Role::Viewer).await;
    let find = async |text: &str| browser.get(&format!("/find?{}", encode(&[("q", text)]))).await;

    let only = find("ADA@find").await;
    assert_eq!(only.status, StatusCode::SEE_OTHER);
    assert_eq!(only.headers[LOCATION], format!("/dashboard/contacts/{}", ada.id));

    let hostile = server.named_contact("b@find.example", "<img src=x>").await;
    server.of(server.other).named_contact("c@find.example", "Elsewhere").await;
    let both = find("find.example").await.text;
    for hit in [&ada, &hostile] {
        assert!(both.contains(&format!("href=\"/dashboard/contacts/{}\"", hit.id)), "{both}");
    }
    assert!(both.contains("&lt;img src=x&gt;") && !both.contains("<img src=x>"), "{both}");
    assert!(both.contains("value=\"find.example\"") && both.contains("<h2>Contacts</h2>"), "{both}");
    assert!(!both.contains("Elsewhere") && !both.contains("<h2>Jobs</h2>"), "{both}");

    for text in ["", "zz", "nobody has this", "\" OR 1=1 --"] {
        let nothing = find(text).await;
        assert_eq!(nothing.status, StatusCode::OK, "{text}");
        assert!(nothing.text.contains("Nothing found"), "{}", nothing.text);
    }
    let long = find(&"x".repeat(300)).await;
    assert!(long.text.contains("Nothing found"), "{}", long.text);
}

#[tokio::test]
async fn pages_actions_webhooks_and_keys_are_found_by_who_has_them() {
    let server = Server::start().await;
    let hook = server.webhook("https://hooks.example.com/crm", "*").await;
    let key = server
        .svc
        .account(server.tenant)
        .keys()
        .create(KeyCreate { name: Some("Nightly sync".to_owned()), ..KeyCreate::default() })
        .await
        .unwrap();
    let found = async |role, text: &str| {
        let browser = server.signed_in(role).await;
        browser.get(&format!("/find/all?{}", encode(&[("q", text)]))).await.text
    };
    let item = |path: &str, title: &str, detail: &str| {
        format!("<ul><li><a href=\"/dashboard{path}\">{title}</a> <span class=\"soft\">{detail}</span></li></ul>")
    };
    assert_eq!(found(Role::Viewer, "audit").await, item("/audit", "Audit log", ""));
    assert_eq!(found(Role::Developer, "NEW inv").await, item("/invoices/new", "New invoice", ""));
    assert_eq!(found(Role::Owner, "new api").await, item("/keys/new", "New API key", ""));
    for (role, hidden) in [(Role::Viewer, "new inv"), (Role::Developer, "new api"), (Role::Viewer, "sandbox")] {
        assert_eq!(found(role, hidden).await, "<ul></ul>", "{role} {hidden}");
    }
    let webhook = item(&format!("/webhooks/{}", hook.id), "https://hooks.example.com/crm", "");
    assert_eq!(found(Role::Viewer, "example.com/CRM").await, webhook);
    let prefix = key.key.prefix.as_str();
    assert_eq!(found(Role::Viewer, "nightly").await, item("/keys", "Nightly sync", prefix));
    assert_eq!(found(Role::Viewer, prefix).await, item("/keys", "Nightly sync", prefix));
    let browser = server.signed_in(Role::Viewer).await;
    assert_eq!(browser.get("/find?q=audit").await.headers[LOCATION], "/dashboard/audit");
    let several = browser.get("/find?q=a").await.text;
    assert!(several.contains("<h2>Pages and actions</h2>") && several.contains(">API keys</a>"), "{several}");
}

#[tokio::test]
async fn deliveries_and_events_are_found_by_their_ids_and_by_the_number_of_their_record() {
    let server = Server::start().await;
    let hook = server.webhook("https://hooks.example.com/crm", "*").await;
    let invoice = server.invoice(None, "5").await;
    let account = server.svc.account(server.tenant);
    let delivery = account.deliveries().list(DeliveryFilter::default()).await.unwrap().remove(0);
    let browser = server.signed_in(Role::Viewer).await;
    let found = async |id: String| browser.get(&format!("/find?q={id}")).await.headers[LOCATION].clone();
    assert_eq!(found(delivery.id.to_string()).await, format!("/dashboard/deliveries/{}", delivery.id));
    assert_eq!(found(delivery.event_id.to_string()).await, format!("/dashboard/events/{}", delivery.event_id));
    let foreign = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Viewer)).await;
    assert!(foreign.get(&format!("/find?q={}", delivery.id)).await.text.contains("Nothing found"));

    for page in ["/events", "/deliveries"] {
        for record in [invoice.id.to_string(), "inv-0001".to_owned()] {
            let page = browser.get(&format!("{page}?record={record}")).await.text;
            assert!(page.contains("invoice.created"), "{page}");
        }
        let none = browser.get(&format!("{page}?record=INV-0002")).await.text;
        assert!(!none.contains(">invoice.created</a>"), "{none}");
    }
    assert_eq!(hook.id, delivery.subscription_id);
}
