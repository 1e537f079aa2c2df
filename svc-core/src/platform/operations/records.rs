//! Contacts, bookings, jobs, quotes, invoices and webhook subscriptions: what every resource has, and what only the
//! platform API does with invoices and quotes. Lookups, exports and imports of records.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;

use super::logs::Position;
use super::memory::EVENTS;
use super::texts;
use crate::accounts::platform_keys::Area;
use crate::error::Error;
use crate::exports;
use crate::find::{self, FindText, SearchParams, SearchResults};
use crate::imports::{Batch, Import};
use crate::input::Input;
use crate::lookup::{self, Matches, PartOfId};
use crate::operation::Listing;
use crate::operation::{Method, Operation, Viewed};
use crate::pages::{ListParams, Page};
use crate::personal::{self, ContactData, ContactDataParams, Erasure, ErasureCreate};
use crate::platform::{
    ExportPage, ExportParams, ImportCreate, ImportKind, ImportReport, ImportedRow, LogParams, MarkedInvoices,
    OverdueCheck, PaymentListFilter,
};
use crate::resources::bookings::{Booking, BookingFilter, BookingStatus};
use crate::resources::contacts::{self, Contact, ContactId, OfContact};
use crate::resources::conversions::{self, JobInvoicing, QuoteConversion};
use crate::resources::invoices::{
    self, BookedPayment, Invoice, InvoiceCreate, InvoiceFilter, InvoiceId, InvoiceUpdate, PaymentCreate,
};
use crate::resources::jobs::{Job, JobFilter, JobId};
use crate::resources::kinds::AccountRecord;
use crate::resources::quotes::{self, Quote, QuoteId};
use crate::resources::starts::{self, StartListParams};
use crate::resources::{BusinessRecord, Create, Delete, Resource, Update, crud};
use crate::store::Tx;
use crate::values::{Amount, Id, TenantId, Timestamp};
use crate::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret};

/// The query of a list that can be searched.
pub type SearchedList<F> = Listing<ListParams, Listing<SearchParams, F>>;

/// The query of a list.
type List<R> = Listing<ListParams, <R as Resource>::Filter>;

/// The operations that every resource `R` has, as far as clients may do that.
#[derive(Debug)]
pub struct Records<R>(PhantomData<R>);

impl<R: Resource> Records<R> {
    /// Lists records.
    pub const LIST: Operation<TenantId, Listing<ListParams, R::Filter>, Page<R>> =
        Operation::new(R::PROFILE.list.id, Method::Get, R::COLLECTION, "", &async |tx, account, input: &List<R>| {
            crud::list::<R>(tx, account, &input.page, &input.filter).await
        })
        .unwrapped()
        .in_area(R::PROFILE.area)
        .reading(|input| R::PROFILE.memory * input.page.limit.unwrap_or_default().get())
        .described_by(texts::list, R::PROFILE);

    /// Retrieves a record.
    pub const GET: Operation<(TenantId, Id<R>), (), R> =
        Operation::new(R::PROFILE.get, Method::Get, R::COLLECTION, "", &async |tx, (account, id), _| {
            crud::get::<R>(tx, account, id).await
        })
        .in_area(R::PROFILE.area)
        .reading(|_| R::PROFILE.memory)
        .with_version()
        .described_by(texts::get, R::PROFILE);
}

