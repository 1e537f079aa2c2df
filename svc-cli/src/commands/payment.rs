//! `svc payment`: the payments and refunds of an account, for its books.

use clap::{Subcommand, value_parser};
use svc_core::platform::PaymentListFilter;
use svc_core::platform::operations::LIST_PAYMENTS;
use svc_core::resources::invoices::{BookedPayment, Invoice};

use super::lookup;
use crate::exit::Failure;
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, money};
use crate::record::{Property, optional, table, text, time};
use crate::service::cut;
use crate::session::Session;
use crate::times;
use crate::values::{self, TimeArg};

/// List the payments and refunds of an account, for its books.
///
/// `svc invoice pay` and `svc invoice refund` record them.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc payment list --since 2026-07-01 --json")]
pub(crate) enum PaymentCommand {
    /// List payments and refunds, newest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc payment list --since 2026-07-01 --until 2026-08-01\n  \
                      svc payment list --invoice INV-0001"
    )]
    List {
        #[command(flatten)]
        account: InAccount,
        /// List only payments of this invoice, by its id or its number.
        #[arg(long, value_name = "ID")]
        invoice: Option<IdArg>,
        /// List only payments since this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago, such
        /// as 7d. A date is its start there.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// List only payments before this time, or before this long ago. A date is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        until: Option<TimeArg>,
        /// Maximum number of payments to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
    },
}

pub(crate) async fn run(session: &Session, command: PaymentCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    let PaymentCommand::List { account, invoice, since, until, limit } = command;
    let invoice_id = match invoice {
        Some(invoice) => Some(lookup::find::<Invoice>(service, &invoice, &account).await?.record.id),
        None => None,
    };
    let account = lookup::account(service, &account).await?.id;
    let (since, until) = (times::since(since.as_ref())?, times::since(until.as_ref())?);
    let filter = PaymentListFilter { invoice_id, since, until };
    // One payment more than the limit tells whether there are more.
    let (mut payments, _) = service.newest(&LIST_PAYMENTS, account, &filter, limit.saturating_add(1)).await?;
    let note = cut(&mut payments, limit).then(|| "There are more payments; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&payments, &table(&payments, describe), "No payments match.")?.with_note(note))
}

fn describe(payment: &BookedPayment) -> Vec<Property> {
    let sign = if payment.is_refund { "-" } else { "" };
    vec![
        text("id", payment.id).column(1, "ID"),
        time("paid at", payment.paid_at).column(2, "RECEIVED"),
        text("invoice", &payment.invoice_number).column(3, "INVOICE"),
        text("amount", format!("{sign}{}", money(payment.amount, payment.currency))).column(4, "AMOUNT"),
        optional("method", payment.method.as_ref()).column(5, "METHOD"),
        optional("reference", payment.reference.as_ref()).column(6, "REFERENCE"),
    ]
}
