//! `svc import` of files that other programs wrote.

use std::fmt::Write as _;
use std::path::Path;

use svc_import::presets;

use super::harness::Session;

/// Returns a session with an account.
fn session() -> Session {
    let session = Session::new();
    session.account();
    session
}

impl Session {
    /// Imports contacts from a file with this content, and records the command.
    fn import_contacts(&mut self, file: &str, content: &str, options: &[&str]) -> &mut Self {
        self.file(file, content);
        self.run(&[&["import", "contacts", file], options].concat())
    }

    /// Returns some fields of all contacts, by their email address.
    fn contacts(&self, fields: &[&str]) -> Vec<String> {
        let listed = self.json(&["export", "contacts"]);
        let shown = |field: &str, contact: &serde_json::Value| match &contact[field] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let all = listed.as_array().unwrap().iter();
        let mut lines: Vec<String> =
            all.map(|contact| fields.iter().map(|field| shown(field, contact)).collect::<Vec<_>>().join("|")).collect();
        lines.sort();
        lines
    }
}

#[test]
fn an_import_refuses_options_without_effect() {
    let mut session = session();
    let csv = "Email,Company\nada@example.com,Byron\n";
    let ndjson = "{\"Mail\": \"ada@example.com\"}\n{\"Mail\": \"bob@example.com\"}\n";
    session
        .import_contacts("a.csv", csv, &["--map", "Compny=company_name"])
        .import_contacts("a.csv", csv, &["--map", "Company=company_name", "--map", "company=city"])
        .import_contacts("a.csv", csv, &["--map", "Company=email", "--map", "Email=email"])
        .import_contacts("a.ndjson", ndjson, &["--map", "Mail=email", "--map", "Compny=company_name"])
        .import_contacts("a.ndjson", ndjson, &["--map", "Mail=email", "--skip-lines", "1"])
        .import_contacts("a.ndjson", ndjson, &["--map", "Mail=email", "--strict"])
        .run(&["import", "all", "a.ndjson", "--map", "Mail=email"])
        .run(&["import", "all", "a.ndjson", "--ignore-unknown"])
        .run(&["import", "all", "a.ndjson", "--no-events"])
        .run(&["export", "contacts", "--output", "csv"])
        .run(&["export", "contacts", "--escape-formulas"])
        .run(&["export", "contacts", "--amount-paid"])
        .assert("import_without_effect");
    assert_eq!(session.contacts(&["email"]), ["ada@example.com", "bob@example.com"]);
}

#[test]
fn an_import_refuses_a_header_without_fields_once() {
    let mut session = session();
    session
        .import_contacts("a.csv", "Nick,Rank\nA,1\nB,2\n", &["--ignore-unknown"])
        .import_contacts("a.csv", "Name;Mobile\nA;1\n", &[])
        .import_contacts("report.csv", "Contacts of Harbour Plumbing\n\nemail,city\nada@example.com,Sydney\n", &[])
        .assert("import_header");
}

#[test]
fn an_import_reads_all_ends_of_lines() {
    let mut session = session();
    for (name, end) in [("unix", "\n"), ("windows", "\r\n"), ("mac", "\r")] {
        let lines = ["email;first_name", "\"ada@NAME.example\";\"Ada\rKing\"", "", "bob@NAME.example;Bob", "x;Eve"];
        let csv = lines.join(end).replace("NAME", name);
        session.import_contacts(&format!("{name}.csv"), &csv, &["--no-events"]);
    }
    session.import_contacts("mac.ndjson", "{\"email\": \"eve@mac.example\"}\r\r{}\r", &[]);
    session.json(&["webhook", "create", "--url", "https://example.com/a", "--events", "contact.created"]);
    session.import_contacts("mac.csv", "\rsep=,\remail\ra@mac.example\rb@mac.example", &[]);
    session.assert("import_line_ends");
}

