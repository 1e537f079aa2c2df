//! TLS that a subscription asks for: a certificate that is shown to its receiver, and authorities that are trusted there in
//! place of the public ones.
//!
//! The pool of the HTTP client knows connections by their scheme and host alone. So each subscription with such settings has
//! connections of its own, which end when it gets others: none is used for another subscription, or with a certificate that is
//! no longer set. Those of a subscription that has no settings any more are kept, unused, until they are the oldest.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::sync::lock;
use svc_core::webhooks::deliveries::AttemptCause;
use svc_core::webhooks::options::{CertificateAuthority, ClientCertificate, TlsOptions};
use svc_core::webhooks::subscriptions::SubscriptionId;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, ClientConfig, InconsistentKeys, RootCertStore};

use super::client::{Connections, TransportError};
use crate::outbound::dial::Dialer;

/// The number of subscriptions whose connections are kept: those that were used last.
const MAX_KEPT: usize = 256;

/// The public certificate authorities, which all settings without others share.
static PUBLIC: LazyLock<Arc<RootCertStore>> =
    LazyLock::new(|| Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }));

/// Checks what svc-core cannot check of new settings, since it has no TLS.
///
/// # Errors
/// An issue at the field: not a certificate, a key of a kind that cannot be used, or one that belongs to another certificate.
pub(crate) fn check(
    certificate: Option<&ClientCertificate>,
    authority: Option<&CertificateAuthority>,
) -> Result<(), Error> {
    if let Some(certificate) = certificate {
        certified_key(certificate).map_err(|issue| issue.on("client_certificate"))?;
    }
    if let Some(authority) = authority {
        authorities(authority).map_err(|issue| issue.on("certificate_authority"))?;
    }
    Ok(())
}

/// Returns a certificate with its private key, ready to sign.
fn certified_key(certificate: &ClientCertificate) -> Result<CertifiedKey, Issue> {
    let refused = |member: &str, reason: &'static str| Issue::new(FieldCode::InvalidFormat, reason).at(member);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.certificate().as_bytes()).collect();
    let chain = chain.map_err(|_| refused("certificate", "must be PEM"))?;
    if chain.iter().any(|certificate| ParsedCertificate::try_from(certificate).is_err()) {
        return Err(refused("certificate", "must have X.509 certificates of version 3 alone"));
    }
    let key = PrivateKeyDer::from_pem_slice(certificate.private_key().reveal().as_bytes());
    let key = key.map_err(|_| refused("private_key", "must be PEM"))?;
    let key = ring::sign::any_supported_type(&key).map_err(|_| {
        refused(
            "private_key",
            "must be an RSA key of 2048 bits or more, an ECDSA key on P-256 or P-384, or an Ed25519 key",
        )
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(_) => Err(refused("private_key", "must be that of the certificate, and belongs to another one")),
    }
}

/// Returns what trusts these authorities alone.
fn authorities(authority: &CertificateAuthority) -> Result<RootCertStore, Issue> {
    let refused = |reason: &'static str| Issue::new(FieldCode::InvalidFormat, reason);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.certificates().as_bytes()) {
        let certificate = certificate.map_err(|_| refused("must be PEM"))?;
        roots.add(certificate).map_err(|_| refused("must have X.509 certificates alone, and one is none"))?;
    }
    Ok(roots)
}

/// Returns the configuration of TLS with these settings.
fn config(options: &TlsOptions) -> Result<ClientConfig, TransportError> {
    let unusable = |what: &str, issue: Issue| {
        TransportError::new(AttemptCause::TlsFailed, format!("the {what} of the subscription {}", issue.message))
    };
    let roots = match &options.certificate_authority {
        Some(authority) => Arc::new(authorities(authority).map_err(|issue| unusable("certificate authority", issue))?),
        None => Arc::clone(&PUBLIC),
    };
    let builder = ClientConfig::builder().with_root_certificates(roots);
    Ok(match &options.client_certificate {
        Some(certificate) => {
            let key = certified_key(certificate).map_err(|issue| unusable("client certificate", issue))?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
        }
        None => builder.with_no_client_auth(),
    })
}

/// The connections of subscriptions with settings of their own.
#[derive(Default)]
pub(super) struct TlsClients(Mutex<ConnectionCache>);

#[derive(Default)]
struct ConnectionCache {
    of: HashMap<SubscriptionId, OwnConnections>,
    /// How often connections were asked for, which orders their last uses.
    uses: u64,
}

struct OwnConnections {
    options: Arc<TlsOptions>,
    connections: Arc<Connections>,
    last_use: u64,
}

impl ConnectionCache {
    /// Returns the connections of a subscription with these settings, and forgets those with others.
    fn find(&mut self, subscription: SubscriptionId, options: &Arc<TlsOptions>) -> Option<Arc<Connections>> {
        self.uses += 1;
        match self.of.get_mut(&subscription) {
            Some(own) if own.options == *options => {
                own.last_use = self.uses;
                Some(Arc::clone(&own.connections))
            }
            _ => {
                self.of.remove(&subscription);
                None
            }
        }
    }
}

impl TlsClients {
    /// Returns the connections of a subscription with these settings. Those with earlier settings are closed as soon as their
    /// attempts have ended.
    pub(super) fn of(
        &self,
        subscription: SubscriptionId,
        options: &Arc<TlsOptions>,
        dialer: &Dialer,
    ) -> Result<Arc<Connections>, TransportError> {
        if let Some(known) = lock(&self.0).find(subscription, options) {
            return Ok(known);
        }
        // Outside of the lock, as it reads the certificates.
        let connections = Arc::new(Connections::new(dialer.with_tls(config(options)?)));
        let mut kept = lock(&self.0);
        if let Some(known) = kept.find(subscription, options) {
            return Ok(known);
        }
        let last_use = kept.uses;
        if kept.of.len() >= MAX_KEPT
            && let Some(oldest) = kept.of.iter().min_by_key(|(_, own)| own.last_use).map(|(id, _)| *id)
        {
            kept.of.remove(&oldest);
        }
        let own = OwnConnections { options: Arc::clone(options), connections: Arc::clone(&connections), last_use };
        kept.of.insert(subscription, own);
        Ok(connections)
    }
}
