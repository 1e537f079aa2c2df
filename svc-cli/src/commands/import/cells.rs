//! How the text of a cell becomes the value of a field.
//!
//! Spreadsheets write amounts with a sign of the currency and separators between thousands, and dates in the order of their
//! country. Amounts are read with a decimal point, or with a comma if `--decimal` says so; dates are read as `--date-format`
//! says, and the order is never guessed; statuses and currencies are named by `--map-value`. A text that cannot be read is
//! left as it is, so that the rules refuse it, and the refusal names the option that would read it. A text that the rules would take
//! for another value is refused here: an amount in another currency than its row, and formulas.

use std::borrow::Cow;

use svc_core::error::{Error, FieldCode, Issue, Violation, Violations};
use svc_core::input::json::Json;
use svc_core::resources::invoices::InvoiceStatus;
use svc_core::values::{Currency, TimeZone, formulas};

use super::amounts::{amount, either};
use super::columns::{Cell, Columns};
use super::date_format::DateFormat;
use super::dates::DateReader;
use super::options::{Import, ValueMapping};
use crate::exit::{Exit, Failure};

/// The fields that are dates.
const DATES: [&str; 2] = ["issue_date", "due_date"];
/// The fields that are times. Of a date, they take the time at which it begins in the account's time zone.
const TIMES: [&str; 3] = ["paid_at", "created_at", "updated_at"];

/// A field whose values have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnumField {
    Status,
    Currency,
}

/// Reads the cells of one type of records.
#[derive(Clone, Debug)]
pub(super) struct CellReader {
    /// The names of the fields that are numbers.
    numbers: &'static [&'static str],
    /// The character before the decimals of an amount, if an option names it.
    decimal: Option<char>,
    date_format: Option<DateFormat>,
    values: Vec<MappedValue>,
    /// The statuses of `--from`.
    statuses: &'static [(&'static str, &'static str)],
    /// The account's time zone.
    zone: TimeZone,
    /// The account's currency.
    currency: Currency,
    /// The first amount whose point was taken for that of decimals, though it may separate thousands.
    assumed: Option<String>,
}

/// One `--map-value`.
#[derive(Clone, Debug)]
struct MappedValue {
    given: ValueMapping,
    /// The text of a cell, in lower case.
    text: String,
    field: EnumField,
    /// The value as the field has it.
    value: String,
    /// Whether a cell had the text.
    is_used: bool,
}

