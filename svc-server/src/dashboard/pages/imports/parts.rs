//! The parts of the pages of imports.

use serde_json::Value;
use svc_core::accounts::uploads::{MAX_SIZE, Upload, UploadId};
use svc_core::imports::Import;
use svc_core::input::FieldNames as _;
use svc_core::platform::ImportKind;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_import::{HeaderColumn, presets};

use super::choices::{Choices, Progress};
use crate::dashboard::prelude::*;

/// The most columns that can be mapped.
const MAX_COLUMNS: usize = 100;

/// The forms of dates that can be chosen.
const DATE_FORMATS: [&str; 9] = [
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "DD.MM.YYYY",
    "DD-MM-YYYY",
    "YYYY/MM/DD",
    "DD/MM/YY",
    "MM/DD/YY",
    "DD MMM YYYY",
    "MMM DD, YYYY",
];

/// The first rows of a file, and what would come of them.
pub(super) struct Preview {
    pub(super) rows: Vec<PreviewRow>,
    /// Whether the file has more rows.
    pub(super) has_more: bool,
    /// An amount that was read with a decimal point, though the point may separate thousands.
    pub(super) assumed: Option<String>,
}

/// A row of a file.
pub(super) struct PreviewRow {
    pub(super) line: u64,
    /// The fields that were read.
    pub(super) record: Value,
    pub(super) outcome: &'static str,
    /// Why it would be refused.
    pub(super) problem: Option<String>,
}

fn fields(kind: ImportKind) -> &'static [&'static str] {
    match kind {
        ImportKind::Invoices => <Invoice as Import>::Row::FIELD_NAMES,
        _ => <Contact as Import>::Row::FIELD_NAMES,
    }
}

/// Returns a field as people name it.
fn words(field: &str) -> String {
    capitalized(&field.replace('_', " "))
}

/// Returns the programs whose exports can be chosen. `kind` says of which records.
fn programs(kind: Option<ImportKind>) -> Vec<(&'static str, &'static str)> {
    let has = |preset: &&svc_import::Preset| kind.is_none_or(|kind| !preset.fields(kind).is_empty());
    let known = presets().iter().filter(has).map(|preset| (preset.name.as_str(), preset.title.as_str()));
    std::iter::once(("", "No program: columns have the names of fields")).chain(known).collect()
}

/// Returns the form that uploads a file.
pub(super) fn upload_form(cx: &Context<'_>) -> Markup {
    let is_sent = cx.problem.is_some();
    let values = if is_sent { &cx.form } else { &cx.query };
    let state = FormState::new(values);
    let hint = format!("CSV in UTF-8, at most {} MiB. It is deleted after a day.", MAX_SIZE / (1024 * 1024));
    html! {
        form.card.fields method="post" action=(cx.url("/import")) enctype="multipart/form-data" novalidate {
            (hidden(cx, &Form::default(), ""))
            (state.choice("kind", "Records", "", &[("contacts", "Contacts"), ("invoices", "Invoices")]))
            (state.choice("preset", "Exported by", "The program that wrote the file. Its columns are known.", &programs(None)))
            div.field {
                label for="field-file" { "File" }
                input id="field-file" name="file" type="file" accept=".csv,.txt,.tsv,text/csv,text/plain" aria-describedby="about-file"
                    aria-invalid=[is_sent.then_some("true")];
                div id="about-file" {
                    (problem(cx, "/import"))
                    p.hint { (hint) }
                }
            }
            (state.lines("text", "Or paste rows", "The names of the columns come first, as in a spreadsheet."))
            div.actions { button.primary type="submit" { "Upload" } }
        }
    }
}

/// Lists the files that are there.
pub(super) fn files(cx: &Context<'_>, tenant: &Tenant, files: &[Upload]) -> Markup {
    let view = cx.view(tenant);
    let rows = html! {
        @for file in files {
            tr {
                th scope="row" { a href=(cx.url(&format!("/import/{}", file.id))) { (isolated(&file.name)) } }
                td { (file.created_by) }
                td { (view.time(file.created_at)) }
                td { (view.time(file.expires_at)) }
            }
        }
    };
    html! {
        @if !files.is_empty() {
            section {
                h2 { "Uploaded files" }
                (table("Uploaded files", &["File", "Uploaded by", "Uploaded", "Deleted"], rows))
            }
        }
    }
}

/// Returns a sentence about a file.
pub(super) fn about(upload: &Upload, choices: &Choices) -> String {
    format!("Import of {}, uploaded by {}.", choices.kind, upload.created_by)
}

