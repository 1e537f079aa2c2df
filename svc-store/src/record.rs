//! One place per table that names its columns. The statements, their parameters, the reader of rows, the names in errors
//! and the list of tables for maintenance follow from it.

use crate::column::{Column, Kind};
use crate::sql::{CellError, Cells, Param};

/// The name of a column, and what it holds.
pub(crate) type ColumnInfo = (&'static str, Kind);

/// A type whose values are rows of a table. Implemented by [`record!`].
pub(crate) trait Record: Sized {
    /// The name of the table.
    const TABLE: &'static str;
    /// The columns that identify a row. An index of both databases begins with them, in any order.
    const KEY: &'static [&'static str];
    /// All columns: the first [`EXTRA`](Record::EXTRA) are no fields of the record, the others are its fields.
    const COLUMNS: &'static [ColumnInfo];
    /// How many columns are no fields of the record.
    const EXTRA: usize;
    /// The columns that [`Statements::update`] sets.
    const UPDATED: &'static [&'static str];

    /// The types of the columns that are no fields of the record.
    type Extra;

    /// Returns the statements of the table.
    fn statements() -> &'static Statements;
    /// Returns the values of the fields, in the order of the columns.
    fn params(&self) -> Vec<Param<'_>>;
    /// Returns the values of the updated columns.
    fn updated_params(&self) -> Vec<Param<'_>>;
    /// Reads the fields.
    fn read(cells: &mut Cells<'_>) -> Result<Self, CellError>;
    /// Reads the columns that are no fields of the record.
    fn read_extra(cells: &mut Cells<'_>) -> Result<Self::Extra, CellError>;
}

/// The statements that each table has.
pub(crate) struct Statements {
    /// Selects the fields of the row with a key.
    pub(crate) get: String,
    /// Selects the fields of all rows; conditions are appended.
    pub(crate) select: String,
    /// Inserts a row: the extra columns, then the fields.
    pub(crate) insert: String,
    /// Sets the updated columns of the row with a key: the updated values, then the key.
    pub(crate) update: String,
}

impl Statements {
    pub(crate) fn of<R: Record>() -> Self {
        let (table, fields) = (R::TABLE, fields::<R>(""));
        let names: Vec<&str> = R::COLUMNS.iter().map(|(name, _)| *name).collect();
        let places: Vec<String> = (1..=names.len()).map(|n| format!("${n}")).collect();
        let updated = R::UPDATED.iter().chain(is_soft_deleted::<R>().then_some(&LIVE));
        let updated: Vec<String> = (1..).zip(updated).map(|(n, name)| format!("{name} = ${n}")).collect();
        let get = |conditions: &str| format!("SELECT {fields} FROM {table} WHERE {conditions}");
        Self {
            get: if is_soft_deleted::<R>() {
                // The key of the table is (tenant_id, live, id), so a row that is not deleted is found at once. SQLite would use
                // the index behind UNIQUE (tenant_id, id) if the id were compared by `=`, and look the row up after that.
                let [live, deleted] = ["TRUE", "FALSE"]
                    .map(|live| get(&format!("tenant_id = $1 AND live = {live} AND id BETWEEN $2 AND $2")));
                format!("{live} UNION ALL {deleted} LIMIT 1")
            } else {
                get(&key_equals::<R>(1))
            },
            select: format!("SELECT {fields} FROM {table}"),
            insert: format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), places.join(", ")),
            update: if updated.is_empty() {
                String::new()
            } else {
                format!("UPDATE {table} SET {} WHERE {}", updated.join(", "), key_equals::<R>(updated.len() + 1))
            },
        }
    }

    /// Returns the statements that are run as they are, for the tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<&str> {
        [&self.get, &self.insert, &self.update].into_iter().map(String::as_str).filter(|sql| !sql.is_empty()).collect()
    }
}

/// The column of tables whose rows are deleted by a mark. It is false in deleted rows.
pub(crate) const LIVE: &str = "live";

/// Returns whether deleted rows stay in the table, marked by the column `live`.
pub(crate) fn is_soft_deleted<R: Record>() -> bool {
    R::COLUMNS.iter().any(|(name, _)| *name == LIVE)
}

/// Returns the condition that selects the row with a key, whose values are the parameters from `$first` on.
fn key_equals<R: Record>(first: usize) -> String {
    let columns: Vec<String> = (first..).zip(R::KEY).map(|(n, name)| format!("{name} = ${n}")).collect();
    columns.join(" AND ")
}

/// Returns the columns that are fields of the record as a list, each with `prefix`, such as `d.`.
pub(crate) fn fields<R: Record>(prefix: &str) -> String {
    let names: Vec<String> = R::COLUMNS[R::EXTRA..].iter().map(|(name, _)| format!("{prefix}{name}")).collect();
    names.join(", ")
}

/// Returns a statement that selects the fields, then the extra columns, of rows.
pub(crate) fn select_all<R: Record>(conditions: &str) -> String {
    let extra = R::COLUMNS[..R::EXTRA].iter().map(|(name, _)| format!(", {name}")).collect::<String>();
    format!("SELECT {}{extra} FROM {} {conditions}", fields::<R>(""), R::TABLE)
}

