//! The options of `svc import`.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, value_parser};
use svc_core::platform::ImportKind;
use svc_import::{ColumnMapping, DateFormat, Plan, Preset, ValueMapping, presets};

use super::words;
use crate::ids::InAccount;
use crate::values::{self, Format};

/// Import contacts or invoices from a CSV or NDJSON file, or all records of an account from an export.
///
/// The CSV columns or JSON members are the fields of the API and are validated like them. `id` and `created_at` are
/// preserved, so an export of one database can be imported into another. Valid rows are committed in groups of 500.
/// Refused rows are reported at the end and make the exit code 1.
///
/// It is safe to run the same import again after correcting the file or after an interruption: a row that already
/// exists is not added twice. A row matches an existing record by its id; without an id, by the contact's email or
/// the invoice's number; without either, by all of its fields.
///
/// Fields of contacts: id, email, first_name, last_name, phone, company_name, city, state, postcode, created_at.
/// Fields of invoices: id, invoice_number, contact_id, status, issue_date, due_date, total, currency, paid_at,
/// amount_paid, created_at. `updated_at` is accepted and ignored. In CSV, an apostrophe before =, +, -, @, a tab or a
/// line break at the beginning of a text is removed, as `svc export --escape-formulas` writes it, and one before a
/// number. Of a formula such as ="0800", the text is read; other formulas are refused. Rows whose cells are all empty are
/// skipped.
///
/// A file is checked to its end before its first row is imported. If it is not UTF-8, or if it is CSV whose quotes are not
/// closed, nothing is imported. Input from a pipe is read to its end first.
///
/// For files of other programs, --from knows the columns of some of them, and --map names the field of any column.
/// --skip-lines, --decimal, --date-format and --map-value say how a file differs. An option that has no effect on the
/// file is an error.
///
/// `svc import all` puts back what `svc export all` wrote: contacts, deleted ones included, invoices, quotes, bookings
/// and jobs, with their numbers and all their times. It fires no events. A row is refused if another record of its
/// type has changed later, as clients that keep a copy by `updated_since` would miss it: import into an account without
/// records.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "svc import [OPTIONS] <contacts|invoices|all> <FILE|->\n       svc import --presets",
    after_help = "Examples:\n  svc import contacts contacts.csv\n  \
                  svc import contacts contacts.csv --dry-run --report refused.ndjson\n  \
                  svc import invoices invoices.csv --from xero --date-format DD/MM/YYYY\n  \
                  zcat invoices.ndjson.gz | svc import invoices --no-events -\n  \
                  svc import all all.ndjson"
)]
pub(crate) struct Import {
    /// Type of the records in the file.
    #[arg(
        value_parser = parse_kind(),
        required_unless_present = "presets",
        hide_possible_values = true,
        value_name = "contacts|invoices|all"
    )]
    pub(super) kind: Option<ImportKind>,
    /// File to read, or - for stdin. Its size is not limited.
    #[arg(required_unless_present = "presets", value_name = "FILE|-")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) account: InAccount,
    /// Format of the file. By default it is detected.
    ///
    /// It is detected from the file's extension or its first character.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "csv|ndjson")]
    pub(super) format: Option<Format>,
    /// Program that exported the CSV file, whose columns --presets lists.
    ///
    /// Its columns are mapped to fields as --presets lists, and others are left out. --map takes precedence, as does --map-value for statuses. Dates may need --date-format.
    #[arg(long, value_parser = parse_preset(), hide_possible_values = true, value_name = "PROGRAM")]
    pub(super) from: Option<&'static Preset>,
    /// List the programs for --from, with the columns of their exports.
    #[arg(
        long,
        conflicts_with_all = [
            "kind", "file", "format", "from", "mapping", "ignore_unknown", "skip_lines", "strict", "decimal",
            "date_format", "values", "dry_run", "no_events", "update", "keep_empty", "report",
        ]
    )]
    pub(super) presets: bool,
    /// Import a column as a field, such as "Given Name=first_name".
    ///
    /// The option can be repeated. The case of the names of columns does not count, nor whether they have spaces, hyphens or underscores, so `First Name`
    /// is first_name without this option. A column that is named here takes the place of one that has the name of the field.
    /// Of columns with the same name, "Email#2=email" takes the second. An empty field leaves the column out, such as "id=".
    #[arg(
        long = "map",
        value_parser = column_mapping,
        allow_hyphen_values = true,
        value_name = "COLUMN=FIELD"
    )]
    pub(super) mapping: Vec<ColumnMapping>,
    /// Skip columns that are no fields, instead of refusing the file.
    #[arg(long, conflicts_with = "from")]
    pub(super) ignore_unknown: bool,
    /// Skip this many lines of a CSV file before its header.
    ///
    /// They are the title of a report, for example.
    #[arg(long, value_parser = value_parser!(u64).range(1..), value_name = "N")]
    pub(super) skip_lines: Option<u64>,
    /// Refuse rows of a CSV file that have fewer or more cells than the header.
    ///
    /// Otherwise, cells that are missing at the end of a row are empty, and more cells are refused unless they are empty.
    #[arg(long)]
    pub(super) strict: bool,
    /// Character before the decimals of amounts in a CSV file: . or ,
    ///
    /// It is a comma in 1.239,00. The default is the point, but an amount that may be one of two, such as 1.239, is then refused. An amount can have separators between its thousands, and a sign such as $ or a code before or after it: $1,239.00. It is refused if they are not those of the row's currency.
    #[arg(long, value_parser = parse_decimal, value_name = "CHARACTER")]
    pub(super) decimal: Option<char>,
    /// Form of the dates in a CSV file, such as DD/MM/YYYY.
    ///
    /// It has DD, MM or MMM, and YYYY or YY, with any separators; MMM is the English name of a month or its first letters. Otherwise, only dates such as 2025-12-31 are read. The order of day and month is never guessed. Fields that are times
    /// get the beginning of the date in the account's time zone. A date may have a time: one with an offset or a time zone such as
    /// Australia/Sydney, or in a column such as "Date (UTC)", is converted to the date in the account's time zone.
    #[arg(long, value_parser = DateFormat::parse, value_name = "FORMAT")]
    pub(super) date_format: Option<DateFormat>,
    /// Status or currency for a text, such as "Awaiting Payment=sent".
    ///
    /// The option can be repeated. The text is compared with the whole cell, and its case does not count. The names of statuses and currencies
    /// themselves are read in any case. The code of another currency is no such text, as the amounts would have to be converted.
    #[arg(
        long = "map-value",
        value_parser = value_mapping,
        allow_hyphen_values = true,
        value_name = "TEXT=VALUE"
    )]
    pub(super) values: Vec<ValueMapping>,
    /// Report what the import would do, and change nothing.
    ///
    /// Each group of 500 rows is checked in a transaction that is rolled back, so a group does not see the rows of the
    /// groups before it.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Emit no events, so that nothing is delivered to webhooks.
    #[arg(long)]
    pub(super) no_events: bool,
    /// Update contacts that differ, instead of refusing their rows.
    ///
    /// Empty cells clear their fields. Only fields that have a column are changed. With --keep-empty, empty cells leave their fields as they are.
    #[arg(long)]
    pub(super) update: bool,
    /// With --update, keep the fields whose cells are empty.
    ///
    /// In NDJSON, these are the fields that are null.
    #[arg(long, requires = "update")]
    pub(super) keep_empty: bool,
    /// Write all refused rows to this file, one JSON object per line.
    ///
    /// The file must not exist yet. The report of an import that was interrupted ends with the rows that were handled until
    /// then.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

