//! `list`, `show`, `create` and `update` of every resource, and `delete` of those that have it.
//!
//! A resource says what people see of its records. Everything else is the same for all: changes are operations of the
//! platform API, with their events and deliveries, as requests to the API are.

use clap::{ArgMatches, Args, Command, Error as ClapError, FromArgMatches, Subcommand, value_parser};
use serde::Serialize;
use serde::de::DeserializeOwned;
use svc_core::error::Error;
use svc_core::input::json::Json;
use svc_core::input::{Fields, Input, ToBody};
use svc_core::operation::{Listing, Operation};
use svc_core::pages::{ListParams, MAX_LIMIT};
use svc_core::platform::operations::Records;
use svc_core::resources::Delete;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::values::{TenantId, parse_uuid};
use svc_core::webhooks::subscriptions::StreamCreate;
use uuid::Uuid;

use super::input::read_input;
use super::lookup::{self, FoundRecord};
use super::resource::{ResourceCommands, cell, details, members, title};
use crate::exit::{Exit, Failure};
use crate::fields::{Body, BodySource, FieldValue, Filters, by_options, clear, stream};
use crate::ids::{InAccount, Target};
use crate::options::option_name;
use crate::output::{Outcome, Table, capitalized};
use crate::service::{CallError, Service};
use crate::session::Session;
use crate::times;
use crate::values::{self, TimeArg};

/// The commands that every resource has.
#[derive(Clone, Debug)]
pub(crate) enum RecordCommand<R: ResourceCommands> {
    List(ListRecords<R::ListFilter>),
    Show(Target),
    Create(CreateRecord<R::Create>),
    Update(UpdateRecord<R::Update>),
}

/// `list`
#[derive(Args, Clone, Debug)]
pub(crate) struct ListRecords<F: Input> {
    #[command(flatten)]
    pub(crate) filters: Filters<F>,
    /// List what changed at or after this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago, such
    /// as 2h or 7d; oldest change first. A date is its start.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", help_heading = "Filters")]
    pub(crate) updated_since: Option<TimeArg>,
    /// Maximum number of records to list.
    #[arg(long, default_value = "50", value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) account: InAccount,
}

/// `create`
#[derive(Args, Clone, Debug)]
pub(crate) struct CreateRecord<I: Input> {
    #[command(flatten)]
    pub(crate) body: Body<I>,
    /// Those of a webhook whose events go to a broker.
    #[arg(skip)]
    pub(crate) stream: Option<Body<StreamCreate>>,
    #[command(flatten)]
    pub(crate) account: InAccount,
}

/// `update`
#[derive(Args, Clone, Debug)]
pub(crate) struct UpdateRecord<I: Input> {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) body: Body<I>,
}

/// Returns the commands with their help, which clap's derive cannot word for each resource.
fn commands<R: ResourceCommands>() -> [Command; 4] {
    let (name, plural) = (R::KIND.as_str(), R::COLLECTION);
    let a_record = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { format!("an {name}") } else { format!("a {name}") };
    // The texts follow the arguments, whose own docs clap would take for those of the command.
    let list = ListRecords::<R::ListFilter>::augment_args(Command::new("list"))
        .visible_alias("ls")
        .about(format!("List {plural}, newest first"))
        .long_about(None)
        .after_help(format!("Examples:\n  svc {name} list\n  svc {name} list --updated-since 7d --json"))
        .mut_arg("limit", |limit| limit.default_value(R::DEFAULT_LIMIT));
    let show = Target::augment_args(Command::new("show"))
        .about(format!("Show {a_record}"))
        .long_about(None)
        .after_help(format!("Example:\n  svc {name} show 3ca7519be04d"));
    let create = R::with_own_options(CreateRecord::<R::Create>::augment_args(Command::new("create")))
        .about(format!("Create {a_record}"))
        .long_about(format!(
            "Create {a_record}.\n\nThe rules of the API apply, and its events are delivered to the account's webhooks."
        ))
        .after_help(format!(
            "Examples:\n  svc {name} create {}\n  svc {name} create --data {name}.json",
            R::CREATE_EXAMPLE
        ));
    let update = UpdateRecord::<R::Update>::augment_args(Command::new("update"))
        .about(format!("Change {a_record}"))
        .long_about(format!(
            "Change {a_record}.\n\nFields that are not named stay as they are. The events of the change are delivered to \
             webhooks."
        ))
        .after_help(format!("Example:\n  svc {name} update 3ca7519be04d {}", R::UPDATE_EXAMPLE))
        .args(clear::<R::Update>());
    [list, show, create, update]
}

