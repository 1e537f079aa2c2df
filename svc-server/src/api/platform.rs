//! The platform API: what programs of the operator do with every account (`docs/platform.md`).
//!
//! Its table of operations drives the router, the limits, the OpenAPI document and the tests, as that of the public API
//! does. The operations on records are the same lines with the account in their path. The others are those of
//! [`svc_core::platform::operations`], with their texts.

mod webhooks;

use schemars::JsonSchema;
use serde::Serialize;
use svc_core::accounts::platform_keys::Area;
use svc_core::find::Findable;
use svc_core::input::Input;
use svc_core::pages::Page;
use svc_core::platform::operations::{self, Records, SearchedList};
use svc_core::platform::{self, MarkedInvoices, Target};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::Amount;

use crate::api::extensions::EVENTS;
use crate::api::handlers::ParseFn;
use crate::api::routes::{self, Operation, Shape, inline, retrieve_record, schema, wrapped};
use crate::api::row::{self, Row, rendered, retrieve};

/// Returns all operations of the platform API.
pub fn operations() -> Vec<Operation> {
    let mut all = accounts();
    all.extend(sandboxes());
    all.extend(keys());
    all.extend(members());
    all.extend(apps());
    // Everything that an API key can do, except to check itself.
    all.extend(routes::records().into_iter().map(with_area));
    all.extend(contacts());
    all.extend(invoices());
    all.extend(quotes());
    all.extend(webhooks::events());
    all.extend(webhooks::webhooks());
    all.extend(webhooks::deliveries());
    all.extend(logs());
    all.extend(lookups());
    all.extend(transfers());
    all
}

/// An invoice with its payments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct InvoiceWithPayments {
    /// The invoice.
    #[serde(flatten)]
    invoice: Invoice,
    /// The amount paid so far, less refunds, in `currency`.
    amount_paid: Amount,
}

impl From<Invoice> for InvoiceWithPayments {
    fn from(invoice: Invoice) -> Self {
        Self { amount_paid: invoice.amount_paid, invoice }
    }
}

/// Returns the row of an operation in an area.
fn row<K: Target, I: Input + Clone, O: Send + 'static>(
    area: Area,
    operation: platform::Operation<K, I, O>,
) -> Row<K, I, O> {
    row::row(operation).in_area(area)
}

/// Returns an operation that the public API has as well. The platform API alone shows what was paid of an invoice.
fn with_area(operation: Operation) -> Operation {
    let area = if operation.collection == "webhooks" { Area::Webhooks } else { Area::Records };
    let operation = Operation { area: Some(area), ..operation };
    match operation.id {
        "getInvoice" => {
            let shape = Shape { response: Some(wrapped::<InvoiceWithPayments>), ..operation.shape };
            Operation { parse: get_invoice(), shape, ..operation }
        }
        "listContacts" => searched::<Contact, Contact>(operation),
        "listInvoices" => searched::<Invoice, InvoiceWithPayments>(operation),
        "listQuotes" => searched::<Quote, Quote>(operation),
        "listBookings" => searched::<Booking, Booking>(operation),
        "listJobs" => searched::<Job, Job>(operation),
        _ => operation,
    }
}

/// Returns a list that can be searched, with its records in another form.
fn searched<R, S>(operation: Operation) -> Operation
where
    R: Findable<Filter: Input>,
    S: From<R> + Serialize + JsonSchema + Send + 'static,
{
    let list = rendered(Records::<R>::SEARCH, |Page { data, next_cursor, .. }| {
        Page::new(data.into_iter().map(S::from).collect(), next_cursor)
    });
    let list = list.reading(|input| input.page.limit.unwrap_or_default().get());
    let query: &[_] = const { &[inline::<SearchedList<R::Filter>> as fn(&mut _) -> _] };
    let shape = Shape { query, response: Some(schema::<Page<S>>), ..operation.shape };
    Operation { parse: list.parser(), shape, ..operation }
}

/// Returns what retrieves an invoice with its payments.
fn get_invoice() -> ParseFn {
    rendered(Records::<Invoice>::GET, InvoiceWithPayments::from).with_etag().parser()
}

