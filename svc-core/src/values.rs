//! The values that records consist of: email addresses, texts, amounts, timestamps, URLs, event kinds.
//!
//! A value can only be made by its parser, so one that exists is valid. Each file has one of them with its parser, its
//! JSON schema and its tests. The rules are those of `docs/contract.md`, "Text fields", "Money" and "Timestamps and
//! ordering".

mod currency;
mod email;
mod event_kinds;
mod grouped;
mod id;
mod money;
mod patch;
mod secret;
mod text;
mod time;
mod webhook_url;

pub use svc_derive::TextEnum;

pub use self::currency::Currency;
pub use self::email::Email;
pub use self::event_kinds::{EventKind, EventKindError, EventKinds, EventSet, KindName};
pub use self::grouped::grouped;
pub use self::id::{Id, TenantId, parse_uuid};
pub use self::money::{Amount, Decimal, JOB_SCALE, MAX_AMOUNT, MoneyError};
pub use self::patch::Patch;
pub use self::secret::Secret;
pub use self::text::{Note, Text};
pub use self::time::{Date, DateOrTime, TimeZone, Timestamp};
pub use self::webhook_url::{HostPolicy, WebhookUrl};
