//! Imports: a file is uploaded, its columns are mapped to fields, it is checked, and imported. The engine is that of `svc import`.
//!
//! The file is stored for the account for a day ([`uploads`]), so that each step can be handled by any node. A step handles some
//! groups of rows, each in one transaction, stores how far it has come, and returns to the page of the file, which goes on: by a
//! script, or by a button. Rows are not imported twice, so a step may be repeated at any time.

mod choices;
mod parts;
mod steps;

use std::collections::BTreeMap;

use svc_core::accounts::uploads::{self, Upload, UploadCreate, UploadId};
use svc_core::platform::ImportKind;
use svc_import::{Group, HeaderColumn, ImportError, Preset, REASON_COLUMN, cells_of, import_group};

use self::choices::{Choices, Progress, read, to_text};
use self::parts::{Preview, PreviewRow};
use self::steps::{Destination, UPDATE, blocking, invalid, open, source, step, store};
use crate::dashboard::csv;
use crate::dashboard::prelude::*;

/// The memory of a page that reads a file, in records: the file as it is stored and decrypted, and a group of its rows.
pub(crate) const MEMORY: u32 = 160;

/// How many rows are shown before an import.
const PREVIEW: usize = 20;

/// Shows the form that uploads a file, and the files that are there.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let files = cx.svc.store().read("uploads.list", tenant.id, async |tx, &tenant| {
        tx.read_as(tenant)?;
        uploads::list(tx, tenant).await
    });
    let content = html! {
        (heading("Import", "Adds the contacts or invoices of a CSV file, such as the export of another program or of a spreadsheet. \
            You see how the file is read before anything changes.", html! {}))
        (parts::upload_form(cx))
        (parts::files(cx, tenant, &files.await?))
    };
    Ok(layout::page(cx, Some(tenant), "Import", &content))
}

/// Stores a file that was sent, if it can be read at all.
pub(crate) async fn upload(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind = match cx.form.text("kind") {
        "invoices" => ImportKind::Invoices,
        _ => ImportKind::Contacts,
    };
    let preset = Preset::named(cx.form.text("preset"));
    if let Some(preset) = preset.filter(|preset| preset.fields(kind).is_empty()) {
        let reason = format!("{} exports no {kind}. Choose “No program” or another one.", preset.title);
        return Err(PageError::Invalid(reason));
    }
    let (name, content) = match (&cx.form.file, cx.form.all("text").next().unwrap_or_default()) {
        (Some(file), _) if file.name.trim().is_empty() => ("File without a name".to_owned(), file.content.to_vec()),
        (Some(file), _) => (file.name.clone(), file.content.to_vec()),
        (None, text) if !text.trim().is_empty() => ("Pasted rows".to_owned(), text.as_bytes().to_vec()),
        (None, _) => return Err(PageError::Invalid("Choose a file, or paste the rows.".to_owned())),
    };
    if content.len() > uploads::MAX_SIZE {
        return Err(PageError::FileTooLarge);
    }
    let choices = Choices::new(kind, preset);
    let plan = choices.plan(tenant).map_err(invalid)?;
    let content =
        blocking(move || plan.columns(source(content.clone(), 0)?).map(|_| content)).await?.map_err(invalid)?;
    let created_by = cx.session.identity.clone();
    let input = UploadCreate { name, created_by, choices: to_text(&choices)?, content };
    let id = submit(cx, tenant.id, "uploads.create", input, async |tx, form| {
        Ok(uploads::create(tx, form.tenant, &form.input).await?.id)
    });
    let id: UploadId = id.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("/import/{id}")))
}

/// A file as it is read.
struct Reading {
    columns: Vec<HeaderColumn>,
    /// The first rows, or why there are none.
    first: Result<Group, ImportError>,
}

