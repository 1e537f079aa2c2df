//! `svc import`: imports the rows of a file of any size, in constant memory.
//!
//! A thread reads the file with svc-import. Meanwhile, the rows that were read before are imported in groups, one request of the
//! platform API each. Refused rows are collected for the report at the end (`refusals`). svc-core decides which existing record a
//! row matches, so that an import can be interrupted and run again.

mod file;
mod options;
mod progress;
mod refusals;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;

use async_trait::async_trait;
use serde::Serialize;
use svc_core::error::Error;
use svc_core::platform::operations::IMPORT_RECORDS;
use svc_core::platform::{Account, ImportCreate, ImportKind, ImportRows, ImportedRow, RowProblem};
use svc_core::values::{EventKind, TenantId, TimeZone};
use svc_import::{
    AccountFacts, Counts, Group, ImportError, Rows, ServiceError, Source, UnusedMapping, import_group, of_rules,
    presets,
};
use tokio::sync::mpsc;

pub(crate) use self::options::Import;
use self::progress::Progress;
use self::refusals::Refusals;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::output::{self, Outcome, Table};
use crate::service::{CallError, Service};
use crate::session::Session;
use crate::values::Format;

/// The number of groups that are read ahead.
const READ_AHEAD: usize = 2;

/// The result of an import. Its fields are the JSON output.
#[derive(Clone, Debug, Default, Serialize)]
struct Summary {
    #[serde(flatten)]
    counts: Counts,
    dry_run: bool,
    /// Whether the whole file was imported.
    complete: bool,
}

pub(crate) async fn run(session: &Session, options: Import) -> Result<Outcome, Failure> {
    // The command line has both, except with --presets.
    let (Some(kind), Some(file)) = (options.kind, options.file.clone()) else { return list_presets() };
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
    let format = if is_all { Some(Format::Ndjson) } else { options.format };
    import(service, &account, kind, &file, Import { format, ..options }).await
}

/// A field of a preset. Its fields are the JSON output.
#[derive(Serialize)]
struct PresetField {
    program: &'static str,
    records: ImportKind,
    field: &'static str,
    /// The columns that the field is read from, the preferred one first.
    columns: &'static [String],
    /// The statuses in the cells, with those that they stand for.
    values: BTreeMap<&'static str, &'static str>,
}

