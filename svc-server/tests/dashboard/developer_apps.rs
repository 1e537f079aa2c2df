//! Developer apps: those that an account makes, and their secrets.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::apps::{App, AppId, AppUpdate};
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::values::RedirectUri;

use super::browser::{Server, encode};
use super::endpoint_forms::hidden;

const URI: &str = "https://planner.example/callback";

async fn apps(server: &Server) -> Vec<App> {
    server.svc.apps().list(Some(server.tenant)).await.unwrap()
}

/// Returns the value of a field that is shown once.
fn shown<'p>(page: &'p str, id: &str) -> Option<&'p str> {
    let (_, rest) = page.split_once(&format!("id=\"{id}\" type=\"text\" readonly value=\""))?;
    rest.split('"').next()
}

fn form<'f>(other: &[(&'f str, &'f str)]) -> String {
    let mut fields = vec![
        ("name", "Route Planner"),
        ("website", "https://planner.example"),
        ("redirect_uris", URI),
        ("kind", "confidential"),
        ("scopes", "write"),
        ("disconnect_url", ""),
    ];
    fields.retain(|(name, _)| !other.iter().any(|(known, _)| known == name));
    fields.extend(other);
    encode(&fields)
}

#[tokio::test]
async fn an_owner_makes_an_app_whose_secret_is_shown_once() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    assert!(owner.get("/developer-apps").await.text.contains("No apps yet"));
    let uris = "\r\n https://planner.example/callback \r\n\r\nhttp://127.0.0.1/callback\r\n";
    let more = [("redirect_uris", uris), ("disconnect_url", "https://planner.example/gone")];
    let created = owner.post("/developer-apps/new", &form(&more)).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    let app = apps(&server).await.remove(0);
    let now = server.svc.store().env().now();
    assert_eq!(shown(&created.text, "client-id"), Some(app.client_id.as_str()));
    assert!(app.has_secret(shown(&created.text, "client-secret").unwrap(), now));
    assert!(shown(&created.text, "signing-secret").is_some_and(|secret| secret.starts_with("whsec_")));
    let uris: Vec<&str> = app.redirect_uris.iter().map(RedirectUri::as_str).collect();
    assert_eq!((app.name.as_str(), uris), ("Route Planner", vec![URI, "http://127.0.0.1/callback"]));
    assert!(app.confidential && app.writes() && app.created_by.starts_with("dashboard:"), "{app:?}");
    for path in ["/developer-apps", &format!("/developer-apps/{}", app.id)] {
        let page = owner.get(path).await.text;
        assert!(page.contains("Route Planner") && !page.contains("svc_ocs_"), "{page}");
    }
    let page = owner.get(&format!("/developer-apps/{}", app.id)).await.text;
    assert!(page.contains("<code>https://svc.example/oauth/token</code>"), "{page}");

    let public =
        owner.post("/developer-apps/new", &form(&[("name", "Desk"), ("kind", "public"), ("scopes", "read")])).await;
    assert!(public.text.contains("It is no secret.") && shown(&public.text, "client-secret").is_none());
    let app = apps(&server).await.into_iter().find(|app| app.name.as_str() == "Desk").unwrap();
    assert!(!app.confidential && !app.writes());
    assert!(!owner.get(&format!("/developer-apps/{}", app.id)).await.text.contains("Rotate secret"));
}

#[tokio::test]
async fn a_refused_form_says_what_is_wrong_and_keeps_what_was_typed() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let eleven: Vec<String> = (0..11).map(|at| format!("{URI}/{at}")).collect();
    let eleven = eleven.join("\n");
    let twice = format!("{URI}\n{URI}");
    let second = format!("{URI}\nhttp://planner.example/");
    let cases = [
        ("name", "", "The name must not be empty."),
        ("website", "ftp://<b>", "The website must be"),
        ("redirect_uris", " ", "There must be at least one URI."),
        ("redirect_uris", eleven.as_str(), "There can be at most 10 URIs."),
        ("redirect_uris", twice.as_str(), "URI 2 is repeated."),
        ("redirect_uris", second.as_str(), "URI 2 must use https; http is for 127.0.0.1"),
        ("redirect_uris", "https://*.planner.example/", "URI 1 must have no fragment"),
        ("kind", "<b>", "Choose where the app runs."),
        ("scopes", "", "Choose what the app may ask for."),
        ("disconnect_url", "http://10.0.0.1/", "https"),
    ];
    for (field, value, error) in cases {
        let refused = owner.post("/developer-apps/new", &form(&[(field, value)])).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{field} {value}");
        assert!(refused.text.contains(error) && !refused.text.contains("<b>"), "{field} {value}: {}", refused.text);
        assert!(field == "name" || refused.text.contains("value=\"Route Planner\""), "{field}");
    }
    assert!(apps(&server).await.is_empty());
}

