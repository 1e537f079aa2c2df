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
mod texts;

pub use self::accounts::*;
pub use self::apps::*;
pub use self::events::*;
pub use self::logs::LogQuery;
pub use self::records::*;
pub use self::requests::LIST_REQUESTS;
use crate::operation::AnyOperation;
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::Invoice;
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::webhooks::subscriptions::WebhookSubscription;

/// Returns the 25 operations of the contract, which the public API always has.
pub fn public() -> Vec<&'static dyn AnyOperation> {
    vec![
        &contract::PING,
        &Records::<Contact>::LIST,
        &Records::<Contact>::CREATE,
        &Records::<Contact>::GET,
        &Records::<Contact>::UPDATE,
        &Records::<Contact>::DELETE,
        &Records::<Invoice>::LIST,
        &Records::<Invoice>::GET,
        &Records::<Booking>::LIST,
        &Records::<Booking>::CREATE,
        &Records::<Booking>::GET,
        &Records::<Booking>::UPDATE,
        &Records::<Quote>::LIST,
        &Records::<Quote>::CREATE,
        &Records::<Quote>::GET,
        &Records::<Quote>::UPDATE,
        &Records::<Job>::LIST,
        &Records::<Job>::CREATE,
        &Records::<Job>::GET,
        &Records::<Job>::UPDATE,
        &contract::LIST_WEBHOOKS,
        &contract::CREATE,
        &contract::GET_WEBHOOK,
        &contract::UPDATE_WEBHOOK,
        &contract::DELETE_WEBHOOK,
    ]
}

/// Returns the operations of the public API that go beyond the contract: what was missed is fetched, and sent again. An app sees
/// only the deliveries to its own subscriptions.
pub fn extensions() -> Vec<&'static dyn AnyOperation> {
    vec![
        &LIST_EVENTS,
        &GET_EVENT,
        &LIST_WEBHOOK_DELIVERIES,
        &GET_DELIVERY,
        &LIST_DELIVERY_ATTEMPTS,
        &REPLAY_DELIVERY,
        &REPLAY_WEBHOOK,
        &GET_REPLAY,
        &TEST_WEBHOOK,
        &contract::ROTATE_SECRET,
    ]
}

/// Returns the operations that assistants have of the public API as tools. Their lists can be filtered by more than the contract
/// has. What a client of HTTP alone needs is not among them, and what returns a secret that the provider of the assistant would
/// get as well.
pub fn tools() -> Vec<&'static dyn AnyOperation> {
    vec![
        &Records::<Contact>::LIST,
        &Records::<Contact>::CREATE,
        &Records::<Contact>::GET,
        &Records::<Contact>::UPDATE,
        &Records::<Contact>::DELETE,
        &Records::<Invoice>::LIST_OF_CONTACT,
        &Records::<Invoice>::GET,
        &Records::<Booking>::LIST_BY_START,
        &Records::<Booking>::CREATE,
        &Records::<Booking>::GET,
        &Records::<Booking>::UPDATE,
        &Records::<Quote>::LIST_OF_CONTACT,
        &Records::<Quote>::CREATE,
        &Records::<Quote>::GET,
        &Records::<Quote>::UPDATE,
        &Records::<Job>::LIST_BY_START,
        &Records::<Job>::CREATE,
        &Records::<Job>::GET,
        &Records::<Job>::UPDATE,
        &contract::LIST_WEBHOOKS,
        &contract::CREATE,
        &contract::GET_WEBHOOK,
        &contract::UPDATE_WEBHOOK,
        &contract::DELETE_WEBHOOK,
        &LIST_EVENTS,
        &GET_EVENT,
        &LIST_WEBHOOK_DELIVERIES,
        &GET_DELIVERY,
        &LIST_DELIVERY_ATTEMPTS,
        &REPLAY_DELIVERY,
        &REPLAY_WEBHOOK,
        &GET_REPLAY,
        &FIND_RECORDS,
    ]
}

/// Returns the operations of the platform API.
pub fn platform() -> Vec<&'static dyn AnyOperation> {
    vec![
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
        &Records::<Contact>::SEARCH,
        &Records::<Contact>::CREATE,
        &Records::<Contact>::GET,
        &Records::<Contact>::UPDATE,
        &Records::<Contact>::DELETE,
        &LIST_INVOICES,
        &GET_INVOICE,
        &Records::<Booking>::SEARCH,
        &Records::<Booking>::CREATE,
        &Records::<Booking>::GET,
        &Records::<Booking>::UPDATE,
        &Records::<Quote>::SEARCH,
        &Records::<Quote>::CREATE,
        &Records::<Quote>::GET,
        &Records::<Quote>::UPDATE,
        &Records::<Job>::SEARCH,
        &Records::<Job>::CREATE,
        &Records::<Job>::GET,
        &Records::<Job>::UPDATE,
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
        &MARK_OVERDUE_INVOICES,
        &ACCEPT_QUOTE,
        &DECLINE_QUOTE,
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
    ]
}
