//! Tables: one place for each that names its columns. The statements, their parameters, the reader of rows, the names in
//! errors, the list of tables for maintenance, and the repository of every resource follow from it.

use std::fmt::Write as _;

use async_trait::async_trait;
use svc_core::env;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::Resource;
use svc_core::resources::contacts::{ContactId, OfContact};
use svc_core::resources::starts::{HasStart, StartPlace};
use svc_core::store::{RecordsByStart, RecordsOfContact, Repository, StoreResult};
use svc_core::values::{Id, TenantId, Timestamp};
use uuid::Uuid;

use crate::column::{CellError, Column, Kind, Param, Row};
use crate::dialect::Dialect;
use crate::sql::{Cells, SqlTx};

/// The name of a column, and what it holds.
pub(crate) type ColumnInfo = (&'static str, Kind);

/// A type whose values are rows of a table. Implemented by [`record!`].
pub(crate) trait TableRow: Sized {
    /// The name of the table.
    const TABLE: &'static str;
    /// The columns that identify a row. An index of both databases begins with them, in any order.
    const KEY: &'static [&'static str];
    /// All columns: the first [`EXTRA`](TableRow::EXTRA) are no fields of the record, the others are its fields.
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
    pub(crate) fn of<R: TableRow>() -> Self {
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
pub(crate) fn is_soft_deleted<R: TableRow>() -> bool {
    R::COLUMNS.iter().any(|(name, _)| *name == LIVE)
}

/// Returns the condition that selects the row with a key, whose values are the parameters from `$first` on.
fn key_equals<R: TableRow>(first: usize) -> String {
    let columns: Vec<String> = (first..).zip(R::KEY).map(|(n, name)| format!("{name} = ${n}")).collect();
    columns.join(" AND ")
}

/// Returns the columns that are fields of the record as a list, each with `prefix`, such as `d.`.
pub(crate) fn fields<R: TableRow>(prefix: &str) -> String {
    let names: Vec<String> = R::COLUMNS[R::EXTRA..].iter().map(|(name, _)| format!("{prefix}{name}")).collect();
    names.join(", ")
}

/// Returns a statement that selects the fields, then the extra columns, of rows.
pub(crate) fn select_all<R: TableRow>(conditions: &str) -> String {
    let extra = R::COLUMNS[..R::EXTRA].iter().map(|(name, _)| format!(", {name}")).collect::<String>();
    format!("SELECT {}{extra} FROM {} {conditions}", fields::<R>(""), R::TABLE)
}

/// Returns a statement that selects the fields of rows.
pub(crate) fn select<R: TableRow>(conditions: &str) -> String {
    format!("{} {conditions}", R::statements().select)
}

/// Returns a statement that inserts a row, or sets the updated columns of the row that has its key already.
pub(crate) fn upsert<R: TableRow>() -> String {
    format!("{}{}", R::statements().insert, on_conflict_update::<R>())
}

/// Returns the end of an insert that sets the updated columns of the rows whose keys are there already.
pub(crate) fn on_conflict_update<R: TableRow>() -> String {
    let updated: Vec<String> = R::UPDATED.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    format!(" ON CONFLICT ({}) DO UPDATE SET {}", R::KEY.join(", "), updated.join(", "))
}

/// A statement for several rows at once: one text for each of a few numbers of rows, so that a connection keeps few
/// statements prepared, however many rows there are.
pub(crate) struct BulkInsert([(usize, String); 3]);

impl BulkInsert {
    /// Returns the statement that inserts rows as [`Statements::insert`] does, followed by `rest`.
    pub(crate) fn of<R: TableRow>(rest: &str) -> Self {
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

impl SqlTx<'_> {
    /// Returns the record with a key, whose values are `key`.
    pub(crate) async fn get_record<R: TableRow + Send>(&mut self, key: &[Param<'_>]) -> StoreResult<Option<R>> {
        self.fetch_one(&R::statements().get, key, R::read).await
    }

    /// Returns the records of a tenant that have these ids.
    pub(crate) async fn get_records<R: TableRow + Send>(
        &mut self,
        tenant: TenantId,
        ids: &[Uuid],
    ) -> StoreResult<Vec<R>> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(MANY) {
            // The last id fills the places that are left, so that there is one statement for any number of ids.
            let padded = ids.iter().chain(std::iter::repeat(&ids[ids.len() - 1])).take(MANY);
            let params: Vec<Param<'_>> = std::iter::once(tenant.param()).chain(padded.map(|id| id.param())).collect();
            found.extend(self.fetch(&get_many_statement::<R>(), &params, R::read).await?);
        }
        Ok(found)
    }

    /// Returns the record with an id, which is the whole key of its table, and keeps its row locked until the transaction ends.
    pub(crate) async fn lock_record<R: TableRow + Send>(&mut self, id: Uuid) -> StoreResult<Option<R>> {
        let mut record = None;
        let mut read = |row: &dyn Row| {
            record = Some(R::read(&mut Cells::new(row))?);
            Ok(())
        };
        self.sql.lock_row(id, &R::statements().get, &[Param::Uuid(id)], &mut read).await?;
        Ok(record)
    }

    /// Adds a record. `extra` are the values of the columns that are no fields of it.
    pub(crate) async fn insert_record<R: TableRow>(&mut self, extra: &[Param<'_>], record: &R) -> StoreResult<()> {
        self.pipeline(&R::statements().insert, &insert_params(extra, record)).await
    }

    /// Adds records, whose columns are all fields of them.
    pub(crate) async fn insert_records<R: TableRow>(&mut self, insert: &BulkInsert, records: &[R]) -> StoreResult<()> {
        let mut left = records;
        for (rows, sql) in insert.by_rows() {
            let chunks = left.chunks_exact(*rows);
            left = chunks.remainder();
            for chunk in chunks {
                let params: Vec<Param<'_>> = chunk.iter().flat_map(R::params).collect();
                self.pipeline(sql, &params).await?;
            }
        }
        Ok(())
    }

    /// Stores the updated columns of the record with a key, if there is one.
    pub(crate) async fn update_record<R: TableRow>(&mut self, record: &R, key: &[Param<'_>]) -> StoreResult<()> {
        let mut params = record.updated_params();
        params.extend_from_slice(key);
        self.pipeline(&R::statements().update, &params).await
    }
}

/// The parameters of [`Statements::insert`].
pub(crate) fn insert_params<'a, R: TableRow>(extra: &[Param<'a>], record: &'a R) -> Vec<Param<'a>> {
    let mut params = extra.to_vec();
    params.extend(record.params());
    params
}

/// A resource whose records are rows of a table with the columns `tenant_id` and `id`.
#[async_trait]
pub(crate) trait ResourceTable: Resource + TableRow {
    /// Adds the conditions of a filter to a query.
    fn restrict(filter: &Self::Filter, query: &mut Query);

    /// Updates tables that depend on the row, after it was inserted or updated.
    async fn after_write(&self, _tx: &mut SqlTx<'_>, _tenant: TenantId) -> StoreResult<()> {
        Ok(())
    }
}

/// A list statement under construction.
#[derive(Default)]
pub(crate) struct Query {
    conditions: String,
    params: Vec<Param<'static>>,
    include_deleted: bool,
    split_by_change: bool,
}

impl Query {
    /// Adds the condition `expression = value`.
    pub(crate) fn equals(&mut self, expression: &str, value: Param<'static>) {
        self.compare(expression, "=", value);
    }

    /// Includes deleted rows.
    pub(crate) fn include_deleted(&mut self) {
        self.include_deleted = true;
    }

    /// Lists records that were never changed apart from the others, as they have an index of their own: by the time at which
    /// they were created.
    pub(crate) fn split_by_change(&mut self) {
        self.split_by_change = true;
    }

    fn compare(&mut self, expression: &str, operator: &str, value: Param<'static>) {
        self.params.push(value);
        let _ = write!(self.conditions, " AND {expression} {operator} ${}", self.params.len());
    }
}

/// Returns the text and the parameters of a list.
///
/// Deleted rows have index ranges of their own, and with some filters so have rows that were changed. So a list merges the
/// ordered ranges that it needs, and still costs O(limit).
pub(crate) fn list_statement<R: ResourceTable>(
    dialect: Dialect,
    tenant: TenantId,
    listing: &ListQuery<R::Filter>,
) -> (String, Vec<Param<'static>>) {
    let mut query = Query { params: vec![Param::Uuid(tenant.0)], ..Query::default() };
    R::restrict(&listing.filter, &mut query);
    let order = match listing.order {
        Order::NewestFirst { before } if query.split_by_change => {
            if let Some(before) = before {
                query.compare("created_at", "<", Param::Time(before));
            }
            "created_at DESC"
        }
        Order::NewestFirst { before } => {
            if let Some(before) = before {
                query.compare("id", "<", Param::Uuid(env::first_id_at(before)));
            }
            "id DESC"
        }
        Order::OldestChangeFirst { from } => {
            query.compare("updated_at", ">=", Param::Time(from));
            "updated_at"
        }
    };
    let Query { conditions, mut params, include_deleted, split_by_change } = query;
    params.push(Param::Int(i64::from(listing.limit)));
    let limit = format!("${}", params.len());
    let list = |live: &str| format!("{} WHERE tenant_id = $1{live}{conditions}", R::statements().select);
    let mut lists = if is_soft_deleted::<R>() { vec![list(" AND live = TRUE")] } else { vec![list("")] };
    if is_soft_deleted::<R>() && include_deleted {
        lists.push(list(" AND live = FALSE"));
    }
    if split_by_change {
        lists = lists.iter().flat_map(|list| by_change(list)).collect();
    }
    (dialect.merge(&lists, order, &format!("LIMIT {limit}"), &limit), params)
}

/// Returns the list of the records that were never changed, and that of the others. The first were created and changed at one
/// time, so one index serves both orders.
fn by_change(list: &str) -> [String; 2] {
    let unchanged =
        list.replacen("updated_at", "created_at AS updated_at", 1).replace("updated_at >=", "created_at >=");
    [format!("{unchanged} AND updated_at = created_at"), format!("{list} AND updated_at <> created_at")]
}

/// Returns the text and the parameters of the list of a contact's records.
pub(crate) fn contact_statement<R: ResourceTable + OfContact>(
    tenant: TenantId,
    contact: ContactId,
    before: Timestamp,
    limit: u32,
) -> (String, [Param<'static>; 4]) {
    let conditions = "WHERE tenant_id = $1 AND contact_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
    let before = Param::Uuid(env::first_id_at(before));
    let params = [Param::Uuid(tenant.0), Param::Uuid(contact.uuid()), before, Param::Int(i64::from(limit))];
    (select::<R>(conditions), params)
}

#[async_trait]
impl<R: ResourceTable + OfContact> RecordsOfContact<R> for SqlTx<'_> {
    async fn records_of_contact(
        &mut self,
        tenant: TenantId,
        contact: ContactId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let (sql, params) = contact_statement::<R>(tenant, contact, before, limit);
        self.fetch(&sql, &params, R::read).await
    }
}

/// A resource whose records are rows with the time of a start.
pub(crate) trait StartTable: ResourceTable + HasStart {
    /// The column with the time. An index has it with the tenant before it and the id after it.
    const START: &'static str;
    /// The condition of that index which rows with a start meet, beginning with `AND`, if it needs more than the start.
    const CONDITION: &'static str = "";

    /// Returns the time of a start as the column has it.
    fn start_param(at: Timestamp) -> Param<'static> {
        if Self::STARTS_ON_DATE { Param::Date(at.utc_date()) } else { Param::Time(at) }
    }
}

/// Returns the text and the parameters of a list by start.
pub(crate) fn start_statement<R: StartTable>(
    tenant: TenantId,
    from: StartPlace,
    last: Timestamp,
    limit: u32,
) -> (String, [Param<'static>; 5]) {
    let (start, which) = (R::START, R::CONDITION);
    let conditions = format!(
        "WHERE tenant_id = $1{which} AND ({start}, id) >= ($2, $3) AND {start} <= $4 ORDER BY {start}, id LIMIT $5"
    );
    (select::<R>(&conditions), start_params::<R>(tenant, from, last, limit))
}

/// Returns the text and the parameters of a list by start, the latest first.
pub(crate) fn start_statement_backwards<R: StartTable>(
    tenant: TenantId,
    before: StartPlace,
    first: Timestamp,
    limit: u32,
) -> (String, [Param<'static>; 5]) {
    let (start, which) = (R::START, R::CONDITION);
    let conditions = format!(
        "WHERE tenant_id = $1{which} AND ({start}, id) < ($2, $3) AND {start} >= $4 ORDER BY {start} DESC, id DESC \
         LIMIT $5"
    );
    (select::<R>(&conditions), start_params::<R>(tenant, before, first, limit))
}

fn start_params<R: StartTable>(tenant: TenantId, place: StartPlace, end: Timestamp, limit: u32) -> [Param<'static>; 5] {
    let first_id = Param::Uuid(env::first_id_at(place.created_from));
    let [start, end] = [place.start, end].map(R::start_param);
    [Param::Uuid(tenant.0), start, first_id, end, Param::Int(i64::from(limit))]
}

#[async_trait]
impl<R: StartTable> RecordsByStart<R> for SqlTx<'_> {
    async fn records_by_start(
        &mut self,
        tenant: TenantId,
        from: StartPlace,
        last: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let (sql, params) = start_statement::<R>(tenant, from, last, limit);
        self.fetch(&sql, &params, R::read).await
    }

    async fn records_before(
        &mut self,
        tenant: TenantId,
        before: StartPlace,
        first: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let (sql, params) = start_statement_backwards::<R>(tenant, before, first, limit);
        self.fetch(&sql, &params, R::read).await
    }
}

/// The number of records that one statement gets.
const MANY: usize = 50;

/// Returns the statement that gets [`MANY`] records, live and deleted ones, by their ids.
pub(crate) fn get_many_statement<R: TableRow>() -> String {
    let places: Vec<String> = (2..MANY + 2).map(|n| format!("${n}")).collect();
    let places = places.join(", ");
    if is_soft_deleted::<R>() {
        let [live, deleted] = ["TRUE", "FALSE"]
            .map(|live| select::<R>(&format!("WHERE tenant_id = $1 AND live = {live} AND id IN ({places})")));
        format!("{live} UNION ALL {deleted}")
    } else {
        select::<R>(&format!("WHERE tenant_id = $1 AND id IN ({places})"))
    }
}

/// The value of the column `live`, if the table has it.
fn live<R: ResourceTable>(record: &R) -> Option<Param<'static>> {
    is_soft_deleted::<R>().then(|| Param::Bool(record.deleted_at().is_none()))
}

#[async_trait]
impl<R: ResourceTable> Repository<R> for SqlTx<'_> {
    async fn get(&mut self, tenant: TenantId, id: Id<R>) -> StoreResult<Option<R>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn get_many(&mut self, tenant: TenantId, ids: &[Id<R>]) -> StoreResult<Vec<R>> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        self.get_records(tenant, &ids).await
    }

    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> StoreResult<Vec<R>> {
        let (sql, params) = list_statement::<R>(self.dialect, tenant, listing);
        self.fetch(&sql, &params, R::read).await
    }

    async fn insert(&mut self, tenant: TenantId, record: &R) -> StoreResult<()> {
        let mut extra = vec![tenant.param()];
        extra.extend(live(record));
        self.insert_record(&extra, record).await?;
        record.after_write(self, tenant).await
    }

    async fn update(&mut self, tenant: TenantId, record: &R) -> StoreResult<()> {
        let mut params = record.updated_params();
        params.extend(live(record));
        params.extend([tenant.param(), Param::Uuid(record.id().uuid())]);
        self.sql.pipeline(&R::statements().update, &params, Some(R::TABLE)).await?;
        record.after_write(self, tenant).await
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
        impl $crate::table::TableRow for $record {
            const TABLE: &'static str = $table;
            const KEY: &'static [&'static str] = &[$(stringify!($key)),+];
            const COLUMNS: &'static [$crate::table::ColumnInfo] = &[
                $($((stringify!($extra), <$extra_type as $crate::column::Column>::KIND),)+)?
                $((
                    $crate::table::column_name!($fixed $(as $fixed_column)?),
                    $crate::table::kind_of::<Self, _>(|record| &record.$fixed),
                ),)*
                $((
                    $crate::table::column_name!($changing $(as $changing_column)?),
                    $crate::table::kind_of::<Self, _>(|record| &record.$changing),
                ),)*
            ];
            const EXTRA: usize = <[&str]>::len(&[$($(stringify!($extra)),+)?]);
            const UPDATED: &'static [&'static str] =
                &[$($crate::table::column_name!($changing $(as $changing_column)?)),*];

            type Extra = ($($($extra_type,)+)?);

            fn statements() -> &'static $crate::table::Statements {
                static STATEMENTS: std::sync::LazyLock<$crate::table::Statements> =
                    std::sync::LazyLock::new($crate::table::Statements::of::<$record>);
                &STATEMENTS
            }

            fn params(&self) -> Vec<$crate::column::Param<'_>> {
                use $crate::column::Column;
                vec![$(Column::param(&self.$fixed),)* $(Column::param(&self.$changing),)*]
            }

            fn updated_params(&self) -> Vec<$crate::column::Param<'_>> {
                vec![$($crate::column::Column::param(&self.$changing)),*]
            }

            fn read(cells: &mut $crate::sql::Cells<'_>) -> Result<Self, $crate::column::CellError> {
                let record = Self {
                    $($fixed: cells.take($table, $crate::table::column_name!($fixed $(as $fixed_column)?))?,)*
                    $($changing: cells.take($table, $crate::table::column_name!($changing $(as $changing_column)?))?,)*
                };
                $(let record = $after_load(record);)?
                Ok(record)
            }

            fn read_extra(cells: &mut $crate::sql::Cells<'_>) -> Result<Self::Extra, $crate::column::CellError> {
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