/// Reads the first rows of a file.
async fn read_first(tenant: &Tenant, choices: &Choices, content: Vec<u8>) -> Result<Reading, PageError> {
    let (plan, skip_lines) = (choices.plan(tenant), choices.skip_lines);
    let lenient = Choices::new(choices.kind, None).plan(tenant).map_err(invalid)?;
    let reading = blocking(move || {
        let open = |content| source(content, skip_lines);
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                let columns = open(content).and_then(|source| lenient.columns(source)).unwrap_or_default();
                return Reading { columns, first: Err(error) };
            }
        };
        let columns = open(content.clone()).and_then(|source| plan.columns(source)).unwrap_or_default();
        let rows = open(content).and_then(|source| plan.read(source));
        let first = rows.and_then(|mut rows| rows.next().transpose().map(Option::unwrap_or_default));
        Reading { columns, first }
    });
    reading.await
}

/// Checks the first rows, and returns what would come of them.
async fn preview(cx: &Context<'_>, tenant: &Tenant, choices: &Choices, first: Group) -> Result<Preview, PageError> {
    let has_more = first.rows.len() > PREVIEW;
    let group = Group { rows: first.rows.into_iter().take(PREVIEW).collect(), ..Group::default() };
    let record = |row: &svc_import::Row| {
        row.parsed.as_ref().ok().and_then(|row| serde_json::to_value(&row.record).ok()).unwrap_or_default()
    };
    let records: Vec<serde_json::Value> = group.rows.iter().map(record).collect();
    let destination = Destination { svc: &cx.svc, tenant: tenant.id };
    let done = import_group(&destination, &choices.import(true), group).await;
    if let Some(error) = done.failure {
        return Err(error.into());
    }
    let mut counts = svc_import::Counts::default();
    let mut row = |(result, record): (svc_import::RowResult, serde_json::Value)| {
        let (line, before) = (result.line, counts);
        let problem = counts.add(choices.kind, result, UPDATE).map(|problem| problem.error);
        let outcome = match &problem {
            Some(_) => "refused",
            None if counts.added > before.added => "added",
            None if counts.updated > before.updated => "updated",
            None => "unchanged",
        };
        PreviewRow { line, record, outcome, problem }
    };
    let rows = done.rows.into_iter().zip(records).map(&mut row).collect();
    Ok(Preview { rows, has_more, assumed: first.assumed })
}

/// Shows how a file is read, what would come of its first rows, and how far its import has come.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: UploadId = cx.id()?;
    let (upload, content) = open(cx, tenant, id).await?;
    let choices: Choices = read(&upload.choices)?;
    let progress = if upload.progress.is_empty() { None } else { Some(read::<Progress>(&upload.progress)?) };
    let is_running = progress.as_ref().is_some_and(|progress| !progress.is_complete);
    let is_imported = progress.as_ref().is_some_and(|progress| progress.is_complete && !progress.is_dry);
    // Nothing is chosen while an import runs.
    let how = if is_running {
        html! {}
    } else {
        reading(cx, tenant, id, &choices, progress.as_ref(), content).await?
    };
    let how = match is_imported {
        true => html! { details.card { summary { "Read the file in another way, and import it again" } (how) } },
        false => how,
    };
    let content = html! {
        (heading(&upload.name, &parts::about(&upload, &choices), parts::delete_button(cx, id)))
        @if let Some(progress) = &progress { (parts::progress(cx, id, &choices, progress)) }
        (how)
    };
    Ok(layout::page(cx, Some(tenant), &upload.name, &content))
}

/// Shows how a file is read, with what can be done next.
async fn reading(
    cx: &Context<'_>,
    tenant: &Tenant,
    id: UploadId,
    choices: &Choices,
    progress: Option<&Progress>,
    content: Vec<u8>,
) -> Result<Markup, PageError> {
    let reading = read_first(tenant, choices, content).await?;
    let shown = match reading.first {
        Ok(first) => Ok(preview(cx, tenant, choices, first).await?),
        Err(error) => Err(error.to_string()),
    };
    Ok(html! {
        @match &shown {
            Ok(preview) => {
                (parts::preview(&reading.columns, preview))
                (parts::actions(cx, id, choices, progress, preview.rows.is_empty()))
            }
            Err(reason) => { p.banner.bad role="alert" { (reason) } }
        }
        (parts::choices_form(cx, id, choices, &reading.columns))
    })
}