#[test]
fn an_import_skips_what_is_above_the_header() {
    let mut session = session();
    let report = "Contacts\n\"of\",Harbour\n\nemail,city\nada@example.com,Sydney\nx,Perth\n";
    session
        .import_contacts("report.csv", report, &["--skip-lines", "2"])
        .import_contacts("excel.csv", "sep=;\r\nemail;city\r\nbob@example.com;Bonn, Bad Godesberg\r\n", &[])
        .import_contacts("myob", "{}\nemail,city\neve@example.com,Perth\n", &[])
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "2"])
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "3"])
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "0"])
        .assert("import_skip_lines");
    let want = ["ada@example.com|Sydney", "bob@example.com|Bonn, Bad Godesberg", "eve@example.com|Perth"];
    assert_eq!(session.contacts(&["email", "city"]), want);
}

#[test]
fn an_import_takes_columns_as_they_are_mapped() {
    let mut session = session();
    session
        .import_contacts("dash.csv", "- Email,City\nada@example.com,Sydney\n", &["--map", "- Email=email"])
        .import_contacts("twice.csv", "Email,Email\na@example.com,b@example.com\n", &[])
        .import_contacts("twice.csv", "Email,Email\na@example.com,b@example.com\n", &["--map", "Email=email"])
        .import_contacts("twice.csv", "Email,Email\na@example.com,b@example.com\n", &["--map", "Email#2=email"])
        .import_contacts("twice.csv", "email,Note,Note\nc@example.com,1,2\n", &["--ignore-unknown"])
        .import_contacts("ids.csv", "ID,Email\n17,d@example.com\n", &["--map", "id="])
        .import_contacts("ids.csv", "ID,Email\n17,d@example.com\n", &[])
        .import_contacts("ids.ndjson", "{\"ID\": 17, \"Email\": \"e@example.com\"}\n", &["--map", "id="])
        .assert("import_mapped");
    let want = ["ada", "b", "c", "d", "e"].map(|name| format!("{name}@example.com"));
    assert_eq!(session.contacts(&["email"]), want);
}

#[test]
fn an_import_reads_rows_as_spreadsheets_write_them() {
    let mut session = session();
    let csv = "email,first_name,phone,,\n,,,,\n \t,\nada@example.com\nbob@example.com,Bob,'0412 345 678,,\n\
               eve@example.com,'=1+1,'+61 2,,\nx@example.com,X,,,more\n\nteam@example.com,'90s Band,,\n";
    session
        .import_contacts("a.csv", csv, &[])
        .import_contacts("b.csv", "email,city\nd@example.com\ne@example.com,Perth,\n,\n", &["--strict"])
        .import_contacts("c.csv", "email,,\nada@example.com,,\nd@example.com,,more\n", &["--strict"])
        .assert("import_rows");
    let want = [
        "ada@example.com|null|null",
        "bob@example.com|Bob|0412 345 678",
        "eve@example.com|=1+1|+61 2",
        "team@example.com|'90s Band|null",
    ];
    assert_eq!(session.contacts(&["email", "first_name", "phone"]), want);
}

