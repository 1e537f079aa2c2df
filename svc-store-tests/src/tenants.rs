//! Tenants: their settings, clocks and document numbers.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::json;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::tenants::{self, DeveloperAccess, NumberKind, Tenant, TenantCreate};
use svc_core::error::Error;
use svc_core::resources::Resource as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::{DeliveryFilter, OwnedKind};
use svc_core::values::{Currency, Id, TenantId, TimeZone, Timestamp};
use svc_core::webhooks::streams::{AccountBehind, Stream, StreamKey};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::Harness;
use crate::deliveries::{call, plus};
use crate::replays::bare as bare_replay;
use crate::samples::Sample as _;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Harness {
    async fn settings(&self, tenant: TenantId) -> Option<Tenant> {
        self.read(tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await.unwrap()
    }

    async fn number(&self, tenant: TenantId, kind: NumberKind) -> u64 {
        self.write((tenant, kind), async |tx, &(tenant, kind)| Ok(tx.next_number(tenant, kind).await?)).await.unwrap()
    }
}

pub(super) async fn settings_are_stored(h: Harness) {
    let first = h.settings(h.tenant().await).await.unwrap();
    assert_eq!(first.created_at, h.store.env().now());
    assert_eq!((&*first.name, first.unique_contact_email), ("Harbour Plumbing", true));
    assert_eq!((&first.time_zone, first.currency), (&TimeZone::UTC, Currency::AUD));
    assert_eq!(first.developer_access, DeveloperAccess::Approved);
    assert_eq!(first.limits, RateLimits::default());
    let mut all = vec![first];
    for (zone, currency) in [("Australia/Sydney", "JPY"), ("America/Argentina/Buenos_Aires", "CLF"), ("UTC", "KWD")] {
        h.clock.advance(HOUR);
        let input = TenantCreate {
            name: format!("Bäckerei „{zone}“ 漢 🔧 O'Brien"),
            time_zone: TimeZone::parse(zone).unwrap(),
            currency: Currency::parse(currency).unwrap(),
            developer_access: DeveloperAccess::Pending,
        };
        let tenant = h.write(input, async |tx, input| tenants::create(tx, input.clone()).await).await.unwrap();
        assert_eq!(h.settings(tenant.id).await, Some(tenant.clone()));
        all.push(tenant);
    }
    for access in DeveloperAccess::ALL.iter().copied() {
        let id = all[1].id.0;
        all[1] = h
            .write((id, access), async |tx, (id, access)| {
                tenants::update(tx, *id, move |tenant| {
                    tenant.name = access.to_string();
                    tenant.developer_access = *access;
                    tenant.time_zone = TimeZone::UTC;
                    tenant.currency = Currency::parse("EUR").unwrap_or(Currency::AUD);
                    tenant.unique_contact_email = !tenant.unique_contact_email;
                    tenant.limits.rate_limit = NonZeroU32::new(600);
                    tenant.max_webhooks = if tenant.max_webhooks.is_none() { Some(1000) } else { None };
                })
                .await
            })
            .await
            .unwrap();
        assert_eq!(h.settings(all[1].id).await.as_ref(), Some(&all[1]));
    }
    let listed = h.read((), async |tx, ()| Ok(tx.tenants(None, 1_000, false).await?)).await.unwrap();
    assert_eq!(listed, all, "oldest first, and the others are unchanged");
    for (at, after) in all.iter().enumerate() {
        for limit in [1, 2, 1_000] {
            let after = Some(after.id);
            let page = h
                .read((after, limit), async |tx, &(after, limit)| Ok(tx.tenants(after, limit, false).await?))
                .await
                .unwrap();
            assert_eq!(page, all[at + 1..all.len().min(at + 1 + limit as usize)], "{at} {limit}");
        }
    }
    assert_eq!(h.settings(TenantId(Uuid::nil())).await, None);
}

pub(super) async fn tenants_of_a_record_are_found_by_its_id(h: Harness) {
    let (one, other) = (h.tenant().await, h.tenant().await);
    let input = json!({ "url": "https://example.com", "events": ["*"] });
    let subscription = h.create::<WebhookSubscription>(one, input).await.unwrap();
    let contact = h.contact(one, "ada@example.com").await.id;
    let quote: Quote = h.create(one, json!({ "contact_id": contact, "total": 1 })).await.unwrap();
    let invoice = h.insert(one, Invoice::bare).await;
    let event = h.events(one).await[0].id;
    let filter = DeliveryFilter::of_event(event);
    let listed = h.read((one, filter), async |tx, (one, filter)| Ok(tx.list_deliveries(*one, filter).await?));
    let delivery = listed.await.unwrap()[0].id;
    let owners =
        async |kind, id| h.read((kind, id), async |tx, &(kind, id)| Ok(tx.owners(kind, id).await?)).await.unwrap();
    let records = [
        (OwnedKind::Invoice, invoice.id.uuid()),
        (OwnedKind::Quote, quote.id.uuid()),
        (OwnedKind::Subscription, subscription.id.uuid()),
        (OwnedKind::Delivery, delivery.uuid()),
    ];
    for (kind, id) in records {
        assert_eq!(owners(kind, id).await, [one], "{kind:?}");
        for (other_kind, other_id) in records.iter().filter(|(_, other)| *other != id) {
            assert_eq!(owners(kind, *other_id).await, [], "{kind:?} {other_kind:?}");
        }
    }
    h.write((other, invoice), async |tx, (other, invoice)| Ok(Invoice::repository(tx).insert(*other, invoice).await?))
        .await
        .unwrap();
    assert_eq!(owners(OwnedKind::Invoice, records[0].1).await, [one.min(other), one.max(other)]);
    h.delete::<WebhookSubscription>(one, subscription.id).await.unwrap();
    assert_eq!(owners(OwnedKind::Subscription, subscription.id.uuid()).await, [one], "it is deleted");
}

pub(super) async fn tenants_with_old_events_are_found(h: Harness) {
    let (old, new, none) = (h.tenant().await, h.tenant().await, h.tenant().await);
    let replayed = h.tenant().await;
    h.contact(old, "ada@example.com").await;
    let subscription = h.endpoint(replayed).await;
    let now = h.store.env().now();
    h.add_replay(&bare_replay(replayed, subscription, h.store.env().id(now), now)).await;
    h.clock.advance(HOUR);
    let before = h.store.env().now();
    h.contact(new, "ada@example.com").await;
    let page = async |after, limit| {
        let page = h.read((after, before, limit), async |tx, &(after, before, limit)| {
            Ok(tx.tenants_by_history(after, before, limit).await?)
        });
        page.await.unwrap()
    };
    let mut all = vec![(old, true), (new, false), (none, false), (replayed, true)];
    all.sort_by_key(|(tenant, _)| *tenant);
    let start = TenantId(Uuid::nil());
    assert_eq!(page(start, 10).await, all);
    assert_eq!(page(start, 2).await, all[..2]);
    assert_eq!(page(all[1].0, 2).await, all[2..]);
    assert_eq!(page(all[3].0, 2).await, []);
}

pub(super) async fn a_clock_can_be_set_back_to_the_latest_record(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let clock = async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.clock(tenant).await?)).await.unwrap();
    let latest = async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.latest_time(tenant).await?)).await.unwrap();
    let start = h.store.env().now();
    assert_eq!((clock(tenant).await, latest(tenant).await), (Some(start), None));
    assert_eq!(clock(TenantId(Uuid::nil())).await, None);
    let ahead = async |at, after| {
        h.read((at, after), async |tx, &(at, after)| Ok(tx.tenants_ahead(at, after, 10).await?)).await.unwrap()
    };
    let mut both = [tenant, other];
    both.sort();
    assert_eq!(ahead(Timestamp::from_micros(start.as_micros() - 1), None).await, both);
    assert_eq!(ahead(start, None).await, [], "only later ones");
    let last = h.advance_clock(other).await;
    assert_eq!((ahead(start, None).await, ahead(start, Some(other)).await), (vec![other], vec![]));
    assert_eq!((clock(other).await, latest(other).await), (Some(last), None), "it was given to nothing");

    // Each kind of record has the latest time once.
    let contact = h.contact(tenant, "ada@example.com").await;
    assert_eq!(latest(tenant).await, Some(contact.updated_at));
    let hook = json!({ "url": "https://example.com", "events": ["*"] });
    let mut subscription = h.create::<WebhookSubscription>(tenant, hook).await.unwrap();
    assert_eq!(latest(tenant).await, Some(subscription.updated_at));
    subscription.stopped_at = Some(h.advance_clock(tenant).await);
    let stopped = subscription.clone();
    h.write((tenant, stopped), async |tx, (tenant, stopped)| {
        Ok(WebhookSubscription::repository(tx).update(*tenant, stopped).await?)
    })
    .await
    .unwrap();
    assert_eq!(latest(tenant).await, subscription.stopped_at);
    let quote: Quote = h.create(tenant, json!({ "contact_id": contact.id, "total": 1 })).await.unwrap();
    assert_eq!(latest(tenant).await, Some(quote.updated_at));
    let job: Job = h.create(tenant, json!({ "title": "x", "status": "scheduled" })).await.unwrap();
    let event = h.events(tenant).await.last().unwrap().created_at;
    assert!(event > job.updated_at, "a second event has a time of its own");
    assert_eq!(latest(tenant).await, Some(event));
    h.delete::<Contact>(tenant, contact.id).await.unwrap();
    let deleted = clock(tenant).await;
    assert_eq!(latest(tenant).await, deleted);
    assert_eq!(latest(other).await, None, "each tenant has its own");

    h.advance_clock(tenant).await;
    let back = deleted.unwrap();
    h.write((tenant, back), async |tx, &(tenant, back)| Ok(tx.set_clock(tenant, back).await?)).await.unwrap();
    assert_eq!((clock(tenant).await, h.advance_clock(tenant).await), (deleted, back.next()));
}

