//! The pages at shared links: an invoice or a quote for its customer, who does not sign in.
//!
//! The address is `/share/` and the secret, so the secret is all that a request needs, also one that accepts or declines a quote. No other
//! site knows it, so its form needs no token and no origin; browsers send `null` as the origin because of the policy against referrers.
//! Logs have the path without the secret. All addresses that show nothing get the same page.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use maud::{Markup, html};
use svc_core::accounts::dashboard_links::is_token;
use svc_core::accounts::shared_links::PAGES;
use svc_core::error::Error;
use svc_core::resources::quotes::Quote;
use svc_core::shared_documents::{self, Decision, Document, Opened, SharedDocument};

use super::form::Form;
use super::forms::{VERSION, version_field};
use super::page_response::PageResponse;
use super::paper;
use super::site::Site;
use crate::kernel::response::ResponseBody;

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// Keeps the address of a page out of caches, search engines, and the requests of links that are followed.
pub(super) fn protect(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Counts a request for the address with this secret by its head. `None` if its body is to be read.
pub(super) async fn refused(site: &Site, secret: &str, peer: IpAddr) -> Option<PageResponse> {
    let limits = &site.kernel.limits;
    if let Err(limited) = limits.count(limits.pages_of_peer(peer), site.kernel.now()).await {
        return Some(too_many(site, limited.retry_after));
    }
    (!is_token(secret)).then(|| nothing(site))
}

/// Returns the page in place of a form that is too large.
pub(super) fn too_large(site: &Site) -> PageResponse {
    let text = "The form is too large, so nothing was decided. Go back and load the page again.";
    paper::notice(site, "The form was not accepted", text).status(StatusCode::PAYLOAD_TOO_LARGE)
}

/// Responds at the address with this secret. `form` is the body of a POST.
pub(super) async fn respond(site: &Site, parts: &Parts, secret: &str, form: Bytes) -> PageResponse {
    let responded = match parts.method {
        Method::GET | Method::HEAD => show(site, secret, None).await,
        Method::POST => decide(site, secret, form).await,
        _ => {
            let text = "This address does not take such a request.";
            Ok(paper::notice(site, "Not possible", text).not_allowed("GET, HEAD, POST"))
        }
    };
    match responded {
        Ok(page) => page,
        Err(Error::NotFound) => nothing(site),
        Err(error) => {
            tracing::error!(path = PAGES, %error, "the store failed a page of the dashboard");
            let text = "A decision may not have been recorded. Load the page again in a moment to see.";
            paper::notice(site, "Not available", text).status(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

/// Shows the document of a link. `problem` is why the decision about it was refused.
async fn show(site: &Site, secret: &str, problem: Option<&str>) -> Result<PageResponse, Error> {
    let opened = site
        .svc
        .store()
        .read("share.open", secret.to_owned(), async |tx, secret| shared_documents::open(tx, secret).await);
    Ok(match opened.await? {
        Opened::Document(document) => paper::page(site, &document, &actions(&document, problem)),
        Opened::Unavailable => unavailable(site),
    })
}

/// Records the decision in a form, and shows the quote again.
async fn decide(site: &Site, secret: &str, form: Bytes) -> Result<PageResponse, Error> {
    let form = Form::read(form).await.unwrap_or_default();
    let decision = match form.text("decision") {
        "accept" => Decision::Accept,
        "decline" => Decision::Decline,
        _ => {
            let page = show(site, secret, Some("Choose whether you accept or decline the quote.")).await?;
            return Ok(page.status(StatusCode::UNPROCESSABLE_ENTITY));
        }
    };
    let input = (secret.to_owned(), decision, form.text(VERSION).to_owned());
    let decided = site.svc.store().write("share.decide", input, async |tx, (secret, decision, shown)| {
        shared_documents::decide(tx, secret, *decision, shown).await
    });
    let reason = match decided.await {
        // A page that is loaded again sends no form.
        Ok(Opened::Document(_)) => {
            let path = format!("{}{PAGES}{secret}", site.mount());
            return Ok(PageResponse::see_other(&path));
        }
        Ok(Opened::Unavailable) => return Ok(unavailable(site)),
        Err(Error::PreconditionFailed) => {
            "The quote was changed after you opened this page, so nothing was decided. Check it, and decide again."
                .to_owned()
        }
        Err(Error::NotAllowed(reason)) => reason,
        Err(error) => return Err(error),
    };
    Ok(show(site, secret, Some(&reason)).await?.status(StatusCode::CONFLICT))
}

/// Returns what a customer can do with a document.
fn actions(shown: &SharedDocument, problem: Option<&str>) -> Markup {
    html! {
        @if let Some(reason) = problem { p.banner.bad role="alert" { (reason) } }
        div.actions {
            @if let Document::Quote(quote) = &shown.document && shown.awaits_decision() {
                (confirmed("Accept", "primary", "accept", quote, &shown.tenant.name))
                (confirmed("Decline", "danger", "decline", quote, &shown.tenant.name))
            }
            button.js type="button" data-print { "Print" }
        }
    }
}

/// Returns a form behind a button, which asks before it is sent.
fn confirmed(label: &str, class: &str, decision: &str, quote: &Quote, business: &str) -> Markup {
    let total = quote.total.in_currency(quote.currency);
    html! {
        details.confirm {
            summary class={ "button " @if class == "primary" { (class) } } { (label) }
            form method="post" {
                p { (label) " quote " (quote.quote_number) " of " (business) ", " (total) "? You cannot take it back here." }
                input type="hidden" name="decision" value=(decision);
                (version_field(quote.updated_at))
                button class=(class) type="submit" { (label) " the quote" }
            }
        }
    }
}

/// Returns the page of every address that shows nothing.
fn nothing(site: &Site) -> PageResponse {
    let text = "There is nothing at this address, or no longer: ask the business that gave it to you for a new one.";
    paper::notice(site, "Nothing here", text).status(StatusCode::NOT_FOUND)
}

/// Returns the page of the links of a suspended account.
fn unavailable(site: &Site) -> PageResponse {
    let text = "This page is not available at the moment. Ask the business that gave you the address.";
    paper::notice(site, "Not available", text).status(StatusCode::FORBIDDEN)
}

fn too_many(site: &Site, wait: Duration) -> PageResponse {
    let (status, title, text) =
        (StatusCode::TOO_MANY_REQUESTS, "Too many requests", "Wait a minute, then load the page again.");
    paper::notice(site, title, text).status(status).retry_after(wait)
}
