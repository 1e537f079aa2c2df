//! The sandbox of an account, as the people of the account use it.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::prelude::*;

use super::browser::{Browser, Server, encode};
use super::endpoint_forms::hidden;

/// Creates the sandbox of the first account, and returns its id.
async fn sandbox(server: &Server) -> TenantId {
    server.svc.account(server.tenant).sandbox().create().await.unwrap().sandbox.id
}

async fn contacts(server: &Server, tenant: TenantId) -> usize {
    let list = server.svc.account(tenant).contacts().list(ContactFilter::default(), ListParams::default());
    list.await.unwrap().data.len()
}

/// Sends a form and returns where it leads.
async fn follow(browser: &Browser<'_>, path: &str) -> String {
    let response = browser.post(path, "").await;
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{path}: {}", response.text);
    response.headers[LOCATION].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_developer_creates_opens_resets_and_deletes_the_sandbox() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Developer).await;
    let page = browser.get("/settings/sandbox").await.text;
    assert!(page.contains("No sandbox yet") && !page.contains("Open the sandbox"), "{page}");

    let created = browser.post("/settings/sandbox/create", "").await.text;
    assert!(created.contains("Sandbox created") && created.contains("Authorization: Bearer svc_test_"), "{created}");
    let id = server.svc.account(server.tenant).sandbox().find().await.unwrap().unwrap().id;
    let again = browser.post("/settings/sandbox/create", "").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("The account has a sandbox already.") && !again.text.contains("svc_test_4"));

    assert!(!browser.get("/").await.text.contains("Sandbox of "));
    assert_eq!(follow(&browser, "/settings/sandbox/open").await, "/dashboard/");
    for path in ["/", "/contacts", "/webhooks", "/keys", "/settings", "/settings/sandbox"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text.contains("Sandbox of <b>Harbour Plumbing</b>"), "{path}: {}", page.text);
        assert!(page.text.contains("Leave the sandbox"), "{path}");
    }
    assert!(browser.get("/contacts").await.text.contains("mia.torres@example.com"));
    assert!(!browser.get("/settings").await.text.contains("Add member"), "it has the members of the account");

    browser.post("/contacts/new", "email=eve%40example.com").await;
    assert_eq!((contacts(&server, id).await, contacts(&server, server.tenant).await), (4, 0));
    let reset = follow(&browser, "/settings/sandbox/reset").await;
    assert_eq!(reset, "/dashboard/settings/sandbox?notice=sandbox-reset");
    assert_eq!(contacts(&server, id).await, 3);

    follow(&browser, "/settings/sandbox/leave").await;
    let page = browser.get("/settings/sandbox").await.text;
    assert!(!page.contains("Sandbox of ") && page.contains("Open the sandbox"), "{page}");
    follow(&browser, "/settings/sandbox/open").await;
    follow(&browser, "/settings/sandbox/delete").await;
    let page = browser.get("/settings/sandbox?notice=sandbox-deleted").await.text;
    assert!(page.contains("The sandbox was deleted.") && page.contains("No sandbox yet"), "{page}");
    assert_eq!(server.svc.accounts().get(id).await, Err(Error::UnknownTenant(id)));
    let log = server.svc.account(server.tenant).audit_log().since(Timestamp::from_micros(0), 20).await.unwrap();
    let reset = log.iter().find(|entry| entry.action == "reset").unwrap();
    assert_eq!((reset.actor.as_str(), reset.object_id), ("dashboard:developer@link", id.0));
}

/// A double click sends the form twice, and the person sees the second response.
#[tokio::test]
async fn a_sandbox_is_created_once_by_a_form_that_is_sent_twice() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Developer).await;
    let page = browser.get("/settings/sandbox").await.text;
    let fields = encode(&[("key", hidden(&page, "key"))]);
    let create = async || {
        let created = browser.post("/settings/sandbox/create", &fields).await;
        assert_eq!(created.status, StatusCode::OK, "{}", created.text);
        let shown = created.text.split("Bearer svc_test_").nth(1).unwrap();
        shown[..40].to_owned()
    };
    assert_eq!(create().await, create().await, "the same key");
    let sandbox = server.svc.account(server.tenant).sandbox().find().await.unwrap().unwrap().id;
    assert_eq!(server.svc.account(sandbox).keys().list().await.unwrap().len(), 1);
    assert_eq!(contacts(&server, sandbox).await, 3);
}

