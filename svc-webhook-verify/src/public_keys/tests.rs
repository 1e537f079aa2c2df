use std::time::{Duration, UNIX_EPOCH};

use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

use super::*;
use crate::Verifier;

const SECRET: &str = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
/// The public key of RFC 8032, section 7.1, TEST 2.
const PUBLIC_KEY: &str = "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
/// A delivery and its `v1` entry, which the test suites of the Standard Webhooks libraries use.
const MAC_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const MAC: StandardHeaders<'_> = StandardHeaders {
    id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
    timestamp: "1649367553",
    signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
};
const MAC_BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;

fn public_key(seed: u8) -> String {
    encode_key(SigningKey::from_bytes(&[seed; 32]).verifying_key().as_bytes())
}

fn encode_key(bytes: &[u8]) -> String {
    PUBLIC_KEY_PREFIX.to_owned() + &STANDARD.encode(bytes)
}

fn sign_bytes(seed: u8, id: &str, timestamp: &str, body: &[u8]) -> [u8; 64] {
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    SigningKey::from_bytes(&[seed; 32]).sign(&signed).to_bytes()
}

fn sign(seed: u8, id: &str, timestamp: &str, body: &[u8]) -> String {
    format!("v1a,{}", STANDARD.encode(sign_bytes(seed, id, timestamp, body)))
}

/// Returns a verifier that has the public keys of these seeds, no secret, and no maximum age.
fn verifier(seeds: &[u8]) -> Verifier {
    let all = |verifier: Verifier, seed: &u8| verifier.with_public_key(&public_key(*seed)).unwrap();
    seeds.iter().fold(Verifier::without_keys().without_max_age(), all)
}

fn standard<'a>(id: &'a str, timestamp: &'a str, signature: &'a str) -> StandardHeaders<'a> {
    StandardHeaders { id, timestamp, signature }
}

#[test]
fn the_id_the_timestamp_and_the_body_are_signed() {
    let (verifier, signature) = (verifier(&[1]), sign(1, "a", "1", b"2.x"));
    let check = |id, timestamp, body| verifier.verify_standard(standard(id, timestamp, &signature), body);
    assert_eq!(check("a", "1", b"2.x"), Ok(()));
    assert_eq!(check("b", "1", b"2.x"), Err(VerifyError::Mismatch));
    assert_eq!(check("a", "2", b"2.x"), Err(VerifyError::Mismatch));
    assert_eq!(check("a", "01", b"2.x"), Err(VerifyError::Mismatch));
    assert_eq!(check("a", "1", b"2.y"), Err(VerifyError::Mismatch));
    // These have the same signed bytes as the delivery.
    assert_eq!(check("a.1", "2", b"x"), Err(VerifyError::InvalidId));
    assert_eq!(check("", "a", b"1.2.x"), Err(VerifyError::InvalidId));
}

#[test]
fn a_signature_that_matches_any_key_is_enough() {
    let body = b"x";
    let [first, second, third] = [1, 2, 3].map(|seed| sign(seed, "a", "1", body));
    let check = |seeds: &[u8], signature: &str| verifier(seeds).verify_standard(standard("a", "1", signature), body);
    for seeds in [&[1, 2][..], &[2, 1]] {
        for signature in [first.clone(), second.clone(), format!("{third} {second}"), format!("{first} {third}")] {
            assert_eq!(check(seeds, &signature), Ok(()), "{signature}");
        }
        assert_eq!(check(seeds, &third), Err(VerifyError::Mismatch));
    }
    assert_eq!(check(&[3], &format!("{first} {second}")), Err(VerifyError::Mismatch));
}

