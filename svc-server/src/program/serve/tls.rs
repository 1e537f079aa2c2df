//! The TLS certificate of the listener, which can be reloaded while connections are open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The protocols that are offered by ALPN, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [HTTP_2, b"http/1.1"];
/// The ALPN name of HTTP/2 over TLS (RFC 9113, section 3.2).
pub(super) const HTTP_2: &[u8] = b"h2";

/// A certificate chain and its private key, as they were last read from their files.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: RwLock<TlsAcceptor>,
}

impl Tls {
    pub(super) fn load(certificate: &Path, key: &Path) -> io::Result<Self> {
        let acceptor = RwLock::new(read(certificate, key)?);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), acceptor })
    }

    /// Reads both files again. New connections use the new certificate; open ones keep theirs.
    ///
    /// # Errors
    /// A file cannot be read, or the key does not belong to the certificate. The old certificate then stays in use.
    pub fn reload(&self) -> io::Result<()> {
        let fresh = read(&self.certificate, &self.key)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(certificate: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let unusable =
        |path: &Path, error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| unusable(key, &error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
