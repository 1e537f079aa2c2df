//! Listening: connections, their deadlines and limits, TLS, and an orderly end.
//!
//! What hyper answers by itself, without a JSON body, because it never becomes a request: 400 for what is
//! not HTTP, 431 for a head over 64 KiB or over 100 headers, 414 for a request target over 64 KiB. A head
//! that does not arrive within 10 s ends the connection.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Api;

/// For the head of a request, and for the next request on a kept-alive connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// For a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a head that hyper buffers; the limits that are answered in JSON are lower.
const HEAD_BUFFER: usize = 64 * 1024;
/// Pause after a failed accept, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listening socket and what its connections get.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: Arc<Semaphore>,
    head_timeout: Duration,
}

impl Server {
    /// Listens on `address` and serves at most `max_connections` at once; further ones wait.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(address: SocketAddr, max_connections: u32) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let connections = Arc::new(Semaphore::new(max_connections as usize));
        Ok(Self { listener, tls: None, connections, head_timeout: HEAD_TIMEOUT })
    }

    /// Gives the head of a request this long to arrive, in place of 10 s; also the next one on a connection.
    #[must_use]
    pub fn with_head_timeout(mut self, head_timeout: Duration) -> Self {
        self.head_timeout = head_timeout;
        self
    }

    /// Serves https with a certificate chain and its key, both in PEM.
    ///
    /// # Errors
    /// A file cannot be read, or the key does not fit the certificate.
    pub fn with_tls(mut self, certificate: &Path, key: &Path) -> io::Result<Self> {
        let unusable =
            |path: &Path, why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", path.display()));
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|why| unusable(certificate, &why))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|why| unusable(key, &why))?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|why| unusable(key, &why))?;
        self.tls = Some(TlsAcceptor::from(Arc::new(config)));
        Ok(self)
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
            let (api, tls, watcher) = (api.clone(), self.tls.clone(), graceful.watcher());
            let head_timeout = self.head_timeout;
            tokio::spawn(async move {
                let _permit = permit;
                match tls {
                    None => connection(stream, peer, api, watcher, head_timeout).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        Ok(Ok(stream)) => connection(stream, peer, api, watcher, head_timeout).await,
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

async fn connection<S>(stream: S, peer: SocketAddr, api: Api, watcher: Watcher, head_timeout: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(api.call(request, peer.ip()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_buf_size(HEAD_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(why) = watcher.watch(connection).await {
        tracing::debug!(%peer, %why, "a connection ended early");
    }
}
