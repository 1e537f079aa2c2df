//! The steps of an import or its check: each request handles some groups of rows, and stores how far it has come.

use std::io::Cursor;

use async_trait::async_trait;
use svc_core::Svc;
use svc_core::accounts::uploads::{self, Upload, UploadId};
use svc_core::error::{Error, StoreError};
use svc_core::platform::operations::IMPORT_RECORDS;
use svc_core::platform::{ImportCreate, ImportedRow};
use svc_core::values::TenantId;
use svc_import::{CheckedPlan, Format, Group, ImportError, Rows, ServiceError, Source, import_group};

use super::choices::{Choices, Progress, read, to_text};
use crate::dashboard::prelude::*;

/// How many groups of rows a request handles. A group has at most 500 rows.
const STEP: usize = 8;
/// How a contact that differs can be updated, at the end of a reason.
pub(super) const UPDATE: &str = "; tick “Update contacts that differ” to change it";

/// The account as the engine of imports calls it.
pub(super) struct Destination<'s> {
    pub(super) svc: &'s Svc,
    pub(super) tenant: TenantId,
}

#[async_trait]
impl svc_import::Service for Destination<'_> {
    type Error = Error;

    async fn import(&self, import: ImportCreate) -> Result<Vec<ImportedRow>, ServiceError<Error>> {
        let imported = self.svc.call(&IMPORT_RECORDS, self.tenant, import).await;
        imported.map(|report| report.rows).map_err(ServiceError::of_rules)
    }
}

/// Returns an upload with its content.
pub(super) async fn open(cx: &Context<'_>, tenant: &Tenant, id: UploadId) -> Result<(Upload, Vec<u8>), PageError> {
    let opened = cx.svc.store().read("uploads.open", (tenant.id, id), async |tx, &(tenant, id)| {
        tx.read_as(tenant)?;
        uploads::open(tx, tenant, id).await
    });
    Ok(opened.await?)
}

/// Runs something that takes the processor for a while on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
}

/// Returns a file as CSV.
pub(super) fn source(content: Vec<u8>, skip_lines: u64) -> Result<Source, ImportError> {
    Source::new(Cursor::new(content), Some(Format::Csv), skip_lines)
}

/// Opens the rows after those of some groups.
fn rows_after(plan: CheckedPlan, content: Vec<u8>, skip_lines: u64, groups: usize) -> Result<Rows, ImportError> {
    let mut rows = plan.read(source(content, skip_lines)?)?;
    for group in rows.by_ref().take(groups) {
        group?;
    }
    Ok(rows)
}

/// Reads the next group of rows.
async fn next(mut rows: Rows) -> Result<(Rows, Option<Group>), PageError> {
    blocking(move || rows.next().transpose().map(|group| (rows, group))).await?.map_err(invalid)
}

/// Returns what a person reads about a file that cannot be imported.
pub(super) fn invalid(error: ImportError) -> PageError {
    PageError::Invalid(error.to_string())
}

/// Goes on with an import or its check, or begins it, and returns to the page of the file.
pub(super) async fn step(cx: &Context<'_>, tenant: &Tenant, is_dry: bool) -> Result<PageResponse, PageError> {
    let id: UploadId = cx.id()?;
    let (upload, content) = open(cx, tenant, id).await?;
    let page = cx.see_other(&format!("/import/{id}"));
    let choices: Choices = read(&upload.choices)?;
    let stored = if upload.progress.is_empty() { None } else { Some(read::<Progress>(&upload.progress)?) };
    let mut progress = match (cx.form.given("after"), stored) {
        (None, _) => Progress { is_dry, ..Progress::default() },
        (Some(after), Some(stored)) if stored.is_dry == is_dry && after == stored.groups.to_string() => stored,
        // Another request was faster.
        (Some(_), _) => return Ok(page),
    };
    let (size, plan) = (content.len() as u64, choices.plan(tenant).map_err(invalid)?);
    let (skip_lines, groups) = (choices.skip_lines, progress.groups);
    let mut rows = blocking(move || rows_after(plan, content, skip_lines, groups)).await?.map_err(invalid)?;
    let destination = Destination { svc: &cx.svc, tenant: tenant.id };
    let (import, mut failure) = (choices.import(is_dry), None);
    for _ in 0..STEP {
        let (rest, group) = next(rows).await?;
        rows = rest;
        let Some(group) = group else {
            (progress.is_complete, progress.percent) = (true, 100);
            break;
        };
        let (blank, percent) = (group.blank, (group.end * 100).checked_div(size).unwrap_or(100));
        let done = import_group(&destination, &import, group).await;
        if let Some(error) = done.failure {
            failure = Some(error);
            break;
        }
        for row in done.rows {
            let (line, last_line) = (row.line, row.last_line);
            if let Some(problem) = progress.counts.add(choices.kind, row, UPDATE) {
                progress.refuse(line, last_line, &problem.error);
            }
        }
        progress.counts.blank = blank;
        (progress.groups, progress.percent) = (progress.groups + 1, percent.min(99));
    }
    store(cx, &upload, &upload.choices, &to_text(&progress)?).await?;
    match failure {
        None => Ok(page),
        Some(error) => Err(error.into()),
    }
}

/// Stores choices and progress. Where another request was faster, nothing is stored: the page shows what it did.
pub(super) async fn store(cx: &Context<'_>, upload: &Upload, choices: &str, progress: &str) -> Result<(), PageError> {
    let input = (upload.clone(), choices.to_owned(), progress.to_owned());
    let stored = cx.svc.store().write("uploads.update", input, async |tx, (upload, choices, progress)| {
        uploads::update(tx, upload.tenant_id, upload.id, &upload.progress, choices, progress).await
    });
    match stored.await {
        Ok(()) | Err(Error::PreconditionFailed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
