//! What the tests of all brokers share: the service, accounts that are written to, and the check of what arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use svc_core::Svc;
use svc_core::accounts::tenants::TenantCreate;
use svc_core::env::Env;
use svc_core::resources::contacts::ContactCreate;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::streams::{self, Lag, StreamKey};
use svc_store::{Options, SecretKey};
use svc_test_support::node::{self, Node};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The timeout of every wait, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The timeout of each attempt to connect to a broker that was started.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Encrypts the secrets in a database.
const KEY: [u8; 32] = [7; 32];
/// The accounts that are written to at the same time.
const ACCOUNTS: usize = 5;
/// How often one of them is written to.
const PACE: Duration = Duration::from_millis(5);

/// A message as a broker has stored it.
pub(crate) struct Received {
    pub(crate) account: String,
    pub(crate) event_id: String,
    pub(crate) kind: String,
}

/// A broker that a test starts, kills and starts again.
pub(crate) trait Broker {
    /// Starts the broker with the data that it has, and waits until it takes messages.
    async fn start(&mut self);
    /// Ends the broker by SIGKILL.
    async fn kill(&mut self);
    /// Returns the URL of the stream.
    fn stream_url(&self) -> String;
    /// Returns how many messages the broker has stored.
    async fn count(&self) -> u64;
    /// Returns all of them, those of an account in the order in which they were stored.
    async fn received(&self) -> Vec<Received>;
}

/// A server with a database of its own, which the test writes to as well.
pub(crate) struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) accounts: Vec<TenantId>,
    arguments: Vec<String>,
    /// The nodes, those that were started first before the others.
    programs: Vec<Node>,
    folder: TempDir,
}

impl Service {
    /// Starts a server that sends the events of some accounts to a stream, once the stream has begun.
    pub(crate) async fn start(stream_url: &str) -> Self {
        Self::start_on(None, stream_url).await
    }

    /// The same with a database of PostgreSQL, which several nodes can use, if one is given.
    pub(crate) async fn start_on(database: Option<&str>, stream_url: &str) -> Self {
        let service = Self::start_with(database, &["--stream", stream_url]).await;
        until(async || service.store_stream().await).await;
        service
    }

    /// Starts a server that sends no stream of its own.
    pub(crate) async fn start_without_stream() -> Self {
        Self::start_with(None, &[]).await
    }

