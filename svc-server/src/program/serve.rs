//! The HTTP listener: connections with their timeouts and limits, TLS, and graceful shutdown (`docs/contract.md`,
//! "Connections and sizes").
//!
//! It serves HTTP/1.1, and HTTP/2 over TLS to clients that negotiate it by ALPN.
//!
//! # Responses without a JSON body
//!
//! hyper responds to some invalid input itself, before it is a request: 400 to what is not HTTP and to a body whose last
//! transfer coding is not `chunked`, 431 to a head of more than 32 KiB or 100 headers, and 414 to a request target of more
//! than 32 KiB. A connection is closed if the head of a request does not arrive within 10 seconds.
//!
//! # What connections share
//!
//! Each connection takes a place at its listener and memory before anything of it is read (`requests`). Where either is used
//! up, the address that has most gives up its oldest connection that is idle or unfinished, so that neither silent nor slow
//! clients keep others out. A connection with a request that is handled stays.

mod http2;
mod linger;
mod requests;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::io::InspectWriter;

use self::linger::{Linger, RequestBody};
use self::requests::{Buffers, CloseReason, CountedReader, OpenRequests, Stage, Timeouts};
pub use self::tls::Tls;
use crate::kernel::response_memory::Reader;
use crate::kernel::shares::Pool;
use crate::program::address::ListenAddress;
use crate::program::proxy::TrustedProxies;
use crate::{Api, Incoming, OverTls, ResponseBody};

/// The timeout for the head of a request, and for the first byte of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection stays open without a request after one.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// The timeout for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The highest number of bytes of a request head that hyper buffers per connection. The limits with a JSON response are lower.
const HEAD_BUFFER: usize = 32 * 1024;
/// The timeout for a client to read more of a response; over HTTP/2, to read the whole of it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of bytes beyond what a client takes that the system accepts of a response. The rest stays in the process,
/// which counts it.
#[cfg(target_os = "linux")]
const SYSTEM_BUFFER: u32 = 64 * 1024;
/// The `Strict-Transport-Security` header of responses over TLS: browsers use only https for this host, for one year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// The memory of a connection without buffers, in bytes: one that has sent nothing, or nothing for a moment.
const SILENT: usize = 6 * KIB;
/// The part of the memory that connections leave to requests, without which those that have arrived could not end.
const RESERVE: usize = 4;
/// The memory that must be free besides before a connection is accepted, for its next needs. Otherwise those that are accepted would take
/// the memory from those that have sent something.
const NEXT: usize = 160 * KIB;
/// The memory that TLS adds to it.
const TLS: usize = 24 * KIB;
/// The memory of hyper's buffers when a head or a body has more than 8 KiB.
const LARGE_BUFFERS: Buffers = Buffers::Kept(48 * KIB);
/// A TLS handshake, which may have 64 KiB.
const HANDSHAKE: Stage = Stage { memory: 40 * KIB, buffers: Buffers::Received(80 * KIB), is_next_head: false };
/// HTTP/1.1 without TLS.
const PLAIN_HTTP_1: Stage = Stage { memory: 32 * KIB, buffers: LARGE_BUFFERS, is_next_head: true };
/// HTTP/1.1 over TLS.
const TLS_HTTP_1: Stage = Stage { memory: PLAIN_HTTP_1.memory + TLS, ..PLAIN_HTTP_1 };
/// HTTP/2, where all of the window may be unread.
const HTTP_2: Stage = Stage {
    memory: 64 * KIB,
    buffers: Buffers::Received((http2::WINDOW + http2::MAX_HEADER_LIST) as usize + 16 * KIB),
    is_next_head: false,
};
const KIB: usize = 1024;

/// The beginning of HTTP/2 from a client that takes for granted that a server speaks it.
const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The pause after a failed accept, such as when no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A bound listener with the settings of its connections.
pub struct Server {
    listeners: Vec<TcpListener>,
    /// The name to which the listeners are bound, for the URL.
    name: Option<String>,
    tls: Option<Arc<Tls>>,
    proxies: Arc<TrustedProxies>,
    max_connections: u32,
    head_timeout: Duration,
    keep_alive: Duration,
    write_timeout: Duration,
}

