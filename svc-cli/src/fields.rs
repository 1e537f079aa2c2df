//! Options that are made of the fields of an API input, so that a field of the API is an option of the command line as well.
//!
//! The name of an option is that of its field with hyphens, without `_id`: `contact_id` is `--contact`. The names that a user of
//! the API may type are accepted, too: `--contact-id`, `--contact_id`, and `--due` for `due_date`. The JSON schema of the
//! input gives the type of each value and the text of the help.

mod stream;

use std::ffi::OsString;
use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint, value_parser};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use svc_core::input::Input;
use svc_core::input::json::{self, Json};
use svc_core::values::Timestamp;

use crate::exit::Failure;
use crate::ids::IdArg;
use crate::options::{option_name, required, with_options};
use crate::times;
use crate::values::{self, KindsOfEvents, TimeArg};

pub(crate) use self::stream::{stream, with_stream};

/// The id of the option that takes a whole body.
const DATA: &str = "data";

/// The id of the option of a change that clears fields.
const CLEAR: &str = "clear";

/// The id of the option that has the file of the key of a client certificate.
const CLIENT_KEY: &str = "client_key";

/// The fields of a body: one option each, or all of them as JSON with `--data`.
#[derive(Clone, Debug)]
pub(crate) struct Body<I> {
    /// The origin of the typed values.
    pub(crate) source: BodySource,
    input: PhantomData<fn() -> I>,
}

/// Where a body comes from.
#[derive(Clone, Debug)]
pub(crate) enum BodySource {
    /// One option for each field.
    Options(Vec<(String, FieldValue)>),
    /// A file with JSON, or stdin for `-`.
    File(PathBuf),
}

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum FieldValue {
    /// JSON as the API takes it.
    Json(Json),
    /// The id of another record, which may be a part of it.
    Id(IdArg),
    /// A time, which may be that of the account's clocks.
    Time(TimeArg),
}

/// The filters of a list: one option for each query parameter.
#[derive(Clone, Debug)]
pub(crate) struct Filters<F> {
    /// The parameters as in a query string.
    pub(crate) pairs: Vec<(String, String)>,
    filter: PhantomData<fn() -> F>,
}

/// The type of the value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Bool,
    /// The id of another record.
    Id,
    /// Texts with commas between them.
    Texts,
    /// A date and a time of day, with an offset on the wire.
    Time,
    /// A length of time, in seconds on the wire.
    Duration,
    /// Lengths of time with commas between them.
    Durations,
    /// A header of a request. The option can be repeated.
    Header,
    /// A way to authenticate, with its secret.
    Authentication,
    /// A file whose text is the value.
    File,
    /// A file with a certificate. Another option has the file of its key.
    ClientCertificate,
}

/// A field of an input.
struct Field {
    name: String,
    kind: Kind,
    /// The placeholder of the value in the help.
    value_name: &'static str,
    description: String,
    is_required: bool,
    is_nullable: bool,
    /// The values of an enum. Empty for any other type.
    possible: Vec<String>,
}

/// Returns the schema of an input, without references.
fn schema<I: Input>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<I>().to_value()
}

/// Returns the fields of an input that one option can hold.
fn fields<I: Input>() -> Vec<Field> {
    let schema = schema::<I>();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, field): (&String, &Value)| {
        let (kind, value_name) = kind(name, field)?;
        let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
        Some(Field {
            is_required: required.contains(&name.as_str()),
            is_nullable: types(field).contains(&"null"),
            name: name.clone(),
            kind,
            value_name,
            description: help_of_option(name)
                .map_or_else(|| for_command(name, &text("description"), I::NEEDS_A_FIELD, &schema), str::to_owned),
            possible: possible_values(field),
        })
    };
    schema["properties"].as_object().into_iter().flatten().filter_map(field).collect()
}

/// Returns a failure whose message names the options of an input in place of its fields.
pub(crate) fn by_options<I: Input>(failure: &Failure) -> Failure {
    let schema = schema::<I>();
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    Failure::new(failure.exit(), with_options(failure.message(), &names))
}

