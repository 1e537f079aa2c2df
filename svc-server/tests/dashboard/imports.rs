//! Imports: how files are read, checked and imported, and what is said to files that cannot be.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, ORIGIN_URL, Response, Server, encode};

const BOUNDARY: &str = "----svc-test";

/// Sends a file as a browser sends the form of the page.
async fn send_file(browser: &Browser<'_>, fields: &[(&str, &str)], name: &str, content: &[u8]) -> Response {
    let csrf = browser.csrf().await;
    let mut body = Vec::new();
    for (field, value) in fields.iter().chain(&[("csrf", csrf.as_str())]) {
        let part = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend(part.as_bytes());
    }
    let disposition = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"");
    body.extend(format!("--{BOUNDARY}\r\n{disposition}\r\nContent-Type: text/csv\r\n\r\n").as_bytes());
    body.extend(content);
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    let request = Request::builder()
        .method(Method::POST)
        .uri("/dashboard/import")
        .header(HOST, "localhost:8080")
        .header(ORIGIN, ORIGIN_URL)
        .header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"))
        .header(COOKIE, browser.cookie.clone().unwrap());
    browser.server.send(request.body(Full::from(Bytes::from(body))).unwrap()).await
}

/// Returns the path below `/dashboard` that a form leads to.
fn location(response: &Response) -> String {
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
    response.headers[LOCATION].to_str().unwrap().strip_prefix("/dashboard").unwrap().to_owned()
}

/// Uploads a file, and returns the path of its page.
async fn uploaded(browser: &Browser<'_>, kind: &str, content: &str) -> String {
    location(&send_file(browser, &[("kind", kind)], "rows.csv", content.as_bytes()).await)
}

/// Runs all steps of an import or its check, and returns the page at the end.
async fn run(browser: &Browser<'_>, page: &str, step: &str) -> String {
    let mut form = String::new();
    for _ in 0..50 {
        assert_eq!(location(&browser.post(&format!("{page}/{step}"), &form).await), page);
        let shown = browser.get(page).await.text;
        let Some((_, after)) = shown.split_once("name=\"after\" value=\"") else { return shown };
        form = format!("after={}", after.split('"').next().unwrap());
    }
    panic!("the import has no end");
}

/// Returns the value of a fact of a page.
fn fact(page: &str, name: &str) -> String {
    let fact = page.split(&format!("<dt>{name}</dt><dd>")).nth(1).unwrap_or_else(|| panic!("no {name} in {page}"));
    fact.split("</dd>").next().unwrap().to_owned()
}

async fn emails(server: &Server, tenant: TenantId) -> Vec<String> {
    let contacts =
        server.svc.account(tenant).contacts().list(ContactFilter::default(), ListParams::default()).await.unwrap();
    let mut emails: Vec<String> = contacts
        .data
        .iter()
        .map(|contact| contact.email.as_ref().map(ToString::to_string).unwrap_or_default())
        .collect();
    emails.sort();
    emails
}

