//! The sums that are yet to be paid.

use super::{Invoice, InvoiceStatus};
use crate::error::Error;
use crate::resources::contacts::ContactId;
use crate::store::{RecordsOfContact, Tx};
use crate::values::{Amount, Currency, TenantId, Timestamp};

/// The number of invoices of a contact that are summed up: its newest ones.
pub const MAX_SUMMED: u32 = 1_000;

/// The sums that a contact has yet to pay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// The sums, by currency. Currencies in which nothing is left to pay are not among them.
    pub sums: Vec<(Currency, Amount)>,
    /// Whether the contact has more invoices than [`MAX_SUMMED`], of which the older ones are left out.
    pub is_cut: bool,
}

impl Invoice {
    /// Returns what is left to pay: nothing of a draft, which was not sent yet, and of a cancelled invoice.
    pub fn outstanding(&self) -> Amount {
        use InvoiceStatus::{Cancelled, Draft, Overdue, Paid, Partial, Sent, Viewed};
        let minor = match self.status {
            Sent | Viewed | Partial | Overdue => self.total.minor() - self.amount_paid.minor(),
            Draft | Paid | Cancelled => 0,
        };
        Amount::from_minor(minor, self.currency.scale())
    }
}

/// Returns what a contact has yet to pay, of its newest [`MAX_SUMMED`] invoices.
///
/// # Errors
/// [`Error::Store`].
pub async fn outstanding_of(tx: &mut dyn Tx, tenant: TenantId, contact: ContactId) -> Result<Outstanding, Error> {
    let invoices: &mut dyn RecordsOfContact<Invoice> = tx;
    let mut invoices = invoices.records_of_contact(tenant, contact, Timestamp::MAX, MAX_SUMMED + 1).await?;
    let is_cut = invoices.len() > MAX_SUMMED as usize;
    invoices.truncate(MAX_SUMMED as usize);
    let mut sums: Vec<(Currency, Amount)> = Vec::new();
    for invoice in &invoices {
        let left = invoice.outstanding();
        match sums.iter_mut().find(|(currency, _)| *currency == invoice.currency) {
            _ if left.minor() == 0 => {}
            Some((_, sum)) => *sum = Amount::from_minor(sum.minor().saturating_add(left.minor()), left.scale()),
            None => sums.push((invoice.currency, left)),
        }
    }
    Ok(Outstanding { sums, is_cut })
}
