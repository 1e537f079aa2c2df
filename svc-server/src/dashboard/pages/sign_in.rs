//! Signing in and out.

use http::request::Parts;
use maud::html;
use svc_core::accounts::dashboard_links;
use svc_core::accounts::sessions::NewSession;
use svc_core::error::Error;

use crate::dashboard::components::isolated;
use crate::dashboard::context::{self, Context, Form};
use crate::dashboard::page_response::{PageError, PageResponse};
use crate::dashboard::{Dashboard, consent, layout};

/// Shows the button that uses a link up. Opening the link alone does not: programs that check mail open links as well.
pub(in crate::dashboard) async fn show(dashboard: &Dashboard, parts: &Parts) -> Result<PageResponse, PageError> {
    let query = Form::of(parts.uri.query().unwrap_or_default().as_bytes());
    let token = query.given("token").map(str::to_owned);
    // Nothing else is repeated on the page.
    if token.as_deref().is_some_and(|token| !dashboard_links::is_token(token)) {
        let reason = "It is not whole. Copy all of the link, or ask for a new one.";
        return Err(PageError::UsedLink(reason.to_owned()));
    }
    let waiting = consent::waiting_app(dashboard, parts).await?;
    let content = html! {
        @if let Some(token) = token {
            p { "This link works once. It begins a session of at most twelve hours in this browser." }
            @if let Some(app) = &waiting {
                p { "After that you see what " (isolated(app.name.as_str())) " asks for." }
            }
            form method="post" action={ (dashboard.base) "/sign-in" } {
                input type="hidden" name="token" value=(token);
                button.primary type="submit" autofocus { "Sign in" }
            }
        } @else {
            @if let Some(app) = &waiting {
                p { (isolated(app.name.as_str())) " asks for access to an account. Sign in to see what it asks for." }
            }
            (layout::how_to_sign_in(dashboard))
        }
    };
    Ok(PageResponse::page(layout::card(dashboard, "Sign in", &content)))
}

/// Uses a link up and begins a session.
pub(in crate::dashboard) async fn use_link(
    dashboard: &Dashboard,
    parts: &Parts,
    form: &Form,
) -> Result<PageResponse, PageError> {
    let new = match dashboard.svc.dashboard().sign_in(form.text("token")).await {
        Err(Error::NotAllowed(reason)) => return Err(PageError::UsedLink(reason)),
        result => result?,
    };
    Ok(signed_in(dashboard, parts, &new, context::is_secure(parts)))
}

/// Responds to someone whose session has begun. `is_secure` says whether the browser came over TLS.
pub(super) fn signed_in(dashboard: &Dashboard, parts: &Parts, new: &NewSession, is_secure: bool) -> PageResponse {
    let session = &new.session;
    tracing::info!(session = %session.id, identity = session.identity, tenant = session.tenant_id.map(tracing::field::display), "signed in to the dashboard");
    let response = consent::after_sign_in(dashboard, parts);
    match context::session_cookie(new.token.reveal(), is_secure) {
        Some(cookie) => response.cookie(cookie),
        None => response,
    }
}

/// Ends the session.
pub(in crate::dashboard) async fn sign_out(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().sign_out(cx.session.id).await?;
    cx.dashboard.check_sessions();
    Ok(signed_out(cx))
}

/// Responds to someone whose session has ended.
pub(super) fn signed_out(cx: &Context<'_>) -> PageResponse {
    let response = PageResponse::see_other(&cx.url("/sign-in"));
    context::expired_session().into_iter().fold(response, PageResponse::cookie)
}
