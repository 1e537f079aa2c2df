//! Signing in at an identity provider.

use http::StatusCode;
use http::header::ORIGIN;
use http::request::Parts;
use svc_core::error::Error;

use super::sign_in;
use crate::dashboard::oidc::{Attempt, Provider, Refusal};
use crate::dashboard::prelude::*;
use crate::dashboard::site::Site;
use crate::kernel::origin::Origin;

/// Sends the browser to the provider.
pub(crate) async fn start(site: &Site, parts: &Parts) -> Result<PageResponse, PageError> {
    let provider = site.provider.as_ref().ok_or(PageError::NotFound)?;
    let origin = parts.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()?.parse::<Origin>().ok());
    let origin =
        origin.ok_or_else(|| PageError::Invalid("The browser did not say from which address it came.".to_owned()))?;
    let env = site.svc.store().env();
    let attempt = Attempt::new(env, origin);
    let url = provider.sign_in_url(&attempt, env.now()).await.map_err(|refusal| failure(provider, &refusal))?;
    let content = html! {
        p { "You go on to " b { (provider.host()) } " to sign in." }
        p { a.button href=(url) { "Continue" } }
    };
    let response = PageResponse::page(layout::card(site, "Sign in", &content)).go_on_to(&url);
    Ok(match attempt.cookie() {
        Some(cookie) => response.cookie(cookie),
        None => response,
    })
}

/// Takes the answer of the provider, which comes once.
pub(crate) async fn callback(site: &Site, parts: &Parts) -> Result<PageResponse, PageError> {
    let provider = site.provider.as_ref().ok_or(PageError::NotFound)?;
    let response = match sign_in(site, provider, parts).await {
        Err(internal @ PageError::Internal(_)) => return Err(internal),
        result => result.unwrap_or_else(|error| layout::error_page(site, &error)),
    };
    Ok(Attempt::forgotten().into_iter().fold(response, PageResponse::cookie))
}

async fn sign_in(site: &Site, provider: &Provider, parts: &Parts) -> Result<PageResponse, PageError> {
    let query = Form::of(parts.uri.query().unwrap_or_default().as_bytes());
    let Some(attempt) = Attempt::answered(parts, query.text("state")) else {
        let reason = "Signing in was begun in another browser or more than ten minutes ago, or this page was opened twice. \
            Begin again.";
        return Err(PageError::NotSignedIn(StatusCode::BAD_REQUEST, reason.to_owned()));
    };
    let now = site.svc.store().env().now();
    let checked = provider.check_issuer(query.given("iss"), now).await;
    checked.map_err(|refusal| failure(provider, &refusal))?;
    if let Some(error) = query.given("error") {
        let error: String = error.chars().take(100).collect();
        tracing::warn!(provider = provider.host(), error, "the identity provider did not sign a person in");
        let reason = format!(
            "The identity provider refused ({error}). Try again, or ask whoever manages your account there to let you use \
             this service."
        );
        return Err(PageError::NotSignedIn(StatusCode::FORBIDDEN, reason));
    }
    let is_secure = attempt.is_secure();
    let verified = provider.verified_email(attempt, query.text("code"), now).await;
    let email = verified.map_err(|refusal| failure(provider, &refusal))?;
    let new = match site.svc.dashboard().sign_in_member(email).await {
        Err(Error::NotAllowed(reason)) => return Err(PageError::NotSignedIn(StatusCode::FORBIDDEN, reason)),
        result => result?,
    };
    Ok(sign_in::signed_in(site, parts, &new, is_secure, None))
}

/// Logs why the provider did not sign a person in, and returns the page that says what to do.
fn failure(provider: &Provider, refusal: &Refusal) -> PageError {
    tracing::warn!(provider = provider.host(), error = %refusal, "the identity provider did not sign a person in");
    let (status, reason) = match refusal {
        Refusal::Provider(_) => (
            StatusCode::BAD_GATEWAY,
            "The identity provider did not respond as expected. Try again in a minute. If that does not help, the operator of \
             this service finds the cause in its log.",
        ),
        Refusal::Token(_) => (
            StatusCode::BAD_GATEWAY,
            "The response of the identity provider could not be verified. Try again. If that does not help, the operator of \
             this service finds the cause in its log.",
        ),
        Refusal::UnverifiedEmail => (
            StatusCode::FORBIDDEN,
            "The identity provider has no verified email address of you, or does not tell it. Verify your address there and \
             sign in again.",
        ),
    };
    PageError::NotSignedIn(status, reason.to_owned())
}
