//! The event kinds of a service: its own, and those that the application around it registers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

#[cfg(feature = "json-schema")]
use super::json_schema;
use super::schema_refs;
use super::{EventKind, EventSet, KindName};
use crate::error::{FieldCode, Issue};
#[cfg(feature = "json-schema")]
use crate::input::json::{self, Json};
use crate::input::similar;

/// The event kinds that a service has: those of [`EventKind::BUILT_IN`], and custom ones that the application around it
/// registers. Cheap to clone.
///
/// It is part of the [`Env`](crate::env::Env) that a store is opened with. Subscriptions accept the registered kinds, and
/// [`emit`](crate::service::Events::emit) checks the data of an event with them. An event whose kind is no longer
/// registered is delivered and replayed all the same.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "json-schema")] {
/// use serde_json::json;
/// use svc_core::env::Env;
///
/// let mut env = Env::system();
/// let schema = json!({
///     "description": "An order left the warehouse.",
///     "type": "object",
///     "properties": { "id": { "type": "string" }, "parcels": { "type": "integer", "minimum": 1 } },
///     "required": ["id"],
///     "examples": [{ "id": "A-17", "parcels": 2 }],
/// });
/// env.event_kinds.register("order.shipped", schema)?;
/// # }
/// # Ok::<(), svc_core::values::EventKindError>(())
/// ```
#[derive(Clone, Default)]
pub struct EventKinds {
    custom: Arc<BTreeMap<KindName, CustomKind>>,
}

#[derive(Clone)]
struct CustomKind {
    schema: Value,
    example: Value,
    check: Check,
}

/// Returns what is wrong with the data of an event.
type Check = Arc<dyn Fn(&Value) -> Vec<Issue> + Send + Sync>;

/// The reason why an event kind cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventKindError {
    /// The text is not a valid name.
    #[error(
        "{0:?} cannot be the name of an event kind: use two or more words of lower-case letters, digits and underscores, \
         separated by dots, at most 64 characters, such as order.shipped"
    )]
    Name(String),
    /// The service has this kind itself.
    #[error("{0} is an event kind of the service itself: choose another name")]
    BuiltIn(EventKind),
    /// The kind was registered before.
    #[error("{0} is registered already: give each event kind once")]
    Registered(KindName),
    /// The schema is not valid, or uses what is not supported.
    #[error("the schema of {kind} is not valid at {place}: {reason}")]
    Schema {
        /// The name of the kind.
        kind: KindName,
        /// Where in the schema, as a JSON pointer such as `#/properties/id`.
        place: String,
        /// The mistake there.
        reason: String,
    },
    /// The schema has no example.
    #[error(
        "the schema of {0} has no example: add one as \"examples\": [{{…}}], which test events and the API description \
         show"
    )]
    NoExample(KindName),
    /// The example does not fit the schema.
    #[error("the example of {kind} cannot be used: {reason}")]
    Example {
        /// The name of the kind.
        kind: KindName,
        /// The first field that does not fit, and why.
        reason: String,
    },
    /// The file cannot be read; holds the reason.
    #[error("the file of event kinds cannot be read: {0}")]
    File(String),
    /// The text is not a JSON object with a schema for each name.
    #[error("event kinds are a JSON object that has the JSON Schema of each kind under its name: {0}")]
    Json(String),
}

impl EventKinds {
    /// Registers a kind whose events have data of a JSON Schema (2020-12).
    ///
    /// `description` of the schema says what the event reports, and the first of its `examples` is the data of test events.
    /// References lead to places within the schema, such as `#/$defs/address`. Formats such as `date-time` and `uuid` are
    /// checked.
    ///
    /// # Errors
    /// [`EventKindError`], if the name or the schema is not valid, the kind exists, or the example does not fit.
    #[cfg(feature = "json-schema")]
    pub fn register(&mut self, name: &str, schema: Value) -> Result<(), EventKindError> {
        self.insert(name, schema, |kind, schema| {
            let validator = json_schema::compile(kind, schema)?;
            Ok(Arc::new(move |data| json_schema::check(&validator, data)))
        })
    }

