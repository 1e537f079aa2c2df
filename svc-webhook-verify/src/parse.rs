//! What headers and bodies say, read without a JSON parser or a calendar.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{SIGNATURE_PREFIX, VerifyError};

/// The bytes of `sha256=<64 lower-case hex digits>`. The header is no secret, so this need not take constant time.
pub(crate) fn parse_signature(header: &str) -> Result<[u8; 32], VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let hex = header.strip_prefix(SIGNATURE_PREFIX).ok_or(VerifyError::MissingPrefix)?.as_bytes();
    if hex.len() != 64 {
        return Err(VerifyError::WrongLength { found: hex.len() });
    }
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return Err(VerifyError::NotHex);
    }
    if hex.iter().any(u8::is_ascii_uppercase) {
        return Err(VerifyError::UpperCaseHex);
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        _ => byte - b'a' + 10,
    };
    let mut signature = [0; 32];
    for (byte, pair) in signature.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, &hex| byte << 4 | digit(hex));
    }
    Ok(signature)
}

/// The `v1` entries of `webhook-signature`. Entries of other versions are passed over.
pub(crate) fn parse_standard_signatures(header: &str) -> Result<Vec<[u8; 32]>, VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let signatures = header
        .split(' ')
        .filter_map(|entry| entry.strip_prefix("v1,"))
        .map(|text| decode_base64(text).and_then(|bytes| bytes.try_into().ok()))
        .collect::<Option<Vec<_>>>()
        .ok_or(VerifyError::NotBase64)?;
    if signatures.is_empty() {
        return Err(VerifyError::NoV1Signature);
    }
    Ok(signatures)
}

/// Standard base64 with padding, in its one canonical form (RFC 4648, sections 4 and 3.5).
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut buffer, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    (buffer == 0).then_some(bytes)
}

/// The string `delivered_at` of the JSON object `body`, not of objects inside it. Expects JSON: the body's signature
/// was right. SVC writes neither the name nor the value with escapes.
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
                // Only a member's name has a colon after it.
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

/// Splits what follows an opening quote into the string and what follows its closing quote.
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

/// RFC 3339 in the form SVC writes: UTC with `Z`, up to 9 digits of a fraction, from 1970 on.
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

    // Years begin in March here, so that the leap day comes last. 719 468 days lead from 0000-03-01 to 1970-01-01.
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

/// Numbers of exactly these `widths`, `separator` between them.
fn parse_fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut fields = [0; N];
    let mut parts = text.split(separator);
    for (field, width) in fields.iter_mut().zip(widths) {
        *field = parse_digits(parts.next().filter(|part| part.len() == width)?)?;
    }
    parts.next().is_none().then_some(fields)
}

pub(crate) fn parse_unix_seconds(text: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(parse_digits(text)?))
}

/// A number of digits alone: `parse` would also take a `+`.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
