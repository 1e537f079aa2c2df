//! Connections to webhook endpoints.
//!
//! The [`Dialer`] resolves the host name, checks every address against the policy for webhook hosts, and connects only to
//! checked addresses. An address that is written in the URL is checked the same way. Of several addresses, the first that
//! responds is connected to (see [`happy_eyeballs`]). With a proxy, a connection is a tunnel through it to such an address.
//!
//! # DNS rebinding
//!
//! A name may resolve to another address each time. An attempt therefore resolves it once, checks the addresses and passes
//! them to the connection in [`CHECKED_ADDRESSES`], which does not resolve the name again.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Extensions, Uri};
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use svc_core::values::HostPolicy;
use svc_core::webhooks::addresses;
use svc_core::webhooks::deliveries::AttemptCause;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::happy_eyeballs;
use super::proxy::EgressProxy;
use super::resolver::Resolver;
use super::tls_errors;

/// The timeout of a TCP connection, over all addresses of the host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// The checked addresses of the attempt that this task makes. None of them means that the proxy resolves the host.
    pub(crate) static CHECKED_ADDRESSES: Vec<SocketAddr>;
}

/// The reason for which no connection was made.
#[derive(Debug)]
pub(crate) struct DialError {
    pub(crate) cause: AttemptCause,
    pub(crate) reason: String,
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.class(), self.reason)
    }
}

impl StdError for DialError {}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        let cause = match error.kind() {
            io::ErrorKind::ConnectionRefused => AttemptCause::ConnectionRefused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => AttemptCause::Unreachable,
            _ => AttemptCause::ConnectionFailed,
        };
        failed(cause, error)
    }
}

pub(crate) fn failed(cause: AttemptCause, reason: impl fmt::Display) -> DialError {
    DialError { cause, reason: reason.to_string() }
}

/// Resolves host names, checks their addresses, and connects to them.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Arc<dyn Resolver>,
    policy: HostPolicy,
    tls: TlsConnector,
    proxy: Option<Arc<EgressProxy>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Dialer {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, policy: HostPolicy) -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self::with_authorities(resolver, policy, roots)
    }

    /// Returns a dialer that trusts these certificate authorities in place of the public ones.
    pub(crate) fn with_authorities(resolver: Arc<dyn Resolver>, policy: HostPolicy, roots: RootCertStore) -> Self {
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { resolver, policy, tls: TlsConnector::from(Arc::new(config)), proxy: None }
    }

    /// Connects through this proxy.
    pub(crate) fn through(self, proxy: EgressProxy) -> Self {
        Self { proxy: Some(Arc::new(proxy)), ..self }
    }

    /// Returns a dialer by the same rules with other settings of TLS.
    pub(crate) fn with_tls(&self, config: ClientConfig) -> Self {
        Self { tls: TlsConnector::from(Arc::new(config)), ..self.clone() }
    }

    /// Returns the addresses of the host of a URL, each of which may be connected to. If one of them is refused, so is the host.
    /// There are none if the proxy resolves the host.
    pub(crate) async fn check_addresses(&self, uri: &Uri) -> Result<Vec<SocketAddr>, DialError> {
        let (host, port) = host_and_port(uri);
        if self.policy == HostPolicy::Public && uri.scheme_str() != Some("https") {
            return Err(failed(AttemptCause::NotHttps, "the URL is not https"));
        }
        let addresses = match host.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) if self.proxy.as_ref().is_some_and(|proxy| proxy.resolves()) => {
                if self.policy == HostPolicy::Public {
                    addresses::check_host_name(host).map_err(|error| failed(AttemptCause::NotPublic, error))?;
                }
                return Ok(Vec::new());
            }
            Err(_) => self.resolver.resolve(host).await,
        };
        if addresses.is_empty() {
            return Err(failed(AttemptCause::UnknownHost, format!("{host} does not resolve")));
        }
        if self.policy == HostPolicy::Public {
            for address in &addresses {
                addresses::check_address(*address).map_err(|error| failed(AttemptCause::NotPublic, error))?;
            }
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    async fn dial(self, uri: Uri, addresses: Vec<SocketAddr>) -> Result<TokioIo<Stream>, DialError> {
        let (tcp, peer) = match tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&uri, &addresses)).await {
            Err(_) if self.proxy.is_some() => {
                return Err(failed(AttemptCause::ProxyTimeout, "the proxy made no connection within 5 s"));
            }
            Err(_) => return Err(failed(AttemptCause::ConnectionTimeout, "no connection within 5 s")),
            Ok(connected) => connected?,
        };
        let _ = tcp.set_nodelay(true);
        if uri.scheme_str() != Some("https") {
            return Ok(TokioIo::new(Stream::new(peer, Io::Plain(tcp))));
        }
        let host = host_and_port(&uri).0.to_owned();
        let name = ServerName::try_from(host).map_err(|error| failed(AttemptCause::TlsFailed, error))?;
        // The timeout of the attempt covers this, but the pool may complete a connection after its attempt has ended.
        let tls = match tokio::time::timeout(HANDSHAKE_TIMEOUT, self.tls.connect(name, tcp)).await {
            Err(_) => return Err(failed(AttemptCause::TlsTimeout, "no TLS session within 10 s")),
            Ok(connected) => {
                connected.map_err(|error| failed(AttemptCause::TlsFailed, tls_errors::in_words(&error)))?
            }
        };
        Ok(TokioIo::new(Stream::new(peer, Io::Tls(Box::new(tls)))))
    }

    /// Connects to the first of these addresses that responds, or has the proxy do so. Returns the address, unless the proxy
    /// alone knows it.
    async fn connect(&self, uri: &Uri, addresses: &[SocketAddr]) -> Result<(TcpStream, Option<SocketAddr>), DialError> {
        let Some(proxy) = &self.proxy else {
            let tcp = happy_eyeballs::connect_first(addresses, TcpStream::connect).await?;
            let peer = tcp.peer_addr()?;
            return Ok((tcp, Some(peer)));
        };
        if addresses.is_empty() {
            let (host, port) = host_and_port(uri);
            return Ok((proxy.tunnel(&*self.resolver, &format!("{host}:{port}")).await?, None));
        }
        happy_eyeballs::connect_first(addresses, async |address: SocketAddr| {
            Ok((proxy.tunnel(&*self.resolver, &address.to_string()).await?, Some(address)))
        })
        .await
    }
}

