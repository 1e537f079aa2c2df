//! Runs the vectors of `fixtures/webhooks/vectors.json`, which also test the functions in `docs/programs/`.
//!
//! Those with a public key need the feature `ed25519`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests and their helpers may panic")]

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError, verify};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/webhooks/vectors.json");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    secret: Option<String>,
    public_key: Option<String>,
    body: Option<String>,
    body_base64: Option<String>,
    signature: Option<String>,
    webhook_id: Option<String>,
    webhook_timestamp: Option<String>,
    webhook_signature: Option<String>,
    valid: bool,
    error: Option<String>,
    now: Option<u64>,
    max_age_seconds: Option<u64>,
    delivered_at: Option<String>,
    /// Whether other verifiers may accept the delivery. This one does not.
    #[serde(default, rename = "lenient")]
    _lenient: bool,
}

impl Vector {
    fn body(&self) -> Vec<u8> {
        match (&self.body, &self.body_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).unwrap(),
            _ => panic!("{}: a vector has either body or body_base64", self.name),
        }
    }

    fn run(&self) -> Result<(), VerifyError> {
        if let Some(text) = &self.delivered_at {
            assert!(String::from_utf8_lossy(&self.body()).contains(text.as_str()));
        }
        self.verify(&self.verifier()?)
    }

    /// Creates a verifier with the age of the vector.
    fn verifier(&self) -> Result<Verifier, VerifyError> {
        let verifier = self.verifier_of_default_age()?;
        Ok(match self.max_age_seconds {
            Some(seconds) => verifier.max_age(Duration::from_secs(seconds)),
            None => verifier.without_max_age(),
        })
    }

    #[cfg(not(feature = "ed25519"))]
    fn verifier_of_default_age(&self) -> Result<Verifier, VerifyError> {
        Verifier::new(self.secret.as_deref().unwrap())
    }

    #[cfg(feature = "ed25519")]
    fn verifier_of_default_age(&self) -> Result<Verifier, VerifyError> {
        match (&self.secret, &self.public_key) {
            (Some(secret), None) => Verifier::new(secret),
            (None, Some(key)) => Verifier::from_public_key(key),
            (Some(secret), Some(key)) => Verifier::new(secret)?.with_public_key(key),
            (None, None) => panic!("{}: a vector has a secret or a public key", self.name),
        }
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.now.unwrap_or_default())
    }

    fn verify(&self, verifier: &Verifier) -> Result<(), VerifyError> {
        assert_eq!(self.now.is_some(), self.max_age_seconds.is_some(), "{}: max_age_seconds needs now", self.name);
        let (body, now) = (self.body(), self.now());
        match &self.signature {
            Some(signature) => verifier.verify_at(signature, &body, now),
            None => {
                let headers = StandardHeaders {
                    id: self.webhook_id.as_deref().unwrap(),
                    timestamp: self.webhook_timestamp.as_deref().unwrap(),
                    signature: self.webhook_signature.as_deref().unwrap(),
                };
                verifier.verify_standard_at(headers, &body, now)
            }
        }
    }
}

fn all_vectors() -> Vec<Vector> {
    let text = std::fs::read_to_string(VECTORS).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns the vectors that the features of the crate can run.
fn vectors() -> Vec<Vector> {
    let supported = |vector: &Vector| cfg!(feature = "ed25519") || vector.public_key.is_none();
    all_vectors().into_iter().filter(supported).collect()
}

#[test]
fn every_vector_has_the_expected_result() {
    for vector in vectors() {
        let result = vector.run();
        let error = result.as_ref().err().map(VerifyError::code);
        assert_eq!(error, vector.error.as_deref(), "{}", vector.name);
        assert_eq!(result.is_ok(), vector.valid, "{}", vector.name);
    }
}

#[test]
fn five_minutes_are_the_default_age_of_all_schemes() {
    let mut checked = [0, 0, 0];
    for vector in vectors().iter().filter(|vector| vector.max_age_seconds == Some(300)) {
        let code = vector.verify(&vector.verifier_of_default_age().unwrap()).err().map(|error| error.code());
        assert_eq!(code, vector.error.as_deref(), "{}", vector.name);
        checked[usize::from(vector.webhook_signature.is_some()) + usize::from(vector.public_key.is_some())] += 1;
    }
    assert_eq!(checked, [12, 3, if cfg!(feature = "ed25519") { 5 } else { 0 }]);
}

#[cfg(feature = "http")]
#[test]
fn headers_have_the_result_of_their_scheme() {
    use http::{HeaderMap, HeaderValue};

    for vector in vectors() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-svc-signature", &vector.signature),
            ("webhook-id", &vector.webhook_id),
            ("webhook-timestamp", &vector.webhook_timestamp),
            ("webhook-signature", &vector.webhook_signature),
        ] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
        }
        let result =
            vector.verifier().and_then(|verifier| verifier.verify_headers_at(&headers, &vector.body(), vector.now()));
        let error = result.err();
        assert_eq!(error.as_ref().map(VerifyError::code), vector.error.as_deref(), "{}", vector.name);
    }
}

#[test]
fn the_function_agrees_with_vectors_without_a_maximum_age() {
    for vector in vectors() {
        if let (Some(secret), Some(signature), None) = (&vector.secret, &vector.signature, vector.max_age_seconds) {
            let error = verify(secret, signature, &vector.body()).err();
            let code = error.as_ref().map(VerifyError::code);
            assert_eq!(code, vector.error.as_deref(), "{}", vector.name);
        }
    }
}

#[test]
fn the_vectors_have_unique_names_and_cover_every_error() {
    let vectors = all_vectors();
    let names: BTreeSet<_> = vectors.iter().map(|vector| &vector.name).collect();
    assert_eq!(names.len(), vectors.len());
    let errors: BTreeSet<_> = vectors.iter().filter_map(|vector| vector.error.as_deref()).collect();
    // All errors but `malformed_body`, which only deserialization can return.
    let all = BTreeSet::from([
        "empty_header",
        "empty_public_key",
        "empty_secret",
        "from_future",
        "invalid_delivered_at",
        "invalid_id",
        "invalid_public_key",
        "invalid_timestamp",
        "mismatch",
        "missing_delivered_at",
        "missing_prefix",
        "no_secret",
        "no_v1_signature",
        "no_v1a_signature",
        "not_base64",
        "not_hex",
        "not_public_key",
        "public_key_as_secret",
        "public_key_not_base64",
        "public_key_wrong_length",
        "secret_not_base64",
        "secret_whitespace",
        "stale",
        "too_many_signatures",
        "upper_case_hex",
        "v1a_not_base64",
        "wrong_length",
    ]);
    assert_eq!(errors, all);
}
