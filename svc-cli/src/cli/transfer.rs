//! `svc import` and `svc export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::InAccount;
use crate::values;
use svc_core::pages::Since;
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
    #[arg(value_parser = values::import_kind(), value_name = "contacts|invoices|all")]
    pub kind: ImportKind,
    /// File to read, or - for stdin. Its size is not limited.
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
    /// Format of the file. By default it is detected from the file's extension or its first character.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Import a column under the name of a field, such as "Given Name=first_name". The option can be repeated.
    ///
    /// The case of the names of columns does not count, nor whether they have spaces, hyphens or underscores, so `First Name`
    /// is first_name without this option.
    #[arg(long = "map", value_parser = values::column_mapping, value_name = "COLUMN=FIELD")]
    pub mapping: Vec<(String, String)>,
    /// Skip columns that are no fields, instead of refusing the file.
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Report what the import would do, and change nothing.
    ///
    /// Each group of 500 rows is checked in a transaction that is rolled back, so a group does not see the rows of the
    /// groups before it.
    #[arg(long)]
    pub dry_run: bool,
    /// Emit no events, so that nothing is delivered to webhooks.
    #[arg(long)]
    pub no_events: bool,
    /// Update existing contacts whose fields differ, instead of refusing their rows.
    #[arg(long)]
    pub update: bool,
    /// Write all refused rows to this file, one JSON object per line. The report of an import that was interrupted ends with
    /// the rows that were handled until then.
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
    /// spreadsheet, since customers choose the texts.
    #[arg(long)]
    pub escape_formulas: bool,
    /// Export only records changed since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    pub since: Option<Since>,
    /// Add the field `amount_paid` to each invoice.
    ///
    /// The API does not return this field, but an import requires it for partially paid invoices.
    #[arg(long)]
    pub amount_paid: bool,
}
