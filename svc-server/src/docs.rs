//! The API reference at `/docs`: the served OpenAPI document, shown by a viewer that runs in the browser. Beside it the
//! [guides] at `/docs/{name}`, their Markdown at `/docs/{name}.md`, and its index at `/llms.txt`.
//!
//! The viewer is Scalar, whose crate contains it, so the page asks no other host for anything, and its policy does not let
//! it. Requests that a reader tries out go to this server. The reader types the key for them, or the dashboard makes it for the
//! person who is signed in; it is stored in the tab alone, whose guides have it in their samples.

mod guides;

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use svc_core::crypto::sha256;

use crate::kernel::listener::{Kind, Route, Surface};
use crate::kernel::response::{self, ApiResponse, Outcome, escaped};
use crate::manual::{PAGES, Page};

use self::guides::Guide;

/// The page. `{mount}` stands for the path of the API in a host application, `{version}` for that of its operations,
/// `{bar}` for what is above the viewer beside the link to the guides, and `{key}` for the key of the reader.
const PAGE: &str = include_str!("docs/page.html");
/// The HTML above the viewer where the dashboard makes keys.
const OFFER: &str = "Try requests with a key of your own, or <a href=\"{mount}/dashboard/reference\">let the dashboard make \
     one for an hour</a>.";
