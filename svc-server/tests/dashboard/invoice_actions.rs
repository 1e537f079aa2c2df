//! What is done with invoices, quotes and contacts beside editing them.

use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, LOCATION};
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, Response, Server, encode};

/// Returns the hidden fields of the form that a page sends to `path`.
pub(crate) fn hidden(page: &str, path: &str) -> String {
    let start = format!("action=\"/dashboard{path}\"");
    let form = page.split(&start).nth(1).unwrap_or_else(|| panic!("no form of {path} in {page}"));
    let form = form.split("</form>").next().unwrap();
    let value = |name: &str| {
        let after = form.split(&format!("name=\"{name}\" value=\"")).nth(1)?;
        Some(after.split('"').next().unwrap().to_owned())
    };
    let version = value("version").map(|version| encode(&[("version", &version)]));
    let key = encode(&[("key", &value("key").unwrap())]);
    [Some(key), version].into_iter().flatten().collect::<Vec<_>>().join("&")
}

/// Sends the form of an action that the page of its record has.
async fn act(browser: &Browser<'_>, record: &str, action: &str, fields: &str) -> Response {
    let page = browser.get(record).await.text;
    let path = format!("{record}/{action}");
    browser.post(&path, &format!("{}&{fields}", hidden(&page, &path))).await
}

fn notice(response: &Response) -> &str {
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
    response.headers[LOCATION].to_str().unwrap().split("notice=").nth(1).unwrap()
}

async fn jane(server: &Server) -> ContactId {
    let details = ContactDetails {
        first_name: Patch::Set(Some("Jane".parse().unwrap())),
        last_name: Patch::Set(Some("<b>Citizen".parse().unwrap())),
        ..ContactDetails::default()
    };
    let jane = ContactCreate { details, ..ContactCreate::new("jane@example.com".parse().unwrap()) };
    server.svc.account(server.tenant).contacts().create(jane).await.unwrap().id
}

async fn invoice(server: &Server, total: &str) -> Invoice {
    server.invoice(jane(server).await, total).await
}