#[tokio::test]
async fn a_file_is_uploaded_mapped_checked_and_imported() {
    let server = Server::start().await;
    let link = DashboardLinkCreate::to(server.tenant, Role::Developer).identity("ada@example.com");
    let ada = server.signed_in_by(link).await;
    for list in ["/contacts", "/invoices"] {
        assert!(ada.get(list).await.text.contains(&format!("href=\"/dashboard/import?kind={}\"", &list[1..])));
    }
    assert!(ada.get("/find?q=import+cont").await.headers[LOCATION].to_str().unwrap().contains("/import?kind=contacts"));
    let form = ada.get("/import?kind=invoices").await.text;
    assert!(form.contains("enctype=\"multipart/form-data\"") && form.contains("at most 4 MiB"), "{form}");
    assert!(form.contains("<option value=\"invoices\" selected>"), "{form}");

    let file = "E-Mail;First Name;Town;<b>\nada@example.com;Ada;Perth;1\nbob at example.com;Bob;;2\n;;;\n";
    let page = uploaded(&ada, "contacts", file).await;
    let shown = ada.get(&page).await.text;
    // No column is the email address by itself.
    assert!(shown.contains("<select name=\"column-0\"") && shown.contains("&lt;b&gt;"), "{shown}");
    assert!(!shown.contains("column-1"), "the first name is known: {shown}");
    assert!(shown.contains("by ada@example.com"), "{shown}");
    let choices = [("column-0", "email"), ("column-2", "city"), ("skip_lines", ""), ("no_events", "on")];
    assert_eq!(location(&ada.post(&page, &encode(&choices)).await), format!("{page}?notice=saved"));
    let shown = ada.get(&page).await.text;
    assert!(shown.contains("All rows as they are read") && shown.contains("Perth"), "{shown}");
    assert!(shown.contains(">refused</span> email ") && shown.contains(">added</span>"), "{shown}");
    assert!(!shown.contains("fires an event"), "{shown}");

    let checked = run(&ada, &page, "check").await;
    assert!(checked.contains("Nothing was changed."), "{checked}");
    assert_eq!(["Rows", "To add", "To refuse", "Blank"].map(|name| fact(&checked, name)), ["2", "1", "1", "1"]);
    assert_eq!(emails(&server, server.tenant).await, [""; 0]);
    let imported = run(&ada, &page, "run").await;
    assert_eq!(["Rows", "Added", "Refused"].map(|name| fact(&imported, name)), ["2", "1", "1"]);
    assert!(imported.contains(r#"href="/dashboard/contacts">See the contacts</a>"#), "{imported}");
    let again = imported.split("<details class=\"card\">").nth(1).unwrap();
    assert!(again.contains("Preview") && !imported.split("<details").next().unwrap().contains("Preview"), "{imported}");
    assert_eq!(emails(&server, server.tenant).await, ["ada@example.com"]);
    let again = run(&ada, &page, "run").await;
    assert_eq!(["Added", "Unchanged", "Refused"].map(|name| fact(&again, name)), ["0", "1", "1"]);

    let refused = ada.get(&format!("{page}/refused")).await;
    assert_eq!(refused.headers[CONTENT_TYPE], "text/csv; charset=utf-8");
    let text = refused.text.trim_start_matches('\u{feff}').to_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "E-Mail,First Name,Town,<b>,import_error");
    assert!(lines[1].starts_with("bob at example.com,Bob,,2,") && lines[1].contains("email"), "{text}");

    // The mended file has the reasons still, which are left out.
    let mended = text.replace("bob at example.com", "bob@example.com");
    let page = uploaded(&ada, "contacts", &mended).await;
    ada.post(&page, &encode(&choices)).await;
    assert_eq!(fact(&run(&ada, &page, "run").await, "Added"), "1");
    assert_eq!(emails(&server, server.tenant).await, ["ada@example.com", "bob@example.com"]);
    assert_eq!(location(&ada.post(&format!("{page}/delete"), "").await), "/import?notice=file-deleted");
    assert_eq!(ada.get(&page).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_import_takes_several_steps_and_goes_on_where_it_was() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let rows: String = (0..4_100).map(|number| format!("p{number}@example.com\n")).collect();
    let page = uploaded(&owner, "contacts", &format!("email\n{rows}")).await;
    let shown = owner.get(&page).await.text;
    assert!(shown.contains("The first 20 rows"), "{shown}");
    owner.post(&format!("{page}/run"), "").await;
    let half = owner.get(&page).await.text;
    assert!(half.contains("data-continue") && half.contains("<progress"), "{half}");
    assert_eq!(fact(&half, "Added"), "4,000");
    assert!(!half.contains("How the file is read"), "choices are not changed meanwhile");
    // A form that was sent before changes nothing.
    assert_eq!(location(&owner.post(&format!("{page}/run"), "after=0").await), page);
    assert_eq!(fact(&owner.get(&page).await.text, "Added"), "4,000");
    let done = owner.post(&format!("{page}/run"), "after=8").await;
    assert_eq!(location(&done), page);
    let done = owner.get(&page).await.text;
    assert_eq!(fact(&done, "Added"), "4,100");
    assert!(done.contains("The whole file was imported.") && !done.contains("data-continue"), "{done}");
}

#[tokio::test]
async fn invoices_of_another_program_are_imported_with_its_preset() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let file = "Invoice Number,Issue Date,Invoice Status,Line Total,Notes\n1,31/12/2025,Unpaid,10.00,a\n1,31/12/2025,Unpaid,5.50,b\n\
                2,2025-12-31,Lost,1,c\n2,2025-12-31,Lost,2,d\n";
    let fields = [("kind", "invoices"), ("preset", "freshbooks")];
    let page = location(&send_file(&owner, &fields, "C:\\exports\\fresh.csv", file.as_bytes()).await);
    let shown = owner.get(&page).await.text;
    assert!(shown.contains("<h1>fresh.csv</h1>"), "{shown}");
    assert!(shown.contains("needs a form of dates, such as DD/MM/YYYY"), "{shown}");
    assert!(!shown.contains("--"), "no option of a command is named: {shown}");
    let choices = [("preset", "freshbooks"), ("date_format", "DD/MM/YYYY")];
    owner.post(&page, &encode(&choices)).await;
    let done = run(&owner, &page, "run").await;
    assert_eq!(["Rows", "Added", "Refused"].map(|name| fact(&done, name)), ["2", "1", "1"]);
    let refused = owner.get(&format!("{page}/refused")).await.text;
    let lines: Vec<&str> = refused.lines().collect();
    assert!(lines[1].starts_with("2,2025-12-31,Lost,1,c,\"status") && lines[2].ends_with("Lost,2,d,"), "{refused}");
    let values = [choices[0], choices[1], ("values", "Lost=cancelled")];
    owner.post(&page, &encode(&values)).await;
    let done = run(&owner, &page, "run").await;
    assert_eq!(["Added", "Unchanged", "Refused"].map(|name| fact(&done, name)), ["1", "1", "0"]);
    let invoices = server
        .svc
        .account(server.tenant)
        .invoices()
        .list(InvoiceFilter::default(), ListParams::default())
        .await
        .unwrap()
        .data;
    let totals: Vec<String> = invoices.iter().map(|invoice| invoice.total.to_string()).collect();
    assert!(totals.contains(&"15.5".to_owned()), "{totals:?}");

    let wrong = owner.post(&page, &encode(&[("values", "Lost")])).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("must be a text and a status"), "{}", wrong.text);
}

