//! The forms that create and edit records. What is typed becomes the JSON that the API takes, is parsed as there, and goes
//! through the facade: so rules, events and errors are those of the API.

mod changes;
mod contact;
mod fields;
mod input;

use http::StatusCode;
use maud::{Markup, html};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::FieldCode;
use svc_core::prelude::*;
use uuid::Uuid;

pub(crate) use self::changes::Change;
pub(super) use self::changes::{KEY, VERSION, make, new_key, once, refusal, submission};
use self::fields::{Control, Field, FormOf};
pub(super) use self::input::amount;
use crate::dashboard::components::{capitalized, heading};
use crate::dashboard::context::Context;
use crate::dashboard::form::Form;
use crate::dashboard::forms::{Errors, FormState, csrf};
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};
use crate::dashboard::pages::records::{self, RecordKind};

/// What a form is about.
struct Subject {
    kind: RecordKind,
    /// The record that is edited, and what people call it. `None` for a new one.
    edited: Option<(Uuid, String)>,
}

impl Subject {
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.kind.fields(if self.edited.is_some() { FormOf::Edited } else { FormOf::New })
    }

    /// Returns the path of the form.
    fn path(&self) -> String {
        match &self.edited {
            Some((id, _)) => format!("/{}/{id}/edit", self.kind.collection()),
            None => format!("/{}/new", self.kind.collection()),
        }
    }
}

/// A form as it is shown.
struct Shown<'a> {
    subject: &'a Subject,
    key: &'a str,
    version: &'a str,
    state: FormState<'a>,
    /// What is wrong with the form as a whole.
    problem: Option<Markup>,
}

/// Shows the form of a new record. `?contact=ID` in the address fills its contact in.
pub(crate) async fn new(cx: &Context<'_>, tenant: &Tenant, kind: RecordKind) -> Result<PageResponse, PageError> {
    let contact = match cx.query.given("contact") {
        Some(id) => contact::shown(cx, tenant, id).await?,
        None => String::new(),
    };
    let currency = tenant.currency.to_string();
    let values = vec![("contact_id", contact), ("currency", currency), ("status", JobStatus::Quoted.to_string())];
    let (values, errors, key) = (Form::from_fields(values), Errors::default(), new_key(cx));
    let state = FormState { values: &values, errors: &errors };
    let subject = Subject { kind, edited: None };
    Ok(page(cx, tenant, &Shown { subject: &subject, key: &key, version: "", state, problem: None }))
}

/// Creates a record.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant, kind: RecordKind) -> Result<PageResponse, PageError> {
    let body = input::read(cx, tenant, kind, None).await?;
    let parsed = Change::create(kind, &body.json());
    save(cx, tenant, &Subject { kind, edited: None }, parsed, body.errors).await
}

/// Shows the form of a record that is edited.
pub(crate) async fn edit(cx: &Context<'_>, tenant: &Tenant, kind: RecordKind) -> Result<PageResponse, PageError> {
    let id = cx.id()?;
    let record = changes::read(cx.svc.account(tenant.id), kind, id).await?;
    let values = input::shown(cx, tenant, kind, &record).await?;
    let (errors, key) = (Errors::default(), new_key(cx));
    let state = FormState { values: &values, errors: &errors };
    let (subject, version) = (
        Subject { kind, edited: Some((id, records::short(&records::name(kind.kind(), &record)))) },
        changes::version(&record),
    );
    Ok(page(cx, tenant, &Shown { subject: &subject, key: &key, version, state, problem: None }))
}

/// Saves a record that was edited.
pub(crate) async fn update(cx: &Context<'_>, tenant: &Tenant, kind: RecordKind) -> Result<PageResponse, PageError> {
    let id = cx.id()?;
    let record = changes::read(cx.svc.account(tenant.id), kind, id).await?;
    let shown = input::shown(cx, tenant, kind, &record).await?;
    let body = input::read(cx, tenant, kind, Some(&shown)).await?;
    if body.is_empty() {
        return Ok(PageResponse::see_other(&cx.url(&format!("/{}/{id}?notice=saved", kind.collection()))));
    }
    let parsed = Change::update(kind, id, &body.json());
    let subject = Subject { kind, edited: Some((id, records::short(&records::name(kind.kind(), &record)))) };
    save(cx, tenant, &subject, parsed, body.errors).await
}

