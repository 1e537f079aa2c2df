//! Addresses to listen on, as operators write them.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream, lookup_host};

/// The number of connections that the system holds until they are accepted, which is as many as Linux allows by default. Beyond
/// it clients repeat their first packet after 1, 3 and 7 s.
const BACKLOG: i32 = 4096;
/// The number of attempts with a port that the system has found to be free at the first of several addresses.
const PORT_ATTEMPTS: usize = 10;

/// An address to listen on, with its port: `127.0.0.1:8080`, `[::1]:8080`, a name such as `localhost:8080`, or `:8080` for
/// all addresses of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    All,
    Address(IpAddr),
    Name(String),
}

impl ListenAddress {
    /// Returns this port on 127.0.0.1.
    pub const fn local(port: u16) -> Self {
        Self { host: Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)), port }
    }

    /// Returns the name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Name(name) => Some(name),
            Host::All | Host::Address(_) => None,
        }
    }

    /// Binds a listener to each address, all with the same port. An address that the machine does not have is left out as
    /// long as there is another, as `localhost` often has one of IPv6 where IPv6 is off.
    ///
    /// # Errors
    /// The name cannot be resolved, the port is in use, or the machine has none of the addresses.
    pub async fn bind(&self) -> io::Result<Vec<TcpListener>> {
        let addresses = self.resolve().await?;
        let mut attempts = 1;
        loop {
            match bind_all(&addresses) {
                Err(error)
                    if self.port == 0 && attempts < PORT_ATTEMPTS && error.kind() == io::ErrorKind::AddrInUse =>
                {
                    attempts += 1;
                }
                bound => return bound,
            }
        }
    }

    /// Returns whether the system chooses the port.
    pub(super) fn is_any_port(&self) -> bool {
        self.port == 0
    }

    /// Connects to a server on this machine that listens here. One that listens on all addresses is reached by loopback.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        let mut addresses = self.resolve().await?;
        for address in &mut addresses {
            match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                _ => {}
            }
        }
        TcpStream::connect(&*addresses).await
    }

    async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(match &self.host {
            Host::All => vec![(Ipv4Addr::UNSPECIFIED, self.port).into(), (Ipv6Addr::UNSPECIFIED, self.port).into()],
            Host::Address(address) => vec![(*address, self.port).into()],
            Host::Name(name) => {
                let mut addresses: Vec<SocketAddr> = lookup_host((name.as_str(), self.port)).await?.collect();
                addresses.sort_unstable();
                addresses.dedup();
                addresses
            }
        })
    }
}

fn bind_all(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let (mut listeners, mut missing) = (Vec::new(), None);
    let mut port = None;
    for &address in addresses {
        let address = SocketAddr::new(address.ip(), port.unwrap_or(address.port()));
        match listen(address, addresses.len() > 1) {
            Ok(listener) => {
                port = Some(listener.local_addr()?.port());
                listeners.push(listener);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported) => {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error),
        None if listeners.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        _ => Ok(listeners),
    }
}

/// Binds one listener. As one of several, it takes connections over its own version of IP alone, since another listener
/// has the port of the other version.
fn listen(address: SocketAddr, is_one_of_several: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
        .map_err(|error| if address.is_ipv6() { io::Error::new(io::ErrorKind::Unsupported, error) } else { error })?;
    if address.is_ipv6() && is_one_of_several {
        socket.set_only_v6(true)?;
    }
    // After a restart the port may still have connections of the previous process.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "{text:?} is not an address and a port; write 127.0.0.1:8080, localhost:8080, [::1]:8080, or :8080 for all addresses"
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let address = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => address.parse().ok().map(IpAddr::V6),
            None => host.parse().ok().map(IpAddr::V4),
        };
        let is_name = || host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
        let host = match address {
            _ if host.is_empty() => Host::All,
            Some(address) => Host::Address(address),
            None if is_name() => Host::Name(host.to_owned()),
            None => return Err(invalid()),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::All => write!(f, ":{}", self.port),
            Host::Address(address) => write!(f, "{}", SocketAddr::new(*address, self.port)),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["127.0.0.1:8080", "[::1]:0", "[::]:443", "localhost:8080", "api_1.internal-net:65535", ":8080"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        for bad in
            ["", ":", "8080", "localhost", "localhost:", "localhost:65536", "::1:80", "[127.0.0.1]:80", "[::1]80"]
        {
            assert!(bad.parse::<ListenAddress>().unwrap_err().contains("localhost:8080"), "{bad}");
        }
        for bad in ["http://localhost:80", "a b:80", "local host:80", "[fe80::1:80", "*:80"] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }

    async fn bound(text: &str) -> io::Result<Vec<SocketAddr>> {
        let listeners = text.parse::<ListenAddress>().unwrap().bind().await?;
        Ok(listeners.iter().map(|listener| listener.local_addr().unwrap()).collect())
    }

    #[tokio::test]
    async fn all_addresses_get_the_same_port() {
        let has_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
        let all = bound(":0").await.unwrap();
        assert_eq!(all[0].ip(), Ipv4Addr::UNSPECIFIED);
        assert_eq!(all.len(), if has_v6 { 2 } else { 1 });
        for addresses in [all, bound("localhost:0").await.unwrap()] {
            assert!(
                addresses[0].port() != 0 && addresses.iter().all(|a| a.port() == addresses[0].port()),
                "{addresses:?}"
            );
        }
        assert_eq!(bound("127.0.0.1:0").await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_address_that_is_missing_or_taken_is_an_error() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        for (text, kind) in [
            (format!("127.0.0.1:{port}"), io::ErrorKind::AddrInUse),
            (format!(":{port}"), io::ErrorKind::AddrInUse),
            ("192.0.2.1:1".to_owned(), io::ErrorKind::AddrNotAvailable),
        ] {
            assert_eq!(bound(&text).await.unwrap_err().kind(), kind, "{text}");
        }
        let elsewhere: Vec<SocketAddr> = ["192.0.2.1:0", "127.0.0.1:0"].map(|text| text.parse().unwrap()).into();
        assert_eq!(bind_all(&elsewhere).unwrap().len(), 1);
        assert_eq!(bind_all(&[]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
