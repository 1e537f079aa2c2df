//! Request bodies and query strings as typed input.
//!
//! A body is a plain struct with `#[derive(Input)]`, and its reader and its JSON schema follow from its fields. Reading
//! is strict (`docs/contract.md`, "Request bodies"): unknown, repeated and read-only fields are errors, and nothing is
//! converted. One error names every failing field.
//!
//! # Examples
//!
//! ```
//! use svc_core::error::Error;
//! use svc_core::input::Input;
//! use svc_core::resources::bookings::BookingCreate;
//!
//! let Err(Error::Validation(violations)) = BookingCreate::from_body(br#"{"service_name": 7, "id": "x"}"#) else {
//!     panic!("the body is not valid")
//! };
//! let failing: Vec<&str> = violations.as_slice().iter().map(|violation| violation.field.as_str()).collect();
//! assert_eq!(failing, ["contact_id", "service_name", "start_time", "id"]);
//! ```

pub mod json;
#[doc(hidden)]
pub mod schema;
mod send;

use schemars::{JsonSchema, SchemaGenerator};
pub use svc_derive::{Apply, Input, Record};
use uuid::Uuid;

use self::json::Json;
use self::schema::FieldSchema;
pub(crate) use self::send::Body;
pub use self::send::ToBody;
use crate::error::{Error, FieldCode, Issue, Violations};
use crate::values::{EventKinds, Id, parse_uuid};

/// A value that can be read from a JSON field or a query parameter.
pub trait FromJson: Sized {
    /// Reads the value of a field that was sent.
    ///
    /// # Errors
    /// An [`Issue`] that says what is wrong with the value.
    fn from_json(json: Json) -> Result<Self, Issue>;

    /// Checks what depends on the event kinds of the service, where they are known.
    ///
    /// # Errors
    /// An [`Issue`] with a kind that the service does not have.
    fn check_kinds(&self, _kinds: &EventKinds) -> Result<(), Issue> {
        Ok(())
    }

    /// Returns the value of a field that was not sent, or `None` if the field is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Returns whether a client leaves out a field with this value.
    fn is_absent(&self) -> bool {
        false
    }

    /// Reads the value of a query parameter.
    ///
    /// # Errors
    /// An [`Issue`] that says what is wrong with the value.
    fn from_query(text: String) -> Result<Self, Issue> {
        Self::from_json(Json::String(text))
    }
}

/// A nullable field. A field that is absent, null or blank text is `None`.
impl<T: FromJson> FromJson for Option<T> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        match json {
            Json::Null => Ok(None),
            Json::String(text) if text.trim().is_empty() => Ok(None),
            json => T::from_json(json).map(Some),
        }
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
    fn from_query(text: String) -> Result<Self, Issue> {
        T::from_query(text).map(Some)
    }
}

impl FromJson for bool {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_bool()
    }
    fn from_query(text: String) -> Result<Self, Issue> {
        match text.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Issue::new(FieldCode::InvalidType, "must be true or false")),
        }
    }
}

impl FromJson for String {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_string()
    }
}

impl FromJson for Uuid {
    fn from_json(json: Json) -> Result<Self, Issue> {
        parse_uuid(&json.into_string()?)
    }
}

impl<T> FromJson for Id<T> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Uuid::from_json(json).map(Self::new)
    }
}

/// Returns the name that was probably meant by an unknown one, if a known one is similar. Case does not count, nor which of
/// spaces, hyphens and underscores are between words: `firstName` and `First Name` are similar to `first_name`.
///
/// ```
/// use svc_core::input::similar;
/// assert_eq!(similar("firstName", ["first_name", "email"]), Some("first_name"));
/// assert_eq!(similar("colour", ["first_name", "email"]), None);
/// ```
pub fn similar<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = |name: &str| name.replace([' ', '-', '_'], "").to_lowercase();
    // Similarity takes a time of the product of the lengths.
    let name = Some(name).filter(|name| name.len() <= 100).map(plain)?;
    let similar = known.into_iter().map(|known| (strsim::jaro_winkler(&plain(known), &name), known));
    let (similarity, best) = similar.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (similarity > 0.85).then_some(best)
}

/// The names of the fields of a record or an input.
///
/// They tell a read-only field from an unknown one, and are the header of a table.
pub trait FieldNames {
    /// The names as in JSON, in the order of declaration.
    const FIELD_NAMES: &'static [&'static str];
}

/// A body or a set of query parameters. `#[derive(Input)]` implements it.
pub trait Input: JsonSchema + Sized + Send + Sync + 'static {
    /// Takes the fields of the input. Returns `None` if one of them failed; `fields` has the reasons.
    fn take(fields: &mut Fields) -> Option<Self>;

    /// Returns the names that are refused as read-only instead of unknown.
    fn read_only() -> &'static [&'static str] {
        &[]
    }

    /// Whether a body without any field is refused, as it is for a PATCH.
    const NEEDS_A_FIELD: bool = false;

    /// Returns the schemas of the fields.
    #[doc(hidden)]
    fn field_schemas(_generator: &mut SchemaGenerator) -> Vec<FieldSchema> {
        Vec::new()
    }

    /// Reads a JSON body.
    ///
    /// # Errors
    /// [`Error::InvalidJson`], [`Error::EmptyPatch`], or [`Error::Validation`] with all failing fields.
    fn from_body(body: &[u8]) -> Result<Self, Error> {
        Self::from_members(members_of(body)?)
    }

    /// Reads a JSON body that may name event kinds of this service and no others. Elsewhere a kind that the service does not
    /// have is found by the rules, after all fields have been read.
    ///
    /// # Errors
    /// As [`from_body`](Self::from_body).
    fn from_body_with_kinds(body: &[u8], kinds: &EventKinds) -> Result<Self, Error> {
        read_members(members_of(body)?, Some(kinds))
    }

    /// Reads the members of an object, each name once.
    ///
    /// # Errors
    /// [`Error::EmptyPatch`], or [`Error::Validation`] with all failing fields.
    fn from_members(members: Vec<(String, Json)>) -> Result<Self, Error> {
        read_members(members, None)
    }
}