impl CellReader {
    /// Creates it from the options of the command, for records with these fields.
    ///
    /// # Errors
    /// An option does not apply to these fields, or a value is neither a status nor a currency.
    pub(super) fn new(
        options: &Import,
        fields: &[&str],
        numbers: &'static [&'static str],
        zone: TimeZone,
        currency: Currency,
    ) -> Result<Self, Failure> {
        let misused = |reason: String| Failure::new(Exit::Usage, reason);
        let has = |names: &[&str]| names.iter().any(|name| fields.contains(name));
        if options.decimal.is_some() && numbers.is_empty() {
            return Err(misused("--decimal applies to invoices only.".to_owned()));
        }
        if options.date_format.is_some() && !has(&DATES) && !has(&TIMES) {
            return Err(misused("--date-format applies to contacts and invoices only.".to_owned()));
        }
        if !options.values.is_empty() && !has(&["status", "currency"]) {
            return Err(misused("--map-value applies to invoices only, to their statuses and currencies.".to_owned()));
        }
        let mut values: Vec<MappedValue> = Vec::with_capacity(options.values.len());
        for given in &options.values {
            let Some((field, value)) = enum_value(&given.value) else {
                let reason = format!(
                    "--map-value {given} names neither a status nor a currency. The statuses are {}.",
                    statuses()
                );
                return Err(misused(reason));
            };
            if let Some(code) = other_currency(&given.text, &value) {
                let reason =
                    format!("--map-value {given} would take amounts in {code} for amounts in {value}; convert them.");
                return Err(misused(reason));
            }
            let text = given.text.to_lowercase();
            if let Some(other) = values.iter().find(|other| other.text == text && other.field == field) {
                return Err(misused(format!(
                    "--map-value {} and --map-value {given} name the same text.",
                    other.given
                )));
            }
            values.push(MappedValue { given: given.clone(), text, field, value, is_used: false });
        }
        let (decimal, date_format) = (options.decimal, options.date_format.clone());
        let statuses = options.from.map_or(&[][..], |preset| preset.statuses);
        Ok(Self { numbers, decimal, date_format, values, statuses, zone, currency, assumed: None })
    }

    /// Checks that the columns of a file have cells that the options are for.
    ///
    /// # Errors
    /// An option has no effect, as no column is for a field of its kind.
    pub(super) fn check(&self, file: &str, columns: &Columns, options: &Import) -> Result<(), Failure> {
        let has = |names: &[&str]| columns.have(names);
        let (option, what) = if options.decimal.is_some() && !has(self.numbers) {
            ("--decimal", "an amount")
        } else if options.date_format.is_some() && !has(&DATES) && !has(&TIMES) {
            ("--date-format", "a date")
        } else {
            return Ok(());
        };
        Err(Failure::new(Exit::Usage, format!("{option} has no effect: no column of {file} is for {what}.")))
    }

    /// Reads the cell of a field. An empty cell is null. `currency` is the cell of the currency, if the row has one.
    ///
    /// # Errors
    /// The cell would become another value than it means.
    pub(super) fn json(&mut self, cell: &Cell<'_>, text: &str, currency: Option<&str>) -> Result<Json, Issue> {
        let whole = content(text)?;
        let text = whole.trim();
        if text.is_empty() {
            return Ok(Json::Null);
        }
        let dates = DateReader { format: self.date_format.as_ref(), column: cell.zone, account: &self.zone };
        let refused = |reason| Issue::new(FieldCode::InvalidFormat, reason);
        let read = match cell.field {
            field if self.numbers.contains(&field) => return self.number(text, currency).map(Json::Number),
            "status" => self.value_of(EnumField::Status, text),
            // The rules say what became of a currency that has ended.
            "currency" => {
                self.value_of(EnumField::Currency, text).or_else(|| is_code(text).then(|| text.to_uppercase()))
            }
            field if DATES.contains(&field) => dates.date(text).map_err(refused)?,
            field if TIMES.contains(&field) => dates.time(text).map_err(refused)?.map(|at| at.to_string()),
            _ => None,
        };
        Ok(Json::String(read.unwrap_or_else(|| whole.into_owned())))
    }

    /// Reads an amount. One that cannot be read is empty, which the rules refuse.
    fn number(&mut self, text: &str, currency: Option<&str>) -> Result<String, Issue> {
        if text.contains(['e', 'E']) && text.replace(',', ".").parse::<f64>().is_ok() {
            let reason = format!(
                "must have all of its digits, and {text} is in scientific notation, in which spreadsheets round; give the column \
                 a format with all digits there, and export it again"
            );
            return Err(Issue::new(FieldCode::InvalidFormat, reason));
        }
        let currency = self.currency_of(currency);
        if self.is_ambiguous(text, currency) {
            return Ok(String::new());
        }
        let Some(amount) = amount(text, self.decimal.unwrap_or('.')) else { return Ok(String::new()) };
        match currency.and_then(|currency| amount.contradiction(currency)) {
            Some(reason) => Err(Issue::new(FieldCode::InvalidFormat, reason)),
            None => Ok(amount.number),
        }
    }

    /// Returns the currency of a row, given its cell: that of the account if it is empty, and none if it cannot be read.
    pub(super) fn currency_of(&mut self, cell: Option<&str>) -> Option<Currency> {
        let text = content(cell.unwrap_or_default()).ok()?;
        match text.trim() {
            "" => Some(self.currency),
            text => Currency::parse(&self.value_of(EnumField::Currency, text)?).ok(),
        }
    }

    /// Returns whether an amount is one of two, a thousand times apart, and no option says which: in `1.239` and `1,239`,
    /// the character may be before decimals or between thousands. A point is taken for that of decimals only if the currency
    /// has as many, and a comma for one of thousands only if it does not.
    fn is_ambiguous(&mut self, text: &str, currency: Option<Currency>) -> bool {
        let (None, Some(separator)) = (self.decimal, either(text)) else { return false };
        let fits = currency.unwrap_or(self.currency).scale() > 2;
        if separator == '.' && fits && self.assumed.is_none() {
            self.assumed = Some(text.to_owned());
        }
        (separator == '.') != fits
    }

    /// Returns what to say of an amount that was read as one of two.
    pub(super) fn assumed(&self) -> Option<String> {
        let text = self.assumed.as_ref()?;
        Some(format!(
            "Amounts such as {text} were read with a decimal point. If it separates thousands, use --decimal , instead."
        ))
    }

    /// Returns the value that an option names for a text, or that the text is in another case.
    fn value_of(&mut self, field: EnumField, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        match self.values.iter_mut().find(|value| value.field == field && value.text == lower) {
            Some(value) => {
                value.is_used = true;
                Some(value.value.clone())
            }
            None => {
                let known =
                    self.statuses.iter().find(|(name, _)| field == EnumField::Status && name.to_lowercase() == lower);
                let known = known.map(|(_, status)| (*status).to_owned());
                known.or_else(|| enum_value(text).filter(|(of, _)| *of == field).map(|(_, value)| value))
            }
        }
    }

    /// Adds to what is wrong with the fields of a row the options that would accept their cells. `cell` returns the text of
    /// the cell of a field.
    pub(super) fn with_hints<'c>(&self, error: Error, cell: impl Fn(&str) -> Option<&'c str>) -> Error {
        let Error::Validation(violations) = error else { return error };
        let hinted = |violation: &Violation| {
            let hint = match cell(&violation.field).map(str::trim) {
                Some("") => Some("its cell is empty".to_owned()),
                Some(text) => self.hint(&violation.field, text),
                None => None,
            };
            let message = match hint {
                Some(hint) => format!("{} ({hint})", violation.message),
                None => violation.message.clone(),
            };
            Violation::reported(violation.field.clone(), violation.code, message)
        };
        Error::Validation(violations.as_slice().iter().map(hinted).collect::<Violations>())
    }

    /// Returns which option would accept a cell.
    fn hint(&self, field: &str, text: &str) -> Option<String> {
        let shown: String = text.chars().take(100).collect();
        if self.numbers.contains(&field) {
            let [point, comma] = ['.', ','].map(|decimal| amount(text, decimal).map(|read| read.number));
            let is_comma = self.decimal == Some(',');
            return match (point, comma) {
                (Some(point), Some(comma)) if point != comma => {
                    Some(format!("{shown} is {point} with --decimal . and {comma} with --decimal ,"))
                }
                (Some(_), Some(_)) => None,
                (None, Some(comma)) if !is_comma => Some(format!("--decimal , reads {shown} as {comma}")),
                (Some(_), None) if is_comma => Some(format!("--decimal , does not read {shown}")),
                _ => Some(format!("it is {shown:?}")),
            };
        }
        if DATES.contains(&field) || TIMES.contains(&field) {
            if !text.contains(|char: char| char.is_ascii_digit()) {
                return None;
            }
            let examples = examples_of_form(text);
            return Some(match &self.date_format {
                Some(format) => format!("{shown} is no date of the form --date-format {format}"),
                None => format!("name the form of {shown} with --date-format, such as --date-format {examples}"),
            });
        }
        // What a text stands for is never suggested.
        match field {
            "status" => Some(format!(
                "name the status of {shown:?} with --map-value \"{shown}=STATUS\", where STATUS is one of {}",
                statuses()
            )),
            "currency" if is_code(text) => None,
            "currency" => Some(format!(
                "name the currency of {shown:?} with --map-value \"{shown}=CODE\", where CODE is its own code"
            )),
            "id" if text.len() < 32 => Some("--map id= leaves out a column with other ids".to_owned()),
            _ => None,
        }
    }

    /// Returns what to say of options that had no effect on any row.
    pub(super) fn unused(&self) -> Vec<String> {
        let unused = self.values.iter().filter(|value| !value.is_used);
        unused.map(|value| format!("--map-value {} had no effect: no cell has this text.", value.given)).collect()
    }
}

