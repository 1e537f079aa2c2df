//! How values are stored in columns, as parameters of statements and cells of rows, the same for every database.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::platform_keys::PlatformScope;
use svc_core::error::StoreError;
use svc_core::resources::contacts::{ErasurePart, ErasurePosition};
use svc_core::values::{
    Amount, AnyObject, Currency, Date, Email, EventSet, Id, JOB_SCALE, Note, RedirectUri, Secret, Stored as _, TenantId,
};
use svc_core::values::{StreamUrl, Text, TimeZone, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::filters::Filter;
use svc_core::webhooks::options::{
    Authentication, Bounded, CertificateAuthority, ClientCertificate, CustomHeaders, RetryDelays,
};
use svc_core::webhooks::signatures::SigningKeys;
use uuid::Uuid;

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    Uuid(Uuid),
    Time(Timestamp),
    Date(Date),
    /// Encrypted by the vault when it is bound.
    Secret(Cow<'a, [u8]>),
}

impl From<&'static str> for Param<'_> {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

/// A cell of a row, borrowed from the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The fault of a cell. It is boxed so that the result of reading one, of which a list has hundreds, is small.
#[derive(Debug)]
pub(crate) struct CellError(Box<StoreError>);

impl From<StoreError> for CellError {
    #[cold]
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}

impl From<CellError> for StoreError {
    #[cold]
    fn from(error: CellError) -> Self {
        *error.0
    }
}

impl CellError {
    #[cold]
    pub(crate) fn corrupt(table: &'static str, column: &'static str, wanted: &str) -> Self {
        StoreError::Corrupt { table, column, reason: format!("the value is not a valid {wanted}") }.into()
    }
}

/// A row, borrowed from the driver.
pub(crate) trait Row {
    /// Returns the value of a cell.
    fn value(&self, index: usize) -> Result<Value<'_>, CellError>;

    /// Decrypts the value of a cell. `None` when it cannot be decrypted.
    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// The content of a column. The databases have different types for it.
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
    /// The content of the column.
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
        Param::Secret(self.reveal().as_bytes().into())
    }
    fn read(_value: Value<'_>) -> Option<Self> {
        None
    }
    fn take(value: Value<'_>, row: &dyn Row) -> Option<Self> {
        String::from_utf8(Vec::take(value, row)?).ok().map(Self::new)
    }
}

/// A value of a webhook subscription that has secrets is encrypted as a whole.
macro_rules! sealed {
    ($($type:ty)+) => {$(
        impl Column for $type {
            const KIND: Kind = Kind::Bytes;

            fn param(&self) -> Param<'_> {
                Param::Secret(self.to_stored().reveal().as_bytes().to_vec().into())
            }
            fn read(_value: Value<'_>) -> Option<Self> {
                None
            }
            fn take(value: Value<'_>, row: &dyn Row) -> Option<Self> {
                Self::from_stored(&Secret::take(value, row)?)
            }
        }
    )+};
}

sealed! { CustomHeaders Authentication ClientCertificate CertificateAuthority SigningKeys StreamUrl }

/// Bytes of any length are encrypted, as they may hold a secret: the only ones are stored responses, and the response to
/// a new webhook subscription has its secret.
impl Column for Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    fn param(&self) -> Param<'_> {
        Param::Secret(self.as_slice().into())
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

/// Implements [`Column`] for types, from what the column holds, the parameter of a value, and the value of a cell.
macro_rules! columns {
    ($($kind:ident [$($generics:tt)*] $type:ty: $param:expr, $read:expr;)+) => {$(
        impl<$($generics)*> Column for $type {
            const KIND: Kind = Kind::$kind;

            fn param(&self) -> Param<'_> {
                let param: fn(&Self) -> Param<'_> = $param;
                param(self)
            }
            fn read(value: Value<'_>) -> Option<Self> {
                let read: fn(Value<'_>) -> Option<Self> = $read;
                read(value)
            }
        }
    )+};
}

