//! Refunds, and updates of the fields of an invoice.

use super::{
    Invoice, InvoiceStatus, InvoiceStep, InvoiceUpdate, Payment, PaymentCreate, RefundedInvoice, amount_in,
    store_change,
};
use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::tenants;
use crate::error::{Error, FieldCode, Issue};
use crate::input::Apply as _;
use crate::resources::contacts;
use crate::resources::crud;
use crate::resources::invoices::InvoiceId;
use crate::store::Tx;
use crate::values::EventKind;
use crate::values::{Amount, Decimal, Patch, TenantId, Timestamp};
use crate::webhooks::events;

/// Records a refund of an amount, or of all that was paid. Fires `invoice.refunded` with a [`RefundedInvoice`], then
/// `invoice.updated`.
///
/// An invoice that is refunded in full becomes `cancelled`. A refund in part does not change the status: an invoice that
/// is `paid` stays `paid`. `paid_at` does not change either.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if nothing was paid; `validation_failed` on `amount` if it is zero or more
/// than what was paid.
pub async fn refund(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId, input: PaymentCreate) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let wall_clock = WriteTime::new(tx, now).wall_clock;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    let (paid, scale) = (invoice.amount_paid.minor(), invoice.currency.scale());
    invoice.check(InvoiceStep::Refund)?;
    let back = match input.amount {
        Some(amount) => amount_in("amount", amount, invoice.currency)?.minor(),
        None => paid,
    };
    if back == 0 || back > paid {
        let message = format!("must be more than 0 and at most {}, which was paid", invoice.amount_paid);
        return Err(Issue::new(FieldCode::OutOfRange, message).on("amount"));
    }
    invoice.amount_paid = Amount::from_minor(paid - back, scale);
    if back == paid {
        invoice.status = InvoiceStatus::Cancelled;
    }
    store_change(tx, tenant, now, &mut invoice, &[]).await?;
    let refunded_amount = Amount::from_minor(back, scale);
    let refund = Payment {
        id: tx.env().id(now),
        invoice_id: id,
        amount: refunded_amount,
        currency: invoice.currency,
        paid_at: wall_clock,
        is_refund: true,
        method: input.method,
        reference: input.reference,
    };
    tx.insert_payment(tenant, &refund).await?;
    let refunded = RefundedInvoice { invoice, refunded_amount, refunded_at: wall_clock };
    events::emit(tx, tenant, now, &[EventKind::InvoiceRefunded], &refunded).await?;
    let at = advance_clock(tx, tenant).await?;
    events::emit(tx, tenant, at, &[EventKind::InvoiceUpdated], &refunded.invoice).await?;
    Ok(refunded.invoice)
}

/// Changes the fields of an invoice that is neither paid nor cancelled. Fires `invoice.updated`, or nothing if the change
/// has no effect.
///
/// A total that becomes equal to what was paid makes the invoice `paid` and fires `invoice.paid` first. An overdue invoice
/// whose due date is no longer before today becomes `sent` again, or `partial` if something was paid.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice is paid or cancelled, and for another currency unless it is
/// a draft on which nothing was paid; `validation_failed` for a total that has more decimals than the currency or is less
/// than what was paid; `reference_not_found` for a contact that does not exist.
pub async fn update(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId, change: InvoiceUpdate) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let wall_clock = WriteTime::new(tx, now).wall_clock;
    let before: Invoice = crud::get(tx, tenant, id).await?;
    before.check(InvoiceStep::Update)?;
    let mut after = before.clone();
    after.apply(change)?;
    if after == before {
        return Ok(before);
    }
    if let Some(contact) = after.contact_id.filter(|_| after.contact_id != before.contact_id) {
        contacts::referenced(tx, tenant, contact).await?;
    }
    let mut kinds = Vec::with_capacity(2);
    if after.total != before.total && after.amount_paid.minor() > 0 && after.total == after.amount_paid {
        after.status = InvoiceStatus::Paid;
        after.paid_at = Some(wall_clock);
        kinds.push(EventKind::InvoicePaid);
    } else {
        after.reopen(tx, tenant, wall_clock).await?;
    }
    kinds.push(EventKind::InvoiceUpdated);
    store_change(tx, tenant, now, &mut after, &kinds).await?;
    Ok(after)
}

impl Invoice {
    fn apply(&mut self, change: InvoiceUpdate) -> Result<(), Error> {
        let mut total = change.total.clone();
        let new_currency = change.currency.clone();
        change.apply_to(self);
        if let Patch::Set(currency) = new_currency
            && currency != self.currency
        {
            if self.status != InvoiceStatus::Draft || self.amount_paid.minor() > 0 {
                return Err(self.refuses("given another currency"));
            }
            // Without a new total, the amount stays the same in the new currency, if that has enough decimals.
            if total == Patch::Keep {
                total = Patch::Set(Decimal::parse(&self.total.to_string()).map_err(|issue| issue.on("total"))?);
            }
            self.currency = currency;
            self.amount_paid = Amount::from_minor(0, currency.scale());
        }
        if let Patch::Set(total) = total {
            self.total = amount_in("total", total, self.currency)?;
        }
        if self.total.minor() < self.amount_paid.minor() {
            let message = format!("must be at least {}, which was paid", self.amount_paid);
            return Err(Issue::new(FieldCode::OutOfRange, message).on("total"));
        }
        Ok(())
    }

    /// Makes an overdue invoice `sent` or `partial` again if its due date is not before today.
    async fn reopen(&mut self, tx: &mut dyn Tx, tenant: TenantId, wall_clock: Timestamp) -> Result<(), Error> {
        if self.status != InvoiceStatus::Overdue {
            return Ok(());
        }
        let today = tenants::get(tx, tenant).await?.time_zone.date_at(wall_clock);
        if self.due_date.is_none_or(|due| due >= today) {
            self.status = match self.amount_paid.minor() {
                0 => InvoiceStatus::Sent,
                _ => InvoiceStatus::Partial,
            };
        }
        Ok(())
    }
}
