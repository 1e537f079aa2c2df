//! `svc import`: imports the rows of a file of any size, in constant memory.
//!
//! A thread reads the file and parses each row (`rows`, on top of `csv` or `ndjson`, on top of `source`). Meanwhile, the
//! rows that were read before are imported in groups, one request of the platform API each (`groups`). Refused rows are
//! collected for the report at the end (`refusals`). svc-core decides which existing record a row matches, so that an
//! import can be interrupted and run again.

mod amounts;
mod cells;
mod check;
mod columns;
mod csv;
mod date_format;
mod dates;
mod groups;
mod ndjson;
mod options;
mod progress;
mod refusals;
mod rows;
mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;

use serde::Serialize;
use svc_core::imports::Import as ImportOf;
use svc_core::input::FieldNames as _;
use svc_core::platform::operations::IMPORT_RECORDS;
use svc_core::platform::{Account, ImportCreate, ImportKind, ImportRows, ImportedRow, RowOutcome};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::kinds::AccountRecord;
use svc_core::values::{EventKind, TimeZone};
use tokio::sync::mpsc;

use self::cells::CellReader;
use self::columns::ColumnNames;
use self::groups::{Groups, RowResult};
pub(crate) use self::options::Import;
use self::progress::Progress;
use self::refusals::Refusals;
use self::rows::{Group, Parser};
use self::source::Source;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::output::{self, Outcome, Table};
use crate::presets::PRESETS;
use crate::service::Service;
use crate::session::Session;
use crate::values::Format;

/// The number of groups that are read ahead.
const READ_AHEAD: usize = 2;

/// The result of an import. Its fields are the JSON output.
#[derive(Clone, Debug, Default, Serialize)]
struct Summary {
    rows: u64,
    added: u64,
    #[serde(rename = "there_already")]
    unchanged: u64,
    updated: u64,
    refused: u64,
    /// Rows of empty cells, and blank lines. They are not among `rows`.
    blank: u64,
    dry_run: bool,
    /// Whether the whole file was imported.
    complete: bool,
}

pub(crate) async fn run(session: &Session, options: Import) -> Result<Outcome, Failure> {
    // The command line has both, except with --presets.
    let (Some(kind), Some(file)) = (options.kind, options.file.clone()) else { return presets() };
    let service = &session.service().await?;
    let is_all = kind == ImportKind::All;
    let reason = match kind {
        ImportKind::Invoices if options.update => {
            "--update applies to contacts only; change an invoice with `svc invoice update`."
        }
        ImportKind::All if options.update => "--update applies to contacts only.",
        ImportKind::All if options.dry_run => {
            "--dry-run applies to contacts and invoices only: a dry run does not see the contacts that other records refer \
             to."
        }
        ImportKind::All if options.format == Some(Format::Csv) => "--format csv applies to contacts and invoices only.",
        _ if is_all && !options.mapping.is_empty() => "--map applies to contacts and invoices only.",
        _ if is_all && options.from.is_some() => "--from applies to contacts and invoices only.",
        _ if is_all && options.no_events => "--no-events applies to contacts and invoices only: `all` fires no events.",
        _ if is_all && options.ignore_unknown => "--ignore-unknown applies to contacts and invoices only.",
        _ => "",
    };
    if !reason.is_empty() {
        return Err(Failure::new(Exit::Usage, reason));
    }
    if let Some(preset) = options.from.filter(|preset| preset.fields(kind).is_empty()) {
        let reason = format!("--from {preset} does not apply to {kind}; `svc import --presets` lists what does.");
        return Err(Failure::new(Exit::Usage, reason));
    }
    let account = lookup::account(service, &options.account).await?;
    match kind {
        ImportKind::Contacts => import::<Contact>(service, &account, kind, &file, options).await,
        ImportKind::Invoices => import::<Invoice>(service, &account, kind, &file, options).await,
        ImportKind::All => {
            let options = Import { format: Some(Format::Ndjson), ..options };
            import::<AccountRecord>(service, &account, kind, &file, options).await
        }
    }
}

/// A field of a preset. Its fields are the JSON output.
#[derive(Serialize)]
struct PresetField {
    program: &'static str,
    records: ImportKind,
    field: &'static str,
    /// The columns that the field is read from, the preferred one first.
    columns: &'static [&'static str],
    /// The statuses in the cells, with those that they stand for.
    values: BTreeMap<&'static str, &'static str>,
}

