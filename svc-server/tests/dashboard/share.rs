//! Invoices and quotes on paper, and the links with which customers see them.

use http::header::{ALLOW, CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use http::{Method, StatusCode};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::personal::ErasureCreate;
use svc_core::prelude::*;

use super::browser::{Browser, Response, Server, encode};
use super::invoice_actions::hidden;

/// Returns the address in the page of a record, below the origin.
fn address(page: &Response) -> String {
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let address = page.text.split("value=\"http://localhost:8080").nth(1).unwrap_or_else(|| panic!("{}", page.text));
    address.split('"').next().unwrap().to_owned()
}

/// Makes the link of a record, or renews it.
async fn share(browser: &Browser<'_>, record: &str) -> String {
    let page = browser.get(record).await.text;
    let path = format!("{record}/share");
    let made = browser.post(&path, &hidden(&page, &path)).await;
    assert_eq!(made.headers[LOCATION], format!("/dashboard{record}?notice=link-made"), "{}", made.text);
    address(&browser.get(record).await)
}

async fn get(server: &Server, address: &str) -> Response {
    server.browser().send_to(Method::GET, address, "", None).await
}

/// Sends a decision as a browser does, which tells no origin under the policy against referrers.
async fn decide(server: &Server, address: &str, form: &str) -> Response {
    server.browser().send_to(Method::POST, address, form, Some("null")).await
}

/// Returns the fields of the form of a decision on a page.
fn decision(page: &str, decision: &str) -> String {
    let form = page.split(&format!("value=\"{decision}\"")).nth(1).unwrap_or_else(|| panic!("no {decision} in {page}"));
    let version = form.split("name=\"version\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    encode(&[("decision", decision), ("version", version)])
}

async fn quote(server: &Server) -> Quote {
    let contact = server.of(server.tenant).contact("jane@example.com").await.id;
    let quote = QuoteCreate::new(contact, "149.50".parse().unwrap());
    server.svc.account(server.tenant).quotes().create(quote).await.unwrap()
}

async fn set_status(server: &Server, quote: &Quote, status: QuoteStatus) {
    let change = QuoteUpdate { status: Patch::Set(status), ..QuoteUpdate::default() };
    server.svc.account(server.tenant).quotes().update(quote.id, change).await.unwrap();
}

/// Returns the kinds of all events, the newest first, with the actor of the newest.
async fn events(server: &Server) -> (Vec<String>, String) {
    let account = server.svc.account(server.tenant);
    let events = account.events().newest(Timestamp::from_micros(0), 100).await.unwrap();
    let log = account.audit_log().since(Timestamp::from_micros(0), 1).await.unwrap();
    (events.iter().map(|event| event.kind.to_string()).collect(), log[0].actor.clone())
}

#[tokio::test]
async fn a_customer_accepts_a_quote_once() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    let link = share(&developer, &format!("/quotes/{}", quote.id)).await;
    let draft = get(&server, &link).await;
    assert!(draft.text.contains("A draft. It was not sent yet.") && !draft.text.contains("value=\"accept\""));
    let early = decide(&server, &link, "decision=accept&version=x").await;
    assert_eq!(early.status, StatusCode::CONFLICT);
    assert!(early.text.contains("QUO-0001 is draft; it cannot be accepted."), "{}", early.text);

    set_status(&server, &quote, QuoteStatus::Sent).await;
    let page = get(&server, &link).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(
        shown(&page.text),
        "Accept | Accept quote QUO-0001 of Harbour Plumbing, AUD 149.50? You cannot \
         take it back here. | Accept the quote | Decline | Decline quote QUO-0001 of Harbour Plumbing, AUD 149.50? You \
         cannot take it back here. | Decline the quote | Print | Quote QUO-0001 | Harbour Plumbing | For | jane@example.com | Issued | 14 Mar 2026 | Valid until | 13 Apr 2026 | Total | AUD 149.50"
    );
    let form = decision(&page.text, "accept");
    let accepted = decide(&server, &link, &form).await;
    assert_eq!(
        (accepted.status, accepted.headers[LOCATION].to_str().unwrap()),
        (StatusCode::SEE_OTHER.as_u16(), &*link)
    );
    let (kinds, actor) = events(&server).await;
    assert_eq!(kinds[..2], ["quote.updated", "quote.accepted"]);
    assert!(actor.starts_with("shared_link:"), "{actor}");
    let page = get(&server, &link).await;
    assert!(page.text.contains("Accepted. Thank you.</p>") && !page.text.contains("value=\"accept\""), "{}", page.text);

    // The same form again, and the other decision.
    assert_eq!(decide(&server, &link, &form).await.status, StatusCode::SEE_OTHER);
    let other = decide(&server, &link, &form.replace("accept", "decline")).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert!(other.text.contains("QUO-0001 is accepted; it cannot be declined."), "{}", other.text);
    assert_eq!(events(&server).await.0.len(), kinds.len(), "nothing more happened");

    let log = developer.get("/audit").await.text;
    assert!(log.contains("the customer, by a link") && log.contains(">QUO-0001<"), "{log}");
}

/// Returns the texts that a page shows, without its head.
fn shown(page: &str) -> String {
    let body = page.split("<main").nth(1).unwrap_or(page);
    let texts = body.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" | ")
}

