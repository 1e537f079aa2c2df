//! The forms of endpoints: adding one, changing one, trying one before it is saved, and the page that shows a new secret.

use http::StatusCode;
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::values::{EventKind, EventSet, Patch, Text, WebhookUrl};
use svc_core::webhooks::addresses;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

use crate::dashboard::pages::endpoint_options;
use crate::dashboard::pages::new_secrets::{NewSecrets, STORED, SecretsPage, text_of};
use crate::dashboard::prelude::*;
use crate::dashboard::trials::{self, TrialResult};

/// The subject of a form: a new endpoint, or one that is there.
#[derive(Clone, Copy)]
enum Subject<'e> {
    New,
    Existing(&'e WebhookSubscription),
}

/// Shows the form of a new endpoint.
pub(crate) async fn new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    Ok(form(cx, tenant, Subject::New, &FormState::new(&Form::of(b"selection=all")), None))
}

/// Shows the form of an endpoint that is there.
pub(crate) async fn edit(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoint = cx.svc.account(tenant.id).webhooks().get(cx.id()?).await?;
    if endpoint.grant_id.is_some() {
        return Err(PageError::Refused("This endpoint belongs to an app, which alone changes it.".to_owned()));
    }
    Ok(form(cx, tenant, Subject::Existing(&endpoint), &FormState::new(&values_of(&endpoint)), None))
}

fn values_of(endpoint: &WebhookSubscription) -> Form {
    let selection = if endpoint.events == EventSet::All { "all" } else { "kinds" };
    let description = endpoint.description.as_ref().map_or("", Text::as_str);
    let mut fields = vec![
        ("url", endpoint.url.as_str().to_owned()),
        ("description", description.to_owned()),
        ("selection", selection.to_owned()),
    ];
    fields.extend(endpoint_options::values_of(endpoint));
    fields.extend(endpoint.events.names().iter().map(|name| ("events", (*name).to_owned())));
    Form::from_fields(fields)
}

fn form(
    cx: &Context<'_>,
    tenant: &Tenant,
    subject: Subject<'_>,
    state: &FormState<'_>,
    tried: Option<&TrialResult>,
) -> PageResponse {
    let (title, action, back, path) = match subject {
        Subject::New => ("Add an endpoint", "Add endpoint", "/webhooks".to_owned(), "/webhooks/new".to_owned()),
        Subject::Existing(endpoint) => {
            let back = format!("/webhooks/{}", endpoint.id);
            ("Change an endpoint", "Save", back.clone(), format!("{back}/edit"))
        }
    };
    let (try_path, version, of_url) = match subject {
        Subject::New => {
            let of_url = "An address of your program that takes POST requests over https.";
            ("/webhooks/new/try".to_owned(), String::new(), of_url)
        }
        Subject::Existing(endpoint) => {
            let of_url = "An address of your program that takes POST requests over https. What is waiting is sent there as well. \
                          Headers, authentication and the client certificate stay with the host that they were set for: another \
                          one gets none.";
            (format!("{back}/try"), endpoint.updated_at.to_string(), of_url)
        }
    };
    let content = html! {
        (heading(title, "", html! {}))
        @if let Some(tried) = tried { (tried.card(matches!(subject, Subject::New))) }
        form.card.fields method="post" action=(cx.url(&path)) {
            (hidden(cx, state.values, &version))
            (state.text("url", "URL", of_url))
            (state.text("description", "Description", "For your own use. You can leave it empty."))
            (picker(cx, subject, state))
            (endpoint_options::fields(state))
            div.actions {
                button.primary type="submit" { (action) }
                @if cx.site.trials.is_some() {
                    button type="submit" formaction=(cx.url(&try_path)) { "Try it" }
                }
                a.button href=(cx.url(&back)) { "Cancel" }
            }
            @if cx.site.trials.is_some() {
                p.hint { b { "Try it" } " sends one signed test request to the URL now, and shows what comes back. Nothing is saved. \
                    Headers, authentication and the client certificate go to the saved host alone." }
            }
        }
    };
    layout::page(cx, Some(tenant), title, &content)
}

/// Returns the choice between all events and single kinds, of which the kinds are a table. Without a script, the style hides
/// the kinds while all are chosen.
fn picker(cx: &Context<'_>, subject: Subject<'_>, state: &FormState<'_>) -> Markup {
    let selection = state.values.text("selection");
    html! {
        fieldset.picker {
            legend { "Events" }
            @if let Some(error) = state.errors.of("events") { p.error role="alert" { (error) } }
            label { input type="radio" name="selection" value="all" checked[selection == "all"]; " All events, also those of later versions" }
            label { input type="radio" name="selection" value="kinds" checked[selection == "kinds"]; " These kinds alone:" }
            (kinds_table(cx, subject, Some(state.values)))
        }
    }
}