#[tokio::test]
async fn a_form_of_the_sandbox_changes_nothing_of_the_account() {
    let server = Server::start().await;
    sandbox(&server).await;
    let browser = server.signed_in(Role::Owner).await;
    follow(&browser, "/settings/sandbox/open").await;
    let in_sandbox = browser.csrf().await;
    follow(&browser, "/settings/sandbox/leave").await;
    let refused = browser.send_form("/contacts/new", "email=eve%40example.com", &in_sandbox).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert_eq!(contacts(&server, server.tenant).await, 0);
}

#[tokio::test]
async fn who_is_let_into_the_sandbox_alone_sees_nothing_of_the_account() {
    let server = Server::start().await;
    let id = sandbox(&server).await;
    let browser = server.signed_in_by(DashboardLinkCreate::to(id, Role::Owner)).await;
    let page = browser.get("/").await.text;
    assert!(page.contains("Sandbox of <b>Harbour Plumbing</b>") && !page.contains("Leave the sandbox"), "{page}");
    assert!(!page.contains("/settings/sandbox"), "no link leads to what it cannot see: {page}");
    assert_eq!(browser.get("/settings/sandbox").await.status, StatusCode::NOT_FOUND);
    for action in ["create", "reset", "delete", "open"] {
        let refused = browser.post(&format!("/settings/sandbox/{action}"), "").await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{action}");
    }
    follow(&browser, "/settings/sandbox/leave").await;
    assert!(browser.get("/").await.text.contains("Sandbox of "), "it still shows the sandbox");
    assert_eq!(contacts(&server, id).await, 3);
}

#[tokio::test]
async fn a_member_has_the_same_role_in_the_sandbox() {
    let server = Server::start().await;
    let id = sandbox(&server).await;
    let browser = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Developer)]).await;
    let list = browser.get("/switch").await.text;
    assert!(!list.contains("(sandbox)"), "a sandbox is none of the person's accounts: {list}");
    follow(&browser, "/settings/sandbox/open").await;
    assert_eq!(browser.get("/contacts/new").await.status, StatusCode::OK);
    let members = server.svc.account(server.tenant).members().list().await.unwrap();
    server.svc.account(server.tenant).members().set_role(members[0].id, Role::Viewer).await.unwrap();
    assert_eq!(browser.get("/contacts/new").await.status, StatusCode::FORBIDDEN);
    assert!(browser.get("/contacts").await.text.contains("Leave the sandbox"));
    let refused = server.svc.account(id).members().add("bob@example.com".parse().unwrap(), Role::Owner).await;
    assert!(matches!(refused, Err(Error::NotAllowed(_))), "{refused:?}");
    follow(&browser, "/settings/sandbox/leave").await;
    assert!(!browser.get("/contacts").await.text.contains("Sandbox of "));
}

#[tokio::test]
async fn operators_find_a_sandbox_at_its_account() {
    let server = Server::start().await;
    let id = sandbox(&server).await;
    let browser = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let list = browser.get("/accounts").await.text;
    assert!(list.contains("Harbour Plumbing") && !list.contains(&id.to_string()), "{list}");
    let page = browser.get(&format!("/accounts/{}", server.tenant)).await.text;
    assert!(page.contains(&format!("/accounts/{id}")), "{page}");
    let page = browser.get(&format!("/accounts/{id}")).await.text;
    assert!(page.contains("Sandbox of") && !page.contains("Withdraw access"), "{page}");
    let refused = browser.post(&format!("/accounts/{id}/access"), "access=suspended").await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    browser.post(&format!("/accounts/{id}/view"), "").await;
    let page = browser.get("/contacts").await.text;
    assert!(page.contains("Sandbox of <b>Harbour Plumbing</b>") && !page.contains("Leave the sandbox"), "{page}");
    browser.post("/accounts/leave", "").await;
    let suspended = browser.post(&format!("/accounts/{}/access", server.tenant), "access=suspended").await;
    assert_eq!(suspended.status, StatusCode::SEE_OTHER);
    let sandbox = server.svc.accounts().get(id).await.unwrap();
    assert_eq!(sandbox.developer_access, DeveloperAccess::Suspended);
}

#[tokio::test]
async fn deliveries_of_the_sandbox_are_not_found_in_the_account() {
    let server = Server::start().await;
    let id = sandbox(&server).await;
    let webhooks = server.svc.account(id).webhooks();
    let url = "https://example.com/hook".parse().unwrap();
    webhooks.create(WebhookCreate::new(url, EventSet::All)).await.unwrap();
    server.svc.account(server.tenant).sandbox().reset().await.unwrap();
    let filter = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
    let delivery = server.svc.account(id).deliveries().list(filter).await.unwrap().remove(0);
    let browser = server.signed_in(Role::Viewer).await;
    let page = browser.get(&format!("/deliveries/{}", delivery.id)).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND, "nothing of the sandbox is seen in the account");
}
