//! Jobs: work on a site (contract, "Job").

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::{input, record};
use crate::resources::contacts;
use crate::resources::crud::{Create, Filter, NewRecord, Update, resource};
use crate::store::Tx;
use crate::values::EventKind;
use crate::values::{Amount, Decimal, Email, JOB_SCALE, Patch, Text, Timestamp, text_enum};

text_enum! {
    /// State of a job; any may follow any other.
    pub enum JobStatus {
        Quoted = "quoted",
        Scheduled = "scheduled",
        InProgress = "in_progress",
        OnHold = "on_hold",
        Completed = "completed",
        Invoiced = "invoiced",
        Cancelled = "cancelled",
    }
}

record! {
    /// Work on a site.
    pub struct Job {
        /// Identifier.
        pub id: Uuid,
        /// `JOB-0001`, counted per account without gaps.
        pub job_number: String,
        /// What is to be done.
        pub title: Text<255>,
        /// State.
        pub status: JobStatus,
        /// Kind of work.
        pub job_type: Option<Text<100>>,
        /// Urgency.
        pub priority: Option<Text<100>>,
        /// Whom it is for.
        pub contact_id: Option<Uuid>,
        /// Name of the contact when the job was created.
        pub customer_name: Option<String>,
        /// Email of the contact when the job was created.
        pub customer_email: Option<Email>,
        /// Telephone number of the contact when the job was created.
        pub customer_phone: Option<Text<50>>,
        /// Street address of the site.
        pub site_address: Option<Text<500>>,
        /// Suburb of the site.
        pub site_suburb: Option<Text<100>>,
        /// State or province of the site.
        pub site_state: Option<Text<100>>,
        /// Postal code of the site.
        pub site_postcode: Option<Text<20>>,
        /// Planned begin.
        pub scheduled_start: Option<Timestamp>,
        /// Planned end, not before the planned begin.
        pub scheduled_end: Option<Timestamp>,
        /// When the job first was in progress.
        pub actual_start: Option<Timestamp>,
        /// When the job first was completed.
        pub actual_end: Option<Timestamp>,
        /// Estimated price, exact to two decimals.
        pub estimated_total: Option<Amount>,
        /// Final price, exact to two decimals.
        pub actual_total: Option<Amount>,
        /// The quote it came from.
        pub quote_id: Option<Uuid>,
        /// The invoice it went into.
        pub invoice_id: Option<Uuid>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }
}

resource!(Job, "jobs", JobFilter);

input! {
    /// A new job.
    pub struct JobCreate for Job {
        /// What is to be done.
        title: Text<255>,
        /// State.
        status: Patch<JobStatus> = "quoted",
        /// A live contact of the account, whose name, email and telephone number are copied.
        contact_id: Option<Uuid>,
        /// Kind of work.
        job_type: Option<Text<100>>,
        /// Urgency.
        priority: Option<Text<100>>,
        /// Street address of the site.
        site_address: Option<Text<500>>,
        /// Suburb of the site.
        site_suburb: Option<Text<100>>,
        /// State or province of the site.
        site_state: Option<Text<100>>,
        /// Postal code of the site.
        site_postcode: Option<Text<20>>,
        /// Planned begin.
        scheduled_start: Option<Timestamp>,
        /// Planned end, not before the planned begin.
        scheduled_end: Option<Timestamp>,
        /// Estimated price with at most two decimals.
        estimated_total: Option<Decimal>,
    }
}

input! {
    /// Changes to a job: what is left out stays, null clears.
    pub struct JobUpdate for Job, patch true {
        /// What is to be done.
        title: Patch<Text<255>>,
        /// State; any may follow any other.
        status: Patch<JobStatus>,
        /// Kind of work.
        job_type: Patch<Option<Text<100>>>,
        /// Urgency.
        priority: Patch<Option<Text<100>>>,
        /// Planned begin.
        scheduled_start: Patch<Option<Timestamp>>,
        /// Planned end, not before the planned begin.
        scheduled_end: Patch<Option<Timestamp>>,
        /// Estimated price with at most two decimals.
        estimated_total: Patch<Option<Decimal>>,
        /// Final price with at most two decimals.
        actual_total: Patch<Option<Decimal>>,
    }
}

input! {
    /// Filters of the list of jobs.
    pub struct JobFilter, derive Serialize {
        /// Only jobs in this state.
        status: Option<JobStatus>,
        /// Only the job with exactly this number.
        job_number: Option<Text<255>>,
    }
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

fn amount(field: &str, decimal: Option<Decimal>) -> Result<Option<Amount>, Error> {
    let exact = |decimal: Decimal| decimal.to_amount(JOB_SCALE).map_err(|error| Issue::from(error).on(field));
    decimal.map(exact).transpose()
}

impl Job {
    fn check_schedule(&self) -> Result<(), Error> {
        match (self.scheduled_start, self.scheduled_end) {
            (Some(start), Some(end)) if end < start => {
                Err(Issue::new(FieldCode::OutOfRange, "must not be before scheduled_start").on("scheduled_end"))
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, status: JobStatus, now: Timestamp) {
        if self.status == status {
            return;
        }
        self.status = status;
        self.stamp(now);
    }

    /// The first entry into work and into completion is kept, later ones are not.
    fn stamp(&mut self, now: Timestamp) {
        match self.status {
            JobStatus::InProgress => self.actual_start = self.actual_start.or(Some(now)),
            JobStatus::Completed => self.actual_end = self.actual_end.or(Some(now)),
            _ => {}
        }
    }
}

#[async_trait]
impl Create for Job {
    type Input = JobCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: JobCreate) -> Result<Self, Error> {
        let mut job = Self {
            id: new.id,
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
        job.stamp(new.now);
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

/// The event that entering a state fires besides the general one.
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

    fn apply(&mut self, change: JobUpdate, now: Timestamp) -> Result<(), Error> {
        change.title.apply(&mut self.title);
        if let Patch::Set(status) = change.status {
            self.enter(status, now);
        }
        change.job_type.apply(&mut self.job_type);
        change.priority.apply(&mut self.priority);
        change.scheduled_start.apply(&mut self.scheduled_start);
        change.scheduled_end.apply(&mut self.scheduled_end);
        if let Patch::Set(total) = change.estimated_total {
            self.estimated_total = amount("estimated_total", total)?;
        }
        if let Patch::Set(total) = change.actual_total {
            self.actual_total = amount("actual_total", total)?;
        }
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
