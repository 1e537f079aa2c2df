//! The address at which calendar programs subscribe to the calendar: a secret in the query, which the log of the server leaves out.

use http::header::IF_NONE_MATCH;
use http::request::Parts;
use svc_core::accounts::shared_links::{self, SharedLinkPurpose};
use svc_core::calendar::{FEED_DAYS_AFTER, FEED_DAYS_BEFORE, MAX_ENTRIES, ical};
use svc_core::crypto::sha256;
use svc_core::prelude::*;

use crate::dashboard::pages::customer_links::{address, link_version, version_of};
use crate::dashboard::prelude::*;
use crate::dashboard::site::Site;

/// The memory in which the file is made, in records: with 10,000 bookings and as many jobs before the latest are left out.
pub(crate) const MEMORY: u32 = 256;

/// Returns the calendar of the account whose address has the secret in the query.
pub(crate) async fn file(site: &Site, parts: &Parts) -> Result<PageResponse, PageError> {
    let query = Form::of(parts.uri.query().unwrap_or_default().as_bytes());
    let calendar = site.svc.calendar_feed(query.text("secret")).await?;
    let etag = format!("\"{}\"", &hex::encode(sha256(calendar.as_bytes()))[..32]);
    let known = parts.headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    if known.any(|tag| tag == "*" || tag == etag) {
        return Ok(PageResponse::not_modified(&etag));
    }
    Ok(PageResponse::file(ical::MEDIA_TYPE, calendar, &etag))
}

/// Returns the part of the page of the calendar on which owners manage the address.
pub(super) async fn card(cx: &Context<'_>, tenant: &Tenant) -> Result<Markup, PageError> {
    if !cx.may(Role::Owner) {
        return Ok(html! {});
    }
    let link = cx.svc.account(tenant.id).calendar_link().await?;
    Ok(html! {
        details.card.more open[link.is_some()] {
            summary { "Subscribe in another calendar" }
            div {
                p {
                    "Calendar programs show bookings and jobs from a secret address, with the names of contacts and the sites of jobs: \
                     from " (FEED_DAYS_BEFORE) " days ago to " (FEED_DAYS_AFTER) " days ahead, at most " (number(MAX_ENTRIES as u64)) ". \
                     Anyone with the address can read them without signing in."
                }
                @match &link {
                    None => { div.actions { (post_button(cx, "/calendar/address", "", version_of(None), "Create address")) } }
                    Some(link) => {
                        (copyable("calendar-address", "Address", &address(cx, link)))
                        p.hint { "Made " (time(cx.now, &tenant.time_zone, link.created_at)) "." }
                        div.actions {
                            (confirmed(cx, "Renew address", "The address that programs have now shows nothing any more. The new one \
                                has to be entered in each of them.", "/calendar/address", version_of(Some(link)), "Renew address"))
                            (confirmed(cx, "Revoke address", "The address shows nothing any more. This cannot be undone.",
                                "/calendar/address/revoke", version_of(Some(link)), "Revoke address"))
                        }
                    }
                }
            }
        }
    })
}

/// Makes the address, or another one in its place.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let create = submit(cx, tenant.id, "dashboard.create_calendar_address", (), async |tx, form| {
        let before = shared_links::get(tx, form.tenant, SharedLinkPurpose::Calendar, None).await?;
        form.check_version(&link_version(before.as_ref()))?;
        shared_links::share(tx, form.tenant, SharedLinkPurpose::Calendar, None, true).await.map(drop)
    });
    create.await.map_err(refusal)?;
    Ok(cx.see_other("/calendar?notice=calendar-address"))
}

/// Ends the address.
pub(crate) async fn revoke(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let revoke = submit(cx, tenant.id, "dashboard.revoke_calendar_address", (), async |tx, form| {
        let before = shared_links::get(tx, form.tenant, SharedLinkPurpose::Calendar, None).await?;
        form.check_version(&link_version(before.as_ref()))?;
        shared_links::revoke(tx, form.tenant, SharedLinkPurpose::Calendar, None).await?;
        Ok(())
    });
    revoke.await.map_err(refusal)?;
    Ok(cx.see_other("/calendar?notice=calendar-revoked"))
}
