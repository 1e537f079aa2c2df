//! Secrets of a request that its receiver sends back, as one does that shows the headers it got. The log of attempts has responses,
//! and people read it who may not read the secrets: so these are masked in it.
//!
//! A secret is found as it was sent and, of Basic authentication, as its user and password; each of them as it is, and with any of
//! its characters as JSON, HTML, URLs and forms write them. A receiver that encodes it in another way, or sends a part of it, is
//! not found out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_core::values::Secret;
use svc_core::webhooks::engine::Attempt;

/// The replacement of a secret.
const MASK: &[u8] = b"[secret]";
/// Values that are shorter are no secrets that anybody relies on, and stand in many texts by chance.
const SHORTEST: usize = 4;
/// The greatest length of a character that is encoded, in bytes.
const LONGEST: usize = 12;
/// The names that HTML has for characters.
const ENTITIES: [(&[u8], char); 5] = [(b"amp", '&'), (b"lt", '<'), (b"gt", '>'), (b"quot", '"'), (b"apos", '\'')];
/// The characters that JSON and programming languages write with a backslash in front.
const ESCAPED: [char; 4] = ['/', '"', '\\', '\''];

/// Returns the secrets of a request: as they were sent, without the name of their scheme, and what is in those of Basic.
pub(super) fn of(attempt: &Attempt, token: Option<&Secret>) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    let mut add = |text: &str| {
        if text.len() >= SHORTEST && !found.iter().any(|known| known.reveal() == text) {
            found.push(Secret::new(text));
        }
    };
    for (_, value) in &attempt.options.headers {
        add(value.reveal());
        let Some((scheme, credentials)) = value.reveal().split_once(' ') else { continue };
        add(credentials);
        if scheme.eq_ignore_ascii_case("basic")
            && let Some(pair) = STANDARD.decode(credentials.trim()).ok().and_then(|pair| String::from_utf8(pair).ok())
        {
            add(&pair);
            add(pair.split_once(':').map_or("", |(_, password)| password));
        }
    }
    token.iter().for_each(|token| add(token.reveal()));
    // The longest first, as one may be a part of another.
    found.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
    found
}

