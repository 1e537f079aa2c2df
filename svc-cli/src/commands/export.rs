//! `svc export`: writes all records of one type, or of an account, to stdout, page by page.

use std::io::{self, IsTerminal as _, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;
use svc_core::input::FieldNames;
use svc_core::input::json::{self, Json};
use svc_core::operation::Listing;
use svc_core::pages::{Limit, ListParams, MAX_LIMIT, Since};
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{ExportPage, ExportParams};
use svc_core::resources::Filter as _;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::kinds::AccountRecord;
use svc_core::resources::quotes::Quote;
use svc_core::values::{Amount, TenantId};

use super::lookup;
use super::resource::ResourceCommands;
use crate::exit::{Exit, Failure};
use crate::ids::InAccount;
use crate::output::{self, Outcome};
use crate::service::{CallError, CallResult, Service};
use crate::session::Session;
use crate::times;
use crate::values::{self, Format, TimeArg};

/// The types of records that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportKind {
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

/// Export all records of one type, or of an account, to stdout, one JSON object per line.
///
/// Each record appears once, as GET returns it. Records are ordered newest first, or oldest change first with
/// --since. The export reads page by page in constant memory and can run while servers use the database.
///
/// `svc export all` writes all records of an account for `svc import all`, deleted contacts included, each with its type
/// in `kind`. A record comes after the contact that it refers to, and once more if it changes during the export. With
/// --since, it writes what has changed since an earlier export.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc export contacts > contacts.ndjson\n  \
                  svc export jobs --since 7d --format csv\n  \
                  svc export all > all.ndjson")]
pub(crate) struct Export {
    /// Type of the records to export.
    #[arg(value_enum, value_name = "KIND")]
    kind: ExportKind,
    #[command(flatten)]
    account: InAccount,
    /// Output format.
    #[arg(long, value_enum, default_value = "ndjson")]
    format: Format,
    /// Put an apostrophe before CSV cells that a spreadsheet would run as formulas. An import removes it again.
    ///
    /// These are texts that begin with =, +, -, @, a tab or a line break. Use it for files that people open in a
    /// spreadsheet, since customers choose the texts. Texts that begin with = get the apostrophe in any case, since an import
    /// takes no formula.
    #[arg(long)]
    escape_formulas: bool,
    /// Export only records changed since this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago,
    /// such as 2h or 7d. A date is its start.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    since: Option<TimeArg>,
    /// Add the field `amount_paid` to each invoice.
    ///
    /// The API does not return this field, but an import requires it for partially paid invoices.
    #[arg(long)]
    amount_paid: bool,
}

/// An invoice with the amount paid, which the public API does not return.
#[derive(Serialize)]
struct WithPayment<'i> {
    #[serde(flatten)]
    invoice: &'i Invoice,
    amount_paid: Amount,
}

pub(crate) async fn run(session: &Session, options: Export) -> Result<Outcome, Failure> {
    session.refuse_csv("`svc export`; use --format csv")?;
    let service = &session.service().await?;
    let Export { kind, account, format, escape_formulas, since, amount_paid } = options;
    if escape_formulas && format != Format::Csv {
        return Err(Failure::new(Exit::Usage, "--escape-formulas applies to --format csv only."));
    }
    if amount_paid && kind != ExportKind::Invoices {
        return Err(Failure::new(Exit::Usage, "--amount-paid applies to invoices only."));
    }
    if kind == ExportKind::All && format == Format::Csv {
        return Err(Failure::new(Exit::Usage, "--format csv applies to records of one type only."));
    }
    let account = lookup::account(service, &account).await?.id;
    let since = times::since(since.as_ref())?;
    let source = Source { service, account, since };
    let sink = match (format, session.is_json()) {
        (Format::Ndjson, false) => Sink::Lines(Box::new(output::stream())),
        (Format::Ndjson, true) => Sink::Array { out: Box::new(output::stream()), any: false },
        (Format::Csv, false) => Sink::Csv {
            out: Box::new(csv::Writer::from_writer(Box::new(output::stream()))),
            escape_formulas,
            on_terminal: io::stdout().is_terminal(),
        },
        (Format::Csv, true) => {
            return Err(Failure::new(Exit::Usage, "--format csv and --json cannot be used together."));
        }
    };
    match kind {
        ExportKind::Contacts => source.export(sink, &["deleted_at", "erasure"], to_json::<Contact>).await,
        ExportKind::Invoices if amount_paid => {
            let json = |invoice: &Invoice| to_json(&WithPayment { invoice, amount_paid: invoice.amount_paid });
            source.export(sink, &[], json).await
        }
        ExportKind::Invoices => source.export(sink, &["amount_paid"], to_json::<Invoice>).await,
        ExportKind::Quotes => source.export(sink, &[], to_json::<Quote>).await,
        ExportKind::Bookings => source.export(sink, &[], to_json::<Booking>).await,
        ExportKind::Jobs => source.export(sink, &[], to_json::<Job>).await,
        ExportKind::All => source.export_all(sink).await,
    }
}

fn to_json<T: Serialize>(record: &T) -> io::Result<Vec<u8>> {
    Ok(output::plain_json(serde_json::to_string(record)?).into_bytes())
}

