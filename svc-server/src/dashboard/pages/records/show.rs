//! The page of a record.

use maud::{Markup, html};
use svc_core::accounts::tenants::Tenant;
use uuid::Uuid;

use super::{Kind, get, name, short, value, words};
use crate::dashboard::components::{facts, heading, section};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};
use crate::dashboard::pages::audit::entry_table;
use crate::dashboard::pages::record_actions;

/// The number of changes of the account among which the history of a record is looked for.
const HISTORY: u32 = 500;

/// Shows one record with its history.
pub(in crate::dashboard) async fn show(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
) -> Result<PageResponse, PageError> {
    let id: Uuid = cx.id()?;
    let account = cx.svc.account(tenant.id);
    let record = get(account, kind, id).await?;
    let mut history = account.audit_log().before(None, HISTORY).await?;
    history.retain(|entry| entry.object_id == id);
    let name = name(kind, &record);
    let fields: Vec<(String, Markup)> =
        record.keys().map(|field| (words(field), value(cx, tenant, &record, field))).collect();
    let fields: Vec<(&str, Markup)> = fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let content = html! {
        p { a href=(cx.url(&format!("/{}", kind.collection))) { (kind.title) } }
        (heading(&short(&name), "", record_actions::buttons(cx, tenant, kind.collection, id).await?))
        (section("Fields", facts(&fields)))
        section.card {
            div {
                h2 { "History" }
                p.soft { "Its changes among the newest " (HISTORY) " of the account." }
            }
            @if history.is_empty() {
                p { "There are none." }
            } @else {
                (entry_table(cx, &tenant.time_zone, &history))
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), &short(&name), &content))
}
