//! The table of operations. The router, the limits, the OpenAPI document and the tests all read this one.

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::CappedCollection;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud::{Create, Delete, Resource, Update};
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::pages::{ListParams, Page};
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookSubscriptionWithSecret};

use crate::api::handlers::{self, Data, ParseFn, Ping};

/// Writes of these collections per window, key, method and route (contract, "Limits"; decisions §8).
pub const DEFAULT_WRITE_CAPS: [(CappedCollection, u32); 5] = [
    (CappedCollection::Contacts, 30),
    (CappedCollection::Bookings, 30),
    (CappedCollection::Quotes, 20),
    (CappedCollection::Jobs, 30),
    (CappedCollection::Webhooks, 20),
];

/// One operation of the API.
pub struct Operation {
    /// Its `operationId`.
    pub id: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path below the version, as in OpenAPI and in the router.
    pub path: String,
    /// The resource it belongs to, the first segment of its path.
    pub collection: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What it does, in full.
    pub description: &'static str,
    /// What the key must be allowed to do.
    pub scope: Scope,
    /// Parses a request for it.
    pub parse: ParseFn,
    /// The GET whose tag `If-Match` is compared with.
    pub current: Option<ParseFn>,
    /// What it takes and gives, for the document.
    pub shape: Shape,
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schemas of an operation.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Query parameters, as the properties of objects.
    pub query: &'static [SchemaOf],
    /// Body, on POST and PATCH.
    pub body: Option<SchemaOf>,
    /// Status of success.
    pub status: StatusCode,
    /// Body of success.
    pub answer: Option<SchemaOf>,
    /// Whether the answer has an `ETag`.
    pub tagged: bool,
}

impl Operation {
    /// Whose limit of writes it counts against, and the default of that.
    pub fn write_cap(&self) -> Option<(CappedCollection, u32)> {
        let of_collection = DEFAULT_WRITE_CAPS.iter().find(|(name, _)| name.as_str() == self.collection);
        of_collection.copied().filter(|_| self.scope == Scope::Write)
    }

    /// Whether it takes a body.
    pub fn takes_body(&self) -> bool {
        self.shape.body.is_some()
    }

    /// Whether its path names one record.
    pub fn has_id(&self) -> bool {
        self.path.ends_with("/{id}")
    }
}

/// All 25 operations.
pub fn operations() -> Vec<Operation> {
    vec![
        ping(),
        list::<Contact>("listContacts", "List contacts"),
        create::<Contact, Contact>("createContact", "Create a contact"),
        get::<Contact>("getContact", "Get a contact"),
        update::<Contact>("updateContact", "Update a contact"),
        delete::<Contact>("deleteContact", "Delete a contact"),
        list::<Invoice>("listInvoices", "List invoices"),
        get::<Invoice>("getInvoice", "Get an invoice"),
        list::<Booking>("listBookings", "List bookings"),
        create::<Booking, Booking>("createBooking", "Create a booking"),
        get::<Booking>("getBooking", "Get a booking"),
        update::<Booking>("updateBooking", "Update a booking"),
        list::<Quote>("listQuotes", "List quotes"),
        create::<Quote, Quote>("createQuote", "Create a quote"),
        get::<Quote>("getQuote", "Get a quote"),
        update::<Quote>("updateQuote", "Update a quote"),
        list::<Job>("listJobs", "List jobs"),
        create::<Job, Job>("createJob", "Create a job"),
        get::<Job>("getJob", "Get a job"),
        update::<Job>("updateJob", "Update a job"),
        list::<WebhookSubscription>("listWebhooks", "List webhook subscriptions"),
        Operation {
            parse: handlers::create_webhook,
            ..create::<WebhookSubscription, WebhookSubscriptionWithSecret>(
                "createWebhook",
                "Create a webhook subscription",
            )
        },
        get::<WebhookSubscription>("getWebhook", "Get a webhook subscription"),
        Operation {
            parse: handlers::update_webhook,
            ..update::<WebhookSubscription>("updateWebhook", "Update a webhook subscription")
        },
        delete::<WebhookSubscription>("deleteWebhook", "Delete a webhook subscription"),
    ]
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The parameters of a type as properties, without a place of their own among the components.
fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

fn wrapped<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Data::<T>::json_schema(generator);
    schema.remove("description");
    schema
}

