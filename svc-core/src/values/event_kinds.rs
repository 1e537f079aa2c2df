//! Kinds of events, and the selection of them that a webhook subscription makes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::text_enum;
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

text_enum! {
    /// The kinds of events (contract, "Event kinds").
    pub enum EventKind {
        InvoiceCreated = "invoice.created",
        InvoiceSent = "invoice.sent",
        InvoicePaid = "invoice.paid",
        InvoiceVoided = "invoice.voided",
        InvoiceRefunded = "invoice.refunded",
        InvoiceUpdated = "invoice.updated",
        InvoiceResent = "invoice.resent",
        QuoteCreated = "quote.created",
        QuoteAccepted = "quote.accepted",
        QuoteDeclined = "quote.declined",
        QuoteUpdated = "quote.updated",
        BookingCreated = "booking.created",
        BookingCancelled = "booking.cancelled",
        BookingUpdated = "booking.updated",
        JobCreated = "job.created",
        JobScheduled = "job.scheduled",
        JobCompleted = "job.completed",
        JobUpdated = "job.updated",
        ContactCreated = "contact.created",
        ContactUpdated = "contact.updated",
        ContactDeleted = "contact.deleted",
        PaymentSucceeded = "payment.succeeded",
        StayCreated = "stay.created",
        StayConfirmed = "stay.confirmed",
        StayCheckedIn = "stay.checked_in",
        StayCheckedOut = "stay.checked_out",
        StayCancelled = "stay.cancelled",
        StayNoShow = "stay.no_show",
        CohortSessionsGenerated = "cohort.sessions_generated",
    }
}

impl EventKind {
    /// Whether it tells of what happens outside this service, to stays and cohorts. All others are part of the
    /// operations that they tell of.
    ///
    /// ```
    /// use svc_core::values::EventKind;
    /// assert!(EventKind::StayCheckedIn.is_external() && !EventKind::InvoicePaid.is_external());
    /// ```
    pub fn is_external(self) -> bool {
        self.as_str().starts_with("stay.") || self.as_str().starts_with("cohort.")
    }
}

const MAX_ITEMS: usize = 64;
/// The single element that stands for every kind.
const EVERYTHING: &str = "*";

/// The event kinds of a subscription: all of them (`["*"]`), or 1 to 64 kinds without repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSet {
    /// `["*"]`: every kind, also those that are added later.
    All,
    /// These kinds, in the order they were given.
    Kinds(Vec<EventKind>),
}

impl EventSet {
    /// Whether an event of this kind is wanted.
    ///
    /// ```
    /// use svc_core::webhooks::events::EventKind;
    /// use svc_core::values::EventSet;
    /// assert!(EventSet::All.contains(EventKind::InvoicePaid));
    /// ```
    pub fn contains(&self, kind: EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Kinds(kinds) => kinds.contains(&kind),
        }
    }

    /// The names as they stand in JSON: `*`, or one per kind.
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            Self::All => vec![EVERYTHING],
            Self::Kinds(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
        }
    }

    /// Reads what [`names`](Self::names) gave; `None` for a name that is no kind.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let names: Vec<&str> = names.into_iter().collect();
        if names == [EVERYTHING] {
            return Some(Self::All);
        }
        let kinds: Option<Vec<_>> = names.into_iter().map(EventKind::from_text).collect();
        kinds.map(Self::Kinds)
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
                let reason = if name == EVERYTHING {
                    "must be either [\"*\"] alone or a list of event kinds".to_owned()
                } else {
                    format!("has an unknown event kind {name:?}; see the list in the API description")
                };
                Issue::new(FieldCode::InvalidEnum, reason)
            })?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(Self::Kinds(kinds))
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
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> =
            std::iter::once(EVERYTHING).chain(EventKind::ALL.iter().map(|kind| kind.as_str())).collect();
        json_schema!({
            "description": "Kinds of events, or the single element `*` for all of them, also those that are added later.",
            "type": "array",
            "items": { "type": "string", "enum": names },
            "minItems": 1,
            "maxItems": MAX_ITEMS,
            "anyOf": [{ "maxItems": 1 }, { "items": { "not": { "const": EVERYTHING } } }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::json;

    fn read(text: &str) -> Result<Vec<&'static str>, FieldCode> {
        let json = json::parse(text.as_bytes()).unwrap();
        EventSet::from_json(json).map(|set| set.names()).map_err(|issue| issue.code)
    }

    #[test]
    fn kinds_collapse_and_the_star_stands_alone() {
        assert_eq!(read(r#"["*"]"#), Ok(vec!["*"]));
        assert_eq!(
            read(r#"["job.created","contact.created","job.created"]"#),
            Ok(vec!["job.created", "contact.created"])
        );
        assert_eq!(read(r#"["*","*"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read(r#"["contact.created","*"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read(r#"["Contact.Created"]"#), Err(FieldCode::InvalidEnum));
        assert_eq!(read("[]"), Err(FieldCode::TooShort));
        assert_eq!(read("[1]"), Err(FieldCode::InvalidType));
        assert_eq!(read(r#""*""#), Err(FieldCode::InvalidType));
        let many = format!("[{}]", vec![r#""job.created""#; 65].join(","));
        assert_eq!(read(&many), Err(FieldCode::TooLong));
    }
}
