//! The collections of the API, and what can be done with the records of each.
//!
//! The records, their inputs and their filters are those of [`svc_core`]. What a trait is not implemented for does not
//! compile: the API has no operation that creates an invoice or deletes a quote.

use serde::de::DeserializeOwned;
use svc_core::input::ToBody;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::resources::crud::{Create, Delete, Filter, Resource, Update};
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookSubscriptionWithSecret};

/// A record with a collection in the API.
pub trait Record: Resource<Filter: ToBody> + DeserializeOwned {}

/// A record that can be created.
pub trait Creatable: Record + Create<Input: ToBody> {
    /// What the response to the create contains: the record, or more than later responses have.
    type Created: DeserializeOwned + Send;
}

/// A record that can be changed.
pub trait Updatable: Record + Update<Input: ToBody> {}

/// A record that can be deleted.
pub trait Deletable: Record + Delete {}

/// A record whose collection can be copied and kept in sync.
pub trait Syncable: Record {
    /// Returns the filter with which the list has everything, also deletions.
    fn everything() -> Self::Filter {
        Self::Filter::none()
    }
}

impl Record for Booking {}
impl Record for Contact {}
impl Record for Invoice {}
impl Record for Job {}
impl Record for Quote {}
impl Record for WebhookSubscription {}

impl Creatable for Booking {
    type Created = Self;
}
impl Creatable for Contact {
    type Created = Self;
}
impl Creatable for Job {
    type Created = Self;
}
impl Creatable for Quote {
    type Created = Self;
}
impl Creatable for WebhookSubscription {
    type Created = WebhookSubscriptionWithSecret;
}

impl Updatable for Booking {}
impl Updatable for Contact {}
impl Updatable for Job {}
impl Updatable for Quote {}
impl Updatable for WebhookSubscription {}

impl Deletable for Contact {}
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