impl<R: BusinessRecord> Records<R> {
    /// Lists records, or those that have a text.
    pub const SEARCH: Operation<TenantId, SearchedList<R::Filter>, Page<R>> = Operation::new(
        R::PROFILE.list.id,
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
    .unwrapped()
    .reading(|input| input.page.limit.unwrap_or_default().get())
    .described_by(texts::list, R::PROFILE);
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
        Operation::new(R::PROFILE.list.id, Method::Get, R::COLLECTION, "", &async |tx,
                                                                                   account,
                                                                                   input: &ListingOfContact<
            R::Filter,
        >| {
            let Listing { page, filter: Listing { page: OfContactParams { contact_id }, filter } } = input;
            match *contact_id {
                Some(contact) => contacts::list_filtered::<R>(tx, account, page, contact, filter).await,
                None => crud::list::<R>(tx, account, page, filter).await,
            }
        })
        .unwrapped()
        .reading(|input| input.page.limit.unwrap_or_default().get())
        .described_by(texts::list_of_contact, R::PROFILE);
}

/// The input of a list that can be sorted by when its records start.
pub type ListingByStart<F> = Listing<StartListParams, F>;

impl Records<Booking> {
    /// Lists bookings, or those that start in a range of times, of a contact, or with a status.
    pub const LIST_BY_START: Operation<TenantId, ListingByStart<BookingParams>, Page<Booking, String>> =
        Operation::new(
            Booking::PROFILE.list.id,
            Method::Get,
            Booking::COLLECTION,
            "",
            &async |tx, account, input: &ListingByStart<BookingParams>| {
                let BookingParams { status } = input.filter;
                starts::list::<Booking>(tx, account, &input.page, &BookingFilter { status }).await
            },
        )
        .unwrapped()
        .reading(|input| input.page.records_read())
        .described(
            "List bookings",
            "Returns a page of bookings, the newest first: all, or those of one contact. With `starts_from` and \
             `starts_before`, such as the beginning and the end of tomorrow, returns those whose `start_time` is in \
             between, the soonest first.",
            "A page of bookings.",
        );
}

impl Records<Job> {
    /// Lists jobs, or those whose planned start is in a range of times, or of a contact.
    pub const LIST_BY_START: Operation<TenantId, ListingByStart<JobFilter>, Page<Job, String>> =
        Operation::new(Job::PROFILE.list.id, Method::Get, Job::COLLECTION, "", &async |tx,
                                                                                       account,
                                                                                       input: &ListingByStart<
            JobFilter,
        >| {
            starts::list::<Job>(tx, account, &input.page, &input.filter).await
        })
        .unwrapped()
        .reading(|input| input.page.records_read())
        .described(
            "List jobs",
            "Returns a page of jobs, the newest first: all, or those of one contact. With `starts_from` and \
         `starts_before`, such as the beginning and the end of tomorrow, returns those whose `scheduled_start` is in \
         between, the soonest first.",
            "A page of jobs.",
        );
}

impl<R: Create<Input: Clone>> Records<R> {
    /// Creates a record.
    pub const CREATE: Operation<TenantId, R::Input, R> = Operation::new(
        R::PROFILE.create.id,
        Method::Post,
        R::COLLECTION,
        "",
        &async |tx, account, input: &R::Input| crud::create::<R>(tx, account, input.clone()).await,
    )
    .creates_version()
    .described_by(texts::create, R::PROFILE);
}

impl<R: Update> Records<R> {
    /// Changes a record.
    pub const UPDATE: Operation<(TenantId, Id<R>), R::Input, R> = Operation::new(
        R::PROFILE.update.id,
        Method::Patch,
        R::COLLECTION,
        "",
        &async |tx, (account, id), input: &R::Input| crud::update::<R>(tx, account, id, input.clone()).await,
    )
    .in_area(R::PROFILE.area)
    .with_version()
    .if_match(const { &Self::GET })
    .checked_outside(R::outside)
    .described_by(texts::update, R::PROFILE);
}

impl<R: Delete> Records<R> {
    /// Deletes a record.
    pub const DELETE: Operation<(TenantId, Id<R>), (), ()> =
        Operation::new(R::PROFILE.delete.id, Method::Delete, R::COLLECTION, "", &async |tx, (account, id), _| {
            crud::delete::<R>(tx, account, id).await
        })
        .in_area(R::PROFILE.area)
        .if_match(const { &Self::GET })
        .described_by(texts::delete, R::PROFILE);
}

/// Creates a webhook subscription.
pub const CREATE_WEBHOOK: Operation<TenantId, WebhookCreate, WebhookSubscriptionWithSecret> =
    Operation::new("createWebhook", Method::Post, "webhooks", "", &async |tx, account, input: &WebhookCreate| {
        Ok(crud::create::<WebhookSubscription>(tx, account, input.clone()).await?.into())
    })
    .in_area(Area::Webhooks)
    .checked_outside(|input| input.outside())
    .with_event_kinds()
    .creates_record(
        |created: &WebhookSubscriptionWithSecret| created.subscription.id.uuid(),
        &Records::<WebhookSubscription>::GET,
    )
    .described_by(texts::create, WebhookSubscription::PROFILE);

/// An invoice with its payments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct InvoiceWithPayments {
    /// The invoice.
    #[serde(flatten)]
    invoice: Invoice,
    /// The amount paid so far, less refunds, in `currency`.
    amount_paid: Amount,
    /// The amount that is left to pay, in `currency`. Nothing is left of a draft, which nobody owes yet, and of a cancelled invoice.
    outstanding: Amount,
}