/// Makes a change that could be read, or shows the form again with what is wrong.
async fn save(
    cx: &Context<'_>,
    tenant: &Tenant,
    subject: &Subject,
    parsed: Result<Change, Error>,
    mut errors: Errors,
) -> Result<PageResponse, PageError> {
    let fields: Vec<&Field> = subject.fields().collect();
    let names: Vec<&str> =
        fields.iter().flat_map(|field| [field.name, field.offset]).filter(|name| !name.is_empty()).collect();
    let made = match parsed {
        Ok(change) if errors.is_empty() => make(cx, tenant.id, change, &names).await,
        // Without the fields that could not be read, an update can be empty.
        Ok(_) | Err(Error::EmptyPatch) => Err(Error::Validation(svc_core::error::Violations::default())),
        Err(error) => Err(error),
    };
    let error = match made {
        Ok(location) => return Ok(PageResponse::see_other(&cx.url(&location))),
        Err(Error::NotFound) => return Err(PageError::NotFound),
        Err(Error::Store(error)) => return Err(PageError::Internal(error)),
        Err(error) => error,
    };
    let status = match error {
        Error::PreconditionFailed | Error::IdempotencyKeyReused | Error::NotAllowed(_) => StatusCode::CONFLICT,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let problem = explain(cx, subject, &fields, &error, &mut errors);
    let state = FormState { values: &cx.form, errors: &errors };
    let (key, version) = (cx.form.text(KEY), cx.form.text(VERSION));
    Ok(page(cx, tenant, &Shown { subject, key, version, state, problem: Some(problem) }).status(status))
}

/// Puts what is wrong to its fields, and returns what is said about the form as a whole.
fn explain(cx: &Context<'_>, subject: &Subject, fields: &[&Field], error: &Error, errors: &mut Errors) -> Markup {
    for violation in error.failing_fields() {
        let Some(field) = fields.iter().find(|field| violation.field.split('.').next() == Some(field.name)) else {
            continue;
        };
        let is_missing = [FieldCode::Required, FieldCode::NotNullable].iter().any(|c| c.as_str() == violation.code);
        let text = if is_missing { "It must not be empty.".to_owned() } else { sentence(&violation.message, fields) };
        errors.add(field.name, text);
    }
    let again = html! { a href=(cx.url(&subject.path())) { "Load the form again" } };
    match error {
        Error::PreconditionFailed => html! {
            "Somebody changed this " (subject.kind.one()) " after the form was loaded, so nothing was saved. "
            (again) " and repeat your change there; below is what you typed."
        },
        Error::IdempotencyKeyReused => html! {
            "This form was saved before, with other values. " (again) " for another change; below is what you typed."
        },
        Error::EmailTaken { existing_id } => {
            errors.add("email", "Another contact has this address.");
            html! {
                "Nothing was saved: "
                a href=(cx.url(&format!("/contacts/{existing_id}"))) { "another contact" } " has this email address."
            }
        }
        Error::Validation(_) | Error::ReferenceNotFound(_) if !errors.is_empty() => {
            html! { "Nothing was saved: correct the fields that are marked." }
        }
        other => html! { (capitalized(&other.to_string())) },
    }
}

/// Returns what is wrong with a field as a sentence about it. Fields have the names of the form there, and not those of the
/// API.
fn sentence(message: &str, fields: &[&Field]) -> String {
    let about = message.split_once(' ').map_or(message, |(_, about)| about);
    // Names such as `title` are words as well.
    let technical = fields.iter().filter(|field| field.name.contains('_'));
    let named = technical.fold(about.to_owned(), |text, field| text.replace(field.name, &format!("“{}”", field.label)));
    format!("It {}.", named.trim_end_matches('.'))
}

fn page(cx: &Context<'_>, tenant: &Tenant, shown: &Shown<'_>) -> PageResponse {
    let Shown { subject, state, .. } = shown;
    let list = format!("/{}", subject.kind.collection());
    let (title, back, save) = match &subject.edited {
        Some((id, name)) => (format!("Edit {name}"), format!("{list}/{id}"), "Save"),
        None => (format!("New {}", subject.kind.one()), list, "Create"),
    };
    let content = html! {
        (heading(&title, "", html! {}))
        @if let Some(problem) = &shown.problem {
            p.banner.bad role="alert" { span { (problem) } }
        }
        form.card.fields method="post" action=(cx.url(&subject.path())) {
            (csrf(cx))
            input type="hidden" name=(KEY) value=(shown.key);
            @if !shown.version.is_empty() { input type="hidden" name=(VERSION) value=(shown.version); }
            @for field in subject.fields() { (control(tenant, state, field)) }
            div.actions {
                button.primary type="submit" { (save) }
                a.button href=(cx.url(&back)) { "Cancel" }
            }
        }
    };
    layout::page(cx, Some(tenant), &title, &content)
}

fn control(tenant: &Tenant, state: &FormState<'_>, field: &Field) -> Markup {
    let Field { name, label, hint, .. } = field;
    match field.control {
        Control::Line | Control::Contact | Control::Amount => state.text(name, label, hint),
        Control::Lines => state.lines(name, label, hint),
        Control::Day => state.typed("date", name, label, hint),
        Control::Time => {
            let zone = format!("In the time zone {}. {hint}", tenant.time_zone);
            let time = state.typed("datetime-local", name, label, zone.trim_end());
            let twice = tenant.time_zone.offsets_of(state.values.text(name));
            html! { (time) @if let Some(offsets) = twice { (offset_choice(state, field, &offsets)) } }
        }
        Control::Choice(values) => {
            let values = values();
            let names: Vec<String> = values.iter().map(|value| value.replace('_', " ")).collect();
            let options: Vec<(&str, &str)> =
                values.iter().zip(&names).map(|(value, name)| (*value, name.as_str())).collect();
            state.choice(name, label, hint, &options)
        }
    }
}

/// Returns the choice between two times that clocks show alike. Nothing is chosen for the person.
fn offset_choice(state: &FormState<'_>, field: &Field, [first, second]: &[String; 2]) -> Markup {
    let label = format!("{}: which of the two", field.label);
    let hint = "Clocks are put back in that hour, so they show this time twice.";
    let texts = [format!("The first, at UTC{first}"), format!("The second, at UTC{second}")];
    let options = [("", "Choose one"), (first.as_str(), texts[0].as_str()), (second.as_str(), texts[1].as_str())];
    state.choice(field.offset, &label, hint, &options)
}
