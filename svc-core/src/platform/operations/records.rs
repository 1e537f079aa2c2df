//! Contacts, bookings, jobs, quotes, invoices and webhook subscriptions: what every resource has, and what only the
//! platform API does with invoices and quotes. Lookups, exports and imports of records.

use std::marker::PhantomData;

use crate::error::Error;
use crate::exports;
use crate::find::{self, FindText, Findable, Found, SearchParams};
use crate::imports::{AccountRecord, Batch, Import};
use crate::input::Input;
use crate::lookup::{self, Matches, PartOfId};
use crate::pages::{ListParams, Page};
use crate::personal::{self, ContactData, ContactDataParams, Erasure, ErasureCreate};
use crate::platform::{
    ExportPage, ExportParams, ImportCreate, ImportKind, ImportReport, ImportedRow, Listing, MarkedInvoices, Method,
    Operation, OverdueCheck, PaymentAmount,
};
use crate::resources::bookings::{Booking, BookingFilter, BookingStatus};
use crate::resources::contacts::{self, Contact, ContactId, OfContact};
use crate::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceId, InvoiceUpdate};
use crate::resources::jobs::{Job, JobFilter};
use crate::resources::quotes::{self, Quote, QuoteId};
use crate::resources::starts::{self, StartListParams};
use crate::resources::{Create, Delete, Resource, Update, crud};
use crate::store::Tx;
use crate::values::{Id, TenantId};
use crate::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret};

/// The query of a list that can be searched.
pub type SearchedList<F> = Listing<ListParams, Listing<SearchParams, F>>;

/// The operations that every resource `R` has, as far as clients may do that.
#[derive(Debug)]
pub struct Records<R>(PhantomData<R>);

impl<R: Resource> Records<R> {
    /// Lists records.
    pub const LIST: Operation<TenantId, Listing<ListParams, R::Filter>, Page<R>> =
        Operation::new("listRecords", Method::Get, R::COLLECTION, "", &async |tx,
                                                                              account,
                                                                              input: &Listing<
            ListParams,
            R::Filter,
        >| {
            crud::list::<R>(tx, account, &input.page, &input.filter).await
        })
        .unwrapped();

    /// Retrieves a record.
    pub const GET: Operation<(TenantId, Id<R>), (), R> =
        Operation::new("getRecord", Method::Get, R::COLLECTION, "", &async |tx, (account, id), _| {
            crud::get::<R>(tx, account, id).await
        });
}

impl<R: Findable> Records<R> {
    /// Lists records, or those that have a text.
    pub const SEARCH: Operation<TenantId, SearchedList<R::Filter>, Page<R>> = Operation::new(
        "listRecords",
        Method::Get,
        R::COLLECTION,
        "",
        &async |tx, account, input: &SearchedList<R::Filter>| {
            let Listing { page, filter: Listing { page: SearchParams { search }, filter } } = input;
            match search {
                Some(text) => find::list::<R>(tx, account, text, page, filter).await,
                None => crud::list::<R>(tx, account, page, filter).await,
            }
        },
    )
    .unwrapped();
}

/// The contact whose records a list has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Input)]
pub struct OfContactParams {
    /// Only the records of this contact, newest first. A page may have fewer than `limit`: read on to the last one.
    pub contact_id: Option<ContactId>,
}

/// The filter of a list of bookings that goes beyond the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Input)]
pub struct BookingParams {
    /// Only bookings with this status.
    pub status: Option<BookingStatus>,
}

/// The input of a list that can be of one contact.
pub type ListingOfContact<F> = Listing<ListParams, Listing<OfContactParams, F>>;

impl<R: OfContact> Records<R> {
    /// Lists records, or those of a contact.
    pub const LIST_OF_CONTACT: Operation<TenantId, ListingOfContact<R::Filter>, Page<R>> =
        Operation::new("listRecords", Method::Get, R::COLLECTION, "", &async |tx,
                                                                              account,
                                                                              input: &Listing<
            ListParams,
            Listing<OfContactParams, R::Filter>,
        >| {
            let Listing { page, filter: Listing { page: OfContactParams { contact_id }, filter } } = input;
            match *contact_id {
                Some(contact) => contacts::list_filtered::<R>(tx, account, page, contact, filter).await,
                None => crud::list::<R>(tx, account, page, filter).await,
            }
        })
        .unwrapped();
}

