//! Failures of TLS, in words: customers read it in the log of an attempt. The library has names for its own developers.

use std::error::Error as StdError;
use std::io;

use svc_core::values::Timestamp;
use svc_core::webhooks::options::VERIFIABLE_KEYS as KEYS;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// The signatures of certificates that can be verified.
const SIGNATURES: &str = "ECDSA on P-256 with SHA-256, ECDSA on P-384 with SHA-384, RSA of 2048 to 8192 bits with SHA-256, SHA-384 or \
                          SHA-512, and Ed25519";

/// How many names of a certificate are shown.
const MAX_NAMES: usize = 5;
/// The length of the longest name of a host, in characters.
const MAX_NAME: usize = 253;

/// Returns what went wrong with a TLS session.
pub(super) fn in_words(error: &io::Error) -> String {
    match of_tls(error) {
        Some(error) => describe(error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the endpoint closed the connection within the handshake".to_owned()
        }
        None => format!("the connection failed within the handshake of TLS: {error}"),
    }
}

/// Returns what a receiver says of a TLS session that it ends, if that is the error.
pub(crate) fn alert(error: &(dyn StdError + 'static)) -> Option<String> {
    match of_tls(error.downcast_ref()?)? {
        Error::AlertReceived(alert) => Some(of_alert(*alert)),
        _ => None,
    }
}

fn of_tls(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn describe(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(_) => "what the endpoint sent is no TLS; check the port of the URL".to_owned(),
        Error::PeerIncompatible(_) => {
            format!("the endpoint has nothing in common with this service, which has TLS 1.2 and 1.3 with {KEYS}")
        }
        Error::PeerMisbehaved(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "the endpoint does not keep to the protocol of TLS".to_owned()
        }
        Error::NoCertificatesPresented => "the endpoint has shown no certificate".to_owned(),
        Error::DecryptError | Error::PeerSentOversizedRecord => {
            "what the endpoint sent cannot be decrypted; something between changes it".to_owned()
        }
        other => format!("the session of TLS failed: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    let certificate = "the certificate of the endpoint";
    match error {
        CertificateError::Expired => format!("{certificate} has expired"),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("{certificate} has expired: it was valid until {}", time(*not_after))
        }
        CertificateError::NotValidYet => format!("{certificate} is not valid yet"),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("{certificate} is not valid yet: it will be from {}", time(*not_before))
        }
        CertificateError::UnknownIssuer => format!(
            "{certificate} is of no authority that is trusted here: the public ones, or those of certificate_authority in their \
             place. A server has to send the certificates between its own and the authority as well"
        ),
        CertificateError::BadSignature => format!(
            "the signature of {certificate} does not verify: its authority may have the name of a trusted one and another key, or \
             a key of a size that is not taken. Those taken are {KEYS}"
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("{certificate} is signed in a way that is not taken. Those taken are {SIGNATURES}")
        }
        CertificateError::NotValidForName => format!("{certificate} is not for the host of the URL"),
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("{certificate} {}, and not for {}", presented_names(presented), expected.to_str())
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!("{certificate} is not one for servers: its extended key usage leaves them out")
        }
        CertificateError::BadEncoding => format!("{certificate} cannot be read"),
        CertificateError::UnhandledCriticalExtension => {
            format!("{certificate} has a critical extension that is not understood here")
        }
        CertificateError::Revoked => format!("{certificate} was revoked"),
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => format!(
                "{certificate} is that of an authority (CA:TRUE), as openssl req -x509 makes it. Issue one for the server with \
                 it, and leave the authority in certificate_authority; or make it with -addext basicConstraints=CA:FALSE"
            ),
            Some(webpki::Error::EndEntityUsedAsCa) => {
                format!("{certificate} was issued with one that is no authority (CA:FALSE)")
            }
            Some(webpki::Error::UnsupportedCertVersion) => format!("{certificate} is not of version 3"),
            Some(webpki::Error::NameConstraintViolation) => {
                format!("{certificate} is for a host that its authority may not certify")
            }
            Some(webpki::Error::PathLenConstraintViolated | webpki::Error::MaximumPathDepthExceeded) => {
                format!("there are more certificates between {certificate} and its authority than is allowed")
            }
            _ => format!("{certificate} cannot be verified"),
        },
        _ => format!("{certificate} cannot be verified"),
    }
}

/// Returns the hosts that a certificate is for. The library has them as it shows its types to its developers, such as
/// `DnsName("a.example.com")`, and a receiver can have any number of them, with any bytes.
fn presented_names(presented: &[String]) -> String {
    let hosts: Vec<String> = presented.iter().filter_map(|shown| host(shown)).collect();
    match hosts.split_at_checked(MAX_NAMES) {
        _ if hosts.is_empty() => "names no host".to_owned(),
        Some((first, more)) if !more.is_empty() => format!("is for {} and {} more", first.join(", "), more.len()),
        _ => format!("is for {}", hosts.join(", ")),
    }
}

