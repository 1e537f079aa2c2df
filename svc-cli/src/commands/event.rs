//! `svc event`.

use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::FromJson as _;
use svc_core::input::json::{self, Json};
use svc_core::operation::Listing;
use svc_core::pages::Since;
use svc_core::platform::operations::{EMIT_EVENT, EMIT_SAMPLE_EVENT, LIST_EVENTS};
use svc_core::platform::{
    AnyObject, DeliveryListFilter, EmittableKind, EmittedEvent, Event, EventCreate, EventListFilter, LogParams,
    SampleEventCreate, WebhookDeliveryListFilter,
};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::events::EventId;
use uuid::Uuid;

use super::delivery;
use super::input::read_input;
use super::lookup::{self, Owned};
use crate::cli::{EventCommand, Trigger};
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::service::{CallResult, Service, cut};
use crate::times::{full, moment};

/// An event in JSON output.
#[derive(Serialize)]
struct View {
    id: EventId,
    tenant_id: TenantId,
    event: EventKind,
    data: Document,
    created_at: Timestamp,
}

/// An event with its deliveries in JSON output.
#[derive(Serialize)]
struct WithDeliveries<D> {
    #[serde(flatten)]
    event: View,
    deliveries: Vec<D>,
}

impl From<Event> for View {
    fn from(event: Event) -> Self {
        let Event { id, tenant_id, kind, data, created_at, .. } = event;
        Self { id, tenant_id, event: kind, data: Document::parse(data.0.get().as_bytes()), created_at }
    }
}

/// The number of events among which those of a kind are looked for.
const MAX_SEARCHED: u32 = 2_000;

pub(super) async fn run(service: &Service, command: EventCommand) -> Result<Outcome, Failure> {
    match command {
        EventCommand::List { account, kind, since, limit } => {
            let account = lookup::account(service, &account).await?.id;
            let since = lookup::since_in(service, account, since).await?;
            list(service, account, kind, since, limit).await
        }
        EventCommand::Show { id, account } => show(service, lookup::find(service, &id, &account).await?).await,
        EventCommand::Emit { account, kind, data } => {
            let data = parse_record(&read_input(&data)?)?;
            let account = lookup::account(service, &account).await?.id;
            let data = AnyObject::from_json(data).map_err(|issue| issue.on("data"))?;
            let event = EventCreate { kind: EmittableKind(kind), data };
            report(account, service.call(&EMIT_EVENT, account, event).await, "Emitted")
        }
    }
}

async fn list(
    service: &Service,
    account: TenantId,
    kind: Option<EventKind>,
    since: Option<Since>,
    limit: u32,
) -> Result<Outcome, Failure> {
    let query = |limit, cursor: Option<Uuid>| {
        let page = LogParams { limit, cursor: cursor.map(Into::into) };
        Listing { page, filter: EventListFilter { kind, since, ..EventListFilter::default() } }
    };
    // One event more than the limit tells whether there are more.
    let (mut events, is_incomplete) = service.list(&LIST_EVENTS, account, limit.saturating_add(1), query).await?;
    let more = cut(&mut events, limit);
    let events: Vec<View> = events.into_iter().map(View::from).collect();
    let table = Table::new(["ID", "EVENT", "CREATED", "RECORD"], &events, |event| {
        let record = or_dash(event.data.text("id"));
        [event.id.to_string(), event.event.to_string(), full(event.created_at), record]
    });
    let note = if more {
        Some("There are more events; raise --limit to see them.")
    } else {
        is_incomplete.then_some("There may be more events of this kind that are older; --since limits the search.")
    };
    Ok(Outcome::list(&events, &table, "No events match.")?.with_note(note.map(str::to_owned)))
}