/// Returns the row of an operation that returns an invoice, with its payments.
fn invoice<K: Target, I: Input + Clone>(
    operation: platform::Operation<K, I, Invoice>,
) -> Row<K, I, Invoice, InvoiceWithPayments> {
    rendered(operation, InvoiceWithPayments::from).in_area(Area::Records).retrieved_by(get_invoice())
}

/// The memory in which the request log of an account is searched, in records.
const REQUEST_LOG: u32 = 32;
/// The memory that a list without pages needs, such as that of 500 keys with names of 1,200 bytes, in records.
const WHOLE_LIST: u32 = 32;

fn accounts() -> Vec<Operation> {
    vec![
        row(Area::Accounts, operations::CREATE_ACCOUNT)
            .creates_record(|account| account.id.0, retrieve(operations::GET_ACCOUNT))
            .described(
                "Create an account",
                "Creates an account. It is approved, unless you send another `developer_access`; the keys \
                 of an account that is not approved are refused with 403.",
                "The created account.",
            ),
        row(Area::Accounts, operations::LIST_ACCOUNTS)
            .reading(|input| input.limit.unwrap_or_default().get())
            .described(
                "List accounts",
                "Returns a page of all accounts, the oldest first. Sandboxes are among them with `sandboxes` only.",
                "A page of accounts.",
            ),
        row(Area::Accounts, operations::GET_ACCOUNT).with_etag().described(
            "Retrieve an account",
            "Returns the account with its settings, its approval and its limits.",
            "The account with this id.",
        ),
        row(Area::Accounts, operations::UPDATE_ACCOUNT).retrieved_by(retrieve(operations::GET_ACCOUNT)).described(
            "Update an account",
            "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, \
             RFC 7396). Set `developer_access` to approve or to suspend the account.",
            "The account after the change.",
        ),
    ]
}

fn sandboxes() -> Vec<Operation> {
    vec![
        row(Area::Accounts, operations::GET_SANDBOX).tagged("accounts").with_etag().described(
            "Retrieve the sandbox of an account",
            "Returns the sandbox of the account: an account of its own in which programs are tried. An account without one \
             gets 404. Everything else is done with the `id` of the sandbox, as with any account.",
            "The sandbox of the account.",
        ),
        row(Area::Accounts, operations::CREATE_SANDBOX).tagged("accounts").creates().described(
            "Create the sandbox of an account",
            "Creates the sandbox of the account, with sample records and an API key that begins with `svc_test_`. Store \
             the key, as no other request returns it. An account has one sandbox: a second one is refused with 409 \
             `not_allowed`, and so is the sandbox of a sandbox.",
            "The created sandbox, with its key.",
        ),
        row(Area::Accounts, operations::RESET_SANDBOX).tagged("accounts").described(
            "Reset the sandbox of an account",
            "Deletes the next of the sandbox's records, events, deliveries, logged requests and stored responses, at most \
             500 of them, and creates the sample records when none is left. Repeat the request, each time with another \
             `Idempotency-Key` or none, until `is_done` is true. API keys, webhook subscriptions, sessions and the audit \
             log stay.",
            "What was deleted.",
        ),
        row(Area::Accounts, operations::DELETE_SANDBOX).tagged("accounts").described(
            "Delete the sandbox of an account",
            "Deletes the next of all that the sandbox has, at most 500 rows, and at last the sandbox itself. Its API keys \
             are refused from the first request on. Repeat the request, each time with another `Idempotency-Key` or none, \
             until `is_done` is true.",
            "What was deleted.",
        ),
    ]
}

