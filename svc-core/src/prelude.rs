//! The usual imports of an application: `use svc_core::prelude::*`.
//!
//! It has [`Svc`], the inputs and filters, the records with their ids and statuses, and the values they consist of.

pub use crate::Svc;
pub use crate::accounts::dashboard_links::DashboardLinkCreate;
pub use crate::accounts::keys::{ApiKey, KeyCreate, KeyId};
pub use crate::accounts::members::{Member, MemberId};
pub use crate::accounts::sessions::Role;
pub use crate::accounts::tenants::{Tenant, TenantCreate};
pub use crate::error::Error;
pub use crate::pages::{ListParams, Page};
pub use crate::platform::{SharedAddress, SharedAddressCreate};
pub use crate::resources::NoFilter;
pub use crate::resources::bookings::{Booking, BookingCreate, BookingFilter, BookingId, BookingStatus, BookingUpdate};
pub use crate::resources::contacts::{Contact, ContactCreate, ContactDetails, ContactFilter, ContactId, ContactUpdate};
pub use crate::resources::conversions::{JobInvoicing, QuoteConversion};
pub use crate::resources::invoices::{
    Invoice, InvoiceCreate, InvoiceFilter, InvoiceId, InvoiceStatus, InvoiceUpdate, PaymentCreate,
};
pub use crate::resources::jobs::{Job, JobCreate, JobFilter, JobId, JobStatus, JobUpdate};
pub use crate::resources::quotes::{Quote, QuoteCreate, QuoteFilter, QuoteId, QuoteStatus, QuoteUpdate};
pub use crate::service::{Account, Transaction};
pub use crate::store::DeliveryFilter;
pub use crate::values::{
    Currency, Date, Decimal, Email, EventKind, EventSet, Note, Patch, Secret, TenantId, Text, TimeZone, Timestamp,
    WebhookUrl,
};
pub use crate::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus};
pub use crate::webhooks::events::{Event, EventId};
pub use crate::webhooks::replays::{Replay, ReplayCreate, ReplayId};
pub use crate::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};
