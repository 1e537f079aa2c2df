//! The repository of every resource: one generic implementation over the tables that [`record!`](crate::record) declares.

use std::fmt::Write as _;

use async_trait::async_trait;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::resources::crud::Resource;
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::store::Repository;
use svc_core::values::{Id, TenantId};

use crate::column::Column as _;
use crate::dialect::Dialect;
use crate::record::{Record, is_soft_deleted};
use crate::sql::{Cells, Param, Row, SqlTx};

/// A resource whose records are rows of a table with the columns `tenant_id` and `id`.
#[async_trait]
pub(crate) trait ResourceTable: Resource + Record {
    /// Adds the conditions of a filter to a query.
    fn restrict(filter: &Self::Filter, query: &mut Query);

    /// Updates tables that depend on the row, after it was inserted or updated.
    async fn after_write(&self, _tx: &mut SqlTx<'_>, _tenant: TenantId) -> Result<(), StoreError> {
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

/// The value of the column `live`, if the table has it.
fn live<R: ResourceTable>(record: &R) -> Option<Param<'static>> {
    is_soft_deleted::<R>().then(|| Param::Bool(record.deleted_at().is_none()))
}

#[async_trait]
impl<R: ResourceTable> Repository<R> for SqlTx<'_> {
    async fn get(&mut self, tenant: TenantId, id: Id<R>) -> Result<Option<R>, StoreError> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Result<Vec<R>, StoreError> {
        let (sql, params) = list_statement::<R>(self.dialect, tenant, listing);
        // A list is rarely shorter than its limit, and to let it grow would move the records several times.
        let mut records = Vec::with_capacity(listing.limit.min(MAX_LIMIT + 1) as usize);
        let mut each = |row: &dyn Row| {
            records.push(R::read(&mut Cells::new(row))?);
            Ok(())
        };
        self.sql.query(&sql, &params, &mut each).await?;
        Ok(records)
    }

    async fn insert(&mut self, tenant: TenantId, record: &R) -> Result<(), StoreError> {
        let mut extra = vec![tenant.param()];
        extra.extend(live(record));
        self.insert_record(&extra, record).await?;
        record.after_write(self, tenant).await
    }

    async fn update(&mut self, tenant: TenantId, record: &R) -> Result<(), StoreError> {
        let mut params = record.updated_params();
        params.extend(live(record));
        params.extend([tenant.param(), Param::Uuid(record.id().uuid())]);
        self.sql.pipeline(&R::statements().update, &params, Some(R::TABLE)).await?;
        record.after_write(self, tenant).await
    }
}
