//! The server under attack, and what its clients need to know.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use svc_core::Svc;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::find;
use svc_core::input::Input as _;
use svc_core::resources::bookings::{Booking, BookingCreate};
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::store::{DeliveryFilter, Tx};
use svc_core::values::{Email, EventSet, Patch, TenantId};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookUpdate};
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::fixture::attempt_log;
use svc_test_support::node::{Node, Program};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tokio::process::Command;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::attacks::{Attack, CONTACTS};

/// How much longer than planned an attack may take before it is aborted.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bookings of the largest size, which fill a page.
const LARGE_BOOKINGS: usize = 200;
/// Contacts in whose texts a search finds every part of a text everywhere.
const TEXTS: usize = 3_000;
/// Requests per minute of an honest client, which is below its limit.
const REQUESTS_PER_KEY: u32 = 50;
/// The number of the attackers' keys.
const HOSTILE_KEYS: u32 = 20;
/// The number of the attackers who are signed in to the dashboard.
const VIEWERS: usize = 20;

/// The number of keys handed out so far.
static NEXT_KEY: AtomicUsize = AtomicUsize::new(0);

/// A client connection, with or without TLS.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// The address of the server, and the credentials of a client.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    #[arg(long)]
    pub(crate) address: SocketAddr,
    /// API keys, used in rotation because each is rate limited.
    #[arg(long = "key")]
    pub(crate) keys: Vec<String>,
    #[arg(long)]
    pub(crate) contact: String,
    /// The tokens of sessions of the dashboard.
    #[arg(long = "session")]
    pub(crate) sessions: Vec<String>,
    /// A delivery with many attempts.
    #[arg(long, default_value = "")]
    pub(crate) delivery: String,
    /// The trusted certificate, if the server uses TLS.
    #[arg(long)]
    pub(crate) certificate: Option<PathBuf>,
    /// The address that connections come from, if it is another than the system chooses.
    #[arg(skip)]
    from: Option<SocketAddr>,
}

impl Target {
    /// Opens a connection. `protocol` is the ALPN protocol of a TLS connection.
    pub(crate) async fn connect(&self, protocol: &str) -> Result<Box<dyn Connection>> {
        self.connect_with(protocol, None).await
    }

    /// Opens a connection with a receive buffer of this size in bytes.
    pub(crate) async fn connect_with(
        &self,
        protocol: &str,
        receive_buffer: Option<u32>,
    ) -> Result<Box<dyn Connection>> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(size) = receive_buffer {
            socket.set_recv_buffer_size(size)?;
        }
        if let Some(from) = self.from {
            socket.bind(from)?;
        }
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        let Some(certificate) = &self.certificate else { return Ok(Box::new(stream)) };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate)?)?;
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        let name = ServerName::try_from("localhost")?;
        Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
    }

    /// Returns the next key.
    pub(crate) fn key(&self) -> &str {
        let next = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        self.keys.get(next % self.keys.len().max(1)).map_or("", String::as_str)
    }

    /// Returns the start of a valid request head; the caller adds further headers and the empty line.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        format!("{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", self.key())
    }
}

/// A server with a tenant of honest clients and a tenant of hostile clients.
pub(crate) struct TestServer {
    pub(crate) target: Target,
    hostile: Target,
    node: Node,
    folder: tempfile::TempDir,
    _database: Database,
}

/// The state of the server at the end.
pub(crate) struct ServerOutcome {
    /// The peak of its resident memory in bytes, if the system reports it.
    pub(crate) memory: Option<u64>,
    /// Whether it ran until it was stopped.
    pub(crate) survived: bool,
    /// The error of its shutdown, if there was one.
    pub(crate) end: Option<String>,
    /// Panics in its log: each line that reports one, and the line after it.
    pub(crate) panics: Vec<String>,
}

