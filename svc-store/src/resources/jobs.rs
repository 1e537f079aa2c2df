//! Rows of jobs.

use svc_core::resources::jobs::{Job, JobFilter};

use crate::sql::Param;
use crate::table::{Query, table};

table!(Job, "jobs", soft_delete: false, [
    id, job_number, title, status, job_type, priority, contact_id, customer_name, customer_email, customer_phone,
    site_address, site_suburb, site_state, site_postcode, scheduled_start, scheduled_end, actual_start, actual_end,
    estimated_total, actual_total, quote_id, invoice_id, created_at, updated_at,
] {
    fn restrict(filter: &JobFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
        if let Some(number) = &filter.job_number {
            query.equals("job_number", Param::Text(number.to_string().into()));
        }
    }
});
