//! Events, webhook subscriptions, deliveries, replays and statistics.

use super::logs::{self, Position};
use super::memory;
use super::records::Records;
use crate::accounts::platform_keys::Area;
use crate::error::{Error, FieldCode, Issue};
use crate::operation::Listing;
use crate::operation::{Method, Operation, Outside};
use crate::pages::{MAX_LIMIT, Page};
use crate::platform::{
    AttemptListParams, Delivery, DeliveryAttemptListParams, DeliveryDetails, DeliveryListFilter, EmittedEvent, Event,
    EventCreate, EventListFilter, EventOrder, LogParams, NewestParams, Replay, ReplayCreate, ReplaySelection,
    SampleEventCreate, Seconds, SecretRotation, Statistics, TemporaryWebhookCreate, WebhookDeliveryListFilter,
    WebhookLifetime, WebhookTest,
};
use crate::resources::crud;
use crate::store::{DeliveryFilter, EventFilter, Repository, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{self, AttemptLog, AttemptSummary, DeliveryId};
use crate::webhooks::events::{self, EventId};
use crate::webhooks::replays::{self, ReplayId};
use crate::webhooks::statistics;
use crate::webhooks::subscriptions::{
    self, StreamCreate, SubscriptionId, WebhookSubscription, WebhookSubscriptionWithSecret,
};

/// A webhook subscription of an account.
pub(super) type OfWebhook = (TenantId, SubscriptionId);

/// Lists the events of an account, the newest or the oldest first. The time of an event is unique within its account.
///
/// One call reads a bounded number of events, so a page of a rare kind may be short although there are more.
pub const LIST_EVENTS: Operation<TenantId, Listing<LogParams, EventListFilter>, Page<Event>> =
    Operation::new("listEvents", Method::Get, "events", "", &async |tx, account, input: &EventList| {
        let sent = &input.filter;
        let position = Position::of(tx, account, "events", &input.page, &sent.scope())?;
        let mut times = Timestamp::from_micros(0)..Timestamp::MAX;
        times.start = sent.since.map_or(times.start, |since| since.0);
        times.end = sent.until.map_or(times.end, |until| until.0);
        let oldest_first = sent.order == Some(EventOrder::OldestFirst);
        match position.before {
            Some(from) if oldest_first => times.start = times.start.max(from),
            Some(before) => times.end = times.end.min(before),
            None => {}
        }
        let filter =
            EventFilter { record_id: sent.record_id, oldest_first, ..EventFilter::newest(times, position.limit) };
        let (found, next) = events::search(tx, account, &filter, sent.kind).await?;
        Ok(position.page(tx, found.into_iter().map(Event::from).collect(), next))
    })
    .unwrapped()
    .in_area(Area::Events)
    .reading(|_| memory::EVENTS)
    .described(
        "List events",
        "Returns a page of the events of the account, the newest first, for as long as events are kept: 30 days by \
         default.\n\n\
         To follow what happens without receiving webhooks, ask for `order=oldest_first` with the time after the \
         `created_at` of the last event that you have as `since`: no two events of an account have the same time, and \
         an event is never added before one that you can read. A page may have fewer events than `limit` although \
         there are more, when their data is large, and with `kind` even none: read on while `next_cursor` is not null.",
        "A page of events.",
    );

/// The query of [`LIST_EVENTS`].
type EventList = Listing<LogParams, EventListFilter>;

/// Writes an event of a record that the service does not store.
pub const EMIT_EVENT: Operation<TenantId, EventCreate, EmittedEvent> =
    Operation::new("emitEvent", Method::Post, "events", "", &async |tx, account, input: &EventCreate| {
        Ok(events::record_external(tx, account, input.kind.0, &input.data.0).await?.into())
    })
    .in_area(Area::Events)
    .creates()
    .described(
        "Emit an event",
        "Writes an event of a record that this service does not store: of a stay or a cohort, or of a kind of the \
         application. Its data has at most 1 MiB. All subscriptions to its kind receive it. Events of records are \
         fired by their own operations alone.",
        "The event and its deliveries.",
    );

/// Writes an event with the sample record of its kind.
pub const EMIT_SAMPLE_EVENT: Operation<TenantId, SampleEventCreate, EmittedEvent> = Operation::new(
    "emitSampleEvent",
    Method::Post,
    "events",
    "samples",
    &async |tx, account, input: &SampleEventCreate| Ok(events::record_sample(tx, account, input.kind).await?.into()),
)
.in_area(Area::Events)
.creates()
.described(
    "Emit a sample event",
    "Writes an event with the sample record of its kind, for receivers that are being developed. It is delivered as \
     any event is, and changes no record.",
    "The event and its deliveries.",
);

/// Retrieves an event.
pub const GET_EVENT: Operation<(TenantId, EventId), (), Event> =
    Operation::new("getEvent", Method::Get, "events", "", &async |tx, (account, id), _| {
        Ok(tx.event(account, id).await?.ok_or(Error::NotFound)?.into())
    })
    .in_area(Area::Events)
    .reading(|_| memory::EVENT)
    .with_etag()
    .described("Retrieve an event", "Returns the event with this id.", "The event with this id.");

/// Creates a webhook subscription that the service deletes by itself.
pub const CREATE_TEMPORARY_WEBHOOK: Operation<TenantId, TemporaryWebhookCreate, WebhookSubscriptionWithSecret> =
    Operation::new(
        "createTemporaryWebhook",
        Method::Post,
        "webhooks",
        "temporary",
        &async |tx, account, input: &TemporaryWebhookCreate| {
            let record: WebhookSubscription = crud::create(tx, account, input.webhook.clone()).await?;
            subscriptions::keep_for(tx, account, record.id, input.expires_in.duration()).await?;
            Ok(record.into())
        },
    )
    .in_area(Area::Webhooks)
    .checked_outside(|input| input.webhook.outside())
    .with_event_kinds()
    .creates_record(
        |created: &WebhookSubscriptionWithSecret| created.subscription.id.uuid(),
        &Records::<WebhookSubscription>::GET,
    )
    .described(
        "Create a temporary webhook",
        "Creates a webhook subscription that the service deletes after `expires_in`, unless you keep it for longer \
         until then. It is for receivers that run for a while, such as `svc listen`, and is not left behind however \
         they end.",
        "The webhook subscription, with its secret.",
    );

/// Creates a webhook subscription whose events go to a broker in place of deliveries.
pub const CREATE_STREAM_WEBHOOK: Operation<TenantId, StreamCreate, WebhookSubscription> = Operation::new(
    "createStreamWebhook",
    Method::Post,
    "webhooks",
    "streams",
    &async |tx, account, input: &StreamCreate| subscriptions::create_stream(tx, account, input).await,
)
.in_area(Area::Webhooks)
.checked_outside(|input| Outside { stream: Some(input.to.0.clone()), ..Outside::default() })
.with_event_kinds()
.creates_record(|created| created.id.uuid(), &Records::<WebhookSubscription>::GET)
.described(
    "Create a webhook whose events go to a broker",
    "Creates a webhook subscription whose events are sent to a broker, such as NATS, in place of deliveries to an \
     endpoint. It has no deliveries, retries, replays or tests: events wait until the broker takes them. The account \
     sees it, with `url` as the URL of the broker without its credentials, and cannot change it. The server must be \
     built with the client of the broker.",
    "The webhook subscription.",
);

/// Puts off the deletion of a temporary webhook subscription.
pub const KEEP_WEBHOOK: Operation<OfWebhook, WebhookLifetime, WebhookSubscription> = Operation::new(
    "keepWebhook",
    Method::Post,
    "webhooks",
    "keep",
    &async |tx, (account, id), input: &WebhookLifetime| {
        subscriptions::keep_for(tx, account, id, input.expires_in.duration()).await?;
        crud::get(tx, account, id).await
    },
)
.in_area(Area::Webhooks)
.retrieved_by(&Records::<WebhookSubscription>::GET)
.described(
    "Keep a temporary webhook",
    "Puts off the deletion of a temporary webhook subscription: it is deleted `expires_in` after this request. Any \
     other webhook subscription becomes a temporary one.",
    "The webhook subscription.",
);

/// Replaces the secret of a webhook subscription, which signs as well during an overlap.
pub const ROTATE_WEBHOOK_SECRET: Operation<OfWebhook, SecretRotation, WebhookSubscriptionWithSecret> = Operation::new(
    "rotateWebhookSecret",
    Method::Post,
    "webhooks",
    "rotate-secret",
    &async |tx, (account, id), input: &SecretRotation| {
        let overlap = Seconds::overlap(input.overlap);
        Ok(subscriptions::rotate_secret(tx, account, id, overlap).await?.into())
    },
)
.in_area(Area::Webhooks)
.described(
    "Rotate a signing secret",
    "Replaces the signing secret of the webhook subscription. The previous secret signs beside the new one during the \
     overlap. Store the new secret, as no other request returns it.",
    "The webhook subscription, with its new secret.",
);

/// Ends the overlap of a rotation.
pub const FINISH_WEBHOOK_ROTATION: Operation<OfWebhook, (), WebhookSubscription> = Operation::new(
    "finishWebhookSecretRotation",
    Method::Post,
    "webhooks",
    "finish-rotation",
    &async |tx, (account, id), _| subscriptions::finish_rotation(tx, account, id).await,
)
.in_area(Area::Webhooks)
.retrieved_by(&Records::<WebhookSubscription>::GET)
.described(
    "Finish a rotation",
    "Ends the overlap of a rotation at once: from the next attempt on, the new secret alone signs.",
    "The webhook subscription.",
);

/// Sends a test event to a webhook subscription.
pub const TEST_WEBHOOK: Operation<OfWebhook, WebhookTest, Delivery> =
    Operation::new("testWebhook", Method::Post, "webhooks", "test", &async |tx, (account, id), input: &WebhookTest| {
        Ok(subscriptions::send_test(tx, account, id, input.kind).await?.into())
    })
    .in_area(Area::Webhooks)
    .creates()
    .described(
        "Send a test event",
        "Sends an event with the sample record of its kind to this webhook subscription alone. Without `kind` it is of \
         the first kind that the subscription is for. A subscription that is disabled or paused, or is not for the \
         kind, is refused with 409 `not_allowed`.",
        "The delivery of the test event.",
    );

/// Checks that a webhook subscription exists, which may be deleted, and that an app made it itself.
async fn require_webhook(tx: &mut dyn Tx, (account, id): OfWebhook) -> Result<(), Error> {
    let found = Repository::<WebhookSubscription>::get(tx, account, id).await?;
    found.filter(|found| crud::is_visible(tx.actor(), found)).map(drop).ok_or(Error::NotFound)
}

/// Lists the attempts at an endpoint, those of the oldest event first. A page has the attempts at a bounded number of
/// deliveries.
pub const LIST_WEBHOOK_ATTEMPTS: Operation<OfWebhook, AttemptListParams, Page<AttemptSummary>> = Operation::new(
    "listWebhookAttempts",
    Method::Get,
    "webhooks",
    "attempts",
    &async |tx, (account, id), input: &AttemptListParams| {
        require_webhook(tx, (account, id)).await?;
        let params = LogParams { limit: None, cursor: input.cursor };
        let position = Position::of(tx, account, "attempts", &params, &(id, input.since))?;
        let since = input.since.map_or(Timestamp::from_micros(0), |since| since.0);
        let (attempts, next) = statistics::attempts(tx, account, id, position.before.unwrap_or(since)).await?;
        Ok(position.page(tx, attempts, next))
    },
)
.unwrapped()
.in_area(Area::Webhooks)
.reading(|_| MAX_LIMIT)
.described(
    "List the attempts at an endpoint",
    "Returns a page of the attempts at the deliveries to this webhook subscription, those of the oldest event first, \
     without the responses that they got. It is for statistics of any time span.",
    "A page of attempts.",
);

/// Returns the statistics of a webhook subscription.
pub const GET_WEBHOOK_STATISTICS: Operation<OfWebhook, (), Statistics> =
    Operation::new("getWebhookStatistics", Method::Get, "webhooks", "statistics", &async |tx, (account, id), _| {
        require_webhook(tx, (account, id)).await?;
        let hours = statistics::attempts_by_hour(tx, account, Some(id)).await?;
        let backlog = statistics::backlog(tx, account, id).await?;
        Ok(Statistics::new(hours, Some(backlog)))
    })
    .in_area(Area::Webhooks)
    .described(
        "Retrieve the statistics of a webhook",
        "Returns the attempts of the last 24 hours at this endpoint by hour, and how many of its deliveries are \
         pending and held.",
        "The statistics of the webhook subscription.",
    );

/// Returns the statistics of an account.
pub const GET_STATISTICS: Operation<TenantId, (), Statistics> =
    Operation::new("getStatistics", Method::Get, "statistics", "", &async |tx, account, _| {
        Ok(Statistics::new(statistics::attempts_by_hour(tx, account, None).await?, None))
    })
    .in_area(Area::Deliveries)
    .described(
        "Retrieve the statistics of an account",
        "Returns the attempts of the last 24 hours at all endpoints of the account, by hour.",
        "The statistics of the account.",
    );

/// Lists the deliveries of an account, the newest event first. The deliveries of one event have its time, and are never on
/// two pages.
///
/// One call reads a bounded number of rows, so a page of a rare kind may be short although there are more.
pub const LIST_DELIVERIES: Operation<TenantId, Listing<LogParams, DeliveryListFilter>, Page<Delivery>> =
    Operation::new("listDeliveries", Method::Get, "deliveries", "", &async |tx,
                                                                            account,
                                                                            input: &Listing<
        LogParams,
        DeliveryListFilter,
    >| {
        page_of_deliveries(tx, account, &input.page, &input.filter).await
    })
    .unwrapped()
    .in_area(Area::Deliveries)
    .reading(|input| input.page.limit.unwrap_or_default().get())
    .described(
        "List deliveries",
        "Returns a page of the deliveries of the account, the newest event first. The deliveries of one event stay on \
         one page, which may have more of them than `limit`. A page may have fewer, and even none, although there are \
         more: read on while `next_cursor` is not null.",
        "A page of deliveries.",
    );

/// Lists the deliveries to a webhook subscription, the newest event first.
///
/// One call reads a bounded number of rows, so a page of a rare kind may be short although there are more.
pub const LIST_WEBHOOK_DELIVERIES: Operation<OfWebhook, Listing<LogParams, WebhookDeliveryListFilter>, Page<Delivery>> =
    Operation::new("listWebhookDeliveries", Method::Get, "webhooks", "deliveries", &async |tx,
                                                                                           (account, id),
                                                                                           input: &Listing<
        LogParams,
        WebhookDeliveryListFilter,
    >| {
        require_webhook(tx, (account, id)).await?;
        let filter = DeliveryListFilter { subscription_id: Some(id), of_webhook: input.filter };
        page_of_deliveries(tx, account, &input.page, &filter).await
    })
    .unwrapped()
    .reading(|input| input.page.limit.unwrap_or_default().get())
    .described(
        "List the deliveries to a webhook",
        "Returns a page of the deliveries to the webhook subscription, the newest event first. A page may have fewer \
         than `limit`, and even none, although there are more: read on while `next_cursor` is not null.",
        "A page of deliveries.",
    );

async fn page_of_deliveries(
    tx: &mut dyn Tx,
    account: TenantId,
    page: &LogParams,
    sent: &DeliveryListFilter,
) -> Result<Page<Delivery>, Error> {
    let position = Position::of(tx, account, "deliveries", page, &sent.scope())?;
    let WebhookDeliveryListFilter { status, kind, since, until } = sent.of_webhook;
    let filter = DeliveryFilter {
        subscription_id: sent.subscription_id,
        status,
        kind,
        since: since.map(|since| since.0),
        until: position.before.into_iter().chain(until.map(|until| until.0)).min(),
        limit: position.limit,
        ..DeliveryFilter::default()
    };
    let found = deliveries::search(tx, account, &filter).await?;
    let mut rows = found.deliveries;
    let is_full = rows.len() == position.limit as usize;
    let last = rows.last().filter(|_| is_full).map(|last| last.created_at);
    if let Some(at) = last {
        let of_event =
            DeliveryFilter { since: Some(at), until: Some(at.next()), limit: logs::MAX_OF_ONE_TIME, ..filter };
        rows.retain(|delivery| delivery.created_at != at);
        rows.extend(tx.list_deliveries(account, &of_event).await?);
    }
    let rows = rows.into_iter().map(Delivery::from);
    Ok(position.page(tx, rows.collect(), last.or(found.next_until)))
}

/// Returns a delivery, which an app sees if it is to a subscription of its own.
async fn require_delivery(tx: &mut dyn Tx, account: TenantId, id: DeliveryId) -> Result<deliveries::Delivery, Error> {
    let delivery = tx.delivery(account, id).await?.ok_or(Error::NotFound)?;
    require_webhook(tx, (account, delivery.subscription_id)).await?;
    Ok(delivery)
}

/// The number of attempts in a response: with the body of the endpoint's response, each may have 100 KB of JSON.
const ATTEMPTS: u32 = 20;

/// Retrieves a delivery with its newest attempts.
pub const GET_DELIVERY: Operation<(TenantId, DeliveryId), (), DeliveryDetails> =
    Operation::new("getDelivery", Method::Get, "deliveries", "", &async |tx, (account, id), _| {
        let delivery = require_delivery(tx, account, id).await?;
        let event = tx.event(account, delivery.event_id).await?.ok_or(Error::NotFound)?;
        let mut log = tx.attempts(account, id, u32::MAX, ATTEMPTS).await?;
        log.reverse();
        Ok(DeliveryDetails { delivery: delivery.into(), event: event.into(), log })
    })
    .in_area(Area::Deliveries)
    .reading(|_| memory::EVENT + memory::ATTEMPTS)
    .with_etag()
    .described(
        "Retrieve a delivery",
        "Returns the delivery with its event and the log of its newest attempts, 20 at most.",
        "The delivery with this id.",
    );

/// Lists the attempts at a delivery, the newest first.
pub const LIST_DELIVERY_ATTEMPTS: Operation<(TenantId, DeliveryId), DeliveryAttemptListParams, Page<AttemptLog>> =
    Operation::new(
        "listDeliveryAttempts",
        Method::Get,
        "deliveries",
        "attempts",
        &async |tx, (account, id), input: &DeliveryAttemptListParams| {
            require_delivery(tx, account, id).await?;
            let params = LogParams { limit: None, cursor: input.cursor };
            let position = Position::of(tx, account, "delivery-attempts", &params, &id)?;
            // Attempts have numbers in place of times.
            let before = position.before.and_then(|before| u32::try_from(before.as_micros()).ok());
            let log = tx.attempts(account, id, before.unwrap_or(u32::MAX), ATTEMPTS).await?;
            let last = log.last().filter(|last| last.attempt > 1 && log.len() == ATTEMPTS as usize);
            let next = last.map(|last| Timestamp::from_micros(last.attempt.into()));
            Ok(position.page(tx, log, next))
        },
    )
    .unwrapped()
    .in_area(Area::Deliveries)
    .reading(|_| memory::ATTEMPTS)
    .described(
        "List the attempts at a delivery",
        "Returns a page of the log of the attempts at a delivery, the newest first, 20 at most: for a delivery that \
         was replayed often. Its next page has the earlier ones, while `next_cursor` is not null.",
        "A page of attempts.",
    );

/// Sends a delivery again.
pub const REPLAY_DELIVERY: Operation<(TenantId, DeliveryId), (), Delivery> =
    Operation::new("replayDelivery", Method::Post, "deliveries", "replay", &async |tx, (account, id), _| {
        require_delivery(tx, account, id).await?;
        Ok(replays::replay_delivery(tx, account, id).await?.into())
    })
    .in_area(Area::Deliveries)
    .described(
        "Replay a delivery",
        "Sends the delivery again: its next attempt is due now, and all its retries are ahead. It keeps its id. A \
         delivery of a subscription that is disabled, paused or deleted is refused with 409 `not_allowed`.",
        "The delivery.",
    );

/// Lists the newest bulk replays of an account.
pub const LIST_REPLAYS: Operation<TenantId, NewestParams, Page<Replay>> =
    Operation::new("listReplays", Method::Get, "replays", "", &async |tx, account, input: &NewestParams| {
        let replays = tx.replays(account, input.limit.unwrap_or_default().get()).await?;
        Ok(Page::whole(replays.into_iter().map(Replay::from).collect()))
    })
    .unwrapped()
    .in_area(Area::Deliveries)
    .reading(|input| input.limit.unwrap_or_default().get())
    .described(
        "List bulk replays",
        "Returns the newest bulk replays of the account with their progress, the newest first.",
        "The newest bulk replays.",
    );

/// Begins a bulk replay.
pub const CREATE_REPLAY: Operation<TenantId, ReplayCreate, Replay> =
    Operation::new("createReplay", Method::Post, "replays", "", &async |tx, account, input: &ReplayCreate| {
        begin_replay(tx, (account, input.subscription_id), &input.selection).await
    })
    .in_area(Area::Deliveries)
    .creates_record(|replay| replay.id.uuid(), &GET_REPLAY)
    .described(
        "Start a bulk replay",
        "Sends the deliveries of a time span to a webhook subscription again. The sender works on it in the \
         background; get the replay to follow its progress. A subscription that is disabled or paused is refused with \
         409 `not_allowed`.",
        "The bulk replay.",
    );

/// Begins a bulk replay of the deliveries to a webhook subscription.
pub const REPLAY_WEBHOOK: Operation<OfWebhook, ReplaySelection, Replay> = Operation::new(
    "replayWebhook",
    Method::Post,
    "webhooks",
    "replay",
    &async |tx, target, input: &ReplaySelection| begin_replay(tx, target, input).await,
)
.creates_in("replays", |replay| replay.id.uuid(), &GET_REPLAY)
.described(
    "Replay the deliveries to a webhook",
    "Sends the deliveries of a time span to the webhook subscription again, in the background; retrieve the bulk \
     replay to follow its progress. A subscription that is disabled or paused is refused with 409 `not_allowed`.",
    "The bulk replay.",
);

async fn begin_replay(
    tx: &mut dyn Tx,
    (account, subscription): OfWebhook,
    selection: &ReplaySelection,
) -> Result<Replay, Error> {
    if selection.until.is_some_and(|until| until < selection.since) {
        return Err(Issue::new(FieldCode::OutOfRange, "must not be before since").on("until"));
    }
    let replay = replays::ReplayCreate {
        until: selection.until,
        statuses: selection.statuses.clone().unwrap_or_default().0,
        missed: selection.missed.unwrap_or_default(),
        ..replays::ReplayCreate::new(subscription, selection.since)
    };
    Ok(replays::create(tx, account, replay).await?.into())
}

/// Retrieves a bulk replay.
pub const GET_REPLAY: Operation<(TenantId, ReplayId), (), Replay> =
    Operation::new("getReplay", Method::Get, "replays", "", &async |tx, (account, id), _| {
        let replay = tx.replay(account, id).await?.ok_or(Error::NotFound)?;
        require_webhook(tx, (account, replay.subscription_id)).await?;
        Ok(replay.into())
    })
    .in_area(Area::Deliveries)
    .with_etag()
    .described(
        "Retrieve a bulk replay",
        "Returns the bulk replay with its progress.",
        "The bulk replay with this id.",
    );
