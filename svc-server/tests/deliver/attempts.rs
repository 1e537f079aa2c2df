//! Single attempts: the timeout, the limits, the classes of failure, and the addresses that are never connected to.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use svc_core::env::Env;
use svc_core::values::EventKind;
use svc_core::values::{HostPolicy, Secret, TenantId, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};
use svc_core::webhooks::engine::{Attempt, AttemptOptions, AttemptResult};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::SubscriptionId;
use svc_server::deliver::{HttpWebhookClient, WebhookClient as _};
use svc_server::outbound::resolver::{Resolver, SystemResolver};
use uuid::Uuid;

use super::receivers::{After, BlackHole, FAILS, OK, Receiver, canary, listen, raw_receiver};

/// The timeout of an attempt: long for a response over loopback, short for a test.
const TIMEOUT: Duration = Duration::from_millis(400);

pub(crate) fn attempt(url: &str) -> Attempt {
    let env = Env::system();
    let (now, tenant) = (env.now(), TenantId(env.id(env.now())));
    let data = RawValue::from_string(r#"{"id":"1"}"#.to_owned()).unwrap();
    let event = Event {
        id: env.id(now),
        tenant_id: tenant,
        kind: EventKind::StayCreated,
        data,
        created_at: now,
        only_for: None,
    };
    let mut delivery = event.delivery_to(env.id(now), SubscriptionId::nil(), false);
    delivery.claim(Uuid::nil(), now);
    let secrets = vec![Secret::new("whsec_c2VjcmV0")];
    Attempt {
        delivery,
        event,
        url: WebhookUrl::parse(url).unwrap(),
        secrets,
        is_sandbox: false,
        options: AttemptOptions::default(),
    }
}

pub(crate) fn client(policy: HostPolicy, resolver: Arc<dyn Resolver>) -> HttpWebhookClient {
    let mut env = Env::system();
    env.webhook_hosts = policy;
    HttpWebhookClient::new(env, TIMEOUT, resolver)
}

async fn send(url: &str) -> AttemptResult {
    client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default())).attempt(attempt(url)).await
}

async fn send_to(address: SocketAddr) -> AttemptLog {
    send(&format!("http://{address}/hook")).await.log
}

pub(crate) fn class(log: &AttemptLog) -> &str {
    log.error.as_deref().and_then(|error| error.split(':').next()).unwrap_or("")
}

#[tokio::test]
async fn the_response_is_logged() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let log = send(&receiver.url("/hook?x=1")).await.log;
    assert_eq!((log.status, log.error.as_deref(), log.response_body.as_deref()), (200, None, Some("ok")));
    assert_eq!(log.cause, None);
    assert!(log.succeeded() && !log.response_truncated);
    assert_eq!(log.remote_addr, Some(receiver.address.to_string()));
    let received = receiver.next().await;
    assert_eq!(received.path, "/hook?x=1");
    assert_eq!(received.headers["content-type"], "application/json");
    assert!(received.headers["user-agent"].to_str().unwrap().starts_with("svc-webhooks/"));
}