#[tokio::test]
async fn existing_contacts_change_only_when_the_person_says_so() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    server.contact("ada@example.com").await;
    let page = uploaded(&owner, "contacts", "email,city\nada@example.com,Perth\n").await;
    let refused = run(&owner, &page, "run").await;
    assert!(refused.contains("tick “Update contacts that differ”"), "{refused}");
    owner.post(&page, "update=on").await;
    assert_eq!(fact(&run(&owner, &page, "check").await, "To update"), "1");
    assert_eq!(fact(&run(&owner, &page, "run").await, "Updated"), "1");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_with_the_reason_beside_its_field() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let huge = format!("email,city\na@example.com,{}\n", "x".repeat(1024 * 1024));
    for (content, want) in [
        (&b""[..], "The file is empty"),
        (b"Pr\xe9nom,email\n", "The file is not UTF-8: line 1 has the byte 0xE9"),
        (b"\xff\xfee\0", "encoded in UTF-16"),
        (b"PK\x03\x04", "is a workbook"),
        (b"email\n\"a@example.com\n", "the quote that opens on line 2 is never closed"),
        (b"email\na\0\n", "NUL character on line 2"),
    ] {
        let refused = send_file(&owner, &[("kind", "contacts")], "a.csv", content).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{want}");
        let field = refused.text.split("id=\"about-file\"").nth(1).unwrap().split("</div>").next().unwrap();
        assert!(field.contains(want), "{want}: {field}");
    }
    let none = owner.post("/import", "kind=contacts").await;
    assert!(none.text.contains("Choose a file, or paste the rows."), "{}", none.text);
    let wrong = owner.post("/import", "kind=invoices&preset=outlook&text=a").await;
    assert!(wrong.text.contains("Outlook exports no invoices"), "{}", wrong.text);
    let large = vec![b'x'; 5 * 1024 * 1024];
    let refused = send_file(&owner, &[("kind", "contacts")], "a.csv", &large).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused.text.contains("must not be larger than 4 MiB"), "{}", refused.text);

    // Rows that are wrong are refused one by one.
    let page = uploaded(&owner, "contacts", &huge).await;
    let shown = owner.get(&page).await.text;
    assert!(shown.contains(">refused</span> row must have at most 1 MiB"), "{}", &shown[..shown.len().min(5_000)]);
    let page = uploaded(&owner, "contacts", "email,city\na@example.com,=cmd|' /C calc'!A0\n").await;
    let done = run(&owner, &page, "run").await;
    assert_eq!(fact(&done, "Refused"), "1");
    assert!(owner.get(&page).await.text.contains("has the formula"), "{done}");
    let refused = owner.get(&format!("{page}/refused")).await.text;
    assert!(refused.contains("a@example.com,'=cmd|"), "no spreadsheet runs it: {refused}");
    let page = uploaded(&owner, "contacts", "email\n").await;
    let shown = owner.get(&page).await.text;
    assert!(
        shown.contains("The file has no rows below its header.") && !shown.contains("Import the contacts"),
        "{shown}"
    );
    assert_eq!(fact(&run(&owner, &page, "run").await, "Rows"), "0");
    let page = uploaded(&owner, "contacts", "<script>alert(1)</script>,email\n\"<img src=x>\",a@example.com\n").await;
    let shown = owner.get(&page).await.text;
    assert!(!shown.contains("<script>alert") && !shown.contains("<img"), "{shown}");
}

