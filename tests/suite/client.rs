//! A server on a TCP socket, and a raw HTTP/1.1 client, for tests of what goes over the wire.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use svc_server::program::serve::Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::conform;
use crate::harness::{Response, SeededServer, guarded};

/// A [`SeededServer`] that listens on a socket.
pub(crate) struct ListeningServer {
    pub(crate) inner: SeededServer,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) running: JoinHandle<()>,
}

impl ListeningServer {
    pub(crate) async fn new(server: SeededServer) -> Self {
        Self::with(server, 1000, |server| server).await
    }

    pub(crate) async fn with(inner: SeededServer, connections: u32, set: impl FnOnce(Server) -> Server) -> Self {
        let server = set(Server::bind(([127, 0, 0, 1], 0).into(), connections).await.unwrap());
        let address = server.url().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
        let (stop, stopped) = oneshot::channel();
        let until = async move {
            let _ = stopped.await;
        };
        let running = tokio::spawn(server.run(inner.api.clone(), until, Duration::from_secs(20)));
        Self { inner, address, stop: Some(stop), running }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::to(self.address).await
    }

    /// Returns the start of a valid request head with the write key; the caller adds further headers and the empty
    /// line.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        let key = &self.inner.key("write").text;
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n")
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

/// A client connection.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), received: Vec::new() }
    }

    /// Opens a connection whose receive buffer is as small as the system allows.
    pub(crate) async fn with_tiny_buffer(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1).unwrap();
        Self { stream: socket.connect(address).await.unwrap(), received: Vec::new() }
    }

    /// Waits until a response begins.
    pub(crate) async fn begins(&mut self) {
        guarded(self.stream.readable()).await.unwrap();
    }

    /// Reads to the end of the stream and returns the number of bytes.
    pub(crate) async fn read_to_end(&mut self) -> usize {
        while self.more().await {}
        self.received.len()
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Writes bytes that the server may refuse to read, and returns whether all of them were written.
    pub(crate) async fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads more bytes from the socket; returns `false` at the end of the stream.
    async fn more(&mut self) -> bool {
        guarded(self.stream.read_buf(&mut self.received)).await.is_ok_and(|count| count > 0)
    }

    /// Returns whether the server has closed the connection and no bytes are left to read.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.received.is_empty() && !self.more().await
    }

    /// Reads the next response to a request of this method without checking it. Returns `None` at the end of the
    /// stream.
    pub(crate) async fn raw(&mut self, method: &str) -> Option<Response> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await {
                assert!(
                    self.received.is_empty(),
                    "the connection ended within a head: {}",
                    String::from_utf8_lossy(&self.received)
                );
                return None;
            }
        };
        let head = String::from_utf8(self.received.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value.trim()).unwrap());
        }
        assert!(!headers.contains_key("transfer-encoding"), "a response body must have a Content-Length");
        let length: usize = headers.get("content-length").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
        let length = if method == "HEAD" || matches!(status, 100 | 204 | 304) { 0 } else { length };
        while self.received.len() < length {
            assert!(self.more().await, "the body ends early");
        }
        let body: Vec<u8> = self.received.drain(..length).collect();
        Some(Response::new(status, headers, Bytes::from(body)))
    }

    /// Reads the next response and checks it against the OpenAPI document.
    pub(crate) async fn response(&mut self, method: &str, target: &str) -> Response {
        let response = self.raw(method).await.unwrap_or_else(|| panic!("no response to {method} {target}"));
        assert!(response.header("date").is_some(), "no Date");
        conform::check(&Method::from_bytes(method.as_bytes()).unwrap(), target, &response);
        response
    }
}