fn page_of<R: Resource>(generator: &mut SchemaGenerator) -> Schema {
    Page::<R>::json_schema(generator)
}

fn one<R: Resource>() -> String {
    format!("/{}/{{id}}", R::COLLECTION)
}

fn many<R: Resource>() -> String {
    format!("/{}", R::COLLECTION)
}

fn ping() -> Operation {
    Operation {
        id: "ping",
        method: Method::GET,
        path: "/ping".to_owned(),
        collection: "ping",
        summary: "Check the key and the connection",
        description: "Answers with the tenant that the key belongs to and the time on the server.",
        scope: Scope::Read,
        parse: handlers::ping,
        current: None,
        shape: Shape { query: &[], body: None, status: StatusCode::OK, answer: Some(schema::<Ping>), tagged: false },
    }
}

fn list<R: Resource>(id: &'static str, summary: &'static str) -> Operation {
    Operation {
        id,
        method: Method::GET,
        path: many::<R>(),
        collection: R::COLLECTION,
        summary,
        description: "Newest created first. With `updated_since` oldest change first, so that a walk can stop \
                      at any page and go on later. A row that exists during a whole walk is returned exactly once; one that \
                      changes during an `updated_since` walk is returned again.",
        scope: Scope::Read,
        parse: handlers::list::<R>,
        current: None,
        shape: Shape {
            query: const { &[inline::<ListParams>, inline::<R::Filter>] },
            body: None,
            status: StatusCode::OK,
            answer: Some(page_of::<R>),
            tagged: false,
        },
    }
}

fn get<R: Resource>(id: &'static str, summary: &'static str) -> Operation {
    Operation {
        id,
        method: Method::GET,
        path: one::<R>(),
        collection: R::COLLECTION,
        summary,
        description: "With `If-None-Match` the answer is 304 while the `ETag` is the same; a 304 costs nothing of \
                      the rate limit.",
        scope: Scope::Read,
        parse: handlers::get::<R>,
        current: None,
        shape: Shape { query: &[], body: None, status: StatusCode::OK, answer: Some(wrapped::<R>), tagged: true },
    }
}

fn create<R, O>(id: &'static str, summary: &'static str) -> Operation
where
    R: Create<Input: Clone>,
    O: From<R> + Serialize + JsonSchema,
{
    Operation {
        id,
        method: Method::POST,
        path: many::<R>(),
        collection: R::COLLECTION,
        summary,
        description: "With an `Idempotency-Key` a repeat within 24 hours gets the first answer again, with \
                      `Idempotent-Replayed: true`, and creates nothing.",
        scope: Scope::Write,
        parse: handlers::create::<R, O>,
        current: None,
        shape: Shape {
            query: &[],
            body: Some(schema::<R::Input>),
            status: StatusCode::CREATED,
            answer: Some(wrapped::<O>),
            tagged: true,
        },
    }
}

fn update<R: Update>(id: &'static str, summary: &'static str) -> Operation {
    Operation {
        id,
        method: Method::PATCH,
        path: one::<R>(),
        collection: R::COLLECTION,
        summary,
        description: "JSON Merge Patch (RFC 7396): what is left out stays, null clears. A change without effect \
                      keeps `updated_at` and fires nothing. With `If-Match` it is made only on that version.",
        scope: Scope::Write,
        parse: handlers::update::<R>,
        current: Some(handlers::get::<R>),
        shape: Shape {
            query: &[],
            body: Some(schema::<R::Input>),
            status: StatusCode::OK,
            answer: Some(wrapped::<R>),
            tagged: true,
        },
    }
}

fn delete<R: Delete>(id: &'static str, summary: &'static str) -> Operation {
    Operation {
        id,
        method: Method::DELETE,
        path: one::<R>(),
        collection: R::COLLECTION,
        summary,
        description: "Afterwards it is not found any more, also by a second DELETE.",
        scope: Scope::Write,
        parse: handlers::delete::<R>,
        current: Some(handlers::get::<R>),
        shape: Shape { query: &[], body: None, status: StatusCode::NO_CONTENT, answer: None, tagged: false },
    }
}
