//! How the text of a cell becomes the value of a field.
//!
//! Spreadsheets write amounts with a sign of the currency and separators between thousands, and dates in the order of their
//! country. Amounts are read with a decimal point, or with a comma if the plan says so; dates are read in the form of the plan,
//! and the order is never guessed; statuses and currencies are named by the plan. A text that cannot be read is left as it is,
//! so that the rules refuse it, and the refusal has a hint at what would read it. A text that the rules would take
//! for another value is refused here: an amount in another currency than its row, and formulas.

use std::borrow::Cow;

use svc_core::error::{Error, FieldCode, Issue, Violation, Violations};
use svc_core::input::json::Json;
use svc_core::resources::invoices::InvoiceStatus;
use svc_core::values::{Currency, TimeZone, formulas};

use crate::amounts::{amount, either};
use crate::columns::{Cell, Columns};
use crate::date_format::DateFormat;
use crate::dates::DateReader;
use crate::error::{ImportError, PlanPart};
use crate::hints::Hint;
use crate::plan::{HintWords, Plan, UnusedMapping, ValueMapping};

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
    /// The character before the decimals of an amount, if the plan names it.
    decimal: Option<char>,
    date_format: Option<DateFormat>,
    values: Vec<MappedValue>,
    /// The statuses of the preset.
    statuses: &'static [(String, String)],
    /// The account's time zone.
    zone: TimeZone,
    /// The account's currency.
    currency: Currency,
    /// The first amount whose point was taken for that of decimals, though it may separate thousands.
    assumed: Option<String>,
    hints: HintWords,
}

