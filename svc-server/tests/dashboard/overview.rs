//! The figures of an account, and those of the service.

use http::Request;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::Full;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::webhooks::statistics::{self, AttemptCounter};

use super::browser::Server;
use super::records::{rows, text};
use super::webhooks::HOSTILE;

#[tokio::test]
async fn the_traffic_counts_attempts_and_leads_to_their_endpoints() {
    let server = Server::start().await;
    let (viewer, endpoint) = (server.signed_in(Role::Viewer).await, server.endpoint().await);
    for path in ["/", "/traffic"] {
        assert!(viewer.get(path).await.text.contains("First steps"), "{path}");
    }
    let (delivery, failed) = server.failed_delivery(&endpoint).await;
    let mut counter = AttemptCounter::default();
    for _ in 0..1_500 {
        counter.add(server.tenant, endpoint.id, &failed);
    }
    statistics::record(&**server.svc.store(), &counter.take()).await.unwrap();
    server.set_status(&delivery, DeliveryStatus::Failed).await;
    let page = viewer.get("/traffic").await.text;
    assert!(page.contains("1,500") && page.contains("Attempts of the last 24 hours"), "{page}");
    for link in ["/webhooks", "/deliveries?status=failed", "/deliveries?status=held"] {
        assert!(page.contains(&format!("href=\"/dashboard{link}\"")), "{link}: {page}");
    }
    let failed = page.split("status=failed").nth(1).unwrap().split("</a>").next().unwrap();
    assert!(failed.contains("<strong>1</strong>"), "{failed}");
}

#[tokio::test]
async fn the_traffic_shows_the_requests_of_each_key_against_its_limit() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let keys = server.svc.account(server.tenant).keys();
    let key = keys.create(KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() }).await.unwrap();
    let limit = |tenant: &mut Tenant| tenant.limits.rate_limit = std::num::NonZeroU32::new(750);
    server.svc.account(server.tenant).change_settings(limit).await.unwrap();
    for _ in 0..3 {
        let request = Request::get("/api/v1/ping").header(HOST, "localhost:8080");
        let request = request.header(AUTHORIZATION, format!("Bearer {}", key.text.reveal()));
        assert_eq!(server.send(request.body(Full::default()).unwrap()).await.status, 200);
    }
    let page = viewer.get("/traffic").await.text;
    assert!(page.contains("3 of 750") && page.contains(&format!("/requests?key={}", key.key.id)), "{page}");
    assert!(!page.contains(HOSTILE), "{page}");
    server.clock.advance(std::time::Duration::from_secs(60));
    assert!(viewer.get("/traffic").await.text.contains("0 of 750"), "a new minute");
    keys.revoke(key.key.id).await.unwrap();
    assert!(!viewer.get("/traffic").await.text.contains("of 750"));
}

/// The clock of the server shows 14 March, and the time zone of the account is UTC.
#[tokio::test]
async fn each_figure_of_the_overview_leads_to_what_it_counts() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.named_contact("ada@example.com", HOSTILE).await.id;
    for (total, due) in [("100", None), ("40", Some("2026-03-01")), ("7", Some("2026-01-01"))] {
        let due_date = due.map(|due| Date::parse(due).unwrap());
        let create = InvoiceCreate { contact_id: Some(ada), due_date, ..InvoiceCreate::new(total.parse().unwrap()) };
        let invoice = account.invoices().create(create).await.unwrap().id;
        account.invoices().send(invoice).await.unwrap();
    }
    let paid = server.invoice(ada, "60").await.id;
    account.invoices().pay(paid).await.unwrap();
    account.invoices().refund_part(paid, "10".parse().unwrap()).await.unwrap();
    server.booking(ada, "2026-03-14T16:00:00Z").await;
    server.booking(ada, "2026-03-15T16:00:00Z").await;
    let done = JobCreate { status: Patch::Set(JobStatus::Completed), ..JobCreate::new("Gutters".parse().unwrap()) };
    account.jobs().create(done).await.unwrap();

    let quote = account.quotes().create(QuoteCreate::new(ada, "99".parse().unwrap())).await.unwrap();
    let accepted = QuoteUpdate { status: Patch::Set(QuoteStatus::Accepted), ..QuoteUpdate::default() };
    account.quotes().update(quote.id, accepted).await.unwrap();
    // Work without an end lasts for its day.
    let planned = Some("2026-03-14T00:00:00Z".parse().unwrap());
    let roof = JobCreate { scheduled_start: planned, ..JobCreate::new("Roof".parse().unwrap()) };
    account.jobs().create(roof).await.unwrap();
    // Work that takes longer than planned stays, and what was called off does not.
    for (title, status) in [("Late", JobStatus::InProgress), ("Off", JobStatus::Cancelled)] {
        let [start, end] = ["2026-03-14T09:00:00Z", "2026-03-14T10:00:00Z"].map(|at| Some(at.parse().unwrap()));
        let job = JobCreate { scheduled_start: start, scheduled_end: end, ..JobCreate::new(title.parse().unwrap()) };
        let job = account.jobs().create(job).await.unwrap();
        let status = JobUpdate { status: Patch::Set(status), ..JobUpdate::default() };
        account.jobs().update(job.id, status).await.unwrap();
    }

    let page = viewer.get("/").await.text;
    assert!(!page.contains(HOSTILE), "{page}");
    let shown = text(&page);
    for figure in [
        "Overview Saturday, 14 Mar 2026.",
        "Today and tomorrow Saturday, 14 Mar 2026 00:00 Roof (JOB-0002) 09:00–10:00 Late (JOB-0003) 16:00",
        "Sunday, 15 Mar 2026 16:00",
        "Quotes accepted 1 without a job yet",
        "Days overdue INV-0003",
        "AUD 7.00 72 INV-0002",
        "Outstanding AUD 147.00 3 invoices",
        "Overdue AUD 47.00 2 invoices",
        "Paid this month AUD 50.00 less refunds",
        "Bookings today 1 confirmed",
        "Bookings tomorrow 1 confirmed",
        "Quotes that expire 0",
        "Jobs to invoice 1",
        "AUD 100.00 40.00 0.00 7.00 147.00",
    ] {
        assert!(shown.contains(figure), "{figure}: {shown}");
    }
    for (list, count) in [
        ("/invoices?show=outstanding", 3),
        ("/invoices?show=overdue", 2),
        ("/payments?since=2026-03-01", 2),
        ("/bookings?show=today&status=confirmed", 1),
        ("/bookings?show=tomorrow&status=confirmed", 1),
        ("/quotes?show=expiring", 0),
        ("/quotes?show=accepted", 1),
        ("/jobs?show=uninvoiced", 1),
    ] {
        assert!(page.contains(&format!("href=\"/dashboard{}\"", list.replace('&', "&amp;"))), "{list}: {page}");
        assert_eq!(rows(&viewer.get(list).await.text).len(), count, "{list}");
    }
    assert_eq!(viewer.get("/jobs?show=overdue").await.status, 404);
}

#[tokio::test]
async fn operators_see_the_replays_under_way() {
    let server = Server::start().await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let endpoint = server.endpoint().await;
    let (delivery, _) = server.failed_delivery(&endpoint).await;
    server.set_status(&delivery, DeliveryStatus::Failed).await;
    let replay = ReplayCreate::new(endpoint.id, endpoint.created_at);
    server.svc.account(server.tenant).replays().create(replay).await.unwrap();
    let page = operator.get("/system").await.text;
    assert!(page.contains("Replays under way") && page.contains("0 of 1 (0%)"), "{page}");
    assert!(page.contains(&format!("/dashboard/accounts/{}", server.tenant)), "{page}");
}
