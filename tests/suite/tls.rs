//! TLS: HTTP/1.1 and HTTP/2, reloading a certificate, and client addresses reported by a trusted proxy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use svc_core::prelude::*;
use svc_server::program::proxy::TrustedProxies;
use svc_server::program::serve::{Server, Tls};
use svc_server::{DashboardSettings, Surfaces};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

use crate::harness::{SeededServer, settings};

/// A server with a self-signed certificate, which trusts 127.0.0.1 as a proxy.
pub(crate) struct TlsServer {
    pub(crate) inner: SeededServer,
    tls: Arc<Tls>,
    address: std::net::SocketAddr,
    folder: tempfile::TempDir,
    pub(crate) stop: Option<oneshot::Sender<()>>,
}

impl TlsServer {
    async fn start(server: SeededServer) -> (Self, CertificateDer<'static>) {
        Self::with(server, |server| server).await
    }

    pub(crate) async fn with(
        inner: SeededServer,
        set: impl FnOnce(Server) -> Server,
    ) -> (Self, CertificateDer<'static>) {
        let folder = tempfile::tempdir().unwrap();
        let certificate = new_certificate(&folder);
        let (chain, key) = files(&folder);
        let network = "127.0.0.1/32".parse().unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), 100).await.unwrap().with_tls(&chain, &key).unwrap();
        let server = set(server.with_trusted_proxies(TrustedProxies::new(vec![network])));
        let address = server.url().unwrap().strip_prefix("https://").unwrap().parse().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let tls = server.tls().unwrap();
        let until_stopped = async {
            let _ = stopped.await;
        };
        tokio::spawn(server.run(inner.api.clone(), until_stopped, Duration::from_secs(1)));
        (Self { inner, tls, address, folder, stop: Some(stop) }, certificate)
    }

    pub(crate) async fn connect(
        &self,
        trusted: &CertificateDer<'static>,
        protocol: &[u8],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        Ok(stream)
    }

    fn request(&self, version: Version) -> Request<Full<Bytes>> {
        let target = if version == Version::HTTP_2 { "https://localhost/api/v1/ping" } else { "/api/v1/ping" };
        let key = &self.inner.key("write").text;
        let request = Request::get(target).version(version).header("authorization", format!("Bearer {key}"));
        let request = if version == Version::HTTP_2 { request } else { request.header("host", "localhost") };
        request.body(Full::default()).unwrap()
    }
}

fn files(folder: &tempfile::TempDir) -> (PathBuf, PathBuf) {
    (folder.path().join("chain.pem"), folder.path().join("key.pem"))
}

