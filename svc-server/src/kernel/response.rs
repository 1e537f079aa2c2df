//! Responses: what an operation returns, the body as it is sent, and the headers that every response has.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;
use svc_core::operation;
use svc_core::values::Timestamp;

use crate::kernel::problem::Problem;
use crate::kernel::response_memory::{MemoryPermit, Reader, ResponseMemory};

/// The initial capacity of a header map. No response has more headers.
const HEADER_CAPACITY: usize = 20;
/// The `Cache-Control` of reads: only the client may cache the record, and it revalidates with the ETag.
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// The `Cache-Control` of writes, whose responses may hold a secret.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The same for responses with an ETag: a proxy that compresses a response makes its ETag weak, which `If-Match` refuses.
const REVALIDATE_UNCHANGED: HeaderValue = HeaderValue::from_static("private, no-cache, no-transform");
const NO_STORE_UNCHANGED: HeaderValue = HeaderValue::from_static("no-store, no-transform");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_ACTIVE_CONTENT: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The status, body and particular headers of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiResponse {
    /// The status.
    pub status: StatusCode,
    /// The JSON body, empty for 204.
    pub body: Bytes,
    /// The value of `Location`: the path of the created record.
    pub location: Option<String>,
    /// The value of `ETag`: the strong tag of the record.
    pub etag: Option<String>,
    /// Whether this is the stored response to an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl ApiResponse {
    /// Creates a response with a JSON body.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when `value` cannot be serialized.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, StoreError> {
        let body = serde_json::to_vec(value).map_err(|error| StoreError::Internal(error.to_string()))?;
        Ok(Self::of_json(status, body))
    }

    /// Creates a response with a JSON body that was written.
    pub(crate) fn of_json(status: StatusCode, mut body: Vec<u8>) -> Self {
        // The prompt of a shell does not follow the response of `curl` on its line.
        body.push(b'\n');
        Self { status, body: body.into(), location: None, etag: None, replayed: false }
    }

    /// Returns the 304 response in place of this one if `If-None-Match` names its ETag.
    #[must_use]
    pub fn unless_unmodified(self, if_none_match: &[String]) -> Self {
        match self.etag {
            Some(etag) if is_unmodified(if_none_match, &etag) => Self::not_modified(etag),
            etag => Self { etag, ..self },
        }
    }

    /// Creates a 304 response: the client has the representation with this ETag.
    pub fn not_modified(etag: String) -> Self {
        Self { status: StatusCode::NOT_MODIFIED, etag: Some(etag), ..Self::no_content() }
    }

    /// Creates a 204 response.
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Bytes::new(), location: None, etag: None, replayed: false }
    }

    /// Adds the ETag of the body.
    #[must_use]
    pub fn with_etag(mut self) -> Self {
        self.etag = Some(etag(&self.body));
        self
    }

    /// Converts the response to the form that is stored with an idempotency key.
    pub fn to_stored(&self, fingerprint: [u8; 32], created_at: Timestamp) -> StoredResponse {
        StoredResponse {
            fingerprint,
            status: self.status.as_u16(),
            location: self.location.clone(),
            etag: self.etag.clone(),
            body: self.body.to_vec(),
            created_at,
        }
    }

    /// Converts a stored response back, marked as replayed.
    pub fn from_stored(stored: StoredResponse) -> Self {
        Self {
            status: StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK),
            body: stored.body.into(),
            location: stored.location,
            etag: stored.etag,
            replayed: true,
        }
    }
}

/// Returns the strong ETag of a version of a record: its id, when it last changed, and this version of the program, as another may
/// write the record differently.
pub(crate) fn version_etag((id, updated_at): operation::Version) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("\"{}-{:x}-{version}\"", id.simple(), updated_at.as_micros())
}

/// Returns the strong ETag of any other representation: 128 bits of its SHA-256 in hex.
pub(crate) fn etag(representation: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&sha256(representation)[..16]))
}

/// Returns whether `If-None-Match` names an ETag. The comparison is weak (RFC 9110 §13.1.2).
pub(crate) fn is_unmodified(if_none_match: &[String], etag: &str) -> bool {
    if_none_match.iter().any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Returns the tags of a conditional header, which may be repeated.
pub(crate) fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
}

/// The outcome of a request that did not fail.
pub(crate) enum Outcome {
    /// The response of an operation, or another one in JSON.
    Api(ApiResponse),
    /// Any other response, such as a page or a file.
    Http(Response<ResponseBody>),
}

impl Outcome {
    /// Returns a successful response with these headers.
    pub(crate) fn ok(headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self::http(StatusCode::OK, headers, body)
    }

    /// Returns a response with this status and these headers.
    pub(crate) fn http(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        let mut response = Response::new(ResponseBody::from(body.into()));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Self::Http(response)
    }

    /// Returns a response without a body, with these headers.
    pub(crate) fn no_content(headers: HeaderMap) -> Self {
        Self::http(StatusCode::NO_CONTENT, headers, Bytes::new())
    }

    /// Returns a response with the methods of the server as a whole, as a value of `Allow`.
    pub(crate) fn options(methods: &str) -> Self {
        let mut headers = HeaderMap::new();
        // Methods are valid header values.
        let _ = HeaderValue::try_from(methods).map(|methods| headers.insert(ALLOW, methods));
        Self::no_content(headers)
    }
}

