//! A request of a person who is signed in, and what protects it: the origin and the token of forms.

use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use svc_core::Svc;
use svc_core::accounts::sessions::{Role, Session};
use svc_core::accounts::tenants::Tenant;
use svc_core::crypto::{hmac_sha256, sha256};
use svc_core::values::{TenantId, Timestamp};

use super::components::View;
use super::cookies::{FETCH_SITE, is_secure};
use super::form::Form;
use super::live::List;
use super::page_response::{PageError, PageResponse};
use super::site::Site;

/// A request of a person who is signed in.
pub(super) struct Context<'a> {
    pub(super) site: &'a Site,
    /// The facade, which acts as this person.
    pub(super) svc: Svc,
    pub(super) session: &'a Session,
    /// The head of the request.
    pub(super) parts: &'a Parts,
    /// The token that forms of this session contain.
    pub(super) csrf: String,
    pub(super) query: Form,
    /// The fields of a form that was sent. Empty for GET.
    pub(super) form: Form,
    /// The path below `/dashboard`.
    pub(super) path: &'a str,
    /// The id in the path.
    pub(super) id: Option<&'a str>,
    pub(super) now: Timestamp,
    /// The form of this page that was sent and refused.
    pub(super) problem: Option<FormProblem<'a>>,
    /// The name of the account whose sandbox is shown.
    pub(super) sandbox_of: OnceLock<String>,
}

/// A form that the rules refused. The page that has the form is shown again, with the reason beside it.
pub(super) struct FormProblem<'a> {
    /// The path below `/dashboard` to which the form was sent.
    pub(super) path: &'a str,
    /// The reason as a sentence.
    pub(super) reason: String,
    /// Whether a part of the page shows it already.
    pub(super) is_shown: AtomicBool,
}

impl Context<'_> {
    /// Returns why the form that was sent to `path` was refused, for a place beside this form.
    pub(super) fn problem_at(&self, path: &str) -> Option<&str> {
        let problem = self.problem.as_ref().filter(|problem| problem.path == path)?;
        problem.is_shown.store(true, Ordering::Relaxed);
        Some(&problem.reason)
    }

    /// Returns why a form was refused that the page does not have any more.
    pub(super) fn other_problem(&self) -> Option<&str> {
        let problem = self.problem.as_ref().filter(|problem| !problem.is_shown.load(Ordering::Relaxed))?;
        Some(&problem.reason)
    }

    /// Returns the address of this server as the browser of the person has it, without a slash at its end.
    pub(super) fn address(&self) -> String {
        let header = |name| self.parts.headers.get(name).and_then(|value| value.to_str().ok());
        let host = header(HOST).or_else(|| self.parts.uri.authority().map(Authority::as_str));
        // It is shown as a part of a command.
        let is_plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]_".contains(&b));
        let host = host.filter(is_plain).unwrap_or("localhost");
        let scheme = if is_secure(self.parts) { "https" } else { "http" };
        format!("{scheme}://{host}{}", self.mount())
    }

    /// Returns the address of this server as other people have it, without a slash at its end: the public one, if it is known.
    pub(super) fn public_address(&self) -> String {
        match &self.site.kernel.settings.public_url {
            Some(url) => format!("{}{}", url.trim_end_matches('/'), self.mount()),
            None => self.address(),
        }
    }

    /// Returns the path of the API in a host application, empty for none.
    pub(super) fn mount(&self) -> &str {
        self.site.mount()
    }

    /// Returns a redirect to a page, such as `/keys`.
    pub(super) fn see_other(&self, path: &str) -> PageResponse {
        PageResponse::see_other(&self.url(path))
    }

    /// Returns the URL of a page, such as `/keys`.
    pub(super) fn url(&self, path: &str) -> String {
        self.site.url(path)
    }

    /// Returns what it takes to render a part of a page of an account.
    pub(super) fn view<'v>(&'v self, tenant: &'v Tenant) -> View<'v> {
        View { base: &self.site.base, now: self.now, zone: &tenant.time_zone }
    }

    /// Returns the id in the path. Other texts are not found.
    pub(super) fn id<I: FromStr>(&self) -> Result<I, PageError> {
        self.id.and_then(|id| id.parse().ok()).ok_or(PageError::NotFound)
    }

    /// Returns whether the person has at least this role in the account that is shown.
    pub(super) fn may(&self, role: Role) -> bool {
        self.session.account().is_some_and(|(_, own)| own >= role)
    }

    /// Responds with a live list.
    pub(super) fn stream<L: List>(
        &self,
        tenant: &Tenant,
        scope: L::Scope,
        filter: L::Filter,
    ) -> Result<PageResponse, PageError> {
        // The token of forms is one for each session and account.
        self.site.live.respond::<L>(tenant.id, &self.csrf, self.may(Role::Developer), self.parts, scope, filter)
    }
}

