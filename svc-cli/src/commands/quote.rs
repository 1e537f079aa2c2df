//! `svc quote`.

use svc_core::resources::crud;
use svc_core::resources::quotes::{self, Quote, QuoteCreate, QuoteUpdate};
use svc_core::store::{Store, Tx};
use svc_core::values::{Id, TenantId};

use super::lookup::Lookup;
use super::records::{self, Managed, change};
use crate::cli::QuoteCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::times::full;

pub(super) async fn run(store: &dyn Store, command: QuoteCommand) -> Result<Outcome, Failure> {
    match command {
        QuoteCommand::Records(command) => records::run(store, command).await,
        QuoteCommand::Accept(target) => {
            let accept =
                change(store, &target, "quote.accept", |tx, tenant, id| Box::pin(quotes::accept(tx, tenant, id)));
            let quote = accept.await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("Quote {quote_number} is accepted: {currency} {total}."))
        }
        QuoteCommand::Decline(target) => {
            let decline =
                change(store, &target, "quote.decline", |tx, tenant, id| Box::pin(quotes::decline(tx, tenant, id)));
            let quote = decline.await?;
            Outcome::new(&quote, format!("Quote {} is declined.", quote.quote_number))
        }
    }
}

impl Managed for Quote {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: QuoteCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: QuoteUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
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
