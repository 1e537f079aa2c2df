//! Bulk replays.

use std::time::Duration;

use futures_util::FutureExt as _;
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::replays::{self, Replay, ReplayCreate, ReplayId};
use svc_core::webhooks::subscriptions::SubscriptionId;

use crate::Harness;
use crate::deliveries::call;

/// Returns a replay of failed deliveries that was requested at `now`.
pub(super) fn bare(tenant_id: TenantId, subscription_id: SubscriptionId, id: ReplayId, now: Timestamp) -> Replay {
    let since = Timestamp::from_micros(0);
    Replay {
        id,
        tenant_id,
        subscription_id,
        since,
        until: now,
        statuses: vec![DeliveryStatus::Failed],
        missed: false,
        position: since,
        stepped_at: now,
        total: 0,
        done: 0,
        replayed: 0,
        created_at: now,
        finished_at: None,
    }
}

impl Harness {
    pub(super) async fn add_replay(&self, replay: &Replay) {
        let replay = replay.clone();
        let write = self.write(replay, async |tx, replay| Ok(tx.insert_replay(replay).await?));
        write.await.unwrap();
    }
}

pub(super) async fn replays_are_stored(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let far = Timestamp::parse("9999-12-31T23:59:59.999999Z").unwrap();
    let mut rows = Vec::new();
    assert_eq!(call!(h.unfinished_replay(tenant)), None);
    assert_eq!(call!(h.tenants_with_unfinished_replays(9)), []);
    for (tenant, statuses, missed) in [
        (tenant, vec![DeliveryStatus::Held], true),
        (other, DeliveryStatus::ALL.to_vec(), false),
        (tenant, vec![DeliveryStatus::Failed, DeliveryStatus::Held], false),
    ] {
        let (subscription_id, now) = (h.endpoint(tenant).await, h.advance_clock(tenant).await);
        let id = h.store.env().id(now);
        let row = Replay {
            statuses,
            missed,
            total: 10_000,
            until: far,
            position: now,
            ..bare(tenant, subscription_id, id, now)
        };
        h.add_replay(&row).await;
        assert_eq!(call!(h.replay(tenant, id)).as_ref(), Some(&row));
        rows.push(row);
    }
    let first = rows[0].id;
    assert_eq!(call!(h.replay(other, first)), None, "another tenant cannot read it");
    assert_eq!(call!(h.replay(tenant, Id::nil())), None);
    assert!(h.store.delivery_wakeup().notified().now_or_never().is_some());
    // The replay that has waited longest comes first, whatever its tenant.
    rows.sort_by_key(|row| (row.stepped_at, row.id));
    let latest = rows[rows.len() - 1].stepped_at;
    for wait in 1..=3 {
        let names: Vec<TenantId> = rows.iter().map(|row| row.tenant_id).collect();
        assert_eq!(call!(h.tenants_with_unfinished_replays(9)), names);
        assert_eq!(call!(h.tenants_with_unfinished_replays(2)), names[..2]);
        assert_eq!(call!(h.unfinished_replays(9)), rows);
        assert_eq!(call!(h.unfinished_replays(2)), rows[..2]);
        let mut row = rows.remove(0);
        let owner = row.tenant_id;
        assert_eq!(call!(h.unfinished_replay(owner)).as_ref(), Some(&row));
        row.stepped_at = latest.checked_add(Duration::from_secs(wait)).unwrap();
        rows.push(row.clone());
        let write = h.write(row, async |tx, row| Ok(tx.update_replay(row).await?));
        write.await.unwrap();
    }
    for position in 0..rows.len() {
        let row = &mut rows[position];
        let owner = row.tenant_id;
        assert_eq!(call!(h.unfinished_replay(owner)).as_ref(), Some(&*row));
        row.position = far;
        row.replayed = 1_000_000;
        row.done = 2_000_000;
        row.finished_at = Some(far);
        let changed = row.clone();
        let write = h.write(changed, async |tx, changed| {
            let row = changed.clone();
            Ok(tx.update_replay(&row).await?)
        });
        write.await.unwrap();
        for row in &rows {
            let (tenant, id) = (row.tenant_id, row.id);
            assert_eq!(call!(h.replay(tenant, id)).as_ref(), Some(row), "no other replay is changed");
        }
    }
    assert_eq!(call!(h.unfinished_replay(tenant)), None);
    assert_eq!(call!(h.tenants_with_unfinished_replays(9)), []);
}

pub(super) async fn replays_of_a_tenant_are_listed(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    assert_eq!(call!(h.replays(tenant, 9)), []);
    let endpoint = h.endpoint(tenant).await;
    let mut want = Vec::new();
    for count in 0..4 {
        let elsewhere = h.endpoint(other).await;
        let now = h.advance_clock(other).await;
        h.add_replay(&bare(other, elsewhere, h.store.env().id(now), now)).await;
        let now = h.advance_clock(tenant).await;
        let mut replay = bare(tenant, endpoint, h.store.env().id(now), now);
        // Finished and unfinished replays are listed.
        replay.finished_at = (count % 2 == 0).then_some(now);
        h.add_replay(&replay).await;
        want.insert(0, replay);
    }
    for limit in [1, 3, 4, 9] {
        let limited = &want[..want.len().min(limit as usize)];
        assert_eq!(call!(h.replays(tenant, limit)), limited, "the newest replay comes first");
    }
    assert_eq!(call!(h.replays(other, 9)).len(), 4);
}

pub(super) async fn what_a_replay_goes_through_is_counted(h: Harness) {
    let tenant = h.tenant().await;
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let mut times = Vec::new();
    for status in [DeliveryStatus::Failed, DeliveryStatus::Succeeded, DeliveryStatus::Held, DeliveryStatus::Pending] {
        for endpoint in [to, to, elsewhere] {
            let delivery = h.insert_delivery(tenant, endpoint, move |row| {
                row.status = status;
                row.next_attempt_at = row.next_attempt_at.filter(|_| status == DeliveryStatus::Pending);
            });
            times.push(delivery.await.created_at);
        }
    }
    let replay = async |since: Timestamp, statuses: &[DeliveryStatus], missed: bool| {
        let input = ReplayCreate { subscription: to, since, until: None, statuses: statuses.to_vec(), missed };
        let replay = h.write((tenant, input), async |tx, (tenant, input)| {
            let Replay { id, total, .. } = replays::create(tx, *tenant, input.clone()).await?;
            while replays::step(tx, *tenant).await? {}
            let replay = tx.replay(*tenant, id).await?.ok_or(svc_core::error::Error::NotFound)?;
            assert_eq!((replay.total, replay.percent()), (total, 100));
            Ok((replay.total, replay.done, replay.replayed))
        });
        replay.await.unwrap()
    };
    let start = times[0];
    assert_eq!(replay(start.next(), &[DeliveryStatus::Held], false).await, (2, 2, 2));
    assert_eq!(replay(start.next(), &[], false).await, (1, 1, 1), "one failed before the time span");
    assert_eq!(replay(start, &[DeliveryStatus::Pending], false).await, (0, 0, 0));
    let events = h.events(tenant).await.len() as u64;
    // The one that failed first, and the four that were for the other endpoint alone.
    assert_eq!(replay(start, &[], true).await, (events, events, 5));
    assert_eq!(replay(start, &[DeliveryStatus::Succeeded], false).await, (12, 12, 2), "it goes through all deliveries");
}