#[test]
fn a_secret_and_a_key_accept_what_either_accepts_alone() {
    let StandardHeaders { id, timestamp, signature: mac } = MAC;
    let (right, wrong) = (sign(1, id, timestamp, MAC_BODY), sign(2, id, timestamp, MAC_BODY));
    let check = |secret, signature: &str| {
        let verifier = verifier(&[1]).with_secret(secret).unwrap();
        verifier.verify_standard(standard(id, timestamp, signature), MAC_BODY)
    };
    for (secret, signature, expected) in [
        (MAC_SECRET, format!("{mac} {right}"), Ok(())),
        (MAC_SECRET, format!("{mac} {wrong}"), Ok(())),
        (MAC_SECRET, format!("{mac} v1a,abc="), Ok(())),
        (MAC_SECRET, mac.to_owned(), Ok(())),
        (SECRET, format!("{mac} {right}"), Ok(())),
        (SECRET, format!("v1,abc= {right}"), Ok(())),
        (SECRET, right.clone(), Ok(())),
        ("whsec_not-base64", format!("{mac} {right}"), Ok(())),
        (SECRET, format!("{mac} {wrong}"), Err(VerifyError::Mismatch)),
        (SECRET, mac.to_owned(), Err(VerifyError::Mismatch)),
        (SECRET, wrong.clone(), Err(VerifyError::Mismatch)),
        (SECRET, "v1a,abc=".to_owned(), Err(VerifyError::V1aNotBase64)),
        (SECRET, format!("v1,abc= {wrong}"), Err(VerifyError::NotBase64)),
        ("whsec_not-base64", format!("{mac} {wrong}"), Err(VerifyError::SecretNotBase64)),
        (SECRET, "v2,abc=".to_owned(), Err(VerifyError::NoV1Signature)),
        (SECRET, String::new(), Err(VerifyError::EmptyHeader)),
    ] {
        assert_eq!(check(secret, &signature), expected, "{secret} {signature}");
    }
}

#[test]
fn without_a_secret_only_v1a_entries_count() {
    let verifier = verifier(&[1]);
    let check = |signature: &str| {
        let headers = StandardHeaders { signature, ..MAC };
        verifier.verify_standard(headers, MAC_BODY)
    };
    assert_eq!(check(MAC.signature), Err(VerifyError::NoV1aSignature));
    assert_eq!(check(""), Err(VerifyError::EmptyHeader));
    // The empty key of HMAC, with which anyone can sign.
    assert_eq!(check("v1,TxHn/RBa2mQ2GpApCz3ahGwUTfWQtptCladBBU+Nv9k="), Err(VerifyError::NoV1aSignature));
    let right = sign(1, MAC.id, MAC.timestamp, MAC_BODY);
    assert_eq!(check(&format!("v1,abc= {right}")), Ok(()));
}

#[test]
fn the_header_of_the_secret_needs_a_secret() {
    let verifier = verifier(&[1]);
    for header in ["sha256=00", "v1,abc=", " "] {
        assert_eq!(verifier.verify(header, b""), Err(VerifyError::NoSecret), "{header}");
    }
    assert_eq!(verifier.verify("", b""), Err(VerifyError::EmptyHeader));
    let signature = "sha256=a6b61cd6258c4ba2cd4ad5123acce1386872971facc0bc21894c6347157382bf";
    assert_eq!(verifier.verify(signature, b""), Err(VerifyError::NoSecret));
    assert_eq!(verifier.with_secret(SECRET).unwrap().verify(signature, b""), Ok(()));
}

