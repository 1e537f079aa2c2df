//! A request of a person who is signed in, and what protects it: the cookie, the origin and the token of forms.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::Svc;
use svc_core::accounts::sessions::{Role, SESSION_LIFETIME, Session};
use svc_core::accounts::tenants::Tenant;
use svc_core::crypto::{hmac_sha256, sha256};
use svc_core::error::StoreError;
use svc_core::values::{TenantId, Timestamp};

use super::Dashboard;
use super::components::View;
use super::page_response::PageError;
use crate::kernel::peer::OverTls;

/// The cookie of a session.
const SESSION_COOKIE: &str = "svc_session";
/// What the name of a cookie begins with over TLS: a browser takes it from this host alone, and not from a neighbour below
/// the same domain. Without TLS, only a server on the machine of the browser should be used.
const SECURE_PREFIX: &str = "__Host-";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The number of fields of the largest form.
const MAX_FIELDS: usize = 500;
/// The size of the largest form that is read in place, in bytes. It takes 0.1 ms.
const SMALL_FORM: usize = 32 * 1024;

/// A request of a person who is signed in.
pub(super) struct Context<'a> {
    pub(super) dashboard: &'a Dashboard,
    /// What counts the requests of API keys.
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
    pub(super) problem: Option<RefusedForm<'a>>,
    /// The name of the account whose sandbox is shown.
    pub(super) sandbox_of: OnceLock<String>,
}

/// A form that the rules refused. The page that has the form is shown again, with the reason beside it.
pub(super) struct RefusedForm<'a> {
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

    /// Returns the path of the API in a host application, empty for none.
    pub(super) fn mount(&self) -> &str {
        self.dashboard.base.strip_suffix(super::PATH).unwrap_or_default()
    }

    /// Returns the URL of a page, such as `/keys`.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.dashboard.base)
    }

    /// Returns what it takes to render a part of a page of an account.
    pub(super) fn view<'v>(&'v self, tenant: &'v Tenant) -> View<'v> {
        View { base: &self.dashboard.base, now: self.now, zone: &tenant.time_zone }
    }

    /// Returns the id in the path. What is not an id cannot be found.
    pub(super) fn id<I: FromStr>(&self) -> Result<I, PageError> {
        self.id.and_then(|id| id.parse().ok()).ok_or(PageError::NotFound)
    }

    /// Returns whether the person has at least this role in the account that is shown.
    pub(super) fn may(&self, role: Role) -> bool {
        self.session.account().is_some_and(|(_, own)| own >= role)
    }
}

/// The fields of a form or of a query.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the fields of a form that was sent. A large one is read on a thread of its own.
    ///
    /// # Errors
    ///
    /// Returns [`PageError::Invalid`] when the form has more fields than a page can have.
    pub(super) async fn read(body: Bytes) -> Result<Self, PageError> {
        if body.iter().filter(|byte| **byte == b'&').count() >= MAX_FIELDS {
            return Err(PageError::Invalid(format!("A form has at most {MAX_FIELDS} fields.")));
        }
        if body.len() <= SMALL_FORM {
            return Ok(Self::of(&body));
        }
        let read = tokio::task::spawn_blocking(move || Self::of(&body));
        read.await.map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
    }

    /// Reads fields that are encoded as `application/x-www-form-urlencoded`.
    pub(super) fn of(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns a form with these fields.
    pub(super) fn from_fields(fields: Vec<(&str, String)>) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the value of a field without the spaces around it. A field that was not sent is empty.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    /// Returns all values of a field, in their order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns those of these fields that are not empty, encoded as a query.
    pub(super) fn encoded(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }

    /// Returns all fields but these in the encoding of forms.
    pub(super) fn encoded_without(&self, names: &[&str]) -> String {
        let others = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish()
    }

    /// Returns the value of a field that was sent and is not empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }
}

/// Returns the token in the cookie of the session.
pub(super) fn session_token(parts: &Parts) -> Option<String> {
    read_cookie(parts, SESSION_COOKIE).map(|(token, _)| token)
}

