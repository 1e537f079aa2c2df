//! Many clients that each do little.

use std::time::Duration;

use svc_test_support::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Attackers;

const CONNECTIONS: usize = 5_000;

/// The size in bytes of the receive buffer of a client that does not read. The system makes it larger if it is too small.
const TINY_BUFFER: Option<u32> = Some(1);

/// The start of a TLS ClientHello record, which is never completed.
const CLIENT_HELLO: [u8; 6] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];

pub(super) async fn silent(all: &Attackers) -> Result<()> {
    let silent = |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        all.record("connections");
        all.drain(&mut connection).await
    };
    all.each(CONNECTIONS, silent).await
}

pub(super) async fn idle(all: &Attackers) -> Result<()> {
    let idle = |all: Attackers, number| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        all.record("connections");
        let request = all.target.head("GET", "/ping") + "\r\n";
        let mut buffer = [0; 2048];
        // Spread over eight seconds.
        tokio::time::sleep(Duration::from_millis(number as u64 % 80 * 100)).await;
        loop {
            connection.write_all(request.as_bytes()).await?;
            let count = connection.read(&mut buffer).await?;
            all.record_statuses(&buffer[..count]);
            if count == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(8)).await;
        }
    };
    all.each(CONNECTIONS, idle).await
}

pub(super) async fn slow_heads(all: &Attackers) -> Result<()> {
    let slow = |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let head = format!("{}X-Long: {}\r\n", all.target.head("GET", "/ping"), "x".repeat(30_000));
        connection.write_all(head.as_bytes()).await?;
        all.record("heads");
        for _ in 0.. {
            tokio::time::sleep(Duration::from_secs(1)).await;
            connection.write_all(b"X-More: 1\r\n").await?;
        }
        Ok(())
    };
    all.each(2_000, slow).await
}

pub(super) async fn slow_bodies(all: &Attackers) -> Result<()> {
    let slow = |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let head =
            all.target.head("POST", "/contacts") + "Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n";
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(&vec![b' '; 900 * 1024]).await?;
        all.record("bodies");
        all.drain(&mut connection).await
    };
    all.each(500, slow).await
}

pub(super) async fn forms(all: &Attackers) -> Result<()> {
    let form = |all: Attackers, number| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let path = ["/sign-in", "/keys/new", "/switch/x"][number % 3];
        let head = format!(
            "POST /dashboard{path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 1048576\r\n\r\n"
        );
        let stops_early = usize::from(number >= 40);
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(&b"a&".repeat(512 * 1024)[stops_early..]).await?;
        all.record("forms");
        all.drain(&mut connection).await
    };
    all.each(140, form).await
}

pub(super) async fn slow_readers(all: &Attackers, clients: usize, list: &'static str) -> Result<()> {
    let slow = move |all: Attackers, _| async move {
        let mut connection = all.target.connect_with("http/1.1", TINY_BUFFER).await?;
        all.record("connections");
        // The server stops reading when its responses are not read.
        loop {
            let request = all.target.head("GET", list) + "\r\n";
            connection.write_all(request.as_bytes()).await?;
            all.record("requests");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    all.each(clients, slow).await
}

pub(super) async fn handshakes(all: &Attackers) -> Result<()> {
    let half_way = |all: Attackers, number| async move {
        if number < 4 {
            all.target.connect("h2").await?;
            all.record("whole handshakes");
            return Ok(());
        }
        let mut connection = TcpStream::connect(all.target.address).await?;
        connection.write_all(&CLIENT_HELLO).await?;
        all.record("half handshakes");
        all.drain(&mut connection).await
    };
    all.each(4_000, half_way).await
}
