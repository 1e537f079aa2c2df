//! `svc import`: imported and refused rows.

use serde_json::Value;

use super::harness::{Session, UNKNOWN_ID, text};

/// One byte more than the maximum length of a row.
const TOO_LONG: usize = (1 << 20) + 1;

impl Session {
    /// Returns the number of records of an account.
    pub(crate) fn count(&self, kind: &str, account: &str) -> usize {
        text(&self.output(&["export", kind, "--account", account]).stdout).lines().count()
    }

    /// Returns some fields of all records of an account, in a fixed order.
    fn records(&self, kind: &str, account: &str, fields: &[&str]) -> Vec<Vec<Value>> {
        let output = text(&self.output(&["export", kind, "--account", account]).stdout);
        let records = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut rows: Vec<Vec<Value>> =
            records.map(|record| fields.iter().map(|field| record[field].clone()).collect()).collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    }
}

#[test]
fn csv_files_of_spreadsheets_are_imported() {
    let mut session = Session::new();
    let account = session.account();
    let csv = "\u{feff}email,company_name,first_name,phone\r\n\
               ada@example.com,\"Byron, King & \"\"Sons\"\"\",Ada,\r\n\r\n  bob@example.com , ,Bob,0400\r\n,,Eve,";
    session.file("people.csv", csv);
    session.file("people.txt", csv);
    let import = ["import", "contacts", "--account", &account];
    session
        .run(&[&import[..], &["people.csv", "--dry-run"]].concat())
        .run(&[&import[..], &["people.csv"]].concat())
        .run(&[&import[..], &["people.txt"]].concat())
        .run(&[&import[..], &["people.txt", "--json"]].concat())
        .assert("import_csv");
    let null = Value::Null;
    let want = [
        [null.clone(), null.clone(), "Eve".into(), null.clone()],
        ["ada@example.com".into(), "Byron, King & \"Sons\"".into(), "Ada".into(), null.clone()],
        ["bob@example.com".into(), null, "Bob".into(), "0400".into()],
    ];
    let mut want = want.map(|row| row.to_vec());
    want.sort_by_key(|row| format!("{row:?}"));
    assert_eq!(session.records("contacts", &account, &["email", "company_name", "first_name", "phone"]), want);
}

#[test]
fn refused_rows_are_reported_and_valid_rows_are_imported() {
    let mut session = Session::new();
    let account = session.account();
    let mut csv = b"id,email,first_name,created_at\n".to_vec();
    csv.extend(b"0195a3c8-0000-4000-8000-000000000001,uuid4@example.com,,\n");
    csv.extend(b",good@example.com,Good,2024-05-06T00:00:00+10:00\n");
    csv.extend(b",GOOD@example.com,Other,\n");
    csv.extend(b",GOOD@example.com,Good,\n");
    csv.extend(b",bad@@example.com,,\n");
    csv.extend(b",\"two\nlines@example.com\",,yesterday\n");
    csv.extend(b",few\n");
    csv.extend(b",,,\n");
    csv.extend(format!(",huge@example.com,{},\n", "x".repeat(TOO_LONG)).into_bytes());
    csv.extend(b",late@example.com,Late,\n");
    csv.extend(b",ada@example.com,Eve,\n");
    session.contact(&account);
    session.file("people.csv", csv);
    session.run(&["import", "contacts", "--account", &account, "people.csv", "--report", "refused.ndjson"]);
    let report = session.read_file("refused.ndjson");
    session.append(&report).assert("import_refused");
    assert_eq!(session.count("contacts", &account), 3);
}

