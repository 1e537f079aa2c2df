//! How the text of a cell becomes the value of a field.
//!
//! Spreadsheets write amounts with a sign of the currency and separators between thousands, and dates in the order of their
//! country. Amounts are read with a decimal point, or with a comma if `--decimal` says so; dates are read as `--date-format`
//! says, and the order is never guessed; statuses and currencies are named by `--map-value`. A text that cannot be read is
//! left as it is, so that the rules refuse it, and the refusal names the option that would read it.

use svc_core::error::{Error, Violation, Violations};
use svc_core::input::json::Json;
use svc_core::resources::invoices::InvoiceStatus;
use svc_core::values::{Currency, Date, TimeZone, formulas};

use super::columns::Columns;
use crate::cli::Import as Options;
use crate::exit::{Exit, Failure};
use crate::values::{DateFormat, ValueMapping};

/// The fields that are dates.
const DATES: [&str; 2] = ["issue_date", "due_date"];
/// The fields that are times. Of a date, they take the time at which it begins in the account's time zone.
const TIMES: [&str; 3] = ["paid_at", "created_at", "updated_at"];
/// The signs of currencies that an amount may begin or end with.
const SIGNS: &str = "$€£¥₹₽₩₪₺₫฿₴₦₱₡₲₵₸₿¢";

