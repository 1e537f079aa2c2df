//! `svc invoice`: the steps of the back office, which the API does not have.

mod overdue;

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceStatus, InvoiceUpdate};
use svc_core::store::{Store, Tx};
use svc_core::values::{Patch, TenantId};
use uuid::Uuid;

use super::{lookup, tenant};
use crate::cli::{InvoiceChanges, InvoiceCommand};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, or_dash};

pub(super) async fn run(store: &dyn Store, command: InvoiceCommand) -> Result<Outcome, Failure> {
    match command {
        InvoiceCommand::Create { tenant, contact, total, currency, due } => {
            let input = InvoiceCreate { contact_id: Some(contact), total, currency, issue_date: None, due_date: due };
            create(store, tenant, contact, input).await
        }
        InvoiceCommand::Send { id } => {
            let send = step(store, id, "invoice.send", move |tx, tenant| Box::pin(invoices::send(tx, tenant, id)));
            stands(&send.await?)
        }
        InvoiceCommand::View { id } => {
            let view = step(store, id, "invoice.view", move |tx, tenant| Box::pin(invoices::view(tx, tenant, id)));
            stands(&view.await?)
        }
        InvoiceCommand::Pay { id, amount } => {
            let pay = step(store, id, "invoice.pay", move |tx, tenant| Box::pin(invoices::pay(tx, tenant, id, amount)));
            paid(&pay.await?)
        }
        InvoiceCommand::Void { id } => {
            let void = step(store, id, "invoice.void", move |tx, tenant| Box::pin(invoices::void(tx, tenant, id)));
            stands(&void.await?)
        }
        InvoiceCommand::Resend { id } => {
            let resend =
                step(store, id, "invoice.resend", move |tx, tenant| Box::pin(invoices::resend(tx, tenant, id)));
            let invoice = resend.await?;
            Outcome::new(&invoice, format!("{} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { id, amount } => {
            let refund =
                step(store, id, "invoice.refund", move |tx, tenant| Box::pin(invoices::refund(tx, tenant, id, amount)));
            refunded(&refund.await?)
        }
        InvoiceCommand::Update { id, changes } => update(store, id, changes).await,
        InvoiceCommand::Overdue { tenant } => overdue::run(store, tenant).await,
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
    Outcome::new(&invoice, format!("Created {invoice_number}, a draft of {currency} {total}, with the id {id}."))
}

fn no_contact(id: Uuid) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("The tenant has no contact {id}, or it is deleted; `svc export contacts` has them all."),
    )
}

async fn update(store: &dyn Store, id: Uuid, changes: InvoiceChanges) -> Result<Outcome, Failure> {
    fn sent<T>(value: Option<T>) -> Patch<T> {
        value.map_or(Patch::Keep, Patch::Set)
    }
    let InvoiceChanges { total, currency, due, contact } = changes;
    let change = InvoiceUpdate {
        contact_id: sent(contact.map(Some)),
        total: sent(total),
        currency: sent(currency),
        issue_date: Patch::Keep,
        due_date: sent(due.map(Some)),
    };
    let (tenant, before) = lookup::find::<Invoice>(store, id).await.or_not_found("invoice", id, HINT)?;
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
        format!("{invoice_number} is as it was.")
    } else {
        format!("Updated {invoice_number}, which is {status}: {currency} {total}, due {}.", or_dash(*due_date))
    };
    Outcome::new(&invoice, text)
}

/// Where the ids of invoices come from.
const HINT: &str = "`svc export invoices --tenant ID` has those of a tenant";

type Step<'t> = Pin<Box<dyn Future<Output = Result<Invoice, Error>> + Send + 't>>;

/// Takes one step with the invoice that has this id, whichever tenant's it is.
async fn step<F>(store: &dyn Store, id: Uuid, name: &'static str, work: F) -> Result<Invoice, Failure>
where
    F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> Step<'t> + Send + Sync + 'static,
{
    let done = match lookup::find::<Invoice>(store, id).await {
        Ok((tenant, _)) => store.write(name, move |tx| work(tx, tenant)).await,
        Err(error) => Err(error),
    };
    done.or_not_found("invoice", id, HINT)
}

fn stands(invoice: &Invoice) -> Result<Outcome, Failure> {
    Outcome::new(invoice, format!("{} is {}.", invoice.invoice_number, invoice.status))
}

fn paid(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, total, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Paid => format!("{invoice_number} is paid: {currency} {total}."),
        _ => format!("{invoice_number} is paid in part: {currency} {amount_paid} of {total}."),
    };
    Outcome::new(invoice, text)
}

fn refunded(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Cancelled => format!("{invoice_number} is refunded in full and cancelled."),
        _ => format!("{invoice_number} is refunded in part: {currency} {amount_paid} stays paid; it is {status}."),
    };
    Outcome::new(invoice, text)
}
