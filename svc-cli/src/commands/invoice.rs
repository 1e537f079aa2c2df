//! `svc invoice`: invoices with the operations of the back office, which the API does not have.

mod overdue;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::{Listing, Operation};
use svc_core::platform::operations::{self, Records};
use svc_core::resources::invoices::{
    Invoice, InvoiceCreate, InvoiceFilter, InvoiceId, InvoiceStatus, InvoiceUpdate, PaymentCreate,
};
use svc_core::values::{Decimal, TenantId, Text};

use super::lookup::{self, FoundRecord};
use super::records::{self, RecordCommand};
use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use super::share::{self, AddressArgs};
use crate::exit::Failure;
use crate::ids::{IdArg, Target};
use crate::output::{Outcome, money};
use crate::service::Service;
use crate::session::Session;

/// Create and process invoices: send, pay, refund, void and more.
///
/// These operations are not available through the API. Each of them emits its events, which are delivered to the
/// account's webhooks.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc invoice pay 6f1c02d93b5e --amount 40")]
pub(crate) enum InvoiceCommand {
    #[command(flatten)]
    Records(RecordCommand<Invoice>),
    /// Send a draft invoice to the customer.
    #[command(after_help = "Example:\n  svc invoice send 6f1c02d93b5e")]
    Send(Target),
    /// Record that the customer viewed a sent invoice.
    #[command(after_help = "Example:\n  svc invoice view 6f1c02d93b5e")]
    View(Target),
    /// Record a payment of the outstanding amount or of a part of it.
    #[command(after_help = "Examples:\n  svc invoice pay 6f1c02d93b5e\n  \
                      svc invoice pay 6f1c02d93b5e --amount 40")]
    Pay {
        #[command(flatten)]
        target: Target,
        /// Amount paid, in the invoice's currency. The default is the outstanding amount.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
        #[command(flatten)]
        note: PaymentNote,
    },
    /// Cancel an invoice that has no payments.
    #[command(after_help = "Example:\n  svc invoice void 6f1c02d93b5e")]
    Void(Target),
    /// Send an invoice again, without changing it.
    #[command(after_help = "Example:\n  svc invoice resend 6f1c02d93b5e")]
    Resend(Target),
    /// Record a refund of the amount paid or of a part of it.
    ///
    /// A full refund cancels the invoice. A partial refund leaves its status unchanged.
    #[command(after_help = "Examples:\n  svc invoice refund 6f1c02d93b5e\n  \
                      svc invoice refund 6f1c02d93b5e --amount 40")]
    Refund {
        #[command(flatten)]
        target: Target,
        /// Amount refunded, in the invoice's currency. The default is the amount paid.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
        #[command(flatten)]
        note: PaymentNote,
    },
    /// Print the address at which the customer sees an invoice without signing in.
    ///
    /// The address is made if there is none, and stays the same until it is renewed or revoked.
    #[command(after_help = "Examples:\n  svc invoice share 6f1c02d93b5e --url https://api.example.com\n  \
                      svc invoice share 6f1c02d93b5e --revoke")]
    Share {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        address: AddressArgs,
    },
    /// Mark unpaid invoices past their due date as overdue.
    ///
    /// An invoice that is sent, viewed or partially paid becomes overdue when its due date is before the current date
    /// in the account's time zone. The server does this once a day, after midnight, unless it runs with --overdue off.
    #[command(after_help = "Examples:\n  svc invoice overdue\n  \
                      svc invoice overdue --account 8d2f41c07b9e")]
    Overdue {
        /// Id of the account, or a part of it that no other account has. The default is all accounts.
        #[arg(long, alias = "tenant", env = "SVC_TENANT", hide_env_values = true, value_name = "ID")]
        account: Option<IdArg>,
    },
}

/// The method and the reference of a payment or a refund.
#[derive(Args, Clone, Debug)]
pub(crate) struct PaymentNote {
    /// Method of the payment, such as card.
    #[arg(long, value_parser = Text::<100>::parse)]
    method: Option<Text<100>>,
    /// Reference of the payment, such as on a bank statement.
    #[arg(long, value_parser = Text::<255>::parse)]
    reference: Option<Text<255>>,
}

impl PaymentNote {
    fn of(self, amount: Option<Decimal>) -> PaymentCreate {
        PaymentCreate { amount, method: self.method, reference: self.reference }
    }
}

impl ResourceCommands for Invoice {
    type ListFilter = Listing<SearchParams, InvoiceFilter>;
    type Create = InvoiceCreate;
    type Update = InvoiceUpdate;
    type Creation = Self;
    const KIND: KindInAccount = KindInAccount::Invoice;
    const LIST: ListOperation<Self> = Records::<Self>::SEARCH;
    const CREATE: CreateOperation<Self> = operations::CREATE_INVOICE;
    const UPDATE: UpdateOperation<Self> = operations::UPDATE_INVOICE;
    const CREATE_EXAMPLE: &'static str = "--contact b27d40aa91c3 --total 99.95 --due 2026-04-13";
    const UPDATE_EXAMPLE: &'static str = "--total 120 --due 2026-05-01";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "invoice_number"),
        ("STATUS", "status"),
        ("TOTAL", "total"),
        ("CONTACT", "contact_id"),
        ("DUE", "due_date"),
        ("PAID", "amount_paid"),
        ("ISSUED", "issue_date"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "invoice_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("total", money(self.total, self.currency)), ("amount_paid", money(self.amount_paid, self.currency))]
    }
}