/// Lists the presets of `--from`.
fn list_presets() -> Result<Outcome, Failure> {
    let mut fields = Vec::new();
    for preset in presets() {
        for records in [ImportKind::Contacts, ImportKind::Invoices] {
            for (field, columns) in preset.fields(records) {
                let statuses = preset.statuses.iter().filter(|_| field == "status");
                let values = statuses.map(|(text, status)| (text.as_str(), status.as_str())).collect();
                fields.push(PresetField { program: &preset.name, records, field, columns, values });
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

/// A service as the engine of imports calls it.
struct Destination<'s> {
    service: &'s Service,
    account: TenantId,
}

#[async_trait]
impl svc_import::Service for Destination<'_> {
    type Error = CallError;

    async fn import(&self, import: ImportCreate) -> Result<Vec<ImportedRow>, ServiceError<CallError>> {
        let imported = self.service.call(&IMPORT_RECORDS, self.account, import).await;
        imported.map(|report| report.rows).map_err(|error| match error {
            // The client has retried what a server refused for now.
            CallError::Rules(Error::Store(ref reason)) if reason.is_transient() => ServiceError::Busy(error),
            error if is_caused_by_a_row(&error) => ServiceError::Row(problem_of_call(error)),
            error => ServiceError::Failed(error),
        })
    }
}

/// Returns whether a transaction failed because of a row in it, and not because of the database. A server does not say why
/// it failed.
fn is_caused_by_a_row(error: &CallError) -> bool {
    use svc_core::error::StoreError::{Conflict, Corrupt, Internal};
    match error {
        CallError::Rules(Error::Store(error)) => matches!(error, Conflict { .. } | Internal(_) | Corrupt { .. }),
        CallError::Rules(_) => false,
        CallError::Server(error) => error.status() == Some(500),
    }
}

/// Returns the problem of a row whose import failed.
fn problem_of_call(error: CallError) -> RowProblem {
    match error {
        CallError::Rules(error) => of_rules(error),
        error @ CallError::Server(_) => {
            let (error, code) = (Failure::from(error).message().to_owned(), "internal_error".to_owned());
            RowProblem { error, code, field: None, errors: Vec::new(), existing_id: None }
        }
    }
}

/// Returns the failure of an import that cannot continue.
fn ended_early(error: CallError) -> Failure {
    let failure = Failure::from(error);
    let again = "Run the same command again to continue; rows that were added are not added twice.";
    Failure::new(failure.exit(), format!("{}. {again}", failure.message().trim_end_matches('.')))
}

async fn import(
    service: &Service,
    account: &Account,
    kind: ImportKind,
    file: &Path,
    options: Import,
) -> Result<Outcome, Failure> {
    let import = without_rows(kind, &options);
    let mut summary = Summary { dry_run: options.dry_run, ..Summary::default() };
    let name = file::name(file);
    let failed = |error: ImportError| words::failure(&error, &name);
    let zone = TimeZone::parse(&account.time_zone).unwrap_or(TimeZone::UTC);
    let facts = AccountFacts { zone, currency: account.currency, unique_email: account.unique_contact_email };
    let plan = options.plan().check(kind, facts).map_err(failed)?;
    let opened = file::open(file).map_err(ImportError::Read).map_err(failed)?;
    let format = options.format.map(svc_import::Format::from).or_else(|| svc_import::Format::of_path(file));
    let source = Source::new(opened, format, options.skip_lines.unwrap_or(0)).map_err(failed)?;
    let is_csv = source.format() == svc_import::Format::Csv;
    if let Some(option) = csv_only(&options).next().filter(|_| !is_csv) {
        return Err(Failure::new(Exit::Usage, format!("{option} applies to CSV only, and {name} is NDJSON.")));
    }
    let (size, max_rows) = (source.size(), source.max_rows());
    let mut refusals = Refusals::new(options.report.as_deref(), file)?;
    let rows = plan.read(source).map_err(failed)?;
    if is_csv && options.update && !options.keep_empty {
        output::note("Empty cells clear the fields of existing contacts. Use --keep-empty to leave them as they are.");
    }
    if !options.no_events && !options.dry_run {
        announce_deliveries(service, account.id, &import, max_rows).await?;
    }
    let progress = Progress::new(size);

    let mut read = read_ahead(rows)?;
    let destination = Destination { service, account: account.id };

    // A group is never cancelled midway: Ctrl-C takes effect after it is committed.
    let (mut unused, mut assumed): (Vec<UnusedMapping>, Option<String>) = (Vec::new(), None);
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
            Some(Err(error)) => break Some(failed(error)),
            Some(Ok(group)) => group,
        };
        let end = group.end;
        summary.counts.blank = group.blank;
        unused.clone_from(&group.unused);
        assumed.clone_from(&group.assumed);
        let done = import_group(&destination, &import, group).await;
        // The rows before a failure are counted, too.
        for row in done.rows {
            let line = row.line;
            if let Some(problem) = summary.counts.add(kind, row, "; use --update to change it") {
                refusals.add(line, &problem)?;
            }
        }
        progress.show(summary.counts.rows, end);
        if let Some(error) = done.failure {
            break Some(ended_early(error));
        }
    };
    progress.finish();
    if let Some(assumed) = assumed {
        output::note(&words::assumed(&assumed));
    }
    refusals.flush()?;
    if let Some(failure) = interruption.as_ref().filter(|_| summary.counts.rows == 0) {
        return Err(failure.clone());
    }
    summary.complete = interruption.is_none();
    let unused: Vec<String> = unused.iter().map(words::unused).collect();
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

/// Reads the rows on a thread of its own, which ends with the file or when the channel is closed.
fn read_ahead(mut rows: Rows) -> Result<mpsc::Receiver<Result<Group, ImportError>>, Failure> {
    let (sender, read) = mpsc::channel(READ_AHEAD);
    let reader = std::thread::Builder::new().name("import-read".to_owned());
    let send_all = move || drop(rows.try_for_each(|group| sender.blocking_send(group)));
    reader
        .spawn(send_all)
        .map_err(|reason| Failure::new(Exit::Failed, format!("The file cannot be read: {reason}.")))?;
    Ok(read)
}

/// Says how many deliveries the import will cause, if any, before it starts.
async fn announce_deliveries(
    service: &Service,
    account: TenantId,
    import: &ImportCreate,
    max_rows: u64,
) -> Result<(), Failure> {
    let (kind, record) = match import.kind {
        ImportKind::Contacts => (EventKind::ContactCreated, "contact"),
        ImportKind::Invoices => (EventKind::InvoiceCreated, "invoice"),
        ImportKind::All => return Ok(()),
    };
    let nothing = ImportCreate { dry_run: Some(true), ..import.clone() };
    let report = service.call(&IMPORT_RECORDS, account, nothing).await?;
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

/// Returns the failure of the import, if rows were refused or the import was interrupted.
fn failure(summary: &Summary, refusals: &Refusals, interruption: Option<Failure>) -> Option<Failure> {
    let Counts { rows, refused, .. } = summary.counts;
    let refused = (refused > 0).then(|| refusals.to_text(refused, rows));
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
        let Counts { rows, added, unchanged, updated, refused, blank, .. } = &self.counts;
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
