//! `svc event`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, Subcommand, value_parser};
use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::FromJson as _;
use svc_core::input::json::{self, Json};
use svc_core::pages::Since;
use svc_core::platform::operations::{EMIT_EVENT, EMIT_SAMPLE_EVENT, LIST_DELIVERIES, LIST_EVENTS};
use svc_core::platform::{
    AnyObject, DeliveryListFilter, EmittableKind, EmittedEvent, Event, EventCreate, EventListFilter, SampleEventCreate,
    WebhookDeliveryListFilter,
};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::events::EventId;

use super::delivery;
use super::input::read_input;
use super::lookup::{self, FoundRecord};
use crate::document::Document;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, Table, or_dash, pretty, state};
use crate::record::{Property, details, optional, table, text, time};
use crate::service::{CallResult, Service, cut};
use crate::session::Session;
use crate::times;
use crate::values::{self, TimeArg};

/// List and show events, and emit those that originate outside this service.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc event list --kind invoice.paid")]
pub(crate) enum EventCommand {
    /// List the events of an account, newest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc event list\n  svc event list --kind invoice.paid --since 2026-11-01"
    )]
    List {
        #[command(flatten)]
        account: InAccount,
        /// List only events of this kind.
        #[arg(long, value_parser = values::kind_of_event(), hide_possible_values = true, value_name = "KIND")]
        kind: Option<EventKind>,
        /// List only events since this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago, such as
        /// 2h or 7d. A date is its start.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// Maximum number of events to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..=2000), default_value = "50", value_name = "N")]
        limit: u32,
    },
    /// Show an event, the record in it and its deliveries.
    #[command(after_help = "Example:\n  svc event show 3ca7519be04d")]
    Show {
        /// Id of the event, or a part of it that no other one has.
        id: IdArg,
        #[command(flatten)]
        account: InAccount,
    },
    /// Emit an event about a stay or a cohort, or of a kind of --event-kinds.
    ///
    /// The event is delivered to the account's webhooks that subscribe to its kind. Events of all other kinds are
    /// emitted only by the operations that they report.
    #[command(after_help = "Examples:\n  svc event emit --kind stay.created --data stay.json\n  \
                      echo '{\"id\": \"stay-1\"}' | svc event emit --kind stay.checked_in --data -")]
    Emit {
        #[command(flatten)]
        account: InAccount,
        /// Kind of the event.
        #[arg(long, value_parser = KindToEmit)]
        kind: EventKind,
        /// File with the record that the event is about, or - for stdin: a JSON object, at most 1 MiB. It fits the
        /// schema of its kind in the file of --event-kinds; that of a stay or a cohort has an `id`.
        #[arg(long, value_name = "FILE|-")]
        data: PathBuf,
    },
}

/// Fire an event of any kind with a sample record, to try a receiver.
///
/// The event is delivered like any other, to every webhook of the account that subscribes to its kind. Its record is made
/// up, and nothing is stored but the event and its deliveries. `svc webhook test` sends such an event to one webhook.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc trigger invoice.paid\n  svc trigger stay.created --json")]
pub(crate) struct Trigger {
    /// Kind of the event.
    #[arg(value_parser = values::kind_of_event(), hide_possible_values = true)]
    pub(crate) kind: EventKind,
    #[command(flatten)]
    pub(crate) account: InAccount,
}

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

/// A parser for the event kinds that `svc event emit` can emit: those of stays and cohorts, and custom ones. All other
/// kinds are emitted only by the operations that they report.
#[derive(Clone, Copy, Debug)]
struct KindToEmit;

/// Returns whether `svc event emit` can emit events of this kind.
pub(crate) fn can_be_emitted(kind: EventKind) -> bool {
    kind.is_external() || !kind.is_built_in()
}

impl KindToEmit {
    fn parse_kind(text: &str) -> Result<EventKind, String> {
        let possible: Vec<&str> =
            EventKind::BUILT_IN.iter().filter(|kind| kind.is_external()).map(|kind| kind.as_str()).collect();
        let possible = format!("must be one of {}, or of --event-kinds", possible.join(", "));
        match EventKind::from_text(text) {
            Some(kind) if can_be_emitted(kind) => Ok(kind),
            Some(kind) => Err(format!("{kind} is emitted only by its own operation; {possible}")),
            None => Err(possible),
        }
    }
}

