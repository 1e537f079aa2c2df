//! Changes that operators make to a server under load or in use, on both databases.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{Env, ManualClock, SystemEntropy};
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::store::{DeliveryFilter, Store, Tx};
use svc_core::values::{HostPolicy, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AfterFailure, AttemptLog, DeliveryStatus};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_store::{Options, SecretKey};
use svc_test_support::fixture::attempt_log;
use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::harness::{Response, guarded};
use crate::program::{self, Program};

/// A database for servers and the command line.
pub(crate) struct Deployment {
    pub(crate) url: String,
    pub(crate) folder: Option<tempfile::TempDir>,
}

const SECRET_KEY: [u8; 32] = [0x5e; 32];

/// Returns one deployment on SQLite, and one on PostgreSQL if it is installed.
pub(crate) fn deployments() -> Vec<Deployment> {
    let (folder, url) = program::database();
    let server = svc_test_support::postgres::quick_server();
    let on_server = server.map(|server| Deployment { url: server.database(), folder: None });
    std::iter::once(Deployment { url, folder: Some(folder) }).chain(on_server).collect()
}

fn secret_key() -> String {
    SECRET_KEY.map(|byte| format!("{byte:02x}")).concat()
}

impl Deployment {
    pub(crate) async fn svc(&self, arguments: &[&str]) -> Value {
        json_output(svc_command(&self.url, arguments).env("SVC_SECRET_KEY", secret_key())).await
    }

    /// Makes an account, and returns its id and the text of a key for it.
    pub(crate) async fn account(&self) -> (String, String) {
        let made = self.svc(&["tenant", "create", "--name", "Harbour Plumbing"]).await;
        let account = id(&made).to_owned();
        let made = self.svc(&["key", "create", "--tenant", &account, "--scopes", "read,write"]).await;
        (account, text(&made, "key").to_owned())
    }

    /// Starts a server that does not prune by itself.
    pub(crate) async fn serve(&self, flags: &[&str]) -> Program {
        let mut command = program::command(&["--listen", "127.0.0.1:0", "--allow-private-webhooks"]);
        command.args(["--database-url", &self.url, "--retention", "3650d"]).args(flags);
        Program::start({
            command.env("SVC_SECRET_KEY", secret_key());
            command
        })
        .await
    }

    async fn open(&self, env: Env) -> Arc<dyn Store> {
        let options = Options { secret_key: Some(SecretKey::new(SECRET_KEY)), ..Options::default() };
        svc_store::open_with(&self.url, env, options).await.unwrap()
    }
}

fn svc_command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc-tested"));
    command.args(arguments).args(["--json", "--database-url", url]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command that must succeed and returns the JSON that it prints.
async fn json_output(command: &mut Command) -> Value {
    let output = guarded(command.output()).await.unwrap();
    let arguments = command.as_std().get_args();
    assert!(
        output.status.success(),
        "{:?}: {}",
        arguments.collect::<Vec<_>>(),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}

/// Starts an endpoint that accepts every delivery, and returns its URL and the bodies that arrive.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (arrived, bodies) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, arrived.clone()));
        }
    });
    (url, bodies)
}

/// Starts an endpoint that closes every connection, and returns its URL.
async fn refusing_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    url
}

async fn receive(mut stream: TcpStream, arrived: mpsc::UnboundedSender<Value>) {
    while let Some((_, body)) = read_delivery(&mut stream).await {
        let _ = arrived.send(serde_json::from_slice(&body).unwrap());
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    }
}

/// Reads the next delivery of a connection, and returns its head and its body.
pub(crate) async fn read_delivery(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        // A partial body is not valid JSON yet.
        if serde_json::from_slice::<Value>(&bytes[head + 4..]).is_ok() {
            let body = bytes.split_off(head + 4);
            return Some((String::from_utf8(bytes).unwrap(), body));
        }
    }
    None
}

