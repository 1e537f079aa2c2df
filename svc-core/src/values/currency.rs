//! Currencies of ISO 4217 with their number of decimals.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::{FieldCode, Issue};

/// A currency of ISO 4217. It was active when it was written, and may have ended since.
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

/// Codes that left list one of ISO 4217: the code, its number of decimals, its successor, and the year of the change. A code
/// that leaves the active ones is moved here, as there may be records in it.
const ENDED: [(&str, u8, &str, u16); 42] = [
    ("ANG", 2, "XCG", 2025),
    ("ATS", 2, "EUR", 2002),
    ("AZM", 2, "AZN", 2006),
    ("BEF", 0, "EUR", 2002),
    ("BGN", 2, "EUR", 2026),
    ("BYR", 0, "BYN", 2016),
    ("CSD", 2, "RSD", 2006),
    ("CUC", 2, "CUP", 2021),
    ("CYP", 2, "EUR", 2008),
    ("DEM", 2, "EUR", 2002),
    ("EEK", 2, "EUR", 2011),
    ("ESP", 0, "EUR", 2002),
    ("FIM", 2, "EUR", 2002),
    ("FRF", 2, "EUR", 2002),
    ("GHC", 2, "GHS", 2007),
    ("GRD", 0, "EUR", 2002),
    ("HRK", 2, "EUR", 2023),
    ("IEP", 2, "EUR", 2002),
    ("ITL", 0, "EUR", 2002),
    ("LTL", 2, "EUR", 2015),
    ("LUF", 0, "EUR", 2002),
    ("LVL", 2, "EUR", 2014),
    ("MRO", 2, "MRU", 2018),
    ("MTL", 2, "EUR", 2008),
    ("MZM", 2, "MZN", 2006),
    ("NLG", 2, "EUR", 2002),
    ("PTE", 0, "EUR", 2002),
    ("ROL", 2, "RON", 2005),
    ("SDD", 2, "SDG", 2007),
    ("SIT", 2, "EUR", 2007),
    ("SKK", 2, "EUR", 2009),
    ("SLL", 2, "SLE", 2024),
    ("SRG", 2, "SRD", 2004),
    ("STD", 2, "STN", 2018),
    ("TMM", 2, "TMT", 2009),
    ("TRL", 0, "TRY", 2005),
    ("VEB", 2, "VEF", 2008),
    ("VEF", 2, "VES", 2018),
    ("ZMK", 2, "ZMW", 2013),
    ("ZWD", 2, "ZWL", 2009),
    ("ZWL", 2, "ZWG", 2024),
    ("ZWN", 2, "ZWR", 2008),
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
        Self::active(code).ok_or_else(|| Issue::new(FieldCode::InvalidEnum, unknown()))
    }

    /// Returns the currency of a stored record, whose code may have ended since it was written. `None` if ISO 4217 never had
    /// the code.
    ///
    /// ```
    /// use svc_core::values::Currency;
    /// assert_eq!(Currency::from_stored("HRK").map(Currency::code), Some("HRK"));
    /// assert_eq!(Currency::from_stored("XYZ"), None);
    /// ```
    pub fn from_stored(code: &str) -> Option<Self> {
        let ended = || ENDED.iter().find(|(ended, ..)| *ended == code);
        Self::active(code).or_else(|| ended().map(|&(code, scale, ..)| Self { code, scale }))
    }

    fn active(code: &str) -> Option<Self> {
        BY_SCALE.iter().find_map(|&(scale, codes)| {
            let code = codes.split_ascii_whitespace().find(|known| *known == code)?;
            Some(Self { code, scale })
        })
    }

    /// Returns the code that replaced one that has ended, and the year of the change.
    ///
    /// ```
    /// use svc_core::values::Currency;
    /// assert_eq!(Currency::successor("HRK"), Some(("EUR", 2023)));
    /// assert_eq!(Currency::successor("AUD"), None);
    /// ```
    pub fn successor(code: &str) -> Option<(&'static str, u16)> {
        ENDED.iter().find(|(ended, ..)| *ended == code).map(|(_, _, successor, year)| (*successor, *year))
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

text_value!(@parse [] Currency);
text_value!(@write [] Currency, code);

/// Reads the currency of a record that exists, as [`from_stored`](Currency::from_stored) does. Inputs are [parsed](Currency::parse).
impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_stored(&code).map_or_else(|| Self::parse(&code).map_err(D::Error::custom), Ok)
    }
}

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
        assert_eq!(codes.len() + ENDED.len(), 207, "a code that ends is moved to the others");
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
    fn a_stored_currency_is_read_whether_it_has_ended_or_not() {
        for (code, scale) in [("AUD", 2), ("KWD", 3), ("HRK", 2), ("ITL", 0)] {
            let stored = Currency::from_stored(code).unwrap();
            assert_eq!((stored.code(), stored.scale()), (code, scale));
        }
        let ended = ENDED.iter().all(|&(code, scale, ..)| {
            Currency::from_stored(code) == Some(Currency { code, scale }) && Currency::parse(code).is_err()
        });
        assert!(ended);
        assert_eq!(["XYZ", "hrk", ""].map(Currency::from_stored), [None; 3]);
        let read = |json| serde_json::from_str::<Currency>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#""HRK""#), Ok(Currency::from_stored("HRK").unwrap()));
        assert_eq!(read(r#""XYZ""#), Err("must be an active currency of ISO 4217 such as AUD".to_owned()));
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
