//! Text cells of CSV files that a spreadsheet would take for formulas.
//!
//! A spreadsheet runs a cell such as `=HYPERLINK(…)` when it opens the file, whoever typed it. With an apostrophe in
//! front, the cell is text. An import removes one apostrophe from such cells, so that phone numbers like `+61 2 …` come
//! back as they were. It also removes the one by which people keep the zero of a number such as `'0412 345 678`.

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

/// Returns the cell of a text.
///
/// A formula gets an apostrophe if `escape` is set. A formula or a number with an apostrophe in front always gets another
/// one, since an import removes one.
pub fn to_cell(text: String, escape: bool) -> String {
    let is_marked = text.starts_with('\'');
    let needs_escape = is_formula_like(&text) && (escape || is_marked) || is_number_like(&text) && is_marked;
    if needs_escape { format!("'{text}") } else { text }
}

/// Returns the text of a cell. This is the reverse of [`to_cell`], with `escape` or without.
pub fn from_cell(cell: &str) -> Cow<'_, str> {
    match cell.strip_prefix('\'').filter(|text| is_formula_like(text) || is_number_like(text)) {
        Some(text) => text.into(),
        None => cell.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_come_back() {
        for (text, escaped) in [
            ("=1+1", "'=1+1"),
            ("+61 2 5550 0100", "'+61 2 5550 0100"),
            ("-5", "'-5"),
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
        assert_eq!(to_cell("=1".to_owned(), false), "=1");
        assert_eq!(from_cell("'0412 345 678"), "0412 345 678");
    }
}
