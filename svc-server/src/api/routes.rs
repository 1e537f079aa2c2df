//! The table of operations. The router, the rate limits, the OpenAPI document and the tests all read it.

use std::sync::Arc;

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::CappedCollection;
use svc_core::accounts::platform_keys::Area;
use svc_core::input::Input;
use svc_core::platform::operations::{CREATE_WEBHOOK, Records};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{Create, Delete, Resource, Update};
use svc_core::values::{Id, TenantId};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::api::contract;
use crate::api::handlers::{self, Data, ParseFn, Ping};
use crate::api::row::{Row, row};

/// A version of the API. Both versions of the public API have the same operations today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The stable version.
    V1,
    /// The preview of the next version.
    V2,
    /// The platform API, which has operations and a listener of its own.
    Platform,
    /// The tools of assistants, which are operations of the public API.
    Mcp,
    /// Those of them that change nothing.
    McpReadOnly,
}

/// The versions of the public API.
pub const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

impl Version {
    /// Returns the path in front of the paths of the operations.
    pub fn path(self) -> &'static str {
        match self {
            Self::V1 => "/api/v1",
            Self::V2 => "/api/v2",
            Self::Platform => "/platform/v1",
            Self::Mcp => "/mcp",
            Self::McpReadOnly => "/mcp/readonly",
        }
    }

    /// Returns the version that clients see in the path of a record: assistants see no paths.
    pub(super) fn for_clients(self) -> Self {
        match self {
            Self::Mcp | Self::McpReadOnly => Self::V1,
            version => version,
        }
    }

    /// Returns the name of the version, such as `v1` or `platform-v1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Platform => "platform-v1",
            Self::Mcp => "mcp",
            Self::McpReadOnly => "mcp-readonly",
        }
    }

    /// Returns the version number of its OpenAPI document.
    pub fn number(self) -> &'static str {
        match self {
            Self::V1 | Self::Platform | Self::Mcp | Self::McpReadOnly => "1.0.0",
            Self::V2 => "2.0.0-preview",
        }
    }
}

/// The number of writes to a collection that are allowed in a window of 60 seconds, per key, method and route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultWriteLimit {
    /// The collection.
    pub collection: CappedCollection,
    /// Writes per window.
    pub limit: u32,
}

/// The limits of writes, unless the operator sets others (`docs/contract.md`, "Rate limits").
pub const DEFAULT_WRITE_LIMITS: [DefaultWriteLimit; 5] = [
    DefaultWriteLimit { collection: CappedCollection::Contacts, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Bookings, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Quotes, limit: 20 },
    DefaultWriteLimit { collection: CappedCollection::Jobs, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Webhooks, limit: 20 },
];

/// One operation of the API.
pub struct Operation {
    /// The `operationId` in the OpenAPI document, which also names the operation in logs and metrics.
    pub id: &'static str,
    /// The method. HEAD works wherever GET does.
    pub method: Method,
    /// The path without the version, in the notation of OpenAPI and of the router, such as `/contacts/{id}`.
    pub path: String,
    /// The collection that the operation belongs to: the first segment of the path, after that of the account.
    pub collection: &'static str,
    /// The area of the platform API that the operation belongs to; `None` for one of the public API.
    pub area: Option<Area>,
    /// The title in the OpenAPI document.
    pub summary: String,
    /// The description in the OpenAPI document.
    pub description: String,
    /// The description of the successful response in the OpenAPI document.
    pub success: String,
    /// The scope that the key must have; on the platform API, in the area of the operation.
    pub scope: Scope,
    /// Parses a request for the operation.
    pub parse: ParseFn,
    /// The GET operation whose ETag `If-Match` is compared with, for operations that take the header.
    pub current: Option<ParseFn>,
    /// The schemas of requests and responses.
    pub shape: Shape,
}

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schemas of an operation.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The query parameters, as the properties of these objects.
    pub query: &'static [SchemaOf],
    /// The request body, on POST and PATCH.
    pub body: Option<SchemaOf>,
    /// The status of a successful response.
    pub status: StatusCode,
    /// The body of a successful response.
    pub response: Option<SchemaOf>,
    /// Whether a successful response has an `ETag`.
    pub has_etag: bool,
}

