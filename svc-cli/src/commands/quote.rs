//! `svc quote`.

use clap::Subcommand;
use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::Listing;
use svc_core::platform::operations::{self, Records};
use svc_core::resources::conversions::QuoteConversion;
use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteFilter, QuoteUpdate};
use svc_core::values::Text;

use super::lookup;
use super::records::{self, RecordCommand};
use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use super::share::{self, AddressArgs};
use crate::exit::Failure;
use crate::ids::Target;
use crate::output::{Outcome, money};
use crate::session::Session;

/// Manage quotes, record that the customer accepted or declined them, and make their jobs.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc quote accept d5630e8f27ac")]
pub(crate) enum QuoteCommand {
    #[command(flatten)]
    Records(RecordCommand<Quote>),
    /// Record that the customer accepted a sent quote that has not expired.
    #[command(after_help = "Example:\n  svc quote accept d5630e8f27ac")]
    Accept(Target),
    /// Record that the customer declined a sent quote.
    #[command(after_help = "Example:\n  svc quote decline d5630e8f27ac")]
    Decline(Target),
    /// Make the job of an accepted quote.
    ///
    /// The job has the contact of the quote, and its total as the estimate. A sent quote is accepted first.
    #[command(after_help = "Example:\n  svc quote convert d5630e8f27ac --title 'Replace the boiler'")]
    Convert {
        #[command(flatten)]
        target: Target,
        /// Title of the job. The default is "Work for" and the number of the quote.
        #[arg(long, value_parser = Text::<255>::parse)]
        title: Option<Text<255>>,
    },
    /// Print the address at which the customer sees a quote, and can accept or decline it once it is sent, without signing in.
    ///
    /// The address is made if there is none, and stays the same until it is renewed or revoked.
    #[command(after_help = "Examples:\n  svc quote share d5630e8f27ac --url https://api.example.com\n  \
                      svc quote share d5630e8f27ac --revoke")]
    Share {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        address: AddressArgs,
    },
}

impl ResourceCommands for Quote {
    type ListFilter = Listing<SearchParams, QuoteFilter>;
    type Create = QuoteCreate;
    type Update = QuoteUpdate;
    type Creation = Self;
    const KIND: KindInAccount = KindInAccount::Quote;
    const LIST: ListOperation<Self> = Records::<Self>::SEARCH;
    const CREATE: CreateOperation<Self> = Records::<Self>::CREATE;
    const UPDATE: UpdateOperation<Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--contact b27d40aa91c3 --total 1500 --valid-until 2026-04-13";
    const UPDATE_EXAMPLE: &'static str = "--status sent";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "quote_number"),
        ("STATUS", "status"),
        ("TOTAL", "total"),
        ("CONTACT", "contact_id"),
        ("VALID UNTIL", "valid_until"),
        ("ISSUED", "issue_date"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "quote_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("total", money(self.total, self.currency))]
    }
}

pub(crate) async fn run(session: &Session, command: QuoteCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        QuoteCommand::Records(command) => records::run(session, service, command).await,
        QuoteCommand::Accept(target) => {
            let quote = lookup::call(service, &target, &operations::ACCEPT_QUOTE, ()).await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("Quote {quote_number} is accepted: {}.", money(*total, *currency)))
        }
        QuoteCommand::Decline(target) => {
            let quote = lookup::call(service, &target, &operations::DECLINE_QUOTE, ()).await?;
            Outcome::new(&quote, format!("Quote {} is declined.", quote.quote_number))
        }
        QuoteCommand::Convert { target, title } => {
            let job = lookup::call(service, &target, &operations::CONVERT_QUOTE, QuoteConversion { title }).await?;
            Outcome::new(&job, format!("Job {} was created: {}.", job.job_number, job.title))
        }
        QuoteCommand::Share { target, address } => {
            let share = async |input| lookup::call(service, &target, &operations::SHARE_QUOTE, input).await;
            let unshare = async || lookup::call(service, &target, &operations::UNSHARE_QUOTE, ()).await;
            share::run(address, share, unshare).await
        }
    }
}
