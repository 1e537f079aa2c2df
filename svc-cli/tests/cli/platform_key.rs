use crate::harness::{Session, UNKNOWN_ID};

#[test]
fn a_platform_key_is_made_listed_and_revoked() {
    let mut session = Session::new();
    session.tenant();
    let all = session.json(&["platform-key", "create"]);
    assert!(all["key"].as_str().unwrap().starts_with("svc_plat_"), "{all}");
    assert_eq!(all["scopes"], serde_json::json!(["*"]));
    let scopes = "records:write,accounts:read,records:write";
    let some = session.json(&["platform-key", "create", "--scopes", scopes, "--name", "Backend", "--expires", "90d"]);
    assert_eq!(some["scopes"], serde_json::json!(["accounts:read", "records:write"]));
    assert!(some["created_by"].as_str().unwrap().starts_with("cli:") && some["expires_at"].is_string(), "{some}");

    let id = some["id"].as_str().unwrap();
    let revoked = session.json(&["platform-key", "revoke", &id[id.len() - 8..]]);
    assert_eq!((&revoked["id"], &revoked["revoked_by"]), (&some["id"], &some["created_by"]));
    let listed = session.json(&["platform-key", "list"]);
    assert_eq!((listed[0]["id"].clone(), listed[1].clone()), (all["id"].clone(), revoked));
    assert!(!listed.to_string().contains(some["key"].as_str().unwrap()), "{listed}");
    session
        .run(&["platform-key", "create"])
        .run(&["platform-key", "create", "--scopes", "audit:write"])
        .run(&["platform-key", "revoke", UNKNOWN_ID])
        .assert("platform_key");
}