impl Operation {
    /// Returns the default limit of the writes that the operation counts with; `None` for reads.
    pub fn default_write_limit(&self) -> Option<DefaultWriteLimit> {
        let limit = DEFAULT_WRITE_LIMITS.into_iter().find(|limit| limit.collection.as_str() == self.collection);
        limit.filter(|_| self.scope == Scope::Write)
    }

    /// Returns whether the operation has a request body.
    pub fn takes_body(&self) -> bool {
        self.shape.body.is_some()
    }

    /// Returns whether the path has the id of a record.
    pub fn has_id(&self) -> bool {
        self.path.contains("/{id}")
    }
}

/// The words for the records of a collection in the OpenAPI document.
#[derive(Clone, Copy)]
struct ResourceName {
    /// With its article, such as "a contact".
    with_article: &'static str,
    /// Without an article, such as "contact".
    singular: &'static str,
    plural: &'static str,
}

const CONTACT: ResourceName = ResourceName { with_article: "a contact", singular: "contact", plural: "contacts" };
const INVOICE: ResourceName = ResourceName { with_article: "an invoice", singular: "invoice", plural: "invoices" };
const BOOKING: ResourceName = ResourceName { with_article: "a booking", singular: "booking", plural: "bookings" };
const QUOTE: ResourceName = ResourceName { with_article: "a quote", singular: "quote", plural: "quotes" };
const JOB: ResourceName = ResourceName { with_article: "a job", singular: "job", plural: "jobs" };
const WEBHOOK: ResourceName = ResourceName {
    with_article: "a webhook subscription",
    singular: "webhook subscription",
    plural: "webhook subscriptions",
};

/// The path of an account, in which the public API has its records without saying so.
const ACCOUNT: &str = "/accounts/{account_id}";

/// Returns the 25 operations of the contract, which the public API always has.
pub fn operations() -> Vec<Operation> {
    let records = records().into_iter().map(contract::in_contract).map(of_own_account);
    std::iter::once(ping()).chain(records).collect()
}

/// Returns an operation of an account as the public API has it, whose keys belong to one account.
pub(super) fn of_own_account(operation: Operation) -> Operation {
    let path = operation.path.strip_prefix(ACCOUNT).unwrap_or_default().to_owned();
    Operation { path, ..operation }
}