/// Escapes a text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Adds the headers that keep browsers from running a response as a document and shared caches from storing it. A page has
/// a `Content-Security-Policy` of its own.
pub(crate) fn add_security_headers(method: &Method, headers: &mut HeaderMap) {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let cache_control = match (is_read, headers.contains_key(ETAG)) {
        (true, false) => REVALIDATE,
        (true, true) => REVALIDATE_UNCHANGED,
        (false, false) => NO_STORE,
        (false, true) => NO_STORE_UNCHANGED,
    };
    headers.entry(CACHE_CONTROL).or_insert(cache_control);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NO_ACTIVE_CONTENT);
}

/// Converts the result of a request with this method to an HTTP response.
pub(crate) fn render(method: &Method, result: Result<Outcome, Problem>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.headers_mut() = HeaderMap::with_capacity(HEADER_CAPACITY);
    let body;
    let headers = response.headers_mut();
    // ETags and locations consist of hex, UUIDs and fixed paths, so they are valid header values.
    let mut put =
        |name: HeaderName, value: String| HeaderValue::try_from(value).map(|value| headers.insert(name, value));
    let status = match result {
        Ok(Outcome::Api(response)) => {
            let _ = response.etag.map(|etag| put(ETAG, etag));
            let _ = response.location.map(|location| put(LOCATION, location));
            if response.replayed {
                let _ = put(REPLAYED, "true".to_owned());
            }
            body = response.body.into();
            response.status
        }
        Ok(Outcome::Http(response)) => {
            let (parts, content) = response.into_parts();
            headers.extend(parts.headers);
            body = content;
            parts.status
        }
        Err(problem) => {
            headers.extend(problem.headers());
            body = problem.body().into();
            problem.status()
        }
    };
    *response.status_mut() = status;
    let length = body.length();
    if length != Some(0) {
        let headers = response.headers_mut();
        headers.entry(CONTENT_TYPE).or_insert(JSON);
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        // HTTP/1.1 would leave the body of HEAD out by itself, but HTTP/2 sends what it is given.
        if *method != Method::HEAD {
            *response.body_mut() = body;
        }
    }
    response
}

/// The body of a response.
///
/// It is known as a whole, but for the live lists and the files of the dashboard: these send their parts as they come, and have
/// no `Content-Length`. A file that cannot be read to its end fails, so that nobody takes the beginning for all of it.
#[derive(Default)]
pub struct ResponseBody(Content);

enum Content {
    Whole(Full<Bytes>),
    Stream(BoxStream<'static, io::Result<Bytes>>),
    File(File),
}

/// A piece of a file.
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// Whether the file ends with it. Nothing is read after it, so no memory is waited for.
    pub(crate) is_last: bool,
}

/// A file that is read piece by piece.
struct File {
    first: Piece,
    rest: BoxStream<'static, io::Result<Piece>>,
    /// The memory that a piece is read and made in, in records.
    records: u32,
}

impl Default for Content {
    fn default() -> Self {
        Self::Whole(Full::default())
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ResponseBody").field(&self.size_hint()).finish()
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self(Content::Whole(Full::new(bytes)))
    }
}

impl ResponseBody {
    /// Returns a body that is sent in parts.
    pub(crate) fn stream(parts: BoxStream<'static, Bytes>) -> Self {
        Self(Content::Stream(parts.map(Ok).boxed()))
    }

    /// Returns a file whose pieces after the first are read when the client takes them. Each is read in the memory of this number
    /// of records.
    pub(crate) fn file(first: Piece, rest: BoxStream<'static, io::Result<Piece>>, records: u32) -> Self {
        Self(Content::File(File { first, rest, records }))
    }

    /// Returns a body whose bytes are part of the memory of responses until the client has taken them: all of a page, which
    /// has this permit, and each part of a stream or a file.
    pub(crate) fn within(self, memory: &ResponseMemory, permit: MemoryPermit, reader: Option<&Arc<Reader>>) -> Self {
        match self.0 {
            Content::Whole(page) => permit.hold(page.into_inner().unwrap_or_default(), reader).into(),
            // Live lists are few, and each has one part at most that its client has not taken.
            Content::Stream(parts) => {
                let (memory, holder, reader) = (memory.clone(), permit.holder(), reader.cloned());
                let held = parts.map_ok(move |part| memory.nothing(holder).hold(part, reader.as_ref()));
                Self(Content::Stream(held.boxed()))
            }
            Content::File(File { first, rest, records }) => {
                let (memory, holder, reader) = (memory.clone(), permit.holder(), reader.cloned());
                let Piece { bytes, is_last } = first;
                let first = permit.hold(bytes, reader.as_ref());
                let state = (rest, is_last, memory, reader);
                let rest = stream::try_unfold(state, move |(mut rest, is_complete, memory, reader)| async move {
                    if is_complete {
                        return Ok(None);
                    }
                    let permit = memory.acquire(holder, records).await.map_err(io::Error::other)?;
                    let Some(Piece { bytes, is_last }) = rest.try_next().await? else { return Ok(None) };
                    Ok(Some((permit.hold(bytes, reader.as_ref()), (rest, is_last, memory, reader))))
                });
                Self(Content::Stream(stream::iter([Ok(first)]).chain(rest).boxed()))
            }
        }
    }

    /// Returns its length in bytes. `None` for a stream.
    pub(crate) fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Content::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Content::Stream(parts) => parts.poll_next_unpin(cx).map_ok(Frame::data),
            Content::File(file) if !file.first.bytes.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut file.first.bytes)))))
            }
            Content::File(file) => file.rest.poll_next_unpin(cx).map_ok(|piece| Frame::data(piece.bytes)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(body) => body.is_end_stream(),
            Content::Stream(_) | Content::File(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(body) => body.size_hint(),
            Content::Stream(_) | Content::File(_) => SizeHint::default(),
        }
    }
}
