//! What people change about records, each in one transaction: the form is looked up, so that one that is sent twice changes
//! once; the record must be as the page showed it; the facade makes the change.

use serde::Serialize;
use serde_json::{Map, Value};
use svc_core::error::StoreError;
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::service::Submission;
use uuid::Uuid;

use crate::dashboard::components::capitalized;
use crate::dashboard::context::Context;
use crate::dashboard::page_response::PageError;
use crate::dashboard::pages::records::RecordKind;

/// The name of the field with the key of a form.
pub(crate) const KEY: &str = "key";
/// The name of the field that says which version of the record the page showed.
pub(crate) const VERSION: &str = "version";

/// A change of a record.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    CreateContact(ContactCreate),
    CreateInvoice(InvoiceCreate),
    CreateQuote(QuoteCreate),
    CreateBooking(BookingCreate),
    CreateJob(JobCreate),
    UpdateContact(ContactId, ContactUpdate),
    UpdateInvoice(InvoiceId, InvoiceUpdate),
    UpdateQuote(QuoteId, QuoteUpdate),
    UpdateBooking(BookingId, BookingUpdate),
    UpdateJob(JobId, JobUpdate),
    DeleteContact(ContactId),
    SendInvoice(InvoiceId),
    ResendInvoice(InvoiceId),
    PayInvoice(InvoiceId, Decimal),
    RefundInvoice(InvoiceId, Decimal),
    VoidInvoice(InvoiceId),
    AcceptQuote(QuoteId),
    DeclineQuote(QuoteId),
}

impl Change {
    /// Reads a new record as the API does.
    pub(super) fn create(kind: RecordKind, body: &[u8]) -> Result<Self, Error> {
        Ok(match kind {
            RecordKind::Contact => Self::CreateContact(ContactCreate::from_body(body)?),
            RecordKind::Invoice => Self::CreateInvoice(InvoiceCreate::from_body(body)?),
            RecordKind::Quote => Self::CreateQuote(QuoteCreate::from_body(body)?),
            RecordKind::Booking => Self::CreateBooking(BookingCreate::from_body(body)?),
            RecordKind::Job => Self::CreateJob(JobCreate::from_body(body)?),
        })
    }

    /// Reads the changes of a record as the API does.
    pub(super) fn update(kind: RecordKind, id: Uuid, body: &[u8]) -> Result<Self, Error> {
        Ok(match kind {
            RecordKind::Contact => Self::UpdateContact(id.into(), ContactUpdate::from_body(body)?),
            RecordKind::Invoice => Self::UpdateInvoice(id.into(), InvoiceUpdate::from_body(body)?),
            RecordKind::Quote => Self::UpdateQuote(id.into(), QuoteUpdate::from_body(body)?),
            RecordKind::Booking => Self::UpdateBooking(id.into(), BookingUpdate::from_body(body)?),
            RecordKind::Job => Self::UpdateJob(id.into(), JobUpdate::from_body(body)?),
        })
    }

    /// Returns the record that is changed. `None` for a new one.
    fn target(&self) -> Option<(RecordKind, Uuid)> {
        match self {
            Self::CreateContact(_)
            | Self::CreateInvoice(_)
            | Self::CreateQuote(_)
            | Self::CreateBooking(_)
            | Self::CreateJob(_) => None,
            Self::UpdateContact(id, _) | Self::DeleteContact(id) => Some((RecordKind::Contact, id.uuid())),
            Self::UpdateInvoice(id, _)
            | Self::SendInvoice(id)
            | Self::ResendInvoice(id)
            | Self::PayInvoice(id, _)
            | Self::RefundInvoice(id, _)
            | Self::VoidInvoice(id) => Some((RecordKind::Invoice, id.uuid())),
            Self::UpdateQuote(id, _) | Self::AcceptQuote(id) | Self::DeclineQuote(id) => {
                Some((RecordKind::Quote, id.uuid()))
            }
            Self::UpdateBooking(id, _) => Some((RecordKind::Booking, id.uuid())),
            Self::UpdateJob(id, _) => Some((RecordKind::Job, id.uuid())),
        }
    }

    /// Makes the change, and returns the path of the page that shows what came of it.
    async fn run(&self, account: Account<'_>) -> Result<String, Error> {
        let (contacts, invoices, quotes) = (account.contacts(), account.invoices(), account.quotes());
        Ok(match self {
            Self::CreateContact(input) => {
                format!("/contacts/{}?notice=created", contacts.create(input.clone()).await?.id)
            }
            Self::CreateInvoice(input) => {
                format!("/invoices/{}?notice=created", invoices.create(input.clone()).await?.id)
            }
            Self::CreateQuote(input) => format!("/quotes/{}?notice=created", quotes.create(input.clone()).await?.id),
            Self::CreateBooking(input) => {
                format!("/bookings/{}?notice=created", account.bookings().create(input.clone()).await?.id)
            }
            Self::CreateJob(input) => {
                format!("/jobs/{}?notice=created", account.jobs().create(input.clone()).await?.id)
            }
            Self::UpdateContact(id, input) => {
                format!("/contacts/{}?notice=saved", contacts.update(*id, input.clone()).await?.id)
            }
            Self::UpdateInvoice(id, input) => {
                format!("/invoices/{}?notice=saved", invoices.update(*id, input.clone()).await?.id)
            }
            Self::UpdateQuote(id, input) => {
                format!("/quotes/{}?notice=saved", quotes.update(*id, input.clone()).await?.id)
            }
            Self::UpdateBooking(id, input) => {
                format!("/bookings/{}?notice=saved", account.bookings().update(*id, input.clone()).await?.id)
            }
            Self::UpdateJob(id, input) => {
                format!("/jobs/{}?notice=saved", account.jobs().update(*id, input.clone()).await?.id)
            }
            Self::DeleteContact(id) => {
                contacts.delete(*id).await?;
                "/contacts?notice=contact-deleted".to_owned()
            }
            Self::SendInvoice(id) => format!("/invoices/{}?notice=invoice-sent", invoices.send(*id).await?.id),
            Self::ResendInvoice(id) => format!("/invoices/{}?notice=invoice-resent", invoices.resend(*id).await?.id),
            Self::PayInvoice(id, amount) => {
                format!("/invoices/{}?notice=invoice-paid", invoices.pay_part(*id, *amount).await?.id)
            }
            Self::RefundInvoice(id, amount) => {
                format!("/invoices/{}?notice=invoice-refunded", invoices.refund_part(*id, *amount).await?.id)
            }
            Self::VoidInvoice(id) => format!("/invoices/{}?notice=invoice-voided", invoices.void(*id).await?.id),
            Self::AcceptQuote(id) => format!("/quotes/{}?notice=quote-accepted", quotes.accept(*id).await?.id),
            Self::DeclineQuote(id) => format!("/quotes/{}?notice=quote-declined", quotes.decline(*id).await?.id),
        })
    }
}

