//! The certificates of a webhook subscription: the one that it shows to its receiver (mutual TLS), and those of the
//! authorities that it trusts there.
//!
//! They are PEM (RFC 7468), of which this module reads the framing alone. Checks that need TLS, such as whether a key belongs to a
//! certificate, are made by the server. They are stored without the text between the sections, which may have secrets.

use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::alg_id;
use rustls_pki_types::pem::{Error as PemError, PemObject as _, SectionKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::secrets::WithSecrets;
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::Secret;

/// The greatest length of certificates in PEM, in bytes.
const MAX_CERTIFICATES: usize = 64 * 1024;
/// The greatest length of a private key in PEM, in bytes.
const MAX_PRIVATE_KEY: usize = 16 * 1024;
/// The length of a line of base64 in PEM.
const LINE: usize = 64;

/// The keys of authorities that can verify a certificate.
pub const VERIFIABLE_KEYS: &str = "ECDSA on P-256 or P-384, RSA of 2048 to 8192 bits, and Ed25519";
/// The sizes of RSA keys among them.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private_key";

/// The certificate that deliveries show to the endpoint (mutual TLS). A response has its fingerprint alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCertificate {
    /// The certificate and those between it and its authority, in PEM.
    #[serde(skip)]
    certificate: String,
    /// The private key of the certificate, in PEM.
    #[serde(skip)]
    private_key: Secret,
    /// The SHA-256 fingerprint of the certificate, in hexadecimal.
    sha256: String,
}

impl ClientCertificate {
    /// Returns this certificate with its private key, both in PEM.
    ///
    /// # Errors
    /// An issue at `certificate` or `private_key`: no PEM, no certificate, no key or several, an encrypted key.
    pub fn new(certificate: &str, private_key: &str) -> Result<Self, Issue> {
        let chain = certificates(certificate).map_err(|issue| issue.at(CERTIFICATE))?;
        let private_key = key(private_key).map_err(|issue| issue.at(PRIVATE_KEY))?;
        let sha256 = chain.first().map(|leaf| fingerprint(leaf)).unwrap_or_default();
        Ok(Self { certificate: pem_of(&chain), private_key, sha256 })
    }

    /// Returns the certificate and those between it and its authority, in PEM. Empty if they were read from a response.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the private key in PEM.
    pub fn private_key(&self) -> &Secret {
        &self.private_key
    }

    /// Returns the SHA-256 fingerprint of the certificate, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientCertificate").field(&self.sha256).finish()
    }
}

impl FromJson for ClientCertificate {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let Json::Object(members) = json else {
            let reason = "must be an object with certificate and private_key";
            return Err(Issue::new(FieldCode::InvalidType, reason));
        };
        if let Some((unknown, _)) = members.iter().find(|(name, _)| name != CERTIFICATE && name != PRIVATE_KEY) {
            let reason = "is not a member of a client certificate";
            return Err(Issue::new(FieldCode::UnknownField, reason).at(unknown.clone()));
        }
        let text = |name: &'static str| {
            let found = members.iter().find(|(member, _)| member == name).map(|(_, value)| value.clone());
            let missing = || Issue::new(FieldCode::Required, "is required").at(name);
            found.ok_or_else(missing)?.into_string().map_err(|issue| issue.at(name))
        };
        Self::new(&text(CERTIFICATE)?, &text(PRIVATE_KEY)?)
    }
}

impl WithSecrets for ClientCertificate {
    const SENT: &'static str = "ClientCertificateWithKey";

    fn to_sent(&self) -> Secret {
        Secret::new(json!({ CERTIFICATE: self.certificate, PRIVATE_KEY: self.private_key.reveal() }).to_string())
    }

