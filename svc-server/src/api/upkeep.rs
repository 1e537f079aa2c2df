//! What is done beside requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_core::error::Error;
use svc_core::store::{KeyUse, Store};
use svc_core::sync::lock;
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::retention::{self, DeletedCounts, Positions};
use tokio::sync::Mutex as AsyncMutex;
use uuid::Uuid;

use crate::metrics::Metrics;

/// Rows that one step of pruning drops at most, so that no write waits long behind it.
const PRUNE_STEP: u32 = 500;

/// After each step of retention, so that other writes come between.
const STEP_PAUSE: Duration = Duration::from_millis(10);

/// How often a sweep begins anew, to find what was pending or held when the last one passed it.
const ANEW: Duration = Duration::from_secs(60 * 60);

/// How far the deleting of what is old has come.
#[derive(Default)]
pub(crate) struct Retained(AsyncMutex<Swept>);

#[derive(Default)]
struct Swept {
    positions: Positions,
    began: Option<Timestamp>,
}

impl Retained {
    pub(crate) async fn sweep(&self, store: &dyn Store, retention: Duration) -> Result<DeletedCounts, Error> {
        let mut swept = self.0.lock().await;
        let now = store.env().now();
        if swept.began.is_none_or(|began| now.since(began) >= ANEW) {
            *swept = Swept { positions: Positions::new(), began: Some(now) };
        }
        let before = now.minus(retention);
        retention::sweep(store, &mut swept.positions, before, false, || tokio::time::sleep(STEP_PAUSE)).await
    }
}

/// When keys were last used, until it is written down: a write per request would cost more than the request.
#[derive(Default)]
pub(crate) struct LastUsed(Mutex<HashMap<Uuid, Timestamp>>);

impl LastUsed {
    pub(crate) fn note(&self, key: Uuid, now: Timestamp) {
        lock(&self.0).insert(key, now);
    }

    pub(crate) async fn flush(&self, store: &dyn Store) -> Result<(), Error> {
        let noted = std::mem::take(&mut *lock(&self.0));
        if noted.is_empty() {
            return Ok(());
        }
        let used: Arc<[KeyUse]> = noted.into_iter().map(|(key_id, used_at)| KeyUse { key_id, used_at }).collect();
        let written = Arc::clone(&used);
        let write = store.write("keys.touch", move |tx| {
            let used = Arc::clone(&written);
            Box::pin(async move { Ok(tx.record_key_uses(&used).await?) })
        });
        let result = write.await;
        if result.is_err() {
            let mut noted = lock(&self.0);
            for KeyUse { key_id, used_at } in used.iter() {
                noted.entry(*key_id).or_insert(*used_at);
            }
        }
        result
    }
}

/// Drops expired answers and signatures in small steps.
pub(crate) async fn prune(store: &dyn Store, idempotency_ttl: Duration) -> Result<(), Error> {
    loop {
        let dropped = store.write("prune", move |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                Ok(tx.delete_request_records(now.minus(idempotency_ttl), now, PRUNE_STEP).await?)
            })
        });
        if dropped.await? < u64::from(PRUNE_STEP) {
            return Ok(());
        }
    }
}

/// States in which deliveries wait: for their attempt, for an operator, for a replay.
const WAITING: [DeliveryStatus; 3] = [DeliveryStatus::Pending, DeliveryStatus::Failed, DeliveryStatus::Held];

/// Counts what waits, for metrics: now and then, not with each scrape, and never more than a bounded number of rows.
pub(crate) async fn measure(store: &dyn Store, metrics: &Metrics) -> Result<(), Error> {
    for state in WAITING {
        let backlog =
            store.read("deliveries.backlog", move |tx| Box::pin(async move { Ok(tx.backlog(state).await?) })).await?;
        metrics.backlog(state, backlog, store.env().now());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::{Env, ManualClock, SystemEntropy};
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::resources::crud::{self, Create};
    use svc_core::store::memory::MemoryStore;

    use super::*;
    use crate::api::{Api, Settings};

    #[tokio::test]
    async fn what_is_older_than_the_retention_goes_by_itself() {
        let day = Duration::from_secs(24 * 3600);
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::new(clock.clone(), SystemEntropy)));
        let api = Api::new(Arc::clone(&store), Settings { retention: day * 7, ..Settings::default() });
        let made = store.write("test", |tx| {
            Box::pin(async move {
                let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
                let input = <Contact as Create>::Input::from_body(br#"{"email": "ada@example.com"}"#)?;
                crud::create::<Contact>(tx, tenant, input).await
            })
        });
        made.await.unwrap();
        clock.advance(day * 7);
        assert_eq!(api.retain().await, Ok(DeletedCounts::default()));
        clock.advance(day);
        assert_eq!(api.retain().await.map(|dropped| dropped.events), Ok(1));
        assert_eq!(api.retain().await, Ok(DeletedCounts::default()));
    }
}
