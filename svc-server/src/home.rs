//! The response to `GET /`: a short page for a browser, and JSON for everyone else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use svc_core::crypto::sha256;

use crate::kernel::accept;
use crate::kernel::listener::{Kind, Route, Surface};
use crate::kernel::response::{Outcome, escaped};

/// The page. `{style}` stands for [`STYLE`], and `{mount}` for the path of the API in a host application.
const PAGE: &str = include_str!("home/page.html");
const STYLE: &str = include_str!("home/style.css");
/// The link to the API reference.
const DOCS: &str = "<li><a href=\"{mount}/docs\">API reference</a>: the same in a browser, with examples in curl, Python, \
     JavaScript and\nRust, and requests that you can try out with your key</li>\n<li><a href=\"{mount}/docs/guides\">Guides</a>: webhooks, keys, limits, and how to \
     run the server</li>\n";
/// The link to the dashboard.
const DASHBOARD: &str = "<li><a href=\"{mount}/dashboard\">Dashboard</a>: keys, webhooks and deliveries of your account, \
     with a link to sign in\nthat the operator of this server gives you</li>\n";
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The pages besides, to which the root links.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) docs: bool,
    pub(crate) dashboard: bool,
}

/// The content of the root, in both forms.
pub(crate) struct Home {
    html: Bytes,
    /// Lets the page have its own style and nothing else: no script, no other host, no frame around it.
    policy: HeaderValue,
    json: Bytes,
}

impl Home {
    /// Renders both forms. `mount` is the path of the API in a host application, empty for none.
    pub(crate) fn new(mount: &str, pages: &Pages) -> Self {
        let links = [(pages.docs, DOCS), (pages.dashboard, DASHBOARD)];
        let links: String = links.iter().filter(|(is_served, _)| *is_served).map(|(_, link)| *link).collect();
        let html = PAGE.replace("{style}", STYLE).replace("{pages}", &links).replace("{mount}", &escaped(mount));
        let style = STANDARD.encode(sha256(STYLE.as_bytes()));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let mut json = json!({
            "name": "svc",
            "api": format!("{mount}/api/v1"),
            "openapi": format!("{mount}/api/v1/openapi.json"),
        });
        if pages.docs {
            json["docs"] = format!("{mount}/docs").into();
        }
        if pages.dashboard {
            json["dashboard"] = format!("{mount}/dashboard").into();
        }
        Self {
            html: html.into(),
            // Base64 is a valid header value, so the fallback is never used.
            policy: HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
            json: format!("{json}\n").into(),
        }
    }

    /// Returns the form that the client prefers.
    fn response(&self, request: &HeaderMap) -> Outcome {
        let mut headers = HeaderMap::new();
        headers.insert(VARY, HeaderValue::from_static("accept"));
        if !prefers_html(request) {
            return Outcome::ok(headers, self.json.clone());
        }
        headers.insert(CONTENT_TYPE, HTML);
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        Outcome::ok(headers, self.html.clone())
    }
}

impl Surface for Home {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let route = || Route::read(Kind::Other, parts, |_| async { Ok(self.response(&parts.headers)) });
        (parts.uri.path() == "/").then(route)
    }
}

/// Returns whether `Accept` names HTML with a higher weight than JSON, or with the same and before it. Wildcards count for
/// nothing, as every program sends them.
fn prefers_html(request: &HeaderMap) -> bool {
    let (mut preferred, mut highest) = (false, 0.0);
    for (range, weight) in accept::ranges(request) {
        let is_html = match range.as_str() {
            "text/html" => true,
            "application/json" => false,
            _ => continue,
        };
        if weight > highest {
            (preferred, highest) = (is_html, weight);
        }
    }
    preferred
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn only_a_client_that_prefers_html_gets_it() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
        for (html, accept) in [
            (true, browser),
            (true, "text/html"),
            (true, "TEXT/HTML; charset=utf-8; q=0.5, application/json;q=0.4"),
            (true, "text/html, application/json"),
            (true, "*/*, text/html;q=0.1"),
            (false, ""),
            (false, "*/*"),
            (false, "text/*"),
            (false, "application/json, text/plain, */*"),
            (false, "application/json, text/html"),
            (false, "text/html;q=0.8, application/json"),
            (false, "text/html;q=0"),
            (false, "text/html;q=high"),
            (false, "text/htmlx"),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(prefers_html(&headers), html, "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn the_policy_allows_the_style_of_the_page_alone() {
        let home = Home::new("", &Pages::default());
        let page = std::str::from_utf8(&home.html).unwrap();
        let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
        let digest = STANDARD.encode(sha256(style.as_bytes()));
        assert!(home.policy.to_str().unwrap().contains(&format!("style-src 'sha256-{digest}';")), "{:?}", home.policy);
    }

    #[test]
    fn a_mount_path_is_escaped() {
        let page = Home::new("/a\"><b>&", &Pages::default()).html;
        assert!(std::str::from_utf8(&page).unwrap().contains("\"/a&quot;&gt;&lt;b&gt;&amp;/api/v1/openapi.json\""));
    }
}
