//! `svc webhook filter-test`: tries the filter of a webhook on an event.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use svc_core::values::{EventKind, EventKinds};
use svc_core::webhooks::filters::Filter;
use svc_core::webhooks::samples;

use crate::commands::input::read_input;
use crate::exit::{Exit, Failure};
use crate::output::Outcome;

/// The result in JSON output.
#[derive(Serialize)]
struct Trial {
    passes: bool,
    event: EventKind,
    data: Value,
}

pub(super) fn run(
    filter: &Filter,
    event: EventKind,
    data: Option<&Path>,
    kinds: &EventKinds,
) -> Result<Outcome, Failure> {
    let data = match data {
        Some(file) => serde_json::from_slice(&read_input(file)?)
            .map_err(|error| Failure::new(Exit::Usage, format!("--data is not JSON: {error}.")))?,
        None => samples::data(kinds, event).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("There is no sample of {event}; give its data with --data."))
        })?,
    };
    let passes = filter.matches(event, &data);
    let verdict = if passes { "The event passes the filter." } else { "The event does not pass the filter." };
    let shown = serde_json::to_string_pretty(&data).unwrap_or_default();
    Outcome::new(&Trial { passes, event, data }, format!("{verdict}\n\nevent  {event}\ndata   {shown}\n"))
}
