//! Ids as people type them: whole, or a part that says which record is meant.

use std::fmt;

use svc_core::error::Issue;
pub use svc_core::lookup::IdPart;
use svc_core::lookup::MIN_PART;
use svc_core::values::parse_uuid;
use uuid::Uuid;

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
            Self::Part(part) => part.fmt(f),
        }
    }
}
