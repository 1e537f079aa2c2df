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
    /// It must be issued by a certificate authority in this file.
    Authority(&'a str),
    /// It must be issued by a certificate authority in this file, for the host in the URL.
    Full(&'a str),
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
        Verification::Authority(path) => {
            let authorities = Some(authorities(path, provider)?);
            Arc::new(PartialVerifier { authorities, provider: Arc::clone(provider) })
        }
        Verification::Full(path) => authorities(path, provider)?,
    })
}

fn authorities(path: &str, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("sslrootcert {path}: {error}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unreadable(&error))
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