#[test]
fn ndjson_is_imported() {
    let mut session = Session::new();
    let account = session.account();
    let mut lines = b"\xef\xbb\xbf\n{\"email\": \"ada@example.com\", \"city\": null}\r\n\n".to_vec();
    lines.extend(b"{\"email\": \"ada@example.com\", \"email\": \"b@example.com\"}\n");
    lines.extend(b"{\"email\": \"b@example.com\", \"nick\": \"B\", \"deleted_at\": null}\n");
    lines.extend(b"{\"email\": \"b@example.com\"\n");
    lines.extend(b"[\"b@example.com\"]\n");
    lines.extend(b"{\"email\": \"x\"}\n");
    lines.extend(b"{\"email\": 5, \"phone\": 6}\n");
    lines.extend(format!("{{\"city\": \"{}\"}}\n", "x".repeat(TOO_LONG)).into_bytes());
    lines.extend(b"{\"email\": \"last@example.com\"}");
    session.file("people", lines);
    session.run(&["import", "contacts", "--account", &account, "people"]).assert("import_ndjson");
    assert_eq!(session.count("contacts", &account), 2);
}

/// A request has at most 1 MiB, which the rows of a group may exceed.
#[test]
fn long_rows_are_imported_in_smaller_groups() {
    let session = Session::new();
    let account = session.account();
    let long = |characters: usize| "\u{1f6b0}".repeat(characters);
    let row = |n: usize| format!("p{n}@example.com,{},{},{}\n", long(300), long(300), long(500));
    let rows: String = (0..501).map(row).collect();
    session.file("people.csv", format!("email,first_name,last_name,company_name\n{rows}"));
    let summary = session.json(&["import", "contacts", "--account", &account, "people.csv", "--no-events"]);
    assert_eq!((&summary["rows"], &summary["added"]), (&501.into(), &501.into()), "{summary}");
    let log = session.json(&["audit", "list", "--account", &account]);
    let groups = log.as_array().unwrap().iter().filter(|entry| entry["action"] == "import").count();
    assert!(groups > 2, "{log}");
}

#[test]
fn an_invalid_file_is_refused_before_the_first_row() {
    let mut session = Session::new();
    let account = session.account();
    for (name, content) in [
        ("unknown.csv", "email,nick,\u{1b}[31m\nada@example.com,A,\n"),
        ("twice.csv", "email,city,email\n"),
        ("headless.csv", "ada@example.com\n"),
        ("missing.csv", "invoice_number\n"),
        ("empty.csv", "\n\n"),
        ("empty.ndjson", "\n"),
    ] {
        session.file(name, content);
        let kind = if name == "missing.csv" { "invoices" } else { "contacts" };
        session.run(&["import", kind, "--account", &account, name]);
    }
    session.file("utf16.csv", b"\xff\xfee\0m\0a\0i\0l\0");
    session.file("people.xlsx", b"PK\x03\x04");
    session.file("latin.csv", b"email,first_name\na@example.com,Zo\xeb\n");
    session
        .run(&["import", "contacts", "--account", &account, "utf16.csv"])
        .run(&["import", "contacts", "--account", &account, "people.xlsx"])
        .run(&["import", "contacts", "--account", &account, "latin.csv"])
        .run(&["import", "contacts", "--account", &account, "nowhere.csv"])
        .run(&["import", "contacts", "--account", &account, "."])
        .run(&["import", "contacts", "--account", UNKNOWN_ID, "empty.ndjson"])
        .run(&["import", "contacts", "--account", &account, "empty.ndjson", "--report", "no/such/folder"])
        .run(&["import", "contacts", "--account", &account, "unknown.csv", "--report", "./unknown.csv"])
        .run(&["import", "invoices", "--account", &account, "empty.ndjson", "--update"])
        .run(&["import", "quotes", "--account", &account, "empty.ndjson"])
        .assert("import_up_front");
}

#[test]
fn a_dry_run_changes_nothing() {
    let session = Session::new();
    let account = session.account();
    session.contact(&account);
    let before = text(&session.output(&["export", "contacts", "--account", &account]).stdout);
    session.file("people.csv", "email,first_name\nada@example.com,Eve\nbob@example.com,Bob\n");
    session.file("bills.csv", "total\n5\n");
    let update = ["import", "contacts", "--account", &account, "people.csv", "--dry-run", "--update", "--keep-empty"];
    let summary = session.json(&update);
    assert_eq!((&summary["added"], &summary["updated"], &summary["dry_run"]), (&1.into(), &1.into(), &true.into()));
    session.json(&["import", "invoices", "--account", &account, "bills.csv", "--dry-run"]);
    assert_eq!(text(&session.output(&["export", "contacts", "--account", &account]).stdout), before);
    assert_eq!(session.count("invoices", &account), 0);
    session.json(&["import", "invoices", "--account", &account, "bills.csv"]);
    assert_eq!(
        session.records("invoices", &account, &["invoice_number"]),
        [["INV-0001"]],
        "the dry run used no number"
    );
}

