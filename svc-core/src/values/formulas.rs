//! Text cells of CSV files that a spreadsheet would take for formulas, or has taken for numbers.
//!
//! A spreadsheet runs a cell such as `=HYPERLINK(…)` when it opens the file, also one that a stranger typed. With an apostrophe in
//! front, the cell is text. An import removes one apostrophe from such cells, so that phone numbers like `+61 2 …` come
//! back as they were. It also removes the one by which people keep the zero of a number such as `'0412 345 678`.
//!
//! A cell that begins with `=` is never the text itself: programs write `="0412345678"` so that a spreadsheet keeps the
//! zero. The text of such a [`constant`] is read, and an import refuses every other formula.

use std::borrow::Cow;

/// Returns whether a text begins with a character at which spreadsheets begin a formula, after any apostrophes.
fn is_formula_like(text: &str) -> bool {
    let formula = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    text.trim_start_matches('\'').starts_with(formula)
}

/// Returns whether a text is a number, a date or a phone number, after any apostrophes: it begins with a digit and has no
/// letters.
fn is_number_like(text: &str) -> bool {
    let number = text.trim_start_matches('\'');
    number.starts_with(|char: char| char.is_ascii_digit()) && !number.contains(char::is_alphabetic)
}

/// Returns whether a text is a negative amount such as `-20.50`, in which there is nothing to run.
fn is_negative_amount(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let amount = text.strip_prefix('-').map(|amount| amount.split_once('.').unwrap_or((amount, "0")));
    amount.is_some_and(|(whole, decimals)| digits(whole) && digits(decimals))
}

/// Returns the cell of a text.
///
/// A formula gets an apostrophe if `escape` is set. Two kinds of texts always get one, since an import would read them as
/// other texts: one that begins with `=`, and a formula or a number with an apostrophe in front.
pub fn to_cell(text: String, escape: bool) -> String {
    let is_read_otherwise = text.starts_with(['\'', '=']);
    let is_formula = is_formula_like(&text) && !is_negative_amount(&text);
    let needs_escape = is_formula && (escape || is_read_otherwise) || is_number_like(&text) && is_read_otherwise;
    if needs_escape { format!("'{text}") } else { text }
}

/// Returns the text of a cell. This is the reverse of [`to_cell`], with `escape` or without.
pub fn from_cell(cell: &str) -> Cow<'_, str> {
    match cell.strip_prefix('\'').filter(|text| is_formula_like(text) || is_number_like(text)) {
        Some(text) => text.into(),
        None => cell.into(),
    }
}

/// Returns the text of a formula that is a constant text, such as `0800` of `="0800"`.
///
/// ```
/// use svc_core::values::formulas::constant;
/// assert_eq!(constant(r#"="0800""#).as_deref(), Some("0800"));
/// assert_eq!(constant(r#"="Bo ""B""""#).as_deref(), Some(r#"Bo "B""#));
/// assert_eq!(constant(r#"=T("0800")"#), None);
/// ```
pub fn constant(cell: &str) -> Option<String> {
    let inner = cell.trim().strip_prefix('=')?.strip_prefix('"')?.strip_suffix('"')?;
    let text = inner.replace("\"\"", "\0");
    (!text.contains('"')).then(|| text.replace('\0', "\""))
}

/// Returns whether a text is a number in scientific notation, such as `6.14E+10`, in which a spreadsheet drops digits of a
/// phone number. A number such as `12E4` can be that of an invoice; [`is_power`] knows it.
///
/// ```
/// use svc_core::values::formulas::is_scientific;
/// assert!(is_scientific("6.14E+10") && is_scientific("1e+05") && is_scientific("6,14E10"));
/// assert!(!is_scientific("12E4") && !is_scientific("E1 6AN") && !is_scientific("61412345678"));
/// ```
pub fn is_scientific(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.trim().trim_start_matches(['+', '-', '−']);
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return false };
    let is_signed = exponent.starts_with(['+', '-', '−']);
    let parts = mantissa.split_once(['.', ',']);
    let is_number = parts.map_or_else(|| digits(mantissa), |(whole, decimals)| digits(whole) && digits(decimals));
    is_number && digits(exponent.trim_start_matches(['+', '-', '−'])) && (is_signed || parts.is_some())
}

/// Returns whether a text is a whole number with an exponent, such as `6E10`: a number in scientific notation, where no text
/// with a letter is meant.
///
/// ```
/// use svc_core::values::formulas::is_power;
/// assert!(is_power("6E10") && is_power("4e11"));
/// assert!(!is_power("E1 6AN") && !is_power("6E") && !is_power("0412 345 678"));
/// ```
pub fn is_power(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.trim().trim_start_matches(['+', '-', '−']);
    text.split_once(['e', 'E']).is_some_and(|(mantissa, exponent)| digits(mantissa) && digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_constant_text_is_read_out_of_a_formula() {
        for (cell, want) in [
            ("=\"0412345678\"", Some("0412345678")),
            (" =\"\" ", Some("")),
            ("=\"=\"\"1\"\"\"", Some("=\"1\"")),
            ("=T(\"Perth\")", None),
            ("=\"04\"&\"12\"", None),
            ("=\"a", None),
            ("=\"", None),
            ("=0412345678", None),
            ("\"0412\"", None),
            ("'=\"0412\"", None),
        ] {
            assert_eq!(constant(cell).as_deref(), want, "{cell}");
        }
    }

    #[test]
    fn numbers_in_scientific_notation_are_known() {
        for (text, want) in [
            ("6.14E+10", true),
            ("6,14E+10", true),
            ("1E+05", true),
            ("1e-05", true),
            ("-4.12346e+11", true),
            ("6.14E10", true),
            ("12E4", false),
            ("E+10", false),
            ("6.E+10", false),
            ("1E+", false),
            ("1.2.3E+4", false),
            ("2000", false),
            ("", false),
        ] {
            assert_eq!(is_scientific(text), want, "{text}");
        }
    }

    #[test]
    fn formulas_become_text_and_come_back() {
        for (text, escaped) in [
            ("=1+1", "'=1+1"),
            ("+61 2 5550 0100", "'+61 2 5550 0100"),
            ("-5", "-5"),
            ("-20.50", "-20.50"),
            ("-5+1", "'-5+1"),
            ("-1.2.3", "'-1.2.3"),
            ("-.5", "'-.5"),
            ("-", "'-"),
            ("'-5", "''-5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("＝1", "'＝1"),
            ("'=1", "''=1"),
            ("''=1", "'''=1"),
            ("0412 345 678", "0412 345 678"),
            ("'0412 345 678", "''0412 345 678"),
            ("'90s", "'90s"),
            ("'t Hooft", "'t Hooft"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(to_cell(text.to_owned(), true), escaped, "{text:?}");
            for escape in [true, false] {
                assert_eq!(from_cell(&to_cell(text.to_owned(), escape)), text, "{text:?} {escape}");
            }
        }
        assert_eq!(to_cell("=1".to_owned(), false), "'=1", "an import takes no formula");
        assert_eq!(to_cell("+1".to_owned(), false), "+1");
        assert_eq!(from_cell("'0412 345 678"), "0412 345 678");
    }
}
