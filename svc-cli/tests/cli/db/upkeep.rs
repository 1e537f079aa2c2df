//! `svc db check`, `backup`, `stats` and `prune`.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use serde_json::value::RawValue;
use svc_core::accounts::clocks;
use svc_core::values::{EventKind, TenantId, Timestamp, parse_uuid};
use svc_core::webhooks::events::Event;

use crate::harness::{Session, text};

#[test]
fn check_reports_problems() {
    let mut session = Session::new();
    session.demo();
    assert_eq!(session.json(&["db", "check"]), serde_json::json!([]));
    let sound = text(&session.output(&["db", "check"]).stdout);
    assert!(sound.starts_with("The database has no problems. "), "{sound}");
    let account = session.account();
    let account = svc_core::values::TenantId(svc_core::values::parse_uuid(&account).unwrap());
    session.write(account, async |tx, &account| {
        let input = svc_core::input::Input::from_body(br#"{"title": "x"}"#)?;
        let mut job: svc_core::resources::jobs::Job = svc_core::resources::crud::create(tx, account, input).await?;
        job.job_number = "JOB-0041".to_owned();
        Ok(svc_core::store::Repository::update(tx, account, &job).await?)
    });
    session.run(&["db", "check"]).run(&["db", "check", "--json"]);
    let other = Session::new();
    other.json(&["account", "list"]);
    std::fs::copy(other.folder().join("svc.db.key"), session.folder().join("svc.db.key")).unwrap();
    let locked = session.output(&["db", "check"]);
    assert_eq!(locked.status.code(), Some(5));
    session
        .run(&["db", "check", "--database-url", "sqlite://missing.db"])
        .run(&["db", "backup", "b.db", "--database-url", "postgres://svc@localhost/svc"])
        .assert("db_check_refused");
}

#[test]
fn a_backup_is_a_usable_database() {
    let session = Session::new();
    session.demo();
    let created = session.output(&["db", "backup", "backup.db", "--json"]);
    assert_eq!(created.status.code(), Some(0));
    assert!(text(&created.stderr).contains("keep both"), "{created:?}");
    let created: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!((created["file"].as_str(), created["key_file"].as_str()), (Some("backup.db"), Some("backup.db.key")));
    let mode = |name: &str| std::fs::metadata(session.folder().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("backup.db"), mode("backup.db.key")), (0o600, 0o600));
    let list = |url| session.json(&["account", "list", "--database-url", url]);
    assert_eq!(list("sqlite://backup.db"), list("sqlite://svc.db"));
    assert_eq!(session.json(&["db", "check", "--database-url", "sqlite://backup.db"]), serde_json::json!([]));
    assert_eq!(session.output(&["db", "backup", "backup.db"]).status.code(), Some(4));
    // With the key in the environment, there is no key file to copy.
    let key = std::fs::read_to_string(session.folder().join("svc.db.key")).unwrap();
    let output = session.program(&["db", "backup", "other.db"]).env("SVC_SECRET_KEY", key.trim()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!session.folder().join("other.db.key").exists());
}

#[test]
fn commands_on_a_small_database_for_people_and_programs() {
    let mut session = Session::new();
    let account = session.account();
    session.contact(&account);
    for json in [&[][..], &["--json"]] {
        let (copy, backup) = if json.is_empty() { ("sqlite://a.db", "c.db") } else { ("sqlite://b.db", "d.db") };
        session
            .run(&[&["db", "check"], json].concat())
            .run(&[&["db", "stats"], json].concat())
            .run(&[&["db", "backup", backup], json].concat())
            .run_truncated(&[&["db", "copy", "sqlite://svc.db", copy], json].concat());
    }
    session.assert("db_small");
}

