//! Several processes that use one database at the same time.

use std::process::{Child, Output, Stdio};

use crate::harness::Session;

#[test]
fn several_processes_can_create_the_database_at_once() {
    let session = Session::new();
    let create = ["account", "create", "--name", "Harbour Plumbing"];
    let running: Vec<_> = (0..8).map(|_| session.program(&create).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(session.json(&["account", "list"]).as_array().unwrap().len(), 8);
}

/// Runs a command several times at once: starts all processes before it waits for the first.
fn run_concurrently(session: &Session, args: &[&str], count: usize) -> Vec<Output> {
    let start = || session.program(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running: Vec<Child> = (0..count).map(|_| start()).collect();
    running.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

fn exit_codes(outputs: &[Output]) -> Vec<Option<i32>> {
    let mut codes: Vec<Option<i32>> = outputs.iter().map(|output| output.status.code()).collect();
    codes.sort_unstable();
    codes
}

#[test]
fn concurrent_payments_never_exceed_the_total() {
    let session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total", "100"];

    let whole = session.id(&create);
    let paid = run_concurrently(&session, &["invoice", "pay", &whole], 6);
    assert_eq!(exit_codes(&paid), [0, 4, 4, 4, 4, 4].map(Some), "{paid:?}");

    // The total of 100 has room for three payments of 30.
    let parts = session.id(&create);
    let paid = run_concurrently(&session, &["invoice", "pay", &parts, "--amount", "30"], 5);
    let succeeded = exit_codes(&paid).into_iter().filter(|code| *code == Some(0)).count();
    assert_eq!(succeeded, 3, "{paid:?}");
    let rest = session.json(&["invoice", "pay", &parts, "--amount", "10"]);
    assert_eq!(rest["status"], "paid");
}

#[test]
fn concurrent_invoices_get_consecutive_numbers() {
    let session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total", "1", "--json"];
    let created = run_concurrently(&session, &create, 12);
    let number = |output: &Output| {
        let invoice: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        invoice["invoice_number"].as_str().unwrap().to_owned()
    };
    let mut numbers: Vec<String> = created.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=12).map(|n| format!("INV-{n:04}")).collect::<Vec<_>>());
}