/// Returns the table of event kinds with what each is sent for. With `chosen`, kinds can be ticked; else it has the kinds that
/// the endpoint takes.
fn kinds_table(cx: &Context<'_>, subject: Subject<'_>, chosen: Option<&Form>) -> Markup {
    let known = &cx.svc.store().env().event_kinds;
    let mut kinds: Vec<(EventKind, String)> = known.all().map(|kind| (kind, known.meaning(kind))).collect();
    if let Subject::Existing(WebhookSubscription { events: EventSet::Kinds(own), .. }) = subject {
        let is_known = |kind: &EventKind| kinds.iter().any(|(known, _)| known == kind);
        let gone: Vec<EventKind> = own.iter().copied().filter(|kind| !is_known(kind)).collect();
        kinds.extend(gone.into_iter().map(|kind| (kind, "This service does not have the kind any more.".to_owned())));
    }
    if let (Subject::Existing(endpoint), None) = (subject, chosen) {
        kinds.retain(|(kind, _)| endpoint.events.contains(*kind));
    }
    let ticked: Vec<&str> = chosen.map(|form| form.all("events").collect()).unwrap_or_default();
    table(
        "Event kinds",
        &["Event", "Sent when"],
        html! {
            @for (kind, meaning) in &kinds {
                tr {
                    th scope="row" {
                        @if chosen.is_some() {
                            label { input type="checkbox" name="events" value=(kind) checked[ticked.contains(&kind.as_str())]; " " (kind) }
                        } @else { (kind) }
                    }
                    td {
                        // What stands between backquotes is code.
                        @for (at, part) in meaning.split('`').enumerate() {
                            @if at % 2 == 1 { code { (part) } } @else { (part) }
                        }
                    }
                }
            }
        },
    )
}

/// Returns the table of the kinds that an endpoint takes.
pub(super) fn kinds_of(cx: &Context<'_>, endpoint: &WebhookSubscription) -> Markup {
    kinds_table(cx, Subject::Existing(endpoint), None)
}

/// The fields of a form of an endpoint.
struct Fields {
    url: WebhookUrl,
    description: Option<Text<500>>,
    events: EventSet,
    /// The options beyond the contract.
    options: WebhookUpdate,
}

fn read(form: &Form) -> Result<Fields, Errors> {
    let mut errors = Errors::default();
    let url = errors.take("url", WebhookUrl::parse(form.text("url")));
    let description = errors.take("description", form.given("description").map(Text::parse).transpose());
    let events = errors.take("events", selected(form));
    let options = endpoint_options::read(form, &mut errors);
    match (url, description, events) {
        (Some(url), Some(description), Some(events)) if errors.is_empty() => {
            Ok(Fields { url, description, events, options })
        }
        _ => Err(errors),
    }
}

/// Returns the events that a form selects: all of them or single kinds, and never both.
fn selected(form: &Form) -> Result<EventSet, &'static str> {
    match form.text("selection") {
        "all" => Ok(EventSet::All),
        "kinds" => {
            let names: Vec<&str> = form.all("events").filter(|name| *name != "*").collect();
            let events = EventSet::from_names(names.iter().copied()).filter(|_| !names.is_empty());
            events.ok_or("Choose at least one kind, or all events.")
        }
        _ => Err("Choose all events, or single kinds."),
    }
}

/// Returns what the page of a new secret shows of an endpoint.
pub(super) fn secret_of(endpoint: &WebhookSubscription) -> NewSecrets {
    NewSecrets { id: endpoint.id.uuid(), secret: text_of(Some(&endpoint.secret)), ..NewSecrets::default() }
}

/// Creates an endpoint and shows its secret.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let fields = match read(&cx.form) {
        Ok(fields) => fields,
        Err(errors) => return Ok(refilled(cx, tenant, Subject::New, &errors)),
    };
    let new = WebhookCreate { description: fields.description, ..WebhookCreate::new(fields.url, fields.events) };
    let new = endpoint_options::create(fields.options, new);
    let new = submit(cx, tenant.id, "dashboard.create_endpoint", new, async |tx, form| {
        Ok(secret_of(&crud::create::<WebhookSubscription>(tx, form.tenant, form.input.clone()).await?))
    });
    match new.await {
        Ok(new) => Ok(secret(cx, tenant, &new, "Endpoint added")),
        Err(error) => refused(cx, tenant, Subject::New, error),
    }
}

