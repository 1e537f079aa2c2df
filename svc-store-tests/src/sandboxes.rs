//! Sandboxes: what belongs to one is deleted in steps, and nothing else.

use std::time::Duration;

use svc_core::accounts::apps::AppCreate;
use svc_core::accounts::audit;
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::{self, KeyHash};
use svc_core::accounts::sessions::{self, Role, Session};
use svc_core::accounts::shared_links::{self, SharedLinkPurpose};
use svc_core::accounts::tenants::{self, DeveloperAccess, NumberKind, Tenant};
use svc_core::error::Error;
use svc_core::find::IndexedText;
use svc_core::oauth;
use svc_core::oauth::authorization::accounts_of;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{Invoice, Payment};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{NewRecord, Resource as _};
use svc_core::sandboxes::{self, NewSandbox, STEP, SandboxStep};
use svc_core::store::{SandboxRows, Tx};
use svc_core::values::{Amount, Currency, Id, RecordKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{Backlog, DeliveryStatus};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::Harness;
use crate::isolation::Owner;
use crate::samples::Sample as _;

/// Returns the record with a number, which has the same id in each tenant.
fn new(tenant_id: TenantId, number: u128) -> NewRecord {
    let now = Timestamp::from_micros(1_773_400_000_000_000 + i64::try_from(number).unwrap());
    NewRecord { tenant_id, id: Uuid::from_u128(1_000 + number), now }
}

/// Adds a row of each kind that refers to others, so that a store has to delete them in the right order.
async fn fill(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let contact = Contact::bare(new(tenant, 1));
    Contact::repository(tx).insert(tenant, &contact).await?;
    let contact_id = Some(contact.id);
    let invoice = Invoice { contact_id, ..Invoice::bare(new(tenant, 2)) };
    Invoice::repository(tx).insert(tenant, &invoice).await?;
    let (id, amount) = (Id::new(Uuid::from_u128(3)), Amount::from_minor(0, 2));
    let paid_at = invoice.created_at;
    let payment = Payment {
        id,
        invoice_id: invoice.id,
        amount,
        currency: Currency::AUD,
        paid_at,
        is_refund: false,
        method: None,
        reference: None,
    };
    tx.insert_payment(tenant, &payment).await?;
    let quote = Quote { contact_id, ..Quote::bare(new(tenant, 4)) };
    Quote::repository(tx).insert(tenant, &quote).await?;
    Booking::repository(tx).insert(tenant, &Booking { contact_id, ..Booking::bare(new(tenant, 5)) }).await?;
    let (quote_id, invoice_id) = (Some(quote.id), Some(invoice.id));
    let job = Job { contact_id, quote_id, invoice_id, ..Job::bare(new(tenant, 6)) };
    Job::repository(tx).insert(tenant, &job).await?;
    tx.raise_number(tenant, NumberKind::Job, 41).await?;
    let response = StoredResponse {
        fingerprint: [7; 32],
        status: 201,
        location: None,
        etag: None,
        body: Vec::new(),
        created_at: tx.env().now(),
    };
    tx.store_response(tenant, "key", &response).await?;
    let text = IndexedText {
        kind: RecordKind::Contact,
        id: contact.id.uuid(),
        changed_at: contact.updated_at,
        text: "ada nguyen".to_owned(),
    };
    tx.store_texts(tenant, &[text], Timestamp::from_micros(1)).await?;
    shared_links::share(tx, tenant, SharedLinkPurpose::Invoice, Some(invoice.id.uuid()), false).await?;
    shared_links::share(tx, tenant, SharedLinkPurpose::Calendar, None, false).await.map(drop)
}

impl Harness {
    async fn new_sandbox(&self, account: TenantId) -> NewSandbox {
        self.write(account, async |tx, &account| sandboxes::create(tx, account).await).await.unwrap()
    }

    async fn delete_rows(&self, tenant: TenantId, rows: SandboxRows, limit: u32) -> u64 {
        let delete = self.write((tenant, rows, limit), async |tx, &(tenant, rows, limit)| {
            tx.lock_tenant(tenant).await?;
            Ok(tx.delete_sandbox_rows(tenant, rows, limit).await?)
        });
        delete.await.unwrap()
    }

    async fn step_of_reset(&self, account: TenantId) -> Result<SandboxStep, Error> {
        self.write(account, async |tx, &account| sandboxes::reset_step(tx, account).await).await
    }

    async fn step_of_deletion(&self, account: TenantId) -> Result<SandboxStep, Error> {
        self.write(account, async |tx, &account| sandboxes::delete_step(tx, account).await).await
    }

    async fn account(&self, id: TenantId) -> Option<Tenant> {
        self.read(id, async |tx, &id| Ok(tx.tenant(id).await?)).await.unwrap()
    }

    /// Adds rows of every kind of data to a tenant, with the same ids for each tenant.
    async fn fill_with_data(&self, tenant: TenantId) {
        self.fill(tenant, Owner::Watched).await;
        self.write(tenant, async |tx, &tenant| fill(tx, tenant).await).await.unwrap();
        self.log_requests(tenant, 2).await;
        self.upload(tenant, b"email\n").await;
        self.record_attempts(tenant, Id::new(Uuid::from_u128(1)), &[(200, 10), (500, 20)]).await;
    }

    /// Returns what a tenant has of each kind of data.
    async fn data(&self, tenant: TenantId) -> Vec<(&'static str, usize)> {
        let invoice = Invoice::bare(new(tenant, 2)).id;
        let stored = self.read((tenant, invoice), async |tx, &(tenant, invoice)| {
            let beginning = Timestamp::from_micros(0);
            let number = tx.payments(tenant, invoice, 10).await?.len();
            let payments = ("payments", number);
            let responses = ("responses", tx.stored_response(tenant, "key", beginning).await?.iter().len());
            let requests = ("requests", tx.logged_requests(tenant, beginning, 100).await?.len());
            let texts = ("texts", tx.records_with_text(tenant, None, "nguyen", 10).await?.len());
            let progress = ("progress", tx.indexed_until(tenant).await?.iter().len());
            let replays = ("replays", tx.replays(tenant, 100).await?.len());
            let deliveries = ("deliveries", tx.list_deliveries(tenant, &Default::default()).await?.len());
            let purpose = SharedLinkPurpose::Invoice;
            let shared = tx.shared_link(tenant, purpose, Some(invoice.uuid())).await?.is_some();
            let calendar = tx.shared_link(tenant, SharedLinkPurpose::Calendar, None).await?.is_some();
            let links = ("shared links", usize::from(shared) + usize::from(calendar));
            Ok(vec![payments, responses, requests, texts, progress, replays, deliveries, links])
        });
        let mut data = stored.await.unwrap();
        let attempts = self.attempts_by_hour(tenant, None).await;
        data.push(("attempts", attempts.iter().map(|hour| hour.tally.attempts() as usize).sum()));
        data.push(("uploads", self.list_uploads(tenant).await.len()));
        data.push(("events", self.events(tenant).await.len()));
        data.push(("contacts", self.all::<Contact>(tenant).await.len()));
        data.push(("invoices", self.all::<Invoice>(tenant).await.len()));
        data.push(("quotes", self.all::<Quote>(tenant).await.len()));
        data.push(("bookings", self.all::<Booking>(tenant).await.len()));
        data.push(("jobs", self.all::<Job>(tenant).await.len()));
        data
    }

    async fn subscriptions_of(&self, tenant: TenantId) -> usize {
        self.all::<WebhookSubscription>(tenant).await.len()
    }

    async fn audit_entries_of(&self, tenant: TenantId) -> usize {
        let since = Timestamp::from_micros(0);
        let entries = self.read((tenant, since), async |tx, &(tenant, since)| {
            Ok(tx.audit_entries(tenant, since, Timestamp::MAX, 1_000).await?.len())
        });
        entries.await.unwrap()
    }

    /// Calls [`delete_rows`](Self::delete_rows) until nothing is left, and returns how many rows it deleted in all.
    async fn delete_in_small_steps(&self, tenant: TenantId, rows: SandboxRows) -> u64 {
        let mut total = 0;
        loop {
            let deleted = self.delete_rows(tenant, rows, 7).await;
            assert!(deleted <= 7, "a step deletes at most its limit: {deleted}");
            total += deleted;
            if deleted < 7 {
                return total;
            }
        }
    }
}

pub(super) async fn a_sandbox_is_an_account_of_its_own(h: Harness) {
    let account = h.tenant().await;
    h.clock.advance(Duration::from_secs(1));
    let other = h.tenant().await;
    h.clock.advance(Duration::from_secs(1));
    let NewSandbox { sandbox, key, .. } = h.new_sandbox(account).await;
    assert_eq!((sandbox.name.as_str(), sandbox.sandbox_of), ("Harbour Plumbing (sandbox)", Some(account)));
    assert_eq!(h.account(sandbox.id).await, Some(sandbox.clone()));
    let owner = h.account(account).await.unwrap();
    assert_eq!((owner.sandbox_id, owner.sandbox_of), (Some(sandbox.id), None));
    assert_eq!(key.key.tenant_id, sandbox.id);
    assert_eq!(h.all::<Contact>(sandbox.id).await.len(), 3);
    assert_eq!(h.all::<Contact>(account).await, []);

    let again = h.write(account, async |tx, &account| sandboxes::create(tx, account).await).await;
    assert!(matches!(again, Err(Error::NotAllowed(_))), "{again:?}");
    let nested = h.write(sandbox.id, async |tx, &id| sandboxes::create(tx, id).await).await;
    assert!(matches!(nested, Err(Error::NotAllowed(_))), "{nested:?}");

    let list = async |sandboxes| {
        let listed =
            h.read(sandboxes, async |tx, &sandboxes| Ok(tx.tenants(None, 10, sandboxes).await?)).await.unwrap();
        listed.into_iter().map(|tenant| tenant.id).collect::<Vec<_>>()
    };
    assert_eq!(list(false).await, [account, other], "a sandbox is listed only when it is asked for");
    assert_eq!(list(true).await, [account, other, sandbox.id]);
}

pub(super) async fn only_one_of_concurrent_creations_succeeds(h: Harness) {
    let account = h.tenant().await;
    let creations =
        (0..4).map(|_| h.write(account, async |tx, &account| sandboxes::create(tx, account).await.map(drop)));
    let created = futures_util::future::join_all(creations).await;
    assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1, "{created:?}");
    let all = h.read((), async |tx, ()| Ok(tx.tenants(None, 10, true).await?.len())).await;
    assert_eq!(all, Ok(2));
}