fn new_certificate(folder: &tempfile::TempDir) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = files(folder);
    std::fs::write(chain, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

async fn http_1(stream: TlsStream<TcpStream>, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

#[tokio::test]
async fn both_http_versions_give_the_same_responses() {
    let (server, certificate) = TlsServer::start(SeededServer::new()).await;
    let one = http_1(server.connect(&certificate, b"http/1.1").await.unwrap(), server.request(Version::HTTP_11)).await;

    let stream = TokioIo::new(server.connect(&certificate, b"h2").await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    // Several concurrent requests on one connection.
    let all = (0..20).map(|_| sender.send_request(server.request(Version::HTTP_2))).collect::<Vec<_>>();
    let one_year = one.headers()["strict-transport-security"].clone();
    assert_eq!(one_year, "max-age=31536000");
    let want = one.into_body().collect().await.unwrap().to_bytes();
    for response in futures_util::future::join_all(all).await {
        let response = response.unwrap();
        assert_eq!(response.headers()["strict-transport-security"], one_year);
        assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), want);
    }
}

/// Reads the stream of a live list until it has shown the delivery.
async fn shows(stream: &mut Incoming, delivery: &str) {
    loop {
        let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        if String::from_utf8_lossy(&frame).contains(delivery) {
            return;
        }
    }
}

#[tokio::test]
async fn live_lists_share_a_connection_of_http_2_and_end_with_their_sessions() {
    let surfaces = Surfaces { dashboard: Some(DashboardSettings::default()), ..Surfaces::default() };
    let (server, certificate) = TlsServer::start(SeededServer::serving(surfaces, settings())).await;
    let (svc, tenant) = (server.inner.svc.clone(), server.inner.tenant);
    let stream = TokioIo::new(server.connect(&certificate, b"h2").await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut get = |path: &str, token: &str| {
        let request = Request::get(format!("https://localhost/dashboard{path}")).version(Version::HTTP_2);
        sender.send_request(
            request.header("cookie", format!("__Host-svc_session={token}")).body(Full::<Bytes>::default()).unwrap(),
        )
    };

    let mut people = Vec::new();
    for email in ["ada@example.com", "bob@example.com"] {
        let email = Email::parse(email).unwrap();
        svc.account(tenant).members().add(email.clone(), Role::Viewer).await.unwrap();
        let new = svc.dashboard().sign_in_member(email).await.unwrap();
        let mut streams = Vec::new();
        // More than the connections that a browser has to a server of HTTP/1.1.
        for _ in 0..7 {
            let response = get("/deliveries/live", new.token.reveal()).await.unwrap();
            assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
            streams.push(response.into_body());
        }
        people.push((new, streams));
    }
    let endpoint = WebhookCreate::new("https://hook.example.com/".parse().unwrap(), EventSet::All);
    let webhooks = || svc.account(tenant).webhooks();
    let endpoint = webhooks().create(endpoint).await.unwrap().id;
    let first = webhooks().send_test(endpoint, None).await.unwrap().id.to_string();
    for stream in people.iter_mut().flat_map(|(_, streams)| streams) {
        shows(stream, &first).await;
    }
    let (ada, ended) = people.remove(0);
    assert_eq!(get("/deliveries", ada.token.reveal()).await.unwrap().status(), StatusCode::OK, "pages come between");

    svc.dashboard().revoke(Some(tenant), ada.session.id).await.unwrap();
    // A stream looks its session up twice a minute.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    for stream in ended {
        stream.collect().await.unwrap();
    }
    let second = webhooks().send_test(endpoint, None).await.unwrap().id.to_string();
    for stream in &mut people[0].1 {
        shows(stream, &second).await;
    }
}

#[tokio::test]
async fn http_at_the_port_of_https_is_refused_in_words() {
    let (server, _) = TlsServer::start(SeededServer::new()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nThis port speaks https. Use an https:// URL.\n"), "{response}");
}

#[tokio::test]
async fn a_certificate_is_replaced_while_connections_stay_open() {
    let (server, old) = TlsServer::start(SeededServer::new()).await;
    let stream = server.connect(&old, b"http/1.1").await.unwrap();
    let new = new_certificate(&server.folder);
    server.connect(&new, b"http/1.1").await.expect_err("the certificate is not reloaded automatically");
    server.tls.reload().unwrap();
    server.connect(&old, b"http/1.1").await.expect_err("new connections get the new certificate");
    server.connect(&new, b"http/1.1").await.unwrap();
    assert_eq!(http_1(stream, server.request(Version::HTTP_11)).await.status(), StatusCode::OK);
    // A certificate that cannot be read leaves the present one in place.
    std::fs::write(files(&server.folder).1, "no key").unwrap();
    server.tls.reload().expect_err("no key");
    server.connect(&new, b"http/1.1").await.unwrap();
}

#[tokio::test]
async fn anonymous_clients_behind_a_proxy_are_limited_separately() {
    let limits = svc_server::Settings { rate_limit: 2, limit_rates: true, ..settings() };
    let (server, certificate) = TlsServer::start(SeededServer::with(limits)).await;
    let mut statuses = Vec::new();
    for client in ["198.51.100.1", "198.51.100.1", "198.51.100.1", "198.51.100.2"] {
        let mut request = server.request(Version::HTTP_11);
        request.headers_mut().remove("authorization");
        request.headers_mut().insert("x-forwarded-for", format!("192.0.2.1, {client}").parse().unwrap());
        let stream = server.connect(&certificate, b"http/1.1").await.unwrap();
        statuses.push(http_1(stream, request).await.status().as_u16());
    }
    assert_eq!(statuses, [401, 401, 429, 401]);
}
