//! `svc event`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use svc_core::error::Error;
use svc_core::events::{self, Event, EventKind};
use svc_core::json::{self, Json};
use svc_core::resource;
use svc_core::store::{DeliveryFilter, Store, StoreError};
use svc_core::types::{TenantId, Timestamp};
use uuid::Uuid;

use super::tenant;
use crate::cli::EventCommand;
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, fields};

/// The largest record, in bytes: as much as the API takes.
const MAX_DATA: u64 = 1 << 20;

/// An event as it is printed.
#[derive(Serialize)]
struct View {
    id: Uuid,
    tenant_id: TenantId,
    event: EventKind,
    data: Document,
    created_at: Timestamp,
    deliveries: Vec<Uuid>,
}

pub(super) async fn run(store: &dyn Store, command: EventCommand) -> Result<Outcome, Failure> {
    match command {
        EventCommand::Emit { tenant, kind, data } => emit(store, tenant, kind, record(&read(&data)?)?).await,
    }
}

async fn emit(store: &dyn Store, tenant: TenantId, kind: EventKind, data: Document) -> Result<Outcome, Failure> {
    let record = data.clone();
    let emitted = store
        .write("event.emit", move |tx| {
            let record = record.clone();
            Box::pin(async move {
                let now = resource::tick(tx, tenant).await?;
                events::emit(tx, tenant, now, &[kind], &record).await?;
                // No other event of the tenant has this time.
                let events = tx.events(tenant, now.minus(Duration::from_micros(1)), 1).await?;
                let event = events.into_iter().next().ok_or_else(|| StoreError::Fault("no event".to_owned()))?;
                let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::of_event(event.id)).await?;
                Ok((event, deliveries))
            })
        })
        .await;
    let (event, deliveries) = emitted.or_not_found("tenant", tenant, tenant::HINT)?;
    let Event { id, created_at, .. } = event;
    let deliveries: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.id).collect();
    let text = format!(
        "Emitted {kind}.\n\n{}\nData:\n{}\n",
        fields([
            ("id", id.to_string()),
            ("tenant id", tenant.to_string()),
            ("event", kind.to_string()),
            ("deliveries", deliveries.len().to_string()),
            ("created at", created_at.to_string()),
        ]),
        pretty(&data)
    );
    let note = deliveries.is_empty().then(|| format!("No webhook of the tenant takes {kind}, so nobody is told."));
    Ok(Outcome::new(&View { id, tenant_id: tenant, event: kind, data, created_at, deliveries }, text)?.with_note(note))
}

/// The bytes of a file, or of stdin for `-`.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let stdin = path.as_os_str() == "-";
    let mut bytes = Vec::new();
    let done = if stdin {
        io::stdin().lock().take(MAX_DATA + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MAX_DATA + 1).read_to_end(&mut bytes))
    };
    let name = if stdin { "stdin".into() } else { path.to_string_lossy() };
    match done {
        Err(why) => Err(Failure::new(Exit::Failed, format!("Cannot read {name}: {why}."))),
        Ok(size) if size as u64 > MAX_DATA => {
            Err(Failure::new(Exit::Usage, format!("--data must be at most 1 MiB; {name} is larger.")))
        }
        Ok(_) => Ok(bytes),
    }
}

/// The record that something happened to: an object with an id.
fn record(bytes: &[u8]) -> Result<Document, Failure> {
    let refused = |why: &str| Failure::new(Exit::Usage, format!("--data must be a JSON object with an id: {why}"));
    let json = match json::parse(bytes) {
        Ok(json) => json,
        Err(Error::Validation(violations)) => {
            let messages: Vec<&str> =
                violations.as_slice().iter().map(|violation| violation.message.as_str()).collect();
            return Err(refused(&format!("{}.", messages.join("; "))));
        }
        Err(Error::InvalidJson(_)) if bytes.trim_ascii().is_empty() => return Err(refused("it is empty.")),
        Err(error) => return Err(refused(&error.to_string().replace("The body", "it"))),
    };
    if !matches!(json, Json::Object(_)) {
        return Err(refused("it is JSON, but no object."));
    }
    let document = Document::Json(json);
    match document.member("id") {
        Some(Json::Number(_)) => Ok(document),
        Some(Json::String(id)) if !id.trim().is_empty() => Ok(document),
        Some(_) => Err(refused("its id must be a string that is not empty, or a number.")),
        None => Err(refused("it has no id.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_object_with_an_id() {
        for good in [r#"{"id":"stay-1"}"#, r#"{"nights":2,"id":7}"#] {
            assert_eq!(record(good.as_bytes()).map(|data| serde_json::to_string(&data).unwrap()), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", "empty"),
            ("{", "it must be valid JSON"),
            ("\u{feff}{}", "valid JSON"),
            ("[]", "no object"),
            ("{}", "no id"),
            (r#"{"id":null}"#, "its id"),
            (r#"{"id":" "}"#, "its id"),
            (r#"{"id":{}}"#, "its id"),
            (r#"{"id":1,"id":2}"#, "id must be sent only once"),
            (r#"{"id":"\u0000"}"#, "NUL"),
        ] {
            let failure = record(bad.as_bytes()).unwrap_err();
            assert!(failure.exit() == Exit::Usage && failure.message().contains(why), "{bad}: {failure:?}");
        }
    }
}
