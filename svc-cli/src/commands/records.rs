//! `list`, `show`, `create` and `update` of every resource, and `delete` of those that have it.
//!
//! A resource says what people see of its records. Everything else is the same for all: changes are operations of the
//! platform API, with their events and deliveries, as requests to the API are.

use serde::de::DeserializeOwned;
use svc_core::error::{Error, FieldCode, Violation};
use svc_core::input::json::Json;
use svc_core::input::{Fields, Input, ToBody};
use svc_core::pages::{ListParams, Since};
use svc_core::platform::operations::Records;
use svc_core::platform::{Listing, Operation};
use svc_core::resources::Delete;
use svc_core::resources::contacts::Contact;
use svc_core::values::{Id, TenantId, Timestamp};

use super::input::read_input;
use super::lookup::{self, Found, Owned};
use crate::cli::fields::{Body, BodySource, FieldValue, Filters, field_names, option_name};
use crate::cli::records::{ListRecords, RecordCommand, ResourceCommands, Target, UpdateRecord};
use crate::document::Document;
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, Table, capitalized, fields, or_dash};
use crate::service::{CallError, Service};
use crate::times::moment;

/// A resource that the command line manages.
pub(super) trait Managed: ResourceCommands + Found<Named = Self> {
    /// What a creation returns: the record, or more.
    type Created: DeserializeOwned + Send + 'static;
    /// Creates a record.
    const CREATE: Operation<TenantId, Self::Create, Self::Created>;
    /// Changes a record.
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self>;

    /// Returns what people call the record, after the name of its type: its number, or else its id.
    fn title(&self) -> String {
        self.id().to_string()
    }

    /// Returns the table of a list.
    fn table(records: &[Self]) -> Table;

    /// Returns all fields for people, one per line.
    fn details(&self) -> String {
        fields_of(self, [])
    }

    /// Returns the result of a creation.
    fn created(created: Self::Created) -> Result<Outcome, Failure>;
}

/// Returns the result of a creation whose response has the record.
pub(super) fn created<R: Managed>(record: &R) -> Result<Outcome, Failure> {
    let name = <R as Found>::NAME;
    Outcome::new(record, format!("Created {name} {}.\n\n{}", record.title(), record.details()))
}

/// Runs one of the commands that every resource has.
pub(super) async fn run<R: Managed>(service: &Service, command: RecordCommand<R>) -> Result<Outcome, Failure> {
    match command {
        RecordCommand::List(options) => list::<R>(service, options).await,
        RecordCommand::Show(Target { id, account }) => {
            let Owned { record, .. } = lookup::find::<R>(service, &id, &account).await?;
            Outcome::new(&record, record.details())
        }
        RecordCommand::Create(options) => {
            let account = lookup::account(service, &options.account).await?.id;
            let input: R::Create = input(service, account, &options.body).await?;
            let created = service.call(&R::CREATE, account, input).await;
            R::created(created.map_err(|error| refusal(error, &options.body))?)
        }
        RecordCommand::Update(UpdateRecord { target, body }) => {
            let Owned { tenant_id, record: before } = lookup::find::<R>(service, &target.id, &target.account).await?;
            let change: R::Update = input(service, tenant_id, &body).await?;
            let changed = service.call(&R::UPDATE, (tenant_id, before.id()), change).await;
            let record = match changed {
                Err(error) if error.is_not_found() => return Err(lookup::nothing_in::<R>(tenant_id, &target.id)),
                changed => changed.map_err(|error| refusal(error, &body))?,
            };
            let (name, title) = (<R as Found>::NAME, record.title());
            let text = if record == before {
                format!("{} {title} is unchanged.", capitalized(name))
            } else {
                format!("Updated {name} {title}.\n\n{}", record.details())
            };
            Outcome::new(&record, text)
        }
    }
}

/// Calls an operation on the record that was named.
pub(super) async fn call<R: Managed, I, O>(
    service: &Service,
    target: &Target,
    operation: &Operation<(TenantId, Id<R>), I, O>,
    input: I,
) -> Result<O, Failure>
where
    I: Input + ToBody + Clone,
    O: DeserializeOwned + Send,
{
    let Owned { tenant_id, record } = lookup::find::<R>(service, &target.id, &target.account).await?;
    let (name, id) = (<R as Found>::NAME, record.id());
    let called = service.call(operation, (tenant_id, id), input).await;
    called.or_not_found(name, id, &format!("`svc {name} list` lists them"))
}

/// Deletes a record.
pub(super) async fn delete<R: Managed + Delete>(service: &Service, target: &Target) -> Result<Outcome, Failure> {
    let Owned { tenant_id, record } = lookup::find::<R>(service, &target.id, &target.account).await?;
    let (name, id) = (<R as Found>::NAME, record.id());
    let deleted = service.call(&Records::<R>::DELETE, (tenant_id, id), ()).await;
    deleted.or_not_found(name, id, &format!("`svc {name} list` lists them"))?;
    Outcome::new(&record, format!("Deleted {name} {}.", record.title()))
}