pub(super) async fn positions_go_back_with_the_clock(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let now = h.advance_clock(tenant).await;
    let [begun, behind, ahead, late] = [now, plus(now, 50), plus(now, 100), plus(now, 200)];
    let own = |number| StreamKey { tenant_id: tenant, id: Id::new(Uuid::from_u128(number)) };
    // Two have positions, and two are where they began, one of which is the server's.
    let streams = [(own(1), begun), (own(2), begun), (own(3), late), (StreamKey::SERVER, late)];
    for (key, begins_at) in streams {
        let stream = Stream::new(key, begins_at);
        h.write(stream, async |tx, stream| Ok(tx.insert_stream(stream).await?)).await.unwrap();
    }
    h.write((tenant, late), async |tx, &(tenant, late)| Ok(tx.set_clock(tenant, late).await?)).await.unwrap();
    call!(h.advance_stream(own(1), tenant, ahead));
    call!(h.advance_stream(own(2), tenant, now));
    for tenant in [tenant, other] {
        let until = ahead;
        let index = h.write((tenant, until), async |tx, &(t, until)| Ok(tx.store_texts(t, &[], until).await?));
        index.await.unwrap();
    }
    h.write((tenant, behind), async |tx, &(tenant, behind)| Ok(tx.set_clock(tenant, behind).await?)).await.unwrap();
    let written = h.advance_clock(tenant).await;
    for ((key, begins_at), position) in streams.into_iter().zip([behind, now, behind, behind]) {
        let (stream, clock) = (Stream::new(key, begins_at), written);
        let expected = AccountBehind { tenant_id: tenant, sent_until: position, clock, is_sandbox: false };
        let found = h.read(stream, async |tx, stream| Ok(tx.accounts_behind(stream, None, 10).await?)).await.unwrap();
        assert_eq!(found.into_iter().find(|account| account.tenant_id == tenant), Some(expected), "{key:?}");
    }
    let until = async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.indexed_until(tenant).await?)).await.unwrap();
    assert_eq!((until(tenant).await, until(other).await), (Some(behind), Some(ahead)), "that of its account alone");
}

