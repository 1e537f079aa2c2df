//! The forms that create and edit records. Typed values become the JSON that the API takes, which is parsed as there, and goes
//! through the facade: so rules, events and errors are those of the API.

pub(crate) mod contact;
mod input;

use http::StatusCode;
use serde_json::Value;
use svc_core::error::{FieldCode, Violations};
use svc_core::prelude::*;
use uuid::Uuid;

use self::input::Body;
pub(super) use self::input::amount;
use crate::dashboard::pages::kinds::{Control, Field, FormPurpose, Kind, of_path};
use crate::dashboard::pages::records;
use crate::dashboard::prelude::*;

/// The subject of a form.
struct Subject {
    kind: &'static Kind,
    /// The record that is edited, and what people call it. `None` for a new one.
    edited: Option<(Uuid, String)>,
    /// The contacts that the typed text can mean.
    contacts: Vec<Contact>,
}

impl Subject {
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.kind.fields(if self.edited.is_some() { FormPurpose::Edited } else { FormPurpose::New })
    }

    /// Returns the fields that the operation refuses when they are empty.
    fn required(&self, cx: &Context<'_>) -> Vec<&'static str> {
        let empty = |field: &Field| format!("\"{}\":null", field.name);
        let empty: Vec<String> = self.fields().map(empty).collect();
        let operation = if self.edited.is_some() { self.kind.update } else { self.kind.create };
        let Err(error) = parse(cx, operation, &format!("{{{}}}", empty.join(","))) else { return Vec::new() };
        let is_refused = |field: &&Field| error.failing_fields().iter().any(|violation| violation.field == field.name);
        self.fields().filter(is_refused).map(|field| field.name).collect()
    }

    /// Returns the path of the form.
    fn path(&self) -> String {
        match &self.edited {
            Some((id, _)) => self.kind.path(format!("{id}/edit")),
            None => self.kind.path("new"),
        }
    }
}

/// Shows the form of a new record. An invoice is dated today. `?contact=ID` in the address fills its contact in, and
/// `?start=2026-03-15T09:00` the start of a booking, with `offset` where clocks show that time twice.
pub(crate) async fn new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind = of_path(cx.path)?;
    let (contact, choice) = match cx.query.given("contact") {
        Some(id) => contact::shown(cx, tenant, id).await?,
        None => (String::new(), String::new()),
    };
    let (currency, today) = (tenant.currency.to_string(), tenant.time_zone.date_at(cx.now).to_string());
    let mut values = vec![("contact_id", contact), ("currency", currency), ("status", JobStatus::Quoted.to_string())];
    values.push(("issue_date", today));
    values.extend(kind.choice_of("contact_id").map(|name| (name, choice)));
    let (start, offset) = (cx.query.text("start"), cx.query.text("offset"));
    // One that cannot be read is left empty, and its field has to be filled in.
    if tenant.time_zone.time_of(start, offset).is_ok() {
        values.extend([("start_time", start.to_owned()), ("start_time_offset", offset.to_owned())]);
    }
    let values = Form::from_fields(values);
    let state = FormState::new(&values);
    Ok(page(cx, tenant, &Subject { kind, edited: None, contacts: Vec::new() }, "", state, None))
}

/// Creates a record.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind = of_path(cx.path)?;
    let mut body = input::read(cx, tenant, kind, None).await?;
    let contacts = std::mem::take(&mut body.contacts);
    save(cx, tenant, &Subject { kind, edited: None, contacts }, body).await
}

/// Shows the form of a record that is edited.
pub(crate) async fn edit(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind = of_path(cx.path)?;
    let id = cx.id()?;
    let record = records::get(cx.svc.account(tenant.id), kind, id).await?;
    let values = input::shown(cx, tenant, kind, &record).await?;
    let state = FormState::new(&values);
    let version = record.get("updated_at").and_then(Value::as_str).unwrap_or_default();
    let edited = Some((id, records::short(&records::name(kind, &record))));
    let subject = Subject { kind, edited, contacts: Vec::new() };
    Ok(page(cx, tenant, &subject, version, state, None))
}

/// Saves a record that was edited.
pub(crate) async fn update(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind = of_path(cx.path)?;
    let id = cx.id()?;
    let record = records::get(cx.svc.account(tenant.id), kind, id).await?;
    let shown = input::shown(cx, tenant, kind, &record).await?;
    let mut body = input::read(cx, tenant, kind, Some(&shown)).await?;
    if body.is_empty() {
        return Ok(saved(cx, kind, id, "saved"));
    }
    let edited = Some((id, records::short(&records::name(kind, &record))));
    let subject = Subject { kind, edited, contacts: std::mem::take(&mut body.contacts) };
    save(cx, tenant, &subject, body).await
}

