//! The headers, and parsers for them and for `delivered_at` in the body, which need neither a JSON parser nor a calendar library.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{SIGNATURE_PREFIX, VerifyError};

/// The values of the [Standard Webhooks] headers as received, each `""` if the header is missing.
///
/// [Standard Webhooks]: https://www.standardwebhooks.com
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandardHeaders<'a> {
    /// `webhook-id`: the id of the delivery, which is the same in every attempt.
    pub id: &'a str,
    /// `webhook-timestamp`: the time of this attempt, in Unix seconds.
    pub timestamp: &'a str,
    /// `webhook-signature`: one or more entries `v1,<base64>` or `v1a,<base64>`, separated by spaces.
    pub signature: &'a str,
}

/// Parses `sha256=<64 lower-case hex digits>`. The header is not secret, so this does not need constant time.
pub(crate) fn parse_signature(header: &str) -> Result<[u8; 32], VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let digits = header.strip_prefix(SIGNATURE_PREFIX).ok_or(VerifyError::MissingPrefix)?.as_bytes();
    if digits.len() != 64 {
        return Err(VerifyError::WrongLength { found: digits.len() });
    }
    let mut signature = [0; 32];
    hex::decode_to_slice(digits, &mut signature).map_err(|_| VerifyError::NotHex)?;
    // The decoder accepts upper case, svc never sends it.
    if digits.iter().any(u8::is_ascii_uppercase) {
        return Err(VerifyError::UpperCaseHex);
    }
    Ok(signature)
}

/// Parses the `v1` entries of `webhook-signature`. Entries of other versions are ignored.
pub(crate) fn parse_standard_signatures(header: &str) -> Result<Vec<[u8; 32]>, VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let signatures = header
        .split(' ')
        .filter_map(|entry| entry.strip_prefix("v1,"))
        .map(|text| STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok()))
        .collect::<Option<Vec<_>>>()
        .ok_or(VerifyError::NotBase64)?;
    if signatures.is_empty() {
        return Err(VerifyError::NoV1Signature);
    }
    Ok(signatures)
}

/// Finds the string `delivered_at` of the outermost JSON object in `body`. The input must be JSON, which a body with a
/// valid signature is. svc writes neither the name nor the value with escapes.
pub(crate) fn find_delivered_at(body: &[u8]) -> Option<&str> {
    let mut depth = 0_usize;
    let mut rest = body;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let (text, after) = split_string(tail)?;
                rest = after;
                // Only the name of a member is followed by a colon.
                if depth == 1
                    && text == b"delivered_at"
                    && let [b':', value @ ..] = after.trim_ascii_start()
                {
                    let value = value.trim_ascii_start().strip_prefix(b"\"")?;
                    return std::str::from_utf8(split_string(value)?.0).ok();
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits the bytes after an opening quote into the string and the bytes after its closing quote.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (text, quote) = bytes.split_at_checked(end)?;
    Some((text, quote.get(1..)?))
}

/// Parses an RFC 3339 time in the form that svc writes: UTC with `Z`, a fraction of up to 9 digits, from 1970 on.
pub(crate) fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let (seconds, fraction) = match text.split_once('.') {
        Some((seconds, fraction)) => (seconds, Some(fraction)),
        None => (text, None),
    };
    let (date, time) = seconds.split_once('T')?;
    let [year, month, day] = parse_fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = parse_fields(time, ':', [2, 2, 2])?;

    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }

    // Years start in March here, so that the leap day is last. There are 719 468 days from 0000-03-01 to 1970-01-01.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = ((days.checked_sub(719_468)? * 24 + hour) * 60 + minute) * 60 + second;
    let nanos = match fraction {
        None => 0,
        Some(fraction) => {
            let width = u32::try_from(fraction.len()).ok()?;
            parse_digits(fraction)? * 10_u64.pow(9_u32.checked_sub(width)?)
        }
    };
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.checked_add(Duration::from_nanos(nanos))
}

/// Parses numbers with exactly these `widths`, separated by `separator`.
fn parse_fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut fields = [0; N];
    let mut parts = text.split(separator);
    for (field, width) in fields.iter_mut().zip(widths) {
        *field = parse_digits(parts.next().filter(|part| part.len() == width)?)?;
    }
    parts.next().is_none().then_some(fields)
}

/// Parses a Unix time in seconds.
pub(crate) fn parse_unix_seconds(text: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(parse_digits(text)?))
}

/// Parses a number that consists only of digits. `parse` alone would also accept a `+`.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
