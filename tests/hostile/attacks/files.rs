//! Large responses: files of the dashboard, and deliveries with many attempts.

use std::time::Duration;

use svc_test_support::Result;
use tokio::io::AsyncWriteExt as _;

use super::Attackers;

/// The size in bytes of the receive buffer of a client that does not read.
const TINY_BUFFER: Option<u32> = Some(1);

fn download(all: &Attackers, number: usize, list: &str) -> String {
    let session = all.target.sessions.get(number % all.target.sessions.len().max(1)).map_or("", String::as_str);
    format!(
        "GET /dashboard/{list}?format=csv HTTP/1.1\r\nHost: localhost\r\nCookie: svc_session={session}\r\n\
         Connection: close\r\n\r\n"
    )
}

pub(super) async fn downloads(all: &Attackers) -> Result<()> {
    let download = |all: Attackers, number| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        connection.write_all(download(&all, number, "contacts").as_bytes()).await?;
        all.drain(&mut connection).await?;
        // A session has 300 pages a minute.
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(())
    };
    all.each(150, download).await
}

pub(super) async fn unread(all: &Attackers) -> Result<()> {
    let unread = |all: Attackers, number| async move {
        let mut connection = all.target.connect_with("http/1.1", TINY_BUFFER).await?;
        connection.write_all(download(&all, number, "bookings").as_bytes()).await?;
        all.record("requests");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    };
    all.each(250, unread).await
}

pub(super) async fn attempt_logs(all: &Attackers) -> Result<()> {
    let ask = |all: Attackers, number: usize| async move {
        let mut connection = all.target.connect("http/1.1").await?;
        let (key, id) = (all.target.key(), &all.target.delivery);
        let common = format!("Host: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n");
        let request = if number.is_multiple_of(2) {
            format!("GET /api/v1/deliveries/{id} HTTP/1.1\r\n{common}\r\n")
        } else {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_delivery","arguments":{{"id":"{id}"}}}}}}"#
            );
            format!(
                "POST /mcp HTTP/1.1\r\n{common}Content-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{call}",
                call.len()
            )
        };
        connection.write_all(request.as_bytes()).await?;
        all.drain(&mut connection).await
    };
    all.each(16, ask).await
}
