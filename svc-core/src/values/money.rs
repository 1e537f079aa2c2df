//! Exact amounts of money (`docs/contract.md`, "Money").
//!
//! An amount is never a binary float: what was sent comes back. It never has more decimals than its currency.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::{Currency, grouped};

/// The largest amount that is accepted, in whole units of the currency.
pub const MAX_AMOUNT: i64 = 1_000_000_000_000;

/// The number of decimals of the amounts of a job, which has no currency.
pub const JOB_SCALE: u8 = 2;

/// The greatest distance from an amount that is taken for noise of floating-point arithmetic: one part in this many.
const NOISE: i128 = 1_000_000_000;

/// The most decimals that a currency has.
const MAX_SCALE: u8 = 4;

/// How many digits of a number are kept. The others are far below [`NOISE`], and products stay within `i128`.
const MAX_DIGITS: usize = 28;

/// A number from 0 to 10^12, exactly as its digits were written. [`to_amount`](Self::to_amount) converts it to an amount of
/// a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    /// The value is `digits × 10^exponent`.
    exponent: i32,
}

/// The error of a [`Decimal`] that has more decimals than the currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyError {
    scale: u8,
}

impl From<MoneyError> for Issue {
    fn from(error: MoneyError) -> Self {
        Self::new(FieldCode::OutOfRange, format!("must have at most {} decimals", error.scale))
    }
}

fn out_of_range() -> Issue {
    Issue::new(FieldCode::OutOfRange, format!("must be a number from 0 to {MAX_AMOUNT}"))
}

/// Returns 10^`power`, or `None` if it exceeds `i128`.
fn ten_to(power: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(power).ok()?)
}

impl Decimal {
    /// Reads a JSON number, which may have an exponent.
    ///
    /// # Errors
    /// `invalid_type` if the text is no number, and `out_of_range` outside 0 to 10^12.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let parsed =
            Self::read(unsigned).ok_or_else(|| Issue::new(FieldCode::InvalidType, "must be a number such as 99.95"))?;
        if (negative && parsed.digits != 0) || parsed.exceeds_maximum() {
            return Err(out_of_range());
        }
        Ok(parsed)
    }

    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let mut exponent = exponent - i64::try_from(fraction.len()).ok()?;
        let joined = format!("{whole}{fraction}");
        let significant = joined.trim_start_matches('0');
        let kept = &significant[..significant.len().min(MAX_DIGITS)];
        exponent += i64::try_from(significant.len() - kept.len()).ok()?;
        // Without trailing zeros, numbers are equal if their digits and exponents are.
        let shortest = kept.trim_end_matches('0');
        exponent += i64::try_from(kept.len() - shortest.len()).ok()?;
        let digits = if shortest.is_empty() { 0 } else { shortest.parse().ok()? };
        let exponent = if digits == 0 { 0 } else { exponent };
        Some(Self { digits, exponent: i32::try_from(exponent.clamp(-1_000_000, 1_000_000)).ok()? })
    }

    fn exceeds_maximum(self) -> bool {
        let max = i128::from(MAX_AMOUNT);
        if self.exponent >= 0 {
            let value = ten_to(self.exponent).and_then(|p| self.digits.checked_mul(p));
            self.digits != 0 && value.is_none_or(|value| value > max)
        } else {
            // A bound too large to compute exceeds 28 digits, so the number is below it.
            let bound = ten_to(-self.exponent).and_then(|p| max.checked_mul(p));
            bound.is_some_and(|bound| self.digits > bound)
        }
    }

    /// Returns the amount with `scale` decimals. Noise of floating-point arithmetic, up to 10^-9 of the value, is rounded
    /// away.
    ///
    /// # Errors
    /// [`MoneyError`] if the number has more decimals than that.
    ///
    /// ```
    /// use svc_core::values::Decimal;
    /// let sum = Decimal::parse("0.30000000000000004").unwrap();
    /// assert_eq!(sum.to_amount(2).unwrap().to_string(), "0.3");
    /// assert!(Decimal::parse("0.305").unwrap().to_amount(2).is_err());
    /// ```
    pub fn to_amount(self, scale: u8) -> Result<Amount, MoneyError> {
        let error = MoneyError { scale };
        let shift = self.exponent + i32::from(scale);
        let minor = if shift >= 0 {
            ten_to(shift).and_then(|p| self.digits.checked_mul(p))
        } else {
            match ten_to(-shift) {
                Some(divisor) => {
                    let rounded = (self.digits + divisor / 2) / divisor;
                    let noise = (self.digits - rounded * divisor).abs();
                    (noise * NOISE <= self.digits).then_some(rounded)
                }
                None => (self.digits == 0).then_some(0),
            }
        };
        let minor = minor.and_then(|minor| i64::try_from(minor).ok()).ok_or(error)?;
        Ok(Amount { minor, scale })
    }
}