/// Returns a record as the API shows it.
pub(super) async fn read(account: Account<'_>, kind: RecordKind, id: Uuid) -> Result<Map<String, Value>, Error> {
    fn object(record: &impl Serialize) -> Result<Map<String, Value>, Error> {
        match serde_json::to_value(record) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(other) => Err(StoreError::Internal(format!("a record is not an object: {other}")).into()),
            Err(error) => Err(StoreError::Internal(error.to_string()).into()),
        }
    }
    match kind {
        RecordKind::Contact => object(&account.contacts().get(id.into()).await?),
        RecordKind::Invoice => object(&account.invoices().get(id.into()).await?),
        RecordKind::Quote => object(&account.quotes().get(id.into()).await?),
        RecordKind::Booking => object(&account.bookings().get(id.into()).await?),
        RecordKind::Job => object(&account.jobs().get(id.into()).await?),
    }
}

/// Returns the version of a record, for a form that changes it.
pub(super) fn version(record: &Map<String, Value>) -> &str {
    record.get("updated_at").and_then(Value::as_str).unwrap_or_default()
}

/// A change with what it depends on.
struct Sent {
    tenant: TenantId,
    change: Change,
    form: Option<Submission>,
    version: Option<String>,
}

/// Makes the change of the form that was sent, and returns the path of the page that shows what came of it. `fields` are the
/// names of its fields.
///
/// # Errors
///
/// [`Error::IdempotencyKeyReused`] if the form was sent before with other values, [`Error::PreconditionFailed`] if the record
/// is not in the version that the page showed, and those of the change.
pub(crate) async fn make(cx: &Context<'_>, tenant: TenantId, change: Change, fields: &[&str]) -> Result<String, Error> {
    let sent =
        Sent { tenant, change, form: submission(cx, fields)?, version: cx.form.given(VERSION).map(str::to_owned) };
    let made = cx.svc.transaction("dashboard.change_record", sent, async |tx, sent| {
        let account = tx.account(sent.tenant);
        let change = async {
            if let (Some((kind, id)), Some(shown)) = (sent.change.target(), &sent.version)
                && version(&read(account, kind, id).await?) != shown
            {
                return Err(Error::PreconditionFailed);
            }
            sent.change.run(account).await
        };
        once(account, sent.form.as_ref(), change).await
    });
    made.await
}

/// Returns the form that was sent, with these fields, for [`once`]. A form without a key changes as often as it is sent.
///
/// # Errors
///
/// [`Error::Validation`] if the key is none that a page made.
pub(crate) fn submission(cx: &Context<'_>, fields: &[&str]) -> Result<Option<Submission>, Error> {
    let fields = cx.form.encoded(fields);
    let form = cx.form.given(KEY).map(|key| Submission::new(key, cx.path, fields.as_bytes()));
    form.transpose().map_err(|issue| issue.on(KEY))
}

/// Makes a change in its transaction, unless the form was sent before. Returns the path of the page that shows what came of
/// it, also the second time.
///
/// # Errors
///
/// [`Error::IdempotencyKeyReused`] if the form was sent before with other values, and those of the change.
pub(crate) async fn once(
    account: Account<'_>,
    form: Option<&Submission>,
    change: impl Future<Output = Result<String, Error>> + Send,
) -> Result<String, Error> {
    let Some(form) = form else { return change.await };
    if let Some(location) = account.submitted(form).await? {
        return Ok(location);
    }
    let location = change.await?;
    account.remember_submission(form, &location).await?;
    Ok(location)
}

/// Returns a new random key for a form.
pub(crate) fn new_key(cx: &Context<'_>) -> String {
    hex::encode(cx.svc.store().env().bytes::<16>())
}

/// Returns what a person reads about a refused change.
pub(crate) fn refusal(error: Error) -> PageError {
    match error {
        Error::PreconditionFailed => PageError::Refused(
            "It was changed after this page was loaded, so nothing was done. The page shows it as it is now: check it, \
             then do it again."
                .to_owned(),
        ),
        Error::IdempotencyKeyReused => {
            PageError::Refused("This form was sent before. The page shows what came of it.".to_owned())
        }
        Error::Validation(violations) => PageError::Invalid(sentences(&violations)),
        other => other.into(),
    }
}

fn sentences(violations: &svc_core::error::Violations) -> String {
    let sentences: Vec<String> =
        violations.as_slice().iter().map(|violation| capitalized(&format!("{}.", violation.message))).collect();
    sentences.join(" ")
}
