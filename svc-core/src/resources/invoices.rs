//! Invoices: read-only in the API, changed by the back office (`docs/contract.md`, "Invoices" and "Back office").
//!
//! Each operation of the back office is one function over a transaction, for applications that embed this crate and for
//! the command line. It fires its own event and then `invoice.updated`, in the transaction of the change.

mod bookkeeping;
mod changes;
mod outstanding;
mod overdue;
mod steps;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::platform_keys::Area;
use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::{Apply, Input, Record};
use crate::operation::{OperationText, Profile};
use crate::resources::contacts::{self, ContactId, OfContact};
use crate::resources::starts::HasStart;
use crate::resources::{BusinessRecord, Filter, Resource, crud, set_scale};
use crate::store::{RecordsByStart, RecordsOfContact, Repository, Tx};
use crate::values::EventKind;
use crate::values::{
    Amount, Currency, Date, Decimal, Id, Patch, RecordKind, TenantId, Text, TextEnum, TimeZone, Timestamp,
};
use crate::webhooks::events;

pub use self::bookkeeping::{BookedPayment, payments};
pub use self::changes::{refund, update};
pub use self::outstanding::{MAX_SUMMED, Outstanding, outstanding_of};
pub use self::overdue::{OVERDUE_STEP, OverdueChecks, OverduePosition, check_overdue, overdue};
pub use self::steps::InvoiceStep;

/// The id of an invoice.
pub type InvoiceId = Id<Invoice>;

/// The id of a payment.
pub type PaymentId = Id<Payment>;

/// The status of an invoice. The operations of this module change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum InvoiceStatus {
    /// The invoice has not been sent yet.
    Draft,
    /// The invoice was sent to the customer.
    Sent,
    /// The customer has seen the invoice.
    Viewed,
    /// The invoice was paid in part.
    Partial,
    /// The invoice was paid in full.
    Paid,
    /// The invoice was not paid in full by its due date.
    Overdue,
    /// The invoice was voided, or refunded in full.
    Cancelled,
}

impl InvoiceStatus {
    /// Returns whether the customer has to pay something: the invoice was sent, and neither paid in full nor voided.
    pub fn is_unpaid(self) -> bool {
        matches!(self, Self::Sent | Self::Viewed | Self::Partial | Self::Overdue)
    }
}

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Records,
    memory: 1,
    with_article: "an invoice",
    singular: "invoice",
    plural: "invoices",
    list: OperationText::new("listInvoices", "Use `number` to find an invoice by its number."),
    get: "getInvoice",
    create: OperationText::NONE,
    update: OperationText::NONE,
    delete: OperationText::NONE,
};

/// An invoice: a request for payment to a contact. The API cannot change invoices; events report their changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "invoices", filter = InvoiceFilter, profile = PROFILE)]
#[record(input)]
pub struct Invoice {
    /// The unique identifier of the invoice, a UUID of version 7 that the service assigns.
    pub id: InvoiceId,
    /// The number of the invoice, such as `INV-0001`. Assigned by the service at creation by counting up within the
    /// account, and never reused. An imported invoice may have a number of another form.
    pub invoice_number: String,
    /// The contact who is to pay. It is kept when the contact is deleted. Null if none was given.
    pub contact_id: Option<ContactId>,
    /// The status of the invoice. New values may be added, so accept those that you do not know.
    ///
    /// - `draft`: The invoice has not been sent yet.
    /// - `sent`: The invoice was sent to the customer.
    /// - `viewed`: The customer has seen the invoice.
    /// - `partial`: The invoice was paid in part.
    /// - `paid`: The invoice was paid in full.
    /// - `overdue`: The invoice was not paid in full by its due date.
    /// - `cancelled`: The invoice was voided, or refunded in full.
    #[record(schema = String)]
    pub status: InvoiceStatus,
    /// The day on which the invoice was issued, in the account's time zone. Null if none was given.
    pub issue_date: Option<Date>,
    /// The day by which the invoice is to be paid, in the account's time zone; after it, the invoice can become
    /// `overdue`. Null if it has none.
    pub due_date: Option<Date>,
    /// The amount to pay in `currency`, an exact decimal number with no more decimals than the currency has.
    pub total: Amount,
    /// The currency of `total`: a three-letter code of ISO 4217 in upper case.
    pub currency: Currency,
    /// When the invoice was paid in full. Null until then, and kept after a refund.
    pub paid_at: Option<Timestamp>,
    /// When the invoice was created. Unique among the account's invoices.
    pub created_at: Timestamp,
    /// When the invoice last changed. Equal to `created_at` until then, and unique among the account's invoices.
    pub updated_at: Timestamp,
    /// The amount paid so far, less refunds, in `currency`. Responses of the public API do not contain it; those of the
    /// platform API do.
    #[serde(skip_serializing, default)]
    pub amount_paid: Amount,
}

