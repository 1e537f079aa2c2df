//! Deliveries through a proxy: what it is asked for, how it can fail, and what it never gets to see.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use svc_core::env::Env;
use svc_core::values::HostPolicy;
use svc_core::webhooks::deliveries::AttemptLog;
use svc_server::EgressProxy;
use svc_server::deliver::{HttpWebhookClient, WebhookClient as _};
use svc_server::outbound::resolver::Resolver;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::attempts::{ChangingResolver, attempt, class};
use super::receivers::{OK, Receiver, listen};
use super::tls::{Authority, TlsReceiver, with_tls};

/// What the proxies of these tests want, as the URL has it and as the header has it.
const CREDENTIALS: &str = "svc%40home:s3cret%3Aword@";
const AUTHORIZATION: &str = "Proxy-Authorization: Basic c3ZjQGhvbWU6czNjcmV0OndvcmQ=\r\n";

fn resolver(results: &[&[&str]]) -> Arc<ChangingResolver> {
    let results = results.iter().map(|of| of.iter().map(|address| address.parse().unwrap()).collect()).collect();
    Arc::new(ChangingResolver { results, lookups: Mutex::new(0) })
}

fn client(policy: HostPolicy, proxy: SocketAddr, resolver: Arc<dyn Resolver>) -> HttpWebhookClient {
    client_with(policy, proxy, resolver, false)
}

fn client_with(
    policy: HostPolicy,
    proxy: SocketAddr,
    resolver: Arc<dyn Resolver>,
    resolves: bool,
) -> HttpWebhookClient {
    let mut env = Env::system();
    env.webhook_hosts = policy;
    let proxy = EgressProxy::parse(&format!("http://{CREDENTIALS}{proxy}")).unwrap().resolving(resolves);
    HttpWebhookClient::with_proxy(env, Duration::from_secs(10), resolver, Some(proxy))
}

/// Reads the head of a request.
async fn head(tcp: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = tcp.read_u8().await else { break };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

/// A proxy whose tunnels lead to the receivers of a table by the targets that it is asked for. It cannot reach others.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(routes: &[(&str, SocketAddr)]) -> Self {
        let routes: Vec<(String, SocketAddr)> = routes.iter().map(|(target, to)| ((*target).to_owned(), *to)).collect();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heads);
        let address = listen(move |mut tcp| {
            let (routes, heads) = (routes.clone(), Arc::clone(&noted));
            async move {
                let head = head(&mut tcp).await;
                let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                heads.lock().unwrap().push(head);
                let Some((_, to)) = routes.iter().find(|(known, _)| *known == target) else {
                    let _ = tcp.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
                    return;
                };
                let _ = tcp.write_all(b"HTTP/1.1 200 Connection established\r\nvia: 1.1 test\r\n\r\n").await;
                let mut upstream = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut tcp, &mut upstream).await;
            }
        })
        .await;
        Self { address, heads }
    }

    /// Returns the targets that it was asked for.
    fn targets(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads.iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
    }
}

fn assert_hides_the_secret(log: &AttemptLog) {
    let shown = format!("{log:?}");
    assert!(!["s3cret", "svc@home", "c3Zj"].iter().any(|part| shown.contains(part)), "{shown}");
}

#[tokio::test]
async fn a_delivery_goes_through_the_proxy_to_the_checked_address() {
    let authority = Authority::new();
    let receiver = TlsReceiver::start(&authority, None).await;
    let proxy = Proxy::start(&[("93.184.215.14:443", receiver.address)]).await;
    // A second look-up would lead elsewhere.
    let resolver = resolver(&[&["93.184.215.14"], &["127.0.0.1"]]);
    let client = client(HostPolicy::Public, proxy.address, resolver.clone());
    let send = || client.attempt(with_tls("https://hooks.example.com/hook", 1, authority.trusted()));
    let log = send().await.log;
    assert!(log.succeeded(), "the name in TLS is that of the host: {log:?}");
    assert_eq!(log.remote_addr.as_deref(), Some("93.184.215.14:443"));
    assert_hides_the_secret(&log);
    let agent = concat!("svc-webhooks/", env!("CARGO_PKG_VERSION"));
    let want = format!(
        "CONNECT 93.184.215.14:443 HTTP/1.1\r\nHost: 93.184.215.14:443\r\nUser-Agent: {agent}\r\n{AUTHORIZATION}\r\n"
    );
    assert_eq!(*proxy.heads.lock().unwrap(), [want]);
    assert_eq!((receiver.arrived().len(), *resolver.lookups.lock().unwrap()), (1, 1));
    // What the name resolves to is checked at each attempt, also if there is a connection.
    let log = send().await.log;
    assert_eq!((log.status, class(&log)), (-1, "blocked"), "{log:?}");
    assert_eq!(proxy.targets().len(), 1);
}