/// Returns the host of a URL, without the brackets of an IPv6 address, and its port.
fn host_and_port(uri: &Uri) -> (&str, u16) {
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let of_scheme = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    (host, uri.port_u16().unwrap_or(of_scheme))
}

impl tower_service::Service<Uri> for Dialer {
    type Response = TokioIo<Stream>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (dialer, checked_addresses) = (self.clone(), CHECKED_ADDRESSES.try_with(Clone::clone));
        Box::pin(async move {
            let addresses = match checked_addresses {
                Ok(addresses) => addresses,
                // The pool may open a connection outside of the task of an attempt.
                Err(_) => dialer.check_addresses(&uri).await?,
            };
            dialer.dial(uri, addresses).await
        })
    }
}

/// The connection that was used, as an extension of the response and of an error of the HTTP client.
#[derive(Clone, Debug)]
pub(crate) struct Dialled {
    /// The address, unless the proxy alone knows it.
    pub(crate) peer: Option<SocketAddr>,
    traffic: Arc<Traffic>,
}

impl Dialled {
    /// Returns whether an error means that a kept connection ended before any byte of a response to the request
    /// arrived.
    ///
    /// The receiver closes a connection when it likes, and a request may be on its way then. On a new connection, from
    /// which nothing was received, the end is a failure of the receiver.
    pub(crate) fn has_lost_request(error: &ClientError) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connected) = error.connect_info() {
            connected.get_extras(&mut extensions);
        }
        extensions.get().is_some_and(|Self { traffic, .. }| traffic.is_request_lost())
    }
}

/// The traffic of a connection. The tasks that share it get the end of a request through a channel of the HTTP
/// client, which orders their accesses.
#[derive(Debug, Default)]
struct Traffic {
    /// Whether anything was received.
    received: AtomicBool,
    /// Whether nothing was received since a request was begun.
    awaiting_response: AtomicBool,
}

impl Traffic {
    fn request_begun(&self) {
        self.awaiting_response.store(true, Ordering::Relaxed);
    }

    fn received(&self) {
        self.received.store(true, Ordering::Relaxed);
        self.awaiting_response.store(false, Ordering::Relaxed);
    }

    /// Returns whether a request would be lost if the connection ended now, although an earlier one had a response.
    fn is_request_lost(&self) -> bool {
        self.received.load(Ordering::Relaxed) && self.awaiting_response.load(Ordering::Relaxed)
    }
}

/// A connection with the address of its peer.
pub(crate) struct Stream {
    dialled: Dialled,
    /// Whether a part of a request was written, and the rest is still to be: a flush ends a request.
    writing: bool,
    io: Io,
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn new(peer: Option<SocketAddr>, io: Io) -> Self {
        Self { dialled: Dialled { peer, traffic: Arc::default() }, writing: false, io }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.dialled.clone())
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let before = buf.filled().len();
        let read = match &mut stream.io {
            Io::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Io::Tls(io) => Pin::new(io).poll_read(cx, buf),
        };
        if buf.filled().len() > before {
            stream.dialled.traffic.received();
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if !std::mem::replace(&mut stream.writing, true) {
            stream.dialled.traffic.request_begun();
        }
        match &mut stream.io {
            Io::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Io::Tls(io) => Pin::new(io).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        stream.writing = false;
        match &mut stream.io {
            Io::Plain(io) => Pin::new(io).poll_flush(cx),
            Io::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Io::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_request_is_lost_until_a_byte_of_its_response_arrives_on_a_kept_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = Stream::new(Some(address), Io::Plain(TcpStream::connect(address).await.unwrap()));
        let mut peer = listener.accept().await.unwrap().0;
        let traffic = Arc::clone(&stream.dialled.traffic);

        stream.write_all(b"first request").await.unwrap();
        stream.flush().await.unwrap();
        assert!(!traffic.is_request_lost(), "the connection is new");
        peer.write_all(b"response").await.unwrap();
        stream.read_exact(&mut [0; 8]).await.unwrap();
        assert!(!traffic.is_request_lost(), "there is no request");

        stream.write_all(b"second ").await.unwrap();
        assert!(traffic.is_request_lost());
        peer.write_all(b"r").await.unwrap();
        stream.read_exact(&mut [0; 1]).await.unwrap();
        stream.write_all(b"request").await.unwrap();
        assert!(!traffic.is_request_lost(), "its response began before all of it was written");
        stream.flush().await.unwrap();

        stream.write_all(b"third request").await.unwrap();
        drop(peer);
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0);
        assert!(traffic.is_request_lost(), "the end of the connection is no response");
    }
}
