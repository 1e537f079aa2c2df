//! Signatures of webhook deliveries (`docs/contract.md`, "Webhook signatures").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crypto::{self, hmac_sha256};
use crate::env::Env;
use crate::values::{Secret, Stored, Timestamp};

/// The prefix of signing secrets.
pub(crate) const WEBHOOK_PREFIX: &str = "whsec_";
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

/// Returns the public key of a private key: `whpk_` and its 32 bytes in base64. `None` if it is not one. A private key is
/// `whsk_` and the 32 bytes of its seed (RFC 8032, section 5.1.5) in base64.
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
    let key = ed25519_key(private)?.verifying_key();
    Some(format!("{PUBLIC_KEY_PREFIX}{}", STANDARD.encode(key.as_bytes())))
}

/// Returns one asymmetric signature of the `webhook-signature` header, as in the Standard Webhooks specification: `v1a,` and
/// the base64 of the Ed25519 signature of `{id}.{timestamp}.{body}`. `None` if the key is not one.
pub fn asymmetric_webhook_signature(private: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Option<String> {
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    Some(format!("v1a,{}", STANDARD.encode(ed25519_key(private)?.sign(&signed).to_bytes())))
}

fn ed25519_key(private: &Secret) -> Option<ed25519_dalek::SigningKey> {
    let seed = STANDARD.decode(private.reveal().strip_prefix(PRIVATE_KEY_PREFIX)?).ok()?;
    Some(ed25519_dalek::SigningKey::from_bytes(&seed.try_into().ok()?))
}

/// A pair of Ed25519 keys that signs the deliveries of a subscription. Its JSON has the public key alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKey {
    /// The public key: `whpk_` and its 32 bytes in base64.
    pub public_key: String,
    /// When the key signs no more, if it was replaced: the end of the overlap of the rotation.
    pub expires_at: Option<Timestamp>,
    #[serde(skip)]
    private_key: Secret,
}

/// The keys of a subscription with asymmetric signatures, the newest first: one, and during the overlap of a rotation the one
/// before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct SigningKeys(Vec<SigningKey>);

impl SigningKey {
    fn new(private_key: Secret, expires_at: Option<Timestamp>) -> Option<Self> {
        Some(Self { public_key: public_key(&private_key)?, expires_at, private_key })
    }

    fn is_valid(&self, at: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| at < expires_at)
    }
}

impl SigningKeys {
    /// Returns one new key.
    pub fn generate(env: &Env) -> Self {
        Self(SigningKey::new(crypto::new_secret(PRIVATE_KEY_PREFIX, env), None).into_iter().collect())
    }

    /// Returns a new key, and the one before it until `until`. During an overlap that is the older of the two, which receivers
    /// are sure to have.
    #[must_use]
    pub fn rotated(&self, env: &Env, until: Timestamp) -> Self {
        let Self(mut keys) = Self::generate(env);
        let previous = self.0.iter().rfind(|key| key.is_valid(env.now()));
        keys.extend(previous.map(|key| SigningKey { expires_at: Some(until), ..key.clone() }));
        Self(keys)
    }

    /// Returns the newest key alone.
    #[must_use]
    pub fn newest(&self) -> Self {
        Self(self.0.first().cloned().into_iter().collect())
    }

    /// Returns the keys, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &SigningKey> {
        self.0.iter()
    }

    /// Returns the private keys that sign at a time, the newest first.
    pub fn private_keys(&self, at: Timestamp) -> impl Iterator<Item = &Secret> {
        self.0.iter().filter(move |key| key.is_valid(at)).map(|key| &key.private_key)
    }
}

/// The private keys, each but the newest with the time of its end.
impl Stored for SigningKeys {
    fn to_stored(&self) -> Secret {
        let words = self.0.iter().map(|key| {
            let until = key.expires_at.map_or_else(String::new, |until| format!("@{until}"));
            format!("{}{until}", key.private_key.reveal())
        });
        Secret::new(words.collect::<Vec<_>>().join(" "))
    }

    fn from_stored(text: &Secret) -> Option<Self> {
        let key = |word: &str| match word.split_once('@') {
            Some((private_key, until)) => SigningKey::new(Secret::new(private_key), Some(until.parse().ok()?)),
            None => SigningKey::new(Secret::new(word), None),
        };
        text.reveal().split(' ').map(key).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    #[test]
    fn a_rotation_keeps_the_older_of_two_keys() {
        let env = Env::system();
        let until = |seconds| env.now().checked_add(Duration::from_secs(seconds)).unwrap();
        let publics = |keys: &SigningKeys| keys.iter().map(|key| key.public_key.clone()).collect::<Vec<_>>();
        let first = SigningKeys::generate(&env);
        let second = first.rotated(&env, until(60));
        assert_eq!(publics(&second)[1..], publics(&first));
        let third = second.rotated(&env, until(60));
        assert_eq!(publics(&third)[1..], publics(&first));
        assert!(!publics(&third).contains(&publics(&second)[0]));
        assert_eq!(SigningKeys::from_stored(&third.to_stored()), Some(third.clone()));
        assert_eq!(third.private_keys(env.now()).count(), 2);
        assert_eq!(third.private_keys(until(61)).count(), 1);
        assert_eq!(publics(&third.newest()), publics(&third)[..1]);
        // After the overlap, the newest is the one that receivers have.
        let expired = first.rotated(&env, env.now());
        assert_eq!(publics(&expired.rotated(&env, until(60)))[1..], publics(&expired)[..1]);
    }

    #[test]
    fn the_json_of_keys_has_no_private_key() {
        let keys = SigningKeys::generate(&Env::system());
        let json = serde_json::to_string(&keys).unwrap();
        assert!(!json.contains("whsk_") && json.contains("whpk_"), "{json}");
        assert!(!format!("{keys:?}").contains(keys.private_keys(Timestamp::from_micros(0)).next().unwrap().reveal()));
        let read: SigningKeys = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
}
