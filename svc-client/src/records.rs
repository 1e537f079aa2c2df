//! The collections of the API, and what can be done with the records of each.
//!
//! The records, their inputs and their filters are those of [`svc_core`]. A call without an implementation does not
//! compile: no API has an operation that deletes a quote, and only the platform API has one that creates an invoice. For
//! this, some traits name the client by which a collection is reached: [`Client`], or [`Platform`].

use std::fmt::{Debug, Display};

use serde::de::DeserializeOwned;
use svc_core::accounts::audit::AuditEntryId;
use svc_core::accounts::keys::KeyId;
use svc_core::accounts::members::{Member, MemberId};
use svc_core::input::ToBody;
use svc_core::pages::MAX_LIMIT;
use svc_core::platform::{
    Account, AccountCreate, AccountUpdate, ApiKey, ApiKeyCreate, ApiKeyWithSecret, ApiRequest, AuditEntry, Delivery,
    DeliveryDetails, DeliveryListFilter, Event, EventListFilter, LogFilter, MemberCreate, MemberUpdate, Replay,
    ReplayCreate, RequestListFilter,
};
use svc_core::requests::ApiRequestId;
use svc_core::resources::bookings::{Booking, BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{Contact, ContactCreate, ContactFilter, ContactUpdate};
use svc_core::resources::invoices::{Invoice, InvoiceCreate, InvoiceFilter, InvoiceUpdate};
use svc_core::resources::jobs::{Job, JobCreate, JobFilter, JobUpdate};
use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteFilter, QuoteUpdate};
use svc_core::resources::{NoFilter, Resource};
use svc_core::values::{Id, TenantId};
use svc_core::webhooks::deliveries::DeliveryId;
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::replays::ReplayId;
use svc_core::webhooks::subscriptions::{
    WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use crate::client::Client;
use crate::platform::Platform;

/// A record with a collection in an API.
pub trait Record: DeserializeOwned + Send + 'static {
    /// The segment of the collection in a path, such as `contacts`.
    const PATH: &'static str;
    /// The most records on a page of the list. `None` if the list has one page and takes no limit.
    const PAGE_LIMIT: Option<u32> = Some(MAX_LIMIT);
    /// The id of a record.
    type Id: Copy + Display + Send + Sync;
    /// The filters of the list. The `Default` filters nothing.
    type Filters: ToBody + Clone + Debug + Default + Send + Sync;
}

/// A record that can be read by its id.
pub trait Readable: Record {
    /// The content of the response: the record, or more than lists have.
    type Full: DeserializeOwned + Send;
}

/// A record that clients of this kind can create.
pub trait Creatable<C = Client>: Record {
    /// The body of the request.
    type Input: ToBody + Sync;
    /// The content of the response to the create: the record, or more than later responses have.
    type Created: DeserializeOwned + Send;
}

/// A record that clients of this kind can change.
pub trait Updatable<C = Client>: Record {
    /// The body of the request.
    type Change: ToBody + Sync;
}

/// A record that can be deleted.
pub trait Deletable: Record {}

/// A record whose collection can be copied and kept in sync.
pub trait Syncable: Record + Resource {
    /// Returns the filter with which the list has everything, also deletions.
    fn everything() -> Self::Filters {
        Self::Filters::default()
    }
}