/// Returns the help of a search and of the options of a webhook, which a command takes in other forms than the API.
fn help_of_option(field: &str) -> Option<&'static str> {
    Some(match field {
        "url" => "URL of the endpoint: https, on a public host.",
        "search" => {
            "List only records that have this text, such as a name, email address, phone number or record number, or the beginning \
             of one. Exact matches come first. It excludes --updated-since."
        }
        "to" => "Broker that events go to, in place of an endpoint, such as nats://HOST/svc.",
        "events" => "Kinds of events to deliver, or '*' for all.",
        "description" => "A line for your own use.",
        "enabled" => "Send deliveries, or hold them.",
        "headers" => "Secret header of each delivery. Can be repeated.",
        "authentication" => "'bearer TOKEN', 'basic USER:PASSWORD', 'oauth2 URL ID:SECRET'.",
        "filter" => "Deliver only events that pass, as in 'data.total >= 100'.",
        "payload" => "Send records, or ids alone.",
        "max_per_second" => "Highest number of deliveries a second.",
        "max_in_flight" => "Highest number of attempts at the same time.",
        "timeout" => "Timeout of an attempt, from 1s to 30s.",
        "retry_schedule" => "Waits before the retries, such as 1m,10m.",
        "ordering" => "Keep the order of a record.",
        "signature" => "Sign for a public key, too.",
        "secret" => "Signing secret that the receiver has already.",
        "client_certificate" => "PEM of the certificate to show the endpoint.",
        "certificate_authority" => "PEM of the authorities to trust at the endpoint.",
        _ => return None,
    })
}

/// Returns the description of a field in the words of a command, where an empty text stands for null, a time need have no
/// offset, and the other fields of the schema are options.
fn for_command(field: &str, description: &str, is_update: bool, schema: &Value) -> String {
    let clears = if is_update { "'' clears it." } else { "" };
    let text = ["Null clears it.", "Null if there is none.", "Blank text is stored as null."]
        .iter()
        .fold(description.to_owned(), |text, sentence| text.replace(sentence, clears));
    // What is said of the start holds for the end.
    let form = if field.contains("start") { ", such as '2026-03-14 15:09' in the account's time zone" } else { "" };
    let text = text
        .replace("Returns only ", "List only ")
        .replace("left out or null", "left out")
        .replace("Without it, or with null,", "Without it,")
        .replace(": the `id` of a contact of the account that is not deleted", ", by its id or its name")
        .replace(", in RFC 3339 with an offset", form);
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name);
    let text = fields.fold(text, |text, name| {
        let option = if name == field { name.replace('_', " ") } else { format!("--{}", option_name(name)) };
        text.replace(&format!("`{name}`"), &option)
    });
    text.trim_end().to_owned()
}

/// Returns all types in a schema, its alternatives included.
fn types(schema: &Value) -> Vec<&str> {
    let own = schema["type"].as_array().map_or_else(
        || schema["type"].as_str().into_iter().collect(),
        |types| types.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
    );
    let alternatives = schema["anyOf"].as_array().into_iter().flatten().flat_map(types);
    own.into_iter().chain(alternatives).collect()
}

/// Returns all types of the items of an array.
fn types_of_items(schema: &Value) -> Vec<&str> {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten().flat_map(types_of_items);
    types(&schema["items"]).into_iter().chain(alternatives).collect()
}

/// Returns the type of a field and the name of its value, or `None` if an option cannot hold it.
fn kind(name: &str, schema: &Value) -> Option<(Kind, &'static str)> {
    match name {
        "timeout" => return Some((Kind::Duration, "DURATION")),
        "retry_schedule" => return Some((Kind::Durations, "DURATIONS")),
        "headers" => return Some((Kind::Header, "NAME: VALUE")),
        "authentication" => return Some((Kind::Authentication, "TYPE SECRET")),
        "filter" => return Some((Kind::Text, "EXPR")),
        "secret" => return Some((Kind::Text, "WHSEC")),
        // A date, or that of a time as it is written.
        "valid_until" => return Some((Kind::Text, "DATE")),
        "client_certificate" => return Some((Kind::ClientCertificate, "FILE")),
        "certificate_authority" => return Some((Kind::File, "FILE")),
        _ => {}
    }
    let types = types(schema);
    let format = schema["format"].as_str().unwrap_or_default();
    if types.contains(&"array") {
        return types_of_items(schema).contains(&"string").then_some((Kind::Texts, "A,B"));
    }
    Some(match format {
        "uuid" => (Kind::Id, "ID"),
        "date-time" => (Kind::Time, "TIME"),
        "date" => (Kind::Text, "DATE"),
        _ if types.contains(&"number") => (Kind::Number, "AMOUNT"),
        _ if types.contains(&"integer") => (Kind::Number, "N"),
        _ if types.contains(&"boolean") => (Kind::Bool, "BOOL"),
        _ => (Kind::Text, "TEXT"),
    })
}

