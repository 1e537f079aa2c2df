//! The address of the client behind trusted proxies.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose `X-Forwarded-For` header is trusted. Without any, the header is ignored, because every client can send
/// it.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Creates the list from networks, such as `10.0.0.0/8`.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the address of the client: the peer of the connection or, if that is a trusted proxy, the last address in
    /// `X-Forwarded-For` that is not a trusted proxy.
    ///
    /// Every proxy appends the address of its own peer, so the list is read from its end. Entries that the client has sent
    /// itself come before those, and never count.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if !self.trusts(client) {
            return client;
        }
        let lines: Vec<&str> = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
        for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            // An entry that is not an address makes all entries before it untrustworthy.
            let Some(address) = parse(entry.trim()) else { break };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

/// Parses an address with or without a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(entry);
    bare.parse().ok().or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()))
}

/// Parses a network, such as `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| format!("{text:?} is neither an address nor a network such as 10.0.0.0/8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_last_address_that_a_trusted_proxy_names() {
        let proxies = TrustedProxies::new(["10.0.0.0/8", "2001:db8::1"].map(|text| network(text).unwrap()).to_vec());
        for (peer, lines, want) in [
            ("203.0.113.9", vec!["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.0.0.1", vec!["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", vec!["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", vec!["192.0.2.66", "198.51.100.1 , 10.9.9.9"], "198.51.100.1"),
            ("10.0.0.1", vec!["198.51.100.1:4711"], "198.51.100.1"),
            ("2001:db8::1", vec!["[2001:db8::77]:443"], "2001:db8::77"),
            ("2001:db8::1", vec!["[2001:db8::77]"], "2001:db8::77"),
            ("10.0.0.1", vec!["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", vec![""], "10.0.0.1"),
            ("10.0.0.1", vec!["10.0.0.2"], "10.0.0.2"),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            let want: IpAddr = want.parse().unwrap();
            assert_eq!(proxies.client(peer.parse().unwrap(), &headers), want, "{peer} {lines:?}");
        }
        assert!(network("10.0.0.0/33").is_err() && network("proxy").is_err());
    }
}
