//! Listening: connections, their deadlines and limits, TLS, and an orderly end.
//!
//! HTTP/1.1, and HTTP/2 over TLS for clients that ask for it by ALPN.
//!
//! What hyper answers by itself, without a JSON body, because it never becomes a request: 400 for what is
//! not HTTP, 431 for a head over 64 KiB or over 100 headers, 414 for a request target over 64 KiB. A head
//! that does not arrive within 10 s ends the connection.

mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

pub use self::tls::Tls;
use crate::Api;
use crate::proxy::TrustedProxies;

/// For the head of a request, and for the next request on a kept-alive connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// For a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a head that hyper buffers; the limits that are answered in JSON are lower.
const HEAD_BUFFER: usize = 64 * 1024;
/// For a client to take some more of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// HTTP/2: requests of a connection at the same time.
const STREAMS: u32 = 100;
/// HTTP/2: requests that a connection may take back unanswered before it is closed.
const RESETS: usize = 50;
/// HTTP/2: bytes of the head of a request.
const HEAD_LIST: u32 = 64 * 1024;
/// Pause after a failed accept, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listening socket and what its connections get.
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    proxies: Arc<TrustedProxies>,
    connections: Arc<Semaphore>,
    head_timeout: Duration,
    write_timeout: Duration,
}

impl Server {
    /// Listens on `address` and serves at most `max_connections` at once; further ones wait.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(address: SocketAddr, max_connections: u32) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let connections = Arc::new(Semaphore::new(max_connections as usize));
        Ok(Self {
            listener,
            tls: None,
            proxies: Arc::default(),
            connections,
            head_timeout: HEAD_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
        })
    }

    /// Gives the head of a request this long to arrive, in place of 10 s; also the next one on a connection.
    #[must_use]
    pub fn with_head_timeout(mut self, head_timeout: Duration) -> Self {
        self.head_timeout = head_timeout;
        self
    }

    /// Gives a client this long to take some more of an answer, in place of 30 s.
    #[must_use]
    pub fn with_write_timeout(mut self, write_timeout: Duration) -> Self {
        self.write_timeout = write_timeout;
        self
    }

    /// Serves https with a certificate chain and its key, both in PEM; HTTP/2 where the client wants it.
    ///
    /// # Errors
    /// A file cannot be read, or the key does not fit the certificate.
    pub fn with_tls(mut self, certificate: &Path, key: &Path) -> io::Result<Self> {
        self.tls = Some(Arc::new(Tls::load(certificate, key)?));
        Ok(self)
    }

    /// What it serves https with, to be reloaded.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Believes these proxies when they say whom they speak for.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// Where it listens, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.listener.local_addr()?))
    }

    /// Serves until `stop` is ready, then lets what runs finish within `grace`.
    pub async fn run(self, api: Api, stop: impl Future<Output = ()>, grace: Duration) {
        let graceful = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(why) => {
                    tracing::warn!(%why, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let tls = self.tls.as_ref().map(|tls| tls.acceptor());
            let link = Link {
                api: api.clone(),
                peer,
                proxies: Arc::clone(&self.proxies),
                watcher: graceful.watcher(),
                head_timeout: self.head_timeout,
            };
            let write_timeout = self.write_timeout;
            tokio::spawn(async move {
                let _permit = permit;
                // A client that reads nothing holds no answer for longer than this.
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(write_timeout));
                let stream = Box::pin(stream);
                match tls {
                    None => link.http_1(stream).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) => {
                            link.http_2(stream).await;
                        }
                        Ok(Ok(stream)) => link.http_1(stream).await,
                        Ok(Err(why)) => tracing::debug!(%peer, %why, "a TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                    },
                }
            });
        }
        drop(self.listener);
        tracing::info!(connections = graceful.count(), "stopping");
        if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests were still running at the end of the grace");
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.connections).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, peer) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, peer, permit))
    }
}

/// What a connection needs to be served.
struct Link {
    api: Api,
    peer: SocketAddr,
    proxies: Arc<TrustedProxies>,
    watcher: Watcher,
    head_timeout: Duration,
}

impl Link {
    async fn http_1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let (service, peer, head_timeout) = (self.service(), self.peer, self.head_timeout);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout)
            .max_buf_size(HEAD_BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        ended(peer, self.watcher.watch(connection).await);
    }

    /// Streams, their heads and those that are reset are bounded (CVE-2023-44487); a peer that falls silent is asked
    /// for a sign of life.
    async fn http_2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let (service, peer, head_timeout) = (self.service(), self.peer, self.head_timeout);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(RESETS)
            .max_header_list_size(HEAD_LIST)
            .keep_alive_interval(head_timeout)
            .keep_alive_timeout(head_timeout)
            .serve_connection(TokioIo::new(stream), service);
        ended(peer, self.watcher.watch(connection).await);
    }

    fn service(
        &self,
    ) -> impl Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send + 'static> + use<>
    {
        let (api, peer, proxies) = (self.api.clone(), self.peer.ip(), Arc::clone(&self.proxies));
        service_fn(move |request: Request<Incoming>| {
            let (api, client) = (api.clone(), proxies.client(peer, request.headers()));
            async move { Ok(api.call(request, client).await) }
        })
    }
}

fn ended(peer: SocketAddr, result: hyper::Result<()>) {
    if let Err(why) = result {
        tracing::debug!(%peer, %why, "a connection ended early");
    }
}
