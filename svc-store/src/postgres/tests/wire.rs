//! The traffic with the server: the number of round trips, and its encryption.

use std::sync::atomic::{AtomicUsize, Ordering};

use svc_core::accounts::idempotency::StoredResponse;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// How long the proxy collects responses. It is longer than the server needs for a response without a write to the disk.
const DELAY: Duration = Duration::from_millis(40);

/// Starts a slow proxy to a server. Responses in quick succession arrive together, so the number of arrivals, which it
/// counts, is the number of round trips.
async fn slow_proxy(port: u16, trips: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let proxy_port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let trips = Arc::clone(&trips);
            tokio::spawn(async move {
                tokio::select! {
                    () = forward(&client, &server, Duration::ZERO, None) => {}
                    () = forward(&server, &client, DELAY, Some(&trips)) => {}
                }
            });
        }
    });
    proxy_port
}

async fn forward(from: &TcpStream, to: &TcpStream, delay: Duration, trips: Option<&AtomicUsize>) {
    let mut bytes = vec![0; 1 << 20];
    while from.readable().await.is_ok() {
        tokio::time::sleep(delay).await;
        let count = match from.try_read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => count,
            Err(_) => continue,
        };
        if let Some(trips) = trips {
            trips.fetch_add(1, Ordering::SeqCst);
        }
        let mut rest = &bytes[..count];
        while !rest.is_empty() && to.writable().await.is_ok() {
            rest = &rest[to.try_write(rest).unwrap_or(0)..];
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_and_reads_take_few_round_trips() {
    let Some(server) = server() else { return };
    let trips = Arc::new(AtomicUsize::new(0));
    let url = server.database();
    let (front, rest) = url.split_once("127.0.0.1:").unwrap();
    let (port, database) = rest.split_once('/').unwrap();
    let port = slow_proxy(port.parse().unwrap(), Arc::clone(&trips)).await;
    // Responses must not wait for the disk here.
    let url = format!("{front}127.0.0.1:{port}/{database}&options=-c%20synchronous_commit%3Doff");
    let options = Options { read_connections: 1, write_connections: 1, ..options() };
    let store = open_with(&url, Env::system(), options).await.unwrap();
    let tenant = new_tenant(&*store).await;
    for _ in 0..3 {
        let hook = store.write("test", tenant, async |tx, &tenant| {
            let input = Input::from_body(br#"{"url": "https://example.com/", "events": ["*"]}"#);
            crud::create::<WebhookSubscription>(tx, tenant, input?).await
        });
        hook.await.unwrap();
    }
    let plain = async |at: usize| {
        let body = format!(r#"{{"email": "c{at}@example.com"}}"#);
        let create = store.write("test", (body, tenant), async |tx, (body, tenant)| {
            let input = Input::from_body(body.as_bytes());

            tx.lock_credential(*tenant, &[0; 32]).await?;
            crud::create::<Contact>(tx, *tenant, input?).await
        });
        create.await.unwrap().id
    };
    let with_idempotency_key = async |at: usize| {
        let key = format!("k{at}");
        let body = format!(r#"{{"email": "k{at}@example.com"}}"#);
        let create = store.write("test", (tenant, key, body), async |tx, (tenant, key, body)| {
            let input = Input::from_body(body.as_bytes());
            assert!(tx.claim_idempotency(*tenant, key).await?);
            tx.lock_credential(*tenant, &[0; 32]).await?;
            let now = tx.env().now();
            assert_eq!(tx.stored_response(*tenant, key, Timestamp::from_micros(0)).await?, None);
            crud::create::<Contact>(tx, *tenant, input?).await?;
            let (fingerprint, body) = ([0; 32], vec![0; 300]);
            let response = StoredResponse {
                fingerprint,
                status: 201,
                location: None,
                etag: None,
                body: body.clone(),
                created_at: now,
            };
            Ok(tx.store_response(*tenant, key, &response).await?)
        });
        create.await.unwrap();
    };
    let get = async |id| {
        let get =
            store.read("test", (tenant, id), async |tx, &(tenant, id)| crud::get::<Contact>(tx, tenant, id).await);
        get.await.unwrap();
    };
    // Statements are prepared in the first iteration, and a server that is slow once adds a trip, so the lowest counts are checked.
    let mut counts = [usize::MAX; 3];
    for at in 0..5 {
        let mut count = |of: usize| counts[of] = counts[of].min(trips.swap(0, Ordering::SeqCst));
        // Notifications of other nodes are not counted.
        let wait_for_notifications = async || {
            tokio::time::sleep(4 * DELAY).await;
            trips.store(0, Ordering::SeqCst);
        };
        wait_for_notifications().await;
        let id = plain(at).await;
        count(0);
        wait_for_notifications().await;
        with_idempotency_key(at).await;
        count(1);
        wait_for_notifications().await;
        get(id).await;
        count(2);
    }
    assert_eq!(counts, [5, 7, 1]);
}

async fn is_encrypted(url: &str) -> StoreResult<bool> {
    let connect_options = ConnectOptions::parse(url).map_err(StoreError::Internal)?;
    let connection = PostgresConnection::open(&connect_options, Role::Write).await?;
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(connection.client.query_one(sql, &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn tls_verification_follows_the_url() {
    let Some(server) = server() else { return };
    let Some(authority) = server.authority() else { return };
    let url = server.database();
    let (url, _) = url.split_once('?').unwrap();
    let named = url.replace("127.0.0.1", "localhost");
    let root = |path: &std::path::Path| format!("sslrootcert={}", path.display());
    let folder = tempfile::tempdir().unwrap();
    let other_authority = folder.path().join("other.crt");
    std::fs::write(&other_authority, OTHER_AUTHORITY).unwrap();
    let (ours, theirs) = (root(&authority), root(&other_authority));
    for (url, mode, want) in [
        (url, "sslmode=disable".to_owned(), Ok(false)),
        (url, "sslmode=prefer".to_owned(), Ok(true)),
        (url, "sslmode=require".to_owned(), Ok(true)),
        (url, format!("sslmode=require&{ours}"), Ok(true)),
        (url, format!("sslmode=require&{theirs}"), Err(())),
        (url, format!("sslmode=verify-ca&{ours}"), Ok(true)),
        (url, format!("sslmode=verify-ca&{theirs}"), Err(())),
        (url, format!("sslmode=verify-full&{ours}"), Err(())),
        (&named, format!("sslmode=verify-full&{ours}"), Ok(true)),
        (&named, format!("sslmode=verify-full&{theirs}"), Err(())),
        // No public authority has issued it.
        (&named, "sslrootcert=system".to_owned(), Err(())),
        (&named, "sslmode=verify-full&sslrootcert=system".to_owned(), Err(())),
    ] {
        let encrypted = is_encrypted(&format!("{url}?{mode}")).await;
        assert_eq!(encrypted.clone().map_err(drop), want, "{mode}: {encrypted:?}");
    }
    let (user, rest) = server.database_on_socket().split_once('?').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(is_encrypted(&format!("{user}?{rest}&sslmode=require")).await, Ok(false), "Unix sockets never use TLS");
}

/// The variable of [`connects_with_the_authorities_of_the_machine`] with the URL.
const URL_VARIABLE: &str = "SVC_TEST_URL";

/// Fails unless the connection is encrypted.
#[tokio::test]
#[ignore = "another test runs it in a process of its own"]
async fn connects_with_the_authorities_of_the_machine() {
    let Ok(url) = std::env::var(URL_VARIABLE) else { return };
    assert_eq!(is_encrypted(&url).await, Ok(true));
}

/// `SSL_CERT_FILE` names what the machine trusts, so a process with this variable makes each connection.
#[tokio::test]
async fn a_server_with_a_certificate_that_the_machine_trusts_is_connected_to() {
    let Some(server) = server() else { return };
    let Some(authority) = server.authority() else { return };
    let url = server.database();
    let (by_address, _) = url.split_once('?').unwrap();
    let by_name = by_address.replace("127.0.0.1", "localhost");
    let folder = tempfile::tempdir().unwrap();
    let other_authority = folder.path().join("other.crt");
    std::fs::write(&other_authority, OTHER_AUTHORITY).unwrap();
    let name = format!("{}::connects_with_the_authorities_of_the_machine", module_path!().split_once("::").unwrap().1);
    let connect = |url: &str, mode: &str, trusted: &std::path::Path| {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", &name, "--ignored"]).env(URL_VARIABLE, format!("{url}?{mode}"));
        let output = test.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("running 1 test\n"), "{printed}");
        (output.status.success(), printed)
    };
    for mode in ["sslrootcert=system", "sslmode=verify-full&sslrootcert=system"] {
        let (is_connected, printed) = connect(&by_name, mode, &authority);
        assert!(is_connected, "{mode}: {printed}");
        for (url, trusted) in [(&*by_name, &other_authority), (by_address, &authority)] {
            let (is_connected, printed) = connect(url, mode, trusted);
            assert!(!is_connected && printed.contains("invalid peer certificate"), "{url} {mode}: {printed}");
        }
    }
}

/// The kernel of a host accepts connections although its PostgreSQL is stopped, or waits for a disk.
#[tokio::test]
async fn a_host_that_accepts_and_does_not_answer_leaves_time_for_the_others() {
    let Some(server) = server() else { return };
    let hung = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, url) = (hung.local_addr().unwrap().port(), server.database());
    let first = url.replace("127.0.0.1:", &format!("127.0.0.1:{port},127.0.0.1:"));
    let between = url.replace("127.0.0.1:", &format!("127.0.0.1:1,127.0.0.1:{port},127.0.0.1:"));
    let with_timeout = format!("{first}&connect_timeout=1");
    for url in [&first, &between, &with_timeout, &first.replace("sslmode=disable", "sslmode=prefer")] {
        for attributes in ["any", "read-write"] {
            let url = format!("{url}&target_session_attrs={attributes}");
            let connection = PostgresConnection::open(&ConnectOptions::parse(&url).unwrap(), Role::Write).await;
            assert!(connection.is_ok(), "{url}: {:?}", connection.map(drop));
        }
    }
    let none = format!("postgres://svc@127.0.0.1:{port},127.0.0.1:1/x?connect_timeout=1");
    let error = PostgresConnection::open(&ConnectOptions::parse(&none).unwrap(), Role::Write).await.map(drop);
    let error = error.unwrap_err().to_string();
    let hung = format!("127.0.0.1:{port}: no connection within 1.0 s; 127.0.0.1:1: error connecting to server");
    assert!(error.contains(&hung), "{error}");
}

/// A certificate authority that issued no certificate of the server.
const OTHER_AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUfkcSnXX3YgUOOgA80Z9z4FQy9fIwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIc3RyYW5nZXIwIBcNMjYxMTIwMTExODMzWhgPMjEyNjEwMjcx
MTE4MzNaMBMxETAPBgNVBAMMCHN0cmFuZ2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAENgSJBSUJAyXyf5ubUm1euEg6JFYzG5WuoY7buURZd0OjSxUlprQH4FK0
5u5QuXdghFXyHsHQPf/kdb4380kXDKNTMFEwHQYDVR0OBBYEFArx3G7TyjlvSZOq
WLCtptcokFVLMB8GA1UdIwQYMBaAFArx3G7TyjlvSZOqWLCtptcokFVLMA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAKJUi9I/+pBLZwp3L9sSV2wO
+N5yES6cS/zoCSDNklDxAiA5GJQdt7mVz7UmftPM6K15QUc2Jk+Rdfof7HAUoVm/
7g==
-----END CERTIFICATE-----";