async fn show(service: &Service, found: Owned<Event>) -> Result<Outcome, Failure> {
    let Owned { tenant_id, record: event, .. } = found;
    // The time of an event is unique in its account, and its deliveries have it.
    let (since, until) = (Some(Since(event.created_at)), Some(Since(event.created_at.next())));
    let of_webhook = WebhookDeliveryListFilter { since, until, ..WebhookDeliveryListFilter::default() };
    let filter = DeliveryListFilter { subscription_id: None, of_webhook };
    let (deliveries, _) = delivery::newest(service, tenant_id, &filter, MAX_SEARCHED).await?;
    let event = View::from(event);
    let mut text = fields([
        ("id", event.id.to_string()),
        ("account id", event.tenant_id.to_string()),
        ("event", event.event.to_string()),
        ("created at", moment(event.created_at)),
    ]);
    let table = Table::new(["DELIVERY", "STATUS", "LAST STATUS", "ATTEMPTS", "WEBHOOK"], &deliveries, |delivery| {
        [
            delivery.id.to_string(),
            state(delivery.status),
            or_dash(delivery.last_status),
            delivery.attempts.to_string(),
            delivery.subscription_id.to_string(),
        ]
    });
    text.push_str(&if deliveries.is_empty() {
        "\nNo webhook subscribed to it.\n".to_owned()
    } else {
        format!("\n{}", table.to_text())
    });
    text.push_str(&format!("\nData:\n{}\n", pretty(&event.data)));
    let deliveries = deliveries.iter().map(delivery::view).collect();
    Outcome::new(&WithDeliveries { event, deliveries }, text)
}

/// Fires an event with the sample record of its kind.
pub(super) async fn trigger(service: &Service, options: Trigger) -> Result<Outcome, Failure> {
    let account = lookup::account(service, &options.account).await?.id;
    let sample = SampleEventCreate { kind: options.kind };
    report(account, service.call(&EMIT_SAMPLE_EVENT, account, sample).await, "Fired")
}

/// Returns an event that was fired as the result of a command.
fn report(account: TenantId, emitted: CallResult<EmittedEvent>, verb: &str) -> Result<Outcome, Failure> {
    let EmittedEvent { event, deliveries } = emitted?;
    let event = View::from(event);
    let kind = event.event;
    let deliveries: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    let text = format!(
        "{verb} {kind}.\n\n{}\nData:\n{}\n",
        fields([
            ("id", event.id.to_string()),
            ("account id", account.to_string()),
            ("event", kind.to_string()),
            ("deliveries", deliveries.len().to_string()),
            ("created at", moment(event.created_at)),
        ]),
        pretty(&event.data)
    );
    let note = deliveries
        .is_empty()
        .then(|| format!("No webhook of the account subscribes to {kind}, so the event is not delivered."));
    Ok(Outcome::new(&WithDeliveries { event, deliveries }, text)?.with_note(note))
}

/// Parses the record that the event is about. svc-core validates its members.
fn parse_record(bytes: &[u8]) -> Result<Json, Failure> {
    let refused =
        |reason: &str| Failure::new(Exit::Usage, format!("--data must be a JSON object with an id: {reason}"));
    match json::parse(bytes) {
        Ok(json @ Json::Object(_)) => Ok(json),
        Ok(_) => Err(refused("it is JSON, but no object.")),
        Err(Error::Validation(violations)) => {
            let messages: Vec<&str> =
                violations.as_slice().iter().map(|violation| violation.message.as_str()).collect();
            Err(refused(&format!("{}.", messages.join("; "))))
        }
        Err(Error::InvalidJson(_)) if bytes.trim_ascii().is_empty() => Err(refused("it is empty.")),
        Err(error) => Err(refused(&error.to_string().replace("The body", "it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_must_be_valid_json() {
        for good in [r#"{"id":"stay-1"}"#, r#"{"nights":2,"id":7.50}"#] {
            assert_eq!(
                parse_record(good.as_bytes()).map(|data| serde_json::to_string(&Document::Json(data)).unwrap()),
                Ok(good.to_owned())
            );
        }
        for (bad, error) in [
            ("", "empty"),
            ("{", "it must be valid JSON"),
            ("\u{feff}{}", "valid JSON"),
            (r#"{"id":1,"id":2}"#, "id must be sent only once"),
            (r#"{"id":"\u0000"}"#, "NUL"),
        ] {
            let failure = parse_record(bad.as_bytes()).unwrap_err();
            assert!(failure.exit() == Exit::Usage && failure.message().contains(error), "{bad}: {failure:?}");
        }
    }
}
