//! The style, the script and the icon. Their paths have the digest of their content, so browsers keep them for good.

use bytes::Bytes;
use http::HeaderValue;
use svc_core::crypto::sha256;

use super::page_response::PageResponse;

const FILES: [(&str, &str, &str); 3] = [
    ("dashboard.css", "text/css; charset=utf-8", include_str!("assets/dashboard.css")),
    ("dashboard.js", "text/javascript; charset=utf-8", include_str!("assets/dashboard.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// The files with their paths.
pub(super) struct Assets {
    /// The path below `/dashboard` that all files have: `/assets/` and the digest of all of them.
    folder: String,
    /// The URL of the folder.
    url: String,
}

impl Assets {
    pub(super) fn new(base: &str) -> Self {
        let content: String = FILES.iter().map(|(_, _, content)| *content).collect();
        let digest = hex::encode(&sha256(content.as_bytes())[..8]);
        let folder = format!("/assets/{digest}/");
        Self { url: format!("{base}{folder}"), folder }
    }

    /// Returns the URL of a file.
    pub(super) fn url(&self, name: &str) -> String {
        format!("{}{name}", self.url)
    }

    /// Returns the file at a path below `/dashboard`.
    pub(super) fn find(&self, path: &str) -> Option<PageResponse> {
        let name = path.strip_prefix(self.folder.as_str())?;
        let (_, content_type, content) = FILES.iter().find(|(known, ..)| *known == name)?;
        Some(PageResponse::immutable(HeaderValue::from_static(content_type), Bytes::from_static(content.as_bytes())))
    }
}
