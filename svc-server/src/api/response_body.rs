//! The body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
#[cfg(feature = "dashboard")]
use futures_util::stream::{BoxStream, StreamExt as _};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

/// The body of a response.
///
/// It is known as a whole, but for the live lists of the dashboard: these send their parts as they come, and have no
/// `Content-Length`.
#[derive(Default)]
pub struct ResponseBody(Content);

enum Content {
    Whole(Full<Bytes>),
    #[cfg(feature = "dashboard")]
    Stream(BoxStream<'static, Bytes>),
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
    #[cfg(feature = "dashboard")]
    pub(crate) fn stream(parts: BoxStream<'static, Bytes>) -> Self {
        Self(Content::Stream(parts))
    }

    /// Returns its length in bytes. `None` for a stream.
    pub(crate) fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(body) => Pin::new(body).poll_frame(cx),
            #[cfg(feature = "dashboard")]
            Content::Stream(parts) => parts.poll_next_unpin(cx).map(|part| part.map(|part| Ok(Frame::data(part)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(body) => body.is_end_stream(),
            #[cfg(feature = "dashboard")]
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(body) => body.size_hint(),
            #[cfg(feature = "dashboard")]
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