#[tokio::test]
async fn each_failure_is_classified() {
    let refused = TcpPort::closed().await;
    let hangs = raw_receiver(Vec::new(), After::Hang).await;
    let after_head = raw_receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec(), After::Hang).await;
    let breaks_off = raw_receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec(), After::Close).await;
    let silent = raw_receiver(Vec::new(), After::Close).await;
    let huge = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &vec![b'x'; 1 << 20], b"\r\n\r\n"].concat();
    let huge_head = raw_receiver(huge, After::Close).await;
    let no_http = raw_receiver(b"220 smtp ready\r\n".to_vec(), After::Close).await;
    for (address, class_name, cause) in [
        (refused, "connect", AttemptCause::ConnectionRefused),
        (hangs, "timeout", AttemptCause::ResponseTimeout),
        (after_head, "timeout", AttemptCause::BodyTimeout),
        (breaks_off, "reset", AttemptCause::ResponseCut),
        (silent, "reset", AttemptCause::ConnectionClosed),
        (huge_head, "reset", AttemptCause::InvalidResponse),
        (no_http, "reset", AttemptCause::InvalidResponse),
    ] {
        let log = send_to(address).await;
        assert_eq!((log.status, class(&log), log.cause), (0, class_name, Some(cause)), "{log:?}");
        assert!(!log.succeeded());
    }
    let receiver = Receiver::with_responses(&[FAILS]).await;
    let log = send(&receiver.url("/")).await.log;
    assert_eq!((log.status, class(&log), log.response_body.as_deref()), (500, "status", Some("oops")));
    assert_eq!(log.cause, Some(AttemptCause::Status));
    let plain = listen(|mut stream| async move {
        use tokio::io::AsyncWriteExt as _;
        let _ = stream.write_all(FAILS.as_bytes()).await;
    })
    .await;
    let log = send(&format!("https://{plain}/")).await.log;
    assert_eq!((log.status, class(&log), log.cause), (0, "tls", Some(AttemptCause::TlsFailed)), "{log:?}");
    let log = send("http://no-such-host.invalid/").await.log;
    assert_eq!((log.status, class(&log), log.cause), (0, "dns", Some(AttemptCause::UnknownHost)), "{log:?}");
}

#[tokio::test]
async fn the_log_says_that_a_response_broke_off() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let log = send_to(raw_receiver(half, After::Close).await).await;
    let error = log.error.unwrap();
    assert!(error.starts_with("reset: the response 200 OK broke off after 4 bytes of its body: "), "{error}");
}

#[tokio::test]
async fn the_log_says_that_the_time_was_over_within_the_body() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let log = send_to(raw_receiver(half, After::Hang).await).await;
    assert_eq!(log.error.as_deref(), Some("timeout: the body of the response did not end within 0.4 s"));
    let log = send_to(raw_receiver(Vec::new(), After::Hang).await).await;
    assert_eq!(log.error.as_deref(), Some("timeout: no complete response within 0.4 s"));
}

#[tokio::test]
async fn an_endpoint_is_tried_by_the_rules_of_deliveries_with_the_headers_of_its_response() {
    let receiver = Receiver::with_connections(&[&[
        "HTTP/1.1 308 Permanent Redirect\r\nlocation: /b\r\ncontent-length: 2\r\n\r\nno",
    ]])
    .await;
    let open = client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()));
    let tried = open.try_endpoint(attempt(&receiver.url("/hook"))).await;
    assert_eq!((tried.log.status, tried.log.response_body.as_deref()), (308, Some("no")), "{tried:?}");
    assert_eq!(tried.headers["location"], "/b");
    assert_eq!(receiver.arrived().await.len(), 1, "no redirect is followed");
    let strict = client(HostPolicy::Public, Arc::new(SystemResolver::default()));
    let tried = strict.try_endpoint(attempt(&receiver.url("/hook"))).await;
    assert_eq!((tried.log.status, class(&tried.log), tried.headers.len()), (-1, "blocked", 0), "{tried:?}");
    assert!(receiver.arrived().await.is_empty());
}

#[tokio::test]
async fn a_response_that_arrives_while_the_process_stands_still_is_read() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (request_sender, request) = tokio::sync::oneshot::channel();
    let (go, stands_still) = mpsc::channel();
    let (response_sender, response) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        request_sender.send(()).unwrap();
        stands_still.recv().unwrap();
        stream.write_all(OK.as_bytes()).unwrap();
        response_sender.send(()).unwrap();
        // The rest of the request, so that the connection is not reset.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let attempt = tokio::spawn(send_to(address));
    request.await.unwrap();
    // The only thread of the client stands still until the deadline is long over.
    go.send(()).unwrap();
    response.recv().unwrap();
    let end = Instant::now() + TIMEOUT * 2;
    while Instant::now() < end {
        std::thread::park_timeout(end - Instant::now());
    }
    let log = attempt.await.unwrap();
    assert!(log.succeeded(), "{log:?}");
}

