//! Reads the API key and the signature of a request (`docs/contract.md`, "API keys" and "Request signing").

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use svc_core::accounts::keys::Caller;
use svc_core::accounts::signing::{SignedRequest, VerifiedSignature};
use svc_core::error::Error;
use svc_core::values::Timestamp;

use crate::api::problem::{Problem, SignatureProblem};

const TIMESTAMP: HeaderName = HeaderName::from_static("x-svc-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-svc-signature");

/// Returns the key that a request carries. `prefix` is that of the keys of this API.
///
/// # Errors
///
/// Returns [`Problem::MissingCredentials`] without an `Authorization: Bearer` header, and [`Error::InvalidKey`] when
/// the header is repeated.
pub fn bearer<'a>(headers: &'a HeaderMap, prefix: &'static str) -> Result<&'a str, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Problem::MissingCredentials(prefix))?;
    if values.next().is_some() {
        return Err(Error::InvalidKey.into());
    }
    let text = value.to_str().map_err(|_| Error::InvalidKey)?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(key.trim()),
        _ => Err(Problem::MissingCredentials(prefix)),
    }
}

/// The two headers of a signed request.
pub struct SignatureHeaders<'a> {
    timestamp: &'a str,
    signature: &'a str,
}

impl<'a> SignatureHeaders<'a> {
    /// Returns the two headers.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::SignatureRequired`] when one of them is missing, and [`Problem::SignatureInvalid`] when one is
    /// repeated or is not ASCII.
    pub fn from_headers(headers: &'a HeaderMap) -> Result<Self, Problem> {
        Ok(Self { timestamp: single(headers, TIMESTAMP)?, signature: single(headers, SIGNATURE)? })
    }

    /// Verifies the signature of a request with the signing secret of its key. It may be used once.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::SignatureInvalid`] with the reason.
    pub fn verify(
        &self,
        caller: &Caller,
        parts: &Parts,
        mount: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<VerifiedSignature, Problem> {
        let secret = caller.signing_secret.as_ref().ok_or(Problem::SignatureRequired)?;
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let signed = SignedRequest {
            timestamp: self.timestamp,
            method: parts.method.as_str(),
            path_and_query: &format!("{mount}{target}"),
            body,
        };
        let verified = signed.verify(secret, self.signature, now);
        verified.map_err(|error| Problem::SignatureInvalid(SignatureProblem::Rejected(error)))
    }
}

fn single(headers: &HeaderMap, name: HeaderName) -> Result<&str, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(Problem::SignatureRequired)?;
    match (values.next(), value.to_str()) {
        (None, Ok(text)) => Ok(text),
        _ => Err(Problem::SignatureInvalid(SignatureProblem::MalformedHeader)),
    }
}
