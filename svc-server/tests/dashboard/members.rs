//! Members: their forms in the settings, and what they see.

use http::header::LOCATION;
use http::{Method, StatusCode};
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Response, Server, encode};
use super::invoice_actions::hidden;

#[tokio::test]
async fn owners_manage_members() {
    let server = Server::start().await;
    let owner = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await;
    let members = || async { server.svc.account(server.tenant).members().list().await.unwrap() };
    for (form, error) in [
        (encode(&[("email", "<bob>"), ("role", "viewer")]), "The email address must be an email address such as"),
        (encode(&[("email", "bob@example.com"), ("role", "admin")]), "Choose one of the roles."),
        (encode(&[("email", "ADA@example.com"), ("role", "viewer")]), "ada@example.com is a member already."),
    ] {
        let refused = owner.post("/settings/members", &form).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains(error) && !refused.text.contains("<bob>"), "{error}: {}", refused.text);
    }
    let added = owner.post("/settings/members", &encode(&[("email", "Bob@example.com"), ("role", "viewer")])).await;
    assert_eq!(added.status, StatusCode::OK);
    let bob = members().await.remove(1);
    assert_eq!((bob.email.as_str(), bob.role), ("bob@example.com", Role::Viewer));
    assert!(owner.get("/settings").await.text.contains("bob@example.com"));
    assert!(!server.signed_in(Role::Developer).await.get("/settings").await.text.contains("bob@example.com"));

    let path = |action: &str| format!("/settings/members/{}/{action}", bob.id);
    assert_eq!(owner.post(&path("role"), "role=king").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(owner.post(&path("role"), "role=developer").await.status, StatusCode::SEE_OTHER);
    assert_eq!(members().await[1].role, Role::Developer);
    let own = format!("/settings/members/{}", members().await[0].id);
    for (action, form) in [("role", "role=viewer"), ("remove", "")] {
        let refused = owner.post(&format!("{own}/{action}"), form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("This is the last owner of the account."), "{}", refused.text);
    }
    assert_eq!(owner.post(&path("remove"), "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(members().await.len(), 1);
    let log = server.svc.account(server.tenant).audit_log().since(Timestamp::from_micros(0), 10).await.unwrap();
    let removed = log.iter().find(|entry| entry.object_kind == "member" && entry.action == "delete").unwrap();
    assert_eq!(removed.actor, "dashboard:ada@example.com");
}

/// Returns the token of the link that a page shows.
fn token(page: &Response) -> String {
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let token = page.text.split("http://localhost:8080/dashboard/sign-in?token=").nth(1).unwrap();
    token.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_owner_invites_a_member_by_a_link() {
    let server = Server::start().await;
    let owner = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await;
    let form = encode(&[("email", "Bob@example.com"), ("role", "viewer"), ("key", "a-key")]);
    let added = owner.post("/settings/members", &form).await;
    for text in ["Member added", "give it to bob@example.com alone", "once, within seven days"] {
        assert!(added.text.contains(text), "{text}: {}", added.text);
    }
    assert!(
        !added.text.contains("can sign in now") && !added.text.contains("can also sign in"),
        "there is no provider"
    );
    let link = token(&added);
    assert_eq!(token(&owner.post("/settings/members", &form).await), link, "a form that is sent twice invites once");

    let mut bob = server.browser();
    server.clock.advance(std::time::Duration::from_secs(6 * 24 * 60 * 60));
    assert_eq!(bob.sign_in(&link).await.status, StatusCode::SEE_OTHER);
    let again = server.browser().sign_in(&link).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert!(again.text.contains("The link was used already or has expired."), "{}", again.text);
    let settings = bob.get("/settings").await;
    assert!(settings.text.contains("bob@example.com") && settings.text.contains("this session"), "{}", settings.text);
    assert_eq!(bob.get("/switch").await.status, StatusCode::NOT_FOUND, "the address is not verified");

    // The role is that of the member at each request, and the audit log names the person.
    let account = server.svc.account(server.tenant);
    let member =
        account.members().list().await.unwrap().into_iter().find(|member| member.role == Role::Viewer).unwrap();
    account.members().set_role(member.id, Role::Developer).await.unwrap();
    assert_eq!(bob.post("/contacts/new", "email=eve%40example.com").await.status, StatusCode::SEE_OTHER);
    let log = account.audit_log().since(Timestamp::from_micros(0), 20).await.unwrap();
    let created = log.iter().find(|entry| entry.object_kind == "contact").unwrap();
    assert_eq!((created.action.as_str(), created.actor.as_str()), ("created", "dashboard:bob@example.com"));
    account.members().remove(member.id).await.unwrap();
    assert_eq!(bob.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_invitation_ends_after_seven_days_and_with_its_member() {
    let server = Server::start().await;
    let owner = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await;
    let late = token(&owner.post("/settings/members", "email=bob%40example.com&role=viewer").await);
    server.clock.advance(std::time::Duration::from_secs(7 * 24 * 60 * 60));
    let refused = server.browser().sign_in(&late).await;
    assert_eq!(refused.status, StatusCode::GONE);
    assert!(refused.text.contains("The link was used already or has expired. Ask for a new one."), "{}", refused.text);

    let owner = server.signed_in_member("ada@example.com", &[]).await;
    let account = server.svc.account(server.tenant);
    let bob = account.members().list().await.unwrap().into_iter().find(|member| member.role == Role::Viewer).unwrap();
    let path = format!("/settings/members/{}/link", bob.id);
    let page = owner.get("/settings").await.text;
    let link = token(&owner.post(&path, &hidden(&page, &path)).await);
    owner.post(&format!("/settings/members/{}/remove", bob.id), "").await;
    let refused = server.browser().sign_in(&link).await;
    assert_eq!(refused.status, StatusCode::GONE);
    assert!(refused.text.contains("bob@example.com is no longer a member of the account."), "{}", refused.text);
}

/// An owner can make a link for any address, and must not get into the other accounts of its person.
#[tokio::test]
async fn an_invitation_leads_to_one_account() {
    let server = Server::start().await;
    server.svc.account(server.other).members().add("bob@example.com".parse().unwrap(), Role::Owner).await.unwrap();
    let owner = server.signed_in(Role::Owner).await;
    let link = token(&owner.post("/settings/members", "email=bob%40example.com&role=viewer").await);
    let mut browser = server.browser();
    browser.sign_in(&link).await;
    assert!(browser.get("/").await.text.contains("Harbour Plumbing"));
    assert_eq!(browser.post(&format!("/switch/{}", server.other), "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/keys/new").await.status, StatusCode::FORBIDDEN);
    assert!(!browser.get("/").await.text.contains("Hill Electric"));
}

#[tokio::test]
async fn an_invitation_needs_an_email_address() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    for email in
        ["", "bob", "bob@", "<script>@example.com", "bob@example.com\r\nBcc: eve@example.com", "bob@example.com\0"]
    {
        let refused = owner.post("/settings/members", &encode(&[("email", email), ("role", "viewer")])).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{email:?}");
        assert!(!refused.text.contains("sign-in?token=") && !refused.text.contains("<script>@"), "{email:?}");
    }
    assert!(server.svc.account(server.tenant).members().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_member_of_several_accounts_chooses_one() {
    let server = Server::start().await;
    let accounts = [(server.tenant, Role::Owner), (server.other, Role::Viewer)];
    let browser = server.signed_in_member("ada@example.com", &accounts).await;
    assert_eq!(browser.get("/").await.headers[LOCATION], "/dashboard/switch");
    let list = browser.get("/switch").await.text;
    assert!(list.contains("Harbour Plumbing") && list.contains("Hill Electric"), "{list}");
    for (tenant, name, keys) in
        [(server.tenant, "Harbour Plumbing", StatusCode::OK), (server.other, "Hill Electric", StatusCode::FORBIDDEN)]
    {
        assert_eq!(browser.post(&format!("/switch/{tenant}"), "").await.status, StatusCode::SEE_OTHER);
        assert!(browser.get("/").await.text.contains(name));
        assert_eq!(browser.get("/keys/new").await.status, keys, "{name}");
    }
}

#[tokio::test]
async fn a_form_of_another_account_is_refused() {
    let server = Server::start().await;
    let accounts = [(server.tenant, Role::Owner), (server.other, Role::Owner)];
    let browser = server.signed_in_member("ada@example.com", &accounts).await;
    browser.post(&format!("/switch/{}", server.tenant), "").await;
    let form = format!("scopes=read&expires=30&csrf={}", browser.csrf().await);
    browser.post(&format!("/switch/{}", server.other), "").await;
    let refused = browser.send(Method::POST, "/keys/new", &form, Some("http://localhost:8080")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(server.svc.account(server.other).keys().list().await.unwrap(), []);
}

#[tokio::test]
async fn a_change_of_a_role_holds_from_the_next_request_on() {
    let server = Server::start().await;
    let browser = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await;
    let members = server.svc.account(server.tenant);
    let id = members.members().list().await.unwrap()[0].id;
    assert_eq!(browser.get("/keys/new").await.status, StatusCode::OK);
    members.members().set_role(id, Role::Viewer).await.unwrap();
    assert_eq!(browser.get("/keys/new").await.status, StatusCode::FORBIDDEN);
    members.members().remove(id).await.unwrap();
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
    // Who is added again signs in again.
    members.members().add("ada@example.com".parse().unwrap(), Role::Owner).await.unwrap();
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_member_signs_out_everywhere() {
    let server = Server::start().await;
    let here = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Viewer)]).await;
    let there = server.signed_in_member("ada@example.com", &[]).await;
    let elsewhere = server.signed_in_member("ada@example.com", &[(server.other, Role::Viewer)]).await;
    elsewhere.post(&format!("/switch/{}", server.other), "").await;
    let bob = server.signed_in_member("bob@example.com", &[(server.tenant, Role::Viewer)]).await;
    let link = |email: &str| DashboardLinkCreate::to_member(server.tenant, email.parse().unwrap());
    let by_link = server.signed_in_by(link("ada@example.com")).await;
    let bob_by_link = server.signed_in_by(link("bob@example.com")).await;
    assert!(here.get("/settings").await.text.contains("Sign out everywhere"));
    assert!(!server.signed_in(Role::Owner).await.get("/settings").await.text.contains("Sign out everywhere"));
    assert_eq!(here.post("/settings/sign-out-everywhere", "").await.headers[LOCATION], "/dashboard/sign-in");
    for ended in [&here, &there, &by_link] {
        assert_eq!(ended.get("/").await.status, StatusCode::UNAUTHORIZED);
    }
    for kept in [&elsewhere, &bob, &bob_by_link] {
        assert_eq!(kept.get("/").await.status, StatusCode::OK);
    }
}
