//! Sandboxes (docs/contract.md, "Sandbox"), as a client with a test key uses one.

use serde_json::{Value, json};
use svc_core::Svc;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::values::TenantId;

use crate::harness::{Call, SeededServer, sample};

const COLLECTIONS: [&str; 5] = ["contacts", "invoices", "bookings", "quotes", "jobs"];

/// Creates the sandbox of the account, and returns its id and its key.
async fn sandbox(server: &SeededServer) -> (TenantId, String) {
    let new = svc(server).account(server.tenant).sandbox().create().await.unwrap();
    (new.sandbox.id, new.key.text.reveal().to_owned())
}

fn svc(server: &SeededServer) -> Svc {
    server.svc.clone()
}

fn with(call: Call, key: &str) -> Call {
    call.header("authorization", &format!("Bearer {key}"))
}

/// Returns the ids of all records that a key sees.
async fn ids(server: &SeededServer, key: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for collection in COLLECTIONS {
        let list = server.expect(200, with(Call::get(&format!("/{collection}?limit=200")), key)).await.json();
        ids.extend(list["data"].as_array().unwrap().iter().map(|record| record["id"].as_str().unwrap().to_owned()));
    }
    ids
}

#[tokio::test]
async fn a_test_key_and_a_key_of_the_account_see_nothing_of_each_other() {
    let server = SeededServer::new();
    let (id, test) = sandbox(&server).await;
    let live = server.key("write").text.clone();
    assert!(test.starts_with("svc_test_") && test.len() == live.len(), "{test}");
    let ping = server.expect(200, with(Call::get("/ping"), &test)).await.json();
    assert_eq!(ping["tenantId"], id.to_string());
    let (of_account, of_sandbox) = (ids(&server, &live).await, ids(&server, &test).await);
    assert_eq!(of_sandbox.len(), 16, "three contacts, four invoices, and three of each other kind");
    assert!(of_account.iter().all(|id| !of_sandbox.contains(id)));

    for (own, others, key) in [(&of_account, &of_sandbox, &live), (&of_sandbox, &of_account, &test)] {
        for (position, id) in own.iter().chain(others.iter()).enumerate() {
            let want = if position < own.len() { 200 } else { 404 };
            let mut found = 0;
            for collection in COLLECTIONS {
                let response = server.send(with(Call::get(&format!("/{collection}/{id}")), key)).await;
                found += usize::from(response.status == 200);
            }
            assert_eq!(found, usize::from(want == 200), "{id}");
        }
        let contact = json!({ "contact_id": others[0], "total": 1 });
        let refused = server.send(with(Call::post("/quotes", contact), key)).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "reference_not_found"));
    }
    // The email of a contact is taken in one of them alone.
    let contact = Call::post("/contacts", json!({ "email": "mia.torres@example.com" }));
    server.expect(409, with(contact.clone(), &test)).await;
    server.expect(201, with(contact, &live)).await;
    assert_eq!(ids(&server, &test).await, of_sandbox);
}

#[tokio::test]
async fn a_key_with_the_prefix_of_the_other_kind_is_refused() {
    let server = SeededServer::new();
    let (_, test) = sandbox(&server).await;
    let live = server.key("write").text.clone();
    for key in [test.replace("svc_test_", "svc_live_"), live.replace("svc_live_", "svc_test_")] {
        let refused = server.send(with(Call::get("/ping"), &key)).await;
        assert_eq!((refused.status, refused.code().as_str()), (401, "invalid_key"), "{key}");
    }
}

