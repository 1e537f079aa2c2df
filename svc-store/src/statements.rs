//! Every statement of the store, for the tests that prepare and explain them on each database.

use svc_core::accounts::apps::App;
use svc_core::accounts::platform_keys::PlatformKey;
use svc_core::accounts::sessions::Session;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::bookings::{Booking, BookingFilter, BookingStatus};
use svc_core::resources::contacts::{Contact, ContactFilter, OfContact};
use svc_core::resources::invoices::{Invoice, InvoiceFilter, InvoiceStatus};
use svc_core::resources::jobs::{Job, JobFilter, JobStatus};
use svc_core::resources::quotes::{Quote, QuoteFilter, QuoteStatus};
use svc_core::resources::starts::StartPlace;
use svc_core::resources::{Filter, NoFilter};
use svc_core::values::{Email, Id, TenantId, Text, Timestamp};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::accounts::{
    api_keys, apps, audit, idempotency, members, owners, platform_keys, request_log, sandboxes, shared_links, sign_in,
    signatures, tenants, uploads,
};
use crate::column::Param;
use crate::dialect::{Dialect, locking};
use crate::maintenance::TABLES;
use crate::resources::{contacts, payments};
use crate::search;
use crate::table::{
    ResourceTable, StartTable, TableRow as _, contact_statement, get_many_statement, list_statement, start_statement,
    start_statement_backwards,
};
use crate::webhooks::{
    attempt_counts, attempts, deliveries, events, operational_events, replays, retention, schedule, streams,
    subscriptions,
};

/// Returns every statement in the form that this database gets.
pub(crate) fn every_statement(dialect: Dialect) -> Vec<String> {
    let modules = [
        api_keys::statements(),
        apps::statements(),
        attempt_counts::statements(),
        attempts::statements(),
        audit::statements(),
        contacts::statements(),
        payments::statements(),
        deliveries::statements(),
        events::statements(),
        idempotency::statements(),
        operational_events::statements(),
        owners::statements(),
        platform_keys::statements(),
        replays::statements(),
        request_log::statements(),
        retention::STATEMENTS.to_vec(),
        sandboxes::statements(),
        search::statements(),
        search::own_statements(dialect),
        schedule::statements(),
        streams::statements(),
        shared_links::statements(),
        sign_in::statements(),
        members::statements(),
        signatures::statements(),
        subscriptions::statements(),
        tenants::statements(),
        uploads::statements(),
    ];
    let mut all: Vec<String> = modules.concat().into_iter().map(str::to_owned).collect();
    all.extend(own_statements(dialect));
    all.extend(events::own_statements(dialect));
    all.push(request_log::delete_before(dialect).to_owned());
    if dialect == Dialect::Postgres {
        all.extend(retention::OWN_STATEMENTS_OF_POSTGRES.iter().map(ToString::to_string));
    }
    all.extend(TABLES.iter().flat_map(|table| (table.statements)().all()).map(str::to_owned));
    all.extend([get_many_statement::<Contact>(), get_many_statement::<Invoice>(), get_many_statement::<Quote>()]);
    all.extend([get_many_statement::<Booking>(), get_many_statement::<Job>(), get_many_statement::<Event>()]);
    all.extend(every_list(dialect).into_iter().map(|(_, sql, _)| sql));
    all
}

/// Returns the statements that only this database gets in this form.
fn own_statements(dialect: Dialect) -> Vec<String> {
    let locked = [tenants::CLOCK, &App::statements().get, &PlatformKey::statements().get, &Session::statements().get];
    let locked = locked.into_iter().filter(|_| dialect == Dialect::Postgres);
    let locking = locked.flat_map(|sql| [true, false].map(|may_wait| locking(sql, may_wait)));
    let merging = deliveries::lists(dialect, Some(Id::nil())).into_iter();
    locking.chain(dialect.claim().map(str::to_owned)).chain(merging.map(|list| list.sql)).collect()
}

