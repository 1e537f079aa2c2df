//! How many webhook subscriptions an account can have (docs/contract.md, "Webhook subscriptions").

use std::sync::Arc;

use serde_json::json;
use svc_core::accounts::tenants;

use crate::harness::{Call, Response, SeededServer, sample, settings};

fn create(server: &SeededServer) -> Call {
    Call::post("/webhooks", sample(server, "webhooks", 1))
}

/// Sets the limit of the account, as `svc account set` does.
async fn set_limit(server: &SeededServer, limit: Option<u32>) {
    let tenant = server.tenant.0;
    let set = server.store().write("test", (tenant, limit), async |tx, &(tenant, limit)| {
        tenants::update(tx, tenant, move |tenant| tenant.max_webhooks = limit).await
    });
    set.await.unwrap();
}

async fn refused(server: &SeededServer, call: Call, limit: u32) -> Response {
    let response = server.expect(409, call).await;
    assert_eq!(response.code(), "limit_reached");
    assert!(response.text.contains(&format!("at most {limit} webhook")), "{}", response.text);
    response
}

#[tokio::test]
async fn an_account_can_have_100_subscriptions_by_default() {
    let server = SeededServer::new();
    // The account has one from the start.
    for _ in 1..100 {
        server.expect(201, create(&server)).await;
    }
    refused(&server, create(&server), 100).await;
    server.expect(201, create(&server).key(server.key("other"))).await;

    // Disabled subscriptions count, and deleted ones do not.
    let path = format!("/webhooks/{}", server.id("webhook_id"));
    server.expect(200, Call::patch(&path, json!({ "enabled": false }))).await;
    refused(&server, create(&server), 100).await;
    server.expect(204, Call::delete(&path)).await;
    server.expect(201, create(&server)).await;
    refused(&server, create(&server), 100).await;
}

#[tokio::test]
async fn an_account_can_have_another_limit() {
    let server = SeededServer::new();
    set_limit(&server, Some(2)).await;
    let last = server.expect(201, create(&server)).await.id();
    refused(&server, create(&server), 2).await;
    // With a lower limit, the subscriptions stay and can be changed.
    set_limit(&server, Some(1)).await;
    server.expect(200, Call::patch(&format!("/webhooks/{last}"), json!({ "description": "Ledger" }))).await;
    refused(&server, create(&server), 1).await;
    set_limit(&server, None).await;
    server.expect(201, create(&server)).await;
}

/// A URL that is not valid is reported before the limit, and the refusal is kept under an `Idempotency-Key`.
#[tokio::test]
async fn the_limit_is_checked_like_other_conflicts() {
    let server = SeededServer::new();
    set_limit(&server, Some(1)).await;
    let private = json!({ "url": "https://10.0.0.1/hook", "events": ["*"] });
    assert_eq!(server.expect(400, Call::post("/webhooks", private)).await.json()["field"], "url");
    let keyed = || create(&server).header("idempotency-key", "k");
    let first = refused(&server, keyed(), 1).await;
    set_limit(&server, None).await;
    let again = refused(&server, keyed(), 1).await;
    assert_eq!((&again.body, again.header("idempotent-replayed")), (&first.body, Some("true")));
    server.expect(201, create(&server).header("idempotency-key", "another")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_do_not_exceed_the_limit() {
    let server = Arc::new(SeededServer::new());
    set_limit(&server, Some(5)).await;
    // A second service on the same database, like another node.
    let second = svc_server::Api::new(server.second_store(), settings());
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let (server, second) = (Arc::clone(&server), second.clone());
            tokio::spawn(async move {
                let api = if number % 2 == 0 { &server.api } else { &second };
                server.send_to(api, create(&server)).await.status
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        let status = task.await.unwrap();
        assert!(matches!(status, 201 | 409), "{status}");
        made += usize::from(status == 201);
    }
    assert_eq!(made, 4);
}
