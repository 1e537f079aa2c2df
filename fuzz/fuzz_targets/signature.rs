//! Signatures of deliveries, by secrets and by keys, and of requests: only the right header is accepted, and no input
//! panics.

#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;
use svc_core::accounts::signing::SignedRequest;
use svc_core::input::json::{self, Json};
use svc_core::values::{Secret, Timestamp};
use svc_core::webhooks::signatures;
use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError, verify};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    secret: &'a str,
    header: &'a str,
    id: &'a str,
    timestamp: &'a str,
    flipped: u16,
    seconds: u32,
    body: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    check_public_keys(&input);
    let now = UNIX_EPOCH + Duration::from_secs(input.seconds.into());
    let Ok(verifier) = Verifier::new(input.secret) else {
        let public = input.secret.starts_with("whpk_");
        let unusable = public || input.secret.is_empty() || input.secret.contains(char::is_whitespace);
        assert!(unusable, "{:?}", input.secret);
        return;
    };
    let right = format!("sha256={}", hex(&mac(input.secret.as_bytes(), &[input.body])));
    assert_eq!(signatures::webhook_signature(&Secret::new(input.secret), input.body), right);
    assert_eq!(verify(input.secret, &right, input.body), Ok(()));
    assert_eq!(verify(input.secret, input.header, input.body).is_ok(), input.header == right);
    let mut changed = right.clone().into_bytes();
    let at = usize::from(input.flipped >> 3) % changed.len();
    changed[at] ^= 1 << (input.flipped & 7);
    if let Ok(changed) = String::from_utf8(changed) {
        verify(input.secret, &changed, input.body).unwrap_err();
        verifier.verify_at(&changed, input.body, now).unwrap_err();
    }

    check_age(verifier.clone().max_age(Duration::MAX).future_tolerance(Duration::MAX), &right, &input);
    check_standard_webhooks(&verifier.without_max_age(), &input);
    check_request(&input);
});

/// Checks that the verifier finds the same `delivered_at` as the strict parser.
fn check_age(verifier: Verifier, right: &str, input: &Input<'_>) {
    let found = verifier.verify_at(right, input.body, UNIX_EPOCH);
    let Ok(Json::Object(members)) = json::parse(input.body) else { return };
    // The verifier does not decode escapes, which the sender never writes in this field.
    if input.body.contains(&b'\\') {
        return;
    }
    match members.into_iter().find(|(name, _)| name == "delivered_at") {
        Some((_, Json::String(text))) => match found {
            Ok(()) => assert!(Timestamp::parse(&text).is_ok(), "{text}"),
            Err(error) => assert_eq!(error, VerifyError::InvalidDeliveredAt),
        },
        _ => assert_eq!(found, Err(VerifyError::MissingDeliveredAt)),
    }
}

fn check_standard_webhooks(verifier: &Verifier, input: &Input<'_>) {
    let Input { id, timestamp, header, body, .. } = *input;
    let right = signatures::standard_webhook_signature(&Secret::new(input.secret), id, timestamp, body);
    let check = |signature: &str| verifier.verify_standard(StandardHeaders { id, timestamp, signature }, body);
    let several = header.split(' ').any(|entry| entry == right);
    assert!(check(header).is_err() || several);
    match check(&right) {
        Ok(()) => assert_eq!(check(&format!("v1a,x {right}")), Ok(())),
        Err(error) => assert!(
            matches!(error, VerifyError::InvalidId | VerifyError::InvalidTimestamp | VerifyError::SecretNotBase64),
            "{error}"
        ),
    }
}

/// Checks the verifier that has a public key and no secret. The private key is made from the secret.
fn check_public_keys(input: &Input<'_>) {
    let Input { secret, id, timestamp, header, body, .. } = *input;
    if Verifier::from_public_key(secret).is_ok() {
        assert!(secret.starts_with("whpk_"), "{secret:?}");
    }
    let private = Secret::new(format!("whsk_{}", STANDARD.encode(mac(secret.as_bytes(), &[]))));
    let public = signatures::public_key(&private).unwrap();
    let right = signatures::asymmetric_webhook_signature(&private, id, timestamp, body).unwrap();
    let verifier = Verifier::from_public_key(&public).unwrap().without_max_age();
    let check = |signature: &str| verifier.verify_standard(StandardHeaders { id, timestamp, signature }, body);
    assert!(check(header).is_err() || header.split(' ').any(|entry| entry == right));
    match check(&right) {
        Ok(()) => {
            assert_eq!(check(&format!("v1,x {right}")), Ok(()));
            let mut changed = right.into_bytes();
            let at = usize::from(input.flipped >> 3) % changed.len();
            changed[at] ^= 1 << (input.flipped & 7);
            if let Ok(changed) = String::from_utf8(changed) {
                check(&changed).unwrap_err();
            }
        }
        Err(error) => {
            assert!(matches!(error, VerifyError::InvalidId | VerifyError::InvalidTimestamp), "{error}");
        }
    }
}

fn check_request(input: &Input<'_>) {
    let secret = Secret::new(input.secret);
    let signed =
        SignedRequest { timestamp: input.timestamp, method: "POST", path_and_query: input.id, body: input.body };
    let now = Timestamp::from_micros(i64::from(input.seconds) * 1_000_000);
    let right = signed.sign(&secret);
    assert!(signed.verify(&secret, input.header, now).is_err() || input.header == right);
    if signed.verify(&secret, &right, now).is_ok() {
        // Seconds, with decimals where the client writes them.
        let at: f64 = input.timestamp.parse().unwrap();
        assert!((at - f64::from(input.seconds)).abs() < 301.0, "{at}");
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
