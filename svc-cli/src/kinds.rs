//! Checks the event kinds that were typed. Which there are depends on the file of `--event-kinds`, and so on another option.

use std::ffi::{OsStr, OsString};

use clap::CommandFactory as _;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use svc_core::input::json::Json;
use svc_core::values::EventKind;

use crate::cli::{Cli, Command};
use crate::commands::event::{EventCommand, can_be_emitted};
use crate::commands::records::RecordCommand;
use crate::commands::webhook::WebhookCommand;
use crate::fields::{BodySource, FieldValue};
use crate::help;

/// Refuses an event kind that the service does not have, as clap refuses the value of any other option.
///
/// `svc webhook update` is left to the rules, as a webhook keeps a kind that is no longer in the file.
pub(crate) fn check(cli: &Cli, args: &[OsString]) -> Result<(), clap::Error> {
    let known = cli.event_kinds.clone().unwrap_or_default();
    let (option, typed) = typed(&cli.command);
    let Some(unknown) = typed.into_iter().find(|kind| !known.contains(*kind)) else { return Ok(()) };
    let is_emitted = matches!(cli.command, Command::Event(_));
    let possible = known.all().filter(|kind| !is_emitted || can_be_emitted(*kind));
    let mut root = Cli::command();
    root.build();
    let command = help::command_of(&root, args);
    let option = command.get_arguments().find(|arg| arg.get_id() == option);
    let parser = PossibleValuesParser::new(possible.map(|kind| kind.to_string()));
    parser.parse_ref(command, option, OsStr::new(unknown.as_str())).map(drop)
}

/// Returns the event kinds of a command, and the name of their option.
fn typed(command: &Command) -> (&'static str, Vec<EventKind>) {
    match command {
        Command::Trigger(trigger) => ("kind", vec![trigger.kind]),
        Command::Event(EventCommand::Emit { kind, .. }) => ("kind", vec![*kind]),
        Command::Listen(listen) => ("events", listen.events.clone()),
        Command::Webhook(WebhookCommand::Test { event, .. }) => ("event", event.iter().copied().collect()),
        Command::Webhook(WebhookCommand::Records(RecordCommand::Create(create))) => {
            ("events", named_in(&create.body.source))
        }
        _ => ("", Vec::new()),
    }
}

/// Returns the event kinds among the fields of a body.
fn named_in(source: &BodySource) -> Vec<EventKind> {
    let BodySource::Options(fields) = source else { return Vec::new() };
    let events = fields.iter().find(|(name, _)| name == "events");
    let Some((_, FieldValue::Json(Json::Array(names)))) = events else { return Vec::new() };
    let kind = |name: &Json| match name {
        Json::String(name) => EventKind::from_text(name),
        _ => None,
    };
    names.iter().filter_map(kind).collect()
}