/// Returns a statement that selects the fields of rows.
pub(crate) fn select<R: Record>(conditions: &str) -> String {
    format!("{} {conditions}", R::statements().select)
}

/// Returns a statement that inserts a row, or sets the updated columns of the row that has its key already.
pub(crate) fn upsert<R: Record>() -> String {
    format!("{}{}", R::statements().insert, on_conflict_update::<R>())
}

/// Returns the end of an insert that sets the updated columns of the rows whose keys are there already.
pub(crate) fn on_conflict_update<R: Record>() -> String {
    let updated: Vec<String> = R::UPDATED.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    format!(" ON CONFLICT ({}) DO UPDATE SET {}", R::KEY.join(", "), updated.join(", "))
}

/// A statement for several rows at once: one text for each of a few numbers of rows, so that a connection keeps few
/// statements prepared, however many rows there are.
pub(crate) struct BulkInsert([(usize, String); 3]);

impl BulkInsert {
    /// Returns the statement that inserts rows as [`Statements::insert`] does, followed by `rest`.
    pub(crate) fn of<R: Record>(rest: &str) -> Self {
        let (insert, columns) = (&R::statements().insert, R::COLUMNS.len());
        let row = |row: usize| {
            let places: Vec<String> = (1..=columns).map(|n| format!("${}", row * columns + n)).collect();
            format!(", ({})", places.join(", "))
        };
        Self([64, 8, 1].map(|rows| (rows, format!("{insert}{}{rest}", (1..rows).map(row).collect::<String>()))))
    }

    /// Returns the statements by their numbers of rows, the largest first. The last one is for one row.
    pub(crate) fn by_rows(&self) -> &[(usize, String)] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, sql)| sql.as_str())
    }
}

/// Returns what the column of a field holds.
pub(crate) const fn kind_of<R, T: Column>(_field: fn(&R) -> &T) -> Kind {
    T::KIND
}

/// Implements [`Record`] for a struct, from one list of its fields, each of which is a column.
///
/// `key` names the columns that identify a row, `extra` the columns that are no fields, with their types. `inserted` are
/// the fields that never change after the insert, or by statements of their own; `updated` are those that the table's
/// `UPDATE` sets. A field with another name than its column is written `field as column`. `after_load` completes a record
/// that was read.
macro_rules! record {
    ($record:ty, $table:literal, key: [$($key:ident),+], {
        $(extra: [$($extra:ident: $extra_type:ty),+ $(,)?],)?
        inserted: [$($fixed:ident $(as $fixed_column:ident)?),* $(,)?],
        updated: [$($changing:ident $(as $changing_column:ident)?),* $(,)?],
        $(after_load: $after_load:expr,)?
    }) => {
        impl $crate::record::Record for $record {
            const TABLE: &'static str = $table;
            const KEY: &'static [&'static str] = &[$(stringify!($key)),+];
            const COLUMNS: &'static [$crate::record::ColumnInfo] = &[
                $($((stringify!($extra), <$extra_type as $crate::column::Column>::KIND),)+)?
                $((
                    $crate::record::column_name!($fixed $(as $fixed_column)?),
                    $crate::record::kind_of::<Self, _>(|record| &record.$fixed),
                ),)*
                $((
                    $crate::record::column_name!($changing $(as $changing_column)?),
                    $crate::record::kind_of::<Self, _>(|record| &record.$changing),
                ),)*
            ];
            const EXTRA: usize = <[&str]>::len(&[$($(stringify!($extra)),+)?]);
            const UPDATED: &'static [&'static str] =
                &[$($crate::record::column_name!($changing $(as $changing_column)?)),*];

            type Extra = ($($($extra_type,)+)?);

            fn statements() -> &'static $crate::record::Statements {
                static STATEMENTS: std::sync::LazyLock<$crate::record::Statements> =
                    std::sync::LazyLock::new($crate::record::Statements::of::<$record>);
                &STATEMENTS
            }

            fn params(&self) -> Vec<$crate::sql::Param<'_>> {
                use $crate::column::Column;
                vec![$(Column::param(&self.$fixed),)* $(Column::param(&self.$changing),)*]
            }

            fn updated_params(&self) -> Vec<$crate::sql::Param<'_>> {
                vec![$($crate::column::Column::param(&self.$changing)),*]
            }

            fn read(cells: &mut $crate::sql::Cells<'_>) -> Result<Self, $crate::sql::CellError> {
                let record = Self {
                    $($fixed: cells.take($table, $crate::record::column_name!($fixed $(as $fixed_column)?))?,)*
                    $($changing: cells.take($table, $crate::record::column_name!($changing $(as $changing_column)?))?,)*
                };
                $(let record = $after_load(record);)?
                Ok(record)
            }

            fn read_extra(cells: &mut $crate::sql::Cells<'_>) -> Result<Self::Extra, $crate::sql::CellError> {
                // A table may have no extra column.
                let _ = &*cells;
                Ok(($($(cells.take::<$extra_type>($table, stringify!($extra))?,)+)?))
            }
        }
    };
}

/// The name of the column of a field.
macro_rules! column_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident as $column:ident) => {
        stringify!($column)
    };
}

pub(crate) use {column_name, record};