/// Returns which actions the page of a record offers.
async fn offered(browser: &Browser<'_>, record: &str) -> Vec<&'static str> {
    let page = browser.get(record).await.text;
    let all = ["edit", "send", "resend", "pay", "refund", "void", "accept", "decline", "convert", "invoice", "delete"];
    all.into_iter().filter(|action| page.contains(&format!("\"/dashboard{record}/{action}\""))).collect()
}

/// Returns the kinds of the newest events, the oldest of them first.
async fn newest_events(server: &Server, count: usize) -> Vec<String> {
    let events = server.svc.account(server.tenant).events();
    let events = events.newest(Timestamp::from_micros(0), u32::try_from(count).unwrap()).await.unwrap();
    events.iter().rev().map(|event| event.kind.to_string()).collect()
}

#[tokio::test]
async fn an_invoice_is_sent_paid_in_parts_and_refunded() {
    let server = Server::start().await;
    let link = DashboardLinkCreate::to(server.tenant, Role::Developer).identity("ada@example.com");
    let developer = server.signed_in_by(link).await;
    let created = invoice(&server, "9860.50").await;
    let (record, account) = (format!("/invoices/{}", created.id), server.svc.account(server.tenant));
    let stored = async || account.invoices().get(created.id).await.unwrap();

    assert_eq!(offered(&developer, &record).await, ["edit", "send", "pay", "void"]);
    assert_eq!(notice(&act(&developer, &record, "send", "").await), "invoice-sent");
    assert_eq!(stored().await.status, InvoiceStatus::Sent);
    assert_eq!(offered(&developer, &record).await, ["edit", "resend", "pay", "void"]);
    assert_eq!(notice(&act(&developer, &record, "resend", "").await), "invoice-resent");

    let page = developer.get(&record).await.text;
    for shown in ["INV-0001, of Jane &lt;b&gt;Citizen", "is left to pay", "Amount in AUD", "value=\"9860.50\""] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert_eq!(notice(&act(&developer, &record, "pay", "amount=4930.25").await), "invoice-paid");
    assert_eq!(
        (stored().await.status, stored().await.amount_paid.to_string()),
        (InvoiceStatus::Partial, "4930.25".to_owned())
    );
    assert_eq!(offered(&developer, &record).await, ["edit", "resend", "pay", "refund"], "no longer voided");
    assert_eq!(notice(&act(&developer, &record, "pay", "amount=4930.25").await), "invoice-paid");
    assert_eq!(stored().await.status, InvoiceStatus::Paid);
    assert_eq!(offered(&developer, &record).await, ["resend", "refund"]);
    assert_eq!(notice(&act(&developer, &record, "refund", "amount=0.25").await), "invoice-refunded");
    assert_eq!(stored().await.amount_paid.to_string(), "9860.25");
    assert_eq!(notice(&act(&developer, &record, "refund", "amount=9860.25").await), "invoice-refunded");
    assert_eq!(stored().await.status, InvoiceStatus::Cancelled);
    assert_eq!(offered(&developer, &record).await, [""; 0]);

    let log = account.audit_log().since(Timestamp::from_micros(0), 100).await.unwrap();
    let by_ada = log.iter().filter(|entry| entry.actor == "dashboard:ada@example.com");
    let mut steps: Vec<String> = by_ada
        .map(|entry| format!("{} {}", entry.action, entry.object_kind))
        .filter(|step| !step.contains("session"))
        .collect();
    steps.sort_unstable();
    let events = "paid invoice, refunded invoice, refunded invoice, resent invoice, sent invoice, succeeded payment, \
                  succeeded payment, updated invoice, updated invoice, updated invoice, updated invoice, updated invoice";
    assert_eq!(steps.join(", "), events);
}

#[tokio::test]
async fn a_refused_amount_stays_with_its_reason() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let created = invoice(&server, "100").await;
    let record = format!("/invoices/{}", created.id);
    for (typed, reason) in [
        ("100.01", "Amount must be more than 0 and at most 100, which is left to pay."),
        ("0", "Amount must be more than 0"),
        ("", "The amount must be a number"),
        ("<b>", "The amount must be a number"),
        ("1,50", "with a point for the decimals"),
        ("1.234", "Amount must have at most 2 decimals."),
    ] {
        let refused = act(&owner, &record, "pay", &encode(&[("amount", typed)])).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{typed}");
        assert!(refused.text.contains(reason), "{typed}: {}", refused.text);
        assert!(refused.text.contains("details class=\"confirm\" open"), "{}", refused.text);
        let kept = typed.replace('<', "&lt;").replace('>', "&gt;");
        assert!(refused.text.contains(&format!("inputmode=\"decimal\" value=\"{kept}\"")), "{typed}: {}", refused.text);
    }
    let stored = server.svc.account(server.tenant).invoices().get(created.id).await.unwrap();
    assert_eq!(stored, created);
}

#[tokio::test]
async fn an_action_that_is_sent_twice_is_done_once() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let created = invoice(&server, "100").await;
    let (record, account) = (format!("/invoices/{}", created.id), server.svc.account(server.tenant));
    let page = owner.get(&record).await.text;
    let pay = format!("{record}/pay");
    let form = format!("{}&amount=25", hidden(&page, &pay));
    let csrf = owner.csrf().await;
    let (first, second) = tokio::join!(owner.send_form(&pay, &form, &csrf), owner.send_form(&pay, &form, &csrf));
    assert_eq!((notice(&first), notice(&second)), ("invoice-paid", "invoice-paid"));
    assert_eq!(account.invoices().get(created.id).await.unwrap().amount_paid.to_string(), "25");
    // Another form of the page that was loaded before is out of date.
    let stale = format!("key=other&{}&amount=25", hidden(&page, &pay).split('&').nth(1).unwrap());
    let refused = owner.post(&pay, &stale).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused.text.contains("It was changed after this page was loaded, so nothing was done."),
        "{}",
        refused.text
    );
    assert_eq!(account.invoices().get(created.id).await.unwrap().amount_paid.to_string(), "25");
}