/// The test cannot create old rows, so it prunes with a retention of one microsecond.
#[test]
fn old_finished_deliveries_are_pruned() {
    let mut session = Session::new();
    let account = session.account();
    session.create::<svc_core::webhooks::subscriptions::WebhookSubscription>(
        &account,
        r#"{"url": "https://example.com", "events": ["*"]}"#,
    );
    session.contact(&account);
    session.create::<svc_core::resources::jobs::Job>(&account, r#"{"title": "x"}"#);
    let id = svc_core::values::TenantId(svc_core::values::parse_uuid(&account).unwrap());
    session.write(id, async |tx, &id| {
        let mut delivery = tx.list_deliveries(id, &svc_core::store::DeliveryFilter::default()).await?.remove(0);
        delivery.status = svc_core::webhooks::deliveries::DeliveryStatus::Failed;
        delivery.next_attempt_at = None;
        Ok(tx.update_delivery(&delivery, None).await?)
    });
    session
        .run(&["db", "prune"])
        .run(&["db", "prune", "--retention", "1us", "--dry-run"])
        .run(&["db", "prune", "--retention", "1us", "--json"])
        .run(&["db", "prune", "--retention", "1us"])
        .run(&["db", "prune", "--retention", "0s"])
        .assert("db_prune");
    let stats = session.json(&["db", "stats"]);
    assert_eq!(
        (stats["tables"]["events"].as_u64(), &stats["deliveries"]),
        (Some(1), &serde_json::json!({ "pending": 1 }))
    );
    assert_eq!((stats["database"].as_str(), stats["oldest_pending"].is_string()), (Some("SQLite"), true));
    assert!(stats["bytes"].as_u64() > Some(100_000) && stats["schema"].as_str() >= Some("0001"));
    let shown = text(&session.output(&["db", "stats"]).stdout);
    assert!(shown.contains("1 pending") && shown.contains("subscription_kinds"), "{shown}");
}

/// Enough that a prune is under way when the test has seen its first steps, after each of which it pauses.
const MANY: usize = 10_000;
/// How many events a step deletes.
const STEP: usize = 100;

#[test]
fn an_interrupted_prune_says_what_it_has_deleted() {
    let session = Session::new();
    let account = TenantId(parse_uuid(&session.account()).unwrap());
    let times = session.write(account, async |tx, &tenant_id| {
        let mut times = Vec::new();
        for _ in 0..MANY {
            let created_at = clocks::advance_clock(tx, tenant_id).await?;
            let data = RawValue::from_string("{}".to_owned()).unwrap();
            let (id, kind) = (tx.env().id(created_at), EventKind::ContactCreated);
            tx.insert_event(&Event { id, tenant_id, kind, data, created_at, only_for: None }).await?;
            times.push(created_at);
        }
        Ok(times)
    });
    let prune = ["db", "prune", "--retention", "1us", "--json"];
    let child = session.program(&prune).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A step has been counted when the next one begins.
    session.with_store(async |store, _| {
        let oldest = async || {
            let first = store.read("test", account, async |tx, &account| {
                Ok(tx.events_after(account, Timestamp::from_micros(0), 1).await?.pop())
            });
            first.await.unwrap().map(|event| event.created_at)
        };
        while oldest().await.is_some_and(|oldest| oldest <= times[2 * STEP]) {
            std::thread::yield_now();
        }
    });
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let refusal = text(&output.stderr);
    assert!(refusal.contains("Interrupted. Run the same command again to delete the rest."), "{refusal}");
    let counted = serde_json::from_slice::<Value>(&output.stdout).unwrap()["events"].as_u64().unwrap();
    let left = session.json(&["db", "stats"])["tables"]["events"].as_u64().unwrap();
    let deleted = MANY as u64 - left;
    assert!(counted >= 2 * STEP as u64 && left > 0, "{counted} are counted, {left} are left");
    // The step that was under way ends, and is not counted.
    assert!(deleted == counted || deleted == counted + STEP as u64, "{counted} of {deleted} are counted");
    assert_eq!(session.json(&prune)["events"], left);
    assert_eq!(session.json(&["db", "stats"])["tables"]["events"], 0);
}

#[test]
fn what_is_not_a_complete_database_is_refused() {
    let mut session = Session::new();
    session.account();
    session.file("empty.db", "");
    session.file("alone.db.key", "0".repeat(64));
    session
        .run(&["db", "check", "--database-url", "sqlite://empty.db"])
        .run(&["db", "stats", "--database-url", "sqlite://empty.db"])
        .run(&["db", "backup", "copy.db", "--database-url", "sqlite://empty.db"])
        .run(&["db", "check", "--database-url", "sqlite://alone.db"])
        .run(&["db", "migrate", "--database-url", "sqlite://alone.db"])
        .run(&["init", "--database-url", "sqlite://alone.db"])
        .run(&["db", "backup", "missing/copy.db"]);
    assert_eq!(session.files(), ["alone.db.key", "empty.db", "svc.db", "svc.db.key"]);
    session.file("empty.db.key", "0".repeat(64));
    session.run(&["account", "list", "--database-url", "sqlite://empty.db"]).assert("db_incomplete");
    assert_eq!(std::fs::metadata(session.folder().join("empty.db")).unwrap().len(), 0);
}
