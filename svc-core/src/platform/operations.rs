//! The operations of the public API and of the platform API: what each takes, does and returns, and what documents say of it.
//!
//! Each is one constant. The servers have the lists below; the methods of the typed client and the commands of `svc` name the
//! constants.

mod accounts;
mod apps;
pub mod contract;
mod events;
mod logs;
mod memory;
mod records;
mod requests;
mod shared;
mod texts;

pub use self::accounts::*;
pub use self::apps::*;
pub use self::events::*;
pub use self::logs::LogQuery;
pub use self::records::*;
pub use self::requests::LIST_REQUESTS;
pub use self::shared::*;
use crate::operation::AnyOperation;
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::Invoice;
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::webhooks::subscriptions::WebhookSubscription;

/// A list of operations.
pub type Operations = Vec<&'static dyn AnyOperation>;

/// Returns the 25 operations of the contract, which the public API always has.
pub fn public() -> Operations {
    let lists = Lists {
        contacts: &Records::<Contact>::LIST,
        invoices: &Records::<Invoice>::LIST,
        bookings: &Records::<Booking>::LIST,
        quotes: &Records::<Quote>::LIST,
        jobs: &Records::<Job>::LIST,
    };
    let ping: Operations = vec![&contract::PING];
    [ping, records(&lists, &Records::<Invoice>::GET), webhooks()].concat()
}

/// Returns the operations of the public API that go beyond the contract: what was missed is fetched, and sent again. An app sees
/// only the deliveries to its own subscriptions.
pub fn extensions() -> Operations {
    let mut all = deliveries();
    all.push(&TEST_WEBHOOK);
    all.push(&contract::ROTATE_WEBHOOK_SECRET);
    all
}

/// Returns the operations that assistants have of the public API as tools. Their lists can be filtered by more than the contract
/// has. Operations for clients of HTTP alone are not among them, nor those that return a secret which the provider of the assistant would
/// get as well.
pub fn tools() -> Operations {
    let lists = Lists {
        contacts: &Records::<Contact>::LIST,
        invoices: &Records::<Invoice>::LIST_OF_CONTACT,
        bookings: &Records::<Booking>::LIST_BY_START,
        quotes: &Records::<Quote>::LIST_OF_CONTACT,
        jobs: &Records::<Job>::LIST_BY_START,
    };
    let search: Operations = vec![&FIND_RECORDS];
    [records(&lists, &Records::<Invoice>::GET), webhooks(), deliveries(), search].concat()
}

/// How the records of an API are listed.
struct Lists {
    contacts: &'static dyn AnyOperation,
    invoices: &'static dyn AnyOperation,
    bookings: &'static dyn AnyOperation,
    quotes: &'static dyn AnyOperation,
    jobs: &'static dyn AnyOperation,
}

/// Returns the operations on records that every API has.
fn records(lists: &Lists, get_invoice: &'static dyn AnyOperation) -> Operations {
    vec![
        lists.contacts,
        &Records::<Contact>::CREATE,
        &Records::<Contact>::GET,
        &Records::<Contact>::UPDATE,
        &Records::<Contact>::DELETE,
        lists.invoices,
        get_invoice,
        lists.bookings,
        &Records::<Booking>::CREATE,
        &Records::<Booking>::GET,
        &Records::<Booking>::UPDATE,
        lists.quotes,
        &Records::<Quote>::CREATE,
        &Records::<Quote>::GET,
        &Records::<Quote>::UPDATE,
        lists.jobs,
        &Records::<Job>::CREATE,
        &Records::<Job>::GET,
        &Records::<Job>::UPDATE,
    ]
}

/// Returns the operations on webhook subscriptions, as the contract has them.
fn webhooks() -> Operations {
    vec![
        &contract::LIST_WEBHOOKS,
        &contract::CREATE_WEBHOOK,
        &contract::GET_WEBHOOK,
        &contract::UPDATE_WEBHOOK,
        &contract::DELETE_WEBHOOK,
    ]
}

