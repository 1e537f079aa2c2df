//! The suite that every store must pass: one table of cases, with no way to opt out of any.
//!
//! A store's crate enables the feature `conformance` for its tests and hands over how to make an empty store:
//!
//! ```
//! # use std::sync::Arc;
//! # use svc_core::store::{Store, conformance, memory::MemoryStore};
//! # futures_util::FutureExt::now_or_never(
//! conformance::run_all(|env| async { Arc::new(MemoryStore::new(env)) as Arc<dyn Store> })
//! # ).unwrap();
//! ```
//!
//! Every case gets a store of its own, a clock that stands still until the case moves it, and randomness
//! that repeats itself. Cases look at a store only through [`Store`], so they know nothing of its SQL.

#![expect(clippy::unwrap_used, reason = "a failed case is a panic, as in a test")]

mod audit;
mod clocks;
mod deliveries;
mod emails;
mod failing;
mod keys;
mod lists;
mod outbox;
mod recorded;
mod retention;
mod rows;
mod samples;
mod stats;
mod transactions;
mod turns;
mod values;
mod walks;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use uuid::Uuid;

pub use self::failing::{Detach, fails_first};
use self::samples::Sample;
use super::{Store, Tx};
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::error::Error;
use crate::input::Input;
use crate::resources::contacts::Contact;
use crate::resources::crud::{self, Create, Delete, Filter, NewRecord, Resource, Update};
use crate::resources::pages::{ListQuery, Order};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::Event;

/// One promise of the seam.
#[derive(Clone, Copy)]
pub struct Case {
    /// `room::promise`.
    pub name: &'static str,
    /// Panics when the store breaks the promise.
    pub run: fn(Harness) -> BoxFuture<'static, ()>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! cases {
    ($($room:ident { $($promise:ident,)+ })+) => {
        /// All promises.
        pub const CASES: &[Case] = &[$($(Case {
            name: concat!(stringify!($room), "::", stringify!($promise)),
            run: |harness| Box::pin($room::$promise(harness)),
        },)+)+];
    };
}

