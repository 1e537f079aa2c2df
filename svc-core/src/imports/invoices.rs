//! The import of invoices, with any status.

use std::borrow::Cow;

use async_trait::async_trait;

use super::batch::ImportRecord;
use super::identity::{self, Identity};
use super::import::{Import, ImportOptions, Imported, differing, digest};
use super::texts;
use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::tenants::{self, NumberKind, Tenant};
use crate::error::Error;
use crate::input::{Body, Input};
use crate::pages::{ListQuery, Order};
use crate::resources::contacts::{self, ContactId};
use crate::resources::invoices::{Invoice, InvoiceFilter, InvoiceId, InvoiceStatus, amount_in, check_payment};
use crate::resources::{Filter as _, Resource as _};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{Amount, Currency, Date, Decimal, Patch, TenantId, Text, Timestamp};
use crate::webhooks::events;

/// An invoice that was created elsewhere, with any status. A field that is left out is not compared with an existing
/// invoice.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Invoice)]
pub struct InvoiceImport {
    /// The `id` of the invoice: a UUID of version 7, as exports have it. Without it, one is assigned.
    pub id: Option<InvoiceId>,
    /// The number of the invoice, which no other invoice of the account has. Without it, the next number of the account
    /// is taken.
    pub invoice_number: Option<Text<255>>,
    /// The contact who is to pay: the `id` of a contact of the account that is not deleted.
    pub contact_id: Patch<Option<ContactId>>,
    /// The status of the invoice. Without it, a new invoice is a draft.
    pub status: Option<InvoiceStatus>,
    /// The day of issue. Without it, a new invoice has today in the account's time zone.
    pub issue_date: Patch<Option<Date>>,
    /// The last day on which the invoice can be paid before it is overdue.
    pub due_date: Patch<Option<Date>>,
    /// The amount to pay in `currency`, with no more decimals than the currency has.
    pub total: Decimal,
    /// The currency of `total`: the upper-case code of an active currency of ISO 4217. Without it, a new invoice has the
    /// account's own.
    pub currency: Option<Currency>,
    /// When the invoice was paid in full. Only an invoice that is `paid` or `cancelled` can have it.
    pub paid_at: Option<Timestamp>,
    /// The sum paid so far, in `currency`. Required with the status `partial`. Without it, an invoice with the status
    /// `paid` was paid in full.
    pub amount_paid: Option<Decimal>,
    /// When the invoice was created. With an `id`, it can only be the time in it.
    pub created_at: Option<Timestamp>,
    /// Ignored, so that exports can be imported: the invoice changes with its import.
    pub updated_at: Option<Timestamp>,
}

impl InvoiceImport {
    /// Returns a digest of the content of the row.
    fn digest(&self) -> [u8; 32] {
        // No currency has more than four decimals; an amount with more is refused.
        let amount = |value: Decimal| value.to_amount(4).map_or_else(|_| String::new(), |amount| amount.to_string());
        let sent = |date: &Patch<Option<Date>>| match date {
            Patch::Set(Some(date)) => Some(date.to_string()),
            _ => None,
        };
        let contact = match self.contact_id {
            Patch::Set(Some(id)) => Some(id.to_string()),
            _ => None,
        };
        let values = [
            contact,
            self.status.map(|status| status.to_string()),
            sent(&self.issue_date),
            sent(&self.due_date),
            Some(amount(self.total)),
            self.currency.map(|currency| currency.to_string()),
            self.paid_at.map(|at| at.to_string()),
            self.amount_paid.map(amount),
            self.created_at.map(|at| at.to_string()),
        ];
        digest("invoice", &values)
    }

    /// Copies the fields of the row into a record.
    fn apply(&self, invoice: &mut Invoice) -> Result<(), Error> {
        if let Some(number) = &self.invoice_number {
            number.as_str().clone_into(&mut invoice.invoice_number);
        }
        self.contact_id.clone().apply(&mut invoice.contact_id);
        self.issue_date.clone().apply(&mut invoice.issue_date);
        self.due_date.clone().apply(&mut invoice.due_date);
        invoice.status = self.status.unwrap_or(invoice.status);
        invoice.currency = self.currency.unwrap_or(invoice.currency);
        invoice.paid_at = self.paid_at.or(invoice.paid_at);
        invoice.total = amount_in("total", self.total, invoice.currency)?;
        if let Some(paid) = self.amount_paid {
            invoice.amount_paid = amount_in("amount_paid", paid, invoice.currency)?;
        }
        Ok(())
    }
}

