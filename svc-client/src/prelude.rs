//! The imports of most programs: the client, the records, their inputs and their filters.

pub use svc_core::platform::{
    Delivery, DeliveryDetails, Event, EventListFilter, EventOrder, ReplaySelection, WebhookDeliveryListFilter,
};
pub use svc_core::resources::bookings::{Booking, BookingCreate, BookingId, BookingStatus, BookingUpdate};
pub use svc_core::resources::contacts::{
    Contact, ContactCreate, ContactDetails, ContactFilter, ContactId, ContactUpdate,
};
pub use svc_core::resources::invoices::{Invoice, InvoiceFilter, InvoiceId, InvoiceStatus};
pub use svc_core::resources::jobs::{Job, JobCreate, JobFilter, JobId, JobStatus, JobUpdate};
pub use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteFilter, QuoteId, QuoteStatus, QuoteUpdate};
pub use svc_core::values::{Amount, Currency, Date, Decimal, Email, Patch, Secret, Timestamp};
pub use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookUpdate};

pub use crate::{Client, ETag, Error, RetryPolicy, SyncPage, SyncPosition, Versioned};
