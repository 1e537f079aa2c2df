//! `svc import`: many rows from a file, of any size, in constant memory.
//!
//! A thread reads the file and checks each row (`rows`, over `csv` or `ndjson`, over `source`); the rows go in
//! group by group, one transaction each (`groups`), while the next ones are read. What is refused is kept for the end
//! (`refusals`). svc-core has the rules: how a row is recognised, so that all of this can be broken off and run again.

mod csv;
mod groups;
mod ndjson;
mod progress;
mod refusals;
mod rows;
mod source;

use std::pin::pin;

use serde::Serialize;
use svc_core::accounts::tenants::{self, Tenant};
use svc_core::imports::{Import, ImportOptions, Imported};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::store::Store;
use tokio::sync::mpsc;

use self::groups::Groups;
use self::progress::Progress;
use self::refusals::{Refusal, Refusals};
use self::rows::Group;
use self::source::Source;
use super::tenant;
use crate::cli::{Import as Options, ImportKind};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::Outcome;

/// Groups that are read ahead.
const AHEAD: usize = 2;

/// What came of an import.
#[derive(Clone, Debug, Default, Serialize)]
struct Summary {
    rows: u64,
    added: u64,
    there_already: u64,
    updated: u64,
    refused: u64,
    dry_run: bool,
    /// Whether all of the file was read.
    complete: bool,
}

pub(super) async fn run(store: &dyn Store, options: Options) -> Result<Outcome, Failure> {
    if options.update && options.kind == ImportKind::Invoices {
        let reason = "--update is for contacts; `svc invoice update` changes an invoice.";
        return Err(Failure::new(Exit::Usage, reason));
    }
    let id = options.tenant;
    let found = store.read("tenant.show", move |tx| Box::pin(tenants::get(tx, id))).await;
    let tenant = found.or_not_found("tenant", id, tenant::HINT)?;
    match options.kind {
        ImportKind::Contacts => import::<Contact>(store, tenant, options).await,
        ImportKind::Invoices => import::<Invoice>(store, tenant, options).await,
    }
}

async fn import<R: Import>(store: &dyn Store, tenant: Tenant, options: Options) -> Result<Outcome, Failure> {
    let import_options = ImportOptions { events: !options.no_events, update: options.update };
    let groups = Groups { store, tenant: tenant.id, options: import_options, dry_run: options.dry_run };
    let mut summary = Summary { dry_run: options.dry_run, ..Summary::default() };
    let source = Source::open(&options.file, options.format)?;
    let mut refusals = Refusals::new(options.report.as_deref(), &options.file)?;
    let progress = Progress::new(source.size());

    let (sender, mut read) = mpsc::channel::<Result<Group<R>, Failure>>(AHEAD);
    // It ends with the file, or when nobody takes its rows any more; stdin may keep it waiting for ever.
    let reader = std::thread::Builder::new().name("import-read".to_owned());
    reader
        .spawn(move || rows::read::<R>(source, &tenant, &sender))
        .map_err(|reason| Failure::new(Exit::Failed, format!("The file cannot be read: {reason}.")))?;

    // Never dropped half-way: a group is in or it is not, and Ctrl-C waits for it.
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let broken_off = loop {
        let group = tokio::select! {
            biased;
            _ = &mut interrupted => {
                let reason = "It was interrupted; run the same command again to go on: what is there is not added twice.";
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
        let done = groups.put(group).await;
        // Before a failure ends it, what came of the rows before it is noted.
        for (line, result) in done.results {
            note(&mut summary, &mut refusals, options.kind, (line, result))?;
        }
        progress.show(summary.rows, end);
        if let Some(failure) = done.failure {
            break Some(failure);
        }
    };
    progress.finish();
    refusals.flush()?;
    if let Some(failure) = broken_off.as_ref().filter(|_| summary.rows == 0) {
        return Err(failure.clone());
    }
    summary.complete = broken_off.is_none();
    let failure = failure(&summary, &refusals, broken_off);
    Ok(Outcome::new(&summary, summary.to_text())?.with_failure(failure))
}

/// Counts a row, and keeps why it was refused.
fn note(
    summary: &mut Summary,
    refusals: &mut Refusals,
    kind: ImportKind,
    (line, result): (u64, Result<Imported, Refusal>),
) -> Result<(), Failure> {
    summary.rows += 1;
    let refusal = match result {
        Ok(Imported::Added) => {
            summary.added += 1;
            return Ok(());
        }
        Ok(Imported::Unchanged) => {
            summary.there_already += 1;
            return Ok(());
        }
        Ok(Imported::Updated) => {
            summary.updated += 1;
            return Ok(());
        }
        Ok(Imported::Differs { id, fields }) => Refusal::differs(kind, id, &fields),
        Err(refusal) => refusal,
    };
    summary.refused += 1;
    refusals.add(line, &refusal)
}

/// Why the exit code is not 0: what was refused, and what broke it off.
fn failure(summary: &Summary, refusals: &Refusals, broken_off: Option<Failure>) -> Option<Failure> {
    let refused = (summary.refused > 0).then(|| refusals.to_text(summary.refused, summary.rows));
    match (broken_off, refused) {
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
        let Self { rows, added, there_already, updated, refused, .. } = self;
        let head = if self.complete { "Rows" } else { "Rows so far" };
        if self.dry_run {
            return format!(
                "Nothing was changed. {head}: {rows} read, {added} to add, {there_already} there already, {updated} to \
                 update, {refused} to refuse."
            );
        }
        format!(
            "{head}: {rows} read, {added} added, {there_already} there already, {updated} updated, {refused} refused."
        )
    }
}
