//! `svc event`.

use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::json;
use svc_core::store::Store;
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::DeliveryId;
use svc_core::webhooks::events::{self, Event, EventId};

use super::input::read_input;
use super::{lookup, tenant};
use crate::cli::EventCommand;
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, fields};
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

pub(super) async fn run(store: &dyn Store, command: EventCommand) -> Result<Outcome, Failure> {
    match command {
        EventCommand::Emit { tenant, kind, data } => {
            let data = parse_record(&read_input(&data)?)?;
            emit(store, lookup::tenant(store, &tenant).await?.id, kind, data).await
        }
    }
}

async fn emit(store: &dyn Store, tenant: TenantId, kind: EventKind, data: Document) -> Result<Outcome, Failure> {
    let record = data.clone();
    let emitted = store
        .write("event.emit", move |tx| {
            let record = record.clone();
            Box::pin(async move { events::record_external(tx, tenant, kind, &record).await })
        })
        .await;
    let (event, deliveries) = emitted.or_not_found("tenant", tenant, tenant::HINT)?;
    let Event { id, created_at, .. } = event;
    let deliveries: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    let text = format!(
        "Emitted {kind}.\n\n{}\nData:\n{}\n",
        fields([
            ("id", id.to_string()),
            ("tenant id", tenant.to_string()),
            ("event", kind.to_string()),
            ("deliveries", deliveries.len().to_string()),
            ("created at", moment(created_at)),
        ]),
        pretty(&data)
    );
    let note = deliveries
        .is_empty()
        .then(|| format!("No webhook of the tenant subscribes to {kind}, so the event is not delivered."));
    Ok(Outcome::new(&View { id, tenant_id: tenant, event: kind, data, created_at, deliveries }, text)?.with_note(note))
}

/// Parses the record that the event is about. svc-core validates its members.
fn parse_record(bytes: &[u8]) -> Result<Document, Failure> {
    let refused =
        |reason: &str| Failure::new(Exit::Usage, format!("--data must be a JSON object with an id: {reason}"));
    match json::parse(bytes) {
        Ok(json) => Ok(Document::Json(json)),
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
                parse_record(good.as_bytes()).map(|data| serde_json::to_string(&data).unwrap()),
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
