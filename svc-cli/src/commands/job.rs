//! `svc job`.

use clap::Subcommand;
use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::Listing;
use svc_core::platform::operations::{self, Records};
use svc_core::resources::conversions::JobInvoicing;
use svc_core::resources::jobs::{Job, JobCreate, JobFilter, JobUpdate};
use svc_core::values::{Date, Decimal, JOB_SCALE};

use super::lookup;
use super::records::{self, RecordCommand};
use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use crate::exit::Failure;
use crate::ids::Target;
use crate::output::{Outcome, amount, money};
use crate::session::Session;

/// Manage jobs, and make their invoices.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc job invoice 4c1f0b7da962")]
pub(crate) enum JobCommand {
    #[command(flatten)]
    Records(RecordCommand<Job>),
    /// Make the invoice of a job, a draft.
    ///
    /// The invoice has the contact of the job. The currency is that of the job's quote, or else that of the account.
    #[command(after_help = "Examples:\n  svc job invoice 4c1f0b7da962\n  \
                      svc job invoice 4c1f0b7da962 --total 480 --due 2026-05-01")]
    Invoice {
        #[command(flatten)]
        target: Target,
        /// Amount to pay. The default is the final price of the job, or else its estimate.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        total: Option<Decimal>,
        /// Last day on which the invoice can be paid before it is overdue.
        #[arg(long, value_parser = Date::parse, value_name = "DATE")]
        due: Option<Date>,
    },
}

pub(crate) async fn run(session: &Session, command: JobCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        JobCommand::Records(command) => records::run(session, service, command).await,
        JobCommand::Invoice { target, total, due } => {
            let input = JobInvoicing { total, due_date: due };
            let invoice = lookup::call(service, &target, &operations::INVOICE_JOB, input).await?;
            let total = money(invoice.total, invoice.currency);
            Outcome::new(&invoice, format!("Invoice {} was created: {total}.", invoice.invoice_number))
        }
    }
}

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
