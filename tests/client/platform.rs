//! Every operation of the platform API, called by the client.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use serde_json::Value;
use svc_client::Collection;
use svc_client::platform::prelude::*;
use svc_client::records::Record;
use svc_core::input::Input as _;
use svc_core::lookup::{IdPart, KindInAccount, KindOfAll};
use svc_core::pages::{Limit, Since};
use svc_core::personal::ErasureCreate;
use svc_core::values::EventSet;
use svc_core::webhooks::subscriptions::StreamCreate;

use crate::live::{LiveServer, databases, unlimited};

/// Returns all records of a list, on pages of two.
async fn all<R: Record>(collection: &Collection<R, Platform>) -> Vec<R> {
    let list = collection.list();
    let list = if R::PAGE_LIMIT.is_some() { list.limit(2) } else { list };
    list.all().try_collect().await.unwrap()
}

async fn work_on_accounts(platform: &Platform) -> AccountClient {
    let link = OperatorLinkCreate { identity: Some("Grace".parse().unwrap()) };
    let link = platform.create_operator_link(&link).await.unwrap();
    assert!(link.identity == "Grace" && link.path.starts_with("/dashboard/"), "{link:?}");
    assert!(!format!("{link:?}").contains(&link.path));
    let accounts = platform.accounts();
    let new =
        AccountCreate { currency: Some("EUR".parse().unwrap()), ..AccountCreate::new("Harbour".parse().unwrap()) };
    let created = accounts.create_with_key(&new, "customer-4711").await.unwrap();
    assert_eq!(accounts.create_with_key(&new, "customer-4711").await.unwrap(), created);
    assert_eq!(accounts.get(created.id).await.unwrap(), created);
    assert_eq!(accounts.get_if_changed(created.id, &created.etag).await.unwrap(), None);

    let limits = WriteLimitChanges(vec![(CappedCollection::Jobs, std::num::NonZeroU32::new(5))]);
    let change = AccountUpdate {
        write_rate_limits: Patch::Set(limits),
        max_webhooks: Patch::Set(Some(WebhookCount(7))),
        address: Patch::Set(Some("1 Quay Street\nSydney".parse().unwrap())),
        tax_number: Patch::Set(Some("ABN 51 824 753 556".parse().unwrap())),
        days_until_due: Patch::Set(Some(DaysUntilDue(30))),
        payment_details: Patch::Set(Some("BSB 062-000\nAccount 1234 5678".parse().unwrap())),
        ..Default::default()
    };
    let changed = accounts.update_if(&created.etag, created.id, &change).await.unwrap();
    assert_eq!((changed.write_rate_limits.jobs, changed.max_webhooks), (Some(5), Some(7)));
    let printed = (changed.address.as_ref().unwrap().as_str(), changed.tax_number.as_ref().unwrap().as_str());
    assert_eq!(printed, ("1 Quay Street\nSydney", "ABN 51 824 753 556"));
    let terms = (changed.days_until_due, changed.payment_details.as_ref().unwrap().as_str());
    assert_eq!(terms, (Some(30), "BSB 062-000\nAccount 1234 5678"));
    let stale = accounts.update_if(&created.etag, created.id, &change).await.unwrap_err();
    assert_eq!(stale.code(), Some("precondition_failed"));
    // The server has an account of its own.
    let ids: Vec<TenantId> = all(&accounts).await.iter().map(|account| account.id).collect();
    assert!(ids.len() == 2 && ids.contains(&created.id), "{ids:?}");

    let nobody = platform.account("0195a3c8-0000-7000-8000-000000000001".parse().unwrap());
    assert_eq!(nobody.contacts().list().page().await.unwrap_err().status(), Some(404));
    let unknown = platform.find_accounts(KindOfAll::Invoice, created.id.0).await.unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
    platform.account(created.id)
}

