//! Ids as people type them: whole, or a part that says which record is meant.

use std::fmt;
use std::str::FromStr;

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

/// Parses an id, or at least four characters of its beginning or its end.
///
/// ```
/// use svc_cli::ids::IdArg;
/// assert!(matches!("0195a3c8-0000-7000-8000-000000000001".parse(), Ok(IdArg::Whole(_))));
/// assert!(matches!("0195a3c8-00".parse(), Ok(IdArg::Part(_))));
/// assert!("INV-0001".parse::<IdArg>().is_err());
/// ```
impl FromStr for IdArg {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
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