/// Reads an exponent and clamps it to ±10^6, which is beyond every amount.
fn read_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000))
}

impl From<u32> for Decimal {
    fn from(number: u32) -> Self {
        Self { digits: number.into(), exponent: 0 }
    }
}

impl std::str::FromStr for Decimal {
    type Err = Issue;

    /// Reads the text as [`parse`](Self::parse) does.
    fn from_str(text: &str) -> Result<Self, Issue> {
        Self::parse(text)
    }
}

impl FromJson for Decimal {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::parse(&json.into_number()?)
    }
}

impl fmt::Display for Decimal {
    /// Writes all digits, and an exponent only if the number is very small: `99.95`, `100`, `0.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, exponent) = (self.digits.to_string(), self.exponent);
        match usize::try_from(exponent.unsigned_abs()) {
            Ok(zeros) if exponent >= 0 => write!(f, "{digits}{:0<zeros$}", ""),
            Ok(decimals) if decimals <= MAX_DIGITS => {
                let digits = format!("{digits:0>width$}", width = decimals + 1);
                let (whole, fraction) = digits.split_at(digits.len() - decimals);
                write!(f, "{whole}.{fraction}")
            }
            _ => write!(f, "{digits}e{exponent}"),
        }
    }
}

impl Serialize for Decimal {
    /// Writes a JSON number with exactly these digits, which a float does not always have.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl JsonSchema for Decimal {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": MAX_AMOUNT })
    }
}

/// An exact amount of money: a whole number of minor units, and how many decimals they have.
///
/// Amounts are equal if their values are: 99.5 with one decimal equals 99.50 with two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amount {
    minor: i64,
    scale: u8,
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        let scale = self.scale.max(other.scale);
        let at = |amount: &Self| ten_to((scale - amount.scale).into()).map(|unit| i128::from(amount.minor) * unit);
        at(self) == at(other)
    }
}

impl Eq for Amount {}

impl Amount {
    /// Returns the amount of `minor` minor units (cents for AUD) with `scale` decimals.
    pub fn from_minor(minor: i64, scale: u8) -> Self {
        Self { minor, scale }
    }

    /// Returns the amount in minor units: 9995 for AUD 99.95.
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// Returns the number of decimals.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// Returns the same amount with `scale` decimals, for one that was read without its currency.
    ///
    /// # Errors
    /// [`MoneyError`] if the amount has more decimals than that.
    pub fn with_scale(self, scale: u8) -> Result<Self, MoneyError> {
        Decimal { digits: self.minor.into(), exponent: -i32::from(self.scale) }.to_amount(scale)
    }
}

impl Amount {
    /// Returns the amount for people, with its currency and as many decimals as that has, also if it was read from JSON.
    ///
    /// ```
    /// use svc_core::values::{Amount, Currency};
    /// assert_eq!(Amount::from_minor(986_050, 2).in_currency(Currency::AUD), "AUD 9,860.50");
    /// assert_eq!(serde_json::from_str::<Amount>("9860.5")?.in_currency(Currency::AUD), "AUD 9,860.50");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn in_currency(self, currency: Currency) -> String {
        format!("{currency} {}", self.with_scale(currency.scale()).unwrap_or(self).grouped())
    }

    /// Returns the amount for people with all of its decimals, such as `9,860.50`: that of a job, which has no currency.
    pub fn grouped(self) -> String {
        let unit = 10_u64.pow(u32::from(self.scale.min(18)));
        let (sign, minor) = (if self.minor < 0 { "-" } else { "" }, self.minor.unsigned_abs());
        let (whole, width) = (grouped(minor / unit), usize::from(self.scale));
        if width == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{:0width$}", minor % unit) }
    }
}

/// Reads a number with as many decimals as any currency has. [`Amount::with_scale`] gives it those of its own.
impl FromJson for Amount {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Ok(Decimal::from_json(json)?.to_amount(MAX_SCALE)?)
    }
}