async fn work_on_apps(server: &LiveServer, platform: &Platform, account: &AccountClient) {
    let uris = vec!["https://example.com/callback".parse().unwrap()];
    let new = platform.create_app(&AppCreate::new("Route Planner".parse().unwrap(), uris)).await.unwrap();
    let secret = new.client_secret.clone().unwrap();
    assert!(secret.starts_with("svc_ocs_") && !format!("{new:?}").contains(&secret));
    let app = new.app;
    assert_eq!(platform.app(app.id).await.unwrap().client_id, app.client_id);
    assert_eq!(platform.apps(None).await.unwrap().len(), 1);
    assert!(platform.apps(Some(account.id())).await.unwrap().is_empty());
    let change = AppUpdate { disabled: Patch::Set(true), ..Default::default() };
    assert!(platform.update_app(app.id, &change).await.unwrap().app.disabled_at.is_some());
    let rotated = platform.rotate_app_secret(app.id, Some(Duration::ZERO)).await.unwrap();
    assert_ne!(rotated.client_secret, Some(secret));
    let granted = server.grant(account.id(), app.id).await;
    let grants = account.grants().await.unwrap();
    assert_eq!((grants.len(), grants[0].id, grants[0].app_name.as_str()), (1, granted, "Route Planner"));
    assert_eq!(account.revoke_grant(granted).await.unwrap().id, granted);
    assert_eq!(account.revoke_grant(Id::nil()).await.unwrap_err().code(), Some("not_found"));
    platform.delete_app(app.id).await.unwrap();
    assert_eq!(platform.app(app.id).await.unwrap_err().code(), Some("not_found"));
}

async fn work_on_a_sandbox(platform: &Platform, account: &AccountClient) {
    assert_eq!(account.sandbox().await.unwrap_err().code(), Some("not_found"));
    let new = account.create_sandbox().await.unwrap();
    assert!(new.key.key.starts_with("svc_test_") && new.account.sandbox_of == Some(account.id()), "{new:?}");
    assert!(!format!("{new:?}").contains(&new.key.key));
    assert_eq!(account.create_sandbox().await.unwrap_err().code(), Some("not_allowed"));
    assert_eq!(account.sandbox().await.unwrap(), new.account);
    assert!(all(&platform.accounts()).await.iter().all(|listed| listed.id != new.account.id));
    let sandbox = platform.account(new.account.id);
    sandbox.contacts().create(&ContactCreate::new("eve@example.com".parse().unwrap())).await.unwrap();
    account.reset_sandbox().await.unwrap();
    assert_eq!(all(&sandbox.contacts()).await.len(), 3);
    account.delete_sandbox().await.unwrap();
    assert_eq!(account.sandbox().await.unwrap_err().code(), Some("not_found"));
}

async fn work_on_keys_and_members(account: &AccountClient) {
    let keys = account.keys();
    let new = ApiKeyCreate { signed: Some(true), ..ApiKeyCreate::new(true) };
    let key = keys.create(&new).await.unwrap();
    assert!(key.key.starts_with("svc_live_") && key.signing_secret.is_some());
    assert!(!format!("{key:?}").contains(&key.key));
    let read = keys.get(key.id).await.unwrap();
    assert_eq!((read.prefix.as_str(), read.signed, &read.etag), (key.prefix.as_str(), true, &key.etag));
    let part = IdPart::parse(&key.id.to_string()[24..]).unwrap();
    assert_eq!(account.find_ids(KindInAccount::Key, &part).await.unwrap().data, [key.id.uuid()]);
    assert!(account.find(&svc_core::find::parse("nobody").unwrap()).await.unwrap().data.is_empty());
    assert!(all(&account.requests()).await.is_empty());
    let rotated = keys.rotate(key.id, Some(Duration::from_secs(60))).await.unwrap();
    let too_long = keys.rotate(rotated.id, Some(Duration::MAX)).await.unwrap_err();
    assert_eq!(too_long.api().unwrap().field.as_deref(), Some("overlap"));
    assert!(keys.revoke(rotated.id).await.unwrap().revoked_at.is_some());
    let again = keys.rotate(rotated.id, None).await.unwrap_err();
    assert_eq!((again.status(), again.code()), (Some(409), Some("not_allowed")));
    assert_eq!(all(&keys).await.len(), 2);

    let members = account.members();
    let ada = MemberCreate { email: "ada@example.com".parse().unwrap(), role: Role::Owner };
    let ada = members.create(&ada).await.unwrap();
    assert_eq!(members.get(ada.id).await.unwrap(), ada);
    let viewer = MemberUpdate { role: Role::Viewer };
    assert_eq!(members.update_if(&ada.etag, ada.id, &viewer).await.unwrap().role, Role::Viewer);
    assert_eq!(members.delete_if(&ada.etag, ada.id).await.unwrap_err().code(), Some("precondition_failed"));
    assert_eq!(all(&members).await.len(), 1);
    let link = account.create_dashboard_link(&DashboardLinkCreate::to_member(ada.email.clone())).await.unwrap();
    assert_eq!((link.identity.as_str(), link.role), ("ada@example.com", Role::Viewer));
    members.delete(ada.id).await.unwrap();

    let link = DashboardLinkCreate { identity: Some("Ada".parse().unwrap()), ..DashboardLinkCreate::new(Role::Owner) };
    let link = account.create_dashboard_link(&link).await.unwrap();
    assert_eq!((link.identity.as_str(), link.tenant_id), ("Ada", account.id()));
    assert!(link.path.starts_with("/dashboard/") && !format!("{link:?}").contains(&link.path));
}

