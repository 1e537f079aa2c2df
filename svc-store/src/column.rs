//! How values are stored in columns, the same for every database.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::platform_keys::PlatformScope;
use svc_core::values::{Amount, Currency, Date, Email, EventSet, Id, JOB_SCALE, Note, Secret, TenantId};
use svc_core::values::{Text, TimeZone, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::DeliveryStatus;
use uuid::Uuid;

use crate::sql::{Param, Row, Value};

/// What a column holds. The databases have different types for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uuid,
    /// Bytes, among them encrypted ones, which a copy of a database takes over as they are.
    Bytes,
    /// Text. On PostgreSQL it is stored as bytes where it may contain a NUL.
    Text,
    Int,
    Bool,
    Time,
    Date,
}

/// A Rust type that can be stored in a column.
pub(crate) trait Column: Sized {
    /// What the column holds.
    const KIND: Kind;

    /// Returns the value as a parameter.
    fn param(&self) -> Param<'_>;

    /// Reads the value of a cell. `None` when it is not a valid value of this type.
    fn read(value: Value<'_>) -> Option<Self>;

    /// Reads the value of a cell of `row`, which decrypts it. Only encrypted values need more than
    /// [`read`](Column::read).
    fn take(value: Value<'_>, _row: &dyn Row) -> Option<Self> {
        Self::read(value)
    }
}

impl Column for Secret {
    const KIND: Kind = Kind::Bytes;

    fn param(&self) -> Param<'_> {
        Param::Secret(self.reveal().as_bytes())
    }
    fn read(_value: Value<'_>) -> Option<Self> {
        None
    }
    fn take(value: Value<'_>, row: &dyn Row) -> Option<Self> {
        String::from_utf8(Vec::take(value, row)?).ok().map(Self::new)
    }
}

/// Bytes of any length are encrypted, as they may hold a secret: the only ones are stored responses, and the response to
/// a new webhook subscription has its secret.
impl Column for Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    fn param(&self) -> Param<'_> {
        Param::Secret(self)
    }
    fn read(_value: Value<'_>) -> Option<Self> {
        None
    }
    fn take(value: Value<'_>, row: &dyn Row) -> Option<Self> {
        match value {
            Value::Bytes(sealed) => row.decrypt(sealed),
            _ => None,
        }
    }
}

impl<T: Column> Column for Option<T> {
    const KIND: Kind = T::KIND;

    fn param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, T::param)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
    fn take(value: Value<'_>, row: &dyn Row) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::take(value, row).map(Some),
        }
    }
}

impl Column for Uuid {
    const KIND: Kind = Kind::Uuid;

    fn param(&self) -> Param<'_> {
        Param::Uuid(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Self::from_slice(bytes).ok(),
            _ => None,
        }
    }
}

impl<T> Column for Id<T> {
    const KIND: Kind = Kind::Uuid;

    fn param(&self) -> Param<'_> {
        Param::Uuid(self.uuid())
    }
    fn read(value: Value<'_>) -> Option<Self> {
        Uuid::read(value).map(Self::new)
    }
}

impl Column for TenantId {
    const KIND: Kind = Kind::Uuid;

    fn param(&self) -> Param<'_> {
        Param::Uuid(self.0)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        Uuid::read(value).map(Self)
    }
}

impl Column for Timestamp {
    const KIND: Kind = Kind::Time;

    fn param(&self) -> Param<'_> {
        Param::Time(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).map(Self::from_micros)
    }
}

impl Column for i64 {
    const KIND: Kind = Kind::Int;

    fn param(&self) -> Param<'_> {
        Param::Int(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }
}

/// Implements [`Column`] for integers that fit into 64 bits.
macro_rules! small_integers {
    ($($type:ty)+) => {$(
        impl Column for $type {
            const KIND: Kind = Kind::Int;

            fn param(&self) -> Param<'_> {
                Param::Int(i64::from(*self))
            }
            fn read(value: Value<'_>) -> Option<Self> {
                i64::read(value)?.try_into().ok()
            }
        }
    )+};
}

small_integers!(i32 u16 u32);

/// Counts, which stay far below the largest integer of a database.
impl Column for u64 {
    const KIND: Kind = Kind::Int;

    fn param(&self) -> Param<'_> {
        Param::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value)?.try_into().ok()
    }
}

/// Microseconds, as in timestamps.
impl Column for Duration {
    const KIND: Kind = Kind::Int;

    fn param(&self) -> Param<'_> {
        Param::Int(i64::try_from(self.as_micros()).unwrap_or(i64::MAX))
    }
    fn read(value: Value<'_>) -> Option<Self> {
        u64::read(value).map(Self::from_micros)
    }
}

impl Column for bool {
    const KIND: Kind = Kind::Bool;

    fn param(&self) -> Param<'_> {
        Param::Bool(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            _ => None,
        }
    }
}

