//! Secrets of a request that its receiver sends back, as one does that shows the headers it got. The log of attempts has responses,
//! and people read it who may not read the secrets: so these are masked in it.

use svc_core::values::Secret;
use svc_core::webhooks::engine::Attempt;

/// What stands for a secret.
const MASK: &[u8] = b"[secret]";
/// Values that are shorter are no secrets that anybody relies on, and stand in many texts by chance.
const SHORTEST: usize = 4;

/// Returns the secrets of a request, each as a receiver may send it back: as it was sent, in JSON, and without the name of its
/// scheme.
pub(super) fn of(attempt: &Attempt, token: Option<&Secret>) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    let mut add = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        for text in [text, json.trim_matches('"')] {
            if text.len() >= SHORTEST && !found.iter().any(|known| known.reveal() == text) {
                found.push(Secret::new(text));
            }
        }
    };
    for (_, value) in &attempt.options.headers {
        add(value.reveal());
        if let Some((_, credentials)) = value.reveal().split_once(' ') {
            add(credentials);
        }
    }
    token.iter().for_each(|token| add(token.reveal()));
    // The longest first, as one may be a part of another.
    found.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
    found
}

/// Returns bytes with a mask in place of each secret.
pub(super) fn masked(bytes: &[u8], secrets: &[Secret]) -> Vec<u8> {
    let (mut masked, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((first, after)) = rest.split_first() {
        let found = secrets.iter().find_map(|secret| rest.strip_prefix(secret.reveal().as_bytes()));
        match found {
            Some(after) => {
                masked.extend_from_slice(MASK);
                rest = after;
            }
            None => {
                masked.push(*first);
                rest = after;
            }
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let secrets = ["t0ken-longer", "t0ken"].map(Secret::new);
        let mask = |text: &str| String::from_utf8(masked(text.as_bytes(), &secrets)).unwrap();
        for (text, want) in [
            ("", ""),
            ("nothing", "nothing"),
            ("t0ken", "[secret]"),
            ("t0kent0ken", "[secret][secret]"),
            ("a t0ken-longer b t0ken c", "a [secret] b [secret] c"),
            ("t0ke t0ke", "t0ke t0ke"),
        ] {
            assert_eq!(mask(text), want);
        }
        assert_eq!(masked(b"\xfft0ken\xff", &secrets), b"\xff[secret]\xff");
    }
}
