//! The words of `svc import` for what is wrong with a file: they name the options that help.

use svc_core::imports::MAX_ROWS;
use svc_import::{FileFault, Hint, ImportError, PlanPart, UnusedMapping, statuses};

use crate::exit::{Exit, Failure};

/// Words a hint.
pub(super) fn hint(hint: &Hint<'_>) -> String {
    match hint {
        Hint::Either { text, point, comma } => {
            format!("{text} is {point} with --decimal . and {comma} with --decimal ,")
        }
        Hint::WithComma { text, comma } => format!("--decimal , reads {text} as {comma}"),
        Hint::NotWithComma { text } => format!("--decimal , does not read {text}"),
        Hint::OtherDateForm { text, format } => format!("{text} is no date of the form --date-format {format}"),
        Hint::DateForm { text, examples } => {
            let quoted = |form: &String| if form.contains(' ') { format!("{form:?}") } else { form.clone() };
            let examples: Vec<String> = examples.iter().map(quoted).collect();
            let examples = examples.join(" or ");
            format!("name the form of {text} with --date-format, such as --date-format {examples}")
        }
        Hint::Status { text } => format!(
            "name the status of {text:?} with --map-value \"{text}=STATUS\", where STATUS is one of {}",
            statuses()
        ),
        Hint::Currency { text } => {
            format!("name the currency of {text:?} with --map-value \"{text}=CODE\", where CODE is its own code")
        }
        Hint::OtherId => "--map id= leaves out a column with other ids".to_owned(),
        // The others name no option.
        other => other.to_string(),
    }
}

/// Says that a mapping had no effect.
pub(super) fn unused(mapping: &UnusedMapping) -> String {
    match mapping {
        UnusedMapping::Column(given) => format!("--map {given} had no effect: no row has this column."),
        UnusedMapping::Value(given) => format!("--map-value {given} had no effect: no cell has this text."),
    }
}

/// Says that amounts such as this one were read as one of two.
pub(super) fn assumed(text: &str) -> String {
    format!(
        "Amounts such as {text} were read with a decimal point. If it separates thousands, use --decimal , instead."
    )
}

/// Returns what is wrong with a file of this name, or with the options for it.
pub(super) fn failure(error: &ImportError, file: &str) -> Failure {
    let again = "rows that were added are not added twice";
    let (exit, reason) = match error {
        ImportError::Read(error) => (Exit::Failed, format!("Cannot read {file}: {error}.")),
        ImportError::ReadRest(error) => (
            Exit::Failed,
            format!("Cannot read {file} any further: {error}. Run the same command again to continue; {again}."),
        ),
        ImportError::Changed(fault) => (
            Exit::Failed,
            format!(
                "{file} was changed while it was imported, and is not valid CSV now: {fault}. It was imported up to the last \
                 group of {MAX_ROWS} rows before that. Correct it, check what was imported, and run the same command again; \
                 {again}."
            ),
        ),
        ImportError::Utf16 => (Exit::Failed, format!("{file} is encoded in UTF-16; save it as UTF-8.")),
        ImportError::Workbook => {
            (Exit::Failed, format!("{file} is a workbook of a spreadsheet; save it as CSV in UTF-8."))
        }
        ImportError::Skipped { lines } => {
            (Exit::Usage, format!("--skip-lines {lines} skips all of {file}, which has no more lines."))
        }
        ImportError::Json { filter } => (
            Exit::Failed,
            format!(
                "{file} has JSON that is not one object on each line, as an import reads it. Convert it, such as with \
                 `jq -c '{filter}'`."
            ),
        ),
        ImportError::File(fault) => (Exit::Failed, file_fault(fault, file)),
        ImportError::UnknownField { mapping, meant, fields } => (
            Exit::Usage,
            format!("--map {mapping} names no field{}. The fields are {}.", did_you_mean(*meant), fields.join(", ")),
        ),
        ImportError::SameField { first, second } => {
            (Exit::Usage, format!("--map {first} and --map {second} name the same field."))
        }
        ImportError::Inapplicable(part) => (Exit::Usage, inapplicable(*part).to_owned()),
        ImportError::WithoutEffect(part) => {
            let (option, what) = match part {
                PlanPart::Decimal => ("--decimal", "an amount"),
                PlanPart::DateFormat => ("--date-format", "a date"),
                PlanPart::Values => ("--map-value", "a status or a currency"),
            };
            (Exit::Usage, format!("{option} has no effect: no column of {file} is for {what}."))
        }
        ImportError::UnknownValue(mapping) => (
            Exit::Usage,
            format!("--map-value {mapping} names neither a status nor a currency. The statuses are {}.", statuses()),
        ),
        ImportError::OtherCurrency { mapping, code, value } => (
            Exit::Usage,
            format!("--map-value {mapping} would take amounts in {code} for amounts in {value}; convert them."),
        ),
        ImportError::SameText { first, second } => {
            (Exit::Usage, format!("--map-value {first} and --map-value {second} name the same text."))
        }
        ImportError::Empty => {
            (Exit::Failed, format!("{file} is empty; the first row of a CSV file must contain the field names."))
        }
        ImportError::LongHeader => (Exit::Failed, format!("{file} has no header row: its first row is too long.")),
        ImportError::HeaderEncoding => (Exit::Failed, format!("{file} is not UTF-8; save it as CSV in UTF-8.")),
        other => columns(other, file),
    };
    Failure::new(exit, reason)
}

