//! Kinds of events, and the selection of them that a webhook subscription makes.
//!
//! Kinds are those of the contract and those that an application registers, each with a check of its data. Only what is new is
//! compared with the registered kinds: the `events` of a subscription, and an event that is emitted. A stored event is read,
//! delivered and replayed whatever its kind.

#[cfg(feature = "json-schema")]
mod json_schema;
mod kind_name;
mod registry;
mod schema_refs;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

pub use self::kind_name::KindName;
use self::registry::unknown_kind;
pub use self::registry::{EventKindError, EventKinds, kinds_of};
use super::TextEnum;
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

/// The occurrence that an event reports (`docs/contract.md`, "Events").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum EventKind {
    /// An invoice was created.
    #[text = "invoice.created"]
    InvoiceCreated,
    /// An invoice was sent to the customer.
    #[text = "invoice.sent"]
    InvoiceSent,
    /// An invoice was paid in full.
    #[text = "invoice.paid"]
    InvoicePaid,
    /// An invoice was voided.
    #[text = "invoice.voided"]
    InvoiceVoided,
    /// An invoice was refunded, in full or in part.
    #[text = "invoice.refunded"]
    InvoiceRefunded,
    /// An invoice changed. If the change also fires a more specific kind, that one comes first.
    #[text = "invoice.updated"]
    InvoiceUpdated,
    /// An invoice was sent again, without a change.
    #[text = "invoice.resent"]
    InvoiceResent,
    /// A quote was created.
    #[text = "quote.created"]
    QuoteCreated,
    /// The status of a quote became `accepted`.
    #[text = "quote.accepted"]
    QuoteAccepted,
    /// The status of a quote became `declined`.
    #[text = "quote.declined"]
    QuoteDeclined,
    /// A quote changed. If the change also fires a more specific kind, that one comes first.
    #[text = "quote.updated"]
    QuoteUpdated,
    /// A booking was created.
    #[text = "booking.created"]
    BookingCreated,
    /// The status of a booking became `cancelled`.
    #[text = "booking.cancelled"]
    BookingCancelled,
    /// A booking changed. If the change also fires a more specific kind, that one comes first.
    #[text = "booking.updated"]
    BookingUpdated,
    /// A job was created.
    #[text = "job.created"]
    JobCreated,
    /// The status of a job became `scheduled`, or the job was created with it.
    #[text = "job.scheduled"]
    JobScheduled,
    /// The status of a job became `completed`, or the job was created with it.
    #[text = "job.completed"]
    JobCompleted,
    /// A job changed. If the change also fires a more specific kind, that one comes first.
    #[text = "job.updated"]
    JobUpdated,
    /// A contact was created.
    #[text = "contact.created"]
    ContactCreated,
    /// A contact changed.
    #[text = "contact.updated"]
    ContactUpdated,
    /// A contact was deleted.
    #[text = "contact.deleted"]
    ContactDeleted,
    /// A payment on an invoice was received.
    #[text = "payment.succeeded"]
    PaymentSucceeded,
    /// A hotel stay was created.
    #[text = "stay.created"]
    StayCreated,
    /// A hotel stay was confirmed.
    #[text = "stay.confirmed"]
    StayConfirmed,
    /// The guest of a hotel stay checked in.
    #[text = "stay.checked_in"]
    StayCheckedIn,
    /// The guest of a hotel stay checked out.
    #[text = "stay.checked_out"]
    StayCheckedOut,
    /// A hotel stay was cancelled.
    #[text = "stay.cancelled"]
    StayCancelled,
    /// A hotel stay was marked a no-show.
    #[text = "stay.no_show"]
    StayNoShow,
    /// The sessions of a cohort were generated.
    #[text = "cohort.sessions_generated"]
    CohortSessionsGenerated,
    /// An event of the application that embeds the service.
    #[text(other)]
    Custom(KindName),
}

impl EventKind {
    /// Returns whether events of this kind come from outside this service: those of stays and cohorts. All other kinds
    /// are fired by the operations that they report.
    ///
    /// ```
    /// use svc_core::values::EventKind;
    /// assert!(EventKind::StayCheckedIn.is_external() && !EventKind::InvoicePaid.is_external());
    /// ```
    pub fn is_external(self) -> bool {
        match self {
            Self::Custom(_) => false,
            kind => kind.as_str().starts_with("stay.") || kind.as_str().starts_with("cohort."),
        }
    }

    /// Returns the name of the kind in the code of generated clients, such as `INVOICE_PAID`.
    pub fn code_name(self) -> String {
        self.as_str().replace('.', "_").to_uppercase()
    }

    /// Returns whether this is a kind of the service itself, and not one of the application that embeds it.
    pub fn is_built_in(self) -> bool {
        !matches!(self, Self::Custom(_))
    }
}

const MAX_ITEMS: usize = 64;
/// The single element of a selection of all kinds.
const EVERYTHING: &str = "*";

/// The event kinds of a subscription: all of them (`["*"]`), or 1 to 64 kinds without repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSet {
    /// Every kind, including those that are added later: `["*"]`.
    All,
    /// These kinds, in the order they were given.
    Kinds(Vec<EventKind>),
}