async fn work_on_records(account: &AccountClient) {
    let contacts = account.contacts();
    let ada = contacts.create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap();
    assert_eq!(contacts.get(ada.id).await.unwrap(), ada);
    let change = ContactUpdate { email: Patch::Set(Some("ada@example.org".parse().unwrap())), ..Default::default() };
    contacts.update(ada.id, &change).await.unwrap();
    assert_eq!(all(&contacts).await.len(), 1);

    let start = "2026-03-21T09:00:00+11:00".parse().unwrap();
    let bookings = account.bookings();
    let booking = bookings.create(&BookingCreate::new(ada.id, "Drain".parse().unwrap(), start)).await.unwrap();
    assert_eq!(bookings.get(booking.id).await.unwrap(), booking);
    let change = BookingUpdate { status: Patch::Set(BookingStatus::Completed), ..Default::default() };
    let booking = bookings.update(booking.id, &change).await.unwrap();
    assert_eq!(all(&bookings).await, [booking.into_record()]);

    let jobs = account.jobs();
    let job = jobs.create(&JobCreate::new("Hot water".parse().unwrap())).await.unwrap();
    assert_eq!(jobs.get(job.id).await.unwrap(), job);
    let change = JobUpdate { title: Patch::Set("Hot water, replaced".parse().unwrap()), ..Default::default() };
    let job = jobs.update_if(&job.etag, job.id, &change).await.unwrap();
    assert_eq!(all(&jobs).await, [job.into_record()]);

    let quotes = account.quotes();
    let offer = QuoteCreate::new(ada.id, "99.95".parse().unwrap());
    let (one, other) = (quotes.create(&offer).await.unwrap(), quotes.create(&offer).await.unwrap());
    assert_eq!(quotes.get(one.id).await.unwrap(), one);
    let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..Default::default() };
    for quote in [one.id, other.id] {
        quotes.update(quote, &sent).await.unwrap();
    }
    assert_eq!(quotes.accept(one.id).await.unwrap().status, QuoteStatus::Accepted);
    assert_eq!(quotes.decline(other.id).await.unwrap().status, QuoteStatus::Declined);
    assert_eq!(all(&quotes).await.len(), 2);
    contacts.delete(ada.id).await.unwrap();
    let known = contacts.data(ada.id).await.unwrap();
    assert_eq!((known.quotes.len(), known.contact.email.is_some(), known.is_complete), (2, true, true));
    let reason = ErasureCreate { reason: "asked by letter".parse().unwrap() };
    assert!(contacts.erase(ada.id, &reason).await.unwrap().is_complete);
    assert_eq!(contacts.data(ada.id).await.unwrap().contact.email, None);
}

