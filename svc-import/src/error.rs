//! Why a file cannot be imported.

use std::io;

use crate::check::FileFault;
use crate::csv::Fault;
use crate::hints::statuses;
use crate::plan::{ColumnMapping, ValueMapping};

/// A part of a plan that does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPart {
    /// The decimal character, which amounts have.
    Decimal,
    /// The form of dates.
    DateFormat,
    /// The texts of statuses and currencies.
    Values,
}

/// Why a file cannot be imported, or not any further. The texts do not name the file, and columns in them are quoted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("The file cannot be read: {0}.")]
    Read(io::Error),
    /// The rest of the file cannot be read.
    #[error("The file cannot be read any further: {0}.")]
    ReadRest(io::Error),
    /// The file was changed while its rows were read.
    #[error("The file was changed while it was read, and is not valid CSV now: {0}.")]
    Changed(Fault),
    /// The file is in UTF-16.
    #[error("The file is encoded in UTF-16. Save it as CSV in UTF-8.")]
    Utf16,
    /// The file is a workbook and no CSV.
    #[error("The file is a workbook of a spreadsheet. Save it as CSV in UTF-8.")]
    Workbook,
    /// All lines were skipped.
    #[error("The file has no more than {lines} lines, which are skipped.")]
    Skipped {
        /// The number of lines to skip.
        lines: u64,
    },
    /// The file is JSON, but not one object on each line.
    #[error("The file has JSON that is not one object on each line.")]
    Json {
        /// The filter with which `jq -c` writes one object on each line.
        filter: &'static str,
    },
    /// The file is not valid.
    #[error("{0}")]
    File(FileFault),
    /// A mapping names no field.
    #[error("There is no field {}.", mapping.field.as_deref().unwrap_or_default())]
    UnknownField {
        /// The mapping.
        mapping: ColumnMapping,
        /// The field that may be meant.
        meant: Option<&'static str>,
        /// All fields.
        fields: &'static [&'static str],
    },
    /// Two mappings name the same field.
    #[error(
        "Two columns, {:?} and {:?}, are read as {}. Choose one of them.",
        first.column, second.column, second.field.as_deref().unwrap_or_default()
    )]
    SameField {
        /// The first mapping.
        first: ColumnMapping,
        /// The second mapping.
        second: ColumnMapping,
    },
    /// A part of the plan does not apply to this type of records.
    #[error("These records have no {}.", part_name(*.0))]
    Inapplicable(PlanPart),
    /// A part of the plan has no effect on this file.
    #[error("No column of the file has {}.", part_name(*.0))]
    WithoutEffect(PlanPart),
    /// A mapping names neither a status nor a currency.
    #[error("{:?} is neither a status nor a currency. The statuses are {}.", .0.value, statuses())]
    UnknownValue(ValueMapping),
    /// A mapping would take amounts in one currency for amounts in another.
    #[error("{:?} would take amounts in {code} for amounts in {value}. Convert them.", mapping.text)]
    OtherCurrency {
        /// The mapping.
        mapping: ValueMapping,
        /// The code of the currency that the text names.
        code: String,
        /// The code of the currency that it would become.
        value: String,
    },
    /// Two mappings name the same text.
    #[error("The text {:?} is there twice.", second.text)]
    SameText {
        /// The first mapping.
        first: ValueMapping,
        /// The second mapping.
        second: ValueMapping,
    },
    /// The file is empty.
    #[error("The file is empty. The first row of a CSV file must contain the names of its columns.")]
    Empty,
    /// The header is too long.
    #[error("The file has no header row: its first row is too long.")]
    LongHeader,
    /// The header is not UTF-8.
    #[error("The file is not UTF-8. Save it as CSV in UTF-8.")]
    HeaderEncoding,
    /// A mapping names no column of the file.
    #[error("The file has no column {:?}. The columns on line {line} are {columns}.", mapping.column)]
    UnknownColumn {
        /// The mapping.
        mapping: ColumnMapping,
        /// The column that may be meant.
        meant: Option<String>,
        /// The line of the header.
        line: u64,
        /// The columns of the file, as a list.
        columns: String,
    },
    /// A column that is used is there twice.
    #[error("The file has more than one column {column}. Choose the one that is read as {field}.")]
    RepeatedColumn {
        /// The name of the column.
        column: String,
        /// The field that it is for.
        field: &'static str,
        /// Whether a mapping names the column.
        is_mapped: bool,
    },
    /// Two mappings name the same column.
    #[error("The column {column} is there twice.")]
    MappedTwice {
        /// The second mapping.
        mapping: ColumnMapping,
        /// The name of the column.
        column: String,
    },
    /// No column is one that the program exports.
    #[error("The file has none of the columns that this program exports. The columns on line {line} are {columns}.")]
    NoPresetColumn {
        /// The line of the header.
        line: u64,
        /// The columns of the file, as a list.
        columns: String,
    },
    /// No column is for a field. The line may not be the header.
    #[error("No column is the name of a field on line {line}. The fields are {}.", fields.join(", "))]
    NoFieldColumn {
        /// The line of the header.
        line: u64,
        /// The columns of the file, as a list. Empty if it has none.
        columns: String,
        /// All fields.
        fields: &'static [&'static str],
    },
    /// Columns are for no field.
    #[error("The file has columns that are no fields: {columns}.")]
    UnknownColumns {
        /// The columns, as a list.
        columns: String,
        /// Whether there is more than one.
        are_many: bool,
        /// All fields.
        fields: &'static [&'static str],
    },
    /// No column is for a field that every row needs.
    #[error("No column is read as {field}, which every row needs. Choose the column that has it.")]
    RequiredField {
        /// The field.
        field: &'static str,
    },
}

fn part_name(part: PlanPart) -> &'static str {
    match part {
        PlanPart::Decimal => "amounts",
        PlanPart::DateFormat => "dates",
        PlanPart::Values => "statuses and currencies",
    }
}