#[tokio::test]
async fn the_sandbox_of_a_suspended_account_is_refused_as_the_account_is() {
    let server = SeededServer::new();
    let (id, test) = sandbox(&server).await;
    let account = server.tenant;
    let access = async |access| {
        let change =
            svc(&server).account(account).change_settings(move |tenant| tenant.developer_access = access).await;
        change.unwrap();
    };
    let create = || with(Call::post("/contacts", sample(&server, "contacts", 1)), &test);
    access(DeveloperAccess::Suspended).await;
    for call in [with(Call::get("/ping"), &test), create(), Call::get("/ping").key(server.key("write"))] {
        let refused = server.send(call).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "access_not_approved"));
    }
    let svc = svc(&server);
    let alone = svc.account(id).change_settings(|tenant| tenant.developer_access = DeveloperAccess::Approved);
    assert!(alone.await.is_err(), "it has the access of its account");
    access(DeveloperAccess::Approved).await;
    server.expect(201, create()).await;
}

#[tokio::test]
async fn limits_and_stored_responses_are_those_of_the_sandbox() {
    let server = SeededServer::limited();
    let (_, test) = sandbox(&server).await;
    let used = server.expect(200, Call::get("/ping").key(server.key("write"))).await;
    assert_eq!(used.headers["x-ratelimit-remaining"], "59");
    let fresh = server.expect(200, with(Call::get("/ping"), &test)).await;
    assert_eq!(fresh.headers["x-ratelimit-remaining"], "59", "a limit of its own");

    let create = |key: &str| {
        let body = json!({ "email": "ada@example.com" });
        with(Call::post("/contacts", body).header("idempotency-key", "one"), key)
    };
    let first = server.expect(201, create(&test)).await.json();
    let repeated = server.expect(201, create(&test)).await;
    assert_eq!((&repeated.json(), &repeated.headers["idempotent-replayed"]), (&first, &"true".parse().unwrap()));
    let of_account = server.expect(201, create(&server.key("write").text)).await.json();
    assert_ne!(of_account["data"]["id"], first["data"]["id"], "the key of the account has responses of its own");

    svc(&server).account(server.tenant).sandbox().reset().await.unwrap();
    let anew = server.expect(201, create(&test)).await.json();
    assert_ne!(anew["data"]["id"], first["data"]["id"], "a reset forgets the responses");
}

#[tokio::test]
async fn a_reset_keeps_keys_and_webhooks_and_a_deletion_ends_the_keys() {
    let server = SeededServer::new();
    let (id, test) = sandbox(&server).await;
    let hook = json!({ "url": "https://hooks.example.com/svc", "events": ["*"] });
    let hook = server.expect(201, with(Call::post("/webhooks", hook), &test)).await.json();
    let before = ids(&server, &test).await;
    server.expect(201, with(Call::post("/contacts", json!({ "email": "eve@example.com" })), &test)).await;
    let cli = svc(&server);
    cli.account(server.tenant).sandbox().reset().await.unwrap();
    let after = ids(&server, &test).await;
    assert_eq!((before.len(), after.len()), (16, 16));
    assert!(after.iter().all(|id| !before.contains(id)), "the sample records are new ones");
    let quotes = server.expect(200, with(Call::get("/quotes"), &test)).await.json();
    let numbers: Vec<&Value> = quotes["data"].as_array().unwrap().iter().map(|quote| &quote["quote_number"]).collect();
    assert_eq!(numbers, ["QUO-0003", "QUO-0002", "QUO-0001"], "numbers begin anew");
    let hooks = server.expect(200, with(Call::get("/webhooks"), &test)).await.json();
    assert_eq!(hooks["data"][0]["id"], hook["data"]["id"]);
    let events = cli.account(id).events().since(svc_core::values::Timestamp::from_micros(0), 100).await.unwrap();
    let first = &events[0];
    assert_eq!(first.kind.as_str(), "contact.created");
    assert!(events.len() > 16 && events.iter().all(|event| !event.data.get().contains("eve@example.com")));

    let account = ids(&server, &server.key("write").text).await;
    cli.account(server.tenant).sandbox().delete().await.unwrap();
    let refused = server.send(with(Call::get("/ping"), &test)).await;
    assert_eq!((refused.status, refused.code().as_str()), (401, "invalid_key"));
    assert_eq!(ids(&server, &server.key("write").text).await, account);
}
