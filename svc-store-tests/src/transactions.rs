//! Units of work: atomicity, isolation and locking.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde_json::json;
use serde_json::value::to_raw_value;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, DeveloperAccess, NumberKind, TenantCreate};
use svc_core::error::{Error, StoreError};
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate, ContactId};
use svc_core::resources::invoices::{Invoice, Payment};
use svc_core::resources::jobs::{Job, JobCreate};
use svc_core::resources::{NewRecord, crud};
use svc_core::store::{DeliveryFilter, KeyUse, Repository, Tx};
use svc_core::values::EventKind;
use svc_core::values::{Amount, Currency, Id, TenantId, Text, Timestamp};
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::events::{Event, EventId};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookUpdate};
use uuid::Uuid;

use crate::Harness;
use crate::samples::{Links, Sample};

const PARALLEL: usize = 32;

fn response(created_at: Timestamp) -> StoredResponse {
    StoredResponse { fingerprint: [7; 32], status: 201, location: None, etag: None, body: vec![1], created_at }
}

async fn create_contact(tx: &mut dyn Tx, tenant: TenantId, email: &str) -> Result<Contact, Error> {
    let input = ContactCreate::from_body(json!({ "email": email }).to_string().as_bytes())?;
    crud::create(tx, tenant, input).await
}

