//! `svc invoice`: invoices with the operations of the back office, which the API does not have.

mod overdue;

use svc_core::input::ToBody as _;
use svc_core::platform::PaymentAmount;
use svc_core::resources::invoices::{Invoice, InvoiceStatus};
use svc_core::values::Decimal;

use super::records::{self, Managed, fields_of, step};
use crate::cli::InvoiceCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::service::Service;
use crate::times::full;

pub(super) async fn run(service: &Service, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Records(command) => records::run(service, command).await,
        InvoiceCommand::Send(target) => report_status(&step::<Invoice, _>(service, &target, "send", None).await?),
        InvoiceCommand::View(target) => report_status(&step::<Invoice, _>(service, &target, "view", None).await?),
        InvoiceCommand::Pay { target, amount } => {
            report_payment(&step::<Invoice, _>(service, &target, "pay", body(amount)).await?)
        }
        InvoiceCommand::Void(target) => report_status(&step::<Invoice, _>(service, &target, "void", None).await?),
        InvoiceCommand::Resend(target) => {
            let invoice: Invoice = step::<Invoice, _>(service, &target, "resend", None).await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { target, amount } => {
            report_refund(&step::<Invoice, _>(service, &target, "refund", body(amount)).await?)
        }
        InvoiceCommand::Overdue { tenant } => overdue::run(service, tenant.as_ref()).await,
    }
}

/// Returns the body of a payment or a refund.
fn body(amount: Option<Decimal>) -> Option<Vec<u8>> {
    Some(PaymentAmount { amount }.to_body())
}

impl Managed for Invoice {
    type Created = Self;

    fn created(created: Self) -> Result<Outcome, Failure> {
        records::created(&created)
    }

    fn title(&self) -> String {
        self.invoice_number.clone()
    }

    fn table(invoices: &[Self]) -> Table {
        Table::new(
            ["ID", "NUMBER", "STATUS", "TOTAL", "DUE", "PAID", "CONTACT", "ISSUED", "CREATED"],
            invoices,
            |invoice| {
                [
                    invoice.id.to_string(),
                    invoice.invoice_number.clone(),
                    state(invoice.status),
                    format!("{} {}", invoice.currency, invoice.total),
                    or_dash(invoice.due_date),
                    invoice.amount_paid.to_string(),
                    or_dash(invoice.contact_id),
                    or_dash(invoice.issue_date),
                    full(invoice.created_at),
                ]
            },
        )
    }

    fn details(&self) -> String {
        fields_of(self, [("amount paid", self.amount_paid.to_string())])
    }
}

fn report_status(invoice: &Invoice) -> Result<Outcome, Failure> {
    Outcome::new(invoice, format!("Invoice {} is {}.", invoice.invoice_number, invoice.status))
}

fn report_payment(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, total, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Paid => format!("Invoice {invoice_number} is paid: {currency} {total}."),
        _ => format!("Invoice {invoice_number} is partially paid: {currency} {amount_paid} of {total}."),
    };
    Outcome::new(invoice, text)
}

fn report_refund(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Cancelled => format!("Invoice {invoice_number} is fully refunded and cancelled."),
        _ => format!(
            "Invoice {invoice_number} is partially refunded: {currency} {amount_paid} remains paid, status {status}."
        ),
    };
    Outcome::new(invoice, text)
}
