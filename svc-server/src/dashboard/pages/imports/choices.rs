//! The choices of a person for an import, and how far it has come. Both are stored with the upload as JSON.

use serde::{Deserialize, Serialize};
use svc_core::error::StoreError;
use svc_core::platform::{ImportCreate, ImportKind, ImportRows};
use svc_import::{
    AccountFacts, CheckedPlan, ColumnMapping, Counts, DateFormat, ImportError, Plan, Preset, ValueMapping,
};

use crate::dashboard::prelude::*;

/// The choices of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Choices {
    pub(super) kind: ImportKind,
    /// The name of the program that exported the file. Empty for none.
    pub(super) preset: String,
    /// Columns as mappings name them, with their fields. An empty field leaves the column out.
    pub(super) mapping: Vec<(String, String)>,
    pub(super) skip_lines: u64,
    pub(super) decimal: Option<char>,
    /// Empty for none.
    pub(super) date_format: String,
    /// Texts of cells, with the statuses and currencies that they stand for.
    pub(super) values: Vec<(String, String)>,
    pub(super) update: bool,
    pub(super) keep_empty: bool,
    pub(super) events: bool,
}

impl Choices {
    /// Returns the choices with which an upload begins.
    pub(super) fn new(kind: ImportKind, preset: Option<&Preset>) -> Self {
        Self {
            kind,
            preset: preset.map(|preset| preset.name.clone()).unwrap_or_default(),
            mapping: Vec::new(),
            skip_lines: 0,
            decimal: None,
            date_format: String::new(),
            values: Vec::new(),
            update: false,
            keep_empty: false,
            events: true,
        }
    }

    /// Reads the form of the choices, which has these columns.
    pub(super) fn of_form(form: &Form, kind: ImportKind, columns: &[String]) -> Result<Self, PageError> {
        let chosen = |(position, column): (usize, &String)| {
            Some((column.clone(), form.given(&format!("column-{position}"))?.to_owned()))
        };
        let skip_lines = form.given("skip_lines").map_or(Ok(0), str::parse);
        let skip_lines =
            skip_lines.map_err(|_| PageError::Invalid("The lines to skip must be a number.".to_owned()))?;
        let lines =
            form.all("values").next().unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
        let value = |line: &str| match line.rsplit_once('=').map(|(text, value)| (text.trim(), value.trim())) {
            Some((text, value)) if !text.is_empty() && !value.is_empty() => Ok((text.to_owned(), value.to_owned())),
            _ => Err(PageError::Invalid(format!(
                "{line:?} must be a text and a status or currency, such as Awaiting Payment=sent."
            ))),
        };
        let update = kind == ImportKind::Contacts && form.text("update") == "on";
        Ok(Self {
            kind,
            preset: form.text("preset").to_owned(),
            mapping: columns.iter().enumerate().filter_map(chosen).collect(),
            skip_lines,
            decimal: form.text("decimal").chars().next().filter(|char| matches!(char, '.' | ',')),
            date_format: form.text("date_format").to_owned(),
            values: lines.map(value).collect::<Result<_, _>>()?,
            update,
            keep_empty: update && form.text("keep_empty") == "on",
            events: form.text("no_events") != "on",
        })
    }

    /// Returns the plan, checked against the type of the records.
    pub(super) fn plan(&self, tenant: &Tenant) -> Result<CheckedPlan, ImportError> {
        let mapped = |(column, field): &(String, String)| ColumnMapping {
            column: column.clone(),
            field: Some(field.clone()).filter(|field| !field.is_empty()),
        };
        let value = |(text, value): &(String, String)| ValueMapping { text: text.clone(), value: value.clone() };
        let preset = Preset::named(&self.preset).filter(|preset| !preset.fields(self.kind).is_empty());
        let plan = Plan {
            mapping: self.mapping.iter().map(mapped).collect(),
            preset,
            ignore_unknown: true,
            values: self.values.iter().map(value).collect(),
            decimal: self.decimal,
            date_format: DateFormat::parse(&self.date_format).ok(),
            keep_empty: self.keep_empty,
            ..Plan::default()
        };
        let facts = AccountFacts {
            zone: tenant.time_zone.clone(),
            currency: tenant.currency,
            unique_email: tenant.unique_contact_email,
        };
        plan.check(self.kind, facts)
    }

    /// Returns the import without its rows.
    pub(super) fn import(&self, is_dry: bool) -> ImportCreate {
        ImportCreate {
            kind: self.kind,
            rows: ImportRows::default(),
            events: Some(self.events),
            update: Some(self.update),
            dry_run: Some(is_dry),
        }
    }
}

/// The most refused rows that are listed.
const MAX_REFUSED: usize = 2_000;
/// The most characters of a reason.
const MAX_REASON: usize = 300;

/// How far an import or its check has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Whether nothing is changed.
    pub(super) is_dry: bool,
    /// How many groups of rows were handled.
    pub(super) groups: usize,
    /// The part of the file that was read, in percent.
    pub(super) percent: u64,
    pub(super) counts: Counts,
    /// The first refused rows.
    pub(super) refused: Vec<RefusedRow>,
    pub(super) is_complete: bool,
}

/// A refused row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RefusedRow {
    /// The line on which it begins.
    pub(super) line: u64,
    /// The line on which its last row begins, where several rows are one invoice.
    pub(super) last_line: u64,
    pub(super) reason: String,
}

impl Progress {
    pub(super) fn refuse(&mut self, line: u64, last_line: u64, reason: &str) {
        if self.refused.len() < MAX_REFUSED {
            let reason = reason.chars().take(MAX_REASON).collect();
            self.refused.push(RefusedRow { line, last_line, reason });
        }
    }
}

/// Reads what is stored with an upload.
pub(super) fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, PageError> {
    serde_json::from_str(text).map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
}

/// Returns what is stored with an upload.
pub(super) fn to_text(value: &impl Serialize) -> Result<String, PageError> {
    serde_json::to_string(value).map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
}