/// Minor units. Records with a currency set the scale when they are loaded.
impl Column for Amount {
    const KIND: Kind = Kind::Int;

    fn param(&self) -> Param<'_> {
        Param::Int(self.minor())
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).map(|minor| Self::from_minor(minor, JOB_SCALE))
    }
}

/// Text. A database may store it as bytes.
impl Column for String {
    const KIND: Kind = Kind::Text;

    fn param(&self) -> Param<'_> {
        Param::Text(self.as_str().into())
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.to_owned()),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
            _ => None,
        }
    }
}

/// Text, or days since 1970 where a database has a type for dates.
impl Column for Date {
    const KIND: Kind = Kind::Date;

    fn param(&self) -> Param<'_> {
        Param::Date(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Self::parse(text).ok(),
            Value::Int(days) => Self::from_days(days),
            _ => None,
        }
    }
}

impl Column for [u8; 32] {
    const KIND: Kind = Kind::Bytes;

    fn param(&self) -> Param<'_> {
        Param::Bytes(self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => bytes.try_into().ok(),
            _ => None,
        }
    }
}

/// Text, or NULL for a tenant with the limits of the server, so that most requests have nothing to parse.
impl Column for RateLimits {
    const KIND: Kind = Kind::Text;

    fn param(&self) -> Param<'_> {
        if *self == Self::default() { Param::Null } else { Param::Text(self.to_text().into()) }
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(Self::default()),
            Value::Text(text) => Self::from_text(text),
            _ => None,
        }
    }
}

/// Implements [`Column`] for types that are stored as text, by a function that writes and one that reads.
macro_rules! texts {
    ($([$($generics:tt)*] $type:ty: $write:expr, $read:expr;)+) => {$(
        impl<$($generics)*> Column for $type {
            const KIND: Kind = Kind::Text;

            fn param(&self) -> Param<'_> {
                let write: fn(&Self) -> Cow<'_, str> = $write;
                Param::Text(write(self))
            }
            fn read(value: Value<'_>) -> Option<Self> {
                let read: fn(&str) -> Option<Self> = $read;
                match value {
                    Value::Text(text) => read(text),
                    _ => None,
                }
            }
        }
    )+};
}

texts! {
    [const MAX: usize] Text<MAX>: |s| s.as_str().into(), |s| Some(Self::from_stored(s));
    [const MAX: usize] Note<MAX>: |s| s.as_str().into(), |s| Some(Self::from_stored(s));
    [] Email: |s| s.as_str().into(), |s| Some(Self::from_stored(s));
    [] Currency: |c| c.code().into(), |s| Self::parse(s).ok();
    [] TimeZone: |z| z.to_string().into(), |s| Self::parse(s).ok();
    [] WebhookUrl: |u| u.as_str().into(), |s| Self::parse(s).ok();
    [] Vec<DeliveryStatus>: |statuses| statuses.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(" ").into(),
        |s| s.split(' ').map(DeliveryStatus::from_text).collect();
    [] Vec<PlatformScope>: |scopes| scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into(),
        |s| s.split(' ').map(|scope| scope.parse().ok()).collect();
    [] EventSet: |e| e.names().join(" ").into(), |s| Self::from_names(s.split(' '));
}

/// Implements [`Column`] for enums with `as_str` and `from_text`.
macro_rules! enums {
    ($($type:ty)+) => { texts! { $([] $type: |e| e.as_str().into(), |s| Self::from_text(s);)+ } };
}

enums! {
    svc_core::resources::bookings::BookingStatus
    DeliveryStatus
    svc_core::values::EventKind
    svc_core::resources::invoices::InvoiceStatus
    svc_core::resources::jobs::JobStatus
    svc_core::resources::quotes::QuoteStatus
    svc_core::accounts::sessions::Role
    svc_core::accounts::tenants::DeveloperAccess
    svc_core::accounts::tenants::NumberKind
    svc_core::webhooks::deliveries::FailureReason
    svc_core::webhooks::statistics::AttemptOutcome
    svc_core::webhooks::subscriptions::DisabledReason
}

/// The text of the JSON, byte by byte: it is what is signed.
impl Column for Box<RawValue> {
    const KIND: Kind = Kind::Text;

    fn param(&self) -> Param<'_> {
        Param::Text(self.get().into())
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => RawValue::from_string(text.to_owned()).ok(),
            _ => None,
        }
    }
}

/// The scopes of an API key, as whether it may write. Every key may read.
impl Column for Vec<Scope> {
    const KIND: Kind = Kind::Bool;

    fn param(&self) -> Param<'_> {
        Param::Bool(self.contains(&Scope::Write))
    }
    fn read(value: Value<'_>) -> Option<Self> {
        Some(if bool::read(value)? { vec![Scope::Read, Scope::Write] } else { vec![Scope::Read] })
    }
}