struct TcpPort;

impl TcpPort {
    /// Returns a port on which nothing listens.
    async fn closed() -> SocketAddr {
        tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }
}

#[tokio::test]
async fn a_connection_that_is_not_accepted_ends_at_the_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let log = send_to(listener.local_addr().unwrap()).await;
    assert_eq!(class(&log), "timeout");
    assert!(u128::from(log.duration_ms) >= TIMEOUT.as_millis());
}

#[tokio::test]
async fn a_response_in_small_pieces_ends_at_the_timeout() {
    let address = raw_receiver(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), After::Drip).await;
    let log = send_to(address).await;
    assert_eq!(class(&log), "timeout", "the timeout applies to the whole response");
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_a_limit_and_logged_up_to_16_kib() {
    let address = raw_receiver(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), After::Endless).await;
    let log = send_to(address).await;
    assert!(log.succeeded(), "{log:?}");
    assert_eq!((log.response_body.unwrap().len(), log.response_truncated), (16 * 1024, true));
}

#[tokio::test]
async fn a_compressed_body_is_not_decompressed() {
    let bomb = [b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n".as_slice(), b"\x1f\x8b\x00!"]
        .concat();
    let log = send_to(raw_receiver(bomb, After::Close).await).await;
    assert_eq!(log.response_body.as_deref(), Some("\x1f\u{fffd}\u{fffd}!"), "NUL and invalid UTF-8 are replaced");
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (canary, hits) = canary().await;
    let response =
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{canary}/\r\ncontent-length: 0\r\n\r\n");
    let log = send_to(raw_receiver(response.into_bytes(), After::Close).await).await;
    assert_eq!((log.status, class(&log)), (307, "status"));
    assert_eq!(hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn retry_after_applies_to_429_and_503_only() {
    for (response, want) in [
        ("HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n", Some(120)),
        ("HTTP/1.1 503 Service Unavailable\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", Some(7)),
        ("HTTP/1.1 500 Internal Server Error\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", None),
        ("HTTP/1.1 429 Too Many Requests\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n", None),
        ("HTTP/1.1 503 Busy\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n", None),
    ] {
        let receiver = Receiver::with_responses(&[response]).await;
        let outcome = send(&receiver.url("/")).await;
        assert_eq!(outcome.retry_after, want.map(Duration::from_secs), "{response}");
    }
    let date = "HTTP/1.1 503 Busy\r\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::with_responses(&[date]).await;
    let wait = send(&receiver.url("/")).await.retry_after;
    assert!(wait > Some(Duration::from_secs(7_000 * 365 * 86_400)), "{wait:?}");
}

/// A resolver that returns other addresses on each lookup, and the last ones from then on.
pub(crate) struct ChangingResolver {
    pub(crate) results: Vec<Vec<IpAddr>>,
    pub(crate) lookups: Mutex<usize>,
}

impl Resolver for ChangingResolver {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        let mut lookups = self.lookups.lock().unwrap();
        let addresses = self.results[(*lookups).min(self.results.len() - 1)].clone();
        *lookups += 1;
        Box::pin(async move { addresses })
    }
}

#[tokio::test]
async fn an_address_that_is_not_public_is_never_connected_to() {
    let (canary, hits) = canary().await;
    let port = canary.port();
    let loopback: IpAddr = canary.ip();
    let public: IpAddr = "192.0.2.1".parse().unwrap();
    let somewhere: IpAddr = "8.8.8.8".parse().unwrap();
    let cases: [(String, Vec<Vec<IpAddr>>); 5] = [
        (format!("https://127.0.0.1:{port}/"), vec![]),
        (format!("https://[::ffff:127.0.0.1]:{port}/"), vec![]),
        (format!("http://example.com:{port}/"), vec![vec![somewhere]]),
        (format!("https://example.com:{port}/"), vec![vec![loopback]]),
        (format!("https://example.com:{port}/"), vec![vec![somewhere, loopback]]),
    ];
    for (url, results) in cases {
        let resolver = ChangingResolver {
            results: if results.is_empty() { vec![vec![public]] } else { results },
            lookups: Mutex::new(0),
        };
        let outcome = client(HostPolicy::Public, Arc::new(resolver)).attempt(attempt(&url)).await;
        let log = outcome.log;
        let cause = if url.starts_with("https") { AttemptCause::NotPublic } else { AttemptCause::NotHttps };
        assert_eq!((log.status, class(&log), log.cause), (-1, "blocked", Some(cause)), "{url}: {log:?}");
    }
    assert_eq!(hits.load(Ordering::SeqCst), 0);
}

/// An attempt resolves the name once, so that a result that changes before the connection (DNS rebinding) is not used.
#[tokio::test]
async fn only_a_checked_address_is_connected_to() {
    let (canary, hits) = canary().await;
    // 127.0.0.2 is a loopback address too, but the canary listens on 127.0.0.1 only.
    let checked: IpAddr = "127.0.0.2".parse().unwrap();
    let resolver =
        Arc::new(ChangingResolver { results: vec![vec![checked], vec![canary.ip()]], lookups: Mutex::new(0) });
    let client = client(HostPolicy::AllowPrivate, resolver.clone());
    let log = client.attempt(attempt(&format!("http://rebinding.example.com:{}/", canary.port()))).await.log;
    assert_eq!(class(&log), "connect", "{log:?}");
    assert_eq!(hits.load(Ordering::SeqCst), 0);
    assert_eq!(*resolver.lookups.lock().unwrap(), 1);
}

#[tokio::test]
async fn an_address_that_does_not_respond_does_not_fail_the_attempt() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let port = receiver.address.port();
    let silent: IpAddr = "127.0.0.2".parse().unwrap();
    let _black_hole = BlackHole::open(SocketAddr::new(silent, port)).await;
    let results = vec![vec![silent, receiver.address.ip()]];
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    let resolver = Arc::new(ChangingResolver { results, lookups: Mutex::new(0) });
    let client = HttpWebhookClient::new(env, Duration::from_secs(10), resolver);
    let log = client.attempt(attempt(&format!("http://two.example.com:{port}/"))).await.log;
    assert_eq!((log.status, log.error.as_deref()), (200, None), "{log:?}");
    assert_eq!(log.remote_addr, Some(receiver.address.to_string()), "the address that was connected to");
    assert!(log.duration_ms < 4_000, "the silent address has not used up the 5 s: {log:?}");
}

#[tokio::test]
async fn addresses_are_checked_again_for_a_kept_connection() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let results = vec![vec![receiver.address.ip()], vec![]];
    let client = client(HostPolicy::AllowPrivate, Arc::new(ChangingResolver { results, lookups: Mutex::new(0) }));
    let url = format!("http://moving.example.com:{}/", receiver.address.port());
    assert!(client.attempt(attempt(&url)).await.log.succeeded());
    assert_eq!(class(&client.attempt(attempt(&url)).await.log), "dns");
}

