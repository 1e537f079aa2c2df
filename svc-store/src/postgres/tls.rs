//! TLS connections, with the verification that the URL asks for.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, crypto};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How the certificate of the server is verified.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verification<'a> {
    /// It is not verified. The connection is encrypted, but the server may be an impostor.
    None,
    /// It must be issued by one of these certificate authorities.
    Authority(Roots<'a>),
    /// It must be issued by one of these certificate authorities, for the host in the URL.
    Full(Roots<'a>),
}

/// The certificate authorities that are trusted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Roots<'a> {
    /// Those that the machine trusts.
    System,
    /// Those in this file.
    File(&'a str),
}

/// Returns a TLS connector that verifies the server in this way.
pub(super) fn connector(trust: Verification<'_>) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = verifier(trust, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn verifier(trust: Verification<'_>, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    Ok(match trust {
        Verification::None => Arc::new(PartialVerifier { authorities: None, provider: Arc::clone(provider) }),
        Verification::Authority(trusted) => {
            let authorities = Some(authorities(trusted, provider)?);
            Arc::new(PartialVerifier { authorities, provider: Arc::clone(provider) })
        }
        Verification::Full(trusted) => authorities(trusted, provider)?,
    })
}

fn authorities(trusted: Roots<'_>, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let (roots, name) = match trusted {
        Roots::System => (of_system()?, "system"),
        Roots::File(path) => (in_file(path)?, path),
    };
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| format!("sslrootcert {name}: {error}"))
}

fn in_file(path: &str) -> Result<RootCertStore, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("sslrootcert {path}: {error}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"the file has no certificate in PEM form"));
    }
    Ok(roots)
}

/// Returns the authorities that programs on this machine trust, or those in the file that `SSL_CERT_FILE` names.
fn of_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // The store of a machine may have certificates that this library does not take.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("sslrootcert system: this machine has no certificate authorities. Install them (Debian: \
             ca-certificates), or name a file"
            .to_owned());
    }
    Ok(roots)
}

/// Verifies a certificate without checking the host name, or, without `authorities`, accepts any certificate. It always
/// verifies that the server has the key of its certificate.
#[derive(Debug)]
struct PartialVerifier {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PartialVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last, so everything else is valid.
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
