//! The operations on events, webhook subscriptions and deliveries.

use svc_core::accounts::platform_keys::Area;
use svc_core::pages::MAX_LIMIT;
use svc_core::platform::operations;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::row;
use crate::api::extensions::{ATTEMPTS, EVENT, EVENTS};
use crate::api::routes::{Operation, retrieve_record};
use crate::api::row::retrieve;
use crate::streams;

pub(super) fn events() -> Vec<Operation> {
    vec![
        row(Area::Events, operations::LIST_EVENTS).reading(|_| EVENTS).described(
            "List events",
            "Returns a page of the events of the account, the newest first, for as long as events are \
             kept. A page may have fewer events than `limit` although there are more, when their data is large, and with \
             `kind` even none: read on while `next_cursor` is not null.",
            "A page of events.",
        ),
        row(Area::Events, operations::EMIT_EVENT).creates().described(
            "Emit an event",
            "Writes an event of a record that this service does not store: of a stay or a cohort, or \
             of a kind of the application. Its data has at most 1 MiB. All subscriptions to its kind receive it. Events of \
             records are fired by their own operations alone.",
            "The event and its deliveries.",
        ),
        row(Area::Events, operations::EMIT_SAMPLE_EVENT).creates().described(
            "Emit a sample event",
            "Writes an event with the sample record of its kind, for receivers that are being \
             developed. It is delivered as any event is, and changes no record.",
            "The event and its deliveries.",
        ),
        row(Area::Events, operations::GET_EVENT).reading(|_| EVENT).with_etag().described(
            "Retrieve an event",
            "Returns the event with this id.",
            "The event with this id.",
        ),
    ]
}

pub(super) fn webhooks() -> Vec<Operation> {
    vec![
        row(Area::Webhooks, operations::CREATE_TEMPORARY_WEBHOOK)
            .with_endpoint()
            .with_event_kinds()
            .creates_record(|created| created.subscription.id.uuid(), retrieve_record::<WebhookSubscription>())
            .described(
                "Create a temporary webhook",
                "Creates a webhook subscription that the service deletes after `expires_in`, unless you \
                 keep it for longer until then. It is for receivers that run for a while, such as `svc \
                 listen`, and is not left behind however they end.",
                "The webhook subscription, with its secret.",
            ),
        row(Area::Webhooks, operations::CREATE_STREAM_WEBHOOK)
            .checking(|input| streams::check_of_subscription(&input.to.0))
            .with_event_kinds()
            .creates_record(|created| created.id.uuid(), retrieve_record::<WebhookSubscription>())
            .described(
                "Create a webhook whose events go to an engine",
                "Creates a webhook subscription whose events are sent to an engine, such as NATS, in place of deliveries to \
                 an endpoint. It has no deliveries, retries, replays or tests: events wait until the engine takes them. The \
                 account sees it, with `url` as the URL of the engine without its credentials, and cannot change it. The \
                 server must be built with the client of the engine.",
                "The webhook subscription.",
            ),
        row(Area::Webhooks, operations::KEEP_WEBHOOK).retrieved_by(retrieve_record::<WebhookSubscription>()).described(
            "Keep a temporary webhook",
            "Puts off the deletion of a temporary webhook subscription: it is deleted `expires_in` \
                 after this request. Any other webhook subscription becomes a temporary one.",
            "The webhook subscription.",
        ),
        row(Area::Webhooks, operations::ROTATE_WEBHOOK_SECRET).described(
            "Rotate a signing secret",
            "Replaces the signing secret of the webhook subscription. The previous secret signs \
             beside the new one during the overlap. Store the new secret, as no other request returns \
             it.",
            "The webhook subscription, with its new secret.",
        ),
        row(Area::Webhooks, operations::FINISH_WEBHOOK_ROTATION)
            .retrieved_by(retrieve_record::<WebhookSubscription>())
            .described(
                "Finish a rotation",
                "Ends the overlap of a rotation at once: from the next attempt on, the new secret alone \
                 signs.",
                "The webhook subscription.",
            ),
        row(Area::Webhooks, operations::TEST_WEBHOOK).creates().described(
            "Send a test event",
            "Sends an event with the sample record of its kind to this webhook subscription alone. \
             Without `kind` it is of the first kind that the subscription is for. A subscription that \
             is disabled or paused, or is not for the kind, is refused with 409 `not_allowed`.",
            "The delivery of the test event.",
        ),
        row(Area::Webhooks, operations::LIST_WEBHOOK_ATTEMPTS).reading(|_| MAX_LIMIT).described(
            "List the attempts at an endpoint",
            "Returns a page of the attempts at the deliveries to this webhook subscription, those of \
             the oldest event first, without the responses that they got. It is for statistics of any \
             time span.",
            "A page of attempts.",
        ),
        row(Area::Webhooks, operations::GET_WEBHOOK_STATISTICS).described(
            "Retrieve the statistics of a webhook",
            "Returns the attempts of the last 24 hours at this endpoint by hour, and how many of its \
             deliveries are pending and held.",
            "The statistics of the webhook subscription.",
        ),
    ]
}

