//! Amounts as spreadsheets, banks and people write them: with signs of currencies, separators between thousands, and several
//! ways to say that an amount is negative.

use svc_core::values::Currency;

/// Signs of currencies, each with the codes that it can stand for. Letters count in any case.
const SIGNS: [(&str, &[&str]); 79] = [
    (
        "$",
        &[
            "AUD", "USD", "CAD", "NZD", "ARS", "BBD", "BMD", "BND", "BSD", "BZD", "CLP", "COP", "CUP", "DOP", "FJD",
            "GYD", "HKD", "JMD", "KYD", "LRD", "MXN", "NAD", "SBD", "SGD", "SRD", "TTD", "TWD", "UYU", "XCD",
        ],
    ),
    ("A$", &["AUD"]),
    ("AU$", &["AUD"]),
    ("AR$", &["ARS"]),
    ("B$", &["BND", "BSD"]),
    ("BZ$", &["BZD"]),
    ("Bds$", &["BBD"]),
    ("C$", &["CAD", "NIO"]),
    ("CA$", &["CAD"]),
    ("COL$", &["COP"]),
    ("EC$", &["XCD"]),
    ("FJ$", &["FJD"]),
    ("G$", &["GYD"]),
    ("HK$", &["HKD"]),
    ("J$", &["JMD"]),
    ("L$", &["LRD"]),
    ("MX$", &["MXN"]),
    ("Mex$", &["MXN"]),
    ("N$", &["NAD"]),
    ("NT$", &["TWD"]),
    ("NZ$", &["NZD"]),
    ("R$", &["BRL"]),
    ("RD$", &["DOP"]),
    ("S$", &["SGD"]),
    ("T$", &["TOP"]),
    ("TT$", &["TTD"]),
    ("U$", &["USD", "UYU"]),
    ("US$", &["USD"]),
    ("Z$", &["ZWG"]),
    ("€", &["EUR"]),
    ("£", &["GBP", "EGP", "FKP", "GIP", "LBP", "SHP", "SSP", "SYP"]),
    ("¥", &["JPY", "CNY"]),
    ("￥", &["JPY", "CNY"]),
    ("円", &["JPY"]),
    ("元", &["CNY"]),
    ("₩", &["KRW", "KPW"]),
    ("￦", &["KRW", "KPW"]),
    ("원", &["KRW"]),
    ("₹", &["INR"]),
    ("Rs", &["INR", "PKR", "LKR", "NPR", "MUR", "SCR"]),
    ("Rs.", &["INR", "PKR", "LKR", "NPR", "MUR", "SCR"]),
    ("₨", &["PKR", "INR", "LKR", "NPR", "MUR", "SCR"]),
    ("₽", &["RUB"]),
    ("руб", &["RUB"]),
    ("руб.", &["RUB"]),
    ("₺", &["TRY"]),
    ("TL", &["TRY"]),
    ("₪", &["ILS"]),
    ("₫", &["VND"]),
    ("฿", &["THB"]),
    ("₴", &["UAH"]),
    ("₦", &["NGN"]),
    ("₱", &["PHP", "CUP"]),
    ("₡", &["CRC", "SVC"]),
    ("₲", &["PYG"]),
    ("₵", &["GHS"]),
    ("₸", &["KZT"]),
    ("₼", &["AZN"]),
    ("₾", &["GEL"]),
    ("֏", &["AMD"]),
    ("₭", &["LAK"]),
    ("₮", &["MNT"]),
    ("৳", &["BDT"]),
    ("kr", &["SEK", "NOK", "DKK", "ISK"]),
    ("kr.", &["SEK", "NOK", "DKK", "ISK"]),
    ("zł", &["PLN"]),
    ("Kč", &["CZK"]),
    ("Ft", &["HUF"]),
    ("lei", &["RON", "MDL"]),
    ("Fr", &["CHF"]),
    ("Fr.", &["CHF"]),
    ("SFr", &["CHF"]),
    ("SFr.", &["CHF"]),
    ("R", &["ZAR"]),
    ("RM", &["MYR"]),
    ("Rp", &["IDR"]),
    ("S/", &["PEN"]),
    ("S/.", &["PEN"]),
    ("Br", &["BYN", "ETB"]),
];

/// The most codes of a sign that a refusal lists.
const MAX_LISTED: usize = 4;

/// An amount that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadAmount {
    /// The number as JSON has it.
    pub(super) number: String,
    signs: Vec<Sign>,
}

/// The sign or the code of a currency before or after an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sign {
    text: String,
    codes: Vec<&'static str>,
}

impl ReadAmount {
    /// Returns why the amount is in another currency than its row.
    pub(super) fn contradiction(&self, currency: Currency) -> Option<String> {
        let sign = self.signs.iter().find(|sign| !sign.codes.contains(&currency.code()))?;
        let listed = sign.codes.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
        let more = if sign.codes.len() > MAX_LISTED { " and others" } else { "" };
        let of = if sign.codes == [sign.text.to_uppercase()] {
            String::new()
        } else {
            format!(", a sign of {listed}{more}")
        };
        Some(format!(
            "must be in the currency of its row, {currency}, and its cell has {}{of}; give each row its currency in a column \
             currency",
            sign.text
        ))
    }
}

