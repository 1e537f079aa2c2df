//! The requests of a connection, and what the connection takes of what all of them share.
//!
//! hyper considers a client alive that responds to pings, even if it sends no requests or reads no responses, and keeps what it
//! has read of a head for as long as the head takes. So each request is tracked until the last byte of its response has been
//! written to the socket, and each byte of a connection is counted when it is read:
//!
//! - A connection has a place at its listener, and memory for its state and for what it has sent that no request has taken
//!   yet: a handshake, a head, or a body. Both can be given up for other connections while all that is open waits for the
//!   client: for the rest of a request, or for a response to be read.
//! - A connection without requests is closed after the keep-alive time, one without a first request or with an unfinished head
//!   after the head timeout, and over HTTP/2 one whose client does not read a response after the write timeout.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapFrame;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::{Service, service_fn};
use svc_core::sync::lock;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};
use tokio::time::Instant;

use crate::ResponseBody;
use crate::kernel::shares::{Changed, Share, WaitsFor};

/// The bytes that a connection may have sent without a request before it needs more memory: the buffer that hyper has
/// for each.
const BUFFER: usize = 8 * 1024;
/// After which time without a request the buffers of a connection of HTTP/1.1 are given back.
const QUIET: Duration = Duration::from_secs(1);

/// The state of a connection, by the memory that it needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// The memory in bytes that it has without a request.
    pub(super) memory: usize,
    /// The memory that it needs when it keeps more than 8 KiB that no request has taken.
    pub(super) buffers: Buffers,
    /// Whether what a client sends between two requests is the beginning of the next one.
    pub(super) is_next_head: bool,
}

/// The memory of what was received and no request has taken, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Buffers {
    /// This many, until the connection enters another state: hyper doubles a buffer, and keeps it for what comes next.
    Kept(usize),
    /// As many as were received, in steps of a buffer and up to this number.
    Received(usize),
}

/// The times after which a connection is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For a head, and for the first request.
    pub(super) head: Duration,
    /// For the next request.
    pub(super) idle: Duration,
    /// For a response to be read whole.
    pub(super) response: Option<Duration>,
}

/// The reason for which a connection is to be closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// There was no request for the keep-alive time.
    Idle,
    /// The first request, or the head of one, did not arrive in time.
    Unfinished,
    /// The client does not read a response.
    Stalled,
}

/// The requests of a connection whose responses are not completely written.
#[derive(Clone)]
pub(super) struct OpenRequests(Arc<Mutex<Requests>>);

struct Requests {
    /// The number of the last request.
    last: u64,
    /// The open requests by number.
    open: BTreeMap<u64, Progress>,
    /// When the connection was opened, or its last request ended.
    idle_since: Instant,
    /// When the first byte of the next head arrived.
    head_since: Option<Instant>,
    place: Share,
    memory: Share,
    stage: Stage,
    /// The number of bytes that were received and belong to no complete request.
    unread: usize,
    /// How many of them the share of the memory is for.
    counted: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// More of the body is to come.
    Arriving,
    /// The request has arrived, or its rest is not wanted.
    Handled,
    /// The response has been ready to be read since.
    Ready(Instant),
}

impl OpenRequests {
    /// Begins a connection, with its place and its memory. It has both until [`Self::waits`].
    pub(super) fn new(place: Share, memory: Share, stage: Stage) -> Self {
        let (open, idle_since) = (BTreeMap::new(), Instant::now());
        let requests =
            Requests { last: 0, open, idle_since, head_since: None, place, memory, stage, unread: 0, counted: 0 };
        Self(Arc::new(Mutex::new(requests)))
    }

    /// Says that the client has sent nothing. Until then, a busy process may not have looked.
    pub(super) fn waits(&self) {
        self.lock().wait();
    }

    /// Continues in another state, when there is memory for it. Returns `false` if the connection is given up before that.
    pub(super) async fn enter(&self, stage: Stage) -> bool {
        // It is idle no more.
        self.lock().wait_for(WaitsFor::Rest);
        let enter = async {
            while let Err(changed) = self.try_enter(stage) {
                changed.await;
            }
        };
        tokio::select! {
            () = enter => true,
            () = self.given_up() => false,
        }
    }

    fn try_enter(&self, stage: Stage) -> Result<(), Changed> {
        let mut requests = self.lock();
        requests.memory.try_resize(stage.memory)?;
        requests.stage = stage;
        requests.counted = 0;
        requests.unread = 0;
        // What it did until here was no waiting.
        requests.hold();
        requests.wait();
        Ok(())
    }

