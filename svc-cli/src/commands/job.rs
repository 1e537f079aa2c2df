//! `svc job`.

use svc_core::platform::Operation;
use svc_core::platform::operations::Records;
use svc_core::resources::jobs::Job;
use svc_core::values::{Id, TenantId};

use super::records::{self, Managed};
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::times::{full, full_or_dash};

impl Managed for Job {
    type Created = Self;
    const CREATE: Operation<TenantId, Self::Create, Self> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;

    fn created(created: Self) -> Result<Outcome, Failure> {
        records::created(&created)
    }

    fn title(&self) -> String {
        self.job_number.clone()
    }

    fn table(jobs: &[Self]) -> Table {
        Table::new(["ID", "NUMBER", "STATUS", "TITLE", "START", "CUSTOMER", "ESTIMATE", "CREATED"], jobs, |job| {
            [
                job.id.to_string(),
                job.job_number.clone(),
                state(job.status),
                job.title.to_string(),
                full_or_dash(job.scheduled_start),
                or_dash(job.customer_name.as_ref()),
                or_dash(job.estimated_total),
                full(job.created_at),
            ]
        })
    }
}
