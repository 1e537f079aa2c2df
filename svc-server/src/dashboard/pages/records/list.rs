//! The lists of records.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::{Map, Value};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use uuid::Uuid;

use super::{Kind, Records, find, name, short, text, value, words};
use crate::dashboard::components::{empty, heading, table};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};
use crate::dashboard::pages::record_actions::new_button;

/// The number of records on a page.
const PAGE: u32 = 50;

/// Lists the records, or finds some.
pub(in crate::dashboard) async fn list(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
) -> Result<PageResponse, PageError> {
    let (search, status) = (cx.query.text("search"), cx.query.text("status"));
    let path = format!("/{}", kind.collection);
    if let Ok(id) = search.parse::<Uuid>() {
        return Ok(PageResponse::see_other(&cx.url(&format!("{path}/{id}"))));
    }
    let cursor = cx.query.given("cursor").and_then(|cursor| cursor.parse::<Uuid>().ok());
    let params = ListParams { limit: Limit::new(PAGE), cursor: cursor.map(Into::into), ..ListParams::default() };
    let found = match find(cx.svc.account(tenant.id), kind, params, search, status).await {
        Ok(found) => Ok(found),
        Err(Error::NotAllowed(reason)) => Err(reason),
        Err(Error::InvalidCursor) => Err(Error::InvalidCursor.to_string()),
        Err(other) => return Err(other.into()),
    };
    let is_filtered = !search.is_empty() || !status.is_empty();
    let content = html! {
        (heading(kind.title, "", html! { (filters(cx, kind, &path, search, status)) (new_button(cx, kind.collection)) }))
        @match &found {
            Err(reason) => { p.banner.bad role="alert" { (reason) } }
            Ok((records, _)) if records.is_empty() && is_filtered => {
                (empty(kind.icon, "Nothing found", &format!("No {} matches.", kind.one),
                    html! { a.button href=(cx.url(&path)) { "Show all" } }))
            }
            Ok((records, _)) if records.is_empty() => {
                (none_yet(tenant, kind))
            }
            Ok((records, next)) => {
                (record_table(cx, tenant, kind, records))
                @if next.is_some() || cursor.is_some() {
                    nav.pages aria-label="Pages of the list" {
                        @if cursor.is_some() { a.button href=(cx.url(&path)) { "Newest" } } @else { span {} }
                        @if let Some(next) = next {
                            @let next = next.to_string();
                            @let query = layout::query(&[("search", search), ("status", status), ("cursor", &next)]);
                            a.button href=(cx.url(&format!("{path}?{query}"))) { "Older" }
                        }
                    }
                }
            }
        }
    };
    let response = layout::page(cx, Some(tenant), kind.title, &content);
    Ok(if found.is_err() { response.status(StatusCode::UNPROCESSABLE_ENTITY) } else { response })
}

/// Says where the records of an account that has none come from.
fn none_yet(tenant: &Tenant, kind: &Kind) -> Markup {
    let title = format!("No {} yet", kind.collection);
    match kind.records {
        Records::Invoices => empty(
            kind.icon,
            &title,
            "The service itself creates invoices, over the platform API or with svc. The API of the account reads them.",
            html! { pre { code { "svc invoice create --account " (tenant.id) " --total 149.50" } } },
        ),
        Records::Contacts | Records::Quotes | Records::Bookings | Records::Jobs => empty(
            kind.icon,
            &title,
            "Programs create them through the API.",
            html! { pre { code { "POST /api/v1/" (kind.collection) } } },
        ),
    }
}

fn filters(cx: &Context<'_>, kind: &Kind, path: &str, search: &str, status: &str) -> Markup {
    let statuses = (kind.statuses)();
    html! {
        form.filters method="get" action=(cx.url(path)) role="search" {
            @if !statuses.is_empty() {
                select name="status" aria-label="Status" {
                    option value="" { "All statuses" }
                    @for known in &statuses {
                        option value=(known) selected[*known == status] { (words(known)) }
                    }
                }
            }
            input type="search" name="search" value=(search) placeholder=(kind.search) aria-label=(kind.search);
            button type="submit" { "Search" }
        }
    }
}

fn record_table(cx: &Context<'_>, tenant: &Tenant, kind: &Kind, records: &[Map<String, Value>]) -> Markup {
    let headings: Vec<&str> = std::iter::once("Name").chain(kind.columns.iter().map(|(heading, _)| *heading)).collect();
    table(
        kind.title,
        &headings,
        html! {
            @for record in records {
                tr {
                    th scope="row" {
                        a href=(cx.url(&format!("/{}/{}", kind.collection, text(record, "id")))) { (short(&name(kind, record))) }
                    }
                    @for (_, field) in kind.columns {
                        td { (value(cx, tenant, record, field)) }
                    }
                }
            }
        },
    )
}