/// The records to export.
struct Source<'s> {
    service: &'s Service,
    account: TenantId,
    since: Option<Since>,
}

/// Why an export ended early.
enum ExportError {
    Read(Failure),
    Write(io::Error),
}

impl From<CallError> for ExportError {
    fn from(error: CallError) -> Self {
        Self::Read(error.into())
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl Source<'_> {
    /// Writes all records of one type. In a full export, newest first lists each record once even if records change
    /// meanwhile.
    async fn export<R: ResourceCommands + FieldNames>(
        &self,
        sink: Sink,
        omitted: &[&str],
        json: impl Fn(&R) -> io::Result<Vec<u8>>,
    ) -> Result<Outcome, Failure> {
        let columns: Vec<&str> = R::FIELD_NAMES.iter().copied().filter(|name| !omitted.contains(name)).collect();
        let page = ListParams { limit: Limit::new(MAX_LIMIT), updated_since: self.since, ..ListParams::default() };
        let first = Listing { page, filter: R::Filter::none() };
        let read = async |query: Listing<ListParams, R::Filter>| {
            let page = self.service.call(&Records::<R>::LIST, self.account, query.clone()).await?;
            let next = page.next_cursor.map(|cursor| {
                let page = ListParams { cursor: Some(cursor.into()), ..query.page };
                Listing { page, filter: query.filter }
            });
            Ok((page.data, next))
        };
        write(sink, &columns, first, read, json).await
    }

    /// Writes the records of all types.
    async fn export_all(&self, sink: Sink) -> Result<Outcome, Failure> {
        let first = ExportParams { since: self.since, limit: Limit::new(MAX_LIMIT), cursor: None };
        let read = async |query: ExportParams| {
            let ExportPage { data, next_cursor } =
                self.service.call(&operations::EXPORT_RECORDS, self.account, query.clone()).await?;
            Ok((data, next_cursor.map(|cursor| ExportParams { cursor: Some(cursor), ..query })))
        };
        write(sink, &[], first, read, to_json::<AccountRecord>).await
    }
}

/// Writes records page by page. `read` returns the records of a page, and the query of the next one. A closed pipe, as in
/// `svc export … | head`, ends the export without an error.
async fn write<R, Q>(
    mut sink: Sink,
    columns: &[&str],
    first: Q,
    read: impl AsyncFn(Q) -> CallResult<(Vec<R>, Option<Q>)>,
    json: impl Fn(&R) -> io::Result<Vec<u8>>,
) -> Result<Outcome, Failure> {
    let written = async {
        sink.begin(columns)?;
        let mut next = Some(first);
        while let Some(query) = next {
            let (records, following) = read(query).await?;
            for record in &records {
                sink.write(&json(record)?)?;
            }
            next = following;
        }
        Ok(sink.end()?)
    };
    match written.await {
        Err(ExportError::Read(failure)) => Err(failure),
        Err(ExportError::Write(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, format!("The records could not be written: {error}.")))
        }
        _ => Ok(Outcome::nothing()),
    }
}

/// The output format, with its writer.
enum Sink {
    /// One JSON object per line.
    Lines(Box<dyn Write>),
    /// One JSON array.
    Array {
        out: Box<dyn Write>,
        /// Whether a record was written.
        any: bool,
    },
    /// CSV with a header row.
    Csv {
        out: Box<csv::Writer<Box<dyn Write>>>,
        /// Whether an apostrophe is put before formulas.
        escape_formulas: bool,
        /// Whether a person sees the cells, whose control characters are then escaped.
        on_terminal: bool,
    },
}

impl Sink {
    fn begin(&mut self, columns: &[&str]) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Array { out, .. } => out.write_all(b"["),
            Self::Csv { out, .. } => out.write_record(columns).map_err(cause),
        }
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        match self {
            Self::Lines(out) => {
                out.write_all(record)?;
                out.write_all(b"\n")
            }
            Self::Array { out, any } => {
                out.write_all(if std::mem::replace(any, true) { b",\n" } else { b"\n" })?;
                out.write_all(record)
            }
            Self::Csv { out, escape_formulas, on_terminal } => {
                let shown = |cell: String| if *on_terminal { output::plain(&cell) } else { cell };
                out.write_record(cells(record, *escape_formulas)?.into_iter().map(shown)).map_err(cause)
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.flush(),
            Self::Array { out, any } => {
                out.write_all(if *any { b"\n]\n" } else { b"]\n" })?;
                out.flush()
            }
            Self::Csv { out, .. } => out.flush(),
        }
    }
}

/// Returns the underlying I/O error, whose kind reveals a closed pipe.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Returns the values of a record in the order of its fields, which is the order of the columns. Null becomes an empty
/// cell, and numbers keep their digits.
fn cells(record: &[u8], escape_formulas: bool) -> io::Result<Vec<String>> {
    let Ok(Json::Object(members)) = json::parse(record) else {
        return Err(io::Error::other("a record is not a JSON object"));
    };
    Ok(members.into_iter().map(|(_, value)| output::cell(value, escape_formulas)).collect())
}
