use super::harness::{Session, UNKNOWN_ID};

#[test]
fn output_for_people() {
    let mut session = Session::new();
    // There are other accounts, and the account of an invoice is found by the invoice's id alone.
    session.account();
    let account = session.account();
    session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total"];
    let paid = session.id(&[&create[..], &["99.95"]].concat());
    let voided = session.id(&[&create[..], &["1500", "--currency", "JPY"]].concat());
    session
        .run(&[&create[..], &["99.950", "--due", "2099-04-13"]].concat())
        .run(&["invoice", "send", &paid])
        .run(&["invoice", "view", &paid])
        .run(&["invoice", "resend", &paid])
        .run(&["invoice", "pay", &paid, "--amount", "40"])
        .run(&["invoice", "pay", &paid, "--amount", "60"])
        .run(&["invoice", "void", &paid])
        .run(&["invoice", "pay", &paid])
        .run(&["invoice", "pay", &paid])
        .run(&["invoice", "send", &paid])
        .run(&["invoice", "resend", &voided])
        .run(&["invoice", "pay", &voided, "--amount", "0.5"])
        .run(&["invoice", "void", &voided])
        .run(&["invoice", "void", &voided])
        .assert("invoice");
}

#[test]
fn output_for_programs() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--json", "--account", &account, "--contact", &contact, "--total"];
    let paid = session.id(&[&create[..], &["99.95", "--due", "2099-04-13"]].concat());
    let voided = session.id(&[&create[..], &["999999999999.9999", "--currency", "CLF"]].concat());
    session
        .run(&[&create[..], &["100.00"]].concat())
        .run(&["invoice", "send", &paid, "--json"])
        .run(&["invoice", "view", &paid, "--json"])
        .run(&["invoice", "resend", &paid, "--json"])
        .run(&["invoice", "pay", &paid, "--amount", "40", "--json"])
        .run(&["invoice", "pay", &paid, "--json"])
        .run(&["invoice", "void", &voided, "--json"])
        .assert("invoice_json");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total"];
    session
        .run(&["invoice", "create", "--account", &account])
        .run(&["invoice", "create", "--account", &account, "--contact", "nobody", "--total", "1"])
        .run(&["invoice", "create", "--account", &account, "--contact", UNKNOWN_ID, "--total", "1"])
        .run(&["invoice", "create", "--account", UNKNOWN_ID, "--contact", UNKNOWN_ID, "--total", "1"])
        .run(&[&create[..], &["-1"]].concat())
        .run(&[&create[..], &["1,50"]].concat())
        .run(&[&create[..], &["0.005"]].concat())
        .run(&[&create[..], &["1e13"]].concat())
        .run(&[&create[..], &["1", "--currency", "EURO"]].concat())
        .run(&[&create[..], &["1.5", "--currency", "JPY"]].concat())
        .run(&[&create[..], &["1", "--due", "2099-02-30"]].concat());
    for step in ["send", "view", "pay", "void", "resend", "refund"] {
        session.run(&["invoice", step, UNKNOWN_ID]);
    }
    session.run(&["invoice", "send"]).run(&["invoice", "pay", UNKNOWN_ID, "--amount", "-5"]).assert("invoice_refused");
}

#[test]
fn refunds_and_updates() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total", "100"];
    let (paid, sent) = (session.id(&create), session.id(&create));
    session.output(&["invoice", "pay", &paid]);
    session
        .run(&["invoice", "refund", &sent])
        .run(&["invoice", "refund", &paid, "--amount", "100.01"])
        .run(&["invoice", "refund", &paid, "--amount", "40"])
        .run(&["invoice", "update", &paid, "--total", "60"])
        .run(&["invoice", "refund", &paid, "--json"])
        .run(&["invoice", "refund", &paid])
        .run(&["invoice", "update", &sent])
        .run(&["invoice", "update", UNKNOWN_ID, "--total", "60"])
        .run(&["invoice", "update", &sent, "--contact", UNKNOWN_ID])
        .run(&["invoice", "update", &sent, "--total", "60", "--due", "2099-04-13", "--currency", "NZD"])
        .run(&["invoice", "update", &sent, "--total", "60.00"])
        .run(&["invoice", "update", &sent, "--total", "60.005"])
        .run(&["invoice", "send", &sent])
        .run(&["invoice", "update", &sent, "--currency", "AUD"])
        .run(&["invoice", "update", &sent, "--contact", &contact, "--total", "61", "--json"])
        .assert("invoice_changes");
}

#[test]
fn overdue_marks_unpaid_invoices_past_their_due_date() {
    let mut session = Session::new();
    let accounts = [session.account(), session.account()];
    for account in &accounts {
        let contact = session.contact(account);
        let create = ["invoice", "create", "--account", account, "--contact", &contact, "--total", "100", "--due"];
        for due in ["2020-01-01", "2099-01-01"] {
            let id = session.id(&[&create[..], &[due]].concat());
            session.output(&["invoice", "send", &id]);
        }
    }
    session
        .run(&["invoice", "overdue", "--account", UNKNOWN_ID])
        .run(&["invoice", "overdue", "--account", &accounts[1]])
        .run(&["invoice", "overdue", "--json"])
        .run(&["invoice", "overdue", "--json"])
        .run(&["invoice", "overdue"])
        .assert("invoice_overdue");
}

#[test]
fn an_id_that_several_accounts_have_is_refused_without_the_account() {
    let mut session = Session::new();
    let accounts = [session.account(), session.account(), session.account()];
    let id = "0195a3c8-0000-7000-8000-000000000003";
    session.file("invoices.csv", format!("id,invoice_number,total,status\n{id},A-1,100,sent\n"));
    for account in &accounts[..2] {
        session.json(&["import", "invoices", "--account", account, "invoices.csv"]);
    }
    session
        .run(&["invoice", "pay", id])
        .run(&["invoice", "update", id, "--total", "90"])
        .run(&["invoice", "pay", id, "--account", &accounts[2]])
        .run(&["invoice", "pay", id, "--account", UNKNOWN_ID])
        .run(&["invoice", "pay", id, "--account", &accounts[1], "--amount", "40"])
        .run(&["invoice", "update", id, "--account", &accounts[0], "--total", "90"]);
    let status = |account: &str| {
        let exported = session.output(&["export", "invoices", "--account", account]);
        serde_json::from_slice::<serde_json::Value>(&exported.stdout).unwrap()["status"].clone()
    };
    assert_eq!((status(&accounts[0]), status(&accounts[1])), ("sent".into(), "partial".into()));
    session.assert("invoice_of_several_accounts");
}
