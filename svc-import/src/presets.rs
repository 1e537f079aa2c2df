//! The columns of the files that other programs export, from `presets.json`.
//!
//! A field has the names of its columns, in versions of the export and for the phones and addresses of a contact, the
//! preferred one first. A column that is not listed is left out. Names are compared as those of mappings. A name in full,
//! where the export has no first and last name, is the last name. `svc-cli/tests/exports` has a file of each program.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use svc_core::platform::ImportKind;

/// A field, and the columns that it is read from: the first of them that is not empty. The parts of an address come from one
/// address, so their columns are in the same order.
pub type PresetField = (String, Vec<String>);

/// Which rows of an export are one invoice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvoiceRows {
    /// Each row is an invoice. If there is a row for each line of it, all rows are alike.
    #[default]
    Whole,
    /// There is a row for each line, and the total is the sum of those that follow each other with the same number.
    Summed,
    /// There is a row for each line, and only the first of those with the same number has a total.
    FirstHasTotal,
}

/// The exports of a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Preset {
    /// The name of the program in options, such as `xero`.
    pub name: String,
    /// The name of the program for people.
    pub title: String,
    /// The fields of contacts. Empty if contacts cannot be imported.
    #[serde(default, deserialize_with = "in_order")]
    pub contacts: Vec<PresetField>,
    /// The fields of invoices. Empty if invoices cannot be imported.
    #[serde(default, deserialize_with = "in_order")]
    pub invoices: Vec<PresetField>,
    /// Which rows are one invoice.
    #[serde(default)]
    pub invoice_rows: InvoiceRows,
    /// The statuses of invoices, as cells have them, with those of this service.
    #[serde(default, deserialize_with = "in_order")]
    pub statuses: Vec<(String, String)>,
}

impl Preset {
    /// Returns the preset of a program by its name in options.
    pub fn named(name: &str) -> Option<&'static Self> {
        presets().iter().find(|preset| preset.name == name)
    }

    /// Returns the fields of a type of records.
    pub fn fields(&self, kind: ImportKind) -> &[PresetField] {
        match kind {
            ImportKind::Contacts => &self.contacts,
            ImportKind::Invoices => &self.invoices,
            ImportKind::All => &[],
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the programs, by name.
pub fn presets() -> &'static [Preset] {
    #[expect(clippy::expect_used, reason = "a test reads the same file")]
    static PRESETS: LazyLock<Vec<Preset>> =
        LazyLock::new(|| serde_json::from_str(include_str!("../presets.json")).expect("presets"));
    &PRESETS
}

/// Reads the members of an object in their order.
fn in_order<'de, D: Deserializer<'de>, V: DeserializeOwned>(from: D) -> Result<Vec<(String, V)>, D::Error> {
    let members = serde_json::Map::deserialize(from)?;
    let read = |(name, value)| Ok((name, serde_json::from_value(value).map_err(D::Error::custom)?));
    members.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use svc_core::imports::Import;
    use svc_core::input::FieldNames as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::resources::invoices::{Invoice, InvoiceStatus};

    use super::*;

    #[test]
    fn presets_name_fields_and_statuses_that_there_are() {
        let presets = presets();
        assert!(presets.is_sorted_by(|a, b| a.name < b.name));
        for preset in presets {
            let has_fields = !preset.contacts.is_empty() || !preset.invoices.is_empty();
            assert!(has_fields && !preset.title.is_empty(), "{preset}");
            for (fields, known) in [
                (&preset.contacts, <Contact as Import>::Row::FIELD_NAMES),
                (&preset.invoices, <Invoice as Import>::Row::FIELD_NAMES),
            ] {
                for (field, columns) in fields {
                    assert!(known.contains(&field.as_str()) && !columns.is_empty(), "{preset} {field}");
                }
            }
            for (_, status) in &preset.statuses {
                assert!(InvoiceStatus::from_text(status).is_some(), "{preset} {status}");
            }
        }
    }

    #[test]
    fn no_name_is_there_twice() {
        /// Counts the names of an object, of which a map keeps the last.
        struct Names(usize);

        impl<'de> Deserialize<'de> for Names {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Names;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                        let mut count = 0;
                        while map.next_entry::<String, serde::de::IgnoredAny>()?.is_some() {
                            count += 1;
                        }
                        Ok(Names(count))
                    }
                }
                from.deserialize_map(Visitor)
            }
        }

        #[derive(Deserialize)]
        struct Counted {
            contacts: Option<Names>,
            invoices: Option<Names>,
            statuses: Option<Names>,
        }

        let counted: Vec<Counted> = serde_json::from_str(include_str!("../presets.json")).unwrap();
        for (preset, counted) in presets().iter().zip(counted) {
            let count = |names: Option<Names>| names.map_or(0, |names| names.0);
            assert_eq!(count(counted.contacts), preset.contacts.len(), "{preset}");
            assert_eq!(count(counted.invoices), preset.invoices.len(), "{preset}");
            assert_eq!(count(counted.statuses), preset.statuses.len(), "{preset}");
        }
    }
}