pub(super) fn deliveries() -> Vec<Operation> {
    vec![
        row(Area::Deliveries, operations::LIST_DELIVERIES)
            .reading(|input| input.page.limit.unwrap_or_default().get())
            .described(
                "List deliveries",
                "Returns a page of the deliveries of the account, the newest event first. The deliveries \
                 of one event stay on one page, which may have more of them than `limit`. A page may have \
                 fewer, and even none, although there are more: read on while `next_cursor` is not null.",
                "A page of deliveries.",
            ),
        row(Area::Deliveries, operations::GET_DELIVERY).reading(|_| EVENT + ATTEMPTS).with_etag().described(
            "Retrieve a delivery",
            "Returns the delivery with its event and the log of its newest attempts, 20 at most.",
            "The delivery with this id.",
        ),
        row(Area::Deliveries, operations::LIST_DELIVERY_ATTEMPTS).reading(|_| ATTEMPTS).described(
            "List the attempts at a delivery",
            "Returns a page of the log of the attempts at a delivery, the newest first, 20 at most: for a delivery that was \
             replayed often. Its next page has the earlier ones, while `next_cursor` is not null.",
            "A page of attempts.",
        ),
        row(Area::Deliveries, operations::REPLAY_DELIVERY).described(
            "Replay a delivery",
            "Sends the delivery again: its next attempt is due now, and all its retries are ahead. It \
             keeps its id. A delivery of a subscription that is disabled, paused or deleted is \
             refused with 409 `not_allowed`.",
            "The delivery.",
        ),
        row(Area::Deliveries, operations::LIST_REPLAYS)
            .reading(|input| input.limit.unwrap_or_default().get())
            .described(
                "List bulk replays",
                "Returns the newest bulk replays of the account with their progress, the newest first.",
                "The newest bulk replays.",
            ),
        row(Area::Deliveries, operations::CREATE_REPLAY)
            .creates_record(|replay| replay.id.uuid(), retrieve(operations::GET_REPLAY))
            .described(
                "Start a bulk replay",
                "Sends the deliveries of a time span to a webhook subscription again. The sender works on \
                 it in the background; get the replay to follow its progress. A subscription that is \
                 disabled or paused is refused with 409 `not_allowed`.",
                "The bulk replay.",
            ),
        row(Area::Deliveries, operations::GET_REPLAY).with_etag().described(
            "Retrieve a bulk replay",
            "Returns the bulk replay with its progress.",
            "The bulk replay with this id.",
        ),
        row(Area::Deliveries, operations::GET_STATISTICS).described(
            "Retrieve the statistics of an account",
            "Returns the attempts of the last 24 hours at all endpoints of the account, by hour.",
            "The statistics of the account.",
        ),
    ]
}
