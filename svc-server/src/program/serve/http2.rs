//! Limits and timeouts of HTTP/2 connections.
//!
//! With HTTP/1.1, a timeout applies to everything that a client can leave unfinished. With HTTP/2, hyper considers a client
//! alive that responds to pings, even if it sends no requests or reads no responses. So each request is tracked until the
//! last byte of its response has been written to the socket. A connection without open requests is closed like an idle
//! HTTP/1.1 connection, and one whose client does not read a response is closed after the write timeout.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapFrame;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use svc_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ResponseBody;

/// The highest number of concurrent requests of a connection.
const MAX_STREAMS: u32 = 100;
/// The number of requests that a client may reset before their response, after which the connection is closed
/// (CVE-2023-44487).
const MAX_RESETS: usize = 50;
/// The highest number of bytes of the head of a request, including CONTINUATION frames (CVE-2024-27316).
const MAX_HEADER_LIST: u32 = 32 * 1024;
/// The flow control window in bytes, of one request and of a whole connection: what a client may send before it is read.
const WINDOW: u32 = 256 * 1024;
/// The highest number of bytes of a response that are buffered until the client has window for them.
const SEND_BUFFER: usize = 64 * 1024;

/// Returns a connection builder with the limits above. It pings a client that has been silent for `ping_interval`, and
/// closes the connection if no response comes within the same time.
pub(super) fn builder(ping_interval: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .max_header_list_size(MAX_HEADER_LIST)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(ping_interval)
        .keep_alive_timeout(ping_interval);
    builder
}

/// The requests of a connection whose responses are not completely written.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    requests: Mutex<Requests>,
    changed: Notify,
}

#[derive(Default)]
struct Requests {
    /// The number of the last request.
    last: u64,
    /// The open requests by number, with the time at which the response was ready.
    open: BTreeMap<u64, Option<Instant>>,
}

/// The reason for which a connection is to be closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// It had no open requests for the idle timeout, and is closed gracefully.
    Idle,
    /// The client does not read a response. It is closed at once.
    Stalled,
}

impl OpenRequests {
    /// Wraps a service so that each of its requests is tracked.
    pub(super) fn track<S>(
        &self,
        service: S,
    ) -> impl Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible, Future: Send + 'static> + use<S>
    where
        S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible, Future: Send + 'static>,
    {
        let open = self.clone();
        service_fn(move |request: Request<Incoming>| {
            let (open, tracked, response) = (open.clone(), open.begin(), service.call(request));
            async move {
                let response = response.await?;
                // A live list has no length. It is open for as long as it lasts, and each of its parts is to be read in time.
                let is_live = !response.headers().contains_key(CONTENT_LENGTH) && !response.body().is_end_stream();
                if !is_live {
                    tracked.response_ready();
                }
                let tracked = Arc::new(tracked);
                Ok(response.map(|body| {
                    let track: TrackFrame = Box::new(move |frame| {
                        let request = if is_live { Arc::new(open.begin()) } else { Arc::clone(&tracked) };
                        request.response_ready();
                        frame.map_data(|bytes| TrackedBytes { bytes, _request: request })
                    });
                    body.map_frame(track)
                }))
            }
        })
    }

    /// Waits until the connection is to be closed: it has had no open requests for `idle`, or a response has been ready for
    /// `stalled` without being read completely.
    pub(super) async fn closed(&self, idle: Duration, stalled: Duration) -> CloseReason {
        let mut idle_since = None;
        loop {
            let now = Instant::now();
            let (is_empty, oldest) = {
                let requests = self.0.lock();
                (requests.open.is_empty(), requests.open.values().flatten().min().copied())
            };
            idle_since = if is_empty { Some(idle_since.unwrap_or(now)) } else { None };
            let (until, reason) = match (idle_since, oldest) {
                (Some(since), _) => (Some(since + idle), CloseReason::Idle),
                (None, oldest) => (oldest.map(|oldest| oldest + stalled), CloseReason::Stalled),
            };
            if until.is_some_and(|until| until <= now) {
                return reason;
            }
            let wait = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                // A request in between restarts the idle time.
                () = self.0.changed.notified() => idle_since = None,
            }
        }
    }

    fn begin(&self) -> TrackedRequest {
        let mut requests = self.0.lock();
        requests.last += 1;
        let number = requests.last;
        requests.open.insert(number, None);
        drop(requests);
        self.0.changed.notify_one();
        TrackedRequest { shared: Arc::clone(&self.0), number }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }
}

/// An open request. Dropping it ends the tracking.
struct TrackedRequest {
    shared: Arc<Shared>,
    number: u64,
}

impl TrackedRequest {
    fn response_ready(&self) {
        if let Some(since) = self.shared.lock().open.get_mut(&self.number) {
            *since = Some(Instant::now());
        }
        self.shared.changed.notify_one();
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        self.shared.lock().open.remove(&self.number);
        self.shared.changed.notify_one();
    }
}

type TrackFrame = Box<dyn FnMut(Frame<Bytes>) -> Frame<TrackedBytes> + Send>;

/// The body of a response, whose request is tracked until its bytes are written.
pub(super) type TrackedBody = MapFrame<ResponseBody, TrackFrame>;

/// Bytes of a response, which h2 drops when they are written.
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
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(10);
    const STALLED: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_idle_time_starts_at_the_end_of_the_last_request() {
        let open = OpenRequests::default();
        let started = Instant::now();
        let request = open.begin();
        let requests = async {
            tokio::time::sleep(3 * STALLED).await;
            drop(request);
            tokio::time::sleep(IDLE / 2).await;
            drop(open.begin());
        };
        let (reason, ()) = tokio::join!(open.closed(IDLE, STALLED), requests);
        assert_eq!((reason, started.elapsed()), (CloseReason::Idle, 3 * STALLED + IDLE / 2 + IDLE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_response_stalls_the_connection_despite_later_requests() {
        let open = OpenRequests::default();
        let started = Instant::now();
        let requests = async {
            let first = open.begin();
            tokio::time::sleep(IDLE).await;
            first.response_ready();
            loop {
                let next = open.begin();
                next.response_ready();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let reason = tokio::select! {
            reason = open.closed(IDLE, STALLED) => reason,
            () = requests => CloseReason::Idle,
        };
        assert_eq!((reason, started.elapsed()), (CloseReason::Stalled, IDLE + STALLED));
    }
}