pub(crate) async fn request(server: &Program, key: &str, method: &str, path: &str, body: &str) -> Response {
    let authorization = format!("Bearer {key}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    server.send(method, &format!("/api/v1{path}"), &headers, body).await
}

/// Returns the status of a ping, and the error code if it fails.
async fn ping(server: &Program, key: &str) -> (u16, String) {
    let response = request(server, key, "GET", "/ping", "").await;
    (response.status, response.code())
}

pub(crate) fn text<'a>(made: &'a Value, name: &str) -> &'a str {
    made[name].as_str().unwrap_or_else(|| panic!("no {name} in {made}"))
}

/// Every change of keys and tenants by the command line.
#[tokio::test]
async fn changes_of_keys_and_tenants_take_effect_at_the_next_request() {
    for deployment in deployments() {
        let server = deployment.serve(&[]).await;
        let made = deployment.svc(&["tenant", "create", "--name", "Harbour Plumbing", "--pending"]).await;
        let tenant = id(&made);
        let create = ["key", "create", "--tenant", tenant, "--scopes", "read,write"];
        let made = deployment.svc(&create).await;
        let (key, key_id) = (text(&made, "key"), id(&made));
        assert!(deployment.svc(&["key", "show", key_id]).await["last_used_at"].is_null());
        for (change, status) in [("show", 403), ("approve", 200), ("suspend", 403), ("approve", 200)] {
            deployment.svc(&["tenant", change, tenant]).await;
            assert_eq!(ping(&server, key).await.0, status, "{change}");
        }

        deployment.svc(&["tenant", "set", tenant, "--currency", "NZD", "--unique-contact-email", "false"]).await;
        let contact = json!({ "email": "ada@example.com" }).to_string();
        let twin = request(&server, key, "POST", "/contacts", &contact).await;
        assert_eq!((twin.status, request(&server, key, "POST", "/contacts", &contact).await.status), (201, 201));
        let quote = json!({ "contact_id": twin.id(), "total": 99.95 }).to_string();
        assert_eq!(request(&server, key, "POST", "/quotes", &quote).await.data()["currency"], "NZD");

        let limit = async || {
            let response = request(&server, key, "GET", "/ping", "").await;
            response.header("x-ratelimit-limit").map(str::to_owned)
        };
        for (value, reported) in [("600", "600"), ("700", "700"), ("default", "60")] {
            deployment.svc(&["tenant", "set", tenant, "--rate-limit", value]).await;
            assert_eq!(limit().await.as_deref(), Some(reported));
        }
        deployment.svc(&["tenant", "set", tenant, "--write-rate-limit", "quotes=1"]).await;
        assert_eq!(request(&server, key, "POST", "/quotes", &quote).await.status, 429);

        let rotated = deployment.svc(&["key", "rotate", key_id, "--overlap", "1h"]).await;
        assert_eq!(ping(&server, key).await.0, 200);
        assert_eq!(ping(&server, text(&rotated, "key")).await.0, 200);
        let last = deployment.svc(&["key", "rotate", id(&rotated), "--overlap", "0s"]).await;
        assert_eq!(ping(&server, text(&rotated, "key")).await, (401, "key_expired".to_owned()));
        assert_eq!(ping(&server, text(&last, "key")).await.0, 200);
        let brief = deployment.svc(&[&create[..], &["--expires", "1us"]].concat()).await;
        assert_eq!(ping(&server, text(&brief, "key")).await, (401, "key_expired".to_owned()));

        deployment.svc(&["key", "revoke", key_id]).await;
        assert_eq!(ping(&server, key).await, (401, "key_revoked".to_owned()));
        let write = request(&server, key, "POST", "/contacts", &contact).await;
        assert_eq!((write.status, write.code().as_str()), (401, "key_revoked"));
        assert_eq!(ping(&server, text(&last, "key")).await.0, 200, "the other key still works");

        assert_eq!(server.stop("TERM").await.0.code(), Some(0));
        let used = deployment.svc(&["key", "show", key_id]).await;
        assert!(used["last_used_at"].is_string() && used["revoked_at"].is_string(), "{used}");
    }
}

