//! Reading bodies and query strings into typed input, with every failing field named at once.
//!
//! A body is declared once, with `input!`: the struct, its reader and its JSON schema come from the same lines.

pub mod json;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use self::json::Json;
use crate::error::{Error, FieldCode, Issue, Violations};

/// A value that can be read from a JSON field or a query parameter.
pub trait FromJson: Sized {
    /// Reads the value of a field that was sent.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_json(json: Json) -> Result<Self, Issue>;

    /// What stands for a field that was not sent; `None` when the field is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Reads the value of a query parameter.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_query(text: String) -> Result<Self, Issue> {
        Self::from_json(Json::String(text))
    }
}

/// A nullable field: absent, null and blank text are the same.
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

/// The names of the fields of a record or an input: tells a read-only field from an unknown one, and is the header of
/// a table.
pub trait FieldNames {
    /// As in JSON.
    const FIELD_NAMES: &'static [&'static str];
}

/// A body or a set of query parameters.
pub trait Input: JsonSchema + Sized + Send + Sync + 'static {
    /// Takes its fields; `None` when one of them failed, which `fields` has noted.
    fn take(fields: &mut Fields) -> Option<Self>;

    /// Names that are refused as read-only instead of unknown.
    fn read_only() -> &'static [&'static str] {
        &[]
    }

    /// Whether a body without a field is refused, as on PATCH.
    const NEEDS_A_FIELD: bool = false;

    /// Reads a JSON body.
    ///
    /// # Errors
    /// [`Error::InvalidJson`], [`Error::EmptyPatch`], or [`Error::Validation`] with all failing fields.
    fn from_body(body: &[u8]) -> Result<Self, Error> {
        let Json::Object(members) = json::parse(body)? else {
            return Err(Error::InvalidJson("The body must be a JSON object.".into()));
        };
        Self::from_members(members)
    }

    /// Reads the members of an object, each name once.
    ///
    /// # Errors
    /// [`Error::EmptyPatch`], or [`Error::Validation`] with all failing fields.
    fn from_members(members: Vec<(String, Json)>) -> Result<Self, Error> {
        if Self::NEEDS_A_FIELD && members.is_empty() {
            return Err(Error::EmptyPatch);
        }
        let mut fields = Fields::new(members.into_iter().map(|(name, json)| (name, Sent::Json(json))));
        let input = Self::take(&mut fields);
        fields.refuse_rest(Self::read_only());
        fields.finish(input)
    }
}

enum Sent {
    Json(Json),
    Query(String),
}

/// The fields that were sent and are not taken yet, and what is wrong so far.
pub struct Fields {
    members: Vec<(String, Option<Sent>)>,
    violations: Violations,
}

impl Fields {
    fn new(members: impl Iterator<Item = (String, Sent)>) -> Self {
        Self { members: members.map(|(name, sent)| (name, Some(sent))).collect(), violations: Violations::default() }
    }

    /// From the decoded pairs of a query string. A repeated or empty parameter is noted as failing.
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
                fields.members.push((name, Some(Sent::Query(value))));
            }
        }
        fields
    }

    /// Takes one field. `None` when it is wrong or missing, which is noted.
    pub fn take<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        let read = match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, sent)) => match sent.take()? {
                Sent::Json(json) => T::from_json(json),
                Sent::Query(text) => T::from_query(text),
            },
            None => T::absent().ok_or_else(|| Issue::new(FieldCode::Required, "is required")),
        };
        read.map_err(|issue| self.violations.push(name, issue)).ok()
    }

    fn rest(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|(_, sent)| sent.is_some()).map(|(name, _)| name.as_str())
    }

    fn refuse_rest(&mut self, read_only: &[&str]) {
        let rest: Vec<String> = self.rest().map(str::to_owned).collect();
        for name in rest {
            let issue = if read_only.contains(&name.as_str()) {
                Issue::new(FieldCode::ReadOnlyField, "is set by the service; leave it out")
            } else {
                Issue::new(FieldCode::UnknownField, "is no field of this request; leave it out")
            };
            self.violations.push(&name, issue);
        }
    }

    /// The first parameter that nothing has taken.
    pub fn first_unknown(&self) -> Option<&str> {
        self.rest().next()
    }

    /// The input, if nothing was wrong.
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