cases! {
    rows {
        every_field_comes_back,
        an_update_replaces_every_field,
        another_tenants_row_is_not_there,
        another_tenants_row_cannot_be_changed,
        a_deleted_row_can_still_be_read,
        an_id_is_taken_once,
        an_update_needs_its_row,
        references_stay_within_the_tenant,
    }
    values {
        text_comes_back_as_it_was,
        the_ends_of_time_come_back,
        money_is_exact,
        every_word_of_every_enumeration_comes_back,
        event_sets_keep_their_order,
    }
    lists {
        the_newest_come_first,
        the_oldest_change_comes_first,
        contacts_by_email_and_deletion,
        invoices_by_status_and_number,
        quotes_by_status,
        jobs_by_status_and_number,
        filters_compare_exactly,
        deleted_subscriptions_are_left_out,
    }
    walks {
        every_row_once,
        a_filtered_walk,
        rows_that_come_and_go_between_pages,
        a_changed_row_is_seen_again,
        a_cursor_is_good_for_its_own_list_only,
    }
    clocks {
        settings_come_back,
        a_tick_is_always_later,
        ticks_of_tenants_are_their_own,
        settings_leave_the_clock_alone,
        an_unknown_tenant_has_no_clock,
        holding_moves_no_clock,
        creation_times_are_unique,
        numbers_have_no_gaps,
        a_count_goes_on_behind_a_number,
    }
    transactions {
        a_failed_job_leaves_nothing,
        a_failed_job_gives_its_own_error,
        a_failed_job_gives_its_numbers_back,
        a_read_job_cannot_write,
        a_job_sees_its_own_writes,
        a_read_sees_what_was_written_before_it,
        a_read_sees_whole_transactions,
        a_job_runs_to_its_end_without_its_caller,
        parallel_writers_take_turns,
        parallel_tenants_do_not_meet,
        a_failure_beside_others_is_its_own,
        what_a_holder_has_read_stays,
        a_held_tenant_waits_for_its_writer,
    }
    emails {
        parallel_creates_have_one_winner,
        case_makes_no_difference,
        a_deleted_contact_frees_its_email,
        an_update_asks_as_well,
        uniqueness_can_be_turned_off,
        another_tenant_may_have_it,
    }
    outbox {
        events_hold_the_record_as_it_was,
        events_come_in_order_and_in_pieces,
        events_are_the_tenants_own,
        each_matching_subscription_gets_one_delivery,
        matches_are_live_and_enabled_or_paused,
        deliveries_come_back,
        an_event_for_one_goes_to_no_other,
    }
    deliveries {
        every_field_of_a_delivery_comes_back,
        a_list_takes_every_filter,
        an_update_needs_the_lease,
        what_is_due_comes_in_order,
        holding_is_for_what_is_pending_there,
        attempts_come_back,
        an_outcome_touches_three_columns,
        deliveries_are_the_tenants_own,
    }
    turns {
        turns_come_in_order,
        a_turn_is_brought_forward_only,
        a_commit_wakes_the_sender,
        replays_come_back,
        replays_of_a_tenant,
    }
    stats {
        deliveries_are_counted_by_state,
        backlogs_are_those_of_all_tenants,
        attempts_of_a_span,
    }
    keys {
        a_key_comes_back,
        keys_of_a_tenant,
        a_key_is_found_by_its_hash,
        a_hash_is_taken_once,
        a_revoked_or_expired_key_says_so,
        a_suspended_tenant_shows,
        limits_of_a_tenant_come_with_its_keys,
        last_use_moves_only_forward,
        a_signature_is_good_once,
    }
    recorded {
        an_answer_comes_back,
        keys_are_compared_exactly,
        answers_are_the_tenants_own,
        a_newer_answer_takes_the_place,
        an_old_answer_is_not_seen,
        a_key_is_claimed_by_one,
        pruning_goes_in_steps,
    }
    audit {
        every_change_is_noted,
        the_actor_is_who_was_named,
        changes_of_records_have_an_actor_too,
        a_change_that_fails_is_not_noted,
    }
    retention {
        what_is_finished_and_old_goes,
        a_step_has_a_limit,
        many_rows_take_many_small_steps,
        a_span_has_two_ends,
        a_step_is_one_tenants,
        replays_that_are_over_go,
        what_pruning_would_drop_is_counted,
    }
}

