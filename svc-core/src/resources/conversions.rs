//! From a quote to its job, and from a job to its invoice: what a business sold becomes work, and then money.
//!
//! Each conversion changes both records and fires the events of both in one transaction. A record is converted once: a second
//! conversion is refused with the id of what came of the first.

use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::error::{Error, FieldCode, Issue};
use crate::input::Input;
use crate::resources::invoices::{self, Invoice, InvoiceCreate};
use crate::resources::jobs::{Job, JobCreate, JobId, JobStatus, JobUpdate};
use crate::resources::quotes::{self, Quote, QuoteId, QuoteStatus, QuoteUpdate};
use crate::resources::{Create as _, NewRecord, Update as _, crud};
use crate::store::{RecordsOfContact, Tx};
use crate::values::{Amount, Date, Decimal, JOB_SCALE, Patch, TenantId, Text, Timestamp};

/// The number of jobs of a contact that are read at a time.
const PAGE: u32 = 100;

/// The input of the conversion of a quote to a job.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct QuoteConversion {
    /// The title of the job, as a single line. Without it, or with null, it is `Work for` and the number of the quote.
    pub title: Option<Text<255>>,
}

/// The input of the invoice of a job.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct JobInvoicing {
    /// The amount to pay. Without it, or with null, it is the `actual_total` of the job, or its `estimated_total` if it has
    /// no other.
    pub total: Option<Decimal>,
    /// The last day on which the invoice can be paid before it is overdue. Without it, or with null, it follows from the account's
    /// `days_until_due`, if that is set.
    pub due_date: Option<Date>,
}

/// Makes the job of a quote, for its contact and with its total as the estimate. The quote becomes `converted`. One that the
/// customer has not decided on is accepted first.
///
/// Fires `job.created`, and of the quote `quote.accepted` if it was not accepted before, and `quote.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::AlreadyConverted`] with the id of the job that the quote has; [`Error::NotAllowed`] if the
/// quote was not sent, was declined or has expired; `reference_not_found` if its contact was deleted.
pub async fn job_of_quote(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: QuoteId,
    input: QuoteConversion,
) -> Result<Job, Error> {
    advance_clock(tx, tenant).await?;
    let quote: Quote = crud::get(tx, tenant, id).await?;
    let number = &quote.quote_number;
    if let Some(job) = existing_job(tx, tenant, &quote).await? {
        let reason = format!("{number} has the job {} already.", job.job_number);
        return Err(Error::AlreadyConverted { reason, existing_id: job.id.uuid() });
    }
    match quote.status {
        QuoteStatus::Sent | QuoteStatus::Viewed => drop(quotes::accept(tx, tenant, id).await?),
        QuoteStatus::Accepted => {}
        status => {
            return Err(Error::NotAllowed(format!("{number} is {status}; only an accepted quote becomes a job.")));
        }
    }
    let now = advance_clock(tx, tenant).await?;
    let title = match input.title {
        Some(title) => title,
        None => Text::parse(&format!("Work for {number}")).map_err(|issue| issue.on("title"))?,
    };
    let create = JobCreate { contact_id: quote.contact_id, ..JobCreate::new(title) };
    let new = NewRecord { tenant_id: tenant, id: tx.env().id(now), now };
    let mut job = Job::build(tx, new, create).await?;
    job.quote_id = Some(id);
    // A job has two decimals. Of a currency with more, a total that needs them is no estimate.
    job.estimated_total = quote.total.with_scale(JOB_SCALE).ok();
    crud::insert(tx, tenant, now, &job).await?;
    let converted = QuoteUpdate { status: Patch::Set(QuoteStatus::Converted), ..QuoteUpdate::default() };
    crud::update(tx, tenant, id, converted).await?;
    Ok(job)
}

/// Returns the job that a quote has become. It has the contact of the quote, and came later.
async fn existing_job(tx: &mut dyn Tx, tenant: TenantId, quote: &Quote) -> Result<Option<Job>, Error> {
    let (Some(contact), mut before) = (quote.contact_id, Timestamp::MAX) else { return Ok(None) };
    loop {
        let jobs: &mut dyn RecordsOfContact<Job> = tx;
        let jobs = jobs.records_of_contact(tenant, contact, before, PAGE).await?;
        let oldest =
            jobs.last().map(|job| job.created_at).filter(|at| jobs.len() == PAGE as usize && *at > quote.created_at);
        if let Some(job) = jobs.into_iter().find(|job| job.quote_id == Some(quote.id)) {
            return Ok(Some(job));
        }
        let Some(oldest) = oldest else { return Ok(None) };
        before = oldest;
    }
}

/// Makes the invoice of a job, for its contact and as a draft. The job becomes `invoiced`.
///
/// The currency is that of the quote that the job came from, or else that of the account. Fires `invoice.created` and
/// `job.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::AlreadyConverted`] with the id of the invoice that the job has; [`Error::NotAllowed`] if the job
/// is cancelled; [`Error::Validation`] if there is no amount, or it has more decimals than the currency;
/// `reference_not_found` if its contact was deleted.
pub async fn invoice_of_job(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: JobId,
    input: JobInvoicing,
) -> Result<Invoice, Error> {
    advance_clock(tx, tenant).await?;
    let job: Job = crud::get(tx, tenant, id).await?;
    let number = &job.job_number;
    if let Some(id) = job.invoice_id {
        let invoice: Invoice = crud::get(tx, tenant, id).await?;
        let reason = format!("{number} has the invoice {} already.", invoice.invoice_number);
        return Err(Error::AlreadyConverted { reason, existing_id: id.uuid() });
    }
    if job.status == JobStatus::Cancelled {
        return Err(Error::NotAllowed(format!("{number} is cancelled; it cannot be invoiced.")));
    }
    let quote: Option<Quote> = match job.quote_id {
        Some(quote) => Some(crud::get(tx, tenant, quote).await?),
        None => None,
    };
    let of_job = || job.actual_total.or(job.estimated_total).map(decimal).transpose();
    let Some(total) = input.total.map(Ok).or_else(|| of_job().transpose()).transpose()? else {
        let message = "is required, as the job has neither actual_total nor estimated_total";
        return Err(Issue::new(FieldCode::Required, message).on("total"));
    };
    let create = InvoiceCreate {
        contact_id: job.contact_id,
        currency: quote.map(|quote| quote.currency),
        due_date: input.due_date,
        ..InvoiceCreate::new(total)
    };
    let invoice = invoices::create(tx, tenant, create).await?;
    let now = advance_clock(tx, tenant).await?;
    let mut invoiced = job.clone();
    let status = JobUpdate { status: Patch::Set(JobStatus::Invoiced), ..JobUpdate::default() };
    invoiced.apply(status, WriteTime::new(tx, now))?;
    invoiced.invoice_id = Some(invoice.id);
    crud::store_change(tx, tenant, now, &job, invoiced).await?;
    Ok(invoice)
}

fn decimal(amount: Amount) -> Result<Decimal, Error> {
    Decimal::parse(&amount.to_string()).map_err(|issue| issue.on("total"))
}