/// A text that the plan names.
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
    /// Creates it from a plan, for records with these fields.
    ///
    /// # Errors
    /// A part of the plan does not apply to these fields, or a value is neither a status nor a currency.
    pub(super) fn new(
        plan: &Plan,
        fields: &[&str],
        numbers: &'static [&'static str],
        zone: TimeZone,
        currency: Currency,
    ) -> Result<Self, ImportError> {
        let has = |names: &[&str]| names.iter().any(|name| fields.contains(name));
        if plan.decimal.is_some() && numbers.is_empty() {
            return Err(ImportError::Inapplicable(PlanPart::Decimal));
        }
        if plan.date_format.is_some() && !has(&DATES) && !has(&TIMES) {
            return Err(ImportError::Inapplicable(PlanPart::DateFormat));
        }
        if !plan.values.is_empty() && !has(&["status", "currency"]) {
            return Err(ImportError::Inapplicable(PlanPart::Values));
        }
        let mut values: Vec<MappedValue> = Vec::with_capacity(plan.values.len());
        for given in &plan.values {
            let Some((field, value)) = enum_value(&given.value) else {
                return Err(ImportError::UnknownValue(given.clone()));
            };
            if let Some(code) = other_currency(&given.text, &value) {
                return Err(ImportError::OtherCurrency { mapping: given.clone(), code, value });
            }
            let text = given.text.to_lowercase();
            if let Some(other) = values.iter().find(|other| other.text == text && other.field == field) {
                return Err(ImportError::SameText { first: other.given.clone(), second: given.clone() });
            }
            values.push(MappedValue { given: given.clone(), text, field, value, is_used: false });
        }
        let (decimal, date_format) = (plan.decimal, plan.date_format.clone());
        let statuses = plan.preset.map_or(&[][..], |preset| &preset.statuses);
        let hints = plan.hints;
        Ok(Self { numbers, decimal, date_format, values, statuses, zone, currency, assumed: None, hints })
    }

    /// Checks that the columns of a file have cells that the parts of the plan are for.
    ///
    /// # Errors
    /// A part has no effect, as no column is for a field of its kind.
    pub(super) fn check(&self, columns: &Columns) -> Result<(), ImportError> {
        let has = |names: &[&str]| columns.have(names);
        if self.decimal.is_some() && !has(self.numbers) {
            return Err(ImportError::WithoutEffect(PlanPart::Decimal));
        }
        if self.date_format.is_some() && !has(&DATES) && !has(&TIMES) {
            return Err(ImportError::WithoutEffect(PlanPart::DateFormat));
        }
        Ok(())
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

    /// Returns an amount that was read as one of two, with a decimal point.
    pub(super) fn assumed(&self) -> Option<String> {
        self.assumed.clone()
    }

    /// Returns the value that the plan names for a text, or that the text is in another case.
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
                let known = known.map(|(_, status)| status.clone());
                known.or_else(|| enum_value(text).filter(|(of, _)| *of == field).map(|(_, value)| value))
            }
        }
    }

    /// Adds to what is wrong with the fields of a row hints at what would accept their cells. `cell` returns the text of
    /// the cell of a field.
    pub(super) fn with_hints<'c>(&self, error: Error, cell: impl Fn(&str) -> Option<&'c str>) -> Error {
        let Error::Validation(violations) = error else { return error };
        let hinted = |violation: &Violation| {
            let hint = match cell(&violation.field).map(str::trim) {
                Some("") => Some((self.hints)(&Hint::Empty)),
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

    /// Returns what would accept a cell.
    fn hint(&self, field: &str, text: &str) -> Option<String> {
        let shown: String = text.chars().take(100).collect();
        self.hint_at(field, text, &shown).map(|hint| (self.hints)(&hint))
    }

    /// Returns what would accept a cell. Its text is shown as `shown`.
    fn hint_at<'h>(&'h self, field: &str, text: &str, shown: &'h str) -> Option<Hint<'h>> {
        if self.numbers.contains(&field) {
            let [point, comma] = ['.', ','].map(|decimal| amount(text, decimal).map(|read| read.number));
            let is_comma = self.decimal == Some(',');
            return match (point, comma) {
                (Some(point), Some(comma)) if point != comma => Some(Hint::Either { text: shown, point, comma }),
                (Some(_), Some(_)) => None,
                (None, Some(comma)) if !is_comma => Some(Hint::WithComma { text: shown, comma }),
                (Some(_), None) if is_comma => Some(Hint::NotWithComma { text: shown }),
                _ => Some(Hint::NoAmount { text: shown }),
            };
        }
        if DATES.contains(&field) || TIMES.contains(&field) {
            if !text.contains(|char: char| char.is_ascii_digit()) {
                return None;
            }
            return Some(match &self.date_format {
                Some(format) => Hint::OtherDateForm { text: shown, format },
                None => Hint::DateForm { text: shown, examples: examples_of_form(text) },
            });
        }
        // What a text stands for is never suggested.
        match field {
            "status" => Some(Hint::Status { text: shown }),
            "currency" if is_code(text) => None,
            "currency" => Some(Hint::Currency { text: shown }),
            "id" if text.len() < 32 => Some(Hint::OtherId),
            _ => None,
        }
    }

    /// Returns the texts that no cell has.
    pub(super) fn unused(&self) -> Vec<UnusedMapping> {
        let unused = self.values.iter().filter(|value| !value.is_used);
        unused.map(|value| UnusedMapping::Value(value.given.clone())).collect()
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
fn examples_of_form(text: &str) -> Vec<String> {
    if text.chars().any(char::is_alphabetic) {
        return vec!["DD MMM YYYY".to_owned()];
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
    forms.iter().map(|form| form.replace('/', &separator)).collect()
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
            hints: |hint| format!("{hint:?}"),
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
        let hint = |text, decimal| {
            let hints: HintWords = |hint| hint.to_string();
            CellReader { decimal, hints, ..reader(None) }.hint("total", text)
        };
        for (text, decimal, want) in [
            ("$1.239", None, Some("$1.239 is 1.239 with a decimal point and 1239 with a decimal comma")),
            ("1,239", Some(','), Some("1,239 is 1239 with a decimal point and 1.239 with a decimal comma")),
            ("1.239", Some('.'), Some("1.239 is 1.239 with a decimal point and 1239 with a decimal comma")),
            ("1.239,00", None, Some("a decimal comma reads 1.239,00 as 1239.00")),
            ("0,500", None, Some("a decimal comma reads 0,500 as 0.500")),
            ("0.500", Some(','), Some("0.500 has no decimal comma")),
            ("12.50", Some(','), Some("12.50 has no decimal comma")),
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
        let reader = reader(None);
        assert_eq!(reader.hint_at("currency", "BGN", "BGN"), None);
        let dollar = Some(Hint::Currency { text: "US Dollar" });
        assert_eq!(reader.hint_at("currency", "US Dollar", "US Dollar"), dollar);
        assert_eq!(reader.hint_at("status", "Void", "Void"), Some(Hint::Status { text: "Void" }));
        for (text, want) in [
            ("03/04/2099", &["DD/MM/YYYY", "MM/DD/YYYY"][..]),
            ("31.12.2099", &["DD.MM.YYYY"]),
            ("12/31/2099", &["MM/DD/YYYY"]),
            ("2099/4/3", &["YYYY/MM/DD"]),
            ("3 Apr 2099", &["DD MMM YYYY"]),
        ] {
            let examples = want.iter().map(|form| (*form).to_owned()).collect();
            assert_eq!(reader.hint_at("due_date", text, text), Some(Hint::DateForm { text, examples }));
        }
        for (text, value, want) in
            [("BGN", "EUR", Some("BGN")), ("usd", "AUD", Some("USD")), ("AUD", "AUD", None), ("Euro", "EUR", None)]
        {
            assert_eq!(other_currency(text, value).as_deref(), want, "{text}={value}");
        }
    }
}