/// One field of an input's schema: name, schema, whether it must be sent.
#[doc(hidden)]
pub type FieldSchema = (&'static str, Schema, bool);

/// Builds an object schema; the macros below call it.
#[doc(hidden)]
pub fn object_schema(description: &str, fields: impl IntoIterator<Item = FieldSchema>) -> Schema {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (name, schema, must) in fields {
        properties.insert(name.to_owned(), schema.to_value());
        if must {
            required.push(name);
        }
    }
    let mut object = serde_json::json!({
        "type": "object",
        "description": description,
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        object["required"] = required.into();
    }
    Schema::try_from(object).unwrap_or_default()
}

/// The schema of one field with its doc comment as the description.
#[doc(hidden)]
pub fn field_schema<T: JsonSchema>(generator: &mut SchemaGenerator, docs: &[&str]) -> Schema {
    let mut schema = nullable_in_type(generator.subschema_for::<T>());
    let description = join_docs(docs);
    if !description.is_empty() {
        schema.insert("description".into(), description.into_owned().into());
    }
    schema
}

/// Writes a nullable schema as one with `null` among its types. Blank text is null there, so it has no least length.
fn nullable_in_type(schema: Schema) -> Schema {
    let mut value = schema.to_value();
    if let Some([inner, null]) = value["anyOf"].as_array().map(Vec::as_slice)
        && null["type"] == "null"
        && let Some(kind) = inner["type"].as_str()
    {
        let mut flat = inner.clone();
        flat["type"] = serde_json::json!([kind, "null"]);
        value = flat;
    }
    if value["type"].is_array()
        && let Some(object) = value.as_object_mut()
    {
        object.remove("minLength");
    }
    Schema::try_from(value).unwrap_or_default()
}

/// Joins the lines of a doc comment.
#[doc(hidden)]
pub fn join_docs<'a>(lines: &[&'a str]) -> Cow<'a, str> {
    match lines {
        [line] => line.trim().into(),
        lines => lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned().into(),
    }
}

/// Declares a body or a set of query parameters: `input! { pub struct ContactCreate for Contact { … } }`.
/// `for R` names the record whose other fields are read-only; `patch` demands at least one field. `field: T = value`
/// documents what stands for a field that is left out; it changes nothing in how the field is read.
macro_rules! input {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident $(for $record:ty)? $(, patch $patch:literal)? $(, derive $derive:ident)? {
            $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty $(= $default:literal)?,)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        pub struct $name { $($(#[doc = $field_doc])+ pub $field: $type,)* }

        impl $crate::input::Input for $name {
            fn take(fields: &mut $crate::input::Fields) -> Option<Self> {
                // All are taken before any is missed, so that every failing field is named.
                $(let $field = fields.take::<$type>(stringify!($field));)*
                Some(Self { $($field: $field?,)* })
            }
            $(fn read_only() -> &'static [&'static str] {
                <$record as $crate::input::FieldNames>::FIELD_NAMES
            })?
            $(const NEEDS_A_FIELD: bool = $patch;)?
        }

        impl $crate::input::FieldNames for $name {
            const FIELD_NAMES: &'static [&'static str] = &[$(stringify!($field),)*];
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($name).into() }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let fields = vec![$((
                    stringify!($field),
                    {
                        let schema = $crate::input::field_schema::<$type>(generator, &[$($field_doc),+]);
                        $(let schema = $crate::input::with_default(schema, $default);)?
                        schema
                    },
                    <$type as $crate::input::FromJson>::absent().is_none(),
                ),)*];
                let schema = $crate::input::object_schema(&$crate::input::join_docs(&[$($doc),+]), fields);
                $(let schema = $crate::input::with_minimum(schema, $patch);)?
                schema
            }
        }
    };
}

/// Says what stands for a field that is left out.
#[doc(hidden)]
pub fn with_default(mut schema: Schema, default: impl Into<serde_json::Value>) -> Schema {
    schema.insert("default".into(), default.into());
    schema
}

/// Marks a PATCH body: at least one field.
#[doc(hidden)]
pub fn with_minimum(mut schema: Schema, needs_a_field: bool) -> Schema {
    if needs_a_field {
        schema.insert("minProperties".into(), 1.into());
    }
    schema
}

/// Declares a record that the API returns: the struct, its JSON form, its schema and its field names.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+ }
    ) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

        impl $crate::input::FieldNames for $name {
            const FIELD_NAMES: &'static [&'static str] = &[$(stringify!($field),)+];
        }
    };
}

pub(crate) use {input, record};
