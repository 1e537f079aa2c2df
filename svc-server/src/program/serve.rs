//! Listening: connections, their deadlines and limits, TLS, and an orderly end.
//!
//! HTTP/1.1, and HTTP/2 over TLS for clients that ask for it by ALPN.
//!
//! What hyper answers by itself, without a JSON body, because it never becomes a request: 400 for what is
//! not HTTP, 431 for a head over 32 KiB or over 100 headers, 414 for a request target over 32 KiB. A head
//! that does not arrive within 10 s ends the connection.

mod http2;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use self::http2::{Due, Open};
pub use self::tls::Tls;
use crate::Api;
use crate::program::proxy::TrustedProxies;

/// For the head of a request, and for the next request on a kept-alive connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// For a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a head that hyper buffers, on every connection; the limits that are answered in JSON are lower.
const HEAD_BUFFER: usize = 32 * 1024;
/// For a client to take some more of an answer, or over HTTP/2 the whole of it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// What browsers are told over TLS: for a year, this name only by https.
const ONLY_HTTPS: HeaderValue = HeaderValue::from_static("max-age=31536000");
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
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let tls = self.tls.as_ref().map(|tls| tls.acceptor());
            let link = Link {
                api: api.clone(),
                peer,
                proxies: Arc::clone(&self.proxies),
                stopping: stopping.subscribe(),
                head_timeout: self.head_timeout,
                write_timeout: self.write_timeout,
                transport_security: tls.is_some().then_some(ONLY_HTTPS),
            };
            tokio::spawn(async move {
                let _permit = permit;
                // A client that reads nothing holds no answer for longer than this.
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(link.write_timeout));
                let stream = Box::pin(stream);
                match tls {
                    None => link.http_1(stream).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) => {
                            link.http_2(stream).await;
                        }
                        Ok(Ok(stream)) => link.http_1(stream).await,
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                    },
                }
            });
        }
        drop(self.listener);
        tracing::info!(connections = stopping.receiver_count(), "stopping");
        let _ = stopping.send(());
        if tokio::time::timeout(grace, stopping.closed()).await.is_err() {
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
    /// Changes when the server stops, which waits until all of these are gone.
    stopping: watch::Receiver<()>,
    head_timeout: Duration,
    write_timeout: Duration,
    transport_security: Option<HeaderValue>,
}

impl Link {
    async fn http_1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_timeout)
            .max_buf_size(HEAD_BUFFER)
            .serve_connection(TokioIo::new(stream), self.service());
        tokio::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            _ = self.stopping.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        self.ended(result);
    }

    async fn http_2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        let open = Open::default();
        let connection =
            http2::builder(self.head_timeout).serve_connection(TokioIo::new(stream), open.note(self.service()));
        tokio::pin!(connection);
        let mut is_ending = false;
        loop {
            tokio::select! {
                result = connection.as_mut() => return self.ended(result),
                _ = self.stopping.changed(), if !is_ending => {}
                due = open.due(self.head_timeout, self.write_timeout) => match due {
                    Due::Idle if !is_ending => {}
                    Due::Idle | Due::Stuck => {
                        tracing::debug!(peer = %self.peer, ?due, "a connection was cut");
                        return;
                    }
                },
            }
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
    }

    fn service(
        &self,
    ) -> impl Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send + 'static> + use<>
    {
        let (api, peer, proxies) = (self.api.clone(), self.peer.ip(), Arc::clone(&self.proxies));
        let transport_security = self.transport_security.clone();
        service_fn(move |request: Request<Incoming>| {
            let (api, client) = (api.clone(), proxies.client(peer, request.headers()));
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

    fn ended(&self, result: hyper::Result<()>) {
        if let Err(error) = result {
            tracing::debug!(peer = %self.peer, %error, "a connection ended early");
        }
    }
}
