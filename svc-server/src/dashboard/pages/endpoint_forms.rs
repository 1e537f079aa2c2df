//! The forms of endpoints: adding one, and the page that shows a new secret.

use http::StatusCode;
use maud::{Markup, html};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::values::{EventKind, EventSet, Text, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};

use crate::dashboard::components::{Errors, FormState, copyable, csrf, heading};
use crate::dashboard::context::{Context, Form};
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};

/// Shows the form of a new endpoint.
pub(in crate::dashboard) async fn new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let state = FormState { values: &Form::of(b"events=*"), errors: &Errors::default() };
    Ok(form(cx, tenant, &state))
}

fn form(cx: &Context<'_>, tenant: &Tenant, state: &FormState<'_>) -> PageResponse {
    let content = html! {
        (heading("Add an endpoint", "", html! {}))
        form.card.fields method="post" action=(cx.url("/webhooks/new")) {
            (csrf(cx))
            (state.text("url", "URL", "An address of your program that takes POST requests over https."))
            (state.text("description", "Description", "For your own use. You can leave it empty."))
            (picker(cx, state))
            div.actions {
                button.primary type="submit" { "Add endpoint" }
                a.button href=(cx.url("/webhooks")) { "Cancel" }
            }
        }
    };
    layout::page(cx, Some(tenant), "Add an endpoint", &content)
}

/// Returns boxes for all events or for some of them, by what they are about: the first word of their names.
fn picker(cx: &Context<'_>, state: &FormState<'_>) -> Markup {
    let chosen: Vec<&str> = state.values.all("events").collect();
    let mut groups: Vec<(String, Vec<EventKind>)> = Vec::new();
    for kind in cx.svc.store().env().event_kinds.all() {
        let resource = kind.as_str().split('.').next().unwrap_or_default().to_owned();
        match groups.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, kinds)) => kinds.push(kind),
            None => groups.push((resource, vec![kind])),
        }
    }
    html! {
        fieldset.picker data-picker {
            legend { "Events" }
            @if let Some(error) = state.errors.of("events") { p.error { (error) } }
            label { input type="checkbox" name="events" value="*" checked[chosen.contains(&"*")]; " All events, also those of later versions" }
            p.hint { "Or these alone. If any of them is chosen, the endpoint receives what is chosen here and not all events." }
            @for (resource, kinds) in &groups {
                div.kinds {
                    h2 { (resource) }
                    @for kind in kinds {
                        label { input type="checkbox" name="events" value=(kind) checked[chosen.contains(&kind.as_str())]; " " (kind) }
                    }
                }
            }
        }
    }
}

fn read(form: &Form) -> Result<WebhookCreate, Errors> {
    let mut errors = Errors::default();
    let url = errors.take("url", WebhookUrl::parse(form.text("url")));
    let description = form.given("description").map(Text::parse).transpose();
    let description = errors.take("description", description);
    let names: Vec<&str> = form.all("events").collect();
    // The form of a new endpoint has the box of all events ticked, so who chooses single kinds wants these.
    let kinds: Vec<&str> = names.iter().copied().filter(|name| *name != "*").collect();
    let names = if kinds.is_empty() { names } else { kinds };
    let events = EventSet::from_names(names.iter().copied()).filter(|_| !names.is_empty());
    if events.is_none() {
        errors.add("events", "Choose all events, or at least one kind.");
    }
    match (url, description, events) {
        (Some(url), Some(description), Some(events)) => {
            Ok(WebhookCreate { description, ..WebhookCreate::new(url, events) })
        }
        _ => Err(errors),
    }
}

/// Creates an endpoint and shows its secret.
pub(in crate::dashboard) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let errors = match read(&cx.form) {
        Ok(input) => match cx.svc.account(tenant.id).webhooks().create(input).await {
            Ok(new) => return Ok(secret(cx, tenant, &new, "Endpoint added")),
            Err(Error::Store(error)) => return Err(PageError::Internal(error)),
            Err(refused) => {
                let mut errors = Errors::default();
                errors.add(refused_field(&refused), refused.to_string());
                errors
            }
        },
        Err(errors) => errors,
    };
    let state = FormState { values: &cx.form, errors: &errors };
    Ok(form(cx, tenant, &state).status(StatusCode::UNPROCESSABLE_ENTITY))
}

/// Returns the field at which a refusal by the rules is shown.
fn refused_field(refused: &Error) -> &'static str {
    match refused {
        Error::Validation(fields) if fields.as_slice().iter().any(|failing| failing.field.starts_with("events")) => {
            "events"
        }
        _ => "url",
    }
}

/// Shows a new secret. Its text is part of this response alone.
pub(super) fn secret(cx: &Context<'_>, tenant: &Tenant, endpoint: &WebhookSubscription, title: &str) -> PageResponse {
    let about = "Copy the secret now and store it where your program verifies signatures. It will not be shown again.";
    let content = html! {
        (heading(title, about, html! {}))
        div.card.fields {
            (copyable("secret", "Signing secret", endpoint.secret.reveal()))
            div.actions { a.button.primary href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { "I have stored it" } }
        }
    };
    layout::page(cx, Some(tenant), title, &content)
}