/// Changes an endpoint, which must be as the form showed it.
pub(crate) async fn change(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoint = cx.svc.account(tenant.id).webhooks().get(cx.id::<SubscriptionId>()?).await?;
    let fields = match read(&cx.form) {
        Ok(fields) => fields,
        Err(errors) => return Ok(refilled(cx, tenant, Subject::Existing(&endpoint), &errors)),
    };
    let change = WebhookUpdate {
        url: Patch::Set(fields.url),
        events: Patch::Set(fields.events),
        description: Patch::Set(fields.description),
        ..fields.options
    };
    let changed = submit(cx, tenant.id, "dashboard.change_endpoint", (endpoint.id, change), async |tx, form| {
        let (id, change) = &form.input;
        let before: WebhookSubscription = crud::get(tx, form.tenant, *id).await?;
        form.check_version(&before.updated_at.to_string())?;
        crud::update(tx, form.tenant, *id, change.clone()).await.map(|_: WebhookSubscription| ())
    });
    match changed.await {
        Ok(()) => Ok(cx.see_other(&format!("/webhooks/{}?notice=saved", endpoint.id))),
        Err(error) => refused(cx, tenant, Subject::Existing(&endpoint), error),
    }
}

/// Returns the form with what the rules refused.
fn refused(cx: &Context<'_>, tenant: &Tenant, subject: Subject<'_>, error: Error) -> Result<PageResponse, PageError> {
    let (field, reason, status) = match error {
        Error::Store(_) | Error::NotFound => return Err(error.into()),
        Error::PreconditionFailed => ("url", changed_meanwhile("endpoint"), StatusCode::CONFLICT),
        Error::IdempotencyKeyReused => {
            let reason = "This form was saved before, with other values. Load it again for another change.";
            ("url", reason.to_owned(), StatusCode::CONFLICT)
        }
        Error::Validation(ref fields)
            if fields.as_slice().iter().any(|failing| failing.field.starts_with("events")) =>
        {
            ("events", error.to_string(), StatusCode::UNPROCESSABLE_ENTITY)
        }
        refused => ("url", refused.to_string(), StatusCode::UNPROCESSABLE_ENTITY),
    };
    let mut errors = Errors::default();
    errors.add(field, reason);
    Ok(refilled(cx, tenant, subject, &errors).status(status))
}

fn refilled(cx: &Context<'_>, tenant: &Tenant, subject: Subject<'_>, errors: &Errors) -> PageResponse {
    let state = FormState::refused(&cx.form, errors);
    form(cx, tenant, subject, &state, None).status(StatusCode::UNPROCESSABLE_ENTITY)
}

/// Sends a test request to the URL of a form that is not saved yet, and shows the form again with what came back.
pub(crate) async fn try_new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    try_form(cx, tenant, Subject::New, &cx.form).await
}

/// Sends a test request to the URL in the form of an endpoint, or else to its own, whether it is enabled or not.
pub(crate) async fn try_existing(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoint = cx.svc.account(tenant.id).webhooks().get(cx.id::<SubscriptionId>()?).await?;
    let own = values_of(&endpoint);
    let values = if cx.form.given("selection").is_some() { &cx.form } else { &own };
    try_form(cx, tenant, Subject::Existing(&endpoint), values).await
}

async fn try_form(
    cx: &Context<'_>,
    tenant: &Tenant,
    subject: Subject<'_>,
    values: &Form,
) -> Result<PageResponse, PageError> {
    let trials = cx.site.trials.as_ref().ok_or(PageError::NotFound)?;
    let hosts = cx.svc.store().env().webhook_hosts;
    let url = WebhookUrl::parse(values.text("url"));
    let url = match url.and_then(|url| addresses::check_url(&url, hosts).map(|()| url)) {
        Ok(url) => url,
        Err(issue) => {
            let mut errors = Errors::default();
            errors.add("url", issue.to_string());
            let state = FormState::refused(values, &errors);
            return Ok(form(cx, tenant, subject, &state, None).status(StatusCode::UNPROCESSABLE_ENTITY));
        }
    };
    let kind = match selected(values) {
        Ok(EventSet::Kinds(kinds)) => kinds.first().copied(),
        _ => None,
    };
    let own = match subject {
        Subject::New => None,
        Subject::Existing(endpoint) => Some(endpoint),
    };
    // What is stored for the host of the endpoint goes there alone.
    let is_saved_host = own.is_none_or(|own| own.url.has_origin_of(&url));
    let request = trials::request(cx.svc.store().env(), tenant.id, own.filter(|_| is_saved_host), url, kind);
    let tried = trials.send(request, !is_saved_host).await?;
    Ok(form(cx, tenant, subject, &FormState::new(values), Some(&tried)))
}

/// Shows a new secret.
pub(super) fn secret(cx: &Context<'_>, tenant: &Tenant, endpoint: &NewSecrets, title: &str) -> PageResponse {
    let page = SecretsPage {
        title,
        about: "Copy the secret now and store it where your program verifies signatures. It will not be shown again.",
        texts: &[("secret", "Signing secret", endpoint.secret.as_deref())],
        example: None,
        next: &format!("/webhooks/{}", endpoint.id),
    };
    page.respond(cx, tenant, STORED)
}