async fn create_job(tx: &mut dyn Tx, tenant: TenantId) -> Result<Job, Error> {
    crud::create(tx, tenant, JobCreate::from_body(br#"{"title": "x"}"#)?).await
}

/// Makes a change of every kind that a unit of work can make.
async fn make_changes(tx: &mut dyn Tx, tenant: TenantId, contact: ContactId) -> Result<(), Error> {
    create_contact(tx, tenant, "bob@example.com").await?;
    create_job(tx, tenant).await?;
    crud::delete::<Contact>(tx, tenant, contact).await?;
    let now = advance_clock(tx, tenant).await?;
    tx.store_response(tenant, "k", &response(now)).await?;
    tenants::create(tx, TenantCreate::named("Another")).await?;
    tenants::update(tx, tenant.0, |tenant| tenant.name = "Changed".to_owned()).await?;
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    keys::create(tx, tenant, input).await?;
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Snapshot {
    contacts: Vec<Contact>,
    jobs: Vec<Job>,
    events: Vec<EventId>,
    deliveries: Vec<Delivery>,
    stored_response: Option<StoredResponse>,
    tenants: Vec<tenants::Tenant>,
    keys: Vec<keys::ApiKey>,
}

impl Harness {
    async fn snapshot(&self, tenant: TenantId) -> Snapshot {
        let contacts = self.all(tenant).await;
        let jobs = self.all(tenant).await;
        let events: Vec<_> = self.events(tenant).await.iter().map(|event| event.id).collect();
        self.read((tenant, contacts, jobs, events), async |tx, (tenant, contacts, jobs, events)| {
            let mut deliveries = Vec::new();
            for event in events {
                deliveries.extend(tx.list_deliveries(*tenant, &DeliveryFilter::of_event(*event)).await?);
            }
            let stored_response = tx.stored_response(*tenant, "k", Timestamp::from_micros(0)).await?;
            let (tenants, keys) = (tx.tenants(None, 1_000, false).await?, tx.api_keys(*tenant).await?);
            let (contacts, jobs, events) = (contacts.clone(), jobs.clone(), events.clone());
            Ok(Snapshot { contacts, jobs, events, deliveries, stored_response, tenants, keys })
        })
        .await
        .unwrap()
    }
}

pub(super) async fn a_failed_transaction_changes_nothing(h: Harness) {
    let tenant = h.tenant().await;
    h.create::<WebhookSubscription>(tenant, json!({ "url": "https://example.com", "events": ["*"] })).await.unwrap();
    let contact = h.contact(tenant, "ada@example.com").await.id;
    let before = h.snapshot(tenant).await;
    let failed = h.write((tenant, contact), async |tx, &(tenant, contact)| {
        make_changes(tx, tenant, contact).await?;
        Err::<(), _>(Error::NotFound)
    });
    assert_eq!(failed.await, Err(Error::NotFound));
    assert_eq!(h.snapshot(tenant).await, before);

    let done = h.write((tenant, contact), async |tx, &(tenant, contact)| make_changes(tx, tenant, contact).await).await;
    assert_eq!(done, Ok(()));
    let after = h.snapshot(tenant).await;
    assert_eq!((after.contacts.len(), after.jobs.len(), after.keys.len(), after.tenants.len()), (1, 1, 1, 2));
    assert_eq!((after.events.len(), after.deliveries.len()), (4, 4));
    assert_eq!(after.jobs[0].job_number, "JOB-0001");
    assert!(after.stored_response.is_some());
}

pub(super) async fn a_failed_transaction_returns_its_own_error(h: Harness) {
    for error in [
        Error::NotAllowed("INV-0001 is paid; it cannot be voided.".to_owned()),
        Error::EmailTaken { existing_id: Uuid::max() },
        Error::Store(StoreError::Internal("an error of the unit of work".to_owned())),
    ] {
        let in_work = error.clone();
        let written = h.write(in_work, async |_, in_work| {
            let error = in_work.clone();
            Err::<(), _>(error)
        });
        assert_eq!(written.await, Err(error.clone()));
        let in_work = error.clone();
        let read = h.read(in_work, async |_, in_work| {
            let error = in_work.clone();
            Err::<(), _>(error)
        });
        assert_eq!(read.await, Err(error));
    }
}

pub(super) async fn a_failed_transaction_uses_no_number(h: Harness) {
    let tenant = h.tenant().await;
    let mut numbers = Vec::new();
    let mut last = h.advance_clock(tenant).await;
    for at in 0..6 {
        let made = h.write((tenant, at), async |tx, &(tenant, at)| {
            let number = tx.next_number(tenant, NumberKind::Invoice).await?;
            let now = advance_clock(tx, tenant).await?;
            if at % 2 == 0 { Err(Error::NotFound) } else { Ok((number, now)) }
        });
        if let Ok((number, now)) = made.await {
            assert!(now > last);
            last = now;
            numbers.push(number);
        }
    }
    assert_eq!(numbers, [1, 2, 3]);
}

type WriteMethod = for<'t> fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<(), Error>>;

fn new_row(tx: &dyn Tx, tenant: TenantId) -> NewRecord {
    let now = tx.env().now();
    NewRecord { tenant_id: tenant, id: tx.env().id(now), now }
}

/// Every method that writes, with its name.
const WRITE_METHODS: &[(&str, WriteMethod)] = &[
    ("insert", |tx, tenant| {
        Box::pin(async move {
            let row = Contact::bare(new_row(tx, tenant));
            Ok(Repository::<Contact>::insert(tx, tenant, &row).await?)
        })
    }),
    ("update", |tx, tenant| {
        Box::pin(async move {
            let order = svc_core::pages::Order::NewestFirst { before: None };
            let listing =
                svc_core::pages::ListQuery { limit: 1, order, filter: svc_core::resources::Filter::<Contact>::none() };
            let mut row: Contact = Repository::<Contact>::list(tx, tenant, &listing).await?.remove(0);
            row.email = None;
            Ok(Repository::<Contact>::update(tx, tenant, &row).await?)
        })
    }),
    ("insert_tenant", |tx, _| {
        Box::pin(async move { tenants::create(tx, TenantCreate::named("Another")).await.map(drop) })
    }),
    ("update_tenant", |tx, tenant| {
        Box::pin(async move { tenants::update(tx, tenant.0, |tenant| tenant.name.clear()).await.map(drop) })
    }),
    ("advance_clock", |tx, tenant| Box::pin(async move { advance_clock(tx, tenant).await.map(drop) })),
    ("next_number", |tx, tenant| Box::pin(async move { Ok(tx.next_number(tenant, NumberKind::Job).await.map(drop)?) })),
    ("insert_api_key", |tx, tenant| {
        Box::pin(async move {
            let key = tx.api_keys(tenant).await?.remove(0);
            let key = keys::ApiKey { id: new_row(tx, tenant).id.into(), created_at: key.created_at.next(), ..key };
            Ok(tx.insert_api_key(&key, &[3; 32]).await?)
        })
    }),
    ("update_api_key", |tx, tenant| {
        Box::pin(async move {
            let mut key = tx.api_keys(tenant).await?.remove(0);
            key.revoked_at = Some(key.created_at);
            Ok(tx.update_api_key(&key).await?)
        })
    }),
    ("record_key_uses", |tx, tenant| {
        Box::pin(async move {
            let key = tx.api_keys(tenant).await?.remove(0);
            Ok(tx.record_key_uses(&[KeyUse { key_id: key.id, used_at: key.created_at }]).await?)
        })
    }),
    ("claim_signature", |tx, tenant| {
        Box::pin(async move {
            let key = tx.api_keys(tenant).await?.remove(0);
            Ok(tx.claim_signature(key.id, &[1; 32], key.created_at).await.map(drop)?)
        })
    }),
    ("store_response", |tx, tenant| {
        Box::pin(async move {
            let now = tx.env().now();
            Ok(tx.store_response(tenant, "k", &response(now)).await?)
        })
    }),
    ("delete_request_records", |tx, _| {
        Box::pin(async move {
            let end = Timestamp::from_micros(i64::MAX);
            Ok(tx.delete_request_records(end, end, 100).await.map(drop)?)
        })
    }),
    ("insert_event", |tx, tenant| {
        Box::pin(async move {
            let NewRecord { id, now, .. } = new_row(tx, tenant);
            let data = to_raw_value(&json!({ "id": id })).unwrap();
            Ok(tx
                .insert_event(&Event {
                    id: id.into(),
                    tenant_id: tenant,
                    kind: EventKind::StayCreated,
                    data,
                    created_at: now,
                    only_for: None,
                })
                .await?)
        })
    }),
    ("insert_delivery", |tx, tenant| {
        Box::pin(async move {
            let NewRecord { id, now, .. } = new_row(tx, tenant);
            let event = tx.events_after(tenant, Timestamp::from_micros(0), 1).await?.remove(0);
            let subscription =
                tx.matching_subscriptions(tenant, EventKind::StayCreated).await?.remove(0).subscription_id;
            let row = Delivery { created_at: now, ..event.delivery_to(id.into(), subscription, true) };
            Ok(tx.insert_delivery(&row).await?)
        })
    }),
    ("insert_payment", |tx, tenant| {
        Box::pin(async move {
            let NewRecord { id, now, .. } = new_row(tx, tenant);
            let order = svc_core::pages::Order::NewestFirst { before: None };
            let listing =
                svc_core::pages::ListQuery { limit: 1, order, filter: svc_core::resources::Filter::<Invoice>::none() };
            let invoice_id = Repository::<Invoice>::list(tx, tenant, &listing).await?.remove(0).id;
            let amount = Amount::from_minor(1, 2);
            let payment = Payment {
                id: id.into(),
                invoice_id,
                amount,
                currency: Currency::AUD,
                paid_at: now,
                is_refund: false,
                method: None,
                reference: None,
            };
            Ok(tx.insert_payment(tenant, &payment).await?)
        })
    }),
];

pub(super) async fn a_read_cannot_write(h: Harness) {
    let tenant = h.tenant().await;
    h.create::<WebhookSubscription>(tenant, json!({ "url": "https://example.com", "events": ["*"] })).await.unwrap();
    h.insert(tenant, Invoice::bare).await;
    let contact = h.contact(tenant, "ada@example.com").await.id;
    h.write((tenant, contact), async |tx, &(tenant, contact)| make_changes(tx, tenant, contact).await).await.unwrap();
    let before = h.snapshot(tenant).await;
    for (name, method) in WRITE_METHODS {
        let refused = h.read((method, tenant), async |tx, &(method, tenant)| method(tx, tenant).await).await;
        assert!(matches!(refused, Err(Error::Store(_))), "{name}: {refused:?}");
        assert_eq!(h.snapshot(tenant).await, before, "{name}");
    }
    for (name, method) in WRITE_METHODS {
        let written = h.write((method, tenant), async |tx, &(method, tenant)| method(tx, tenant).await).await;
        assert_eq!(written, Ok(()), "{name} succeeds in a write");
    }
    let after_reads = h.write(tenant, async |tx, &tenant| Ok(tx.next_number(tenant, NumberKind::Job).await?));
    assert_eq!(after_reads.await, Ok(3), "two writes used a number, and no read did");
}

pub(super) async fn a_read_in_place_is_a_read(h: Harness) {
    let tenant = h.tenant().await;
    for at in 0..10 {
        let id = h.contact(tenant, &format!("c{at}@example.com")).await.id;
        let read = |_| {
            h.store.read_in_place("test", (tenant, id), async |tx, &(tenant, id)| {
                crud::get::<Contact>(tx, tenant, id).await
            })
        };
        let seen = join_all((0..4).map(read)).await;
        assert!(seen.iter().all(Result::is_ok), "{seen:?}");
    }
    let refused = h
        .store
        .read_in_place("test", tenant, async |tx, &tenant| create_contact(tx, tenant, "ada@example.com").await)
        .await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
    assert_eq!(h.all::<Contact>(tenant).await.len(), 10);
    let missing = h
        .store
        .read_in_place("test", tenant, async |tx, &tenant| crud::get::<Contact>(tx, tenant, Id::nil()).await)
        .await;
    assert_eq!(missing, Err(Error::NotFound));
}

pub(super) async fn a_transaction_sees_its_own_writes(h: Harness) {
    let tenant = h.tenant().await;
    let links = Links::of(&h, tenant).await;
    let work = h.write((tenant, links), async |tx, &(tenant, links)| {
        let ada = create_contact(tx, tenant, "ada@example.com").await?;
        let taken = create_contact(tx, tenant, "ADA@example.com").await;
        let got: Contact = crud::get(tx, tenant, ada.id).await?;
        let now = advance_clock(tx, tenant).await?;
        let full = Job::full(NewRecord { tenant_id: tenant, id: tx.env().id(now), now }, links);
        Repository::<Job>::insert(tx, tenant, &full).await?;
        let read_back = Repository::<Job>::get(tx, tenant, full.id).await?;
        tx.store_response(tenant, "k", &response(now)).await?;
        let stored = tx.stored_response(tenant, "k", Timestamp::from_micros(0)).await?;
        let events = tx.events_after(tenant, Timestamp::from_micros(0), 10).await?.len();
        let numbers = [create_job(tx, tenant).await?.job_number, create_job(tx, tenant).await?.job_number];
        let ada = ada.id;
        Ok((taken, got.id == ada, ada, read_back == Some(full), stored.is_some(), events, numbers))
    });
    let (taken, got, ada, read_back, stored, events, numbers) = work.await.unwrap();
    assert_eq!(taken, Err(Error::EmailTaken { existing_id: ada.uuid() }));
    assert!(got && read_back && stored);
    assert_eq!((events, numbers), (1, ["JOB-0001".to_owned(), "JOB-0002".to_owned()]));
}

/// A store may keep what a transaction has read of the tenants that it has locked.
pub(super) async fn a_transaction_sees_what_it_changes_of_its_tenant(h: Harness) {
    let tenant = h.tenant().await;
    let (key, hash) = h.key_with_hash(tenant).await;
    let work = h.write((tenant, hash, key.id), async |tx, &(tenant, hash, id)| {
        let mut times = Vec::new();
        for _ in 0..3 {
            times.extend([tx.advance_clock(tenant).await?, tx.clock(tenant).await?]);
        }
        let kind = EventKind::StayCreated;
        let mut matching = vec![tx.matching_subscriptions(tenant, kind).await?.len()];
        let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
        let webhook = crud::create::<WebhookSubscription>(tx, tenant, WebhookCreate::from_body(body)?).await?;
        matching.push(tx.matching_subscriptions(tenant, kind).await?.len());
        let body = br#"{"enabled": false}"#;
        crud::update::<WebhookSubscription>(tx, tenant, webhook.id, WebhookUpdate::from_body(body)?).await?;
        matching.push(tx.matching_subscriptions(tenant, kind).await?.len());
        let mut found = vec![tx.lock_credential(tenant, &hash).await?];
        tenants::update(tx, tenant.0, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await?;
        found.push(tx.lock_credential(tenant, &hash).await?);
        keys::revoke(tx, id).await?;
        found.push(tx.lock_credential(tenant, &hash).await?);
        let found = found.into_iter().flatten().map(|found| (found.developer_access, found.revoked));
        let found = found.collect::<Vec<_>>();
        times.extend([tx.advance_clock(tenant).await?, tx.clock(tenant).await?]);
        Ok((times, matching, found))
    });
    let (times, matching, found) = work.await.unwrap();
    assert!(times.chunks(2).all(|pair| pair[0] == pair[1]), "{times:?}");
    assert!(times.windows(3).all(|times| times[0] < times[2]), "{times:?}");
    assert_eq!(matching, [0, 1, 0]);
    let (approved, suspended) = (DeveloperAccess::Approved, DeveloperAccess::Suspended);
    assert_eq!(found, [(approved, false), (suspended, false), (suspended, true)]);
    let stored = h.read(tenant, async |tx, &tenant| Ok(tx.clock(tenant).await?)).await.unwrap();
    assert_eq!(stored, times[7]);
    assert!(Some(h.advance_clock(tenant).await) > stored);
}

/// Writes that wait for each other may share a transaction.
pub(super) async fn a_write_that_fails_leaves_nothing_to_those_beside_it(h: Harness) {
    let tenant = h.tenant().await;
    let (key, hash) = h.key_with_hash(tenant).await;
    let succeeds = || {
        h.write((tenant, hash), async |tx, &(tenant, hash)| {
            let found = tx.lock_credential(tenant, &hash).await?;
            assert!(found.is_some_and(|found| !found.revoked && found.developer_access == DeveloperAccess::Approved));
            Ok(create_job(tx, tenant).await?.updated_at)
        })
    };
    let fails = || {
        h.write((tenant, key.id, hash), async |tx, &(tenant, id, hash)| {
            let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
            crud::create::<WebhookSubscription>(tx, tenant, WebhookCreate::from_body(body)?).await?;
            keys::revoke(tx, id).await?;
            tenants::update(tx, tenant.0, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await?;
            let matching = tx.matching_subscriptions(tenant, EventKind::JobCreated).await?.len();
            let found = tx.lock_credential(tenant, &hash).await?;
            assert!(matching == 1 && found.is_some_and(|found| found.revoked));
            create_job(tx, tenant).await?;
            Err(Error::PreconditionFailed)
        })
    };
    let mut writes: Vec<BoxFuture<'_, Result<Timestamp, Error>>> = Vec::new();
    for _ in 0..PARALLEL / 2 {
        writes.extend([Box::pin(succeeds()) as BoxFuture<'_, _>, Box::pin(fails())]);
    }
    let (done, failed): (Vec<_>, Vec<_>) = join_all(writes).await.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), failed), (PARALLEL / 2, vec![Err(Error::PreconditionFailed); PARALLEL / 2]));
    let times: std::collections::BTreeSet<Timestamp> = done.into_iter().map(Result::unwrap).collect();
    assert_eq!(times.len(), PARALLEL / 2, "each has a time of its own");
    assert!(times.last() < Some(&h.advance_clock(tenant).await));
    let deliveries =
        h.read(tenant, async |tx, &tenant| Ok(tx.list_deliveries(tenant, &DeliveryFilter::default()).await?));
    assert_eq!(deliveries.await, Ok(Vec::new()));
}

pub(super) async fn a_read_sees_every_write_before_it(h: Harness) {
    let tenant = h.tenant().await;
    for at in 0..50 {
        let contact = h.contact(tenant, &format!("c{at}@example.com")).await;
        let reads = join_all((0..4).map(|_| h.row::<Contact>(tenant, contact.id))).await;
        assert_eq!(reads, vec![Some(contact); 4]);
    }
}

pub(super) async fn a_read_sees_whole_transactions(h: Harness) {
    let tenant = h.tenant().await;
    let pair = |at: usize| {
        h.write((tenant, at), async |tx, &(tenant, at)| {
            create_contact(tx, tenant, &format!("a{at}@example.com")).await?;
            create_contact(tx, tenant, &format!("b{at}@example.com")).await?;
            Ok(0)
        })
    };
    let count = || {
        h.read(tenant, async |tx, &tenant| {
            let rows = tx.events_after(tenant, Timestamp::from_micros(0), 1_000).await?.len();
            let again = tx.events_after(tenant, Timestamp::from_micros(0), 1_000).await?.len();
            Ok(if rows == again { rows } else { 1 })
        })
    };
    let mut running: Vec<BoxFuture<'_, Result<usize, Error>>> = Vec::new();
    for at in 0..PARALLEL {
        running.push(Box::pin(pair(at)));
        running.push(Box::pin(count()));
        running.push(Box::pin(count()));
    }
    for counted in join_all(running).await {
        assert_eq!(counted.unwrap() % 2, 0, "a part of a transaction was seen");
    }
    assert_eq!(count().await, Ok(2 * PARALLEL));
}

pub(super) async fn a_transaction_completes_when_its_caller_is_dropped(h: Harness) {
    let tenant = h.tenant().await;
    let mut abandoned = Box::pin(h.write(tenant, async |tx, &tenant| {
        create_contact(tx, tenant, "ada@example.com").await?;
        create_job(tx, tenant).await
    }));
    // Poll the future once and drop it, as when a client disconnects.
    let _ = (&mut abandoned).now_or_never();
    drop(abandoned);
    for _ in 0..1_000 {
        h.advance_clock(tenant).await;
        if !h.events(tenant).await.is_empty() {
            break;
        }
    }
    assert_eq!((h.all::<Contact>(tenant).await.len(), h.all::<Job>(tenant).await.len()), (1, 1));
    assert_eq!(h.events(tenant).await.len(), 2);
}

pub(super) async fn concurrent_writers_of_a_tenant_are_serialized(h: Harness) {
    let tenant = h.tenant().await;
    let creates = (0..PARALLEL).map(|_| h.create::<Job>(tenant, json!({ "title": "x" })));
    let mut jobs: Vec<Job> = join_all(creates).await.into_iter().map(Result::unwrap).collect();
    jobs.sort_by_key(|job| job.created_at);
    assert!(jobs.is_sorted_by(|a, b| a.created_at < b.created_at), "times are unique");
    let numbers: Vec<String> = jobs.iter().map(|job| job.job_number.clone()).collect();
    let want: Vec<String> = (1..=PARALLEL).map(|number| format!("JOB-{number:04}")).collect();
    assert_eq!(numbers, want, "numbers and times grow together");
    jobs.reverse();
    assert_eq!(h.all::<Job>(tenant).await, jobs);
    let events: Vec<String> = h.events(tenant).await.iter().map(|event| event.data.get().to_owned()).collect();
    let want: Vec<String> = jobs.iter().rev().map(|job| serde_json::to_string(job).unwrap()).collect();
    assert_eq!(events, want, "events are in the order of the commits");
}

pub(super) async fn concurrent_tenants_do_not_conflict(h: Harness) {
    let tenants = [h.tenant().await, h.tenant().await];
    let creates = (0..PARALLEL).map(|at| h.create::<Job>(tenants[at % 2], json!({ "title": "x" })));
    let jobs: Vec<Job> = join_all(creates).await.into_iter().map(Result::unwrap).collect();
    for (which, tenant) in tenants.into_iter().enumerate() {
        let mut mine: Vec<&Job> = jobs.iter().skip(which).step_by(2).collect();
        mine.sort_by_key(|job| std::cmp::Reverse(job.created_at));
        assert_eq!(h.all::<Job>(tenant).await.iter().collect::<Vec<_>>(), mine);
        let numbers: Vec<String> = mine.iter().rev().map(|job| job.job_number.clone()).collect();
        let want: Vec<String> = (1..=PARALLEL / 2).map(|number| format!("JOB-{number:04}")).collect();
        assert_eq!(numbers, want);
        assert_eq!(h.events(tenant).await.len(), PARALLEL / 2);
    }
}

/// A store may commit several units of work at once. They succeed and fail independently.
pub(super) async fn a_failure_does_not_affect_concurrent_transactions(h: Harness) {
    let tenant = h.tenant().await;
    let fails = |at: usize| at % 3 == 1;
    let creates = (0..PARALLEL).map(|at| {
        h.write((tenant, fails(at)), async |tx, &(tenant, fails)| {
            let job = create_job(tx, tenant).await?;
            if fails { Err(Error::NotFound) } else { Ok(job) }
        })
    });
    let mut made = Vec::new();
    for (at, result) in join_all(creates).await.into_iter().enumerate() {
        match result {
            Ok(job) => made.push(job),
            Err(error) => assert_eq!((fails(at), error), (true, Error::NotFound)),
        }
    }
    assert_eq!(made.len(), (0..PARALLEL).filter(|at| !fails(*at)).count());
    made.sort_by_key(|job| std::cmp::Reverse(job.created_at));
    assert_eq!(h.all::<Job>(tenant).await, made);
    let want: Vec<String> = (1..=made.len()).rev().map(|number| format!("JOB-{number:04}")).collect();
    assert_eq!(made.into_iter().map(|job| job.job_number).collect::<Vec<_>>(), want);
    assert_eq!(h.events(tenant).await.len(), want.len());
}

/// Each unit of work reads a counter, increments it and writes it back. No increment may be lost.
pub(super) async fn a_locked_tenant_is_changed_by_nobody_else(h: Harness) {
    let tenant = h.tenant().await;
    let contact = h.contact(tenant, "ada@example.com").await.id;
    let counted =
        h.write(tenant, async |tx, &tenant| tenants::update(tx, tenant.0, |tenant| tenant.name = "0".to_owned()).await);
    counted.await.unwrap();
    fn next(text: &str) -> String {
        (text.parse::<usize>().unwrap_or_default() + 1).to_string()
    }
    let counts = (0..PARALLEL).map(|at| {
        h.write((at, tenant, contact), async |tx, &(at, tenant, contact)| {
            if at % 2 == 0 {
                tx.lock_tenant(tenant).await?;
                let row = Repository::<Contact>::get(tx, tenant, contact).await?.ok_or(Error::NotFound)?;
                let count = next(row.phone.as_ref().map_or("0", |phone| phone.as_str()));
                let row = Contact { phone: Some(Text::from_stored(&count)), ..row };
                Repository::<Contact>::update(tx, tenant, &row).await?;
            } else {
                tenants::update(tx, tenant.0, |tenant| tenant.name = next(&tenant.name)).await?;
            }
            Ok(())
        })
    });
    assert!(join_all(counts).await.into_iter().all(|counted| counted == Ok(())));
    let half = (PARALLEL / 2).to_string();
    let row: Contact = h.row(tenant, contact).await.unwrap();
    assert_eq!(row.phone.as_ref().map(|phone| phone.as_str()), Some(half.as_str()));
    let name = h.read(tenant, async |tx, &tenant| Ok(tenants::get(tx, tenant).await?.name));
    assert_eq!(name.await, Ok(half));
}

/// Nothing of a locked tenant changes, including the rows of its lists.
pub(super) async fn lock_tenant_waits_for_a_concurrent_writer(h: Harness) {
    let tenant = h.tenant().await;
    let creates = (0..PARALLEL).map(|at| {
        h.write((tenant, at), async |tx, &(tenant, at)| {
            assert!(tx.lock_tenant(tenant).await?);
            let count = tx.events_after(tenant, Timestamp::from_micros(0), 1_000).await?.len();
            create_contact(tx, tenant, &format!("c{at}@example.com")).await?;
            Ok(count)
        })
    });
    let mut counts: Vec<usize> = join_all(creates).await.into_iter().map(Result::unwrap).collect();
    counts.sort_unstable();
    assert_eq!(counts, (0..PARALLEL).collect::<Vec<_>>(), "each unit of work saw all before it");
}

pub(super) async fn a_closed_store_refuses_everything(h: Harness) {
    let tenant = h.tenant().await;
    h.store.close().await;
    let closed = Error::Store(StoreError::Closed);
    assert_eq!(h.read(tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await, Err(closed.clone()));
    let in_place = h.store.read_in_place("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?));
    assert_eq!(in_place.await, Err(closed.clone()));
    assert_eq!(
        h.write(tenant, async |tx, &tenant| create_contact(tx, tenant, "ada@example.com").await).await,
        Err(closed)
    );
    assert_eq!(h.store.check_writable(), Err(StoreError::Closed));
    h.store.close().await;
}
