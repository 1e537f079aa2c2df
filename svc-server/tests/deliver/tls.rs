//! Mutual TLS and private authorities: what a receiver gets to see, and that connections are shared with no other subscription.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use svc_core::env::Env;
use svc_core::values::HostPolicy;
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::options::{CertificateAuthority, ClientCertificate, TlsOptions};
use svc_core::webhooks::subscriptions::SubscriptionId;
use svc_server::deliver::{HttpWebhookClient, WebhookClient as _};
use svc_server::outbound::resolver::SystemResolver;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::attempts::{attempt, class, client};
use super::receivers::{OK, listen, read_request};

/// An authority that issues certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Each has a name of its own.
        params.distinguished_name.push(DnType::CommonName, hex::encode(&key.public_key_raw()[..8]));
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    /// Returns a certificate for this name, with its key.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap(), key)
    }

    pub(crate) fn client_certificate(&self) -> (ClientCertificate, CertificateDer<'static>) {
        let (certificate, key) = self.issue("svc.example.com");
        let client = ClientCertificate::new(&certificate.pem(), &key.serialize_pem()).unwrap();
        (client, certificate.der().clone())
    }

    /// Returns the option that trusts this authority alone.
    pub(crate) fn trusted(&self) -> TlsOptions {
        let certificate_authority = Some(CertificateAuthority::new(&self.0.pem()).unwrap());
        TlsOptions { certificate_authority, ..TlsOptions::default() }
    }
}

/// The number of the connection of a request, and the certificate of the client.
type Arrived = (usize, Option<CertificateDer<'static>>);

/// A receiver over TLS whose certificate is for `hooks.example.com` and `127.0.0.1`.
pub(crate) struct TlsReceiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Arrived>>>,
}

impl TlsReceiver {
    /// Starts a receiver, which asks for a certificate of an authority if there is one.
    pub(crate) async fn start(own: &Authority, of_clients: Option<&Authority>) -> Self {
        let names = ["hooks.example.com", "127.0.0.1"].map(str::to_owned);
        Self::start_for(names.to_vec(), own, of_clients).await
    }

    /// Starts a receiver whose certificate is for other names.
    async fn start_for(names: Vec<String>, own: &Authority, of_clients: Option<&Authority>) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &own.0).unwrap();
        let builder = match of_clients {
            Some(authority) => ServerConfig::builder()
                .with_client_cert_verifier(WebPkiClientVerifier::builder(authority.roots().into()).build().unwrap()),
            None => ServerConfig::builder().with_no_client_auth(),
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, noted) = (Arc::clone(&connections), Arc::clone(&requests));
        let address = listen(move |mut tcp| {
            let (acceptor, requests) = (acceptor.clone(), Arc::clone(&noted));
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let Ok(mut stream) = acceptor.accept(&mut tcp).await else {
                    // The rest of what was sent, so that the alert is not lost by a reset.
                    let _ = tcp.read_to_end(&mut Vec::new()).await;
                    return;
                };
                let peer = stream.get_ref().1.peer_certificates().map(|chain| chain[0].clone().into_owned());
                while read_request(&mut stream).await.is_some() {
                    requests.lock().unwrap().push((number, peer.clone()));
                    let _ = stream.write_all(OK.as_bytes()).await;
                }
            }
        })
        .await;
        Self { address, connections, requests }
    }

    /// Returns the requests that have arrived and were not taken yet.
    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    fn url(&self) -> String {
        format!("https://{}/hook", self.address)
    }
}

pub(crate) fn with_tls(url: &str, subscription: u128, tls: TlsOptions) -> Attempt {
    let mut attempt = attempt(url);
    attempt.delivery.subscription_id = SubscriptionId::new(uuid::Uuid::from_u128(subscription));
    attempt.options.tls = Some(Arc::new(tls));
    attempt
}

fn private() -> HttpWebhookClient {
    client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()))
}

fn assert_tls(log: &AttemptLog, part: &str) {
    let error = log.error.as_deref().unwrap();
    assert!(log.status == 0 && class(log) == "tls" && error.contains(part), "{error}");
}

#[tokio::test]
async fn a_private_authority_is_trusted_where_it_is_set_alone() {
    let (own, other) = (Authority::new(), Authority::new());
    let receiver = TlsReceiver::start(&own, None).await;
    let client = private();
    let log = client.attempt(with_tls(&receiver.url(), 1, own.trusted())).await.log;
    assert!(log.succeeded(), "{log:?}");
    assert_eq!(log.remote_addr, Some(receiver.address.to_string()));
    // By default the public authorities are trusted alone, and another one in place of them.
    assert_tls(&client.attempt(attempt(&receiver.url())).await.log, "is of no authority that is trusted here");
    assert_tls(
        &client.attempt(with_tls(&receiver.url(), 2, other.trusted())).await.log,
        "is of no authority that is trusted here",
    );
    // The name is checked as well.
    let url = format!("https://localhost:{}/", receiver.address.port());
    assert_tls(&client.attempt(with_tls(&url, 1, own.trusted())).await.log, "and not for localhost");
    assert_eq!(receiver.arrived().len(), 1);
}

/// The log has hosts, and not what the library shows of them; the receiver chooses neither its length nor its characters.
#[tokio::test]
async fn the_log_names_the_hosts_of_a_certificate() {
    let own = Authority::new();
    let names = ["a\u{7}\nb.example.com".to_owned(), "192.0.2.1".to_owned()].into_iter();
    let names = names.chain((0..200).map(|number| format!("n{number}.example.com"))).collect();
    let receiver = TlsReceiver::start_for(names, &own, None).await;
    let url = format!("https://localhost:{}/", receiver.address.port());
    let log = private().attempt(with_tls(&url, 1, own.trusted())).await.log;
    assert_eq!(
        log.error.as_deref().unwrap(),
        "tls: the certificate of the endpoint is for a\\u{7}\\nb.example.com, 192.0.2.1, n0.example.com, n1.example.com, \
         n2.example.com and 197 more, and not for localhost"
    );
}