/// A field whose values have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enumerated {
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
    field: Enumerated,
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
        options: &Options,
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
            let Some((field, value)) = enumerated(&given.value) else {
                let reason = format!(
                    "--map-value {given} names neither a status nor a currency. The statuses are {}.",
                    statuses()
                );
                return Err(misused(reason));
            };
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
    pub(super) fn check(&self, file: &str, columns: &Columns, options: &Options) -> Result<(), Failure> {
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
    pub(super) fn json(&mut self, field: &str, cell: &str, currency: Option<&str>) -> Json {
        let text = formulas::from_cell(cell.trim());
        if text.is_empty() {
            return Json::Null;
        }
        if self.numbers.contains(&field) {
            if self.is_ambiguous(&text, currency) {
                return Json::Number(String::new());
            }
            let decimal = self.decimal.unwrap_or('.');
            return match amount(&text, decimal) {
                Some(number) => Json::Number(number),
                // JSON may have other forms, such as one with an exponent.
                None if decimal == '.' => Json::Number(text.into_owned()),
                None => Json::Number(String::new()),
            };
        }
        let read = match field {
            "status" => self.named(Enumerated::Status, &text),
            "currency" => self.named(Enumerated::Currency, &text),
            _ if DATES.contains(&field) => self.date(&text),
            _ if TIMES.contains(&field) => self.time(&text),
            _ => None,
        };
        Json::String(read.unwrap_or_else(|| formulas::from_cell(cell).into_owned()))
    }

    /// Returns whether an amount is one of two, a thousand times apart, and no option says which: in `1.239` and `1,239`,
    /// the character may be before decimals or between thousands. A point is taken for that of decimals only if the currency
    /// has as many, and a comma for one of thousands only if it does not.
    fn is_ambiguous(&mut self, text: &str, currency: Option<&str>) -> bool {
        let (None, Some(separator)) = (self.decimal, either(text)) else { return false };
        let named = currency.and_then(|cell| self.named(Enumerated::Currency, formulas::from_cell(cell).trim()));
        let currency = named.and_then(|code| Currency::parse(&code).ok());
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
    fn named(&mut self, field: Enumerated, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        match self.values.iter_mut().find(|value| value.field == field && value.text == lower) {
            Some(value) => {
                value.is_used = true;
                Some(value.value.clone())
            }
            None => {
                let known =
                    self.statuses.iter().find(|(name, _)| field == Enumerated::Status && name.to_lowercase() == lower);
                let known = known.map(|(_, status)| (*status).to_owned());
                known.or_else(|| enumerated(text).filter(|(of, _)| *of == field).map(|(_, value)| value))
            }
        }
    }

    /// Returns a date as `YYYY-MM-DD`. Of a date with a time, the date counts.
    fn date(&self, text: &str) -> Option<String> {
        let read = |day: &str| match &self.date_format {
            Some(format) => format.to_iso(day).or_else(|| iso(day)),
            None => iso(day),
        };
        let times = text.match_indices([' ', 'T']).filter(|(at, _)| is_time(&text[at + 1..]));
        read(text).or_else(|| times.map(|(at, _)| read(&text[..at])).find_map(|day| day))
    }

    /// Returns the time at which a date in the form of `--date-format` begins in the account's time zone.
    fn time(&self, text: &str) -> Option<String> {
        let date = Date::parse(&self.date_format.as_ref()?.to_iso(text)?).ok()?;
        Some(self.zone.date_begins(date).to_string())
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
            let [point, comma] = ['.', ','].map(|decimal| amount(text, decimal));
            let is_comma = self.decimal == Some(',');
            return match (point, comma) {
                (Some(point), Some(comma)) if point != comma => {
                    Some(format!("{shown} is {point} with --decimal . and {comma} with --decimal ,"))
                }
                (Some(_), Some(_)) => None,
                (None, Some(_)) if !is_comma => Some(format!("--decimal , reads {shown}")),
                (Some(_), None) if is_comma => Some(format!("--decimal , does not read {shown}")),
                _ => Some(format!("it is {shown:?}")),
            };
        }
        if DATES.contains(&field) || TIMES.contains(&field) {
            if !text.contains(|char: char| char.is_ascii_digit()) {
                return None;
            }
            // The parts that it has, in an order that is only an example.
            let begins_with_year = text.bytes().take_while(u8::is_ascii_digit).count() == 4;
            let example = match text.chars().any(char::is_alphabetic) {
                true => "\"DD MMM YYYY\"",
                false if begins_with_year => "YYYY/MM/DD",
                false => "DD/MM/YYYY",
            };
            return Some(match &self.date_format {
                Some(format) => format!("{shown} is no date of the form --date-format {format}"),
                None => format!("name the form of {shown} with --date-format, such as --date-format {example}"),
            });
        }
        match field {
            "status" => {
                Some(format!("name the status of {shown:?} with --map-value, such as --map-value \"{shown}=sent\""))
            }
            "currency" => {
                Some(format!("name the currency of {shown:?} with --map-value, such as --map-value \"{shown}=AUD\""))
            }
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
fn enumerated(name: &str) -> Option<(Enumerated, String)> {
    let status = InvoiceStatus::from_text(&name.to_lowercase());
    let status = status.map(|status| (Enumerated::Status, status.to_string()));
    status.or_else(|| Some((Enumerated::Currency, Currency::parse(&name.to_uppercase()).ok()?.code().to_owned())))
}

fn statuses() -> String {
    InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns a date that is already in the form of the API.
fn iso(text: &str) -> Option<String> {
    Date::parse(text).ok().map(|date| date.to_string())
}

/// Returns whether a text begins with a time of the day, such as `9:30`.
fn is_time(text: &str) -> bool {
    text.split_once(':').is_some_and(|(hour, rest)| {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        matches!(hour.len(), 1 | 2) && digits(hour) && rest.get(..2).is_some_and(digits)
    })
}

/// Returns the separator of an amount that has one, with one to three digits before it and three after it, so that it may
/// be before decimals or between thousands.
fn either(text: &str) -> Option<char> {
    let (point, comma) = (amount(text, '.')?, amount(text, ',')?);
    let separator = text.chars().find(|char| matches!(char, '.' | ','))?;
    // Zero thousands are not written.
    (point != comma && !point.trim_start_matches('-').starts_with('0')).then_some(separator)
}

/// Returns an amount of a spreadsheet as JSON has it, or `None` if it has another form: a sign of a currency before or after
/// it, thousands in groups of three digits, and the decimal character before the decimals.
fn amount(text: &str, decimal: char) -> Option<String> {
    let is_around = |char: char| char.is_whitespace() || SIGNS.contains(char);
    let text = text.trim_matches(is_around);
    let (sign, text) = match text.strip_prefix(['-', '−']) {
        Some(rest) => ("-", rest.trim_start_matches(is_around)),
        None => ("", text),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = match text.split_once(decimal) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (text, None),
    };
    if decimals.is_some_and(|decimals| !all_digits(decimals)) {
        return None;
    }
    let point = if decimal == '.' { ',' } else { '.' };
    let is_separator = |char: char| char == point || char.is_whitespace() || matches!(char, '\'' | '’');
    let whole = match whole.chars().find(|char| !char.is_ascii_digit()) {
        None => whole.to_owned(),
        Some(separator) if is_separator(separator) => {
            let mut groups = whole.split(separator);
            let first = groups.next().filter(|group| all_digits(group) && group.len() <= 3)?;
            groups.try_fold(first.to_owned(), |whole, group| {
                (group.len() == 3 && all_digits(group)).then(|| whole + group)
            })?
        }
        Some(_) => return None,
    };
    match (whole.as_str(), decimals) {
        ("", None) => None,
        ("", Some(decimals)) => Some(format!("{sign}0.{decimals}")),
        (whole, None) => Some(format!("{sign}{whole}")),
        (whole, Some(decimals)) => Some(format!("{sign}{whole}.{decimals}")),
    }
}

/// Returns the sum of two amounts as JSON has them, or `None` if one has another form or is too long.
pub(super) fn sum(left: &str, right: &str) -> Option<String> {
    /// More decimals than a currency has.
    const DECIMALS: usize = 9;
    let parse = |text: &str| {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = [whole, decimals].concat();
        let is_amount = !whole.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let digits = (is_amount && whole.len() <= 18 && decimals.len() <= DECIMALS).then_some(digits)?;
        format!("{digits:0<width$}", width = whole.len() + DECIMALS).parse::<i128>().ok().map(|value| sign * value)
    };
    let sum = parse(left)? + parse(right)?;
    let sign = if sum < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", sum.unsigned_abs(), width = DECIMALS + 1);
    let (whole, decimals) = digits.split_at(digits.len() - DECIMALS);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{decimals}"))
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

    #[test]
    fn amounts_are_read_as_spreadsheets_write_them() {
        for (text, decimal, want) in [
            ("1239", '.', Some("1239")),
            ("$1,239.00", '.', Some("1239.00")),
            ("1,239", '.', Some("1239")),
            ("-$1,239.50", '.', Some("-1239.50")),
            ("1\u{a0}239.00 $", '.', Some("1239.00")),
            (".50", '.', Some("0.50")),
            ("1'239'000.00", '.', Some("1239000.00")),
            ("1.239,00 €", ',', Some("1239.00")),
            ("1 239,00", ',', Some("1239.00")),
            ("1\u{202f}239,00\u{a0}€", ',', Some("1239.00")),
            ("1.239", ',', Some("1239")),
            ("1.239,00", '.', None),
            ("1239,5", '.', None),
            ("1,23,456.00", '.', None),
            ("1,239 000", '.', None),
            (",239", '.', None),
            ("12.50", ',', None),
            ("1.2.3", '.', None),
            ("12$50", '.', None),
            ("1 239 EUR", '.', None),
            ("1e3", '.', None),
            ("5.", '.', None),
            ("$", '.', None),
            ("", '.', None),
            ("٣", '.', None),
        ] {
            assert_eq!(amount(text, decimal).as_deref(), want, "{text:?} {decimal}");
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
            ("1239.500", "KWD", None, Some("1239.500")),
            ("1,239.500", "KWD", None, Some("1239.500")),
            ("1.5", "AUD", None, Some("1.5")),
            ("1.23", "AUD", None, Some("1.23")),
            ("1.2345", "UYW", None, Some("1.2345")),
            ("1 239", "KWD", None, Some("1239")),
        ] {
            let mut reader = CellReader { decimal, ..reader(None) };
            let want = Json::Number(want.unwrap_or_default().to_owned());
            assert_eq!(reader.json("total", text, Some(currency)), want, "{text} {currency} {decimal:?}");
        }
        let hint = |text, decimal| CellReader { decimal, ..reader(None) }.hint("total", text);
        for (text, decimal, want) in [
            ("$1.239", None, Some("$1.239 is 1.239 with --decimal . and 1239 with --decimal ,")),
            ("1,239", Some(','), Some("1,239 is 1239 with --decimal . and 1.239 with --decimal ,")),
            ("1.239", Some('.'), Some("1.239 is 1.239 with --decimal . and 1239 with --decimal ,")),
            ("1.239,00", None, Some("--decimal , reads 1.239,00")),
            ("12.50", Some(','), Some("--decimal , does not read 12.50")),
            ("a lot", None, Some("it is \"a lot\"")),
            ("-5", None, None),
        ] {
            assert_eq!(hint(text, decimal).as_deref(), want, "{text} {decimal:?}");
        }
    }

    #[test]
    fn amounts_add_up_exactly() {
        for (left, right, want) in [
            ("0.1", "0.2", Some("0.3")),
            ("10000.00", "12212.15", Some("22212.15")),
            ("5", "-7.5", Some("-2.5")),
            ("0.5", "0.5", Some("1")),
            ("0.0000000001", "1", None),
            ("1e3", "1", None),
            ("", "1", None),
            ("12345678901234567890", "1", None),
        ] {
            assert_eq!(sum(left, right).as_deref(), want, "{left} + {right}");
            assert_eq!(sum(right, left).as_deref(), want, "{right} + {left}");
        }
    }

    #[test]
    fn dates_are_read_and_never_guessed() {
        for (format, text, want) in [
            (None, "2025-12-31", Some("2025-12-31")),
            (None, "2025-12-31 14:05:00", Some("2025-12-31")),
            (None, "31/12/2025", None),
            (Some("DD/MM/YYYY"), "31/12/2025", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), "31/12/2025 9:30 PM", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), "2025-12-31", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), "12/31/25", None),
            (Some("DD MM YYYY"), "31 12 2025", Some("2025-12-31")),
            (None, "2025-12-31 of May", None),
        ] {
            assert_eq!(reader(format).date(text).as_deref(), want, "{text}");
        }
        let begins = reader(Some("DD/MM/YYYY")).time("31/12/2025");
        assert_eq!(begins.as_deref(), Some("2025-12-30T13:00:00.000000Z"));
        assert_eq!(reader(Some("DD/MM/YYYY")).time("31/02/2025"), None);
        assert_eq!(reader(None).time("2025-12-31"), None);
    }

    #[test]
    fn cells_become_values() {
        let mut reader = reader(None);
        let text = |text: &str| Json::String(text.to_owned());
        for (field, cell, want) in [
            ("total", " '99.95 ", Json::Number("99.95".to_owned())),
            ("total", "1e3", Json::Number("1e3".to_owned())),
            ("status", "Paid", text("paid")),
            ("status", "AUD", text("AUD")),
            ("currency", "aud", text("AUD")),
            ("currency", "Dollars", text("Dollars")),
            ("phone", "'0412 345 678", text("0412 345 678")),
            ("phone", " 0412", text(" 0412")),
            ("city", "  ", Json::Null),
        ] {
            assert_eq!(reader.json(field, cell, None), want, "{field} {cell:?}");
        }
    }
}