/// The input of a list that can be sorted by when its records start.
pub type ListingByStart<F> = Listing<StartListParams, F>;

impl Records<Booking> {
    /// Lists bookings, or those that start in a range of times, of a contact, or with a status.
    pub const LIST_BY_START: Operation<TenantId, ListingByStart<BookingParams>, Page<Booking, String>> =
        Operation::new("listRecords", Method::Get, Booking::COLLECTION, "", &async |tx,
                                                                                    account,
                                                                                    input: &ListingByStart<
            BookingParams,
        >| {
            let BookingParams { status } = input.filter;
            starts::list::<Booking>(tx, account, &input.page, &BookingFilter { status }).await
        })
        .unwrapped();
}

impl Records<Job> {
    /// Lists jobs, or those whose planned start is in a range of times, or of a contact.
    pub const LIST_BY_START: Operation<TenantId, ListingByStart<JobFilter>, Page<Job, String>> = Operation::new(
        "listRecords",
        Method::Get,
        Job::COLLECTION,
        "",
        &async |tx, account, input: &ListingByStart<JobFilter>| {
            starts::list::<Job>(tx, account, &input.page, &input.filter).await
        },
    )
    .unwrapped();
}

impl<R: Create<Input: Clone>> Records<R> {
    /// Creates a record.
    pub const CREATE: Operation<TenantId, R::Input, R> =
        Operation::new("createRecord", Method::Post, R::COLLECTION, "", &async |tx, account, input: &R::Input| {
            crud::create::<R>(tx, account, input.clone()).await
        });
}

impl<R: Update> Records<R> {
    /// Changes a record.
    pub const UPDATE: Operation<(TenantId, Id<R>), R::Input, R> = Operation::new(
        "updateRecord",
        Method::Patch,
        R::COLLECTION,
        "",
        &async |tx, (account, id), input: &R::Input| crud::update::<R>(tx, account, id, input.clone()).await,
    );
}

impl<R: Delete> Records<R> {
    /// Deletes a record.
    pub const DELETE: Operation<(TenantId, Id<R>), (), ()> =
        Operation::new("deleteRecord", Method::Delete, R::COLLECTION, "", &async |tx, (account, id), _| {
            crud::delete::<R>(tx, account, id).await
        });
}

/// Creates a webhook subscription.
pub const CREATE_WEBHOOK: Operation<TenantId, WebhookCreate, WebhookSubscriptionWithSecret> =
    Operation::new("createWebhook", Method::Post, "webhooks", "", &async |tx, account, input: &WebhookCreate| {
        Ok(crud::create::<WebhookSubscription>(tx, account, input.clone()).await?.into())
    });

/// Creates an invoice.
pub const CREATE_INVOICE: Operation<TenantId, InvoiceCreate, Invoice> =
    Operation::new("createInvoice", Method::Post, "invoices", "", &async |tx, account, input: &InvoiceCreate| {
        invoices::create(tx, account, input.clone()).await
    });

/// Changes an invoice that is neither paid nor cancelled.
pub const UPDATE_INVOICE: Operation<(TenantId, InvoiceId), InvoiceUpdate, Invoice> = Operation::new(
    "updateInvoice",
    Method::Patch,
    "invoices",
    "",
    &async |tx, (account, id), input: &InvoiceUpdate| invoices::update(tx, account, id, input.clone()).await,
);

/// Marks a draft as sent.
pub const SEND_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("sendInvoice", Method::Post, "invoices", "send", &async |tx, (account, id), _| {
        invoices::send(tx, account, id).await
    });

/// Records that the customer has seen an invoice.
pub const VIEW_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("viewInvoice", Method::Post, "invoices", "view", &async |tx, (account, id), _| {
        invoices::view(tx, account, id).await
    });

/// Fires the event of an invoice that was sent once more.
pub const RESEND_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("resendInvoice", Method::Post, "invoices", "resend", &async |tx, (account, id), _| {
        invoices::resend(tx, account, id).await
    });

/// Records a payment of an invoice.
pub const PAY_INVOICE: Operation<(TenantId, InvoiceId), PaymentAmount, Invoice> =
    Operation::new("payInvoice", Method::Post, "invoices", "pay", &async |tx, (account, id), input: &PaymentAmount| {
        invoices::pay(tx, account, id, input.amount).await
    });