impl Import {
    /// Returns how the file is read.
    pub(super) fn plan(&self) -> Plan {
        Plan {
            mapping: self.mapping.clone(),
            preset: self.from,
            ignore_unknown: self.ignore_unknown,
            values: self.values.clone(),
            decimal: self.decimal,
            date_format: self.date_format.clone(),
            strict: self.strict,
            keep_empty: self.keep_empty,
            hints: words::hint,
        }
    }
}

/// Returns a parser for the type of the records of an import.
fn parse_kind() -> impl TypedValueParser<Value = ImportKind> {
    values::one_of([
        (ImportKind::Contacts, "People and companies"),
        (ImportKind::Invoices, "Invoices, with any status"),
        (ImportKind::All, "All records of an account, as `svc export all` writes them"),
    ])
}

/// Returns a parser for the name of a program whose exports can be imported.
fn parse_preset() -> impl TypedValueParser<Value = &'static Preset> {
    values::one_of(presets().iter().map(|preset| (preset, preset.title.as_str())))
}

/// Parses the field that a column of an import is for, such as `First Name=first_name`, or `Notes=` for a column to leave
/// out.
fn column_mapping(text: &str) -> Result<ColumnMapping, &'static str> {
    // A field has no equals sign, but a column can.
    match text.rsplit_once('=').map(|(column, field)| (column.trim(), field.trim())) {
        Some((column, field)) if !column.is_empty() => {
            let field = Some(field.to_owned()).filter(|field| !field.is_empty());
            Ok(ColumnMapping { column: column.to_owned(), field })
        }
        _ => Err(
            "must be a column and a field, such as \"First Name=first_name\", or a column to leave out, such as \"Notes=\"",
        ),
    }
}

/// Parses what a text in the cells of an import stands for, such as `Awaiting Payment=sent`.
fn value_mapping(text: &str) -> Result<ValueMapping, &'static str> {
    match text.rsplit_once('=').map(|(text, value)| (text.trim(), value.trim())) {
        Some((text, value)) if !text.is_empty() && !value.is_empty() => {
            Ok(ValueMapping { text: text.to_owned(), value: value.to_owned() })
        }
        _ => Err("must be a text and a status or currency, such as \"Awaiting Payment=sent\""),
    }
}

/// Parses the character before the decimals of an amount.
fn parse_decimal(text: &str) -> Result<char, &'static str> {
    match text {
        "." => Ok('.'),
        "," => Ok(','),
        _ => Err("must be , or ."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_mapped_to_a_field_or_left_out() {
        assert_eq!(column_mapping("- Email=email").unwrap().field.as_deref(), Some("email"));
        assert_eq!(column_mapping("Notes=").unwrap().field, None);
        assert!(column_mapping("Notes").is_err());
    }
}