#[tokio::test]
async fn a_connection_is_kept_alive_for_later_attempts() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let inner = Receiver::with_responses(&[OK]).await;
    let target = inner.address;
    let address = listen(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut upstream = tokio::net::TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
        }
    })
    .await;
    let client = client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()));
    for _ in 0..5 {
        assert!(client.attempt(attempt(&format!("http://{address}/"))).await.log.succeeded());
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

/// Sends this many deliveries one after the other through one client, and returns the logs of their attempts.
async fn send_in_turn(receiver: &Receiver, count: usize) -> Vec<AttemptLog> {
    let client = client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()));
    let mut logs = Vec::new();
    for _ in 0..count {
        logs.push(client.attempt(attempt(&receiver.url("/hook"))).await.log);
    }
    logs
}

#[tokio::test]
async fn a_request_lost_on_a_kept_connection_is_sent_again_on_a_new_one() {
    let receiver = Receiver::with_connections(&[&[OK, ""], &[OK]]).await;
    let logs = send_in_turn(&receiver, 2).await;
    assert!(logs.iter().all(AttemptLog::succeeded), "{logs:?}");
    let [_, lost, repeated] = receiver.arrived().await.try_into().unwrap();
    assert_eq!(lost.headers, repeated.headers, "the same attempt, with the same number and signatures");
    assert_eq!((lost.path, lost.body), (repeated.path, repeated.body));
}