fn members_of(body: &[u8]) -> Result<Vec<(String, Json)>, Error> {
    match json::parse(body)? {
        Json::Object(members) => Ok(members),
        _ => Err(Error::InvalidJson("The body must be a JSON object.".into())),
    }
}

fn read_members<I: Input>(members: Vec<(String, Json)>, kinds: Option<&EventKinds>) -> Result<I, Error> {
    if I::NEEDS_A_FIELD && members.is_empty() {
        return Err(Error::EmptyPatch);
    }
    let mut fields = Fields::new(members.into_iter().map(|(name, json)| (name, RawField::Json(json))));
    fields.kinds = kinds.cloned();
    let input = I::take(&mut fields);
    fields.refuse_untaken(I::read_only());
    fields.finish(input)
}

/// An input whose fields are copied into a record. `#[derive(Apply)]` implements it.
pub trait Apply<R> {
    /// Copies the fields that have the same name in the record.
    fn apply_to(self, record: &mut R);
}

/// A field of an input that can be copied into a field of a record.
pub trait ApplyField<T> {
    /// Replaces `target`, unless the field was left out of a PATCH.
    fn apply_field(self, target: &mut T);
}

impl<T> ApplyField<T> for T {
    fn apply_field(self, target: &mut T) {
        *target = self;
    }
}

/// A required field of the input may be one that is null in other records.
impl<T> ApplyField<Option<T>> for T {
    fn apply_field(self, target: &mut Option<T>) {
        *target = Some(self);
    }
}

/// A field as a request has it.
enum RawField {
    Json(Json),
    Query(String),
}

/// The fields that were sent and not taken yet, and the failures so far.
pub struct Fields {
    members: Vec<(String, Option<RawField>)>,
    /// The names that were looked for.
    known: Vec<&'static str>,
    violations: Violations,
    /// The event kinds of the service, where they are known.
    kinds: Option<EventKinds>,
}

impl Fields {
    fn new(members: impl Iterator<Item = (String, RawField)>) -> Self {
        let members = members.map(|(name, sent)| (name, Some(sent))).collect();
        Self { members, known: Vec::with_capacity(16), violations: Violations::default(), kinds: None }
    }

    /// Returns the fields of a query string from its decoded pairs. A repeated or empty parameter fails.
    pub fn from_query(pairs: Vec<(String, String)>) -> Self {
        let mut fields = Self::new(std::iter::empty());
        for (name, value) in pairs {
            if fields.members.iter().any(|(known, _)| *known == name) {
                let issue = Issue::new(FieldCode::DuplicateKey, "must be sent only once");
                fields.violations.push(&name, issue);
            } else if value.is_empty() {
                let issue = Issue::new(FieldCode::TooShort, "must not be empty; leave it out instead");
                fields.violations.push(&name, issue);
                fields.members.push((name, None));
            } else {
                fields.members.push((name, Some(RawField::Query(value))));
            }
        }
        fields
    }

    /// Takes one field. If it is wrong or missing, this is recorded as a failure and the result is `None`.
    pub fn take<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        self.known.push(name);
        let read = match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, sent)) => match sent.take()? {
                RawField::Json(json) => T::from_json(json),
                RawField::Query(text) => T::from_query(text),
            },
            None => T::absent().ok_or_else(|| Issue::new(FieldCode::Required, "is required")),
        };
        let kinds = &self.kinds;
        let checked = read.and_then(|value: T| match kinds {
            Some(kinds) => value.check_kinds(kinds).map(|()| value),
            None => Ok(value),
        });
        checked.map_err(|issue| self.violations.push(name, issue)).ok()
    }

    fn untaken(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|(_, sent)| sent.is_some()).map(|(name, _)| name.as_str())
    }

    /// Drops the fields that were not taken, so that they do not fail as unknown.
    pub(crate) fn ignore_untaken(&mut self) {
        self.members.clear();
    }

    fn refuse_untaken(&mut self, read_only: &[&str]) {
        let untaken: Vec<String> = self.untaken().map(str::to_owned).collect();
        for name in untaken {
            let issue = if read_only.contains(&name.as_str()) {
                Issue::new(FieldCode::ReadOnlyField, "is set by the service; leave it out")
            } else if let Some(meant) = self.meant_by(&name) {
                let reason = format!("is no field of this request (did you mean {meant}?)");
                Issue::new(FieldCode::UnknownField, reason)
            } else {
                Issue::new(FieldCode::UnknownField, "is no field of this request; leave it out")
            };
            self.violations.push(&name, issue);
        }
    }

    /// Returns the first parameter that was not taken.
    pub fn first_unknown(&self) -> Option<&str> {
        self.untaken().next()
    }

    /// Returns the field that was probably meant by an unknown one, of those that were looked for.
    pub fn meant_by(&self, unknown: &str) -> Option<&'static str> {
        similar(unknown, self.known.iter().copied())
    }

    /// Returns the input if there was no failure.
    ///
    /// # Errors
    /// [`Error::Validation`] with all failing fields.
    pub fn finish<T>(self, input: Option<T>) -> Result<T, Error> {
        match input {
            Some(input) if self.violations.is_empty() => Ok(input),
            _ => Err(Error::Validation(self.violations)),
        }
    }
}
