//! Imports: records that were created elsewhere, row by row (`docs/contract.md`, "Back office").
//!
//! [`Import::put`] is one function over a transaction, so any number of rows can share one. It refuses a row before it
//! has written anything of it, so the transaction can go on with the next row.
//!
//! # Repeated imports
//!
//! Putting the same rows again adds nothing, so an import that was interrupted is simply run again. A row is recognised
//! by
//!
//! 1. its `id`, if it has one: a UUIDv7, as exports have it. The record is created under this id, and the time in the
//!    id is its `created_at`, since lists are ordered by either;
//! 2. else by what is unique: the email address of a contact (unless the tenant allows several contacts with one), the
//!    number of an invoice;
//! 3. else by an id that is derived from the tenant, the content of the row, and how many rows of the file had the same
//!    content before it. Its time is the row's `created_at`, moved back a little if another record has that time, or a
//!    time in the day before the tenant was created.
//!
//! A row that is recognised and agrees with the record, in the fields that the row has, is [`Imported::Unchanged`].
//!
//! # Restoring an account
//!
//! [`restore`] puts a record back as an export wrote it, with all its times, deleted contacts included. So all records of
//! an account move to another database, where lists, incremental sync and numbers go on as before.

mod batch;
mod contacts;
mod identity;
mod import;
mod invoices;
mod restore;
mod texts;

pub use self::batch::{Batch, Duplicates, ImportRecord, ImportRow, MAX_ROWS};
pub use self::contacts::ContactImport;
pub use self::import::{Import, ImportOptions, Imported};
pub use self::invoices::InvoiceImport;
pub use self::restore::restore;
