//! The lists of records, their files, and the pages of contacts and invoices.

use std::collections::BTreeSet;

use http::StatusCode;
use svc_core::accounts::sessions::Role;
use svc_core::personal::ContactData;
use svc_core::prelude::*;
use svc_core::resources::crud;

use super::browser::{Server, without_labels};
use super::webhooks::HOSTILE;

/// Returns the text of an HTML page without its tags, with single spaces.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        let shown = part.split_once('>').map_or(part, |(_, shown)| shown);
        text.push_str(shown);
        text.push(' ');
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the texts of the rows of all tables of a page.
pub(crate) fn rows(page: &str) -> Vec<String> {
    page.split("<tbody>")
        .skip(1)
        .flat_map(|table| {
            let table = table.split("</tbody>").next().unwrap();
            table.split("<tr").skip(1).map(|row| text(row.split_once('>').unwrap().1)).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the value of a name in the facts of a page.
fn fact(page: &str, name: &str) -> String {
    let value = page.split(&format!("<dt>{name}</dt><dd>")).nth(1).unwrap_or_default();
    text(value.split("</dd>").next().unwrap_or_default())
}

async fn invoice(server: &Server, tenant: TenantId, contact: ContactId, total: &str) -> InvoiceId {
    let id = server.of(tenant).invoice(contact, total).await.id;
    server.svc.account(tenant).invoices().send(id).await.unwrap();
    id
}

#[tokio::test]
async fn lists_name_contacts_and_show_amounts_with_their_currency() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let ada = server.named_contact("ada@example.com", HOSTILE).await.id;
    let paid = invoice(&server, server.tenant, ada, "9860.5").await;
    let account = server.svc.account(server.tenant);
    account.invoices().pay_part(paid, "100".parse().unwrap()).await.unwrap();
    server.invoice(None, "5").await;
    server.quote(ada, "99").await;
    let page = without_labels(&viewer.get("/invoices").await.text);
    assert!(!page.contains(HOSTILE) && page.contains(&format!("href=\"/dashboard/contacts/{ada}\"")), "{page}");
    assert!(page.contains("<td class=\"number\"><span class=\"fixed\">AUD 9,860.50</span></td>"), "{page}");
    let at = "14 Mar 2026, 15:09";
    assert_eq!(
        rows(&page),
        [
            "INV-0002 – draft AUD 5.00 – 14 Mar 2026 –".to_owned(),
            format!("INV-0001 {HOSTILE} partial AUD 9,860.50 AUD 9,760.50 14 Mar 2026 –"),
        ]
    );
    server.transactions.lock().unwrap().clear();
    let quotes = viewer.get("/quotes").await.text;
    assert_eq!(rows(&quotes), [format!("QUO-0001 {HOSTILE} draft AUD 99.00 13 Apr 2026 {at}")]);
    assert_eq!(server.reads("svc.contacts.names"), 1, "all names of a page are read at once");
}

#[tokio::test]
async fn lists_are_filtered_by_days_of_the_account() {
    let server = Server::start().await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.time_zone = TimeZone::parse("Australia/Sydney").unwrap()).await.unwrap();
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    server.clock.advance(std::time::Duration::from_secs(2 * 24 * 60 * 60));
    server.named_contact("bob@example.com", "Bob").await;
    let viewer = server.signed_in(Role::Viewer).await;
    // Ada was created on March 15 at 02:09 in Sydney, which is March 14 in UTC.
    for (query, names) in [
        ("since=2026-03-15", &["Bob", "Ada"][..]),
        ("since=2026-03-16", &["Bob"]),
        ("until=2026-03-14", &[]),
        ("until=2026-03-15", &["Ada"]),
        ("since=2026-03-15&until=2026-03-15", &["Ada"]),
        ("within=24h", &["Bob"]),
        ("within=7d", &["Bob", "Ada"]),
        ("within=7d&until=2026-03-16", &["Ada"]),
        ("search=ada%40example.com&since=2026-03-16", &[]),
    ] {
        let page = viewer.get(&format!("/contacts?{query}")).await.text;
        let found: Vec<String> = rows(&page).iter().map(|row| row.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(found, names, "{query}");
        assert_eq!(page.contains("Nothing found"), names.is_empty(), "{query}");
    }
    assert_eq!(viewer.get("/contacts?since=yesterday").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let page = viewer.get(&format!("/contacts/{ada}")).await.text;
    assert_eq!(fact(&page, "Created"), "15 Mar 2026, 02:09");
}

#[tokio::test]
async fn a_csv_file_has_what_the_filters_show_and_runs_no_formula() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let (tenant, other) = (server.tenant, server.other);
    let hostile = server.of(tenant).named_contact("ada@example.com", "=HYPERLINK(\"http://x\")").await.id;
    let elsewhere = server.of(other).named_contact("eve@example.com", "Eve").await.id;
    let id = invoice(&server, tenant, hostile, "9860.5").await;
    invoice(&server, other, elsewhere, "1").await;
    let draft = InvoiceCreate::new("5".parse().unwrap());
    server.svc.account(tenant).invoices().create(draft).await.unwrap();
    let stored = server.svc.account(tenant).invoices().get(id).await.unwrap();
    let response = viewer.get("/invoices?status=sent&format=csv").await;
    assert_eq!(response.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(response.headers["content-disposition"], "attachment; filename=\"invoices.csv\"");
    let want = format!(
        "\u{feff}id,invoice_number,contact_id,contact,status,issue_date,due_date,currency,total,amount_paid,outstanding,paid_at,\
         created_at,updated_at\r\n\
         {id},INV-0001,{hostile},\"'=HYPERLINK(\"\"http://x\"\")\",sent,2026-03-14,,AUD,9860.5,0,9860.5,,{},{}\r\n",
        stored.created_at, stored.updated_at
    );
    assert_eq!(response.text, want);
    let page = viewer.get("/invoices?status=sent").await.text;
    assert!(page.contains("href=\"/dashboard/invoices?status=sent&amp;format=csv\" download"), "{page}");
    let contacts = viewer.get("/contacts?format=csv").await.text;
    assert!(contacts.contains("ada@example.com") && !contacts.contains("eve@"), "{contacts}");
    let of_other = viewer.get(&format!("/invoices?contact={elsewhere}&format=csv")).await.text;
    assert_eq!(of_other.lines().count(), 1, "{of_other}");
}

/// Creates this many contacts with the addresses `c0@example.com`, `c1@example.com` and so on, in one transaction.
pub(crate) async fn many_contacts(server: &Server, count: u32) {
    let create = server.svc.store().write("test", (server.tenant, count), async |tx, &(tenant, count)| {
        for number in 0..count {
            let input = ContactCreate::new(format!("c{number}@example.com").parse().unwrap());
            crud::create::<Contact>(tx, tenant, input).await?;
        }
        Ok(())
    });
    create.await.unwrap();
}

#[tokio::test]
async fn a_csv_file_has_all_rows_however_many() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    many_contacts(&server, 10_050).await;
    let csv = viewer.get("/contacts?format=csv").await.text;
    let ids: BTreeSet<&str> = csv.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    assert_eq!((csv.lines().count(), ids.len()), (10_051, 10_050), "each once, after the headings");
    assert!(csv.contains("c0@example.com") && csv.contains("c10049@example.com"));
    let page = viewer.get("/contacts").await.text;
    assert!(page.contains("download>Download CSV</a>"), "{page}");
}

#[tokio::test]
async fn the_file_of_a_contact_has_all_that_is_known_of_it() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let empty = developer.get(&format!("/contacts/{ada}/data")).await;
    assert_eq!(empty.headers["content-disposition"], format!("attachment; filename=\"contact-{ada}.json\""));
    let read = |text: &str| serde_json::from_str::<ContactData>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(read(&empty.text).is_complete);
    assert_eq!((read(&empty.text).bookings.len(), read(&empty.text).events.len()), (0, 1));

    let account = server.svc.account(server.tenant);
    let paid = invoice(&server, server.tenant, ada, "10").await;
    account.invoices().pay_part(paid, "4".parse().unwrap()).await.unwrap();
    for number in 0..330 {
        let name = Text::parse(&format!("Visit {number}")).unwrap();
        let visit = BookingCreate::new(ada, name, "2026-03-20T09:00:00Z".parse().unwrap());
        account.bookings().create(visit).await.unwrap();
    }
    let file = developer.get(&format!("/contacts/{ada}/data")).await.text;
    let data = read(&file);
    assert!(data.is_complete, "{file}");
    assert_eq!((data.invoices.len(), data.payments.len(), data.bookings.len()), (1, 1, 330));
    let want = account.contacts().data(ada).await.unwrap();
    let (data, want) = (serde_json::to_value(data).unwrap(), serde_json::to_value(want).unwrap());
    assert_eq!(data, want, "as the facade returns it");
    let other = server.of(server.other).named_contact("eve@example.com", "Eve").await.id;
    assert_eq!(developer.get(&format!("/contacts/{other}/data")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_contact_has_its_records_and_what_is_outstanding() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let bob = server.named_contact("bob@example.com", "Bob").await.id;
    for _ in 0..11 {
        invoice(&server, server.tenant, ada, "100.25").await;
    }
    let yen = InvoiceCreate {
        currency: Some("JPY".parse().unwrap()),
        contact_id: Some(ada),
        ..InvoiceCreate::new("1200".parse().unwrap())
    };
    let yen = account.invoices().create(yen).await.unwrap().id;
    let draft = InvoiceCreate { contact_id: Some(ada), ..InvoiceCreate::new("7".parse().unwrap()) };
    account.invoices().create(draft).await.unwrap();
    account.invoices().send(yen).await.unwrap();
    invoice(&server, server.tenant, bob, "55").await;
    server.quote(ada, "99").await;
    let start = Timestamp::parse("2026-03-20T09:00:00Z").unwrap();
    account.bookings().create(BookingCreate::new(ada, Text::parse("Blocked drain").unwrap(), start)).await.unwrap();
    let page = viewer.get(&format!("/contacts/{ada}")).await.text;
    let outstanding = page.split("<h2>Outstanding</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    assert_eq!(text(outstanding), "JPY 1,200 AUD 1,102.75");
    assert!(page.contains(&format!("href=\"/dashboard/invoices?contact={ada}\"")), "{page}");
    assert!(page.contains("INV-0013") && !page.contains("INV-0003") && !page.contains("INV-0014"), "the newest ten");
    assert!(page.contains("QUO-0001") && page.contains("Blocked drain"), "{page}");
    let all = viewer.get(&format!("/invoices?contact={ada}")).await.text;
    assert!(all.contains("INV-0001") && all.contains("INV-0013") && !all.contains("INV-0014"), "{all}");
    let of_bob = viewer.get(&format!("/contacts/{bob}")).await.text;
    assert!(of_bob.contains("AUD 55.00") && !of_bob.contains("INV-0013"), "{of_bob}");
    let elsewhere = server.of(server.other).named_contact("eve@example.com", "Mallory").await.id;
    assert_eq!(viewer.get(&format!("/contacts/{elsewhere}")).await.status, StatusCode::NOT_FOUND);
    let of_other = viewer.get(&format!("/invoices?contact={elsewhere}")).await.text;
    assert!(of_other.contains("Nothing found") && !of_other.contains("Mallory"), "{of_other}");
}

#[tokio::test]
async fn an_invoice_has_its_contact_and_its_payments() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let id = invoice(&server, server.tenant, ada, "9860.5").await;
    let invoices = server.svc.account(server.tenant).invoices();
    let page = viewer.get(&format!("/invoices/{id}")).await.text;
    assert!(page.contains("No payments recorded."), "{page}");
    invoices.pay_part(id, "100".parse().unwrap()).await.unwrap();
    let page = viewer.get(&format!("/invoices/{id}")).await.text;
    assert!(text(&page).contains("Contact Ada Email ada@example.com Details"), "{page}");
    let facts = ["Total", "Paid", "Outstanding", "Issued", "Due"].map(|name| fact(&page, name));
    assert_eq!(facts, ["AUD 9,860.50", "AUD 100.00", "AUD 9,760.50", "14 Mar 2026", ""]);
    let heading = text(page.split("class=\"about\"").nth(1).unwrap().split("</p>").next().unwrap());
    assert!(heading.contains("partial Ada · AUD 9,760.50"), "{heading}");
    assert_eq!(rows(&page)[0], "14 Mar 2026, 15:09 AUD 100.00");
    let payment = PaymentCreate {
        method: Some("bank transfer".parse().unwrap()),
        reference: Some(HOSTILE.parse().unwrap()),
        ..PaymentCreate::of("50".parse().unwrap())
    };
    invoices.pay_with(id, payment).await.unwrap();
    invoices.refund_part(id, "20".parse().unwrap()).await.unwrap();
    let page = viewer.get(&format!("/invoices/{id}")).await.text;
    let payments = ["14 Mar 2026, 15:09 −AUD 20.00 refund", "14 Mar 2026, 15:09 AUD 50.00 bank transfer"];
    assert_eq!(rows(&page)[0], payments[0]);
    assert!(!page.contains(HOSTILE) && rows(&page)[1].starts_with(payments[1]), "{page}");

    let list = viewer.get("/payments").await.text;
    assert!(rows(&list)[0].starts_with("14 Mar 2026, 15:09 INV-0001 Ada −AUD 20.00 refund"), "{list}");
    let file = viewer.get("/payments?format=csv").await.text;
    let cells = |row: &str| row.split(',').skip(6).take(3).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = file.lines().skip(1).map(cells).collect();
    assert_eq!(rows, ["true AUD -20", "false AUD 50", "false AUD 100"], "a sum is what came in: {file}");
    assert!(file.contains("2026-03-14T15:09:26.000009Z,2026-03-14,INV-0001"), "{file}");
}