#[tokio::test]
async fn a_file_is_of_one_account_and_not_for_its_viewers() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let page = uploaded(&owner, "contacts", "email\na@example.com\n").await;
    assert!(owner.get("/import").await.text.contains(&format!("href=\"/dashboard{page}\"")));
    let viewer = server.signed_in(Role::Viewer).await;
    assert_eq!(viewer.get(&page).await.status, StatusCode::FORBIDDEN);
    assert!(!viewer.get("/contacts").await.text.contains("/dashboard/import"));
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Owner)).await;
    for step in ["", "/refused"] {
        assert_eq!(other.get(&format!("{page}{step}")).await.status, StatusCode::NOT_FOUND, "{step}");
    }
    for step in ["", "/check", "/run", "/delete"] {
        assert_eq!(other.post(&format!("{page}{step}"), "").await.status, StatusCode::NOT_FOUND, "{step}");
    }
    assert!(!other.get("/import").await.text.contains(&page));
    assert_eq!(emails(&server, server.tenant).await, [""; 0]);
    server.clock.advance(std::time::Duration::from_secs(24 * 60 * 60));
    let owner = server.signed_in(Role::Owner).await;
    assert_eq!(owner.get(&page).await.status, StatusCode::NOT_FOUND, "it ends with a day");
}

#[tokio::test]
async fn a_file_that_is_sent_twice_is_stored_once() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let form = owner.get("/import").await.text;
    let key = form.split("name=\"key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let fields = [("kind", "contacts"), ("key", &key)];
    let first = location(&send_file(&owner, &fields, "a.csv", b"email\n").await);
    assert_eq!(location(&send_file(&owner, &fields, "a.csv", b"email\n").await), first);
    let other = send_file(&owner, &fields, "a.csv", b"email\nb@example.com\n").await;
    assert_eq!(other.status, StatusCode::CONFLICT);
}
