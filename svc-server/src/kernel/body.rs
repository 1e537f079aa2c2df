//! The memory of a request: its head, which has arrived, and its body, which is counted before it is kept.
//!
//! [`Api::call`](crate::Api::call) takes a [`Share`] of the memory of all requests for each of them, on every listener, and
//! hands the body on as an [`ArrivingBody`]. There is no other way to a body, so no endpoint can forget to count it.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt as _;
use hyper::body::Body;

use crate::kernel::problem::Problem;
use crate::kernel::shares::{Share, WaitsFor};

/// The size of the largest request body, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// The size of the largest form, in bytes.
pub(crate) const MAX_FORM: usize = 64 * 1024;
/// The size of the parts in which a body is kept until it has arrived, in bytes.
const PIECE: usize = 16 * 1024;
/// How long a request waits for memory.
pub(crate) const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);
/// The memory in bytes of a request besides its head and its body: mostly of what handles it.
const REQUEST: usize = 16 * 1024;
/// The memory in bytes of a header besides its name and its value.
const HEADER: usize = 128;

/// A request body that the API can read. Every [`Body`] with these bounds is one.
pub trait Incoming: Body<Data: Send, Error: Into<BodyError>> + Send {}

impl<B: Body<Data: Send, Error: Into<BodyError>> + Send> Incoming for B {}

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Returns the memory that a request needs besides its body, in bytes.
pub(crate) fn memory_of(parts: &Parts) -> usize {
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let headers = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER);
    REQUEST + target + headers.sum::<usize>()
}

/// A body that arrives, with the share of its request. The rest that is not read is dropped.
pub(crate) struct ArrivingBody<'a> {
    body: Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send + 'a>>,
    /// How many bytes are to come at least.
    announced: u64,
    share: &'a mut Share,
    /// The memory that the request has without its body.
    rest: usize,
    timeout: Duration,
}

impl<'a> ArrivingBody<'a> {
    pub(crate) fn new<B: Incoming + 'a>(body: B, share: &'a mut Share, rest: usize, timeout: Duration) -> Self {
        let announced = body.size_hint().lower();
        let body =
            body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))).map_err(Into::into);
        Self { body: Box::pin(body), announced, share, rest, timeout }
    }

    /// Reads the body of at most `max` bytes. Its memory is counted until the request has its response, and waited for before
    /// more is read. While more is to come, others that need memory may have it after a moment.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::BodyTooLarge`], [`Problem::BodyIncomplete`], or [`Problem::Overloaded`] when the memory was used up.
    pub(crate) async fn read(mut self, max: usize) -> Result<Bytes, Problem> {
        if self.announced > max as u64 {
            return Err(Problem::BodyTooLarge);
        }
        let given_up = self.share.given_up();
        self.share.wait(WaitsFor::Rest);
        let timeout = self.timeout;
        let received = tokio::select! {
            received = tokio::time::timeout(timeout, self.collect(max)) => received,
            () = given_up => return Err(Problem::Overloaded),
        };
        let late = |_| Problem::BodyIncomplete("The body did not arrive in time; send it again.");
        let received = received.map_err(late)??;
        if self.share.hold() { Ok(received) } else { Err(Problem::Overloaded) }
    }

    async fn collect(&mut self, max: usize) -> Result<Bytes, Problem> {
        let incomplete = |_| Problem::BodyIncomplete("The body did not arrive whole; send it again.");
        // Of equal size, so that what unfinished bodies leave fits what comes.
        let mut pieces: Vec<BytesMut> = Vec::new();
        let mut length = 0;
        while let Some(frame) = self.body.frame().await {
            let Ok(mut data) = frame.map_err(incomplete)?.into_data() else { continue };
            length += data.len();
            if length > max {
                return Err(Problem::BodyTooLarge);
            }
            // The data is copied, as a frame of one byte may keep a buffer of kilobytes alive.
            while !data.is_empty() {
                if pieces.last().is_none_or(|piece| piece.len() == piece.capacity()) {
                    let size = if pieces.is_empty() { data.len().min(PIECE) } else { PIECE };
                    self.resize(pieces.iter().map(BytesMut::capacity).sum::<usize>() + size).await?;
                    pieces.push(BytesMut::with_capacity(size));
                }
                if let Some(piece) = pieces.last_mut() {
                    let part = data.split_to(data.len().min(piece.capacity() - piece.len()));
                    piece.extend_from_slice(&part);
                }
            }
        }
        if pieces.len() < 2 {
            return Ok(pieces.pop().unwrap_or_default().freeze());
        }
        self.resize(pieces.len() * PIECE + length).await?;
        let whole = pieces.concat();
        drop(pieces);
        self.resize(length).await?;
        Ok(whole.into())
    }

    /// Takes memory for this many bytes of the body.
    async fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let resized = tokio::time::timeout(MEMORY_TIMEOUT, self.share.resize(self.rest + bytes));
        resized.await.map_err(|_| Problem::Overloaded)
    }
}