#[tokio::test]
async fn a_lost_request_is_sent_again_on_no_other_kept_connection() {
    let receiver = Receiver::with_connections(&[&[OK, ""], &[OK, ""], &[OK, ""], &[OK]]).await;
    let client = client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()));
    let url = receiver.url("/hook");
    let at_once = futures_util::future::join_all((0..3).map(|_| client.attempt(attempt(&url)))).await;
    assert!(at_once.iter().all(|outcome| outcome.log.succeeded()), "{at_once:?}");
    assert_eq!(receiver.arrived().await.len(), 3, "one on each of three connections");
    let log = client.attempt(attempt(&url)).await.log;
    assert!(log.succeeded(), "{log:?}");
    assert_eq!(receiver.arrived().await.len(), 2);
}

#[tokio::test]
async fn a_lost_request_is_sent_again_only_once() {
    let receiver = Receiver::with_connections(&[&[OK, ""], &[""]]).await;
    let log = send_in_turn(&receiver, 2).await.remove(1);
    assert_eq!((log.status, class(&log)), (0, "reset"), "{log:?}");
    assert_eq!(receiver.arrived().await.len(), 3);
}

#[tokio::test]
async fn a_request_that_fails_on_a_new_connection_or_after_a_byte_of_its_response_is_not_sent_again() {
    let fresh = Receiver::with_connections(&[&[""]]).await;
    let begun = Receiver::with_connections(&[&[OK, "H"], &[OK]]).await;
    let half = Receiver::with_connections(&[&[OK, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"], &[OK]]).await;
    for (receiver, attempts, reason) in [
        (fresh, 1, "a new connection was closed"),
        (begun, 2, "the response had begun"),
        (half, 2, "the response broke off"),
    ] {
        let logs = send_in_turn(&receiver, attempts).await;
        assert_eq!(class(logs.last().unwrap()), "reset", "{reason}: {logs:?}");
        assert_eq!(receiver.arrived().await.len(), attempts, "{reason}");
    }
}

#[tokio::test]
async fn a_request_that_is_sent_again_has_the_deadline_of_its_attempt() {
    const SILENT: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    let receiver = Receiver::with_connections(&[&[OK, ""], &[SILENT, ""]]).await;
    let log = send_in_turn(&receiver, 2).await.remove(1);
    assert_eq!((class(&log), receiver.arrived().await.len()), ("timeout", 3), "{log:?}");
    assert!(u128::from(log.duration_ms) < 2 * TIMEOUT.as_millis(), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_closes_after_each_response_gets_every_delivery_at_the_first_attempt() {
    let receiver = Receiver::with_connections(&[&[OK]]).await;
    let client = Arc::new(client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default())));
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, url) = (Arc::clone(&client), receiver.url("/hook"));
        senders.spawn(async move {
            let mut logs = Vec::new();
            for _ in 0..100 {
                logs.push(client.attempt(attempt(&url)).await.log);
            }
            logs
        });
    }
    let logs = senders.join_all().await.concat();
    let failed: Vec<_> = logs.iter().filter(|log| !log.succeeded()).collect();
    assert!(failed.is_empty(), "{} of {}: {:?}", failed.len(), logs.len(), failed[0]);
}
