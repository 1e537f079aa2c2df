//! The binding layer: what goes into a statement and what comes out, the same for every database.

use std::borrow::Cow;

use async_trait::async_trait;
use svc_core::accounts::audit::Actor;
use svc_core::accounts::limits::RateLimits;
use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::resources::pages::CursorKey;
use svc_core::store::Tx;
use svc_core::values::{Amount, Currency, Date, Email, EventSet, JOB_SCALE, Note, Secret, TenantId};
use svc_core::values::{Text, TimeZone, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{DeliveryStatus, DeliveryWakeup};
use uuid::Uuid;

use crate::dialect::Dialect;

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
    /// Sealed on its way into the database.
    Secret(&'a [u8]),
}

impl From<&'static str> for Param<'_> {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

/// A cell of a row, as the database lends it out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A row, as the database lends it out.
pub(crate) trait Row {
    fn value(&self, index: usize) -> Result<Value<'_>, StoreError>;

    /// What a cell holds sealed; `None` when it cannot be opened.
    fn secret(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError>;
}

/// What is called with each row of an answer.
pub(crate) type EachRow<'a> = &'a mut (dyn FnMut(&dyn Row) -> Result<(), StoreError> + Send);

/// A connection within a transaction.
#[async_trait]
pub(crate) trait Sql: Send {
    /// Runs a statement and returns how many rows it changed.
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement whose result nobody waits for. Where statements travel to a server it is only sent, and what
    /// became of it is told by a later statement, at the latest by the commit. With `table`, it must change exactly
    /// one row there.
    async fn pipeline(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        table: Option<&'static str>,
    ) -> Result<(), StoreError> {
        let changed = self.execute(sql, params).await?;
        check_changed(changed, table)
    }

    /// Runs a statement and hands out its rows.
    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError>;
}

/// An update that was to change one row of a table must have found it.
pub(crate) fn check_changed(changed: u64, table: Option<&'static str>) -> Result<(), StoreError> {
    match table {
        Some(table) if changed != 1 => Err(StoreError::Internal(format!("an update of {table} found {changed} rows"))),
        _ => Ok(()),
    }
}

/// svc-core's transaction over a connection. The traits of [`Tx`] are implemented in the rooms.
pub(crate) struct SqlTx<'a> {
    pub(crate) sql: &'a mut dyn Sql,
    pub(crate) env: &'a Env,
    pub(crate) cursor_key: &'a CursorKey,
    pub(crate) delivery_wakeup: &'a DeliveryWakeup,
    pub(crate) dialect: Dialect,
    pub(crate) actor: Actor,
}

impl Tx for SqlTx<'_> {
    fn env(&self) -> &Env {
        self.env
    }
    fn cursor_key(&self) -> &CursorKey {
        self.cursor_key
    }
    fn actor(&self) -> &Actor {
        &self.actor
    }
    fn act_as(&mut self, actor: Actor) {
        self.actor = actor;
    }
}

impl SqlTx<'_> {
    pub(crate) async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.sql.execute(sql, params).await
    }

    /// A statement whose result nobody waits for.
    pub(crate) async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.sql.pipeline(sql, params, None).await
    }

    /// All rows, each read by `read`; `table` names them in errors.
    pub(crate) async fn fetch<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        table: &'static str,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        let mut each = |row: &dyn Row| {
            rows.push(read(&mut Cells { row, table, columns: &[], next: 0 })?);
            Ok(())
        };
        self.sql.query(sql, params, &mut each).await?;
        Ok(rows)
    }

    /// The first row, if any.
    pub(crate) async fn fetch_one<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        table: &'static str,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError> + Send + Sync,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.fetch(sql, params, table, read).await?.into_iter().next())
    }
}

/// The cells of a row from left to right.
pub(crate) struct Cells<'r> {
    pub(crate) row: &'r dyn Row,
    pub(crate) table: &'static str,
    /// Names for errors, where they are known.
    pub(crate) columns: &'r [&'static str],
    pub(crate) next: usize,
}

