//! `svc import` and `svc export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::InAccount;
use crate::presets::Preset;
use crate::values::{self, ColumnMapping, DateFormat, TimeArg, ValueMapping};
use svc_core::platform::ImportKind;

/// The types of records that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportKind {
    /// People and companies that are not deleted.
    Contacts,
    /// Invoices.
    Invoices,
    /// Quotes.
    Quotes,
    /// Bookings.
    Bookings,
    /// Jobs.
    Jobs,
    /// All of these, deleted contacts included, for `svc import all`.
    All,
}

/// The file formats of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

/// `svc import`
#[derive(Args, Clone, Debug)]
pub struct Import {
    /// Type of the records in the file.
    #[arg(
        value_parser = values::import_kind(),
        required_unless_present = "presets",
        hide_possible_values = true,
        value_name = "contacts|invoices|all"
    )]
    pub kind: Option<ImportKind>,
    /// File to read, or - for stdin. Its size is not limited.
    #[arg(required_unless_present = "presets", value_name = "FILE|-")]
    pub file: Option<PathBuf>,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
    /// Format of the file. By default it is detected.
    ///
    /// It is detected from the file's extension or its first character.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "csv|ndjson")]
    pub format: Option<Format>,
    /// Program that exported the CSV file, whose columns --presets lists.
    ///
    /// Its columns are mapped to fields as --presets lists, and others are left out. --map takes precedence, as does --map-value for statuses. Dates may need --date-format.
    #[arg(long, value_parser = values::preset(), hide_possible_values = true, value_name = "PROGRAM")]
    pub from: Option<Preset>,
    /// List the programs for --from, with the columns of their exports.
    #[arg(
        long,
        conflicts_with_all = [
            "kind", "file", "format", "from", "mapping", "ignore_unknown", "skip_lines", "strict", "decimal",
            "date_format", "values", "dry_run", "no_events", "update", "keep_empty", "report",
        ]
    )]
    pub presets: bool,
    /// Import a column as a field, such as "Given Name=first_name".
    ///
    /// The option can be repeated. The case of the names of columns does not count, nor whether they have spaces, hyphens or underscores, so `First Name`
    /// is first_name without this option. A column that is named here takes the place of one that has the name of the field.
    /// Of columns with the same name, "Email#2=email" takes the second. An empty field leaves the column out, such as "id=".
    #[arg(
        long = "map",
        value_parser = values::column_mapping,
        allow_hyphen_values = true,
        value_name = "COLUMN=FIELD"
    )]
    pub mapping: Vec<ColumnMapping>,
    /// Skip columns that are no fields, instead of refusing the file.
    #[arg(long, conflicts_with = "from")]
    pub ignore_unknown: bool,
    /// Skip this many lines of a CSV file before its header.
    ///
    /// They are the title of a report, for example.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    pub skip_lines: Option<u64>,
    /// Refuse rows of a CSV file that have fewer or more cells than the header.
    ///
    /// Otherwise, cells that are missing at the end of a row are empty, and more cells are refused unless they are empty.
    #[arg(long)]
    pub strict: bool,
    /// Character before the decimals of amounts in a CSV file: . or ,
    ///
    /// It is a comma in 1.239,00. The default is the point, but an amount that may be one of two, such as 1.239, is then refused. An amount can have separators between its thousands, and a sign such as $ or a code before or after it: $1,239.00. It is refused if they are not those of the row's currency.
    #[arg(long, value_parser = values::decimal, value_name = "CHARACTER")]
    pub decimal: Option<char>,
    /// Form of the dates in a CSV file, such as DD/MM/YYYY.
    ///
    /// It has DD, MM or MMM, and YYYY or YY, with any separators; MMM is the English name of a month or its first letters. Otherwise, only dates such as 2025-12-31 are read. The order of day and month is never guessed. Fields that are times
    /// get the beginning of the date in the account's time zone. A date may have a time: one with an offset or a time zone such as
    /// Australia/Sydney, or in a column such as "Date (UTC)", is converted to the date in the account's time zone.
    #[arg(long, value_parser = DateFormat::parse, value_name = "FORMAT")]
    pub date_format: Option<DateFormat>,
    /// Status or currency for a text, such as "Awaiting Payment=sent".
    ///
    /// The option can be repeated. The text is compared with the whole cell, and its case does not count. The names of statuses and currencies
    /// themselves are read in any case. The code of another currency is no such text, as the amounts would have to be converted.
    #[arg(
        long = "map-value",
        value_parser = values::value_mapping,
        allow_hyphen_values = true,
        value_name = "TEXT=VALUE"
    )]
    pub values: Vec<ValueMapping>,
    /// Report what the import would do, and change nothing.
    ///
    /// Each group of 500 rows is checked in a transaction that is rolled back, so a group does not see the rows of the
    /// groups before it.
    #[arg(long)]
    pub dry_run: bool,
    /// Emit no events, so that nothing is delivered to webhooks.
    #[arg(long)]
    pub no_events: bool,
    /// Update contacts that differ, instead of refusing their rows.
    ///
    /// Empty cells clear their fields. Only fields that have a column are changed. With --keep-empty, empty cells leave their fields as they are.
    #[arg(long)]
    pub update: bool,
    /// With --update, keep the fields whose cells are empty.
    ///
    /// In NDJSON, these are the fields that are null.
    #[arg(long, requires = "update")]
    pub keep_empty: bool,
    /// Write all refused rows to this file, one JSON object per line.
    ///
    /// The file must not exist yet. The report of an import that was interrupted ends with the rows that were handled until
    /// then.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// `svc export`
#[derive(Args, Clone, Debug)]
pub struct Export {
    /// Type of the records to export.
    #[arg(value_enum, value_name = "KIND")]
    pub kind: ExportKind,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
    /// Output format.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: Format,
    /// Put an apostrophe before CSV cells that a spreadsheet would run as formulas. An import removes it again.
    ///
    /// These are texts that begin with =, +, -, @, a tab or a line break. Use it for files that people open in a
    /// spreadsheet, since customers choose the texts. Texts that begin with = get the apostrophe in any case, since an import
    /// takes no formula.
    #[arg(long)]
    pub escape_formulas: bool,
    /// Export only records changed since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d.
    /// A date, such as 2026-03-14, is its start in the account's time zone.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    pub since: Option<TimeArg>,
    /// Add the field `amount_paid` to each invoice.
    ///
    /// The API does not return this field, but an import requires it for partially paid invoices.
    #[arg(long)]
    pub amount_paid: bool,
}