pub(crate) async fn run(session: &Session, command: InvoiceCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        InvoiceCommand::Records(command) => records::run(session, service, command).await,
        InvoiceCommand::Send(target) => set_status(service, &target, &operations::SEND_INVOICE).await,
        InvoiceCommand::View(target) => set_status(service, &target, &operations::VIEW_INVOICE).await,
        InvoiceCommand::Pay { target, amount, note } => {
            report_payment(&lookup::call(service, &target, &operations::PAY_INVOICE, note.of(amount)).await?)
        }
        InvoiceCommand::Void(target) => {
            let found = lookup::find::<Invoice>(service, &target.id, &target.account).await?;
            if session.asks_first {
                let title = title(service, &found).await?;
                session.confirm(&format!("Void {title}? It is cancelled for good, and webhooks are notified."))?;
            }
            report_status(&found.call(service, &operations::VOID_INVOICE, ()).await?)
        }
        InvoiceCommand::Resend(target) => {
            let invoice = lookup::call(service, &target, &operations::RESEND_INVOICE, ()).await?;
            Outcome::new(&invoice, format!("Invoice {} was sent again.", invoice.invoice_number))
        }
        InvoiceCommand::Refund { target, amount, note } => {
            let found = lookup::find::<Invoice>(service, &target.id, &target.account).await?;
            if session.asks_first {
                let (refund, title) = (refund(&found.record, amount), title(service, &found).await?);
                session.confirm(&format!("Record a refund of {refund} for {title}? Webhooks are notified."))?;
            }
            report_refund(&found.call(service, &operations::REFUND_INVOICE, note.of(amount)).await?)
        }
        InvoiceCommand::Share { target, address } => {
            let share = async |input| lookup::call(service, &target, &operations::SHARE_INVOICE, input).await;
            let unshare = async || lookup::call(service, &target, &operations::UNSHARE_INVOICE, ()).await;
            share::run(address, share, unshare).await
        }
        InvoiceCommand::Overdue { account } => overdue::run(service, account.as_ref()).await,
    }
}

async fn set_status(
    service: &Service,
    target: &Target,
    operation: &Operation<(TenantId, InvoiceId), (), Invoice>,
) -> Result<Outcome, Failure> {
    report_status(&lookup::call(service, target, operation, ()).await?)
}

fn report_status(invoice: &Invoice) -> Result<Outcome, Failure> {
    Outcome::new(invoice, format!("Invoice {} is {}.", invoice.invoice_number, invoice.status))
}

/// Names an invoice by its number, its total and its contact.
async fn title(service: &Service, invoice: &FoundRecord<Invoice>) -> Result<String, Failure> {
    let FoundRecord { tenant_id, record: Invoice { invoice_number, total, currency, contact_id, .. }, .. } = invoice;
    let contacts: BTreeSet<_> = contact_id.iter().copied().collect();
    let names = service.contact_names(*tenant_id, contacts).await?;
    let contact = names.values().next().map(|name| format!(", of {name}")).unwrap_or_default();
    Ok(format!("{invoice_number}, {}{contact}", money(*total, *currency)))
}

/// Returns what a refund pays back. The rules refuse an amount that the currency does not have.
fn refund(invoice: &Invoice, amount: Option<Decimal>) -> String {
    let currency = invoice.currency;
    match amount.map(|amount| (amount, amount.to_amount(currency.scale()))) {
        None => money(invoice.amount_paid, currency),
        Some((_, Ok(amount))) => money(amount, currency),
        Some((amount, Err(_))) => format!("{currency} {amount}"),
    }
}

fn report_payment(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, status, .. } = invoice;
    let [total, paid] = [invoice.total, invoice.amount_paid].map(|amount| money(amount, *currency));
    let text = match status {
        InvoiceStatus::Paid => format!("Invoice {invoice_number} is paid: {total}."),
        _ => format!("Invoice {invoice_number} is partially paid: {paid} of {total}."),
    };
    Outcome::new(invoice, text)
}

fn report_refund(invoice: &Invoice) -> Result<Outcome, Failure> {
    let Invoice { invoice_number, currency, amount_paid, status, .. } = invoice;
    let text = match status {
        InvoiceStatus::Cancelled => format!("Invoice {invoice_number} is fully refunded and cancelled."),
        _ => {
            let paid = money(*amount_paid, *currency);
            format!("Invoice {invoice_number} is partially refunded: {paid} remains paid, status {status}.")
        }
    };
    Outcome::new(invoice, text)
}
