//! Streams, their leases, and how far each has come in each account.

use std::time::Duration;

use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::streams::{AccountBehind, Stream, StreamKey};
use uuid::Uuid;

use crate::Harness;
use crate::deliveries::{call, plus};

const LEASE: Duration = Duration::from_secs(30);

fn of_subscription(tenant_id: TenantId, number: u128) -> StreamKey {
    StreamKey { tenant_id, id: Id::new(Uuid::from_u128(number)) }
}

impl Harness {
    async fn stream_of(&self, key: StreamKey, begins_at: Timestamp) -> Stream {
        let stream = Stream::new(key, begins_at);
        let inserted = stream.clone();
        self.write(inserted, async |tx, stream| Ok(tx.insert_stream(stream).await?)).await.unwrap();
        stream
    }

    async fn set_clock(&self, tenant: TenantId, clock: Timestamp) {
        self.write((tenant, clock), async |tx, &(tenant, clock)| Ok(tx.set_clock(tenant, clock).await?)).await.unwrap();
    }

    async fn behind(&self, stream: &Stream, after: Option<TenantId>, limit: u32) -> Vec<AccountBehind> {
        let input = (stream.clone(), after, limit);
        let behind =
            self.read(input, async |tx, (stream, after, limit)| Ok(tx.accounts_behind(stream, *after, *limit).await?));
        behind.await.unwrap()
    }
}

pub(super) async fn a_stream_is_stored_once_and_deleted_with_its_positions(h: Harness) {
    let tenant = h.tenant().await;
    let now = h.advance_clock(tenant).await;
    h.set_clock(tenant, plus(now, 100)).await;
    let (server, own, other) = (StreamKey::SERVER, of_subscription(tenant, 1), of_subscription(tenant, 2));
    assert_eq!(call!(h.stream(server)), None);
    for key in [server, own, other] {
        let stream = h.stream_of(key, now).await;
        assert_eq!(call!(h.stream(key)), Some(stream));
        h.stream_of(key, plus(now, 60)).await;
        assert_eq!(call!(h.stream(key)).map(|stream| stream.begins_at), Some(now), "it keeps its beginning");
        call!(h.advance_stream(key, tenant, plus(now, 10)));
    }
    for key in [server, own] {
        call!(h.delete_stream(key));
        call!(h.delete_stream(key));
        assert_eq!(call!(h.stream(key)), None);
        h.stream_of(key, now).await;
        assert_eq!(
            call!(h.sent_by_all_until(tenant, now.minus(Duration::from_secs(1)))),
            Some(now),
            "its positions are gone"
        );
        call!(h.delete_stream(key));
    }
    assert_eq!(
        call!(h.sent_by_all_until(tenant, now.minus(Duration::from_secs(1)))),
        Some(plus(now, 10)),
        "the other has its own"
    );
}

pub(super) async fn a_lease_has_one_holder(h: Harness) {
    let tenant = h.tenant().await;
    let (now, key) = (h.advance_clock(tenant).await, of_subscription(tenant, 1));
    let [first, second] = [1, 2].map(Uuid::from_u128);
    let ends_at = |at: Timestamp| at.checked_add(LEASE).unwrap();
    assert!(!call!(h.claim_stream(key, first, now, ends_at(now))), "there is no such stream");
    h.stream_of(key, now).await;
    assert!(call!(h.claim_stream(key, first, now, ends_at(now))));
    assert!(!call!(h.claim_stream(key, second, now, ends_at(now))));
    let later = plus(now, 10);
    assert!(call!(h.claim_stream(key, first, later, ends_at(later))), "its holder renews it");
    assert!(!call!(h.claim_stream(key, second, plus(now, 39), ends_at(now))));
    assert!(!call!(h.renew_stream(key, second, ends_at(later))));
    assert!(call!(h.renew_stream(key, first, plus(now, 50))), "also after its end, as nobody has taken it");
    assert!(call!(h.claim_stream(key, second, plus(now, 50), plus(now, 80))));
    assert!(!call!(h.renew_stream(key, first, plus(now, 90))));
    let stream = call!(h.stream(key)).unwrap();
    assert_eq!((stream.lease, stream.lease_ends_at), (Some(second), Some(plus(now, 80))));
}

