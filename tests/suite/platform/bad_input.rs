//! Bad input to each operation of the platform API, and what it responds, exactly.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use svc_core::platform::operations::platform as operations;
use svc_server::kernel::versions::method_of;

use super::{PlatformServer, Reply, UNKNOWN, body_of, one_of_each, path_of};

/// Bodies and queries that an operation refuses, besides what every operation refuses. An operation that takes a body or
/// parameters fails the test if it has no entry.
fn refused_inputs() -> BTreeMap<&'static str, Vec<Value>> {
    let long = |length: usize| "x".repeat(length);
    let key = || vec![json!({ "scopes": ["write"] }), json!({ "scopes": "read" }), json!({ "scopes": ["admin"] })];
    let overlap =
        || vec![json!({ "overlap": -1 }), json!({ "overlap": "1h" }), json!({ "overlap": 4_000_000_000_u32 })];
    let amount = || vec![json!({ "amount": "40" }), json!({ "amount": 0 }), json!({ "amount": 1e300 })];
    let contact = || vec![json!({ "email": 5, "first_name": long(201) }), json!({ "email": "x", "id": UNKNOWN })];
    let booking = || vec![json!({ "service_name": [], "start_time": "soon", "status": "x", "contact_id": "x" })];
    let money = || vec![json!({ "total": "1", "currency": "XXX", "due_date": "2026-02-30", "contact_id": 1 })];
    let job = || vec![json!({ "title": "", "status": "x", "priority": 1, "estimated_total": -1 })];
    let webhook = || vec![json!({ "url": "ftp://x", "events": ["endpoint.paused"] }), json!({ "events": [] })];
    let account = || vec![json!({ "name": "", "time_zone": 1, "currency": "XXX", "developer_access": "x" })];
    let app = || {
        let uris = json!(["http://example.com/", "https://example.com/#a", "myapp:/", 1]);
        vec![json!({ "name": long(101), "redirect_uris": uris, "scopes": ["write"], "website": "x" })]
    };
    let list = || vec![json!("limit=0"), json!("limit=x"), json!("limit=1&limit=2"), json!("cursor=x")];
    let with = |mut list: Vec<Value>, more: &[&str]| {
        list.extend(more.iter().map(|query| json!(query)));
        list
    };
    let mut account_update = account();
    account_update.push(
        json!({ "rate_limit": 0, "max_webhooks": 1001, "days_until_due": 366, "write_rate_limits": { "quotes": "5" } }),
    );
    let mut key_create = key();
    key_create.push(json!({ "scopes": ["read"], "name": long(301), "expires_in": 0.5, "signed": "yes" }));
    BTreeMap::from([
        ("createAccount", [account(), vec![json!({ "name": long(301) }), json!({})]].concat()),
        ("updateAccount", account_update),
        ("listAccounts", list()),
        ("findAccounts", vec![json!("kind=x&id=x"), json!("kind=invoice"), json!("kind=contact&id=x")]),
        ("findRecords", vec![json!("text="), json!("txt=ada"), json!(format!("text={}", "x".repeat(201)))]),
        ("findIds", vec![json!("kind=x&part=x"), json!("kind=contact"), json!("kind=contact&part=")]),
        ("createKey", key_create),
        ("rotateKey", overlap()),
        ("createApp", [app(), vec![json!({ "name": "x", "redirect_uris": [] }), json!({})]].concat()),
        ("updateApp", app()),
        ("listApps", vec![json!("account_id=x"), json!("limit=1")]),
        ("rotateAppSecret", overlap()),
        ("addMember", vec![json!({ "email": "x", "role": "boss" }), json!({})]),
        ("updateMember", vec![json!({ "role": null }), json!({ "role": "boss" })]),
        (
            "createDashboardLink",
            vec![
                json!({ "role": 1, "identity": long(201) }),
                json!({}),
                json!({ "email": "eve@example.com" }),
                json!({ "email": "ada@example.com", "role": "owner" }),
                json!({ "email": "x" }),
                json!({ "role": "viewer", "lifetime": 0 }),
                json!({ "role": "viewer", "lifetime": 604_801 }),
                json!({ "role": "viewer", "lifetime": "7d" }),
            ],
        ),
        ("createContact", [contact(), vec![json!({})]].concat()),
        ("updateContact", contact()),
        ("listContacts", with(list(), &["email=x", "include_deleted=maybe", "updated_since=x", "search="])),
        ("getContactData", vec![json!("cursor=0.x.x"), json!("limit=1")]),
        ("eraseContact", vec![json!({ "reason": "" }), json!({ "reason": long(501) }), json!({ "why": "asked" })]),
        ("createInvoice", [money(), vec![json!({})]].concat()),
        ("updateInvoice", money()),
        ("listInvoices", with(list(), &["status=x", "updated_since=x"])),
        ("payInvoice", amount()),
        ("refundInvoice", amount()),
        ("listPayments", with(list(), &["invoice_id=x", "since=x", "until=x"])),
        ("convertQuote", vec![json!({ "title": "" }), json!({ "title": long(256), "total": 1 })]),
        ("invoiceJob", vec![json!({ "total": "ten", "due_date": "x" }), json!({ "total": -1 })]),
        ("shareInvoice", vec![json!({ "renew": "yes" }), json!({ "again": true })]),
        ("shareQuote", vec![json!({ "renew": 1 })]),
        ("shareCalendar", vec![json!({ "renew": [] }), json!([])]),
        ("markOverdueInvoices", vec![json!({ "next": 1 }), json!({ "next": long(101) }), json!({ "next": "x" })]),
        ("createBooking", [booking(), vec![json!({})]].concat()),
        ("updateBooking", booking()),
        ("listBookings", list()),
        ("createQuote", [money(), vec![json!({})]].concat()),
        ("updateQuote", money()),
        ("listQuotes", with(list(), &["status=x"])),
        ("createJob", [job(), vec![json!({})]].concat()),
        ("updateJob", job()),
        ("listJobs", with(list(), &["status=x"])),
        ("emitEvent", vec![json!({ "kind": "invoice.paid", "data": { "id": 1 } }), json!({ "kind": "x", "data": [] })]),
        ("emitSampleEvent", vec![json!({ "kind": "endpoint.paused" }), json!({ "kind": 1 })]),
        ("listEvents", with(list(), &["since=x"])),
        ("createWebhook", [webhook(), vec![json!({})]].concat()),
        ("updateWebhook", webhook()),
        ("createTemporaryWebhook", vec![json!({ "url": 1, "events": ["x"], "expires_in": -1 }), json!({})]),
        ("createStreamWebhook", vec![json!({ "to": 1, "events": ["x"], "url": "https://example.com" }), json!({})]),
        ("keepWebhook", vec![json!({ "expires_in": "1h" }), json!({})]),
        ("listWebhookAttempts", vec![json!("since=x"), json!("limit=0")]),
        ("listWebhooks", list()),
        ("rotateWebhookSecret", overlap()),
        ("testWebhook", vec![json!({ "kind": "x" }), json!({ "kind": [] })]),
        ("listDeliveries", with(list(), &["status=x", "kind=x", "subscription_id=x", "since=x", "until=x"])),
        ("listDeliveryAttempts", vec![json!("cursor=x"), json!("limit=1")]),
        (
            "createReplay",
            vec![json!({ "subscription_id": "x", "since": 1, "statuses": ["x"], "missed": 1 }), json!({})],
        ),
        ("listReplays", vec![json!("limit=0"), json!("cursor=x")]),
        ("listAuditLog", with(list(), &["since=x"])),
        ("listRequests", with(list(), &["since=x", "status=6xx", "status=x", "key_id=x", "method=&path="])),
        ("createOperatorLink", vec![json!({ "identity": long(201) }), json!({ "identity": 1 })]),
        (
            "importRecords",
            vec![
                json!({ "kind": "x", "rows": {}, "events": 1 }),
                json!({ "kind": "contacts", "rows": [1], "dry_run": "yes" }),
                json!({ "kind": "contacts", "rows": [{ "record": {} }, { "record": {}, "colour": "red" }] }),
                json!({ "kind": "contacts", "rows": [{ "record": {}, "duplicates_before": -1 }] }),
                json!({ "kind": "contacts", "rows": [{ "duplicates_before": 1 }] }),
                json!({ "kind": "contacts", "rows": vec![json!({ "record": {} }); 501] }),
                json!({ "kind": "invoices", "rows": [], "update": true }),
                json!({ "kind": "all", "rows": [], "update": true, "dry_run": true, "events": true }),
            ],
        ),
        ("exportRecords", with(list(), &["since=x", "cursor=jobs.x.x"])),
    ])
}

