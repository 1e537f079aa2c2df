//! `svc invoice`: invoices with the operations of the back office, which the API does not have.

mod overdue;

use svc_core::operation::Operation;
use svc_core::platform::{PaymentAmount, operations};
use svc_core::resources::invoices::{Invoice, InvoiceId, InvoiceStatus};
use svc_core::values::TenantId;

use super::{lookup, records};
use crate::cli::InvoiceCommand;
use crate::cli::records::Target;
use crate::exit::Failure;
use crate::output::{Outcome, money};
use crate::service::Service;

pub(super) async fn run(service: &Service, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Records(command) => records::run(service, command).await,
        InvoiceCommand::Send(target) => set_status(service, &target, &operations::SEND_INVOICE).await,
        InvoiceCommand::View(target) => set_status(service, &target, &operations::VIEW_INVOICE).await,
        InvoiceCommand::Pay { target, amount } => {
            report_payment(&lookup::call(service, &target, &operations::PAY_INVOICE, PaymentAmount { amount }).await?)
        }
        InvoiceCommand::Void(target) => set_status(service, &target, &operations::VOID_INVOICE).await,
        InvoiceCommand::Resend(target) => {
            let invoice = lookup::call(service, &target, &operations::RESEND_INVOICE, ()).await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { target, amount } => {
            report_refund(&lookup::call(service, &target, &operations::REFUND_INVOICE, PaymentAmount { amount }).await?)
        }
        InvoiceCommand::Overdue { account } => overdue::run(service, account.as_ref()).await,
    }
}

async fn set_status(
    service: &Service,
    target: &Target,
    operation: &Operation<(TenantId, InvoiceId), (), Invoice>,
) -> Result<Outcome, Failure> {
    let invoice = lookup::call(service, target, operation, ()).await?;
    Outcome::new(&invoice, format!("Invoice {} is {}.", invoice.invoice_number, invoice.status))
}

fn report_payment(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, status, .. } = invoice;
    let [total, paid] = [invoice.total, invoice.amount_paid].map(|amount| money(amount, *currency));
    let text = match status {
        InvoiceStatus::Paid => format!("Invoice {invoice_number} is paid: {total}."),
        _ => format!("Invoice {invoice_number} is partially paid: {paid} of {total}."),
    };
    Outcome::new(invoice, text)
}

fn report_refund(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Cancelled => format!("Invoice {invoice_number} is fully refunded and cancelled."),
        _ => {
            let paid = money(*amount_paid, *currency);
            format!("Invoice {invoice_number} is partially refunded: {paid} remains paid, status {status}.")
        }
    };
    Outcome::new(invoice, text)
}