#[tokio::test]
async fn a_customer_declines_a_quote_and_decides_on_what_the_page_showed() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    set_status(&server, &quote, QuoteStatus::Sent).await;
    let link = share(&developer, &format!("/quotes/{}", quote.id)).await;
    let old = decision(&get(&server, &link).await.text, "decline");
    server.clock.advance(std::time::Duration::from_secs(1));
    let dearer = QuoteUpdate { total: Patch::Set("900".parse().unwrap()), ..QuoteUpdate::default() };
    server.svc.account(server.tenant).quotes().update(quote.id, dearer).await.unwrap();
    for form in [&old, &old.replace("decline", "accept"), "decision=accept"] {
        let refused = decide(&server, &link, form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{form}");
        assert!(refused.text.contains("The quote was changed after you opened this page"), "{}", refused.text);
        assert!(refused.text.contains("AUD 900.00"), "the page shows it as it is: {}", refused.text);
    }
    for form in ["", "decision=maybe", "decision=%00"] {
        assert_eq!(decide(&server, &link, form).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let form = decision(&get(&server, &link).await.text, "decline");
    assert_eq!(decide(&server, &link, &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(events(&server).await.0[..2], ["quote.updated", "quote.declined"]);
    assert!(get(&server, &link).await.text.contains("<p>Declined.</p>"));
}

#[tokio::test]
async fn an_expired_quote_says_so() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    set_status(&server, &quote, QuoteStatus::Sent).await;
    let link = share(&developer, &format!("/quotes/{}", quote.id)).await;
    let form = decision(&get(&server, &link).await.text, "accept");
    server.clock.advance(std::time::Duration::from_secs(31 * 24 * 60 * 60));
    let page = get(&server, &link).await.text;
    assert!(page.contains("Expired. It was valid until 13 Apr 2026. Ask for a new quote."), "{page}");
    assert!(!page.contains("value=\"accept\""), "{page}");
    let refused = decide(&server, &link, &form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("QUO-0001 held until 2026-04-13; it cannot be accepted."), "{}", refused.text);
}

#[tokio::test]
async fn a_message_about_an_overdue_invoice_is_a_reminder() {
    let server = Server::start().await;
    let contact = server.contact("jane@example.com").await.id;
    let account = server.svc.account(server.tenant);
    let due = Patch::Set(Some(Date::parse("2026-03-15").unwrap()));
    let invoice = InvoiceCreate { contact_id: Some(contact), ..InvoiceCreate::new("90".parse().unwrap()) };
    let invoice = account.invoices().create(invoice).await.unwrap();
    account.invoices().update(invoice.id, InvoiceUpdate { due_date: due, ..InvoiceUpdate::default() }).await.unwrap();
    account.invoices().send(invoice.id).await.unwrap();
    account.invoices().pay_part(invoice.id, "40".parse().unwrap()).await.unwrap();
    server.clock.advance(std::time::Duration::from_secs(3 * 24 * 60 * 60));
    account.invoices().mark_overdue().await.unwrap();
    let (owner, record) = (server.signed_in(Role::Owner).await, format!("/invoices/{}", invoice.id));
    share(&owner, &record).await;
    let page = owner.get(&record).await.text;
    let reminder = "a reminder: invoice INV-0001, of which AUD 50.00 is to be paid, was due 15 Mar 2026:";
    let reminder = reminder.replace(' ', "%20").replace(':', "%3A").replace(',', "%2C");
    assert!(page.contains(&reminder), "{reminder}: {page}");
    assert!(page.contains("2 days overdue"), "{page}");
}

#[tokio::test]
async fn an_invoice_shows_what_is_left_to_pay() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let settings = owner.get("/settings").await.text;
    let form = [
        ("name", "Harbour <Plumbing>"),
        ("time_zone", "Australia/Sydney"),
        ("currency", "AUD"),
        ("address", "1 Quay St\r\nSydney <NSW>\r\n"),
        ("tax_number", "ABN 51 824 753 556"),
        ("days_until_due", "14"),
        ("payment_details", "BSB 062-000\r\nAccount <1>"),
    ];
    let form = format!("{}&{}", hidden(&settings, "/settings"), encode(&form));
    assert_eq!(owner.post("/settings", &form).await.status, StatusCode::SEE_OTHER);
    let contact = server.of(server.tenant).contact("jane@example.com").await.id;
    let mut phone = ContactUpdate::default();
    phone.details.phone = Patch::Set(Some("+61 491 570 158".parse().unwrap()));
    server.svc.account(server.tenant).contacts().update(contact, phone).await.unwrap();
    let invoice = server.invoice(contact, "9860.50").await;
    let account = server.svc.account(server.tenant);
    account.invoices().send(invoice.id).await.unwrap();
    let record = format!("/invoices/{}", invoice.id);
    let page = owner.get(&record).await.text;
    let path = format!("{record}/pay");
    owner.post(&path, &format!("{}&amount=860.50", hidden(&page, &path))).await;

    let printed = owner.get(&format!("{record}/print")).await;
    assert_eq!(printed.status, StatusCode::OK);
    let paper = |page: &str| page.split("<article").nth(1).unwrap().split("</article>").next().unwrap().to_owned();
    assert_eq!(
        shown(&paper(&printed.text)),
        "Invoice INV-0001 | Harbour &lt;Plumbing&gt; | 1 Quay St\nSydney &lt;NSW&gt; | ABN 51 824 753 556 | Bill to | \
         jane@example.com | Issued | 15 Mar 2026 | Due | 29 Mar 2026 | Total | AUD 9,860.50 | Paid | AUD 860.50 | Amount due | AUD 9,000.00 | \
         How to pay | BSB 062-000\nAccount &lt;1&gt; | Reference: INV-0001"
    );
    let link = share(&owner, &record).await;
    let message = format!(
        "mailto:jane@example.com?subject=Invoice%20INV-0001%20of%20Harbour%20%3CPlumbing%3E&amp;body=\
         Hello%20jane%40example.com%2C%0A%0Ahere%20is%20invoice%20INV-0001%2C%20of%20which%20AUD%209%2C000.00%20is%20to%20be%20paid%20by%2029%20Mar%202026%3A%0A\
         http%3A%2F%2Flocalhost%3A8080{}%0A%0AHarbour%20%3CPlumbing%3E",
        link.replace('/', "%2F")
    );
    let page = owner.get(&record).await.text;
    assert!(page.contains(&format!("href=\"{message}\"")), "{message}: {page}");
    let body = message.split("body=").nth(1).unwrap();
    assert!(page.contains(&format!("href=\"sms:+61491570158?&amp;body={body}\"")), "{page}");
    let shared = get(&server, &link).await;
    assert_eq!(paper(&shared.text), paper(&printed.text), "the customer sees the same");
    assert!(!shared.text.contains("/dashboard/invoices") && !shared.text.contains("svc</title>"), "{}", shared.text);
    // What was refunded was paid before.
    account.invoices().pay(invoice.id).await.unwrap();
    account.invoices().refund_part(invoice.id, "250.50".parse().unwrap()).await.unwrap();
    let refunded = shown(&paper(&get(&server, &link).await.text));
    let sums = "Total | AUD 9,860.50 | Paid | AUD 9,860.50 | Refunded | AUD 250.50 | Amount due | AUD 0.00";
    assert!(refunded.ends_with(sums) && refunded.contains("Paid. Thank you."), "{refunded}");
    // Nothing is decided about an invoice.
    assert_eq!(decide(&server, &link, "decision=accept&version=x").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_settings_refuse_an_address_that_cannot_be_printed() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let long = "x".repeat(501);
    for (field, value, error) in [
        ("address", long.as_str(), "The address must have at most 500 characters."),
        ("address", "a\u{0}b", "The address must have no control characters."),
        ("tax_number", "a\nb", "The tax number must be one line"),
        ("days_until_due", "366", "The number of days until an invoice is due must be from 0 to 365."),
        ("days_until_due", "soon", "The number of days until an invoice is due must be from 0 to 365."),
        ("payment_details", "a\u{0}b", "The text must have no control characters."),
    ] {
        let fields = [("name", "Harbour"), ("time_zone", "UTC"), ("currency", "AUD"), (field, value)];
        let refused = owner.post("/settings", &encode(&fields)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{error}");
        assert!(refused.text.contains(error), "{error}: {}", refused.text);
    }
}

/// Returns the fields of the form that marks a draft as sent and makes its link.
fn sending(page: &str, record: &str) -> String {
    let version = page.split("name=\"send\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    format!("{}&{}", hidden(page, &format!("{record}/share")), encode(&[("send", version)]))
}

#[tokio::test]
async fn a_draft_is_sent_with_its_link_by_one_press() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let quote = quote(&server).await;
    let invoice = InvoiceCreate { contact_id: quote.contact_id, ..InvoiceCreate::new("149.50".parse().unwrap()) };
    let invoice = account.invoices().create(invoice).await.unwrap();
    for record in [format!("/quotes/{}", quote.id), format!("/invoices/{}", invoice.id)] {
        let page = developer.get(&record).await.text;
        assert!(page.contains("Mark as sent and make a link"), "{page}");
        let form = sending(&page, &record);
        assert_eq!(developer.post(&format!("{record}/share"), &form).await.status, StatusCode::SEE_OTHER);
        let page = developer.get(&record).await.text;
        assert!(page.contains("Email the link") && !page.contains("Mark as sent and"), "{page}");
    }
    assert_eq!(account.quotes().get(quote.id).await.unwrap().status, QuoteStatus::Sent);
    assert_eq!(account.invoices().get(invoice.id).await.unwrap().status, InvoiceStatus::Sent);
    let (kinds, _) = events(&server).await;
    assert_eq!(kinds[..3], ["invoice.updated", "invoice.sent", "quote.updated"]);
    // A form from before a decision neither sends the quote again nor makes a link.
    let other =
        account.quotes().create(QuoteCreate::new(quote.contact_id.unwrap(), "10".parse().unwrap())).await.unwrap();
    let record = format!("/quotes/{}", other.id);
    let form = sending(&developer.get(&record).await.text, &record);
    server.clock.advance(std::time::Duration::from_secs(1));
    set_status(&server, &other, QuoteStatus::Declined).await;
    assert_eq!(developer.post(&format!("{record}/share"), &form).await.status, StatusCode::CONFLICT);
    assert_eq!(account.quotes().get(other.id).await.unwrap().status, QuoteStatus::Declined);
    assert!(developer.get(&record).await.text.contains("Make a link"));
}

#[tokio::test]
async fn a_quote_and_an_invoice_name_their_job() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let quote = quote(&server).await;
    set_status(&server, &quote, QuoteStatus::Sent).await;
    set_status(&server, &quote, QuoteStatus::Accepted).await;
    assert!(!developer.get(&format!("/quotes/{}", quote.id)).await.text.contains("JOB-0001"));
    let title = QuoteConversion { title: Some("New pump".parse().unwrap()) };
    let job = account.quotes().convert(quote.id, title).await.unwrap();
    let invoice = account.jobs().invoice(job.id, JobInvoicing::default()).await.unwrap();
    for record in [format!("/quotes/{}", quote.id), format!("/invoices/{}", invoice.id)] {
        let page = developer.get(&record).await.text;
        assert!(page.contains(&format!("href=\"/dashboard/jobs/{}\">New pump (JOB-0001)</a>", job.id)), "{page}");
    }
}

#[tokio::test]
async fn a_link_ends_when_it_is_renewed_or_ended_or_its_contact_is_erased() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    let record = format!("/quotes/{}", quote.id);
    assert!(developer.get(&record).await.text.contains("Make a link"));
    let first = share(&developer, &record).await;
    assert!(developer.get(&record).await.text.contains(&first), "people send it again");
    let viewer = server.signed_in(Role::Viewer).await.get(&record).await.text;
    assert!(viewer.contains("There is one, made") && !viewer.contains(&first), "{viewer}");
    assert!(!viewer.contains("Make a new link"), "{viewer}");
    let second = share(&developer, &record).await;
    let unknown = format!("/share/{}", "A".repeat(43));
    let nothing = get(&server, &unknown).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    assert_eq!(
        shown(&nothing.text),
        "Nothing here | There is nothing at this address, or no longer: ask the business that gave it to you for a new one."
    );
    assert_eq!(get(&server, &first).await.text, nothing.text);
    assert_eq!(get(&server, &second).await.status, StatusCode::OK);

    let path = format!("{record}/unshare");
    let ended = developer.post(&path, &hidden(&developer.get(&record).await.text, &path)).await;
    assert_eq!(ended.headers[LOCATION], format!("/dashboard{record}?notice=link-ended"));
    let third = share(&developer, &record).await;
    let reason = ErasureCreate { reason: "asked".parse().unwrap() };
    server.svc.account(server.tenant).contacts().erase(quote.contact_id.unwrap(), reason).await.unwrap();
    for wrong in [&second, &third, "/share/", "/share/x", "/share/%F0%9F%94%91", "/share/a/b", &format!("{third}/")] {
        for response in [get(&server, wrong).await, decide(&server, wrong, "decision=accept&version=x").await] {
            assert_eq!((response.status, &response.text), (404, &nothing.text), "{wrong}");
            let names = |response: &Response| response.headers.keys().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(names(&response), names(&nothing), "{wrong}");
        }
    }
    let refused = developer.post(&format!("{record}/share"), "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("Its contact is deleted"), "{}", refused.text);
}

#[tokio::test]
async fn a_page_that_shows_another_link_changes_none() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let record = format!("/quotes/{}", quote(&server).await.id);
    let (make, end) = (format!("{record}/share"), format!("{record}/unshare"));
    let before = developer.get(&record).await.text;
    let link = share(&developer, &record).await;
    let first = developer.get(&record).await.text;
    // Another person has the page on which there was none.
    assert_eq!(developer.post(&make, &hidden(&before, &make)).await.status, StatusCode::CONFLICT);
    server.clock.advance(std::time::Duration::from_secs(1));
    let renewed = share(&developer, &record).await;
    for path in [&make, &end] {
        let refused = developer.post(path, &hidden(&first, path)).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{path}");
        assert!(refused.text.contains("It was changed after this page was loaded"), "{}", refused.text);
    }
    assert_eq!(get(&server, &link).await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&server, &renewed).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_form_that_is_too_large_gets_a_page_of_the_link() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let link = share(&developer, &format!("/quotes/{}", quote(&server).await.id)).await;
    let large = decide(&server, &link, &format!("decision={}", "x".repeat(70 * 1024))).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(
        large.text.contains("so nothing was decided") && large.headers[REFERRER_POLICY] == "no-referrer",
        "{}",
        large.text
    );
}

#[tokio::test]
async fn the_links_of_a_suspended_account_are_not_available() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    set_status(&server, &quote, QuoteStatus::Sent).await;
    let link = share(&developer, &format!("/quotes/{}", quote.id)).await;
    let form = decision(&get(&server, &link).await.text, "accept");
    let set = async |access| {
        let account = server.svc.account(server.tenant);
        account.change_settings(move |tenant| tenant.developer_access = access).await.unwrap();
    };
    set(DeveloperAccess::Suspended).await;
    for response in [get(&server, &link).await, decide(&server, &link, &form).await] {
        assert_eq!(response.status, StatusCode::FORBIDDEN);
        assert!(response.text.contains("This page is not available at the moment."), "{}", response.text);
        assert!(!response.text.contains("QUO-0001") && !response.text.contains("Harbour"), "{}", response.text);
    }
    set(DeveloperAccess::Approved).await;
    assert_eq!(get(&server, &link).await.status, StatusCode::OK);
    assert!(!events(&server).await.0.contains(&"quote.accepted".to_owned()));
}

#[tokio::test]
async fn a_shared_page_keeps_its_address_to_itself() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let quote = quote(&server).await;
    let link = share(&developer, &format!("/quotes/{}", quote.id)).await;
    let unknown = format!("/share/{}", "A".repeat(43));
    for address in [&link, &unknown] {
        for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT] {
            let response = server.browser().send_to(method.clone(), address, "", None).await;
            let headers = &response.headers;
            assert_eq!(headers[REFERRER_POLICY], "no-referrer", "{method}");
            assert_eq!(headers["x-robots-tag"], "noindex", "{method}");
            assert_eq!(headers[CACHE_CONTROL], "no-store", "{method}");
            assert_eq!(headers.get(ALLOW).is_some(), response.status == StatusCode::METHOD_NOT_ALLOWED, "{method}");
            assert!(!response.text.contains(&address[7..]), "{method}");
        }
    }
}

#[tokio::test]
async fn strangers_have_a_limit_at_shared_links() {
    let server = Server::start().await;
    let unknown = format!("/share/{}", "A".repeat(43));
    let mut statuses = Vec::new();
    for _ in 0..700 {
        let response = get(&server, &unknown).await;
        if !statuses.contains(&response.status) {
            statuses.push(response.status);
        }
        if response.status == 429 {
            assert!(response.headers.contains_key("retry-after"));
            break;
        }
    }
    assert_eq!(statuses, [404, 429]);
}