impl Server {
    /// Binds a listener that serves at most `max_connections` at the same time. Further ones take the place of a connection
    /// that is idle or unfinished, and wait where there is none.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(address: SocketAddr, max_connections: u32) -> io::Result<Self> {
        Ok(Self::new(vec![TcpListener::bind(address).await?], None, max_connections))
    }

    /// Binds a listener to each address that `address` stands for.
    ///
    /// # Errors
    /// The name cannot be resolved, or an address cannot be bound.
    pub async fn listen(address: &ListenAddress, max_connections: u32) -> io::Result<Self> {
        Ok(Self::new(address.bind().await?, address.name().map(str::to_owned), max_connections))
    }

    fn new(listeners: Vec<TcpListener>, name: Option<String>, max_connections: u32) -> Self {
        Self {
            listeners,
            name,
            tls: None,
            proxies: Arc::default(),
            max_connections,
            head_timeout: HEAD_TIMEOUT,
            keep_alive: KEEP_ALIVE,
            write_timeout: WRITE_TIMEOUT,
        }
    }

    /// Sets how long a connection stays open for another request. The default is 75 seconds.
    #[must_use]
    pub fn with_keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets the timeout for the head of a request, and for the first byte of a connection. The default is 10 seconds.
    #[must_use]
    pub fn with_head_timeout(mut self, head_timeout: Duration) -> Self {
        self.head_timeout = head_timeout;
        self
    }

    /// Sets the timeout for a client to read more of a response. The default is 30 seconds.
    #[must_use]
    pub fn with_write_timeout(mut self, write_timeout: Duration) -> Self {
        self.write_timeout = write_timeout;
        self
    }

    /// Serves https with a certificate chain and its private key, which are files in PEM.
    ///
    /// # Errors
    /// A file cannot be read, or the key does not belong to the certificate.
    pub fn with_tls(mut self, certificate: &Path, key: &Path) -> io::Result<Self> {
        self.tls = Some(Arc::new(Tls::load(certificate, key)?));
        Ok(self)
    }

    /// Returns the TLS certificate, so that it can be reloaded. `None` without https.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Trusts the `X-Forwarded-For` header of these proxies.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// Returns the URL of the listener, such as `http://127.0.0.1:8080`. If it has several addresses, it is the first one.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let first = self.listeners.first().ok_or(io::ErrorKind::NotConnected)?;
        let address = first.local_addr()?;
        Ok(match &self.name {
            Some(name) => format!("{scheme}://{name}:{}", address.port()),
            None => format!("{scheme}://{address}"),
        })
    }

    /// Serves until `stop` is ready. Then it closes idle connections, and waits at most `grace` for running requests to end.
    pub async fn run(mut self, api: Api, stop: impl Future<Output = ()>, grace: Duration) {
        let (stopping, _) = watch::channel(());
        let places = Pool::of_places("connections", self.max_connections as usize, api.metrics());
        let memory = api.request_memory();
        let reserve = memory.limit() / RESERVE;
        tokio::pin!(stop);
        loop {
            let accept = async {
                let (stream, peer) = self.accept().await?;
                let place = places.take(peer.ip(), 1, 0).await;
                let memory = memory.take(peer.ip(), SILENT, reserve + NEXT).await.leaving(reserve);
                Ok::<_, io::Error>((stream, peer, OpenRequests::new(place, memory, silent(0))))
            };
            let accepted = tokio::select! {
                accepted = accept => accepted,
                () = &mut stop => break,
            };
            let (stream, peer, requests) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let tls = self.tls.as_ref().map(|tls| tls.acceptor());
            let connection = Connection {
                api: api.clone(),
                peer,
                proxies: Arc::clone(&self.proxies),
                stopping: stopping.subscribe(),
                timeouts: Timeouts { head: self.head_timeout, idle: self.keep_alive, response: None },
                write_timeout: self.write_timeout,
                requests,
                reader: Reader::new(),
                transport_security: tls.is_some().then_some(HSTS),
            };
            tokio::spawn(connection.serve(stream, tls));
        }
        drop(self.listeners);
        tracing::info!(connections = stopping.receiver_count(), "shutting down");
        let _ = stopping.send(());
        if tokio::time::timeout(grace, stopping.closed()).await.is_err() {
            tracing::warn!("the shutdown grace ended with requests in progress; they are cancelled");
        }
    }

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        // The listeners take turns, so that none of them keeps the others from accepting.
        self.listeners.rotate_left(1);
        let accept = |context: &mut Context<'_>| {
            let mut accepted = self.listeners.iter().map(|listener| listener.poll_accept(context));
            accepted.find(Poll::is_ready).unwrap_or(Poll::Pending)
        };
        let (stream, peer) = std::future::poll_fn(accept).await?;
        stream.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        {
            let socket = socket2::SockRef::from(&stream);
            socket.set_tcp_notsent_lowat(SYSTEM_BUFFER)?;
            // What the system has accepted does not outlive its connection for long.
            socket.set_tcp_user_timeout(Some(self.write_timeout))?;
        }
        Ok((stream, peer))
    }
}