/// Returns the values of all enums in a schema.
fn possible_values(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                ("enum", Value::Array(values)) => {
                    values.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
                }
                ("const", Value::String(value)) => vec![value.clone()],
                ("items" | "anyOf", value) => possible_values(value),
                _ => Vec::new(),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(possible_values).collect(),
        _ => Vec::new(),
    }
}

impl Field {
    /// Returns the option of this field.
    fn option(&self) -> Arg {
        let long = option_name(&self.name);
        let short_form = ["_date", "_time"].iter().find_map(|end| self.name.strip_suffix(end)).map(str::to_owned);
        let mut aliases: Vec<String> = vec![self.name.clone(), self.name.replace('_', "-")];
        aliases.retain(|alias| *alias != long);
        aliases.dedup();
        let whole = (self.description.as_str(), "");
        let (short, more) = match help_of_option(&self.name) {
            Some(_) => whole,
            None => self.description.split_once(". ").unwrap_or(whole),
        };
        let help = format!("{}.", short.trim_end_matches('.'));
        let option = Arg::new(self.name.clone()).long(long).aliases(aliases).value_name(self.value_name);
        let option = option.visible_aliases(short_form);
        let option = option.allow_hyphen_values(self.kind != Kind::Texts).help_heading("Fields").help(help);
        let option = if more.is_empty() { option } else { option.long_help(self.description.clone()) };
        match self.kind {
            Kind::Id => option.value_parser(value_parser!(IdArg)),
            Kind::Bool => option.value_parser(PossibleValuesParser::new(["true", "false"])),
            Kind::Texts if !self.possible.is_empty() => option
                .value_delimiter(',')
                .value_parser(KindsOfEvents(self.possible.clone()))
                .hide_possible_values(true)
                .value_name("KIND,…"),
            Kind::Texts => option.value_delimiter(','),
            _ if !self.possible.is_empty() => {
                let own = ["payload", "ordering", "signature"].iter().find(|name| **name == self.name);
                let name = own.copied().unwrap_or("status");
                option.value_parser(PossibleValuesParser::new(self.possible.clone())).value_name(name.to_uppercase())
            }
            Kind::Time => option.value_parser(checked(|text| values::time(text).map(drop).map_err(str::to_owned))),
            Kind::Duration => option.value_parser(checked(|text| values::duration(text).map(drop))),
            Kind::Durations => {
                option.value_delimiter(',').value_parser(checked(|text| values::duration(text).map(drop)))
            }
            Kind::Header => option.action(ArgAction::Append).value_parser(checked(|text| header(text).map(drop))),
            Kind::Authentication => option.value_parser(checked(|text| authentication(text).map(drop))),
            Kind::File | Kind::ClientCertificate => option.value_hint(ValueHint::FilePath).value_parser(text_of_file),
            Kind::Text | Kind::Number => option,
        }
    }

    /// Returns an option that must be given unless a file has all fields.
    fn required(&self, option: Arg) -> Arg {
        let [short, long] = [option.get_help(), option.get_long_help()].map(|text| text.map(required));
        let option = option.required_unless_present(DATA).help(short.unwrap_or_default());
        if let Some(long) = long { option.long_help(long) } else { option }
    }

    /// Returns the option that a value has beside the first one, if it is made of two.
    fn second_option(&self) -> Option<Arg> {
        let option = Arg::new(CLIENT_KEY).long("client-key").value_name("FILE").help_heading("Fields");
        let option = option.help("PEM of the private key of the certificate.").requires(self.name.clone());
        (self.kind == Kind::ClientCertificate)
            .then(|| option.value_hint(ValueHint::FilePath).value_parser(text_of_file))
    }

