//! Reads whole tables in batches, in the order of their keys and in constant memory.

use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::values::{Date, Timestamp};
use uuid::Uuid;

use super::tables::TableInfo;
use crate::column::{Column as _, Kind, Param, Row, Value};
use crate::dialect::Dialect;
use crate::sql::{EachRow, Sql};

/// The number of rows of a batch. The largest rows, those of delivery attempts, have 16 KiB each.
pub(crate) const BATCH: usize = 500;

/// The value of a cell in a form that is the same for every database: times are microseconds, dates are days since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Reads a cell. `None` when its value is not valid for the column.
    pub(crate) fn read(value: Value<'_>, kind: Kind) -> Option<Self> {
        Some(match (kind, value) {
            (_, Value::Null) => Self::Null,
            (Kind::Uuid, Value::Bytes(bytes)) => Self::Bytes(Uuid::from_slice(bytes).ok()?.as_bytes().to_vec()),
            (Kind::Bytes, Value::Bytes(bytes)) => Self::Bytes(bytes.to_vec()),
            (Kind::Text, value) => Self::Text(String::read(value)?),
            (Kind::Int | Kind::Bool | Kind::Time, Value::Int(value)) => Self::Int(value),
            (Kind::Date, value) => Self::Int(Date::read(value)?.days()),
            _ => return None,
        })
    }

    /// Returns the value as a parameter. `None` when it is not valid for the column.
    pub(crate) fn param(&self, kind: Kind) -> Option<Param<'_>> {
        Some(match (kind, self) {
            (_, Self::Null) => Param::Null,
            (Kind::Uuid, Self::Bytes(bytes)) => Param::Uuid(Uuid::from_slice(bytes).ok()?),
            (Kind::Bytes, Self::Bytes(bytes)) => Param::Bytes(bytes),
            (Kind::Text, Self::Text(text)) => Param::Text(text.as_str().into()),
            (Kind::Int, Self::Int(value)) => Param::Int(*value),
            (Kind::Bool, Self::Int(value)) => Param::Bool(bool::read(Value::Int(*value))?),
            (Kind::Time, Self::Int(micros)) => Param::Time(Timestamp::from_micros(*micros)),
            (Kind::Date, Self::Int(days)) => Param::Date(Date::from_days(*days)?),
            _ => return None,
        })
    }
}

/// The cells of a row, in the order of the table's columns.
pub(crate) type Cells = Vec<Cell>;

/// A reader of a whole table.
pub(crate) struct TableReader {
    table: &'static TableInfo,
    /// The order of the columns of the key in the index that is read.
    order: Vec<usize>,
    first: String,
    next: String,
    /// The key of the last row that was read.
    after: Option<Cells>,
}

impl TableReader {
    /// Starts after a key, or at the first row.
    pub(crate) fn new(table: &'static TableInfo, dialect: Dialect, after: Option<Cells>) -> Self {
        Self::selecting(table, dialect, &table.column_names(), after)
    }

    /// Selects other columns than all.
    pub(crate) fn selecting(table: &'static TableInfo, dialect: Dialect, columns: &str, after: Option<Cells>) -> Self {
        let (name, order) = (table.name, table.index_order(dialect));
        let key = order.iter().map(|position| table.key[*position]).collect::<Vec<_>>().join(", ");
        let places: Vec<String> = (1..=table.key.len()).map(|n| format!("${n}")).collect();
        let limit = places.len() + 1;
        let (key_or_row, place) = match places.as_slice() {
            [one] => (key.clone(), one.clone()),
            many => (format!("({key})"), format!("({})", many.join(", "))),
        };
        Self {
            table,
            order,
            first: format!("SELECT {columns} FROM {name} ORDER BY {key} LIMIT $1"),
            next: format!("SELECT {columns} FROM {name} WHERE {key_or_row} > {place} ORDER BY {key} LIMIT ${limit}"),
            after,
        }
    }

    /// Returns the next rows, and no row at the end.
    pub(crate) async fn batch(&mut self, sql: &mut dyn Sql) -> StoreResult<Vec<Cells>> {
        let table = self.table;
        let mut rows: Vec<Cells> = Vec::new();
        let mut each = |row: &dyn Row| {
            rows.push(read(table, row)?);
            Ok(())
        };
        self.query(sql, &mut each).await?;
        if let Some(last) = rows.last() {
            self.after = Some(key_of(table, last));
        }
        Ok(rows)
    }

    /// Calls `each` with each of the next rows. A caller that selects other columns calls [`TableReader::continue_after`] with the last key.
    pub(crate) async fn query(&mut self, sql: &mut dyn Sql, each: EachRow<'_>) -> StoreResult<()> {
        let limit = Param::Int(BATCH as i64);
        match &self.after {
            None => sql.query(&self.first, &[limit], each).await,
            Some(key) => {
                let key = key_params(self.table, key)?;
                let mut params: Vec<Param<'_>> = self.order.iter().map(|position| key[*position].clone()).collect();
                params.push(limit);
                sql.query(&self.next, &params, each).await
            }
        }
    }

    pub(crate) fn continue_after(&mut self, after: Cells) {
        self.after = Some(after);
    }

    /// Returns the key after which the next batch starts.
    pub(crate) fn position(&self) -> Option<&Cells> {
        self.after.as_ref()
    }

    #[cfg(test)]
    pub(crate) fn statements(&self) -> [&str; 2] {
        [&self.first, &self.next]
    }
}

fn read(table: &'static TableInfo, row: &dyn Row) -> StoreResult<Cells> {
    let cells = table.columns.iter().enumerate().map(|(index, (column, kind))| {
        let corrupt =
            || StoreError::Corrupt { table: table.name, column, reason: format!("the value is not a valid {kind:?}") };
        Cell::read(row.value(index)?, *kind).ok_or_else(corrupt)
    });
    cells.collect()
}

/// Returns the values of the key of a row.
pub(crate) fn key_of(table: &TableInfo, row: &Cells) -> Cells {
    let positions = table.key.iter().filter_map(|column| table.position(column));
    positions.filter_map(|position| row.get(position).cloned()).collect()
}

/// Returns what the columns of a key hold.
pub(crate) fn key_kinds(table: &TableInfo) -> impl Iterator<Item = Kind> {
    let positions = table.key.iter().filter_map(|column| table.position(column));
    positions.map(|position| table.columns[position].1)
}

fn key_params<'a>(table: &TableInfo, key: &'a Cells) -> StoreResult<Vec<Param<'a>>> {
    let params: Option<Vec<_>> = key.iter().zip(key_kinds(table)).map(|(cell, kind)| cell.param(kind)).collect();
    params.ok_or_else(|| StoreError::Internal(format!("a key of {} is invalid", table.name)))
}

/// Returns the values of a row as parameters.
pub(crate) fn params<'a>(table: &TableInfo, row: &'a Cells) -> StoreResult<Vec<Param<'a>>> {
    let params = row.iter().zip(table.columns).map(|(cell, (column, kind))| {
        let corrupt = || StoreError::Internal(format!("a value of {}.{column} is invalid", table.name));
        cell.param(*kind).ok_or_else(corrupt)
    });
    params.collect()
}
