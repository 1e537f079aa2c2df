//! `svc quote`.

use svc_core::platform::Operation;
use svc_core::platform::operations::{self, Records};
use svc_core::resources::quotes::Quote;
use svc_core::values::{Id, TenantId};

use super::records::{self, Managed};
use crate::cli::QuoteCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::service::Service;
use crate::times::full;

pub(super) async fn run(service: &Service, command: QuoteCommand) -> Result<Outcome, Failure> {
    match command {
        QuoteCommand::Records(command) => records::run(service, command).await,
        QuoteCommand::Accept(target) => {
            let quote = records::call(service, &target, &operations::ACCEPT_QUOTE, ()).await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("Quote {quote_number} is accepted: {currency} {total}."))
        }
        QuoteCommand::Decline(target) => {
            let quote = records::call(service, &target, &operations::DECLINE_QUOTE, ()).await?;
            Outcome::new(&quote, format!("Quote {} is declined.", quote.quote_number))
        }
    }
}

impl Managed for Quote {
    type Created = Self;
    const CREATE: Operation<TenantId, Self::Create, Self> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;

    fn created(created: Self) -> Result<Outcome, Failure> {
        records::created(&created)
    }

    fn title(&self) -> String {
        self.quote_number.clone()
    }

    fn table(quotes: &[Self]) -> Table {
        Table::new(
            ["ID", "NUMBER", "STATUS", "TOTAL", "VALID UNTIL", "CONTACT", "ISSUED", "CREATED"],
            quotes,
            |quote| {
                [
                    quote.id.to_string(),
                    quote.quote_number.clone(),
                    state(quote.status),
                    format!("{} {}", quote.currency, quote.total),
                    or_dash(quote.valid_until),
                    or_dash(quote.contact_id),
                    or_dash(quote.issue_date),
                    full(quote.created_at),
                ]
            },
        )
    }
}