pub(super) async fn the_keys_of_a_sandbox_are_test_keys(h: Harness) {
    let account = h.tenant().await;
    let live = h.write(account, async |tx, &id| keys::create(tx, id, Default::default()).await).await.unwrap();
    let test = h.new_sandbox(account).await.key;
    let (live, test) = (live.text.reveal().to_owned(), test.text.reveal().to_owned());
    let caller = async |text: &str| {
        let hash = KeyHash::of(text).unwrap();
        h.read(hash, async |tx, &hash| Ok(keys::authenticate(tx, hash).await?.tenant_id)).await
    };
    assert!(live.starts_with("svc_live_") && test.starts_with("svc_test_"), "{live} {test}");
    assert_eq!(caller(&live).await, Ok(account));
    assert_eq!(caller(&test).await, h.account(account).await.unwrap().sandbox_id.ok_or(Error::NotFound));
    for (prefix, text) in [("svc_test_", &live), ("svc_live_", &test)] {
        let other = format!("{prefix}{}", &text["svc_live_".len()..]);
        assert_eq!(caller(&other).await, Err(Error::InvalidKey), "the same key with the other prefix");
    }
    // Whatever is stored under the hash of a key: its prefix tells what it may open.
    let hash = svc_core::crypto::sha256(test.replace("svc_test_", "svc_live_").as_bytes());
    let misplaced = h.write((account, hash), async |tx, (account, hash)| {
        let sandbox = tenants::get(tx, *account).await?.sandbox_id.unwrap();
        let key = tx.api_keys(sandbox).await?.remove(0);
        let id = tx.env().id(tx.env().now());
        Ok(tx.insert_api_key(&keys::ApiKey { id, ..key }, hash).await?)
    });
    misplaced.await.unwrap();
    assert_eq!(caller(&test.replace("svc_test_", "svc_live_")).await, Err(Error::InvalidKey));
}