#[tokio::test]
async fn nothing_private_is_asked_of_the_proxy() {
    let proxy = Proxy::start(&[]).await;
    for (url, addresses) in [
        ("https://127.0.0.1/", vec!["8.8.8.8"]),
        ("https://[::1]/", vec!["8.8.8.8"]),
        ("https://hooks.example.com/", vec!["10.0.0.1"]),
        ("https://hooks.example.com/", vec!["8.8.8.8", "169.254.169.254"]),
        ("http://hooks.example.com/", vec!["8.8.8.8"]),
    ] {
        let log = client(HostPolicy::Public, proxy.address, resolver(&[&addresses])).attempt(attempt(url)).await.log;
        assert_eq!((log.status, class(&log)), (-1, "blocked"), "{log:?}");
    }
    assert_eq!(proxy.targets(), [""; 0]);
}

#[tokio::test]
async fn a_tunnel_is_kept_for_later_deliveries_and_carries_plain_http_as_well() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let proxy = Proxy::start(&[("127.0.0.2:80", receiver.address)]).await;
    let client = client(HostPolicy::AllowPrivate, proxy.address, resolver(&[&["127.0.0.2"]]));
    for _ in 0..3 {
        let log = client.attempt(attempt("http://hooks.example.com/hook")).await.log;
        assert!(log.succeeded(), "{log:?}");
        let received = receiver.next().await;
        assert_eq!(
            (received.path.as_str(), &received.headers["host"]),
            ("/hook", &"hooks.example.com".parse().unwrap())
        );
        assert!(!received.headers.contains_key("proxy-authorization"), "{received:?}");
    }
    assert_eq!(proxy.targets(), ["127.0.0.2:80"]);
}

#[tokio::test]
async fn of_several_addresses_the_first_that_the_proxy_reaches_is_used() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let proxy = Proxy::start(&[("[::1]:80", receiver.address)]).await;
    let client = client(HostPolicy::AllowPrivate, proxy.address, resolver(&[&["127.0.0.2", "127.0.0.3", "::1"]]));
    let log = client.attempt(attempt("http://hooks.example.com/")).await.log;
    assert_eq!((log.status, log.remote_addr.as_deref()), (200, Some("[::1]:80")), "{log:?}");
    assert_eq!(proxy.targets(), ["127.0.0.2:80", "[::1]:80"], "the families alternate");
}

#[tokio::test]
async fn a_proxy_that_resolves_names_gets_them() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let proxy = Proxy::start(&[("hooks.example.com:8080", receiver.address)]).await;
    let resolver = resolver(&[&["10.0.0.1"]]);
    let client = client_with(HostPolicy::AllowPrivate, proxy.address, resolver.clone(), true);
    let log = client.attempt(attempt("http://hooks.example.com:8080/")).await.log;
    assert_eq!((log.status, log.remote_addr.as_deref()), (200, None), "its address is not known here: {log:?}");
    assert_eq!((proxy.targets(), *resolver.lookups.lock().unwrap()), (vec!["hooks.example.com:8080".to_owned()], 0));
    // What shows in the URL is refused all the same.
    let client = client_with(HostPolicy::Public, proxy.address, resolver, true);
    for url in ["https://10.0.0.1/", "https://[::1]/", "https://localhost/", "https://metadata.google.internal/"] {
        let log = client.attempt(attempt(url)).await.log;
        assert_eq!((log.status, class(&log)), (-1, "blocked"), "{log:?}");
    }
    let log = client.attempt(attempt("https://hooks.example.com/")).await.log;
    assert_eq!(log.error.as_deref(), Some("connect: the proxy responded with 502 Bad Gateway"));
    assert_eq!(proxy.targets().last().unwrap(), "hooks.example.com:443");
}

/// Starts a proxy that responds with these bytes, and goes on to send the last of them if `drips`.
async fn failing(response: Vec<u8>, drips: bool) -> SocketAddr {
    listen(move |mut tcp| {
        let response = response.clone();
        async move {
            head(&mut tcp).await;
            let _ = tcp.write_all(&response).await;
            let mut pause = tokio::time::interval(Duration::from_millis(100));
            while drips && tcp.write_all(b"x").await.is_ok() {
                pause.tick().await;
            }
        }
    })
    .await
}

async fn attempt_through(proxy: SocketAddr) -> AttemptLog {
    let client = client(HostPolicy::Public, proxy, resolver(&[&["93.184.215.14"]]));
    let log = client.attempt(attempt("https://hooks.example.com/")).await.log;
    assert_hides_the_secret(&log);
    assert_eq!((log.status, &log.remote_addr), (0, &None), "{log:?}");
    log
}