const START: &str = include_str!("docs/start.js");
const SAMPLES: &str = include_str!("docs/samples.js");
const STYLES: &str = include_str!("docs/guides.css");
/// The viewer, compressed by `build.rs` in the one way that every browser takes.
const VIEWER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/viewer.js.gz"));
/// Lets the page have scripts of this server and requests to it. The viewer sets styles of its own, so those may be inline;
/// nothing else may.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; font-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// Lets a guide have the styles, pictures and scripts of this server, and a search.
const GUIDE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);
/// A picture has its own style, where it is shown alone.
const PICTURE_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
/// The window in which an owner consents has this policy too, so that the page sees how it ends.
const OPENER_POLICY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A file of the API reference.
#[derive(Clone, Copy)]
enum DocsFile {
    /// The page.
    Page,
    /// The script that starts the viewer.
    Start,
    /// The script of the guides, for their samples.
    Samples,
    /// The viewer.
    Viewer,
    /// The index of the documentation.
    Index,
    /// A guide.
    Guide(&'static Guide),
    /// The Markdown of a guide.
    Text(&'static Guide),
    /// The styles of the guides.
    Styles,
    /// A picture of the guides.
    Picture(&'static [u8]),
    /// A program that a guide links to.
    Program(&'static str),
    /// The search of the guides.
    Search,
    /// The page in place of one that there is not, in this many folders.
    Missing(usize),
}

impl DocsFile {
    /// Returns the file with this path.
    fn at(path: &str) -> Option<Self> {
        match path {
            "/docs" | "/docs/" => Some(Self::Page),
            "/docs/guides.css" => Some(Self::Styles),
            "/docs/search" => Some(Self::Search),
            "/docs/start.js" => Some(Self::Start),
            "/docs/samples.js" => Some(Self::Samples),
            "/docs/viewer.js" => Some(Self::Viewer),
            "/llms.txt" => Some(Self::Index),
            _ => {
                let name = path.strip_prefix("/docs/")?;
                if let Some(picture) = name.strip_prefix("pictures/") {
                    return guides::picture(picture).map(Self::Picture);
                }
                if let Some(program) = name.strip_prefix("programs/") {
                    return guides::program(program).map(Self::Program);
                }
                match name.strip_suffix(".md") {
                    Some(name) => guides::guide(name).map(Self::Text),
                    None if name.contains('.') => None,
                    None => Some(guides::guide(name).map_or(Self::Missing(name.matches('/').count()), Self::Guide)),
                }
            }
        }
    }
}

/// The files of the API reference.
pub(crate) struct Docs {
    page: Bytes,
    index: Bytes,
    /// The ETag of the viewer, which has more than a megabyte, so it is computed when somebody asks for it.
    viewer_etag: OnceLock<String>,
}

impl Docs {
    /// Returns the reference of the operations whose paths begin with `base`. `has_dashboard` says whether the dashboard makes keys for it.
    pub(crate) fn new(mount: &str, base: &str, has_dashboard: bool) -> Self {
        let bar = if has_dashboard { OFFER.replace("{mount}", &escaped(mount)) } else { String::new() };
        let (page, index) = (page(mount, base, &bar, "").into(), index(mount, base).into());
        Self { page, index, viewer_etag: OnceLock::new() }
    }

    /// Returns a file. `query` is the query of the request, and `known` are the ETags that the client has.
    fn response(&self, file: DocsFile, query: &str, known: &[String]) -> Outcome {
        let mut headers = HeaderMap::new();
        let policy = match file {
            DocsFile::Guide(_) | DocsFile::Search | DocsFile::Missing(_) => GUIDE_POLICY,
            DocsFile::Picture(_) => PICTURE_POLICY,
            _ => POLICY,
        };
        let (kind, body) = match file {
            DocsFile::Page => (HTML, self.page.clone()),
            DocsFile::Start => (SCRIPT, Bytes::from_static(START.as_bytes())),
            DocsFile::Samples => (SCRIPT, Bytes::from_static(SAMPLES.as_bytes())),
            DocsFile::Index => (TEXT, self.index.clone()),
            DocsFile::Guide(guide) => (HTML, Bytes::from_static(guide.html.as_bytes())),
            DocsFile::Text(guide) => (TEXT, Bytes::from_static(guide.text.as_bytes())),
            DocsFile::Styles => (CSS, Bytes::from_static(STYLES.as_bytes())),
            DocsFile::Picture(picture) => (SVG, Bytes::from_static(picture)),
            DocsFile::Program(program) => (TEXT, Bytes::from_static(program.as_bytes())),
            DocsFile::Search => {
                let words = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "q");
                (HTML, guides::results(&words.map(|(_, words)| words).unwrap_or_default()).into())
            }
            DocsFile::Missing(folders) => (HTML, guides::missing(folders).into()),
            DocsFile::Viewer => {
                let etag = self.viewer_etag.get_or_init(|| format!("\"{}\"", hex::encode(&sha256(VIEWER)[..16])));
                if known.contains(etag) {
                    return Outcome::Api(ApiResponse::not_modified(etag.clone()));
                }
                // Hex in quotes is a valid header value.
                let _ = HeaderValue::try_from(etag).map(|etag| headers.insert(ETAG, etag));
                headers.insert(CONTENT_ENCODING, GZIP);
                (SCRIPT, Bytes::from_static(VIEWER))
            }
        };
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers.extend([OPENER_POLICY]);
        let status = if matches!(file, DocsFile::Missing(_)) { StatusCode::NOT_FOUND } else { StatusCode::OK };
        Outcome::http(status, headers, body)
    }
}

impl Surface for Docs {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let file = DocsFile::at(parts.uri.path())?;
        let query = parts.uri.query().unwrap_or_default();
        let respond =
            move |_| async move { Ok(self.response(file, query, &response::tags(&parts.headers, IF_NONE_MATCH))) };
        Some(Route::read(Kind::Page, parts, respond))
    }
}

/// Returns the page with this HTML above the viewer, and a key for requests from the page; and the policy that it needs.
pub(crate) fn page_with_key(mount: &str, base: &str, bar: &str, key: &str) -> (String, HeaderValue) {
    (page(mount, base, bar, key), POLICY)
}

/// Returns the page. `bar` is the HTML above the viewer, and `key` the key for requests from the page, empty for one
/// that the reader types.
fn page(mount: &str, base: &str, bar: &str, key: &str) -> String {
    let page = PAGE.replace("{version}", base).replace("{mount}", &escaped(mount)).replace("{key}", key);
    page.replace("{bar}", bar)
}

/// Returns the index of the pages (<https://llmstxt.org>). `mount` is the path of the API in a host application.
fn index(mount: &str, base: &str) -> String {
    let mut text = String::from(
        "# svc\n\n\
         > A server for business records: contacts, invoices, quotes, bookings and jobs of many accounts, as JSON over HTTP, \
         with webhooks about every change.\n\n",
    );
    text.push_str("## Documentation\n\n");
    for Page { name, about, .. } in PAGES {
        text.push_str(&format!("- [{name}]({mount}/docs/{name}.md): {about}\n"));
    }
    text.push_str("\n## For machines\n\n");
    text.push_str(&format!("- [OpenAPI]({mount}{}/openapi.json): every operation with its schemas.\n", base));
    text
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    const BASE: &str = "/api/v1";

    /// Returns the headers and the body of a file.
    fn file(docs: &Docs, file: DocsFile) -> (HeaderMap, Bytes) {
        let Outcome::Http(response) = docs.response(file, "", &[]) else { panic!("the client has no file yet") };
        let (parts, body) = response.into_parts();
        (parts.headers, body.collect().now_or_never().unwrap().unwrap().to_bytes())
    }

    #[test]
    fn the_crate_contains_the_viewer() {
        let docs = Docs::new("", BASE, true);
        let (headers, script) = file(&docs, DocsFile::Viewer);
        assert!(script.starts_with(&[0x1f, 0x8b]) && (500_000..2_000_000).contains(&script.len()), "{}", script.len());
        assert_eq!(headers[CONTENT_ENCODING], GZIP);
        let etag = headers[ETAG].to_str().unwrap().to_owned();
        match docs.response(DocsFile::Viewer, "", std::slice::from_ref(&etag)) {
            Outcome::Api(response) => assert_eq!(response, ApiResponse::not_modified(etag)),
            Outcome::Http(_) => panic!("the client has the viewer"),
        }
    }

    #[test]
    fn the_page_names_the_files_and_the_document_below_its_mount() {
        let (_, page) = file(&Docs::new("/a\"b", BASE, true), DocsFile::Page);
        let page = std::str::from_utf8(&page).unwrap();
        for path in
            ["/docs/viewer.js", "/docs/start.js", "/docs/guides", "/api/v1/openapi.json", "/dashboard/reference"]
        {
            assert!(page.contains(&format!("\"/a&quot;b{path}\"")), "{path}: {page}");
        }
        assert!(!page.contains("://"), "no other host: {page}");
    }

    #[test]
    fn a_page_that_there_is_not_leads_to_those_that_there_are() {
        let docs = Docs::new("", BASE, true);
        for (path, root) in [("/docs/unknown", ""), ("/docs/operations/unknown", "../")] {
            let found = DocsFile::at(path).unwrap();
            let Outcome::Http(response) = docs.response(found, "", &[]) else { panic!("{path}") };
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
            let (_, page) = file(&docs, found);
            let page = std::str::from_utf8(&page).unwrap();
            assert!(page.contains("There is no such page"), "{page}");
            assert!(page.contains(&format!("href=\"{root}webhooks\"")), "{page}");
        }
        for ending in ["md", "js"] {
            assert!(DocsFile::at(&format!("/docs/unknown.{ending}")).is_none(), "{ending}");
        }
    }

    #[test]
    fn the_index_links_to_each_page() {
        let index = index("/business", BASE);
        for page in PAGES {
            assert!(index.contains(&format!("(/business/docs/{}.md)", page.name)), "{index}");
        }
    }
}