fn keys() -> Vec<Operation> {
    vec![
        row(Area::Keys, operations::LIST_KEYS).reading(|_| WHOLE_LIST).described(
            "List API keys",
            "Returns all API keys of the account, the oldest first, also those that are revoked or \
             expired. Their texts are not included.",
            "All API keys of the account.",
        ),
        row(Area::Keys, operations::CREATE_KEY)
            .creates_record(|key| key.id.uuid(), retrieve(operations::GET_KEY))
            .described(
                "Create an API key",
                "Creates an API key. The response contains its text, and its signing secret if it signs \
                 its writes. Store them, as no other request returns them.",
                "The created API key, with its text.",
            ),
        row(Area::Keys, operations::GET_KEY).with_etag().described(
            "Retrieve an API key",
            "Returns the API key with this id, without its text.",
            "The API key with this id.",
        ),
        row(Area::Keys, operations::REVOKE_KEY).described(
            "Revoke an API key",
            "Revokes the API key, which is refused from the next request on. A revocation cannot be \
             undone. Revoking a revoked key changes nothing.",
            "The revoked API key.",
        ),
        row(Area::Keys, operations::ROTATE_KEY).creates().described(
            "Rotate an API key",
            "Creates an API key with the name, scopes, lifetime and signing choice of this one, which \
             expires after the overlap. A key that is revoked or expired is refused with 409 \
             `not_allowed`.",
            "The new API key, with its text.",
        ),
    ]
}

fn apps() -> Vec<Operation> {
    vec![
        row(Area::Apps, operations::CREATE_APP)
            .creates()
            .with_webhook_url("disconnect_url", |input| input.disconnect_url.clone())
            .described(
                "Create an app",
                "Creates an app of somebody else, which owners of accounts can let work on them (OAuth 2.0). The response \
                 contains its secret. Store it, as no other request returns it.",
                "The created app, with its secret.",
            ),
        row(Area::Apps, operations::LIST_APPS).reading(|_| WHOLE_LIST).described(
            "List apps",
            "Returns the apps of the operator, or those of the account `account_id`, the oldest first.",
            "All apps of the operator, or of the account.",
        ),
        row(Area::Apps, operations::GET_APP).with_etag().described(
            "Retrieve an app",
            "Returns the app with this id, without its secret.",
            "The app with this id.",
        ),
        row(Area::Apps, operations::UPDATE_APP)
            .with_webhook_url("disconnect_url", |input| input.disconnect_url.clone().sent().flatten())
            .described(
                "Update an app",
                "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). The tokens \
                 of a disabled app are refused from the next request on, and work again once it is enabled.",
                "The app after the change.",
            ),
        row(Area::Apps, operations::ROTATE_APP_SECRET).described(
            "Rotate the secret of an app",
            "Creates another secret. The one before is taken until the end of the overlap. A public app, which has no \
             secret, is refused with 409 `not_allowed`.",
            "The app, with its new secret.",
        ),
        row(Area::Apps, operations::DELETE_APP).described(
            "Delete an app",
            "Deletes the app, and ends its access to all accounts. One with access to more than 100 accounts is refused with \
             409 `not_allowed`; disable it instead.",
            "The app was deleted. The response has no body.",
        ),
        row(Area::Apps, operations::LIST_GRANTS).reading(|_| WHOLE_LIST).tagged("apps").described(
            "List grants",
            "Returns the apps that may work on the account, the one that was granted first at the top.",
            "All grants of the account.",
        ),
        row(Area::Apps, operations::REVOKE_GRANT).tagged("apps").described(
            "Revoke a grant",
            "Ends the access of an app to the account: its tokens are refused from the next request on, and its webhook \
             subscriptions are deleted.",
            "The grant that has ended.",
        ),
    ]
}

