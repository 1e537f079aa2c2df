//! `svc invoice` and `svc quote`.

use clap::{Args, Subcommand};
use svc_core::resources::contacts::ContactId;
use svc_core::resources::invoices::InvoiceId;
use svc_core::resources::quotes::QuoteId;
use svc_core::values::{Currency, Date, Decimal, TenantId};

use super::Owner;
use crate::values;

/// `svc invoice …`
#[derive(Clone, Debug, Subcommand)]
pub enum InvoiceCommand {
    /// Create a draft invoice, issued today.
    ///
    /// Today is the current date in the tenant's time zone.
    #[command(after_help = "Example:\n  svc invoice create --tenant 0195a3c8-0000-7000-8000-000000000001 \\\n    \
                      --contact 0195a3c8-0000-7000-8000-000000000004 --total 99.95 --due 2026-04-13")]
    Create {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// Id of the contact who is to pay the invoice.
        #[arg(long, value_name = "ID")]
        contact: ContactId,
        /// Amount to pay, such as 99.95, with no more decimals than the currency has.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true, value_name = "AMOUNT")]
        total: Decimal,
        /// ISO 4217 code of the currency. The default is the tenant's currency.
        #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
        currency: Option<Currency>,
        /// Date by which the invoice is to be paid, such as 2026-04-13.
        #[arg(long, value_parser = Date::parse, value_name = "DATE")]
        due: Option<Date>,
    },
    /// Send a draft invoice to the customer.
    #[command(after_help = "Example:\n  svc invoice send 0195a3c8-0000-7000-8000-000000000003")]
    Send {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
    },
    /// Record that the customer viewed a sent invoice.
    #[command(after_help = "Example:\n  svc invoice view 0195a3c8-0000-7000-8000-000000000003")]
    View {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
    },
    /// Record a payment of the outstanding amount or of a part of it.
    #[command(after_help = "Examples:\n  svc invoice pay 0195a3c8-0000-7000-8000-000000000003\n  \
                      svc invoice pay 0195a3c8-0000-7000-8000-000000000003 --amount 40")]
    Pay {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
        /// Amount paid, in the invoice's currency. The default is the outstanding amount.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Cancel an invoice that has no payments.
    #[command(after_help = "Example:\n  svc invoice void 0195a3c8-0000-7000-8000-000000000003")]
    Void {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
    },
    /// Send an invoice again, without changing it.
    #[command(after_help = "Example:\n  svc invoice resend 0195a3c8-0000-7000-8000-000000000003")]
    Resend {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
    },
    /// Record a refund of the amount paid or of a part of it.
    ///
    /// A full refund cancels the invoice. A partial refund leaves its status unchanged.
    #[command(after_help = "Examples:\n  svc invoice refund 0195a3c8-0000-7000-8000-000000000003\n  \
                      svc invoice refund 0195a3c8-0000-7000-8000-000000000003 --amount 40")]
    Refund {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
        /// Amount refunded, in the invoice's currency. The default is the amount paid.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Change an invoice that is neither paid nor cancelled.
    ///
    /// Fields that are not named stay as they are.
    #[command(after_help = "Example:\n  svc invoice update 0195a3c8-0000-7000-8000-000000000003 \\\n    \
                      --total 120 --due 2026-05-01")]
    Update {
        /// Id of the invoice.
        id: InvoiceId,
        /// The tenant that owns the invoice.
        #[command(flatten)]
        owner: Owner,
        /// The fields to change.
        #[command(flatten)]
        changes: InvoiceChanges,
    },
    /// Mark unpaid invoices past their due date as overdue.
    ///
    /// An invoice that is sent, viewed or partially paid becomes overdue when its due date is before the current date
    /// in the tenant's time zone. The server does this once a day, after midnight, unless it runs with --overdue off.
    #[command(after_help = "Examples:\n  svc invoice overdue\n  \
                      svc invoice overdue --tenant 0195a3c8-0000-7000-8000-000000000001")]
    Overdue {
        /// Id of the tenant. The default is all tenants.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: Option<TenantId>,
    },
}

/// The fields of an invoice that `svc invoice update` changes. At least one is required.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct InvoiceChanges {
    /// Amount to pay, with no more decimals than the currency has. It cannot be less than the amount paid.
    #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true, value_name = "AMOUNT")]
    pub total: Option<Decimal>,
    /// ISO 4217 code of the currency. It can be changed only on a draft that has no payments.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    pub currency: Option<Currency>,
    /// Date by which the invoice is to be paid, such as 2026-04-13.
    #[arg(long, value_parser = Date::parse, value_name = "DATE")]
    pub due: Option<Date>,
    /// Id of the contact who is to pay the invoice.
    #[arg(long, value_name = "ID")]
    pub contact: Option<ContactId>,
}

/// `svc quote …`
#[derive(Clone, Debug, Subcommand)]
pub enum QuoteCommand {
    /// Record that the customer accepted a sent quote that has not expired.
    #[command(after_help = "Example:\n  svc quote accept 0195a3c8-0000-7000-8000-000000000007")]
    Accept {
        /// Id of the quote.
        id: QuoteId,
        /// The tenant that owns the quote.
        #[command(flatten)]
        owner: Owner,
    },
    /// Record that the customer declined a sent quote.
    #[command(after_help = "Example:\n  svc quote decline 0195a3c8-0000-7000-8000-000000000007")]
    Decline {
        /// Id of the quote.
        id: QuoteId,
        /// The tenant that owns the quote.
        #[command(flatten)]
        owner: Owner,
    },
    /// Show a quote.
    #[command(after_help = "Example:\n  svc quote show 0195a3c8-0000-7000-8000-000000000007")]
    Show {
        /// Id of the quote.
        id: QuoteId,
        /// The tenant that owns the quote.
        #[command(flatten)]
        owner: Owner,
    },
}
