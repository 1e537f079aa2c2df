//! Bodies that are not valid JSON, too deep, or costly to parse. Each has an expected error code.

use svc_test_support::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Attackers;
use crate::server::Connection;

/// Size of the largest bodies, in bytes.
const LARGE: usize = 1_000_000;

/// Returns name, body and expected error code of each document.
fn all_documents() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let with = |value: &str| format!("{{\"email\":\"a@example.com\",\"x\":{value}}}").into_bytes();
    let many = |item: &str| with(&format!("[{}0]", item.repeat(LARGE / item.len())));
    vec![
        ("deep arrays", with(&("[".repeat(100_000) + &"]".repeat(100_000))), "invalid_json"),
        ("deep objects", with(&("{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000))), "invalid_json"),
        ("open arrays", with(&"[".repeat(100_000)), "invalid_json"),
        ("a large exponent", with("1e400"), "validation_failed"),
        ("many digits", with(&"9".repeat(LARGE)), "validation_failed"),
        ("a lone surrogate", with("\"\\ud800\""), "invalid_json"),
        ("an escaped NUL", with("\"\\u0000\""), "validation_failed"),
        ("a NUL", b"{\"x\":\"\0\"}".to_vec(), "invalid_json"),
        ("invalid UTF-8", b"{\"x\":\"\xff\xfe\"}".to_vec(), "invalid_json"),
        ("duplicate keys", with(&format!("{{{}\"a\":1}}", "\"a\":1,".repeat(100_000))), "validation_failed"),
        ("many keys", with(&format!("{{{}}}", keys())), "validation_failed"),
        ("many items", many("0,"), "validation_failed"),
        ("many arrays", many("[],"), "validation_failed"),
        ("many levels, each scanned", with(&wide()), "validation_failed"),
        ("many escapes", with(&format!("\"{}\"", "\\u00e9".repeat(LARGE / 6))), "validation_failed"),
        ("many unknown fields", format!("{{{}}}", keys()).into_bytes(), "validation_failed"),
    ]
}

fn keys() -> String {
    (0..60_000).map(|number| format!("\"key{number}\":1")).collect::<Vec<_>>().join(",")
}

/// Returns arrays at the greatest depth, with all items in the innermost array.
fn wide() -> String {
    let levels = 30;
    format!("{}{}0{}", "[".repeat(levels), "0,".repeat(LARGE / 2), "]".repeat(levels))
}

pub(super) async fn run(all: &Attackers) -> Result<()> {
    let documents = all_documents();
    // First each document once, with its exact error.
    let mut connection = all.target.connect("http/1.1").await?;
    for (name, body, code) in &documents {
        let response = request(all, &mut *connection, body).await?;
        if !(response.starts_with("HTTP/1.1 400 ") && response.contains(&format!("\"code\":\"{code}\""))) {
            let shown: String = response.chars().take(300).collect();
            return Err(format!("VIOLATION: {name} got {shown}").into());
        }
    }
    let bodies: std::sync::Arc<Vec<Vec<u8>>> =
        std::sync::Arc::new(documents.into_iter().map(|(_, body, _)| body).collect());
    let flood = move |all: Attackers, number: usize| {
        let bodies = std::sync::Arc::clone(&bodies);
        async move {
            let mut connection = all.target.connect("http/1.1").await?;
            for body in bodies.iter().cycle().skip(number * 4) {
                let response = request(&all, &mut *connection, body).await?;
                all.record_statuses(response.as_bytes());
            }
            Ok(())
        }
    };
    all.each(4, flood).await
}

/// Sends a document and reads the complete response.
async fn request(all: &Attackers, connection: &mut dyn Connection, body: &[u8]) -> Result<String> {
    let head = all.target.head("POST", "/contacts");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body).await?;
    let mut response = Vec::new();
    loop {
        if connection.read_buf(&mut response).await? == 0 {
            return Err("incomplete response".into());
        }
        let text = String::from_utf8_lossy(&response);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| body.len() >= length) {
            return Ok(text.into_owned());
        }
    }
}
