//! `svc export`: writes all records of one type to stdout, page by page.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;
use svc_core::error::Error;
use svc_core::imports::RecordKind::{self, Bookings, Contacts, Invoices, Jobs, Quotes};
use svc_core::imports::Restore;
use svc_core::input::FieldNames;
use svc_core::input::json::{self, Json};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud::{Filter as _, Resource};
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::resources::quotes::Quote;
use svc_core::store::{Store, Tx};
use svc_core::values::{Amount, TenantId, Timestamp};

use super::lookup;
use crate::cli::{Export, ExportKind, Format};
use crate::exit::{Exit, Failure};
use crate::formulas;
use crate::output::{self, Outcome};
use crate::service::Service;

/// A record with its type, as `svc import all` reads it.
#[derive(Serialize)]
struct WithKind<T> {
    kind: RecordKind,
    #[serde(flatten)]
    record: T,
}

/// An invoice with the amount paid, which the API does not return.
#[derive(Serialize)]
struct WithPayment<'i> {
    #[serde(flatten)]
    invoice: &'i Invoice,
    amount_paid: Amount,
}

pub(super) async fn run(service: &Service, options: Export, array: bool) -> Result<Outcome, Failure> {
    let Export { kind, tenant, format, escape_formulas, since, amount_paid } = options;
    if escape_formulas && format != Format::Csv {
        return Err(Failure::new(Exit::Usage, "--escape-formulas applies to --format csv only."));
    }
    if amount_paid && kind != ExportKind::Invoices {
        return Err(Failure::new(Exit::Usage, "--amount-paid applies to invoices only."));
    }
    if kind == ExportKind::All && format == Format::Csv {
        return Err(Failure::new(Exit::Usage, "--format csv applies to records of one type only."));
    }
    let store = service.database("svc export")?;
    let tenant = lookup::tenant(service, &tenant).await?.id;
    let source = Source { store, tenant, since: since.map(|since| since.from(store.env().now())) };
    let sink = match (format, array) {
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
        ExportKind::Contacts => source.export(sink, &["deleted_at"], to_json::<Contact>).await,
        ExportKind::Invoices if amount_paid => {
            source.export::<Invoice>(sink, &[], |invoice| to_json(&WithPayment::of(invoice))).await
        }
        ExportKind::Invoices => source.export(sink, &["amount_paid"], to_json::<Invoice>).await,
        ExportKind::Quotes => source.export(sink, &[], to_json::<Quote>).await,
        ExportKind::Bookings => source.export(sink, &[], to_json::<Booking>).await,
        ExportKind::Jobs => source.export(sink, &[], to_json::<Job>).await,
        ExportKind::All => source.export_all(sink).await,
    }
}

impl<'i> WithPayment<'i> {
    fn of(invoice: &'i Invoice) -> Self {
        Self { invoice, amount_paid: invoice.amount_paid }
    }
}

fn to_json<T: Serialize>(record: &T) -> io::Result<Vec<u8>> {
    Ok(output::plain_json(serde_json::to_string(record)?).into_bytes())
}

/// The records to export.
struct Source<'s> {
    store: &'s dyn Store,
    tenant: TenantId,
    since: Option<Timestamp>,
}