async fn list<R: Managed>(service: &Service, options: ListRecords<R::Filter>) -> Result<Outcome, Failure> {
    let account = lookup::account(service, &options.account).await?.id;
    let updated_since = options.updated_since.map(|since| Since(since.from(service.now())));
    let page = ListParams { updated_since, ..ListParams::default() };
    let query = Listing { page, filter: filter(&options.filters)? };
    let (records, has_more) = service.list(&Records::<R>::LIST, account, query, options.limit).await?;
    let plural = R::COLLECTION;
    let note = has_more.then(|| format!("There are more {plural}; raise --limit to see them."));
    Ok(Outcome::list(&records, &R::table(&records), format!("No {plural} match."))?.with_note(note))
}

/// Reads the filters of a list.
fn filter<F: Input>(filters: &Filters<F>) -> Result<F, Failure> {
    let mut fields = Fields::from_query(filters.pairs.clone());
    let filter = F::take(&mut fields);
    Ok(fields.finish(filter)?)
}

/// Reads the input that was given as options or as JSON. Parts of the ids of contacts are completed.
async fn input<I: Input>(service: &Service, account: TenantId, body: &Body<I>) -> Result<I, Failure> {
    let read = match &body.source {
        BodySource::File(path) => I::from_body(&read_input(path)?),
        BodySource::Options(values) => {
            let mut members = Vec::with_capacity(values.len());
            for (name, value) in values {
                let json = match value {
                    FieldValue::Json(json) => json.clone(),
                    FieldValue::Id(id) => {
                        Json::String(lookup::id_in::<Contact>(service, account, id).await?.to_string())
                    }
                };
                members.push((name.clone(), json));
            }
            I::from_members(members)
        }
    };
    read.map_err(|error| refusal(CallError::Rules(error), body))
}

/// Words the refusal of an input: by its options, or by the fields of the JSON.
fn refusal<I: Input>(error: CallError, body: &Body<I>) -> Failure {
    let CallError::Rules(error) = error else { return error.into() };
    match (error, &body.source) {
        (Error::ReferenceNotFound(field), source) => {
            let option = option_name(field);
            let sent = match source {
                BodySource::Options(values) => values.iter().find_map(|(name, value)| match value {
                    FieldValue::Id(id) if name == field => Some(format!(" {id}")),
                    _ => None,
                }),
                BodySource::File(_) => None,
            };
            let reason = format!(
                "The account has no {option}{}, or it is deleted; `svc {option} list` lists its {option}s.",
                sent.unwrap_or_default()
            );
            Failure::new(Exit::NotFound, reason)
        }
        (Error::Validation(violations), BodySource::File(_)) => {
            let known = field_names::<I>();
            let messages: Vec<String> = violations.as_slice().iter().map(|it| message(it, &known)).collect();
            Failure::new(Exit::Usage, format!("--data: {}.", messages.join("; ")))
        }
        (Error::EmptyPatch, _) => Failure::new(Exit::Usage, "Give at least one field to change; --help lists them."),
        (Error::InvalidJson(reason), BodySource::File(_)) => Failure::new(
            Exit::Usage,
            reason.replace("Send a JSON object as the body", "The body is empty").replace("The body", "--data"),
        ),
        (error, _) => error.into(),
    }
}

/// Returns what is wrong with a field of JSON, and for an unknown field the one that was probably meant.
fn message(violation: &Violation, known: &[String]) -> String {
    let similar = |name: &&String| strsim::jaro_winkler(name, &violation.field);
    let best = known.iter().max_by(|one, other| similar(one).total_cmp(&similar(other)));
    match best.filter(|name| violation.code == FieldCode::UnknownField && similar(name) > 0.8) {
        Some(name) => format!("{}, or did you mean {name}", violation.message),
        None => violation.message.clone(),
    }
}

/// Formats the fields of a record as the API returns them, and more fields after them.
pub(super) fn fields_of<const N: usize>(record: &impl serde::Serialize, more: [(&str, String); N]) -> String {
    let json = serde_json::to_vec(record).unwrap_or_default();
    let Document::Json(Json::Object(members)) = Document::parse(&json) else { return String::new() };
    let own: Vec<(String, String)> =
        members.into_iter().map(|(name, value)| (name.replace('_', " "), text(value))).collect();
    let own = own.iter().map(|(name, value)| (name.as_str(), value.clone()));
    fields(own.chain(more))
}

/// Formats the value of a field.
fn text(value: Json) -> String {
    match value {
        Json::Null => or_dash(None::<String>),
        Json::Bool(value) => value.to_string(),
        Json::Number(digits) => digits,
        // The API writes all times like this one.
        Json::String(text) if text.len() == "2026-03-14T15:09:26.535897Z".len() => {
            Timestamp::parse(&text).map_or(text, moment)
        }
        Json::String(text) => text,
        Json::Array(items) => items.into_iter().map(text).collect::<Vec<_>>().join(","),
        Json::Object(_) => String::new(),
    }
}
