//! Imports of files that people and other programs wrote: CSV and NDJSON of any size, in constant memory.
//!
//! 1. A [`Plan`] says which columns are which fields and how cells are written: by a [preset](presets), by mappings, or by the
//!    names of the columns alone. [`Plan::check`] checks it against the type of the records.
//! 2. [`Source::new`] detects the format of a file and checks it to its end.
//! 3. [`CheckedPlan::read`] returns its [`Rows`] in groups. Each row is a record that can be imported, or the problem with it.
//! 4. [`import_group`] imports a group in one transaction through a [`Service`], and [`Counts`] counts what came of the rows.
//!
//! svc-core decides which existing record a row matches, so that an import can be interrupted and run again. Nothing here prints,
//! and no text names an option of a command: errors are data, which programs word for their users.
//!
//! # Examples
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io::Cursor;
//!
//! use svc_core::platform::ImportKind;
//! use svc_core::values::{Currency, TimeZone};
//! use svc_import::{AccountFacts, Plan, Source};
//!
//! let account = AccountFacts { zone: TimeZone::UTC, currency: Currency::parse("AUD")?, unique_email: true };
//! let plan = Plan { ignore_unknown: true, ..Plan::default() }.check(ImportKind::Contacts, account)?;
//! let file = Cursor::new("First Name;Email;Notes\nAda;ada@example.com;\nBob;bob at example.com;\n");
//! for group in plan.read(Source::new(file, None, 0)?)? {
//!     for row in group?.rows {
//!         match row.parsed {
//!             Ok(_) => println!("line {} can be imported", row.line),
//!             Err(problem) => println!("line {}: {}", row.line, problem.error),
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod amounts;
mod cells;
mod check;
mod checked_plan;
mod columns;
mod csv;
mod date_format;
mod dates;
mod error;
mod groups;
mod hints;
mod ndjson;
mod plan;
mod presets;
mod problems;
mod rows;
mod source;

pub use self::check::FileFault;
pub use self::checked_plan::CheckedPlan;
pub use self::columns::{HeaderColumn, REASON_COLUMN};
pub use self::csv::Fault;
pub use self::date_format::DateFormat;
pub use self::error::{ImportError, PlanPart};
pub use self::groups::{Counts, GroupResult, RowResult, Service, ServiceError, import_group};
pub use self::hints::{Hint, statuses};
pub use self::plan::{AccountFacts, ColumnMapping, HintWords, Plan, UnusedMapping, ValueMapping};
pub use self::presets::{InvoiceRows, Preset, PresetField, presets};
pub use self::problems::of_rules;
pub use self::rows::{Group, Row, Rows, cells_of};
pub use self::source::{Format, Source};
