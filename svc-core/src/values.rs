//! The values that records consist of: email addresses, texts, amounts, timestamps, URLs, event kinds.
//!
//! A value can only be made by its parser, so one that exists is valid. Each file has one of them with its parser, its
//! JSON schema and its tests. The rules are those of `docs/contract.md`, "Text fields", "Money" and "Timestamps and
//! ordering".

/// Implements for a type what follows from its parser and its text: `FromStr`, `Serialize`, `Deserialize` and `FromJson`, and
/// `Display` if a method returns the text.
macro_rules! text_value {
    ([$($generics:tt)*] $type:ty, $text:ident) => {
        text_value!(@read [$($generics)*] $type);
        text_value!(@write [$($generics)*] $type, $text);
    };
    (@write [$($generics:tt)*] $type:ty, $text:ident) => {
        impl<$($generics)*> std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$text())
            }
        }

        impl<$($generics)*> serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.$text())
            }
        }
    };
    ([$($generics:tt)*] $type:ty) => {
        text_value!(@read [$($generics)*] $type);

        impl<$($generics)*> serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    (@read [$($generics:tt)*] $type:ty) => {
        text_value!(@parse [$($generics)*] $type);

        impl<'de, $($generics)*> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::input::schema::deserialize_text(deserializer)
            }
        }
    };
    (@parse [$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> std::str::FromStr for $type {
            type Err = $crate::error::Issue;

            /// Reads the text as [`parse`](Self::parse) does.
            fn from_str(text: &str) -> Result<Self, $crate::error::Issue> {
                Self::parse(text)
            }
        }

        impl<$($generics)*> $crate::input::FromJson for $type {
            fn from_json(json: $crate::input::json::Json) -> Result<Self, $crate::error::Issue> {
                Self::parse(&json.into_string()?)
            }
        }
    };
}

mod any_object;
mod currency;
mod email;
mod event_kinds;
pub mod formulas;
mod grouped;
mod id;
mod money;
mod patch;
mod record_kind;
mod redirect_uri;
mod secret;
mod stream_url;
mod text;
mod time;
mod webhook_url;

pub use svc_derive::TextEnum;

pub use self::any_object::AnyObject;
pub use self::currency::Currency;
pub use self::email::Email;
pub use self::event_kinds::{EventKind, EventKindError, EventKinds, EventSet, KindName, kinds_of};
pub use self::grouped::grouped;
pub use self::id::{Id, TenantId, parse_uuid};
pub use self::money::{Amount, Decimal, JOB_SCALE, MAX_AMOUNT, MoneyError};
pub use self::patch::Patch;
pub use self::record_kind::RecordKind;
pub use self::redirect_uri::RedirectUri;
pub use self::secret::{Secret, Stored};
pub use self::stream_url::{StreamBroker, StreamUrl};
pub use self::text::{Note, Text, invisible_in, is_one_line};
pub use self::time::{Date, DateOrTime, TimeZone, Timestamp};
pub use self::webhook_url::{HostPolicy, WebhookUrl};
