//! Signing in and out.

use http::request::Parts;
use svc_core::accounts::dashboard_links;
use svc_core::accounts::sessions::NewSession;
use svc_core::error::Error;

use crate::dashboard::consent;
use crate::dashboard::cookies;
use crate::dashboard::prelude::*;
use crate::dashboard::site::Site;

/// Shows the button that uses a link up. Opening the link alone does not: programs that check mail open links as well.
pub(crate) async fn show(site: &Site, parts: &Parts) -> Result<PageResponse, PageError> {
    let query = Form::of(parts.uri.query().unwrap_or_default().as_bytes());
    let token = query.given("token").map(str::to_owned);
    // Nothing else is repeated on the page.
    if token.as_deref().is_some_and(|token| !dashboard_links::is_token(token)) {
        let reason = "It is not whole. Copy all of the link, or ask for a new one.";
        return Err(PageError::UsedLink(reason.to_owned()));
    }
    let page = page_of(&query);
    let waiting = consent::waiting_app(site, parts).await?;
    let content = html! {
        @if let Some(token) = token {
            p { "This link works once. It begins a session in this browser, which ends after an hour without use and after twelve hours." }
            @if let Some(app) = &waiting {
                p { "After that you see what " (isolated(app.name.as_str())) " asks for." }
            }
            form method="post" action={ (site.base) "/sign-in" } {
                input type="hidden" name="token" value=(token);
                @if let Some(page) = page { input type="hidden" name="page" value=(page); }
                label.line { input type="checkbox" name="remember" value="on"; "Stay signed in on this device for 30 days" }
                button.primary type="submit" autofocus { "Sign in" }
            }
        } @else {
            @if let Some(app) = &waiting {
                p { (isolated(app.name.as_str())) " asks for access to an account. Sign in to see what it asks for." }
            }
            (layout::how_to_sign_in(site))
        }
    };
    Ok(PageResponse::page(layout::card(site, "Sign in", &content)))
}

/// Uses a link up and begins a session.
pub(crate) async fn use_link(site: &Site, parts: &Parts, form: &Form) -> Result<PageResponse, PageError> {
    let (dashboard, token) = (site.svc.dashboard(), form.text("token"));
    let new = match form.given("remember") {
        Some(_) => dashboard.sign_in_remembered(token).await,
        None => dashboard.sign_in(token).await,
    };
    let new = match new {
        Err(Error::NotAllowed(reason)) => return Err(PageError::UsedLink(reason)),
        result => result?,
    };
    Ok(signed_in(site, parts, &new, cookies::is_secure(parts), page_of(form)))
}

/// Returns the page of the dashboard to which a link leads, such as `/invoices/ID`. Of any other text nothing is repeated.
fn page_of(form: &Form) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    form.given("page").filter(|page| page.starts_with('/') && page.len() <= 200 && page.bytes().all(fits))
}

/// Responds to someone whose session has begun. `is_secure` says whether the browser came over TLS. The person sees `page` next,
/// or the overview, unless an app waits.
pub(super) fn signed_in(
    site: &Site,
    parts: &Parts,
    new: &NewSession,
    is_secure: bool,
    page: Option<&str>,
) -> PageResponse {
    let session = &new.session;
    tracing::info!(session = %session.id, identity = session.identity, tenant = session.tenant_id.map(tracing::field::display), "signed in to the dashboard");
    let response = consent::after_sign_in(site, parts, page.unwrap_or("/"));
    match cookies::session_cookie(new, is_secure) {
        Some(cookie) => response.cookie(cookie),
        None => response,
    }
}

/// Ends the session.
pub(crate) async fn sign_out(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().sign_out(cx.session.id).await?;
    cx.site.check_sessions();
    Ok(signed_out(cx))
}

/// Responds to someone whose session has ended.
pub(super) fn signed_out(cx: &Context<'_>) -> PageResponse {
    let response = cx.see_other("/sign-in");
    cookies::expired_session().into_iter().fold(response, PageResponse::cookie)
}
