//! Responses over HTTP/1.1 to clients that are still sending (RFC 9112 §9.6).
//!
//! A response such as 401 or 413 may come before the body of its request was read. If the server then closed the
//! connection, what the client still sends would be answered with a reset, and the client could lose the response with it.
//! So the server reads and drops what comes after such a response, bounded in bytes and in time:
//!
//! - If the rest of the body may be within the bounds, it is dropped, and the connection stays open for the next request.
//! - Otherwise the response says `Connection: close`, and what comes is dropped after the server has ended its own side.
//!
//! Over HTTP/2 a stream ends without its connection, but several clients lose a response when their stream is reset while
//! they are sending. The unread rest of a body is dropped within the same bounds, and the stream is reset after them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::{Service, service_fn};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::ResponseBody;

/// The highest number of bytes that are dropped.
const MAX_BYTES: u32 = 4 * 1024 * 1024;
/// How long the server reads what it drops.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Whether a connection ends while its client may still be sending.
#[derive(Clone, Default)]
pub(super) struct Linger(Arc<AtomicBool>);

impl Linger {
    /// Wraps a service so that bodies that it does not read to their end are dropped after the response.
    pub(super) fn track<S, B>(
        &self,
        service: S,
    ) -> impl Service<Request<B>, Response = Response<ResponseBody>, Error = Infallible, Future: Send + 'static> + use<S, B>
    where
        S: Service<
                Request<RequestBody<B>>,
                Response = Response<ResponseBody>,
                Error = Infallible,
                Future: Send + 'static,
            >,
        B: Unread,
    {
        let linger = self.clone();
        service_fn(move |request: Request<B>| {
            let linger = linger.clone();
            let expects_continue = request.headers().contains_key(EXPECT);
            let (sender, mut rest) = oneshot::channel();
            let response = service.call(request.map(|body| RequestBody { unread: Some(body), rest: Some(sender) }));
            async move {
                let mut response = response.await?;
                let Ok(rest) = rest.try_recv() else { return Ok(response) };
                // After 408 the body is broken, or was waited for long enough. A client that expects 100 may send the body
                // or leave it out, so that what comes could be either the body or the next request.
                let is_wanted = response.status() != StatusCode::REQUEST_TIMEOUT && !expects_continue;
                if is_wanted && rest.size_hint().lower() <= u64::from(MAX_BYTES) {
                    tokio::spawn(drop_body(rest));
                } else {
                    linger.0.store(true, Ordering::Relaxed);
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok(response)
            }
        })
    }

    /// Waits until the client of a connection, whose responses are all sent, has read them.
    pub(super) async fn drop_rest(&self, stream: impl AsyncRead + Unpin, result: &hyper::Result<()>) {
        // hyper responds itself to what is not HTTP.
        if self.0.load(Ordering::Relaxed) || result.as_ref().is_err_and(hyper::Error::is_parse) {
            drop_stream(stream).await;
        }
    }
}

/// Reads and drops a body, within the bounds.
async fn drop_body<B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin>(body: B) {
    let mut body = Limited::new(body, MAX_BYTES as usize);
    let read = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(MAX_TIME, read).await;
}

/// Reads and drops what arrives until the client ends its side, within the bounds.
pub(super) async fn drop_stream(stream: impl AsyncRead + Unpin) {
    let mut stream = stream.take(MAX_BYTES.into());
    let _ = tokio::time::timeout(MAX_TIME, tokio::io::copy(&mut stream, &mut tokio::io::sink())).await;
}

/// A body that can be read and dropped after its response.
pub(super) trait Unread:
    Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + Send + 'static
{
}

impl<B> Unread for B where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + Send + 'static
{
}

/// The body of a request. When it is dropped, what the service left of it comes back, or is dropped in the background.
pub(super) struct RequestBody<B: Unread> {
    unread: Option<B>,
    rest: Option<oneshot::Sender<B>>,
}

impl<B: Unread> RequestBody<B> {
    /// Returns a body whose rest is dropped as soon as the service does not want it.
    pub(super) fn dropped_at_once(body: B) -> Self {
        Self { unread: Some(body), rest: None }
    }
}

impl<B: Unread> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.unread else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if frame.is_none() {
            self.unread = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.unread.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.unread.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Unread> Drop for RequestBody<B> {
    fn drop(&mut self) {
        let Some(body) = self.unread.take().filter(|body| !body.is_end_stream()) else { return };
        match self.rest.take() {
            Some(rest) => {
                let _ = rest.send(body);
            }
            None => {
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(drop_body(body));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::Instant;

    use super::*;

    static PART: [u8; 64 * 1024] = [0; 64 * 1024];

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_of_a_stream_is_bounded_in_bytes() {
        let (server, mut client) = tokio::io::duplex(PART.len());
        tokio::spawn(drop_stream(server));
        let mut written = 0;
        while client.write_all(&PART).await.is_ok() {
            written += PART.len();
        }
        assert!((MAX_BYTES as usize..=MAX_BYTES as usize + PART.len()).contains(&written), "{written}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_of_a_stream_is_bounded_in_time() {
        let started = Instant::now();
        let (server, mut client) = tokio::io::duplex(PART.len());
        let slow = async {
            while client.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::join!(drop_stream(server), slow);
        assert_eq!(started.elapsed(), MAX_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_of_a_body_is_bounded_in_bytes_and_time() {
        let mut read = 0;
        let endless = futures_util::stream::repeat_with(|| {
            read += PART.len();
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&PART)))
        });
        drop_body(StreamBody::new(endless)).await;
        assert_eq!(read, MAX_BYTES as usize + PART.len(), "the part that exceeds the bound ends it");
        let started = Instant::now();
        drop_body(StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>())).await;
        assert_eq!(started.elapsed(), MAX_TIME);
    }
}