    /// Registers a kind whose data is checked by code of the application. It returns what is wrong with the data, and an
    /// empty list for data that is right.
    ///
    /// The schema is what the API description shows, and has the example; nothing else is checked with it.
    ///
    /// # Errors
    /// [`EventKindError`], if the name is not valid, the kind exists, or the example does not pass the check.
    pub fn register_with_check(
        &mut self,
        name: &str,
        schema: Value,
        check: impl Fn(&Value) -> Vec<Issue> + Send + Sync + 'static,
    ) -> Result<(), EventKindError> {
        self.insert(name, schema, |_, _| Ok(Arc::new(check)))
    }

    fn insert(
        &mut self,
        name: &str,
        schema: Value,
        check: impl FnOnce(KindName, &Value) -> Result<Check, EventKindError>,
    ) -> Result<(), EventKindError> {
        let kind = new_name(name)?;
        if self.custom.contains_key(&kind) {
            return Err(EventKindError::Registered(kind));
        }
        schema_refs::check(&schema).map_err(|(place, reason)| EventKindError::Schema { kind, place, reason })?;
        let check = check(kind, &schema)?;
        let example = schema["examples"].get(0).cloned().ok_or(EventKindError::NoExample(kind))?;
        let custom = CustomKind { schema, example, check };
        if let Some(issue) = custom.issues(&custom.example).first() {
            let place = issue.path.as_deref().unwrap_or("it");
            return Err(EventKindError::Example { kind, reason: format!("{place} {issue}") });
        }
        Arc::make_mut(&mut self.custom).insert(kind, custom);
        Ok(())
    }

    /// Returns the custom kinds of a JSON object that has a schema for each name, as [`register`](Self::register) takes it.
    ///
    /// # Errors
    /// [`EventKindError`] for the first kind that cannot be registered.
    #[cfg(feature = "json-schema")]
    pub fn from_json(text: &[u8]) -> Result<Self, EventKindError> {
        let refused = |error: String| EventKindError::Json(error.replace("The body", "it"));
        // Refuses a name that is there twice, which serde_json does not.
        if !matches!(json::parse(text).map_err(|error| refused(error.to_string()))?, Json::Object(_)) {
            return Err(refused("it is another JSON value".to_owned()));
        }
        let schemas: BTreeMap<String, Value> =
            serde_json::from_slice(text).map_err(|error| refused(error.to_string()))?;
        let mut kinds = Self::default();
        for (name, schema) in schemas {
            kinds.register(&name, schema)?;
        }
        Ok(kinds)
    }

    /// Returns the custom kinds of a file, as [`from_json`](Self::from_json) does.
    ///
    /// # Errors
    /// [`EventKindError::File`], or the error of [`from_json`](Self::from_json).
    #[cfg(feature = "json-schema")]
    pub fn from_file(path: &std::path::Path) -> Result<Self, EventKindError> {
        let text = std::fs::read(path).map_err(|error| EventKindError::File(error.to_string()))?;
        Self::from_json(&text)
    }

