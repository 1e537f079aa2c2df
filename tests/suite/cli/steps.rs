//! The operator's tasks, one function per noun of the command line.

use serde_json::{Value, json};

use super::fixture::{Installation, id};

pub(super) async fn tenants(fixture: &Installation) {
    let tenant = fixture.tenant.as_str();
    assert_eq!(fixture.ping().await, 200);
    fixture.svc(&["tenant", "suspend", tenant]).await;
    assert_eq!(fixture.ping().await, 403);
    fixture.svc(&["tenant", "approve", tenant]).await;
    assert_eq!(fixture.ping().await, 200);
    fixture.svc(&["tenant", "set", tenant, "--currency", "NZD", "--time-zone", "Pacific/Auckland"]).await;
    assert_eq!(fixture.svc(&["tenant", "show", tenant]).await["currency"], "NZD");
    let listed = fixture.svc(&["tenant", "list"]).await;
    assert!(listed.as_array().unwrap().iter().any(|one| one["id"] == tenant));
}

pub(super) async fn keys(fixture: &Installation) {
    let create = ["key", "create", "--tenant", &fixture.tenant, "--scopes", "read", "--name", "Reports"];
    let made = fixture.svc(&create).await;
    let status = async |key: &Value| fixture.call(key["key"].as_str().unwrap(), "GET", "/contacts", "").await.status;
    assert_eq!(status(&made).await, 200);
    let renewed = fixture.svc(&["key", "rotate", &id(&made), "--overlap", "0s"]).await;
    assert_eq!((status(&made).await, status(&renewed).await), (401, 200));
    fixture.svc(&["key", "revoke", &id(&renewed)]).await;
    let response = fixture.call(renewed["key"].as_str().unwrap(), "GET", "/contacts", "").await;
    assert_eq!(
        (response.status, response.code().as_str()),
        (401, "key_revoked"),
        "a revoked key fails at the next request"
    );
    assert!(fixture.svc(&["key", "show", &id(&renewed)]).await["revoked_at"].is_string());
    assert_eq!(fixture.svc(&["key", "list", "--tenant", &fixture.tenant]).await.as_array().unwrap().len(), 3);
}