#[tokio::test]
async fn an_owner_changes_an_app_and_its_secret() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let created = owner.post("/developer-apps/new", &form(&[])).await;
    let first = shown(&created.text, "client-secret").unwrap().to_owned();
    let id = apps(&server).await[0].id;
    let app = || async { server.svc.apps().get(id).await.unwrap() };
    let path = |action: &str| format!("/developer-apps/{id}/{action}");
    let edit = owner.get(&path("edit")).await.text;
    assert!(
        edit.contains(">\nhttps://planner.example/callback</textarea>") && !edit.contains("name=\"kind\""),
        "{edit}"
    );
    assert!(edit.contains("<option value=\"write\" selected>"), "{edit}");

    let change = form(&[("name", "Planner"), ("website", ""), ("scopes", "read")]);
    let changed = owner.post(&path("edit"), &change).await;
    assert_eq!(changed.headers[LOCATION], format!("/dashboard/developer-apps/{id}?notice=saved").as_str());
    let now = app().await;
    assert_eq!((now.name.as_str(), now.website.clone(), now.writes()), ("Planner", None, false));
    let refused = owner.post(&path("edit"), &form(&[("redirect_uris", "")])).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let with_url = owner.post(&path("edit"), &form(&[("disconnect_url", "https://planner.example/gone")])).await;
    assert!(shown(&with_url.text, "signing-secret").is_some() && shown(&with_url.text, "client-secret").is_none());

    assert_eq!(owner.post(&path("rotate"), "overlap=5").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let rotated = owner.post(&path("rotate"), "overlap=24").await;
    let second = shown(&rotated.text, "client-secret").unwrap();
    let now = || server.svc.store().env().now();
    assert!(app().await.has_secret(&first, now()) && app().await.has_secret(second, now()));
    assert!(owner.get(&format!("/developer-apps/{id}")).await.text.contains("the one before is taken as well until"));
    server.clock.advance(std::time::Duration::from_secs(24 * 60 * 60));
    assert!(!app().await.has_secret(&first, now()) && app().await.has_secret(second, now()));

    // The session has ended meanwhile.
    let owner = server.signed_in(Role::Owner).await;
    owner.post(&path("disable"), "").await;
    assert!(app().await.disabled_at.is_some());
    assert!(owner.get("/developer-apps").await.text.contains("disabled"));
    owner.post(&path("enable"), "").await;
    assert!(app().await.disabled_at.is_none());
    let deleted = owner.post(&path("delete"), "").await;
    assert_eq!(deleted.headers[LOCATION], "/dashboard/developer-apps?notice=app-deleted");
    assert!(apps(&server).await.is_empty());
    let log = server.svc.account(server.tenant).audit_log().since(Timestamp::from_micros(0), 20).await.unwrap();
    let of_app = log.iter().filter(|entry| entry.object_kind == "app");
    assert!(of_app.clone().all(|entry| entry.actor.starts_with("dashboard:")), "{log:?}");
    let actions: Vec<&str> = of_app.map(|entry| entry.action.as_str()).collect();
    assert!(["create", "update", "rotate", "delete"].iter().all(|action| actions.contains(action)), "{actions:?}");
    let audit = owner.get("/audit?kind=app").await.text;
    assert!(audit.contains(&format!("<a href=\"/dashboard/developer-apps/{id}\">Planner</a>")), "{audit}");
}

