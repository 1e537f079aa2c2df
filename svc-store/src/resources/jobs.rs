//! The table of jobs.

use svc_core::resources::jobs::{Job, JobFilter};
use svc_core::values::TenantId;

use crate::column::Param;
use crate::table::{Query, ResourceTable, StartTable, record};

record!(Job, "jobs", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, created_at],
    updated: [
        job_number, title, status, job_type, priority, contact_id, customer_name, customer_email, customer_phone,
        site_address, site_suburb, site_state, site_postcode, scheduled_start, scheduled_end, actual_start, actual_end,
        estimated_total, actual_total, quote_id, invoice_id, updated_at,
    ],
});

impl ResourceTable for Job {
    fn restrict(filter: &JobFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
        if let Some(number) = &filter.job_number {
            query.equals("job_number", Param::Text(number.to_string().into()));
        }
    }
}

impl StartTable for Job {
    const START: &'static str = "scheduled_start";
}
