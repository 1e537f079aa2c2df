//! `svc invoice`: invoices with the operations of the back office, which the API does not have.

mod overdue;

use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceStatus, InvoiceUpdate};
use svc_core::store::{Store, Tx};
use svc_core::values::{Id, TenantId};

use super::lookup::Lookup;
use super::records::{self, Managed, change, fields_of};
use crate::cli::InvoiceCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::times::full;

pub(super) async fn run(store: &dyn Store, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Records(command) => records::run(store, command).await,
        InvoiceCommand::Send(target) => {
            let send =
                change(store, &target, "invoice.send", |tx, tenant, id| Box::pin(invoices::send(tx, tenant, id)));
            report_status(&send.await?)
        }
        InvoiceCommand::View(target) => {
            let view =
                change(store, &target, "invoice.view", |tx, tenant, id| Box::pin(invoices::view(tx, tenant, id)));
            report_status(&view.await?)
        }
        InvoiceCommand::Pay { target, amount } => {
            let pay = change(store, &target, "invoice.pay", move |tx, tenant, id| {
                Box::pin(invoices::pay(tx, tenant, id, amount))
            });
            report_payment(&pay.await?)
        }
        InvoiceCommand::Void(target) => {
            let void =
                change(store, &target, "invoice.void", |tx, tenant, id| Box::pin(invoices::void(tx, tenant, id)));
            report_status(&void.await?)
        }
        InvoiceCommand::Resend(target) => {
            let resend =
                change(store, &target, "invoice.resend", |tx, tenant, id| Box::pin(invoices::resend(tx, tenant, id)));
            let invoice = resend.await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { target, amount } => {
            let refund = change(store, &target, "invoice.refund", move |tx, tenant, id| {
                Box::pin(invoices::refund(tx, tenant, id, amount))
            });
            report_refund(&refund.await?)
        }
        InvoiceCommand::Overdue { tenant } => overdue::run(store, tenant.as_ref()).await,
    }
}

impl Managed for Invoice {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: InvoiceCreate) -> Lookup<'_, Self> {
        Box::pin(invoices::create(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: InvoiceUpdate) -> Lookup<'_, Self> {
        Box::pin(invoices::update(tx, tenant, id, change))
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
