//! As many connections as a server takes by default, each with requests that never end.

use svc_test_support::Result;
use svc_test_support::frames::{ACK, END_HEADERS, Frame, PREFACE, field, frame, head, kind, settings};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::Attackers;
use crate::server::Connection;

/// The default of `--max-connections`.
const ALL: usize = 10_000;

/// The size of a head below the limit of the service, which is 16 KiB.
const LARGE_HEAD: usize = 15_000;

/// How many connections open the streams, each as many as it may.
const STREAM_CONNECTIONS: usize = 300;
const STREAMS: u32 = 100;

/// What is sent of each body.
const BODY: &[u8] = &[b'a'; 16_000];

/// Endpoints that take bodies, most of them from everybody.
const ENDPOINTS: [&str; 6] =
    ["/oauth/token", "/oauth/revoke", "/oauth/authorize", "/dashboard/sign-in", "/mcp", "/api/v1/contacts"];

/// Heads of this many bytes, of which the end is missing.
pub(super) async fn heads(all: &Attackers, size: usize) -> Result<()> {
    let attack = move |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let start = format!("{}X: ", all.target.head("GET", "/ping"));
        let rest = "x".repeat(size.saturating_sub(start.len()));
        connection.write_all((start + &rest).as_bytes()).await?;
        all.record("heads");
        all.drain(&mut connection).await
    };
    all.each(ALL, attack).await
}

/// Forms over HTTP/1.1, of which the last byte is missing.
pub(super) async fn bodies(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, number: usize| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nOrigin: http://localhost\r\nX: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            ENDPOINTS[number % ENDPOINTS.len()],
            all.target.key(),
            "x".repeat(LARGE_HEAD),
            BODY.len() + 1,
        );
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(BODY).await?;
        all.record("bodies");
        all.drain(&mut connection).await
    };
    all.each(ALL, attack).await
}

/// The first 15,000 bytes of a ClientHello of 16 KB.
pub(super) async fn client_hellos(all: &Attackers) -> Result<()> {
    /// A handshake record of 16,384 bytes with a ClientHello of 16,380.
    const START: [u8; 9] = [0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc];
    let attack = |all: Attackers, _| async move {
        let mut connection = TcpStream::connect(all.target.address).await?;
        connection.write_all(&START).await?;
        connection.write_all(&[0; LARGE_HEAD]).await?;
        all.record("half handshakes");
        all.drain(&mut connection).await
    };
    all.each(ALL, attack).await
}

/// HTTP/2: connections without a request, which respond to pings.
pub(super) async fn idle_http2(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let mut connection = all.target.connect("h2").await?;
        connection.write_all(&[PREFACE, &settings(&[])].concat()).await?;
        all.record("connections");
        while next(&all, &mut connection).await?.is_some() {}
        Ok(())
    };
    all.each(ALL, attack).await
}

/// HTTP/2: streams whose heads have 15 KB, and of whose bodies 16 KB arrive and the rest does not.
pub(super) async fn streams(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let mut connection = all.target.connect("h2").await?;
        connection.write_all(&[PREFACE, &settings(&[])].concat()).await?;
        all.record("connections");
        // What may be sent before the server grants more.
        let mut window = 65_535_usize;
        for number in 0..STREAMS {
            let (stream, path) = (number * 2 + 1, ENDPOINTS[number as usize % ENDPOINTS.len()]);
            let more = field("x-more", &"x".repeat(120)).repeat((LARGE_HEAD - 500) / 128);
            let head = [head("POST", path, all.target.key()), field("origin", "https://localhost"), more].concat();
            connection.write_all(&frame(kind::HEADERS, END_HEADERS, stream, &head)).await?;
            while window < BODY.len() {
                match next(&all, &mut connection).await? {
                    Some(grant) => window += grant,
                    None => return Ok(()),
                }
            }
            window -= BODY.len();
            connection.write_all(&frame(kind::DATA, 0, stream, BODY)).await?;
            all.record("streams");
        }
        while next(&all, &mut connection).await?.is_some() {}
        Ok(())
    };
    all.each(STREAM_CONNECTIONS, attack).await
}

/// Reads a frame, responds to a ping, and returns by how much the window of the connection grows. Returns `None` at its end.
async fn next(all: &Attackers, connection: &mut Box<dyn Connection>) -> Result<Option<usize>> {
    let Some(read) = Frame::read(connection).await? else { return Ok(None) };
    super::http2::record_frame(all, &read);
    match read.kind {
        kind::PING if read.flags & ACK == 0 => {
            connection.write_all(&frame(kind::PING, ACK, 0, &read.payload)).await?;
            Ok(Some(0))
        }
        kind::WINDOW_UPDATE if read.stream == 0 => Ok(Some(read.number(0).unwrap_or_default() as usize)),
        _ => Ok(Some(0)),
    }
}
