//! `svc export`, and importing its output into another database.

use serde_json::Value;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;

use crate::harness::{Session, UNKNOWN_ID, text};

#[test]
fn every_type_is_exported_as_get_returns_it() {
    let mut session = Session::new();
    let tenant = session.tenant();
    let contact = session.contact(&tenant);
    let body = |text: String| -> &'static str { text.leak() };
    session.create::<Quote>(&tenant, body(format!(r#"{{"contact_id": "{contact}", "total": 99.95}}"#)));
    let times = r#""service_name": "Tune-up", "start_time": "2099-03-20T09:00:00Z", "notes": "a, \"b\"\nc""#;
    session.create::<Booking>(&tenant, body(format!(r#"{{"contact_id": "{contact}", {times}}}"#)));
    session.create::<Job>(&tenant, r#"{"title": "New tap", "estimated_total": 1234567890.5}"#);
    session.id(&["invoice", "create", "--tenant", &tenant, "--contact", &contact, "--total", "5"]);
    for kind in ["contacts", "invoices", "quotes", "bookings", "jobs"] {
        session
            .run(&["export", kind, "--tenant", &tenant])
            .run(&["export", kind, "--tenant", &tenant, "--format", "csv"]);
    }
    session
        .run(&["export", "invoices", "--tenant", &tenant, "--amount-paid"])
        .run(&["export", "quotes", "--tenant", &tenant, "--json"])
        .run(&["export", "jobs", "--tenant", &tenant, "--since", "2099-01-01T00:00:00Z"])
        .run(&["export", "jobs", "--tenant", &tenant, "--since", "2099-01-01T00:00:00Z", "--format", "csv"])
        .run(&["export", "jobs", "--tenant", &tenant, "--since", "2099-01-01T00:00:00Z", "--json"])
        .run(&["export", "jobs", "--tenant", &tenant, "--format", "csv", "--json"])
        .run(&["export", "jobs", "--tenant", &tenant, "--amount-paid"])
        .run(&["export", "jobs", "--tenant", UNKNOWN_ID])
        .run(&["export", "webhooks", "--tenant", &tenant])
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
    let tenant = here.tenant();
    let ada = here.contact(&tenant);
    here.create::<Contact>(&tenant, r#"{"email": "Zoë@example.com", "city": "x"}"#.replace('ë', "e").leak());
    let gone = here.create::<Contact>(&tenant, r#"{"email": "gone@example.com"}"#).id;
    let cleared = here.create::<Contact>(&tenant, r#"{"email": "cleared@example.com"}"#).id;
    let id = svc_core::values::TenantId(svc_core::values::parse_uuid(&tenant).unwrap());
    here.write(move |tx| Box::pin(svc_core::resources::crud::delete::<Contact>(tx, id, gone)));
    here.write(move |tx| {
        let change = svc_core::input::Input::from_body(br#"{"email": null}"#);
        Box::pin(async move { svc_core::resources::crud::update::<Contact>(tx, id, cleared, change?).await })
    });
    // More records than one page has.
    let more: String = (0..450).map(|n| format!(",\"Many, {n}\"\n")).collect();
    here.file("more.csv", format!("email,first_name\n{more}"));
    here.json(&["import", "contacts", "--tenant", &tenant, "more.csv"]);
    let create = ["invoice", "create", "--tenant", &tenant, "--contact", &ada, "--total", "100"];
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
        let fresh = there.tenant();
        for kind in ["contacts", "invoices"] {
            let with: &[&str] = if kind == "invoices" { &["--amount-paid"] } else { &[] };
            let export = |session: &Session, tenant: &str, format: &str| {
                let args = [&["export", kind, "--tenant", tenant, "--format", format], with].concat();
                let output = session.output(&args);
                assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
                text(&output.stdout)
            };
            there.file("records", export(&here, &tenant, format));
            for added in [true, false] {
                let summary = there.json(&["import", kind, "--tenant", &fresh, "records"]);
                let field = if added { "added" } else { "there_already" };
                assert_eq!(summary["rows"], summary[field], "{kind} {format}: {summary}");
            }
            let (mine, theirs) = (export(&here, &tenant, "ndjson"), export(&there, &fresh, "ndjson"));
            assert_eq!(without_updated_at(&mine), without_updated_at(&theirs), "{kind} {format}");
            assert!(theirs.lines().count() >= 6);
        }
        let next = ["invoice", "create", "--tenant", &fresh, "--contact", &ada, "--total", "1"];
        assert_eq!(there.json(&next)["invoice_number"], "INV-0007");
    }
}

#[test]
fn formulas_are_escaped_for_spreadsheets_and_come_back() {
    let here = Session::new();
    let tenant = here.tenant();
    let body = r#"{"email": "ada@example.com", "first_name": "=HYPERLINK(\"http://example.com\")", "last_name": "'=1", "phone": "+61 2 5550 0100"}"#;
    here.create::<Contact>(&tenant, body);
    let export = |session: &Session, tenant: &str, args: &[&str]| {
        text(&session.output(&[&["export", "contacts", "--tenant", tenant], args].concat()).stdout)
    };
    let csv = export(&here, &tenant, &["--format", "csv", "--escape-formulas"]);
    assert!(csv.contains(r#",ada@example.com,"'=HYPERLINK(""http://example.com"")",''=1,'+61 2 5550 0100,"#), "{csv}");
    let unescaped = export(&here, &tenant, &["--format", "csv"]);
    assert!(
        unescaped.contains(r#",ada@example.com,"=HYPERLINK(""http://example.com"")",''=1,+61 2 5550 0100,"#),
        "{unescaped}"
    );
    for csv in [csv, unescaped] {
        let there = Session::new();
        let fresh = there.tenant();
        there.file("contacts.csv", csv);
        there.json(&["import", "contacts", "--tenant", &fresh, "contacts.csv"]);
        let ndjson = |session, tenant: &str| without_updated_at(&export(session, tenant, &[]));
        assert_eq!(ndjson(&here, &tenant), ndjson(&there, &fresh));
    }
    let refused = here.output(&["export", "contacts", "--tenant", &tenant, "--escape-formulas"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--escape-formulas applies to --format csv only."));
}
