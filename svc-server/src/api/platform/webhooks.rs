//! The operations on events, webhook subscriptions and deliveries.

use http::{Method, StatusCode};
use svc_core::accounts::platform_keys::Area;
use svc_core::platform::{
    AttemptListParams, Delivery, DeliveryDetails, DeliveryListFilter, EmittedEvent, Event, EventCreate, LogFilter,
    LogParams, NewestParams, Replay, ReplayCreate, SampleEventCreate, SecretRotation, Statistics,
    TemporaryWebhookCreate, WebhookLifetime, WebhookTest,
};
use svc_core::webhooks::deliveries::AttemptSummary;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookSubscriptionWithSecret};

use super::{ACCOUNT, handlers, list_of, lists, one, operation};
use crate::api::routes::{Operation, Shape, inline, schema, wrapped};

pub(super) fn events() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        operation(Area::Events, id, (method, &format!("{ACCOUNT}/events{path}")), "events", parse, texts, shape)
    };
    vec![
        act(
            "listEvents",
            Method::GET,
            "",
            lists::events,
            [
                "List events",
                "Returns a page of the events of the account, the newest first, for as long as events are kept.",
                "A page of events.",
            ],
            Shape {
                query: const { &[inline::<LogParams>, inline::<LogFilter>] },
                ..one(list_of::<Event>, StatusCode::OK)
            },
        ),
        act(
            "emitEvent",
            Method::POST,
            "",
            handlers::emit_event,
            [
                "Emit an event",
                "Writes an event of a record that this service does not store: of a stay or a cohort, or of a kind of the \
                 application. All subscriptions to its kind receive it. Events of records are fired by their own \
                 operations alone.",
                "The event and its deliveries.",
            ],
            Shape { body: Some(schema::<EventCreate>), ..one(wrapped::<EmittedEvent>, StatusCode::CREATED) },
        ),
        act(
            "emitSampleEvent",
            Method::POST,
            "/samples",
            handlers::emit_sample,
            [
                "Emit a sample event",
                "Writes an event with the sample record of its kind, for receivers that are being developed. It is \
                 delivered as any event is, and changes no record.",
                "The event and its deliveries.",
            ],
            Shape { body: Some(schema::<SampleEventCreate>), ..one(wrapped::<EmittedEvent>, StatusCode::CREATED) },
        ),
        act(
            "getEvent",
            Method::GET,
            "/{id}",
            handlers::get_event,
            ["Retrieve an event", "Returns the event with this id.", "The event with this id."],
            Shape { has_etag: true, ..one(wrapped::<Event>, StatusCode::OK) },
        ),
    ]
}

pub(super) fn webhooks() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        let path = format!("{ACCOUNT}/webhooks/{{id}}{path}");
        operation(Area::Webhooks, id, (method, &path), "webhooks", parse, texts, shape)
    };
    vec![
        operation(
            Area::Webhooks,
            "createTemporaryWebhook",
            (Method::POST, &format!("{ACCOUNT}/webhooks/temporary")),
            "webhooks",
            handlers::create_temporary_webhook,
            [
                "Create a temporary webhook",
                "Creates a webhook subscription that the service deletes after `expires_in`, unless you keep it for longer \
                 until then. It is for receivers that run for a while, such as `svc listen`, and is not left behind however \
                 they end.",
                "The webhook subscription, with its secret.",
            ],
            Shape {
                body: Some(schema::<TemporaryWebhookCreate>),
                has_etag: true,
                ..one(wrapped::<WebhookSubscriptionWithSecret>, StatusCode::CREATED)
            },
        ),
        act(
            "keepWebhook",
            Method::POST,
            "/keep",
            handlers::keep_webhook,
            [
                "Keep a temporary webhook",
                "Puts off the deletion of a temporary webhook subscription: it is deleted `expires_in` after this request. \
                 Any other webhook subscription becomes a temporary one.",
                "The webhook subscription.",
            ],
            Shape {
                body: Some(schema::<WebhookLifetime>),
                has_etag: true,
                ..one(wrapped::<WebhookSubscription>, StatusCode::OK)
            },
        ),
        act(
            "rotateWebhookSecret",
            Method::POST,
            "/rotate-secret",
            handlers::rotate_webhook_secret,
            [
                "Rotate a signing secret",
                "Replaces the signing secret of the webhook subscription. The previous secret signs beside the new one \
                 during the overlap. Store the new secret, as no other request returns it.",
                "The webhook subscription, with its new secret.",
            ],
            Shape {
                body: Some(schema::<SecretRotation>),
                ..one(wrapped::<WebhookSubscriptionWithSecret>, StatusCode::OK)
            },
        ),
        act(
            "finishWebhookSecretRotation",
            Method::POST,
            "/finish-rotation",
            handlers::finish_webhook_rotation,
            [
                "Finish a rotation",
                "Ends the overlap of a rotation at once: from the next attempt on, the new secret alone signs.",
                "The webhook subscription.",
            ],
            Shape { has_etag: true, ..one(wrapped::<WebhookSubscription>, StatusCode::OK) },
        ),
        act(
            "testWebhook",
            Method::POST,
            "/test",
            handlers::test_webhook,
            [
                "Send a test event",
                "Sends an event with the sample record of its kind to this webhook subscription alone. Without `kind` it is \
                 of the first kind that the subscription is for. A subscription that is disabled or paused, or is not for \
                 the kind, is refused with 409 `not_allowed`.",
                "The delivery of the test event.",
            ],
            Shape { body: Some(schema::<WebhookTest>), ..one(wrapped::<Delivery>, StatusCode::CREATED) },
        ),
        act(
            "listWebhookAttempts",
            Method::GET,
            "/attempts",
            lists::webhook_attempts,
            [
                "List the attempts at an endpoint",
                "Returns a page of the attempts at the deliveries to this webhook subscription, those of the oldest event \
                 first, without the responses that they got. It is for statistics of any time span.",
                "A page of attempts.",
            ],
            Shape { query: const { &[inline::<AttemptListParams>] }, ..one(list_of::<AttemptSummary>, StatusCode::OK) },
        ),
        act(
            "getWebhookStatistics",
            Method::GET,
            "/statistics",
            handlers::webhook_statistics,
            [
                "Retrieve the statistics of a webhook",
                "Returns the attempts of the last 24 hours at this endpoint by hour, and how many of its deliveries are \
                 pending and held.",
                "The statistics of the webhook subscription.",
            ],
            one(wrapped::<Statistics>, StatusCode::OK),
        ),
    ]
}

