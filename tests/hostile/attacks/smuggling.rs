//! Requests that two parsers could read differently (RFC 9112 §11.2). Each is followed by another request on the same
//! connection. The server may see that one only if the first request ends unambiguously; its response is then the
//! 200.

use std::time::Duration;

use svc_test_support::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::Attackers;

/// The request that follows.
const NEXT: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// How long the server may take to respond to everything and close the connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// The request is refused and the connection closed.
const REFUSED: &[u16] = &[400];
/// The body never completes, because it is malformed; the connection is closed.
const INCOMPLETE: &[u16] = &[408];
/// There is only one reading: the body is not a valid contact (400), and the following request is read as such (200).
const ACCEPTED: &[u16] = &[400, 200];

/// Name, headers and body of a POST, and the statuses of all responses on the connection.
const POSTS: &[(&str, &str, &[u16])] = &[
    ("a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", REFUSED),
    ("two lengths in one line", "Content-Length: 2, 3\r\n\r\n{} ", REFUSED),
    ("a length twice in one line", "Content-Length: 2, 2\r\n\r\n{}", REFUSED),
    ("a length with a plus", "Content-Length: +2\r\n\r\n{}", REFUSED),
    ("a length with a minus", "Content-Length: -2\r\n\r\n{}", REFUSED),
    ("a length in hex", "Content-Length: 0x2\r\n\r\n{}", REFUSED),
    ("a length with an exponent", "Content-Length: 2e0\r\n\r\n{}", REFUSED),
    ("a length with a fraction", "Content-Length: 2.0\r\n\r\n{}", REFUSED),
    ("a length with a space inside", "Content-Length: 2 0\r\n\r\n{}", REFUSED),
    ("a length without digits", "Content-Length: \r\n\r\n{}", REFUSED),
    ("a length beyond 64 bits", "Content-Length: 18446744073709551618\r\n\r\n{}", REFUSED),
    ("a length with leading zeros", "Content-Length: 0002\r\n\r\n{}", ACCEPTED),
    ("a length with space around", "Content-Length: \t 2 \t\r\n\r\n{}", ACCEPTED),
    ("a length under another name", "Content_Length: 40\r\nContent-Length: 2\r\n\r\n{}", ACCEPTED),
    ("space before the colon", "Content-Length : 2\r\n\r\n{}", REFUSED),
    ("space before the colon of chunks", "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks that are not last", "Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("something that ends in chunks", "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks with a letter after them", "Transfer-Encoding: chunkedx\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks in quotes", "Transfer-Encoding: \"chunked\"\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks with a control character", "Transfer-Encoding: \x0bchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("no chunks", "Transfer-Encoding: identity\r\n\r\n{}", REFUSED),
    ("compressed", "Transfer-Encoding: gzip\r\n\r\n{}", REFUSED),
    ("compressed chunks", "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("chunks twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("no encoding", "Transfer-Encoding: \r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("chunks in capitals", "Transfer-Encoding: CHUNKED\r\n\r\n2\r\n{}\r\n0\r\n\r\n", ACCEPTED),
    ("chunks with an extension", "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", ACCEPTED),
    ("chunks with trailers", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-A: b\r\n\r\n", ACCEPTED),
    (
        "a length among trailers",
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n",
        ACCEPTED,
    ),
    ("a chunk in hex with a prefix", "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk with a plus", "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk with a minus", "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk beyond 64 bits", "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk without a size", "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk that ends in LF", "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("an extension with a bare LF", "Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a chunk longer than it says", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n0\r\n\r\n", INCOMPLETE),
    ("a folded header", "X-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("folded chunks", "Transfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", REFUSED),
    ("a bare CR in a value", "X-A: a\rContent-Length: 2\r\n\r\n{}", REFUSED),
    ("a bare CR before a name", "X-A: a\r\n\rContent-Length: 2\r\n\r\n{}", REFUSED),
    ("a NUL in a value", "X-A: a\0b\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("a NUL in a name", "X\0A: a\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("a name with a space", "Content Length: 2\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("no name", ": a\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("no colon", "X-A\r\nContent-Length: 2\r\n\r\n{}", REFUSED),
    ("a second host", "Host: other\r\nContent-Length: 2\r\n\r\n{}", ACCEPTED),
    ("the same host twice", "Host: localhost\r\nContent-Length: 2\r\n\r\n{}", ACCEPTED),
    (
        "an upgrade",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 2\r\n\r\n{}",
        ACCEPTED,
    ),
    ("a length that Connection names", "Connection: Content-Length\r\nContent-Length: 2\r\n\r\n{}", ACCEPTED),
];

/// Name, complete request, and the statuses of all responses on the connection.
const OTHERS: &[(&str, &str, &[u16])] = &[
    (
        "a body on GET",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\nGET /inside HTTP/1.1\r\nHost: inside\r\n\r\n",
        &[200, 200],
    ),
    (
        "chunks on GET",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nGET \r\n0\r\n\r\n",
        &[200, 200],
    ),
    ("chunks in HTTP/1.0", "POST /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", REFUSED),
    ("two spaces", "GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    ("a tab", "GET\t/healthz\tHTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    ("a space in the target", "GET /healthz /x HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    ("no version", "GET /healthz\r\nHost: a\r\n\r\n", REFUSED),
    ("an unknown version", "GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n", REFUSED),
    ("HTTP/2 in the clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED),
    ("a bare CR in the target", "GET /healthz\rX HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED),
    ("space before the first header", "GET /healthz HTTP/1.1\r\n Host: a\r\n\r\n", REFUSED),
    ("another host in the target", "GET http://other/healthz HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200]),
    ("an authority alone", "CONNECT localhost:80 HTTP/1.1\r\nHost: a\r\n\r\n", &[404, 200]),
    ("a star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &[204, 200]),
    ("empty lines before", "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200]),
];

pub(super) async fn run(all: &Attackers) -> Result<()> {
    let post = all.target.head("POST", "/contacts") + "Content-Type: application/json\r\n";
    let posts = POSTS.iter().map(|(name, rest, want)| (*name, format!("{post}{rest}{NEXT}"), *want));
    let others = OTHERS.iter().map(|(name, request, want)| (*name, format!("{request}{NEXT}"), *want));
    let mut wrong = Vec::new();
    for (name, request, want) in posts.chain(others) {
        let mut connection = all.target.connect("http/1.1").await?;
        connection.write_all(request.as_bytes()).await?;
        let mut responses = Vec::new();
        let is_closed = timeout(PATIENCE, connection.read_to_end(&mut responses)).await.is_ok();
        let statuses = statuses(&responses);
        if statuses != want || !is_closed {
            wrong.push(format!("{name}: {statuses:?} instead of {want:?}, closed: {is_closed}"));
        }
        all.record(format!("{statuses:?}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

fn statuses(responses: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(responses);
    text.split("HTTP/1.").skip(1).filter_map(|response| response.get(2..5)?.parse().ok()).collect()
}
