//! Jobs of an account.

use futures_util::stream::BoxStream;

use super::Account;
use super::executor::operation;
use super::records::Records;
use crate::error::Error;
use crate::pages::{ListParams, Page};
use crate::resources::jobs::{Job, JobCreate, JobFilter, JobId, JobUpdate};
use crate::values::Timestamp;

/// The jobs of an account: work on a site.
#[derive(Clone, Copy)]
pub struct Jobs<'e> {
    records: Records<'e, Job>,
}

impl<'e> Jobs<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { records: Records::new(account.runner, account.id) }
    }

    /// Creates a job, and fires its event.
    ///
    /// # Errors
    /// [`Error::Validation`] and the other errors of the rules; [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let job = svc.account(tenant).jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// assert_eq!(job.job_number, "JOB-0001");
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: JobCreate) -> Result<Job, Error> {
        self.records.create(operation!("svc.jobs.create"), input).await
    }

    /// Returns the job with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such job.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// assert_eq!(svc.account(tenant).jobs().get(job.id).await?, job);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: JobId) -> Result<Job, Error> {
        self.records.get(operation!("svc.jobs.get"), id).await
    }

    /// Returns a page of the jobs, newest first, or in the order of their changes with `updated_since`.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned by this list with these filters.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// let page = svc.account(tenant).jobs().list(JobFilter::default(), ListParams::default()).await?;
    /// assert_eq!((page.data, page.next_cursor), (vec![job], None));
    /// # Ok(()) });
    /// ```
    pub async fn list(self, filter: JobFilter, params: ListParams) -> Result<Page<Job>, Error> {
        self.records.list(operation!("svc.jobs.list"), filter, params).await
    }

    /// Streams the jobs, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
    /// is bounded however many there are. What is created after the stream began is not part of it.
    ///
    /// Use [`StreamExt`](futures_util::StreamExt) or [`TryStreamExt`](futures_util::TryStreamExt) of the crate
    /// `futures-util` to take its items.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// let mut all = svc.account(tenant).jobs().stream(JobFilter::default());
    /// while let Some(job) = all.try_next().await? {
    ///     println!("{}", job.id);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream(self, filter: JobFilter) -> BoxStream<'e, Result<Job, Error>> {
        self.records.stream(operation!("svc.jobs.list"), filter, None)
    }

    /// Streams the jobs that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// job that changes while the stream runs comes again.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// let since = job.updated_at;
    /// let changed: Vec<_> = svc.account(tenant).jobs().changed_since(JobFilter::default(), since).try_collect().await?;
    /// assert_eq!(changed, [job]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, filter: JobFilter, since: Timestamp) -> BoxStream<'e, Result<Job, Error>> {
        self.records.stream(operation!("svc.jobs.list"), filter, Some(since))
    }

    /// Changes the job, and fires its events. A change without effect fires none.
    ///
    /// # Errors
    /// [`Error::NotFound`], and the errors of the rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// let change = JobUpdate { status: Patch::Set(JobStatus::Completed), ..JobUpdate::default() };
    /// let job = svc.account(tenant).jobs().update(job.id, change).await?;
    /// assert!(job.actual_end.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: JobId, change: JobUpdate) -> Result<Job, Error> {
        self.records.update(operation!("svc.jobs.update"), id, change).await
    }
}
