//! The hosts in a `postgres://` URL.

use std::net::IpAddr;

use tokio::net::lookup_host;
use tokio_postgres::config::{Config, Host};

/// A host of the URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    /// Its name, which a certificate is made out for.
    host: Option<Host>,
    /// Its address, if the URL has it.
    address: Option<IpAddr>,
    port: u16,
}

impl Target {
    /// Returns the hosts of a URL.
    pub(super) fn all(config: &Config) -> Result<Vec<Self>, String> {
        let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
        let count = hosts.len().max(addresses.len());
        if count == 0 {
            return Err("a host is missing".to_owned());
        }
        if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
            return Err(format!("the numbers of hosts ({}) and of hostaddr ({}) differ", hosts.len(), addresses.len()));
        }
        if ports.len() > 1 && ports.len() != count {
            return Err(format!("the numbers of hosts ({count}) and of ports ({}) differ", ports.len()));
        }
        let target = |at: usize| Self {
            host: hosts.get(at).cloned(),
            address: addresses.get(at).copied(),
            port: ports.get(at).or(ports.first()).copied().unwrap_or(5432),
        };
        Ok((0..count).map(target).collect())
    }

    /// Returns the addresses of the host, to connect to in turn. A Unix socket has none.
    pub(super) async fn addresses(&self) -> Result<Vec<Option<IpAddr>>, String> {
        match (&self.host, self.address) {
            (_, Some(address)) => Ok(vec![Some(address)]),
            (Some(Host::Tcp(name)), None) => match lookup_host((name.as_str(), self.port)).await {
                Ok(found) => Ok(found.map(|address| Some(address.ip())).collect()),
                Err(error) => Err(format!("the name of the host was not found: {error}")),
            },
            _ => Ok(vec![None]),
        }
    }

    /// Returns the options of a connection to one of these addresses.
    pub(super) fn config(&self, options: &Config, address: Option<IpAddr>) -> Config {
        let mut config = options.clone();
        match &self.host {
            Some(Host::Tcp(name)) => config.host(name),
            Some(Host::Unix(path)) => config.host_path(path),
            None => &mut config,
        };
        if let Some(address) = address {
            config.hostaddr(address);
        }
        config.port(self.port);
        config
    }

    pub(super) fn name(&self) -> String {
        match (&self.host, self.address) {
            (Some(Host::Tcp(name)), _) => format!("{name}:{}", self.port),
            (Some(Host::Unix(path)), _) => path.display().to_string(),
            (None, Some(address)) => format!("{address}:{}", self.port),
            (None, None) => self.port.to_string(),
        }
    }
}
