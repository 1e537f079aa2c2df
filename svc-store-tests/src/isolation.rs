//! Tenants whose records have the same ids: what one of them reads and changes does not depend on the others.

use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use serde_json::{json, value::to_raw_value};
use svc_core::env::first_id_at;
use svc_core::error::{Error, StoreError};
use svc_core::resources::{NewRecord, Resource};
use svc_core::store::{EventFilter, Tx, WaitingFor};
use svc_core::values::{EventKind, EventSet, Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus, FailureReason};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::replays::Replay;
use svc_core::webhooks::retention::{ExpiredKind, IdRange};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use crate::Harness;
use crate::replays::bare as bare_replay;
use crate::samples::{Sample, far};

const SUBSCRIPTION: SubscriptionId = SubscriptionId::new(Uuid::from_u128(1));
const ELSEWHERE: SubscriptionId = SubscriptionId::new(Uuid::from_u128(2));
const ALL: IdRange = IdRange { first: Uuid::nil(), end: Uuid::max() };

/// Whose records they are: those of the tenant that a case watches, or those of the others.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Owner {
    Watched,
    Other,
}

/// Returns the time of an event, one in each microsecond.
fn at(number: i64) -> Timestamp {
    Timestamp::from_micros(1_773_500_000_000_000 + number)
}

/// Returns the id of an event, a delivery or a replay.
fn id<T>(number: i64) -> Id<T> {
    Id::new(first_id_at(at(number)))
}

/// Returns events, with the delivery that one has. The first delivery goes to different endpoints, and the next ones have
/// each pair of statuses. Then come an event with a delivery of the other tenants alone, and one without any. The other
/// tenants have one event more, before all of these.
fn history(tenant_id: TenantId, owner: Owner) -> Vec<(Event, Option<Delivery>)> {
    let is_watched = owner == Owner::Watched;
    let first = if is_watched { ELSEWHERE } else { SUBSCRIPTION };
    let mut deliveries = vec![Some((first, DeliveryStatus::Pending))];
    for watched in DeliveryStatus::ALL {
        for other in DeliveryStatus::ALL {
            deliveries.push(Some((SUBSCRIPTION, if is_watched { *watched } else { *other })));
        }
    }
    deliveries.extend([(!is_watched).then_some((SUBSCRIPTION, DeliveryStatus::Pending)), None]);
    if !is_watched {
        deliveries.insert(0, None);
    }
    let first_number = if is_watched { 0 } else { -1 };
    let with_event = |(number, delivery): (i64, Option<(SubscriptionId, DeliveryStatus)>)| {
        let created_at = at(number);
        let data = to_raw_value(&json!({ "tenant": tenant_id.0 })).unwrap();
        let event = Event { id: id(number), tenant_id, kind: EventKind::JobCreated, data, created_at, only_for: None };
        let delivery = delivery.map(|(to, status)| Delivery {
            status,
            next_attempt_at: (status == DeliveryStatus::Pending).then_some(created_at),
            ..event.delivery_to(id(number), to, false)
        });
        (event, delivery)
    };
    (first_number..).zip(deliveries).map(with_event).collect()
}

/// Each tenant has an attempt that the others do not have.
fn attempts(owner: Owner) -> [AttemptLog; 2] {
    let log = |attempt| AttemptLog {
        attempt,
        started_at: at(0),
        duration_ms: attempt,
        status: 500,
        error: None,
        cause: None,
        response_body: Some("body".to_owned()),
        response_truncated: false,
        remote_addr: None,
    };
    if owner == Owner::Watched { [log(1), log(2)] } else { [log(2), log(3)] }
}

/// One is finished for both, and one for either. Those of the other tenants have waited longer.
fn replays(tenant: TenantId, owner: Owner) -> [Replay; 3] {
    let finished = if owner == Owner::Watched { [true, false, true] } else { [false, true, true] };
    let waited_since = at(if owner == Owner::Watched { 1 } else { 0 });
    [0, 1, 2].map(|number| Replay {
        stepped_at: waited_since,
        finished_at: finished[number as usize].then_some(at(0)),
        ..bare_replay(tenant, SUBSCRIPTION, id(number), at(0))
    })
}

fn subscription(tenant_id: TenantId, id: SubscriptionId, owner: Owner) -> WebhookSubscription {
    let kinds = if owner == Owner::Watched { vec![EventKind::JobCreated] } else { vec![EventKind::JobUpdated] };
    let new = NewRecord { tenant_id, id: id.uuid(), now: at(0) };
    WebhookSubscription { enabled: true, events: EventSet::Kinds(kinds), ..WebhookSubscription::bare(new) }
}

