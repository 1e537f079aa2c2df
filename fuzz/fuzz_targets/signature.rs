//! Signatures, of deliveries and of requests: exactly the right header is accepted, and no input panics.

#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;
use svc_core::input::json::{self, Json};
use svc_core::webhooks::signatures;
use svc_core::accounts::signing::SignedRequest;
use svc_core::values::{Secret, Timestamp};
use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError, verify};

#[derive(Arbitrary, Debug)]
struct Sent<'a> {
    secret: &'a str,
    header: &'a str,
    id: &'a str,
    timestamp: &'a str,
    flipped: u16,
    seconds: u32,
    body: &'a [u8],
}

fuzz_target!(|sent: Sent<'_>| {
    let now = UNIX_EPOCH + Duration::from_secs(sent.seconds.into());
    let Ok(verifier) = Verifier::new(sent.secret) else {
        let unusable = sent.secret.is_empty() || sent.secret.contains(char::is_whitespace);
        assert!(unusable, "{:?}", sent.secret);
        return;
    };
    let right = format!("sha256={}", hex::encode(&mac(sent.secret.as_bytes(), &[sent.body])));
    assert_eq!(signatures::webhook_signature(&Secret::new(sent.secret), sent.body), right);
    assert_eq!(verify(sent.secret, &right, sent.body), Ok(()));
    assert_eq!(verify(sent.secret, sent.header, sent.body).is_ok(), sent.header == right);
    let mut changed = right.clone().into_bytes();
    let at = usize::from(sent.flipped >> 3) % changed.len();
    changed[at] ^= 1 << (sent.flipped & 7);
    if let Ok(changed) = String::from_utf8(changed) {
        verify(sent.secret, &changed, sent.body).unwrap_err();
        verifier.verify_at(&changed, sent.body, now).unwrap_err();
    }

    age(verifier.clone().max_age(Duration::MAX).future_tolerance(Duration::MAX), &right, &sent);
    standard(&verifier, &sent);
    request(&sent);
});

/// `delivered_at` is that which the strict parser finds.
fn age(verifier: Verifier, right: &str, sent: &Sent<'_>) {
    let found = verifier.verify_at(right, sent.body, UNIX_EPOCH);
    let Ok(Json::Object(members)) = json::parse(sent.body) else { return };
    // Escapes, which the sender never writes there, are not undone.
    if sent.body.contains(&b'\\') {
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

fn standard(verifier: &Verifier, sent: &Sent<'_>) {
    let Sent { id, timestamp, header, body, .. } = *sent;
    let right = signatures::standard_webhook_signature(&Secret::new(sent.secret), id, timestamp, body);
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

fn request(sent: &Sent<'_>) {
    let secret = Secret::new(sent.secret);
    let signed = SignedRequest { timestamp: sent.timestamp, method: "POST", path_and_query: sent.id, body: sent.body };
    let now = Timestamp::from_micros(i64::from(sent.seconds) * 1_000_000);
    let right = signed.sign(&secret);
    assert!(signed.verify(&secret, sent.header, now).is_err() || sent.header == right);
    if signed.verify(&secret, &right, now).is_ok() {
        let at: u64 = sent.timestamp.parse().unwrap();
        assert!(at.abs_diff(sent.seconds.into()) <= 300);
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}
