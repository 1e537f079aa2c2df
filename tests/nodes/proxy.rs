//! A proxy between a node and PostgreSQL that can cut a connection at a commit.
//!
//! It parses what the node sends as messages of the PostgreSQL protocol: the first message is a length and a body,
//! and all others start with a type byte. A write transaction starts with `BEGIN … READ WRITE`. The proxy cuts the
//! connection at the COMMIT of such a transaction: before it is forwarded, or after it was carried out, so that the node
//! never sees the result. Were the connection closed as soon as COMMIT is forwarded, the server might find it closed while it
//! responds to the statements before, and roll back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use svc_test_support::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Where to cut the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Nowhere = 0,
    Before = 1,
    After = 2,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    forwarder: Arc<Forwarder>,
}

struct Forwarder {
    server: String,
    next: AtomicU8,
    cuts: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy for the server of this URL.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let server = authority(url)?.to_owned();
        let forwarder =
            Arc::new(Forwarder { server, next: AtomicU8::new(Cut::Nowhere as u8), cuts: AtomicUsize::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let accepting = Arc::clone(&forwarder);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let forwarder = Arc::clone(&accepting);
                // When one side closes, both are closed.
                tokio::spawn(async move { drop(forwarder.forward(client).await) });
            }
        });
        Ok(Self { address, forwarder })
    }

    /// Returns the URL of the same database through the proxy, which cannot read what is encrypted.
    pub(crate) fn url(&self, url: &str) -> Result<String> {
        if !url.contains("sslmode=disable") {
            return Err(format!("{url} needs sslmode=disable: the proxy reads the messages").into());
        }
        Ok(url.replacen(authority(url)?, &self.address.to_string(), 1))
    }

    pub(crate) fn cut_next(&self, cut: Cut) {
        self.forwarder.next.store(cut as u8, Ordering::SeqCst);
    }

    /// Returns how many connections were cut so far.
    pub(crate) fn cuts(&self) -> usize {
        self.forwarder.cuts.load(Ordering::SeqCst)
    }
}

/// Returns the host and port of a URL.
pub(crate) fn authority(url: &str) -> Result<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let front = rest.split('/').next().unwrap_or(rest);
    let server = front.rsplit('@').next().unwrap_or(front);
    if server.contains(':') { Ok(server) } else { Err(format!("no host and port in {url}").into()) }
}

impl Forwarder {
    async fn forward(&self, client: TcpStream) -> Result<()> {
        let server = TcpStream::connect(&self.server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let commits = AtomicBool::new(false);
        tokio::select! {
            done = self.forward_to_server(from_client, to_server, &commits) => done,
            done = forward_to_client(from_server, to_client, &commits) => done,
        }
    }

    /// Forwards what the node sends. Sets `commits` before a COMMIT whose result the node must not see.
    async fn forward_to_server(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        commits: &AtomicBool,
    ) -> Result<()> {
        let mut first = vec![0; 4];
        from.read_exact(&mut first).await?;
        let mut rest = vec![0; length(&first)?];
        from.read_exact(&mut rest).await?;
        to.write_all(&[first, rest].concat()).await?;
        let mut writes = false;
        loop {
            let (head, body) = message(&mut from).await?;
            let query = if head[0] == b'Q' { body.as_slice() } else { &[] };
            if query.starts_with(b"BEGIN") {
                writes = query.windows(10).any(|part| part == b"READ WRITE");
            }
            let cut = if writes && query.starts_with(b"COMMIT") { self.take_cut() } else { Cut::Nowhere };
            if cut == Cut::Before {
                return Ok(());
            }
            if cut == Cut::After {
                commits.store(true, Ordering::SeqCst);
            }
            to.write_all(&[head, body].concat()).await?;
        }
    }

    /// Returns the cut for this commit. Only one commit is cut.
    fn take_cut(&self) -> Cut {
        let cut = match self.next.swap(Cut::Nowhere as u8, Ordering::SeqCst) {
            1 => Cut::Before,
            2 => Cut::After,
            _ => Cut::Nowhere,
        };
        self.cuts.fetch_add(usize::from(cut != Cut::Nowhere), Ordering::SeqCst);
        cut
    }
}

/// Forwards what the server sends. From `commits` on it forwards nothing, and ends when the server is in no transaction.
async fn forward_to_client(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, commits: &AtomicBool) -> Result<()> {
    loop {
        let (head, body) = message(&mut from).await?;
        let is_idle = head[0] == b'Z' && body == b"I";
        match commits.load(Ordering::SeqCst) {
            true if is_idle => return Ok(()),
            true => {}
            false => to.write_all(&[head, body].concat()).await?,
        }
    }
}

/// Reads a message: its type and its length, and then its body.
async fn message(from: &mut OwnedReadHalf) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut head = vec![0; 5];
    from.read_exact(&mut head).await?;
    let mut body = vec![0; length(&head[1..])?];
    from.read_exact(&mut body).await?;
    Ok((head, body))
}

/// Returns how many bytes follow a length field, which counts itself.
fn length(bytes: &[u8]) -> Result<usize> {
    let bytes: [u8; 4] = bytes.try_into()?;
    let length = usize::try_from(u32::from_be_bytes(bytes))?;
    Ok(length.checked_sub(4).filter(|length| *length < 1 << 24).ok_or("not a message of the PostgreSQL protocol")?)
}