/// Returns the status or currency with this name in any case, and the field that has it.
fn enum_value(name: &str) -> Option<(EnumField, String)> {
    let status = InvoiceStatus::from_text(&name.to_lowercase());
    let status = status.map(|status| (EnumField::Status, status.to_string()));
    status.or_else(|| Some((EnumField::Currency, Currency::parse(&name.to_uppercase()).ok()?.code().to_owned())))
}

/// Returns the forms that a date may have, with its own separators. Which is that of the file is left to people where the date
/// does not tell.
fn examples_of_form(text: &str) -> String {
    if text.chars().any(char::is_alphabetic) {
        return "\"DD MMM YYYY\"".to_owned();
    }
    let mut numbers = text.split(|char: char| !char.is_ascii_digit()).map(|number| number.parse::<u16>().unwrap_or(0));
    let (first, second) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let forms: &[&str] = match (first, second) {
        (1000.., _) => &["YYYY/MM/DD"],
        (13.., _) => &["DD/MM/YYYY"],
        (_, 13..) => &["MM/DD/YYYY"],
        _ => &["DD/MM/YYYY", "MM/DD/YYYY"],
    };
    let separator = text.chars().find(|char| matches!(char, '/' | '.' | '-')).unwrap_or('/').to_string();
    forms.iter().map(|form| form.replace('/', &separator)).collect::<Vec<_>>().join(" or ")
}