/// Returns everything that a tenant can read, as text.
async fn view(tx: &mut dyn Tx, tenant: TenantId) -> Result<String, StoreError> {
    let mut text = String::new();
    macro_rules! show {
        ($($method:ident($($argument:expr),*);)+) => {
            $({
                let result = tx.$method(tenant, $($argument),*).await?;
                writeln!(text, "{}: {result:?}", stringify!($method)).unwrap();
            })+
        };
    }
    show! {
        list_deliveries(&Default::default());
        due_deliveries(SUBSCRIPTION, far(), 100);
        next_delivery_due(SUBSCRIPTION);
        events_after(Timestamp::from_micros(0), 100);
        list_events(&EventFilter::newest(Timestamp::from_micros(0)..Timestamp::MAX, 100));
        matching_subscriptions(EventKind::JobCreated);
        matching_subscriptions(EventKind::JobUpdated);
        count_live_subscriptions();
        replays(100);
        unfinished_replay();
        count_finished_replays(far());
        last_event(ALL, 3);
        nth_delivery(ALL, 5);
        count_expired(ExpiredKind::Attempts, ALL);
        count_expired(ExpiredKind::Deliveries, ALL);
        count_expired(ExpiredKind::Event, ALL);
    }
    for number in 0..=18 {
        show! { event(id(number)); delivery(id(number)); attempts(id(number), u32::MAX, 100); replay(id(number)); }
    }
    for status in DeliveryStatus::ALL.iter().copied() {
        show! { count_deliveries(SUBSCRIPTION, status); }
    }
    for id in [SUBSCRIPTION, ELSEWHERE] {
        writeln!(text, "{:?}", WebhookSubscription::repository(tx).get(tenant, id).await?).unwrap();
    }
    let mut summaries = tx.attempt_summaries(tenant, SUBSCRIPTION, at(0), far()).await?;
    summaries.sort_by_key(|summary| summary.duration_ms);
    let mut due = tx.due_endpoints(far(), &[], 100).await?;
    due.retain(|endpoint| endpoint.tenant_id == tenant);
    writeln!(text, "{summaries:?} {due:?}").unwrap();
    Ok(text)
}

type WriteFn = for<'t> fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<String, StoreError>>;

macro_rules! writes {
    ($($method:ident($($argument:expr),*);)+) => {
        [$((
            stringify!($method),
            |tx, tenant| Box::pin(async move { Ok(format!("{:?}", tx.$method(tenant, $($argument),*).await?)) }),
        ),)+]
    };
}

/// Limits are the numbers of rows that the watched tenant has, so rows of others would leave some of them out.
const WRITES: [(&str, WriteFn); 6] = writes! {
    hold_deliveries(SUBSCRIPTION, far(), 4);
    fail_deliveries(SUBSCRIPTION, FailureReason::SubscriptionDeleted, 8);
    bring_deliveries_forward(SUBSCRIPTION, WaitingFor::Attempt { failures: 0 }, Timestamp::from_micros(1));
    delete_responses(SUBSCRIPTION, DeliveryId::nil(), 16);
    schedule_endpoint(SUBSCRIPTION, None);
    delete_finished_replays(far(), 2);
};

