//! The table of operational events that have not been published yet.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::operational::{OperationalEvent, OperationalEventId};
use svc_core::store::{OperationalEventRepository, StoreResult};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow, record, select};

record!(OperationalEvent, "operational_events", key: [id], {
    inserted: [id, kind, data],
    updated: [],
});

static LIST: LazyLock<String> = LazyLock::new(|| select::<OperationalEvent>("ORDER BY id LIMIT $1"));
const DELETE: &str = "DELETE FROM operational_events WHERE id = $1";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&LIST, DELETE]
}

#[async_trait]
impl OperationalEventRepository for SqlTx<'_> {
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> StoreResult<()> {
        self.insert_record(&[], event).await
    }

    async fn operational_events(&mut self, limit: u32) -> StoreResult<Vec<OperationalEvent>> {
        self.fetch(&LIST, &[limit.param()], OperationalEvent::read).await
    }

    async fn delete_operational_event(&mut self, id: OperationalEventId) -> StoreResult<()> {
        self.sql.pipeline(DELETE, &[id.param()], Some(OperationalEvent::TABLE)).await
    }
}
