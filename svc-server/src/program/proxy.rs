//! Who is on the other side, when there is a proxy in between.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies whose `X-Forwarded-For` is believed. Without any, the header is anybody's word and is not looked at.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// These networks, such as `10.0.0.0/8`.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client: whoever connected, unless that is a trusted proxy; then whom it names, and so on along the chain.
    /// Every proxy appends, so the list is read from its end; what a client claims itself stands before that and
    /// never counts.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if !self.trusts(client) {
            return client;
        }
        let lines: Vec<&str> = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
        for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            // What is no address says nothing about those before it either.
            let Some(address) = parse(entry.trim()) else { break };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

/// An address, with or without a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(entry);
    bare.parse().ok().or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()))
}

/// Reads `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| format!("{text:?} is no address and no network such as 10.0.0.0/8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_that_a_trusted_proxy_names_counts() {
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
