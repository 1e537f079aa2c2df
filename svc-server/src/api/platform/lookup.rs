//! The operations that find records by their id alone, or by a part of it.

use http::{Method, StatusCode};
use svc_core::accounts::platform_keys::Area;
use svc_core::input::Input as _;
use svc_core::lookup::{self, Matches, PartOfId, RecordId};
use svc_core::pages::Page;
use svc_core::platform::Account;

use super::{ACCOUNT, list_of, one, operation};
use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::{Operation, Shape, inline, schema};

pub(super) fn lookups() -> Vec<Operation> {
    vec![
        operation(
            Area::Accounts,
            "findAccounts",
            (Method::GET, "/find-accounts"),
            "accounts",
            accounts,
            [
                "Find the account of a record",
                "Returns the accounts that have a record with this id. There is one, or none, unless an import gave records \
                 of several accounts the same id. The ids of contacts, bookings and jobs are known within their account \
                 only.",
                "The accounts that have the record.",
            ],
            Shape { query: const { &[inline::<RecordId>] }, ..one(list_of::<Account>, StatusCode::OK) },
        ),
        operation(
            Area::Records,
            "findIds",
            (Method::GET, &format!("{ACCOUNT}/find-ids")),
            "accounts",
            ids,
            [
                "Find ids by a part",
                "Returns the ids of the records of one kind that begin with a part, or else those that end with it. People \
                 type a few characters of an id instead of all of it.",
                "The ids that have the part.",
            ],
            Shape { query: const { &[inline::<PartOfId>] }, ..one(schema::<Matches>, StatusCode::OK) },
        ),
    ]
}

/// Handles `GET /find-accounts`.
fn accounts(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let RecordId { kind, id } = parts.query(RecordId::take)?;
    let find = ParsedRequest::new(move |tx, _| {
        Box::pin(async move {
            let tenants = lookup::accounts_of(tx, kind, id).await?;
            let accounts = tenants.into_iter().map(Account::from).collect();
            Ok(ApiResponse::json(StatusCode::OK, &Page::whole(accounts))?)
        })
    });
    Ok(find.reading(1))
}

/// Handles `GET /accounts/{account_id}/find-ids`.
fn ids(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let PartOfId { kind, part } = parts.query(PartOfId::take)?;
    let find = ParsedRequest::new(move |tx, tenant| {
        let part = part.clone();
        Box::pin(async move {
            let matches = lookup::ids_with(tx, kind, tenant, &part).await?;
            Ok(ApiResponse::json(StatusCode::OK, &matches)?)
        })
    });
    Ok(find.reading(1))
}
