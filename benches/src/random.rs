//! Random numbers, and bodies of contacts with random emails.

use svc_core::env::Env;

/// The number of hex digits in a random email.
pub(crate) const DIGITS: usize = 16;

/// Returns a body that creates a contact with these digits in its email.
pub(crate) fn body(digits: &str) -> String {
    format!(
        r#"{{"email":"{digits}@example.com","first_name":"Ada","last_name":"Lovelace","phone":"+61 2 5550 1234","company_name":"Analytical Engines Pty Ltd","city":"Sydney","state":"NSW","postcode":"2000"}}"#
    )
}

/// Returns the digits of a [`body`] inside `bytes`.
pub(crate) fn digits_in(bytes: &[u8]) -> Option<[u8; DIGITS]> {
    let name = br#""email":""#;
    let at = bytes.windows(name.len()).position(|window| window == name)? + name.len();
    bytes.get(at..at + DIGITS)?.try_into().ok()
}

/// SplitMix64. The numbers must be cheap, not unpredictable.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(u64::from_be_bytes(Env::system().bytes()))
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    pub(crate) fn write_digits(&mut self, field: &mut [u8]) {
        let mut number = self.number();
        for digit in field {
            *digit = b"0123456789abcdef"[(number & 15) as usize];
            number >>= 4;
        }
    }

    pub(crate) fn digits(&mut self) -> String {
        let mut field = [0; DIGITS];
        self.write_digits(&mut field);
        String::from_utf8_lossy(&field).into_owned()
    }
}
