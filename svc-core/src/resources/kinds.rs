//! The kinds of records that a business keeps. A kind is listed in this file alone: what does something for every kind goes
//! through [`RecordKind`] and [`with_resource!`](crate::with_resource), and what a kind is in particular says its
//! [`BusinessRecord`].

use std::borrow::Cow;
use std::str::FromStr;

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::bookings::Booking;
use super::contacts::{Contact, ContactId};
use super::invoices::Invoice;
use super::jobs::Job;
use super::quotes::Quote;
use super::{Filter as _, Resource};
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::error::{Error, FieldCode, Issue};
use crate::input::json::Json;
use crate::input::schema::{deserialize_text, text_enum};
use crate::input::{FieldNames, Fields, FromJson, Input};
use crate::store::Tx;
use crate::values::{Amount, Text, TextEnum, Timestamp};

/// The kind of a record, in the order in which exports have them: a record comes after those that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum RecordKind {
    /// Contacts that are not deleted.
    Contact,
    /// Invoices.
    Invoice,
    /// Quotes.
    Quote,
    /// Bookings.
    Booking,
    /// Jobs.
    Job,
}

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

/// Runs code for the resource of a [`RecordKind`](crate::resources::RecordKind), which the code has as a type.
///
/// ```
/// use svc_core::resources::{RecordKind, Resource};
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
            $($crate::resources::RecordKind::$variant => {
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
            $crate::resources::AccountRecord::Contact($name) => $code,
            $crate::resources::AccountRecord::Invoice($name) => $code,
            $crate::resources::AccountRecord::Quote($name) => $code,
            $crate::resources::AccountRecord::Booking($name) => $code,
            $crate::resources::AccountRecord::Job($name) => $code,
        }
    };
}

pub(crate) use with_record;

/// What a resource of one of the kinds is in particular, for searches, exports, imports and erasures.
#[async_trait]
pub trait BusinessRecord: Resource + Input + DeserializeOwned {
    /// The kind of the records.
    const KIND: RecordKind;

    /// The fields that tell of the person who the contact is, which an erasure empties. Each can be null.
    const PERSONAL: &'static [&'static str] = &[];

    /// Returns the record as one of any kind.
    fn into_record(self) -> AccountRecord;

    /// Returns the filter that every record passes, deleted ones included.
    fn every() -> Self::Filter {
        Self::Filter::none()
    }

    /// Returns the contact that the record belongs to.
    fn contact_id(&self) -> Option<ContactId> {
        None
    }

    /// Returns the series of the record's number, the name of the field, and the number.
    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        None
    }

    /// Returns the filter of the records that a text names as a whole, by a number or an email address.
    fn named(text: &str) -> Option<Self::Filter> {
        let _ = text;
        None
    }

    /// Returns what people call the record, and what tells it from others.
    fn describe(&self) -> (String, Vec<String>);

    /// Returns the fields that a search reads.
    fn searched(&self) -> Vec<Option<&str>>;

    /// Returns another name of the record that a search finds.
    fn other_name(&self) -> Option<String> {
        None
    }

    /// Returns the phone number, which a search finds by its digits as well.
    fn phone(&self) -> Option<&str> {
        None
    }

    /// Gives the amounts of a record that an export wrote the decimals of their currency, and checks the rules that need no other
    /// record.
    ///
    /// # Errors
    /// The rules that the record breaks.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks the rules that need other records of the same kind.
    ///
    /// # Errors
    /// The rules that the record breaks.
    async fn check_others(&self, _tx: &mut dyn Tx, _tenant: &Tenant) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns the text of a field that may be null.
pub(super) fn text<const MAX: usize>(text: &Option<Text<MAX>>) -> Option<&str> {
    text.as_ref().map(Text::as_str)
}

/// Gives the amount of a field this many decimals.
pub(super) fn set_scale(field: &str, amount: &mut Amount, scale: u8) -> Result<(), Error> {
    *amount = amount.with_scale(scale).map_err(|error| Issue::from(error).on(field))?;
    Ok(())
}

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

impl<R: BusinessRecord> From<R> for AccountRecord {
    fn from(record: R) -> Self {
        record.into_record()
    }
}

/// The collection of a kind, which is what exports call it.
#[derive(Clone, Copy)]
struct Collection(RecordKind);

impl RecordKind {
    /// Returns the collection of the records of this kind, such as `contacts`.
    pub fn collection(self) -> &'static str {
        with_resource!(self, R => R::COLLECTION)
    }

    /// Returns the kind whose records are in this collection.
    pub fn of_collection(collection: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.collection() == collection)
    }
}

impl Serialize for Collection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.collection())
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
        RecordKind::of_collection(text).map(Self).ok_or_else(|| {
            let is_known = RecordKind::of_collection(&text.to_lowercase()).is_some();
            let all: Vec<&str> = RecordKind::ALL.iter().map(|kind| kind.collection()).collect();
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
        let all: Vec<&str> = RecordKind::ALL.iter().map(|kind| kind.collection()).collect();
        let line = |kind: &RecordKind| {
            let record = with_resource!(*kind, R => R::PROFILE.with_article);
            format!("- `{}`: A{}.", kind.collection(), &record[1..])
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