#[test]
fn an_import_reads_values_as_options_say() {
    let mut session = session();
    let here = "invoice_number,status,total,currency,due_date\n\
                A-1,Paid,\"$1,239.00\",aud,2099-12-31\n\
                A-2,Awaiting Payment,1239.5,US Dollar,2099-12-31 09:30:00\n\
                A-3,,\"1.239,00\",,31/12/2099\n";
    let there = "invoice_number;status;total;due_date;paid_at;currency\n\
                 B-1;AWAITING PAYMENT;1.239,00 \u{20ac};31.12.2099;;EUR\n\
                 B-2;paid;1\u{202f}239,50;1.2.2099;31.12.2025;\n\
                 B-3;;12.50;12/31/2099;;\n";
    session.file("here.csv", here);
    session.file("there.csv", there);
    let import = |args: &[&'static str]| [&["import", "invoices"], args].concat();
    let (awaiting, dollar) = (["--map-value", "awaiting payment=sent"], ["--map-value", "US Dollar=usd"]);
    session
        .run(&import(&["here.csv", "--dry-run"]))
        .run(&import(&[&["here.csv"], &awaiting[..], &dollar, &["--map-value", "Void=cancelled"]].concat()))
        .run(&import(&[&["there.csv", "--decimal", ",", "--date-format", "DD.MM.YYYY"], &awaiting[..]].concat()))
        .assert("import_values");
    let listed = session.json(&["export", "invoices"]);
    let fields = ["invoice_number", "status", "total", "currency", "due_date", "paid_at"];
    let invoices = listed.as_array().unwrap().iter();
    let mut lines: Vec<String> =
        invoices.map(|invoice| fields.map(|field| invoice[field].to_string().replace('"', "")).join(" ")).collect();
    lines.sort();
    let want = [
        "A-1 paid 1239 AUD 2099-12-31 null",
        "A-2 sent 1239.5 USD 2099-12-31 null",
        "B-1 sent 1239 EUR 2099-12-31 null",
        "B-2 paid 1239.5 AUD 2099-02-01 2025-12-31T00:00:00.000000Z",
    ];
    assert_eq!(lines, want);
}

#[test]
fn an_import_reads_months_with_names_and_says_how() {
    let mut session = session();
    session.file("a.csv", "total,due_date\n5,3 Apr 2099\n5,2099/4/3\n5,03/04/2099\n");
    session
        .run(&["import", "invoices", "a.csv", "--dry-run"])
        .run(&["import", "invoices", "a.csv", "--date-format", "DD MMM YYYY"])
        .assert("import_months");
    assert_eq!(session.json(&["invoice", "list"])[0]["due_date"], "2099-04-03");
}

#[test]
fn an_import_does_not_guess_which_of_two_amounts_is_meant() {
    let mut session = session();
    session.file(
        "a.csv",
        "invoice_number,total,currency\nA-1,1.500,AUD\nA-2,\"1,500\",AUD\nA-3,1.500,KWD\nA-4,\"1,500\",KWD\nA-5,-5,AUD\n\
         A-6,1.500,JPY\n",
    );
    let import = |args: &[&'static str]| [&["import", "invoices", "a.csv"], args].concat();
    session
        .run(&import(&["--dry-run"]))
        .run(&import(&["--dry-run", "--decimal", "."]))
        .run(&import(&["--dry-run", "--decimal", ","]))
        .run(&import(&[]))
        .assert("import_ambiguous_amounts");
    let listed = session.json(&["export", "invoices"]);
    let invoices = listed.as_array().unwrap().iter();
    let mut lines: Vec<String> =
        invoices.map(|invoice| format!("{} {}", invoice["invoice_number"], invoice["total"])).collect();
    lines.sort();
    assert_eq!(lines, [r#""A-2" 1500"#, r#""A-3" 1.5"#]);
}

#[test]
fn an_import_adds_up_the_lines_of_invoices() {
    let mut session = session();
    let header = "Invoice #,Date Issued,Invoice Status,Line Total,Currency\n";
    let lines = "F-1,2025-11-03,sent,\"$1,000.10\",AUD\nF-1,2025-11-03,sent,0.20,AUD\nF-1,2025-11-03,sent,-0.30,AUD\n\
                 F-2,2025-11-03,sent,5,AUD\nF-2,2025-11-03,sent,five,AUD\nF-3,2025-11-03,sent,,AUD\nF-3,,,2.5,AUD\n\
                 F-4,2025-11-03,sent,1,AUD\nF-4,2025-11-03,sent,1,AUD,,more\n,2025-11-03,sent,1,AUD\n,2025-11-03,sent,1,AUD\n\
                 F-1,2025-11-03,sent,7,AUD\n";
    session.file("lines.csv", format!("{header}{lines}"));
    session
        .run(&["import", "invoices", "lines.csv", "--from", "freshbooks"])
        .run(&["import", "invoices", "lines.csv", "--from", "freshbooks", "--dry-run"])
        .assert("import_lines");
    let listed = session.json(&["export", "invoices"]);
    let invoices = listed.as_array().unwrap().iter();
    let mut totals: Vec<String> =
        invoices.map(|invoice| format!("{} {}", invoice["invoice_number"], invoice["total"])).collect();
    totals.sort();
    assert_eq!(totals, [r#""F-1" 1000"#, r#""F-3" 2.5"#, r#""INV-0001" 1"#, r#""INV-0002" 1"#]);
}

/// The account has AUD.
#[test]
fn the_lines_of_an_invoice_have_the_currency_of_the_first() {
    let mut session = session();
    let header = "Invoice #,Date Issued,Invoice Status,Line Total,Currency\n";
    let lines = "F-1,2025-11-03,sent,100,EUR\nF-1,2025-11-03,sent,100,USD\n\
                 F-2,2025-11-03,sent,100,EUR\nF-2,,,€5,\nF-2,,,7,eur\n\
                 F-3,2025-11-03,sent,100,EUR\nF-3,,,$5,\n\
                 F-4,2025-11-03,sent,100,\nF-4,,,5,EUR\n\
                 F-5,2025-11-03,sent,1,EUR\nF-5,,,1,Dollars\nF-6,2025-11-03,sent,$2,\n";
    session.file("lines.csv", format!("{header}{lines}"));
    let import = ["import", "invoices", "lines.csv", "--from", "freshbooks"];
    session.run(&import).assert("import_lines_in_currencies");
    let listed = session.json(&["export", "invoices"]);
    let invoices = listed.as_array().unwrap().iter();
    let mut totals: Vec<String> = invoices
        .map(|invoice| format!("{} {} {}", invoice["invoice_number"], invoice["currency"], invoice["total"]))
        .collect();
    totals.sort();
    assert_eq!(totals, [r#""F-2" "EUR" 112"#, r#""F-6" "AUD" 2"#]);
}

#[test]
fn an_import_refuses_options_for_values_that_are_not_there() {
    let mut session = session();
    session.file("a.csv", "total\n5\n");
    session.file("b.csv", "email,city\na@example.com,Sydney\n");
    session.file("c.ndjson", "{\"total\": 5}\n");
    session
        .run(&["import", "invoices", "a.csv", "--date-format", "DD/MM/YYYY"])
        .run(&["import", "invoices", "a.csv", "--date-format", "D/M/YYYY"])
        .run(&["import", "invoices", "a.csv", "--decimal", ";"])
        .run(&["import", "invoices", "a.csv", "--map-value", "Open=opened"])
        .run(&["import", "invoices", "a.csv", "--map-value", "Open=sent", "--map-value", "OPEN=draft"])
        .run(&["import", "invoices", "a.csv", "--map-value", "Open="])
        .run(&["import", "contacts", "b.csv", "--decimal", ","])
        .run(&["import", "contacts", "b.csv", "--map-value", "Open=sent"])
        .run(&["import", "contacts", "b.csv", "--date-format", "DD/MM/YYYY"])
        .run(&["import", "invoices", "c.ndjson", "--decimal", ","])
        .run(&["import", "invoices", "c.ndjson", "--date-format", "DD/MM/YYYY"])
        .run(&["import", "invoices", "c.ndjson", "--map-value", "Open=sent"])
        .assert("import_values_refused");
}

#[test]
fn an_update_clears_the_fields_of_empty_cells_unless_they_are_kept() {
    let mut session = session();
    session.import_contacts("a.csv", "email,first_name,city\nada@example.com,Ada,Sydney\n", &[]);
    let csv = "email,first_name,city,phone\nada@example.com,,,0400\nbob@example.com,,Perth,\n";
    session
        .import_contacts("b.csv", csv, &["--keep-empty"])
        .import_contacts("b.csv", csv, &["--update", "--keep-empty"])
        .run(&["contact", "list"])
        .import_contacts("b.csv", "email,city\nada@example.com\n", &["--update"])
        .import_contacts(
            "c.ndjson",
            "{\"email\": \"ada@example.com\", \"phone\": null}\n",
            &["--update", "--keep-empty"],
        )
        .run(&["contact", "list"])
        .assert("import_keep_empty");
}

/// The options that the dates of some exports need.
const DATE_FORMATS: [(&str, &str); 3] = [("myob", "DD/MM/YYYY"), ("quickbooks", "MM/DD/YYYY"), ("xero", "DD/MM/YYYY")];

/// Every program has a file of each kind in `tests/exports`, with the header that it exports and people who do not exist.
#[test]
fn an_import_knows_the_exports_of_other_programs() {
    let mut session = session();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports");
    let mut files: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    for preset in presets() {
        let with_kind = [("contacts", &preset.contacts), ("invoices", &preset.invoices)];
        for (kind, _) in with_kind.into_iter().filter(|(_, fields)| !fields.is_empty()) {
            let stem = format!("{preset}-{kind}.");
            let file = files.iter().position(|file| file.starts_with(&stem)).unwrap_or_else(|| panic!("no {stem}"));
            let file = files.remove(file);
            std::fs::copy(folder.join(&file), session.folder().join(&file)).unwrap();
            let format = DATE_FORMATS.iter().find(|(program, _)| kind == "invoices" && *program == preset.name);
            let format: Vec<&str> = format.into_iter().flat_map(|(_, format)| ["--date-format", format]).collect();
            session.run(&[&["import", kind, &file, "--from", &preset.name], &format[..]].concat());
        }
    }
    assert!(files.is_empty(), "{files:?}");
    let mut records = String::new();
    let contact = ["email", "first_name", "last_name", "phone", "company_name", "city", "state", "postcode"];
    let invoice = ["invoice_number", "status", "issue_date", "due_date", "total", "currency"];
    for (kind, fields) in [("contacts", &contact[..]), ("invoices", &invoice)] {
        let listed = session.json(&["export", kind]);
        // The transcript replaces dates with hyphens.
        let value = |record: &serde_json::Value, field: &str| {
            let value = record[field].to_string().replace('"', "");
            if field.ends_with("_date") { value.replace('-', "/") } else { value }
        };
        let shown = |record: &serde_json::Value| {
            fields.iter().map(|field| value(record, field)).collect::<Vec<_>>().join(" | ")
        };
        let mut lines: Vec<String> = listed.as_array().unwrap().iter().map(shown).collect();
        lines.sort();
        writeln!(records, "{}\n{}\n", fields.join(" | "), lines.join("\n")).unwrap();
    }
    session.append(&records).assert("import_presets");
}

#[test]
fn an_import_lists_its_presets_without_a_database() {
    let mut session = Session::without_database();
    session
        .run(&["import", "--presets"])
        .run(&["import", "--presets", "--from", "xero"])
        .run(&["import", "--from", "xero"])
        .assert("import_preset_list");
    let listed = session.json(&["import", "--presets"]);
    let programs: std::collections::BTreeSet<&str> =
        listed.as_array().unwrap().iter().map(|field| field["program"].as_str().unwrap()).collect();
    assert_eq!(programs.len(), presets().len());
}

#[test]
fn options_take_precedence_over_a_preset() {
    let mut session = session();
    let csv = "*ContactName,EmailAddress,POCity,City\nHarrow,tess@example.com,Nelson,Wellington\n";
    let bills = "InvoiceNumber,Total,Status\nA-1,5,Awaiting Payment\nA-2,5,Deposited\n";
    session.file("bills.csv", bills);
    session.file("bills.ndjson", "{\"Total\": 5}\n");
    session
        .import_contacts("a.csv", csv, &["--from", "xero", "--map", "City=city", "--map", "*ContactName=last_name"])
        .run(&["import", "invoices", "bills.csv", "--from", "xero", "--map-value", "Awaiting Payment=draft"])
        .run(&["import", "invoices", "bills.csv", "--from", "hubspot"])
        .run(&["import", "invoices", "bills.csv", "--from", "stripes"])
        .run(&["import", "invoices", "bills.csv", "--from", "zoho", "--ignore-unknown"])
        .run(&["import", "invoices", "bills.ndjson", "--from", "xero"])
        .run(&["import", "all", "bills.ndjson", "--from", "xero"])
        .import_contacts("a.csv", "Notes\nx\n", &["--from", "xero"])
        .assert("import_from");
    assert_eq!(session.contacts(&["last_name", "company_name", "city"]), ["Harrow|null|Wellington"]);
    assert_eq!(session.json(&["invoice", "list"])[0]["status"], "draft");
}