/// Returns the operations on the records of an account, which both APIs have.
pub(super) fn records() -> Vec<Operation> {
    vec![
        list::<Contact>(
            "listContacts",
            CONTACT,
            "Deleted contacts are left out, unless you set `include_deleted` to true.",
        ),
        create::<Contact>(
            "createContact",
            CONTACT,
            "Creates a contact. If another contact of the account has the email address, the request fails with 409 \
             `email_taken`, and `existing_id` in the response is the id of that contact.",
        ),
        get::<Contact>("getContact", CONTACT),
        update::<Contact>(
            "updateContact",
            CONTACT,
            "If another contact has the new email address, the request fails with 409 `email_taken`.",
        ),
        delete::<Contact>(
            "deleteContact",
            CONTACT,
            "Deletes a contact. Its email address can then be used by another contact. Records that refer to the \
             contact keep their `contact_id`. A deleted contact cannot be restored.",
        ),
        list::<Invoice>("listInvoices", INVOICE, "Use `number` to find an invoice by its number."),
        get::<Invoice>("getInvoice", INVOICE),
        list::<Booking>("listBookings", BOOKING, "Bookings of every status are included."),
        create::<Booking>(
            "createBooking",
            BOOKING,
            "Creates a booking for a contact, with the status `confirmed`. Without `end_time` it lasts 60 minutes. \
             Bookings may overlap.",
        ),
        get::<Booking>("getBooking", BOOKING),
        update::<Booking>(
            "updateBooking",
            BOOKING,
            "A change of `start_time` alone does not move `end_time`; `end_time` must still be after it.",
        ),
        list::<Quote>("listQuotes", QUOTE, "Use `status` to select quotes of one status."),
        create::<Quote>(
            "createQuote",
            QUOTE,
            "Creates a quote for a contact, with the status `draft`, the next `quote_number` of the account and today's \
             date as `issue_date`. Without `valid_until` it is valid for 30 days.",
        ),
        get::<Quote>("getQuote", QUOTE),
        update::<Quote>("updateQuote", QUOTE, "The status can be set to any value."),
        list::<Job>("listJobs", JOB, "Use `job_number` to find a job by its number."),
        create::<Job>(
            "createJob",
            JOB,
            "Creates a job, with the status `quoted` unless you send another one, and the next `job_number` of the \
             account. The name, email address and phone number of the contact are copied to the job.",
        ),
        get::<Job>("getJob", JOB),
        update::<Job>(
            "updateJob",
            JOB,
            "The first change to `in_progress` sets `actual_start`, and the first change to `completed` sets \
             `actual_end`.",
        ),
        list::<WebhookSubscription>(
            "listWebhooks",
            WEBHOOK,
            "Signing secrets are not included; they are only returned when a subscription is created.",
        ),
        described_create(
            row(CREATE_WEBHOOK)
                .with_endpoint()
                .with_event_kinds()
                .creates_record(|created| created.subscription.id.uuid(), retrieve_record::<WebhookSubscription>()),
            WEBHOOK,
            "Creates a webhook subscription, which is enabled from the start. The host of `url` and all addresses that it \
             resolves to must be public. If the account has as many subscriptions as it can have, 100 by default, \
             the request fails with 409 `limit_reached`.\n\n\
             The response contains the signing `secret`. Store it, as no other request returns it.",
        ),
        get::<WebhookSubscription>("getWebhook", WEBHOOK),
        described_update(
            row(Records::<WebhookSubscription>::UPDATE).with_endpoint().named("updateWebhook"),
            WEBHOOK,
            "To end an automatic pause, set `enabled` to true. Pending deliveries are sent to a new `url` as well.",
        ),
        delete::<WebhookSubscription>(
            "deleteWebhook",
            WEBHOOK,
            "Deletes a webhook subscription. Its pending deliveries are not sent, and no further events are delivered.",
        ),
    ]
}

pub(super) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of query parameters, which is not a component of the document.
pub(super) fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

pub(super) fn wrapped<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Data<T>>()
}

fn ping() -> Operation {
    Operation {
        id: "ping",
        method: Method::GET,
        path: "/ping".to_owned(),
        collection: "ping",
        area: None,
        summary: "Check the API key".to_owned(),
        description:
            "Returns the account that the API key belongs to and the time of the server. Use it to test a key \
                      and the connection. Query parameters are ignored."
                .to_owned(),
        success: "The API key is valid.".to_owned(),
        scope: Scope::Read,
        parse: Arc::new(handlers::ping),
        current: None,
        shape: Shape {
            query: &[],
            body: None,
            status: StatusCode::OK,
            response: Some(schema::<Ping>),
            has_etag: false,
        },
    }
}

/// The memory that a webhook subscription needs at most, in records: 128 KiB of certificates and 16 KiB of a key, and 20 headers of
/// 4 KiB, none of which a response has.
pub(super) const WEBHOOK_MEMORY: u32 = 4;

/// Returns the memory that a record needs at most, in records of 64 KiB.
fn memory_of<R: Resource>() -> u32 {
    if R::COLLECTION == WebhookSubscription::COLLECTION { WEBHOOK_MEMORY } else { 1 }
}

