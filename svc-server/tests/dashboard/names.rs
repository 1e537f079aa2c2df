//! What pages call things: records have names and times are those of the account, on every page.

use std::collections::{BTreeSet, VecDeque};

use http::StatusCode;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::prelude::*;
use svc_core::requests::{self, ApiRequest};
use svc_core::values::TimeZone;

use super::browser::{Browser, Server};
use super::records::text;

/// The most pages that are visited.
const MAX_PAGES: usize = 300;
/// How many addresses of one page are visited, with other queries.
const EACH_PAGE: usize = 12;

/// Creates records of every kind that refer to each other, with a webhook, a key and a request. Returns a contact that was
/// deleted.
async fn business(server: &Server) -> ContactId {
    let account = server.svc.account(server.tenant);
    let ada = server.named_contact("ada@example.com", "Ada").await;
    server.webhook("https://hooks.example.com/in", "*").await;
    let quote = server.quote(ada.id, "480").await;
    let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    account.quotes().update(quote.id, sent).await.unwrap();
    let job = account.quotes().convert(quote.id, QuoteConversion::default()).await.unwrap();
    let invoice = account.jobs().invoice(job.id, JobInvoicing::default()).await.unwrap();
    account.invoices().send(invoice.id).await.unwrap();
    account.invoices().pay_part(invoice.id, "80".parse().unwrap()).await.unwrap();
    account.invoices().refund_part(invoice.id, "20".parse().unwrap()).await.unwrap();
    server.booking(ada.id, "2026-03-20T22:00:00Z").await;
    let gone = server.contact("gone@example.com").await;
    account.contacts().delete(gone.id).await.unwrap();
    let key = account.keys().create(KeyCreate::default()).await.unwrap().key;
    let store = server.svc.store();
    let events = account.events().since(Timestamp::from_micros(0), 1).await.unwrap();
    let request = ApiRequest {
        id: store.env().id(store.env().now()),
        tenant_id: server.tenant,
        request_id: "an-id".to_owned(),
        key_id: key.id,
        method: "PATCH".to_owned(),
        path: format!("/api/v1/contacts/{}", ada.id),
        query: None,
        status: 200,
        code: None,
        failing_fields: None,
        started_at: store.env().now(),
        duration_us: 1_000,
        events: 1,
        first_event_id: Some(events[0].id),
        last_event_id: Some(events[0].id),
    };
    requests::record(&**store, &[request]).await.unwrap();
    gone.id
}

/// Returns the text of a page that people read: without code, which programs read, and what they typed themselves.
fn prose(page: &str) -> String {
    let mut page = page.to_owned();
    for tag in ["code", "pre", "textarea", "script", "style"] {
        while let Some(begin) = page.find(&format!("<{tag}")) {
            let end = page[begin..].find(&format!("</{tag}>")).map_or(page.len(), |end| begin + end + tag.len() + 3);
            page.replace_range(begin..end, " ");
        }
    }
    text(&page)
}

/// Returns the words of a page that are ids or times as programs write them.
fn raw_words(page: &str) -> Vec<String> {
    let is_raw = |word: &&str| {
        let word = word.trim_matches(|char: char| !char.is_ascii_alphanumeric());
        word.split('/').any(|part| part.parse::<uuid::Uuid>().is_ok()) || Timestamp::parse(word).is_ok()
    };
    prose(page).split_whitespace().filter(is_raw).map(str::to_owned).collect()
}

/// Returns the pages that a page links to.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("href=\"/dashboard").skip(1).filter_map(|rest| rest.split('"').next());
    let plain = targets.map(|target| target.split('#').next().unwrap_or_default().replace("&amp;", "&"));
    plain.filter(|path| path.starts_with('/') && !path.contains("format=csv") && !path.ends_with("/data")).collect()
}

/// Visits all pages, except that of a contact that was deleted, to which its earlier events lead.
async fn visit_all(browser: &Browser<'_>, deleted: ContactId) -> BTreeSet<String> {
    let (mut waiting, mut seen) = (VecDeque::from(["/".to_owned()]), BTreeSet::from(["/".to_owned()]));
    while let Some(path) = waiting.pop_front() {
        let response = browser.get(&path).await;
        if response.status == StatusCode::SEE_OTHER || path.contains("/assets/") {
            continue;
        }
        if path == format!("/contacts/{deleted}") {
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
            continue;
        }
        assert_eq!(response.status, StatusCode::OK, "{path}");
        assert_eq!(raw_words(&response.text), [""; 0], "{path}: {}", prose(&response.text));
        for link in links(&response.text) {
            // The calendar goes on and on.
            let page = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
            if seen.iter().filter(|known| page(known) == page(&link)).count() >= EACH_PAGE {
                continue;
            }
            if seen.len() < MAX_PAGES && seen.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
    }
    seen
}

#[tokio::test]
async fn no_page_shows_an_id_or_a_time_as_programs_write_them() {
    let server = Server::start().await;
    let set_zone = |tenant: &mut Tenant| tenant.time_zone = TimeZone::parse("Australia/Sydney").unwrap();
    server.svc.account(server.tenant).change_settings(set_zone).await.unwrap();
    let deleted = business(&server).await;
    let owner = server.signed_in(Role::Owner).await;
    let seen = visit_all(&owner, deleted).await;
    let of = |begin: &str| seen.iter().filter(|path| path.starts_with(begin)).count();
    for (begin, least) in [("/contacts/", 3), ("/jobs/", 3), ("/events/", 8), ("/deliveries/", 8), ("/requests/", 1)] {
        assert!(of(begin) >= least, "{begin}: {seen:?}");
    }
    let found = owner.get("/find?q=New%20tap").await.text;
    assert!(
        !found.contains("2026-03-20") && !found.contains("20 Mar"),
        "the booking is on the next day in Sydney: {found}"
    );
}

#[tokio::test]
async fn events_deliveries_and_requests_name_their_record() {
    let server = Server::start().await;
    business(&server).await;
    let owner = server.signed_in(Role::Owner).await;
    let events = text(&owner.get("/events").await.text);
    for named in [
        "payment.succeeded payment of AUD 80.00",
        "invoice.sent INV-0001",
        "job.created JOB-0001",
        "contact.deleted gone@example.com",
    ] {
        assert!(events.contains(named), "{named}: {events}");
    }
    let deliveries = owner.get("/deliveries").await.text;
    let invoice = links(&deliveries).into_iter().find(|path| path.starts_with("/invoices/")).unwrap();
    assert!(text(&owner.get(&invoice).await.text).contains("INV-0001"), "{invoice}");
    let deliveries = text(&deliveries);
    for named in
        ["payment.succeeded payment of AUD 80.00 https", "invoice.sent INV-0001 https", "job.created JOB-0001 https"]
    {
        assert!(deliveries.contains(named), "{named}: {deliveries}");
    }
    let requests = owner.get("/requests").await.text;
    assert!(text(&requests).contains("PATCH /api/v1/contacts/…"), "{requests}");
    let path = links(&requests).into_iter().find(|path| path.starts_with("/requests/0")).unwrap();
    assert!(text(&owner.get(&path).await.text).contains("Record Ada"), "{path}");
}
