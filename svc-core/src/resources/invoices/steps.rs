//! Which steps an invoice allows.

use super::{Invoice, InvoiceStatus};
use crate::error::Error;

/// The steps of the back office with an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvoiceStep {
    /// [`update`](super::update) changes its fields.
    Update,
    /// [`send`](super::send) records that it was sent.
    Send,
    /// [`view`](super::view) records that the customer has seen it.
    View,
    /// [`resend`](super::resend) records that it was sent again.
    Resend,
    /// [`pay`](super::pay) records a payment.
    Pay,
    /// [`refund`](super::refund) records a refund.
    Refund,
    /// [`void`](super::void) cancels it.
    Void,
}

impl InvoiceStep {
    /// Returns what the error calls the step.
    fn done(self) -> &'static str {
        match self {
            Self::Update => "updated",
            Self::Send => "sent",
            Self::View => "viewed",
            Self::Resend => "sent again",
            Self::Pay => "paid",
            Self::Refund => "refunded",
            Self::Void => "voided",
        }
    }
}

impl Invoice {
    /// Returns whether the status and what was paid allow a step.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_core::resources::invoices::InvoiceStep;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoice = svc.account(tenant).invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// assert!(invoice.allows(InvoiceStep::Send) && !invoice.allows(InvoiceStep::Resend));
    /// # Ok(()) });
    /// ```
    pub fn allows(&self, step: InvoiceStep) -> bool {
        use InvoiceStatus::{Cancelled, Draft, Overdue, Paid, Sent, Viewed};
        let is_paid_on = self.amount_paid.minor() > 0;
        match step {
            InvoiceStep::Update | InvoiceStep::Pay => !matches!(self.status, Paid | Cancelled),
            InvoiceStep::Send => self.status == Draft,
            InvoiceStep::View => self.status == Sent,
            InvoiceStep::Resend => !matches!(self.status, Draft | Cancelled),
            InvoiceStep::Refund => is_paid_on,
            // An overdue invoice can be one that was paid in part.
            InvoiceStep::Void => !is_paid_on && matches!(self.status, Draft | Sent | Viewed | Overdue),
        }
    }

    /// Checks that a step is allowed.
    pub(super) fn check(&self, step: InvoiceStep) -> Result<(), Error> {
        if self.allows(step) {
            return Ok(());
        }
        if step == InvoiceStep::Refund {
            let text = format!("{} is {} and holds no payment", self.invoice_number, self.status);
            return Err(Error::NotAllowed(format!("{text}; it cannot be refunded.")));
        }
        Err(self.refuses(step.done()))
    }

    /// Returns the error of a change that the status does not allow. `change` is what the error calls it.
    pub(super) fn refuses(&self, change: &str) -> Error {
        Error::NotAllowed(format!("{} is {}; it cannot be {change}.", self.invoice_number, self.status))
    }
}
