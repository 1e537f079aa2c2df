//! Who is asking: the bearer key and the request signature (contract, "Authentication"; decisions §9).

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use svc_core::accounts::keys::{Caller, KeyHash};
use svc_core::accounts::signing::SignedRequest;
use svc_core::error::Error;
use svc_core::values::Timestamp;

const TIMESTAMP: HeaderName = HeaderName::from_static("x-svc-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-svc-signature");

/// The key that a request presents.
///
/// # Errors
/// [`Error::MissingCredentials`] without `Authorization: Bearer`, [`Error::InvalidKey`] when the header is
/// repeated or the key is malformed.
pub fn bearer(headers: &HeaderMap) -> Result<KeyHash, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Error::MissingCredentials)?;
    if values.next().is_some() {
        return Err(Error::InvalidKey);
    }
    let text = value.to_str().map_err(|_| Error::InvalidKey)?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => KeyHash::of(key.trim()),
        _ => Err(Error::MissingCredentials),
    }
}

/// The two headers of a signed request.
pub struct SignatureHeaders<'a> {
    timestamp: &'a str,
    signature: &'a str,
}

impl<'a> SignatureHeaders<'a> {
    /// Finds them when the key demands them.
    ///
    /// # Errors
    /// [`Error::SignatureRequired`] when one is missing, [`Error::SignatureInvalid`] when one is repeated.
    pub fn find(headers: &'a HeaderMap) -> Result<Self, Error> {
        Ok(Self { timestamp: single(headers, TIMESTAMP)?, signature: single(headers, SIGNATURE)? })
    }

    /// Checks them; returns the MAC, which is good for one use.
    ///
    /// # Errors
    /// [`Error::SignatureInvalid`].
    pub fn verify(
        &self,
        caller: &Caller,
        parts: &Parts,
        mount: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<[u8; 32], Error> {
        let secret = caller.signing_secret.as_ref().ok_or(Error::SignatureRequired)?;
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let signed = SignedRequest {
            timestamp: self.timestamp,
            method: parts.method.as_str(),
            path_and_query: &format!("{mount}{target}"),
            body,
        };
        signed.verify(secret, self.signature, now).map_err(Error::SignatureInvalid)
    }
}

fn single(headers: &HeaderMap, name: HeaderName) -> Result<&str, Error> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(Error::SignatureRequired)?;
    match (values.next(), value.to_str()) {
        (None, Ok(text)) => Ok(text),
        _ => Err(Error::SignatureInvalid("Send X-SVC-Timestamp and X-SVC-Signature once each, in ASCII.")),
    }
}