#[tokio::test]
async fn an_automatic_pause_is_in_the_audit_log() {
    for deployment in deployments() {
        // Attempts at the same time count as one failure, so there are many more attempts than the ten that pause.
        let server = deployment.serve(&["--webhook-retry", "1ms,1ms,1ms"]).await;
        let (tenant, key) = deployment.account().await;
        let (tenant, key) = (tenant.as_str(), key.as_str());
        // Its own port: one that is closed may be given to a server of another test meanwhile, which takes the deliveries.
        let endpoint = refusing_endpoint().await;
        let hook = json!({ "url": endpoint, "events": ["contact.created"] }).to_string();
        let hook = request(&server, key, "POST", "/webhooks", &hook).await.id();
        for number in 0..10 {
            let contact = json!({ "email": format!("person{number}@example.com") }).to_string();
            assert_eq!(request(&server, key, "POST", "/contacts", &contact).await.status, 201);
        }
        let paused = guarded(async {
            loop {
                let log = deployment.svc(&["audit", "list", "--tenant", tenant]).await;
                if log[0]["action"] == "pause" {
                    return log[0].clone();
                }
            }
        })
        .await;
        assert_eq!((text(&paused, "actor"), text(&paused, "object_kind")), ("sender", "webhook"));
        assert_eq!(text(&paused, "object_id"), hook);
        let of = |state: &str| (paused[state]["enabled"].clone(), paused[state]["disabled_reason"].clone());
        assert_eq!((of("before"), of("after")), ((json!(true), json!(null)), (json!(false), json!("auto_paused"))));
        assert_eq!(server.stop("TERM").await.0.code(), Some(0));
    }
}

/// Starts a proxy that requires these credentials and connects to whatever it is asked for. Returns its address, and the heads of
/// the requests that arrive.
async fn proxy(authorization: &'static str) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (arrived, heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let arrived = arrived.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = client.read_u8().await else { return };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_owned();
                let is_known = head.contains(&format!("Proxy-Authorization: Basic {authorization}\r\n"));
                arrived.send(head).unwrap();
                if !is_known {
                    let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
                    return;
                }
                let Ok(mut target) = TcpStream::connect(target).await else {
                    let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
                    return;
                };
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let _ = tokio::io::copy_bidirectional(&mut client, &mut target).await;
            });
        }
    });
    (address, heads)
}

/// Starts an endpoint that accepts deliveries with a certificate of an authority alone. Returns its URL, and the certificates with
/// which they arrive.
async fn mutual_tls_receiver(
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> (String, mpsc::UnboundedReceiver<CertificateDer<'static>>) {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(roots.into()).build().unwrap();
    let (certificate, key) = issue(authority, "localhost");
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_client_cert_verifier(verifier);
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let (arrived, certificates) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, arrived) = (acceptor.clone(), arrived.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
                while read_delivery(&mut stream).await.is_some() {
                    arrived.send(certificate.clone()).unwrap();
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                }
            });
        }
    });
    (url, certificates)
}

fn issue(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> (Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap(), key)
}

