//! The form of a timestamp: RFC 3339 §5.6, with at most nine decimals of a second.

use jiff::{SignedDuration, civil};

use super::{EPOCH, Timestamp};
use crate::error::{FieldCode, Issue};

const FORM: &str = "must be an RFC 3339 date and time with an offset, such as 2026-03-14T15:09:26Z";

/// The most decimals of a second that are read.
const MAX_DECIMALS: usize = 9;

/// A parsed RFC 3339 text: the point in time, the calendar date as written, and whether digits were cut.
pub(super) struct DateTime {
    pub(super) timestamp: Timestamp,
    pub(super) date: civil::Date,
    pub(super) cut: bool,
}

impl DateTime {
    /// Reads RFC 3339.
    ///
    /// # Errors
    /// `invalid_format`, with the part of the form that the text lacks, if that is all it lacks.
    pub(super) fn parse(text: &str) -> Result<Self, Issue> {
        Self::read(text).ok_or_else(|| Issue::new(FieldCode::InvalidFormat, Self::missing(text).unwrap_or(FORM)))
    }

    /// Returns what a text lacks to be a time.
    fn missing(text: &str) -> Option<&'static str> {
        let reads = |text: &str| Self::read(text).is_some();
        let with = |at: usize, more: &str| Some([text.get(..at)?, more, text.get(at..)?].concat());
        let repaired: [(&str, Option<String>); 6] = [
            // What remains of a + in a query that was not encoded.
            (
                "must have a + before its offset, which is written %2B in a query",
                text.rsplit_once(' ').map(|(local, offset)| format!("{local}+{offset}")),
            ),
            (
                "must have a T between its date and its time, such as 2026-03-14T15:09:26Z",
                Some(text.replacen(' ', "T", 1)),
            ),
            ("must have a colon in its offset, such as +11:00", text.len().checked_sub(2).and_then(|at| with(at, ":"))),
            ("must have minutes in its offset, such as +11:00", Some(format!("{text}:00"))),
            ("must have seconds, such as 2026-03-14T15:09:00Z", with("2026-03-14T15:09".len(), ":00")),
            ("must have an offset from UTC at its end: Z, or such as +11:00", Some(format!("{text}Z"))),
        ];
        let lacking =
            repaired.into_iter().find(|(_, text)| text.as_deref().is_some_and(reads)).map(|(reason, _)| reason);
        lacking.or_else(|| Self::with_fewer_decimals(text))
    }

    /// Returns what is wrong with a time that has more decimals than are read.
    fn with_fewer_decimals(text: &str) -> Option<&'static str> {
        let (seconds, rest) = text.split_once('.')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let shorter = format!("{seconds}.{}{}", rest.get(..MAX_DECIMALS)?, &rest[digits..]);
        Self::read(&shorter).map(|_| "must have at most 9 decimals of a second")
    }

    /// Reads RFC 3339 §5.6, after a check of its form: jiff reads more forms than the contract has.
    fn read(text: &str) -> Option<Self> {
        let (local, ahead) = match text.strip_suffix(['Z', 'z']) {
            Some(local) => (local, SignedDuration::ZERO),
            None => {
                let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
                (local, read_offset(offset)?)
            }
        };
        let form = "0000-00-00T00:00:00.000000000";
        if local.len() < 19 || local.ends_with('.') || !has_form(local, form.get(..local.len())?) {
            return None;
        }
        let at: civil::DateTime = local.parse().ok()?;
        // A leap second, which jiff reads as the last second before it, ends an hour.
        if local[17..].starts_with("60") && at.minute() != 59 {
            return None;
        }
        let utc = at.checked_sub(ahead).ok().filter(|utc| utc.year() >= 0)?;
        let nanos = utc.duration_since(EPOCH).as_nanos();
        Some(Self {
            timestamp: Timestamp(i64::try_from(nanos.div_euclid(1000)).ok()?),
            date: at.date(),
            cut: nanos % 1000 != 0,
        })
    }
}

/// Returns how far the offset of a time zone, such as `+11:00`, is ahead of UTC.
fn read_offset(offset: &str) -> Option<SignedDuration> {
    let time = offset.get(1..).filter(|time| has_form(time, "00:00"))?;
    let distance = time.parse::<civil::Time>().ok()?.duration_since(civil::Time::midnight());
    match offset.as_bytes()[0] {
        b'+' => Some(distance),
        b'-' => Some(-distance),
        _ => None,
    }
}

/// Returns whether a text has a digit wherever the form has a zero, and otherwise the characters of the form. Letters may be
/// lower case.
pub(super) fn has_form(text: &str, form: &str) -> bool {
    let fits =
        |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte.eq_ignore_ascii_case(&form) };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_missing() {
        for (text, want) in [
            ("2026-03-14T15:09:26 11:00", "must have a + before its offset, which is written %2B in a query"),
            ("2026-03-14 15:09:26Z", "must have a T between its date and its time, such as 2026-03-14T15:09:26Z"),
            ("2026-03-14T15:09:26+1100", "must have a colon in its offset, such as +11:00"),
            ("2026-03-14T15:09:26.5-0330", "must have a colon in its offset, such as +11:00"),
            ("2026-03-14T15:09:26+11", "must have minutes in its offset, such as +11:00"),
            ("2026-03-14T15:09Z", "must have seconds, such as 2026-03-14T15:09:00Z"),
            ("2026-03-14T15:09+11:00", "must have seconds, such as 2026-03-14T15:09:00Z"),
            ("2026-03-14T15:09:26", "must have an offset from UTC at its end: Z, or such as +11:00"),
            ("2026-03-14T15:09:26.1234567890123Z", "must have at most 9 decimals of a second"),
            ("2026-03-14T15:09:26.1234567890+11:00", "must have at most 9 decimals of a second"),
            ("2026-03-14", FORM),
            ("2026-03-14T15:09:26.Z", FORM),
            ("2026-03-14T25:09:26Z", FORM),
            ("yesterday", FORM),
            ("", FORM),
            ("é", FORM),
        ] {
            let issue = DateTime::parse(text).map(|_| ()).unwrap_err();
            assert_eq!(issue.message, want, "{text}");
        }
    }
}