impl From<Invoice> for InvoiceWithPayments {
    fn from(invoice: Invoice) -> Self {
        Self { amount_paid: invoice.amount_paid, outstanding: invoice.outstanding(), invoice }
    }
}

/// Shows the payments of an invoice.
static WITH_PAYMENTS: Viewed<Invoice, InvoiceWithPayments> = Viewed(InvoiceWithPayments::from);

/// Retrieves an invoice with its payments.
pub const GET_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Records::<Invoice>::GET.viewed(&WITH_PAYMENTS).with_etag();

static PAGE_WITH_PAYMENTS: Viewed<Page<Invoice>, Page<InvoiceWithPayments>> =
    Viewed(|Page { data, next_cursor, .. }| {
        Page::new(data.into_iter().map(InvoiceWithPayments::from).collect(), next_cursor)
    });

/// Lists invoices with their payments, or those that have a text.
pub const LIST_INVOICES: Operation<TenantId, SearchedList<InvoiceFilter>, Page<Invoice>> =
    Records::<Invoice>::SEARCH.viewed(&PAGE_WITH_PAYMENTS);

/// Creates an invoice.
pub const CREATE_INVOICE: Operation<TenantId, InvoiceCreate, Invoice> =
    Operation::new("createInvoice", Method::Post, "invoices", "", &async |tx, account, input: &InvoiceCreate| {
        invoices::create(tx, account, input.clone()).await
    })
    .viewed(&WITH_PAYMENTS)
    .creates_record(|invoice| invoice.id.uuid(), &GET_INVOICE)
    .described(
        "Create an invoice",
        "Creates an invoice with the status `draft` and the next `invoice_number` of the account.",
        "The created invoice.",
    );

/// Changes an invoice that is neither paid nor cancelled.
pub const UPDATE_INVOICE: Operation<(TenantId, InvoiceId), InvoiceUpdate, Invoice> = Operation::new(
    "updateInvoice",
    Method::Patch,
    "invoices",
    "",
    &async |tx, (account, id), input: &InvoiceUpdate| invoices::update(tx, account, id, input.clone()).await,
)
.viewed(&WITH_PAYMENTS)
.retrieved_by(&GET_INVOICE)
.described(
    "Update an invoice",
    "Changes the fields that you send of an invoice that is neither paid nor cancelled. An amount that becomes equal \
     to what was paid makes the invoice `paid`.",
    "The invoice after the change.",
);

/// Marks a draft as sent.
pub const SEND_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("sendInvoice", Method::Post, "invoices", "send", &async |tx, (account, id), _| {
        invoices::send(tx, account, id).await
    })
    .viewed(&WITH_PAYMENTS)
    .retrieved_by(&GET_INVOICE)
    .described("Send an invoice", "Marks the draft as sent.", "The invoice after the change.");

