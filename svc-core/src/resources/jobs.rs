//! Jobs: work on a site (`docs/contract.md`, "Jobs").

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::clocks::WriteTime;
use crate::accounts::platform_keys::Area;
use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::{Apply, Input, Record};
use crate::operation::{OperationText, Profile};
use crate::resources::contacts::{self, ContactId, OfContact};
use crate::resources::invoices::InvoiceId;
use crate::resources::quotes::QuoteId;
use crate::resources::starts::HasStart;
use crate::resources::{BusinessRecord, Create, Filter, NewRecord, Resource, Update, set_scale, text};
use crate::store::{RecordsByStart, RecordsOfContact, Tx};
use crate::values::EventKind;
use crate::values::{Amount, Decimal, Email, Id, JOB_SCALE, Patch, RecordKind, Text, TextEnum, TimeZone, Timestamp};

/// The id of a job.
pub type JobId = Id<Job>;

/// The status of a job. It may change from any value to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum JobStatus {
    /// The work has been offered but not agreed yet.
    Quoted,
    /// The work is planned.
    Scheduled,
    /// The work has started.
    InProgress,
    /// The work has been interrupted.
    OnHold,
    /// The work is done.
    Completed,
    /// The work has been invoiced.
    Invoiced,
    /// The work was called off.
    Cancelled,
}

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Records,
    memory: 1,
    with_article: "a job",
    singular: "job",
    plural: "jobs",
    list: OperationText::new("listJobs", "Use `job_number` to find a job by its number."),
    get: "getJob",
    create: OperationText::new(
        "createJob",
        "Creates a job, with the status `quoted` unless you send another one, and the next `job_number` of the \
         account. The name, email address and phone number of the contact are copied to the job.",
    ),
    update: OperationText::new(
        "updateJob",
        "The first change to `in_progress` sets `actual_start`, and the first change to `completed` sets `actual_end`.",
    ),
    delete: OperationText::NONE,
};

/// A job: work on a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "jobs", filter = JobFilter, profile = PROFILE)]
#[record(input)]
pub struct Job {
    /// The unique identifier of the job, a UUID of version 7 that the service assigns.
    pub id: JobId,
    /// The number of the job, such as `JOB-0001`. Assigned by the service at creation: the numbers of an account count
    /// up without gaps and are never reused.
    pub job_number: String,
    /// The work to do, as a single line.
    pub title: Text<255>,
    /// The status of the work. Updates change it, and an invoice that is made from the job makes it `invoiced`.
    pub status: JobStatus,
    /// The kind of work, in the account's own words. Null if none was given.
    pub job_type: Option<Text<100>>,
    /// How urgent the work is, in the account's own words. Null if it was not given.
    pub priority: Option<Text<100>>,
    /// The contact the work is for. Set at creation, and kept when the contact is deleted. Null if none was given.
    pub contact_id: Option<ContactId>,
    /// The first and last name of the contact, or its company name if it has neither. Copied when the job is created;
    /// later changes of the contact do not affect it. Null without a contact, or if the contact has no name.
    pub customer_name: Option<String>,
    /// The email address of the contact, copied when the job is created. Null without a contact, or if the contact has
    /// none.
    pub customer_email: Option<Email>,
    /// The telephone number of the contact, copied when the job is created. Null without a contact, or if the contact
    /// has none.
    pub customer_phone: Option<Text<50>>,
    /// The street address of the site. Set at creation. Null if it was not given.
    pub site_address: Option<Text<500>>,
    /// The suburb of the site. Set at creation. Null if it was not given.
    pub site_suburb: Option<Text<100>>,
    /// The state or province of the site. Set at creation. Null if it was not given.
    pub site_state: Option<Text<100>>,
    /// The postal code of the site. Set at creation. Null if it was not given.
    pub site_postcode: Option<Text<20>>,
    /// When the work is planned to start. Null while it is not planned.
    pub scheduled_start: Option<Timestamp>,
    /// When the work is planned to end. Never before `scheduled_start`. Null while it is not planned.
    pub scheduled_end: Option<Timestamp>,
    /// When the status first became `in_progress`. The service sets it, once. Null until then.
    pub actual_start: Option<Timestamp>,
    /// When the status first became `completed`. The service sets it, once. Null until then.
    pub actual_end: Option<Timestamp>,
    /// The estimated price, an exact number with at most two decimals and no currency. Null if there is no estimate.
    pub estimated_total: Option<Amount>,
    /// The final price, an exact number with at most two decimals and no currency. Null until an update sets it.
    pub actual_total: Option<Amount>,
    /// The quote that the job was made from. Null if it was made from none.
    pub quote_id: Option<QuoteId>,
    /// The invoice that was made from the job. Null until then.
    pub invoice_id: Option<InvoiceId>,
    /// When the job was created. Unique among the account's jobs.
    pub created_at: Timestamp,
    /// When the job last changed. Equal to `created_at` until then, and unique among the account's jobs.
    pub updated_at: Timestamp,
}