/// A double click sends a form twice, and the person sees the second response.
#[tokio::test]
async fn a_form_that_is_sent_twice_makes_one_thing_and_shows_its_secrets_each_time() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let secrets =
        |page: &str| ["client-id", "client-secret", "signing-secret"].map(|id| shown(page, id).map(str::to_owned));
    let twice = async |path: &str, fields: &str| {
        let responses = [owner.post(path, fields).await, owner.post(path, fields).await];
        assert_eq!(responses.each_ref().map(|response| response.status), [StatusCode::OK; 2], "{path}");
        let [first, second] = responses.map(|response| secrets(&response.text));
        assert_eq!(first, second, "{path}");
        first
    };
    let page = owner.get("/developer-apps/new").await.text;
    let more = [("key", hidden(&page, "key")), ("disconnect_url", "https://planner.example/gone")];
    let [client_id, first, signing] = twice("/developer-apps/new", &form(&more)).await;
    let all = apps(&server).await;
    assert_eq!((all.len(), client_id.as_deref()), (1, Some(all[0].client_id.as_str())));
    let (id, first, signing) = (all[0].id, first.unwrap(), signing.unwrap());
    let other = form(&[more[0], ("name", "Another")]);
    assert_eq!(owner.post("/developer-apps/new", &other).await.status, StatusCode::CONFLICT);

    let page = owner.get(&format!("/developer-apps/{id}")).await.text;
    let fields = encode(&[("key", hidden(&page, "key")), ("overlap", "1")]);
    let [_, second, _] = twice(&format!("/developer-apps/{id}/rotate"), &fields).await;
    let second = second.unwrap();
    let (app, now) = (server.svc.apps().get(id).await.unwrap(), server.svc.store().env().now());
    assert_ne!(first, second);
    // A second rotation would have ended the first secret.
    assert!(app.has_secret(&first, now) && app.has_secret(&second, now));

    let path = format!("/developer-apps/{id}/edit");
    assert_eq!(owner.post(&path, &form(&[("disconnect_url", "")])).await.status, StatusCode::SEE_OTHER);
    let page = owner.get(&path).await.text;
    let (key, version) = (("key", hidden(&page, "key")), ("version", hidden(&page, "version")));
    let fields = form(&[key, version, ("disconnect_url", "https://planner.example/over")]);
    let [_, _, changed] = twice(&path, &fields).await;
    assert_ne!(changed.unwrap(), signing, "a new address has a new secret");
    let log = server.svc.account(server.tenant).audit_log().since(Timestamp::from_micros(0), 20).await.unwrap();
    let mut actions: Vec<&str> =
        log.iter().filter(|entry| entry.object_kind == "app").map(|entry| entry.action.as_str()).collect();
    actions.sort_unstable();
    assert_eq!(actions, ["create", "rotate", "update", "update"]);
}

#[tokio::test]
async fn an_app_that_somebody_changed_meanwhile_is_not_overwritten() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    owner.post("/developer-apps/new", &form(&[])).await;
    let id = apps(&server).await[0].id;
    let path = format!("/developer-apps/{id}/edit");
    let page = owner.get(&path).await.text;
    let fields = |page: &str, name: &str| {
        form(&[("key", hidden(page, "key")), ("version", hidden(page, "version")), ("name", name)])
    };
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    server.svc.apps().update(id, disable).await.unwrap();
    let refused = owner.post(&path, &fields(&page, "Stale")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused.text.contains("Somebody changed this app after the form was loaded")
            && refused.text.contains("value=\"Stale\""),
        "{}",
        refused.text
    );
    let kept = server.svc.apps().get(id).await.unwrap();
    assert_eq!((kept.name.as_str(), kept.disabled_at.is_some()), ("Route Planner", true));

    let page = owner.get(&path).await.text;
    let saved = fields(&page, "Fresh");
    for _ in 0..2 {
        let response = owner.post(&path, &saved).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "also the second of a double click");
    }
    assert_eq!(server.svc.apps().get(id).await.unwrap().name.as_str(), "Fresh");
}

#[tokio::test]
async fn an_app_of_another_owner_is_not_found() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let foreign = [server.app(None, "Of the service").await.id, server.app(Some(server.other), "Of others").await.id];
    let list = owner.get("/developer-apps").await.text;
    assert!(!list.contains("Of the service") && !list.contains("Of others"));
    for id in foreign {
        assert_eq!(owner.get(&format!("/developer-apps/{id}")).await.status, StatusCode::NOT_FOUND);
        for (action, fields) in
            [("edit", form(&[])), ("rotate", "overlap=0".into()), ("disable", String::new()), ("delete", String::new())]
        {
            let response = owner.post(&format!("/developer-apps/{id}/{action}"), &fields).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{action}");
        }
        let kept = server.svc.apps().get(id).await.unwrap();
        assert!(kept.disabled_at.is_none() && kept.previous_hash.is_none(), "{kept:?}");
    }
    assert!(server.svc.apps().get(AppId::nil()).await.is_err());
}