    /// Returns how many bytes may be received, at least one. If they need more memory than there is, returns what to wait for.
    fn room(&self) -> Result<usize, Changed> {
        let mut requests = self.lock();
        loop {
            let more = match requests.stage.buffers {
                Buffers::Kept(size) => size,
                Buffers::Received(most) => most.min(requests.counted + BUFFER),
            };
            if requests.counted == more {
                return Ok(usize::MAX);
            }
            let room = (BUFFER + requests.counted).saturating_sub(requests.unread);
            if room > 0 {
                return Ok(room);
            }
            let memory = requests.stage.memory + more;
            requests.memory.try_resize(memory)?;
            requests.counted = more;
        }
    }

    /// Counts bytes that were received.
    fn received(&self, bytes: usize) {
        let mut requests = self.lock();
        if requests.stage.is_next_head && requests.open.is_empty() && requests.head_since.is_none() {
            requests.head_since = Some(Instant::now());
            requests.wait();
        }
        requests.unread += bytes;
    }

    /// Waits until the connection has to be closed since others need its place or its memory.
    pub(super) async fn given_up(&self) {
        let (place, memory) = {
            let requests = self.lock();
            (requests.place.given_up(), requests.memory.given_up())
        };
        tokio::select! {
            () = place => {}
            () = memory => {}
        }
    }