    async fn start_with(database: Option<&str>, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}", folder.path().join("svc.db").display());
        let database = database.unwrap_or(&file);
        let options = Options { secret_key: Some(SecretKey::new(KEY)), ..Options::default() };
        let store = svc_store::open_with(database, Env::system(), options).await.unwrap();
        let (svc, mut accounts) = (Svc::new(Arc::clone(&store)), Vec::new());
        for number in 0..ACCOUNTS {
            let account = TenantCreate::named(&format!("Account {number}"));
            accounts.push(svc.accounts().create(account).await.unwrap().id);
        }
        let arguments = ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--database-url", database];
        let arguments = arguments.into_iter().chain(more.iter().copied()).map(str::to_owned).collect();
        let mut service = Self { store, accounts, arguments, programs: Vec::new(), folder };
        service.run().await;
        service
    }

    async fn store_stream(&self) -> Option<streams::Stream> {
        self.store.read("test", (), async |tx, ()| Ok(tx.stream(StreamKey::SERVER).await?)).await.unwrap()
    }

    /// Starts a node.
    pub(crate) async fn run(&mut self) {
        let mut program = node::command(env!("CARGO_BIN_EXE_svc-server"));
        let log = std::fs::File::options().append(true).create(true).open(self.log()).unwrap();
        program.args(&self.arguments).env("SVC_SECRET_KEY", hex::encode(KEY)).env("SVC_LOG", "warn").stderr(log);
        self.programs.push(Node::start(program).await.unwrap());
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Ends the node by SIGKILL, and starts it with another stream.
    pub(crate) async fn send_to(&mut self, stream_url: &str) {
        self.kill().await;
        stream_url.clone_into(self.arguments.last_mut().unwrap());
        self.run().await;
    }

    /// Waits until a node has logged a text.
    pub(crate) async fn until_logged(&self, text: &str) {
        until(async || std::fs::read_to_string(self.log()).unwrap().contains(text).then_some(())).await;
    }

    /// Ends the node that was started first by SIGKILL.
    pub(crate) async fn kill(&mut self) {
        self.programs.remove(0).kill().await.unwrap();
    }

    /// Creates a contact in one of the accounts.
    pub(crate) async fn write(&self, number: u64) {
        let account = self.accounts[usize::try_from(number).unwrap() % ACCOUNTS];
        write(&self.store, account, number).await;
    }

    /// Writes to all accounts until the writer is stopped.
    pub(crate) fn writer(&self) -> Writer {
        let (store, accounts) = (Arc::clone(&self.store), self.accounts.clone());
        let (written, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (Arc::clone(&written), Arc::clone(&stops));
        let task = tokio::spawn(async move {
            let mut pace = tokio::time::interval(PACE);
            while !stopped.load(Ordering::Relaxed) {
                pace.tick().await;
                let number = counted.load(Ordering::Relaxed);
                write(&store, accounts[usize::try_from(number).unwrap() % ACCOUNTS], number).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Writer { written, stops, task }
    }

    /// Waits until the stream has sent everything.
    pub(crate) async fn until_sent(&self) {
        until(async || {
            let lag = self.store.read("test", (), async |tx, ()| streams::lag(tx, StreamKey::SERVER).await).await;
            (lag.unwrap() == Lag::default()).then_some(())
        })
        .await;
    }

    /// Returns the ids and kinds of the events of each account in their order.
    async fn events(&self) -> BTreeMap<String, Vec<(String, String)>> {
        let mut all = BTreeMap::new();
        for account in &self.accounts {
            let events = self.store.read("test", *account, async |tx, &account| {
                Ok(tx.events_after(account, Timestamp::from_micros(0), 1_000_000).await?)
            });
            let events = events.await.unwrap();
            let ids = events.iter().map(|event| (event.id.to_string(), event.kind.to_string())).collect();
            all.insert(account.to_string(), ids);
        }
        all
    }

    /// Checks that a broker has every event, and that those of each account are in their order once duplicates are dropped.
    /// Returns how many duplicates there are.
    pub(crate) async fn check(&self, received: &[Received]) -> usize {
        let (mut seen, mut first) = (BTreeSet::new(), BTreeMap::<String, Vec<(String, String)>>::new());
        for message in received {
            if seen.insert(&message.event_id) {
                let message = (message.account.clone(), (message.event_id.clone(), message.kind.clone()));
                first.entry(message.0).or_default().push(message.1);
            }
        }
        let events = self.events().await;
        for (account, events) in &events {
            let received = first.remove(account).unwrap_or_default();
            let lost = events.iter().filter(|event| !received.contains(event)).count();
            assert_eq!((lost, received.len()), (0, events.len()), "events that {account} lost");
            assert!(received == *events, "the events of {account} are in another order");
        }
        assert!(first.is_empty(), "no events of {:?} were expected", first.keys());
        received.len() - seen.len()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print(&format!("the log of the server:\n{}", std::fs::read_to_string(self.log()).unwrap()));
        }
    }
}

async fn write(store: &Arc<dyn Store>, account: TenantId, number: u64) {
    let input = ContactCreate::new(format!("n{number}@example.com").parse().unwrap());
    Svc::new(Arc::clone(store)).account(account).contacts().create(input).await.unwrap();
}

/// Writes that go on in the background.
pub(crate) struct Writer {
    written: Arc<AtomicU64>,
    stops: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Writer {
    /// Waits until so many more writes were made.
    pub(crate) async fn go_on_for(&self, writes: u64) {
        let goal = self.written.load(Ordering::Relaxed) + writes;
        until(async || (self.written.load(Ordering::Relaxed) >= goal).then_some(())).await;
    }

    /// Stops the writes.
    pub(crate) async fn stop(self) {
        self.stops.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
    }
}

/// Kills the broker three times, and the server once, while accounts are written to. Everything arrives, in order.
pub(crate) async fn nothing_is_lost_when_anything_is_killed(broker: &mut impl Broker) {
    broker.start().await;
    let mut service = Service::start(&broker.stream_url()).await;
    let writer = service.writer();
    for round in 0..3 {
        until_more_arrived(broker, 100).await;
        broker.kill().await;
        writer.go_on_for(100).await;
        if round == 1 {
            service.kill().await;
            writer.go_on_for(100).await;
            service.run().await;
        }
        broker.start().await;
    }
    all_arrive(broker, &service, writer).await;
}

/// Kills the node that sends the stream, twice, while accounts are written to. Another goes on.
pub(crate) async fn another_node_goes_on(broker: &mut impl Broker, database: &str) {
    broker.start().await;
    let mut service = Service::start_on(Some(database), &broker.stream_url()).await;
    let writer = service.writer();
    for _ in 0..2 {
        service.run().await;
        until_more_arrived(broker, 100).await;
        service.kill().await;
    }
    all_arrive(broker, &service, writer).await;
}

/// Ends the writes, and checks that they all arrive.
async fn all_arrive(broker: &impl Broker, service: &Service, writer: Writer) {
    until_more_arrived(broker, 100).await;
    writer.stop().await;
    service.until_sent().await;
    let received = broker.received().await;
    let duplicates = service.check(&received).await;
    print(&format!("{} messages arrived, {duplicates} of them duplicates", received.len()));
}

/// Certificates of a broker in PEM.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (own, other, key) = (authority("own"), authority("other"), KeyPair::generate().unwrap());
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &own).unwrap();
        for (name, text) in [
            ("authority", own.pem()),
            ("other", other.pem()),
            ("certificate", certificate.pem()),
            ("key", key.serialize_pem()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    /// Returns the path of the `authority`, of an `other` one, of the `certificate` or of its `key`.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// Events are sent over TLS, and wait while the certificate is of another authority than the one that is trusted.
pub(crate) async fn certificates_are_checked(broker: &mut impl Broker, certificates: &Certificates) {
    broker.start().await;
    let trusting = |authority: &str| format!("{}&ca={}", broker.stream_url(), certificates.path(authority));
    let (own, other) = (trusting("authority"), trusting("other"));
    let mut service = Service::start(&own).await;
    service.write(0).await;
    service.until_sent().await;
    service.send_to(&other).await;
    service.write(1).await;
    service.until_logged("invalid peer certificate").await;
    assert_eq!(broker.count().await, 1);
    service.send_to(&own).await;
    service.until_sent().await;
    service.check(&broker.received().await).await;
}

/// Prints how fast the events are sent that waited for a broker: those of five accounts, and those of one.
pub(crate) async fn measure_a_backlog(broker: &mut impl Broker) {
    const EVENTS: u64 = 5_000;
    broker.start().await;
    let service = Service::start(&broker.stream_url()).await;
    for (accounts, first) in [(5, 0), (1, 1_000_000)] {
        broker.kill().await;
        for number in 0..EVENTS {
            service.write(first + number * (5 / accounts)).await;
        }
        broker.start().await;
        let began = std::time::Instant::now();
        service.until_sent().await;
        let rate = EVENTS as f64 / began.elapsed().as_secs_f64();
        print(&format!("{accounts} accounts: {rate:.0} events a second, the wait for the next attempt included"));
    }
}

/// Waits until the broker has so many more messages.
async fn until_more_arrived(broker: &impl Broker, messages: u64) {
    let goal = broker.count().await + messages;
    until(async || (broker.count().await >= goal).then_some(())).await;
}

/// Starts a broker, and returns it once it responds. One that ends before is started again, since the port may have been
/// taken after it was found free. What it prints goes to a file, and is told if it never responds.
pub(crate) async fn started(program: &mut Command, log: &Path, mut responds: impl AsyncFnMut() -> bool) -> Child {
    let file = std::fs::File::create(log).unwrap();
    program.stdout(file.try_clone().unwrap()).stderr(file);
    let mut broker = program.spawn().unwrap();
    let waiting = async {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        // A client may wait forever for a broker that is about to start.
        while tokio::time::timeout(ATTEMPT, responds()).await != Ok(true) {
            if broker.try_wait().unwrap().is_some() {
                broker = program.spawn().unwrap();
            }
            pause.tick().await;
        }
    };
    let responded = tokio::time::timeout(TIMEOUT, waiting).await.is_ok();
    assert!(responded, "the broker does not respond; it printed:\n{}", std::fs::read_to_string(log).unwrap());
    broker
}

/// Waits until there is a result.
pub(crate) async fn until<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        loop {
            pause.tick().await;
            if let Some(found) = found().await {
                return found;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("what the test waits for")
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the path of a program, if it is installed. Otherwise the test has to end, which it says loudly, or with `CI` set
/// fails.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).chain(["/usr/sbin".into(), "/usr/lib/rabbitmq/bin".into()]);
    let found = folders.map(|folder| folder.join(program)).find(|path| Path::exists(path));
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed, so its tests cannot run");
        print(&format!("*** SKIPPED: {program} is not installed, so this test did not run ***"));
    }
    found
}

#[expect(clippy::print_stderr, reason = "figures belong to the output of the tests")]
pub(crate) fn print(text: &str) {
    eprintln!("\n{text}\n");
}