/// A connection with its settings.
struct Connection {
    api: Api,
    peer: SocketAddr,
    proxies: Arc<TrustedProxies>,
    /// Changes when the server stops. The server then waits until all receivers are dropped.
    stopping: watch::Receiver<()>,
    timeouts: Timeouts,
    write_timeout: Duration,
    requests: OpenRequests,
    /// The client, which loses the connection if it does not read and the memory of its responses is needed.
    reader: Arc<Reader>,
    transport_security: Option<HeaderValue>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Until then nothing but the socket is needed.
        let Some(first) = self.first_byte(&stream).await else { return };
        let reader = Arc::clone(&self.reader);
        let stream = CountedReader::new(stream, self.requests.clone());
        let stream = InspectWriter::new(stream, move |taken: &[u8]| reader.took(taken.len()));
        // The write timeout frees the responses of clients that do not read.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_timeout));
        let mut stream = Box::pin(stream);
        // In boxes of their own, as all of them would have the size of the largest otherwise.
        match tls {
            None => Box::pin(self.http_1(stream, PLAIN_HTTP_1)).await,
            Some(_) if first.is_ascii_alphabetic() => {
                tracing::debug!(peer = %self.peer, "a client speaks http where https is served");
                let text = "This port speaks https. Use an https:// URL.\n";
                Box::pin(refuse(&mut stream, text)).await;
            }
            Some(tls) => Box::pin(self.https(stream, tls)).await,
        }
    }

    /// Waits for the first byte. Returns `None` if the connection is to be closed before that.
    async fn first_byte(&mut self, stream: &TcpStream) -> Option<u8> {
        let mut first = [0; 1];
        if let Some(peeked) = stream.peek(&mut first).now_or_never() {
            return peeked.is_ok_and(|count| count > 0).then_some(first[0]);
        }
        self.requests.waits();
        tokio::select! {
            peeked = stream.peek(&mut first) => peeked.is_ok_and(|count| count > 0).then_some(first[0]),
            _ = self.stopping.changed() => None,
            () = self.requests.given_up() => None,
            _ = self.requests.expired(self.timeouts) => None,
        }
    }

    async fn https<S: Stream>(self, stream: S, tls: TlsAcceptor) {
        if !self.requests.enter(HANDSHAKE).await {
            return self.given_up();
        }
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)) => accepted,
            () = self.requests.given_up() => return self.given_up(),
        };
        match accepted {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) => {
                Box::pin(self.http_2(Box::new(stream))).await;
            }
            Ok(Ok(stream)) => Box::pin(self.http_1(Box::new(stream), TLS_HTTP_1)).await,
            Ok(Err(error)) => tracing::debug!(peer = %self.peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(peer = %self.peer, "TLS handshake timed out"),
        }
    }

    /// Serves HTTP/1.1. A connection without a request has no buffers: they are given back a moment after the last one, and made
    /// anew for the next.
    async fn http_1<S: Stream>(mut self, mut stream: S, stage: Stage) {
        loop {
            if !self.requests.enter(stage).await {
                return self.given_up();
            }
            match Box::pin(self.http_1_requests(stream)).await {
                Some(quiet) => stream = quiet,
                None => return,
            }
            let silent = silent(stage.memory - PLAIN_HTTP_1.memory);
            if !self.requests.enter(silent).await || self.first_byte(stream.socket()).await.is_none() {
                return;
            }
        }
    }

    /// Serves requests until there was none for a moment, and then returns the stream. Returns `None` if it has ended.
    async fn http_1_requests<S: Stream>(&mut self, stream: S) -> Option<S> {
        let linger = Linger::default();
        let service = self.requests.track(linger.track(self.service()));
        let mut connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEAD_BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        let (mut is_ending, mut quiet_after) = (false, None);
        let result = loop {
            tokio::select! {
                result = std::future::poll_fn(|context| connection.poll_without_shutdown(context)) => break result,
                _ = self.stopping.changed(), if !is_ending => {}
                count = self.requests.quiet(), if !is_ending => quiet_after = Some(count),
                () = self.reader.must_close() => {
                    self.closed_for_memory();
                    return None;
                }
                () = self.requests.given_up() => {
                    self.given_up();
                    return None;
                }
                reason = self.requests.expired(self.timeouts) => {
                    self.expired(&reason);
                    return None;
                }
            }
            is_ending = true;
            std::pin::Pin::new(&mut connection).graceful_shutdown();
        };
        let parts = connection.into_parts();
        let mut stream = parts.io.into_inner();
        // If a request came in between, it was told that the connection ends.
        if result.is_ok() && quiet_after == Some(self.requests.count()) && parts.read_buf.is_empty() {
            return Some(stream);
        }
        if result.is_err() && parts.read_buf.starts_with(HTTP_2_PREFACE) {
            tracing::debug!(peer = %self.peer, "a client speaks HTTP/2 without having negotiated it");
            let text = "This port speaks HTTP/1.1, and HTTP/2 over TLS to clients that negotiate it by ALPN.\n";
            refuse(&mut stream, text).await;
            return None;
        }
        if stream.shutdown().await.is_ok() {
            linger.drop_rest(stream, &result).await;
        }
        self.ended(result);
        None
    }

    async fn http_2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        if !self.requests.enter(HTTP_2).await {
            return self.given_up();
        }
        let service = self.service();
        let service = service_fn(move |request: Request<_>| service.call(request.map(RequestBody::dropped_at_once)));
        let connection =
            http2::builder(self.timeouts.head).serve_connection(TokioIo::new(stream), self.requests.track(service));
        tokio::pin!(connection);
        let mut timeouts = Timeouts { response: Some(self.write_timeout), ..self.timeouts };
        let mut is_ending = false;
        loop {
            tokio::select! {
                result = connection.as_mut() => return self.ended(result),
                _ = self.stopping.changed(), if !is_ending => {}
                () = self.reader.must_close() => return self.closed_for_memory(),
                () = self.requests.given_up() => return self.given_up(),
                reason = self.requests.expired(timeouts) => {
                    if is_ending || reason == CloseReason::Stalled {
                        return self.expired(&reason);
                    }
                    // The time that the client has to end it.
                    (timeouts.head, timeouts.idle) = (timeouts.head * 2, timeouts.idle + timeouts.head);
                }
            }
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
    }

    fn service<B: Incoming + 'static>(
        &self,
    ) -> impl Service<Request<B>, Response = Response<ResponseBody>, Error = Infallible, Future: Send + 'static> + use<B>
    {
        let (api, peer, proxies) = (self.api.clone(), self.peer.ip(), Arc::clone(&self.proxies));
        let transport_security = self.transport_security.clone();
        let reader = Arc::clone(&self.reader);
        service_fn(move |mut request: Request<B>| {
            let (api, client) = (api.clone(), proxies.client(peer, request.headers()));
            request.extensions_mut().insert(Arc::clone(&reader));
            if transport_security.is_some() {
                request.extensions_mut().insert(OverTls);
            }
            let transport_security = transport_security.clone();
            async move {
                let mut response = api.call(request, client).await;
                if let Some(value) = transport_security {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
                }
                Ok(response)
            }
        })
    }

    fn given_up(&self) {
        tracing::debug!(peer = %self.peer, "closed an idle or unfinished connection, as others need its place or its memory");
    }

    fn expired(&self, reason: &CloseReason) {
        tracing::debug!(peer = %self.peer, ?reason, "connection closed");
    }

    fn closed_for_memory(&self) {
        tracing::debug!(peer = %self.peer, "closed the connection of a client that does not read its responses, as their memory is needed");
    }

    fn ended(&self, result: hyper::Result<()>) {
        if let Err(error) = result {
            tracing::debug!(peer = %self.peer, %error, "connection ended with an error");
        }
    }
}

/// The state of a connection without buffers, which takes so much more than one without TLS.
fn silent(more: usize) -> Stage {
    Stage { memory: SILENT + more, buffers: Buffers::Kept(0), is_next_head: false }
}

/// A stream to a client, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket below it.
    fn socket(&self) -> &TcpStream;
}

impl<W: FnMut(&[u8]) + Send + 'static> Stream for Pin<Box<TimeoutStream<InspectWriter<CountedReader<TcpStream>, W>>>> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().get_ref().get_ref()
    }
}

impl<S: Stream> Stream for Box<TlsStream<S>> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0.socket()
    }
}

/// Responds to what is not HTTP/1.1 as the listener expects it, in words for a person, and ends the connection.
async fn refuse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) {
    let length = text.len();
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\n\r\n{text}"
    );
    if stream.write_all(response.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        linger::drop_stream(stream).await;
    }
}
