//! Reading request bodies, within a size for each and a memory limit for all of them.

use std::pin::pin;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body;
use svc_core::error::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::problem::Problem;

/// The size of the largest request body, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// The first bytes of each body, which do not count towards the memory limit.
const SMALL_BODY: usize = 16 * 1024;
/// The memory limit of all bodies together, in bytes. Their buffers may use up to twice as much while they grow.
const MEMORY_LIMIT: usize = 32 * 1024 * 1024;

/// A request body that the API can read. Every [`Body`] with these bounds is one.
pub trait Incoming: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send {}

impl<B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send> Incoming for B {}

/// The size of the largest form of the dashboard, in bytes.
#[cfg(feature = "dashboard")]
const MAX_FORM: usize = 64 * 1024;
/// The memory limit of all forms together, in bytes. It is their own, so that they take none from the API.
#[cfg(feature = "dashboard")]
const FORM_MEMORY_LIMIT: usize = 4 * 1024 * 1024;

/// The memory that the bodies of running requests share, with one permit for each byte.
///
/// A body takes permits for the bytes that have arrived, so a client cannot reserve memory without sending data.
pub(super) struct BodyMemory {
    shared: Semaphore,
    /// The size of the largest body, in bytes.
    max_body: usize,
}

/// A body that has arrived in full. It gives its memory back when it is dropped.
pub(super) struct ReceivedBody<'m> {
    pub(super) bytes: Bytes,
    _permit: Option<SemaphorePermit<'m>>,
}

impl BodyMemory {
    /// Returns the memory of the bodies of API requests.
    pub(super) fn for_requests() -> Self {
        Self { shared: Semaphore::new(MEMORY_LIMIT), max_body: MAX_BODY }
    }

    /// Returns the memory of the forms of the dashboard.
    #[cfg(feature = "dashboard")]
    pub(super) fn for_forms() -> Self {
        Self { shared: Semaphore::new(FORM_MEMORY_LIMIT), max_body: MAX_FORM }
    }

    /// Reads a body. Bodies of at most [`SMALL_BODY`] bytes are read even when the memory is used up.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::BodyTooLarge`], [`Problem::BodyIncomplete`], or [`StoreError::Unavailable`] when the memory is
    /// used up.
    pub(super) async fn read<B: Incoming>(&self, body: B, timeout: Duration) -> Result<ReceivedBody<'_>, Problem> {
        if body.size_hint().lower() > self.max_body as u64 {
            return Err(Problem::BodyTooLarge);
        }
        let late = |_| Problem::BodyIncomplete("The body did not arrive in time; send it again.");
        tokio::time::timeout(timeout, self.collect(body)).await.map_err(late)?
    }

    async fn collect<B: Incoming>(&self, body: B) -> Result<ReceivedBody<'_>, Problem> {
        let mut body = pin!(Limited::new(body, self.max_body));
        let mut received = BytesMut::new();
        let mut permit: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => Problem::BodyTooLarge,
                false => Problem::BodyIncomplete("The body did not arrive whole; send it again."),
            })?;
            // The data is copied, as a frame of one byte may keep a buffer of kilobytes alive.
            if let Ok(data) = frame.into_data() {
                received.put(data);
            }
            let needed = received.len().saturating_sub(SMALL_BODY);
            let missing = needed - permit.as_ref().map_or(0, SemaphorePermit::num_permits).min(needed);
            if missing > 0 {
                let full = |_| StoreError::Unavailable("the memory for request bodies is used up".to_owned());
                let more = self.shared.try_acquire_many(u32::try_from(missing).unwrap_or(u32::MAX)).map_err(full)?;
                match &mut permit {
                    Some(permit) => permit.merge(more),
                    None => permit = Some(more),
                }
            }
        }
        Ok(ReceivedBody { bytes: received.freeze(), _permit: permit })
    }
}

/// Checks that a body is JSON without a content encoding; that of a PATCH may be a JSON Merge Patch (RFC 7396), which is what
/// it is. An empty body needs no `Content-Type`.
pub(super) fn check_media_type(method: &Method, headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
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
        (Some(only), None) if is_json(only) => Ok(()),
        _ => Err(Problem::UnsupportedMediaType("Send the body as Content-Type: application/json.")),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_util::FutureExt as _;
    use hyper::body::Frame;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// A body that yields some frames and then never ends.
    struct Unfinished(Vec<Bytes>);

    impl Body for Unfinished {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.pop().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    fn body(size: usize) -> http_body_util::Full<Bytes> {
        vec![b' '; size].into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_holds_its_memory_until_it_is_dropped() {
        let memory = BodyMemory { shared: Semaphore::new(3 * SMALL_BODY), max_body: MAX_BODY };
        let read =
            async |size| memory.read(body(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(4 * SMALL_BODY).await, Ok(4 * SMALL_BODY), "all of the memory");
        assert_eq!(read(4 * SMALL_BODY + 1).await, Err("unavailable"));
        {
            let kept = memory.read(body(4 * SMALL_BODY), LONG).await;
            assert_eq!(read(SMALL_BODY + 1).await, Err("unavailable"), "while another body is held");
            drop(kept);
        }
        {
            let mut slow = pin!(memory.read(Unfinished(vec![vec![b' '; 2 * SMALL_BODY].into(); 2]), LONG));
            assert!(slow.as_mut().now_or_never().is_none());
            assert_eq!(read(SMALL_BODY + 1).await, Err("unavailable"));
            assert_eq!(read(SMALL_BODY).await, Ok(SMALL_BODY), "small bodies are always read");
        }
        assert_eq!(read(4 * SMALL_BODY).await, Ok(4 * SMALL_BODY), "all memory was given back");
    }

    #[tokio::test(start_paused = true)]
    async fn thirty_two_of_the_largest_bodies_fit_and_small_ones_always_do() {
        let memory = BodyMemory::for_requests();
        let mut kept = Vec::new();
        for _ in 0..32 {
            kept.push(memory.read(body(MAX_BODY), LONG).await.map_err(|error| error.code()).ok().unwrap());
        }
        let read =
            async |size| memory.read(body(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(MAX_BODY).await, Err("unavailable"));
        let memory = BodyMemory { shared: Semaphore::new(0), max_body: MAX_BODY };
        let read =
            async |size| memory.read(body(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(16 * 1024).await, Ok(16 * 1024));
        assert_eq!(read(16 * 1024 + 1).await, Err("unavailable"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_or_too_slow_is_refused() {
        let memory = BodyMemory::for_requests();
        let read =
            async |size| memory.read(body(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(MAX_BODY).await, Ok(MAX_BODY));
        assert_eq!(read(MAX_BODY + 1).await, Err("body_too_large"));
        let bytes = vec![Bytes::from_static(b" "); MAX_BODY + 1];
        assert_eq!(
            memory.read(Unfinished(bytes), LONG).await.map(drop).map_err(|error| error.code()),
            Err("body_too_large")
        );
        let late = memory.read(Unfinished(vec![Bytes::from_static(b"{")]), LONG).await;
        assert_eq!(late.map(drop).map_err(|error| error.code()), Err("body_incomplete"));
    }
}
