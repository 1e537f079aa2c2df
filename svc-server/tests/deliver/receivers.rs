//! Receivers on the loopback address: one that answers as told, and raw ones that misbehave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Answers each request with the next of its answers, the last one for ever.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Mutex<mpsc::UnboundedReceiver<Received>>,
}

impl Receiver {
    pub(crate) async fn answering(answers: &[&'static str]) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let (answers, next) = (answers.to_vec(), Arc::new(AtomicUsize::new(0)));
        let address = listen(move |mut stream| {
            let (sender, answers, next) = (sender.clone(), answers.clone(), Arc::clone(&next));
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    let answer = answers[next.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
                    let _ = sender.send(request);
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        })
        .await;
        Self { address, received: Mutex::new(received) }
    }

    /// The next request, once it comes.
    pub(crate) async fn next(&self) -> Received {
        self.received.lock().await.recv().await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A status line with an empty body.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
pub(crate) const FAILS: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops";

/// Serves each connection with `body`.
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

/// A raw receiver: reads the request, then writes `answer` and does what `then` says.
pub(crate) async fn raw(answer: Vec<u8>, then: Then) -> SocketAddr {
    listen(move |mut stream| {
        let answer = answer.clone();
        async move {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            let _ = stream.write_all(&answer).await;
            match then {
                Then::Close => {}
                Then::Hang => std::future::pending().await,
                Then::Drip => {
                    let mut pause = tokio::time::interval(Duration::from_millis(50));
                    while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
                        pause.tick().await;
                    }
                }
                Then::Endless => while stream.write_all(&[b'x'; 4096]).await.is_ok() {},
            }
        }
    })
    .await
}

#[derive(Clone, Copy)]
pub(crate) enum Then {
    Close,
    Hang,
    Endless,
    /// One chunk of one byte now and then.
    Drip,
}

/// A port that must never be hit, and how often it was.
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

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
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