/// Lists the presets of `--from`.
fn presets() -> Result<Outcome, Failure> {
    let mut fields = Vec::new();
    for preset in PRESETS {
        for records in [ImportKind::Contacts, ImportKind::Invoices] {
            for (field, columns) in preset.fields(records) {
                let statuses = preset.statuses.iter().filter(|_| *field == "status");
                let values = statuses.copied().collect();
                fields.push(PresetField { program: preset.name, records, field, columns, values });
            }
        }
    }
    let table = Table::new(["PROGRAM", "RECORDS", "FIELD", "COLUMN", "VALUES"], &fields, |row| {
        let values: Vec<String> = row.values.iter().map(|(text, value)| format!("{text}={value}")).collect();
        [
            row.program.to_owned(),
            row.records.to_string(),
            row.field.to_owned(),
            row.columns.join(" or "),
            values.join(", "),
        ]
    });
    Outcome::list(&fields, &table, "")
}

/// Returns the options that were given and apply to CSV files only.
fn csv_only(options: &Import) -> impl Iterator<Item = &'static str> {
    let given = [
        ("--from", options.from.is_some()),
        ("--skip-lines", options.skip_lines.is_some()),
        ("--strict", options.strict),
        ("--decimal", options.decimal.is_some()),
        ("--date-format", options.date_format.is_some()),
        ("--map-value", !options.values.is_empty()),
    ];
    given.into_iter().filter_map(|(name, is_given)| is_given.then_some(name))
}

async fn import<R: ImportOf>(
    service: &Service,
    account: &Account,
    kind: ImportKind,
    file: &Path,
    options: Import,
) -> Result<Outcome, Failure> {
    let groups = Groups { service, account: account.id, import: without_rows(kind, &options) };
    let mut summary = Summary { dry_run: options.dry_run, ..Summary::default() };
    let preset = options.from.map(|preset| preset.fields(kind));
    let names = ColumnNames::new(&options.mapping, preset, options.ignore_unknown, R::Row::FIELD_NAMES)?;
    let zone = TimeZone::parse(&account.time_zone).unwrap_or(TimeZone::UTC);
    let reader = CellReader::new(&options, R::Row::FIELD_NAMES, R::NUMBERS, zone, account.currency)?;
    let source = Source::open(file, options.format, options.skip_lines.unwrap_or(0))?;
    if let Some(option) = csv_only(&options).next().filter(|_| source.format == Format::Ndjson) {
        return Err(Failure::new(Exit::Usage, format!("{option} applies to CSV only, and {} is NDJSON.", source.name)));
    }
    let is_csv = source.format == Format::Csv;
    let (size, max_rows) = (source.size, source.max_rows);
    let mut refusals = Refusals::new(options.report.as_deref(), file)?;
    let parser = Parser::new::<R>(source, names, reader, &options)?;
    if is_csv && options.update && !options.keep_empty {
        output::note("Empty cells clear the fields of existing contacts. Use --keep-empty to leave them as they are.");
    }
    if !options.no_events && !options.dry_run {
        announce_deliveries(&groups, kind, max_rows).await?;
    }
    let progress = Progress::new(size);

    let (sender, mut read) = mpsc::channel::<Result<Group, Failure>>(READ_AHEAD);
    // The thread ends with the file or when the channel is closed.
    let reader = std::thread::Builder::new().name("import-read".to_owned());
    let unique_email = account.unique_contact_email;
    reader
        .spawn(move || rows::read::<R>(parser, unique_email, &sender))
        .map_err(|reason| Failure::new(Exit::Failed, format!("The file cannot be read: {reason}.")))?;

    // A group is never cancelled midway: Ctrl-C takes effect after it is committed.
    let (mut unused, mut assumed): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let interruption = loop {
        let group = tokio::select! {
            biased;
            _ = &mut interrupted => {
                let reason = "The import was interrupted. Run the same command again to continue; rows that were added are not added twice.";
                break Some(Failure::new(Exit::Failed, reason));
            }
            group = read.recv() => group,
        };
        let group = match group {
            None => break None,
            Some(Err(failure)) => break Some(failure),
            Some(Ok(group)) => group,
        };
        let end = group.end;
        summary.blank = group.blank;
        unused.clone_from(&group.unused);
        assumed.clone_from(&group.assumed);
        let done = groups.import(group).await;
        // The rows before a failure are counted, too.
        for row in done.rows {
            count(&mut summary, &mut refusals, kind, row)?;
        }
        progress.show(summary.rows, end);
        if let Some(failure) = done.failure {
            break Some(failure);
        }
    };
    progress.finish();
    if let Some(assumed) = assumed {
        output::note(&assumed);
    }
    refusals.flush()?;
    if let Some(failure) = interruption.as_ref().filter(|_| summary.rows == 0) {
        return Err(failure.clone());
    }
    summary.complete = interruption.is_none();
    let unused = (!unused.is_empty()).then(|| Failure::new(Exit::Usage, unused.join("\n")));
    let failure = failure(&summary, &refusals, interruption.or(unused));
    Ok(Outcome::new(&summary, summary.to_text())?.with_failure(failure))
}