pub(super) async fn a_sandbox_has_the_access_of_its_account(h: Harness) {
    let account = h.tenant().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let set = async |id: TenantId, access: DeveloperAccess| {
        h.write((id, access), async |tx, &(id, access)| {
            tenants::update(tx, id.0, |tenant| tenant.developer_access = access).await.map(drop)
        })
        .await
    };
    for access in [DeveloperAccess::Suspended, DeveloperAccess::Pending, DeveloperAccess::Approved] {
        set(account, access).await.unwrap();
        assert_eq!(h.account(sandbox).await.unwrap().developer_access, access);
    }
    let refused = set(sandbox, DeveloperAccess::Suspended).await;
    assert!(matches!(refused, Err(Error::NotAllowed(_))), "{refused:?}");
    let renamed = h.write(sandbox, async |tx, &id| {
        tenants::update(tx, id.0, |tenant| {
            (tenant.name, tenant.sandbox_of) = ("Trials".to_owned(), None);
        })
        .await
    });
    let renamed = renamed.await.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.sandbox_of), ("Trials", Some(account)), "it stays a sandbox");
    assert_eq!(h.account(sandbox).await, Some(renamed));
}

pub(super) async fn a_due_delivery_says_whether_its_tenant_is_a_sandbox(h: Harness) {
    let account = h.tenant().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    for (tenant, is_sandbox) in [(account, false), (sandbox, true)] {
        let to = h.endpoint(tenant).await;
        h.insert_delivery(tenant, to, |_| {}).await;
        let due = h.read((tenant, to), async |tx, &(tenant, to)| {
            let now = Timestamp::MAX;
            Ok(tx.due_deliveries(tenant, to, now, 10).await?.into_iter().map(|due| due.is_sandbox).collect::<Vec<_>>())
        });
        assert_eq!(due.await, Ok(vec![is_sandbox]));
    }
}

