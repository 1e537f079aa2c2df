//! HTTP/2: what a connection may hold, and for how long.
//!
//! HTTP/1.1 has a deadline for whatever a client can leave undone. Over HTTP/2 a client that answers pings is alive for
//! hyper, whether it asks for anything or takes what it asked for. So each request is noted until its answer has been
//! written to the socket, to the last byte: a connection without any ends as an idle one of HTTP/1.1 does, and one that
//! leaves an answer lying is cut.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, Response};
use http_body_util::combinators::MapFrame;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use svc_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Requests of a connection at the same time.
const STREAMS: u32 = 100;
/// Requests that a connection may take back unanswered before it is closed (CVE-2023-44487).
const RESETS: usize = 50;
/// Bytes of the head of a request, CONTINUATION frames included (CVE-2024-27316).
const HEAD_LIST: u32 = 32 * 1024;
/// Bytes of a body that a client may send before they are asked for: of one request, and of all of a connection.
const WINDOW: u32 = 256 * 1024;
/// Bytes of an answer that wait for the client's window outside of the answer itself.
const SEND_BUFFER: usize = 64 * 1024;

/// A builder with the bounds above; a peer that falls silent is asked for a sign of life.
pub(super) fn builder(silence: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_header_list_size(HEAD_LIST)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(silence)
        .keep_alive_timeout(silence);
    builder
}

/// The requests of a connection that are not done with.
#[derive(Clone, Default)]
pub(super) struct Open(Arc<Shared>);

#[derive(Default)]
struct Shared {
    requests: Mutex<Requests>,
    changed: Notify,
}

#[derive(Default)]
struct Requests {
    begun: u64,
    /// In the order of their arrival; since when the answer lies ready, once it does.
    open: BTreeMap<u64, Option<Instant>>,
}

/// What a connection should come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing was asked for: it ends in order.
    Idle,
    /// An answer is not taken: it is cut.
    Stuck,
}

impl Open {
    /// The service, with a note of each request.
    pub(super) fn note<S>(
        &self,
        service: S,
    ) -> impl Service<Request<Incoming>, Response = Response<Noted>, Error = Infallible, Future: Send + 'static> + use<S>
    where
        S: Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send + 'static>,
    {
        let open = self.clone();
        service_fn(move |request: Request<Incoming>| {
            let (note, answer) = (open.begin(), service.call(request));
            async move {
                let answer = answer.await?;
                note.answered();
                let note = Arc::new(note);
                Ok(answer.map(|body| {
                    let hold: Hold =
                        Box::new(move |frame| frame.map_data(|bytes| Held { bytes, _note: Arc::clone(&note) }));
                    body.map_frame(hold)
                }))
            }
        })
    }

    /// Waits until a connection has been without requests for `idle`, or has left an answer lying for `stuck`.
    pub(super) async fn due(&self, idle: Duration, stuck: Duration) -> Due {
        let mut idle_since = None;
        loop {
            let now = Instant::now();
            let (is_empty, oldest) = {
                let requests = self.0.lock();
                (requests.open.is_empty(), requests.open.values().flatten().min().copied())
            };
            idle_since = if is_empty { Some(idle_since.unwrap_or(now)) } else { None };
            let (until, due) = match (idle_since, oldest) {
                (Some(since), _) => (Some(since + idle), Due::Idle),
                (None, oldest) => (oldest.map(|oldest| oldest + stuck), Due::Stuck),
            };
            if until.is_some_and(|until| until <= now) {
                return due;
            }
            let wait = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                // A request in between makes the time without any begin anew.
                () = self.0.changed.notified() => idle_since = None,
            }
        }
    }

    fn begin(&self) -> Note {
        let mut requests = self.0.lock();
        requests.begun += 1;
        let number = requests.begun;
        requests.open.insert(number, None);
        drop(requests);
        self.0.changed.notify_one();
        Note { shared: Arc::clone(&self.0), number }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }
}

/// One request, until it is dropped.
struct Note {
    shared: Arc<Shared>,
    number: u64,
}

impl Note {
    fn answered(&self) {
        if let Some(since) = self.shared.lock().open.get_mut(&self.number) {
            *since = Some(Instant::now());
        }
        self.shared.changed.notify_one();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.shared.lock().open.remove(&self.number);
        self.shared.changed.notify_one();
    }
}

type Hold = Box<dyn FnMut(Frame<Bytes>) -> Frame<Held> + Send>;

/// An answer whose bytes are noted until they are written.
pub(super) type Noted = MapFrame<Full<Bytes>, Hold>;

/// Bytes that h2 drops once they are written.
pub(super) struct Held {
    bytes: Bytes,
    _note: Arc<Note>,
}

impl Buf for Held {
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
    const STUCK: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_its_last_request_on() {
        let open = Open::default();
        let started = Instant::now();
        let request = open.begin();
        let requests = async {
            tokio::time::sleep(3 * STUCK).await;
            drop(request);
            tokio::time::sleep(IDLE / 2).await;
            drop(open.begin());
        };
        let (due, ()) = tokio::join!(open.due(IDLE, STUCK), requests);
        assert_eq!((due, started.elapsed()), (Due::Idle, 3 * STUCK + IDLE / 2 + IDLE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_lies_is_stuck_whatever_comes_after_it() {
        let open = Open::default();
        let started = Instant::now();
        let requests = async {
            let first = open.begin();
            tokio::time::sleep(IDLE).await;
            first.answered();
            loop {
                let next = open.begin();
                next.answered();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let due = tokio::select! {
            due = open.due(IDLE, STUCK) => due,
            () = requests => Due::Idle,
        };
        assert_eq!((due, started.elapsed()), (Due::Stuck, IDLE + STUCK));
    }
}
