//! `svc import` of files that other programs wrote.

use super::harness::Session;

/// A session with an account, and the beginning of an import of contacts.
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
        .import_contacts("empty", "{}\nemail,city\nada@example.com,Sydney\n", &[])
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
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "2"])
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "3"])
        .import_contacts("short.csv", "email\na@example.com\n", &["--skip-lines", "0"])
        .assert("import_skip_lines");
    let want = ["ada@example.com|Sydney", "bob@example.com|Bonn, Bad Godesberg"];
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
        .assert("import_rows");
    let want = [
        "ada@example.com|null|null",
        "bob@example.com|Bob|0412 345 678",
        "eve@example.com|=1+1|+61 2",
        "team@example.com|'90s Band|null",
    ];
    assert_eq!(session.contacts(&["email", "first_name", "phone"]), want);
}
