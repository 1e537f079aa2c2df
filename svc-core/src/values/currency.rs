//! Currencies of ISO 4217 with their number of decimals.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::error::{FieldCode, Issue};

/// An active currency of ISO 4217.
///
/// ```
/// use svc_core::values::Currency;
/// assert_eq!(Currency::parse("JPY").unwrap().scale(), 0);
/// assert!(Currency::parse("DEM").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Currency {
    code: &'static str,
    scale: u8,
}

/// The active currencies (list one of ISO 4217, January 2026), grouped by their number of decimals. Codes without a minor
/// unit (precious metals, test codes, units of account) are left out, as nobody can pay an invoice in them.
const BY_SCALE: [(u8, &str); 4] = [
    (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    (
        2,
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF \
         CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD \
         GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL \
         MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR \
         PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP \
         TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG",
    ),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
    (4, "CLF UYW"),
];

/// Codes that left list one of ISO 4217: the code, that of its successor, and the year of the change.
const ENDED: [(&str, &str, u16); 42] = [
    ("ANG", "XCG", 2025),
    ("ATS", "EUR", 2002),
    ("AZM", "AZN", 2006),
    ("BEF", "EUR", 2002),
    ("BGN", "EUR", 2026),
    ("BYR", "BYN", 2016),
    ("CSD", "RSD", 2006),
    ("CUC", "CUP", 2021),
    ("CYP", "EUR", 2008),
    ("DEM", "EUR", 2002),
    ("EEK", "EUR", 2011),
    ("ESP", "EUR", 2002),
    ("FIM", "EUR", 2002),
    ("FRF", "EUR", 2002),
    ("GHC", "GHS", 2007),
    ("GRD", "EUR", 2002),
    ("HRK", "EUR", 2023),
    ("IEP", "EUR", 2002),
    ("ITL", "EUR", 2002),
    ("LTL", "EUR", 2015),
    ("LUF", "EUR", 2002),
    ("LVL", "EUR", 2014),
    ("MRO", "MRU", 2018),
    ("MTL", "EUR", 2008),
    ("MZM", "MZN", 2006),
    ("NLG", "EUR", 2002),
    ("PTE", "EUR", 2002),
    ("ROL", "RON", 2005),
    ("SDD", "SDG", 2007),
    ("SIT", "EUR", 2007),
    ("SKK", "EUR", 2009),
    ("SLL", "SLE", 2024),
    ("SRG", "SRD", 2004),
    ("STD", "STN", 2018),
    ("TMM", "TMT", 2009),
    ("TRL", "TRY", 2005),
    ("VEB", "VEF", 2008),
    ("VEF", "VES", 2018),
    ("ZMK", "ZMW", 2013),
    ("ZWD", "ZWL", 2009),
    ("ZWL", "ZWG", 2024),
    ("ZWN", "ZWR", 2008),
];

impl Currency {
    /// The Australian dollar, the default currency of a tenant.
    pub const AUD: Self = Self { code: "AUD", scale: 2 };

    /// Returns the currency with this upper-case code.
    ///
    /// # Errors
    /// `invalid_format` unless the code is three upper-case letters, and `invalid_enum` if ISO 4217 has no such active
    /// currency. Of a code that has ended, the message names the successor.
    pub fn parse(code: &str) -> Result<Self, Issue> {
        if code.len() != 3 || !code.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(Issue::new(FieldCode::InvalidFormat, "must be three upper-case letters such as AUD"));
        }
        let unknown = || {
            match Self::successor(code) {
            Some((successor, year)) => format!(
                "must be an active currency of ISO 4217, and {code} was replaced by {successor} in {year}; amounts in it have to be converted"
            )
            .into(),
            None => Cow::Borrowed("must be an active currency of ISO 4217 such as AUD"),
        }
        };
        BY_SCALE
            .iter()
            .find_map(|(scale, codes)| {
                let at = codes.split_ascii_whitespace().find(|known| *known == code)?;
                Some(Self { code: at, scale: *scale })
            })
            .ok_or_else(|| Issue::new(FieldCode::InvalidEnum, unknown()))
    }

    /// Returns the code that replaced one that has ended, and the year of the change.
    ///
    /// ```
    /// use svc_core::values::Currency;
    /// assert_eq!(Currency::successor("HRK"), Some(("EUR", 2023)));
    /// assert_eq!(Currency::successor("AUD"), None);
    /// ```
    pub fn successor(code: &str) -> Option<(&'static str, u16)> {
        ENDED.iter().find(|(ended, ..)| *ended == code).map(|(_, successor, year)| (*successor, *year))
    }

    /// Returns the three letters of the code.
    pub fn code(self) -> &'static str {
        self.code
    }

    /// Returns the number of decimals: 2 for AUD, 0 for JPY, 3 for KWD.
    pub fn scale(self) -> u8 {
        self.scale
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

text_value!([] Currency, code);

impl JsonSchema for Currency {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Currency".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$", "minLength": 3, "maxLength": 3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_currency_is_listed_once() {
        let mut codes: Vec<&str> = BY_SCALE.iter().flat_map(|(_, codes)| codes.split_ascii_whitespace()).collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count, "a code is listed twice");
        assert!(codes.iter().all(|code| Currency::parse(code).is_ok()));
    }

    #[test]
    fn currencies_have_their_decimals_and_other_codes_are_refused() {
        for (code, scale) in [("AUD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(Currency::parse(code).unwrap().scale(), scale);
        }
        for (code, error) in [
            ("aud", FieldCode::InvalidFormat),
            ("AU", FieldCode::InvalidFormat),
            ("ÄUD", FieldCode::InvalidFormat),
            ("XXX", FieldCode::InvalidEnum),
            ("DEM", FieldCode::InvalidEnum),
        ] {
            assert_eq!(Currency::parse(code).unwrap_err().code, error, "{code}");
        }
    }

    #[test]
    fn a_currency_that_has_ended_names_its_successor() {
        assert!(ENDED.is_sorted() && ENDED.iter().all(|(code, ..)| Currency::parse(code).is_err()));
        assert_eq!(
            Currency::parse("BGN").unwrap_err().message,
            "must be an active currency of ISO 4217, and BGN was replaced by EUR in 2026; amounts in it have to be converted"
        );
    }
}
