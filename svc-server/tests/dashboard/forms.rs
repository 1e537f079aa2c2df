//! Forms: what they change, who is recorded, and what they say to bad input.

use http::StatusCode;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use crate::browser::{Server, encode};

/// A text that must be shown as it is.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

#[tokio::test]
async fn a_key_is_shown_once_and_recorded_under_the_person() {
    let server = Server::start().await;
    let link = DashboardLinkCreate::to(server.tenant, Role::Owner).identity("ada@example.com");
    let owner = server.signed_in_by(link).await;
    let form = encode(&[("name", "Reports"), ("scopes", "write"), ("expires", "30"), ("signed", "on")]);
    let created = owner.post("/keys/new", &form).await;
    assert_eq!(created.status, StatusCode::OK);
    let shown = |start: &str| created.text.split(start).nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let key = shown("value=\"svc_live_").unwrap();
    let secret = shown("value=\"svcsig_").unwrap();
    let list = owner.get("/keys").await.text;
    assert!(list.contains("Reports") && !list.contains(&key) && !list.contains(&secret));
    let account = server.svc.tenant(server.tenant);
    let stored = account.keys().list().await.unwrap().remove(0);
    assert_eq!(stored.expires_at.unwrap().since(stored.created_at).as_secs(), 30 * 24 * 60 * 60);
    let log = account.audit_log().since(Timestamp::from_micros(0), 10).await.unwrap();
    let entry = log.iter().find(|entry| entry.object_kind == "key").unwrap();
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("dashboard:ada@example.com", "create"));

    let revoked = owner.post(&format!("/keys/{}/revoke", stored.id), "").await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER);
    assert!(account.keys().get(stored.id).await.unwrap().revoked_at.is_some());
    assert!(owner.get("/keys?notice=key-revoked").await.text.contains("The key was revoked."));
}

#[tokio::test]
async fn a_key_is_rotated_with_an_overlap() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.tenant(server.tenant);
    let old = account.keys().create(KeyCreate::default()).await.unwrap().key;
    let rotated = owner.post(&format!("/keys/{}/rotate", old.id), "overlap=1").await;
    assert!(rotated.text.contains("value=\"svc_live_"), "{}", rotated.text);
    let old = account.keys().get(old.id).await.unwrap();
    assert_eq!(old.expires_at, server.svc.store().env().now().checked_add(std::time::Duration::from_secs(60 * 60)));
    let bad = owner.post(&format!("/keys/{}/rotate", old.id), "overlap=x").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn bad_input_is_shown_again_with_its_error() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let long = HOSTILE.repeat(20);
    for (form, errors) in [
        (encode(&[("name", &long), ("scopes", "read"), ("expires", "30")]), &["at most 300 characters"][..]),
        (encode(&[("name", "a\nb"), ("scopes", "read")]), &["one line"]),
        (
            encode(&[("name", HOSTILE), ("scopes", "all"), ("expires", "1")]),
            &["Choose what the key may do", "Choose one"],
        ),
        (String::new(), &["Choose what the key may do"]),
    ] {
        let again = owner.post("/keys/new", &form).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
        for error in errors {
            assert!(again.text.contains(error), "{error}: {}", again.text);
        }
        assert!(again.text.contains("aria-invalid=\"true\"") && !again.text.contains("<script>alert"));
    }
    let again = owner.post("/keys/new", &encode(&[("name", HOSTILE), ("scopes", "x")])).await.text;
    assert!(
        again.contains("value=\"&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{202e}\""),
        "nothing is lost: {again}"
    );
    assert!(server.svc.tenant(server.tenant).keys().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn hostile_names_are_shown_as_text() {
    let server = Server::start().await;
    let account = server.svc.tenant(server.tenant);
    account.change_settings(|tenant| tenant.name = HOSTILE.repeat(400)).await.unwrap();
    account.keys().create(KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() }).await.unwrap();
    let link = DashboardLinkCreate::to(server.tenant, Role::Owner).identity(HOSTILE);
    let owner = server.signed_in_by(link).await;
    for path in ["/", "/keys", "/keys/new"] {
        let page = owner.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text.contains("&lt;script&gt;alert(1)") && !page.text.contains("<script>alert"), "{path}");
    }
}