async fn work_on_invoices(account: &AccountClient) {
    let invoices = account.invoices();
    let invoice = invoices.create(&InvoiceCreate::new("149.50".parse().unwrap())).await.unwrap();
    assert_eq!(invoices.get(invoice.id).await.unwrap(), invoice);
    let due = InvoiceUpdate { due_date: Patch::Set(Some("2020-01-31".parse().unwrap())), ..Default::default() };
    let invoice = invoices.update_if(&invoice.etag, invoice.id, &due).await.unwrap();
    let id = invoice.id;
    let too_early = invoices.resend(id).await.unwrap_err();
    assert_eq!((too_early.status(), too_early.code()), (Some(409), Some("not_allowed")));
    assert_eq!(invoices.send(id).await.unwrap().status, InvoiceStatus::Sent);
    assert_eq!(invoices.view(id).await.unwrap().status, InvoiceStatus::Viewed);
    invoices.resend(id).await.unwrap();
    let marked = invoices.mark_overdue(None).await.unwrap();
    assert_eq!((marked.data[0].id, marked.next), (id, None));
    // The same payment twice is one payment.
    let payment = invoices.with_idempotency_key("bank-transfer-17").unwrap();
    let partly = payment.pay(id, &PaymentCreate::of("100".parse().unwrap())).await.unwrap();
    assert_eq!(payment.pay(id, &PaymentCreate::of("100".parse().unwrap())).await.unwrap(), partly);
    assert_eq!(invoices.get(id).await.unwrap(), partly);
    assert_eq!(invoices.pay(id, &PaymentCreate::default()).await.unwrap().status, InvoiceStatus::Paid);
    assert_eq!(invoices.refund(id, &PaymentCreate::default()).await.unwrap().status, InvoiceStatus::Cancelled);
    let filter = PaymentListFilter { invoice_id: Some(id), ..PaymentListFilter::default() };
    let payments = invoices.payments(LogParams::default(), filter).await.unwrap().data;
    assert!(payments[0].is_refund && payments.len() == 3, "{payments:?}");
    let contact = account.contacts().create(&ContactCreate::new("quoted@example.com".parse().unwrap())).await.unwrap();
    let quote = account.quotes().create(&QuoteCreate::new(contact.id, "480".parse().unwrap())).await.unwrap();
    let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    account.quotes().update(quote.id, &sent).await.unwrap();
    let job = account.quotes().convert(quote.id, &QuoteConversion::default()).await.unwrap();
    let again = account.quotes().convert(quote.id, &QuoteConversion::default()).await.unwrap_err();
    assert_eq!(again.api().unwrap().existing_id, Some(job.id.uuid()));
    let invoice = account.jobs().invoice(job.id, &JobInvoicing::default()).await.unwrap();
    assert_eq!(account.jobs().get(job.id).await.unwrap().invoice_id, Some(invoice.id));
    let address = invoices.share(invoice.id, &SharedAddressCreate::default()).await.unwrap();
    assert_eq!(invoices.share(invoice.id, &SharedAddressCreate::default()).await.unwrap(), address);
    assert_ne!(
        invoices.share(invoice.id, &SharedAddressCreate { renew: Some(true) }).await.unwrap().path,
        address.path
    );
    invoices.unshare(invoice.id).await.unwrap();
    let address = account.quotes().share(quote.id, &SharedAddressCreate::default()).await.unwrap();
    assert!(address.path.starts_with("/share/"), "{address:?}");
    account.quotes().unshare(quote.id).await.unwrap();
    let calendar = account.share_calendar(&SharedAddressCreate::default()).await.unwrap();
    assert!(calendar.path.starts_with("/dashboard/calendar.ics?secret="), "{calendar:?}");
    account.unshare_calendar().await.unwrap();
    let wrong = invoices.create(&InvoiceCreate::new("1".parse().unwrap())).await.unwrap();
    assert_eq!(invoices.void(wrong.id).await.unwrap().status, InvoiceStatus::Cancelled);
    assert_eq!(all(&invoices).await.len(), 3);
}