columns! {
    Uuid [] Uuid: |id| Param::Uuid(*id), |cell| Self::from_slice(cell.bytes()?).ok();
    Uuid [T] Id<T>: |id| Param::Uuid(id.uuid()), |cell| Uuid::read(cell).map(Self::new);
    Uuid [] TenantId: |id| Param::Uuid(id.0), |cell| Uuid::read(cell).map(Self);

    Int [] i64: |n| Param::Int(*n), |cell| cell.int();
    Int [] i32: |n| Param::Int((*n).into()), |cell| cell.int()?.try_into().ok();
    Int [] u16: |n| Param::Int((*n).into()), |cell| cell.int()?.try_into().ok();
    Int [] u32: |n| Param::Int((*n).into()), |cell| cell.int()?.try_into().ok();
    // Counts, which stay far below the largest integer of a database.
    Int [] u64: |n| Param::Int(i64::try_from(*n).unwrap_or(i64::MAX)), |cell| cell.int()?.try_into().ok();
    // Microseconds, as in timestamps.
    Int [] Duration: |d| Param::Int(i64::try_from(d.as_micros()).unwrap_or(i64::MAX)),
        |cell| u64::read(cell).map(Self::from_micros);
    // Minor units. Records with a currency set the scale when they are loaded.
    Int [] Amount: |amount| Param::Int(amount.minor()),
        |cell| cell.int().map(|minor| Self::from_minor(minor, JOB_SCALE));

    Bool [] bool: |value| Param::Bool(*value), |cell| match cell.int()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    // The scopes of an API key, as whether it may write. Every key may read.
    Bool [] Vec<Scope>: |scopes| Param::Bool(scopes.contains(&Scope::Write)),
        |cell| Some(if bool::read(cell)? { vec![Scope::Read, Scope::Write] } else { vec![Scope::Read] });

    Time [] Timestamp: |at| Param::Time(*at), |cell| cell.int().map(Self::from_micros);
    // Text, or days since 1970 where a database has a type for dates.
    Date [] Date: |date| Param::Date(*date), |cell| match cell {
        Value::Int(days) => Self::from_days(days),
        text => Self::parse(text.text()?).ok(),
    };

    Bytes [] [u8; 32]: |bytes| Param::Bytes(bytes), |cell| cell.bytes()?.try_into().ok();

    // A database may store it as bytes.
    Text [] String: |text| Param::Text(text.as_str().into()), |cell| match cell {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        text => text.text().map(str::to_owned),
    };
    Text [const MAX: usize] Text<MAX>: |text| Param::Text(text.as_str().into()),
        |cell| cell.text().map(Self::from_stored);
    Text [const MAX: usize] Note<MAX>: |text| Param::Text(text.as_str().into()),
        |cell| cell.text().map(Self::from_stored);
    Text [] Email: |email| Param::Text(email.as_str().into()), |cell| cell.text().map(Self::from_stored);
    Text [] Currency: |currency| Param::Text(currency.code().into()), |cell| Self::from_stored(cell.text()?);
    Text [] TimeZone: |zone| Param::Text(zone.to_string().into()), |cell| Self::parse(cell.text()?).ok();
    Text [] WebhookUrl: |url| Param::Text(url.as_str().into()), |cell| Self::parse(cell.text()?).ok();
    Text [] EventSet: |events| Param::Text(events.names().join(" ").into()),
        |cell| Self::from_names(cell.text()?.split(' '));
    Text [] Vec<DeliveryStatus>:
        |statuses| Param::Text(statuses.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(" ").into()),
        |cell| cell.text()?.split(' ').map(DeliveryStatus::from_text).collect();
    Text [] Vec<PlatformScope>:
        |scopes| Param::Text(scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").into()),
        |cell| cell.text()?.split(' ').map(|scope| scope.parse().ok()).collect();
    Text [] Vec<RedirectUri>:
        |uris| Param::Text(uris.iter().map(RedirectUri::as_str).collect::<Vec<_>>().join(" ").into()),
        |cell| Some(cell.text()?.split(' ').map(RedirectUri::from_stored).collect());
    Text [] Filter: |filter| Param::Text(filter.as_str().into()), |cell| cell.text()?.parse().ok();
    Int [const MIN: u32, const MAX: u32] Bounded<MIN, MAX>: |n| Param::Int(n.get().into()),
        |cell| Self::new(cell.int()?.try_into().ok()?).ok();
    // The part, and the two times in microseconds.
    Text [] ErasurePosition:
        |position| {
            let ErasurePosition { part, records_from, events_from } = position;
            Param::Text(format!("{part} {} {}", records_from.as_micros(), events_from.as_micros()).into())
        },
        |cell| {
            let [part, records_from, events_from] = cell.text()?.split(' ').collect::<Vec<_>>().try_into().ok()?;
            let time = |text: &str| text.parse().ok().map(Timestamp::from_micros);
            let part = ErasurePart::from_text(part)?;
            Some(Self { part, records_from: time(records_from)?, events_from: time(events_from)? })
        };
    // Seconds with spaces between them.
    Text [] RetryDelays:
        |delays| Param::Text(delays.seconds().iter().map(u32::to_string).collect::<Vec<_>>().join(" ").into()),
        |cell| Self::new(cell.text()?.split_whitespace().map(|delay| delay.parse().ok()).collect::<Option<_>>()?).ok();
    // NULL for a tenant with the limits of the server, so that most requests have nothing to parse.
    Text [] RateLimits:
        |limits| if *limits == Self::default() { Param::Null } else { Param::Text(limits.to_text().into()) },
        |cell| if let Value::Null = cell { Some(Self::default()) } else { Self::from_text(cell.text()?) };
    // The text of the JSON, byte by byte: it is what is signed.
    Text [] Box<RawValue>: |json| Param::Text(json.get().into()),
        |cell| RawValue::from_string(cell.text()?.to_owned()).ok();
    Text [] AnyObject: |json| Param::Text(json.as_str().into()),
        |cell| RawValue::from_string(cell.text()?.to_owned()).ok().map(Self);
}

/// Implements [`Column`] for enums with `as_str` and `from_text`.
macro_rules! enums {
    ($($type:ty)+) => {
        columns! { $(Text [] $type: |e| Param::Text(e.as_str().into()), |cell| Self::from_text(cell.text()?);)+ }
    };
}

enums! {
    svc_core::resources::bookings::BookingStatus
    DeliveryStatus
    svc_core::values::RecordKind
    svc_core::values::EventKind
    svc_core::resources::invoices::InvoiceStatus
    svc_core::resources::jobs::JobStatus
    svc_core::resources::quotes::QuoteStatus
    svc_core::accounts::sessions::Role
    svc_core::accounts::shared_links::SharedLinkPurpose
    svc_core::accounts::tenants::DeveloperAccess
    svc_core::accounts::tenants::NumberKind
    svc_core::webhooks::deliveries::AttemptCause
    svc_core::webhooks::deliveries::FailureReason
    svc_core::webhooks::statistics::AttemptOutcome
    svc_core::webhooks::subscriptions::DisabledReason
    svc_core::webhooks::options::Payload
    svc_core::webhooks::options::Ordering
    svc_core::webhooks::options::SignatureScheme
}
