//! `svc contact`, `svc quote` and `svc invoice`.

use clap::Subcommand;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::quotes::Quote;
use svc_core::values::{Decimal, Text};

use super::records::{RecordCommand, Target};
use crate::ids::IdArg;

/// `svc contact …`
#[derive(Clone, Debug, Subcommand)]
pub enum ContactCommand {
    /// `list`, `show`, `create` and `update`.
    #[command(flatten)]
    Records(RecordCommand<Contact>),
    /// Delete a contact.
    ///
    /// Invoices, quotes, bookings and jobs keep their reference to it. Its email address can be used again.
    #[command(after_help = "Example:\n  svc contact delete 0195a3c4")]
    Delete(Target),
    /// Erase a contact: delete it, and empty all personal fields.
    ///
    /// The personal fields of its jobs, the notes of its bookings, and what events have of them are emptied as well. Ids,
    /// numbers, amounts and times stay. Webhooks get contact.deleted with the id alone. A contact that is deleted already
    /// is named by its whole id.
    #[command(after_help = "Example:\n  svc contact erase 0195a3c4 --reason 'asked by letter on 3 March'")]
    Erase {
        /// The contact.
        #[command(flatten)]
        target: Target,
        /// Why, for the audit log, which keeps it. Name nobody in it.
        #[arg(long, value_name = "TEXT")]
        reason: Text<500>,
    },
    /// Print all that is known of a contact, as JSON.
    ///
    /// It is the answer to a person who asks for it: the contact, its records and payments, and what happened to them for as
    /// long as events are kept.
    #[command(after_help = "Example:\n  svc contact export-all ada@example.com > ada.json")]
    ExportAll(Target),
}

/// `svc invoice …`
#[derive(Clone, Debug, Subcommand)]
pub enum InvoiceCommand {
    /// `list`, `show`, `create` and `update`.
    #[command(flatten)]
    Records(RecordCommand<Invoice>),
    /// Send a draft invoice to the customer.
    #[command(after_help = "Example:\n  svc invoice send 0195a3c3")]
    Send(Target),
    /// Record that the customer viewed a sent invoice.
    #[command(after_help = "Example:\n  svc invoice view 0195a3c3")]
    View(Target),
    /// Record a payment of the outstanding amount or of a part of it.
    #[command(after_help = "Examples:\n  svc invoice pay 0195a3c3\n  \
                      svc invoice pay 0195a3c3 --amount 40")]
    Pay {
        /// The invoice.
        #[command(flatten)]
        target: Target,
        /// Amount paid, in the invoice's currency. The default is the outstanding amount.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Cancel an invoice that has no payments.
    #[command(after_help = "Example:\n  svc invoice void 0195a3c3")]
    Void(Target),
    /// Send an invoice again, without changing it.
    #[command(after_help = "Example:\n  svc invoice resend 0195a3c3")]
    Resend(Target),
    /// Record a refund of the amount paid or of a part of it.
    ///
    /// A full refund cancels the invoice. A partial refund leaves its status unchanged.
    #[command(after_help = "Examples:\n  svc invoice refund 0195a3c3\n  \
                      svc invoice refund 0195a3c3 --amount 40")]
    Refund {
        /// The invoice.
        #[command(flatten)]
        target: Target,
        /// Amount refunded, in the invoice's currency. The default is the amount paid.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Mark unpaid invoices past their due date as overdue.
    ///
    /// An invoice that is sent, viewed or partially paid becomes overdue when its due date is before the current date
    /// in the account's time zone. The server does this once a day, after midnight, unless it runs with --overdue off.
    #[command(after_help = "Examples:\n  svc invoice overdue\n  \
                      svc invoice overdue --account 0195a3c1")]
    Overdue {
        /// Id of the account, or a part of it that no other account has. The default is all accounts.
        #[arg(long, alias = "tenant", env = "SVC_TENANT", hide_env_values = true, value_name = "ID")]
        account: Option<IdArg>,
    },
}

/// `svc quote …`
#[derive(Clone, Debug, Subcommand)]
pub enum QuoteCommand {
    /// `list`, `show`, `create` and `update`.
    #[command(flatten)]
    Records(RecordCommand<Quote>),
    /// Record that the customer accepted a sent quote that has not expired.
    #[command(after_help = "Example:\n  svc quote accept 0195a3c7")]
    Accept(Target),
    /// Record that the customer declined a sent quote.
    #[command(after_help = "Example:\n  svc quote decline 0195a3c7")]
    Decline(Target),
}