pub(super) async fn tenants_are_found_by_their_next_overdue_check(h: Harness) {
    let start = h.store.env().now();
    let (first, second, third) = (h.tenant().await, h.tenant().await, h.tenant().await);
    let hour = |n| start.checked_add(HOUR * n).unwrap();
    let found = async |now, latest, limit| {
        let found = h.read((now, latest, limit), async |tx, &(now, latest, limit)| {
            Ok(tx.tenants_to_check_overdue(now, latest, limit).await?)
        });
        found.await.unwrap()
    };
    let check_at =
        async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.overdue_check_at(tenant).await?)).await.unwrap();
    assert_eq!(check_at(first).await, Some(TimeZone::UTC.next_date_begins(start)), "at the next midnight");
    assert_eq!(check_at(TenantId(Uuid::nil())).await, None);
    for (tenant, at) in [(first, hour(3)), (second, hour(1)), (third, hour(90))] {
        let set = h.write((tenant, at), async |tx, &(tenant, at)| Ok(tx.set_overdue_check_at(tenant, at).await?));
        set.await.unwrap();
        assert_eq!(check_at(tenant).await, Some(at));
    }
    assert_eq!(found(start, hour(90), 10).await, []);
    assert_eq!(found(hour(1), hour(90), 10).await, [second], "at the time itself");
    assert_eq!(found(hour(4), hour(90), 10).await, [second, first], "the earliest check first");
    assert_eq!(found(hour(4), hour(90), 1).await, [second]);
    assert_eq!(found(start, hour(89), 10).await, [third], "it was planned under a clock that was ahead");
    assert_eq!(found(hour(4), hour(89), 10).await, [second, first, third]);
    assert_eq!(found(hour(4), hour(89), 2).await, [second, first]);
    let zone = h.write(first, async |tx, &first| {
        tenants::update(tx, first.0, |tenant| tenant.time_zone = TimeZone::parse("Asia/Tokyo").unwrap()).await
    });
    zone.await.unwrap();
    assert_eq!(check_at(first).await, Some(start), "a change of the time zone plans a check at once");
}