pub(super) async fn accounts_that_were_written_to_are_behind(h: Harness) {
    let mut tenants = [h.tenant().await, h.tenant().await, h.tenant().await];
    tenants.sort();
    let mut begins_at = Timestamp::from_micros(0);
    for tenant in tenants {
        begins_at = begins_at.max(h.advance_clock(tenant).await);
    }
    let stream = h.stream_of(StreamKey::SERVER, begins_at).await;
    assert_eq!(h.behind(&stream, None, 10).await, []);
    h.clock.advance(Duration::from_secs(1));
    let mut want = Vec::new();
    for tenant_id in tenants {
        let clock = h.advance_clock(tenant_id).await;
        want.push(AccountBehind { tenant_id, sent_until: begins_at, clock, is_sandbox: false });
        assert_eq!(h.behind(&stream, None, 10).await, want);
    }
    assert_eq!(h.behind(&stream, None, 2).await, want[..2]);
    assert_eq!(h.behind(&stream, Some(tenants[0]), 10).await, want[1..]);
    // A position in the middle of what was written, and one at its end.
    let middle = want[0].clock.minus(Duration::from_micros(1));
    call!(h.advance_stream(StreamKey::SERVER, tenants[0], middle));
    want[0].sent_until = middle;
    call!(h.advance_stream(StreamKey::SERVER, tenants[1], want[1].clock));
    want.remove(1);
    assert_eq!(h.behind(&stream, None, 10).await, want);
    // A position of another stream is none of this one.
    call!(h.advance_stream(of_subscription(tenants[2], 1), tenants[2], want[1].clock));
    assert_eq!(h.behind(&stream, None, 10).await, want);
    // A transaction sees what it has written itself.
    let input = (stream, tenants[1]);
    let seen = h.write(input, async |tx, (stream, tenant)| {
        tx.advance_clock(*tenant).await?;
        Ok(tx.accounts_behind(stream, None, 10).await?.len())
    });
    assert_eq!(seen.await.unwrap(), 3);
}

pub(super) async fn the_stream_of_a_subscription_is_behind_in_its_account_alone(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let now = h.advance_clock(tenant).await;
    let mut keys = [of_subscription(tenant, 1), of_subscription(tenant, 2), of_subscription(other, 3)];
    keys.sort();
    let begins_at = now.max(h.advance_clock(other).await);
    for key in keys.into_iter().chain([StreamKey::SERVER]) {
        h.stream_of(key, begins_at).await;
    }
    assert_eq!(call!(h.subscription_streams_behind(None, 10)), []);
    h.clock.advance(Duration::from_secs(1));
    let clock = h.advance_clock(tenant).await;
    let own: Vec<StreamKey> = keys.into_iter().filter(|key| key.tenant_id == tenant).collect();
    assert_eq!(call!(h.subscription_streams_behind(None, 10)), own);
    assert_eq!(call!(h.subscription_streams_behind(None, 1)), own[..1]);
    assert_eq!(call!(h.subscription_streams_behind(Some(own[0]), 10)), own[1..]);
    for key in keys {
        let stream = call!(h.stream(key)).unwrap();
        let behind: Vec<TenantId> = h.behind(&stream, None, 10).await.iter().map(|account| account.tenant_id).collect();
        assert_eq!(behind, if key.tenant_id == tenant { vec![tenant] } else { vec![] });
        assert_eq!(h.behind(&stream, Some(tenant), 10).await, []);
    }
    call!(h.advance_stream(own[0], tenant, clock));
    assert_eq!(call!(h.subscription_streams_behind(None, 10)), own[1..]);
}