#[tokio::test]
async fn a_receiver_sees_the_certificate_of_the_subscription() {
    let (own, clients, other) = (Authority::new(), Authority::new(), Authority::new());
    let receiver = TlsReceiver::start(&own, Some(&clients)).await;
    let client = private();
    let (certificate, der) = clients.client_certificate();
    let tls = TlsOptions { client_certificate: Some(certificate), ..own.trusted() };
    let log = client.attempt(with_tls(&receiver.url(), 1, tls.clone())).await.log;
    assert!(log.succeeded(), "{log:?}");
    assert_eq!(receiver.arrived(), [(0, Some(der))]);
    // Without a certificate, and with one of another authority.
    assert_tls(&client.attempt(with_tls(&receiver.url(), 2, own.trusted())).await.log, "asks for a client certificate");
    let (foreign, _) = other.client_certificate();
    let tls = TlsOptions { client_certificate: Some(foreign), ..tls };
    assert_tls(&client.attempt(with_tls(&receiver.url(), 3, tls)).await.log, "asks for a client certificate");
    assert!(receiver.arrived().is_empty());
}

#[tokio::test]
async fn subscriptions_on_one_host_share_no_connection() {
    let (own, clients) = (Authority::new(), Authority::new());
    let receiver = TlsReceiver::start(&own, Some(&clients)).await;
    let client = private();
    let of = |subscription: u128, certificate: &ClientCertificate| {
        let tls = TlsOptions { client_certificate: Some(certificate.clone()), ..own.trusted() };
        client.attempt(with_tls(&receiver.url(), subscription, tls))
    };
    let ((first, first_der), (second, second_der)) = (clients.client_certificate(), clients.client_certificate());
    for _ in 0..3 {
        assert!(of(1, &first).await.log.succeeded());
        assert!(of(2, &second).await.log.succeeded());
        assert!(of(3, &first).await.log.succeeded(), "the same certificate, and another subscription");
    }
    let (one, two) = (Some(first_der), Some(second_der));
    let of_each = [(0, one.clone()), (1, two), (2, one)];
    assert_eq!(receiver.arrived(), [&of_each[..], &of_each, &of_each].concat());
    assert_eq!(receiver.connections.load(Ordering::SeqCst), 3, "each keeps its own");
}

#[tokio::test]
async fn a_new_certificate_is_shown_by_the_next_attempt() {
    let (own, clients) = (Authority::new(), Authority::new());
    let receiver = TlsReceiver::start(&own, Some(&clients)).await;
    let client = private();
    let mut shown = Vec::new();
    let of_one = [clients.client_certificate(), clients.client_certificate()];
    for (certificate, der) in of_one {
        let tls = TlsOptions { client_certificate: Some(certificate), ..own.trusted() };
        for _ in 0..2 {
            assert!(client.attempt(with_tls(&receiver.url(), 1, tls.clone())).await.log.succeeded());
        }
        shown.extend([Some(der.clone()), Some(der)]);
    }
    let arrived = receiver.arrived();
    assert_eq!(arrived.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(arrived.into_iter().map(|(_, certificate)| certificate).collect::<Vec<_>>(), shown);
    // Once nothing is set, the receiver is not trusted any more, over whatever connection.
    let mut plain = attempt(&receiver.url());
    plain.delivery.subscription_id = SubscriptionId::new(uuid::Uuid::from_u128(1));
    assert_tls(&client.attempt(plain).await.log, "is of no authority that is trusted here");
}

#[tokio::test]
async fn settings_that_do_not_fit_fail_the_attempt() {
    let (own, hits) = (Authority::new(), super::receivers::canary().await);
    let ((certificate, key), (_, other)) = (own.issue("a.example.com"), own.issue("b.example.com"));
    let pair = |key: &KeyPair| ClientCertificate::new(&certificate.pem(), &key.serialize_pem()).unwrap();
    let broken = CertificateAuthority::new("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----").unwrap();
    assert_eq!(pair(&key).sha256(), pair(&other).sha256());
    let client = private();
    let url = format!("https://{}/", hits.0);
    let tls = TlsOptions { client_certificate: Some(pair(&other)), ..own.trusted() };
    let log = client.attempt(with_tls(&url, 1, tls)).await.log;
    let reason =
        "tls: the client certificate of the subscription must be that of the certificate, and belongs to another one";
    assert_eq!(log.error.as_deref(), Some(reason));
    let tls = TlsOptions { certificate_authority: Some(broken), ..TlsOptions::default() };
    let log = client.attempt(with_tls(&url, 1, tls)).await.log;
    assert_tls(
        &log,
        "the certificate authority of the subscription must have X.509 certificates alone, and one is none",
    );
    assert_eq!(hits.1.load(Ordering::SeqCst), 0, "nothing is connected to");
}

/// The connections of subscriptions that were not used for the longest time are closed.
#[tokio::test]
async fn only_the_connections_of_the_last_used_subscriptions_are_kept() {
    let own = Authority::new();
    let receiver = TlsReceiver::start(&own, None).await;
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    let client = HttpWebhookClient::new(env, std::time::Duration::from_secs(10), Arc::new(SystemResolver::default()));
    let tls = own.trusted();
    for subscription in (0..258).chain([257, 0]) {
        let log = client.attempt(with_tls(&receiver.url(), subscription, tls.clone())).await.log;
        assert!(log.succeeded(), "{log:?}");
    }
    assert_eq!(receiver.connections.load(Ordering::SeqCst), 259);
}