pub(super) async fn each_advance_of_the_clock_is_later(h: Harness) {
    let start = h.store.env().now();
    let tenant = h.tenant().await;
    let mut want = start;
    for _ in 0..3 {
        want = want.next();
        assert_eq!(h.advance_clock(tenant).await, want, "the wall clock stands still");
    }
    h.clock.advance(HOUR);
    want = h.store.env().now();
    assert_eq!(h.advance_clock(tenant).await, want, "the wall clock is ahead");
    h.clock.set(start);
    for _ in 0..3 {
        want = want.next();
        assert_eq!(h.advance_clock(tenant).await, want, "the wall clock jumped back an hour");
    }
    h.clock.set(want);
    want = want.next();
    assert_eq!(h.advance_clock(tenant).await, want, "the wall clock shows the last time given");
    let both =
        h.write(tenant, async |tx, &tenant| Ok([advance_clock(tx, tenant).await?, advance_clock(tx, tenant).await?]));
    assert_eq!(both.await.unwrap(), [want.next(), want.next().next()], "twice in one transaction");
}

pub(super) async fn each_tenant_has_its_own_clock(h: Harness) {
    let (first, second) = (h.tenant().await, h.tenant().await);
    let start = h.store.env().now();
    for _ in 0..5 {
        h.advance_clock(first).await;
    }
    assert_eq!(h.advance_clock(second).await, start.next());
}

pub(super) async fn an_update_of_settings_keeps_the_clock(h: Harness) {
    let tenant = h.tenant().await;
    let last = h.advance_clock(tenant).await;
    h.number(tenant, NumberKind::Job).await;
    let renamed = h.write(tenant, async |tx, &tenant| {
        tenants::update(tx, tenant.0, |tenant| tenant.name = "New".to_owned()).await
    });
    renamed.await.unwrap();
    assert_eq!(h.advance_clock(tenant).await, last.next());
    assert_eq!(h.number(tenant, NumberKind::Job).await, 2);
}

pub(super) async fn an_unknown_tenant_has_no_clock(h: Harness) {
    h.tenant().await;
    let unknown = TenantId(Uuid::nil());
    let clock = h.write(unknown, async |tx, &unknown| Ok(tx.advance_clock(unknown).await?)).await;
    assert_eq!(clock, Ok(None));
}

