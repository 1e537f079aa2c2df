//! Bodies that come in: how large one may be, and all together.

use std::pin::pin;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body;
use svc_core::error::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::problem::Problem;

/// Largest body, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// Bytes of a body that are taken without asking for room.
const SMALL_BODY: usize = 16 * 1024;
/// Bytes beyond that of all bodies together; what holds them has up to twice the room while it grows.
const BODIES: usize = 32 * 1024 * 1024;

/// A request body.
pub trait Incoming: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send {}

impl<B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send> Incoming for B {}

/// The memory of bodies that are arriving or being handled, together. A client cannot reserve any without sending it.
pub(super) struct BodyRoom(Semaphore);

/// A body, and the room that it takes as long as it is needed.
pub(super) struct Arrived<'r> {
    pub(super) bytes: Bytes,
    _room: Option<SemaphorePermit<'r>>,
}

impl Default for BodyRoom {
    fn default() -> Self {
        Self(Semaphore::new(BODIES))
    }
}

impl BodyRoom {
    /// Reads a body. Small ones always find room.
    pub(super) async fn read<B: Incoming>(&self, body: B, timeout: Duration) -> Result<Arrived<'_>, Problem> {
        if body.size_hint().lower() > MAX_BODY as u64 {
            return Err(Problem::BodyTooLarge);
        }
        let late = |_| Problem::BodyIncomplete("The body did not arrive in time; send it again.");
        tokio::time::timeout(timeout, self.collect(body)).await.map_err(late)?
    }

    async fn collect<B: Incoming>(&self, body: B) -> Result<Arrived<'_>, Problem> {
        let mut body = pin!(Limited::new(body, MAX_BODY));
        let mut whole = BytesMut::new();
        let mut taken: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => Problem::BodyTooLarge,
                false => Problem::BodyIncomplete("The body did not arrive whole; send it again."),
            })?;
            // Copied, as a frame of one byte may hold on to a buffer of kilobytes.
            if let Ok(data) = frame.into_data() {
                whole.put(data);
            }
            let needed = whole.len().saturating_sub(SMALL_BODY);
            let missing = needed - taken.as_ref().map_or(0, SemaphorePermit::num_permits).min(needed);
            if missing > 0 {
                let full = |_| StoreError::Unavailable("no room for more bodies".to_owned());
                let more = self.0.try_acquire_many(u32::try_from(missing).unwrap_or(u32::MAX)).map_err(full)?;
                match &mut taken {
                    Some(taken) => taken.merge(more),
                    None => taken = Some(more),
                }
            }
        }
        Ok(Arrived { bytes: whole.freeze(), _room: taken })
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

    /// Some frames, and then nothing, without an end.
    struct Arriving(Vec<Bytes>);

    impl Body for Arriving {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.pop().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    fn whole(size: usize) -> http_body_util::Full<Bytes> {
        vec![b' '; size].into()
    }

    #[tokio::test(start_paused = true)]
    async fn what_arrives_takes_room_until_it_is_read() {
        let room = BodyRoom(Semaphore::new(3 * SMALL_BODY));
        let read =
            async |size| room.read(whole(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(4 * SMALL_BODY).await, Ok(4 * SMALL_BODY), "all of it");
        assert_eq!(read(4 * SMALL_BODY + 1).await, Err("unavailable"));
        {
            let kept = room.read(whole(4 * SMALL_BODY), LONG).await;
            assert_eq!(read(SMALL_BODY + 1).await, Err("unavailable"), "while another is handled");
            drop(kept);
        }
        {
            let mut slow = pin!(room.read(Arriving(vec![vec![b' '; 2 * SMALL_BODY].into(); 2]), LONG));
            assert!(slow.as_mut().now_or_never().is_none());
            assert_eq!(read(SMALL_BODY + 1).await, Err("unavailable"));
            assert_eq!(read(SMALL_BODY).await, Ok(SMALL_BODY), "small ones go on");
        }
        assert_eq!(read(4 * SMALL_BODY).await, Ok(4 * SMALL_BODY), "all was given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_ends_at_its_limit_and_its_deadline() {
        let room = BodyRoom::default();
        let read =
            async |size| room.read(whole(size), LONG).await.map(|body| body.bytes.len()).map_err(|error| error.code());
        assert_eq!(read(MAX_BODY).await, Ok(MAX_BODY));
        assert_eq!(read(MAX_BODY + 1).await, Err("body_too_large"));
        let bytes = vec![Bytes::from_static(b" "); MAX_BODY + 1];
        assert_eq!(
            room.read(Arriving(bytes), LONG).await.map(drop).map_err(|error| error.code()),
            Err("body_too_large")
        );
        let late = room.read(Arriving(vec![Bytes::from_static(b"{")]), LONG).await;
        assert_eq!(late.map(drop).map_err(|error| error.code()), Err("body_incomplete"));
    }
}
