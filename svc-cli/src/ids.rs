//! Ids as people type them: whole, a part that says which record is meant, or what the record is called.

use std::fmt;
use std::str::FromStr;

use svc_core::error::Issue;
use svc_core::find::MAX_TEXT;
pub use svc_core::lookup::IdPart;
use svc_core::values::{Text, parse_uuid};
use uuid::Uuid;

/// The id of a record as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdArg {
    /// A whole id.
    Whole(Uuid),
    /// The beginning or the end of an id, which must be that of one record only. It may be a name or a number as well.
    Part(IdPart),
    /// A number, an email address or a name, which must be that of one record only.
    Name(Text<MAX_TEXT>),
}

/// Parses an id, at least four characters of its beginning or its end, or a number, an email address or a name.
///
/// ```
/// use svc_cli::ids::IdArg;
/// assert!(matches!("0195a3c8-0000-7000-8000-000000000001".parse(), Ok(IdArg::Whole(_))));
/// assert!(matches!("0195a3c8-00".parse(), Ok(IdArg::Part(_))));
/// assert!(matches!("INV-0001".parse(), Ok(IdArg::Name(_))));
/// ```
impl FromStr for IdArg {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        match (parse_uuid(text), IdPart::parse(text)) {
            (Ok(id), _) => Ok(Self::Whole(id)),
            (Err(_), Some(part)) => Ok(Self::Part(part)),
            (Err(_), None) => Text::parse(text.trim()).map(Self::Name),
        }
    }
}

impl fmt::Display for IdArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(id) => id.fmt(f),
            Self::Part(part) => part.fmt(f),
            Self::Name(name) => f.write_str(name.as_str()),
        }
    }
}
