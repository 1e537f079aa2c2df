//! `svc quote`: what the client answers. Everything else about quotes is in the API.

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::quotes::{self, Quote};
use svc_core::store::{Store, Tx};
use svc_core::values::TenantId;
use uuid::Uuid;

use super::lookup;
use crate::cli::QuoteCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, fields, or_dash};
use crate::times::moment;

/// Where the ids of quotes come from.
const HINT: &str = "`svc export quotes --tenant ID` has those of a tenant";

pub(super) async fn run(store: &dyn Store, command: QuoteCommand) -> Result<Outcome, Failure> {
    match command {
        QuoteCommand::Accept { id } => {
            let accept = answer(store, id, "quote.accept", move |tx, tenant| Box::pin(quotes::accept(tx, tenant, id)));
            let quote = accept.await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("{quote_number} is accepted: {currency} {total}."))
        }
        QuoteCommand::Decline { id } => {
            let decline =
                answer(store, id, "quote.decline", move |tx, tenant| Box::pin(quotes::decline(tx, tenant, id)));
            let quote = decline.await?;
            Outcome::new(&quote, format!("{} is declined.", quote.quote_number))
        }
        QuoteCommand::Show { id } => {
            let (tenant, quote) = lookup::find::<Quote>(store, id).await.or_not_found("quote", id, HINT)?;
            Outcome::new(&quote, details(tenant, &quote))
        }
    }
}

type Answer<'t> = Pin<Box<dyn Future<Output = Result<Quote, Error>> + Send + 't>>;

/// Takes the client's answer to the quote that has this id, whichever tenant's it is.
async fn answer<F>(store: &dyn Store, id: Uuid, name: &'static str, work: F) -> Result<Quote, Failure>
where
    F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> Answer<'t> + Send + Sync + 'static,
{
    let (tenant, _) = lookup::find::<Quote>(store, id).await.or_not_found("quote", id, HINT)?;
    store.write(name, move |tx| work(tx, tenant)).await.or_not_found("quote", id, HINT)
}

fn details(tenant: TenantId, quote: &Quote) -> String {
    fields([
        ("id", quote.id.to_string()),
        ("tenant id", tenant.to_string()),
        ("number", quote.quote_number.clone()),
        ("contact id", or_dash(quote.contact_id)),
        ("status", quote.status.to_string()),
        ("issued", or_dash(quote.issue_date)),
        ("valid until", or_dash(quote.valid_until)),
        ("total", format!("{} {}", quote.currency, quote.total)),
        ("created at", moment(quote.created_at)),
        ("updated at", moment(quote.updated_at)),
    ])
}