    /// Returns the value of the option.
    fn value(&self, matches: &ArgMatches) -> Option<FieldValue> {
        if self.kind == Kind::Id {
            return matches.get_one::<IdArg>(&self.name).cloned().map(FieldValue::Id);
        }
        let mut texts = matches.get_many::<String>(&self.name)?.cloned();
        if self.kind == Kind::Time
            && let Some(text) = matches.get_one::<String>(&self.name).filter(|text| Timestamp::parse(text).is_err())
            && let Ok(time) = values::time(text)
        {
            return Some(FieldValue::Time(time));
        }
        let json = match self.kind {
            Kind::Texts => Json::Array(texts.map(Json::String).collect()),
            Kind::Durations => {
                let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
                if texts.is_empty() {
                    Json::Null
                } else {
                    Json::Array(texts.iter().map(|text| seconds(text)).collect())
                }
            }
            Kind::Header => {
                let headers: Vec<(String, Json)> = texts.filter_map(|text| header(&text).ok().flatten()).collect();
                if headers.is_empty() { Json::Null } else { Json::Object(headers) }
            }
            kind => {
                let text = texts.next()?;
                match (kind, text.as_str()) {
                    (_, "") if self.is_nullable => Json::Null,
                    (Kind::Bool, "true" | "false") => Json::Bool(text == "true"),
                    (Kind::Number, _) => number(text),
                    (Kind::Duration, text) => seconds(text),
                    (Kind::Authentication, text) => authentication(text).unwrap_or(Json::Null),
                    (Kind::ClientCertificate, _) => {
                        let key = matches.get_one::<String>(CLIENT_KEY).cloned().unwrap_or_default();
                        let members = [("certificate", text), ("private_key", key)];
                        Json::Object(members.map(|(name, text)| (name.to_owned(), Json::String(text))).into())
                    }
                    _ => Json::String(text),
                }
            }
        };
        Some(FieldValue::Json(json))
    }
}

impl<I> Body<I> {
    /// Returns the id of the other record that an option names.
    pub(crate) fn id(&self) -> Option<&IdArg> {
        let BodySource::Options(fields) = &self.source else { return None };
        fields.iter().find_map(|(_, value)| match value {
            FieldValue::Id(id) => Some(id),
            _ => None,
        })
    }
}

/// Returns a parser that takes a text as it is if it is empty, which clears a field, or passes a check.
fn checked(check: fn(&str) -> Result<(), String>) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text: &str| if text.is_empty() { Ok(String::new()) } else { check(text).map(|()| text.to_owned()) }
}

/// Returns the text of a file. That of no file is empty, which clears a field.
fn text_of_file(path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Ok(String::new());
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Returns a length of time as a number of seconds, rounded up.
fn seconds(text: &str) -> Json {
    let duration = values::duration(text).unwrap_or_default();
    Json::Number(duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)).to_string())
}

/// Returns the name and the value of a header. An empty text is none.
fn header(text: &str) -> Result<Option<(String, Json)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let (name, value) = text.split_once(':').ok_or("a header has its value after a colon, as in 'X-Team: ledger'")?;
    Ok(Some((name.trim().to_owned(), Json::String(value.trim().to_owned()))))
}

/// Returns a way to authenticate as the API takes it.
fn authentication(text: &str) -> Result<Json, String> {
    let reason = "must be 'bearer TOKEN', 'basic USER:PASSWORD' or 'oauth2 TOKEN_URL CLIENT_ID:SECRET [SCOPE]'";
    let (kind, secret) = text.split_once(' ').ok_or(reason)?;
    let members = match kind.to_ascii_lowercase().as_str() {
        "bearer" => vec![("type", "bearer"), ("token", secret.trim())],
        "basic" => {
            let (username, password) = secret.trim().split_once(':').ok_or(reason)?;
            vec![("type", "basic"), ("username", username), ("password", password)]
        }
        "oauth2" => {
            let mut words = secret.trim().splitn(3, ' ');
            let (url, client) = words.next().zip(words.next()).ok_or(reason)?;
            let (id, secret) = client.split_once(':').ok_or(reason)?;
            let client = vec![("type", "oauth2"), ("token_url", url), ("client_id", id), ("client_secret", secret)];
            client.into_iter().chain(words.next().map(|scope| ("scope", scope))).collect()
        }
        _ => return Err(reason.to_owned()),
    };
    Ok(Json::Object(
        members.into_iter().map(|(name, value)| (name.to_owned(), Json::String(value.to_owned()))).collect(),
    ))
}

/// Returns a number as JSON. Other text stays a text, which the input refuses.
fn number(text: String) -> Json {
    match json::parse(text.as_bytes()) {
        Ok(Json::Number(digits)) => Json::Number(digits),
        _ => Json::String(text),
    }
}

