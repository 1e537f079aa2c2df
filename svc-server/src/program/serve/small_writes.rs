//! Short responses are written by one `send`.
//!
//! hyper writes the head and the body of a response by one `writev`, which costs the kernel more than to send bytes that are in one
//! place. So those of a short response are copied there first. Longer ones are not, as that would cost more than it saves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The highest number of bytes that are copied. The response to a request for one record has fewer.
const MAX_COPIED: usize = 2048;

/// A stream that writes what is short from one place.
pub(super) struct SmallWrites<S>(pub(super) S);

impl<S: AsyncWrite + Unpin> AsyncWrite for SmallWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > MAX_COPIED {
            return Pin::new(&mut self.0).poll_write_vectored(context, parts);
        }
        let mut copy = [0; MAX_COPIED];
        let mut end = 0;
        for part in parts {
            copy[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        Pin::new(&mut self.0).poll_write(context, &copy[..end])
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SmallWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}