    /// Returns whether the service has this kind.
    pub fn contains(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Custom(name) => self.custom.contains_key(&name),
            _ => true,
        }
    }

    /// Returns the kinds that are registered, in the order of their names.
    pub fn custom(&self) -> impl Iterator<Item = KindName> {
        self.custom.keys().copied()
    }

    /// Returns all kinds: the built-in ones, then those that are registered.
    pub fn all(&self) -> impl Iterator<Item = EventKind> {
        EventKind::BUILT_IN.iter().copied().chain(self.custom().map(EventKind::Custom))
    }

    /// Returns the schema of the data of a registered kind, for a document that has it at `place`, such as
    /// `#/components/schemas/order.shipped`: its references lead there.
    pub fn schema_at(&self, kind: KindName, place: &str) -> Option<Value> {
        self.custom.get(&kind).map(|custom| schema_refs::moved(custom.schema.clone(), place))
    }

    /// Returns what an event of a kind reports, as a sentence: for a registered kind the description of its schema, if it has
    /// one.
    pub fn meaning(&self, kind: EventKind) -> String {
        let EventKind::Custom(name) = kind else { return kind.meaning().unwrap_or_default().to_owned() };
        let described = self.custom.get(&name).and_then(|custom| custom.schema["description"].as_str());
        described.map_or_else(|| format!("An event `{name}` of the application."), str::to_owned)
    }

    /// Returns the example of a registered kind.
    pub fn example(&self, kind: KindName) -> Option<&Value> {
        self.custom.get(&kind).map(|custom| &custom.example)
    }

    /// Returns what is wrong with the data of an event of a registered kind. `None` if the kind is not registered.
    pub(crate) fn issues(&self, kind: KindName, data: &Value) -> Option<Vec<Issue>> {
        self.custom.get(&kind).map(|custom| custom.issues(data))
    }

    /// Checks that the service has each kind of a selection, or that `before` names it: a subscription keeps a kind that is
    /// no longer registered.
    ///
    /// # Errors
    /// [`FieldCode::InvalidEnum`].
    pub(crate) fn check(&self, selected: &EventSet, before: Option<&EventSet>) -> Result<(), Issue> {
        let EventSet::Kinds(kinds) = selected else { return Ok(()) };
        let kept = |kind: &EventKind| matches!(before, Some(EventSet::Kinds(before)) if before.contains(kind));
        match kinds.iter().find(|kind| !self.contains(**kind) && !kept(kind)) {
            Some(unknown) => Err(unknown_kind(unknown.as_str(), self.all())),
            None => Ok(()),
        }
    }
}

impl CustomKind {
    fn issues(&self, data: &Value) -> Vec<Issue> {
        if data.is_object() {
            (self.check)(data)
        } else {
            vec![Issue::new(FieldCode::InvalidType, "must be a JSON object")]
        }
    }
}

impl fmt::Debug for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventKinds").field(&self.custom.keys()).finish()
    }
}

/// Returns the kinds that a pattern or the name of a record means, such as `contact.*` or `contact`: those that begin with
/// `contact.`. Neither is a kind itself.
///
/// ```
/// use svc_core::values::{EventKind, kinds_of};
/// let meant: Vec<EventKind> = kinds_of("quote.*", EventKind::BUILT_IN.iter().copied());
/// assert_eq!(meant.len(), 4);
/// assert!(kinds_of("q*", EventKind::BUILT_IN.iter().copied()).is_empty());
/// ```
pub fn kinds_of(pattern: &str, known: impl IntoIterator<Item = EventKind>) -> Vec<EventKind> {
    let record = pattern.strip_suffix('*').unwrap_or(pattern).trim_end_matches('.').to_lowercase();
    let is_meant = |kind: &EventKind| kind.as_str().strip_prefix(&record).is_some_and(|rest| rest.starts_with('.'));
    known.into_iter().filter(is_meant).collect()
}

/// Returns what is wrong with the name of a kind that the service does not have.
pub(super) fn unknown_kind(name: &str, known: impl Iterator<Item = EventKind>) -> Issue {
    let known: Vec<EventKind> = known.collect();
    let of_record = kinds_of(name, known.iter().copied());
    let reason = match similar(name, known.iter().map(EventKind::as_str)) {
        _ if !of_record.is_empty() => {
            let named: Vec<&str> = of_record.iter().map(EventKind::as_str).collect();
            format!("has an unknown event kind {name:?}; name each one, of {}", named.join(", "))
        }
        Some(meant) => format!("has an unknown event kind {name:?} (did you mean {meant:?}?)"),
        None => format!("has an unknown event kind {name:?}; see the list in the API description"),
    };
    Issue::new(FieldCode::InvalidEnum, reason)
}

fn new_name(name: &str) -> Result<KindName, EventKindError> {
    match EventKind::from_text(name) {
        Some(EventKind::Custom(name)) => Ok(name),
        Some(built_in) => Err(EventKindError::BuiltIn(built_in)),
        None => Err(EventKindError::Name(name.to_owned())),
    }
}

#[cfg(test)]
mod tests;
