//! `svc import`: what would become other data than the file means is understood, or refused by name; nothing is written of a
//! file that is in error.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::harness::{Session, UNKNOWN_ID, text};

/// Returns a session with an account in this time zone.
fn session(zone: &str) -> Session {
    let session = Session::new();
    session.id(&["account", "create", "--name", "Harbour Plumbing", "--time-zone", zone]);
    session
}

/// What came of an import.
struct Imported {
    code: Option<i32>,
    summary: String,
    error: String,
}

impl Session {
    /// Imports a file with this content.
    fn try_import(&self, kind: &str, file: &str, content: impl AsRef<[u8]>, options: &[&str]) -> Imported {
        self.file(file, content);
        let output = self.output(&[&["import", kind, file], options].concat());
        Imported { code: output.status.code(), summary: text(&output.stdout), error: text(&output.stderr) }
    }

    /// Returns a field of all records, by another one.
    fn fields(&self, kind: &str, fields: &[&str]) -> Vec<String> {
        let listed = self.json(&["export", kind]);
        let shown = |field: &&str, record: &Value| match &record[*field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let records = listed.as_array().unwrap().iter();
        let mut lines: Vec<String> = records
            .map(|record| fields.iter().map(|field| shown(field, record)).collect::<Vec<_>>().join(" "))
            .collect();
        lines.sort();
        lines
    }
}

#[test]
fn nothing_is_written_of_a_file_whose_quotes_are_malformed() {
    let session = session("UTC");
    for (content, want) in [
        (
            "email,first_name,notes\na1@example.com,Ann,\"call back\na2@example.com,Bob,ok\n",
            "q.csv is not valid CSV: the quote that opens on line 2 is never closed.",
        ),
        ("email,first_name\na@example.com,Ann\nb@example.com,\"Bob", "the quote that opens on line 3 is never closed."),
        (
            "email,notes,city\na@example.com,\"Ann,Perth\nb@example.com,\"Bob\",Oslo\n",
            "the cell whose quote opens on line 2 has a quote on line 3 that is neither doubled nor before a delimiter",
        ),
        (
            "\"email\",\"company_name\",\"city\"\n\"ada@example.com\",\"Nguyen \\\"Ada\\\" Plumbing\",\"Perth\"\n",
            "a quote within quotes is written \"\", and not \\\"",
        ),
        ("email,company_name\nx@example.com,\"Nguyen \"Ada\" Plumbing\"\n", "opens on line 2 has a quote on line 2"),
        ("email;\"city\nada@example.com;Perth\n", "the quote that opens on line 1 is never closed"),
        ("email,notes\na@example.com,\rb@example.com,ok\n", "line 2 ends with a carriage return alone"),
    ] {
        for strict in [&[][..], &["--strict"]] {
            let options = [&["--ignore-unknown"], strict].concat();
            let imported = session.try_import("contacts", "q.csv", content, &options);
            assert_eq!((imported.code, imported.summary.as_str()), (Some(1), ""), "{content}");
            assert!(
                imported.error.contains(want) && imported.error.contains("Nothing was imported."),
                "{}",
                imported.error
            );
        }
    }
    assert_eq!(session.fields("contacts", &["email"]), [""; 0]);

    // As many rows as two groups have come before the fault.
    let rows: String = (0..1_100).map(|n| format!("p{n}@example.com,ok\n")).collect();
    let imported = session.try_import("contacts", "q.csv", format!("email,notes\n{rows}x@example.com,\"open\n"), &[]);
    assert!(imported.error.contains("opens on line 1102"), "{}", imported.error);
    assert_eq!(session.fields("contacts", &["email"]), [""; 0]);
    let unquoted = "email,company_name\nx@example.com,Nguyen \"Ada\" Plumbing\n";
    assert_eq!(session.try_import("contacts", "u.csv", unquoted, &[]).code, Some(0));
    assert_eq!(session.fields("contacts", &["company_name"]), ["Nguyen \"Ada\" Plumbing"]);
}

#[test]
fn a_pipe_is_read_to_its_end_before_its_first_row_is_written() {
    let session = session("UTC");
    let import = |content: &[u8]| {
        let mut command = session.program(&["import", "contacts", "-", "--ignore-unknown"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        child.wait_with_output().unwrap()
    };
    let rows: String = (0..600).map(|n| format!("p{n}@example.com,ok\n")).collect();
    let before = format!("email,notes\n{rows}");
    for (fault, want) in [
        (&b"x@example.com,\"open\n"[..], "stdin is not valid CSV: the quote that opens on line 602 is never closed"),
        (b"x@example.com,Jos\xe9\n", "stdin is not UTF-8: line 602 has the byte 0xE9"),
        (b"x@example.com,a\0b\n", "stdin has a NUL character on line 602"),
    ] {
        let content = [before.as_bytes(), fault].concat();
        let output = import(&content);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
        assert!(text(&output.stderr).contains(want), "{output:?}");
        // A file as stdin is the same.
        session.file("rows.csv", content);
        let file = std::fs::File::open(session.folder().join("rows.csv")).unwrap();
        let from_file = session.program(&["import", "contacts", "-", "--ignore-unknown"]).stdin(file).output().unwrap();
        assert_eq!(from_file, output);
        assert_eq!(session.fields("contacts", &["email"]), [""; 0]);
    }
    let mut command = session.program(&["import", "contacts", "-"]);
    command.env("TMPDIR", session.folder().join("none"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(text(&output.stderr).contains("Cannot read stdin: no copy of it can be made in "), "{output:?}");
    let output = import(before.as_bytes());
    assert!(text(&output.stdout).starts_with("Rows: 600 read, 600 added"), "{output:?}");
    assert_eq!(session.fields("contacts", &["email"]).len(), 600);
}

#[test]
fn a_file_in_another_encoding_or_form_is_refused_once() {
    let session = session("UTC");
    for (file, content, want) in [
        ("a.csv", &b"email,first_name\na@example.com,Ann\nj@example.com,Jos\xe9\n"[..], "line 3 has the byte 0xE9"),
        ("a.csv", b"Pr\xe9nom,email\nx,a@example.com\n", "the text there is \"Pr\u{e9}nom\""),
        ("a.csv", b"e\0m\0a\0i\0l\0\n\0", "a.csv has a NUL character on line 1"),
        ("a.ndjson", b"{\"email\": \"a@example.com\"}\n{\"city\": \"Z\xfcrich\"}\n", "line 2 has the byte 0xFC"),
        ("a.json", b"[\n  {\n    \"email\": \"a@example.com\"\n  }\n]\n", "`jq -c '.[]'`"),
        ("a.json", b"[{\"email\": \"a@example.com\"}]", "`jq -c '.[]'`"),
        ("a.json", b"{\n  \"email\": \"a@example.com\"\n}\n", "`jq -c '.'`"),
        ("list", b"{\n  \"data\": [\n    {\"email\": \"a@example.com\"}]}\n", "`jq -c '.data[]'`"),
    ] {
        let imported = session.try_import("contacts", file, content, &[]);
        assert_eq!((imported.code, imported.summary.as_str()), (Some(1), ""), "{}", content.escape_ascii());
        assert!(imported.error.contains(want) && imported.error.lines().count() == 1, "{}", imported.error);
    }
    let listed = session.output(&["contact", "list", "--json"]);
    let imported = session.try_import("contacts", "listed", &listed.stdout, &[]);
    assert!(imported.error.contains("jq -c '.[]'"), "{}", imported.error);
    assert_eq!(session.fields("contacts", &["email"]), [""; 0]);
}

#[test]
fn an_amount_is_in_the_currency_of_its_row() {
    let session = session("Australia/Sydney");
    let content = "invoice_number,total,currency\nI1,€10.00,\nI2,€10.00,USD\nI3,$10.00,EUR\nI4,¥10,AUD\nI5,£50,\n\
                   I6,10.00 €,\nI7,50¢,\nI8,NZD 5,\nI9,A$5,USD\nI10,1.23E+05,\nI11,(50.00),\n\
                   G1,€10.00,EUR\nG2,\"$1,239.00\",\nG3,\"AUD 1,239.00\",\nG4,₹ \"1,23,456.00\",INR\n\
                   G5,\"₹ 1,23,456.00\",INR\nG6,A$5,AUD\n";
    let content = content.replace("G4,₹ \"1,23,456.00\",INR\n", "");
    let imported = session.try_import("invoices", "a.csv", content, &[]);
    assert_eq!(imported.code, Some(1));
    for line in [
        "line 2: total must be in the currency of its row, AUD, and its cell has €, a sign of EUR;",
        "line 3: total must be in the currency of its row, USD,",
        "line 4: total must be in the currency of its row, EUR, and its cell has $, a sign of AUD, USD, CAD, NZD and others;",
        "line 5: total must be in the currency of its row, AUD, and its cell has ¥, a sign of JPY, CNY;",
        "line 6: ",
        "line 7: ",
        "line 8: total must be a number such as 99.95 (it is \"50¢\")",
        "line 9: total must be in the currency of its row, AUD, and its cell has NZD;",
        "line 10: ",
        "line 11: total must have all of its digits, and 1.23E+05 is in scientific notation",
        "line 12: total must be a number from 0 to 1000000000000",
    ] {
        assert!(imported.error.contains(line), "{line} is not in {}", imported.error);
    }
    let want = ["G1 10 EUR", "G2 1239 AUD", "G3 1239 AUD", "G5 123456 INR", "G6 5 AUD"];
    assert_eq!(session.fields("invoices", &["invoice_number", "total", "currency"]), want);
}

#[test]
fn a_currency_that_has_ended_is_never_renamed() {
    let session = session("UTC");
    let content = "invoice_number,total,currency\nINV-9,1200.00,BGN\nINV-8,5,Leva\n";
    let imported = session.try_import("invoices", "a.csv", content, &[]);
    assert!(
        imported.error.contains("BGN was replaced by EUR in 2026; amounts in it have to be converted"),
        "{}",
        imported.error
    );
    assert!(imported.error.contains("--map-value \"Leva=CODE\""), "{}", imported.error);
    assert!(!imported.error.contains("=AUD"), "{}", imported.error);
    let imported = session.try_import("invoices", "a.csv", content, &["--map-value", "BGN=AUD"]);
    assert_eq!(imported.code, Some(2));
    assert!(imported.error.contains("would take amounts in BGN for amounts in AUD"), "{}", imported.error);
    assert_eq!(session.fields("invoices", &["total"]), [""; 0]);
}

#[test]
fn a_time_is_converted_to_the_date_of_the_account() {
    let session = session("Australia/Sydney");
    let stripe = "Number,Status,Date (UTC),Due Date (UTC),Total,Currency\n\
                  ST-1,paid,2025-12-31 22:30,2026-01-14 22:30,50.00,aud\nST-2,paid,2025-12-31,,50.00,aud\n";
    assert_eq!(session.try_import("invoices", "s.csv", stripe, &["--from", "stripe"]).code, Some(0));
    let shopify = "Name,Financial Status,Created at,Total,Currency\n#1,paid,2025-12-31 14:05:08 -0800,5,AUD\n";
    assert_eq!(session.try_import("invoices", "h.csv", shopify, &["--from", "shopify"]).code, Some(0));
    let mapped = "invoice_number,total,Date (UTC)\nM-1,5,2025-12-31 22:30\n";
    let map = ["--map", "Date (UTC)=issue_date"];
    assert_eq!(session.try_import("invoices", "m.csv", mapped, &map).code, Some(0));
    let plain = "invoice_number,total,issue_date\nP-1,5,2025-12-31T22:30:00Z\nP-2,5,2025-12-31T22:30:00+11:00\n\
                 P-3,5,2025-12-31 22:30\nP-4,5,2025-12-31 22:30 AEDT\n";
    let imported = session.try_import("invoices", "p.csv", plain, &[]);
    assert!(imported.error.contains("line 5: issue_date must be a date of the account, and the time zone \"AEDT\""));
    let want = [
        "#1 2026-01-01 null",
        "M-1 2026-01-01 null",
        "P-1 2026-01-01 null",
        "P-2 2025-12-31 null",
        "P-3 2025-12-31 null",
        "ST-1 2026-01-01 2026-01-15",
        "ST-2 2025-12-31 null",
    ];
    assert_eq!(session.fields("invoices", &["invoice_number", "issue_date", "due_date"]), want);
}

#[test]
fn texts_that_a_spreadsheet_keeps_are_read_and_those_that_it_shortened_are_refused() {
    let session = session("UTC");
    let content = "\"=\"\"email\"\"\",phone,postcode,city\nmia@example.com,\"=\"\"0412345678\"\"\",\"=\"\"0800\"\"\",\n\
                   ben@example.com,=\"0412345679\",'0801,\n=\"eve@example.com\",,,=T(\"Perth\")\n\
                   one@example.com,6.14E+10,,\ntwo@example.com,,1E+05,\nsix@example.com,,2000.0,\n";
    let imported = session.try_import("contacts", "a.csv", content, &[]);
    for line in [
        "line 4: city must be a value, and its cell has the formula =T(\"Perth\");",
        "line 5: phone must have all of its digits, and 6.14E+10 is a number that a spreadsheet has shortened;",
        "line 6: postcode must have all of its digits",
        "line 7: postcode must be as it is written, and 2000.0 is the number 2000 with decimals;",
    ] {
        assert!(imported.error.contains(line), "{line} is not in {}", imported.error);
    }
    let want = ["ben@example.com 0412345679 0801", "mia@example.com 0412345678 0800"];
    assert_eq!(session.fields("contacts", &["email", "phone", "postcode"]), want);
    assert_eq!(session.json(&["find", "0412345679"]).as_array().map(Vec::len).or(Some(1)), Some(1));

    let bills = "invoice_number,total\n=\"000124\",5\n1.2345E+11,5\n";
    let imported = session.try_import("invoices", "b.csv", bills, &[]);
    assert!(imported.error.contains("line 3: invoice_number must have all of its digits"), "{}", imported.error);
    assert_eq!(session.fields("invoices", &["invoice_number"]), ["000124"]);

    // A name that begins like a formula comes back from the export of its account.
    session.json(&["contact", "create", "--email", "odd@example.com", "--first-name", "=1+1"]);
    let exported = session.output(&["export", "contacts", "--format", "csv"]).stdout;
    let imported = session.try_import("contacts", "c.csv", &exported, &[]);
    assert_eq!((imported.code, imported.error.as_str()), (Some(0), ""), "{}", text(&exported));
    assert!(imported.summary.contains("3 unchanged"), "{}", imported.summary);
}

#[test]
fn files_of_the_service_itself_are_imported() {
    let session = session("UTC");
    let download = format!(
        "invoice_number,contact_id,contact,status,total,amount_paid,outstanding\nD-1,,Ada,sent,5,0,5\n\
         D-2,{UNKNOWN_ID},Bob,sent,5,0,5\n"
    );
    let imported = session.try_import("invoices", "invoices.csv", download, &[]);
    assert!(
        imported.error.contains(
            "line 3: contact_id must be the id of a contact of this account that is not deleted; \
                                     import the contacts first"
        ),
        "{}",
        imported.error
    );
    assert_eq!(session.fields("invoices", &["invoice_number"]), ["D-1"]);
    let foreign = session.try_import("invoices", "a.csv", "invoice_number,total,contact\nX-1,5,Ada\n", &[]);
    assert!(foreign.error.contains("an unknown column: \"contact\""), "{}", foreign.error);
}

#[test]
fn quoted_cells_may_have_several_carriage_returns_behind_them() {
    let session = session("UTC");
    for (name, end) in [("one", "\r\r\n"), ("two", "\n\r"), ("three", "\r\n")] {
        let lines = [r#""email","first_name""#, &format!("\"{name}@example.com\",\"Ada\""), ""];
        let imported = session.try_import("contacts", "rr.csv", lines.join(end), &[]);
        assert_eq!((imported.code, imported.error.as_str()), (Some(0), ""), "{name}");
    }
    let want = ["one@example.com Ada", "three@example.com Ada", "two@example.com Ada"];
    assert_eq!(session.fields("contacts", &["email", "first_name"]), want);
}

#[test]
fn invisible_characters_are_shown() {
    let session = session("UTC");
    let imported =
        session.try_import("contacts", "a.csv", "email\ncleo@example.com\u{200b}\n\u{ad}b@example.com\n", &[]);
    for want in ["it has the invisible character U+200B at the end", "U+00AD at the beginning"] {
        assert!(imported.error.contains(want), "{}", imported.error);
    }
    let imported = session.try_import("invoices", "b.csv", "total,due_date\n5,\u{200b}2099-12-31\n", &[]);
    assert!(imported.error.contains("\\u{200b}2099-12-31"), "{}", imported.error);
}

#[test]
fn a_report_overwrites_no_file() {
    let session = session("UTC");
    session.file("precious.txt", "precious");
    let link = session.folder().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink("precious.txt", &link).unwrap();
    for report in ["precious.txt", "link"] {
        let imported = session.try_import("contacts", "a.csv", "email\nx\n", &["--report", report]);
        assert_eq!((imported.code, imported.summary.as_str()), (Some(1), ""), "{report}");
        assert!(imported.error.contains("the file exists already; name another one"), "{}", imported.error);
    }
    assert_eq!(session.read_file("precious.txt"), "precious");
    let imported = session.try_import("contacts", "a.csv", "email\nx\n", &["--report", "/dev/null"]);
    assert!(imported.error.contains("Refused 1 of 1 rows"), "{}", imported.error);
}
