//! Invoices: read-only through the API, changed by the back office (decisions §6).
//!
//! Each step is one function over a transaction, for an embedding application and the CLI. It fires its own
//! event and then `invoice.updated`, in the transaction of the change.

mod changes;
mod overdue;

use serde::Serialize;
use uuid::Uuid;

use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::{input, record};
use crate::resources::contacts;
use crate::resources::crud::{self, Filter, advance_clock, resource};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{Amount, Currency, Date, Decimal, Patch, TenantId, Text, Timestamp, text_enum};
use crate::webhooks::events;

pub use self::changes::{refund, update};
pub use self::overdue::{OVERDUE_STEP, OverduePosition, overdue};

text_enum! {
    /// State of an invoice.
    pub enum InvoiceStatus {
        Draft = "draft",
        Sent = "sent",
        Viewed = "viewed",
        Partial = "partial",
        Paid = "paid",
        Overdue = "overdue",
        Cancelled = "cancelled",
    }
}

record! {
    /// A demand for payment.
    pub struct Invoice {
        /// Identifier.
        pub id: Uuid,
        /// `INV-0001`, counted per account without gaps.
        pub invoice_number: String,
        /// Who is to pay.
        pub contact_id: Option<Uuid>,
        /// State: draft, sent, viewed, partial, paid, overdue or cancelled.
        #[schemars(with = "String")]
        pub status: InvoiceStatus,
        /// Day of issue.
        pub issue_date: Option<Date>,
        /// Day by which it is to be paid.
        pub due_date: Option<Date>,
        /// Amount, exact, with no more decimals than the currency has.
        pub total: Amount,
        /// Currency of the amount.
        pub currency: Currency,
        /// When it was paid in full.
        pub paid_at: Option<Timestamp>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
        /// What has been paid so far.
        #[serde(skip)]
        pub amount_paid: Amount,
    }
}

resource!(Invoice, "invoices", InvoiceFilter);

input! {
    /// Filters of the list of invoices.
    pub struct InvoiceFilter, derive Serialize {
        /// Only invoices in this state.
        status: Option<InvoiceStatus>,
        /// Only the invoice with exactly this `invoice_number`.
        number: Option<Text<255>>,
    }
}

impl Filter<Invoice> for InvoiceFilter {
    fn none() -> Self {
        Self { status: None, number: None }
    }
    fn matches(&self, row: &Invoice) -> bool {
        self.status.is_none_or(|status| status == row.status)
            && self.number.as_ref().is_none_or(|number| number.as_str() == row.invoice_number)
    }
}

input! {
    /// A new invoice, which is a draft issued today.
    pub struct InvoiceCreate for Invoice {
        /// A live contact of the account.
        contact_id: Option<Uuid>,
        /// Amount, with no more decimals than the currency has.
        total: Decimal,
        /// Active currency of ISO 4217; the account's own when left out.
        currency: Option<Currency>,
        /// Day of issue; today when left out.
        issue_date: Option<Date>,
        /// Day by which it is to be paid.
        due_date: Option<Date>,
    }
}

input! {
    /// Changes to an invoice that is neither paid nor cancelled: what is left out stays, null clears.
    pub struct InvoiceUpdate for Invoice, patch true {
        /// A live contact of the account.
        contact_id: Patch<Option<Uuid>>,
        /// Amount, with no more decimals than the currency has, and no less than what was paid.
        total: Patch<Decimal>,
        /// Active currency of ISO 4217; it can change on a draft on which nothing was paid.
        currency: Patch<Currency>,
        /// Day of issue.
        issue_date: Patch<Option<Date>>,
        /// Day by which it is to be paid.
        due_date: Patch<Option<Date>>,
    }
}

record! {
    /// Money received for an invoice: the data of `payment.succeeded`.
    pub struct Payment {
        /// Identifier.
        pub id: Uuid,
        /// What was paid for.
        pub invoice_id: Uuid,
        /// How much.
        pub amount: Amount,
        /// Currency of the amount.
        pub currency: Currency,
        /// When.
        pub paid_at: Timestamp,
    }
}

/// Creates a draft.
///
/// # Errors
/// `validation_failed` for a total that the currency does not allow, `reference_not_found` for the contact.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: InvoiceCreate) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let settings = tenants::get(tx, tenant).await?;
    let currency = input.currency.unwrap_or(settings.currency);
    let total = amount_in("total", input.total, currency)?;
    if let Some(contact) = input.contact_id {
        contacts::referenced(tx, tenant, contact).await?;
    }
    let invoice = Invoice {
        id: tx.env().id(now),
        invoice_number: tenants::next_number(tx, tenant, NumberKind::Invoice).await?,
        contact_id: input.contact_id,
        status: InvoiceStatus::Draft,
        issue_date: Some(input.issue_date.unwrap_or(settings.time_zone.date_at(now))),
        due_date: input.due_date,
        total,
        currency,
        paid_at: None,
        created_at: now,
        updated_at: now,
        amount_paid: Amount::from_minor(0, currency.scale()),
    };
    Repository::<Invoice>::insert(tx, tenant, &invoice).await?;
    events::emit(tx, tenant, now, &[EventKind::InvoiceCreated], &invoice).await?;
    Ok(invoice)
}