/// Returns a name that the library shows, if it is that of a host, with what cannot be seen as an escape.
fn host(shown: &str) -> Option<String> {
    let dns = shown.strip_prefix("DnsName(\"").and_then(|rest| rest.strip_suffix("\")"));
    let name = dns.or_else(|| shown.strip_prefix("IpAddress(")?.strip_suffix(')'))?;
    let visible = |character: char| match character.is_ascii_graphic() {
        true => character.to_string(),
        false => character.escape_default().to_string(),
    };
    Some(name.chars().take(MAX_NAME).map(visible).collect())
}

fn of_alert(alert: AlertDescription) -> String {
    let name = match alert.as_str() {
        Some(name) => words(name),
        None => format!("number {}", u8::from(alert)),
    };
    let meaning = match alert {
        AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity
        | AlertDescription::ProtocolVersion => format!(
            "it has nothing in common with this service, which has TLS 1.2 and 1.3 with {KEYS}, or asks for a client certificate"
        ),
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError
        | AlertDescription::CertificateRequired => {
            "it asks for a client certificate, and refuses that of client_certificate or wants one".to_owned()
        }
        AlertDescription::UnrecognisedName => "it has no certificate for the host of the URL".to_owned(),
        _ => return format!("the endpoint ended the TLS session with the alert \"{name}\""),
    };
    format!("the endpoint ended the TLS session with the alert \"{name}\": {meaning}")
}

/// Returns a name such as `HandshakeFailure` as words.
fn words(name: &str) -> String {
    let (mut words, mut was_lower) = (String::new(), false);
    for character in name.chars() {
        if character.is_ascii_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = character.is_ascii_lowercase();
        words.push(character.to_ascii_lowercase());
    }
    words
}

fn time(at: UnixTime) -> String {
    let micros = i64::try_from(at.as_secs()).ok().and_then(|seconds| seconds.checked_mul(1_000_000));
    micros.map_or_else(|| "an unknown time".to_owned(), |micros| Timestamp::from_micros(micros).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_rustls::rustls::{OtherError, PeerIncompatible};

    use super::*;

    fn said(error: Error) -> String {
        in_words(&io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// No text has the name of a type or a list of numbers, which is what the library itself would show.
    #[test]
    fn errors_of_tls_are_said_in_words() {
        let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let other = |error: webpki::Error| CertificateError::Other(OtherError(Arc::new(error))).into();
        let (signature_algorithm_id, public_key_algorithm_id) = (vec![6, 8, 42], vec![6, 7]);
        let errors: Vec<Error> = vec![
            CertificateError::ExpiredContext { time: at(20), not_after: at(10) }.into(),
            CertificateError::NotValidYetContext { time: at(20), not_before: at(30) }.into(),
            CertificateError::UnknownIssuer.into(),
            CertificateError::BadSignature.into(),
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id,
                public_key_algorithm_id,
            }
            .into(),
            CertificateError::NotValidForNameContext {
                expected: "hooks.example.com".try_into().unwrap(),
                presented: vec!["DnsName(\"a.example.com\")".to_owned(), "IpAddress(192.0.2.1)".to_owned()],
            }
            .into(),
            CertificateError::BadEncoding.into(),
            other(webpki::Error::CaUsedAsEndEntity),
            other(webpki::Error::UnsupportedCertVersion),
            other(webpki::Error::BadDerTime),
            PeerIncompatible::NoCipherSuitesInCommon.into(),
            Error::AlertReceived(AlertDescription::HandshakeFailure),
            Error::AlertReceived(AlertDescription::UnknownCA),
            Error::AlertReceived(AlertDescription::InternalError),
            Error::AlertReceived(AlertDescription::Unknown(200)),
        ];
        let texts: Vec<String> = errors.into_iter().map(said).collect();
        for text in &texts {
            assert!(!text.contains(['{', '[']) && !text.contains("Error") && !text.contains("Context"), "{text}");
        }
        assert_eq!(
            texts[0],
            "the certificate of the endpoint has expired: it was valid until 1970-01-01T00:00:10.000000Z"
        );
        assert_eq!(
            texts[5],
            "the certificate of the endpoint is for a.example.com, 192.0.2.1, and not for hooks.example.com"
        );
        assert_eq!(texts[13], "the endpoint ended the TLS session with the alert \"internal error\"");
        assert_eq!(texts[14], "the endpoint ended the TLS session with the alert \"number 200\"");
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(in_words(&ended), "the endpoint closed the connection within the handshake");
    }
}