    /// Waits until there was no request for a moment after one. Returns the number of requests until then.
    pub(super) async fn quiet(&self) -> u64 {
        loop {
            let now = Instant::now();
            let mut next = now + QUIET;
            {
                let requests = self.lock();
                if requests.last > 0 && requests.open.is_empty() && requests.head_since.is_none() {
                    next = requests.idle_since + QUIET;
                    if next <= now {
                        return requests.last;
                    }
                }
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Returns the number of requests that have begun.
    pub(super) fn count(&self) -> u64 {
        self.lock().last
    }

    /// Wraps a service so that each of its requests is tracked.
    pub(super) fn track<S>(
        &self,
        service: S,
    ) -> impl Service<
        Request<Incoming>,
        Response = Response<TrackedBody>,
        Error = Infallible,
        Future: Send + Unpin + 'static,
    > + use<S>
    where
        S: Service<
                Request<ArrivingBody>,
                Response = Response<ResponseBody>,
                Error = Infallible,
                Future: Send + 'static,
            >,
    {
        let open = self.clone();
        service_fn(move |request: Request<Incoming>| {
            let tracked = open.begin();
            let request = request.map(|body| ArrivingBody::new(body, &tracked));
            let (open, response) = (open.clone(), service.call(request));
            // Boxed, as hyper keeps room for this on each connection, whether there is a request or not.
            Box::pin(async move {
                let response = response.await?;
                // A live list has no length. It is open for as long as it lasts, and each of its parts is to be read in time.
                let is_live = !response.headers().contains_key(CONTENT_LENGTH) && !response.body().is_end_stream();
                tracked.set(if is_live { Progress::Handled } else { Progress::Ready(Instant::now()) });
                let tracked = Arc::new(tracked);
                Ok(response.map(|body| {
                    let track: TrackFrame = Box::new(move |frame| {
                        let request = if is_live { Arc::new(open.begin()) } else { Arc::clone(&tracked) };
                        request.set(Progress::Ready(Instant::now()));
                        frame.map_data(|bytes| TrackedBytes { bytes, _request: request })
                    });
                    body.map_frame(track)
                }))
            })
        })
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn expired(&self, timeouts: Timeouts) -> CloseReason {
        loop {
            let now = Instant::now();
            // What begins after now ends later than this.
            let mut next = now + timeouts.head.min(timeouts.idle).min(timeouts.response.unwrap_or(timeouts.idle));
            if let Some((deadline, reason)) = self.lock().deadline(timeouts) {
                if deadline <= now {
                    return reason;
                }
                next = next.min(deadline);
            }
            tokio::time::sleep_until(next).await;
        }
    }

    fn begin(&self) -> TrackedRequest {
        let mut requests = self.lock();
        requests.last += 1;
        let number = requests.last;
        requests.head_since = None;
        requests.open.insert(number, Progress::Arriving);
        requests.wait();
        TrackedRequest { requests: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        lock(&self.0)
    }
}

impl Requests {
    fn deadline(&self, timeouts: Timeouts) -> Option<(Instant, CloseReason)> {
        if !self.open.is_empty() {
            let ready = |progress: &Progress| match progress {
                Progress::Ready(since) => Some(*since),
                _ => None,
            };
            let oldest = self.open.values().filter_map(ready).min()?;
            return timeouts.response.map(|timeout| (oldest + timeout, CloseReason::Stalled));
        }
        Some(match self.head_since {
            Some(since) => (since + timeouts.head, CloseReason::Unfinished),
            None if self.last == 0 => (self.idle_since + timeouts.head, CloseReason::Unfinished),
            None => (self.idle_since + timeouts.idle, CloseReason::Idle),
        })
    }

    /// Changes the progress of a request, or ends it, and with it what the connection may have to give up.
    fn set(&mut self, number: u64, progress: Option<Progress>) {
        match progress {
            Some(progress) => {
                if let Some(current) = self.open.get_mut(&number) {
                    *current = progress;
                }
            }
            None => {
                self.open.remove(&number);
                self.idle_since = Instant::now();
            }
        }
        if self.open.values().all(|progress| *progress != Progress::Arriving) {
            self.unread = 0;
            if matches!(self.stage.buffers, Buffers::Received(_)) && std::mem::take(&mut self.counted) > 0 {
                // Less is always possible.
                let _ = self.memory.try_resize(self.stage.memory);
            }
        }
        self.wait();
    }

    /// Lets others have what the connection has when its turn has come, unless a request is handled.
    fn wait(&mut self) {
        if self.open.values().any(|progress| *progress == Progress::Handled) {
            self.hold();
        } else if self.last > 0 && self.open.is_empty() && self.head_since.is_none() {
            self.wait_for(WaitsFor::Request);
        } else {
            self.wait_for(WaitsFor::Rest);
        }
    }

    fn hold(&mut self) {
        self.place.hold();
        self.memory.hold();
    }

    fn wait_for(&mut self, for_what: WaitsFor) {
        self.place.wait(for_what);
        self.memory.wait(for_what);
    }
}

/// An open request. Dropping it ends the tracking.
struct TrackedRequest {
    requests: OpenRequests,
    number: u64,
}

impl TrackedRequest {
    fn set(&self, progress: Progress) {
        self.requests.lock().set(self.number, Some(progress));
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        self.requests.lock().set(self.number, None);
    }
}

/// The body of a request, whose end makes the request one that is handled.
pub(super) struct ArrivingBody {
    body: Incoming,
    request: Option<(OpenRequests, u64)>,
}

impl ArrivingBody {
    fn new(body: Incoming, request: &TrackedRequest) -> Self {
        let mut arriving = Self { request: Some((request.requests.clone(), request.number)), body };
        if arriving.body.is_end_stream() {
            arriving.arrived();
        }
        arriving
    }

    fn arrived(&mut self) {
        if let Some((requests, number)) = self.request.take() {
            let mut requests = requests.lock();
            match requests.open.get(&number) {
                Some(Progress::Arriving) => requests.set(number, Some(Progress::Handled)),
                Some(_) => {}
                // What was dropped after the response is no head.
                None if requests.open.is_empty() => (requests.head_since, requests.unread) = (None, 0),
                None => {}
            }
        }
    }
}

impl Body for ArrivingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            // It was taken out of the buffers of the connection.
            Some(Ok(frame)) => {
                let (taken, request) = (frame.data_ref().map_or(0, Bytes::len), &self.request);
                if let Some((requests, _)) = request {
                    let mut requests = requests.lock();
                    requests.unread = requests.unread.saturating_sub(taken);
                }
            }
            _ => self.arrived(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.arrived();
    }
}

/// A stream of which no more is read than there is memory for.
pub(super) struct CountedReader<S> {
    stream: Take<S>,
    requests: OpenRequests,
    /// The change to wait for before more is read.
    waits: Option<Changed>,
}

impl<S: AsyncRead> CountedReader<S> {
    pub(super) fn new(stream: S, requests: OpenRequests) -> Self {
        Self { stream: stream.take(0), requests, waits: None }
    }

    pub(super) fn get_ref(&self) -> &S {
        self.stream.get_ref()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedReader<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let room = loop {
            if let Some(waits) = &mut this.waits {
                ready!(waits.as_mut().poll(cx));
                this.waits = None;
            }
            match this.requests.room() {
                Ok(room) => break room,
                Err(changed) => this.waits = Some(changed),
            }
        };
        this.stream.set_limit(room as u64);
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        this.requests.received(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for CountedReader<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }
}

type TrackFrame = Box<dyn FnMut(Frame<Bytes>) -> Frame<TrackedBytes> + Send>;

/// The body of a response, whose request is tracked until its bytes are written.
pub(super) type TrackedBody = MapFrame<ResponseBody, TrackFrame>;

/// Bytes of a response, which are dropped when they are written.
pub(super) struct TrackedBytes {
    bytes: Bytes,
    _request: Arc<TrackedRequest>,
}

impl Buf for TrackedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

#[cfg(test)]
mod tests;