impl TestServer {
    /// Starts a server with its default limits, and with enough keys for this many honest requests.
    pub(crate) async fn start(server: Option<PathBuf>, attack: Attack, requests: u32) -> Result<Self> {
        let database = Database::new(None)?;
        let folder = tempfile::tempdir()?;
        let honest = NewTenant { keys: requests / REQUESTS_PER_KEY + 1, contacts: CONTACTS, ..NewTenant::default() };
        let honest = tenant(&database, honest).await?;
        let bookings = if attack.needs_large_records() { LARGE_BOOKINGS } else { 0 };
        let texts = if attack.needs_texts() { TEXTS } else { 0 };
        let (contacts, attempts) = (attack.contacts(), attack.attempts());
        let hostile = NewTenant { keys: HOSTILE_KEYS, viewers: VIEWERS, contacts, bookings, attempts, texts };
        let hostile = tenant(&database, hostile).await?;
        let (chain, private) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
        if attack.needs_tls() {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
            std::fs::write(&chain, made.cert.pem())?;
            std::fs::write(&private, made.signing_key.serialize_pem())?;
        }
        let certificate = attack.needs_tls().then(|| chain.clone());
        let (chain, private) = (text_of(&chain)?, text_of(&private)?);
        // All that strangers reach.
        let mut flags = vec!["--public-url", "https://localhost", "--oauth", "on", "--mcp", "on"];
        if attempts > 0 {
            flags.extend(["--extensions", "on"]);
        }
        if attack.needs_tls() {
            flags.extend(["--tls-cert", &chain, "--tls-key", &private]);
        }
        let log = std::fs::File::create(folder.path().join("log"))?;
        let node =
            Program { file: server, log: "warn", ..Program::default() }.start_logged(&database, &flags, log).await?;
        let target = |Made { keys, contact, sessions, delivery }| Target {
            address: node.address,
            keys,
            contact,
            sessions,
            delivery,
            certificate: certificate.clone(),
            from: None,
        };
        let (mut target, hostile) = (target(honest), target(hostile));
        // All of 127.0.0.0/8 is this machine on Linux alone.
        if attack.has_an_address() && cfg!(target_os = "linux") {
            target.from = Some((Ipv4Addr::new(127, 0, 0, 2), 0).into());
        }
        Ok(Self { target, hostile, node, folder, _database: database })
    }

    /// Runs the attack in another process; returns what it observed.
    pub(crate) async fn attack(&self, attack: Attack, time: Duration) -> Result<String> {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe()?).args(["attack", attack.name()]);
        let Target { address, keys, contact, sessions, delivery, certificate, .. } = &self.hostile;
        command.args(["--address", &address.to_string(), "--contact", contact, "--delivery", delivery]);
        // A token may begin with a hyphen, and is no flag.
        command.args(sessions.iter().map(|session| format!("--session={session}")));
        command.args(keys.iter().map(|key| format!("--key={key}")));
        if let Some(certificate) = certificate {
            command.arg("--certificate").arg(certificate);
        }
        command.args(["--millis", &time.as_millis().to_string()]).kill_on_drop(true);
        let output = tokio::time::timeout(time + PATIENCE, command.output()).await??;
        let observed = String::from_utf8_lossy(&output.stdout).trim().replace("VIOLATION: ", "");
        if output.status.success() {
            return Ok(observed);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {observed}{}", attack.name(), errors.trim()).into())
    }

    pub(crate) async fn end(mut self) -> ServerOutcome {
        let id = self.node.id();
        let memory = id.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/status")).ok());
        let memory = memory.as_deref().and_then(peak_memory);
        let end = self.node.stop().await.err().map(|error| error.to_string());
        let log = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let panics = lines.windows(2).filter(|two| two[0].contains("panicked at")).map(|two| two.join(" ")).collect();
        ServerOutcome { memory, survived: id.is_some(), end, panics }
    }
}

fn text_of(path: &Path) -> Result<String> {
    Ok(path.to_str().ok_or("the path of the folder is not UTF-8")?.to_owned())
}

/// Returns the peak of the resident memory, in bytes.
fn peak_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// What a tenant of a test has.
#[derive(Clone, Copy, Default)]
struct NewTenant {
    keys: u32,
    viewers: usize,
    contacts: usize,
    bookings: usize,
    attempts: u32,
    /// How many contacts have long texts of one letter, which are in the index of searches.
    texts: usize,
}

