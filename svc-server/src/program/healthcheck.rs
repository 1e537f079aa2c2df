//! `svc-server healthcheck`: asks the server on this machine whether it is healthy, for images that have no shell and no
//! HTTP client.
//!
//! It checks the operations listener, whose address it finds as the server does: by flag, variable, or file of settings. The
//! path is `/healthz`, since supervisors restart what is unhealthy, and no restart helps against a database that is away. The
//! server does not listen before its database is open and migrated, so a start is complete with the first 200.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::program::DEFAULT_OPS_LISTEN;
use crate::program::address::ListenAddress;
use crate::program::config::{Config, Healthcheck};

/// The time limit of the check. `/readyz` responds within two seconds, whatever its database does.
const TIME_LIMIT: Duration = Duration::from_secs(4);

/// The reason for which a server counts as unhealthy.
#[derive(Debug, thiserror::Error)]
enum Unhealthy {
    #[error("cannot connect to {0}: {1}")]
    Connect(ListenAddress, io::Error),
    #[error("{0} gave no response: {1}")]
    Http(ListenAddress, hyper::Error),
    #[error("{0} gave no response within {1:?}")]
    TimedOut(ListenAddress, Duration),
    #[error("{0} responded to GET {1} with {2}")]
    Status(ListenAddress, &'static str, StatusCode),
    #[error("cannot tell which port {0} stands for; name the port with --ops-listen")]
    AnyPort(ListenAddress),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs the check, and returns exit code 0 if the server is healthy. Otherwise writes the reason to stderr and returns 1.
pub(super) fn main(config: &Config, options: &Healthcheck) -> ExitCode {
    let address = config.ops_listen.as_ref().unwrap_or(&DEFAULT_OPS_LISTEN);
    let path = if options.ready { "/readyz" } else { "/healthz" };
    match run(address, path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(io::stderr(), "unhealthy: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(address: &ListenAddress, path: &'static str) -> Result<(), Unhealthy> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checked = runtime.block_on(check(address, path, TIME_LIMIT));
    // A DNS lookup without a response must not keep the process running.
    runtime.shutdown_background();
    checked
}

/// Asks the listener at `address` for `path`, and returns the reason if the response is not 200 within `limit`.
async fn check(address: &ListenAddress, path: &'static str, limit: Duration) -> Result<(), Unhealthy> {
    if address.is_any_port() {
        return Err(Unhealthy::AnyPort(address.clone()));
    }
    let status = tokio::time::timeout(limit, get(address, path)).await;
    match status.map_err(|_| Unhealthy::TimedOut(address.clone(), limit))?? {
        StatusCode::OK => Ok(()),
        status => Err(Unhealthy::Status(address.clone(), path, status)),
    }
}

async fn get(address: &ListenAddress, path: &'static str) -> Result<StatusCode, Unhealthy> {
    let stream = address.connect().await.map_err(|error| Unhealthy::Connect(address.clone(), error))?;
    let failed = |error| Unhealthy::Http(address.clone(), error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = http::Uri::from_static(path);
    request.headers_mut().insert(HOST, http::HeaderValue::from_static("localhost"));
    Ok(sender.send_request(request).await.map_err(failed)?.status())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a listener that gives each request this response, or none if it is empty, and returns its port.
    async fn responding(response: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    let read = stream.read(&mut head).await.unwrap();
                    let head = String::from_utf8_lossy(&head[..read]);
                    assert!(head.starts_with("GET /healthz HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
                    stream.write_all(response.as_bytes()).await.unwrap();
                    // Leaves the connection open, as a server that hangs does.
                    let _ = stream.read(&mut [0; 1]).await;
                });
            }
        });
        port
    }

    async fn checked(address: &str, limit: Duration) -> Result<(), String> {
        check(&address.parse().unwrap(), "/healthz", limit).await.map_err(|reason| reason.to_string())
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    #[tokio::test]
    async fn a_server_that_listens_on_all_addresses_is_asked_on_loopback() {
        let port = responding(OK).await;
        for host in ["127.0.0.1", "0.0.0.0", "", "localhost"] {
            assert_eq!(checked(&format!("{host}:{port}"), TIME_LIMIT).await, Ok(()), "{host}");
        }
    }

    #[tokio::test]
    async fn a_server_that_listens_on_all_addresses_of_ipv6_is_asked_on_loopback_of_ipv6() {
        // Where IPv6 is off, there is nothing to ask.
        let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
        let address: ListenAddress = format!("[::]:{}", listener.local_addr().unwrap().port()).parse().unwrap();
        let (connected, accepted) = tokio::join!(address.connect(), listener.accept());
        assert_eq!(connected.unwrap().local_addr().unwrap(), accepted.unwrap().1);
    }

    #[tokio::test]
    async fn a_response_other_than_200_is_the_reason() {
        let port = responding("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
        let reason = checked(&format!(":{port}"), TIME_LIMIT).await.unwrap_err();
        assert_eq!(reason, format!(":{port} responded to GET /healthz with 503 Service Unavailable"));
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_unhealthy_after_the_time_limit() {
        let port = responding("").await;
        let reason = checked(&format!(":{port}"), Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(reason, format!(":{port} gave no response within 20ms"));
    }

    #[tokio::test]
    async fn a_port_without_a_server_is_unhealthy() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let reason = checked(&format!("127.0.0.1:{port}"), TIME_LIMIT).await.unwrap_err();
        assert!(reason.starts_with(&format!("cannot connect to 127.0.0.1:{port}: Connection refused")), "{reason}");
        let reason = checked(":0", TIME_LIMIT).await.unwrap_err();
        assert_eq!(reason, "cannot tell which port :0 stands for; name the port with --ops-listen");
    }

    #[tokio::test]
    async fn what_is_no_http_server_is_unhealthy() {
        let port = responding("SSH-2.0-example\r\n").await;
        let reason = checked(&format!(":{port}"), TIME_LIMIT).await.unwrap_err();
        assert!(reason.starts_with(&format!(":{port} gave no response: invalid HTTP version")), "{reason}");
    }
}