pub(super) async fn what_failed_in_a_sandbox_is_no_backlog(h: Harness) {
    let account = h.tenant().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let backlog = async |status| {
        let Backlog { deliveries, .. } =
            h.read(status, async |tx, &status| Ok(tx.backlog(status).await?)).await.unwrap();
        deliveries
    };
    for (tenant, status, want) in [
        (sandbox, DeliveryStatus::Failed, 0),
        (sandbox, DeliveryStatus::Held, 0),
        (sandbox, DeliveryStatus::Pending, 1),
        (account, DeliveryStatus::Failed, 1),
        (account, DeliveryStatus::Held, 1),
        (account, DeliveryStatus::Pending, 2),
    ] {
        let to = h.endpoint(tenant).await;
        let stored = move |delivery: &mut svc_core::webhooks::deliveries::Delivery| {
            if status != DeliveryStatus::Pending {
                (delivery.status, delivery.next_attempt_at) = (status, None);
            }
        };
        h.insert_delivery(tenant, to, stored).await;
        assert_eq!(backlog(status).await, want, "{status}");
    }
}

pub(super) async fn the_data_of_a_sandbox_is_deleted_and_nothing_else(h: Harness) {
    let (account, other) = (h.tenant().await, h.tenant().await);
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let neighbour = h.new_sandbox(other).await.sandbox.id;
    h.delete_in_small_steps(sandbox, SandboxRows::Data).await;
    h.delete_in_small_steps(neighbour, SandboxRows::Data).await;
    for tenant in [account, other, sandbox, neighbour] {
        h.fill_with_data(tenant).await;
    }
    let full = h.data(sandbox).await;
    assert!(full.iter().all(|(_, count)| *count > 0), "{full:?}");
    let keys = h.read(sandbox, async |tx, &id| Ok(tx.api_keys(id).await?)).await.unwrap();
    let (subscriptions, entries) = (h.subscriptions_of(sandbox).await, h.audit_entries_of(sandbox).await);

    let deleted = h.delete_in_small_steps(sandbox, SandboxRows::Data).await;
    assert!(deleted > 50, "{deleted}");
    h.write(sandbox, async |tx, &id| {
        let hour = svc_core::webhooks::statistics::chart_hours(tx.env().now());
        Ok(tx.delete_attempt_counts(id, &hour).await?)
    })
    .await
    .unwrap();
    let empty = h.data(sandbox).await;
    assert!(empty.iter().all(|(_, count)| *count == 0), "{empty:?}");
    let due = h.read((), async |tx, ()| Ok(tx.due_endpoints(Timestamp::MAX, &[], 100).await?)).await.unwrap();
    assert!(due.iter().all(|endpoint| endpoint.tenant_id != sandbox), "its endpoints are not due any more");
    for tenant in [account, other, neighbour] {
        assert_eq!(h.data(tenant).await, full, "other tenants keep what they have");
        assert!(due.iter().any(|endpoint| endpoint.tenant_id == tenant));
    }
    assert_eq!(h.read(sandbox, async |tx, &id| Ok(tx.api_keys(id).await?)).await, Ok(keys));
    assert_eq!(h.subscriptions_of(sandbox).await, subscriptions);
    assert_eq!(h.audit_entries_of(sandbox).await, entries);
    let number = h.write(sandbox, async |tx, &id| Ok(tx.next_number(id, NumberKind::Job).await?)).await;
    assert_eq!(number, Ok(1), "numbers begin anew");
    let number = h.write(account, async |tx, &id| Ok(tx.next_number(id, NumberKind::Job).await?)).await;
    assert_eq!(number, Ok(42));
    h.write(sandbox, async |tx, &id| fill(tx, id).await).await.unwrap();
    assert_eq!(h.all::<Job>(sandbox).await.len(), 1, "it can be filled again");
}

