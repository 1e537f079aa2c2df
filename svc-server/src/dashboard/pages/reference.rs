//! The API reference with a key that is made for trying requests out.

use std::time::Duration;

use maud::PreEscaped;
use svc_core::accounts::keys::{self, ApiKey, KeyCreate};
use svc_core::error::Error;

use crate::dashboard::prelude::*;

/// The name of the keys.
const NAME: &str = "API reference";
/// How many keys of the reference work at the same time in an account. They are a small share of the keys that it may have, which
/// owners alone make.
const MAX_KEYS: usize = 20;
/// How long a key works.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Offers a key.
pub(crate) async fn offer(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    if cx.site.reference.is_none() {
        return Err(PageError::NotFound);
    }
    let content = html! {
        (heading("Try the API", "The API reference sends requests to this server, in your browser.", html! {}))
        div.card.fields {
            p { "A key is made for it. The key reads the records of " (tenant.name) " and changes nothing, ends in an hour, and is \
                 listed among the API keys as " em { (NAME) } ". It stays in this tab, where the guides show it in their samples." }
            div.actions {
                (post_button(cx, "/reference", "primary", html! {}, "Open the reference with a key"))
                a.button href=(format!("{}/docs", cx.mount())) { "Without a key" }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Try the API", &content))
}

/// Makes a key and shows the reference with it. The key is part of this response alone.
pub(crate) async fn open(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let render = cx.site.reference.ok_or(PageError::NotFound)?;
    let input = KeyCreate { name: Some(NAME.to_owned()), write: false, expires_in: Some(LIFETIME), signed: false };
    let new = cx.svc.store().write("dashboard.create_reference_key", (tenant.id, input), async |tx, (tenant, input)| {
        let new = keys::create(tx, *tenant, input.clone()).await?;
        let now = tx.env().now();
        let is_live = |key: &&ApiKey| {
            key.name == input.name
                && key.revoked_at.is_none()
                && key.expires_at.is_some_and(|at| now < at && at.minus(LIFETIME) <= key.created_at)
        };
        // The key locked the account, so the count is exact.
        if tx.api_keys(*tenant).await?.iter().filter(is_live).count() > MAX_KEYS {
            return Err(Error::NotAllowed(format!(
                "{MAX_KEYS} keys of the API reference work at this moment. Each ends an hour after it was made: use one of them, \
                 revoke one under API keys, or open the reference without a key."
            )));
        }
        Ok(new)
    });
    let new = new.await?;
    let ends_at = new.key.expires_at.map(|at| tenant.time_zone.date_and_time_at(at)).unwrap_or_default();
    let bar = html! {
        "Requests use a key that reads the records of " (tenant.name) " until " (ends_at) ". "
        a href=(cx.url("/keys")) { "Back to the dashboard" }
    };
    let (page, policy) = render(cx.mount(), &bar.into_string(), new.text.reveal());
    Ok(PageResponse::page(PreEscaped(page)).policy(policy))
}
