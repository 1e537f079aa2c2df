//! Signatures of webhook deliveries (`docs/contract.md`, "Webhook signatures").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};

use crate::crypto::{self, hmac_sha256};
use crate::env::Env;
use crate::values::Secret;

const WEBHOOK_PREFIX: &str = "whsec_";
/// The prefixes of Ed25519 keys in the Standard Webhooks specification.
const PRIVATE_KEY_PREFIX: &str = "whsk_";
const PUBLIC_KEY_PREFIX: &str = "whpk_";

/// Returns a new signing secret of a webhook subscription: `whsec_` and 32 random bytes in base64.
pub fn new_webhook_secret(env: &Env) -> Secret {
    crypto::new_secret(WEBHOOK_PREFIX, env)
}

/// Returns the value of the `X-SVC-Signature` header of a delivery: `sha256=` and the hex HMAC-SHA256 of the raw body. The
/// key is the whole text of the secret.
///
/// # Examples
///
/// ```
/// use svc_core::values::Secret;
/// use svc_core::webhooks::signatures;
/// let signature = signatures::webhook_signature(&Secret::new("whsec_dGVzdA=="), b"{}");
/// assert_eq!(signature, "sha256=00850923c6e3021c39db699664a5fbda4d62d6fb12a06566cda33074bfac21b1");
/// ```
pub fn webhook_signature(secret: &Secret, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(hmac_sha256(secret.reveal().as_bytes(), &[body])))
}

/// Returns one signature of the `webhook-signature` header of a delivery, as in the Standard Webhooks specification: `v1,`
/// and the base64 HMAC-SHA256 of `{id}.{timestamp}.{body}`. The key is the bytes that the secret encodes after `whsec_`.
pub fn standard_webhook_signature(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> String {
    let encoded = secret.reveal().strip_prefix(WEBHOOK_PREFIX).unwrap_or(secret.reveal());
    // A secret of another form is used as it is, so that the header stays well-formed.
    let key = STANDARD.decode(encoded).unwrap_or_else(|_| encoded.as_bytes().to_vec());
    let mac = hmac_sha256(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
    format!("v1,{}", STANDARD.encode(mac))
}

/// Returns a new private key: `whsk_` and the 32 random bytes of its seed (RFC 8032, section 5.1.5) in base64.
pub fn new_private_key(env: &Env) -> Secret {
    crypto::new_secret(PRIVATE_KEY_PREFIX, env)
}

/// Returns the public key of a private key: `whpk_` and its 32 bytes in base64. `None` if it is not one.
///
/// # Examples
///
/// ```
/// use svc_core::values::Secret;
/// use svc_core::webhooks::signatures;
/// let private = Secret::new("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=");
/// let public = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
/// assert_eq!(signatures::public_key(&private).as_deref(), Some(public));
/// ```
pub fn public_key(private: &Secret) -> Option<String> {
    let key = signing_key(private)?.verifying_key();
    Some(format!("{PUBLIC_KEY_PREFIX}{}", STANDARD.encode(key.as_bytes())))
}

/// Returns one asymmetric signature of the `webhook-signature` header, as in the Standard Webhooks specification: `v1a,` and
/// the base64 of the Ed25519 signature of `{id}.{timestamp}.{body}`. `None` if the key is not one.
pub fn asymmetric_webhook_signature(private: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Option<String> {
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    Some(format!("v1a,{}", STANDARD.encode(signing_key(private)?.sign(&signed).to_bytes())))
}

fn signing_key(private: &Secret) -> Option<SigningKey> {
    let seed = STANDARD.decode(private.reveal().strip_prefix(PRIVATE_KEY_PREFIX)?).ok()?;
    Some(SigningKey::from_bytes(&seed.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This is the example of the Standard Webhooks specification, which its libraries test as well.
    #[test]
    fn a_standard_webhook_signature_is_as_specified() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let sign = |body| standard_webhook_signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(sign(br#"{"test": 2432232314}"#), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(sign(br#"{"test": 2432232315}"#), sign(br#"{"test": 2432232314}"#));
        let bare = Secret::new("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        assert_eq!(
            standard_webhook_signature(&bare, "1", "2", b""),
            standard_webhook_signature(&Secret::new(format!("whsec_{}", bare.reveal())), "1", "2", b"")
        );
    }

    #[test]
    fn a_new_secret_encodes_32_random_bytes() {
        let env = Env::system();
        let secret = new_webhook_secret(&env);
        let bytes = STANDARD.decode(secret.reveal().strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(bytes.len(), 32);
        assert_ne!(new_webhook_secret(&env), secret);
    }
}
