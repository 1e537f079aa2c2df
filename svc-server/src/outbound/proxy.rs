//! The proxy that deliveries go through, so that receivers can allow static addresses.
//!
//! A connection is a tunnel (HTTP `CONNECT`, RFC 9110, section 9.3.6). The proxy is asked for an address that was checked
//! here, and not for a name: so it cannot be led to another address than the one that was checked. It sees no more of https
//! than that address and the name in the handshake.
//!
//! The proxy belongs to the operator, so its own address is not checked. Its failures are told apart from those of receivers:
//! their reasons begin with "the proxy".

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use svc_core::values::Secret;
use svc_core::webhooks::addresses::Resolver;
use svc_core::webhooks::deliveries::AttemptCause;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::USER_AGENT_VALUE;
use super::dial::{DialError, failed};
use super::happy_eyeballs;

/// The longest head of a response that is read.
const MAX_HEAD: usize = 16 * 1024;

/// An HTTP proxy that all deliveries go through. Its `Debug` shows neither the user name nor the password.
///
/// # Examples
///
/// ```
/// use svc_server::EgressProxy;
/// let proxy = EgressProxy::parse("http://svc:s3cret@proxy.internal:3128")?;
/// assert_eq!(format!("{proxy:?}"), "EgressProxy(proxy.internal:3128)");
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone)]
pub struct EgressProxy {
    /// An IPv6 address is without brackets.
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<Secret>,
    resolves: bool,
}

impl EgressProxy {
    /// Returns the proxy at a URL of the form `http://USER:PASSWORD@HOST:PORT`, in which the user name and the password may be
    /// left out and are percent-encoded.
    ///
    /// # Errors
    /// A sentence without any part of the URL, which may have a password.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let form = "must be a URL such as http://USER:PASSWORD@HOST:PORT";
        let url = Url::parse(url).map_err(|_| form)?;
        match url.scheme() {
            "http" => {}
            "https" => return Err("must begin with http://, as TLS to the proxy itself is not supported"),
            _ => return Err(form),
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err("must have nothing after the port of the proxy");
        }
        let host = match url.host().ok_or(form)? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let authorization = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let user = percent_decode_str(url.username());
            let password = percent_decode_str(url.password().unwrap_or_default());
            let pair: Vec<u8> = user.chain(*b":").chain(password).collect();
            Secret::new(format!("Basic {}", STANDARD.encode(pair)))
        });
        let port = url.port_or_known_default().ok_or(form)?;
        Ok(Self { host, port, authorization, resolves: false })
    }

    /// Sets whether the proxy resolves the names of hosts. If so, it alone can keep deliveries from private addresses that a
    /// name resolves to: svc refuses only those that are written in URLs. It does not by default.
    #[must_use]
    pub fn resolving(self, resolves: bool) -> Self {
        Self { resolves, ..self }
    }

    /// Returns whether the proxy resolves the names of hosts.
    pub fn resolves(&self) -> bool {
        self.resolves
    }

    /// Returns a connection through the proxy to a target with its port.
    pub(super) async fn tunnel(&self, resolver: &dyn Resolver, target: &str) -> Result<TcpStream, DialError> {
        let addresses = match self.host.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) => resolver.resolve(&self.host).await,
        };
        if addresses.is_empty() {
            return Err(failure("cannot be reached: its name does not resolve"));
        }
        let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect();
        let connected: Result<_, std::io::Error> = happy_eyeballs::connect_first(&addresses, TcpStream::connect).await;
        let mut tcp = connected.map_err(|error| failure(format_args!("cannot be reached: {error}")))?;
        let broke_off = |error| failure(format_args!("broke off the connection: {error}"));
        tcp.write_all(self.request(target).reveal().as_bytes()).await.map_err(broke_off)?;
        let mut head = Vec::new();
        let end = loop {
            if tcp.read_buf(&mut head).await.map_err(broke_off)? == 0 {
                return Err(failure("closed the connection without a whole response"));
            }
            if let Some(at) = head.windows(END.len()).position(|window| window == END) {
                break at + END.len();
            }
            if head.len() >= MAX_HEAD {
                return Err(failure("responded with a head of more than 16 KiB"));
            }
        };
        match status(&head) {
            None => Err(failure("did not respond as an HTTP proxy does")),
            Some(status) if !status.is_success() => Err(failure(format_args!("responded with {status}"))),
            Some(_) if end < head.len() => Err(failure("sent something after the head of its response")),
            Some(_) => Ok(tcp),
        }
    }

    /// Returns the request for a tunnel.
    fn request(&self, target: &str) -> Secret {
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: {USER_AGENT_VALUE}\r\n");
        if let Some(authorization) = &self.authorization {
            head.push_str(&format!("Proxy-Authorization: {}\r\n", authorization.reveal()));
        }
        head.push_str("\r\n");
        Secret::new(head)
    }
}

impl fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressProxy({}:{})", self.host, self.port)
    }
}

/// The end of the head of a response.
const END: &[u8] = b"\r\n\r\n";

/// Returns the status of a response of HTTP/1.
fn status(head: &[u8]) -> Option<StatusCode> {
    let rest = head.strip_prefix(b"HTTP/1.0 ").or_else(|| head.strip_prefix(b"HTTP/1.1 "))?;
    let (digits, after) = rest.split_at_checked(3)?;
    matches!(after.first(), Some(b' ' | b'\r')).then(|| StatusCode::from_bytes(digits).ok()).flatten()
}

fn failure(reason: impl fmt::Display) -> DialError {
    failed(AttemptCause::ProxyFailed, format_args!("the proxy {reason}"))
}