    fn sent_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A certificate with its private key.",
            "properties": {
                CERTIFICATE: {
                    "type": "string",
                    "description": "The certificate, followed by those between it and its authority, in PEM.",
                    "maxLength": MAX_CERTIFICATES,
                },
                PRIVATE_KEY: {
                    "type": "string",
                    "description": "Its private key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted.",
                    "maxLength": MAX_PRIVATE_KEY,
                },
            },
            "required": [CERTIFICATE, PRIVATE_KEY],
            "additionalProperties": false,
        })
    }
}

/// The certificate authorities that are trusted at the endpoint in place of the public ones. A response has the fingerprints of
/// their certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateAuthority {
    /// The certificates in PEM.
    #[serde(skip)]
    certificates: String,
    /// The SHA-256 fingerprints of the certificates, in hexadecimal.
    sha256: Vec<String>,
}

impl CertificateAuthority {
    /// Returns the authorities with these certificates in PEM.
    ///
    /// # Errors
    /// An issue: no PEM, no certificate, something else beside the certificates, or one whose key can verify nothing.
    pub fn new(pem: &str) -> Result<Self, Issue> {
        let certificates = certificates(pem)?;
        if certificates.iter().filter_map(|certificate| public_key(certificate)).any(|key| !can_verify(key)) {
            let reason = format!("must have authorities whose keys can verify a certificate: {VERIFIABLE_KEYS}");
            return Err(Issue::new(FieldCode::InvalidFormat, reason));
        }
        Ok(Self::of(&certificates))
    }

    fn of(certificates: &[Vec<u8>]) -> Self {
        let sha256 = certificates.iter().map(|certificate| fingerprint(certificate)).collect();
        Self { certificates: pem_of(certificates), sha256 }
    }

    /// Returns the certificates in PEM. Empty if they were read from a response.
    pub fn certificates(&self) -> &str {
        &self.certificates
    }

    /// Returns the SHA-256 fingerprints of the certificates, in hexadecimal.
    pub fn sha256(&self) -> &[String] {
        &self.sha256
    }
}

impl FromJson for CertificateAuthority {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::new(&json.into_string()?)
    }
}

impl WithSecrets for CertificateAuthority {
    const SENT: &'static str = "CertificatesOfAuthorities";
    const IS_INLINE: bool = true;

    /// The keys were checked when they were sent, by the rules of then.
    fn of_stored(json: Json) -> Result<Self, Issue> {
        Ok(Self::of(&certificates(&json.into_string()?)?))
    }

    fn to_sent(&self) -> Secret {
        Secret::new(json!(self.certificates).to_string())
    }

    fn sent_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MAX_CERTIFICATES })
    }
}

/// The TLS options of one endpoint alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificate that is shown to the endpoint.
    pub client_certificate: Option<ClientCertificate>,
    /// The authorities that are trusted at the endpoint, in place of the public ones.
    pub certificate_authority: Option<CertificateAuthority>,
}

/// Returns the sections of a text in PEM that are of a known kind. No error has a part of the text, which may be a key.
fn sections(text: &str, max: usize) -> Result<Vec<(SectionKind, Vec<u8>)>, Issue> {
    if text.len() > max {
        return Err(Issue::new(FieldCode::TooLong, format!("must have at most {max} bytes")));
    }
    let sections: Result<Vec<_>, PemError> = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()).collect();
    sections.map_err(|error| {
        not_pem(match error {
            PemError::MissingSectionEnd { .. } => "a line with BEGIN has no line with END after it",
            PemError::IllegalSectionStart { .. } => "a line with BEGIN goes on after its dashes",
            PemError::Base64Decode(_) => "what is between BEGIN and END is not base64",
            _ => "it cannot be read",
        })
    })
}

fn not_pem(reason: &str) -> Issue {
    Issue::new(FieldCode::InvalidFormat, format!("must be PEM with its line breaks: {reason}"))
}

