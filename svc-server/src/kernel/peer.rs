//! The facts that an application tells about the connection of a request, as extensions of it.

use std::net::IpAddr;

/// The address of a client, as an extension of its request.
///
/// An application that mounts the API adds it to each request. Without it, all clients without a valid key share one
/// rate limit, and the log says so once. Behind a reverse proxy it is the address in the header that the proxy sets.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Says, as an extension of a request, that it came over TLS.
///
/// An application that mounts the dashboard and has TLS of its own adds it to each request: then no cookie but a `Secure`
/// one is set or read. Behind a reverse proxy, forms and the fetch metadata of browsers tell.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;