#[async_trait]
impl Import for Invoice {
    const KIND: &'static str = Self::COLLECTION;
    const EVENT: Option<EventKind> = Some(EventKind::InvoiceCreated);
    type Row = InvoiceImport;
    const NUMBERS: &'static [&'static str] = &["total", "amount_paid"];
    const REQUIRED: &'static [&'static str] = &["total"];

    fn content(row: &InvoiceImport, _unique_email: bool) -> Option<[u8; 32]> {
        (row.id.is_none() && row.invoice_number.is_none()).then(|| row.digest())
    }

    fn to_record(row: &InvoiceImport) -> ImportRecord {
        ImportRecord::written(&Body(row))
    }

    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: InvoiceImport,
        before: u32,
        options: ImportOptions,
    ) -> Result<Imported, Error> {
        let now = advance_clock(tx, tenant.id).await?;
        let number = row.invoice_number.as_ref().map(|number| Cow::Borrowed(number.as_str()));
        texts::check([("invoice_number", number)])?;
        let numbered = match &row.invoice_number {
            Some(number) => with_number(tx, tenant.id, number).await?,
            None => None,
        };
        let identity = match (row.id, numbered) {
            (Some(id), numbered) => {
                let identity = identity::by_id(tx, tenant.id, (id, row.created_at), InvoiceFilter::none(), now).await?;
                if let Some(other) = numbered.filter(|other| other.id != id) {
                    let text = format!("{} is the number of another invoice, {}.", other.invoice_number, other.id);
                    return Err(Error::NotAllowed(text));
                }
                identity
            }
            (None, Some(invoice)) => Identity::Existing(invoice),
            (None, None) if row.invoice_number.is_some() && row.created_at.is_none() => {
                Identity::New(tx.env().id(now), now)
            }
            (None, None) => {
                let content = match &row.invoice_number {
                    Some(number) => digest("invoice number", &[Some(number.to_string())]),
                    None => row.digest(),
                };
                let unfiltered = InvoiceFilter::none();
                identity::by_content(tx, tenant, (content, before), row.created_at, unfiltered, now).await?
            }
        };
        match identity {
            Identity::Existing(invoice) => {
                let mut other = invoice.clone();
                row.apply(&mut other)?;
                if other == invoice {
                    return Ok(Imported::Unchanged);
                }
                let mut fields = differing(&invoice, &other);
                fields.extend((invoice.amount_paid != other.amount_paid).then_some("amount_paid"));
                Ok(Imported::Differs { id: invoice.id.uuid(), fields })
            }
            Identity::New(id, created_at) => {
                let invoice = add(tx, tenant, &row, (id, created_at), now).await?;
                if options.events {
                    events::emit(tx, tenant.id, now, &[EventKind::InvoiceCreated], &invoice).await?;
                }
                Ok(Imported::Added)
            }
        }
    }
}

/// Returns the invoice with this number.
async fn with_number(tx: &mut dyn Tx, tenant: TenantId, number: &Text<255>) -> Result<Option<Invoice>, Error> {
    let filter = InvoiceFilter { status: None, number: Some(number.clone()) };
    let query = ListQuery { limit: 1, order: Order::NewestFirst { before: None }, filter };
    Ok(Repository::<Invoice>::list(tx, tenant, &query).await?.pop())
}

/// Creates the invoice of a row.
async fn add(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    row: &InvoiceImport,
    (id, created_at): (InvoiceId, Timestamp),
    now: Timestamp,
) -> Result<Invoice, Error> {
    let currency = tenant.currency_or(row.currency)?;
    let none = Amount::from_minor(0, currency.scale());
    let mut invoice = Invoice {
        id,
        invoice_number: String::new(),
        contact_id: None,
        status: InvoiceStatus::Draft,
        issue_date: Some(tenant.time_zone.date_at(WriteTime::new(tx, now).wall_clock)),
        due_date: None,
        total: none,
        currency,
        paid_at: None,
        created_at,
        updated_at: now,
        amount_paid: none,
    };
    row.apply(&mut invoice)?;
    if invoice.status == InvoiceStatus::Paid && row.amount_paid.is_none() {
        invoice.amount_paid = invoice.total;
    }
    check_payment(&invoice, row.amount_paid.is_some())?;
    if let Some(contact) = invoice.contact_id {
        contacts::referenced(tx, tenant.id, contact).await?;
    }
    match &row.invoice_number {
        Some(number) => {
            tenants::take_number(tx, tenant.id, NumberKind::Invoice, "invoice_number", number.as_str()).await?;
        }
        None => invoice.invoice_number = tenants::next_number(tx, tenant.id, NumberKind::Invoice).await?,
    }
    Repository::<Invoice>::insert(tx, tenant.id, &invoice).await?;
    Ok(invoice)
}
