//! `svc db check`, `backup`, `stats` and `prune`.

use std::os::unix::fs::PermissionsExt as _;

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
    assert!(stats["bytes"].as_u64() > Some(100_000) && stats["schema"].as_str() >= Some("0003"));
    let shown = text(&session.output(&["db", "stats"]).stdout);
    assert!(shown.contains("1 pending") && shown.contains("subscription_kinds"), "{shown}");
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
