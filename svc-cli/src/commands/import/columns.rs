//! Which field each column of a file is for.
//!
//! A column is for the field of the same name. Programs write names for people, such as `First Name`, so case does not count,
//! nor which of spaces, hyphens and underscores are between the words. `--map` names the field of any other column.

use svc_core::input::json::Json;

use crate::exit::{Exit, Failure};
use crate::usage;

/// How the names of columns are read.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnNames {
    /// Columns with the fields that they are for, in the form of [`normalized`].
    mapping: Vec<(String, String)>,
    /// Whether columns that are for no field are skipped.
    pub(super) ignore_unknown: bool,
}

impl ColumnNames {
    /// Creates it from the options of the command.
    ///
    /// # Errors
    /// A column is mapped to something that is no field.
    pub(super) fn new(mapping: &[(String, String)], ignore_unknown: bool, known: &[&str]) -> Result<Self, Failure> {
        if let Some((column, field)) = mapping.iter().find(|(_, field)| !known.contains(&field.as_str())) {
            let reason = format!(
                "--map {column}={field} names no field{}. The fields are {}.",
                suggestion(field, known),
                known.join(", ")
            );
            return Err(Failure::new(Exit::Usage, reason));
        }
        let mapping = mapping.iter().map(|(column, field)| (normalized(column), field.clone())).collect();
        Ok(Self { mapping, ignore_unknown })
    }

    /// Returns the field that a column is for.
    pub(super) fn field(&self, column: &str, known: &[&'static str]) -> Option<&'static str> {
        let name = normalized(column);
        let name = self.mapping.iter().find(|(mapped, _)| *mapped == name).map_or(name.as_str(), |(_, field)| field);
        known.iter().copied().find(|known| *known == name)
    }

    /// Gives the members of a JSON object the names of the fields that they are for. Unknown ones keep their names, or are
    /// left out if they are to be ignored.
    pub(super) fn members(&self, members: Vec<(String, Json)>, known: &[&'static str]) -> Vec<(String, Json)> {
        let member = |(name, value): (String, Json)| match self.field(&name, known) {
            Some(field) => Some((field.to_owned(), value)),
            None if self.ignore_unknown => None,
            None => Some((name, value)),
        };
        members.into_iter().filter_map(member).collect()
    }
}

/// Returns a name in the form in which fields are named.
fn normalized(name: &str) -> String {
    let words = name.split(|char: char| char.is_whitespace() || matches!(char, '-' | '_' | '.'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// Returns the field that a name is most like, as a question, or nothing if it is like none.
pub(super) fn suggestion(name: &str, known: &[&str]) -> String {
    let meant = usage::similar(name, known.iter().copied());
    meant.map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"))
}

/// Returns the character between the cells of a CSV file: that of the common ones which its header has most often outside of
/// quotes.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    for byte in header {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            byte => counts.iter_mut().filter(|(known, _)| known == byte).for_each(|(_, count)| *count += 1),
        }
    }
    // Of those that are as frequent, the first.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["email", "first_name", "postcode"];

    #[test]
    fn columns_are_named_in_many_ways() {
        let names = ColumnNames::new(&[("E-Mail Address".to_owned(), "email".to_owned())], false, &KNOWN).unwrap();
        for (column, field) in [
            ("email", Some("email")),
            (" EMAIL ", Some("email")),
            ("e-mail  address", Some("email")),
            ("First Name", Some("first_name")),
            ("first-name", Some("first_name")),
            ("FirstName", None),
            ("", None),
        ] {
            assert_eq!(names.field(column, &KNOWN), field, "{column:?}");
        }
        assert!(ColumnNames::new(&[("a".to_owned(), "frist_name".to_owned())], false, &KNOWN).is_err());
        assert_eq!(suggestion("Post Code", &KNOWN), " (did you mean postcode?)");
        assert_eq!(suggestion("total", &KNOWN), "");
    }

    #[test]
    fn the_delimiter_is_the_most_frequent_one() {
        for (header, want) in [
            ("email", b','),
            ("email;first_name\n1,2,3,4", b';'),
            ("email\tfirst_name", b'\t'),
            ("\"a;b;c\",email", b','),
            ("a|b|c,d", b'|'),
        ] {
            assert_eq!(delimiter(header.as_bytes()), want, "{header:?}");
        }
    }
}
