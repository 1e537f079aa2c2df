//! The values that records are made of. Each file holds one of them with its parser, its JSON schema
//! and its tests, so that a rule such as "a name has at most 300 characters" stands in one place.

mod currency;
mod email;
mod event_kinds;
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
pub use self::event_kinds::{EventKind, EventSet};
pub use self::id::{TenantId, parse_uuid};
pub use self::money::{Amount, Decimal, JOB_SCALE, MAX_AMOUNT, MoneyError};
pub use self::patch::Patch;
pub use self::secret::Secret;
pub use self::text::{Note, Text};
pub use self::time::{Date, DateOrTime, TimeZone, Timestamp};
pub use self::webhook_url::{HostPolicy, WebhookUrl};