/// Returns the import that the options ask for, without its rows. The rows of `all` fire no events.
fn without_rows(kind: ImportKind, options: &Import) -> ImportCreate {
    let events = (kind != ImportKind::All).then_some(!options.no_events);
    let rows = ImportRows::default();
    ImportCreate { kind, rows, events, update: Some(options.update), dry_run: Some(options.dry_run) }
}

/// Says how many deliveries the import will cause, if any, before it starts.
async fn announce_deliveries(groups: &Groups<'_>, kind: ImportKind, max_rows: u64) -> Result<(), Failure> {
    let (kind, record) = match kind {
        ImportKind::Contacts => (EventKind::ContactCreated, "contact"),
        ImportKind::Invoices => (EventKind::InvoiceCreated, "invoice"),
        ImportKind::All => return Ok(()),
    };
    let nothing = ImportCreate { dry_run: Some(true), ..groups.import.clone() };
    let report = groups.service.call(&IMPORT_RECORDS, groups.account, nothing).await?;
    let webhooks = u64::from(report.webhooks);
    let receivers = match webhooks {
        0 => return Ok(()),
        1 => "1 webhook".to_owned(),
        many => format!("each of {many} webhooks"),
    };
    let each = format!("a delivery of {kind} to {receivers} for every {record} that is added");
    let most = match max_rows * webhooks {
        1 => "1 delivery".to_owned(),
        many => format!("{many} deliveries"),
    };
    output::note(&format!("The import will cause up to {most}: {each}. Use --no-events to cause none."));
    Ok(())
}

/// Counts a row and, if it was refused, collects the reason.
fn count(summary: &mut Summary, refusals: &mut Refusals, kind: ImportKind, row: RowResult) -> Result<(), Failure> {
    summary.rows += 1;
    let problem = match row.result {
        Ok(ImportedRow { result: RowOutcome::Added, .. }) => {
            summary.added += 1;
            return Ok(());
        }
        Ok(ImportedRow { result: RowOutcome::ThereAlready, .. }) => {
            summary.unchanged += 1;
            return Ok(());
        }
        Ok(ImportedRow { result: RowOutcome::Updated, .. }) => {
            summary.updated += 1;
            return Ok(());
        }
        Ok(ImportedRow { problem: Some(problem), .. }) => {
            let problem = refusals::reported(problem);
            row.added_by.map_or(problem.clone(), |line| refusals::by_line(problem, line))
        }
        Ok(ImportedRow { existing_id, fields, .. }) => {
            refusals::differs(kind, existing_id.unwrap_or_default(), row.added_by, &fields)
        }
        Err(problem) => problem,
    };
    summary.refused += 1;
    refusals.add(row.line, &problem)
}

/// Returns the failure of the import, if rows were refused or the import was interrupted.
fn failure(summary: &Summary, refusals: &Refusals, interruption: Option<Failure>) -> Option<Failure> {
    let refused = (summary.refused > 0).then(|| refusals.to_text(summary.refused, summary.rows));
    match (interruption, refused) {
        (None, None) => None,
        (Some(failure), None) => Some(failure),
        (None, Some(refused)) => Some(Failure::new(Exit::Failed, refused)),
        (Some(failure), Some(refused)) => {
            Some(Failure::new(failure.exit(), format!("{}\n{refused}", failure.message())))
        }
    }
}

impl Summary {
    fn to_text(&self) -> String {
        let Self { rows, added, unchanged, updated, refused, blank, .. } = self;
        let blank = if *blank > 0 { format!(", {blank} blank") } else { String::new() };
        let head = if self.complete { "Rows" } else { "Rows so far" };
        if self.dry_run {
            return format!(
                "Nothing was changed. {head}: {rows} read, {added} to add, {unchanged} unchanged, {updated} to \
                 update, {refused} to refuse{blank}."
            );
        }
        format!(
            "{head}: {rows} read, {added} added, {unchanged} unchanged, {updated} updated, {refused} refused{blank}."
        )
    }
}
