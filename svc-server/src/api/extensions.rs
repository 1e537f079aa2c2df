//! The operations of the public API that go beyond the contract: what was missed is fetched, and sent again
//! ([`Surfaces::extensions`](crate::Surfaces::extensions)).
//!
//! The platform API has the same operations. Here an app sees only the deliveries to its own subscriptions.

use schemars::JsonSchema;
use serde::Serialize;
use svc_core::input::Input;
use svc_core::pages::Page;
use svc_core::platform;
use svc_core::platform::operations;
use svc_core::platform::operations::{ListingByStart, Records};
use svc_core::resources::Resource;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::OfContact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::TenantId;

use crate::api::contract::InContract;
use crate::api::routes::{Operation, of_own_account};
use crate::api::row::Row;
use crate::api::row::{rendered, retrieve, row};

/// The memory that an event needs, in records of 64 KiB: data of 1 MiB, the JSON of the response while it grows, and the other fields.
pub(super) const EVENT: u32 = 49;
/// The memory that a page of events needs, whatever its limit. One read returns 3 MiB of data at most.
pub(super) const EVENTS: u32 = 3 * EVENT;
/// The memory that a page of attempts needs: 20 response bodies of 16 KiB, in JSON up to six times as long.
pub(super) const ATTEMPTS: u32 = 20 * 4;

/// Returns the operations, which both versions of the public API have.
pub fn operations() -> Vec<Operation> {
    all().into_iter().map(of_own_account).collect()
}

/// Returns whether operations have these among them.
pub(super) fn are_among(all: &[Operation]) -> bool {
    all.iter().any(|operation| operation.area.is_none() && operation.id == operations::LIST_EVENTS.id)
}

/// Returns the lists of records as assistants have them: by contact, and bookings and jobs by when they start as well.
pub(crate) fn lists() -> Vec<Operation> {
    fn of_contact<R: OfContact>(id: &'static str, plural: &str) -> Operation {
        let row = row(Records::<R>::LIST_OF_CONTACT).reading(|input| input.page.limit.unwrap_or_default().get());
        let text = format!("Returns a page of {plural}, the newest first: all, or those of one contact.");
        described(row, id, plural, &text)
    }
    fn by_start<R, F>(
        operation: platform::Operation<TenantId, ListingByStart<F>, Page<R, String>>,
        id: &'static str,
        plural: &str,
        start: &str,
    ) -> Operation
    where
        R: Resource,
        F: Input + Clone,
    {
        let row = row(operation).reading(|input| input.page.records_read());
        let text = format!(
            "Returns a page of {plural}, the newest first: all, or those of one contact. With `starts_from` and `starts_before`, \
             such as the beginning and the end of tomorrow, returns those whose `{start}` is in between, the soonest first."
        );
        described(row, id, plural, &text)
    }
    fn described<I, O>(row: Row<TenantId, I, O>, id: &'static str, plural: &str, text: &str) -> Operation
    where
        I: Input + Clone,
        O: Serialize + JsonSchema + Send + 'static,
    {
        let row = row.named(id);
        of_own_account(row.described(&format!("List {plural}"), text, &format!("A page of {plural}.")))
    }
    vec![
        of_contact::<Invoice>("listInvoices", "invoices"),
        by_start(Records::<Booking>::LIST_BY_START, "listBookings", "bookings", "start_time"),
        of_contact::<Quote>("listQuotes", "quotes"),
        by_start(Records::<Job>::LIST_BY_START, "listJobs", "jobs", "scheduled_start"),
    ]
}

/// Returns the search of records, which assistants have, and the platform API.
pub(crate) fn search() -> Vec<Operation> {
    let search = row(operations::FIND_RECORDS).described(
        "Search records",
        "Returns the contacts, invoices, quotes, bookings and jobs that have a text in a name, an email address, a phone number, \
         a company, a suburb, a title or a number, in any case: at most 20, those that are named exactly first, then those that \
         changed last. `is_complete` is false for some seconds after many records changed at once; then the newest of them may \
         be missing.",
        "The records that were found.",
    );
    vec![of_own_account(search)]
}

fn all() -> Vec<Operation> {
    vec![
        row(operations::LIST_EVENTS).reading(|_| EVENTS).described(
            "List events",
            "Returns a page of the events of the account, the newest first, for as long as events are kept: 30 days by \
             default.\n\n\
             To follow what happens without receiving webhooks, ask for `order=oldest_first` with the time after the \
             `created_at` of the last event that you have as `since`: no two events of an account have the same time, and an \
             event is never added before one that you can read. A page may have fewer events than `limit` although there are \
             more, when their data is large, and with `kind` even none: read on while `next_cursor` is not null.",
            "A page of events.",
        ),
        row(operations::GET_EVENT).reading(|_| EVENT).with_etag().described(
            "Retrieve an event",
            "Returns the event with this id.",
            "The event with this id.",
        ),
        row(operations::LIST_WEBHOOK_DELIVERIES)
            .reading(|input| input.page.limit.unwrap_or_default().get())
            .described(
                "List the deliveries to a webhook",
                "Returns a page of the deliveries to the webhook subscription, the newest event first. A page may have fewer \
                 than `limit`, and even none, although there are more: read on while `next_cursor` is not null.",
                "A page of deliveries.",
            ),
        row(operations::GET_DELIVERY).reading(|_| EVENT + ATTEMPTS).with_etag().described(
            "Retrieve a delivery",
            "Returns the delivery with its event and the log of its newest attempts, 20 at most.",
            "The delivery with this id.",
        ),
        row(operations::LIST_DELIVERY_ATTEMPTS).reading(|_| ATTEMPTS).described(
            "List the attempts at a delivery",
            "Returns a page of the log of the attempts at a delivery, the newest first, 20 at most: for a delivery that was \
             replayed often. Its next page has the earlier ones, while `next_cursor` is not null.",
            "A page of attempts.",
        ),
        row(operations::REPLAY_DELIVERY).described(
            "Replay a delivery",
            "Sends the delivery again: its next attempt is due now, and all its retries are ahead. It keeps its id. A delivery \
             of a subscription that is disabled, paused or deleted is refused with 409 `not_allowed`.",
            "The delivery.",
        ),
        row(operations::REPLAY_WEBHOOK).creates_in("replays", |replay| replay.id.uuid(), retrieve(operations::GET_REPLAY)).described(
            "Replay the deliveries to a webhook",
            "Sends the deliveries of a time span to the webhook subscription again, in the background; retrieve the bulk replay \
             to follow its progress. A subscription that is disabled or paused is refused with 409 `not_allowed`.",
            "The bulk replay.",
        ),
        row(operations::GET_REPLAY).with_etag().described(
            "Retrieve a bulk replay",
            "Returns the bulk replay with its progress.",
            "The bulk replay with this id.",
        ),
        row(operations::TEST_WEBHOOK).creates().described(
            "Send a test event",
            "Sends an event with the sample record of its kind to this webhook subscription alone. Without `kind` it is of the \
             first kind that the subscription is for. A subscription that is disabled or paused, or is not for the kind, is \
             refused with 409 `not_allowed`.",
            "The delivery of the test event.",
        ),
        rendered(operations::ROTATE_WEBHOOK_SECRET, InContract).described(
            "Rotate a signing secret",
            "Replaces the signing secret of the webhook subscription. The previous secret signs beside the new one during the \
             overlap. Store the new secret, as no other request returns it.",
            "The webhook subscription, with its new secret.",
        ),
    ]
}

#[cfg(test)]
pub(crate) mod tests;
