//! The plan of an import: which columns are which fields, and how cells are written.

use std::fmt;

use svc_core::values::{Currency, TimeZone};

use crate::date_format::DateFormat;
use crate::hints::Hint;
use crate::presets::Preset;

/// Words a [`Hint`] for the people who chose the plan. It is put into the problem of a row.
pub type HintWords = fn(&Hint<'_>) -> String;

/// How a file is read. The default reads columns that have the names of fields, and cells that have the forms of the API.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The columns that are named, which take precedence.
    pub mapping: Vec<ColumnMapping>,
    /// The program that exported the file. Columns that it does not list are left out.
    pub preset: Option<&'static Preset>,
    /// Whether columns that are for no field are skipped. Otherwise, the file is refused.
    pub ignore_unknown: bool,
    /// The statuses and currencies that texts of cells stand for.
    pub values: Vec<ValueMapping>,
    /// The character before the decimals of amounts, `.` or `,`. Without it, amounts that may be one of two are refused.
    pub decimal: Option<char>,
    /// The form of dates. Without it, only dates such as 2025-12-31 are read.
    pub date_format: Option<DateFormat>,
    /// Whether rows of CSV with fewer or more cells than the header are refused.
    pub strict: bool,
    /// Whether empty cells leave the fields of existing contacts as they are.
    pub keep_empty: bool,
    /// Words the hints in the problems of rows.
    pub hints: HintWords,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            mapping: Vec::new(),
            preset: None,
            ignore_unknown: false,
            values: Vec::new(),
            decimal: None,
            date_format: None,
            strict: false,
            keep_empty: false,
            hints: |hint| hint.to_string(),
        }
    }
}

/// The field that a column is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMapping {
    /// The name of the column. Of columns with the same name, `Email#2` is the second.
    pub column: String,
    /// The name of the field. `None` if the column is left out.
    pub field: Option<String>,
}

impl fmt::Display for ColumnMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.field.as_deref().unwrap_or_default())
    }
}

/// The status or currency that a text in the cells stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMapping {
    /// The text of the cell. Its case does not count.
    pub text: String,
    /// The name of the status or currency.
    pub value: String,
}

impl fmt::Display for ValueMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", format!("{}={}", self.text, self.value))
    }
}

/// A mapping of a plan that had no effect on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnusedMapping {
    /// No row has this column.
    Column(ColumnMapping),
    /// No cell has this text.
    Value(ValueMapping),
}

/// The settings of the account that rows are read for.
#[derive(Clone, Debug)]
pub struct AccountFacts {
    /// The time zone in which dates begin.
    pub zone: TimeZone,
    /// The currency of rows that name none.
    pub currency: Currency,
    /// Whether an email address identifies a contact.
    pub unique_email: bool,
}