/// From the API to the receiver, with processes as operators run them.
#[tokio::test]
async fn an_endpoint_with_mutual_tls_is_reached_through_the_proxy() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    for deployment in deployments() {
        let (endpoint, mut certificates) = mutual_tls_receiver(&authority).await;
        let (address, mut heads) = proxy("c3ZjOnMzY3JldA==").await;
        let proxy = format!("http://svc:s3cret@{address}");
        let server = deployment.serve(&["--egress-proxy", &proxy]).await;
        let (_, key) = deployment.account().await;
        let key = key.as_str();
        let mut hook = None;
        // The certificate is replaced while the connection with the first one is open.
        for number in 0..2 {
            let (certificate, private_key) = issue(&authority, "svc");
            let options = json!({
                "client_certificate": { "certificate": certificate.pem(), "private_key": private_key.serialize_pem() },
                "certificate_authority": authority.pem(),
            });
            let saved = match &hook {
                None => {
                    let mut body = json!({ "url": endpoint, "events": ["contact.created"] });
                    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
                    request(&server, key, "POST", "/webhooks", &body.to_string()).await
                }
                Some(id) => request(&server, key, "PATCH", &format!("/webhooks/{id}"), &options.to_string()).await,
            };
            assert!(!saved.text.contains("BEGIN"), "{}", saved.text);
            hook = Some(saved.id());
            let contact = json!({ "email": format!("person{number}@example.com") }).to_string();
            assert_eq!(request(&server, key, "POST", "/contacts", &contact).await.status, 201);
            assert_eq!(guarded(certificates.recv()).await.as_ref(), Some(certificate.der()));
            let head = guarded(heads.recv()).await.unwrap();
            let port = endpoint.rsplit(':').next().unwrap().trim_end_matches("/hook");
            let targets = [format!("CONNECT 127.0.0.1:{port} "), format!("CONNECT [::1]:{port} ")];
            assert!(targets.iter().any(|target| head.starts_with(target)), "an address, not a name: {head}");
        }
        let (status, _, log) = server.stop("TERM").await;
        assert_eq!(status.code(), Some(0));
        assert!(!log.contains("s3cret") && !log.contains("BEGIN"), "{log}");
    }
}

/// Enough events for several batches of a prune.
const OLD: u32 = 2_400;

/// Creates events of 90 days ago, all delivered, and returns the key and the tenant.
async fn create_old_events(deployment: &Deployment, endpoint: &str) -> (String, TenantId) {
    let then = Env::system().now().minus(Duration::from_secs(90 * 24 * 60 * 60));
    let mut env = Env::new(ManualClock::at(then), SystemEntropy);
    env.webhook_hosts = HostPolicy::AllowPrivate;
    let store = deployment.open(env).await;
    let hook = json!({ "url": endpoint, "events": ["contact.created"] }).to_string();
    let made = store.write("old", hook, async |tx, hook| {
        let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
        let key = KeyCreate { name: None, write: true, expires_in: None, signed: false };
        let key = keys::create(tx, tenant, key).await?.text.reveal().to_owned();
        crud::create::<WebhookSubscription>(tx, tenant, Input::from_body(hook.as_bytes())?).await?;
        for number in 0..OLD {
            let contact = json!({ "email": format!("old{number}@example.com") }).to_string();
            crud::create::<Contact>(tx, tenant, Input::from_body(contact.as_bytes())?).await?;
        }
        deliver_all(tx, tenant).await?;
        Ok((key, tenant))
    });
    made.await.unwrap()
}

async fn deliver_all(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let all = DeliveryFilter { limit: OLD, ..DeliveryFilter::default() };
    for mut delivery in tx.list_deliveries(tenant, &all).await? {
        let log = AttemptLog { duration_ms: 3, ..attempt_log(1, delivery.created_at, 204) };
        tx.insert_attempt(tenant, delivery.id, &log).await?;
        delivery.attempts = 1;
        delivery.record_outcome(&log, None, delivery.created_at, AfterFailure::Retry);
        tx.update_delivery(&delivery, None).await?;
    }
    Ok(())
}