impl Source<'_> {
    /// Writes all records. A closed pipe, as in `svc export … | head`, ends the export without an error.
    async fn export<R: Resource + FieldNames>(
        &self,
        mut sink: Sink,
        omitted: &[&str],
        json: impl Fn(&R) -> io::Result<Vec<u8>>,
    ) -> Result<Outcome, Failure> {
        let columns: Vec<&str> = R::FIELD_NAMES.iter().copied().filter(|name| !omitted.contains(name)).collect();
        let mut written = sink.begin(&columns);
        // In a full export, newest first lists each record once even if records change meanwhile.
        let mut order = match self.since {
            Some(from) => Order::OldestChangeFirst { from },
            None => Order::NewestFirst { before: None },
        };
        while written.is_ok() {
            let rows: Vec<R> = self.page(order).await?;
            written = rows.iter().try_for_each(|row| sink.write(&json(row)?));
            let Some(last) = rows.last().filter(|_| rows.len() == MAX_LIMIT as usize) else { break };
            order = match order {
                Order::NewestFirst { .. } => Order::NewestFirst { before: Some(last.created_at()) },
                Order::OldestChangeFirst { .. } => Order::OldestChangeFirst { from: last.updated_at().next() },
            };
        }
        finish(written.and_then(|()| sink.end()))
    }

    /// Writes the records of all types. A closed pipe ends the export without an error.
    async fn export_all(&self, mut sink: Sink) -> Result<Outcome, Failure> {
        let begun = sink.begin(&[]);
        let since = self.since.unwrap_or_else(|| Timestamp::from_micros(0));
        let mut walk = Walk { source: self, sink, since, next_contact: since };
        let written = async {
            begun?;
            let invoice = |invoice: &Invoice| to_json(&WithKind { kind: Invoices, record: WithPayment::of(invoice) });
            walk.write(invoice).await?;
            walk.write(|record: &Quote| to_json(&WithKind { kind: Quotes, record })).await?;
            walk.write(|record: &Booking| to_json(&WithKind { kind: Bookings, record })).await?;
            walk.write(|record: &Job| to_json(&WithKind { kind: Jobs, record })).await?;
            walk.sink.end()?;
            Ok(())
        };
        match written.await {
            Ok(()) => Ok(Outcome::nothing()),
            Err(Stopped::Read(failure)) => Err(failure),
            Err(Stopped::Write(error)) => finish(Err(error)),
        }
    }

    async fn page<R: Resource>(&self, order: Order) -> Result<Vec<R>, Failure> {
        let tenant = self.tenant;
        let page = self.store.read("export", move |tx| {
            let listing = ListQuery { limit: MAX_LIMIT, order, filter: R::Filter::none() };
            Box::pin(async move { Ok(R::repository(tx).list(tenant, &listing).await?) })
        });
        Ok(page.await?)
    }
}

/// An export of all records: first of the contacts, then of the records that refer to them.
struct Walk<'s> {
    source: &'s Source<'s>,
    sink: Sink,
    /// The time from which on changes are exported.
    since: Timestamp,
    /// The time of the first change of a contact that was not written yet.
    next_contact: Timestamp,
}

/// Why an export of all records ended early.
enum Stopped {
    Read(Failure),
    Write(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl Walk<'_> {
    /// Writes all records of a type, oldest change first. Each page is read together with the contacts that have changed
    /// meanwhile, which are written before it, so no record comes before its contact.
    async fn write<R: Restore>(&mut self, json: impl Fn(&R) -> io::Result<Vec<u8>>) -> Result<(), Stopped> {
        let mut next = self.since;
        loop {
            let (contacts, rows) = self.page::<R>(next).await?;
            for record in &contacts {
                self.sink.write(&to_json(&WithKind { kind: Contacts, record })?)?;
            }
            rows.iter().try_for_each(|row| self.sink.write(&json(row)?))?;
            self.next_contact = contacts.last().map_or(self.next_contact, |contact| contact.updated_at.next());
            next = rows.last().map_or(next, |row| row.updated_at().next());
            if contacts.len() < MAX_LIMIT as usize && rows.len() < MAX_LIMIT as usize {
                return Ok(());
            }
        }
    }

    /// Reads the next contacts and, if these are all, the next records.
    async fn page<R: Restore>(&self, next: Timestamp) -> Result<(Vec<Contact>, Vec<R>), Stopped> {
        let (tenant, next_contact) = (self.source.tenant, self.next_contact);
        let page = self.source.store.read("export", move |tx| {
            Box::pin(async move {
                let contacts = changed_since::<Contact>(tx, tenant, next_contact).await?;
                if contacts.len() == MAX_LIMIT as usize {
                    return Ok((contacts, Vec::new()));
                }
                Ok((contacts, changed_since::<R>(tx, tenant, next).await?))
            })
        });
        page.await.map_err(|error| Stopped::Read(error.into()))
    }
}

/// Returns the records that have changed at or after a time, deleted ones included.
async fn changed_since<R: Restore>(tx: &mut dyn Tx, tenant: TenantId, from: Timestamp) -> Result<Vec<R>, Error> {
    let query = ListQuery { limit: MAX_LIMIT, order: Order::OldestChangeFirst { from }, filter: R::unfiltered() };
    Ok(R::repository(tx).list(tenant, &query).await?)
}

/// Returns the outcome of an export. A closed pipe, as in `svc export … | head`, is not a failure.
fn finish(written: io::Result<()>) -> Result<Outcome, Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
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
    let cell = |(_, value)| match value {
        Json::String(text) => formulas::to_cell(text, escape_formulas),
        Json::Number(digits) => digits,
        Json::Bool(value) => value.to_string(),
        Json::Null | Json::Array(_) | Json::Object(_) => String::new(),
    };
    Ok(members.into_iter().map(cell).collect())
}