impl TypedValueParser for KindToEmit {
    type Value = EventKind;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<EventKind, clap::Error> {
        TypedValueParser::parse_ref(&Self::parse_kind, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = EventKind::BUILT_IN.iter().filter(|kind| kind.is_external());
        Some(Box::new(kinds.map(|kind| PossibleValue::new(kind.as_str()))))
    }
}

pub(crate) async fn run(session: &Session, command: EventCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        EventCommand::List { account, kind, since, limit } => {
            let account = lookup::account(service, &account).await?.id;
            let since = times::since(since.as_ref())?;
            list(service, account, kind, since, limit).await
        }
        EventCommand::Show { id, account } => show(service, lookup::find(service, &id, &account).await?).await,
        EventCommand::Emit { account, kind, data } => {
            let data = parse_record(&read_input(&data)?)?;
            let account = lookup::account(service, &account).await?.id;
            let data = AnyObject::from_json(data).map_err(|issue| issue.on("data"))?;
            let event = EventCreate { kind: EmittableKind(kind), data };
            report(service.call(&EMIT_EVENT, account, event).await, "Emitted")
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
    let filter = EventListFilter { kind, since, ..EventListFilter::default() };
    // One event more than the limit tells whether there are more.
    let (mut events, is_incomplete) = service.newest(&LIST_EVENTS, account, &filter, limit.saturating_add(1)).await?;
    let more = cut(&mut events, limit);
    let events: Vec<View> = events.into_iter().map(View::from).collect();
    let note = if more {
        Some("There are more events; raise --limit to see them.")
    } else {
        is_incomplete.then_some("There may be more events of this kind that are older; --since limits the search.")
    };
    Ok(Outcome::list(&events, &table(&events, describe), "No events match.")?.with_note(note.map(str::to_owned)))
}

async fn show(service: &Service, found: FoundRecord<Event>) -> Result<Outcome, Failure> {
    let FoundRecord { tenant_id, record: event, .. } = found;
    // The time of an event is unique in its account, and its deliveries have it.
    let (since, until) = (Some(Since(event.created_at)), Some(Since(event.created_at.next())));
    let of_webhook = WebhookDeliveryListFilter { since, until, ..WebhookDeliveryListFilter::default() };
    let filter = DeliveryListFilter { subscription_id: None, of_webhook };
    let (deliveries, _) = service.newest(&LIST_DELIVERIES, tenant_id, &filter, MAX_SEARCHED).await?;
    let event = View::from(event);
    let mut text = details(describe(&event));
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

fn describe(event: &View) -> Vec<Property> {
    vec![
        text("id", event.id).column(1, "ID"),
        text("account id", event.tenant_id),
        text("event", event.event).column(2, "EVENT"),
        time("created at", event.created_at).column(3, "CREATED"),
        optional("", event.data.text("id")).column(4, "RECORD"),
    ]
}

/// Fires an event with the sample record of its kind.
pub(crate) async fn trigger(session: &Session, options: Trigger) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    let account = lookup::account(service, &options.account).await?.id;
    let sample = SampleEventCreate { kind: options.kind };
    report(service.call(&EMIT_SAMPLE_EVENT, account, sample).await, "Fired")
}

/// Returns an event that was fired as the result of a command.
fn report(emitted: CallResult<EmittedEvent>, verb: &str) -> Result<Outcome, Failure> {
    let EmittedEvent { event, deliveries } = emitted?;
    let event = View::from(event);
    let kind = event.event;
    let deliveries: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    let mut fields = describe(&event);
    fields.insert(3, text("deliveries", deliveries.len()));
    let text = format!("{verb} {kind}.\n\n{}\nData:\n{}\n", details(fields), pretty(&event.data));
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

    #[test]
    fn only_kinds_of_external_events_can_be_emitted() {
        let possible = KindToEmit.possible_values().unwrap();
        let names: Vec<String> = possible.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(names.len(), 7);
        assert!(names.iter().all(|name| KindToEmit::parse_kind(name).is_ok()));
        assert!(KindToEmit::parse_kind("invoice.paid").unwrap_err().contains("own operation"));
        assert!(KindToEmit::parse_kind("stay.Created").unwrap_err().starts_with("must be one of stay.created, "));
    }
}