impl EventSet {
    /// Returns whether the selection contains this kind.
    ///
    /// ```
    /// use svc_core::values::{EventKind, EventSet};
    /// assert!(EventSet::All.contains(EventKind::InvoicePaid));
    /// ```
    pub fn contains(&self, kind: EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Kinds(kinds) => kinds.contains(&kind),
        }
    }

    /// Returns the names as in JSON: `*` alone, or one for each kind.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::All => vec![EVERYTHING],
            Self::Kinds(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
        }
    }

    /// Returns the selection with these [`names`](Self::names), or `None` if one of them is no kind.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let names: Vec<&str> = names.into_iter().collect();
        if names == [EVERYTHING] {
            return Some(Self::All);
        }
        let kinds: Option<Vec<_>> = names.into_iter().map(EventKind::from_text).collect();
        kinds.map(Self::Kinds)
    }
}

impl<'de> serde::Deserialize<'de> for EventSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let set = Self::from_names(names.iter().map(String::as_str));
        set.ok_or_else(|| serde::de::Error::custom("one of the events is unknown"))
    }
}

impl FromJson for EventSet {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let items = json.into_array()?;
        if items.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must name at least one event kind, or be [\"*\"]"));
        }
        if items.len() > MAX_ITEMS {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_ITEMS} items")));
        }
        let names: Vec<String> = items.into_iter().map(Json::into_string).collect::<Result<_, _>>()?;
        if names == [EVERYTHING] {
            return Ok(Self::All);
        }
        let mut kinds = Vec::new();
        for name in names {
            let kind = EventKind::from_text(&name).ok_or_else(|| {
                if name == EVERYTHING {
                    let reason = "must be either [\"*\"] alone or a list of event kinds";
                    Issue::new(FieldCode::InvalidEnum, reason)
                } else {
                    unknown_kind(&name, EventKind::BUILT_IN.iter().copied())
                }
            })?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(Self::Kinds(kinds))
    }

    fn check_kinds(&self, kinds: &EventKinds) -> Result<(), Issue> {
        kinds.check(self, None)
    }
}

impl Serialize for EventSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names().serialize(serializer)
    }
}

impl JsonSchema for EventSet {
    fn schema_name() -> Cow<'static, str> {
        "EventSelection".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The kinds of events that a subscription receives: 1 to 64 of them, or the single element `*` \
                            for all kinds, including those that are added later.",
            "type": "array",
            "items": generator.subschema_for::<SelectedEvent>(),
            "minItems": 1,
            "maxItems": MAX_ITEMS,
            "if": { "contains": { "const": EVERYTHING } },
            "then": { "maxItems": 1 },
        })
    }
}

/// An element of a selection as a schema: a kind, or `*`. Generators of clients read one array of an enum, and no choice
/// between two arrays. So a condition, which they pass over, says that `*` stands alone.
struct SelectedEvent;

impl JsonSchema for SelectedEvent {
    fn schema_name() -> Cow<'static, str> {
        "SelectedEvent".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = EventKind::json_schema(generator).to_value();
        let meanings = kinds["description"].as_str().unwrap_or_default();
        let built_in = EventKind::BUILT_IN.iter();
        let names: Vec<&str> = std::iter::once(EVERYTHING).chain(built_in.clone().map(|kind| kind.as_str())).collect();
        let names_in_code: Vec<String> =
            std::iter::once("ALL".to_owned()).chain(built_in.map(|kind| kind.code_name())).collect();
        let everything = "All kinds of events, including those that are added later. It is the only element then.";
        json_schema!({
            "type": "string",
            "enum": names,
            "description": format!("- `{EVERYTHING}`: {everything}\n{meanings}"),
            // The names in the code of generated clients.
            "x-enum-varnames": names_in_code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::json;

    fn read(text: &str) -> Result<Vec<String>, FieldCode> {
        let json = json::parse(text.as_bytes()).unwrap();
        let set = EventSet::from_json(json).map_err(|issue| issue.code)?;
        Ok(set.names().into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn repeated_kinds_are_kept_once_and_the_star_is_alone() {
        assert_eq!(read(r#"["*"]"#), Ok(vec!["*".to_owned()]));
        assert_eq!(
            read(r#"["job.created","contact.created","job.created"]"#),
            Ok(vec!["job.created".to_owned(), "contact.created".to_owned()])
        );
        assert_eq!(read(r#"["*","*"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read(r#"["contact.created","*"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read(r#"["Contact.Created"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read("[]"), Err(FieldCode::TooShort));
        assert_eq!(read("[1]"), Err(FieldCode::InvalidType));
        assert_eq!(read(r#""*""#), Err(FieldCode::InvalidType));
        let reason = EventSet::from_json(json::parse(br#"["contact.*"]"#).unwrap()).unwrap_err().message;
        let kinds = "name each one, of contact.created, contact.updated, contact.deleted";
        assert!(reason.ends_with(kinds), "{reason}");
        let many = format!("[{}]", vec![r#""job.created""#; 65].join(","));
        assert_eq!(read(&many), Err(FieldCode::TooLong));
    }
}