#[tokio::test]
async fn a_draft_is_voided_by_its_name() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let created = invoice(&server, "9860.50").await;
    let record = format!("/invoices/{}", created.id);
    let page = owner.get(&record).await.text;
    assert!(page.contains("Void INV-0001, ") && page.contains("9,860.50"), "{page}");
    assert!(page.contains(", of Jane &lt;b&gt;Citizen? It cannot be undone."), "{page}");
    let form = hidden(&page, &format!("{record}/void"));
    assert_eq!(notice(&owner.post(&format!("{record}/void"), &form).await), "invoice-voided");
    assert_eq!(notice(&owner.post(&format!("{record}/void"), &form).await), "invoice-voided", "the first one's result");
    let again = owner.post(&format!("{record}/void"), "").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("INV-0001 is cancelled; it cannot be voided."), "{}", again.text);
    assert_eq!(newest_events(&server, 2).await, ["invoice.voided", "invoice.updated"]);
}

#[tokio::test]
async fn a_quote_is_accepted_or_declined_once_it_was_sent() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let contact = jane(&server).await;
    for (action, status) in [("accept", QuoteStatus::Accepted), ("decline", QuoteStatus::Declined)] {
        let quote = server.quote(contact, "99").await;
        let record = format!("/quotes/{}", quote.id);
        assert_eq!(offered(&owner, &record).await, ["edit", "send"]);
        let early = owner.post(&format!("{record}/{action}"), "").await;
        assert_eq!(early.status, StatusCode::CONFLICT);
        assert!(early.text.contains("is draft; it cannot be"), "{}", early.text);
        notice(&act(&owner, &record, "send", "").await);
        assert_eq!(account.quotes().get(quote.id).await.unwrap().status, QuoteStatus::Sent);
        assert_eq!(offered(&owner, &record).await, ["edit", "accept", "decline"]);
        notice(&act(&owner, &record, action, "").await);
        assert_eq!(account.quotes().get(quote.id).await.unwrap().status, status);
        let next: &[&str] = if status == QuoteStatus::Accepted { &["edit", "convert"] } else { &["edit"] };
        assert_eq!(offered(&owner, &record).await, next);
        assert_eq!(newest_events(&server, 2).await, [format!("quote.{status}"), "quote.updated".to_owned()]);
    }
}

#[tokio::test]
async fn a_quote_becomes_a_job_and_the_job_an_invoice() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let quote = server.quote(jane(&server).await, "99").await;
    let record = format!("/quotes/{}", quote.id);
    notice(&act(&owner, &record, "send", "").await);
    notice(&act(&owner, &record, "accept", "").await);
    let made = act(&owner, &record, "convert", "&title=New+pump").await;
    let jobs = account.jobs().list(JobFilter::default(), ListParams::default()).await.unwrap().data;
    assert_eq!((jobs.len(), jobs[0].quote_id), (1, Some(quote.id)));
    assert_eq!(jobs[0].title.as_str(), "New pump");
    let job = format!("/jobs/{}", jobs[0].id);
    assert_eq!(made.header("location"), Some(format!("/dashboard{job}?notice=created").as_str()));
    assert!(owner.get(&job).await.text.contains("QUO-0001</a>"), "the job names its quote");
    assert_eq!(offered(&owner, &job).await, ["edit", "invoice"]);

    let refused = act(&owner, &job, "invoice", "&amount=ten").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("The amount must be"), "{}", refused.text);
    let made = act(&owner, &job, "invoice", "&amount=120.50").await;
    let job = account.jobs().get(jobs[0].id).await.unwrap();
    let invoice = account.invoices().get(job.invoice_id.unwrap()).await.unwrap();
    assert_eq!(made.header("location"), Some(format!("/dashboard/invoices/{}?notice=created", invoice.id).as_str()));
    assert_eq!((job.status, invoice.total.to_string()), (JobStatus::Invoiced, "120.5".to_owned()));
    assert_eq!(offered(&owner, &format!("/jobs/{}", job.id)).await, ["edit"]);
    let again = owner.post(&format!("{record}/convert"), "").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("QUO-0001 has the job JOB-0001 already."), "{}", again.text);
}

