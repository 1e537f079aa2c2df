//! Requests as bytes: a template for each tenant with one field that is overwritten for each request.

use std::sync::Arc;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::options::Subject;
use crate::random::{DIGITS, Random, body};
use crate::seed::Tenant;

/// An endless sequence of requests of one kind.
pub(crate) struct Requests {
    /// The status of a successful response.
    pub(crate) status: [u8; 3],
    /// How many are sent each second. `None`: each as soon as the one before is answered.
    pub(crate) rate: Option<f64>,
    tenants: Arc<[Tenant]>,
    templates: Vec<Template>,
    random: Random,
}

#[derive(Clone)]
struct Template {
    bytes: Vec<u8>,
    /// The offset of the field.
    field: usize,
    kind: Field,
}

#[derive(Clone, Copy)]
enum Field {
    Nothing,
    Id,
    Digits,
}

/// The placeholder of the field in a template.
const FIELD: &str = "~";

impl Requests {
    /// Creates requests of a block, over all tenants. [`Subject::Commit`], [`Subject::Aged`], [`Subject::Scale`],
    /// [`Subject::Growth`], [`Subject::Mixed`] and [`Subject::Dashboard`] have no requests; those of [`Subject::Deliver`]
    /// and [`Subject::Pipe`] are POSTs.
    pub(crate) fn new(subject: Subject, tenants: &Arc<[Tenant]>) -> Self {
        let status = if matches!(subject, Subject::Post | Subject::Deliver | Subject::Pipe | Subject::PgPost) {
            *b"201"
        } else {
            *b"200"
        };
        let templates = tenants.iter().map(|tenant| Template::new(subject, &tenant.key)).collect();
        Self { status, rate: None, tenants: Arc::clone(tenants), templates, random: Random::new() }
    }

    /// Sends them at a fixed rate.
    pub(crate) fn per_second(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Returns the same kind of requests in another random order.
    pub(crate) fn fork(&self) -> Self {
        let (tenants, templates) = (Arc::clone(&self.tenants), self.templates.clone());
        Self { status: self.status, rate: self.rate, tenants, templates, random: Random::new() }
    }

    /// Returns the next request.
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
            Subject::Get | Subject::Token | Subject::PgGet => {
                (head(&format!("GET /api/v1/contacts/{FIELD}"), ""), Field::Id, id)
            }
            Subject::List | Subject::PgList => (head("GET /api/v1/contacts", ""), Field::Nothing, String::new()),
            Subject::Post
            | Subject::Commit
            | Subject::Deliver
            | Subject::Aged
            | Subject::Pipe
            | Subject::Mixed
            | Subject::Scale
            | Subject::Dashboard
            | Subject::Filters
            | Subject::Search
            | Subject::Worklists
            | Subject::Growth
            | Subject::PgPost => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_a_template_is_overwritten() {
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
