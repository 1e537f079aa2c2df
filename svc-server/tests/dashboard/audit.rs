//! The filters of the audit log, and its file.

use http::StatusCode;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::Server;
use super::records::{many_contacts, rows};

/// Returns the changes on a page as the first words of their rows.
async fn found(server: &Server, query: &str) -> Vec<String> {
    let viewer = server.signed_in_by(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
    let page = viewer.get(&format!("/audit?{query}")).await.text;
    let words = |row: String| row.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let rows = rows(&page).into_iter().map(words);
    rows.filter(|row| !row.contains("session") && !row.contains("dashboard")).collect()
}

#[tokio::test]
async fn the_audit_log_is_filtered_by_actor_object_and_time() {
    let server = Server::start().await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.time_zone = TimeZone::parse("Australia/Sydney").unwrap()).await.unwrap();
    let key = KeyCreate { name: Some("CI".to_owned()), ..KeyCreate::default() };
    let key = account.keys().create(key).await.unwrap().key;
    account.members().add("bob@example.com".parse().unwrap(), Role::Owner).await.unwrap();
    server.clock.advance(std::time::Duration::from_secs(2 * 24 * 60 * 60));
    let ada = server.acting_as(Actor::Key(key.id)).contact("ada@example.com").await.id;
    server.acting_as(Actor::Dashboard("bob@example.com".to_owned())).invoice(None, "5").await;
    let eve = server.of(server.other).contact("eve@example.com").await.id;
    let (contact, invoice) = ("created contact ada@example.com", "created invoice INV-0001");
    for (query, want) in [
        (format!("actor=key:{}", key.id), &[contact][..]),
        ("actor=dashboard:bob%40example.com".to_owned(), &[invoice]),
        ("actor=sender".to_owned(), &[]),
        ("kind=contact".to_owned(), &[contact]),
        ("kind=key".to_owned(), &["created key CI"]),
        ("kind=key&actor=sender".to_owned(), &[]),
        (format!("object={ada}"), &[contact]),
        (format!("object={}", key.id), &["created key CI"]),
        (format!("object={eve}"), &[]),
        // The key was created on March 15 in Sydney, which was March 14 in UTC.
        ("kind=key&since=2026-03-15&until=2026-03-15".to_owned(), &["created key CI"]),
        ("kind=key&until=2026-03-14".to_owned(), &[]),
        ("kind=contact&within=24h".to_owned(), &[contact]),
        ("kind=key&within=24h".to_owned(), &[]),
    ] {
        assert_eq!(found(&server, &query).await, want, "{query}");
    }
    let viewer = server.signed_in(Role::Viewer).await;
    let page = viewer.get("/audit").await.text;
    assert!(!page.contains("eve@example.com"), "{page}");
    for option in [
        format!("<option value=\"key:{}\">CI (key)</option>", key.id),
        "<option value=\"dashboard:bob@example.com\">bob@example.com</option>".to_owned(),
        "<option value=\"system\">the service</option>".to_owned(),
    ] {
        assert!(page.contains(&option), "{option}: {page}");
    }
    assert_eq!(viewer.get("/audit?object=INV-0001").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn each_link_of_the_audit_log_leads_to_a_page() {
    let server = Server::start().await;
    let hook = server.webhook("https://hooks.example.com/crm", "*").await;
    server.svc.account(server.tenant).webhooks().send_test(hook.id, None).await.unwrap();
    server.contact("ada@example.com").await;
    let app = server.app(Some(server.tenant), "Planner").await;
    server.connect(server.tenant, &app).await;
    let owner = server.signed_in(Role::Owner).await;
    let page = owner.get("/audit").await.text;
    let links: Vec<&str> = page.split("href=\"/dashboard").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let events = links.iter().filter(|link| link.starts_with("/events/")).count();
    assert_eq!(events, 2, "{links:?}");
    for link in links.into_iter().filter(|link| !link.starts_with("/assets")) {
        let status = owner.get(&link.replace("&amp;", "&")).await.status;
        assert!(status < 400, "{link}: {status}");
    }
}

#[tokio::test]
async fn what_an_assistant_changed_is_among_the_changes_of_its_key_and_names_the_tool() {
    let server = Server::start().await;
    let account = server.svc.account(server.tenant);
    let key = KeyCreate { name: Some("CI".to_owned()), ..KeyCreate::default() };
    let key = account.keys().create(key).await.unwrap().key;
    let tool = Actor::Tool { client: Box::new(Actor::Key(key.id)), tool: "create_contact".to_owned() };
    server.acting_as(tool).contact("ada@example.com").await;
    server.acting_as(Actor::Key(key.id)).contact("bob@example.com").await;
    let [by_tool, by_bob] = ["created contact ada@example.com", "created contact bob@example.com"];
    for (query, want) in [
        (format!("actor=key:{}", key.id), &[by_bob, by_tool][..]),
        (format!("actor=key:{}/create_contact", key.id), &[by_tool]),
        (format!("actor=key:{}/delete_contact", key.id), &[]),
    ] {
        assert_eq!(found(&server, &query).await, want, "{query}");
    }
    let viewer = server.signed_in(Role::Viewer).await;
    let page = viewer.get("/audit").await.text;
    assert!(page.contains("API key, with <code>create_contact</code>"), "{page}");
    let file = viewer.get("/audit?kind=contact&format=csv").await.text;
    assert!(file.contains(&format!(",key:{}/create_contact,CI with create_contact,created", key.id)), "{file}");
}

#[tokio::test]
async fn the_file_of_the_audit_log_has_what_the_filters_show() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let svc = server.svc.acting_as(Actor::Dashboard("=ada@example.com".to_owned()));
    let contacts = svc.account(server.tenant).contacts();
    let eve = contacts.create(ContactCreate::new("eve@example.com".parse().unwrap())).await.unwrap();
    let mut change = ContactUpdate::default();
    change.details.city = Patch::Set(Some(Text::parse("Perth").unwrap()));
    let changed = contacts.update(eve.id, change).await.unwrap();
    server
        .svc
        .account(server.other)
        .contacts()
        .create(ContactCreate::new("x@example.com".parse().unwrap()))
        .await
        .unwrap();
    let events = svc.account(server.tenant).events().newest(eve.created_at, 2).await.unwrap();
    let response = viewer.get("/audit?kind=contact&format=csv").await;
    assert_eq!(response.headers["content-disposition"], "attachment; filename=\"audit-log.csv\"");
    let start = "dashboard:=ada@example.com,'=ada@example.com";
    let want = format!(
        "\u{feff}at,actor,who,action,object_kind,object_id,object,changes,events\r\n\
         {},{start},updated,contact,{},eve@example.com,city none → Perth,{}\r\n\
         {},{start},created,contact,{},eve@example.com,,{}\r\n",
        changed.updated_at, eve.id, events[0].id, eve.created_at, eve.id, events[1].id,
    );
    assert_eq!(response.text, want);
}

#[tokio::test]
async fn the_file_of_the_audit_log_has_all_changes_however_many() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    many_contacts(&server, 5_050).await;
    let file = viewer.get("/audit?kind=contact&format=csv").await.text;
    let mut objects: Vec<&str> = file.lines().skip(1).filter_map(|row| row.split(',').nth(6)).collect();
    objects.reverse();
    let want: Vec<String> = (0..5_050).map(|number| format!("c{number}@example.com")).collect();
    assert_eq!(objects, want, "each once, the newest first");
}

#[tokio::test]
async fn a_filter_that_finds_little_says_how_far_it_looked() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    account.keys().create(KeyCreate { name: Some("CI".to_owned()), ..KeyCreate::default() }).await.unwrap();
    server.clock.advance(std::time::Duration::from_secs(1));
    for number in 0..2_100 {
        server.contact(&format!("c{number}@example.com")).await;
    }
    let first = viewer.get("/audit?kind=key").await.text;
    assert!(
        first.contains("Nothing found so far") && first.contains("These are from the newest 2,000 changes"),
        "{first}"
    );
    let older = first.split("/dashboard/audit?kind=key&amp;before=").nth(1).unwrap().split('"').next().unwrap();
    let second = viewer.get(&format!("/audit?kind=key&before={older}")).await.text;
    assert_eq!(rows(&second).len(), 1, "{second}");
    assert!(!second.contains("These are from"), "{second}");
}