/// Reads a number as [`FromJson`] does. It passes through a float, so it is exact up to 15 digits.
impl<'de> serde::Deserialize<'de> for Amount {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?.to_string();
        let amount = Decimal::parse(&number).and_then(|number| Ok(number.to_amount(MAX_SCALE)?));
        amount.map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Amount {
    /// Writes the amount without an exponent and without trailing zeros: `99.95`, `100`, `0.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_i64.pow(u32::from(self.scale.min(18)));
        let (whole, rest) = (self.minor / unit, (self.minor % unit).abs());
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{rest:0width$}", width = usize::from(self.scale));
        let sign = if self.minor < 0 && whole == 0 { "-" } else { "" };
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for Amount {
    /// Writes a JSON number with exactly these digits, which a float does not always have.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl JsonSchema for Amount {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str, scale: u8) -> Result<String, FieldCode> {
        let decimal = Decimal::parse(text).map_err(|issue| issue.code)?;
        decimal.to_amount(scale).map(|amount| amount.to_string()).map_err(|error| Issue::from(error).code)
    }

    #[test]
    fn a_number_is_written_as_the_number_that_was_read() {
        for (text, want) in [
            ("99.95", "99.95"),
            ("100.00", "100"),
            ("0.0", "0"),
            ("0.050", "0.05"),
            ("12e2", "1200"),
            ("1000000000000", "1000000000000"),
            ("12e-3", "0.012"),
            ("1e-40", "1e-40"),
            ("0.30000000000000004", "0.30000000000000004"),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!(number.to_string(), want);
            assert_eq!(serde_json::to_string(&number).unwrap(), want);
            assert_eq!(Decimal::parse(want), Ok(number));
        }
    }

    #[test]
    fn an_amount_is_written_as_it_was_sent() {
        for (text, scale, want) in [
            ("99.95", 2, "99.95"),
            ("100.00", 2, "100"),
            ("0", 2, "0"),
            ("-0.0", 2, "0"),
            ("0e999999999999", 2, "0"),
            ("1e2", 2, "100"),
            ("12E-1", 2, "1.2"),
            ("0.05", 2, "0.05"),
            ("1000000000000", 2, "1000000000000"),
            ("999999999999.9999", 4, "999999999999.9999"),
            ("1.234", 3, "1.234"),
            ("7", 0, "7"),
        ] {
            assert_eq!(amount(text, scale), Ok(want.into()), "{text}");
        }
    }

    #[test]
    fn people_read_all_decimals_and_the_currency() {
        for (minor, code, shown) in [
            (1_568_000, "AUD", "AUD 15,680.00"),
            (14_950, "AUD", "AUD 149.50"),
            (5, "AUD", "AUD 0.05"),
            (-5, "AUD", "AUD -0.05"),
            (1_200, "JPY", "JPY 1,200"),
            (125, "KWD", "KWD 0.125"),
            (0, "AUD", "AUD 0.00"),
        ] {
            let currency = Currency::parse(code).unwrap();
            assert_eq!(Amount::from_minor(minor, currency.scale()).in_currency(currency), shown);
        }
    }

    #[test]
    fn only_noise_of_floating_point_arithmetic_is_rounded_away() {
        assert_eq!(amount("0.30000000000000004", 2), Ok("0.3".into()));
        assert_eq!(amount("59.96999999999999", 2), Ok("59.97".into()));
        assert_eq!(amount("99.999", 2), Err(FieldCode::OutOfRange));
        assert_eq!(amount("0.001", 2), Err(FieldCode::OutOfRange));
        assert_eq!(amount("1e-999999999", 2), Err(FieldCode::OutOfRange));
        assert_eq!(amount("1.5", 0), Err(FieldCode::OutOfRange));
    }

    #[test]
    fn amounts_outside_the_range_are_refused() {
        for bad in ["-1", "-0.01", "1000000000000.01", "1e13", "1e400", "1e99999999999999999999"] {
            assert_eq!(amount(bad, 2), Err(FieldCode::OutOfRange), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_amount_survives_a_round_trip(minor in 0..=MAX_AMOUNT, scale in 0_u8..=4) {
            let sent = Amount::from_minor(minor, scale);
            let back = Decimal::parse(&sent.to_string()).unwrap().to_amount(scale).unwrap();
            proptest::prop_assert_eq!(back, sent);
        }

        #[test]
        fn floats_of_amounts_are_accepted(cents in 0..=100_000_000_000_i64) {
            let float = format!("{}", cents as f64 / 100.0 * 3.0 / 3.0);
            let back = Decimal::parse(&float).unwrap().to_amount(2).unwrap();
            proptest::prop_assert_eq!(back.minor(), cents);
        }

        #[test]
        fn no_text_panics(text in "[-+0-9eE.]{0,60}") {
            if let Ok(decimal) = Decimal::parse(&text) {
                let _ = decimal.to_amount(2);
            }
        }
    }
}
