//! Clocks that are ahead: `svc db repair-clock`, and what a machine whose clock is ahead may write.

use serde_json::json;
use svc_core::values::{TenantId, Timestamp, parse_uuid};

use crate::harness::{Session, UNKNOWN_ID, report_skipped, text};

fn set_clock(session: &Session, account: &str, at: &str) {
    let (account, at) = (TenantId(parse_uuid(account).unwrap()), Timestamp::parse(at).unwrap());
    session.write((account, at), async |tx, &(account, at)| Ok(tx.set_clock(account, at).await?));
}

#[test]
fn repair_clock_sets_clocks_back_to_the_latest_record() {
    let mut session = Session::new();
    let (mendable, written) = (session.account(), session.account());
    let nothing = session.output(&["db", "repair-clock"]);
    assert!(text(&nothing.stderr).contains("No clock is ahead of now."), "{nothing:?}");
    set_clock(&session, &mendable, "2099-01-01T00:00:00Z");
    set_clock(&session, &written, "2099-01-01T00:00:00Z");
    session.contact(&written);
    assert_eq!(session.output(&["db", "check"]).status.code(), Some(1));
    assert_eq!(session.output(&["db", "repair-clock", "--account", UNKNOWN_ID]).status.code(), Some(3));

    session.run(&["db", "repair-clock", "--json"]);
    set_clock(&session, &mendable, "2099-01-01T00:00:00Z");
    session.run(&["db", "repair-clock"]).assert("db_repair_clock");
    set_clock(&session, &mendable, "2099-01-01T00:00:00Z");
    let one = session.json(&["db", "repair-clock", "--account", &mendable]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    let of = |field: &str| one[0][field].clone();
    assert_eq!((of("tenant_id"), of("before")), (json!(mendable), json!("2099-01-01T00:00:00.000000Z")));
    assert!(of("after").as_str() < Some("2099") && of("ahead") == false, "{one}");
    let rest = session.output(&["db", "repair-clock"]);
    let (shown, note) = (text(&rest.stdout), text(&rest.stderr));
    assert!(shown.contains(&written) && !shown.contains(&mendable) && shown.contains("yes"), "{shown}");
    assert!(note.contains("the account's latest record"), "{note}");
    let audit = session.json(&["audit", "list", "--account", &mendable]);
    assert!(audit.as_array().unwrap().iter().any(|entry| entry["action"] == "repair_clock"), "{audit}");
}

#[test]
fn nothing_is_written_under_a_clock_that_is_ahead() {
    let session = Session::new();
    let account = session.account();
    let under = |lead: &str, args: &[&str]| {
        let program = session.program(args);
        let mut command = std::process::Command::new("faketime");
        command.args(["-f", lead]).arg(program.get_program()).args(program.get_args());
        command.env_remove("SVC_DATABASE_URL").current_dir(session.folder()).output()
    };
    let create = ["key", "create", "--account", &account, "--scopes", "read", "--json"];
    let Ok(refused) = under("+1h", &create) else { return report_skipped("faketime") };
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(text(&refused.stderr).contains("--allow-clock-jump"), "{refused:?}");
    assert_eq!(under("+1h", &["account", "list"]).unwrap().status.code(), Some(0), "reading is allowed");
    assert_eq!(session.json(&["key", "list", "--account", &account]), json!([]));
    let insisted = under("+1h", &[&create[..], &["--allow-clock-jump"]].concat()).unwrap();
    assert_eq!(insisted.status.code(), Some(0), "{insisted:?}");
    assert_eq!(under("+30s", &create).unwrap().status.code(), Some(0));
}