impl BusinessRecord for Invoice {
    const KIND: RecordKind = RecordKind::Invoice;

    fn contact(&self) -> Option<Uuid> {
        self.contact_id.map(Into::into)
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Invoice, "invoice_number", &self.invoice_number))
    }

    fn named(text: &str) -> Option<InvoiceFilter> {
        let number = Text::parse(text).ok()?;
        Some(InvoiceFilter { number: Some(number), ..InvoiceFilter::none() })
    }

    fn title(&self) -> String {
        self.invoice_number.clone()
    }

    fn details(&self, _: &TimeZone) -> Vec<String> {
        vec![self.status.to_string(), self.total.in_currency(self.currency)]
    }

    fn searched(&self) -> Vec<Option<&str>> {
        vec![Some(&self.invoice_number)]
    }

    fn check(&mut self) -> Result<(), Error> {
        set_scale("total", &mut self.total, self.currency.scale())?;
        set_scale("amount_paid", &mut self.amount_paid, self.currency.scale())?;
        check_payment(self, true)
    }
}

impl OfContact for Invoice {
    fn of_contact(tx: &mut dyn Tx) -> &mut dyn RecordsOfContact<Self> {
        tx
    }
}

/// While the customer has to pay, the due date counts as the start. Drafts and invoices that are paid or void have none.
impl HasStart for Invoice {
    const STARTS_ON_DATE: bool = true;

    fn start(&self) -> Option<Timestamp> {
        let due = self.due_date.filter(|_| self.status.is_unpaid());
        due.map(Date::begins_in_utc)
    }

    fn by_start(tx: &mut dyn Tx) -> &mut dyn RecordsByStart<Self> {
        tx
    }
}

/// The filters of the list of invoices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Input)]
pub struct InvoiceFilter {
    /// Returns only invoices with this status.
    pub status: Option<InvoiceStatus>,
    /// Returns only the invoice with exactly this `invoice_number`.
    pub number: Option<Text<255>>,
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

/// A new invoice. Its status is `draft`.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Invoice)]
pub struct InvoiceCreate {
    /// The contact who is to pay: the `id` of a contact of the account that is not deleted.
    pub contact_id: Option<ContactId>,
    /// The amount to pay in `currency`, with no more decimals than the currency has.
    pub total: Decimal,
    /// The currency of `total`: the upper-case code of an active currency of ISO 4217. Without it, or with null, the
    /// account's own applies.
    pub currency: Option<Currency>,
    /// The day of issue. Without it, or with null, it is today in the account's time zone.
    pub issue_date: Option<Date>,
    /// The last day on which the invoice can be paid before it is overdue. Without it, or with null, it follows from the account's
    /// `days_until_due`, if that is set.
    pub due_date: Option<Date>,
}

impl InvoiceCreate {
    /// Returns an invoice of this total in the currency of the account, without a contact.
    pub fn new(total: Decimal) -> Self {
        Self { contact_id: None, total, currency: None, issue_date: None, due_date: None }
    }
}

/// Changes to an invoice that is neither paid nor cancelled. A field that is left out keeps its value, and null clears
/// it.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[input(record = Invoice, patch)]
#[apply(to = Invoice)]
pub struct InvoiceUpdate {
    /// The contact who is to pay: the `id` of a contact of the account that is not deleted. Null clears it.
    pub contact_id: Patch<Option<ContactId>>,
    /// The amount to pay, with no more decimals than the currency has, and not less than what was paid. When it becomes
    /// equal to what was paid, the invoice is `paid`.
    #[apply(skip)]
    pub total: Patch<Decimal>,
    /// The currency of `total`: the upper-case code of an active currency of ISO 4217. It can change only on a draft on
    /// which nothing was paid.
    #[apply(skip)]
    pub currency: Patch<Currency>,
    /// The day of issue. Null clears it.
    pub issue_date: Patch<Option<Date>>,
    /// The last day on which the invoice can be paid before it is overdue. An overdue invoice with a due date that is
    /// not in the past becomes `sent` again, or `partial` if something was paid. Null clears it.
    pub due_date: Patch<Option<Date>>,
}

/// A payment on an invoice: the `data` of the event `payment.succeeded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Payment {
    /// The unique identifier of the payment, a UUID of version 7 that the service assigns.
    pub id: PaymentId,
    /// The invoice that was paid, in full or in part.
    pub invoice_id: InvoiceId,
    /// The amount of this payment in `currency`, an exact decimal number.
    pub amount: Amount,
    /// The currency of the invoice: a three-letter code of ISO 4217 in upper case.
    pub currency: Currency,
    /// When the payment was received.
    pub paid_at: Timestamp,
    /// Whether it is a refund: money that went back. Events of payments are never refunds, and have this and the next two
    /// fields not; the platform API does.
    #[serde(skip_serializing, default)]
    pub is_refund: bool,
    /// The method of the payment, in the account's own words, such as `card`. `None` if it was not recorded.
    #[serde(skip_serializing, default)]
    pub method: Option<Text<100>>,
    /// The reference of the payment, such as on a bank statement. `None` if it was not recorded.
    #[serde(skip_serializing, default)]
    pub reference: Option<Text<255>>,
}

