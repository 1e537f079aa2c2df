use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use svc_core::requests::ApiRequest;
use svc_core::values::{TenantId, parse_uuid};
use uuid::Uuid;

use super::harness::{Session, UNKNOWN_ID};

/// Adds a request to the log of an account, which began this many minutes ago.
fn log(session: &Session, account: &str, key: &str, ago: u64, request: (&'static str, &'static str, u16)) {
    let [account, key] = [account, key].map(|id| parse_uuid(id).unwrap());
    session.write((account, key, ago, request), async |tx, &(account, key, ago, (method, path, status))| {
        let started_at = tx.env().now().minus(Duration::from_secs(ago * 60));
        let request = ApiRequest {
            id: tx.env().id(started_at),
            tenant_id: TenantId(account),
            request_id: Uuid::from_u128(1).to_string(),
            key_id: key.into(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: (method == "GET").then(|| "limit=10".to_owned()),
            status,
            code: (status >= 400).then(|| "not_found".to_owned()),
            failing_fields: None,
            started_at,
            duration_us: 1_280 + ago * 200_000,
            events: u32::from(method == "POST"),
            first_event_id: None,
            last_event_id: None,
        };
        Ok(tx.insert_requests(&[request]).await?)
    });
}

#[test]
fn requests_are_listed_with_their_keys() {
    let mut session = Session::new();
    let account = session.account();
    let key = session.id(&["key", "create", "--scopes", "read", "--name", "CI"]);
    log(&session, &account, &key, 3, ("GET", "/api/v1/contacts", 200));
    log(&session, &account, &key, 2, ("POST", "/api/v1/quotes", 201));
    log(&session, &account, &key, 0, ("GET", "/api/v1/contacts/x", 404));
    session
        .run(&["request", "list"])
        .run(&["request", "list", "--status", "4xx", "--json"])
        .run(&["request", "list", "--method", "post", "--path", "quotes", "--key", &key])
        .run(&["request", "list", "--limit", "1"])
        .run(&["request", "list", "--since", "2099-01-01"])
        .run(&["request", "list", "--status", "6xx"])
        .run(&["request", "list", "--key", UNKNOWN_ID])
        .run(&["request", "list", "--follow", "--output", "csv"])
        .assert("request");
}

#[test]
fn each_request_is_followed_once() {
    let session = Session::new();
    let account = session.account();
    let key = session.id(&["key", "create", "--scopes", "read", "--name", "CI"]);
    log(&session, &account, &key, 1, ("GET", "/api/v1/contacts", 200));
    let mut program = session.program(&["request", "list", "--follow", "--since", "1h"]);
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.ends_with("Z  200  GET     /api/v1/contacts?limit=10  CI  201 ms"), "{first}");
    log(&session, &account, &key, 0, ("POST", "/api/v1/quotes", 404));
    let second = lines.next().unwrap();
    assert!(second.ends_with("Z  404  POST    /api/v1/quotes  CI  1.2 ms  not_found"), "{second}");
    child.kill().unwrap();
    child.wait().unwrap();

    let mut program = session.program(&["request", "list", "--follow", "--since", "1h", "--json"]);
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let paths: Vec<serde_json::Value> = [lines.next(), lines.next()]
        .map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap()["path"].clone())
        .into();
    assert_eq!(paths, ["/api/v1/contacts", "/api/v1/quotes"]);
    child.kill().unwrap();
    child.wait().unwrap();
}
