//! A few clients that send as much as the server accepts.

use svc_test_support::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Attackers;
use crate::server::Connection;

const CLIENTS: usize = 8;
const GIB: usize = 1024 * 1024 * 1024;

/// Pipelined requests on one connection.
const DEPTH: usize = 64;

pub(super) async fn pipelining(all: &Attackers) -> Result<()> {
    let flood = |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let requests = (all.target.head("GET", "/ping") + "\r\n").repeat(DEPTH);
        let mut buffer = vec![0; 256 * 1024];
        loop {
            connection.write_all(requests.as_bytes()).await?;
            let mut responses = 0;
            while responses < DEPTH {
                let count = connection.read(&mut buffer).await?;
                if count == 0 {
                    return Ok(());
                }
                // Each response has one Date header. If one is split between two reads, one more read is counted
                // instead.
                responses += String::from_utf8_lossy(&buffer[..count]).matches("\r\ndate: ").count().max(1);
            }
            all.record_many("responses", DEPTH);
        }
    };
    all.each(CLIENTS, flood).await
}

pub(super) async fn searches(all: &Attackers) -> Result<()> {
    const SEARCHERS: usize = 40;
    let search = |all: Attackers, number: usize| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let text = "a".repeat(199) + "z";
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search","arguments":{{"text":"{text}"}}}}}}"#
        );
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            all.target.key(),
            body.len(),
        );
        connection.write_all(request.as_bytes()).await?;
        if number.is_multiple_of(2) { all.drain(&mut *connection).await } else { Ok(()) }
    };
    all.each(SEARCHERS, search).await
}

pub(super) async fn heads(all: &Attackers) -> Result<()> {
    let flood = |all: Attackers, number| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        if number % 2 == 0 {
            let head = format!("{}X-Long: {}\r\n\r\n", all.target.head("GET", "/ping"), "x".repeat(30_000));
            return send(&all, &mut *connection, head.as_bytes(), head.as_bytes(), usize::MAX).await;
        }
        let line = format!("X-More: {}\r\n", "x".repeat(100));
        send(&all, &mut *connection, all.target.head("GET", "/ping").as_bytes(), line.as_bytes(), usize::MAX).await
    };
    all.each(CLIENTS, flood).await
}

pub(super) async fn uris(all: &Attackers) -> Result<()> {
    let flood = |all: Attackers, number| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let length = if number % 2 == 0 { 9_000 } else { 60_000 };
        let path = format!("/contacts?email={}", "x".repeat(length));
        let request = all.target.head("GET", &path) + "\r\n";
        send(&all, &mut *connection, request.as_bytes(), request.as_bytes(), usize::MAX).await
    };
    all.each(CLIENTS, flood).await
}

pub(super) async fn chunks(all: &Attackers) -> Result<()> {
    let flood = |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let head = all.target.head("POST", "/contacts")
            + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = b"1\r\n \r\n".repeat(1000);
        send(&all, &mut *connection, head.as_bytes(), &chunks, usize::MAX).await
    };
    all.each(CLIENTS, flood).await
}

pub(super) async fn gigabytes(all: &Attackers, is_declared: bool) -> Result<()> {
    let flood = move |all: Attackers, _| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let head = all.target.head("POST", "/contacts") + "Content-Type: application/json\r\n";
        let (head, part) = match is_declared {
            true => (head + &format!("Content-Length: {GIB}\r\n\r\n"), vec![b' '; 0x10000]),
            false => (
                head + "Transfer-Encoding: chunked\r\n\r\n",
                [b"10000\r\n", &vec![b' '; 0x10000][..], b"\r\n"].concat(),
            ),
        };
        send(&all, &mut *connection, head.as_bytes(), &part, GIB / 0x10000).await
    };
    all.each(4, flood).await
}

/// Sends `head`, then `part` repeatedly, and reads responses meanwhile, until the server closes the connection.
async fn send(all: &Attackers, connection: &mut dyn Connection, head: &[u8], part: &[u8], parts: usize) -> Result<()> {
    let (mut from, mut to) = tokio::io::split(connection);
    let sending = async {
        to.write_all(head).await?;
        for _ in 0..parts {
            to.write_all(part).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    let mut buffer = vec![0; 64 * 1024];
    let reading = async {
        loop {
            match from.read(&mut buffer).await {
                Ok(count) if count > 0 => all.record_statuses(&buffer[..count]),
                _ => return,
            }
        }
    };
    // When writing fails, a response may still be readable.
    let sending = async {
        if sending.await.is_err() {
            all.record("cut off");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = reading => {}
        () = sending => {}
    }
    Ok(())
}