/// Returns the button that deletes a file.
pub(super) fn delete_button(cx: &Context<'_>, id: UploadId) -> Markup {
    let question = "The file is deleted. What was imported from it stays.";
    confirmed(cx, "Delete file", question, &format!("/import/{id}/delete"), html! {}, "Delete file")
}

/// Shows how far an import or its check has come, or what came of it.
pub(super) fn progress(cx: &Context<'_>, id: UploadId, choices: &Choices, progress: &Progress) -> Markup {
    let Progress { is_dry, groups, percent, counts, refused, is_complete } = progress;
    let [title, path] = if *is_dry { ["Check", "check"] } else { ["Import", "run"] };
    let path = format!("/import/{id}/{path}");
    let [added, updated, refusals] = match is_dry {
        true => ["To add", "To update", "To refuse"],
        false => ["Added", "Updated", "Refused"],
    };
    let count = |count: u64| html! { (number(count)) };
    let known = facts(&[
        ("Rows", count(counts.rows)),
        (added, count(counts.added)),
        (updated, count(counts.updated)),
        ("Unchanged", count(counts.unchanged)),
        (refusals, count(counts.refused)),
        ("Blank", count(counts.blank)),
    ]);
    let is_failed = cx.problem.is_some();
    let content = html! {
        @if *is_complete {
            p role="status" {
                @if *is_dry { "The whole file was checked. Nothing was changed." } @else { "The whole file was imported." }
            }
        } @else {
            p role="status" { (percent) " % of the file is done." }
            progress max="100" value=(percent) aria-label=(title) {}
        }
        (known)
        @if !is_complete {
            p.soft { "Rows that were added are not added twice, so you can go on at any time." }
            form method="post" action=(cx.url(&path)) data-continue[!is_failed] {
                (csrf(cx))
                (problem(cx, &path))
                input type="hidden" name="after" value=(groups);
                button.primary type="submit" { "Continue" }
            }
        }
        @if !refused.is_empty() && *is_complete {
            p {
                a.button href=(cx.url(&format!("/import/{id}/refused"))) download { "Download the refused rows" }
            }
            p.soft {
                "Correct them there and upload that file. Its last column has the reasons, and is left out."
                @if (refused.len() as u64) < counts.refused { " It has the first " (number(refused.len() as u64)) " of them." }
            }
        }
        @if *is_complete && !is_dry {
            div.actions {
                a.button.primary href=(cx.url(&format!("/{}", choices.kind))) { "See the " (choices.kind) }
                a.button href=(cx.url("/import")) { "Import another file" }
            }
        }
    };
    section(title, content)
}

/// Shows the first rows as they are read.
pub(super) fn preview(columns: &[HeaderColumn], preview: &Preview) -> Markup {
    let mut read: Vec<&'static str> = Vec::new();
    for field in columns.iter().filter_map(|column| column.field) {
        if !read.contains(&field) {
            read.push(field);
        }
    }
    let names: Vec<String> = read.iter().map(|field| words(field)).collect();
    let mut headings = vec!["Line", "Result"];
    headings.extend(names.iter().map(String::as_str));
    let rows = html! {
        @for row in &preview.rows {
            tr {
                th scope="row" { (row.line) }
                @match &row.problem {
                    // A refused row has no values.
                    Some(reason) => {
                        td colspan=(1 + read.len()) {
                            (badge(Tone::Bad, row.outcome)) " " (reason.chars().take(500).collect::<String>())
                        }
                    }
                    None => {
                        td { (badge(Tone::Neutral, row.outcome)) }
                        @for field in &read { td { (value(&row.record, field)) } }
                    }
                }
            }
        }
    };
    html! {
        section {
            h2 { "Preview" }
            @if preview.rows.is_empty() {
                p { "The file has no rows below its header." }
            } @else {
                p.soft {
                    @if preview.has_more { "The first " (preview.rows.len()) " rows as they are read" }
                    @else { "All rows as they are read" }
                    ", and what would come of them. Nothing was changed."
                }
                (table("Preview", &headings, rows))
            }
            @if let Some(text) = &preview.assumed {
                p.banner.warn role="status" {
                    "Amounts such as " (text) " were read with a decimal point. If it separates thousands, choose the comma below."
                }
            }
        }
    }
}

