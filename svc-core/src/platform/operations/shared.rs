//! The addresses at which customers and calendar programs see something of an account without signing in.

use uuid::Uuid;

use crate::accounts::shared_links::{self, SharedLinkPurpose};
use crate::error::Error;
use crate::operation::{Method, Operation};
use crate::platform::{SharedAddress, SharedAddressCreate};
use crate::resources::invoices::InvoiceId;
use crate::resources::quotes::QuoteId;
use crate::shared_documents;
use crate::store::Tx;
use crate::values::TenantId;

/// Returns the address of an invoice for its customer.
pub const SHARE_INVOICE: Operation<(TenantId, InvoiceId), SharedAddressCreate, SharedAddress> =
    Operation::new("shareInvoice", Method::Post, "invoices", "share", &async |tx, (account, id), input| {
        share(tx, account, SharedLinkPurpose::Invoice, id.uuid(), input).await
    })
    .described(
        "Share an invoice",
        "Returns the address at which the customer sees the invoice without signing in. It is made if there is none, and stays the \
         same until it is renewed or ends. An invoice whose contact is deleted is refused with 409 `not_allowed`.",
        "The address of the invoice.",
    );

/// Ends the address of an invoice.
pub const UNSHARE_INVOICE: Operation<(TenantId, InvoiceId), (), ()> =
    Operation::new("unshareInvoice", Method::Delete, "invoices", "share", &async |tx, (account, id), _| {
        shared_documents::unshare(tx, account, SharedLinkPurpose::Invoice, id.uuid()).await
    })
    .described(
        "End the address of an invoice",
        "Ends the address at which the customer sees the invoice, if there is one.",
        "The address has ended. The response has no body.",
    );

/// Returns the address of a quote for its customer.
pub const SHARE_QUOTE: Operation<(TenantId, QuoteId), SharedAddressCreate, SharedAddress> =
    Operation::new("shareQuote", Method::Post, "quotes", "share", &async |tx, (account, id), input| {
        share(tx, account, SharedLinkPurpose::Quote, id.uuid(), input).await
    })
    .described(
        "Share a quote",
        "Returns the address at which the customer sees the quote, and can accept or decline it once it is sent, without signing in. It \
         is made if there is none, and stays the same until it is renewed or ends. A quote whose contact is deleted is refused with 409 \
         `not_allowed`.",
        "The address of the quote.",
    );

/// Ends the address of a quote.
pub const UNSHARE_QUOTE: Operation<(TenantId, QuoteId), (), ()> =
    Operation::new("unshareQuote", Method::Delete, "quotes", "share", &async |tx, (account, id), _| {
        shared_documents::unshare(tx, account, SharedLinkPurpose::Quote, id.uuid()).await
    })
    .described(
        "End the address of a quote",
        "Ends the address at which the customer sees the quote, if there is one.",
        "The address has ended. The response has no body.",
    );

async fn share(
    tx: &mut dyn Tx,
    account: TenantId,
    purpose: SharedLinkPurpose,
    id: Uuid,
    input: &SharedAddressCreate,
) -> Result<SharedAddress, Error> {
    let renews = input.renew.unwrap_or_default();
    Ok(shared_documents::share(tx, account, purpose, id, renews).await?.into())
}

/// Returns the address of the calendar of an account.
pub const SHARE_CALENDAR: Operation<TenantId, SharedAddressCreate, SharedAddress> =
    Operation::new("shareCalendar", Method::Post, "calendar", "", &async |tx, account, input: &SharedAddressCreate| {
        let renews = input.renew.unwrap_or_default();
        Ok(shared_links::share(tx, account, SharedLinkPurpose::Calendar, None, renews).await?.into())
    })
    .tagged("accounts")
    .described(
        "Share the calendar of an account",
        "Returns the address at which calendar programs subscribe to the bookings and planned jobs of the account (iCalendar, RFC \
         5545). It is made if there is none, and stays the same until it is renewed or ends.",
        "The address of the calendar.",
    );

/// Ends the address of the calendar of an account.
pub const UNSHARE_CALENDAR: Operation<TenantId, (), ()> =
    Operation::new("unshareCalendar", Method::Delete, "calendar", "", &async |tx, account, _| {
        shared_links::revoke(tx, account, SharedLinkPurpose::Calendar, None).await.map(drop)
    })
    .tagged("accounts")
    .described(
        "End the address of the calendar",
        "Ends the address at which calendar programs subscribe to the calendar of the account, if there is one.",
        "The address has ended. The response has no body.",
    );