#[tokio::test]
async fn old_events_are_pruned_during_live_traffic() {
    for deployment in deployments() {
        let (endpoint, mut bodies) = receiver().await;
        let (key, tenant) = create_old_events(&deployment, &endpoint).await;
        let server = Arc::new(deployment.serve(&["--no-rate-limit"]).await);
        let (pruned, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (server, key) = (Arc::clone(&server), key.clone());
                let (pruned, acknowledged) = (Arc::clone(&pruned), Arc::clone(&acknowledged));
                tokio::spawn(async move {
                    let mut number = 0;
                    while !pruned.load(Ordering::Acquire) || number < 10 {
                        let contact = json!({ "email": format!("new{client}-{number}@example.com") }).to_string();
                        let response = request(&server, &key, "POST", "/contacts", &contact).await;
                        assert_eq!(response.status, 201, "{}", response.text);
                        let read = request(&server, &key, "GET", &format!("/contacts/{}", response.id()), "").await;
                        assert_eq!(read.status, 200, "{}", read.text);
                        acknowledged.fetch_add(1, Ordering::AcqRel);
                        number += 1;
                    }
                })
            })
            .collect();
        guarded(async {
            while acknowledged.load(Ordering::Acquire) < 10 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let before = acknowledged.load(Ordering::Acquire);
        let deleted = deployment.svc(&["db", "prune", "--retention", "30d", "--yes"]).await;
        let meanwhile = acknowledged.load(Ordering::Acquire) - before;
        pruned.store(true, Ordering::Release);
        for client in clients {
            guarded(client).await.unwrap();
        }
        assert!(meanwhile > 0, "no write completed during the prune");
        assert_eq!((&deleted["events"], &deleted["deliveries"]), (&json!(OLD), &json!(OLD)), "{deleted}");

        // Every event of the live traffic arrives, and no old one does.
        let written = acknowledged.load(Ordering::Acquire) as usize;
        let mut arrived = BTreeSet::new();
        while arrived.len() < written {
            let body = guarded(bodies.recv()).await.unwrap();
            let email = text(&body["data"], "email").to_owned();
            assert!(email.starts_with("new"), "{email}");
            arrived.insert(email);
        }
        let server = Arc::into_inner(server).unwrap();
        assert_eq!(server.stop("TERM").await.0.code(), Some(0));

        let store = deployment.open(Env::system()).await;
        let left = store.read("left", tenant, async |tx, &tenant| {
            let events = tx.events_after(tenant, svc_core::values::Timestamp::from_micros(0), 100_000).await?;
            let all = DeliveryFilter { limit: 100_000, ..DeliveryFilter::default() };
            Ok((events, tx.list_deliveries(tenant, &all).await?))
        });
        let (events, deliveries) = left.await.unwrap();
        assert!(events.iter().all(|event| event.data.get().contains("\"new")), "an old event is left");
        assert_eq!((events.len(), deliveries.len()), (written, written));
        assert!(deliveries.iter().all(|delivery| delivery.status == DeliveryStatus::Succeeded));
        let stats = deployment.svc(&["db", "stats"]).await;
        assert_eq!(stats["tables"]["delivery_attempts"], written);
        assert_eq!(stats["tables"]["contacts"], written + OLD as usize, "pruning must not delete records");
        // `db check` fails when it finds an error.
        deployment.svc(&["db", "check"]).await;
    }
}

/// Also what happens while no server runs, after one was killed, and none of what happens while there is no webhook.
#[tokio::test]
async fn operational_events_reach_the_platform_webhook_once() {
    for deployment in deployments() {
        let (url, mut arrived) = receiver().await;
        let flags = ["--platform-webhook", &url];
        let server = deployment.serve(&flags).await;
        let made = deployment.svc(&["tenant", "create", "--name", "Harbour Plumbing", "--pending"]).await;
        let tenant = id(&made);
        deployment.svc(&["tenant", "approve", tenant]).await;
        let first = guarded(arrived.recv()).await.unwrap();
        assert_eq!((&first["event"], &first["tenant_id"]), (&json!("account.approved"), &json!(PLATFORM_ACCOUNT)));
        assert_eq!(first["data"]["account_id"], tenant);
        assert!(text(&first["data"], "approved_by").starts_with("cli:"));
        drop(server);

        deployment.svc(&["tenant", "suspend", tenant]).await;
        deployment.svc(&["tenant", "approve", tenant]).await;
        let key = deployment.svc(&["key", "create", "--tenant", tenant, "--scopes", "read", "--expires", "2d"]).await;
        let server = deployment.serve(&flags).await;
        // The kill may have come before the first outcome was stored, and its delivery is then made again.
        let mut kinds = BTreeSet::new();
        while kinds.len() < 2 {
            let delivery = guarded(arrived.recv()).await.unwrap();
            if delivery["data"] != first["data"] {
                kinds.insert(text(&delivery, "event").to_owned());
                let of = if delivery["event"] == "key.expiring" { id(&key) } else { tenant };
                assert_eq!(delivery["data"]["id"], of);
            }
        }
        server.stop("TERM").await;

        let server = deployment.serve(&[]).await;
        deployment.svc(&["tenant", "suspend", tenant]).await;
        deployment.svc(&["tenant", "approve", tenant]).await;
        server.stop("TERM").await;
        let server = deployment.serve(&flags).await;
        let webhooks = deployment.svc(&["webhook", "list", "--tenant", &PLATFORM_ACCOUNT.to_string()]).await;
        assert_eq!(webhooks.as_array().map(Vec::len), Some(1), "{webhooks}");
        assert_eq!((&webhooks[0]["url"], &webhooks[0]["enabled"]), (&json!(url), &json!(true)));
        server.stop("TERM").await;
        let store = deployment.open(Env::system()).await;
        let events = store.read("test", (), async |tx, ()| {
            Ok(tx.events_after(PLATFORM_ACCOUNT, Timestamp::from_micros(0), 100).await?)
        });
        let events = events.await.unwrap();
        let kinds: Vec<_> = events.iter().map(|event| event.kind.to_string()).collect();
        assert_eq!(kinds.len(), 3, "{kinds:?}");
    }
}

/// A receiver that has the public keys of its subscription alone verifies deliveries, before a rotation and after it.
#[tokio::test]
async fn a_receiver_without_a_secret_verifies_deliveries() {
    for deployment in deployments() {
        let server = deployment.serve(&[]).await;
        let (_, key) = deployment.account().await;
        let key = key.as_str();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let body = json!({ "url": url, "events": ["contact.created"], "signature": "ed25519" }).to_string();
        let webhook = request(&server, key, "POST", "/webhooks", &body).await.data();
        let public_key = |webhook: &Value, at: usize| text(&webhook["signing_keys"][at], "public_key").to_owned();
        let first = public_key(&webhook, 0);
        let deliver = async |email: &str| {
            let contact = json!({ "email": email }).to_string();
            assert_eq!(request(&server, key, "POST", "/contacts", &contact).await.status, 201);
            let (head, body) = guarded(receive_once(&listener)).await;
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next().unwrap()
            };
            (["webhook-id", "webhook-timestamp", "webhook-signature"].map(header), body)
        };
        let verify = |key: &str, ([id, timestamp, signature], body): &([String; 3], Vec<u8>)| {
            let headers = StandardHeaders { id, timestamp, signature };
            Verifier::from_public_key(key).unwrap().verify_standard(headers, body)
        };
        let delivery = deliver("ada@example.com").await;
        assert_eq!(verify(&first, &delivery), Ok(()));
        let changed = (delivery.0.clone(), [&delivery.1[..], b" "].concat());
        assert_eq!(verify(&first, &changed), Err(VerifyError::Mismatch));

        deployment.svc(&["webhook", "rotate-secret", id(&webhook), "--overlap", "1h"]).await;
        let rotated = request(&server, key, "GET", &format!("/webhooks/{}", id(&webhook)), "").await.data();
        let second = public_key(&rotated, 0);
        assert_eq!(public_key(&rotated, 1), first);
        assert!(rotated["signing_keys"][1]["expires_at"].is_string(), "{rotated}");
        let delivery = deliver("grace@example.com").await;
        assert_eq!((verify(&first, &delivery), verify(&second, &delivery)), (Ok(()), Ok(())));
        deployment.svc(&["webhook", "rotate-secret", id(&webhook), "--finish"]).await;
        let delivery = deliver("alan@example.com").await;
        assert_eq!((verify(&first, &delivery), verify(&second, &delivery)), (Err(VerifyError::Mismatch), Ok(())));
        assert_eq!(server.stop("TERM").await.0.code(), Some(0));
    }
}

/// Takes one delivery, and returns its head and its body.
async fn receive_once(listener: &TcpListener) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let delivery = read_delivery(&mut stream).await.unwrap();
    stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
    delivery
}
