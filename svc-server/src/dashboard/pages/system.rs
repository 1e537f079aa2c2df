//! How the service does, for operators: the deliveries that wait, this node and its database, and who is signed in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use svc_core::accounts::sessions::SessionId;
use svc_core::values::{TenantId, TimeZone};
use svc_core::webhooks::deliveries::{Backlog, DeliveryStatus, MAX_BACKLOG_COUNT};
use svc_core::webhooks::replays::Replay;

use super::settings::session_table;

use crate::dashboard::prelude::*;

/// The number of replays that are listed: those whose next step has waited longest.
const MAX_REPLAYS: u32 = 20;
const WAITING: [(DeliveryStatus, &str, &str); 3] = [
    (DeliveryStatus::Pending, "Pending", "wait for their next attempt"),
    (DeliveryStatus::Failed, "Failed", "used up their retries and wait for a replay"),
    (DeliveryStatus::Held, "Held", "wait until their endpoint is enabled and they are replayed"),
];

/// Shows the state of the service.
pub(crate) async fn show(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let mut waiting = Vec::new();
    for (status, name, meaning) in WAITING {
        waiting.push((name, meaning, cx.svc.dashboard().backlog(status).await?));
    }
    let replays = cx.svc.dashboard().unfinished_replays(MAX_REPLAYS).await?;
    let mut owners = HashMap::new();
    for replay in &replays {
        if let Entry::Vacant(owner) = owners.entry(replay.tenant_id) {
            owner.insert(cx.svc.account(replay.tenant_id).settings().await?.name);
        }
    }
    let sessions = cx.svc.dashboard().sessions(None).await?;
    let content = html! {
        (heading("System", "This node and the database that all nodes share. Times are in UTC.", html! {}))
        (section("Deliveries that are not done", queue(cx, &waiting)))
        (section("Replays under way", under_way(cx, &replays, &owners)))
        (section("This node", node(cx)))
        section.card {
            h2 { "Operators who are signed in" }
            (session_table(cx, &TimeZone::UTC, &sessions, true, "/system/sessions"))
        }
    };
    Ok(layout::page(cx, None, "System", &content))
}

fn queue(cx: &Context<'_>, waiting: &[(&str, &str, Backlog)]) -> Markup {
    table(
        "Deliveries that are not done",
        &["Status", "Number", "Oldest event"],
        html! {
            @for (name, meaning, backlog) in waiting {
                tr {
                    th scope="row" { (name) div.soft { (meaning) } }
                    td {
                        (number(backlog.deliveries))
                        @if backlog.deliveries >= u64::from(MAX_BACKLOG_COUNT) { "+" }
                    }
                    td { (time_or(cx.now, &TimeZone::UTC, backlog.oldest, "–")) }
                }
            }
        },
    )
}

fn under_way(cx: &Context<'_>, replays: &[Replay], owners: &HashMap<TenantId, String>) -> Markup {
    if replays.is_empty() {
        return html! { p.soft { "None." } };
    }
    table(
        "Replays under way",
        &["Account", "Progress", "Sent again", "Requested"],
        html! {
            @for replay in replays {
                tr {
                    th scope="row" {
                        a href=(cx.url(&format!("/accounts/{}", replay.tenant_id))) {
                            (owners.get(&replay.tenant_id).map_or("", String::as_str))
                        }
                    }
                    td { progress max="100" value=(replay.percent()) aria-label="Progress" {} " " (replay.progress()) }
                    td { (number(replay.replayed)) }
                    td { (time(cx.now, &TimeZone::UTC, replay.created_at)) }
                }
            }
        },
    )
}

fn node(cx: &Context<'_>) -> Markup {
    let database = match cx.svc.store().check_writable() {
        Ok(()) => badge(Tone::Good, "takes reads and writes"),
        Err(error) => html! { (badge(Tone::Bad, "takes no writes")) " " (error) },
    };
    facts(&[
        ("Version", html! { (env!("CARGO_PKG_VERSION")) }),
        ("Database", database),
        ("Clock", html! { (TimeZone::UTC.date_and_time_at(cx.now)) }),
    ])
}

/// Revokes a session of an operator.
pub(crate) async fn revoke_session(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().revoke(None, cx.id::<SessionId>()?).await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/system?notice=session-revoked"))
}
