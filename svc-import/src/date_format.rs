//! The form in which a file has its dates.

use std::fmt;

/// A form of dates, such as `DD/MM/YYYY`.
///
/// The years of `YY` are those from 2000 to 2099. A day or a month may have one digit where another character follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Day,
    Month,
    /// The English name of a month, or its first letters.
    MonthName,
    /// A year with all four digits.
    Year,
    /// The last two digits of a year.
    ShortYear,
    Separator(char),
}

/// The parts that a format names, the longest first.
const NAMED: [(&str, Part); 5] =
    [("YYYY", Part::Year), ("MMM", Part::MonthName), ("YY", Part::ShortYear), ("MM", Part::Month), ("DD", Part::Day)];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl DateFormat {
    /// Parses a format: `DD`, `MM` or `MMM`, and `YYYY` or `YY`, in any order, with any separators.
    ///
    /// # Errors
    /// One of them is missing or there twice, or there are other letters or digits.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "must have DD, MM or MMM, and YYYY or YY, such as DD/MM/YYYY";
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let named =
                NAMED.iter().find(|(name, _)| rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)));
            let (length, part) = match named {
                Some((name, part)) => (name.len(), *part),
                None if next.is_alphanumeric() => return Err(FORM),
                None => (next.len_utf8(), Part::Separator(next)),
            };
            parts.push(part);
            rest = &rest[length..];
        }
        let count = |wanted: &[Part]| parts.iter().filter(|part| wanted.contains(part)).count();
        let counts =
            [count(&[Part::Day]), count(&[Part::Month, Part::MonthName]), count(&[Part::Year, Part::ShortYear])];
        if counts == [1, 1, 1] { Ok(Self { text: text.to_owned(), parts }) } else { Err(FORM) }
    }

    /// Returns a date of this form as `YYYY-MM-DD`, or `None` if the text has another form. The calendar may not have it.
    pub(super) fn to_iso(&self, text: &str) -> Option<String> {
        let (mut year, mut month, mut day) = (0, 0, 0);
        let mut rest = text;
        for part in &self.parts {
            let (digits, number) = match part {
                Part::Separator(char) => {
                    rest = rest.strip_prefix(*char)?;
                    continue;
                }
                Part::MonthName => {
                    let (name, after) =
                        rest.split_at(rest.find(|char: char| !char.is_alphabetic()).unwrap_or(rest.len()));
                    let name = Some(name.to_lowercase()).filter(|name| name.len() >= 3)?;
                    month = 1 + u16::try_from(MONTHS.iter().position(|full| full.starts_with(&name))?).ok()?;
                    rest = after;
                    continue;
                }
                Part::Day => (1..=2, &mut day),
                Part::Month => (1..=2, &mut month),
                Part::ShortYear => (2..=2, &mut year),
                Part::Year => (4..=4, &mut year),
            };
            let count = rest.bytes().take(*digits.end()).take_while(u8::is_ascii_digit).count();
            if !digits.contains(&count) {
                return None;
            }
            let (read, after) = rest.split_at(count);
            *number = read.parse::<u16>().ok()? + if *part == Part::ShortYear { 2000 } else { 0 };
            rest = after;
        }
        rest.is_empty().then(|| format!("{year:04}-{month:02}-{day:02}"))
    }
}

impl fmt::Display for DateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_the_format_says() {
        for (format, text, want) in [
            ("DD/MM/YYYY", "31/12/2025", Some("2025-12-31")),
            ("dd/mm/yyyy", "1/2/2025", Some("2025-02-01")),
            ("MM-DD-YY", "12-31-25", Some("2025-12-31")),
            ("DD. MM. YYYY", "31. 12. 2025", Some("2025-12-31")),
            ("YYYYMMDD", "20251231", Some("2025-12-31")),
            ("DDMMYYYY", "3112025", None),
            ("DD/MM/YYYY", "31/12/25", None),
            ("DD/MM/YYYY", "31/12/2025 ", None),
            ("DD/MM/YYYY", "31/12", None),
            ("DD/MM/YYYY", "", None),
            ("DD/MM/YYYY", "٣١/12/2025", None),
            ("DD/MM/YYYY", "99/99/2025", Some("2025-99-99")),
            ("DD MMM YYYY", "3 Apr 2025", Some("2025-04-03")),
            ("DD-MMM-YY", "03-SEPT-25", Some("2025-09-03")),
            ("MMM DD, YYYY", "April 3, 2025", Some("2025-04-03")),
            ("DDMMMYYYY", "03May2025", Some("2025-05-03")),
            ("DD MMM YYYY", "3 Ap 2025", None),
            ("DD MMM YYYY", "3 Aprilis 2025", None),
            ("DD MMM YYYY", "3 4 2025", None),
            ("DD MMM YYYY", "3 avr\u{ed}l 2025", None),
        ] {
            assert_eq!(DateFormat::parse(format).unwrap().to_iso(text).as_deref(), want, "{format} {text}");
        }
        for bad in
            ["", "DD/MM", "DD/MM/YYY", "D/M/YYYY", "DD/MM MMM/YYYY", "DD/MM/YYYY YY", "DD/DD/MM/YYYY", "DD/MM/YYYY hh"]
        {
            assert!(DateFormat::parse(bad).is_err(), "{bad}");
        }
    }
}