impl Cells<'_> {
    pub(crate) fn take<T: Column>(&mut self) -> Result<T, StoreError> {
        let index = self.next;
        self.next += 1;
        T::take(self.row, index)?.ok_or_else(|| StoreError::Corrupt {
            table: self.table,
            column: self.columns.get(index).copied().unwrap_or("?"),
            reason: format!("cell {index} is no {}", std::any::type_name::<T>()),
        })
    }
}

/// A type that stands in a column.
pub(crate) trait Column: Sized {
    fn param(&self) -> Param<'_>;
    /// `None` when the cell holds something else.
    fn read(value: Value<'_>) -> Option<Self>;
    /// Reads a cell of a row; only secrets need more than its value.
    fn take(row: &dyn Row, index: usize) -> Result<Option<Self>, StoreError> {
        Ok(Self::read(row.value(index)?))
    }
}

impl Column for Secret {
    fn param(&self) -> Param<'_> {
        Param::Secret(self.reveal().as_bytes())
    }
    fn read(_value: Value<'_>) -> Option<Self> {
        None
    }
    fn take(row: &dyn Row, index: usize) -> Result<Option<Self>, StoreError> {
        Ok(row.secret(index)?.and_then(|bytes| String::from_utf8(bytes).ok()).map(Self::new))
    }
}

/// Bytes that may hold a secret.
pub(crate) struct Sealed(pub(crate) Vec<u8>);

impl Column for Sealed {
    fn param(&self) -> Param<'_> {
        Param::Secret(&self.0)
    }
    fn read(_value: Value<'_>) -> Option<Self> {
        None
    }
    fn take(row: &dyn Row, index: usize) -> Result<Option<Self>, StoreError> {
        Ok(row.secret(index)?.map(Self))
    }
}

impl<T: Column> Column for Option<T> {
    fn param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, T::param)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
    fn take(row: &dyn Row, index: usize) -> Result<Option<Self>, StoreError> {
        match row.value(index)? {
            Value::Null => Ok(Some(None)),
            _ => Ok(T::take(row, index)?.map(Some)),
        }
    }
}

impl Column for Uuid {
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

impl Column for TenantId {
    fn param(&self) -> Param<'_> {
        Param::Uuid(self.0)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        Uuid::read(value).map(Self)
    }
}

impl Column for Timestamp {
    fn param(&self) -> Param<'_> {
        Param::Time(*self)
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).map(Self::from_micros)
    }
}

impl Column for i64 {
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

macro_rules! small_integers {
    ($($type:ty)+) => {$(
        impl Column for $type {
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
    fn param(&self) -> Param<'_> {
        Param::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value)?.try_into().ok()
    }
}

impl Column for bool {
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

/// Minor units. A row with a currency sets the scale when it is loaded.
impl Column for Amount {
    fn param(&self) -> Param<'_> {
        Param::Int(self.minor())
    }
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).map(|minor| Self::from_minor(minor, JOB_SCALE))
    }
}

/// Text, or the bytes of a text where a database needs them.
impl Column for String {
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

/// Text, or nothing where the server's limits hold: then no request has anything to read.
impl Column for RateLimits {
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

/// Types that are stored as text: how it is written, and how it is read back.
macro_rules! texts {
    ($([$($generics:tt)*] $type:ty: $write:expr, $read:expr;)+) => {$(
        impl<$($generics)*> Column for $type {
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
    [] Vec<DeliveryStatus>: |states| states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(" ").into(),
        |s| s.split(' ').map(DeliveryStatus::from_text).collect();
    [] EventSet: |e| e.names().join(" ").into(), |s| Self::from_names(s.split(' '));
}

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
    svc_core::accounts::tenants::DeveloperAccess
    svc_core::accounts::tenants::NumberKind
    svc_core::webhooks::subscriptions::DisabledReason
}
