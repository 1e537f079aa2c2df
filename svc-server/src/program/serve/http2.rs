//! Limits of HTTP/2 connections.

use std::time::Duration;

use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// The highest number of concurrent requests of a connection.
const MAX_STREAMS: u32 = 100;
/// The number of requests that a client may reset before their response, after which the connection is closed
/// (CVE-2023-44487).
const MAX_RESETS: usize = 50;
/// The highest number of bytes of the head of a request, including CONTINUATION frames (CVE-2024-27316).
pub(super) const MAX_HEADER_LIST: u32 = 32 * 1024;
/// The flow control window in bytes, of one request and of a whole connection: what a client may send before it is read.
pub(super) const WINDOW: u32 = 256 * 1024;
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
