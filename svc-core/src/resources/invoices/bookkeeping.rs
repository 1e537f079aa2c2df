//! The payments of an account for its books: each with the number of its invoice, refunds included.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Invoice, InvoiceId, PaymentId};
use crate::env::{first_id_at, time_of_id};
use crate::error::Error;
use crate::input::Record;
use crate::resources::contacts::ContactId;
use crate::store::{Repository, Tx};
use crate::values::{Amount, Currency, TenantId, Text, Timestamp};

/// The highest number of payments of one invoice that are read.
const MAX_OF_INVOICE: u32 = 1_000;

/// A payment of an invoice or a refund, with what the books need to know of the invoice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[non_exhaustive]
pub struct BookedPayment {
    /// The unique identifier of the payment.
    pub id: PaymentId,
    /// The invoice that was paid, in full or in part.
    pub invoice_id: InvoiceId,
    /// The number of the invoice, such as `INV-0001`.
    pub invoice_number: String,
    /// The contact of the invoice. Null if it has none.
    pub contact_id: Option<ContactId>,
    /// Whether it is a refund: money that went back.
    pub is_refund: bool,
    /// The amount in `currency`, an exact decimal number, also of a refund not negative.
    pub amount: Amount,
    /// The currency of the invoice: a three-letter code of ISO 4217 in upper case.
    pub currency: Currency,
    /// When the payment or the refund was recorded.
    pub paid_at: Timestamp,
    /// The method of the payment, in the account's own words. Null if it was not recorded.
    pub method: Option<Text<100>>,
    /// The reference of the payment, such as on a bank statement. Null if it was not recorded.
    pub reference: Option<Text<255>>,
}

/// Returns the newest payments and refunds in a range of times, of one invoice or of all, newest first and at most `limit`, with
/// the time before which the next page begins, if there may be more.
///
/// # Errors
/// [`Error::Store`].
pub async fn payments(
    tx: &mut dyn Tx,
    tenant: TenantId,
    invoice: Option<InvoiceId>,
    times: Range<Timestamp>,
    limit: u32,
) -> Result<(Vec<BookedPayment>, Option<Timestamp>), Error> {
    let ids = PaymentId::new(first_id_at(times.start))..PaymentId::new(first_id_at(times.end));
    let mut found = match invoice {
        Some(invoice) => {
            let mut of_invoice = tx.payments(tenant, invoice, MAX_OF_INVOICE).await?;
            of_invoice.retain(|payment| ids.contains(&payment.id));
            of_invoice
        }
        None => tx.payments_in(tenant, ids, limit.saturating_add(1)).await?,
    };
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| has_more).map(|last| time_of_id(last.id.uuid()));
    let mut invoices: Vec<InvoiceId> = found.iter().map(|payment| payment.invoice_id).collect();
    invoices.sort_unstable();
    invoices.dedup();
    let invoices = Repository::<Invoice>::get_many(tx, tenant, &invoices).await?;
    let invoices: BTreeMap<InvoiceId, &Invoice> = invoices.iter().map(|invoice| (invoice.id, invoice)).collect();
    let booked = found.into_iter().map(|payment| {
        let invoice = invoices.get(&payment.invoice_id);
        BookedPayment {
            id: payment.id,
            invoice_id: payment.invoice_id,
            invoice_number: invoice.map(|invoice| invoice.invoice_number.clone()).unwrap_or_default(),
            contact_id: invoice.and_then(|invoice| invoice.contact_id),
            is_refund: payment.is_refund,
            amount: payment.amount,
            currency: payment.currency,
            paid_at: payment.paid_at,
            method: payment.method,
            reference: payment.reference,
        }
    });
    Ok((booked.collect(), next))
}
