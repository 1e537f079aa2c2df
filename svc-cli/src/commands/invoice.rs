//! `svc invoice`: the operations of the back office, which the API does not have.

mod overdue;

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceStatus, InvoiceUpdate};
use svc_core::store::{Store, Tx};
use svc_core::values::{Patch, TenantId};
use uuid::Uuid;

use super::{lookup, tenant};
use crate::cli::{InTenant, InvoiceChanges, InvoiceCommand};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, or_dash};

pub(super) async fn run(store: &dyn Store, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Create { tenant, contact, total, currency, due } => {
            let tenant = lookup::tenant(store, &tenant).await?.id;
            let contact = lookup::id_in::<Contact>(store, tenant, &contact).await?;
            let input = InvoiceCreate { contact_id: Some(contact), total, currency, issue_date: None, due_date: due };
            create(store, tenant, contact, input).await
        }
        InvoiceCommand::Send { id, tenant } => {
            let send = change(store, &id, &tenant, "invoice.send", move |tx, tenant, id| {
                Box::pin(invoices::send(tx, tenant, id))
            });
            report_status(&send.await?)
        }
        InvoiceCommand::View { id, tenant } => {
            let view = change(store, &id, &tenant, "invoice.view", move |tx, tenant, id| {
                Box::pin(invoices::view(tx, tenant, id))
            });
            report_status(&view.await?)
        }
        InvoiceCommand::Pay { id, tenant, amount } => {
            let pay = change(store, &id, &tenant, "invoice.pay", move |tx, tenant, id| {
                Box::pin(invoices::pay(tx, tenant, id, amount))
            });
            report_payment(&pay.await?)
        }
        InvoiceCommand::Void { id, tenant } => {
            let void = change(store, &id, &tenant, "invoice.void", move |tx, tenant, id| {
                Box::pin(invoices::void(tx, tenant, id))
            });
            report_status(&void.await?)
        }
        InvoiceCommand::Resend { id, tenant } => {
            let resend = change(store, &id, &tenant, "invoice.resend", move |tx, tenant, id| {
                Box::pin(invoices::resend(tx, tenant, id))
            });
            let invoice = resend.await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { id, tenant, amount } => {
            let refund = change(store, &id, &tenant, "invoice.refund", move |tx, tenant, id| {
                Box::pin(invoices::refund(tx, tenant, id, amount))
            });
            report_refund(&refund.await?)
        }
        InvoiceCommand::Update { id, tenant, changes } => update(store, &id, &tenant, changes).await,
        InvoiceCommand::Overdue { tenant } => overdue::run(store, tenant.as_ref()).await,
    }
}

async fn create(store: &dyn Store, tenant: TenantId, contact: Uuid, input: InvoiceCreate) -> Result<Outcome, Failure> {
    let created = store
        .write("invoice.create", move |tx| {
            let input = input.clone();
            Box::pin(invoices::create(tx, tenant, input))
        })
        .await;
    let invoice = match created {
        Err(Error::ReferenceNotFound(_)) => return Err(no_contact(contact)),
        other => other.or_not_found("tenant", tenant, tenant::HINT)?,
    };
    let Invoice { invoice_number, currency, total, id, .. } = &invoice;
    Outcome::new(&invoice, format!("Created draft invoice {invoice_number} for {currency} {total}, with the id {id}."))
}

fn no_contact(id: Uuid) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("The tenant has no contact {id}, or it is deleted; `svc export contacts` exports all contacts."),
    )
}

async fn update(store: &dyn Store, id: &IdArg, named: &InTenant, changes: InvoiceChanges) -> Result<Outcome, Failure> {
    fn patch<T>(value: Option<T>) -> Patch<T> {
        value.map_or(Patch::Keep, Patch::Set)
    }
    let InvoiceChanges { total, currency, due, contact } = changes;
    let found = lookup::find::<Invoice>(store, id, named).await?;
    let (tenant, before) = (found.tenant_id, found.record);
    let id = before.id;
    let contact = match contact {
        Some(contact) => Some(lookup::id_in::<Contact>(store, tenant, &contact).await?),
        None => None,
    };
    let change = InvoiceUpdate {
        contact_id: patch(contact.map(Some)),
        total: patch(total),
        currency: patch(currency),
        issue_date: Patch::Keep,
        due_date: patch(due.map(Some)),
    };
    let updated = store
        .write("invoice.update", move |tx| {
            let change = change.clone();
            Box::pin(invoices::update(tx, tenant, id, change))
        })
        .await;
    let invoice = match (updated, contact) {
        (Err(Error::ReferenceNotFound(_)), Some(contact)) => return Err(no_contact(contact)),
        (other, _) => other.or_not_found("invoice", id, HINT)?,
    };
    let Invoice { invoice_number, currency, total, due_date, status, .. } = &invoice;
    let text = if invoice == before {
        format!("Invoice {invoice_number} is unchanged.")
    } else {
        format!("Updated invoice {invoice_number}: {currency} {total}, due {}, status {status}.", or_dash(*due_date))
    };
    Outcome::new(&invoice, text)
}

/// Says how to find the id of an invoice.
const HINT: &str = "`svc export invoices` exports the invoices of a tenant";

type Change<'t> = Pin<Box<dyn Future<Output = Result<Invoice, Error>> + Send + 't>>;

/// Changes the invoice with this id in one transaction.
async fn change<F>(
    store: &dyn Store,
    id: &IdArg,
    named: &InTenant,
    name: &'static str,
    work: F,
) -> Result<Invoice, Failure>
where
    F: for<'t> Fn(&'t mut dyn Tx, TenantId, Uuid) -> Change<'t> + Send + Sync + 'static,
{
    let found = lookup::find::<Invoice>(store, id, named).await?;
    let (tenant, id) = (found.tenant_id, found.record.id);
    store.write(name, move |tx| work(tx, tenant, id)).await.or_not_found("invoice", id, HINT)
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
