//! `svc export`, and importing its output into another database.

use serde_json::Value;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;

use super::harness::{Session, UNKNOWN_ID, text};

#[test]
fn every_type_is_exported_as_get_returns_it() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let body = |text: String| -> &'static str { text.leak() };
    session.create::<Quote>(&account, body(format!(r#"{{"contact_id": "{contact}", "total": 99.95}}"#)));
    let times = r#""service_name": "Tune-up", "start_time": "2099-03-20T09:00:00Z", "notes": "a, \"b\"\nc""#;
    session.create::<Booking>(&account, body(format!(r#"{{"contact_id": "{contact}", {times}}}"#)));
    session.create::<Job>(&account, r#"{"title": "New tap", "estimated_total": 1234567890.5}"#);
    session.id(&["invoice", "create", "--account", &account, "--contact", &contact, "--total", "5"]);
    for kind in ["contacts", "invoices", "quotes", "bookings", "jobs"] {
        session.run(&["export", kind, "--account", &account]).run(&[
            "export",
            kind,
            "--account",
            &account,
            "--format",
            "csv",
        ]);
    }
    session
        .run(&["export", "invoices", "--account", &account, "--amount-paid"])
        .run(&["export", "quotes", "--account", &account, "--json"])
        .run(&["export", "jobs", "--account", &account, "--since", "2099-01-01T00:00:00Z"])
        .run(&["export", "jobs", "--account", &account, "--since", "2099-01-01T00:00:00Z", "--format", "csv"])
        .run(&["export", "jobs", "--account", &account, "--since", "2099-01-01T00:00:00Z", "--json"])
        .run(&["export", "jobs", "--account", &account, "--format", "csv", "--json"])
        .run(&["export", "jobs", "--account", &account, "--amount-paid"])
        .run(&["export", "jobs", "--account", UNKNOWN_ID])
        .run(&["export", "webhooks", "--account", &account])
        .assert("export");
}

/// Parses an export without `updated_at`, which differs between databases.
fn without_updated_at(export: &str) -> Vec<Value> {
    let records = export.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("updated_at").unwrap();
        record
    });
    records.collect()
}

#[test]
fn an_export_can_be_imported_into_another_database() {
    let here = Session::new();
    let account = here.account();
    let ada = here.contact(&account);
    here.create::<Contact>(&account, r#"{"email": "Zoë@example.com", "city": "x"}"#.replace('ë', "e").leak());
    let gone = here.create::<Contact>(&account, r#"{"email": "gone@example.com"}"#).id;
    let cleared = here.create::<Contact>(&account, r#"{"email": "cleared@example.com"}"#).id;
    let id = svc_core::values::TenantId(svc_core::values::parse_uuid(&account).unwrap());
    here.write((id, gone), async |tx, &(id, gone)| svc_core::resources::crud::delete::<Contact>(tx, id, gone).await);
    here.write((id, cleared), async |tx, &(id, cleared)| {
        let change = svc_core::input::Input::from_body(br#"{"email": null}"#);
        svc_core::resources::crud::update::<Contact>(tx, id, cleared, change?).await
    });
    // More records than one page has.
    let more: String = (0..450).map(|n| format!(",\"Many, {n}\"\n")).collect();
    here.file("more.csv", format!("email,first_name\n{more}"));
    here.json(&["import", "contacts", "--account", &account, "more.csv"]);
    let create = ["invoice", "create", "--account", &account, "--contact", &ada, "--total", "100"];
    let invoices: Vec<String> = (0..6).map(|_| here.id(&create)).collect();
    for (step, invoice, amount) in [
        ("send", 1, ""),
        ("pay", 2, "30"),
        ("pay", 3, ""),
        ("refund", 3, "10"),
        ("pay", 4, ""),
        ("refund", 4, ""),
        ("void", 5, ""),
    ] {
        let amount: &[&str] = if amount.is_empty() { &[] } else { &["--amount", amount] };
        here.json(&[&["invoice", step, &invoices[invoice]], amount].concat());
    }

    for format in ["ndjson", "csv"] {
        let there = Session::new();
        let fresh = there.account();
        for kind in ["contacts", "invoices"] {
            let with: &[&str] = if kind == "invoices" { &["--amount-paid"] } else { &[] };
            let export = |session: &Session, account: &str, format: &str| {
                let args = [&["export", kind, "--account", account, "--format", format], with].concat();
                let output = session.output(&args);
                assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
                text(&output.stdout)
            };
            there.file("records", export(&here, &account, format));
            for added in [true, false] {
                let summary = there.json(&["import", kind, "--account", &fresh, "records"]);
                let field = if added { "added" } else { "there_already" };
                assert_eq!(summary["rows"], summary[field], "{kind} {format}: {summary}");
            }
            let (mine, theirs) = (export(&here, &account, "ndjson"), export(&there, &fresh, "ndjson"));
            assert_eq!(without_updated_at(&mine), without_updated_at(&theirs), "{kind} {format}");
            assert!(theirs.lines().count() >= 6);
        }
        let next = ["invoice", "create", "--account", &fresh, "--contact", &ada, "--total", "1"];
        assert_eq!(there.json(&next)["invoice_number"], "INV-0007");
    }
}

#[test]
fn formulas_are_escaped_for_spreadsheets_and_come_back() {
    let here = Session::new();
    let account = here.account();
    let body = r#"{"email": "ada@example.com", "first_name": "=HYPERLINK(\"http://example.com\")", "last_name": "'=1", "phone": "+61 2 5550 0100"}"#;
    here.create::<Contact>(&account, body);
    let export = |session: &Session, account: &str, args: &[&str]| {
        text(&session.output(&[&["export", "contacts", "--account", account], args].concat()).stdout)
    };
    let csv = export(&here, &account, &["--format", "csv", "--escape-formulas"]);
    assert!(csv.contains(r#",ada@example.com,"'=HYPERLINK(""http://example.com"")",''=1,'+61 2 5550 0100,"#), "{csv}");
    let unescaped = export(&here, &account, &["--format", "csv"]);
    // An import takes no formula, so these keep their apostrophe.
    assert!(
        unescaped.contains(r#",ada@example.com,"'=HYPERLINK(""http://example.com"")",''=1,+61 2 5550 0100,"#),
        "{unescaped}"
    );
    for csv in [csv, unescaped] {
        let there = Session::new();
        let fresh = there.account();
        there.file("contacts.csv", csv);
        there.json(&["import", "contacts", "--account", &fresh, "contacts.csv"]);
        let ndjson = |session, account: &str| without_updated_at(&export(session, account, &[]));
        assert_eq!(ndjson(&here, &account), ndjson(&there, &fresh));
    }
    let refused = here.output(&["export", "contacts", "--account", &account, "--escape-formulas"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--escape-formulas applies to --format csv only."));
}

/// Creates an account with records of every type, some of them of a contact that is deleted.
fn with_all_records(session: &Session) -> String {
    let account = session.account();
    let id = svc_core::values::TenantId(svc_core::values::parse_uuid(&account).unwrap());
    let body = |text: &str, contact: &str| -> &'static str { text.replace("CONTACT", contact).leak() };
    let ada = session.contact(&account);
    let gone = session.create::<Contact>(&account, r#"{"email": "gone@example.com", "last_name": "=1"}"#).id;
    for contact in [&ada, &gone.to_string()] {
        session.create::<Quote>(&account, body(r#"{"contact_id": "CONTACT", "total": 99.95}"#, contact));
        session.create::<Quote>(&account, body(r#"{"contact_id": "CONTACT", "total": 7, "currency": "JPY"}"#, contact));
        let booking = r#"{"contact_id": "CONTACT", "service_name": "Tune-up", "start_time": "2099-03-20T09:00:00Z",
            "notes": " a, \"b\"\n\u202ec "}"#;
        session.create::<Booking>(&account, body(booking, contact));
        let job =
            r#"{"title": "New tap", "contact_id": "CONTACT", "status": "completed", "estimated_total": 1234567890.5}"#;
        session.create::<Job>(&account, body(job, contact));
        let create = ["invoice", "create", "--account", &account, "--contact", contact, "--total", "100"];
        let invoices: Vec<String> = (0..3).map(|_| session.id(&create)).collect();
        session.json(&["invoice", "pay", &invoices[1], "--amount", "30.5"]);
        session.json(&["invoice", "pay", &invoices[2]]);
        session.json(&["invoice", "refund", &invoices[2], "--amount", "10"]);
    }
    session.write((id, gone), async |tx, &(id, gone)| svc_core::resources::crud::delete::<Contact>(tx, id, gone).await);
    session.create::<Contact>(&account, r#"{"email": "gone@example.com"}"#);
    // More records than one page has.
    let many: String = (0..450).map(|n| format!("p{n}@example.com,\"Many, {n}\"\n")).collect();
    session.file("many.csv", format!("email,first_name\n{many}"));
    session.json(&["import", "contacts", "--account", &account, "many.csv"]);
    account
}

#[test]
fn all_records_of_an_account_move_to_another_database() {
    let here = Session::new();
    let account = with_all_records(&here);
    let server = svc_test_support::postgres::server();
    let postgres = server.as_ref().map(|server| server.database());
    let key = "01".repeat(32);
    let run = |session: &Session, url: &str, args: &[&str]| {
        let mut program = session.program(args);
        let output = program.args(["--database-url", url]).env("SVC_SECRET_KEY", &key).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
        text(&output.stdout)
    };
    let exported = text(&here.output(&["export", "all", "--account", &account]).stdout);
    let count = |kind: &str| exported.matches(&format!("{{\"kind\":\"{kind}\",")).count();
    assert_eq!(["contacts", "invoices", "quotes", "bookings", "jobs"].map(count), [453, 6, 4, 2, 2]);
    assert_eq!(exported.lines().count(), 467);
    assert!(exported.lines().any(|line| line.contains("\"deleted_at\":") && line.contains("gone@example.com")));

    let ada: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    let contact = ada["id"].as_str().unwrap();

    // From this database to the next, and from there to the one after it.
    let there = Session::new();
    let mut from = exported.clone();
    for url in ["sqlite://next.db"].into_iter().chain(postgres.as_deref()).chain(["sqlite://last.db"]) {
        run(&there, url, &["db", "migrate"]);
        let created: Value =
            serde_json::from_str(&run(&there, url, &["account", "create", "--name", "X", "--json"])).unwrap();
        let fresh = created["id"].as_str().unwrap();
        there.file("all.ndjson", &from);
        for field in ["added", "there_already"] {
            let imported = run(&there, url, &["import", "all", "--account", fresh, "all.ndjson", "--json"]);
            let summary: Value = serde_json::from_str(&imported).unwrap();
            assert_eq!((&summary["rows"], &summary[field]), (&467.into(), &467.into()), "{url}: {summary}");
        }
        from = run(&there, url, &["export", "all", "--account", fresh]);
        assert_eq!(from, exported, "{url}");
        assert_eq!(run(&there, url, &["delivery", "list", "--account", fresh, "--json"]).trim(), "[]");
        let create = ["invoice", "create", "--account", fresh, "--contact", contact, "--total", "1", "--json"];
        let next = run(&there, url, &create);
        assert!(next.contains("\"INV-0007\""), "{next}");
        run(&there, url, &["db", "check"]);
    }
}

#[test]
fn changes_of_an_account_follow_its_records() {
    let here = Session::new();
    let account = with_all_records(&here);
    let export = |session: &Session, account: &str, args: &[&str]| {
        text(&session.output(&[&["export", "all", "--account", account], args].concat()).stdout)
    };
    let there = Session::new();
    let fresh = there.account();
    let import = |rows: String| {
        there.file("all", rows);
        let summary = there.json(&["import", "all", "--account", &fresh, "all"]);
        ["added", "updated", "refused"].map(|field| summary[field].as_u64().unwrap())
    };
    let first = export(&here, &account, &[]);
    assert_eq!(import(first.clone()), [467, 0, 0]);
    let last: Value = serde_json::from_str(first.lines().last().unwrap()).unwrap();
    let since = last["updated_at"].as_str().unwrap();
    let zoe = here.create::<Contact>(&account, r#"{"email": "zoe@example.com"}"#).id.to_string();
    here.id(&["invoice", "create", "--account", &account, "--contact", &zoe, "--total", "1"]);
    let paid = first.lines().find(|line| line.contains("\"kind\":\"invoices\"")).unwrap();
    let paid: Value = serde_json::from_str(paid).unwrap();
    here.json(&["invoice", "pay", paid["id"].as_str().unwrap()]);
    let [added, updated, _] = import(export(&here, &account, &["--since", since]));
    assert_eq!(updated, 1);
    assert!(added >= 2, "{added}");
    assert_eq!(import(export(&here, &account, &[])), [0, 0, 0]);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(export(&here, &account, &[])), sorted(export(&there, &fresh, &[])));
}

#[test]
fn an_account_with_later_changes_takes_no_earlier_records() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let other = session.account();
    session.create::<Contact>(&other, r#"{"email": "zoe@example.com"}"#);
    let export = session.output(&["export", "all", "--account", &account]);
    session.file("all.ndjson", &export.stdout);
    session.file("unknown.ndjson", "{\"kind\":\"people\",\"id\":1}\n{\"kind\":\"jobs\",\"id\":1}\n");
    session
        .run(&["import", "all", "--account", &other, "all.ndjson"])
        .run(&["import", "all", "--account", &other, "unknown.ndjson"])
        .run(&["import", "all", "--account", &other, "all.ndjson", "--dry-run"])
        .run(&["import", "all", "--account", &other, "all.ndjson", "--update"])
        .run(&["import", "all", "--account", &other, "all.ndjson", "--format", "csv"])
        .run(&["export", "all", "--account", &account, "--format", "csv"])
        .run(&["export", "all", "--account", &account])
        .assert("import_all");
    assert_eq!(contact.len(), 36);
}
