//! Replays: how far they have come.

use maud::html;
use svc_core::accounts::tenants::Tenant;
use svc_core::webhooks::replays::ReplayId;

use crate::dashboard::components::{Tone, badge, exact_time, facts, heading, number, section, time_or};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};

/// Shows how far a recovery has come.
pub(in crate::dashboard) async fn progress(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let replay = cx.svc.account(tenant.id).replays().get(cx.id::<ReplayId>()?).await?;
    let zone = &tenant.time_zone;
    let state = if replay.broken_off() {
        badge(Tone::Bad, "broken off")
    } else if replay.finished_at.is_some() {
        badge(Tone::Good, "finished")
    } else {
        badge(Tone::Neutral, "running")
    };
    let content = html! {
        (heading("Recovery", "Deliveries that failed or were held are sent again in the order in which they happened.", html! {
            a.button href=(cx.url(&format!("/replays/{}", replay.id))) { "Refresh" }
        }))
        (section("Progress", html! {
            progress max="100" value=(replay.percent()) aria-label="Progress" { (replay.progress()) }
            (facts(&[
                ("Status", html! { (state) " " (replay.progress()) }),
                ("Deliveries", html! { (number(replay.replayed)) " are sent again so far" }),
                ("Endpoint", html! { a href=(cx.url(&format!("/webhooks/{}", replay.subscription_id))) { code { (replay.subscription_id) } } }),
                ("Since", exact_time(zone, replay.since)),
                ("Until", exact_time(zone, replay.until)),
                ("Started", exact_time(zone, replay.created_at)),
                ("Ended", time_or(cx.now, zone, replay.finished_at, "not yet")),
            ]))
        }))
    };
    Ok(layout::page(cx, Some(tenant), "Recovery", &content))
}
