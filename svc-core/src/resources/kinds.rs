//! Records of any kind. Code for every kind goes through [`RecordKind`] and [`with_resource!`](crate::with_resource), so that
//! kinds are listed here alone. The particulars of a kind are in its [`BusinessRecord`].

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::bookings::Booking;
use super::contacts::Contact;
use super::invoices::Invoice;
use super::jobs::Job;
use super::quotes::Quote;
use super::{BusinessRecord, Resource as _};
use crate::error::{FieldCode, Issue};
use crate::input::json::Json;
use crate::input::schema::{deserialize_text, text_enum};
use crate::input::{FieldNames, Fields, FromJson, Input};
use crate::values::{Amount, RecordKind, Timestamp};

/// A record of any kind: an object with the fields of the record, and its collection in `kind`.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountRecord {
    /// A contact, which may be deleted.
    Contact(Box<Contact>),
    /// An invoice, with what was paid.
    Invoice(Box<Invoice>),
    /// A quote.
    Quote(Box<Quote>),
    /// A booking.
    Booking(Box<Booking>),
    /// A job.
    Job(Box<Job>),
}

/// Runs code for the resource of a [`RecordKind`](crate::values::RecordKind), which the code has as a type.
///
/// ```
/// use svc_core::resources::Resource;
/// use svc_core::values::RecordKind;
/// use svc_core::with_resource;
///
/// let collection = with_resource!(RecordKind::Booking, R => R::COLLECTION);
/// assert_eq!(collection, "bookings");
/// ```
#[macro_export]
macro_rules! with_resource {
    ($kind:expr, $resource:ident => $code:expr) => {
        $crate::with_resource!(@ $kind, $resource, $code,
            Contact contacts, Invoice invoices, Quote quotes, Booking bookings, Job jobs)
    };
    (@ $kind:expr, $resource:ident, $code:expr, $($variant:ident $module:ident),+) => {
        match $kind {
            $($crate::values::RecordKind::$variant => {
                type $resource = $crate::resources::$module::$variant;
                $code
            })+
        }
    };
}

/// Runs code for an [`AccountRecord`], which the code has as a value of the type of its resource.
macro_rules! with_record {
    ($record:expr, $name:ident => $code:expr) => {
        match $record {
            $crate::resources::kinds::AccountRecord::Contact($name) => $code,
            $crate::resources::kinds::AccountRecord::Invoice($name) => $code,
            $crate::resources::kinds::AccountRecord::Quote($name) => $code,
            $crate::resources::kinds::AccountRecord::Booking($name) => $code,
            $crate::resources::kinds::AccountRecord::Job($name) => $code,
        }
    };
}

pub(crate) use with_record;

impl AccountRecord {
    /// Returns the kind of the record.
    pub fn kind(&self) -> RecordKind {
        fn kind<R: BusinessRecord>(_: &R) -> RecordKind {
            R::KIND
        }
        with_record!(self, record => kind(&**record))
    }

    /// Returns when the record last changed.
    pub fn updated_at(&self) -> Timestamp {
        with_record!(self, record => record.updated_at)
    }
}

macro_rules! from_resources {
    ($($resource:ident)+) => {$(
        impl From<$resource> for AccountRecord {
            fn from(record: $resource) -> Self {
                Self::$resource(Box::new(record))
            }
        }
    )+};
}

from_resources! { Contact Invoice Quote Booking Job }

/// The collection of a kind, which is what exports call it.
#[derive(Clone, Copy)]
struct Collection(RecordKind);

/// Returns the collection of the records of a kind, such as `contacts`.
pub fn collection(kind: RecordKind) -> &'static str {
    with_resource!(kind, R => R::COLLECTION)
}

/// Returns the kind whose records are in a collection.
pub fn of_collection(name: &str) -> Option<RecordKind> {
    RecordKind::ALL.iter().copied().find(|kind| collection(*kind) == name)
}

impl Serialize for Collection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(collection(self.0))
    }
}

impl<'de> Deserialize<'de> for Collection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_text(deserializer)
    }
}

impl FromStr for Collection {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        of_collection(text).map(Self).ok_or_else(|| {
            let is_known = of_collection(&text.to_lowercase()).is_some();
            let all: Vec<&str> = RecordKind::ALL.iter().map(|kind| collection(*kind)).collect();
            let case = if is_known { ", in lower case" } else { "" };
            Issue::new(FieldCode::InvalidEnum, format!("must be one of {}{case}", all.join(" ")))
        })
    }
}

impl FromJson for Collection {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_string()?.parse()
    }
}

/// A record with its collection.
#[derive(Serialize)]
struct WithCollection<R> {
    kind: Collection,
    #[serde(flatten)]
    record: R,
}

/// An invoice with what was paid, which it has in no response of the public API.
#[derive(Serialize)]
struct WithPayment<'i> {
    #[serde(flatten)]
    invoice: &'i Invoice,
    amount_paid: Amount,
}

impl Serialize for AccountRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = Collection(self.kind());
        if let Self::Invoice(invoice) = self {
            let record = WithPayment { invoice, amount_paid: invoice.amount_paid };
            return WithCollection { kind, record }.serialize(serializer);
        }
        with_record!(self, record => WithCollection { kind, record }.serialize(serializer))
    }
}

/// Reads a record of a response. Fields that are not known yet are skipped.
impl<'de> Deserialize<'de> for AccountRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Kind {
            kind: Collection,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Kind { kind } = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        with_resource!(kind.0, R => serde_json::from_str::<R>(json.get()).map(Self::from)).map_err(D::Error::custom)
    }
}

impl Input for AccountRecord {
    fn take(fields: &mut Fields) -> Option<Self> {
        let Some(Collection(kind)) = fields.take("kind") else {
            // Which fields are known depends on the kind.
            fields.ignore_untaken();
            return None;
        };
        with_resource!(kind, R => R::take(fields).map(Self::from))
    }
}

/// A record has too many forms for the columns of a table.
impl FieldNames for AccountRecord {
    const FIELD_NAMES: &'static [&'static str] = &[];
}

impl JsonSchema for AccountRecord {
    fn schema_name() -> Cow<'static, str> {
        "AccountRecord".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all: Vec<&str> = RecordKind::ALL.iter().map(|kind| collection(*kind)).collect();
        let line = |kind: &RecordKind| {
            let record = with_resource!(*kind, R => R::PROFILE.with_article);
            format!("- `{}`: A{}.", collection(*kind), &record[1..])
        };
        let described: Vec<String> = RecordKind::ALL.iter().map(line).collect();
        json_schema!({
            "type": "object",
            "description": "A record of an account, with its type in `kind` and the fields that a GET of it returns. An invoice \
                has `amount_paid` besides, and a contact that is deleted `deleted_at`.",
            "properties": { "kind": text_enum(&all, &described.join("\n")) },
            "required": ["kind"],
        })
    }
}
