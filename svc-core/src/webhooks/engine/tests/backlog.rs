//! Tests with an endpoint whose backlog takes several steps to hold or to end.

use super::*;
use crate::store::UnitOfWorkFn;
use crate::webhooks::deliveries::{DeliveryId, FailureReason};
use crate::webhooks::replays::{self, ReplayCreate};
use crate::webhooks::subscriptions::{SETTLE_AT_ONCE, SETTLE_PAUSE, SETTLE_STEP, SubscriptionId, WebhookUpdate};

/// The endpoint, in a store of its own.
struct Backlog {
    store: MemoryStore,
    clock: ManualClock,
    tenant: TenantId,
    id: SubscriptionId,
}

impl Backlog {
    const SIZE: usize = 2 * SETTLE_AT_ONCE as usize + 2 * SETTLE_STEP as usize + 10;

    fn new() -> Self {
        let clock = clock();
        let store = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let (tenant, subscription) = fill(&store, Self::SIZE);
        Self { store, clock, tenant, id: subscription.id }
    }

    fn write<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let store: &dyn Store = &self.store;
        store.write("test", input, work).now_or_never().unwrap()
    }

    fn set_enabled(&self, enabled: bool) {
        let (tenant, id) = (self.tenant, self.id);
        let update = self.write((enabled, tenant, id), async |tx, &(enabled, tenant, id)| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            crud::update::<WebhookSubscription>(tx, tenant, id, input?).await
        });
        update.unwrap();
    }

    /// Emits an event, and returns its delivery.
    fn emit(&self) -> Delivery {
        let tenant = self.tenant;
        let emit = self.write(tenant, async |tx, &tenant| {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
            let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
            Ok(tx.list_deliveries(tenant, &newest).await?.remove(0))
        });
        emit.unwrap()
    }

    fn stopped_at(&self) -> Option<Timestamp> {
        let (tenant, id) = (self.tenant, self.id);
        let get = self.write((tenant, id), async |tx, &(tenant, id)| {
            Ok(Repository::<WebhookSubscription>::get(tx, tenant, id).await?)
        });
        get.unwrap().unwrap().stopped_at
    }

    fn count(&self, status: DeliveryStatus) -> usize {
        let (tenant, id) = (self.tenant, self.id);
        let filter = DeliveryFilter { subscription_id: Some(id), status: Some(status), ..DeliveryFilter::default() };
        let list =
            self.write((tenant, filter), async |tx, (tenant, filter)| Ok(tx.list_deliveries(*tenant, filter).await?));
        list.unwrap().len()
    }

    /// Lets the sender do what is due until nothing is, and returns the attempts that it claimed.
    fn settle(&self) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        for _ in 0..60 {
            self.clock.advance(SETTLE_PAUSE);
            let due = self.write((), async |tx, ()| poll(tx).await).unwrap();
            if !due.endpoints.is_empty() || !due.replaying_tenants.is_empty() {
                attempts.extend(run_step(&self.store, self.tenant, &[]));
            }
        }
        attempts
    }

    fn earliest_due_at(&self) -> Option<Timestamp> {
        self.write((), async |tx, ()| Ok(tx.next_endpoint_due().await?)).unwrap()
    }
}

#[test]
fn a_long_backlog_of_a_disabled_subscription_is_held_in_steps() {
    let backlog = Backlog::new();
    backlog.set_enabled(false);
    let step = SETTLE_AT_ONCE as usize;
    assert_eq!(backlog.count(DeliveryStatus::Held), step, "the change itself takes one step");
    assert!(backlog.stopped_at().is_some());
    assert!(backlog.settle().is_empty(), "nothing is sent");
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
    assert_eq!(backlog.earliest_due_at(), None);
}

#[test]
fn what_was_pending_is_held_even_if_the_subscription_is_enabled_before_the_last_step() {
    let backlog = Backlog::new();
    backlog.set_enabled(false);
    backlog.set_enabled(true);
    let new = backlog.emit();
    let attempts = backlog.settle();
    let sent: Vec<_> = attempts.iter().map(|attempt| attempt.delivery.id).collect();
    assert_eq!(sent, [new.id], "only what is new is sent");
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
}

#[test]
fn replays_wait_until_the_backlog_is_held() {
    let backlog = Backlog::new();
    let (tenant, id, first) = (backlog.tenant, backlog.id, backlog.emit().id);
    backlog.set_enabled(false);
    backlog.set_enabled(true);
    let one =
        backlog.write((tenant, first), async |tx, &(tenant, first)| replays::replay_delivery(tx, tenant, first).await);
    assert!(matches!(one, Err(Error::NotAllowed(_))), "{one:?}");
    let since = Timestamp::from_micros(0);
    let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: false };
    let replay =
        backlog.write((tenant, input), async |tx, (tenant, input)| replays::create(tx, *tenant, input.clone()).await);
    let replay = replay.unwrap().id;
    backlog.settle();
    let finished = backlog.write((tenant, replay), async |tx, &(tenant, replay)| Ok(tx.replay(tenant, replay).await?));
    let finished = finished.unwrap().unwrap();
    assert!(finished.finished_at.is_some() && !finished.broken_off(), "{finished:?}");
    assert_eq!(finished.replayed as usize, Backlog::SIZE + 1);
    assert_eq!(backlog.count(DeliveryStatus::Held), 0);
}

