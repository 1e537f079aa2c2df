//! `svc event`.

use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::FromJson as _;
use svc_core::input::json::{self, Json};
use svc_core::platform::operations::{EMIT_EVENT, EMIT_SAMPLE_EVENT};
use svc_core::platform::{AnyObject, EmittedEvent, Event, EventCreate, SampleEventCreate};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::DeliveryId;
use svc_core::webhooks::events::EventId;

use super::input::read_input;
use super::lookup;
use crate::cli::{EventCommand, Trigger};
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, fields};
use crate::service::{CallResult, Service};
use crate::times::moment;

/// An event in JSON output.
#[derive(Serialize)]
struct View {
    id: EventId,
    tenant_id: TenantId,
    event: EventKind,
    data: Document,
    created_at: Timestamp,
    deliveries: Vec<DeliveryId>,
}

pub(super) async fn run(service: &Service, command: EventCommand) -> Result<Outcome, Failure> {
    match command {
        EventCommand::Emit { account, kind, data } => {
            let data = parse_record(&read_input(&data)?)?;
            let account = lookup::account(service, &account).await?.id;
            let data = AnyObject::from_json(data).map_err(|issue| issue.on("data"))?;
            report(account, service.call(&EMIT_EVENT, account, EventCreate { kind, data }).await, "Emitted")
        }
    }
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
    let Event { id, kind, data, created_at, .. } = event;
    let data = Document::parse(data.0.get().as_bytes());
    let deliveries: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    let text = format!(
        "{verb} {kind}.\n\n{}\nData:\n{}\n",
        fields([
            ("id", id.to_string()),
            ("account id", account.to_string()),
            ("event", kind.to_string()),
            ("deliveries", deliveries.len().to_string()),
            ("created at", moment(created_at)),
        ]),
        pretty(&data)
    );
    let note = deliveries
        .is_empty()
        .then(|| format!("No webhook of the account subscribes to {kind}, so the event is not delivered."));
    Ok(Outcome::new(&View { id, tenant_id: account, event: kind, data, created_at, deliveries }, text)?.with_note(note))
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