/// Returns what an account knows of a person.
pub const GET_CONTACT_DATA: Operation<(TenantId, ContactId), ContactDataParams, ContactData> =
    Operation::new("getContactData", Method::Get, "contacts", "data", &async |tx, (account, id), input| {
        personal::page(tx, account, id, input).await
    });

/// Takes a step that erases a contact.
pub const ERASE_CONTACT: Operation<(TenantId, ContactId), ErasureCreate, Erasure> = Operation::new(
    "eraseContact",
    Method::Post,
    "contacts",
    "erase",
    &async |tx, (account, id), input: &ErasureCreate| personal::erase(tx, account, id, input).await,
);

/// Records a refund of an invoice.
pub const REFUND_INVOICE: Operation<(TenantId, InvoiceId), PaymentAmount, Invoice> = Operation::new(
    "refundInvoice",
    Method::Post,
    "invoices",
    "refund",
    &async |tx, (account, id), input: &PaymentAmount| invoices::refund(tx, account, id, input.amount).await,
);

/// Cancels an invoice on which nothing was paid.
pub const VOID_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("voidInvoice", Method::Post, "invoices", "void", &async |tx, (account, id), _| {
        invoices::void(tx, account, id).await
    });

/// Marks the next of the unpaid invoices as overdue: a step of a check, so that no transaction is long.
pub const MARK_OVERDUE_INVOICES: Operation<TenantId, OverdueCheck, MarkedInvoices> = Operation::new(
    "markOverdueInvoices",
    Method::Post,
    "invoices",
    "mark-overdue",
    &async |tx, account, input: &OverdueCheck| {
        let (data, next) = invoices::overdue(tx, account, input.next.unwrap_or_default()).await?;
        Ok(MarkedInvoices { data, next })
    },
)
.unwrapped();

/// Records that the customer has accepted a quote.
pub const ACCEPT_QUOTE: Operation<(TenantId, QuoteId), (), Quote> =
    Operation::new("acceptQuote", Method::Post, "quotes", "accept", &async |tx, (account, id), _| {
        quotes::accept(tx, account, id).await
    });

/// Records that the customer has declined a quote.
pub const DECLINE_QUOTE: Operation<(TenantId, QuoteId), (), Quote> =
    Operation::new("declineQuote", Method::Post, "quotes", "decline", &async |tx, (account, id), _| {
        quotes::decline(tx, account, id).await
    });

/// Finds the ids of records of an account by a part.
pub const FIND_IDS: Operation<TenantId, PartOfId, Matches> =
    Operation::new("findIds", Method::Get, "find-ids", "", &async |tx, account, input: &PartOfId| {
        lookup::ids_with(tx, input.kind, account, &input.part).await
    })
    .unwrapped();

/// Finds records of an account by a text.
pub const FIND_RECORDS: Operation<TenantId, FindText, Found> =
    Operation::new("findRecords", Method::Get, "find", "", &async |tx, account, input: &FindText| {
        find::find(tx, account, input).await
    })
    .unwrapped();

/// Exports a page of all records of an account.
pub const EXPORT_RECORDS: Operation<TenantId, ExportParams, ExportPage> =
    Operation::new("exportRecords", Method::Get, "export", "", &async |tx, account, input: &ExportParams| {
        exports::page(tx, account, input).await
    })
    .unwrapped();

/// Imports a batch of records.
pub const IMPORT_RECORDS: Operation<TenantId, ImportCreate, ImportReport> =
    Operation::new("importRecords", Method::Post, "import", "", &async |tx, account, input: &ImportCreate| match input
        .kind
    {
        ImportKind::Contacts => import::<Contact>(tx, account, input).await,
        ImportKind::Invoices => import::<Invoice>(tx, account, input).await,
        ImportKind::All => import::<AccountRecord>(tx, account, input).await,
    })
    .dry_run(|input| matches!(input.dry_run, Some(true)));

async fn import<R: Import>(tx: &mut dyn Tx, account: TenantId, input: &ImportCreate) -> Result<ImportReport, Error> {
    let options = input.options()?;
    let webhooks = match R::EVENT.filter(|_| options.events) {
        Some(event) => tx.matching_subscriptions(account, event).await?.len(),
        None => 0,
    };
    let results = Batch::<R>::new(input.rows.0.clone()).put(tx, account, options).await?;
    let rows = results.into_iter().map(ImportedRow::from).collect();
    Ok(ImportReport { rows, webhooks: u32::try_from(webhooks).unwrap_or(u32::MAX) })
}
