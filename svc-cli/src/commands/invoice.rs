//! `svc invoice`: invoices with the operations of the back office, which the API does not have.

mod overdue;

use svc_core::platform::{Operation, PaymentAmount, operations};
use svc_core::resources::invoices::{Invoice, InvoiceStatus};
use svc_core::values::{Id, TenantId};

use super::records::{self, Managed, fields_of};
use crate::cli::InvoiceCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::service::Service;
use crate::times::full;

pub(super) async fn run(service: &Service, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Records(command) => records::run(service, command).await,
        InvoiceCommand::Send(target) => {
            report_status(&records::call(service, &target, &operations::SEND_INVOICE, ()).await?)
        }
        InvoiceCommand::View(target) => {
            report_status(&records::call(service, &target, &operations::VIEW_INVOICE, ()).await?)
        }
        InvoiceCommand::Pay { target, amount } => {
            report_payment(&records::call(service, &target, &operations::PAY_INVOICE, PaymentAmount { amount }).await?)
        }
        InvoiceCommand::Void(target) => {
            report_status(&records::call(service, &target, &operations::VOID_INVOICE, ()).await?)
        }
        InvoiceCommand::Resend(target) => {
            let invoice = records::call(service, &target, &operations::RESEND_INVOICE, ()).await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { target, amount } => report_refund(
            &records::call(service, &target, &operations::REFUND_INVOICE, PaymentAmount { amount }).await?,
        ),
        InvoiceCommand::Overdue { account } => overdue::run(service, account.as_ref()).await,
    }
}

impl Managed for Invoice {
    type Created = Self;
    const CREATE: Operation<TenantId, Self::Create, Self> = operations::CREATE_INVOICE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = operations::UPDATE_INVOICE;

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
