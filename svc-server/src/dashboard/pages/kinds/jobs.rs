//! The pages of jobs.

use svc_core::platform::operations::Records;
use svc_core::prelude::{Job, JobStatus};
use svc_core::values::RecordKind;

use super::Control::{Amount, Choice, Line};
use super::FormPurpose::{Edited, New};
use super::{Kind, OPTIONAL_CONTACT_HINT, bulk, contact, field, time};

/// The statuses of jobs that are not invoiced.
const OPEN: &[&str] = &["quoted", "scheduled", "in_progress", "on_hold", "completed", "cancelled"];

pub(crate) const JOBS: Kind = Kind {
    records: RecordKind::Job,
    collection: "jobs",
    title: "Jobs",
    one: "job",
    icon: "job",
    statuses,
    name: &["job_number"],
    columns: &[
        ("Title", "title"),
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Scheduled", "scheduled_start"),
        ("Estimate", "estimated_total"),
    ],
    file: "id job_number title contact_id contact customer_name customer_email customer_phone status job_type \
        priority site_address site_suburb site_state site_postcode scheduled_start scheduled_end \
        actual_start actual_end estimated_total actual_total quote_id invoice_id created_at updated_at",
    form: &[
        field("title", "Title", Line, ""),
        field("status", "Status", Choice(statuses), ""),
        contact(OPTIONAL_CONTACT_HINT).only(New),
        field("job_type", "Type", Line, ""),
        field("priority", "Priority", Line, ""),
        field("site_address", "Address of the site", Line, "").only(New),
        field("site_suburb", "Suburb", Line, "").only(New),
        field("site_state", "State", Line, "").only(New),
        field("site_postcode", "Postcode", Line, "").only(New),
        time("scheduled_start", "scheduled_start_offset", "Planned start", ""),
        time("scheduled_end", "scheduled_end_offset", "Planned end", ""),
        field("estimated_total", "Estimate", Amount, "Such as 149.50."),
        field("actual_total", "Final price", Amount, "Such as 149.50.").only(Edited),
    ],
    create: &Records::<Job>::CREATE,
    update: &Records::<Job>::UPDATE,
    bulk: &[
        bulk("scheduled", "Mark as scheduled", &Records::<Job>::UPDATE, r#"{"status":"scheduled"}"#, OPEN),
        bulk("in_progress", "Mark as in progress", &Records::<Job>::UPDATE, r#"{"status":"in_progress"}"#, OPEN),
        bulk("on_hold", "Put on hold", &Records::<Job>::UPDATE, r#"{"status":"on_hold"}"#, OPEN),
        bulk("completed", "Mark as completed", &Records::<Job>::UPDATE, r#"{"status":"completed"}"#, OPEN),
        bulk("cancelled", "Cancel", &Records::<Job>::UPDATE, r#"{"status":"cancelled"}"#, OPEN),
    ],
};

fn statuses() -> Vec<&'static str> {
    JobStatus::ALL.iter().map(|status| status.as_str()).collect()
}