/// Records that the customer has seen an invoice.
pub const VIEW_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("viewInvoice", Method::Post, "invoices", "view", &async |tx, (account, id), _| {
        invoices::view(tx, account, id).await
    })
    .viewed(&WITH_PAYMENTS)
    .retrieved_by(&GET_INVOICE)
    .described(
        "Mark an invoice as viewed",
        "Records that the customer has seen the invoice.",
        "The invoice after the change.",
    );

/// Fires the event of an invoice that was sent once more.
pub const RESEND_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("resendInvoice", Method::Post, "invoices", "resend", &async |tx, (account, id), _| {
        invoices::resend(tx, account, id).await
    })
    .viewed(&WITH_PAYMENTS)
    .retrieved_by(&GET_INVOICE)
    .described(
        "Send an invoice again",
        "Fires the event of an invoice that was sent once more.",
        "The invoice after the change.",
    );

/// Records a payment of an invoice.
pub const PAY_INVOICE: Operation<(TenantId, InvoiceId), PaymentCreate, Invoice> =
    Operation::new("payInvoice", Method::Post, "invoices", "pay", &async |tx, (account, id), input: &PaymentCreate| {
        invoices::pay(tx, account, id, input.clone()).await
    })
    .viewed(&WITH_PAYMENTS)
    .retrieved_by(&GET_INVOICE)
    .described(
        "Record a payment",
        "Records a payment of the invoice: of `amount`, or without it of all that is left to pay.",
        "The invoice after the change.",
    );

/// The query of [`LIST_PAYMENTS`].
type PaymentList = Listing<LogParams, PaymentListFilter>;

/// Lists the payments and refunds of an account.
pub const LIST_PAYMENTS: Operation<TenantId, PaymentList, Page<BookedPayment>> = Operation::new(
    "listPayments",
    Method::Get,
    "payments",
    "",
    &async |tx, account, input: &PaymentList| {
        let sent = &input.filter;
        let position = Position::of(tx, account, "payments", &input.page, &sent.scope())?;
        let since = sent.since.map_or(Timestamp::from_micros(0), |since| since.0);
        let until = sent.until.map(|until| until.0).into_iter().chain(position.before).min();
        let times = since..until.unwrap_or(Timestamp::MAX);
        let (found, next) = invoices::payments(tx, account, sent.invoice_id, times, position.limit).await?;
        Ok(position.page(tx, found, next))
    },
)
.unwrapped()
.tagged("invoices")
.reading(|input| input.page.limit.unwrap_or_default().get())
.described(
    "List payments",
    "Returns a page of the payments and refunds of the account or of one of its invoices, the newest first, for its \
         books. Payments of invoices that were imported are not known.",
    "A page of payments.",
);

/// Returns what an account knows of a person.
pub const GET_CONTACT_DATA: Operation<(TenantId, ContactId), ContactDataParams, ContactData> =
    Operation::new("getContactData", Method::Get, "contacts", "data", &async |tx, (account, id), input| {
        personal::page(tx, account, id, input).await
    })
    .reading(|_| 2 * EVENTS)
    .described(
        "Retrieve all data of a contact",
        "Returns what the account knows of a contact, also of one that is deleted: its records, the payments, and what \
         happened to them for as long as events are kept. Of a contact with much of it, this is a page: repeat the \
         request with `next_cursor` as `cursor` until it is null, and put the lists together. Of an invoice, the \
         newest 1,000 payments are returned; with more, `is_complete` is false.",
        "What the account knows of the contact.",
    );

/// Takes a step that erases a contact.
pub const ERASE_CONTACT: Operation<(TenantId, ContactId), ErasureCreate, Erasure> = Operation::new(
    "eraseContact",
    Method::Post,
    "contacts",
    "erase",
    &async |tx, (account, id), input: &ErasureCreate| personal::erase(tx, account, id, input).await,
)
.described(
    "Erase a contact",
    "Deletes the contact, and sets the personal fields of it, of its jobs, of the notes of its bookings and of what \
     events copied to null. Ids, numbers, amounts and times stay. Fires `contact.deleted` with the `id` alone. One \
     request looks at a hundred records and events at most, and may have changed none of them: send it again, with \
     another `Idempotency-Key`, until `is_complete` is true. A contact that is deleted already can be erased.",
    "What this request has erased.",
);