#[test]
fn a_dry_run_names_the_line_that_would_add_a_record() {
    let mut session = Session::new();
    let account = session.account();
    session.contact(&account);
    let id = "0195a3c8-0000-7000-8000-00000000000a";
    session.file(
        "people.csv",
        format!(
            "email,first_name,id\nbob@example.com,Bob,\nBOB@example.com,Rob,\nada@example.com,Eve,\n\
             bob@example.com,Bobby,{id}\n"
        ),
    );
    session.file("bills.csv", format!("invoice_number,total,id\nA-1,5,\nA-2,6,\nA-1,7,\nA-2,8,{id}\n"));
    for (kind, file) in [("contacts", "people.csv"), ("invoices", "bills.csv")] {
        let import = ["import", kind, "--account", &account, file];
        session
            .run(&[&import[..], &["--dry-run", "--report", &format!("dry-{kind}")]].concat())
            .run(&[&import[..], &["--report", &format!("real-{kind}")]].concat());
        let report = |kind: &str| -> Vec<serde_json::Value> {
            session.read_file(kind).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let (dry, real) = (report(&format!("dry-{kind}")), report(&format!("real-{kind}")));
        assert_eq!(dry.len(), real.len());
        for (dry, real) in dry.iter().zip(&real) {
            assert_eq!((&dry["line"], &dry["code"]), (&real["line"], &real["code"]));
            // An id that was rolled back is that of no record.
            let exists = dry["existing_id"]
                .as_str()
                .is_none_or(|id| session.output(&["contact", "show", id, "--account", &account]).status.success());
            assert!(exists, "{dry}");
        }
    }
    session.assert("import_dry_run");
}

#[test]
fn existing_contacts_change_only_with_update() {
    let mut session = Session::new();
    let account = session.account();
    session.contact(&account);
    session.file("people.csv", "email,first_name,phone\nADA@example.com,Ada,0400\n");
    let import = ["import", "contacts", "--account", &account, "people.csv"];
    session
        .run(&import)
        .run(&[&import[..], &["--update"]].concat())
        .run(&[&import[..], &["--update"]].concat())
        .assert("import_update");
    let want = [["ADA@example.com", "0400"]];
    assert_eq!(session.records("contacts", &account, &["email", "phone"]), want);
}

#[test]
fn invoices_are_imported_with_any_status() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    session.file(
        "bills.csv",
        format!(
            "invoice_number,contact_id,status,total,currency,due_date,paid_at,amount_paid\n\
             INV-0007,{contact},sent, 99.95 ,AUD,2099-01-01,,\n\
             INV-0008,{contact},paid,1500,JPY,,2024-05-06T00:00:00Z,\n\
             A/1,,partial,10,,,,4\n\
             A/2,,partial,10,,,,\n\
             A/3,,sent,\"1.000,00\",,,,\n\
             A/4,{UNKNOWN_ID},sent,1,,,,\n\
             A/1,,partial,11,,,,4\n\
             ,,,5,,,,\n\
             ,,,5,,,,\n"
        ),
    );
    let import = ["import", "invoices", "--account", &account, "bills.csv"];
    session.run(&import).run(&import);
    let create = ["invoice", "create", "--account", &account, "--contact", &contact, "--total", "1"];
    session.run(&create).assert("import_invoices");
    let fields = ["invoice_number", "status", "total", "currency"];
    let records = session.records("invoices", &account, &fields);
    let records: Vec<String> = records.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    let want = [
        r#"["A/1","partial",10,"AUD"]"#,
        r#"["INV-0007","sent",99.95,"AUD"]"#,
        r#"["INV-0008","paid",1500,"JPY"]"#,
        r#"["INV-0009","draft",5,"AUD"]"#,
        r#"["INV-0010","draft",5,"AUD"]"#,
        r#"["INV-0011","draft",1,"AUD"]"#,
    ];
    assert_eq!(records, want);
}