/// Returns certificates in DER from a text that has nothing else.
fn certificates(text: &str) -> Result<Vec<Vec<u8>>, Issue> {
    let sections = sections(text, MAX_CERTIFICATES)?;
    // A file with both would make the key public.
    if text.contains("PRIVATE KEY-----") || sections.iter().any(|(kind, _)| *kind != SectionKind::Certificate) {
        return Err(Issue::new(FieldCode::InvalidFormat, "must have certificates alone, and has something else"));
    }
    if sections.is_empty() {
        return Err(not_pem("it has no line -----BEGIN CERTIFICATE-----"));
    }
    if sections.iter().any(|(_, der)| der.is_empty()) {
        return Err(not_pem("a certificate is empty"));
    }
    Ok(sections.into_iter().map(|(_, der)| der).collect())
}

/// Returns the one private key in a text, in PEM.
fn key(text: &str) -> Result<Secret, Issue> {
    // As PKCS#8, and as OpenSSL once wrote it in a header of the section.
    if ["ENCRYPTED PRIVATE KEY-----", ",ENCRYPTED"].iter().any(|mark| text.contains(mark)) {
        let reason = "must not be encrypted with a passphrase; it is stored encrypted, and never shown";
        return Err(Issue::new(FieldCode::InvalidFormat, reason));
    }
    let sections = sections(text, MAX_PRIVATE_KEY)?;
    let label = |kind| match kind {
        SectionKind::PrivateKey => Some("PRIVATE KEY"),
        SectionKind::RsaPrivateKey => Some("RSA PRIVATE KEY"),
        SectionKind::EcPrivateKey => Some("EC PRIVATE KEY"),
        _ => None,
    };
    match &sections[..] {
        [] => Err(not_pem("it has no line -----BEGIN PRIVATE KEY-----")),
        [(kind, der)] => match label(*kind) {
            Some(label) if !der.is_empty() => Ok(Secret::new(pem(label, der))),
            _ => Err(not_pem("it has no private key")),
        },
        _ => Err(Issue::new(FieldCode::InvalidFormat, "must have one private key, and nothing else")),
    }
}

/// Returns the content of the `SubjectPublicKeyInfo` of a certificate (RFC 5280, section 4.1). `None` if it is no certificate, which
/// the server finds.
fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    /// The tag of the version, which a certificate of version 1 leaves out.
    const VERSION: u8 = 0xa0;
    let (certificate, _) = der(certificate)?;
    let (mut rest, _) = der(certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = der(rest)?.1;
    }
    // The serial number, the algorithm, the issuer, the validity and the subject.
    for _ in 0..5 {
        rest = der(rest)?.1;
    }
    der(rest).map(|(key, _)| key)
}

/// Returns whether the key of an authority verifies any signature: whether TLS knows its kind, and takes an RSA key of its size.
fn can_verify(key: &[u8]) -> bool {
    let Some((algorithm, rest)) = der(key) else { return false };
    if [alg_id::ECDSA_P256, alg_id::ECDSA_P384, alg_id::ED25519].iter().any(|known| known.as_ref() == algorithm) {
        return true;
    }
    // BIT STRING, without unused bits, of a SEQUENCE that begins with the modulus (RFC 8017, section A.1.1).
    let modulus = || {
        let (bits, _) = der(rest)?;
        let (key, _) = der(bits.strip_prefix(&[0])?)?;
        let (modulus, _) = der(key)?;
        Some(modulus.strip_prefix(&[0]).unwrap_or(modulus))
    };
    let bits = |modulus: &[u8]| modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    algorithm == alg_id::RSA_ENCRYPTION.as_ref() && modulus().is_some_and(|modulus| RSA_BITS.contains(&bits(modulus)))
}

/// Returns the content of the first value in DER, and what follows it.
fn der(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // The length has as many bytes.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn fingerprint(der: &[u8]) -> String {
    hex::encode(Sha256::digest(der))
}

/// Returns certificates in PEM.
fn pem_of(certificates: &[Vec<u8>]) -> String {
    certificates.iter().map(|der| pem("CERTIFICATE", der)).collect()
}

fn pem(label: &str, der: &[u8]) -> String {
    let (base64, mut lines) = (STANDARD.encode(der), String::new());
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}