/// Says what is wrong with the columns of a file.
fn columns(error: &ImportError, file: &str) -> (Exit, String) {
    match error {
        ImportError::UnknownColumn { mapping, meant, line, columns } => (
            Exit::Usage,
            format!(
                "--map {mapping} names no column of {file}{}. The columns on line {line} are {columns}.",
                did_you_mean(meant.as_deref())
            ),
        ),
        ImportError::RepeatedColumn { column, field, is_mapped } => {
            let plain = column.trim_matches('"');
            let exit = if *is_mapped { Exit::Usage } else { Exit::Failed };
            let pick = format!("Pick one, such as the second with --map \"{plain}#2={field}\".");
            (exit, format!("{file} has more than one column {column}. {pick}"))
        }
        ImportError::MappedTwice { mapping, column } => {
            (Exit::Usage, format!("--map {mapping} names the column {column}, which another --map names."))
        }
        ImportError::NoPresetColumn { line, columns } => (
            Exit::Usage,
            format!(
                "--from knows no column of {file}. The columns on line {line} are {columns}. If the header is on a later line, \
                 skip the lines before it with --skip-lines N. `svc import --presets` lists the columns of each program."
            ),
        ),
        ImportError::NoFieldColumn { line, columns, fields } => {
            let shown = if columns.is_empty() { "nothing else" } else { columns };
            let reason = format!(
                "{file} has no column that is a field on line {line}, which has {shown}. If the header is on a later line, \
                 skip the lines before it with --skip-lines N. If the columns have other names, map them to fields with \
                 --map, or with --from if it knows the program that exported the file. The fields are {}.",
                fields.join(", ")
            );
            (Exit::Failed, reason)
        }
        ImportError::UnknownColumns { columns, are_many, fields } => {
            let unknown = if *are_many { "unknown columns" } else { "an unknown column" };
            let reason = format!(
                "{file} has {unknown}: {columns}. The known columns are {}. Map a column to its field with --map, or with \
                 --from if it knows the program that exported the file, or skip what is unknown with --ignore-unknown.",
                fields.join(", ")
            );
            (Exit::Failed, reason)
        }
        ImportError::RequiredField { field } => (
            Exit::Failed,
            format!(
                "{file} has no column {field}, which is required. Name the column that has it with --map COLUMN={field}."
            ),
        ),
        other => (Exit::Failed, format!("{file} cannot be imported. {other}")),
    }
}

/// Says that an option does not apply to the type of the records.
fn inapplicable(part: PlanPart) -> &'static str {
    match part {
        PlanPart::Decimal => "--decimal applies to invoices only.",
        PlanPart::DateFormat => "--date-format applies to contacts and invoices only.",
        PlanPart::Values => "--map-value applies to invoices only, to their statuses and currencies.",
    }
}

/// Says what is wrong with the file itself, and not with a row.
fn file_fault(fault: &FileFault, file: &str) -> String {
    match fault {
        FileFault::Encoding { line, byte, text } => format!(
            "{file} is not UTF-8: line {line} has the byte 0x{byte:02X}. Save the file as CSV in UTF-8. Read as Windows-1252, \
             as some spreadsheets write it, the text there is {text:?}; if that is right, convert the file with \
             `iconv -f WINDOWS-1252 -t UTF-8`. Nothing was imported."
        ),
        FileFault::Nul { line } => format!(
            "{file} has a NUL character on line {line}, as files in UTF-16 have. Save it as CSV in UTF-8. Nothing was imported."
        ),
        FileFault::Csv(fault) => {
            format!("{file} is not valid CSV: {fault}. Correct the file. Nothing was imported.")
        }
    }
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}