/// Creates a webhook and a contact through the API, and waits for the event of the contact.
pub(super) async fn contacts_and_a_webhook(fixture: &mut Installation) -> (String, String) {
    let hook = fixture.listen().await;
    let contact = id(&fixture.api("POST", "/contacts", r#"{"email": "ada@example.com"}"#).await);
    fixture.arrives("contact.created", &contact).await;
    (contact, hook)
}

pub(super) async fn invoices(fixture: &mut Installation, contact: &str) {
    let tenant = fixture.tenant.clone();
    let create = ["invoice", "create", "--tenant", &tenant, "--contact", contact, "--total", "99.95"];
    let invoice = id(&fixture.svc(&create).await);
    assert_eq!(
        fixture.arrives("invoice.created", &invoice).await["currency"],
        "NZD",
        "the tenant's currency is the default"
    );
    let path = format!("/invoices/{invoice}");
    for (step, status, event) in [
        (&["send"][..], "sent", "invoice.sent"),
        (&["resend"], "sent", "invoice.resent"),
        (&["view"], "viewed", "invoice.updated"),
        (&["pay", "--amount", "40"], "partial", "payment.succeeded"),
        (&["pay"], "paid", "invoice.paid"),
        (&["refund", "--amount", "10"], "paid", "invoice.refunded"),
    ] {
        let step = [&["invoice", step[0], &invoice], &step[1..]].concat();
        fixture.svc(&step).await;
        assert_eq!(fixture.api("GET", &path, "").await["status"], status, "{step:?}");
        fixture.arrives(event, &invoice).await;
    }
    let other = id(&fixture.svc(&[&create[..], &["--due", "2020-01-01"]].concat()).await);
    fixture.svc(&["invoice", "update", &other, "--total", "120"]).await;
    assert_eq!(fixture.arrives("invoice.updated", &other).await["total"], 120.0);
    fixture.svc(&["invoice", "send", &other]).await;
    let overdue = fixture.svc(&["invoice", "overdue", "--tenant", &tenant]).await;
    assert_eq!((overdue.as_array().unwrap().len(), &overdue[0]["id"]), (1, &json!(other)));
    fixture.svc(&["invoice", "void", &other]).await;
    fixture.arrives("invoice.voided", &other).await;
    assert_eq!(fixture.refused(&["invoice", "pay", &other]).await, Some(4));
}

pub(super) async fn quotes(fixture: &mut Installation, contact: &str) {
    for (command, status) in [("accept", "accepted"), ("decline", "declined")] {
        let body = json!({ "contact_id": contact, "total": 1500 }).to_string();
        let quote = id(&fixture.api("POST", "/quotes", &body).await);
        let path = format!("/quotes/{quote}");
        assert_eq!(
            fixture.refused(&["quote", command, &quote]).await,
            Some(4),
            "a quote that was not sent cannot be accepted or declined"
        );
        fixture.api("PATCH", &path, r#"{"status": "sent"}"#).await;
        fixture.svc(&["quote", command, &quote]).await;
        assert_eq!(fixture.api("GET", &path, "").await["status"], status);
        fixture.arrives(&format!("quote.{status}"), &quote).await;
        assert_eq!(fixture.svc(&["quote", "show", &quote]).await["status"], status);
    }
}

pub(super) async fn events_and_deliveries(fixture: &mut Installation, contact: &str, hook: &str) {
    let tenant = fixture.tenant.clone();
    fixture.file("stay.json", r#"{"id": "stay-1", "nights": 2}"#);
    let list = ["delivery", "list", "--tenant", &tenant];
    let mut followed = fixture.start(&[&list[..], &["--follow", "--since", "1h", "--event", "stay.created"]].concat());
    let emit = ["event", "emit", "--tenant", &tenant, "--kind", "stay.created", "--data", "stay.json"];
    let emitted = fixture.svc(&emit).await;
    let delivery = emitted["deliveries"][0].as_str().unwrap();
    let finished = followed.next("a delivery that has succeeded", |line| line["status"] == "succeeded").await;
    assert_eq!((finished["id"].as_str(), &finished["attempts"]), (Some(delivery), &json!(1)));
    assert_eq!(fixture.arrives("stay.created", "stay-1").await["nights"], 2);

    fixture.svc(&["delivery", "replay", delivery]).await;
    fixture.arrives("stay.created", "stay-1").await;
    let shown = fixture.until(&["delivery", "show", delivery], |shown| shown["status"] == "succeeded").await;
    assert_eq!(shown["log"].as_array().unwrap().len(), 2);
    assert_eq!(shown["log"][1]["status"], 204);

    let replay = ["delivery", "replay", "--subscription", hook, "--since", "1h", "--status", "succeeded", "--wait"];
    let all = fixture.until(&list, |all| all.as_array().unwrap().iter().all(|one| one["status"] == "succeeded")).await;
    let replayed = fixture.svc(&replay).await;
    assert_eq!((&replayed["replayed"], &replayed["percent"]), (&json!(all.as_array().unwrap().len()), &json!(100)));
    fixture.arrives("contact.created", contact).await;
    let replays = fixture.svc(&["delivery", "replays", "--tenant", &tenant]).await;
    assert_eq!(replays[0]["id"], replayed["id"]);
}

pub(super) async fn webhooks(fixture: &mut Installation, hook: &str) {
    let tested = fixture.svc(&["webhook", "test", hook, "--event", "job.created"]).await;
    assert_eq!((&tested["status"], &tested["last_status"]), (&json!("succeeded"), &json!(204)));
    let record_id = tested["body"]["data"]["id"].as_str().unwrap();
    assert_eq!(fixture.arrives("job.created", record_id).await["title"], "Replace hot water system");
    let stats = fixture.svc(&["webhook", "stats", "--tenant", &fixture.tenant]).await;
    assert!(stats[0]["attempts"].as_u64() > Some(10) && stats[0]["success_rate"] == 1.0, "{stats}");

    fixture.api("PATCH", &format!("/webhooks/{hook}"), r#"{"enabled": false}"#).await;
    assert_eq!(fixture.refused(&["webhook", "test", hook]).await, Some(4));
    assert_eq!(fixture.svc(&["webhook", "enable", hook]).await["enabled"], true);
    assert_eq!(fixture.svc(&["webhook", "list", "--tenant", &fixture.tenant]).await.as_array().unwrap().len(), 1);

    // During the overlap the old secret, which the receiver has, still signs. Afterwards it does not.
    for (flags, code, status) in [(&["--overlap", "1h"][..], 0, 204), (&["--finish"], 1, 401)] {
        fixture.svc(&[&["webhook", "rotate-secret", hook], flags].concat()).await;
        let tested = fixture.output(&["webhook", "test", hook]).await;
        let report: Value = serde_json::from_slice(&tested.stdout).unwrap();
        assert_eq!((tested.status.code(), &report["last_status"]), (Some(code), &json!(status)), "{flags:?}");
    }
    assert_eq!(fixture.svc(&["webhook", "show", hook]).await["last_delivery_status"], 401);
}

pub(super) async fn imports_and_exports(fixture: &Installation) {
    let tenant = fixture.tenant.as_str();
    let rows: String = (0..700).map(|n| format!("p{n}@example.com,Person {n}\n")).collect();
    fixture.file("people.csv", &format!("email,first_name\n{rows}"));
    let import = ["import", "contacts", "--tenant", tenant, "people.csv", "--no-events"];
    for (dry_run, added, there) in [(true, 700, 0), (false, 700, 0), (false, 0, 700)] {
        let summary = fixture.svc(&[&import[..], if dry_run { &["--dry-run"] } else { &[] }].concat()).await;
        assert_eq!((&summary["added"], &summary["there_already"]), (&json!(added), &json!(there)), "{summary}");
    }
    assert_eq!(fixture.api("GET", "/contacts?email=P699@example.com", "").await[0]["first_name"], "Person 699");
    for (kind, count) in [("contacts", 701), ("invoices", 2), ("quotes", 2), ("bookings", 0), ("jobs", 0)] {
        let exported = fixture.svc(&["export", kind, "--tenant", tenant]).await;
        assert_eq!(exported.as_array().unwrap().len(), count, "{kind}");
    }
}

/// The audit log names the actor of each change: the command line or a key.
pub(super) async fn the_audit_log(fixture: &Installation, hook: &str) {
    let log = fixture.svc(&["audit", "list", "--tenant", &fixture.tenant, "--limit", "10000"]).await;
    let who = |action: &str, object: &str| -> String {
        let entry = log.as_array().unwrap().iter().find(|one| one["action"] == action && one["object_id"] == object);
        let entry = entry.unwrap_or_else(|| panic!("no {action} of {object} in {log}"));
        entry["actor"].as_str().unwrap().split(':').next().unwrap().to_owned()
    };
    assert_eq!((who("create", &fixture.tenant).as_str(), who("create", hook).as_str()), ("cli", "key"));
}

pub(super) async fn the_database(fixture: &Installation) {
    assert_eq!(fixture.svc(&["db", "migrate"]).await["applied"], json!([]));
    assert_eq!(fixture.svc(&["db", "check"]).await, json!([]));
    let before = fixture.svc(&["db", "stats"]).await;
    assert!(before["tables"]["contacts"].as_u64() == Some(701) && before["bytes"].as_u64() > Some(0), "{before}");
    assert_eq!(fixture.svc(&["db", "prune", "--retention", "1d"]).await["events"], 0);
    let pruned = fixture.svc(&["db", "prune", "--retention", "1us"]).await;
    assert!(pruned["events"].as_u64() > Some(10), "{pruned}");
    let backup = ["db", "backup", "backup.db"];
    if before["database"] == "SQLite" {
        fixture.svc(&backup).await;
        assert_eq!(fixture.tenants_of("sqlite://backup.db").await, fixture.svc(&["tenant", "list"]).await);
    } else {
        assert_eq!(fixture.refused(&backup).await, Some(2));
    }
    assert_eq!(fixture.ping().await, 200, "the server is still up");
}