#[test]
fn no_events_suppresses_deliveries() {
    let session = Session::new();
    let account = session.account();
    let hook = r#"{"url": "https://example.com", "events": ["*"]}"#;
    session.create::<svc_core::webhooks::subscriptions::WebhookSubscription>(&account, hook);
    session.file("a.csv", "email\na@example.com\n");
    session.file("b.csv", "email\nb@example.com\n");
    let announced = text(&session.output(&["import", "contacts", "--account", &account, "a.csv"]).stderr);
    assert!(announced.contains("up to 1 delivery") && announced.contains("--no-events"), "{announced}");
    session.json(&["import", "contacts", "--account", &account, "b.csv", "--no-events"]);
    let deliveries = session.json(&["delivery", "list", "--account", &account]);
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
}

#[test]
fn the_first_twenty_refused_rows_and_one_of_each_kind_are_shown() {
    let mut session = Session::new();
    let account = session.account();
    let kinds = format!("a@example.com,{0}\n,,,,\n,more,than\nb@example.com,{0}\n", "x".repeat(1_000));
    session.file("people.csv", format!("email,city\n{}{kinds}", "x\n".repeat(1_200)));
    session.run(&["import", "contacts", "--account", &account, "people.csv", "--report", "all.ndjson"]);
    assert_eq!(session.read_file("all.ndjson").lines().count(), 1_203);
    session.run(&["import", "contacts", "--account", &account, "people.csv"]).assert("import_many_refused");
}

#[test]
fn columns_of_other_programs_are_imported() {
    let mut session = Session::new();
    session.account();
    session.file("crm.csv", "E-Mail Address;First Name;POSTCODE;Notes\nada@example.com;Ada;2000;x\n");
    session.file("tabs.csv", "Email\tCompany Name\nalan@example.com\tBombe, Ltd\n");
    session.file("crm.ndjson", "{\"Mail\": \"grace@example.com\", \"First Name\": \"Grace\", \"Rank\": 1}\n");
    let import = |args: &[&'static str]| [&["import", "contacts"], args].concat();
    session
        .run(&import(&["crm.csv"]))
        .run(&import(&["crm.csv", "--map", "E-Mail Address=emial"]))
        .run(&import(&["crm.csv", "--map", "email"]))
        .run(&import(&["crm.csv", "--map", "e-mail address=email", "--ignore-unknown"]))
        .run(&import(&["tabs.csv"]))
        .run(&import(&["crm.ndjson"]))
        .run(&import(&["crm.ndjson", "--map", "Mail=email", "--ignore-unknown"]))
        .assert("import_columns");
    let listed = session.json(&["contact", "list", "--email", "ada@example.com"]);
    assert_eq!((&listed[0]["first_name"], &listed[0]["postcode"]), (&"Ada".into(), &"2000".into()));
    assert_eq!(session.json(&["contact", "list", "--email", "alan@example.com"])[0]["company_name"], "Bombe, Ltd");
    assert_eq!(session.json(&["contact", "list", "--email", "grace@example.com"])[0]["first_name"], "Grace");
}

#[test]
fn an_import_says_how_many_deliveries_it_causes() {
    let mut session = Session::new();
    session.account();
    session.file("people.csv", "email\nada@example.com\nalan@example.com\n");
    session.json(&["webhook", "create", "--url", "https://example.com/a", "--events", "contact.created"]);
    session.run(&["import", "contacts", "people.csv", "--dry-run"]).run(&["import", "contacts", "people.csv"]);
    session.json(&["webhook", "create", "--url", "https://example.com/b", "--events", "*"]);
    session
        .run(&["import", "contacts", "people.csv"])
        .run(&["import", "contacts", "people.csv", "--no-events"])
        .assert("import_deliveries");
    assert_eq!(session.json(&["delivery", "list"]).as_array().unwrap().len(), 2);
}
