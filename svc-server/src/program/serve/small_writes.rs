//! Short responses are sent from one place.
//!
//! hyper writes the head and the body of a response by one `writev`, which costs the kernel more than one `send`. So the
//! bytes of a short response are copied to one place first. A long one is not, as that would cost more than it saves.

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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// A stream that takes up to `room` bytes, and keeps what each call wrote and whether it was vectored.
    struct Recorder {
        room: usize,
        calls: Vec<(bool, Vec<u8>)>,
    }

    impl Recorder {
        fn record(&mut self, is_vectored: bool, mut bytes: Vec<u8>) -> Poll<io::Result<usize>> {
            bytes.truncate(self.room);
            let written = bytes.len();
            self.calls.push((is_vectored, bytes));
            Poll::Ready(Ok(written))
        }
    }

    impl AsyncWrite for Recorder {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.record(false, bytes.to_vec())
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.record(true, parts.iter().flat_map(|part| part.to_vec()).collect())
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Writes a head and a body to a stream with this room. Returns how many bytes it reported, and the only call.
    fn write(room: usize, head: &[u8], body: &[u8]) -> (usize, (bool, Vec<u8>)) {
        let mut stream = SmallWrites(Recorder { room, calls: Vec::new() });
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        let written = Pin::new(&mut stream).poll_write_vectored(&mut Context::from_waker(Waker::noop()), &parts);
        let Poll::Ready(Ok(written)) = written else { panic!("{written:?}") };
        assert_eq!(stream.0.calls.len(), 1);
        (written, stream.0.calls.remove(0))
    }

    #[test]
    fn what_is_short_is_written_from_one_place() {
        let body = vec![b'b'; MAX_COPIED - 4];
        assert_eq!(write(9_999, b"head", &body), (MAX_COPIED, (false, [b"head", body.as_slice()].concat())));
        assert_eq!(write(6, b"head", b"body"), (6, (false, b"headbo".to_vec())), "the rest is left to the caller");
    }

    #[test]
    fn what_is_long_is_written_as_it_is() {
        let body = vec![b'b'; MAX_COPIED - 3];
        assert_eq!(write(9_999, b"head", &body), (MAX_COPIED + 1, (true, [b"head", body.as_slice()].concat())));
    }
}