/// Reads an amount, or returns `None` if it has another form: signs of currencies before or after it, thousands in groups,
/// and the `decimal` character before its decimals. Parentheses, a minus before or after it and `CR` make it negative.
pub(super) fn amount(text: &str, decimal: char) -> Option<ReadAmount> {
    let (mut rest, mut signs, mut minus) = (text.trim(), Vec::new(), None);
    loop {
        let (shorter, is_negative) =
            if let Some(inner) = rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
                (inner, Some(true))
            } else if let Some(amount) = without_credit(rest) {
                (amount, Some(true))
            } else if let Some(amount) = rest.strip_prefix(is_minus).or_else(|| rest.strip_suffix(is_minus)) {
                (amount, Some(true))
            } else if let Some(amount) = rest.strip_prefix('+') {
                (amount, Some(false))
            } else if let Some((sign, amount)) = around(rest) {
                signs.push(sign);
                (amount, None)
            } else {
                break;
            };
        // An amount is not negative twice.
        if is_negative.is_some() && std::mem::replace(&mut minus, is_negative).is_some() {
            return None;
        }
        rest = shorter.trim();
    }
    let number = number(rest, decimal)?;
    let minus = if minus == Some(true) { "-" } else { "" };
    Some(ReadAmount { number: format!("{minus}{number}"), signs })
}

/// Returns whether a character is a minus, or a dash that stands for one.
fn is_minus(char: char) -> bool {
    matches!(char, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}')
}

/// Returns an amount without the letters by which banks mark a credit.
fn without_credit(text: &str) -> Option<&str> {
    let at = text.len().checked_sub(2)?;
    let (amount, mark) = (text.get(..at)?, text.get(at..)?);
    let amount = Some(amount.trim_end()).filter(|amount| amount.ends_with(|char: char| char.is_ascii_digit()));
    amount.filter(|_| mark.eq_ignore_ascii_case("cr"))
}

/// Takes the sign or the code of a currency off the beginning or the end of a text.
fn around(text: &str) -> Option<(Sign, &str)> {
    let is_word = |char: char| {
        !(char.is_ascii_digit() || char.is_whitespace() || is_minus(char) || matches!(char, '+' | '(' | ')'))
    };
    let end = text.find(|char| !is_word(char)).unwrap_or(text.len());
    let start =
        text.rfind(|char| !is_word(char)).map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    // The point of `$.50` belongs to the number, that of `Rs.50` to the sign.
    let before = [&text[..end], text[..end].trim_end_matches(['.', ','])];
    let before = before.into_iter().find_map(|word| Some((sign(word)?, &text[word.len()..])));
    before.or_else(|| Some((sign(&text[start..])?, &text[..start])))
}

/// Returns the currencies of a sign or a code.
fn sign(word: &str) -> Option<Sign> {
    let lower = word.to_lowercase();
    let known = SIGNS.iter().find(|(sign, _)| sign.to_lowercase() == lower).map(|(_, codes)| codes.to_vec());
    // The code may have a sign behind it, as `AUD$` has.
    let code = || Some(vec![Currency::parse(&word.trim_end_matches('$').to_uppercase()).ok()?.code()]);
    Some(Sign { text: word.to_owned(), codes: known.or_else(code)? })
}

/// Reads a number without a sign: thousands in groups of three digits, or as they are grouped in India, and the `decimal`
/// character before its decimals.
fn number(text: &str, decimal: char) -> Option<String> {
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
            let groups: Vec<&str> = whole.split(separator).collect();
            let (first, others) = groups.split_first()?;
            let (last, middle) = others.split_last()?;
            let are = |length: usize| middle.iter().all(|group| group.len() == length);
            let is_grouped = last.len() == 3 && (first.len() <= 3 && are(3) || first.len() <= 2 && are(2));
            // No thousands begin with a zero: `0,500` is a half with another decimal separator.
            let is_grouped = is_grouped && !first.starts_with('0');
            (is_grouped && groups.iter().all(|group| all_digits(group))).then(|| groups.concat())?
        }
        Some(_) => return None,
    };
    match (whole.as_str(), decimals) {
        ("", None) => None,
        ("", Some(decimals)) => Some(format!("0.{decimals}")),
        (whole, None) => Some(whole.to_owned()),
        (whole, Some(decimals)) => Some(format!("{whole}.{decimals}")),
    }
}

