//! The form that serves the rows of every resource. A resource names its columns, which are its fields; the
//! statements follow from that.

use std::fmt::Write as _;

use async_trait::async_trait;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::resources::crud::Resource;
use svc_core::resources::pages::{ListQuery, Order};
use svc_core::store::Repository;
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::sql::{Cells, Column as _, Param, Row, SqlTx};

/// A resource whose records are rows of a table.
#[async_trait]
pub(crate) trait Table: Resource {
    const NAME: &'static str;
    /// The names of the fields, `id` first.
    const COLUMNS: &'static [&'static str];
    /// Whether rows are deleted by marking them, with a column `live` before the id in the key.
    const SOFT_DELETE: bool;

    fn statements() -> &'static Statements;
    /// The values of all columns but the id.
    fn params(&self) -> Vec<Param<'_>>;
    fn read(cells: &mut Cells<'_>) -> Result<Self, StoreError>;

    /// Says the filter in SQL.
    fn restrict(filter: &Self::Filter, query: &mut Query);

    /// What a cell alone does not tell, such as the scale of an amount.
    fn after_load(self) -> Self {
        self
    }

    /// Keeps tables that depend on the row in step with it.
    async fn after_write(&self, _tx: &mut SqlTx<'_>, _tenant: TenantId) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The statements of a table whose text never changes.
pub(crate) struct Statements {
    get: String,
    insert: String,
    update: String,
    select: String,
}

impl Statements {
    pub(crate) fn of<R: Table>() -> Self {
        let (table, columns) = (R::NAME, R::COLUMNS.join(", "));
        let mut names = vec!["tenant_id"];
        names.extend(R::COLUMNS);
        if R::SOFT_DELETE {
            names.push("live");
        }
        let placeholders: Vec<String> = (1..=names.len()).map(|n| format!("${n}")).collect();
        let changes = R::COLUMNS[1..].iter().copied().chain(R::SOFT_DELETE.then_some("live"));
        let changes: Vec<String> = (1..).zip(changes).map(|(n, name)| format!("{name} = ${n}")).collect();
        let (tenant, id) = (changes.len() + 1, changes.len() + 2);
        let get = |live: &str| format!("SELECT {columns} FROM {table} WHERE tenant_id = $1 AND id = $2{live}");
        Self {
            // A live row is found at once by the key that begins with it; the other branch is seldom reached.
            get: if R::SOFT_DELETE {
                format!("{} UNION ALL {} LIMIT 1", get(" AND live = TRUE"), get(" AND live = FALSE"))
            } else {
                get("")
            },
            insert: format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), placeholders.join(", ")),
            update: format!("UPDATE {table} SET {} WHERE tenant_id = ${tenant} AND id = ${id}", changes.join(", ")),
            select: format!("SELECT {columns} FROM {table} WHERE tenant_id = $1"),
        }
    }

    /// Every statement that runs on this table, for the tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> [&str; 3] {
        [&self.get, &self.insert, &self.update]
    }
}

/// A list statement in the making.
pub(crate) struct Query {
    conditions: String,
    params: Vec<Param<'static>>,
    include_deleted: bool,
}

impl Query {
    /// Adds `expression = value`.
    pub(crate) fn equals(&mut self, expression: &str, value: Param<'static>) {
        self.compare(expression, "=", value);
    }

    pub(crate) fn include_deleted(&mut self) {
        self.include_deleted = true;
    }

    fn compare(&mut self, expression: &str, operator: &str, value: Param<'static>) {
        self.params.push(value);
        let _ = write!(self.conditions, " AND {expression} {operator} ${}", self.params.len());
    }
}