/// The amount of a field in the invoice's currency.
pub(crate) fn amount_in(field: &str, amount: Decimal, currency: Currency) -> Result<Amount, Error> {
    amount.to_amount(currency.scale()).map_err(|error| Issue::from(error).on(field))
}

/// Sends a draft to the customer.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] unless it is a draft.
pub async fn send(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Invoice, Error> {
    let allowed = [InvoiceStatus::Draft];
    enter(tx, tenant, id, "sent", &allowed, InvoiceStatus::Sent, Some(EventKind::InvoiceSent)).await
}

/// Notes that the customer has seen it.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] unless it is sent.
pub async fn view(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Invoice, Error> {
    enter(tx, tenant, id, "viewed", &[InvoiceStatus::Sent], InvoiceStatus::Viewed, None).await
}

/// Cancels an invoice on which nothing was paid.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] once something was paid, or when it is cancelled already.
pub async fn void(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Invoice, Error> {
    use InvoiceStatus::{Cancelled, Draft, Overdue, Sent, Viewed};
    let now = advance_clock(tx, tenant).await?;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    // An overdue invoice may have been paid in part before.
    if invoice.amount_paid.minor() > 0 || !matches!(invoice.status, Draft | Sent | Viewed | Overdue) {
        return Err(invoice.refuses("voided"));
    }
    invoice.status = Cancelled;
    store_change(tx, tenant, now, &mut invoice, &[EventKind::InvoiceVoided, EventKind::InvoiceUpdated]).await?;
    Ok(invoice)
}

/// Sends the email again; the invoice stays as it is.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when it was never sent or is cancelled.
pub async fn resend(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let invoice: Invoice = crud::get(tx, tenant, id).await?;
    if matches!(invoice.status, InvoiceStatus::Draft | InvoiceStatus::Cancelled) {
        return Err(invoice.refuses("sent again"));
    }
    events::emit(tx, tenant, now, &[EventKind::InvoiceResent], &invoice).await?;
    Ok(invoice)
}

/// Receives money: all that is left, or a part. Paid in full it becomes `paid`, else `partial`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when it is paid or cancelled; `validation_failed` on `amount`
/// when it is zero or more than what is left.
pub async fn pay(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, amount: Option<Decimal>) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    if matches!(invoice.status, InvoiceStatus::Paid | InvoiceStatus::Cancelled) {
        return Err(invoice.refuses("paid"));
    }
    let scale = invoice.currency.scale();
    let left = invoice.total.minor() - invoice.amount_paid.minor();
    let paid = match amount {
        Some(amount) => amount_in("amount", amount, invoice.currency)?.minor(),
        None => left,
    };
    if paid > left || (paid == 0 && left > 0) {
        let message =
            format!("must be more than 0 and at most {}, which is left to pay", Amount::from_minor(left, scale));
        return Err(Issue::new(FieldCode::OutOfRange, message).on("amount"));
    }
    invoice.amount_paid = Amount::from_minor(invoice.amount_paid.minor() + paid, scale);
    let mut kinds = Vec::with_capacity(2);
    if paid == left {
        invoice.status = InvoiceStatus::Paid;
        invoice.paid_at = Some(now);
        kinds.push(EventKind::InvoicePaid);
    } else {
        invoice.status = InvoiceStatus::Partial;
    }
    kinds.push(EventKind::InvoiceUpdated);
    store_change(tx, tenant, now, &mut invoice, &kinds).await?;
    let at = advance_clock(tx, tenant).await?;
    let payment = Payment {
        id: tx.env().id(at),
        invoice_id: id,
        amount: Amount::from_minor(paid, scale),
        currency: invoice.currency,
        paid_at: now,
    };
    tx.insert_payment(tenant, &payment).await?;
    events::emit(tx, tenant, at, &[EventKind::PaymentSucceeded], &payment).await?;
    Ok(invoice)
}

impl Invoice {
    fn refuses(&self, step: &str) -> Error {
        Error::NotAllowed(format!("{} is {}; it cannot be {step}.", self.invoice_number, self.status))
    }
}

async fn enter(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    step: &str,
    from: &[InvoiceStatus],
    to: InvoiceStatus,
    event: Option<EventKind>,
) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    if !from.contains(&invoice.status) {
        return Err(invoice.refuses(step));
    }
    invoice.status = to;
    let kinds: Vec<EventKind> = event.into_iter().chain([EventKind::InvoiceUpdated]).collect();
    store_change(tx, tenant, now, &mut invoice, &kinds).await?;
    Ok(invoice)
}

async fn store_change(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    invoice: &mut Invoice,
    kinds: &[EventKind],
) -> Result<(), Error> {
    invoice.updated_at = now;
    Repository::<Invoice>::update(tx, tenant, invoice).await?;
    events::emit(tx, tenant, now, kinds, invoice).await
}