/// Runs every case on a store of its own, then reports all that failed.
///
/// # Panics
/// When a case failed, with the names of all that did.
pub async fn run_all<F, M>(make: F)
where
    F: Fn(Env) -> M,
    M: Future<Output = Arc<dyn Store>>,
{
    let mut failed = Vec::new();
    for case in CASES {
        let harness = Harness::new(&make).await;
        if AssertUnwindSafe((case.run)(harness)).catch_unwind().await.is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {}", failed.len(), CASES.len(), failed.join(", "));
}

/// What a case works with: an empty store, and the clock that the store goes by.
pub struct Harness {
    store: Arc<dyn Store>,
    clock: ManualClock,
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Harness {
    /// Makes an empty store whose clock stands in March 2026.
    pub async fn new<F, M>(make: F) -> Self
    where
        F: Fn(Env) -> M,
        M: Future<Output = Arc<dyn Store>>,
    {
        let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
        let store = make(Env::new(clock.clone(), SeededEntropy::new(1))).await;
        Self { store, clock }
    }

    async fn write<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.store.write("conformance", job).await
    }

    async fn read<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.store.read("conformance", job).await
    }

    async fn tenant(&self) -> TenantId {
        self.write(|tx| Box::pin(tenants::create(tx, TenantCreate::named("Harbour Plumbing")))).await.unwrap().id
    }

    async fn advance_clock(&self, tenant: TenantId) -> Timestamp {
        self.write(move |tx| Box::pin(crud::advance_clock(tx, tenant))).await.unwrap()
    }

    /// Creates by the rules.
    async fn create<R: Create>(&self, tenant: TenantId, body: impl ToString) -> Result<R, Error> {
        let body = body.to_string();
        self.write(move |tx| {
            let input = R::Input::from_body(body.as_bytes());
            Box::pin(async move { crud::create(tx, tenant, input?).await })
        })
        .await
    }

    async fn contact(&self, tenant: TenantId, email: &str) -> Contact {
        self.create(tenant, serde_json::json!({ "email": email })).await.unwrap()
    }

    /// Changes by the rules.
    async fn update<R: Update>(&self, tenant: TenantId, id: Uuid, body: impl ToString) -> Result<R, Error> {
        let body = body.to_string();
        self.write(move |tx| {
            let input = R::Input::from_body(body.as_bytes());
            Box::pin(async move { crud::update(tx, tenant, id, input?).await })
        })
        .await
    }

    /// Deletes by the rules.
    async fn delete<R: Delete>(&self, tenant: TenantId, id: Uuid) -> Result<(), Error> {
        self.write(move |tx| Box::pin(crud::delete::<R>(tx, tenant, id))).await
    }

    /// Adds a row without asking any rule.
    async fn insert<R: Resource>(&self, tenant: TenantId, make: impl Fn(NewRecord) -> R + Send + Sync + 'static) -> R {
        let make = Arc::new(make);
        self.write(move |tx| {
            let make = Arc::clone(&make);
            Box::pin(async move {
                let now = crud::advance_clock(tx, tenant).await?;
                let row = make(NewRecord { tenant_id: tenant, id: tx.env().id(now), now });
                R::repository(tx).insert(tenant, &row).await?;
                Ok(row)
            })
        })
        .await
        .unwrap()
    }

    /// Replaces a row without asking any rule, at the next tick.
    async fn replace<R: Sample>(&self, tenant: TenantId, row: &R) -> R {
        let row = row.clone();
        self.write(move |tx| {
            let mut row = row.clone();
            Box::pin(async move {
                row.set_updated_at(crud::advance_clock(tx, tenant).await?);
                R::repository(tx).update(tenant, &row).await?;
                Ok(row)
            })
        })
        .await
        .unwrap()
    }

    /// The row as stored, deleted or not.
    async fn row<R: Resource>(&self, tenant: TenantId, id: Uuid) -> Option<R> {
        self.read(move |tx| Box::pin(async move { Ok(R::repository(tx).get(tenant, id).await?) })).await.unwrap()
    }

    async fn list<R: Resource>(&self, tenant: TenantId, listing: ListQuery<R::Filter>) -> Vec<R> {
        self.read(move |tx| {
            let listing = listing.clone();
            Box::pin(async move { Ok(R::repository(tx).list(tenant, &listing).await?) })
        })
        .await
        .unwrap()
    }

    /// Everything that a list shows by default, newest first.
    async fn all<R: Resource>(&self, tenant: TenantId) -> Vec<R> {
        let order = Order::NewestFirst { before: None };
        self.list(tenant, ListQuery { limit: 1_000, order, filter: R::Filter::none() }).await
    }

    async fn events(&self, tenant: TenantId) -> Vec<Event> {
        let beginning = Timestamp::from_micros(0);
        self.read(move |tx| Box::pin(async move { Ok(tx.events(tenant, beginning, 1_000).await?) })).await.unwrap()
    }
}

/// Runs a generic check for every resource.
macro_rules! every_resource {
    ($check:ident($($argument:expr),*)) => {
        $check::<$crate::resources::contacts::Contact>($($argument),*).await;
        $check::<$crate::resources::invoices::Invoice>($($argument),*).await;
        $check::<$crate::resources::bookings::Booking>($($argument),*).await;
        $check::<$crate::resources::quotes::Quote>($($argument),*).await;
        $check::<$crate::resources::jobs::Job>($($argument),*).await;
        $check::<$crate::webhooks::subscriptions::WebhookSubscription>($($argument),*).await;
    };
}

use every_resource;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    #[test]
    fn the_memory_store_passes() {
        run_all(|env| async { Arc::new(MemoryStore::new(env)) as Arc<dyn Store> }).now_or_never().unwrap();
    }

    #[test]
    fn so_it_does_when_every_write_fails_first() {
        let make = |env| async { fails_first(Arc::new(MemoryStore::new(env)), |runs| runs) };
        run_all(make).now_or_never().unwrap();
    }
}
