use std::process::{Command, Stdio};

use svc_test_support::postgres::server;

use crate::harness::{Session, text, until};

/// Asserts that commands print the same for two databases.
fn assert_same(session: &Session, one: &str, other: &str) {
    for args in [&["account", "list"][..], &["db", "migrate"]] {
        let ask = |url| session.json(&[args, &["--database-url", url]].concat());
        assert_eq!(ask(one), ask(other), "{args:?}");
    }
}

#[test]
fn a_sqlite_database_is_copied_to_another_file() {
    let mut session = Session::new();
    session.demo();
    let copied = session.json(&["db", "copy", "sqlite://svc.db", "sqlite://new.db"]);
    assert_eq!(copied["equal"], true);
    let tables = copied["tables"].as_array().unwrap();
    assert!(tables.iter().any(|table| table["table"] == "contacts" && table["source"]["rows"].as_u64() > Some(3)));
    assert_same(&session, "sqlite://svc.db", "sqlite://new.db");
    session
        .run(&["db", "copy", "sqlite://svc.db", "sqlite://new.db"])
        .run(&["db", "copy", "sqlite://svc.db", "sqlite://svc.db"])
        .run(&["db", "copy", "sqlite://missing.db", "sqlite://third.db"])
        .run(&["db", "copy", "sqlite://svc.db"])
        .run(&["db", "copy", "sqlite://svc.db", "mysql://localhost/svc"]);
    let empty = Session::new();
    empty.json(&["account", "list"]);
    std::fs::copy(empty.folder().join("svc.db.key"), session.folder().join("other.db.key")).unwrap();
    session.run(&["db", "copy", "sqlite://svc.db", "sqlite://other.db"]).assert("db_copy_refused");
    let table = text(&session.output(&["db", "copy", "sqlite://svc.db", "sqlite://new.db", "--resume"]).stdout);
    assert!(table.contains("equal") && table.ends_with("Copied 0 rows.\n"), "{table}");
}

#[test]
fn a_sqlite_database_is_copied_to_postgresql_and_back() {
    let Some(server) = server() else { return };
    let url = server.database();
    let session = Session::new();
    session.demo();
    let run = |args: &[&str], key: Option<&str>| {
        let mut program = session.program(args);
        program.arg("--json").envs(key.map(|key| ("SVC_SECRET_KEY", key)));
        program.output().unwrap()
    };
    let without = run(&["db", "copy", "sqlite://svc.db", &url], None);
    assert_eq!(without.status.code(), Some(4), "{without:?}");
    let reason = text(&without.stderr);
    assert!(reason.contains("Set SVC_SECRET_KEY to the source's key") && reason.contains("svc.db.key"), "{reason}");
    let key = std::fs::read_to_string(session.folder().join("svc.db.key")).unwrap();
    let sums = |args: &[&str]| {
        let output = run(args, Some(key.trim()));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["equal"], true);
        let tables = report["tables"].as_array().unwrap().clone();
        tables.into_iter().map(|table| table["source"].clone()).collect::<Vec<_>>()
    };
    let source_sums = sums(&["db", "copy", "sqlite://svc.db", &url]);
    assert_eq!(sums(&["db", "copy", &url, "sqlite://back.db"]), source_sums);
    // A key from the environment is not written to a file.
    assert!(!session.folder().join("back.db.key").exists());
    let wrong = run(&["db", "copy", &url, "sqlite://back.db", "--resume"], Some(&"0".repeat(64)));
    assert_eq!(wrong.status.code(), Some(5), "{wrong:?}");
}

/// The copy is killed at several points.
#[test]
fn a_killed_copy_can_be_continued() {
    let session = Session::new();
    let account = session.account();
    let account = svc_core::values::TenantId(svc_core::values::parse_uuid(&account).unwrap());
    session.write(account, async |tx, &account| {
        for number in 0..6000 {
            let body = format!(r#"{{"email": "c{number}@example.com"}}"#);
            let input = svc_core::input::Input::from_body(body.as_bytes())?;
            svc_core::resources::crud::create::<svc_core::resources::contacts::Contact>(tx, account, input).await?;
        }
        Ok(())
    });
    let command = ["db", "copy", "sqlite://svc.db", "sqlite://new.db", "--resume"];
    let written = || -> u64 {
        let size = |name| std::fs::metadata(session.folder().join(name)).map_or(0, |file| file.len());
        size("new.db") + size("new.db-wal")
    };
    let mut killed = 0;
    for kilobytes in [64, 512, 1024, 1536, 2048] {
        let mut program: Command = session.program(&command);
        let mut child = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_running = until("a part of the copy, or all", || match child.try_wait().unwrap() {
            Some(_) => Some(false),
            None => (written() >= kilobytes * 1024).then_some(true),
        });
        killed += i32::from(is_running);
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(killed > 0);
    assert_eq!(session.json(&command)["equal"], true);
    assert_same(&session, "sqlite://svc.db", "sqlite://new.db");
}
