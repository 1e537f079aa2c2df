//! The fields of the form of an endpoint for what it asks for beyond the contract. Headers, authentication and certificates
//! are set by the API or with `svc` alone: they have secrets, or are files.

use svc_core::values::Patch;
use svc_core::webhooks::options::{self, Bounded, Ordering, Payload, RetryDelays, SignatureScheme};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookUpdate};

use crate::dashboard::prelude::*;

/// The field that says that the form has these fields.
const PRESENT: &str = "options";
/// The text for no retries.
const NO_RETRIES: &str = "none";

/// Returns the values of the fields for an endpoint.
pub(super) fn values_of(endpoint: &WebhookSubscription) -> Vec<(&'static str, String)> {
    let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    let retries = endpoint.retry_schedule.as_ref().map(|delays| match delays.seconds() {
        [] => NO_RETRIES.to_owned(),
        delays => delays.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    });
    vec![
        ("filter", endpoint.filter.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("payload", endpoint.payload.unwrap_or(Payload::Contract).to_string()),
        ("max_per_second", number(endpoint.max_per_second.map(Bounded::get))),
        ("max_in_flight", number(endpoint.max_in_flight.map(Bounded::get))),
        ("timeout", number(endpoint.timeout.map(Bounded::get))),
        ("retry_schedule", retries.unwrap_or_default()),
        ("ordering", endpoint.ordering.unwrap_or(Ordering::None).to_string()),
        ("signature", endpoint.signature.unwrap_or(SignatureScheme::Hmac).to_string()),
    ]
}

/// Returns the fields. They are open if one of them is set or was refused.
pub(super) fn fields(state: &FormState<'_>) -> Markup {
    let defaults = ["", Payload::Contract.as_str(), Ordering::None.as_str(), SignatureScheme::Hmac.as_str()];
    let is_default = |value: &str| defaults.contains(&value);
    let is_open = |name: &&str| !is_default(state.values.text(name)) || state.errors.of(name).is_some();
    let is_set = options::FIELDS.iter().any(is_open);
    html! {
        details.more open[is_set] {
            summary { "More: a filter, a pace, an order, signatures" }
            input type="hidden" name=(PRESENT) value="on";
            div {
                (state.text("filter", "Filter", "Sends only events that pass, such as data.city == \"Perth\" and not (data.total < 100). Empty: all."))
                (state.choice("payload", "Payload", "With the id alone, your program reads the event from the API.",
                    &[("contract", "the whole record"), ("thin", "the id alone")]))
                (state.choice("ordering", "Order", "The events of one record arrive in order, and wait while an earlier delivery is retried.",
                    &[("none", "none"), ("record", "keep the order of each record")]))
                (state.choice("signature", "Signature", "With a public key, your program needs no secret to verify deliveries.",
                    &[("hmac", "with the secret"), ("ed25519", "with the secret, and for a public key")]))
                (state.text("max_per_second", "Most deliveries a second", "From 1 to 1000. Empty: as many as your program takes."))
                (state.text("max_in_flight", "Most requests at the same time", "From 1 to 64. Empty: up to 64 while they succeed."))
                (state.text("timeout", "Timeout in seconds", "From 1 to 30. Empty: that of the service."))
                (state.text("retry_schedule", "Waits before retries in seconds", "Up to five from 60 to 14400, such as 60, 600, 3600. Empty: those of the service. none: no retries."))
            }
        }
    }
}

/// Reads the fields. Those of a form that has none of them stay.
pub(super) fn read(form: &Form, errors: &mut Errors) -> WebhookUpdate {
    if form.given(PRESENT).is_none() {
        return WebhookUpdate::default();
    }
    let one_of = "Choose one of the values.";
    let retries = form.given("retry_schedule").map(delays).transpose();
    WebhookUpdate {
        filter: Patch::Set(errors.take("filter", form.given("filter").map(str::parse).transpose()).flatten()),
        payload: Patch::Set(errors.take("payload", Payload::from_text(form.text("payload")).ok_or(one_of))),
        max_per_second: Patch::Set(number(form, errors, "max_per_second")),
        max_in_flight: Patch::Set(number(form, errors, "max_in_flight")),
        timeout: Patch::Set(number(form, errors, "timeout")),
        retry_schedule: Patch::Set(errors.take("retry_schedule", retries).flatten()),
        ordering: Patch::Set(errors.take("ordering", Ordering::from_text(form.text("ordering")).ok_or(one_of))),
        signature: Patch::Set(
            errors.take("signature", SignatureScheme::from_text(form.text("signature")).ok_or(one_of)),
        ),
        ..WebhookUpdate::default()
    }
}

fn number<const MIN: u32, const MAX: u32>(
    form: &Form,
    errors: &mut Errors,
    name: &'static str,
) -> Option<Bounded<MIN, MAX>> {
    let parse = |text: &str| {
        let number = text.parse().map_err(|_| format!("must be a whole number from {MIN} to {MAX}"))?;
        Bounded::new(number).map_err(|issue| issue.to_string())
    };
    errors.take(name, form.given(name).map(parse).transpose()).flatten()
}

fn delays(text: &str) -> Result<RetryDelays, String> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty() && *word != NO_RETRIES);
    let seconds =
        words.map(|word| word.parse().map_err(|_| format!("must be whole numbers of seconds, and {word} is none")));
    RetryDelays::new(seconds.collect::<Result<_, _>>()?).map_err(|issue| issue.to_string())
}

/// Adds what [`read`] returned to a new endpoint.
pub(super) fn create(options: WebhookUpdate, new: WebhookCreate) -> WebhookCreate {
    WebhookCreate {
        filter: options.filter.unwrap_or(None),
        payload: options.payload.unwrap_or(None),
        max_per_second: options.max_per_second.unwrap_or(None),
        max_in_flight: options.max_in_flight.unwrap_or(None),
        timeout: options.timeout.unwrap_or(None),
        retry_schedule: options.retry_schedule.unwrap_or(None),
        ordering: options.ordering.unwrap_or(None),
        signature: options.signature.unwrap_or(None),
        ..new
    }
}
