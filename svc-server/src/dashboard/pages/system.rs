//! How the service does, for operators: the deliveries that wait, this node and its database, and who is signed in.

use maud::{Markup, html};
use svc_core::accounts::sessions::SessionId;
use svc_core::values::TimeZone;
use svc_core::webhooks::deliveries::{Backlog, DeliveryStatus, MAX_BACKLOG_COUNT};

use super::settings::session_table;
use crate::dashboard::components::{Tone, badge, facts, heading, number, section, table, time_or};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::reply::{Failure, Reply};

const WAITING: [(DeliveryStatus, &str, &str); 3] = [
    (DeliveryStatus::Pending, "Pending", "wait for their next attempt"),
    (DeliveryStatus::Failed, "Failed", "used up their retries and wait for a replay"),
    (DeliveryStatus::Held, "Held", "wait until their endpoint is enabled and they are replayed"),
];

/// Shows the state of the service.
pub(in crate::dashboard) async fn show(cx: &Context<'_>) -> Result<Reply, Failure> {
    let mut waiting = Vec::new();
    for (status, name, meaning) in WAITING {
        waiting.push((name, meaning, cx.svc.dashboard().backlog(status).await?));
    }
    let sessions = cx.svc.dashboard().sessions(None).await?;
    let content = html! {
        (heading("System", "This node and the database that all nodes share. Times are in UTC.", html! {}))
        (section("Deliveries that are not done", queue(cx, &waiting)))
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
pub(in crate::dashboard) async fn revoke_session(cx: &Context<'_>) -> Result<Reply, Failure> {
    cx.svc.dashboard().revoke(None, cx.id::<SessionId>()?).await?;
    Ok(Reply::see_other(&cx.url("/system?notice=session-revoked")))
}