impl Record for Booking {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = NoFilter;
}
impl Record for Contact {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = ContactFilter;
}
impl Record for Invoice {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = InvoiceFilter;
}
impl Record for Job {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = JobFilter;
}
impl Record for Quote {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = QuoteFilter;
}
impl Record for WebhookSubscription {
    const PATH: &'static str = Self::COLLECTION;
    type Id = Id<Self>;
    type Filters = NoFilter;
}
impl Record for Account {
    const PATH: &'static str = "accounts";
    type Id = TenantId;
    type Filters = NoFilter;
}
impl Record for ApiKey {
    const PATH: &'static str = "keys";
    const PAGE_LIMIT: Option<u32> = None;
    type Id = KeyId;
    type Filters = NoFilter;
}
impl Record for Member {
    const PATH: &'static str = "members";
    const PAGE_LIMIT: Option<u32> = None;
    type Id = MemberId;
    type Filters = NoFilter;
}
impl Record for Event {
    const PATH: &'static str = "events";
    type Id = EventId;
    type Filters = EventListFilter;
}
impl Record for Delivery {
    const PATH: &'static str = "deliveries";
    type Id = DeliveryId;
    type Filters = DeliveryListFilter;
}
impl Record for Replay {
    const PATH: &'static str = "replays";
    type Id = ReplayId;
    type Filters = NoFilter;
}
impl Record for ApiRequest {
    const PATH: &'static str = "requests";
    type Id = ApiRequestId;
    type Filters = RequestListFilter;
}
impl Record for AuditEntry {
    const PATH: &'static str = "audit-log";
    type Id = AuditEntryId;
    type Filters = LogFilter;
}

impl Readable for Booking {
    type Full = Self;
}
impl Readable for Contact {
    type Full = Self;
}
impl Readable for Invoice {
    type Full = Self;
}
impl Readable for Job {
    type Full = Self;
}
impl Readable for Quote {
    type Full = Self;
}
impl Readable for WebhookSubscription {
    type Full = Self;
}
impl Readable for Account {
    type Full = Self;
}
impl Readable for ApiKey {
    type Full = Self;
}
impl Readable for Member {
    type Full = Self;
}
impl Readable for Event {
    type Full = Self;
}
impl Readable for Delivery {
    type Full = DeliveryDetails;
}
impl Readable for Replay {
    type Full = Self;
}

impl<C> Creatable<C> for Booking {
    type Input = BookingCreate;
    type Created = Self;
}
impl<C> Creatable<C> for Contact {
    type Input = ContactCreate;
    type Created = Self;
}
impl<C> Creatable<C> for Job {
    type Input = JobCreate;
    type Created = Self;
}
impl<C> Creatable<C> for Quote {
    type Input = QuoteCreate;
    type Created = Self;
}
impl<C> Creatable<C> for WebhookSubscription {
    type Input = WebhookCreate;
    type Created = WebhookSubscriptionWithSecret;
}
impl Creatable<Platform> for Invoice {
    type Input = InvoiceCreate;
    type Created = Self;
}
impl Creatable<Platform> for Account {
    type Input = AccountCreate;
    type Created = Self;
}
impl Creatable<Platform> for ApiKey {
    type Input = ApiKeyCreate;
    type Created = ApiKeyWithSecret;
}
impl Creatable<Platform> for Member {
    type Input = MemberCreate;
    type Created = Self;
}
impl Creatable<Platform> for Replay {
    type Input = ReplayCreate;
    type Created = Self;
}

impl<C> Updatable<C> for Booking {
    type Change = BookingUpdate;
}
impl<C> Updatable<C> for Contact {
    type Change = ContactUpdate;
}
impl<C> Updatable<C> for Job {
    type Change = JobUpdate;
}
impl<C> Updatable<C> for Quote {
    type Change = QuoteUpdate;
}
impl<C> Updatable<C> for WebhookSubscription {
    type Change = WebhookUpdate;
}
impl Updatable<Platform> for Invoice {
    type Change = InvoiceUpdate;
}
impl Updatable<Platform> for Account {
    type Change = AccountUpdate;
}
impl Updatable<Platform> for Member {
    type Change = MemberUpdate;
}

impl Deletable for Contact {}
impl Deletable for Member {}
impl Deletable for WebhookSubscription {}

// Webhook subscriptions cannot be kept in sync: their `updated_at`, the position in the list, is not in responses.
impl Syncable for Booking {}
impl Syncable for Contact {
    fn everything() -> ContactFilter {
        ContactFilter { email: None, include_deleted: Some(true) }
    }
}
impl Syncable for Invoice {}
impl Syncable for Job {}
impl Syncable for Quote {}