/// Returns the separator of an amount that has one, with one to three digits before it and three after it, so that it may
/// be before decimals or between thousands.
pub(super) fn either(text: &str) -> Option<char> {
    let (point, comma) = (amount(text, '.')?.number, amount(text, ',')?.number);
    let separator = text.chars().find(|char| matches!(char, '.' | ','))?;
    (point != comma).then_some(separator)
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

    fn read(text: &str, decimal: char) -> Option<String> {
        amount(text, decimal).map(|amount| amount.number)
    }

    #[test]
    fn amounts_are_read_as_spreadsheets_write_them() {
        for (text, decimal, want) in [
            ("1239", '.', Some("1239")),
            ("$1,239.00", '.', Some("1239.00")),
            ("1,239", '.', Some("1239")),
            ("-$1,239.50", '.', Some("-1239.50")),
            ("$-1,239.50", '.', Some("-1239.50")),
            ("1\u{a0}239.00 $", '.', Some("1239.00")),
            (".50", '.', Some("0.50")),
            ("$.50", '.', Some("0.50")),
            ("+5", '.', Some("5")),
            ("1'239'000.00", '.', Some("1239000.00")),
            ("1.239,00 €", ',', Some("1239.00")),
            ("1 239,00", ',', Some("1239.00")),
            ("1\u{202f}239,00\u{a0}€", ',', Some("1239.00")),
            ("1.239", ',', Some("1239")),
            ("AUD 1,239.00", '.', Some("1239.00")),
            ("1 239 EUR", '.', Some("1239")),
            ("A$ 5 aud", '.', Some("5")),
            ("AUD$5", '.', Some("5")),
            ("Rs.500", '.', Some("500")),
            ("kr. 1.239,00", ',', Some("1239.00")),
            ("50 zł", '.', Some("50")),
            ("R50", '.', Some("50")),
            ("1,23,456.00", '.', Some("123456.00")),
            ("₹12,34,56,789", '.', Some("123456789")),
            ("1,00,000", '.', Some("100000")),
            ("(50.00)", '.', Some("-50.00")),
            ("($50.00)", '.', Some("-50.00")),
            ("$(50.00)", '.', Some("-50.00")),
            ("50.00-", '.', Some("-50.00")),
            ("50.00 CR", '.', Some("-50.00")),
            ("50.00cr", '.', Some("-50.00")),
            ("−50", '.', Some("-50")),
            ("–50", '.', Some("-50")),
            ("—50", '.', Some("-50")),
            ("50 DR", '.', None),
            ("--5", '.', None),
            ("-5-", '.', None),
            ("(-5)", '.', None),
            ("1.239,00", '.', None),
            ("1239,5", '.', None),
            ("1,23,4567.00", '.', None),
            ("1,2345", '.', None),
            ("123,45,678", '.', None),
            ("1,239 000", '.', None),
            (",239", '.', None),
            ("0,500", '.', None),
            ("0,125", '.', None),
            ("-$0,500", '.', None),
            ("00,500", '.', None),
            ("01,500", '.', None),
            ("0,500,000", '.', None),
            ("0 500", '.', None),
            ("0'500.00", '.', None),
            ("0.500", ',', None),
            ("0.500,25", ',', None),
            ("0,500", ',', Some("0.500")),
            ("0.500", '.', Some("0.500")),
            ("10,500", '.', Some("10500")),
            ("12.50", ',', None),
            ("1.2.3", '.', None),
            ("12$50", '.', None),
            ("50¢", '.', None),
            ("₿1", '.', None),
            ("1 239 BGN", '.', None),
            ("1e3", '.', None),
            ("5.", '.', None),
            ("$", '.', None),
            ("-", '.', None),
            ("()", '.', None),
            ("CR", '.', None),
            ("", '.', None),
            ("٣", '.', None),
            ("5\u{200b}", '.', None),
        ] {
            assert_eq!(read(text, decimal).as_deref(), want, "{text:?} {decimal}");
        }
    }

    #[test]
    fn a_sign_that_is_of_another_currency_contradicts_the_row() {
        for (text, currency, agrees) in [
            ("€10.00", "EUR", true),
            ("€10.00", "AUD", false),
            ("10.00 €", "USD", false),
            ("$10.00", "AUD", true),
            ("$10.00", "EUR", false),
            ("$10.00", "JPY", false),
            ("A$10.00", "AUD", true),
            ("A$10.00", "USD", false),
            ("US$10.00", "AUD", false),
            ("$10.00 USD", "AUD", false),
            ("AUD 10.00", "AUD", true),
            ("AUD 10.00", "NZD", false),
            ("¥10", "CNY", true),
            ("¥10", "AUD", false),
            ("£50", "AUD", false),
            ("£50", "EGP", true),
            ("₹10", "AUD", false),
            ("R$10", "ZAR", false),
            ("10 kr", "SEK", true),
            ("10 kr", "EUR", false),
            ("10", "EUR", true),
        ] {
            let read = amount(text, '.').unwrap();
            let contradiction = read.contradiction(Currency::parse(currency).unwrap());
            assert_eq!(contradiction.is_none(), agrees, "{text} {currency} {contradiction:?}");
        }
        let euros = amount("€10.00", '.').unwrap().contradiction(Currency::AUD).unwrap();
        assert_eq!(
            euros,
            "must be in the currency of its row, AUD, and its cell has €, a sign of EUR; give each row its currency in a \
             column currency"
        );
        let code = amount("NZD 5", '.').unwrap().contradiction(Currency::AUD).unwrap();
        assert!(code.contains("its cell has NZD; give"), "{code}");
        let all = SIGNS.iter().flat_map(|(_, codes)| codes.iter());
        assert!(all.into_iter().all(|code| Currency::parse(code).is_ok()));
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
}
