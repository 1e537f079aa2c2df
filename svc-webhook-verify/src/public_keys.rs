//! Ed25519 signatures (the version `v1a` of Standard Webhooks) and the public keys that verify them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};

use crate::{PUBLIC_KEY_PREFIX, StandardHeaders, VerifyError};

/// The number of `v1a` entries that are verified. svc sends two at most. Each entry costs a hash of the whole body, so
/// without a limit a stranger could occupy the verifier with one long header.
pub(crate) const MAX_SIGNATURES: usize = 8;

/// Parses `whpk_<base64 of 32 bytes>`.
pub(crate) fn parse_public_key(key: &str) -> Result<VerifyingKey, VerifyError> {
    if key.is_empty() {
        return Err(VerifyError::EmptyPublicKey);
    }
    let text = key.strip_prefix(PUBLIC_KEY_PREFIX).ok_or(VerifyError::NotPublicKey)?;
    let bytes = STANDARD.decode(text).map_err(|_| VerifyError::PublicKeyNotBase64)?;
    let bytes = bytes.try_into().map_err(|bytes: Vec<u8>| VerifyError::PublicKeyWrongLength { found: bytes.len() })?;
    let key = VerifyingKey::from_bytes(&bytes).map_err(|_| VerifyError::InvalidPublicKey)?;
    // No signature passes the strict check with a weak key, so that it is better refused at once.
    if key.is_weak() { Err(VerifyError::InvalidPublicKey) } else { Ok(key) }
}

/// Parses the `v1a` entries of `webhook-signature`. Entries of other versions are ignored.
fn parse_signatures(header: &str) -> Result<Vec<Signature>, VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let entries = || header.split(' ').filter_map(|entry| entry.strip_prefix("v1a,"));
    match entries().count() {
        0 => return Err(VerifyError::NoV1aSignature),
        found if found > MAX_SIGNATURES => return Err(VerifyError::TooManySignatures { found }),
        _ => (),
    }
    entries()
        .map(|text| STANDARD.decode(text).ok().and_then(|bytes| Signature::from_slice(&bytes).ok()))
        .collect::<Option<Vec<_>>>()
        .ok_or(VerifyError::V1aNotBase64)
}

/// Checks that a `v1a` entry is the signature of the id, the timestamp and the body with one of the keys.
pub(crate) fn check(keys: &[VerifyingKey], headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
    let StandardHeaders { id, timestamp, signature } = headers;
    let signatures = parse_signatures(signature)?;
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    // Nothing here is secret, so this does not need constant time. The strict check leaves each signature one form.
    let matched = keys.iter().any(|key| signatures.iter().any(|it| key.verify_strict(&signed, it).is_ok()));
    if matched { Ok(()) } else { Err(VerifyError::Mismatch) }
}

#[cfg(test)]
mod tests;