/// Records a refund of an invoice.
pub const REFUND_INVOICE: Operation<(TenantId, InvoiceId), PaymentCreate, Invoice> = Operation::new(
    "refundInvoice",
    Method::Post,
    "invoices",
    "refund",
    &async |tx, (account, id), input: &PaymentCreate| invoices::refund(tx, account, id, input.clone()).await,
)
.viewed(&WITH_PAYMENTS)
.retrieved_by(&GET_INVOICE)
.described(
    "Refund an invoice",
    "Records a refund: of `amount`, or without it of all that was paid. An invoice that is refunded in full is \
     cancelled.",
    "The invoice after the change.",
);

/// Cancels an invoice on which nothing was paid.
pub const VOID_INVOICE: Operation<(TenantId, InvoiceId), (), Invoice> =
    Operation::new("voidInvoice", Method::Post, "invoices", "void", &async |tx, (account, id), _| {
        invoices::void(tx, account, id).await
    })
    .viewed(&WITH_PAYMENTS)
    .retrieved_by(&GET_INVOICE)
    .described(
        "Void an invoice",
        "Cancels an invoice on which nothing was paid.",
        "The invoice after the change.",
    );

static MARKED_WITH_PAYMENTS: Viewed<MarkedInvoices, MarkedInvoices<InvoiceWithPayments>> =
    Viewed(|MarkedInvoices { data, next }| MarkedInvoices {
        data: data.into_iter().map(InvoiceWithPayments::from).collect(),
        next,
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
.unwrapped()
.viewed(&MARKED_WITH_PAYMENTS)
.described(
    "Mark overdue invoices",
    "Checks the next of the account's unpaid invoices, and marks as `overdue` those whose due date is before today. \
     Repeat the request with `next` until it is null.",
    "The invoices that became overdue.",
);

/// Records that the customer has accepted a quote.
pub const ACCEPT_QUOTE: Operation<(TenantId, QuoteId), (), Quote> =
    Operation::new("acceptQuote", Method::Post, "quotes", "accept", &async |tx, (account, id), _| {
        quotes::accept(tx, account, id).await
    })
    .retrieved_by(&Records::<Quote>::GET)
    .described(
        "Accept a quote",
        "Records that the customer has accepted the quote.",
        "The quote after the change.",
    );

/// Records that the customer has declined a quote.
pub const DECLINE_QUOTE: Operation<(TenantId, QuoteId), (), Quote> =
    Operation::new("declineQuote", Method::Post, "quotes", "decline", &async |tx, (account, id), _| {
        quotes::decline(tx, account, id).await
    })
    .retrieved_by(&Records::<Quote>::GET)
    .described(
        "Decline a quote",
        "Records that the customer has declined the quote.",
        "The quote after the change.",
    );

/// Makes the job of a quote.
pub const CONVERT_QUOTE: Operation<(TenantId, QuoteId), QuoteConversion, Job> = Operation::new(
    "convertQuote",
    Method::Post,
    "quotes",
    "convert",
    &async |tx, (account, id), input: &QuoteConversion| {
        conversions::job_of_quote(tx, account, id, input.clone()).await
    },
)
.creates_in("jobs", |job| job.id.uuid(), &Records::<Job>::GET)
.described(
    "Convert a quote to a job",
    "Creates a job for the contact of the quote, with its total as the estimate, and makes the quote `converted`. A quote that \
     the customer has not decided on is accepted first. A quote becomes one job: a second request is refused, with the id \
     of the job as `existing_id`.",
    "The created job.",
);

/// Makes the invoice of a job.
pub const INVOICE_JOB: Operation<(TenantId, JobId), JobInvoicing, Invoice> =
    Operation::new("invoiceJob", Method::Post, "jobs", "invoice", &async |tx, (account, id), input: &JobInvoicing| {
        conversions::invoice_of_job(tx, account, id, input.clone()).await
    })
    .viewed(&WITH_PAYMENTS)
    .creates_in("invoices", |invoice| invoice.id.uuid(), &GET_INVOICE)
    .described(
        "Invoice a job",
        "Creates a draft for the contact of the job, of `total`, or without it of the job's `actual_total` or \
         `estimated_total`, and makes the job `invoiced`. The currency is that of the quote that the job was made from, or \
         else that of the account. A job has one invoice: a second request is refused, with the id of the invoice as \
         `existing_id`.",
        "The created invoice.",
    );

/// Finds the ids of records of an account by a part.
pub const FIND_IDS: Operation<TenantId, PartOfId, Matches> =
    Operation::new("findIds", Method::Get, "find-ids", "", &async |tx, account, input: &PartOfId| {
        lookup::ids_with(tx, input.kind, account, &input.part).await
    })
    .unwrapped()
    .tagged("accounts")
    .described(
        "Find ids by a part",
        "Returns the ids of the records of one kind that begin with a part, or else those that end with it. People \
         type a few characters of an id instead of all of it.",
        "The ids that have the part.",
    );

/// Finds records of an account by a text.
pub const FIND_RECORDS: Operation<TenantId, FindText, SearchResults> =
    Operation::new("findRecords", Method::Get, "find", "", &async |tx, account, input: &FindText| {
        find::find(tx, account, input).await
    })
    .unwrapped()
    .tagged("accounts")
    .described(
        "Find records by a text",
        "Returns the contacts, invoices, quotes, bookings and jobs that have a text in a name, an email address, a \
         phone number, a company, a suburb, a title or a number, in any case: at most 20, those that are named exactly \
         first, then those that changed last. `is_complete` is false for some seconds after many records changed at \
         once; then the newest of them may be missing.",
        "The records that were found.",
    );

/// Exports a page of all records of an account.
pub const EXPORT_RECORDS: Operation<TenantId, ExportParams, ExportPage> =
    Operation::new("exportRecords", Method::Get, "export", "", &async |tx, account, input: &ExportParams| {
        exports::page(tx, account, input).await
    })
    .unwrapped()
    .in_area(Area::Export)
    .reading(|input| input.limit.unwrap_or_default().get())
    .described(
        "Export all records",
        "Returns a page of all records of the account: contacts, deleted ones included, then invoices, quotes, \
         bookings and jobs, each type in the order of its changes. A record comes after the contact that it refers to, \
         also if records change while you read the pages; what changes after its page was read is not returned again. \
         To get it, export once more with the time at which you began as `since`.",
        "A page of records.",
    );

/// Imports a batch of records.
pub const IMPORT_RECORDS: Operation<TenantId, ImportCreate, ImportReport> =
    Operation::new("importRecords", Method::Post, "import", "", &async |tx, account, input: &ImportCreate| match input
        .kind
    {
        ImportKind::Contacts => import::<Contact>(tx, account, input).await,
        ImportKind::Invoices => import::<Invoice>(tx, account, input).await,
        ImportKind::All => import::<AccountRecord>(tx, account, input).await,
    })
    .dry_run(|input| matches!(input.dry_run, Some(true)))
    .in_area(Area::Import)
    .checking(|input| input.options().map(drop))
    .described(
        "Import records",
        "Adds a batch of records in one transaction, and says of each row what came of it. A row that is refused does \
         not keep the others from being imported. A row is recognised by its `id`, else by its email address or \
         number, else by all of its fields: so repeating an import adds nothing, and continues one that ended \
         early.\n\n\
         `all` takes records as an export returned them, in that order, and keeps their ids, numbers and times. They \
         fire no events. To move an account, import into one without records.",
        "What came of each row.",
    );

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
