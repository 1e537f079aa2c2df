//! `svc job`.

use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::Listing;
use svc_core::platform::operations::Records;
use svc_core::resources::jobs::{Job, JobCreate, JobFilter, JobUpdate};
use svc_core::values::JOB_SCALE;

use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use crate::output::amount;

impl ResourceCommands for Job {
    type ListFilter = Listing<SearchParams, JobFilter>;
    type Create = JobCreate;
    type Update = JobUpdate;
    type Creation = Self;
    const KIND: KindInAccount = KindInAccount::Job;
    const LIST: ListOperation<Self> = Records::<Self>::SEARCH;
    const CREATE: CreateOperation<Self> = Records::<Self>::CREATE;
    const UPDATE: UpdateOperation<Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--title 'Replace the boiler' --contact b27d40aa91c3 --status scheduled";
    const UPDATE_EXAMPLE: &'static str = "--status in_progress";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "job_number"),
        ("STATUS", "status"),
        ("TITLE", "title"),
        ("START", "scheduled_start"),
        ("CUSTOMER", "customer_name"),
        ("ESTIMATE", "estimated_total"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "job_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        let totals = [("estimated_total", self.estimated_total), ("actual_total", self.actual_total)];
        totals.into_iter().filter_map(|(name, total)| Some((name, amount(total?, JOB_SCALE)))).collect()
    }
}
