//! API keys: only the one valid format is accepted, and every changed character is detected.

#![no_main]

use http::HeaderMap;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use svc_core::accounts::keys::KeyHash;
use svc_core::error::Error;
use svc_server::kernel::auth::bearer;

const PREFIXES: [&str; 2] = ["svc_live_", "svc_test_"];
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    random: [u8; 32],
    is_test: bool,
    at: u8,
    replacement: u8,
    header: &'a [u8],
    text: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let good = key(PREFIXES[usize::from(input.is_test)], input.random);
    let hash = KeyHash::of(&good).unwrap();

    let mut changed = good.clone().into_bytes();
    let at = usize::from(input.at) % changed.len();
    changed[at] = input.replacement;
    match String::from_utf8(changed) {
        Ok(changed) if changed != good => assert_eq!(KeyHash::of(&changed), Err(Error::InvalidKey)),
        _ => {}
    }

    if KeyHash::of(input.text).is_ok() {
        let digits = PREFIXES.iter().find_map(|prefix| input.text.strip_prefix(prefix)).unwrap();
        assert!(digits.len() == 38 && digits.bytes().all(|byte| BASE62.contains(&byte)));
    }

    // A header that yields a key contains exactly this key.
    let mut headers = HeaderMap::new();
    if let Ok(value) = input.header.try_into() {
        headers.insert("authorization", value);
        if let Ok(key) = bearer(&headers, PREFIXES[0]) {
            let text = std::str::from_utf8(input.header).unwrap();
            assert_eq!(text.get(7..).unwrap().trim(), key);
        }
    }
    headers.insert("authorization", format!("bEaReR {good}").try_into().unwrap());
    assert_eq!(bearer(&headers, PREFIXES[0]).map(KeyHash::of), Ok(Ok(hash)));
});

/// Returns a key as docs/contract.md, "API keys", defines it: 32 characters and their CRC-32 in base62.
fn key(prefix: &str, random: [u8; 32]) -> String {
    let random: String = random.iter().map(|byte| char::from(BASE62[usize::from(*byte) % 62])).collect();
    let mut rest = crc32(random.as_bytes());
    let mut sum = [b'0'; 6];
    for digit in sum.iter_mut().rev() {
        *digit = BASE62[rest as usize % 62];
        rest /= 62;
    }
    format!("{prefix}{random}{}", std::str::from_utf8(&sum).unwrap())
}

/// Computes the CRC-32 bit by bit, independently of the crate that the service uses.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}
