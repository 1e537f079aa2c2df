//! The conformance suite of svc's stores: one table of cases that every implementation of [`Store`] must pass.
//!
//! Add this crate to the dev-dependencies of a store, and hand [`run_all`] a function that creates an empty one:
//!
//! ```
//! # use std::sync::Arc;
//! use svc_core::store::{Store, memory::MemoryStore};
//!
//! # futures_util::FutureExt::now_or_never(
//! svc_store_tests::run_all(|env| async { Arc::new(MemoryStore::new(env)) as Arc<dyn Store> })
//! # ).unwrap();
//! ```
//!
//! Each case gets a store of its own, a clock that stands still until the case advances it, and repeatable randomness.
//! Cases use a store through [`Store`] only, so they do not depend on its SQL, and no store has exceptions.
//!
//! [`fails_first`] wraps a store so that each write fails at its end before it succeeds. A store passes the suite wrapped as
//! well.
//!
//! The example `store` is a store to start from, and `docs/stores.md` of the repository says what one has to do.

#![expect(clippy::unwrap_used, reason = "a failed case is a panic, as in a test")]

mod api_keys;
mod apps;
mod attempts;
mod audit;
mod backlog;
mod custom_kinds;
mod deliveries;
mod emails;
mod events;
mod history;
mod idempotency;
mod isolation;
mod lists;
mod members;
mod operational_events;
mod pagination;
mod platform_keys;
mod replays;
mod repository;
mod request_log;
mod retention;
mod retries;
mod samples;
mod sandboxes;
mod schedule;
mod search;
mod shared_links;
mod sign_in;
mod statistics;
mod streams;
mod tenants;
mod transactions;
mod uploads;
mod values;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::tenants::{TenantCreate, create as create_tenant};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::contacts::Contact;
use svc_core::resources::{Create, Delete, Filter, NewRecord, Resource, Update, crud};
use svc_core::store::{Store, UnitOfWorkFn};
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::events::Event;

pub use crate::retries::{Detach, fails_first};
use crate::samples::Sample;

/// A test case: one promise of the interface.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name, `module::promise`.
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
    ($($module:ident { $($promise:ident,)+ })+) => {
        /// All cases. Not a constant, so that they are compiled in this crate alone and not in each that runs them.
        pub static CASES: &[Case] = &[$($(Case {
            name: concat!(stringify!($module), "::", stringify!($promise)),
            run: |harness| Box::pin($module::$promise(harness)),
        },)+)+];
    };
}