impl BusinessRecord for Job {
    const KIND: RecordKind = RecordKind::Job;
    const PERSONAL: &'static [&'static str] = &[
        "customer_name",
        "customer_email",
        "customer_phone",
        "site_address",
        "site_suburb",
        "site_state",
        "site_postcode",
    ];

    fn contact(&self) -> Option<Uuid> {
        self.contact_id.map(Into::into)
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Job, "job_number", &self.job_number))
    }

    fn named(text: &str) -> Option<JobFilter> {
        let number = Text::parse(text).ok()?;
        Some(JobFilter { job_number: Some(number), ..JobFilter::none() })
    }

    fn title(&self) -> String {
        self.job_number.clone()
    }

    fn details(&self, _: &TimeZone) -> Vec<String> {
        let details = [Some(self.title.as_str()), self.customer_name.as_deref(), text(&self.site_suburb)];
        details.into_iter().flatten().map(str::to_owned).collect()
    }

    fn searched(&self) -> Vec<Option<&str>> {
        vec![
            Some(&self.job_number),
            Some(self.title.as_str()),
            self.customer_name.as_deref(),
            self.customer_email.as_ref().map(Email::as_str),
            self.phone(),
            text(&self.site_suburb),
        ]
    }

    fn phone(&self) -> Option<&str> {
        text(&self.customer_phone)
    }

    fn check(&mut self) -> Result<(), Error> {
        for (field, total) in [("estimated_total", &mut self.estimated_total), ("actual_total", &mut self.actual_total)]
        {
            total.as_mut().map_or(Ok(()), |total| set_scale(field, total, JOB_SCALE))?;
        }
        self.check_schedule()
    }
}

impl OfContact for Job {
    fn of_contact(tx: &mut dyn Tx) -> &mut dyn RecordsOfContact<Self> {
        tx
    }
}

impl HasStart for Job {
    fn start(&self) -> Option<Timestamp> {
        self.scheduled_start
    }

    fn by_start(tx: &mut dyn Tx) -> &mut dyn RecordsByStart<Self> {
        tx
    }
}

/// A new job.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Job)]
pub struct JobCreate {
    /// The work to do. Must be a single line.
    pub title: Text<255>,
    /// The initial status of the work. If it is left out, it is `quoted`. A job that is created as `scheduled` or
    /// `completed` fires the event of that name after `job.created`.
    pub status: Patch<JobStatus>,
    /// The contact the work is for: the `id` of a contact of the account that is not deleted. Its name, email address
    /// and telephone number are copied to the job.
    pub contact_id: Option<ContactId>,
    /// The kind of work, in your own words. Must be a single line.
    pub job_type: Option<Text<100>>,
    /// How urgent the work is, in your own words. Must be a single line.
    pub priority: Option<Text<100>>,
    /// The street address of the site. Must be a single line. It cannot be changed later.
    pub site_address: Option<Text<500>>,
    /// The suburb of the site. Must be a single line. It cannot be changed later.
    pub site_suburb: Option<Text<100>>,
    /// The state or province of the site. Must be a single line. It cannot be changed later.
    pub site_state: Option<Text<100>>,
    /// The postal code of the site. Must be a single line. It cannot be changed later.
    pub site_postcode: Option<Text<20>>,
    /// When the work is planned to start, in RFC 3339 with an offset.
    pub scheduled_start: Option<Timestamp>,
    /// When the work is planned to end, in RFC 3339 with an offset. It must not be before `scheduled_start`; they may be
    /// equal.
    pub scheduled_end: Option<Timestamp>,
    /// The estimated price with at most two decimals, without a currency.
    pub estimated_total: Option<Decimal>,
}

impl JobCreate {
    /// Returns a job with this title and nothing else.
    pub fn new(title: Text<255>) -> Self {
        Self {
            title,
            status: Patch::Keep,
            contact_id: None,
            job_type: None,
            priority: None,
            site_address: None,
            site_suburb: None,
            site_state: None,
            site_postcode: None,
            scheduled_start: None,
            scheduled_end: None,
            estimated_total: None,
        }
    }
}

/// Changes to a job. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[input(record = Job, patch)]
#[apply(to = Job)]
pub struct JobUpdate {
    /// The work to do. Must be a single line.
    pub title: Patch<Text<255>>,
    /// The new status of the work. Any status may follow any other. A change to `scheduled` or `completed` fires the
    /// event of that name. The first change to `in_progress` sets `actual_start`, and the first to `completed` sets
    /// `actual_end`.
    #[apply(skip)]
    pub status: Patch<JobStatus>,
    /// The kind of work, in your own words. Must be a single line. Null clears it.
    pub job_type: Patch<Option<Text<100>>>,
    /// How urgent the work is, in your own words. Must be a single line. Null clears it.
    pub priority: Patch<Option<Text<100>>>,
    /// When the work is planned to start, in RFC 3339 with an offset. Null clears it.
    pub scheduled_start: Patch<Option<Timestamp>>,
    /// When the work is planned to end, in RFC 3339 with an offset. It must not be before `scheduled_start` once the
    /// change is applied. Null clears it.
    pub scheduled_end: Patch<Option<Timestamp>>,
    /// The estimated price with at most two decimals, without a currency. Null clears it.
    #[apply(skip)]
    pub estimated_total: Patch<Option<Decimal>>,
    /// The final price with at most two decimals, without a currency. Null clears it.
    #[apply(skip)]
    pub actual_total: Patch<Option<Decimal>>,
}