impl<I: Input> Args for Body<I> {
    fn augment_args(command: Command) -> Command {
        let mut command = command;
        for field in fields::<I>() {
            let option = field.option().conflicts_with(DATA);
            let option = if field.is_required { field.required(option) } else { option };
            command = command.arg(option).args(field.second_option());
        }
        let data = Arg::new(DATA).long("data").value_name("FILE|-").value_parser(value_parser!(PathBuf));
        let help = "File with all fields as a JSON object, or - for stdin.";
        command.arg(data.help_heading("Fields").help(help))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the option of a change that clears fields which may be empty, if the input has any.
pub(crate) fn clear<I: Input>() -> Option<Arg> {
    let fields = fields::<I>().into_iter().filter(|field| field.is_nullable);
    let values: Vec<PossibleValue> = fields
        .map(|field| {
            let option = option_name(&field.name);
            let aliases = [&field.name, &field.name.replace('_', "-")].map(String::clone);
            PossibleValue::new(option.clone()).aliases(aliases.into_iter().filter(move |alias| *alias != option))
        })
        .collect();
    if values.is_empty() {
        return None;
    }
    let option = Arg::new(CLEAR).long(CLEAR).value_name("FIELD").action(ArgAction::Append).value_delimiter(',');
    let help = "Clear a field, as the value '' does. Separate several by commas.";
    Some(
        option
            .value_parser(PossibleValuesParser::new(values))
            .hide_possible_values(true)
            .help_heading("Fields")
            .help(help)
            .conflicts_with(DATA),
    )
}

impl<I: Input> FromArgMatches for Body<I> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let source = match matches.get_one::<PathBuf>(DATA) {
            Some(file) => BodySource::File(file.clone()),
            None => {
                let fields = fields::<I>();
                let is_given = |id: &str| matches.try_contains_id(id).unwrap_or(false);
                let certificate = fields.iter().find(|field| field.kind == Kind::ClientCertificate);
                let certificate = certificate.and_then(|field| matches.get_one::<String>(&field.name));
                if certificate.is_some_and(|text| !text.is_empty()) && !is_given(CLIENT_KEY) {
                    let reason = "--client-certificate needs --client-key\n";
                    return Err(Error::raw(ErrorKind::MissingRequiredArgument, reason));
                }
                let values = fields.iter().filter_map(|field| Some((field.name.clone(), field.value(matches)?)));
                let mut values: Vec<(String, FieldValue)> = values.collect();
                // Only changes have this option.
                let cleared = matches.try_get_many::<String>(CLEAR).ok().flatten().into_iter().flatten();
                for typed in cleared {
                    let option = option_name(&typed.replace('-', "_"));
                    let Some(field) = fields.iter().find(|field| option_name(&field.name) == option) else { continue };
                    if values.iter().any(|(name, _)| *name == field.name) {
                        let reason = format!("--clear {option} cannot be used with --{option}, or twice\n");
                        return Err(Error::raw(ErrorKind::ArgumentConflict, reason));
                    }
                    values.push((field.name.clone(), FieldValue::Json(Json::Null)));
                }
                BodySource::Options(values)
            }
        };
        Ok(Self { source, input: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<F: Input> Args for Filters<F> {
    fn augment_args(command: Command) -> Command {
        fields::<F>().iter().fold(command, |command, field| {
            let option = field.option().help_heading("Filters");
            // A parameter that is true or false is an option without a value.
            command.arg(match field.kind {
                Kind::Bool => option.allow_hyphen_values(false).num_args(0).default_missing_value("true"),
                Kind::Time => option.value_parser(checked(|text| values::since(text).map(drop).map_err(str::to_owned))),
                _ => option,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F: Input> Filters<F> {
    /// Returns the parameters with the times that were typed as the API takes them.
    ///
    /// # Errors
    /// Clocks skip a time or show it twice.
    pub(crate) fn query(&self) -> Result<Vec<(String, String)>, Failure> {
        let fields = fields::<F>();
        let is_time = |name: &str| fields.iter().any(|field| field.name == name && field.kind == Kind::Time);
        let pair = |(name, text): &(String, String)| match values::since(text) {
            Ok(time) if is_time(name) => Ok((name.clone(), times::instant(&time)?.to_string())),
            _ => Ok((name.clone(), text.clone())),
        };
        self.pairs.iter().map(pair).collect()
    }
}

impl<F: Input> FromArgMatches for Filters<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let pair = |field: Field| {
            let raw: Option<OsString> = matches.get_raw(&field.name)?.next().map(Into::into);
            Some((field.name, raw?.into_string().ok()?))
        };
        Ok(Self { pairs: fields::<F>().into_iter().filter_map(pair).collect(), filter: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