/// Returns whether a text has the form of the code of a currency, also of one that there is no more.
fn is_code(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Returns the code of the currency that a text names, if it is another one than `value`.
fn other_currency(text: &str, value: &str) -> Option<String> {
    let code = text.to_uppercase();
    let is_currency = Currency::parse(&code).is_ok() || Currency::successor(&code).is_some();
    (is_currency && Currency::parse(value).is_ok() && code != value).then_some(code)
}

/// Returns the text of a cell, without the apostrophe or the formula by which a spreadsheet keeps it as it is.
///
/// # Errors
/// The cell is another formula.
pub(super) fn content(cell: &str) -> Result<Cow<'_, str>, Issue> {
    if !cell.trim_start().starts_with('=') {
        return Ok(formulas::from_cell(if cell.trim_start().starts_with('\'') { cell.trim() } else { cell }));
    }
    formulas::constant(cell).map(Cow::Owned).ok_or_else(|| {
        let shown: String = cell.trim().chars().take(100).collect();
        let reason = format!(
            "must be a value, and its cell has the formula {shown}; export its value, or put an apostrophe before it if it is \
             the text itself"
        );
        Issue::new(FieldCode::InvalidFormat, reason)
    })
}

fn statuses() -> String {
    InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(date_format: Option<&str>) -> CellReader {
        CellReader {
            numbers: &["total"],
            decimal: None,
            date_format: date_format.map(|format| DateFormat::parse(format).unwrap()),
            values: Vec::new(),
            statuses: &[],
            zone: TimeZone::parse("Australia/Sydney").unwrap(),
            currency: Currency::parse("AUD").unwrap(),
            assumed: None,
        }
    }

    impl CellReader {
        fn read(&mut self, field: &'static str, text: &str, currency: Option<&str>) -> Result<Json, String> {
            let cell = Cell { field, bytes: text.as_bytes(), zone: None };
            self.json(&cell, text, currency).map_err(|issue| issue.message.into_owned())
        }
    }

    #[test]
    fn an_amount_that_may_be_two_is_not_read() {
        for (text, currency, decimal, want) in [
            ("1.239", "AUD", None, None),
            ("1.500", "AUD", None, None),
            ("-$1.500", "AUD", None, None),
            ("12.500", "kwd", None, Some("12.500")),
            ("12,500", "kwd", None, None),
            ("1,239", "AUD", None, Some("1239")),
            ("1,239", "", None, Some("1239")),
            ("1,239", "JPY", None, Some("1239")),
            ("1,239", "AUD", Some(','), Some("1.239")),
            ("1.239", "AUD", Some(','), Some("1239")),
            ("1.239", "AUD", Some('.'), Some("1.239")),
            ("12,500", "KWD", Some('.'), Some("12500")),
            ("0.500", "KWD", None, Some("0.500")),
            ("0,500", "TND", None, None),
            ("0,125", "AUD", None, None),
            ("0,500", "TND", Some('.'), None),
            ("0,500", "TND", Some(','), Some("0.500")),
            ("0.500", "TND", Some(','), None),
            ("1239.500", "KWD", None, Some("1239.500")),
            ("1,239.500", "KWD", None, Some("1239.500")),
            ("1.5", "AUD", None, Some("1.5")),
            ("1.23", "AUD", None, Some("1.23")),
            ("1.2345", "UYW", None, Some("1.2345")),
            ("1 239", "KWD", None, Some("1239")),
        ] {
            let mut reader = CellReader { decimal, ..reader(None) };
            let want = Json::Number(want.unwrap_or_default().to_owned());
            assert_eq!(reader.read("total", text, Some(currency)), Ok(want), "{text} {currency} {decimal:?}");
        }
        let hint = |text, decimal| CellReader { decimal, ..reader(None) }.hint("total", text);
        for (text, decimal, want) in [
            ("$1.239", None, Some("$1.239 is 1.239 with --decimal . and 1239 with --decimal ,")),
            ("1,239", Some(','), Some("1,239 is 1239 with --decimal . and 1.239 with --decimal ,")),
            ("1.239", Some('.'), Some("1.239 is 1.239 with --decimal . and 1239 with --decimal ,")),
            ("1.239,00", None, Some("--decimal , reads 1.239,00 as 1239.00")),
            ("0,500", None, Some("--decimal , reads 0,500 as 0.500")),
            ("0.500", Some(','), Some("--decimal , does not read 0.500")),
            ("12.50", Some(','), Some("--decimal , does not read 12.50")),
            ("a lot", None, Some("it is \"a lot\"")),
            ("-5", None, None),
        ] {
            assert_eq!(hint(text, decimal).as_deref(), want, "{text} {decimal:?}");
        }
    }

    #[test]
    fn cells_become_values() {
        let mut reader = reader(None);
        let text = |text: &str| Json::String(text.to_owned());
        for (field, cell, want) in [
            ("total", " '99.95 ", Json::Number("99.95".to_owned())),
            ("total", "=\"99.95\"", Json::Number("99.95".to_owned())),
            ("total", "(5.00)", Json::Number("-5.00".to_owned())),
            ("total", "a lot", Json::Number(String::new())),
            ("status", "Paid", text("paid")),
            ("status", "AUD", text("AUD")),
            ("currency", "aud", text("AUD")),
            ("currency", "Dollars", text("Dollars")),
            ("currency", "bgn", text("BGN")),
            ("phone", "=\"0412345678\"", text("0412345678")),
            ("postcode", " =\"0800\" ", text("0800")),
            ("email", "=\"ada@example.com\"", text("ada@example.com")),
            ("issue_date", "=\"2025-12-31\"", text("2025-12-31")),
            ("first_name", "'=1+1", text("=1+1")),
            ("first_name", "'=\"1\"", text("=\"1\"")),
            ("city", "=\"\"", Json::Null),
            ("phone", "'0412 345 678", text("0412 345 678")),
            ("phone", " 0412", text(" 0412")),
            ("city", "  ", Json::Null),
        ] {
            assert_eq!(reader.read(field, cell, None), Ok(want), "{field} {cell:?}");
        }
        for (field, cell) in [
            ("city", "=T(\"Perth\")"),
            ("city", "=1+1"),
            ("phone", "=0412345678"),
            ("total", "1e3"),
            ("total", "1.23457E+05"),
            ("total", "1,23E+5"),
            ("total", "€5"),
            ("issue_date", "2025-12-31 22:30 AEDT"),
        ] {
            assert!(reader.read(field, cell, None).is_err(), "{field} {cell:?}");
        }
        assert_eq!(reader.read("total", "€5", Some("EUR")), Ok(Json::Number("5".to_owned())));
        assert_eq!(
            reader.read("total", "€5", Some("Euro")),
            Ok(Json::Number("5".to_owned())),
            "the currency is refused"
        );
    }

    #[test]
    fn no_hint_says_what_a_text_stands_for() {
        let hint = |field, text| reader(None).hint(field, text);
        assert_eq!(hint("currency", "BGN"), None);
        assert_eq!(
            hint("currency", "US Dollar").as_deref(),
            Some("name the currency of \"US Dollar\" with --map-value \"US Dollar=CODE\", where CODE is its own code")
        );
        assert!(
            hint("status", "Void").unwrap().contains("--map-value \"Void=STATUS\", where STATUS is one of draft, ")
        );
        for (date, want) in [
            ("03/04/2099", "DD/MM/YYYY or MM/DD/YYYY"),
            ("31.12.2099", "DD.MM.YYYY"),
            ("12/31/2099", "MM/DD/YYYY"),
            ("2099/4/3", "YYYY/MM/DD"),
            ("3 Apr 2099", "\"DD MMM YYYY\""),
        ] {
            let hint = hint("due_date", date).unwrap();
            assert!(hint.ends_with(&format!("--date-format {want}")), "{hint}");
        }
        for (text, value, want) in
            [("BGN", "EUR", Some("BGN")), ("usd", "AUD", Some("USD")), ("AUD", "AUD", None), ("Euro", "EUR", None)]
        {
            assert_eq!(other_currency(text, value).as_deref(), want, "{text}={value}");
        }
    }
}