/// A payment or a refund that the back office records.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct PaymentCreate {
    /// The amount in the currency of the invoice. Without it, or with null, it is all that is left to pay or was paid.
    pub amount: Option<Decimal>,
    /// The method of the payment, in your own words, such as `card` or `bank transfer`. Must be a single line.
    pub method: Option<Text<100>>,
    /// The reference of the payment, such as on a bank statement. Must be a single line.
    pub reference: Option<Text<255>>,
}

impl PaymentCreate {
    /// Returns a payment of this amount, without a method and a reference.
    pub fn of(amount: Decimal) -> Self {
        Self { amount: Some(amount), ..Self::default() }
    }
}

/// An invoice after a refund: the `data` of the event `invoice.refunded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RefundedInvoice {
    /// The invoice after the refund.
    #[serde(flatten)]
    pub invoice: Invoice,
    /// The amount of this refund in `currency`, an exact decimal number. Earlier refunds are not part of it.
    pub refunded_amount: Amount,
    /// When the refund was recorded.
    pub refunded_at: Timestamp,
}

/// Creates a draft. Fires `invoice.created`.
///
/// # Errors
/// `validation_failed` for a total with more decimals than the currency has, and `reference_not_found` for a contact that
/// does not exist.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: InvoiceCreate) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let settings = tenants::get(tx, tenant).await?;
    let currency = settings.currency_or(input.currency)?;
    let total = amount_in("total", input.total, currency)?;
    if let Some(contact) = input.contact_id {
        contacts::referenced(tx, tenant, contact).await?;
    }
    let issue_date = input.issue_date.unwrap_or(settings.time_zone.date_at(WriteTime::new(tx, now).wall_clock));
    let usual_due_date = settings.days_until_due.map(|days| issue_date.plus_days(days.into()));
    let invoice = Invoice {
        id: tx.env().id(now),
        invoice_number: tenants::next_number(tx, tenant, NumberKind::Invoice).await?,
        contact_id: input.contact_id,
        status: InvoiceStatus::Draft,
        issue_date: Some(issue_date),
        due_date: input.due_date.or(usual_due_date),
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

/// Converts the decimal of a field to an amount of the currency.
pub(crate) fn amount_in(field: &str, amount: Decimal, currency: Currency) -> Result<Amount, Error> {
    amount.to_amount(currency.scale()).map_err(|error| Issue::from(error).on(field))
}

/// Records that a draft was sent to the customer. Fires `invoice.sent`, then `invoice.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice is not a draft.
pub async fn send(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId) -> Result<Invoice, Error> {
    change_status(tx, tenant, id, InvoiceStep::Send, InvoiceStatus::Sent, Some(EventKind::InvoiceSent)).await
}

/// Records that the customer has seen the invoice. Fires `invoice.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the status is not `sent`.
pub async fn view(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId) -> Result<Invoice, Error> {
    change_status(tx, tenant, id, InvoiceStep::View, InvoiceStatus::Viewed, None).await
}

/// Cancels an invoice on which nothing was paid. Fires `invoice.voided`, then `invoice.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if something was paid, or the invoice is cancelled already.
pub async fn void(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    invoice.check(InvoiceStep::Void)?;
    invoice.status = InvoiceStatus::Cancelled;
    store_change(tx, tenant, now, &mut invoice, &[EventKind::InvoiceVoided, EventKind::InvoiceUpdated]).await?;
    Ok(invoice)
}

/// Records that the invoice was sent again. The invoice does not change. Fires `invoice.resent`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice is a draft or cancelled.
pub async fn resend(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let invoice: Invoice = crud::get(tx, tenant, id).await?;
    invoice.check(InvoiceStep::Resend)?;
    events::emit(tx, tenant, now, &[EventKind::InvoiceResent], &invoice).await?;
    Ok(invoice)
}

/// Records a payment of an amount, or of all that is left to pay.
///
/// An invoice that is paid in full becomes `paid` and fires `invoice.paid` first; any other becomes `partial`. Then
/// `invoice.updated` and `payment.succeeded` are fired.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice is paid or cancelled; `validation_failed` on `amount` if it
/// is zero or more than what is left.
pub async fn pay(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId, input: PaymentCreate) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let wall_clock = WriteTime::new(tx, now).wall_clock;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    invoice.check(InvoiceStep::Pay)?;
    let scale = invoice.currency.scale();
    let left = invoice.total.minor() - invoice.amount_paid.minor();
    let paid = match input.amount {
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
        invoice.paid_at = Some(wall_clock);
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
        paid_at: wall_clock,
        is_refund: false,
        method: input.method,
        reference: input.reference,
    };
    tx.insert_payment(tenant, &payment).await?;
    events::emit(tx, tenant, at, &[EventKind::PaymentSucceeded], &payment).await?;
    Ok(invoice)
}

