use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Map, json};

use super::*;

/// Keys, and tokens of the same claims that they signed with each algorithm: made by another library (cryptography in
/// Python).
const SIGNED: &str = include_str!("signed.json");
const NAMES: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// Within the lifetime of the tokens.
const NOW: i64 = 1_767_225_700;

fn keys(of: &Value) -> Vec<Key> {
    of.as_array().unwrap().iter().map(|key| serde_json::from_value(key.clone()).unwrap()).collect()
}

fn verify(token: &str, keys: &[Key], seconds: i64) -> Result<Claims, TokenError> {
    let algorithms = NAMES.map(str::to_owned);
    let (issuer, client_id, nonce) = ("https://id.example.com", "svc", "a nonce");
    let now = Timestamp::from_micros(seconds * 1_000_000);
    Expectations { issuer, client_id, nonce, algorithms: &algorithms, keys, now }.verify(token)
}

#[test]
fn each_algorithm_is_verified_as_another_library_signs() {
    let signed: Value = serde_json::from_str(SIGNED).unwrap();
    let keys = keys(&signed["keys"]);
    for token in signed["tokens"].as_array().unwrap() {
        let token = token.as_str().unwrap();
        let claims = verify(token, &keys, NOW).unwrap();
        assert_eq!((claims.sub.as_str(), claims.email.email_verified), ("248289761001", Some(Flag(true))));
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        signature[40] ^= 1;
        let spoilt = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert_eq!(verify(&spoilt, &keys, NOW).unwrap_err(), Invalid("its signature is wrong"), "{message}");
    }
    assert_eq!(signed["tokens"].as_array().unwrap().len(), NAMES.len());
}

#[test]
fn a_key_of_1024_bits_proves_nothing() {
    let signed: Value = serde_json::from_str(SIGNED).unwrap();
    let keys = keys(&json!([signed["weak_key"]]));
    let refused = verify(signed["weak_token"].as_str().unwrap(), &keys, NOW).unwrap_err();
    assert_eq!(refused, Invalid("its signature is wrong"));
}

fn pair(name: &str) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&sha256(name.as_bytes())).unwrap()
}

fn public(name: &str, more: Value) -> Key {
    let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(pair(name).public_key()) });
    key.as_object_mut().unwrap().extend::<Map<_, _>>(more.as_object().unwrap().clone());
    serde_json::from_value(key).unwrap()
}

/// Returns a token of a header and claims that differ from those of a good one as given. Null takes a member away.
fn token(header: Value, claims: Value) -> String {
    let with = |mut good: Value, more: Value| {
        let members = good.as_object_mut().unwrap();
        members.extend::<Map<_, _>>(more.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_null());
        URL_SAFE_NO_PAD.encode(good.to_string())
    };
    let good = json!({
        "iss": "https://id.example.com", "sub": "1", "aud": "svc", "iat": NOW - 1, "exp": NOW + 1, "nonce": "a nonce",
    });
    let message = format!("{}.{}", with(json!({ "alg": "EdDSA" }), header), with(good, claims));
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair("own").sign(message.as_bytes())))
}

#[test]
fn a_header_or_a_claim_that_does_not_fit_is_refused() {
    let keys = [public("own", json!({ "kid": "own" }))];
    for (header, claims) in [
        (json!({ "kid": "own", "typ": "JWT" }), json!({ "azp": "svc" })),
        (json!({ "typ": "application/jwt" }), json!({ "aud": ["svc"], "exp": NOW as f64 + 0.5 })),
        (json!({}), json!({ "iat": NOW + 300 })),
    ] {
        verify(&token(header, claims), &keys, NOW).unwrap();
    }
    for header in [
        json!({ "crit": ["exp"] }),
        json!({ "cty": "JWT" }),
        json!({ "typ": "at+jwt" }),
        json!({ "alg": "none" }),
        json!({ "alg": "HS256" }),
        json!({ "alg": "ES256" }),
        json!({ "alg": null }),
        json!({ "kid": "another" }),
    ] {
        assert!(verify(&token(header.clone(), json!({})), &keys, NOW).is_err(), "{header}");
    }
    for claims in [
        json!({ "iss": "https://id.example.com/" }),
        json!({ "aud": [] }),
        json!({ "aud": ["svc", "another"] }),
        json!({ "azp": "another" }),
        json!({ "exp": NOW }),
        json!({ "exp": (NOW + 1).to_string() }),
        json!({ "exp": null }),
        json!({ "iat": null }),
        json!({ "iat": NOW + 301 }),
        json!({ "iat": 1e300 }),
        json!({ "sub": null }),
        json!({ "aud": null }),
        json!({ "nonce": null }),
        json!({ "nonce": "another" }),
    ] {
        assert!(verify(&token(json!({}), claims.clone()), &keys, NOW).is_err(), "{claims}");
    }
}

#[test]
fn whether_an_address_is_verified_may_be_a_text() {
    for (value, verified) in [
        (json!(true), Some(Flag(true))),
        (json!("true"), Some(Flag(true))),
        (json!(false), Some(Flag(false))),
        (json!("false"), Some(Flag(false))),
        (json!("yes"), Some(Flag(false))),
        (json!(1), Some(Flag(false))),
        (json!(null), None),
    ] {
        let claims = verify(&token(json!({}), json!({ "email_verified": value })), &[public("own", json!({}))], NOW);
        assert_eq!(claims.unwrap().email.email_verified, verified, "{value}");
    }
}

#[test]
fn one_key_of_the_provider_suits_a_token() {
    let own = |more| public("own", more);
    let verify = |header, keys: &[Key]| verify(&token(header, json!({})), keys, NOW).map(|claims| claims.sub);
    let accepted = Ok("1".to_owned());
    let two = [own(json!({ "kid": "a" })), public("another", json!({ "kid": "b" }))];
    assert_eq!(verify(json!({ "kid": "a" }), &two), accepted);
    assert_eq!(verify(json!({ "kid": "b" }), &two), Err(Invalid("its signature is wrong")));
    assert_eq!(verify(json!({}), &two), Err(Invalid("more than one key of the provider may have signed it")));
    assert_eq!(verify(json!({}), &[own(json!({ "use": "sig", "alg": "EdDSA" }))]), accepted);
    for unsuitable in
        [json!({ "use": "enc" }), json!({ "alg": "ES256" }), json!({ "crv": "Ed448" }), json!({ "kty": "EC" })]
    {
        assert_eq!(verify(json!({}), &[own(unsuitable)]), Err(TokenError::UnknownKey));
    }
    assert_eq!(verify(json!({}), &[]), Err(TokenError::UnknownKey));
}
