//! What is done with the records that were ticked in a list.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, Response, Server, encode};
use super::records::text;
use super::webhooks::{ESCAPED, HOSTILE};

/// Returns the query of a selection.
fn selection(action: &str, ids: &[String]) -> String {
    let ids = ids.iter().map(|id| ("id", id.as_str()));
    encode(&[("action", action)].into_iter().chain(ids).collect::<Vec<_>>())
}

/// Confirms a selection, as the page asks for it.
async fn confirm(browser: &Browser<'_>, path: &str, selection: &str) -> Response {
    let page = browser.get(&format!("{path}?{selection}")).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    browser.post(path, &format!("{selection}&{}", asked(&page.text))).await
}

/// Returns the key and the versions of a question.
fn asked(page: &str) -> String {
    let values = |name: &'static str| {
        let start = format!(" name=\"{name}\" value=\"");
        let fields = page.split(&start).skip(1);
        fields.map(|field| field.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (keys, shown) = (values("key"), values("shown"));
    let fields = [("key", keys[0].as_str())].into_iter().chain(shown.iter().map(|shown| ("shown", shown.as_str())));
    encode(&fields.collect::<Vec<_>>())
}

#[tokio::test]
async fn a_record_that_somebody_else_changed_meanwhile_is_not_changed_with_the_others() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.contact("ada@example.com").await.id;
    let quotes = [server.quote(ada, "5").await.id, server.quote(ada, "7").await.id];
    let set = async |id, status| {
        let update = QuoteUpdate { status: Patch::Set(status), ..QuoteUpdate::default() };
        account.quotes().update(id, update).await.unwrap();
    };
    let selection = selection("send", &quotes.map(|id| id.to_string()));
    let page = developer.get(&format!("/quotes/selected?{selection}")).await.text;
    assert!(page.contains(">QUO-0002</a> <span class=\"soft\">draft</span>"), "{page}");
    set(quotes[1], QuoteStatus::Sent).await;
    account.quotes().accept(quotes[1]).await.unwrap();
    let refused = developer.post("/quotes/selected", &format!("{selection}&{}", asked(&page))).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(
        refused.text.contains("It was changed after this page was loaded, so nothing was done."),
        "{}",
        refused.text
    );
    let unfit = developer.get(&format!("/quotes/selected?{selection}")).await;
    assert_eq!(unfit.status, StatusCode::CONFLICT);
    assert!(unfit.text.contains("QUO-0002 is accepted. Take it out of the selection."), "{}", unfit.text);

    set(quotes[1], QuoteStatus::Draft).await;
    let refused = developer.post("/quotes/selected", &format!("{selection}&{}", asked(&page))).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(
        refused.text.contains("It was changed after this page was loaded, so nothing was done."),
        "{}",
        refused.text
    );
    for id in quotes {
        assert_eq!(account.quotes().get(id).await.unwrap().status, QuoteStatus::Draft);
    }
    // A change that no page has asked about.
    let unasked = developer.post("/quotes/selected", &selection).await;
    assert_eq!(unasked.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", unasked.text);
}

#[tokio::test]
async fn all_that_are_selected_are_changed_after_a_question() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let mut ids = Vec::new();
    for (email, name) in [("a@example.com", HOSTILE), ("b@example.com", "Bob"), ("c@example.com", "Cy")] {
        ids.push(server.named_contact(email, name).await.id.to_string());
    }
    let list = developer.get("/contacts?select=all").await.text;
    assert_eq!(list.matches("form=\"selection\" checked").count(), 3, "{list}");
    assert!(list.contains("<option value=\"delete\">Delete</option>"), "{list}");

    let two = selection("delete", &ids[..2]);
    let question = developer.get(&format!("/contacts/selected?{two}")).await;
    assert!(
        question.text.contains("<h1>Delete: 2 contacts</h1>") && question.text.contains(ESCAPED),
        "{}",
        question.text
    );
    assert_eq!(account.contacts().list(ContactFilter::default(), ListParams::default()).await.unwrap().data.len(), 3);

    let form = format!("{two}&{}", asked(&question.text));
    for _ in ["sent", "sent twice"] {
        let done = developer.post("/contacts/selected", &form).await;
        assert_eq!(done.headers[LOCATION], "/dashboard/contacts?notice=selected-changed");
    }
    let left = account.contacts().list(ContactFilter::default(), ListParams::default()).await.unwrap().data;
    assert_eq!(left.iter().map(|contact| contact.id.to_string()).collect::<Vec<_>>(), ids[2..]);
    let events = account.events().since(Timestamp::from_micros(0), 100).await.unwrap();
    let deleted = events.iter().filter(|event| event.kind.as_str() == "contact.deleted");
    assert_eq!(deleted.count(), 2, "each deletion has its event");
}

