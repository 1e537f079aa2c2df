//! The parts that the URLs of all brokers have in common: credentials, parameters and TLS.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use percent_encoding::percent_decode_str;
use svc_core::values::{Secret, StreamUrl};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::StreamError;

/// The parts of a URL, decoded.
pub(super) struct Parts {
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) user: Option<Secret>,
    pub(super) password: Option<Secret>,
    /// The segments of the path, none of which is empty.
    pub(super) path: Vec<String>,
    parameters: BTreeMap<String, String>,
}

impl Parts {
    /// Returns the parts of a URL, whose parameters must be among those that are known.
    pub(super) fn of(url: &StreamUrl, known: &[&str]) -> Result<Self, StreamError> {
        let url = url.url();
        let mut parameters = BTreeMap::new();
        for (name, value) in url.query_pairs() {
            if !known.contains(&&*name) {
                let known = known.join(", ");
                return Err(StreamError::Url(format!("must have no parameter {name}; {known} are known")));
            }
            if parameters.insert(name.to_string(), value.to_string()).is_some() {
                return Err(StreamError::Url(format!("must have the parameter {name} once")));
            }
        }
        let user = Some(url.username()).filter(|user| !user.is_empty()).map(secret).transpose()?;
        let password = url.password().map(secret).transpose()?;
        let path = url.path().trim_start_matches('/').trim_end_matches('/');
        let path = path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect::<Result<_, _>>()?;
        let host = url.host_str().unwrap_or_default().to_owned();
        Ok(Self { host, port: url.port(), user, password, path, parameters })
    }

    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Returns the settings of TLS: the authorities in the file of the parameter `ca` are trusted, or else the public ones.
    pub(super) fn tls(&self) -> Result<ClientConfig, StreamError> {
        let mut roots = RootCertStore::empty();
        match self.parameter("ca") {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(path) => {
                let cannot =
                    |error: &dyn std::fmt::Display| StreamError::Url(format!("ca: cannot read {path}: {error}"));
                for certificate in CertificateDer::pem_file_iter(Path::new(path)).map_err(|error| cannot(&error))? {
                    let certificate = certificate.map_err(|error| cannot(&error))?;
                    roots.add(certificate).map_err(|error| cannot(&error))?;
                }
                if roots.is_empty() {
                    return Err(StreamError::Url(format!("ca: {path} has no certificate in PEM")));
                }
            }
        }
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| StreamError::Url(error.to_string()))?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

fn decoded(text: &str) -> Result<String, StreamError> {
    let decoded = percent_decode_str(text).decode_utf8().map(Cow::into_owned);
    decoded.map_err(|_| StreamError::Url("must be UTF-8 where it is percent-encoded".to_owned()))
}

fn secret(text: &str) -> Result<Secret, StreamError> {
    decoded(text).map(Secret::new)
}
