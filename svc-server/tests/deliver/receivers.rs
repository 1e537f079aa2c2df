//! Receivers on the loopback address: one with prepared responses, and raw ones that misbehave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A receiver that responds to each request with the next of its responses, and with the last one from then on.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Mutex<mpsc::UnboundedReceiver<Received>>,
}

impl Receiver {
    pub(crate) async fn with_responses(responses: &[&'static str]) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let (responses, next) = (responses.to_vec(), Arc::new(AtomicUsize::new(0)));
        let address = listen(move |mut stream| {
            let (sender, responses, next) = (sender.clone(), responses.clone(), Arc::clone(&next));
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    let response = responses[next.fetch_add(1, Ordering::SeqCst).min(responses.len() - 1)];
                    let _ = sender.send(request);
                    let _ = stream.write_all(response.as_bytes()).await;
                }
            }
        })
        .await;
        Self { address, received: Mutex::new(received) }
    }

    /// Starts a receiver that responds on each connection with the next of these lists, and with the last one from then
    /// on. It closes a connection right after the last response of its list, without saying so. An empty response is
    /// none.
    pub(crate) async fn with_connections(connections: &[&'static [&'static str]]) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let (connections, next) = (connections.to_vec(), AtomicUsize::new(0));
        let address = listen(move |mut stream| {
            let (sender, number) = (sender.clone(), next.fetch_add(1, Ordering::SeqCst));
            let responses = connections[number.min(connections.len() - 1)];
            async move {
                for response in responses {
                    let Some(request) = read_request(&mut stream).await else { return };
                    let _ = sender.send(request);
                    let _ = stream.write_all(response.as_bytes()).await;
                }
            }
        })
        .await;
        Self { address, received: Mutex::new(received) }
    }

    /// Returns the requests that have arrived and were not taken yet.
    pub(crate) async fn arrived(&self) -> Vec<Received> {
        let mut received = self.received.lock().await;
        std::iter::from_fn(|| received.try_recv().ok()).collect()
    }

    /// Waits for the next request.
    pub(crate) async fn next(&self) -> Received {
        self.received.lock().await.recv().await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A response with the body `ok`.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// A failure with the body `oops`.
pub(crate) const FAILS: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops";

/// Listens on a free port and serves each connection with `serve`.
pub(crate) async fn listen<F, W>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Starts a receiver that reads a request, writes `response` as it is, and goes on as `after` says.
pub(crate) async fn raw_receiver(response: Vec<u8>, after: After) -> SocketAddr {
    listen(move |mut stream| {
        let response = response.clone();
        async move {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            let _ = stream.write_all(&response).await;
            match after {
                After::Close => {}
                After::Hang => std::future::pending().await,
                After::Drip => {
                    let mut pause = tokio::time::interval(Duration::from_millis(50));
                    while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
                        pause.tick().await;
                    }
                }
                After::Endless => while stream.write_all(&[b'x'; 4096]).await.is_ok() {},
            }
        }
    })
    .await
}

/// What a raw receiver does after its response.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// Closes the connection.
    Close,
    /// Keeps the connection open and sends nothing more.
    Hang,
    /// Sends bytes without an end.
    Endless,
    /// Sends a chunk of one byte every 50 ms.
    Drip,
}

/// An address that does not respond to attempts to connect, as behind a firewall: a listener whose backlog is full.
pub(crate) struct BlackHole {
    _listener: TcpListener,
    _waiting: TcpStream,
}

impl BlackHole {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address).unwrap();
        // A backlog of 0 takes one connection. The system drops what others send to open theirs.
        let listener = socket.listen(0).unwrap();
        let waiting = TcpStream::connect(address).await.unwrap();
        let another = tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await;
        assert!(another.is_err(), "the backlog is not full");
        Self { _listener: listener, _waiting: waiting }
    }
}

/// Listens on a port that must never be connected to, and counts the connections.
pub(crate) async fn canary() -> (SocketAddr, Arc<AtomicUsize>) {
    let hits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hits);
    let address = listen(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {}
    })
    .await;
    (address, hits)
}

pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let mut lines = text.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.append(http::HeaderName::try_from(name).ok()?, value.parse().ok()?);
    }
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { path, headers, body: bytes[head..head + length].to_vec() })
}
