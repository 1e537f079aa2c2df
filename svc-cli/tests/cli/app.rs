use svc_core::accounts::apps;
use svc_core::accounts::grants::Grant;
use svc_core::accounts::keys::Scope;
use svc_core::values::{Id, TenantId, Timestamp, parse_uuid};

use super::harness::{Session, UNKNOWN_ID, text};

const URI: &str = "https://example.com/callback";

#[test]
fn apps_are_created_changed_and_deleted() {
    let mut session = Session::new();
    session
        .run(&["app", "list"])
        .run(&["app", "create", "--name", "Route Planner", "--redirect-uri", URI, "--scopes", "read,write"])
        .run(&["app", "create", "--name", "Desk", "--public", "--redirect-uri", "http://127.0.0.1/callback"])
        .run(&["app", "list"])
        .run(&["app", "show", "route planner"])
        .run(&["app", "update", "Route Planner", "--name", "Planner", "--disconnect-url", "https://example.com/gone"])
        .run(&["app", "rotate-secret", "Planner", "--overlap", "7d"])
        .run(&["app", "disable", "Planner"])
        .run(&["app", "enable", "Planner"])
        .run(&["app", "delete", "Planner"])
        .run(&["app", "list"])
        .assert("app");
}

#[test]
fn apps_for_programs() {
    let mut session = Session::new();
    session
        .run(&["app", "create", "--name", "Desk", "--public", "--redirect-uri", "com.example.desk:/callback", "--json"])
        .run(&["app", "list", "--json"])
        .run(&["app", "show", "Desk", "--json"])
        .run(&["app", "update", "Desk", "--scopes", "read,write", "--json"])
        .run(&["app", "disable", "Desk", "--json"])
        .run(&["app", "enable", "Desk", "--json"])
        .run(&["app", "delete", "Desk", "--json"])
        .run(&["app", "create", "--name", "Web", "--redirect-uri", URI, "--json"])
        .run(&["app", "rotate-secret", "Web", "--json"])
        .assert("app_json");
}

#[test]
fn invalid_apps_are_refused() {
    let mut session = Session::new();
    session
        .run(&["app", "create", "--name", "Desk"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", "http://example.com/callback"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", "desk:/callback"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", "vscode://example.desk/callback"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", URI, "--disconnect-url", "http://example.com/gone"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", URI, "--redirect-uri", URI])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", URI, "--scopes", "write"])
        .run(&["app", "create", "--name", "Desk", "--redirect-uri", URI, "--account", UNKNOWN_ID])
        .run(&["app", "update", "Desk"])
        .run(&["app", "show", UNKNOWN_ID])
        .run(&["app", "show", "Desk"])
        .run(&["grant", "list", "--account", UNKNOWN_ID])
        .assert("app_refused");
}

#[test]
fn an_app_is_named_by_its_client_id_and_belongs_to_an_account() {
    let session = Session::new();
    let account = session.account();
    let create = ["app", "create", "--name", "Desk", "--redirect-uri", URI, "--account", &account];
    let app = session.json(&create);
    assert_eq!(app["tenant_id"], account);
    let client_id = app["client_id"].as_str().unwrap();
    assert_eq!(session.output(&["app", "show", client_id]).status.code(), Some(3), "it is none of the operator");
    assert_eq!(session.json(&["app", "show", client_id, "--account", &account])["id"], app["id"]);
    let secret = app["client_secret"].as_str().unwrap();
    assert!(!text(&session.output(&["app", "show", client_id, "--account", &account]).stdout).contains(secret));
}

/// An account that has granted an app access.
fn session_with_grant() -> Session {
    let session = Session::new();
    let account = session.account();
    let app = session.id(&["app", "create", "--name", "Route Planner", "--redirect-uri", URI]);
    let ids = (TenantId(parse_uuid(&account).unwrap()), Id::<apps::App>::from(parse_uuid(&app).unwrap()));
    session.write(ids, async |tx, &(tenant_id, app_id)| {
        let created_at = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
        let grant = Grant {
            id: tx.env().id(created_at),
            tenant_id,
            app_id,
            scopes: vec![Scope::Read],
            member: "ada@example.com".to_owned(),
            created_at,
            last_used_at: None,
            requests: 0,
        };
        Ok(tx.insert_grant(&grant).await?)
    });
    session
}

#[test]
fn the_access_of_an_app_is_listed_and_ended() {
    let mut session = session_with_grant();
    session
        .run(&["grant", "list"])
        .run(&["grant", "revoke", "Desk"])
        .run(&["grant", "revoke", "route planner"])
        .run(&["grant", "list"])
        .assert("grant");
}

#[test]
fn grants_for_programs() {
    let mut session = session_with_grant();
    session.run(&["grant", "list", "--json"]).run(&["grant", "revoke", "Route Planner", "--json"]).assert("grant_json");
}