pub(super) async fn a_position_never_goes_back(h: Harness) {
    let tenant = h.tenant().await;
    let now = h.advance_clock(tenant).await;
    h.set_clock(tenant, plus(now, 20)).await;
    h.stream_of(StreamKey::SERVER, now).await;
    for (to, want) in [(10, 10), (5, 10), (10, 10), (20, 20)] {
        call!(h.advance_stream(StreamKey::SERVER, tenant, plus(now, to)));
        assert_eq!(call!(h.sent_by_all_until(tenant, now.minus(Duration::from_secs(1)))), Some(plus(now, want)));
    }
}

/// Times that were read before a clock was set back say nothing of later writes.
pub(super) async fn a_position_is_never_beyond_the_clock(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let now = h.advance_clock(tenant).await;
    let since = now.minus(Duration::from_secs(1));
    h.stream_of(StreamKey::SERVER, now).await;
    h.set_clock(other, plus(now, 100)).await;
    // Without a position, and with one.
    for clock in [10, 20] {
        let before = call!(h.sent_by_all_until(tenant, since));
        h.set_clock(tenant, plus(now, clock)).await;
        call!(h.advance_stream(StreamKey::SERVER, tenant, plus(now, clock).next()));
        assert_eq!(call!(h.sent_by_all_until(tenant, since)), before, "it stays where it is");
        call!(h.advance_stream(StreamKey::SERVER, tenant, plus(now, clock)));
        assert_eq!(call!(h.sent_by_all_until(tenant, since)), Some(plus(now, clock)));
    }
    let advance = h.write(tenant, async |tx, &tenant| {
        let clock = tx.advance_clock(tenant).await?.unwrap_or_default();
        tx.advance_stream(StreamKey::SERVER, tenant, clock).await?;
        Ok(clock)
    });
    let clock = advance.await.unwrap();
    assert_eq!(call!(h.sent_by_all_until(tenant, since)), Some(clock), "a transaction sees its own clock");
}

pub(super) async fn the_earliest_position_of_the_streams_that_are_used_counts(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let now = h.advance_clock(tenant).await;
    h.set_clock(tenant, plus(now, 100)).await;
    assert_eq!(call!(h.sent_by_all_until(tenant, now)), None);
    // A stream without a lease is used when it begins.
    h.stream_of(StreamKey::SERVER, now).await;
    assert_eq!(call!(h.sent_by_all_until(tenant, now.minus(Duration::from_secs(1)))), Some(now));
    assert_eq!(call!(h.sent_by_all_until(tenant, now)), None);
    let holder = Uuid::from_u128(1);
    assert!(call!(h.claim_stream(StreamKey::SERVER, holder, now, plus(now, 30))));
    call!(h.advance_stream(StreamKey::SERVER, tenant, plus(now, 20)));
    assert_eq!(call!(h.sent_by_all_until(tenant, plus(now, 29))), Some(plus(now, 20)));
    assert_eq!(call!(h.sent_by_all_until(other, plus(now, 29))), Some(now), "each account has its own position");
    assert_eq!(call!(h.sent_by_all_until(tenant, plus(now, 30))), None);
    // The stream of a subscription counts in its account.
    h.stream_of(of_subscription(tenant, 7), plus(now, 10)).await;
    assert_eq!(call!(h.sent_by_all_until(tenant, plus(now, 9))), Some(plus(now, 10)));
    assert_eq!(call!(h.sent_by_all_until(other, plus(now, 9))), Some(now));
}

pub(super) async fn positions_in_accounts_that_exist_are_kept(h: Harness) {
    let tenants = [h.tenant().await, h.tenant().await];
    let mut positions = Vec::new();
    for tenant in tenants {
        let now = h.advance_clock(tenant).await;
        h.stream_of(StreamKey::SERVER, now).await;
        h.set_clock(tenant, plus(now, 20)).await;
        call!(h.advance_stream(StreamKey::SERVER, tenant, plus(now, 10)));
        positions.push((tenant, plus(now, 10)));
    }
    let all = [TenantId(Uuid::nil()), TenantId(Uuid::max())];
    assert_eq!(call!(h.delete_positions_without_account(all[0], all[1], 10)), 0);
    for (tenant, position) in positions {
        assert_eq!(call!(h.sent_by_all_until(tenant, Timestamp::from_micros(0))), Some(position));
    }
}
