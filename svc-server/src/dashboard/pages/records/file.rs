//! CSV files of records.

use std::sync::Arc;

use serde_json::{Map, Value};
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use uuid::Uuid;

use super::values::{ContactNames, names_of, text};
use super::{LISTED, Selection, find};
use crate::dashboard::csv;
use crate::dashboard::pages::kinds::{CONTACT, Kind};
use crate::dashboard::prelude::*;

/// The number of records in a piece of a file.
const PIECE: u32 = 50;

/// Returns the records that the filters select, the newest first.
pub(super) async fn of_selection(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &'static Kind,
    selection: Selection,
) -> Result<PageResponse, PageError> {
    let (svc, tenant) = (cx.svc.clone(), tenant.id);
    let columns: Vec<&str> = kind.file.split(' ').collect();
    csv::respond(kind.collection, &columns, LISTED, None, move |cursor: Option<Uuid>| {
        let (svc, selection) = (svc.clone(), selection.clone());
        async move {
            let cursor = cursor.map(Into::into);
            let params = ListParams { limit: Limit::new(PIECE), cursor, ..ListParams::default() };
            let (records, next) = find(svc.account(tenant), kind, &selection, params).await?;
            Ok((rows_of(&svc, tenant, kind, &records).await?, next.map(Some)))
        }
    })
    .await
}

/// Returns these records.
pub(super) async fn of_records(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &'static Kind,
    records: Vec<Map<String, Value>>,
) -> Result<PageResponse, PageError> {
    let (svc, tenant) = (cx.svc.clone(), tenant.id);
    let columns: Vec<&str> = kind.file.split(' ').collect();
    let records = Arc::new(records);
    csv::respond(kind.collection, &columns, LISTED, (), move |()| {
        let (svc, records) = (svc.clone(), Arc::clone(&records));
        async move { Ok((rows_of(&svc, tenant, kind, &records).await?, None)) }
    })
    .await
}

/// Returns the rows of records.
async fn rows_of(svc: &Svc, tenant: TenantId, kind: &Kind, records: &[Map<String, Value>]) -> Result<csv::Rows, Error> {
    let names = names_of(svc, tenant, records.iter().map(|record| text(record, "contact_id"))).await?;
    let mut rows = csv::Rows::default();
    for record in records {
        rows.add(kind.file.split(' ').map(|field| cell(record, field, &names)));
    }
    Ok(rows)
}

/// Returns the cell of a field, as the API returns its value.
fn cell(record: &Map<String, Value>, field: &str, names: &ContactNames) -> String {
    match record.get(field) {
        _ if field == CONTACT => names.get(text(record, "contact_id")).unwrap_or_default().to_owned(),
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