pub(super) async fn locking_does_not_advance_the_clock(h: Harness) {
    let tenant = h.tenant().await;
    let unknown = TenantId(Uuid::nil());
    let last = h.advance_clock(tenant).await;
    let locked = h.write((tenant, unknown), async |tx, &(tenant, unknown)| {
        Ok([tx.lock_tenant(tenant).await?, tx.lock_tenant(unknown).await?, tx.lock_tenant(tenant).await?])
    });
    assert_eq!(locked.await, Ok([true, false, true]));
    assert_eq!(h.advance_clock(tenant).await, last.next());
    let both = h.write(tenant, async |tx, &tenant| {
        tx.lock_tenant(tenant).await?;
        advance_clock(tx, tenant).await
    });
    assert_eq!(both.await, Ok(last.next().next()), "the clock can be advanced after locking");
}

pub(super) async fn creation_times_are_unique(h: Harness) {
    let tenant = h.tenant().await;
    let start = h.store.env().now();
    let mut times = Vec::new();
    for at in 0..12 {
        match at {
            4 => h.clock.advance(HOUR),
            8 => h.clock.set(Timestamp::from_micros(start.as_micros() - 1)),
            _ => {}
        }
        times.push(h.contact(tenant, &format!("c{at}@example.com")).await.created_at);
        let job: Job = h.create(tenant, json!({ "title": "x", "status": "scheduled" })).await.unwrap();
        times.push(job.created_at);
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    let mut stored: Vec<Timestamp> = h.all::<Contact>(tenant).await.iter().map(|row| row.created_at).collect();
    stored.extend(h.all::<Job>(tenant).await.iter().map(|row| row.created_at));
    stored.sort_unstable();
    assert_eq!(stored, times);
}

pub(super) async fn numbers_have_no_gaps(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    for want in 1..=3 {
        for kind in NumberKind::ALL.iter().copied() {
            assert_eq!(h.number(tenant, kind).await, want);
        }
    }
    assert_eq!(h.number(other, NumberKind::Quote).await, 1, "each tenant has its own");
    let contact = h.contact(tenant, "ada@example.com").await.id;
    for want in ["QUO-0004", "QUO-0005"] {
        let quote: Quote = h.create(tenant, json!({ "contact_id": contact, "total": 1 })).await.unwrap();
        assert_eq!(quote.quote_number, want);
    }
    // All in one transaction, as ten thousand durable commits would be slow.
    let last = h.write(tenant, async |tx, &tenant| {
        let mut last = 0;
        for _ in 4..=9_999 {
            last = tx.next_number(tenant, NumberKind::Job).await?;
        }
        Ok(last)
    });
    assert_eq!(last.await, Ok(9_999));
    let job: Job = h.create(tenant, json!({ "title": "x" })).await.unwrap();
    assert_eq!(job.job_number, "JOB-10000", "numbers grow beyond four digits");
}

pub(super) async fn numbers_continue_after_a_raised_number(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let raise = async |to: u64| {
        let raised =
            h.write((tenant, to), async |tx, &(tenant, to)| Ok(tx.raise_number(tenant, NumberKind::Job, to).await?));
        raised.await.unwrap();
    };
    raise(7).await;
    assert_eq!(h.number(tenant, NumberKind::Job).await, 8, "numbers start after the raised number");
    raise(8).await;
    raise(3).await;
    assert_eq!(h.number(tenant, NumberKind::Job).await, 9, "it never goes back");
    raise(tenants::MAX_NUMBER).await;
    assert_eq!(h.number(tenant, NumberKind::Job).await, tenants::MAX_NUMBER + 1);
    assert_eq!(h.number(tenant, NumberKind::Invoice).await, 1, "each kind has its own");
    assert_eq!(h.number(other, NumberKind::Job).await, 1, "each tenant has its own");
    let failed = h.write(other, async |tx, &other| {
        tx.raise_number(other, NumberKind::Job, 50).await?;
        Err::<(), _>(Error::NotFound)
    });
    assert_eq!(failed.await, Err(Error::NotFound));
    assert_eq!(h.number(other, NumberKind::Job).await, 2, "a failed transaction raises no number");
}
