//! Connections to webhook endpoints.
//!
//! The [`Dialer`] resolves the host name, checks every address against the policy for webhook hosts, and connects only to
//! checked addresses. An address that is written in the URL is checked the same way. Of several addresses, the first that
//! responds is connected to (see [`happy_eyeballs`]).
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
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use svc_core::values::HostPolicy;
use svc_core::webhooks::addresses;
use svc_core::webhooks::deliveries::FailureClass;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::happy_eyeballs;
use crate::deliver::resolver::Resolver;

/// The timeout of a TCP connection, over all addresses of the host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// The checked addresses of the attempt that this task makes.
    pub(crate) static CHECKED_ADDRESSES: Vec<SocketAddr>;
}

/// The reason for which no connection was made.
#[derive(Debug)]
pub(crate) struct DialError {
    pub(crate) class: FailureClass,
    pub(crate) reason: String,
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.reason)
    }
}

impl StdError for DialError {}

fn failed(class: FailureClass, reason: impl fmt::Display) -> DialError {
    DialError { class, reason: reason.to_string() }
}

/// Resolves host names, checks their addresses, and connects to them.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Arc<dyn Resolver>,
    policy: HostPolicy,
    tls: TlsConnector,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Dialer {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, policy: HostPolicy) -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { resolver, policy, tls: TlsConnector::from(Arc::new(config)) }
    }

    /// Returns the addresses of the host of a URL, each of which may be connected to. If one of them is refused, so is the host.
    pub(crate) async fn check_addresses(&self, uri: &Uri) -> Result<Vec<SocketAddr>, DialError> {
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let https = uri.scheme_str() == Some("https");
        if self.policy == HostPolicy::Public && !https {
            return Err(failed(FailureClass::Blocked, "the URL is not https"));
        }
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let addresses = match host.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) => self.resolver.resolve(host).await,
        };
        if addresses.is_empty() {
            return Err(failed(FailureClass::Dns, format!("{host} does not resolve")));
        }
        if self.policy == HostPolicy::Public {
            for address in &addresses {
                addresses::check_address(*address).map_err(|error| failed(FailureClass::Blocked, error))?;
            }
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    async fn dial(self, uri: Uri, addresses: Vec<SocketAddr>) -> Result<TokioIo<Stream>, DialError> {
        let connecting =
            tokio::time::timeout(CONNECT_TIMEOUT, happy_eyeballs::connect_first(&addresses, TcpStream::connect));
        let tcp = match connecting.await {
            Err(_) => return Err(failed(FailureClass::Timeout, "no connection within 5 s")),
            Ok(Err(error)) => return Err(failed(FailureClass::Connect, error)),
            Ok(Ok(tcp)) => tcp,
        };
        let _ = tcp.set_nodelay(true);
        let peer = tcp.peer_addr().map_err(|error| failed(FailureClass::Connect, error))?;
        if uri.scheme_str() != Some("https") {
            return Ok(TokioIo::new(Stream { peer, io: Io::Plain(tcp) }));
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| failed(FailureClass::Tls, error))?;
        // The timeout of the attempt covers this, but the pool may complete a connection after its attempt has ended.
        let tls = match tokio::time::timeout(HANDSHAKE_TIMEOUT, self.tls.connect(name, tcp)).await {
            Err(_) => return Err(failed(FailureClass::Timeout, "no TLS session within 10 s")),
            Ok(connected) => connected.map_err(|error| failed(FailureClass::Tls, error))?,
        };
        Ok(TokioIo::new(Stream { peer, io: Io::Tls(Box::new(tls)) }))
    }
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

/// The address of the connection, as an extension of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialled(pub(crate) SocketAddr);

/// A connection with the address of its peer.
pub(crate) struct Stream {
    peer: SocketAddr,
    io: Io,
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().extra(Dialled(self.peer))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Io::Tls(io) => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Io::Tls(io) => Pin::new(io).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
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