fn list<R: Resource>(id: &'static str, name: ResourceName, specific: &str) -> Operation {
    let ResourceName { plural, .. } = name;
    let list = row(Records::<R>::LIST).named(id);
    let list = list.reading(|input| memory_of::<R>() * input.page.limit.unwrap_or_default().get());
    list.described(
        &format!("List {plural}"),
        &format!(
            "Returns a page of {plural}, the newest first. {specific}\n\n\
             To get the next page, repeat the request with the `next_cursor` of the response as `cursor`. With \
             `updated_since` the list contains only the {plural} that changed at or after that time, the oldest change first, \
             so that you can keep a copy in sync. A record that exists while you read all pages is returned \
             exactly once; with `updated_since`, a record that changes in the meantime is returned again."
        ),
        &format!("A page of {plural}."),
    )
}

fn get<R: Resource>(id: &'static str, name: ResourceName) -> Operation {
    let ResourceName { with_article, singular, .. } = name;
    row(Records::<R>::GET).named(id).reading(|_| memory_of::<R>()).with_version().described(
        &format!("Retrieve {with_article}"),
        &format!(
            "Returns the {singular} with this id.\n\n\
             If you send the `ETag` of an earlier response as `If-None-Match` and the \
             {singular} has not changed, the response is 304 without a body, which does not count against the rate limit."
        ),
        &format!("The {singular} with this id."),
    )
}

/// Returns what retrieves a record of a resource, with the ETag of its version.
pub(super) fn retrieve_record<R: Resource>() -> ParseFn {
    row(Records::<R>::GET).with_version().parser()
}

fn create<R: Create<Input: Clone>>(id: &'static str, name: ResourceName, specific: &str) -> Operation {
    described_create(row(Records::<R>::CREATE).named(id).creates_version(), name, specific)
}

/// Adds the texts of an operation that creates a record.
fn described_create<I, O>(row: Row<TenantId, I, O>, name: ResourceName, specific: &str) -> Operation
where
    I: Input + Clone,
    O: Serialize + JsonSchema + Send + 'static,
{
    let ResourceName { with_article, singular, .. } = name;
    row.described(
        &format!("Create {with_article}"),
        &format!(
            "{specific}\n\n\
             To retry safely, send an `Idempotency-Key`. A repeat with the same key within 24 hours returns the stored \
             response with `Idempotent-Replayed: true` and does not create a second {singular}."
        ),
        &format!("The created {singular}."),
    )
}

fn update<R: Update>(id: &'static str, name: ResourceName, specific: &str) -> Operation {
    described_update(row(Records::<R>::UPDATE).named(id), name, specific)
}

/// Adds the texts of an operation that changes a record, and what it has of conditional requests.
fn described_update<R: Update>(
    row: Row<(TenantId, Id<R>), R::Input, R>,
    name: ResourceName,
    specific: &str,
) -> Operation {
    let ResourceName { with_article, singular, .. } = name;
    row.with_version().if_match(retrieve_record::<R>()).described(
        &format!("Update {with_article}"),
        &format!(
            "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). Null clears \
             a field that can be null. {specific}\n\n\
             A request that changes nothing succeeds, keeps `updated_at` and fires no event. If you send the `ETag` \
             of the {singular} as `If-Match`, the change is made only if the {singular} has not changed since."
        ),
        &format!("The {singular} after the change."),
    )
}

fn delete<R: Delete>(id: &'static str, name: ResourceName, specific: &str) -> Operation {
    let ResourceName { with_article, singular, .. } = name;
    row(Records::<R>::DELETE).named(id).if_match(retrieve_record::<R>()).described(
        &format!("Delete {with_article}"),
        &format!(
            "{specific}\n\n\
             Later requests for the {singular} get 404, including a second DELETE. If you send the `ETag` of the {singular} as \
             `If-Match`, it is deleted only if it has not changed since."
        ),
        &format!("The {singular} was deleted. The response has no body."),
    )
}
