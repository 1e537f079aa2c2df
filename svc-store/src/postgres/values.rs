//! Converts parameters and cells to and from PostgreSQL's binary format.
//!
//! The type that the server reports for a parameter selects the format. So a time can be bound to `timestamptz` and
//! `bigint`, and text to `text`, `json` and `bytea`.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::values::{Date, Timestamp};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use crate::column::{CellError, Param, Row, Value};
use crate::vault::Vault;

/// The time from 1970, the epoch of this service, to 2000, the epoch of PostgreSQL.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i64 = 10_957;

type ConversionError = Box<dyn StdError + Sync + Send>;

/// An owned parameter. Pipelined statements outlive the call that binds their parameters.
#[derive(Debug)]
pub(crate) enum Argument {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Time(Timestamp),
    Date(Date),
    Array(Vec<Argument>),
}

/// Copies parameters, and encrypts the secrets among them.
pub(crate) fn arguments(params: &[Param<'_>], vault: &Vault) -> StoreResult<Vec<Argument>> {
    params
        .iter()
        .map(|param| {
            Ok(match param {
                Param::Null => Argument::Null,
                Param::Bool(value) => Argument::Bool(*value),
                Param::Int(value) => Argument::Int(*value),
                Param::Text(text) => Argument::Text(text.clone().into_owned()),
                Param::Bytes(bytes) => Argument::Bytes(bytes.to_vec()),
                Param::Uuid(id) => Argument::Uuid(*id),
                Param::Time(at) => Argument::Time(*at),
                Param::Date(date) => Argument::Date(*date),
                Param::Secret(secret) => Argument::Bytes(vault.seal(secret)?),
            })
        })
        .collect()
}

impl Argument {
    /// Appends the value in the format of a type, and returns whether it is null.
    pub(crate) fn write(&self, ty: &Type, out: &mut impl BufMut) -> Result<bool, ConversionError> {
        match (self, ty) {
            (Self::Null, _) => return Ok(true),
            (Self::Bool(value), &Type::BOOL) => out.put_u8(u8::from(*value)),
            (Self::Int(value), &Type::INT8) => out.put_i64(*value),
            (Self::Int(value), &Type::INT4) => out.put_i32(i32::try_from(*value)?),
            (Self::Text(text), &(Type::TEXT | Type::VARCHAR | Type::JSON | Type::BYTEA)) => {
                out.put_slice(text.as_bytes());
            }
            (Self::Bytes(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (Self::Uuid(id), &Type::UUID) => out.put_slice(id.as_bytes()),
            (Self::Time(at), &Type::INT8) => out.put_i64(at.as_micros()),
            (Self::Time(at), &Type::TIMESTAMPTZ) => out.put_i64(at.as_micros() - EPOCH_MICROS),
            (Self::Date(date), &Type::DATE) => out.put_i32(i32::try_from(date.days() - EPOCH_DAYS)?),
            // The error does not contain the value, as it may be a secret.
            _ => return Err(format!("a parameter does not fit the type {ty}").into()),
        }
        Ok(false)
    }
}

impl ToSql for Argument {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, ConversionError> {
        match self {
            Self::Array(items) => items.to_sql(ty, out),
            value => Ok(if value.write(ty, out)? { IsNull::Yes } else { IsNull::No }),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A cell, converted according to the type of its column.
struct Cell<'a>(Value<'a>);

/// Reads a cell that is not null in the format of its type.
pub(crate) fn read_cell<'a>(ty: &Type, raw: &'a [u8]) -> Result<Value<'a>, ConversionError> {
    Ok(match *ty {
        Type::TEXT | Type::VARCHAR | Type::JSON => Value::Text(std::str::from_utf8(raw)?),
        Type::UUID | Type::BYTEA => Value::Bytes(raw),
        Type::BOOL => Value::Int(i64::from(raw != [0])),
        Type::INT8 => Value::Int(i64::from_be_bytes(raw.try_into()?)),
        Type::INT4 => Value::Int(i32::from_be_bytes(raw.try_into()?).into()),
        Type::TIMESTAMPTZ => {
            let micros = i64::from_be_bytes(raw.try_into()?).checked_add(EPOCH_MICROS);
            Value::Int(micros.ok_or("a timestamp is out of range")?)
        }
        Type::DATE => Value::Int(i64::from(i32::from_be_bytes(raw.try_into()?)) + EPOCH_DAYS),
        _ => return Err(format!("a column has the unsupported type {ty}").into()),
    })
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, ConversionError> {
        read_cell(ty, raw).map(Self)
    }

    fn from_sql_null(_: &Type) -> Result<Self, ConversionError> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A row that was received, with the vault that decrypts its secrets.
pub(super) struct Received<'r> {
    pub(super) row: &'r tokio_postgres::Row,
    pub(super) vault: &'r Vault,
}

impl Row for Received<'_> {
    fn value(&self, index: usize) -> Result<Value<'_>, CellError> {
        let cell: Result<Cell<'_>, _> = self.row.try_get(index);
        Ok(cell.map_err(|error| StoreError::Internal(error.to_string()))?.0)
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.vault.open(sealed)
    }
}