fn members() -> Vec<Operation> {
    vec![
        row(Area::Members, operations::LIST_MEMBERS).reading(|_| WHOLE_LIST).described(
            "List members",
            "Returns all members of the account: the people who sign in to its dashboard with their \
             email address.",
            "All members of the account.",
        ),
        row(Area::Members, operations::ADD_MEMBER)
            .creates_record(|member| member.id.uuid(), retrieve(operations::GET_MEMBER))
            .described(
                "Add a member",
                "Lets a person sign in to the dashboard of the account with this email address. An \
                 address that is a member already is refused with 409 `not_allowed`.",
                "The added member.",
            ),
        row(Area::Members, operations::GET_MEMBER).with_etag().described(
            "Retrieve a member",
            "Returns the member with this id.",
            "The member with this id.",
        ),
        row(Area::Members, operations::UPDATE_MEMBER).retrieved_by(retrieve(operations::GET_MEMBER)).described(
            "Change the role of a member",
            "Changes what the member may do from the next request on.",
            "The member after the change.",
        ),
        row(Area::Members, operations::REMOVE_MEMBER).retrieved_by(retrieve(operations::GET_MEMBER)).described(
            "Remove a member",
            "Removes the member, who can no longer see the account from the next request on.",
            "The member was removed. The response has no body.",
        ),
        row(Area::Members, operations::CREATE_DASHBOARD_LINK).creates().described(
            "Create a dashboard link",
            "Creates a link that signs a person in to the dashboard of the account, with any role. It \
             works once, for ten minutes. A key with the scope `members:write` can make a link for an \
             owner, who manages API keys, settings and members there: the session that the link \
             begins goes on when the key is revoked.",
            "The created link.",
        ),
        row(Area::Operators, operations::CREATE_OPERATOR_LINK).creates().described(
            "Create a link for an operator",
            "Creates a link that signs an operator in to the dashboard, who sees all accounts, \
             approves them and sets their limits. It works once, for ten minutes. The key needs the \
             scope `operators:write`, which `*` does not include: the session that the link begins \
             goes on when the key is revoked.",
            "The created link.",
        ),
    ]
}

fn invoices() -> Vec<Operation> {
    vec![
        invoice(operations::CREATE_INVOICE).creates_record(|invoice| invoice.id.uuid(), get_invoice()).described(
            "Create an invoice",
            "Creates an invoice with the status `draft` and the next `invoice_number` of the account.",
            "The created invoice.",
        ),
        invoice(operations::UPDATE_INVOICE).described(
            "Update an invoice",
            "Changes the fields that you send of an invoice that is neither paid nor cancelled. An \
                 amount that becomes equal to what was paid makes the invoice `paid`.",
            "The invoice after the change.",
        ),
        invoice(operations::SEND_INVOICE).described(
            "Send an invoice",
            "Marks the draft as sent.",
            "The invoice after the change.",
        ),
        invoice(operations::VIEW_INVOICE).described(
            "Mark an invoice as viewed",
            "Records that the customer has seen the invoice.",
            "The invoice after the change.",
        ),
        invoice(operations::RESEND_INVOICE).described(
            "Send an invoice again",
            "Fires the event of an invoice that was sent once more.",
            "The invoice after the change.",
        ),
        invoice(operations::PAY_INVOICE).described(
            "Record a payment",
            "Records a payment of the invoice: of `amount`, or without it of all that is left to pay.",
            "The invoice after the change.",
        ),
        invoice(operations::REFUND_INVOICE).described(
            "Refund an invoice",
            "Records a refund: of `amount`, or without it of all that was paid. An invoice that is \
                 refunded in full is cancelled.",
            "The invoice after the change.",
        ),
        invoice(operations::VOID_INVOICE).described(
            "Void an invoice",
            "Cancels an invoice on which nothing was paid.",
            "The invoice after the change.",
        ),
        rendered(operations::MARK_OVERDUE_INVOICES, |MarkedInvoices { data, next }| MarkedInvoices {
            data: data.into_iter().map(InvoiceWithPayments::from).collect(),
            next,
        })
        .in_area(Area::Records)
        .described(
            "Mark overdue invoices",
            "Checks the next of the account's unpaid invoices, and marks as `overdue` those whose due \
                 date is before today. Repeat the request with `next` until it is null.",
            "The invoices that became overdue.",
        ),
    ]
}

fn contacts() -> Vec<Operation> {
    vec![
        row(Area::Records, operations::GET_CONTACT_DATA).reading(|_| 2 * EVENTS).described(
            "Retrieve all data of a contact",
            "Returns what the account knows of a contact, also of one that is deleted: its records, the payments, and what \
             happened to them for as long as events are kept. Of a contact with much of it, this is a page: repeat the request \
             with `next_cursor` as `cursor` until it is null, and put the lists together. Of an invoice, the newest 1,000 \
             payments are returned; with more, `is_complete` is false.",
            "What the account knows of the contact.",
        ),
        row(Area::Records, operations::ERASE_CONTACT).described(
            "Erase a contact",
            "Deletes the contact, and sets the personal fields of it, of its jobs, of the notes of its bookings and of what \
             events copied to null. Ids, numbers, amounts and times stay. Fires `contact.deleted` with the `id` alone. One \
             request looks at a hundred records and events at most, and may have changed none of them: send it again, with \
             another `Idempotency-Key`, until `is_complete` is true. A contact that is deleted already can be erased.",
            "What this request has erased.",
        ),
    ]
}