/// Checks that a body is JSON without a content encoding; that of a PATCH may be a JSON Merge Patch (RFC 7396), which is what
/// it is. An empty body needs no `Content-Type`.
pub(crate) fn check_media_type(method: &Method, headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    let encoded =
        headers.get_all(CONTENT_ENCODING).iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(Problem::UnsupportedMediaType("Send the body without a Content-Encoding."));
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let is_json = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|b| *b == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii();
        essence.eq_ignore_ascii_case(b"application/json")
            || (method == Method::PATCH && essence.eq_ignore_ascii_case(b"application/merge-patch+json"))
    };
    match (types.next(), types.next()) {
        (None, _) if body.is_empty() => Ok(()),
        (Some(only), None) if is_json(only) => check_charset(headers),
        _ => Err(Problem::UnsupportedMediaType("Send the body as Content-Type: application/json.")),
    }
}

/// Checks that a body does not claim to be in another charset than UTF-8, which it would be read as all the same.
pub(crate) fn check_charset(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(CONTENT_TYPE).iter().all(is_utf_8) {
        return Ok(());
    }
    Err(Problem::UnsupportedMediaType("Send the body in UTF-8, without another charset in Content-Type."))
}

/// Returns whether a `Content-Type` names no charset, or UTF-8 and US-ASCII, which is a part of it.
fn is_utf_8(content_type: &HeaderValue) -> bool {
    let parameters = content_type.as_bytes().split(|byte| *byte == b';').skip(1);
    let mut charsets = parameters.filter_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&parameter[..at], parameter[at + 1..].trim_ascii());
        name.trim_ascii().eq_ignore_ascii_case(b"charset").then_some(value)
    });
    charsets.all(|charset| {
        let charset = charset.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(charset);
        [&b"utf-8"[..], b"utf8", b"us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::IpAddr;
    use std::task::{Context, Poll};

    use futures_util::FutureExt as _;
    use hyper::body::Frame;

    use super::*;
    use crate::kernel::shares::Pool;

    const LONG: Duration = Duration::from_secs(3600);
    const KIB: usize = 1024;
    const ADA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    /// A body that yields some frames and then never ends.
    struct Unfinished(Vec<Bytes>);

    impl Body for Unfinished {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.pop().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    fn unfinished(size: usize) -> Unfinished {
        Unfinished(vec![vec![b' '; size].into()])
    }

    fn whole(size: usize) -> http_body_util::Full<Bytes> {
        vec![b' '; size].into()
    }

    fn pool(limit: usize) -> Pool {
        Pool::of_memory("bytes", limit, std::sync::Arc::default())
    }

    /// Reads a body of at most a MiB, and returns its length or the code of what was wrong.
    async fn read<B: Incoming>(share: &mut Share, body: B) -> Result<usize, &'static str> {
        let received = ArrivingBody::new(body, share, 0, LONG).read(MAX_BODY).await;
        received.map(|bytes| bytes.len()).map_err(|problem| problem.code())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_memory_until_its_request_has_a_response() {
        let pool = pool(128 * KIB);
        let mut first = pool.take(ADA, 0, 0).await;
        assert_eq!(read(&mut first, whole(64 * KIB)).await, Ok(64 * KIB), "twice its size while it is put together");
        assert_eq!(pool.free(), 64 * KIB);
        let _used = pool.take(BOB, 64 * KIB, 0).await;
        let mut second = pool.take(BOB, 0, 0).await;
        assert_eq!(read(&mut second, whole(1)).await, Err("unavailable"), "not a byte is read that is not counted");
        drop(first);
        let mut second = pool.take(BOB, 0, 0).await;
        assert_eq!(read(&mut second, whole(16 * KIB)).await, Ok(16 * KIB));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_body_gives_up_its_memory_to_one_that_arrives() {
        let pool = pool(64 * KIB);
        let mut slow = std::pin::pin!(async { read(&mut pool.take(ADA, 0, 0).await, unfinished(40 * KIB)).await });
        assert!((&mut slow).now_or_never().is_none());
        let other = async { read(&mut pool.take(BOB, 0, 0).await, whole(32 * KIB)).await };
        assert_eq!(tokio::join!(slow, other), (Err("unavailable"), Ok(32 * KIB)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_or_too_slow_is_refused() {
        let pool = pool(4 * MAX_BODY);
        assert_eq!(read(&mut pool.take(ADA, 0, 0).await, whole(MAX_BODY)).await, Ok(MAX_BODY));
        assert_eq!(read(&mut pool.take(ADA, 0, 0).await, whole(MAX_BODY + 1)).await, Err("body_too_large"));
        let bytes = vec![Bytes::from_static(b" "); MAX_BODY + 1];
        assert_eq!(read(&mut pool.take(ADA, 0, 0).await, Unfinished(bytes)).await, Err("body_too_large"));
        assert_eq!(read(&mut pool.take(ADA, 0, 0).await, unfinished(1)).await, Err("body_incomplete"));
    }

    #[test]
    fn a_body_in_another_charset_is_refused() {
        for (content_type, is_taken) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("application/json;charset=\"UTF-8\"", true),
            ("application/json; profile=x; charset=US-ASCII", true),
            ("application/json; charset=iso-8859-1", false),
            ("application/json; charset=utf-8; charset=latin1", false),
            ("application/json; Charset = \"utf-16\"", false),
            ("application/json; charset=", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            assert_eq!(check_media_type(&Method::POST, &headers, b"{}").is_ok(), is_taken, "{content_type}");
        }
    }
}