async fn work_on_webhooks(account: &AccountClient) {
    let webhooks = account.webhooks();
    let new = WebhookCreate::new("http://127.0.0.1:9/svc".parse().unwrap(), EventSet::All);
    let webhook = webhooks.create(&new).await.unwrap();
    let id = webhook.subscription.id;
    assert_eq!(webhooks.get(id).await.unwrap().etag, webhook.etag);
    let change = WebhookUpdate { description: Patch::Set(Some("Ledger".parse().unwrap())), ..Default::default() };
    webhooks.update(id, &change).await.unwrap();
    assert_ne!(webhooks.rotate_secret(id, None).await.unwrap().secret, webhook.secret);
    assert_eq!(webhooks.finish_rotation(id).await.unwrap().id, id);

    let stream = StreamCreate::from_body(br#"{"to": "nats://127.0.0.1:9/svc", "events": ["*"]}"#).unwrap();
    let stream = webhooks.create_stream(&stream).await.unwrap();
    webhooks.delete_if(&stream.etag, stream.record.id).await.unwrap();

    let minute = Duration::from_secs(60);
    let temporary = webhooks.create_temporary(new, minute).await.unwrap();
    assert!(temporary.secret.starts_with("whsec_"));
    let temporary = webhooks.keep(temporary.subscription.id, minute).await.unwrap();
    webhooks.delete_if(&temporary.etag, temporary.id).await.unwrap();

    // An event with its delivery. The data is delivered as it was sent.
    let events = account.events();
    let data = AnyObject::new(&serde_json::json!({ "id": "stay-1", "rate": 1.5 })).unwrap();
    let emitted = events.emit(EventKind::StayCreated, data.clone()).await.unwrap();
    assert_eq!((&emitted.event.data, emitted.deliveries.len()), (&data, 1));
    assert_eq!(events.get(emitted.event.id).await.unwrap().record, emitted.event);
    let sample = events.emit_sample(EventKind::InvoicePaid).await.unwrap();
    let since = EventListFilter { since: Some(Since(sample.event.created_at)), ..Default::default() };
    assert_eq!(events.list().filter(since).page().await.unwrap().data, [sample.event]);
    assert!(all(&events).await.len() >= 15);
    let not_external = events.emit(EventKind::InvoicePaid, data).await.unwrap_err();
    assert_eq!(not_external.api().unwrap().field.as_deref(), Some("kind"));

    let deliveries = account.deliveries();
    let stay = emitted.deliveries[0].id;
    let found = deliveries.get(stay).await.unwrap();
    assert_eq!((found.delivery.id, &found.event), (stay, &emitted.event));
    let until = Some(Since(sample.deliveries[0].created_at));
    let of_webhook = WebhookDeliveryListFilter { until, ..Default::default() };
    let until = DeliveryListFilter { subscription_id: None, of_webhook };
    let listed = deliveries.list().filter(until).page().await.unwrap().data;
    assert_eq!(listed.iter().map(|delivery| delivery.id).collect::<Vec<_>>(), [stay]);
    assert_eq!(deliveries.replay(stay).await.unwrap().id, stay);
    let attempts: Vec<_> = deliveries.attempts(stay).try_collect().await.unwrap();
    assert_eq!(attempts, found.log, "all of them are in the delivery until there are more than twenty");
    let test = webhooks.test(id, Some(EventKind::JobCreated)).await.unwrap();
    assert_eq!((test.subscription_id, test.event), (id, EventKind::JobCreated));
    assert_eq!(all(&deliveries).await.len(), 3);

    let replays = account.replays();
    let replay = replays.create(&ReplayCreate::new(id, emitted.event.created_at)).await.unwrap();
    assert_eq!(replays.get(replay.id).await.unwrap().id, replay.id);
    assert_eq!(replays.list().limit(1).page().await.unwrap().data[0].id, replay.id);
    let attempts: Vec<_> = webhooks.attempts(id, emitted.event.created_at).try_collect().await.unwrap();
    assert!(attempts.iter().all(|attempt| attempt.failed), "{attempts:?}");
    assert_eq!(webhooks.statistics(id).await.unwrap().hours.len(), account.statistics().await.unwrap().hours.len());

    assert_eq!(all(&webhooks).await.len(), 1);
    webhooks.delete(id).await.unwrap();
    let log = all(&account.audit_log()).await;
    let deleted = log.iter().find(|entry| entry.action == "delete" && entry.object_kind == "webhook").unwrap();
    assert!(deleted.actor.starts_with("platform_key:") && deleted.before.is_some() && deleted.after.is_none());
}

async fn move_records(account: &AccountClient) {
    let exported: Vec<AccountRecord> = account.export(None).try_collect().await.unwrap();
    let kinds: BTreeSet<&str> = exported.iter().map(|record| record.kind().as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["booking", "contact", "invoice", "job", "quote"]));
    let last = exported.iter().map(AccountRecord::updated_at).max().unwrap();
    let since: Vec<AccountRecord> = account.export(Some(last)).try_collect().await.unwrap();
    assert_eq!(since.len(), 1);
    let first = ExportParams { limit: Limit::new(2), ..ExportParams::default() };
    let page = account.export_page(&first).await.unwrap();
    let rest = ExportParams { cursor: page.next_cursor, limit: Limit::new(200), ..first };
    let rest = account.export_page(&rest).await.unwrap();
    assert_eq!(([page.data, rest.data].concat(), rest.next_cursor), (exported.clone(), None));
    let again = account.import(&ImportCreate::all(&exported)).await.unwrap();
    assert!(again.rows.iter().all(|row| row.result == RowOutcome::ThereAlready), "{again:?}");
    assert_eq!((again.rows.len(), again.webhooks), (exported.len(), 0));
    let ada = ContactImport::from_body(br#"{"email": "ada@example.net"}"#).unwrap();
    let batch = ImportCreate { dry_run: Some(true), ..ImportCreate::contacts([&ada, &ada]) };
    let report = account.import(&batch).await.unwrap();
    let results: Vec<RowOutcome> = report.rows.iter().map(|row| row.result).collect();
    assert_eq!(results, [RowOutcome::Added, RowOutcome::ThereAlready]);
    let total = InvoiceImport::from_body(br#"{"total": 5, "due_date": "2026-01-31", "status": "paid"}"#).unwrap();
    let report = account.import(&ImportCreate::invoices([&total])).await.unwrap();
    assert_eq!(report.rows[0].result, RowOutcome::Added);
    let update = ImportCreate { update: Some(true), ..ImportCreate::invoices([&total]) };
    assert_eq!(account.import(&update).await.unwrap_err().api().unwrap().field.as_deref(), Some("update"));
    let wrong = ExportParams { cursor: Some("x".to_owned()), ..ExportParams::default() };
    assert_eq!(account.export_page(&wrong).await.unwrap_err().code(), Some("invalid_cursor"));
}

/// Returns the operations that the server has responded to with success.
fn succeeded(metrics: &str) -> BTreeSet<String> {
    let requests = metrics.lines().filter(|line| line.starts_with("svc_http_requests_total{"));
    let label = |line: &str, name: &str| {
        line.split_once(&format!("{name}=\"")).and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()))
    };
    let succeeded = requests.filter(|line| label(line, "status").is_some_and(|status| status.starts_with('2')));
    succeeded.filter_map(|line| label(line, "operation")).collect()
}