/// Returns a value of a record, of at most 100 characters.
fn value(record: &Value, field: &str) -> String {
    let text = match record.get(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.chars().take(100).collect()
}

/// Returns the buttons that check and import the file.
pub(super) fn actions(
    cx: &Context<'_>,
    id: UploadId,
    choices: &Choices,
    progress: Option<&Progress>,
    is_empty: bool,
) -> Markup {
    let was_checked = progress.is_some_and(|progress| progress.is_dry);
    let [check, run] = if was_checked { ["", "primary"] } else { ["primary", ""] };
    let path = |step: &str| format!("/import/{id}/{step}");
    html! {
        @if !is_empty {
            div.actions {
                (post_button(cx, &path("check"), check, html! {}, "Check the whole file"))
                (post_button(cx, &path("run"), run, html! {}, &format!("Import the {}", choices.kind)))
            }
            @if choices.events {
                p.soft { "Each record that is added fires an event, which is delivered to the webhooks of this account." }
            }
        }
    }
}

/// Returns the form of the choices.
pub(super) fn choices_form(cx: &Context<'_>, id: UploadId, choices: &Choices, columns: &[HeaderColumn]) -> Markup {
    let path = format!("/import/{id}");
    let on = |is_on: bool| if is_on { "on".to_owned() } else { String::new() };
    let values: Vec<String> = choices.values.iter().map(|(text, value)| format!("{text}={value}")).collect();
    let skip = if choices.skip_lines == 0 { String::new() } else { choices.skip_lines.to_string() };
    let stored = Form::from_fields(vec![
        ("preset", choices.preset.clone()),
        ("skip_lines", skip),
        ("decimal", choices.decimal.map(String::from).unwrap_or_default()),
        ("date_format", choices.date_format.clone()),
        ("values", values.join("\n")),
        ("update", on(choices.update)),
        ("keep_empty", on(choices.keep_empty)),
        ("no_events", on(!choices.events)),
    ]);
    let reason = cx.problem_at(&path);
    let state = FormState::new(if reason.is_some() { &cx.form } else { &stored });
    let dates: Vec<(&str, &str)> = std::iter::once(("", "YYYY-MM-DD, such as 2026-12-31"))
        .chain(DATE_FORMATS.map(|format| (format, format)))
        .collect();
    let is_contacts = choices.kind == ImportKind::Contacts;
    html! {
        form.card.fields method="post" action=(cx.url(&path)) novalidate {
            h2 { "How the file is read" }
            @if let Some(reason) = reason { p.error role="alert" { (reason) } }
            (csrf(cx))
            (column_table(choices, columns))
            (state.choice("preset", "Exported by", "Columns that the program is not known for are left out.",
                &programs(Some(choices.kind))))
            (state.typed("number", "skip_lines", "Lines before the header", "Such as the title of a report."))
            (state.choice("date_format", "Form of dates", "The order of day and month is never guessed.", &dates))
            @if is_contacts {
                (state.checkbox("update", "Update contacts that differ",
                    "Otherwise their rows are refused. Empty cells clear their fields."))
                (state.checkbox("keep_empty", "Keep the fields whose cells are empty", "Where contacts are updated."))
            } @else {
                (state.choice("decimal", "Decimal character of amounts", "It is a comma in 1.239,00.",
                    &[("", "Point; an amount that may be one of two is refused"), (".", "Point"), (",", "Comma")]))
                (state.lines("values", "Statuses and currencies",
                    "One on each line: the text of the cells and what it stands for, such as Awaiting Payment=sent."))
            }
            (state.checkbox("no_events", "Fire no events", "Then nothing is delivered to webhooks."))
            div.actions { button type="submit" { "Save and show again" } }
        }
    }
}

/// Returns the table of the columns, with a choice for each that is for no field by itself.
fn column_table(choices: &Choices, columns: &[HeaderColumn]) -> Markup {
    let chosen = |column: &HeaderColumn| choices.mapping.iter().find(|(name, _)| *name == column.mapped_as);
    let rows = html! {
        @for (position, column) in columns.iter().enumerate().take(MAX_COLUMNS) {
            tr {
                th scope="row" { (isolated(&column.name.chars().take(100).collect::<String>())) }
                td {
                    @match (chosen(column), column.field) {
                        (None, Some(field)) => { (words(field)) }
                        (mapped, _) => {
                            @let mapped = mapped.map(|(_, field)| field.as_str()).unwrap_or_default();
                            select name={ "column-" (position) } aria-label={ "Field of the column " (position + 1) } {
                                option value="" { "Left out" }
                                @for field in fields(choices.kind) {
                                    option value=(field) selected[*field == mapped] { (words(field)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if !columns.is_empty() {
            (table("Columns", &["Column", "Read as"], rows))
            @if columns.len() > MAX_COLUMNS { p.hint { "These are the first " (MAX_COLUMNS) " columns." } }
        }
    }
}
