//! Many records at once: `svc import` and `svc export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use svc_core::values::TenantId;

use crate::values::{self, Since};

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportKind {
    /// People and companies.
    Contacts,
    /// Invoices, in whatever state they are.
    Invoices,
}

/// What can be exported.
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
}

/// How a file holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated cells under a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

/// `svc import`
#[derive(Args, Clone, Debug)]
pub struct Import {
    /// What the rows are.
    #[arg(value_enum, value_name = "contacts|invoices")]
    pub kind: ImportKind,
    /// File to read, of any size, or - for stdin.
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    /// Id of the tenant that gets the records.
    #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
    pub tenant: TenantId,
    /// Format of the file; by the end of its name or else its first character when left out.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Tell what would come of it, and change nothing. Rows are tried in groups of 500, each without the others.
    #[arg(long)]
    pub dry_run: bool,
    /// Fire no events, so that no webhook hears of it.
    #[arg(long)]
    pub no_events: bool,
    /// Change contacts that are there with other fields, instead of refusing their rows.
    #[arg(long)]
    pub update: bool,
    /// Write all refused rows to this file, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// `svc export`
#[derive(Args, Clone, Debug)]
pub struct Export {
    /// What to export.
    #[arg(value_enum, value_name = "KIND")]
    pub kind: ExportKind,
    /// Id of the tenant whose records they are.
    #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
    pub tenant: TenantId,
    /// How to write them.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: Format,
    /// Only those changed since then: a time such as 2026-03-14T15:09:26Z, or back from now such as 2h or 7d.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    pub since: Option<Since>,
    /// Add to each invoice what was paid on it, which the API does not tell; an import needs it of invoices that are
    /// paid in part.
    #[arg(long)]
    pub amount_paid: bool,
}