/// What clients of a tenant need to know.
struct Made {
    /// The texts of its keys.
    keys: Vec<String>,
    /// One of its contacts.
    contact: String,
    /// The tokens of its viewers.
    sessions: Vec<String>,
    /// The delivery with its attempts, if there are any.
    delivery: String,
}

/// Creates a tenant.
async fn tenant(database: &Database, new: NewTenant) -> Result<Made> {
    let store = database.open().await?;
    let made = store.write("hostile.tenant", new, async |tx, &new| {
        let tenant = tenants::create(tx, TenantCreate::named("Tenant")).await?.id;
        let mut texts = Vec::new();
        for _ in 0..new.keys {
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            texts.push(keys::create(tx, tenant, input).await?.text.reveal().to_owned());
        }
        let delivery = if new.attempts > 0 { delivery(tx, tenant, new.attempts).await? } else { String::new() };
        let mut last = None;
        for number in 0..new.contacts {
            let body = format!("{{\"email\":\"before{number}@example.com\",\"first_name\":\"Ada\"}}");
            let input = ContactCreate::from_body(body.as_bytes())?;
            last = Some(crud::create::<Contact>(tx, tenant, input).await?.id);
        }
        let contact = last.ok_or(Error::NotFound)?;
        // Control characters take most room in JSON.
        let (name, notes) = ("\u{10ffff}".repeat(255), "\\u0001".repeat(4096));
        for _ in 0..new.bookings {
            let body = format!(
                r#"{{"contact_id":"{contact}","service_name":"{name}","start_time":"2030-01-01T00:00:00Z","notes":"{notes}"}}"#
            );
            let input = BookingCreate::from_body(body.as_bytes())?;
            crud::create::<Booking>(tx, tenant, input).await?;
        }
        let (name, company, city) = ("a".repeat(300), "a".repeat(500), "a".repeat(100));
        for number in 0..new.texts {
            let body = format!(
                r#"{{"email":"a{number}@example.com","first_name":"{name}","last_name":"{name}","company_name":"{company}","city":"{city}"}}"#
            );
            crud::create::<Contact>(tx, tenant, ContactCreate::from_body(body.as_bytes())?).await?;
        }
        if new.texts > 0 {
            while !find::index(tx, tenant).await? {}
        }
        Ok((tenant, texts, contact.to_string(), delivery))
    });
    let (tenant, keys, contact, delivery) = made.await?;
    let svc = Svc::new(store);
    let mut sessions = Vec::new();
    for number in 0..new.viewers {
        let email: Email = format!("viewer{number}@example.com").parse()?;
        svc.account(tenant).members().add(email.clone(), Role::Viewer).await?;
        sessions.push(svc.dashboard().sign_in_member(email).await?.token.reveal().to_owned());
    }
    Ok(Made { keys, contact, sessions, delivery })
}

/// Creates a delivery with attempts whose responses are as large as they can be, to an endpoint that is disabled.
async fn delivery(tx: &mut dyn Tx, tenant: TenantId, attempts: u32) -> std::result::Result<String, Error> {
    let url = "https://hooks.example.com/".parse().map_err(|_| Error::NotFound)?;
    let input = WebhookCreate::new(url, EventSet::All);
    let webhook = crud::create::<WebhookSubscription>(tx, tenant, input).await?.id;
    let input = ContactCreate::from_body(br#"{"email":"delivered@example.com"}"#)?;
    crud::create::<Contact>(tx, tenant, input).await?;
    let disable = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
    crud::update::<WebhookSubscription>(tx, tenant, webhook, disable).await?;
    let filter = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
    let id = tx.list_deliveries(tenant, &filter).await?.pop().ok_or(Error::NotFound)?.id;
    for attempt in 1..=attempts {
        let log = AttemptLog {
            duration_ms: 1,
            error: Some("status: the endpoint responded with 500".to_owned()),
            cause: None,
            response_body: Some("\u{1}".repeat(16 * 1024)),
            response_truncated: true,
            ..attempt_log(attempt, tx.env().now(), 500)
        };
        tx.insert_attempt(tenant, id, &log).await?;
    }
    Ok(id.to_string())
}