/// Returns the value of a cookie, and whether it is that over TLS, which nobody else can set. Where the browser came over TLS
/// no other counts: a neighbour below the same domain may have set it.
pub(super) fn read_cookie(parts: &Parts, name: &str) -> Option<(String, bool)> {
    let lines = parts.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let cookies: Vec<(&str, &str)> = lines.flat_map(|line| line.split(';')).filter_map(|c| c.split_once('=')).collect();
    let named = |prefix: &str, is_secure| {
        let is_named = |known: &str| known.trim().strip_prefix(prefix) == Some(name);
        cookies.iter().find(|(known, _)| is_named(known)).map(|(_, value)| (value.trim().to_owned(), is_secure))
    };
    named(SECURE_PREFIX, true).or_else(|| named("", false).filter(|_| !is_secure(parts)))
}

/// Returns whether the browser came over TLS, to this server or to a proxy in front of it. The origin of a form tells, and
/// `Sec-Fetch-Site`, which browsers send to this machine and over TLS alone (Fetch Metadata §2).
pub(super) fn is_secure(parts: &Parts) -> bool {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    parts.extensions.get::<OverTls>().is_some()
        || parts.headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
        || parts.headers.contains_key(FETCH_SITE) && !is_this_machine(host)
}

/// Returns whether a browser takes a host for that of its own machine, and so trusts it without TLS.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Returns the cookie that keeps a session.
pub(super) fn session_cookie(token: &str, is_secure: bool) -> Option<HeaderValue> {
    cookie(SESSION_COOKIE, token, is_secure, SESSION_LIFETIME)
}

/// Returns the cookies that end a session in the browser.
pub(super) fn expired_session() -> [HeaderValue; 2] {
    expired(SESSION_COOKIE)
}

/// Returns a cookie that scripts cannot read, and that another site sends only when it links here.
pub(super) fn cookie(name: &str, value: &str, is_secure: bool, lifetime: Duration) -> Option<HeaderValue> {
    let (prefix, secure) = if is_secure { (SECURE_PREFIX, "; Secure") } else { ("", "") };
    let lifetime = lifetime.as_secs();
    let cookie = format!("{prefix}{name}={value}{secure}; HttpOnly; SameSite=Lax; Path=/; Max-Age={lifetime}");
    HeaderValue::try_from(cookie).ok()
}

/// Returns the cookies that delete a cookie, with TLS and without.
#[expect(clippy::expect_used, reason = "the name of a cookie consists of ASCII")]
pub(super) fn expired(name: &str) -> [HeaderValue; 2] {
    [true, false].map(|is_secure| cookie(name, "", is_secure, Duration::ZERO).expect("a cookie"))
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
    fn over_tls_only_the_cookie_counts_that_a_neighbour_cannot_set() {
        let of = |list: &[(&'static str, &'static str)], is_over_tls: bool| {
            let (mut parts, ()) = http::Request::new(()).into_parts();
            parts.headers = headers(list);
            if is_over_tls {
                parts.extensions.insert(OverTls);
            }
            session_token(&parts)
        };
        let both = ("cookie", "svc_session=a; __Host-svc_session=b");
        let plain = ("cookie", "svc_session=a");
        let site = ("sec-fetch-site", "same-origin");
        for (list, is_over_tls, want) in [
            (&[plain][..], false, Some("a")),
            (&[both], false, Some("b")),
            (&[("cookie", "other=svc_session")], false, None),
            (&[plain], true, None),
            (&[both], true, Some("b")),
            (&[plain, ("origin", "https://svc.example")], false, None),
            (&[plain, site, ("host", "svc.example")], false, None),
            (&[both, site, ("host", "svc.example")], false, Some("b")),
            (&[plain, site, ("host", "localhost:8080")], false, Some("a")),
            (&[plain, site, ("host", "[::1]:8080")], false, Some("a")),
            (&[plain, site, ("host", "127.0.0.1")], false, Some("a")),
            (&[plain, site, ("host", "127.0.0.1.example")], false, None),
        ] {
            assert_eq!(of(list, is_over_tls).as_deref(), want, "{list:?} {is_over_tls}");
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