pub(super) fn deliveries() -> Vec<Operation> {
    let act = |id, method, path: &str, collection, parse, texts, shape| {
        operation(Area::Deliveries, id, (method, &format!("{ACCOUNT}{path}")), collection, parse, texts, shape)
    };
    vec![
        act(
            "listDeliveries",
            Method::GET,
            "/deliveries",
            "deliveries",
            lists::deliveries,
            [
                "List deliveries",
                "Returns a page of the deliveries of the account, the newest event first. The deliveries of one event stay \
                 on one page, which may have more of them than `limit`. A page may have fewer, and even none, although \
                 there are more: read on while `next_cursor` is not null.",
                "A page of deliveries.",
            ],
            Shape {
                query: const { &[inline::<LogParams>, inline::<DeliveryListFilter>] },
                ..one(list_of::<Delivery>, StatusCode::OK)
            },
        ),
        act(
            "getDelivery",
            Method::GET,
            "/deliveries/{id}",
            "deliveries",
            handlers::get_delivery,
            [
                "Retrieve a delivery",
                "Returns the delivery with its event and the log of its attempts.",
                "The delivery with this id.",
            ],
            Shape { has_etag: true, ..one(wrapped::<DeliveryDetails>, StatusCode::OK) },
        ),
        act(
            "replayDelivery",
            Method::POST,
            "/deliveries/{id}/replay",
            "deliveries",
            handlers::replay_delivery,
            [
                "Replay a delivery",
                "Sends the delivery again: its next attempt is due now, and all its retries are ahead. It keeps its id. A \
                 delivery of a subscription that is disabled, paused or deleted is refused with 409 `not_allowed`.",
                "The delivery.",
            ],
            one(wrapped::<Delivery>, StatusCode::OK),
        ),
        act(
            "listReplays",
            Method::GET,
            "/replays",
            "replays",
            lists::replays,
            [
                "List bulk replays",
                "Returns the newest bulk replays of the account with their progress, the newest first.",
                "The newest bulk replays.",
            ],
            Shape { query: const { &[inline::<NewestParams>] }, ..one(list_of::<Replay>, StatusCode::OK) },
        ),
        act(
            "createReplay",
            Method::POST,
            "/replays",
            "replays",
            handlers::create_replay,
            [
                "Start a bulk replay",
                "Sends the deliveries of a time span to a webhook subscription again. The sender works on it in the \
                 background; get the replay to follow its progress. A subscription that is disabled or paused is refused \
                 with 409 `not_allowed`.",
                "The bulk replay.",
            ],
            Shape { body: Some(schema::<ReplayCreate>), has_etag: true, ..one(wrapped::<Replay>, StatusCode::CREATED) },
        ),
        act(
            "getReplay",
            Method::GET,
            "/replays/{id}",
            "replays",
            handlers::get_replay,
            ["Retrieve a bulk replay", "Returns the bulk replay with its progress.", "The bulk replay with this id."],
            Shape { has_etag: true, ..one(wrapped::<Replay>, StatusCode::OK) },
        ),
        act(
            "getStatistics",
            Method::GET,
            "/statistics",
            "statistics",
            handlers::statistics,
            [
                "Retrieve the statistics of an account",
                "Returns the attempts of the last 24 hours at all endpoints of the account, by hour.",
                "The statistics of the account.",
            ],
            one(wrapped::<Statistics>, StatusCode::OK),
        ),
    ]
}
