//! Ids as people type them: whole, or a part that says which record is meant.

use std::fmt;

use svc_core::error::Issue;
use svc_core::values::parse_uuid;
use uuid::Uuid;

/// The fewest characters of a part of an id.
const MIN_PART: usize = 4;

/// The id of a record as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdArg {
    /// A whole id.
    Whole(Uuid),
    /// The beginning or the end of an id, which must be that of one record only.
    Part(IdPart),
}

impl IdArg {
    /// Parses an id, or at least four characters of its beginning or its end.
    ///
    /// # Errors
    /// The text is neither.
    ///
    /// ```
    /// use svc_cli::ids::IdArg;
    /// assert!(matches!(IdArg::parse("0195a3c8-0000-7000-8000-000000000001"), Ok(IdArg::Whole(_))));
    /// assert!(matches!(IdArg::parse("0195a3c8-00"), Ok(IdArg::Part(_))));
    /// assert!(IdArg::parse("INV-0001").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, Issue> {
        parse_uuid(text).map(Self::Whole).or_else(|issue| {
            IdPart::parse(text).map(Self::Part).ok_or_else(|| Issue {
                message: format!("{}, or at least {MIN_PART} characters of its beginning or its end", issue.message)
                    .into(),
                ..issue
            })
        })
    }
}

impl fmt::Display for IdArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(id) => id.fmt(f),
            Self::Part(part) => f.write_str(&part.text),
        }
    }
}

/// A part of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPart {
    text: String,
    /// The first and the last id that begin with the text. `None` if none can.
    beginning: Option<(Uuid, Uuid)>,
}

impl IdPart {
    fn parse(text: &str) -> Option<Self> {
        const ZEROS: &str = "00000000-0000-0000-0000-000000000000";
        if text.len() < MIN_PART || !text.is_ascii() {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let rest = ZEROS.get(text.len()..)?;
        let first = parse_uuid(&format!("{text}{rest}")).ok();
        let last = parse_uuid(&format!("{text}{}", rest.replace('0', "f"))).ok();
        let can_be_the_end = ZEROS.get(..rest.len()).is_some_and(|zeros| parse_uuid(&format!("{zeros}{text}")).is_ok());
        let beginning = first.zip(last);
        (beginning.is_some() || can_be_the_end).then_some(Self { text, beginning })
    }

    /// Returns the first and the last id that begin with the part, if any can.
    pub(crate) fn beginning(&self) -> Option<(Uuid, Uuid)> {
        self.beginning
    }

    /// Returns whether an id begins with the part.
    pub(crate) fn begins(&self, id: Uuid) -> bool {
        self.beginning.is_some_and(|(first, last)| (first..=last).contains(&id))
    }

    /// Returns whether an id ends with the part.
    pub(crate) fn ends(&self, id: Uuid) -> bool {
        id.to_string().ends_with(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_beginning_or_the_end_of_an_id() {
        let id = parse_uuid("0195a3c8-0000-7000-8000-00000000abcd").unwrap();
        let part = |text: &str| match IdArg::parse(text) {
            Ok(IdArg::Part(part)) => Some((part.begins(id), part.ends(id))),
            _ => None,
        };
        for text in ["0195", "0195A3C8", "0195a3c8-", "0195a3c8-0000-7000-8000-00000000abc"] {
            assert_eq!(part(text), Some((true, false)), "{text}");
        }
        for text in ["abcd", "ABCD", "-00000000abcd", "195a3c8-0000-7000-8000-00000000abcd"] {
            assert_eq!(part(text), Some((false, true)), "{text}");
        }
        for text in
            ["", "195", "bcd", "INV-0001", "0195a3c8-0000-8-", "01é5", "0195a3c8-0000-7000-8000-00000000abcd0", "    "]
        {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
