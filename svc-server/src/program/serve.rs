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

mod http2;
mod linger;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_util::io::InspectWriter;

use self::http2::{CloseReason, OpenRequests};
use self::linger::Linger;
pub use self::tls::Tls;
use crate::api::Incoming;
use crate::api::OverTls;
use crate::api::response_memory::Reader;
use crate::program::address::ListenAddress;
use crate::program::proxy::TrustedProxies;
use crate::{Api, ResponseBody};

/// The timeout for the head of a request, and for the next request on a connection that is kept alive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
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
/// The pause after a failed accept, such as when no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A bound listener with the settings of its connections.
pub struct Server {
    listeners: Vec<TcpListener>,
    /// The name to which the listeners are bound, for the URL.
    name: Option<String>,
    tls: Option<Arc<Tls>>,
    proxies: Arc<TrustedProxies>,
    connections: Arc<Semaphore>,
    head_timeout: Duration,
    write_timeout: Duration,
}

impl Server {
    /// Binds a listener that serves at most `max_connections` at the same time. Further connections wait to be accepted.
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
            connections: Arc::new(Semaphore::new(max_connections as usize)),
            head_timeout: HEAD_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
        }
    }

    /// Sets the timeout for the head of a request, and for the next request on a connection. The default is 10 seconds.
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
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer, permit) = match accepted {
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
                head_timeout: self.head_timeout,
                write_timeout: self.write_timeout,
                reader: Reader::new(),
                transport_security: tls.is_some().then_some(HSTS),
            };
            tokio::spawn(async move {
                let _permit = permit;
                let reader = Arc::clone(&connection.reader);
                let stream = InspectWriter::new(stream, move |taken: &[u8]| reader.took(taken.len()));
                // The write timeout frees the responses of clients that do not read.
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(connection.write_timeout));
                let stream = Box::pin(stream);
                match tls {
                    None => connection.http_1(stream).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) => {
                            connection.http_2(stream).await;
                        }
                        Ok(Ok(stream)) => connection.http_1(stream).await,
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
                    },
                }
            });
        }
        drop(self.listeners);
        tracing::info!(connections = stopping.receiver_count(), "shutting down");
        let _ = stopping.send(());
        if tokio::time::timeout(grace, stopping.closed()).await.is_err() {
            tracing::warn!("the shutdown grace ended with requests in progress; they are cancelled");
        }
    }

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.connections).acquire_owned().await.map_err(io::Error::other)?;
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
        Ok((stream, peer, permit))
    }
}

/// A connection with its settings.
struct Connection {
    api: Api,
    peer: SocketAddr,
    proxies: Arc<TrustedProxies>,
    /// Changes when the server stops. The server then waits until all receivers are dropped.
    stopping: watch::Receiver<()>,
    head_timeout: Duration,
    write_timeout: Duration,
    /// The client, which loses the connection if it does not read and the memory of its responses is needed.
    reader: Arc<Reader>,
    transport_security: Option<HeaderValue>,
}

impl Connection {
    async fn http_1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        let linger = Linger::default();
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_timeout)
            .max_buf_size(HEAD_BUFFER)
            .serve_connection(TokioIo::new(stream), linger.track(self.service()));
        let mut is_stopping = false;
        let result = loop {
            tokio::select! {
                result = &mut connection => break result,
                _ = self.stopping.changed(), if !is_stopping => {
                    is_stopping = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
                () = self.reader.must_close() => return self.closed_for_memory(),
            }
        };
        linger.drop_rest(connection.into_parts().io.into_inner(), &result).await;
        self.ended(result);
    }

    async fn http_2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        let requests = OpenRequests::default();
        let connection =
            http2::builder(self.head_timeout).serve_connection(TokioIo::new(stream), requests.track(self.service()));
        tokio::pin!(connection);
        let mut is_ending = false;
        loop {
            tokio::select! {
                result = connection.as_mut() => return self.ended(result),
                _ = self.stopping.changed(), if !is_ending => {}
                () = self.reader.must_close() => return self.closed_for_memory(),
                reason = requests.closed(self.head_timeout, self.write_timeout) => match reason {
                    CloseReason::Idle if !is_ending => {}
                    CloseReason::Idle | CloseReason::Stalled => {
                        tracing::debug!(peer = %self.peer, ?reason, "connection closed");
                        return;
                    }
                },
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
            // Boxed, as hyper keeps room for this on each connection, whether there is a request or not.
            Box::pin(async move {
                let mut response = api.call(request, client).await;
                if let Some(value) = transport_security {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, value);
                }
                Ok(response)
            })
        })
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
