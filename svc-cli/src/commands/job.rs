//! `svc job`.

use svc_core::resources::crud;
use svc_core::resources::jobs::{Job, JobCreate, JobUpdate};
use svc_core::store::Tx;
use svc_core::values::{Id, TenantId};

use super::lookup::Lookup;
use super::records::Managed;
use crate::output::{Table, or_dash, state};
use crate::times::{full, full_or_dash};

impl Managed for Job {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: JobCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: JobUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
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