impl<R: ResourceCommands> Subcommand for RecordCommand<R> {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(commands::<R>())
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ["list", "show", "create", "update"].contains(&name)
    }
}

impl<R: ResourceCommands> FromArgMatches for RecordCommand<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        match matches.subcommand() {
            Some(("list", matches)) => ListRecords::from_arg_matches(matches).map(Self::List),
            Some(("show", matches)) => Target::from_arg_matches(matches).map(Self::Show),
            Some(("create", matches)) => {
                let create = CreateRecord::from_arg_matches(matches)?;
                Ok(Self::Create(CreateRecord { stream: stream(matches)?, ..create }))
            }
            Some(("update", matches)) => UpdateRecord::from_arg_matches(matches).map(Self::Update),
            _ => Err(ClapError::new(clap::error::ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The words for the result of a creation.
pub(crate) trait CreationText {
    fn text(&self) -> String;
}

impl<R: ResourceCommands> CreationText for R {
    fn text(&self) -> String {
        format!("Created {} {}.\n\n{}", R::KIND, title(self), details(self))
    }
}

/// Runs one of the commands that every resource has.
pub(crate) async fn run<R: ResourceCommands<Creation: CreationText>>(
    session: &Session,
    service: &Service,
    command: RecordCommand<R>,
) -> Result<Outcome, Failure> {
    match command {
        RecordCommand::List(options) => list::<R>(session, service, options).await,
        RecordCommand::Show(Target { id, account }) => {
            let FoundRecord { record, .. } = lookup::find::<R>(service, &id, &account).await?;
            Outcome::new(&record, details(&record))
        }
        RecordCommand::Create(options) => {
            // The only records that others refer to are contacts.
            let contact = options.body.id();
            let account = lookup::account_with::<Contact>(service, &options.account, contact).await?.id;
            create(service, account, &R::CREATE, &options.body).await
        }
        RecordCommand::Update(UpdateRecord { target, body }) => {
            let FoundRecord { tenant_id, record: before, .. } =
                lookup::find::<R>(service, &target.id, &target.account).await?;
            let change: R::Update = input(service, tenant_id, &body).await?;
            let changed = service.call(&R::UPDATE, (tenant_id, before.id()), change).await;
            let record = match changed {
                Err(error) if error.is_not_found() => return Err(lookup::nothing_in::<R>(tenant_id, &target.id)),
                changed => changed.map_err(|error| refusal(error, &body))?,
            };
            let (name, title) = (R::KIND.as_str(), title(&record));
            let text = if record == before {
                format!("{} {title} is unchanged.", capitalized(name))
            } else {
                format!("Updated {name} {title}.\n\n{}", details(&record))
            };
            Outcome::new(&record, text)
        }
    }
}

/// Creates a record by an operation.
pub(super) async fn create<I, C>(
    service: &Service,
    account: TenantId,
    operation: &Operation<TenantId, I, C>,
    body: &Body<I>,
) -> Result<Outcome, Failure>
where
    I: Input + ToBody + Clone,
    C: CreationText + Serialize + DeserializeOwned + Send + 'static,
{
    let input: I = input(service, account, body).await?;
    let created = service.call(operation, account, input).await.map_err(|error| refusal(error, body))?;
    Outcome::new(&created, created.text())
}

/// Deletes a record.
pub(super) async fn delete<R: ResourceCommands + Delete>(
    session: &Session,
    service: &Service,
    target: &Target,
    question: impl FnOnce(&R) -> String,
) -> Result<Outcome, Failure> {
    let found = lookup::find::<R>(service, &target.id, &target.account).await?;
    session.confirm(&question(&found.record))?;
    found.call(service, &Records::<R>::DELETE, ()).await?;
    Outcome::new(&found.record, format!("Deleted {} {}.", R::KIND, title(&found.record)))
}

async fn list<R: ResourceCommands>(
    session: &Session,
    service: &Service,
    options: ListRecords<R::ListFilter>,
) -> Result<Outcome, Failure> {
    let account = lookup::account(service, &options.account).await?.id;
    let ListRecords { updated_since, limit: wanted, .. } = options;
    let updated_since = times::since(updated_since.as_ref())?;
    let filter: R::ListFilter = filter(&options.filters)?;
    let is_search = options.filters.pairs.iter().any(|(name, _)| name == "search");
    if is_search {
        service.index(account).await?;
    }
    let query = |limit, cursor: Option<Uuid>| {
        let page = ListParams { limit, cursor: cursor.map(Into::into), updated_since };
        Listing { page, filter: filter.clone() }
    };
    let listed = service.list(&R::LIST, account, wanted, query).await;
    let (records, has_more) = listed.map_err(|error| by_options::<R::ListFilter>(&error.into()))?;
    let rows = rows(session, service, account, &records).await?;
    let table = Table::new(R::COLUMNS.iter().map(|(heading, _)| *heading), &rows, |members| {
        R::COLUMNS.iter().map(|(_, fields)| cell(members, fields)).collect::<Vec<_>>()
    });
    let plural = R::COLLECTION;
    let note = if is_search && records.len() >= wanted.min(MAX_LIMIT) as usize {
        Some(format!("There may be more {plural}; give more of the text."))
    } else {
        has_more.then(|| format!("There are more {plural}; raise --limit to see them."))
    };
    Ok(Outcome::list(&records, &table, format!("No {plural} match."))?.with_note(note))
}

/// Reads the filters of a list.
fn filter<F: Input>(filters: &Filters<F>) -> Result<F, Failure> {
    let mut fields = Fields::from_query(filters.query()?);
    let filter = F::take(&mut fields);
    fields.finish(filter).map_err(|error| by_options::<F>(&error.into()))
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
                    FieldValue::Time(time) => Json::String(times::instant(time)?.to_string()),
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

/// The way to allow a URL to which only a server for development delivers.
const PRIVATE_WEBHOOKS: &str = "For development, `svc-server --allow-private-webhooks` (SVC_ALLOW_PRIVATE_WEBHOOKS) also \
                                delivers to http:// and private addresses; beside its database, give `svc` the option as well.";

/// Returns whether a server for development would take a URL that was refused.
fn is_for_development<I: Input>(error: &Error, body: &Body<I>) -> bool {
    let Error::Validation(violations) = error else { return false };
    let is_http = |field: &str| match &body.source {
        BodySource::Options(values) => values.iter().any(|(name, value)| match value {
            FieldValue::Json(Json::String(url)) => name == field && url.trim().to_lowercase().starts_with("http://"),
            // That of a token is inside.
            FieldValue::Json(Json::Object(_)) => field.starts_with(name.as_str()),
            _ => false,
        }),
        BodySource::File(_) => true,
    };
    violations.as_slice().iter().any(|it| {
        let message = it.message.as_str();
        message.contains("must be on a public host") || message.ends_with("must be an https URL") && is_http(&it.field)
    })
}

/// Words the refusal of an input: by its options, or by the fields of the JSON.
fn refusal<I: Input>(error: CallError, body: &Body<I>) -> Failure {
    let CallError::Rules(error) = error else { return error.into() };
    let is_for_development = is_for_development(&error, body);
    let failure = match (&body.source, worded(error, body)) {
        (BodySource::Options(_), failure) => by_options::<I>(&failure),
        // The file has fields.
        (BodySource::File(_), failure) => failure,
    };
    match is_for_development {
        true => Failure::new(failure.exit(), format!("{} {PRIVATE_WEBHOOKS}", failure.message())),
        false => failure,
    }
}

fn worded<I: Input>(error: Error, body: &Body<I>) -> Failure {
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
            let messages: Vec<&str> = violations.as_slice().iter().map(|it| it.message.as_str()).collect();
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

/// Returns the members of the records of a list, with the names of contacts in place of their ids for people.
async fn rows<R: ResourceCommands>(
    session: &Session,
    service: &Service,
    account: TenantId,
    records: &[R],
) -> Result<Vec<Vec<(String, Json)>>, Failure> {
    let mut rows: Vec<_> = records.iter().map(members).collect();
    if !session.is_for_people() || R::COLUMNS.iter().all(|(_, field)| *field != "contact_id") {
        return Ok(rows);
    }
    let id = |(name, value): &(String, Json)| match value {
        Json::String(id) if name == "contact_id" => parse_uuid(id).ok().map(ContactId::from),
        _ => None,
    };
    let names = service.contact_names(account, rows.iter().flatten().filter_map(id).collect()).await?;
    for member in rows.iter_mut().flatten() {
        if let Some(name) = id(member).and_then(|id| names.get(&id)) {
            member.1 = Json::String(name.clone());
        }
    }
    Ok(rows)
}