pub(super) async fn a_sandbox_is_deleted_whole(h: Harness) {
    let (account, other) = (h.tenant().await, h.tenant().await);
    let NewSandbox { sandbox, key, .. } = h.new_sandbox(account).await;
    let neighbour = h.new_sandbox(other).await.sandbox.id;
    let hash = KeyHash::of(key.text.reveal()).unwrap();
    let claim = h.write(key.key.id, async |tx, &id| Ok(tx.claim_signature(id, &[1; 32], Timestamp::MAX).await?));
    assert_eq!(claim.await, Ok(true));
    h.fill(sandbox.id, Owner::Watched).await;
    h.log_requests(sandbox.id, 2).await;
    let mut begun = Vec::new();
    for tenant in [sandbox.id, neighbour, account] {
        let link = h.link(DashboardLinkCreate::to(tenant, Role::Owner)).await;
        begun.push(h.sign_in(&link).await.unwrap());
        // It is never used.
        h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await;
    }
    let view = h.write(begun[2].session.id, async |tx, &id| sessions::show_sandbox(tx, id, true).await);
    assert_eq!(view.await.unwrap().account(), Some((sandbox.id, Role::Owner)));

    h.delete_in_small_steps(sandbox.id, SandboxRows::All).await;
    assert_eq!(h.account(sandbox.id).await, None);
    let found = h.read(hash, async |tx, &hash| keys::authenticate(tx, hash).await.map(drop)).await;
    assert_eq!(found, Err(Error::InvalidKey));
    let shown = |session: Option<Session>| session.and_then(|session| session.account());
    assert_eq!(shown(h.session(&begun[0]).await), None, "its sessions have ended");
    assert_eq!(shown(h.session(&begun[1]).await), Some((neighbour, Role::Owner)));
    assert_eq!(shown(h.session(&begun[2]).await), Some((account, Role::Owner)), "the session shows the account again");
    assert_eq!(h.audit_entries_of(sandbox.id).await, 0);
    assert!(h.audit_entries_of(neighbour).await > 0 && h.audit_entries_of(account).await > 0);
    assert_eq!((h.subscriptions_of(sandbox.id).await, h.all::<Contact>(neighbour).await.len()), (0, 3));
    assert_eq!(h.delete_rows(sandbox.id, SandboxRows::All, 7).await, 0, "it is gone");
}