/// Returns the operations of the public API on events and deliveries.
fn deliveries() -> Operations {
    vec![
        &LIST_EVENTS,
        &GET_EVENT,
        &LIST_WEBHOOK_DELIVERIES,
        &GET_DELIVERY,
        &LIST_DELIVERY_ATTEMPTS,
        &REPLAY_DELIVERY,
        &REPLAY_WEBHOOK,
        &GET_REPLAY,
    ]
}

/// Returns the operations of the platform API.
pub fn platform() -> Operations {
    let lists = Lists {
        contacts: &Records::<Contact>::SEARCH,
        invoices: &LIST_INVOICES,
        bookings: &Records::<Booking>::SEARCH,
        quotes: &Records::<Quote>::SEARCH,
        jobs: &Records::<Job>::SEARCH,
    };
    let of_accounts: Operations = vec![
        &CREATE_ACCOUNT,
        &LIST_ACCOUNTS,
        &GET_ACCOUNT,
        &UPDATE_ACCOUNT,
        &GET_SANDBOX,
        &CREATE_SANDBOX,
        &RESET_SANDBOX,
        &DELETE_SANDBOX,
        &LIST_KEYS,
        &CREATE_KEY,
        &GET_KEY,
        &REVOKE_KEY,
        &ROTATE_KEY,
        &LIST_MEMBERS,
        &ADD_MEMBER,
        &GET_MEMBER,
        &UPDATE_MEMBER,
        &REMOVE_MEMBER,
        &CREATE_DASHBOARD_LINK,
        &CREATE_OPERATOR_LINK,
        &CREATE_APP,
        &LIST_APPS,
        &GET_APP,
        &UPDATE_APP,
        &ROTATE_APP_SECRET,
        &DELETE_APP,
        &LIST_GRANTS,
        &REVOKE_GRANT,
    ];
    let rest: Operations = vec![
        &Records::<WebhookSubscription>::LIST,
        &CREATE_WEBHOOK,
        &Records::<WebhookSubscription>::GET,
        &Records::<WebhookSubscription>::UPDATE,
        &Records::<WebhookSubscription>::DELETE,
        &GET_CONTACT_DATA,
        &ERASE_CONTACT,
        &CREATE_INVOICE,
        &UPDATE_INVOICE,
        &SEND_INVOICE,
        &VIEW_INVOICE,
        &RESEND_INVOICE,
        &PAY_INVOICE,
        &REFUND_INVOICE,
        &VOID_INVOICE,
        &LIST_PAYMENTS,
        &MARK_OVERDUE_INVOICES,
        &ACCEPT_QUOTE,
        &DECLINE_QUOTE,
        &CONVERT_QUOTE,
        &INVOICE_JOB,
        &SHARE_INVOICE,
        &UNSHARE_INVOICE,
        &SHARE_QUOTE,
        &UNSHARE_QUOTE,
        &SHARE_CALENDAR,
        &UNSHARE_CALENDAR,
        &LIST_EVENTS,
        &EMIT_EVENT,
        &EMIT_SAMPLE_EVENT,
        &GET_EVENT,
        &CREATE_TEMPORARY_WEBHOOK,
        &CREATE_STREAM_WEBHOOK,
        &KEEP_WEBHOOK,
        &ROTATE_WEBHOOK_SECRET,
        &FINISH_WEBHOOK_ROTATION,
        &TEST_WEBHOOK,
        &LIST_WEBHOOK_ATTEMPTS,
        &GET_WEBHOOK_STATISTICS,
        &LIST_DELIVERIES,
        &GET_DELIVERY,
        &LIST_DELIVERY_ATTEMPTS,
        &REPLAY_DELIVERY,
        &LIST_REPLAYS,
        &CREATE_REPLAY,
        &GET_REPLAY,
        &GET_STATISTICS,
        &LIST_AUDIT_LOG,
        &LIST_REQUESTS,
        &FIND_ACCOUNTS,
        &FIND_IDS,
        &FIND_RECORDS,
        &EXPORT_RECORDS,
        &IMPORT_RECORDS,
    ];
    [of_accounts, records(&lists, &GET_INVOICE), rest].concat()
}
