//! Requests as bytes: one template per tenant with a field in it that is written over each time.

use std::sync::Arc;

use svc_core::env::Env;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::options::Subject;
use crate::seed::Tenant;

/// An endless supply of requests of one kind.
pub(crate) struct Requests {
    /// The status of a good answer.
    pub(crate) status: [u8; 3],
    tenants: Arc<[Tenant]>,
    templates: Vec<Template>,
    random: Random,
}

#[derive(Clone)]
struct Template {
    bytes: Vec<u8>,
    /// Where the field begins.
    field: usize,
    kind: Field,
}

#[derive(Clone, Copy)]
enum Field {
    Nothing,
    Id,
    Digits,
}

/// Stands for the field in a template.
const FIELD: &str = "~";
/// Hex digits that make an address new.
pub(crate) const DIGITS: usize = 16;

impl Requests {
    /// Of a subject, over all tenants. There are none of [`Subject::Commit`] and [`Subject::Aged`], and those of
    /// [`Subject::Deliver`] and [`Subject::Pipe`] are POSTs.
    pub(crate) fn new(subject: Subject, tenants: &Arc<[Tenant]>) -> Self {
        let status = if matches!(subject, Subject::Post | Subject::Deliver | Subject::Pipe | Subject::PgPost) {
            *b"201"
        } else {
            *b"200"
        };
        let templates = tenants.iter().map(|tenant| Template::new(subject, &tenant.key)).collect();
        Self { status, tenants: Arc::clone(tenants), templates, random: Random::new() }
    }

    /// The same kind in another random order.
    pub(crate) fn fork(&self) -> Self {
        let (tenants, templates) = (Arc::clone(&self.tenants), self.templates.clone());
        Self { status: self.status, tenants, templates, random: Random::new() }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> &[u8] {
        let number = self.random.below(self.tenants.len());
        let Template { bytes, field, kind } = &mut self.templates[number];
        match kind {
            Field::Nothing => {}
            Field::Id => {
                let ids = &self.tenants[number].contacts;
                let id = ids[self.random.below(ids.len())];
                id.hyphenated().encode_lower(&mut bytes[*field..*field + Hyphenated::LENGTH]);
            }
            Field::Digits => self.random.write_digits(&mut bytes[*field..*field + DIGITS]),
        }
        bytes
    }
}

impl Template {
    fn new(subject: Subject, key: &str) -> Self {
        let head = |line: &str, more: &str| {
            format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n{more}\r\n")
        };
        let id = Uuid::nil().to_string();
        let (text, kind, filler) = match subject {
            Subject::Get | Subject::PgGet => (head(&format!("GET /api/v1/contacts/{FIELD}"), ""), Field::Id, id),
            Subject::List | Subject::PgList => (head("GET /api/v1/contacts", ""), Field::Nothing, String::new()),
            Subject::Post | Subject::Commit | Subject::Deliver | Subject::Aged | Subject::Pipe | Subject::PgPost => {
                let body = body(FIELD);
                let length = body.len() - FIELD.len() + DIGITS;
                let more = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
                (head("POST /api/v1/contacts", &more) + &body, Field::Digits, "0".repeat(DIGITS))
            }
        };
        let field = text.find(FIELD).unwrap_or_default();
        Self { bytes: text.replace(FIELD, &filler).into_bytes(), field, kind }
    }
}

/// The body that creates a contact; `digits` make its address new.
pub(crate) fn body(digits: &str) -> String {
    format!(
        r#"{{"email":"{digits}@example.com","first_name":"Ada","last_name":"Lovelace","phone":"+61 2 5550 1234","company_name":"Analytical Engines Pty Ltd","city":"Sydney","state":"NSW","postcode":"2000"}}"#
    )
}

/// The digits in a [`body`], wherever in `bytes` that stands.
pub(crate) fn digits_in(bytes: &[u8]) -> Option<[u8; DIGITS]> {
    let name = br#""email":""#;
    let at = bytes.windows(name.len()).position(|window| window == name)? + name.len();
    bytes.get(at..at + DIGITS)?.try_into().ok()
}

/// SplitMix64: nothing here needs to be unpredictable, only cheap.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_over() {
        let tenant = Tenant { key: "k".to_owned(), contacts: vec![Uuid::max()] };
        let tenants: Arc<[Tenant]> = vec![tenant].into();
        let text = |subject| String::from_utf8(Requests::new(subject, &tenants).next().to_vec()).unwrap();
        assert!(
            text(Subject::Get).starts_with("GET /api/v1/contacts/ffffffff-ffff-ffff-ffff-ffffffffffff HTTP/1.1\r\n")
        );
        let post = text(Subject::Post);
        let (head, body) = post.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("\r\nContent-Length: {}", body.len())));
        assert_ne!(post, text(Subject::Post));
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
