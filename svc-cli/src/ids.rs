//! Ids as people type them: whole, a part that says which record is meant, or what the record is called; and the options that
//! take them.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use svc_core::error::Issue;
use svc_core::find::MAX_TEXT;
pub(crate) use svc_core::lookup::IdPart;
use svc_core::values::{Text, parse_uuid};
use uuid::Uuid;

/// A record as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdArg {
    /// A whole id.
    Whole(Uuid),
    /// The beginning or the end of an id, which must be that of one record only. It can be a number or a name as well.
    Part(IdPart),
    /// A number, an email address or a name, which must be that of one record only.
    Name(String),
}

/// Parses an id, at least four characters of its beginning or its end, or what the record is called.
impl FromStr for IdArg {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        if let Ok(id) = parse_uuid(text) {
            return Ok(Self::Whole(id));
        }
        if let Some(part) = IdPart::parse(text) {
            return Ok(Self::Part(part));
        }
        Text::<MAX_TEXT>::parse(text).map(|name| Self::Name(name.as_str().to_owned()))
    }
}

impl IdArg {
    /// Returns whether this is all or a part of an id.
    pub(crate) fn is_of(&self, id: Uuid) -> bool {
        match self {
            Self::Whole(whole) => *whole == id,
            Self::Part(part) => part.begins(id) || part.ends(id),
            Self::Name(_) => false,
        }
    }
}

impl fmt::Display for IdArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(id) => id.fmt(f),
            Self::Part(part) => part.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// The account that a command works on.
#[derive(Args, Clone, Debug)]
pub(crate) struct InAccount {
    /// Account, by its id or its name. The default is the only one.
    #[arg(long, alias = "tenant", env = "SVC_TENANT", hide_env = true, value_name = "ID")]
    pub(crate) account: Option<IdArg>,
}

/// The record that a command works on.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Record, by its id, a part of it that no other one has, or its number, email address or name.
    pub(crate) id: IdArg,
    /// The account that owns the record.
    #[command(flatten)]
    pub(crate) account: InAccount,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_named_by_its_id_by_a_part_of_it_or_by_its_name() {
        assert!(matches!("0195a3c8-0000-7000-8000-000000000001".parse(), Ok(IdArg::Whole(_))));
        assert!(matches!("0195a3c8-00".parse(), Ok(IdArg::Part(_))));
        assert!(matches!("INV-0001".parse(), Ok(IdArg::Name(_))));
        assert!("".parse::<IdArg>().is_err());
    }
}