#[test]
fn a_delete_ends_what_is_pending_or_held() {
    let backlog = Backlog::new();
    // Half is held, half is pending, and one attempt is in flight.
    let attempt = run_step(&backlog.store, backlog.tenant, &[]).remove(0);
    backlog.set_enabled(false);
    let (tenant, id) = (backlog.tenant, backlog.id);
    let delete = backlog
        .write((tenant, id), async |tx, &(tenant, id)| crud::delete::<WebhookSubscription>(tx, tenant, id).await);
    assert_eq!(delete, Ok(()));
    let log = log(1, 500);
    run_step(&backlog.store, tenant, &[AttemptResult { delivery: attempt.delivery.clone(), log, retry_after: None }]);
    assert!(backlog.settle().is_empty());
    assert_eq!((backlog.count(DeliveryStatus::Failed), backlog.stopped_at()), (Backlog::SIZE, None));
    assert_eq!(backlog.earliest_due_at(), None);
    let all =
        backlog.write(tenant, async |tx, &tenant| Ok(tx.list_deliveries(tenant, &DeliveryFilter::default()).await?));
    for delivery in all.unwrap() {
        assert_eq!(delivery.failure_reason, Some(FailureReason::SubscriptionDeleted), "{delivery:?}");
    }
}

#[test]
fn a_pause_holds_a_long_backlog_in_steps_also_when_its_retries_are_hours_away() {
    let backlog = Backlog::new();
    let (tenant, id) = (backlog.tenant, backlog.id);
    let far = backlog.store.env().now().checked_add(Duration::from_secs(4 * 3_600));
    let attempt = run_step(&backlog.store, tenant, &[]).remove(0);
    let claimed = attempt.delivery.id;
    let wait = backlog.write((tenant, claimed, far, id), async |tx, &(tenant, claimed, far, id)| {
        for delivery in tx.list_deliveries(tenant, &DeliveryFilter::default()).await? {
            if delivery.id != claimed {
                let lease = delivery.lease;
                tx.update_delivery(&Delivery { next_attempt_at: far, lease: None, ..delivery }, lease).await?;
            }
        }
        let subscription = Repository::<WebhookSubscription>::get(tx, tenant, id).await?.unwrap();
        let failing = WebhookSubscription { consecutive_failures: 9, ..subscription };
        Ok(Repository::<WebhookSubscription>::update(tx, tenant, &failing).await?)
    });
    assert_eq!(wait, Ok(()));
    run_step(
        &backlog.store,
        tenant,
        &[AttemptResult { delivery: attempt.delivery, log: log(1, 500), retry_after: None }],
    );
    assert!(backlog.stopped_at().is_some());
    assert!(backlog.settle().is_empty());
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
}

#[test]
fn the_newest_attempts_of_a_day_keep_their_response_bodies() {
    let backlog = Backlog::new();
    let (tenant, id) = (backlog.tenant, backlog.id);
    let record = |attempts: Vec<Attempt>, body: &str| {
        let outcome = |Attempt { delivery, .. }: Attempt| AttemptResult {
            log: AttemptLog { response_body: Some(body.to_owned()), ..log(delivery.attempts, 204) },
            delivery,
            retry_after: None,
        };
        let outcomes: Vec<AttemptResult> = attempts.into_iter().map(outcome).collect();
        let batch = Arc::new(Batch::outcomes_only(tenant, outcomes));
        let run = backlog.write(batch, async |tx, batch| run_batch(tx, &Policy::default(), batch).await);
        run.unwrap();
    };
    let claim = |count: usize| {
        let mut attempts = Vec::new();
        while attempts.len() < count {
            attempts.extend(run_step(&backlog.store, tenant, &[]));
        }
        attempts
    };
    let subscription = || {
        let get = backlog.write((tenant, id), async |tx, &(tenant, id)| {
            Ok(Repository::<WebhookSubscription>::get(tx, tenant, id).await?)
        });
        get.unwrap().unwrap()
    };
    let body = |delivery: DeliveryId| {
        let log = backlog.write((tenant, delivery), async |tx, &(tenant, delivery)| {
            let mut log = tx.attempts(tenant, delivery, u32::MAX, u32::MAX).await?;
            log.reverse();
            Ok(log)
        });
        log.unwrap().pop().unwrap().response_body
    };
    let first = claim(200);
    let ids: Vec<_> = first.iter().map(|attempt| attempt.delivery.id).collect();
    record(first, "old");
    assert_eq!(subscription().responses_kept, 200);
    record(claim(4), "");
    assert_eq!(subscription().responses_kept, 200, "an empty body takes no room");

    // As if there had been many more.
    let kept = responses::KEPT + responses::STEP;
    let full = WebhookSubscription { responses_kept: kept, ..subscription() };
    let fill = backlog.write((tenant, full), async |tx, (tenant, full)| {
        Ok(Repository::<WebhookSubscription>::update(tx, *tenant, full).await?)
    });
    assert_eq!(fill, Ok(()));
    let next = claim(4);
    let new = next[3].delivery.id;
    record(next, "new");
    assert_eq!(subscription().responses_kept, kept - responses::STEP + 4);
    assert_eq!(body(ids[0]), None, "the oldest are gone");
    assert_eq!(body(ids[99]), None);
    assert_eq!(body(ids[100]).as_deref(), Some("old"));
    assert_eq!(body(new).as_deref(), Some("new"));

    // Another day has its own bodies.
    backlog.clock.advance(Duration::from_secs(24 * 3_600));
    record(claim(4), "tomorrow");
    assert_eq!(subscription().responses_kept, 4);
    assert_eq!(body(ids[100]).as_deref(), Some("old"));
}
