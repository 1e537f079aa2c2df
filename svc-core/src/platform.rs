//! The records and the inputs of the platform API that the public API does not have (`docs/platform.md`).
//!
//! The server writes them and its clients read them. A record here is what the operator's programs see of a
//! [tenant](crate::accounts::tenants), an [API key](crate::accounts::keys), an [event](crate::webhooks::events), a
//! [delivery](crate::webhooks::deliveries) or a [bulk replay](crate::webhooks::replays): without secrets, leases and other
//! state of the service. Members, log entries of attempts and the records of the public API are the same for both.

mod apps;
mod inputs;
mod links;
mod operational;
pub mod operations;
mod records;
mod transfer;
mod values;

pub use crate::accounts::audit::AuditEntry;
pub use crate::requests::ApiRequest;
pub use crate::sandboxes::SandboxStep;
pub use crate::values::AnyObject;

pub use self::apps::{AppCreate, AppGrant, AppListParams, AppUpdate, AppWithSecret};
pub use self::inputs::{
    AccountCreate, AccountListParams, AccountUpdate, ApiKeyCreate, ApiKeyRotation, AttemptListParams,
    DashboardLinkCreate, DeliveryAttemptListParams, DeliveryListFilter, EventCreate, EventListFilter, EventOrder,
    ExportParams, LogFilter, LogParams, MemberCreate, MemberUpdate, NewestParams, OperatorLinkCreate, OverdueCheck,
    PaymentListFilter, ReplayCreate, ReplaySelection, RequestListFilter, SampleEventCreate, SecretRotation,
    SharedAddressCreate, TemporaryWebhookCreate, WebhookDeliveryListFilter, WebhookLifetime, WebhookTest,
};
pub use self::links::{DashboardLink, OperatorLink, SharedAddress};
pub use self::operational::operational_data;
pub use self::records::{
    Account, ApiKey, ApiKeyWithSecret, Delivery, DeliveryDetails, EmittedEvent, Event, ExportPage, HourlyStatistics,
    MarkedInvoices, NewSandbox, Replay, Statistics, WriteLimits,
};
pub use self::transfer::{
    FieldProblem, ImportCreate, ImportKind, ImportReport, ImportRows, ImportedRow, RowOutcome, RowProblem,
};
pub use self::values::{
    AtLeastOne, DaysUntilDue, EmittableKind, KeyScopes, RedirectUris, Seconds, StatusFilter, Statuses, WebhookCount,
    WriteLimitChanges, Zone,
};