/// Returns the lines of a problem: its status and code, then its failing fields, or its text if it names none.
fn shown_problem(reply: &Reply) -> String {
    let mut out = format!("    {} {}", reply.status.as_u16(), reply.code());
    let Some(errors) = reply.body["errors"].as_array() else {
        return format!("{out}: {}", reply.body["error"].as_str().unwrap());
    };
    assert_eq!(reply.body["field"], errors[0]["field"], "{}", reply.body);
    for error in errors {
        let _ = write!(out, "\n      {}: {}", error["code"].as_str().unwrap(), error["message"].as_str().unwrap());
    }
    out
}

/// What each operation responds to bad input, exactly.
#[tokio::test]
async fn bad_input_is_refused_with_an_exact_problem() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("Harbour Plumbing").await;
    let ids = one_of_each(&fixture, &account).await;
    let mut inputs = refused_inputs();
    let mut out = String::new();
    for operation in operations() {
        let id = ids.get(operation.tag).map_or(UNKNOWN, String::as_str);
        let path = path_of(operation, &account, id);
        let takes_input = operation.takes_body() || operation.has_input;
        let own = inputs.remove(operation.id);
        assert_eq!(
            own.is_some(),
            takes_input,
            "{}: an operation with input needs an entry, and no other",
            operation.id
        );
        let body = body_of(operation);
        let bare = path.split('?').next().unwrap();
        let mut requests: Vec<(String, Option<Value>)> = vec![(format!("{bare}?colour=red"), body.clone())];
        if operation.takes_body() {
            let unknown = json!({ "colour": "red" });
            requests.extend([unknown, json!([]), json!("")].map(|body| (path.clone(), Some(body))));
            requests.push((path.clone(), None));
        }
        requests.extend(own.unwrap_or_default().into_iter().map(|input| match input {
            Value::String(query) => (format!("{bare}?{query}"), None),
            body => (path.clone(), Some(body)),
        }));
        if operation.path().contains("{account_id}") {
            requests.push((path_of(operation, "x", id), body.clone()));
            requests.push((path_of(operation, UNKNOWN, id), body.clone()));
        }
        if operation.has_id {
            requests.push((path_of(operation, &account, "x"), body.clone()));
            requests.push((path_of(operation, &account, UNKNOWN), body));
        }
        let _ = writeln!(out, "\n{}", operation.id);
        for (path, body) in requests {
            let reply = fixture.call(&method_of(operation), &path, body.as_ref(), &[]).await;
            assert!(
                reply.status.is_client_error(),
                "{} {path} {body:?}: {} {}",
                operation.id,
                reply.status,
                reply.body
            );
            let shown = body.map_or_else(|| "no body".to_owned(), |body| body.to_string());
            let shown = if shown.len() > 120 { format!("{}…", &shown[..120]) } else { shown };
            let (mut target, mut problem) = (path.clone(), shown_problem(&reply));
            for (name, value) in ids.iter().map(|(name, id)| (*name, id)).chain([("account", &account)]) {
                target = target.replace(value.as_str(), &format!("{{{name}}}"));
                problem = problem.replace(value.as_str(), &format!("{{{name}}}"));
            }
            let _ = writeln!(out, "  {} {target} {shown}\n{problem}", operation.method);
        }
    }
    assert_eq!(inputs.keys().copied().collect::<Vec<_>>(), [""; 0], "entries without an operation");
    insta::assert_snapshot!("bad_input", out);
}