pub(super) async fn a_step_that_deletes_the_last_rows_says_whether_the_sandbox_is_gone(h: Harness) {
    let rows = {
        let account = h.tenant().await;
        let sandbox = h.new_sandbox(account).await.sandbox.id;
        u32::try_from(h.delete_in_small_steps(sandbox, SandboxRows::All).await).unwrap()
    };
    for (limit, is_gone) in [(rows - 1, false), (rows, false), (rows + 1, true), (rows + 2, true)] {
        let account = h.tenant().await;
        let sandbox = h.new_sandbox(account).await.sandbox.id;
        let deleted = h.delete_rows(sandbox, SandboxRows::All, limit).await;
        assert_eq!(deleted, u64::from(rows.min(limit)), "a limit of {limit} where there are {rows} rows");
        assert_eq!(h.account(sandbox).await.is_none(), is_gone, "a limit of {limit} where there are {rows} rows");
        assert_eq!(deleted < u64::from(limit), is_gone, "a step that was not full was the last one");
    }
}

pub(super) async fn an_account_whose_sandbox_is_gone_has_none(h: Harness) {
    let broken = async || {
        let account = h.tenant().await;
        let sandbox = h.new_sandbox(account).await.sandbox.id;
        // What an earlier version did.
        while h.account(sandbox).await.is_some() {
            h.delete_rows(sandbox, SandboxRows::All, STEP).await;
        }
        assert_eq!(h.account(account).await.unwrap().sandbox_id, Some(sandbox), "the account names it still");
        account
    };
    let account = broken().await;
    assert_eq!(h.read(account, async |tx, &id| sandboxes::find(tx, id).await).await, Ok(None));
    let suspended = h.write(account, async |tx, &id| {
        tenants::update(tx, id.0, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await
    });
    assert_eq!(suspended.await.unwrap().developer_access, DeveloperAccess::Suspended);
    let session = h.sign_in(&h.link(DashboardLinkCreate::to(account, Role::Owner)).await).await.unwrap().session;
    let accounts = h.read(session.clone(), async |tx, session| accounts_of(tx, session).await);
    assert_eq!(accounts.await.unwrap().iter().map(|account| account.id).collect::<Vec<_>>(), [account]);
    let shown = h.write(session.id, async |tx, &id| sessions::show_sandbox(tx, id, true).await);
    assert_eq!(shown.await, Err(Error::NotFound));
    assert_eq!(h.step_of_reset(account).await, Err(Error::NotFound));

    let healed = h.step_of_deletion(account).await.unwrap();
    assert_eq!((healed.deleted, healed.is_done), (0, true));
    assert_eq!(h.account(account).await.unwrap().sandbox_id, None);
    assert_eq!(h.step_of_deletion(account).await, Err(Error::NotFound), "it is healed once");

    let account = broken().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    assert_eq!(h.account(account).await.unwrap().sandbox_id, Some(sandbox), "a new one takes its place");
}

pub(super) async fn nothing_is_deleted_of_a_real_account(h: Harness) {
    let account = h.tenant().await;
    h.new_sandbox(account).await;
    h.fill_with_data(account).await;
    let full = h.data(account).await;
    for rows in [SandboxRows::Data, SandboxRows::All] {
        assert_eq!(h.delete_rows(account, rows, 1_000).await, 0);
    }
    assert_eq!(h.data(account).await, full);
    assert!(h.account(account).await.is_some());
}

pub(super) async fn a_sandbox_is_reset_and_deleted_in_steps(h: Harness) {
    let account = h.tenant().await;
    assert_eq!(h.step_of_reset(account).await, Err(Error::NotFound), "there is none");
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let of_samples = h.data(sandbox).await;
    for number in 0..STEP {
        h.insert(sandbox, move |new| Quote { quote_number: format!("X-{number}"), ..Quote::bare(new) }).await;
    }
    let mut steps = vec![h.step_of_reset(account).await.unwrap()];
    assert_eq!((steps[0].deleted, steps[0].is_done), (u64::from(STEP), false));
    // Somebody writes between two steps.
    let contact = h.contact(sandbox, "ada@example.com").await.id;
    h.insert(sandbox, move |new| Job { contact_id: Some(contact), ..Job::bare(new) }).await;
    while !steps.last().unwrap().is_done {
        steps.push(h.step_of_reset(account).await.unwrap());
    }
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(h.data(sandbox).await, of_samples, "it has its samples again, and nothing else");

    h.contact(sandbox, "ada@example.com").await;
    while !h.step_of_deletion(account).await.unwrap().is_done {}
    assert_eq!(h.account(sandbox).await, None);
    assert_eq!(h.account(account).await.unwrap().sandbox_id, None);
    assert_eq!(h.step_of_deletion(account).await, Err(Error::NotFound));
    let log = h.read(account, async |tx, &id| audit::list(tx, id, Timestamp::from_micros(0), 100).await).await.unwrap();
    let mut actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    actions.sort_unstable();
    assert_eq!(actions, ["create", "reset", "update", "update"], "the audit log of the account has it");
    let again = h.new_sandbox(account).await.sandbox.id;
    assert_ne!(again, sandbox);
}

/// The response to a create by an app is stored under its grant, so that a repeat of the request gets the same one.
pub(super) async fn a_reset_forgets_the_responses_to_apps(h: Harness) {
    let account = h.tenant().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let app = h.new_app(None).await;
    let (own, other) = (h.new_grant(sandbox, &app).await, h.new_grant(account, &app).await);
    let scopes = [own.id, other.id].map(|grant| TenantId(grant.uuid()));
    let store = h.write(scopes, async |tx, &scopes| {
        for scope in scopes {
            let created_at = tx.env().now();
            for key in ["a", "b"] {
                let body = Vec::new();
                let response =
                    StoredResponse { fingerprint: [7; 32], status: 201, location: None, etag: None, body, created_at };
                tx.store_response(scope, key, &response).await?;
            }
        }
        Ok(())
    });
    store.await.unwrap();
    h.delete_in_small_steps(sandbox, SandboxRows::Data).await;
    let stored = h.read(scopes, async |tx, &[own, other]| {
        let since = Timestamp::from_micros(0);
        let is_stored = [tx.stored_response(own, "a", since).await?, tx.stored_response(own, "b", since).await?];
        Ok((is_stored.map(|stored| stored.is_some()), tx.stored_response(other, "a", since).await?.is_some()))
    });
    assert_eq!(stored.await, Ok(([false, false], true)));
    assert!(h.grant(&own).await.is_some());
}

pub(super) async fn an_app_learns_that_a_sandbox_was_deleted(h: Harness) {
    let account = h.tenant().await;
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let mut input = AppCreate::new("Planner".parse().unwrap(), vec!["https://example.com/cb".parse().unwrap()]);
    input.disconnect_url = Some("https://example.com/bye".parse().unwrap());
    let app = h.write(input, async |tx, input| Ok(oauth::create_app(tx, input.clone()).await?.app)).await.unwrap();
    let grant = h.new_grant(sandbox, &app).await;
    let step = h.step_of_deletion(account).await.unwrap();
    assert_eq!((step.deleted, step.is_done, h.grant(&grant).await), (1, false, None));
    let recorded = h.read((), async |tx, ()| Ok(tx.operational_events(1_000).await?)).await.unwrap();
    let told = recorded.iter().filter(|event| event.data.get().contains(&app.client_id)).collect::<Vec<_>>();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].kind.as_str(), "app.disconnected");
    while !h.step_of_deletion(account).await.unwrap().is_done {}
    assert_eq!(h.account(sandbox).await, None);
}

