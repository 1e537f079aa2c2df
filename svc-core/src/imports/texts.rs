//! Texts that a program on the way has changed, so that they are no longer what somebody typed.
//!
//! A spreadsheet shows a long number as `6.14E+10` and drops its digits, and programs write `="0800"` to keep a zero from it.
//! Neither is a phone number. The texts of rows are checked here, for every format and surface; those of records that an
//! export wrote are put back as they are.

use std::borrow::Cow;

use crate::error::{Error, FieldCode, Issue, Violations};
use crate::values::formulas::{constant, is_power, is_scientific};

/// The fields whose texts are numbers, of which every digit counts.
const NUMBERS: [&str; 2] = ["phone", "postcode"];

/// Checks the texts of a row, each with the name of its field.
///
/// # Errors
/// [`Error::Validation`] with each text that a program has changed.
pub(super) fn check<'t>(texts: impl IntoIterator<Item = (&'static str, Option<Cow<'t, str>>)>) -> Result<(), Error> {
    let mut violations = Violations::default();
    for (field, text) in texts {
        let Some(reason) = text.and_then(|text| reason(field, &text)) else { continue };
        violations.push(field, Issue::new(FieldCode::InvalidFormat, reason));
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::Validation(violations)) }
}

fn reason(field: &str, text: &str) -> Option<String> {
    if is_scientific(text) || NUMBERS.contains(&field) && is_power(text) {
        return Some(format!(
            "must have all of its digits, and {text} is a number that a spreadsheet has shortened; give the column the format \
             Text there, and export it again"
        ));
    }
    if let Some(inner) = constant(text) {
        return Some(format!("must be {inner:?} alone, without the formula {text} around it"));
    }
    let whole =
        text.split_once('.').filter(|(_, decimals)| !decimals.is_empty() && decimals.bytes().all(|b| b == b'0'));
    let whole = whole.map(|(whole, _)| whole).filter(|whole| NUMBERS.contains(&field) && is_digits(whole))?;
    Some(format!("must be as it is written, and {text} is the number {whole} with decimals; export the column as text"))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_a_program_has_changed_is_refused() {
        for (field, text, is_refused) in [
            ("phone", "6.14E+10", true),
            ("postcode", "1E+05", true),
            ("invoice_number", "1.23457E+11", true),
            ("phone", "=\"0412345678\"", true),
            ("postcode", "2000.0", true),
            ("postcode", "2000", false),
            ("postcode", "E1 6AN", false),
            ("phone", "0412.345.678", false),
            ("phone", "02.0", true),
            ("phone", "6E10", true),
            ("phone", "+4e11", true),
            ("postcode", "4e11", true),
            ("postcode", " 2E3 ", true),
            ("postcode", "6E", false),
            ("invoice_number", "12E4", false),
            ("invoice_number", "1001.0", false),
            ("first_name", "=1+1", false),
            ("company_name", "3M", false),
        ] {
            assert_eq!(check([(field, Some(text.into()))]).is_err(), is_refused, "{field} {text}");
        }
        assert_eq!(check([("phone", None)]), Ok(()));
    }
}