/// The filters of the list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Input)]
pub struct JobFilter {
    /// Returns only jobs with this status.
    pub status: Option<JobStatus>,
    /// Returns only the job with exactly this `job_number`.
    pub job_number: Option<Text<255>>,
}

impl Filter<Job> for JobFilter {
    fn none() -> Self {
        Self { status: None, job_number: None }
    }
    fn matches(&self, row: &Job) -> bool {
        self.status.is_none_or(|status| status == row.status)
            && self.job_number.as_ref().is_none_or(|number| number.as_str() == row.job_number)
    }
}

/// Converts the decimal of a field to an amount with two decimals.
fn amount(field: &str, decimal: Option<Decimal>) -> Result<Option<Amount>, Error> {
    let exact = |decimal: Decimal| decimal.to_amount(JOB_SCALE).map_err(|error| Issue::from(error).on(field));
    decimal.map(exact).transpose()
}

impl Job {
    /// Checks that the planned end is not before the planned start.
    pub(crate) fn check_schedule(&self) -> Result<(), Error> {
        match (self.scheduled_start, self.scheduled_end) {
            (Some(start), Some(end)) if end < start => {
                Err(Issue::new(FieldCode::OutOfRange, "must not be before scheduled_start").on("scheduled_end"))
            }
            _ => Ok(()),
        }
    }

    /// Changes the status, and sets the time of a first start or end.
    fn set_status(&mut self, status: JobStatus, at: WriteTime) {
        if self.status == status {
            return;
        }
        self.status = status;
        self.record_actual_times(at);
    }

    /// Sets `actual_start` or `actual_end` when the job first has the status for it.
    fn record_actual_times(&mut self, at: WriteTime) {
        match self.status {
            JobStatus::InProgress => self.actual_start = self.actual_start.or(Some(at.wall_clock)),
            JobStatus::Completed => self.actual_end = self.actual_end.or(Some(at.wall_clock)),
            _ => {}
        }
    }
}

#[async_trait]
impl Create for Job {
    type Input = JobCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: JobCreate) -> Result<Self, Error> {
        let mut job = Self {
            id: new.id.into(),
            job_number: String::new(),
            title: input.title,
            status: input.status.unwrap_or(JobStatus::Quoted),
            job_type: input.job_type,
            priority: input.priority,
            contact_id: input.contact_id,
            customer_name: None,
            customer_email: None,
            customer_phone: None,
            site_address: input.site_address,
            site_suburb: input.site_suburb,
            site_state: input.site_state,
            site_postcode: input.site_postcode,
            scheduled_start: input.scheduled_start,
            scheduled_end: input.scheduled_end,
            actual_start: None,
            actual_end: None,
            estimated_total: amount("estimated_total", input.estimated_total)?,
            actual_total: None,
            quote_id: None,
            invoice_id: None,
            created_at: new.now,
            updated_at: new.now,
        };
        job.check_schedule()?;
        job.record_actual_times(WriteTime::new(tx, new.now));
        if let Some(id) = input.contact_id {
            let contact = contacts::referenced(tx, new.tenant_id, id).await?;
            let names: Vec<&str> =
                [&contact.first_name, &contact.last_name].into_iter().flatten().map(Text::as_str).collect();
            let company = contact.company_name.as_ref().map(|name| name.as_str().to_owned());
            job.customer_name = if names.is_empty() { company } else { Some(names.join(" ")) };
            job.customer_email = contact.email;
            job.customer_phone = contact.phone;
        }
        job.job_number = tenants::next_number(tx, new.tenant_id, NumberKind::Job).await?;
        Ok(job)
    }

    fn created_events(&self) -> Vec<EventKind> {
        let mut events = vec![EventKind::JobCreated];
        events.extend(status_event(self.status));
        events
    }
}

/// Returns the event that a change to this status fires before `job.updated`.
fn status_event(status: JobStatus) -> Option<EventKind> {
    match status {
        JobStatus::Scheduled => Some(EventKind::JobScheduled),
        JobStatus::Completed => Some(EventKind::JobCompleted),
        _ => None,
    }
}

#[async_trait]
impl Update for Job {
    type Input = JobUpdate;

    fn apply(&mut self, change: JobUpdate, at: WriteTime) -> Result<(), Error> {
        if let Patch::Set(status) = change.status {
            self.set_status(status, at);
        }
        if let Patch::Set(total) = change.estimated_total {
            self.estimated_total = amount("estimated_total", total)?;
        }
        if let Patch::Set(total) = change.actual_total {
            self.actual_total = amount("actual_total", total)?;
        }
        change.apply_to(self);
        self.check_schedule()
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    fn changed_events(&self, before: &Self) -> Vec<EventKind> {
        let mut events = Vec::with_capacity(2);
        if self.status != before.status {
            events.extend(status_event(self.status));
        }
        events.push(EventKind::JobUpdated);
        events
    }
}