pub(super) async fn people_see_the_sandbox_of_their_account(h: Harness) {
    let (account, other) = (h.tenant().await, h.tenant().await);
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let show =
        |id, sandbox| h.write((id, sandbox), async |tx, &(id, sandbox)| sessions::show_sandbox(tx, id, sandbox).await);
    let by_link = h.sign_in(&h.link(DashboardLinkCreate::to(account, Role::Developer)).await).await.unwrap();
    show(by_link.session.id, true).await.unwrap();
    assert_eq!(h.session(&by_link).await.unwrap().account(), Some((sandbox, Role::Developer)));
    show(by_link.session.id, false).await.unwrap();
    assert_eq!(h.session(&by_link).await.unwrap().account(), Some((account, Role::Developer)));

    // Who was let into the sandbox alone sees nothing of the account.
    let inside = h.sign_in(&h.link(DashboardLinkCreate::to(sandbox, Role::Owner)).await).await.unwrap();
    assert_eq!(show(inside.session.id, true).await, Err(Error::NotFound), "a sandbox has no sandbox");
    show(inside.session.id, false).await.unwrap();
    assert_eq!(h.session(&inside).await.unwrap().account(), Some((sandbox, Role::Owner)));
    let without = h.sign_in(&h.link(DashboardLinkCreate::to(other, Role::Owner)).await).await.unwrap();
    assert_eq!(show(without.session.id, true).await, Err(Error::NotFound), "the account has none");
    let operator = h.sign_in(&h.link(DashboardLinkCreate::for_operator()).await).await.unwrap();
    assert_eq!(show(operator.session.id, true).await, Err(Error::NotFound), "an operator views accounts");
}

