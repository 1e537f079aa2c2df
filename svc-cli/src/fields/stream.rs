//! The option of a new webhook whose events go to a broker in place of deliveries.

use clap::{ArgMatches, Command, Error, FromArgMatches as _};
use svc_core::input::Input;
use svc_core::webhooks::subscriptions::StreamCreate;

use super::{Body, DATA, Field, fields};

/// The id of the option.
const STREAM: &str = "to";

/// Adds the option of a broker to the options of a new webhook, in place of the endpoint and of what concerns deliveries.
pub(crate) fn with_stream<I: Input>(command: Command) -> Command {
    let of_stream: Vec<Field> = fields::<StreamCreate>();
    let only_for_endpoints: Vec<String> = fields::<I>()
        .into_iter()
        .map(|field| field.name)
        .filter(|name| of_stream.iter().all(|field| field.name != *name))
        .collect();
    let command = of_stream.iter().filter(|field| field.name == STREAM).fold(command, |command, field| {
        let option = field.option().value_name("URL").conflicts_with(DATA);
        command.arg(option.conflicts_with_all(only_for_endpoints.clone()))
    });
    command.mut_arg("url", |url| url.required_unless_present_any([DATA, STREAM]))
}

/// Returns what was typed for a webhook whose events go to a broker, if it is one.
pub(crate) fn stream(matches: &ArgMatches) -> Result<Option<Body<StreamCreate>>, Error> {
    let is_stream = matches.try_contains_id(STREAM).unwrap_or(false);
    is_stream.then(|| Body::from_arg_matches(matches)).transpose()
}
