//! `svc quote`: records the client's decision about a quote. Everything else about quotes is in the API.

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::quotes::{self, Quote};
use svc_core::store::{Store, Tx};
use svc_core::values::TenantId;
use uuid::Uuid;

use super::lookup;
use crate::cli::{InTenant, QuoteCommand};
use crate::exit::{Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, fields, or_dash};
use crate::times::moment;

/// Says how to find the id of a quote.
const HINT: &str = "`svc export quotes` exports the quotes of a tenant";

pub(super) async fn run(store: &dyn Store, command: QuoteCommand) -> Result<Outcome, Failure> {
    match command {
        QuoteCommand::Accept { id, tenant } => {
            let accept = decide(store, &id, &tenant, "quote.accept", move |tx, tenant, id| {
                Box::pin(quotes::accept(tx, tenant, id))
            });
            let quote = accept.await?;
            let Quote { quote_number, currency, total, .. } = &quote;
            Outcome::new(&quote, format!("Quote {quote_number} is accepted: {currency} {total}."))
        }
        QuoteCommand::Decline { id, tenant } => {
            let decline = decide(store, &id, &tenant, "quote.decline", move |tx, tenant, id| {
                Box::pin(quotes::decline(tx, tenant, id))
            });
            let quote = decline.await?;
            Outcome::new(&quote, format!("Quote {} is declined.", quote.quote_number))
        }
        QuoteCommand::Show { id, tenant } => {
            let found = lookup::find::<Quote>(store, &id, &tenant).await?;
            Outcome::new(&found.record, details(found.tenant_id, &found.record))
        }
    }
}

type Decision<'t> = Pin<Box<dyn Future<Output = Result<Quote, Error>> + Send + 't>>;

/// Records the client's decision about the quote with this id.
async fn decide<F>(
    store: &dyn Store,
    id: &IdArg,
    named: &InTenant,
    name: &'static str,
    work: F,
) -> Result<Quote, Failure>
where
    F: for<'t> Fn(&'t mut dyn Tx, TenantId, Uuid) -> Decision<'t> + Send + Sync + 'static,
{
    let found = lookup::find::<Quote>(store, id, named).await?;
    let (tenant, id) = (found.tenant_id, found.record.id);
    store.write(name, move |tx| work(tx, tenant, id)).await.or_not_found("quote", id, HINT)
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
