//! A plan, checked against the type of the records.

use svc_core::imports::Import;
use svc_core::input::FieldNames as _;
use svc_core::platform::ImportKind;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::kinds::AccountRecord;

use crate::cells::CellReader;
use crate::columns::ColumnNames;
use crate::error::ImportError;
use crate::plan::{AccountFacts, Plan};
use crate::presets::InvoiceRows;

/// A plan that applies to a type of records.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    pub(crate) kind: ImportKind,
    pub(crate) names: ColumnNames,
    pub(crate) reader: CellReader,
    pub(crate) strict: bool,
    pub(crate) keep_empty: bool,
    pub(crate) invoice_rows: InvoiceRows,
    pub(crate) unique_email: bool,
}

impl Plan {
    /// Checks that the plan applies to this type of records.
    ///
    /// # Errors
    /// A mapping names something that is no field, status or currency, or the same as another one, or a part of the plan does not
    /// apply to these records.
    pub fn check(self, kind: ImportKind, account: AccountFacts) -> Result<CheckedPlan, ImportError> {
        match kind {
            ImportKind::Contacts => self.check_for::<Contact>(kind, account),
            ImportKind::Invoices => self.check_for::<Invoice>(kind, account),
            ImportKind::All => self.check_for::<AccountRecord>(kind, account),
        }
    }

    fn check_for<R: Import>(self, kind: ImportKind, account: AccountFacts) -> Result<CheckedPlan, ImportError> {
        let fields = self.preset.map(|preset| preset.fields(kind));
        let names = ColumnNames::new(&self.mapping, fields, self.ignore_unknown, R::Row::FIELD_NAMES)?;
        let reader = CellReader::new(&self, R::Row::FIELD_NAMES, R::NUMBERS, account.zone, account.currency)?;
        let Self { preset, strict, keep_empty, .. } = self;
        let invoice_rows = preset.map_or(InvoiceRows::Whole, |preset| preset.invoice_rows);
        Ok(CheckedPlan { kind, names, reader, strict, keep_empty, invoice_rows, unique_email: account.unique_email })
    }
}
