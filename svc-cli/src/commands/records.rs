//! `list`, `show`, `create` and `update` of every resource, and `delete` of those that have it.
//!
//! A resource says how its records are created and changed, and what people see of them. Everything else is the same for
//! all: changes go through the rules of svc-core in one transaction, with their events and deliveries, as requests to the
//! API do.

use svc_core::error::{Error, FieldCode, Violation};
use svc_core::input::json::Json;
use svc_core::input::{Fields, Input};
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud::{self, Delete, Resource};
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::store::{Store, Tx};
use svc_core::values::{Id, TenantId, Timestamp};

use super::input::read_input;
use super::lookup::{self, Found, FoundResource, Lookup, Owned};
use crate::cli::fields::{Body, BodySource, FieldValue, Filters, field_names, option_name};
use crate::cli::records::{ListRecords, RecordCommand, ResourceCommands, Target, UpdateRecord};
use crate::document::Document;
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, Table, capitalized, fields, or_dash};
use crate::times::moment;

/// A resource that the command line manages.
pub(super) trait Managed: FoundResource + ResourceCommands {
    /// Creates a record by the rules of the resource.
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: <Self as ResourceCommands>::Create) -> Lookup<'_, Self>;

    /// Changes a record by the rules of the resource.
    fn update(
        tx: &mut dyn Tx,
        tenant: TenantId,
        id: Id<Self>,
        change: <Self as ResourceCommands>::Update,
    ) -> Lookup<'_, Self>;

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
    fn created(&self) -> Result<Outcome, Failure> {
        Outcome::new(self, format!("Created {} {}.\n\n{}", Self::NAME, self.title(), self.details()))
    }
}

/// Runs one of the commands that every resource has.
pub(super) async fn run<R: Managed>(store: &dyn Store, command: RecordCommand<R>) -> Result<Outcome, Failure> {
    match command {
        RecordCommand::List(options) => list::<R>(store, options).await,
        RecordCommand::Show(Target { id, tenant }) => {
            let Owned { record, .. } = lookup::find::<R>(store, &id, &tenant).await?;
            Outcome::new(&record, record.details())
        }
        RecordCommand::Create(options) => {
            let tenant = lookup::tenant(store, &options.tenant).await?.id;
            let input: R::Create = input(store, tenant, &options.body).await?;
            let created = store.write("cli.create", move |tx| R::create(tx, tenant, input.clone()));
            created.await.map_err(|error| refusal(error, &options.body))?.created()
        }
        RecordCommand::Update(UpdateRecord { target, body }) => {
            let Owned { tenant_id, record: before } = lookup::find::<R>(store, &target.id, &target.tenant).await?;
            let (id, change) = (before.id(), input(store, tenant_id, &body).await?);
            let changed: Result<R, Error> =
                store.write("cli.update", move |tx| R::update(tx, tenant_id, id, R::Update::clone(&change))).await;
            let record = match changed {
                Err(Error::NotFound) => return Err(lookup::nothing_in::<R>(tenant_id, &target.id)),
                changed => changed.map_err(|error| refusal(error, &body))?,
            };
            let (name, title) = (R::NAME, record.title());
            let text = if record == before {
                format!("{} {title} is unchanged.", capitalized(name))
            } else {
                format!("Updated {name} {title}.\n\n{}", record.details())
            };
            Outcome::new(&record, text)
        }
    }
}

/// Changes a record in one transaction by an operation of its own.
pub(super) async fn change<R, F>(store: &dyn Store, target: &Target, name: &'static str, work: F) -> Result<R, Failure>
where
    R: Managed,
    F: for<'t> Fn(&'t mut dyn Tx, TenantId, Id<R>) -> Lookup<'t, R> + Send + Sync + 'static,
{
    let Owned { tenant_id, record } = lookup::find::<R>(store, &target.id, &target.tenant).await?;
    let id = record.id();
    let changed = store.write(name, move |tx| work(tx, tenant_id, id)).await;
    changed.or_not_found(R::NAME, id, &format!("`svc {} list` lists them", R::NAME))
}

/// Deletes a record.
pub(super) async fn delete<R: Managed + Delete>(store: &dyn Store, target: &Target) -> Result<Outcome, Failure> {
    let Owned { tenant_id, record } = lookup::find::<R>(store, &target.id, &target.tenant).await?;
    let id = record.id();
    let deleted = store.write("cli.delete", move |tx| Box::pin(crud::delete::<R>(tx, tenant_id, id))).await;
    deleted.or_not_found(R::NAME, id, &format!("`svc {} list` lists them", R::NAME))?;
    Outcome::new(&record, format!("Deleted {} {}.", R::NAME, record.title()))
}

async fn list<R: Managed>(store: &dyn Store, options: ListRecords<R::Filter>) -> Result<Outcome, Failure> {
    let tenant = lookup::tenant(store, &options.tenant).await?.id;
    let filter = filter(&options.filters)?;
    let updated_since = options.updated_since.map(|since| since.from(store.env().now()));
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let mut records: Vec<R> = Vec::new();
    // One record more than the limit tells whether there are more.
    while records.len() <= limit {
        let order = match (updated_since, records.last()) {
            (Some(since), last) => {
                Order::OldestChangeFirst { from: last.map_or(since, |last| last.updated_at().next()) }
            }
            (None, last) => Order::NewestFirst { before: last.map(Resource::created_at) },
        };
        let rest = u32::try_from(limit + 1 - records.len()).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
        let query = ListQuery { limit: rest, order, filter: filter.clone() };
        let page = store.read("cli.list", move |tx| {
            let query = query.clone();
            Box::pin(async move { Ok(R::repository(tx).list(tenant, &query).await?) })
        });
        let page = page.await?;
        let is_last = page.len() < rest as usize;
        records.extend(page);
        if is_last {
            break;
        }
    }
    let plural = <R as Found>::PLURAL;
    let note = (records.len() > limit).then(|| format!("There are more {plural}; raise --limit to see them."));
    records.truncate(limit);
    Ok(Outcome::list(&records, &R::table(&records), format!("No {plural} match."))?.with_note(note))
}

/// Reads the filters of a list.
fn filter<F: Input>(filters: &Filters<F>) -> Result<F, Failure> {
    let mut fields = Fields::from_query(filters.pairs.clone());
    let filter = F::take(&mut fields);
    Ok(fields.finish(filter)?)
}

/// Reads the input that was given as options or as JSON. Parts of the ids of contacts are completed.
async fn input<I: Input>(store: &dyn Store, tenant: TenantId, body: &Body<I>) -> Result<I, Failure> {
    let read = match &body.source {
        BodySource::File(path) => I::from_body(&read_input(path)?),
        BodySource::Options(values) => {
            let mut members = Vec::with_capacity(values.len());
            for (name, value) in values {
                let json = match value {
                    FieldValue::Json(json) => json.clone(),
                    FieldValue::Id(id) => Json::String(lookup::id_in::<Contact>(store, tenant, id).await?.to_string()),
                };
                members.push((name.clone(), json));
            }
            I::from_members(members)
        }
    };
    read.map_err(|error| refusal(error, body))
}

/// Words the refusal of an input: by its options, or by the fields of the JSON.
fn refusal<I: Input>(error: Error, body: &Body<I>) -> Failure {
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
                "The tenant has no {option}{}, or it is deleted; `svc {option} list` lists its {option}s.",
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