/// Changes the status of an invoice that allows the step.
async fn change_status(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: InvoiceId,
    step: InvoiceStep,
    to: InvoiceStatus,
    event: Option<EventKind>,
) -> Result<Invoice, Error> {
    let now = advance_clock(tx, tenant).await?;
    let mut invoice: Invoice = crud::get(tx, tenant, id).await?;
    invoice.check(step)?;
    invoice.status = to;
    let kinds: Vec<EventKind> = event.into_iter().chain([EventKind::InvoiceUpdated]).collect();
    store_change(tx, tenant, now, &mut invoice, &kinds).await?;
    Ok(invoice)
}

/// Writes a changed invoice with its events.
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

/// Checks that what was paid agrees with the status. `given` says whether the row has `amount_paid`.
pub(crate) fn check_payment(invoice: &Invoice, given: bool) -> Result<(), Error> {
    use InvoiceStatus::{Cancelled, Draft, Overdue, Paid, Partial, Sent, Viewed};
    let (status, paid, total) = (invoice.status, invoice.amount_paid.minor(), invoice.total.minor());
    let refused = |code, field: &str, reason: String| Err(Issue::new(code, reason).on(field));
    if invoice.paid_at.is_some() && !matches!(status, Paid | Cancelled) {
        return refused(FieldCode::OutOfRange, "paid_at", format!("must be left out of an invoice that is {status}"));
    }
    if status == Partial && !given {
        return refused(FieldCode::Required, "amount_paid", "is required of an invoice that is partial".to_owned());
    }
    let fits = match status {
        Draft | Sent | Viewed | Cancelled => paid == 0,
        Partial => 0 < paid && paid < total,
        Overdue => paid < total || total == 0,
        Paid => paid <= total,
    };
    if fits {
        return Ok(());
    }
    let reason = match status {
        Draft | Sent | Viewed | Cancelled => format!("must be 0 or left out of an invoice that is {status}"),
        Partial => format!("must be more than 0 and less than {}, the total", invoice.total),
        Overdue => format!("must be less than {}, the total", invoice.total),
        Paid => format!("must be at most {}, the total", invoice.total),
    };
    refused(FieldCode::OutOfRange, "amount_paid", reason)
}