pub(super) async fn members_have_their_role_in_the_sandbox(h: Harness) {
    let (account, other) = (h.tenant().await, h.tenant().await);
    let sandbox = h.new_sandbox(account).await.sandbox.id;
    let ada = h.member(account, Role::Developer).await;
    h.member(other, Role::Owner).await;
    let new = h.sign_in_member("ada@example.com").await.unwrap();
    h.choose(new.session.id, account).await.unwrap();
    let show = h.write(new.session.id, async |tx, &id| sessions::show_sandbox(tx, id, true).await);
    show.await.unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), Some((sandbox, Role::Developer)));
    let member = h.write((account, ada.id), async |tx, &(account, id)| {
        svc_core::accounts::members::set_role(tx, account, id, Role::Viewer).await
    });
    member.await.unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), Some((sandbox, Role::Viewer)), "a change holds there at once");
    h.choose(new.session.id, other).await.unwrap();
    assert_eq!(
        h.session(&new).await.unwrap().account(),
        Some((other, Role::Owner)),
        "another account, not its sandbox"
    );
    h.choose(new.session.id, account).await.unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), Some((account, Role::Viewer)));

    let show = h.write(new.session.id, async |tx, &id| sessions::show_sandbox(tx, id, true).await);
    show.await.unwrap();
    let removed = h.write((account, ada.id), async |tx, &(account, id)| {
        svc_core::accounts::members::remove(tx, account, id).await.map(drop)
    });
    removed.await.unwrap();
    assert_eq!(h.session(&new).await, None, "who is removed sees nothing of the sandbox either");
    let refused = h.write((sandbox, ada.email), async |tx, (sandbox, email)| {
        svc_core::accounts::members::add(tx, *sandbox, email, Role::Owner).await.map(drop)
    });
    assert!(matches!(refused.await, Err(Error::NotAllowed(_))), "a sandbox has no members of its own");
}