fn quotes() -> Vec<Operation> {
    vec![
        row(Area::Records, operations::ACCEPT_QUOTE).retrieved_by(retrieve_record::<Quote>()).described(
            "Accept a quote",
            "Records that the customer has accepted the quote.",
            "The quote after the change.",
        ),
        row(Area::Records, operations::DECLINE_QUOTE).retrieved_by(retrieve_record::<Quote>()).described(
            "Decline a quote",
            "Records that the customer has declined the quote.",
            "The quote after the change.",
        ),
    ]
}

fn logs() -> Vec<Operation> {
    vec![
        row(Area::Audit, operations::LIST_AUDIT_LOG)
            .reading(|input| EVENTS.max(input.page.limit.unwrap_or_default().get()))
            .described(
                "List the audit log",
                "Returns a page of the changes in the account, the newest first, with who made them. \
                 Changes made at the same time stay on one page, which may have more of them than \
                 `limit`. A page may have fewer although there are more, when the changed records are large: read on while \
                 `next_cursor` is not null.",
                "A page of changes.",
            ),
        row(Area::Audit, operations::LIST_REQUESTS)
            .reading(|input| REQUEST_LOG.max(input.page.limit.unwrap_or_default().get()))
            .described(
                "List the request log",
                "Returns a page of the requests with API keys of the account, the newest first, without their bodies. \
                 The log has the newest 1,000 requests of the last 24 hours. A request appears in it a few seconds \
                 after its response. Requests made at the same time stay on one page.",
                "A page of requests.",
            ),
    ]
}

fn lookups() -> Vec<Operation> {
    vec![
        row(Area::Accounts, operations::FIND_ACCOUNTS).tagged("accounts").described(
            "Find the account of a record",
            "Returns the accounts that have a record with this id. There is one, or none, unless an \
             import gave records of several accounts the same id. The ids of contacts, bookings and \
             jobs are known within their account only.",
            "The accounts that have the record.",
        ),
        row(Area::Records, operations::FIND_IDS).tagged("accounts").described(
            "Find ids by a part",
            "Returns the ids of the records of one kind that begin with a part, or else those that \
             end with it. People type a few characters of an id instead of all of it.",
            "The ids that have the part.",
        ),
        row(Area::Records, operations::FIND_RECORDS).tagged("accounts").described(
            "Find records by a text",
            "Returns the contacts, invoices, quotes, bookings and jobs that have a text in a name, an email address, a phone \
             number, a company, a suburb, a title or a number, in any case: at most 20, those that are named exactly first, \
             then those that changed last. `is_complete` is false for some seconds after many records changed at once; then \
             the newest of them may be missing.",
            "The records that were found.",
        ),
    ]
}

fn transfers() -> Vec<Operation> {
    vec![
        row(Area::Export, operations::EXPORT_RECORDS).reading(|input| input.limit.unwrap_or_default().get()).described(
            "Export all records",
            "Returns a page of all records of the account: contacts, deleted ones included, then \
             invoices, quotes, bookings and jobs, each type in the order of its changes. A record \
             comes after the contact that it refers to, also if records change while you read the \
             pages; what changes after its page was read is not returned again. To get it, export \
             once more with the time at which you began as `since`.",
            "A page of records.",
        ),
        row(Area::Import, operations::IMPORT_RECORDS).checking(|input| input.options().map(drop)).described(
            "Import records",
            "Adds a batch of records in one transaction, and says of each row what came of it. A row \
             that is refused does not keep the others from being imported. A row is recognised by its \
             `id`, else by its email address or number, else by all of its fields: so repeating an \
             import adds nothing, and continues one that ended early.\n\n`all` takes records as an \
             export returned them, in that order, and keeps their ids, numbers and times. They fire \
             no events. To move an account, import into one without records.",
            "What came of each row.",
        ),
    ]
}

#[cfg(test)]
mod tests;