#[cfg(feature = "http")]
#[test]
fn a_verifier_without_a_secret_takes_the_standard_headers() {
    let verifier = verifier(&[1]);
    let mut headers = http::HeaderMap::new();
    let check = |headers: &http::HeaderMap| verifier.verify_headers_at(headers, b"x", UNIX_EPOCH);
    assert_eq!(check(&headers), Err(VerifyError::EmptyHeader));
    headers.insert("x-svc-signature", "sha256=00".parse().unwrap());
    assert_eq!(check(&headers), Err(VerifyError::NoSecret));
    for (name, value) in [("webhook-id", "a"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,abc=")] {
        headers.insert(name, value.parse().unwrap());
    }
    assert_eq!(check(&headers), Err(VerifyError::NoV1aSignature));
    headers.insert("webhook-signature", sign(1, "a", "1", b"x").parse().unwrap());
    assert_eq!(check(&headers), Ok(()));
}

#[test]
fn the_age_is_checked_after_the_signature() {
    let verifier = Verifier::from_public_key(&public_key(1)).unwrap();
    let right = sign(1, "a", "1000", b"");
    let headers = standard("a", "1000", &right);
    let at = |seconds| verifier.verify_standard_at(headers, b"", UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(1300), Ok(()));
    assert_eq!(at(1301), Err(VerifyError::Stale { age: Duration::from_secs(301) }));
    assert_eq!(at(939), Err(VerifyError::FromFuture { ahead: Duration::from_secs(61) }));
    let refused = verifier.verify_standard(headers, b"");
    assert!(matches!(refused, Err(VerifyError::Stale { .. })), "{refused:?}");
    assert_eq!(verifier.verify_standard(headers, b"x"), Err(VerifyError::Mismatch));
}

#[test]
fn malformed_keys_are_refused_without_repeating_them() {
    let secret = STANDARD.encode([7; 32]);
    for (key, expected) in [
        (String::new(), VerifyError::EmptyPublicKey),
        (format!("whsec_{secret}"), VerifyError::NotPublicKey),
        (format!("whsk_{secret}"), VerifyError::NotPublicKey),
        (format!(" {PUBLIC_KEY}"), VerifyError::NotPublicKey),
        (format!("WHPK_{secret}"), VerifyError::NotPublicKey),
        (secret.clone(), VerifyError::NotPublicKey),
        (format!("{PUBLIC_KEY}\n"), VerifyError::PublicKeyNotBase64),
        (format!("whpk_whsk_{secret}"), VerifyError::PublicKeyNotBase64),
        ("whpk_".to_owned(), VerifyError::PublicKeyWrongLength { found: 0 }),
        (encode_key(&[7; 31]), VerifyError::PublicKeyWrongLength { found: 31 }),
        (encode_key(&[7; 64]), VerifyError::PublicKeyWrongLength { found: 64 }),
        // No point has this y.
        (encode_key(&[[2].as_slice(), &[0; 31]].concat()), VerifyError::InvalidPublicKey),
    ] {
        let error = Verifier::from_public_key(&key).unwrap_err();
        assert_eq!(error, expected);
        let added = Verifier::new(SECRET).unwrap().with_public_key(&key);
        assert_eq!(added.err(), Some(expected), "{key}");
        assert!(!format!("{error} {error:?}").contains(&secret), "{error}");
        assert!(error.to_string().contains("; pass "), "{error}");
    }
    assert!(Verifier::from_public_key(PUBLIC_KEY).is_ok());
}

#[test]
fn keys_of_small_order_are_refused() {
    let order_8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
    for (hex, order) in [
        ("01", "1"),
        ("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "2"),
        ("", "4"),
        ("0000000000000000000000000000000000000000000000000000000000000080", "4, the other sign"),
        ("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "4, not canonical"),
        ("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "1, not canonical"),
        (order_8, "8"),
    ] {
        let mut bytes = hex::decode(hex).unwrap();
        bytes.resize(32, 0);
        assert_eq!(parse_public_key(&encode_key(&bytes)), Err(VerifyError::InvalidPublicKey), "order {order}");
    }
}

#[test]
fn only_canonical_padded_base64_is_accepted() {
    let with = |signature: String| verifier(&[1]).verify_standard(standard("a", "1", &signature), b"");
    let zeros = "A".repeat(85);
    assert_eq!(with(format!("v1a,{zeros}A==")), Err(VerifyError::Mismatch), "64 bytes in canonical form");
    for (text, fault) in [
        (format!("{zeros}A"), "no padding"),
        (format!("{zeros}A="), "too little padding"),
        (format!("{zeros}B=="), "bits after the last byte"),
        (format!("-{}A==", &zeros[1..]), "the URL-safe alphabet"),
        (format!("{zeros}A\n=="), "white space"),
        (format!("{}==", &zeros[1..]), "63 bytes"),
        (format!("{zeros}AA="), "65 bytes"),
        (String::new(), "nothing"),
    ] {
        assert_eq!(with(format!("v1a,{text}")), Err(VerifyError::V1aNotBase64), "{fault}");
    }
    assert_eq!(with(" v1a".to_owned()), Err(VerifyError::NoV1aSignature));
    assert_eq!(with(format!("V1A,{zeros}A==")), Err(VerifyError::NoV1aSignature));

    let key = PUBLIC_KEY.replace("Zgw=", "Zgx=");
    assert_eq!(parse_public_key(&key), Err(VerifyError::PublicKeyNotBase64), "bits after the last byte");
}

#[test]
fn the_number_of_signatures_is_limited() {
    let (right, wrong) = (sign(1, "a", "1", b""), sign(2, "a", "1", b""));
    let with = |others: usize| {
        let header = format!("v1,abc= {}{right}", format!("{wrong} ").repeat(others));
        verifier(&[1]).verify_standard(standard("a", "1", &header), b"")
    };
    assert_eq!(with(MAX_SIGNATURES - 1), Ok(()));
    assert_eq!(with(MAX_SIGNATURES), Err(VerifyError::TooManySignatures { found: MAX_SIGNATURES + 1 }));
}

#[test]
fn debug_shows_no_key() {
    let verifier = Verifier::new(SECRET).unwrap().with_public_key(PUBLIC_KEY).unwrap();
    let expected = "Verifier { secrets: 1, public_keys: 1, max_age: Some(300s), future_tolerance: 60s, .. }";
    assert_eq!(format!("{verifier:?}"), expected);
}

proptest! {
    // Ed25519 takes milliseconds in a debug build.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_input_panics(
        key in "(whpk_)?[A-Za-z0-9+/=]{0,50}|whpk_[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=|\\PC*",
        signature in "(v1a?,[A-Za-z0-9+/]{85}[AQgw]==( |v1,abc=)?){0,3}|\\PC*",
        id in "[a-z.]{0,4}|\\PC*", timestamp in "[0-9]{0,25}|\\PC*", body: Vec<u8>,
    ) {
        let headers = standard(&id, &timestamp, &signature);
        let _ = verifier(&[1]).verify_standard(headers, &body);
        if let Ok(verifier) = Verifier::from_public_key(&key) {
            prop_assert!(verifier.verify_standard_at(headers, &body, UNIX_EPOCH).is_err());
            prop_assert!(verifier.with_secret(SECRET).unwrap().verify_standard(headers, &body).is_err());
        }
    }

    #[test]
    fn a_signature_of_another_key_never_passes(
        own: u8, other: u8, id in "[a-z]{1,9}", timestamp in 0..1_u32 << 31, body: Vec<u8>,
    ) {
        prop_assume!(own != other);
        let timestamp = timestamp.to_string();
        let [right, wrong] = [own, other].map(|seed| sign(seed, &id, &timestamp, &body));
        let check = |signature: &str| verifier(&[own]).verify_standard(standard(&id, &timestamp, signature), &body);
        prop_assert_eq!(check(&right), Ok(()));
        prop_assert_eq!(check(&wrong), Err(VerifyError::Mismatch));
        prop_assert_eq!(check(&format!("{wrong} {right}")), Ok(()));
    }

    #[test]
    fn any_flipped_bit_of_a_signature_is_refused(at in 0..64_usize, bit in 0..8_u8, body: Vec<u8>) {
        let mut signature = sign_bytes(1, "a", "1", &body);
        signature[at] ^= 1 << bit;
        let header = format!("v1a,{}", STANDARD.encode(signature));
        prop_assert_eq!(verifier(&[1]).verify_standard(standard("a", "1", &header), &body), Err(VerifyError::Mismatch));
    }

    #[test]
    fn any_flipped_bit_of_a_body_is_refused(
        mut body in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, bit in 0..8_u8,
    ) {
        let signature = sign(1, "a", "1", &body);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        let refused = verifier(&[1]).verify_standard(standard("a", "1", &signature), &body);
        prop_assert_eq!(refused, Err(VerifyError::Mismatch));
    }
}