/// Returns every list: each resource, each combination of its filters, each order, the first page and a later one.
pub(crate) fn every_list(dialect: Dialect) -> Vec<(String, String, Vec<Param<'static>>)> {
    let status = InvoiceStatus::Paid;
    let number = || Text::from_stored("N-0001");
    let email = || Some(Email::from_stored("Ada@example.com"));
    let mut lists = Vec::new();
    for include_deleted in [None, Some(true)] {
        lists.extend(orders::<Contact>(dialect, &ContactFilter { email: None, include_deleted }));
        lists.extend(orders::<Contact>(dialect, &ContactFilter { email: email(), include_deleted }));
    }
    lists.extend(orders::<Invoice>(dialect, &InvoiceFilter::none()));
    lists.extend(orders::<Invoice>(dialect, &InvoiceFilter { status: Some(status), number: None }));
    lists.extend(orders::<Invoice>(dialect, &InvoiceFilter { status: None, number: Some(number()) }));
    lists.extend(orders::<Invoice>(dialect, &InvoiceFilter { status: Some(status), number: Some(number()) }));
    lists.extend(orders::<Booking>(dialect, &BookingFilter::none()));
    lists.extend(orders::<Booking>(dialect, &BookingFilter { status: Some(BookingStatus::Confirmed) }));
    lists.extend(orders::<Quote>(dialect, &QuoteFilter::none()));
    lists.extend(orders::<Quote>(dialect, &QuoteFilter { status: Some(QuoteStatus::Sent) }));
    lists.extend(orders::<Job>(dialect, &JobFilter::none()));
    lists.extend(orders::<Job>(dialect, &JobFilter { status: Some(JobStatus::OnHold), job_number: None }));
    lists.extend(orders::<Job>(dialect, &JobFilter { status: None, job_number: Some(number()) }));
    lists.extend(orders::<Job>(dialect, &JobFilter { status: Some(JobStatus::OnHold), job_number: Some(number()) }));
    lists.extend(orders::<WebhookSubscription>(dialect, &NoFilter {}));
    lists.push(of_contact::<Invoice>());
    lists.push(of_contact::<Quote>());
    lists.push(of_contact::<Booking>());
    lists.push(of_contact::<Job>());
    lists.extend(by_start::<Booking>());
    lists.extend(by_start::<Job>());
    lists.extend(by_start::<Invoice>());
    lists
}

fn of_contact<R: ResourceTable + OfContact>() -> (String, String, Vec<Param<'static>>) {
    let (sql, params) = contact_statement::<R>(TenantId(Uuid::nil()), Id::nil(), Timestamp::MAX, 51);
    (format!("{} of a contact", R::COLLECTION), sql, params.to_vec())
}

fn by_start<R: StartTable>() -> [(String, String, Vec<Param<'static>>); 2] {
    let (tenant, at) = (TenantId(Uuid::nil()), Timestamp::from_micros(1));
    let from = StartPlace { start: at, created_from: at };
    let before = StartPlace { start: Timestamp::MAX, created_from: at };
    let (forwards, params) = start_statement::<R>(tenant, from, Timestamp::MAX, 51);
    let (backwards, params_back) = start_statement_backwards::<R>(tenant, before, at, 51);
    [
        (format!("{} by start", R::COLLECTION), forwards, params.to_vec()),
        (format!("{} by start, the latest first", R::COLLECTION), backwards, params_back.to_vec()),
    ]
}

fn orders<R: ResourceTable<Filter: std::fmt::Debug>>(
    dialect: Dialect,
    filter: &R::Filter,
) -> Vec<(String, String, Vec<Param<'static>>)> {
    let at = Timestamp::from_micros(1);
    let newest = |before| Order::NewestFirst { before };
    [newest(None), newest(Some(at)), Order::OldestChangeFirst { from: at }]
        .into_iter()
        .map(|order| {
            let listing = ListQuery { limit: 51, order, filter: filter.clone() };
            let (sql, params) = list_statement::<R>(dialect, TenantId(Uuid::nil()), &listing);
            (format!("{} {filter:?} {order:?}", R::COLLECTION), sql, params)
        })
        .collect()
}