fn saved(cx: &Context<'_>, kind: &Kind, id: Uuid, notice: &str) -> PageResponse {
    cx.see_other(&format!("{}?notice={notice}", kind.path(id)))
}

/// Makes a change that could be read, or shows the form again with what is wrong.
async fn save(cx: &Context<'_>, tenant: &Tenant, subject: &Subject, body: Body) -> Result<PageResponse, PageError> {
    let (operation, notice) = match subject.edited {
        Some(_) => (subject.kind.update, "saved"),
        None => (subject.kind.create, "created"),
    };
    let (json, mut errors) = (body.json(), body.errors);
    let outcome = match parse(cx, operation, &json) {
        Ok(_) if errors.is_empty() => call(cx, tenant.id, operation, &json).await,
        // Without the fields that could not be read, an update can be empty.
        Ok(_) | Err(Error::EmptyPatch) => Err(Error::Validation(Violations::default())),
        Err(error) => Err(error),
    };
    let error = match outcome {
        Ok(id) => return Ok(saved(cx, subject.kind, id, notice)),
        Err(Error::NotFound) => return Err(PageError::NotFound),
        Err(Error::Store(error)) => return Err(PageError::Internal(error)),
        Err(error) => error,
    };
    let status = match error {
        Error::PreconditionFailed | Error::IdempotencyKeyReused | Error::NotAllowed(_) => StatusCode::CONFLICT,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let problem = explain(cx, subject, &error, &mut errors);
    let state = FormState::refused(&cx.form, &errors);
    Ok(page(cx, tenant, subject, "", state, Some(problem)).status(status))
}

/// Puts what is wrong to its fields, and returns what is said about the form as a whole.
fn explain(cx: &Context<'_>, subject: &Subject, error: &Error, errors: &mut Errors) -> Markup {
    let fields: Vec<&Field> = subject.fields().collect();
    for violation in error.failing_fields() {
        let Some(field) = fields.iter().find(|field| violation.field.split('.').next() == Some(field.name)) else {
            continue;
        };
        let is_missing = [FieldCode::Required, FieldCode::NotNullable].iter().any(|c| c.as_str() == violation.code);
        let text = if is_missing { "It must not be empty.".to_owned() } else { sentence(&violation.message, &fields) };
        errors.add(field.name, text);
    }
    let again = html! { a href=(cx.url(&subject.path())) { "Load the form again" } };
    match error {
        Error::PreconditionFailed => html! {
            "Somebody changed this " (subject.kind.one) " after the form was loaded, so nothing was saved. "
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

/// Returns the page of a form. `problem` is what is wrong with the form as a whole.
fn page(
    cx: &Context<'_>,
    tenant: &Tenant,
    subject: &Subject,
    version: &str,
    state: FormState<'_>,
    problem: Option<Markup>,
) -> PageResponse {
    let state = &state.requiring(subject.required(cx));
    let Subject { kind, edited, contacts } = subject;
    let (title, back, action) = match edited {
        Some((id, name)) => (format!("Edit {name}"), kind.path(id), "Save"),
        None => (format!("New {}", kind.one), kind.list_path(), "Create"),
    };
    let form = EditForm {
        path: &subject.path(),
        top: html! {},
        version,
        fields: html! {
            div.pairs { @for field in subject.fields() { (control(cx, tenant, state, field, contacts)) } }
        },
        action,
        others: html! { a.button href=(cx.url(&back)) { "Cancel" } },
    };
    let content = html! {
        (heading(&title, "", html! {}))
        @if let Some(problem) = problem {
            p.banner.bad role="alert" { span { (problem) } }
        }
        (edit_form(cx, state, form))
    };
    layout::page(cx, Some(tenant), &title, &content)
}

fn control(cx: &Context<'_>, tenant: &Tenant, state: &FormState<'_>, field: &Field, contacts: &[Contact]) -> Markup {
    let Field { name, label, hint, .. } = field;
    match field.control {
        Control::Line => state.text(name, label, hint),
        Control::Amount => state.amount(name, label, hint),
        Control::Contact => contact::control(cx, tenant, state, field, contacts),
        Control::Email => state.typed("email", name, label, hint),
        Control::Phone => state.typed("tel", name, label, hint),
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
            let names: Vec<String> = values.iter().map(|value| capitalized(&records::words(value))).collect();
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
    state.choice(field.choice, &label, hint, &options)
}
