//! `svc quote`.

use svc_core::platform::operations;
use svc_core::resources::quotes::Quote;

use super::{lookup, records};
use crate::cli::QuoteCommand;
use crate::exit::Failure;
use crate::output::{Outcome, money};
use crate::service::Service;

pub(super) async fn run(service: &Service, command: QuoteCommand) -> Result<Outcome, Failure> {
    match command {
        QuoteCommand::Records(command) => records::run(service, command).await,
        QuoteCommand::Accept(target) => {
            let quote = lookup::call(service, &target, &operations::ACCEPT_QUOTE, ()).await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("Quote {quote_number} is accepted: {}.", money(*total, *currency)))
        }
        QuoteCommand::Decline(target) => {
            let quote = lookup::call(service, &target, &operations::DECLINE_QUOTE, ()).await?;
            Outcome::new(&quote, format!("Quote {} is declined.", quote.quote_number))
        }
    }
}