/// Stores other choices for a file. An earlier check counts no more.
pub(crate) async fn choose(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: UploadId = cx.id()?;
    let (upload, content) = open(cx, tenant, id).await?;
    let before: Choices = read(&upload.choices)?;
    let lenient = Choices::new(before.kind, None).plan(tenant).map_err(invalid)?;
    let skip_lines = before.skip_lines;
    let columns = blocking(move || lenient.columns(source(content, skip_lines)?)).await?.unwrap_or_default();
    let columns: Vec<String> = columns.into_iter().map(|column| column.mapped_as).collect();
    let mut choices = Choices::of_form(&cx.form, before.kind, &columns)?;
    if choices.skip_lines != before.skip_lines {
        // The columns are others.
        choices.mapping.clear();
    }
    store(cx, &upload, &to_text(&choices)?, "").await?;
    Ok(cx.see_other(&format!("/import/{id}?notice=saved")))
}

/// Checks what would come of all rows.
pub(crate) async fn check(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    step(cx, tenant, true).await
}

/// Imports the rows.
pub(crate) async fn run(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    step(cx, tenant, false).await
}

/// Responds with the refused rows as they are in the file, each with the reason in the last column.
pub(crate) async fn refused(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (upload, content) = open(cx, tenant, cx.id()?).await?;
    let choices: Choices = read(&upload.choices)?;
    let progress: Progress = if upload.progress.is_empty() { Progress::default() } else { read(&upload.progress)? };
    let refused = progress.refused;
    let ranges: BTreeMap<u64, u64> = refused.iter().map(|row| (row.line, row.last_line)).collect();
    let is_wanted = move |line| ranges.range(..=line).next_back().is_some_and(|(_, last)| line <= *last);
    let skip_lines = choices.skip_lines;
    let rows = blocking(move || cells_of(source(content, skip_lines)?, is_wanted)).await?.map_err(invalid)?;
    let mut rows = rows.into_iter();
    let (_, mut header) = rows.next().unwrap_or_default();
    // A file that was mended before has the column already.
    let old = header.iter().position(|name| name == REASON_COLUMN);
    let width = header.len();
    let without_old = move |mut cells: Vec<String>| {
        cells.resize(width, String::new());
        if let Some(old) = old {
            cells.remove(old);
        }
        cells
    };
    header = without_old(header);
    header.push(REASON_COLUMN.to_owned());
    let reasons: BTreeMap<u64, String> = refused.into_iter().map(|row| (row.line, row.reason)).collect();
    let mut lines = csv::Rows::default();
    for (line, cells) in rows {
        lines.add(without_old(cells).into_iter().chain([reasons.get(&line).cloned().unwrap_or_default()]));
    }
    let headings: Vec<&str> = header.iter().map(String::as_str).collect();
    // There is one piece.
    let first = std::sync::Mutex::new(Some(lines));
    let read = move |()| {
        let lines = first.lock().ok().and_then(|mut lines| lines.take()).unwrap_or_default();
        async move { Ok((lines, None)) }
    };
    csv::respond("refused", &headings, MEMORY, (), read).await
}

/// Deletes a file.
pub(crate) async fn delete(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: UploadId = cx.id()?;
    let deleted = submit(cx, tenant.id, "uploads.delete", id, async |tx, form| {
        let Upload { id, .. } = uploads::get(tx, form.tenant, form.input).await?;
        uploads::delete(tx, form.tenant, id).await
    });
    deleted.await.map_err(refusal)?;
    Ok(cx.see_other("/import?notice=file-deleted"))
}