/// The text and the parameters of a list. Deleted rows lie in a range of their own, so a list with both
/// merges two ordered ranges and still costs O(limit).
pub(crate) fn list_statement<R: Table>(
    dialect: Dialect,
    tenant: TenantId,
    listing: &ListQuery<R::Filter>,
) -> (String, Vec<Param<'static>>) {
    let mut query = Query { conditions: String::new(), params: vec![Param::Uuid(tenant.0)], include_deleted: false };
    R::restrict(&listing.filter, &mut query);
    let order = match listing.order {
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
    let Query { conditions, mut params, include_deleted } = query;
    params.push(Param::Int(i64::from(listing.limit)));
    let (select, limit) = (&R::statements().select, params.len());
    let branch = |live: &str| format!("{select}{live}{conditions}");
    let live = if R::SOFT_DELETE { branch(" AND live = TRUE") } else { branch("") };
    let sql = if R::SOFT_DELETE && include_deleted {
        dialect.merge([live, branch(" AND live = FALSE")], order, limit)
    } else {
        format!("{live} ORDER BY {order} LIMIT ${limit}")
    };
    (sql, params)
}

/// The values of all columns but the id, and whether the row is live.
fn values<R: Table>(row: &R) -> Vec<Param<'_>> {
    let mut values = row.params();
    if R::SOFT_DELETE {
        values.push(Param::Bool(row.deleted_at().is_none()));
    }
    values
}

#[async_trait]
impl<R: Table> Repository<R> for SqlTx<'_> {
    async fn get(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<R>, StoreError> {
        let mut found = None;
        let mut each = |row: &dyn Row| {
            found = Some(R::read(&mut cells::<R>(row))?);
            Ok(())
        };
        self.sql.query(&R::statements().get, &[tenant.param(), id.param()], &mut each).await?;
        Ok(found)
    }

    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Result<Vec<R>, StoreError> {
        let (sql, params) = list_statement::<R>(self.dialect, tenant, listing);
        let mut rows = Vec::with_capacity(listing.limit as usize);
        let mut each = |row: &dyn Row| {
            rows.push(R::read(&mut cells::<R>(row))?);
            Ok(())
        };
        self.sql.query(&sql, &params, &mut each).await?;
        Ok(rows)
    }

    async fn insert(&mut self, tenant: TenantId, row: &R) -> Result<(), StoreError> {
        let mut params = vec![tenant.param(), Param::Uuid(row.id())];
        params.extend(values(row));
        self.pipeline(&R::statements().insert, &params).await?;
        row.after_write(self, tenant).await
    }

    async fn update(&mut self, tenant: TenantId, row: &R) -> Result<(), StoreError> {
        let mut params = values(row);
        params.extend([tenant.param(), Param::Uuid(row.id())]);
        self.sql.pipeline(&R::statements().update, &params, Some(R::NAME)).await?;
        row.after_write(self, tenant).await
    }
}

fn cells<R: Table>(row: &dyn Row) -> Cells<'_> {
    Cells { row, table: R::NAME, columns: R::COLUMNS, next: 0 }
}

/// Names the columns of a resource: its fields, in the order they are selected, bound and read.
macro_rules! table {
    ($record:ty, $name:literal, soft_delete: $soft:literal, [id, $($column:ident),+ $(,)?] { $($rest:item)* }) => {
        #[async_trait::async_trait]
        impl $crate::table::Table for $record {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [&'static str] = &["id", $(stringify!($column)),+];
            const SOFT_DELETE: bool = $soft;

            fn statements() -> &'static $crate::table::Statements {
                static STATEMENTS: std::sync::LazyLock<$crate::table::Statements> =
                    std::sync::LazyLock::new($crate::table::Statements::of::<$record>);
                &STATEMENTS
            }

            fn params(&self) -> Vec<$crate::sql::Param<'_>> {
                use $crate::sql::Column as _;
                vec![$(self.$column.param()),+]
            }

            fn read(cells: &mut $crate::sql::Cells<'_>) -> Result<Self, svc_core::error::StoreError> {
                Ok(Self { id: cells.take()?, $($column: cells.take()?),+ }.after_load())
            }

            $($rest)*
        }
    };
}

pub(crate) use table;