/// Checks that a change comes from a page of this host. Browsers say so in `Sec-Fetch-Site`, and those that do not, or do
/// not over plain HTTP, in `Origin`.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), PageError> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_own = match text(&FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => {
            let origin = text(&ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
            origin.is_some() && origin == text(&HOST)
        }
    };
    if is_own { Ok(()) } else { Err(PageError::ForeignForm) }
}

/// Returns the token that forms of a session contain. It follows from the token of the session, which no other site knows,
/// and from the account that a member has chosen: a form that was open meanwhile changes nothing of the next one.
pub(super) fn csrf_token(session_token: &str, tenant: Option<TenantId>) -> String {
    let tenant = tenant.map(|tenant| tenant.0.into_bytes()).unwrap_or_default();
    hex::encode(hmac_sha256(session_token.as_bytes(), &[b"svc dashboard form", &tenant]))
}

/// Checks the token of a form. Digests are compared, so that the time of the comparison tells nothing.
pub(super) fn check_csrf(session_token: &str, tenant: Option<TenantId>, given: &str) -> Result<(), PageError> {
    let expected = csrf_token(session_token, tenant);
    if sha256(given.as_bytes()) == sha256(expected.as_bytes()) { Ok(()) } else { Err(PageError::ForeignForm) }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        for (own, list) in [
            (true, &[("host", "a.example"), ("sec-fetch-site", "same-origin")][..]),
            // A proxy may pass on another host than the browser asked for.
            (true, &[("host", "inner"), ("origin", "https://a.example"), ("sec-fetch-site", "same-origin")]),
            (true, &[("host", "localhost:8080"), ("origin", "http://localhost:8080")]),
            (false, &[("host", "a.example"), ("origin", "https://a.example"), ("sec-fetch-site", "same-site")]),
            (false, &[("host", "a.example"), ("sec-fetch-site", "cross-site")]),
            (false, &[("host", "a.example"), ("sec-fetch-site", "none")]),
            (false, &[("host", "a.example"), ("origin", "https://b.example")]),
            (false, &[("host", "a.example"), ("origin", "null")]),
            (false, &[("host", "a.example")]),
            (false, &[]),
        ] {
            assert_eq!(check_origin(&headers(list)).is_ok(), own, "{list:?}");
        }
    }

    #[test]
    fn a_form_needs_the_token_of_its_session() {
        let tenants = [None, Some(TenantId(uuid::Uuid::from_u128(1))), Some(TenantId(uuid::Uuid::from_u128(2)))];
        for tenant in tenants {
            assert!(check_csrf("one", tenant, &csrf_token("one", tenant)).is_ok());
            assert!(check_csrf("one", tenant, &csrf_token("other", tenant)).is_err());
            assert!(check_csrf("one", tenant, "").is_err());
        }
        assert!(check_csrf("one", tenants[1], &csrf_token("one", tenants[2])).is_err(), "a form of another account");
    }
}
