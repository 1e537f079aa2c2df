//! Money: `svc invoice` and `svc quote`.

use clap::{Args, Subcommand};
use svc_core::values::{Currency, Date, Decimal, TenantId, parse_uuid};
use uuid::Uuid;

use crate::values;

/// `svc invoice …`
#[derive(Clone, Debug, Subcommand)]
pub enum InvoiceCommand {
    /// Create a draft, issued today.
    #[command(after_help = "Example:\n  svc invoice create --tenant 0195a3c8-0000-7000-8000-000000000001 \\\n    \
                      --contact 0195a3c8-0000-7000-8000-000000000004 --total 99.95 --due 2026-04-13")]
    Create {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// Id of the contact who is to pay.
        #[arg(long, value_parser = parse_uuid, value_name = "ID")]
        contact: Uuid,
        /// Amount, with no more decimals than the currency has.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true, value_name = "AMOUNT")]
        total: Decimal,
        /// Currency, a code of ISO 4217; the tenant's own when left out.
        #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
        currency: Option<Currency>,
        /// Day by which it is to be paid, such as 2026-04-13.
        #[arg(long, value_parser = Date::parse, value_name = "DATE")]
        due: Option<Date>,
    },
    /// Send a draft to the customer.
    #[command(after_help = "Example:\n  svc invoice send 0195a3c8-0000-7000-8000-000000000003")]
    Send {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Note that the customer has seen a sent invoice.
    #[command(after_help = "Example:\n  svc invoice view 0195a3c8-0000-7000-8000-000000000003")]
    View {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Receive money: all that is left to pay, or a part of it.
    #[command(after_help = "Examples:\n  svc invoice pay 0195a3c8-0000-7000-8000-000000000003\n  \
                      svc invoice pay 0195a3c8-0000-7000-8000-000000000003 --amount 40")]
    Pay {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// How much, in the invoice's currency; all that is left when left out.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Cancel an invoice on which nothing was paid.
    #[command(after_help = "Example:\n  svc invoice void 0195a3c8-0000-7000-8000-000000000003")]
    Void {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Send an invoice again; it stays as it is.
    #[command(after_help = "Example:\n  svc invoice resend 0195a3c8-0000-7000-8000-000000000003")]
    Resend {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Give money back: all that was paid, or a part of it.
    ///
    /// Given back in full, the invoice is cancelled; a part leaves its state alone.
    #[command(after_help = "Examples:\n  svc invoice refund 0195a3c8-0000-7000-8000-000000000003\n  \
                      svc invoice refund 0195a3c8-0000-7000-8000-000000000003 --amount 40")]
    Refund {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// How much, in the invoice's currency; all that was paid when left out.
        #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true)]
        amount: Option<Decimal>,
    },
    /// Correct an invoice that is neither paid nor cancelled.
    ///
    /// What is not named stays as it is.
    #[command(after_help = "Example:\n  svc invoice update 0195a3c8-0000-7000-8000-000000000003 \\\n    \
                      --total 120 --due 2026-05-01")]
    Update {
        /// Id of the invoice.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// The changes.
        #[command(flatten)]
        changes: InvoiceChanges,
    },
    /// Mark what was not paid in time as overdue.
    ///
    /// Invoices that are sent, viewed or paid in part become overdue when their due date lies before today in their
    /// tenant's time zone. Run it once a day, or as often as you like.
    #[command(after_help = "Examples:\n  svc invoice overdue\n  \
                      svc invoice overdue --tenant 0195a3c8-0000-7000-8000-000000000001")]
    Overdue {
        /// Id of the tenant; all tenants when left out.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: Option<TenantId>,
    },
}

/// Changes to an invoice: at least one.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct InvoiceChanges {
    /// Amount, with no more decimals than the currency has, and no less than what was paid.
    #[arg(long, value_parser = Decimal::parse, allow_negative_numbers = true, value_name = "AMOUNT")]
    pub total: Option<Decimal>,
    /// Currency, a code of ISO 4217; only of a draft on which nothing was paid.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    pub currency: Option<Currency>,
    /// Day by which it is to be paid, such as 2026-04-13.
    #[arg(long, value_parser = Date::parse, value_name = "DATE")]
    pub due: Option<Date>,
    /// Id of the contact who is to pay.
    #[arg(long, value_parser = parse_uuid, value_name = "ID")]
    pub contact: Option<Uuid>,
}

/// `svc quote …`
#[derive(Clone, Debug, Subcommand)]
pub enum QuoteCommand {
    /// Note that the client accepts a quote that was sent, while it holds.
    #[command(after_help = "Example:\n  svc quote accept 0195a3c8-0000-7000-8000-000000000007")]
    Accept {
        /// Id of the quote.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Note that the client declines a quote that was sent.
    #[command(after_help = "Example:\n  svc quote decline 0195a3c8-0000-7000-8000-000000000007")]
    Decline {
        /// Id of the quote.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Show a quote.
    #[command(after_help = "Example:\n  svc quote show 0195a3c8-0000-7000-8000-000000000007")]
    Show {
        /// Id of the quote.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
}