#[tokio::test]
async fn failures_of_the_proxy_are_told_apart_from_those_of_the_receiver() {
    let huge = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &vec![b'x'; 1 << 20]].concat();
    for (response, reason) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n".into(),
            "responded with 407 Proxy Authentication Required",
        ),
        ("HTTP/1.1 403 No\r\n\r\n".into(), "responded with 403 Forbidden"),
        ("HTTP/1.0 502 Bad Gateway\r\n\r\n<html>".into(), "responded with 502 Bad Gateway"),
        ("HTTP/1.1 504\r\n\r\n".into(), "responded with 504 Gateway Timeout"),
        ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\n".into(), "responded with 302 Found"),
        ("HTTP/1.1 100 Continue\r\n\r\n".into(), "responded with 100 Continue"),
        ("HTTP/1.1 200 OK\r\n\r\n220 smtp ready\r\n".into(), "sent something after the head of its response"),
        ("220 smtp ready\r\n\r\n".into(), "did not respond as an HTTP proxy does"),
        ("HTTP/1.1 2000 OK\r\n\r\n".into(), "did not respond as an HTTP proxy does"),
        ("HTTP/1.1 2\r\n\r\n".into(), "did not respond as an HTTP proxy does"),
        (vec![0xff; 64], "closed the connection without a whole response"),
        (Vec::new(), "closed the connection without a whole response"),
        (huge, "responded with a head of more than 16 KiB"),
    ] {
        let log = attempt_through(failing(response, false).await).await;
        assert_eq!(log.error, Some(format!("connect: the proxy {reason}")));
    }
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = attempt_through(closed).await.error.unwrap();
    assert!(error.starts_with("connect: the proxy cannot be reached: "), "{error}");
    let proxy = EgressProxy::parse("http://proxy.example.com:3128").unwrap();
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    let client = HttpWebhookClient::with_proxy(env, Duration::from_secs(10), resolver(&[&[]]), Some(proxy));
    let log = client.attempt(attempt("http://127.0.0.1/")).await.log;
    assert_eq!(log.error.as_deref(), Some("connect: the proxy cannot be reached: its name does not resolve"));
    // A tunnel that ends is a failure of the receiver, as without a proxy.
    let ends = failing(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false).await;
    assert_eq!(class(&attempt_through(ends).await), "tls");
}

#[tokio::test]
async fn a_slow_proxy_has_five_seconds() {
    let silent = listen(|mut tcp| async move {
        head(&mut tcp).await;
        std::future::pending().await
    })
    .await;
    let drips = failing(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), true).await;
    for log in join_all([silent, drips].map(attempt_through)).await {
        assert_eq!(log.error.as_deref(), Some("timeout: the proxy made no connection within 5 s"));
        assert!((5_000..8_000).contains(&log.duration_ms), "{log:?}");
    }
}

#[test]
fn the_url_of_a_proxy_is_read() {
    let shown = |url: &str| EgressProxy::parse(url).map(|proxy| format!("{proxy:?}"));
    for (url, want) in [
        ("http://proxy.internal:3128", "EgressProxy(proxy.internal:3128)"),
        ("http://proxy.internal", "EgressProxy(proxy.internal:80)"),
        ("http://[::1]:3128/", "EgressProxy(::1:3128)"),
        ("http://svc:s3cret@10.0.0.1:3128", "EgressProxy(10.0.0.1:3128)"),
    ] {
        assert_eq!(shown(url).as_deref(), Ok(want));
    }
    for url in [
        "",
        "proxy",
        "10.0.0.1:3128",
        "http://",
        "http://:3128",
        "http://a:99999",
        "http://a/x",
        "http://a?x",
        "ftp://a",
    ] {
        assert!(shown(url).is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_token_is_got_through_the_proxy() {
    use svc_core::input::{FromJson as _, json};
    use svc_core::webhooks::options::Authentication;

    let tokens = Receiver::with_responses(&[
        "HTTP/1.1 200 OK\r\ncontent-length: 43\r\n\r\n{\"access_token\":\"t1\",\"token_type\":\"bearer\"}",
    ])
    .await;
    let receiver = Receiver::with_responses(&[OK]).await;
    let proxy = Proxy::start(&[("127.0.0.2:81", tokens.address), ("127.0.0.2:80", receiver.address)]).await;
    let client = client(HostPolicy::AllowPrivate, proxy.address, resolver(&[&["127.0.0.2"]]));
    let sent = r#"{"type":"oauth2","token_url":"http://tokens.example.com:81/","client_id":"a","client_secret":"b"}"#;
    let authentication = Authentication::from_json(json::parse(sent.as_bytes()).unwrap()).unwrap();
    let mut attempt = attempt("http://hooks.example.com/");
    attempt.options.credentials = authentication.client_credentials().cloned();
    let log = client.attempt(attempt).await.log;
    assert!(log.succeeded(), "{log:?}");
    assert_eq!(receiver.next().await.headers["authorization"], "Bearer t1");
    assert_eq!(proxy.targets(), ["127.0.0.2:81", "127.0.0.2:80"]);
}