cases! {
    repository {
        every_field_is_stored,
        an_update_replaces_every_field,
        a_record_of_another_tenant_is_not_found,
        a_record_of_another_tenant_cannot_be_updated,
        a_deleted_record_can_be_read,
        an_id_is_unique,
        an_update_of_a_missing_record_fails,
        a_reference_to_another_tenant_is_refused,
    }
    apps {
        an_app_is_stored,
        a_tenant_has_one_grant_for_an_app,
        a_code_and_a_token_are_stored,
        the_end_of_a_grant_ends_its_tokens,
        a_locked_app_is_changed_by_nobody_else,
        an_app_whose_webhook_was_deleted_can_be_changed_and_deleted,
        expired_codes_and_tokens_are_deleted,
    }
    isolation {
        tenants_with_the_same_ids_are_apart,
    }
    values {
        text_is_stored_unchanged,
        the_first_and_the_last_time_are_stored,
        amounts_are_exact,
        a_currency_that_has_ended_is_read,
        every_enum_value_is_stored,
        the_order_of_an_event_set_is_stored,
    }
    lists {
        the_newest_record_comes_first,
        the_oldest_change_comes_first,
        contacts_are_filtered_by_email_and_deletion,
        invoices_are_filtered_by_status_and_number,
        quotes_are_filtered_by_status,
        bookings_are_filtered_by_status,
        jobs_are_filtered_by_status_and_number,
        filters_compare_exactly,
        deleted_subscriptions_are_not_listed,
        what_starts_soonest_comes_first,
        what_is_due_soonest_comes_first,
    }
    history {
        the_records_of_a_contact_are_listed,
        many_records_are_found_by_their_ids,
        the_payments_of_an_invoice_are_listed,
        the_events_of_a_record_are_its_history,
        the_entries_about_an_object_are_found,
    }
    search {
        a_record_is_found_by_a_part_of_each_field,
        a_record_is_found_by_its_whole_title_among_many,
        every_character_of_a_search_stands_for_itself,
        a_search_is_within_one_tenant,
        a_record_that_changed_is_found_by_its_new_text,
        exact_matches_come_first,
        a_list_of_one_kind_is_searched,
        an_index_is_brought_up_to_date_in_steps,
        what_is_typed_finds_what_was_meant,
        a_phone_number_is_found_by_its_digits,
        a_name_of_one_or_two_characters_is_found,
        a_text_that_is_nowhere_is_not_found_by_its_parts,
        an_index_that_is_ahead_of_the_clock_begins_anew,
    }
    pagination {
        every_record_is_returned_once,
        a_filtered_list_returns_every_match_once,
        records_may_be_created_and_deleted_between_pages,
        a_record_that_changes_between_pages_is_returned_again,
        a_cursor_is_valid_for_its_own_list_only,
    }
    tenants {
        settings_are_stored,
        tenants_of_a_record_are_found_by_its_id,
        tenants_with_old_events_are_found,
        a_clock_can_be_set_back_to_the_latest_record,
        positions_go_back_with_the_clock,
        tenants_are_found_by_their_next_overdue_check,
        each_advance_of_the_clock_is_later,
        each_tenant_has_its_own_clock,
        an_update_of_settings_keeps_the_clock,
        an_unknown_tenant_has_no_clock,
        locking_does_not_advance_the_clock,
        creation_times_are_unique,
        numbers_have_no_gaps,
        numbers_continue_after_a_raised_number,
    }
    transactions {
        a_failed_transaction_changes_nothing,
        a_failed_transaction_returns_its_own_error,
        a_failed_transaction_uses_no_number,
        a_read_cannot_write,
        a_read_in_place_is_a_read,
        a_transaction_sees_its_own_writes,
        a_transaction_sees_what_it_changes_of_its_tenant,
        a_write_that_fails_leaves_nothing_to_those_beside_it,
        a_read_sees_every_write_before_it,
        a_read_sees_whole_transactions,
        a_transaction_completes_when_its_caller_is_dropped,
        concurrent_writers_of_a_tenant_are_serialized,
        concurrent_tenants_do_not_conflict,
        a_failure_does_not_affect_concurrent_transactions,
        a_locked_tenant_is_changed_by_nobody_else,
        lock_tenant_waits_for_a_concurrent_writer,
        a_closed_store_refuses_everything,
    }
    emails {
        one_of_concurrent_creates_succeeds,
        emails_are_compared_without_case,
        a_deleted_contact_frees_its_email,
        an_update_is_checked_too,
        the_email_of_a_changed_contact_is_taken,
        uniqueness_can_be_turned_off,
        contacts_that_share_an_email_are_listed_by_change,
        another_tenant_may_use_the_same_email,
    }
    events {
        an_event_holds_the_record_at_its_time,
        the_data_of_an_event_is_replaced_and_nothing_else,
        a_read_of_events_ends_with_the_size_of_their_data,
        events_are_returned_in_order_and_in_pages,
        events_of_another_tenant_are_not_returned,
        events_are_returned_by_their_ids,
        live_subscriptions_are_counted,
        a_subscription_that_is_not_kept_is_deleted,
        each_matching_subscription_gets_one_delivery,
        many_deliveries_are_written_at_once,
        matching_subscriptions_are_enabled_or_paused,
        events_are_listed_in_either_order,
        the_first_pending_delivery_of_a_record_is_found,
        a_created_delivery_is_stored,
        an_event_for_one_subscription_goes_to_no_other,
    }
    custom_kinds {
        an_event_of_a_custom_kind_is_delivered,
        a_kind_that_is_no_longer_registered_is_kept,
    }
    deliveries {
        every_field_of_a_delivery_is_stored,
        a_list_supports_every_filter,
        an_update_requires_the_lease,
        due_deliveries_are_returned_in_order,
        only_pending_deliveries_of_the_endpoint_are_held,
        deliveries_are_held_and_failed_in_steps,
        an_outcome_updates_six_columns,
        deliveries_are_brought_forward_by_what_they_wait_for,
        deliveries_of_another_tenant_are_not_returned,
    }
    attempts {
        attempts_are_stored,
        response_bodies_are_deleted_in_the_order_of_events_or_of_one,
    }
    schedule {
        endpoints_are_returned_in_order_of_due_time,
        a_transaction_reschedules_what_it_has_scheduled,
        schedule_endpoint_by_never_delays,
        a_commit_wakes_the_sender,
    }
    streams {
        a_stream_is_stored_once_and_deleted_with_its_positions,
        a_lease_has_one_holder,
        accounts_that_were_written_to_are_behind,
        the_stream_of_a_subscription_is_behind_in_its_account_alone,
        a_position_never_goes_back,
        a_position_is_never_beyond_the_clock,
        the_earliest_position_of_the_streams_that_are_used_counts,
        positions_in_accounts_that_exist_are_kept,
    }
    statistics {
        attempts_are_counted_by_hour,
        counts_of_attempts_expire,
    }
    replays {
        replays_are_stored,
        replays_of_a_tenant_are_listed,
        what_a_replay_goes_through_is_counted,
    }
    backlog {
        deliveries_are_counted_by_status,
        a_backlog_covers_all_tenants,
        attempt_summaries_cover_a_time_range,
    }
    api_keys {
        a_key_is_stored,
        keys_of_a_tenant_are_listed,
        a_key_is_found_by_its_hash,
        a_locked_credential_does_not_change,
        a_hash_is_unique,
        a_credential_shows_revocation_and_expiry,
        a_credential_shows_a_suspended_tenant,
        a_credential_has_the_limits_of_its_tenant,
        last_use_never_goes_back,
        a_signature_is_accepted_once,
        a_signature_that_may_be_deleted_is_not_accepted,
    }
    operational_events {
        nothing_is_recorded_without_a_platform_webhook,
        the_platform_webhook_is_kept_at_its_url,
        an_operational_event_is_published_once,
        many_operational_events_are_published_in_their_order,
        an_expiring_key_is_reported_once,
        a_pause_and_a_last_failure_are_reported,
        what_happens_in_a_sandbox_is_not_reported,
        events_of_a_paused_platform_webhook_are_held,
    }
    platform_keys {
        a_platform_key_is_stored,
        a_platform_key_is_unique,
        a_revoked_or_expired_platform_key_is_refused,
        of_concurrent_revocations_the_first_counts,
        last_use_of_a_platform_key_never_goes_back,
    }
    sign_in {
        a_link_signs_in_once,
        of_concurrent_sign_ins_one_succeeds,
        a_locked_session_is_changed_by_nobody_else,
        a_link_works_for_ten_minutes,
        a_session_ends_after_twelve_hours_or_an_idle_one,
        a_remembered_session_lasts_for_thirty_days_and_one_of_an_operator_is_not_remembered,
        sessions_of_tenants_and_operators_are_apart,
        an_operator_views_a_tenant,
        a_member_signs_in,
        a_member_chooses_a_tenant,
        a_withdrawn_role_holds_from_the_next_request_on,
        the_sessions_of_a_removed_member_end_for_good,
        a_member_signs_out_everywhere,
        expired_sign_ins_are_deleted_in_steps,
        a_link_signs_in_a_member_with_the_role_of_now,
        the_link_of_a_removed_member_is_refused,
        a_link_needs_a_member_of_its_account,
        a_link_for_a_member_leads_to_no_other_account,
        an_invitation_works_for_seven_days,
    }
    shared_links {
        a_shared_link_is_found_by_its_secret,
        a_renewed_shared_link_has_another_address,
        of_concurrent_renewals_one_address_works,
        a_revoked_shared_link_is_gone,
        shared_links_are_apart,
        the_links_of_a_suspended_tenant_show_nothing,
        changes_of_shared_links_are_audited,
    }
    uploads {
        an_upload_has_its_content,
        a_tenant_has_few_uploads,
        uploads_of_tenants_are_apart,
        of_two_steps_of_an_import_one_counts,
        an_upload_ends_with_a_day,
    }
    members {
        members_of_a_tenant_are_listed,
        an_address_is_a_member_of_a_tenant_once,
        the_memberships_of_an_address_are_found,
        members_of_tenants_are_apart,
        a_change_of_a_role_is_stored,
        changes_of_members_are_audited,
        people_keep_an_owner,
    }
    sandboxes {
        a_sandbox_is_an_account_of_its_own,
        only_one_of_concurrent_creations_succeeds,
        the_keys_of_a_sandbox_are_test_keys,
        a_sandbox_has_the_access_of_its_account,
        a_due_delivery_says_whether_its_tenant_is_a_sandbox,
        what_failed_in_a_sandbox_is_no_backlog,
        the_data_of_a_sandbox_is_deleted_and_nothing_else,
        a_sandbox_is_deleted_whole,
        a_step_that_deletes_the_last_rows_says_whether_the_sandbox_is_gone,
        an_account_whose_sandbox_is_gone_has_none,
        nothing_is_deleted_of_a_real_account,
        a_sandbox_is_reset_and_deleted_in_steps,
        a_reset_forgets_the_responses_to_apps,
        an_app_learns_that_a_sandbox_was_deleted,
        people_see_the_sandbox_of_their_account,
        members_have_their_role_in_the_sandbox,
    }
    idempotency {
        a_response_is_stored,
        keys_are_compared_exactly,
        responses_of_another_tenant_are_not_returned,
        a_newer_response_replaces_the_stored_one,
        an_expired_response_is_not_returned,
        a_key_is_claimed_by_one_transaction,
        a_form_changes_once,
        expired_records_are_deleted_in_steps,
    }
    audit {
        every_change_is_recorded,
        the_actor_of_the_transaction_is_recorded,
        events_have_an_actor,
        a_failed_change_is_not_recorded,
    }
    request_log {
        every_field_of_a_request_is_stored,
        a_tenant_keeps_its_newest_requests,
        requests_expire,
        a_request_names_the_events_it_wrote,
        requests_are_filtered,
    }
    retention {
        expired_deliveries_that_are_not_pending_are_deleted,
        a_step_has_a_limit,
        what_expired_is_gone_whenever_it_was_written,
        many_rows_take_many_small_steps,
        deliveries_of_one_event_take_few_steps,
        a_range_has_two_bounds,
        a_step_deletes_rows_of_one_tenant,
        finished_replays_are_deleted,
        expired_request_records_are_counted,
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

/// The arguments of a case: an empty store, and the clock that the store uses.
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
    /// Creates an empty store, whose clock is set to a time in March 2026.
    pub async fn new<F, M>(make: F) -> Self
    where
        F: Fn(Env) -> M,
        M: Future<Output = Arc<dyn Store>>,
    {
        let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
        let mut env = Env::new(clock.clone(), SeededEntropy::new(1));
        env.event_kinds = custom_kinds::kinds();
        let store = make(env).await;
        Self { store, clock }
    }

    async fn write<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.store.write("conformance", input, work).await
    }

    async fn read<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.store.read("conformance", input, work).await
    }

    async fn tenant(&self) -> TenantId {
        self.write((), async |tx, ()| create_tenant(tx, TenantCreate::named("Harbour Plumbing")).await)
            .await
            .unwrap()
            .id
    }

    async fn advance_clock(&self, tenant: TenantId) -> Timestamp {
        self.write(tenant, async |tx, &tenant| advance_clock(tx, tenant).await).await.unwrap()
    }

    /// Creates a record as the API does.
    async fn create<R: Create>(&self, tenant: TenantId, body: impl ToString) -> Result<R, Error> {
        let body = body.to_string();
        self.write((body, tenant), async |tx, (body, tenant)| {
            let input = R::Input::from_body(body.as_bytes());
            crud::create(tx, *tenant, input?).await
        })
        .await
    }

    async fn contact(&self, tenant: TenantId, email: &str) -> Contact {
        self.create(tenant, serde_json::json!({ "email": email })).await.unwrap()
    }

    /// Updates a record as the API does.
    async fn update<R: Update>(&self, tenant: TenantId, id: Id<R>, body: impl ToString) -> Result<R, Error> {
        let body = body.to_string();
        self.write((body, tenant, id), async |tx, (body, tenant, id)| {
            let input = R::Input::from_body(body.as_bytes());
            crud::update(tx, *tenant, *id, input?).await
        })
        .await
    }

    /// Deletes a record as the API does.
    async fn delete<R: Delete>(&self, tenant: TenantId, id: Id<R>) -> Result<(), Error> {
        self.write((tenant, id), async |tx, &(tenant, id)| crud::delete::<R>(tx, tenant, id).await).await
    }

    /// Inserts a record without applying any rule.
    async fn insert<R: Resource>(&self, tenant: TenantId, make: impl Fn(NewRecord) -> R + Send + Sync + 'static) -> R {
        self.write((tenant, make), async |tx, (tenant, make)| {
            let now = advance_clock(tx, *tenant).await?;
            let row = make(NewRecord { tenant_id: *tenant, id: tx.env().id(now), now });
            R::repository(tx).insert(*tenant, &row).await?;
            Ok(row)
        })
        .await
        .unwrap()
    }

    /// Replaces a record without applying any rule, and sets its `updated_at` to a new time.
    async fn replace<R: Sample>(&self, tenant: TenantId, row: &R) -> R {
        let row = row.clone();
        self.write((row, tenant), async |tx, (row, tenant)| {
            let mut row = row.clone();
            row.set_updated_at(advance_clock(tx, *tenant).await?);
            R::repository(tx).update(*tenant, &row).await?;
            Ok(row)
        })
        .await
        .unwrap()
    }

    /// Returns the record as stored, deleted or not.
    async fn row<R: Resource>(&self, tenant: TenantId, id: Id<R>) -> Option<R> {
        self.read((tenant, id), async |tx, &(tenant, id)| Ok(R::repository(tx).get(tenant, id).await?)).await.unwrap()
    }

    async fn list<R: Resource>(&self, tenant: TenantId, listing: ListQuery<R::Filter>) -> Vec<R> {
        self.read((tenant, listing), async |tx, (tenant, listing)| Ok(R::repository(tx).list(*tenant, listing).await?))
            .await
            .unwrap()
    }

    /// Returns everything that a list returns by default, newest first.
    async fn all<R: Resource>(&self, tenant: TenantId) -> Vec<R> {
        let order = Order::NewestFirst { before: None };
        self.list(tenant, ListQuery { limit: 1_000, order, filter: R::Filter::none() }).await
    }

    async fn events(&self, tenant: TenantId) -> Vec<Event> {
        let beginning = Timestamp::from_micros(0);
        self.read((tenant, beginning), async |tx, &(tenant, beginning)| {
            Ok(tx.events_after(tenant, beginning, 1_000).await?)
        })
        .await
        .unwrap()
    }
}

/// Runs a generic check for every resource.
macro_rules! every_resource {
    ($check:ident($($argument:expr),*)) => {
        $check::<svc_core::resources::contacts::Contact>($($argument),*).await;
        $check::<svc_core::resources::invoices::Invoice>($($argument),*).await;
        $check::<svc_core::resources::bookings::Booking>($($argument),*).await;
        $check::<svc_core::resources::quotes::Quote>($($argument),*).await;
        $check::<svc_core::resources::jobs::Job>($($argument),*).await;
        $check::<svc_core::webhooks::subscriptions::WebhookSubscription>($($argument),*).await;
    };
}

use every_resource;