const MORE_WRITES: [(&str, WriteFn); 8] = [
    ("delete_responses_to", |tx, tenant| {
        Box::pin(async move {
            let stored = tx.delivery(tenant, id(1)).await?.unwrap();
            Ok(tx.delete_responses_to(tenant, stored.event_id).await?.to_string())
        })
    }),
    ("replace_event_data", |tx, tenant| {
        Box::pin(async move {
            let stored = tx.event(tenant, id(1)).await?.unwrap();
            tx.replace_event_data(&Event { data: to_raw_value("replaced").unwrap(), ..stored }).await?;
            Ok(String::new())
        })
    }),
    ("delete_expired", |tx, tenant| {
        Box::pin(async move {
            let attempts = tx.delete_expired(tenant, ExpiredKind::Attempts, ALL, 24).await?;
            let deliveries = tx.delete_expired(tenant, ExpiredKind::Deliveries, ALL, 12).await?;
            Ok(format!("{attempts} {deliveries} {}", tx.delete_expired(tenant, ExpiredKind::Event, ALL, 14).await?))
        })
    }),
    ("update_delivery", |tx, tenant| {
        Box::pin(async move {
            let stored = tx.delivery(tenant, id(1)).await?.unwrap();
            tx.update_delivery(&Delivery { attempts: 7, ..stored }, None).await?;
            Ok(String::new())
        })
    }),
    ("claim_delivery", |tx, tenant| {
        Box::pin(async move {
            let stored = tx.delivery(tenant, id(1)).await?.unwrap();
            tx.claim_delivery(&Delivery { attempts: 8, ..stored }, None).await?;
            Ok(String::new())
        })
    }),
    ("update_replay", |tx, tenant| {
        Box::pin(async move {
            let stored = tx.replay(tenant, id(1)).await?.unwrap();
            tx.update_replay(&Replay { replayed: 7, ..stored }).await?;
            Ok(String::new())
        })
    }),
    ("update", |tx, tenant| {
        Box::pin(async move {
            let row = WebhookSubscription { enabled: false, ..subscription(tenant, SUBSCRIPTION, Owner::Watched) };
            WebhookSubscription::repository(tx).update(tenant, &row).await?;
            Ok(String::new())
        })
    }),
    ("update_delivery_outcome", |tx, tenant| {
        Box::pin(async move {
            let row = subscription(tenant, SUBSCRIPTION, Owner::Watched);
            tx.update_delivery_outcome(tenant, &WebhookSubscription { consecutive_failures: 7, ..row }).await?;
            Ok(String::new())
        })
    }),
];

impl Harness {
    pub(super) async fn fill(&self, tenant: TenantId, owner: Owner) {
        let write = self.write((tenant, owner), async |tx, &(tenant, owner)| {
            for id in [SUBSCRIPTION, ELSEWHERE] {
                let row = subscription(tenant, id, owner);
                WebhookSubscription::repository(tx).insert(tenant, &row).await?;
            }
            for (event, delivery) in history(tenant, owner) {
                tx.insert_event(&event).await?;
                let Some(delivery) = delivery else { continue };
                tx.insert_delivery(&delivery).await?;
                for log in attempts(owner) {
                    tx.insert_attempt(tenant, delivery.id, &log).await?;
                }
            }
            for replay in replays(tenant, owner) {
                tx.insert_replay(&replay).await?;
            }
            Ok(())
        });
        write.await.unwrap();
    }

    /// Returns what a write returns and what tenants read after it, and rolls it back.
    async fn try_write(&self, write: WriteFn, tenant: TenantId, readers: &[TenantId]) -> Vec<String> {
        let readers = readers.to_vec();
        let failed = self.write((write, tenant, readers), async |tx, (write, tenant, readers)| {
            let mut seen = vec![write(tx, *tenant).await?];
            for reader in readers.clone() {
                seen.push(view(tx, reader).await?);
            }
            Err::<(), _>(Error::NotAllowed(seen.join("\0")))
        });
        let seen = match failed.await {
            Err(Error::NotAllowed(seen)) => seen,
            failed => failed.map(|()| String::new()).unwrap(),
        };
        seen.split('\0').map(str::to_owned).collect()
    }

    async fn view(&self, tenant: TenantId) -> String {
        self.read(tenant, async |tx, &tenant| Ok(view(tx, tenant).await?)).await.unwrap()
    }
}

pub(super) async fn tenants_with_the_same_ids_are_apart(h: Harness) {
    let mut tenants = [h.tenant().await, h.tenant().await, h.tenant().await];
    tenants.sort();
    // Rows of the others come before and after its own.
    let [before, tenant, after] = tenants;
    h.fill(tenant, Owner::Watched).await;
    let alone = h.view(tenant).await;
    let mut written = Vec::new();
    for (name, write) in WRITES.into_iter().chain(MORE_WRITES) {
        let seen = h.try_write(write, tenant, &[tenant]).await;
        assert_ne!(seen[1], alone, "{name} changes something");
        written.push((name, write, seen));
    }

    h.fill(before, Owner::Other).await;
    h.fill(after, Owner::Other).await;
    assert_eq!(h.view(tenant).await, alone);
    let others = [h.view(before).await, h.view(after).await];
    for (name, write, mut want) in written {
        want.extend(others.clone());
        assert_eq!(h.try_write(write, tenant, &[tenant, before, after]).await, want, "{name}");
    }
}
