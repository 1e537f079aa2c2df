//! Tools for assistants (`--mcp on`): what each is, who may call it, and that a call is a request of the API like any other.

mod injection;
mod load;
mod programs;
mod protocol;
mod tools;

use http::Method;
use serde_json::{Value, json};
use svc_core::accounts::audit;
use svc_core::values::Timestamp;
use svc_server::{Settings, Surfaces};

use crate::harness::{Call, Response, SeededServer, change, id_name, limited, sample, settings};
use svc_test_support::fixture::Key;

fn server() -> SeededServer {
    SeededServer::serving(tools(), settings())
}

/// Returns tools at a host with a name.
fn tools() -> Surfaces {
    Surfaces { mcp: Some(vec!["api.example.com".to_owned()]), ..Surfaces::default() }
}

/// Returns tools at the names of the machine alone.
fn local_tools() -> Surfaces {
    Surfaces { mcp: Some(Vec::new()), ..Surfaces::default() }
}

/// Returns a message for the tools at a path.
fn message(path: &str, method: &str, params: Value) -> Call {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    Call::absolute(Method::POST, path).json(&message).header("accept", "application/json, text/event-stream")
}

fn call(path: &str, tool: &str, arguments: Value) -> Call {
    message(path, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// Calls a tool with the key of the tenant that may write, and returns the result.
async fn result(server: &SeededServer, tool: &str, arguments: Value) -> Value {
    server.expect(200, call("/mcp", tool, arguments)).await.json()["result"].clone()
}

/// Calls a tool that must succeed, and returns what it says.
async fn success(server: &SeededServer, tool: &str, arguments: Value) -> Value {
    let result = result(server, tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{tool}");
    text
}

/// Calls a tool that must fail, and returns the error.
async fn failure(server: &SeededServer, tool: &str, arguments: Value) -> Value {
    let result = result(server, tool, arguments).await;
    assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(true), None), "{tool}: {result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// Returns the tools that a key sees at a path.
async fn tools_of(server: &SeededServer, path: &str, key: &Key) -> Vec<Value> {
    let listed = server.expect(200, message(path, "tools/list", json!({})).key(key)).await.json();
    listed["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Returns the collection that a tool is about, such as `contacts` for `create_contact`.
fn collection_of(tool: &str) -> String {
    let (_, noun) = tool.split_once('_').unwrap();
    if noun.ends_with('s') { noun.to_owned() } else { format!("{noun}s") }
}

/// Returns arguments with which a tool succeeds.
async fn arguments_of(server: &SeededServer, tool: &str) -> Value {
    let id = || json!(server.id(&id_name(&collection_of(tool))));
    match tool {
        "search" => json!({ "text": "Ada" }),
        "search_docs" => json!({ "query": "verify a signature" }),
        "get_event" => json!({ "id": success(server, "list_events", json!({})).await["data"][0]["id"] }),
        "list_webhook_deliveries" => json!({ "id": server.id("webhook_id") }),
        "replay_webhook" => json!({ "id": server.id("webhook_id"), "since": "2026-03-01T00:00:00Z" }),
        "get_delivery" | "list_delivery_attempts" | "replay_delivery" => {
            success(server, "create_contact", sample(server, "contacts", 1)).await;
            let list = json!({ "id": server.id("webhook_id") });
            json!({ "id": success(server, "list_webhook_deliveries", list).await["data"][0]["id"] })
        }
        "get_replay" => {
            let since = json!({ "id": server.id("webhook_id"), "since": "2026-03-01T00:00:00Z" });
            json!({ "id": success(server, "replay_webhook", since).await["data"]["id"] })
        }
        _ if tool.starts_with("list_") => json!({}),
        _ if tool.starts_with("create_") => sample(server, &collection_of(tool), 2),
        _ if tool.starts_with("update_") => {
            let mut change = change(&collection_of(tool));
            change["id"] = id();
            change
        }
        _ if tool.starts_with("get_") || tool.starts_with("delete_") => json!({ "id": id() }),
        _ => panic!("{tool} has no arguments here"),
    }
}

/// Returns the actors of the newest changes of the tenant.
async fn actors(server: &SeededServer) -> Vec<String> {
    let tenant = server.tenant;
    let log = server
        .store()
        .read("audit", tenant, async |tx, &tenant| audit::list(tx, tenant, Timestamp::from_micros(0), 100).await);
    log.await.unwrap().into_iter().map(|entry| entry.actor).collect()
}

#[tokio::test]
async fn the_audit_log_names_the_client_and_the_tool() {
    let server = server();
    success(&server, "create_contact", sample(&server, "contacts", 1)).await;
    let by_tool = format!("key:{}/create_contact", server.key("write").id);
    assert_eq!(actors(&server).await[0], by_tool);
    server.expect(201, Call::post("/contacts", sample(&server, "contacts", 2))).await;
    assert_eq!(actors(&server).await[0], format!("key:{}", server.key("write").id));
}

#[tokio::test]
async fn a_call_counts_as_one_request_and_a_message_as_another() {
    let server = SeededServer::serving(local_tools(), Settings { rate_limit: 3, ..limited() });
    let host = |call: Call| call.header("host", "localhost");
    let left = |response: &Response| response.header("x-ratelimit-remaining").unwrap().to_owned();
    let listed = server.expect(200, host(message("/mcp", "tools/list", json!({})))).await;
    assert_eq!(left(&listed), "2");
    let called = server.expect(200, host(call("/mcp", "list_contacts", json!({})))).await;
    assert_eq!(left(&called), "1");
    let read = server.expect(200, Call::get("/contacts")).await;
    assert_eq!(left(&read), "0");

    // A message is refused as a request is, and a call as a call, so that the assistant reads how long to wait.
    let refused = server.expect(429, host(message("/mcp", "tools/list", json!({})))).await;
    assert_eq!(refused.code(), "rate_limited");
    let called = server.expect(200, host(call("/mcp", "list_contacts", json!({})))).await.json();
    assert_eq!(called["result"]["isError"], true, "{called}");
    assert!(called["result"]["content"][0]["text"].as_str().unwrap().contains("rate_limited"), "{called}");
}

#[tokio::test]
async fn a_call_that_becomes_no_request_counts_as_well() {
    let server = SeededServer::serving(local_tools(), Settings { rate_limit: 8, ..limited() });
    let params = |arguments: Value| json!({ "name": "list_contacts", "arguments": arguments });
    let notification = json!({ "jsonrpc": "2.0", "method": "tools/call", "params": params(json!({})) });
    for (left, call) in [
        (7, message("/mcp", "", json!({})).json(&notification)),
        (6, call("/mcp", "list_contacts", json!({ "limit": 200 }))),
        (5, call("/mcp", "get_contact", json!({ "id": "a".repeat(100_000) }))),
        // One that is too large to be read, and one without a body.
        (4, call("/mcp", "get_contact", json!({ "id": "a".repeat(300_000) }))),
        (3, Call::absolute(Method::GET, "/mcp")),
        (2, message("/mcp", "tools/call", params(json!(7)))),
        (1, call("/mcp", "search_docs", json!({ "query": "limits" }))),
        // A call from a page of somebody else.
        (0, call("/mcp", "create_contact", json!({})).header("origin", "https://evil.example")),
    ] {
        let response = server.send(call.header("host", "localhost")).await;
        assert_eq!(response.header("x-ratelimit-remaining"), Some(left.to_string().as_str()), "{}", response.text);
    }
}

#[tokio::test]
async fn each_message_of_a_batch_counts() {
    let server = SeededServer::serving(local_tools(), Settings { rate_limit: 5, ..limited() });
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "list_contacts" } });
    let post = |batch: Value| message("/mcp", "", json!({})).json(&batch).header("host", "localhost");
    let first = server.expect(200, post(json!([ping(1), list, 7]))).await;
    assert_eq!((first.header("x-ratelimit-remaining"), first.json().as_array().unwrap().len()), (Some("2"), 3));
    let second = server.expect(200, post(json!([ping(1), ping(2), ping(3)]))).await.json();
    let errors: Vec<&Value> = second.as_array().unwrap().iter().map(|one| &one["error"]["data"]["code"]).collect();
    assert_eq!(errors, [&Value::Null, &Value::Null, &json!("rate_limited")]);
    assert_eq!((&second[2]["id"], &second[2]["error"]["code"]), (&json!(3), &json!(-32000)));
}

#[tokio::test]
async fn writes_count_against_the_limit_of_their_collection() {
    let server = SeededServer::serving(local_tools(), Settings { rate_limit: 1000, ..limited() });
    let quote = sample(&server, "quotes", 0);
    for _ in 0..20 {
        let call = call("/mcp", "create_quote", quote.clone()).header("host", "localhost");
        assert_eq!(server.expect(200, call).await.json()["result"]["isError"], false);
    }
    let over = server.expect(200, call("/mcp", "create_quote", quote.clone()).header("host", "localhost")).await.json();
    assert!(over["result"]["content"][0]["text"].as_str().unwrap().contains("rate_limited"), "{over}");
    server.expect(429, Call::post("/quotes", quote)).await;
}

#[tokio::test]
async fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let server = server();
    let (contact, delivery) = (server.id("contact_id"), arguments_of(&server, "replay_delivery").await);
    let before = server.expect(200, Call::get(&format!("/contacts/{contact}"))).await.data();
    let events = server.new_events().await;
    let log = actors(&server).await.len();

    let created = success(&server, "create_contact", json!({ "email": "new@example.com", "dry_run": true })).await;
    assert_eq!((&created["dry_run"], &created["events"]), (&json!(true), &json!(["contact.created"])));
    assert_eq!((&created["data"]["email"], created.get("changes")), (&json!("new@example.com"), None));

    let change = json!({ "id": contact, "city": "Perth", "first_name": before["first_name"], "dry_run": true });
    let updated = success(&server, "update_contact", change).await;
    assert_eq!(updated["changes"], json!({ "city": { "from": before["city"], "to": "Perth" } }));
    assert_eq!(updated["events"], json!(["contact.updated"]));

    let job = json!({ "id": server.id("job_id"), "status": "completed", "dry_run": true });
    let events_of_job = success(&server, "update_job", job).await["events"].clone();
    assert_eq!(events_of_job, json!(["job.completed", "job.updated"]));

    let deleted = success(&server, "delete_contact", json!({ "id": contact, "dry_run": true })).await;
    assert_eq!((&deleted["deleted"], &deleted["data"]), (&json!(true), &before));
    assert_eq!(deleted["events"], json!(["contact.deleted"]));

    let mut replay = delivery.clone();
    replay["dry_run"] = true.into();
    assert_eq!(success(&server, "replay_delivery", replay).await["events"], json!([]));

    // What would fail fails in the same way.
    let taken = json!({ "email": before["email"], "dry_run": true });
    assert_eq!(failure(&server, "create_contact", taken).await["code"], "email_taken");

    assert_eq!(server.new_events().await, events);
    assert_eq!(actors(&server).await.len(), log);
    assert_eq!(server.expect(200, Call::get(&format!("/contacts/{contact}"))).await.data(), before);
}

#[tokio::test]
async fn a_dry_run_uses_no_idempotency_key() {
    let server = server();
    let mut create = json!({ "email": "new@example.com", "idempotency_key": "once", "dry_run": true });
    success(&server, "create_contact", create.clone()).await;
    create["dry_run"] = false.into();
    let made = success(&server, "create_contact", create.clone()).await;
    assert_eq!(made.get("dry_run"), None);
    assert_eq!(success(&server, "create_contact", create).await, made);
}

#[tokio::test]
async fn each_write_is_made_once_under_its_idempotency_key() {
    let server = server();
    let (contact, booking) = (server.id("contact_id"), server.id("booking_id"));
    for (tool, arguments) in [
        ("create_contact", json!({ "email": "new@example.com" })),
        ("update_booking", json!({ "id": booking, "notes": "Ring twice." })),
        ("delete_contact", json!({ "id": contact })),
        ("replay_webhook", json!({ "id": server.id("webhook_id"), "since": "2026-03-01T00:00:00Z" })),
    ] {
        let mut arguments = arguments;
        arguments["idempotency_key"] = tool.into();
        let first = success(&server, tool, arguments.clone()).await;
        let count = server.new_events().await.len();
        assert_eq!(success(&server, tool, arguments.clone()).await, first, "{tool}");
        assert_eq!(server.new_events().await.len(), count, "{tool}");
        // The same key is not for another record, nor for another change.
        let mut other = arguments;
        match tool {
            "create_contact" => other["email"] = "other@example.com".into(),
            "replay_webhook" => other["id"] = server.id("contact_id").into(),
            _ => other["id"] = server.id("webhook_id").into(),
        }
        assert_eq!(failure(&server, tool, other).await["code"], "idempotency_key_reused", "{tool}");
    }
    // A request of the API and a call of its tool are the same request.
    let again =
        Call::post("/contacts", json!({ "email": "new@example.com" })).header("idempotency-key", "create_contact");
    let again = server.expect(201, again).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert!(again.header("location").unwrap().starts_with("/api/v1/contacts/"), "{:?}", again.headers);
}

#[tokio::test]
async fn the_request_log_has_calls_and_no_messages() {
    let server = server();
    server.expect(200, message("/mcp", "tools/list", json!({}))).await;
    success(&server, "list_contacts", json!({})).await;
    server.expect(200, call("/mcp/readonly", "get_contact", json!({ "id": server.id("contact_id") }))).await;
    let refused = call("/mcp", "create_contact", json!({})).key(server.key("read"));
    server.expect(403, refused).await;
    success(&server, "create_contact", json!({ "email": "new@example.com", "dry_run": true })).await;
    server.api.jobs().flush_request_log().await;
    let tenant = server.tenant;
    let svc = server.svc.clone();
    let logged = svc.account(tenant).requests().list(Default::default()).await.unwrap();
    let mut paths: Vec<(&str, &str)> =
        logged.iter().map(|request| (request.method.as_str(), request.path.split('?').next().unwrap())).collect();
    let one = format!("/mcp/readonly/contacts/{}", server.id("contact_id"));
    // A message that is refused for its scope is in it, as the request that it would have been is not.
    // The clock stands still.
    paths.sort_unstable();
    assert_eq!(paths, [("GET", "/mcp/contacts"), ("GET", one.as_str()), ("POST", "/mcp"), ("POST", "/mcp/contacts")]);
    assert!(logged.iter().all(|request| request.events == 0), "a dry run fires none");
}