/// Returns bytes with a mask in place of each secret. Of a response that was cut off, the beginning of a secret at its end is
/// masked as well.
pub(super) fn masked(bytes: &[u8], secrets: &[Secret], is_cut_off: bool) -> Vec<u8> {
    let (mut masked, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((first, after)) = rest.split_first() {
        let mut found = None;
        for secret in secrets {
            match compare(rest, secret.reveal()) {
                Comparison::Whole(after) => found = Some(after),
                Comparison::Beginning if is_cut_off => found = Some(&[][..]),
                Comparison::Beginning | Comparison::Nothing => continue,
            }
            break;
        }
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

/// The beginning of bytes.
enum Comparison<'b> {
    /// A secret, and what follows it.
    Whole(&'b [u8]),
    /// The first characters of a secret, with which the bytes end.
    Beginning,
    Nothing,
}

/// Compares the beginning of bytes with a secret, each of whose characters may be encoded.
fn compare<'b>(bytes: &'b [u8], secret: &str) -> Comparison<'b> {
    if let Some(after) = bytes.strip_prefix(secret.as_bytes()) {
        return Comparison::Whole(after);
    }
    let mut rest = bytes;
    for character in secret.chars() {
        match strip(rest, character) {
            Some(after) => rest = after,
            None if bytes.len() - rest.len() >= SHORTEST && is_beginning(rest, character) => {
                return Comparison::Beginning;
            }
            None => return Comparison::Nothing,
        }
    }
    Comparison::Whole(rest)
}

/// Returns whether all bytes that are left may be the beginning of a character that is encoded.
fn is_beginning(rest: &[u8], character: char) -> bool {
    rest.len() < LONGEST
        && (matches!(rest, [] | [b'%' | b'\\' | b'&', ..]) || utf8(character, &mut [0; 4]).starts_with(rest))
}

/// Returns what follows a character, if bytes begin with it or with what JSON, HTML, a URL or a form has in its place.
fn strip(bytes: &[u8], character: char) -> Option<&[u8]> {
    strip_encoded(bytes, character).or_else(|| bytes.strip_prefix(utf8(character, &mut [0; 4])))
}

fn strip_encoded(bytes: &[u8], character: char) -> Option<&[u8]> {
    match bytes {
        [b'%', ..] => utf8(character, &mut [0; 4]).iter().try_fold(bytes, |rest, byte| {
            let (hex, after) = rest.strip_prefix(b"%")?.split_at_checked(2)?;
            (number(hex, 16)? == u32::from(*byte)).then_some(after)
        }),
        [b'\\', b'u', ..] => character.encode_utf16(&mut [0; 2]).iter().try_fold(bytes, |rest, unit| {
            let (hex, after) = rest.strip_prefix(b"\\u")?.split_at_checked(4)?;
            (number(hex, 16)? == u32::from(*unit)).then_some(after)
        }),
        [b'\\', escaped, after @ ..] => {
            (ESCAPED.contains(&character) && char::from(*escaped) == character).then_some(after)
        }
        [b'&', ..] => {
            let end = bytes.iter().take(LONGEST).position(|byte| *byte == b';')?;
            let is_it = match &bytes[1..end] {
                [b'#', b'x' | b'X', hex @ ..] => number(hex, 16) == Some(character.into()),
                [b'#', decimal @ ..] => number(decimal, 10) == Some(character.into()),
                name => ENTITIES.contains(&(name, character)),
            };
            is_it.then(|| &bytes[end + 1..])
        }
        [b'+', after @ ..] if character == ' ' => Some(after),
        _ => None,
    }
}

fn utf8(character: char, buffer: &mut [u8; 4]) -> &[u8] {
    character.encode_utf8(buffer).as_bytes()
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let secrets = ["t0ken-longer", "t0ken"].map(Secret::new);
        let mask = |text: &str| String::from_utf8(masked(text.as_bytes(), &secrets, false)).unwrap();
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
        assert_eq!(masked(b"\xfft0ken\xff", &secrets, false), b"\xff[secret]\xff");
    }

    #[test]
    fn secrets_are_masked_however_they_are_encoded() {
        let secrets = ["p<a>/\"s s'&=\\ü+", "Zm9v+/8="].map(Secret::new);
        for text in [
            "p<a>/\"s s'&=\\ü+",
            r#"p<a>/\"s s'&=\\ü+"#,
            r#"p<a>\/\"s s'&=\\ü+"#,
            r#"p\u003ca\u003E/\"s s\u0027\u0026=\\\u00fc+"#,
            "p&lt;a&gt;/&quot;s s&#39;&amp;=\\&#xFC;+",
            "p&lt;a&gt;&#x2F;&#34;s s&apos;&amp;&#x3D;\\ü+",
            "p%3Ca%3E%2F%22s%20s'%26%3D%5C%C3%BC%2B",
            "p%3ca%3e/%22s+s%27%26%3d%5c%c3%bc%2b",
            "Zm9v+/8=",
            r"Zm9v+\/8=",
            r"Zm9v\u002b/8\u003d",
            "Zm9v%2B%2F8%3D",
            "Zm9v&#43;&#x2f;8&#61;",
        ] {
            let shown = format!("%<{text}>%2");
            assert_eq!(masked(shown.as_bytes(), &secrets, false), b"%<[secret]>%2", "{text}");
        }
        for text in ["p&lt;a", "%3", "&", "\\", "&#xFFFFFFFFFF;", "Zm9v%2B%2F8%3", "Zm9v-/8="] {
            assert_eq!(masked(text.as_bytes(), &secrets, false), text.as_bytes(), "{text}");
        }
        // It stands for itself, though it looks like an encoding.
        assert_eq!(masked(b"x&amp;y", &[Secret::new("&amp;y")], false), b"x[secret]");
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_of_what_was_read_is_masked() {
        let secrets = [Secret::new("t0ken/long")];
        for (text, want) in [
            ("a t0ken", "a [secret]"),
            ("a t0ken%2", "a [secret]"),
            ("a t0ken\\", "a [secret]"),
            ("a t0ken/long", "a [secret]"),
            ("a t0k", "a t0k"),
            ("a t0ken b", "a t0ken b"),
        ] {
            assert_eq!(masked(text.as_bytes(), &secrets, true), want.as_bytes(), "{text}");
        }
        assert_eq!(masked(b"a t0ken", &secrets, false), b"a t0ken");
    }
}