#[tokio::test]
async fn every_operation_of_the_document_is_a_method() {
    let document: Value = serde_json::from_str(include_str!("../../svc-server/openapi/platform-v1.json")).unwrap();
    let methods = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let documented: BTreeSet<String> =
        methods.filter_map(|method| Some(method["operationId"].as_str()?.to_owned())).collect();
    for database in databases() {
        let server = LiveServer::start(&database, unlimited()).await;
        let platform = server.platform().await;
        let account = work_on_accounts(&platform).await;
        work_on_apps(&server, &platform, &account).await;
        work_on_a_sandbox(&platform, &account).await;
        work_on_keys_and_members(&account).await;
        work_on_records(&account).await;
        work_on_invoices(&account).await;
        work_on_webhooks(&account).await;
        move_records(&account).await;
        let called = succeeded(&server.metrics.render());
        let missing: Vec<_> = documented.difference(&called).collect();
        assert!(missing.is_empty(), "the client has no method for {missing:?}, or this test does not call it");
    }
}

#[tokio::test]
async fn a_platform_key_without_the_scope_is_told_so() {
    let database = &databases()[0];
    let server = LiveServer::start(database, unlimited()).await;
    let platform = server.platform_with(&["records:read"]).await;
    let account = platform.account(server.tenant);
    assert!(account.contacts().list().page().await.unwrap().data.is_empty());
    let refused = account.members().list().page().await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(403), Some("insufficient_scope")));
    // The public listener has no platform API.
    let elsewhere = server.builder().build_platform().unwrap();
    assert_eq!(elsewhere.accounts().list().page().await.unwrap_err().code(), Some("route_not_found"));
}