#[tokio::test]
async fn a_contact_is_deleted_after_a_question_with_its_name() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let id = jane(&server).await;
    let record = format!("/contacts/{id}");
    let page = owner.get(&record).await.text;
    assert!(page.contains("Delete Jane &lt;b&gt;Citizen?"), "{page}");
    assert!(page.contains(&format!("href=\"/dashboard/invoices/new?contact={id}\"")), "{page}");
    let form = hidden(&page, &format!("{record}/delete"));
    for _ in 0..2 {
        assert_eq!(notice(&owner.post(&format!("{record}/delete"), &form).await), "contact-deleted");
    }
    assert_eq!(owner.get(&record).await.status, StatusCode::NOT_FOUND);
    assert_eq!(newest_events(&server, 1).await, ["contact.deleted"]);
}

#[tokio::test]
async fn an_owner_erases_a_contact_and_says_why() {
    let server = Server::start().await;
    let (owner, developer) = (server.signed_in(Role::Owner).await, server.signed_in(Role::Developer).await);
    let id = jane(&server).await;
    let record = format!("/contacts/{id}");
    let all = developer.get(&format!("{record}/data")).await;
    assert_eq!(all.headers[CONTENT_DISPOSITION], format!("attachment; filename=\"contact-{id}.json\""));
    let data: serde_json::Value = serde_json::from_str(&all.text).unwrap();
    assert_eq!(
        (data["contact"]["email"].as_str(), data["is_complete"].as_bool()),
        (Some("jane@example.com"), Some(true))
    );
    assert!(!developer.get(&record).await.text.contains("/erase"), "the role may not");
    assert!(owner.get(&record).await.text.contains("Erase Jane &lt;b&gt;Citizen?"));
    for (reason, refusal) in [("", "Say why the contact is erased."), ("a%0Ab", "The reason must be one line")] {
        let refused = owner.post(&format!("{record}/erase"), &format!("reason={reason}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            refused.text.contains(refusal) && refused.text.contains("<details class=\"card\" open>"),
            "{}",
            refused.text
        );
    }
    let account = server.svc.account(server.tenant);
    assert!(account.contacts().get(id).await.is_ok(), "nothing has changed yet");
    for _ in 0..2 {
        assert_eq!(notice(&owner.post(&format!("{record}/erase"), "reason=asked").await), "contact-erased");
    }
    assert_eq!(owner.get(&record).await.status, StatusCode::NOT_FOUND);
    assert_eq!(newest_events(&server, 2).await, ["contact.created", "contact.deleted"]);
    assert_eq!(account.contacts().data(id).await.unwrap().contact.first_name, None);
}

#[tokio::test]
async fn a_contact_that_somebody_else_has_changed_is_not_erased() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let jane = jane(&server).await;
    let record = format!("/contacts/{jane}");
    let stale = format!("{}&reason=asked", hidden(&owner.get(&record).await.text, &format!("{record}/erase")));
    server.clock.advance(std::time::Duration::from_secs(1));
    let city = ContactDetails { city: Patch::Set(Some("Perth".parse().unwrap())), ..ContactDetails::default() };
    let change = ContactUpdate { details: city, ..ContactUpdate::default() };
    server.svc.account(server.tenant).contacts().update(jane, change).await.unwrap();
    let refused = owner.post(&format!("{record}/erase"), &stale).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    let form = format!("{}&reason=asked", hidden(&refused.text, &format!("{record}/erase")));
    for _ in 0..2 {
        assert_eq!(notice(&owner.post(&format!("{record}/erase"), &form).await), "contact-erased");
    }
}