#[tokio::test]
async fn a_selection_is_changed_as_a_whole_or_not_at_all() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let draft = server.invoice(None, "5").await.id;
    let paid = server.invoice(None, "7").await.id;
    account.invoices().send(paid).await.unwrap();
    account.invoices().pay(paid).await.unwrap();
    let refused =
        confirm(&developer, "/invoices/selected", &selection("void", &[draft.to_string(), paid.to_string()])).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let alert = refused.text.split("role=\"alert\">").nth(1).unwrap().split("</p>").next().unwrap();
    let reason = "INV-0002 is paid; it cannot be voided. Nothing was changed: take it out of the selection.";
    assert_eq!(text(alert), reason);
    assert!(refused.text.contains("<h1>Void: 2 invoices</h1>"), "the question is shown again: {}", refused.text);
    assert_eq!(account.invoices().get(draft).await.unwrap().status, InvoiceStatus::Draft);
}

#[tokio::test]
async fn bookings_and_jobs_get_a_status_together() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.contact("ada@example.com").await.id;
    let mut ids = Vec::new();
    for hour in [9, 10] {
        let start = Timestamp::parse(&format!("2026-03-14T{hour:02}:00:00Z")).unwrap();
        let booking = BookingCreate::new(ada, Text::parse("Visit").unwrap(), start);
        ids.push(account.bookings().create(booking).await.unwrap().id.to_string());
    }
    assert!(developer.get("/bookings?show=today").await.text.contains("<option value=\"completed\">"));
    confirm(&developer, "/bookings/selected", &selection("completed", &ids)).await;
    for id in &ids {
        let booking = account.bookings().get(id.parse().unwrap()).await.unwrap();
        assert_eq!(booking.status, BookingStatus::Completed);
    }
    let job = account.jobs().create(JobCreate::new(Text::parse("Pump").unwrap())).await.unwrap().id;
    confirm(&developer, "/jobs/selected", &selection("on_hold", &[job.to_string()])).await;
    assert_eq!(account.jobs().get(job).await.unwrap().status, JobStatus::OnHold);
}

#[tokio::test]
async fn a_viewer_exports_a_selection_and_changes_none() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let first = server.named_contact("a@example.com", "=1+1").await.id.to_string();
    server.named_contact("b@example.com", "Bob").await;
    let list = viewer.get("/contacts").await.text;
    assert!(list.contains("<option value=\"csv\">") && !list.contains("<option value=\"delete\">"), "{list}");
    let file = viewer.get(&format!("/contacts/selected?{}", selection("csv", std::slice::from_ref(&first)))).await;
    let lines: Vec<&str> = file.text.lines().collect();
    assert_eq!(lines.len(), 2, "{}", file.text);
    assert!(
        lines[0].starts_with("\u{feff}id,first_name,") && lines[1].starts_with(&format!("{first},'=1+1,")),
        "{lines:?}"
    );
    let asked = viewer.get(&format!("/contacts/selected?{}", selection("delete", &[first]))).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_selection_that_no_page_makes_is_refused() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let own = server.contact("a@example.com").await.id.to_string();
    let foreign = server.of(server.other).contact("b@example.com").await.id.to_string();
    for (query, status) in [
        (selection("delete", &[]), StatusCode::UNPROCESSABLE_ENTITY),
        (selection("csv", &[]), StatusCode::UNPROCESSABLE_ENTITY),
        (selection("delete", &["x".to_owned()]), StatusCode::UNPROCESSABLE_ENTITY),
        (selection("erase", std::slice::from_ref(&own)), StatusCode::UNPROCESSABLE_ENTITY),
        (String::new(), StatusCode::UNPROCESSABLE_ENTITY),
        (selection("delete", &vec![own.clone(); 51]), StatusCode::UNPROCESSABLE_ENTITY),
        (selection("delete", &[own.clone(), foreign]), StatusCode::NOT_FOUND),
    ] {
        assert_eq!(developer.get(&format!("/contacts/selected?{query}")).await.status, status, "{query}");
        let unasked = developer.post("/contacts/selected", &query).await;
        assert_eq!(unasked.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
    }
    let contacts = server.svc.account(server.tenant).contacts();
    assert!(contacts.get(own.parse().unwrap()).await.is_ok());
}
