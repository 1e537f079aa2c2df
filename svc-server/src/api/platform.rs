//! The platform API: what programs of the operator do with every account (`docs/platform.md`).
//!
//! Its table of operations drives the router, the limits, the OpenAPI document and the tests, as that of the public API
//! does. The operations on records are the same lines with the account in their path. The others call the functions that
//! `svc` calls.

pub mod handlers;
pub mod inputs;
pub mod lists;
pub mod records;

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::Area;
use svc_core::resources::invoices::{Invoice, InvoiceCreate, InvoiceUpdate};
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookSubscriptionWithSecret};

use crate::api::handlers::ParseFn;
use crate::api::platform::inputs::{
    AccountCreate, AccountFilter, AccountUpdate, DashboardLinkInput, DeliveryListFilter, EventInput, KeyInput,
    KeyRotation, LogFilter, LogParams, MemberInput, MemberUpdate, PaymentInput, ReplayInput, SampleInput,
    SecretRotation, TestInput,
};
use crate::api::platform::records::{
    Account, AuditEntry, DashboardSignIn, DeliveryDetails, DeliveryRecord, EmittedEvent, EventRecord, KeyRecord, List,
    MarkedInvoices, MemberRecord, NewKeyRecord, ReplayRecord, Statistics,
};
use crate::api::routes::{self, Operation, Shape, inline, schema, wrapped};

/// The path of an account.
const ACCOUNT: &str = "/accounts/{account_id}";

/// Returns all operations of the platform API.
pub fn operations() -> Vec<Operation> {
    let mut all = accounts();
    all.extend(keys());
    all.extend(members());
    // Everything that an API key can do, except to check itself.
    let public = routes::operations().into_iter().filter(|operation| operation.collection != "ping");
    all.extend(public.map(of_account));
    all.extend(invoices());
    all.extend(quotes());
    all.extend(events());
    all.extend(webhooks());
    all.extend(deliveries());
    all.extend(logs());
    all
}

/// Returns the operation of the public API as one on the account in the path.
fn of_account(operation: Operation) -> Operation {
    let area = if operation.collection == "webhooks" { Area::Webhooks } else { Area::Records };
    Operation { path: format!("{ACCOUNT}{}", operation.path), area: Some(area), ..operation }
}

fn list_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<List<T>>()
}

/// What all operations of this table have in common: the scope follows from the method, and the collection from the path.
fn operation(
    area: Area,
    id: &'static str,
    (method, path): (Method, &str),
    collection: &'static str,
    parse: ParseFn,
    texts: [&str; 3],
    shape: Shape,
) -> Operation {
    let scope = if method == Method::GET { Scope::Read } else { Scope::Write };
    let [summary, description, success] = texts.map(str::to_owned);
    Operation {
        id,
        method,
        path: path.to_owned(),
        collection,
        area: Some(area),
        summary,
        description,
        success,
        scope,
        parse,
        current: None,
        shape,
    }
}

const NOTHING: Shape = Shape { query: &[], body: None, status: StatusCode::OK, response: None, has_etag: false };

/// The shape of a response with one record.
const fn one(response: routes::SchemaOf, status: StatusCode) -> Shape {
    Shape { response: Some(response), status, ..NOTHING }
}

fn accounts() -> Vec<Operation> {
    vec![
        operation(
            Area::Accounts,
            "createAccount",
            (Method::POST, "/accounts"),
            "accounts",
            handlers::create_account,
            [
                "Create an account",
                "Creates an account. It is approved, unless you send another `developer_access`; the keys of an account \
                 that is not approved are refused with 403.",
                "The created account.",
            ],
            Shape {
                body: Some(schema::<AccountCreate>),
                has_etag: true,
                ..one(wrapped::<Account>, StatusCode::CREATED)
            },
        ),
        operation(
            Area::Accounts,
            "listAccounts",
            (Method::GET, "/accounts"),
            "accounts",
            lists::accounts,
            ["List accounts", "Returns a page of all accounts, the oldest first.", "A page of accounts."],
            Shape { query: const { &[inline::<AccountFilter>] }, ..one(list_of::<Account>, StatusCode::OK) },
        ),
        operation(
            Area::Accounts,
            "getAccount",
            (Method::GET, ACCOUNT),
            "accounts",
            handlers::get_account,
            [
                "Retrieve an account",
                "Returns the account with its settings, its approval and its limits.",
                "The account with this id.",
            ],
            Shape { has_etag: true, ..one(wrapped::<Account>, StatusCode::OK) },
        ),
        Operation {
            current: Some(handlers::get_account),
            ..operation(
                Area::Accounts,
                "updateAccount",
                (Method::PATCH, ACCOUNT),
                "accounts",
                handlers::update_account,
                [
                    "Update an account",
                    "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). Set \
                     `developer_access` to approve or to suspend the account.",
                    "The account after the change.",
                ],
                Shape {
                    body: Some(schema::<AccountUpdate>),
                    has_etag: true,
                    ..one(wrapped::<Account>, StatusCode::OK)
                },
            )
        },
    ]
}

fn keys() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        operation(Area::Keys, id, (method, &format!("{ACCOUNT}/keys{path}")), "keys", parse, texts, shape)
    };
    vec![
        act(
            "listKeys",
            Method::GET,
            "",
            lists::keys,
            [
                "List API keys",
                "Returns all API keys of the account, the oldest first, also those that are revoked or expired. Their \
                 texts are not included.",
                "The API keys.",
            ],
            one(list_of::<KeyRecord>, StatusCode::OK),
        ),
        act(
            "createKey",
            Method::POST,
            "",
            handlers::create_key,
            [
                "Create an API key",
                "Creates an API key. The response contains its text, and its signing secret if it signs its writes. Store \
                 them, as no other request returns them.",
                "The created API key, with its text.",
            ],
            Shape { body: Some(schema::<KeyInput>), ..one(wrapped::<NewKeyRecord>, StatusCode::CREATED) },
        ),
        act(
            "getKey",
            Method::GET,
            "/{id}",
            handlers::get_key,
            ["Retrieve an API key", "Returns the API key with this id, without its text.", "The API key with this id."],
            Shape { has_etag: true, ..one(wrapped::<KeyRecord>, StatusCode::OK) },
        ),
        act(
            "revokeKey",
            Method::POST,
            "/{id}/revoke",
            handlers::revoke_key,
            [
                "Revoke an API key",
                "Revokes the API key, which is refused from the next request on. A revocation cannot be undone. Revoking a \
                 revoked key changes nothing.",
                "The revoked API key.",
            ],
            one(wrapped::<KeyRecord>, StatusCode::OK),
        ),
        act(
            "rotateKey",
            Method::POST,
            "/{id}/rotate",
            handlers::rotate_key,
            [
                "Rotate an API key",
                "Creates an API key with the name, scopes, lifetime and signing choice of this one, which expires after \
                 the overlap. A key that is revoked or expired is refused with 409 `not_allowed`.",
                "The new API key, with its text.",
            ],
            Shape { body: Some(schema::<KeyRotation>), ..one(wrapped::<NewKeyRecord>, StatusCode::CREATED) },
        ),
    ]
}

fn members() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        operation(Area::Members, id, (method, &format!("{ACCOUNT}/members{path}")), "members", parse, texts, shape)
    };
    let changing = |operation| Operation { current: Some(handlers::get_member), ..operation };
    vec![
        act(
            "listMembers",
            Method::GET,
            "",
            lists::members,
            [
                "List members",
                "Returns all members of the account: the people who sign in to its dashboard with their email address.",
                "The members.",
            ],
            one(list_of::<MemberRecord>, StatusCode::OK),
        ),
        act(
            "addMember",
            Method::POST,
            "",
            handlers::add_member,
            [
                "Add a member",
                "Lets a person sign in to the dashboard of the account with this email address. An address that is a member \
                 already is refused with 409 `not_allowed`.",
                "The added member.",
            ],
            Shape { body: Some(schema::<MemberInput>), ..one(wrapped::<MemberRecord>, StatusCode::CREATED) },
        ),
        act(
            "getMember",
            Method::GET,
            "/{id}",
            handlers::get_member,
            ["Retrieve a member", "Returns the member with this id.", "The member with this id."],
            Shape { has_etag: true, ..one(wrapped::<MemberRecord>, StatusCode::OK) },
        ),
        changing(act(
            "updateMember",
            Method::PATCH,
            "/{id}",
            handlers::update_member,
            [
                "Change the role of a member",
                "Changes what the member may do from the next request on.",
                "The member after the change.",
            ],
            Shape {
                body: Some(schema::<MemberUpdate>),
                has_etag: true,
                ..one(wrapped::<MemberRecord>, StatusCode::OK)
            },
        )),
        changing(act(
            "removeMember",
            Method::DELETE,
            "/{id}",
            handlers::remove_member,
            [
                "Remove a member",
                "Removes the member, who can no longer see the account from the next request on.",
                "The member was removed. The response has no body.",
            ],
            Shape { status: StatusCode::NO_CONTENT, ..NOTHING },
        )),
        operation(
            Area::Members,
            "createDashboardLink",
            (Method::POST, &format!("{ACCOUNT}/dashboard-links")),
            "dashboard-links",
            handlers::create_dashboard_link,
            [
                "Create a dashboard link",
                "Creates a link that signs a person in to the dashboard of the account. It works once, for ten minutes.",
                "The created link.",
            ],
            Shape { body: Some(schema::<DashboardLinkInput>), ..one(wrapped::<DashboardSignIn>, StatusCode::CREATED) },
        ),
    ]
}

fn invoices() -> Vec<Operation> {
    let act = |id, path: &str, parse, summary, description, body| {
        operation(
            Area::Records,
            id,
            (Method::POST, &format!("{ACCOUNT}/invoices{path}")),
            "invoices",
            parse,
            [summary, description, "The invoice after the change."],
            Shape { body, has_etag: true, ..one(wrapped::<Invoice>, StatusCode::OK) },
        )
    };
    let create = act(
        "createInvoice",
        "",
        handlers::create_invoice,
        "Create an invoice",
        "Creates an invoice with the status `draft` and the next `invoice_number` of the account.",
        Some(schema::<InvoiceCreate>),
    );
    let update = operation(
        Area::Records,
        "updateInvoice",
        (Method::PATCH, &format!("{ACCOUNT}/invoices/{{id}}")),
        "invoices",
        handlers::update_invoice,
        [
            "Update an invoice",
            "Changes the fields that you send of an invoice that is neither paid nor cancelled. An amount that becomes \
             equal to what was paid makes the invoice `paid`.",
            "The invoice after the change.",
        ],
        Shape { body: Some(schema::<InvoiceUpdate>), has_etag: true, ..one(wrapped::<Invoice>, StatusCode::OK) },
    );
    vec![
        Operation {
            success: "The created invoice.".to_owned(),
            shape: Shape { status: StatusCode::CREATED, ..create.shape },
            ..create
        },
        Operation { current: Some(crate::api::handlers::get::<Invoice>), ..update },
        act("sendInvoice", "/{id}/send", handlers::send_invoice, "Send an invoice", "Marks the draft as sent.", None),
        act(
            "viewInvoice",
            "/{id}/view",
            handlers::view_invoice,
            "Mark an invoice as viewed",
            "Records that the customer has seen the invoice.",
            None,
        ),
        act(
            "resendInvoice",
            "/{id}/resend",
            handlers::resend_invoice,
            "Send an invoice again",
            "Fires the event of an invoice that was sent once more.",
            None,
        ),
        act(
            "payInvoice",
            "/{id}/pay",
            handlers::pay_invoice,
            "Record a payment",
            "Records a payment of the invoice: of `amount`, or without it of all that is left to pay.",
            Some(schema::<PaymentInput>),
        ),
        act(
            "refundInvoice",
            "/{id}/refund",
            handlers::refund_invoice,
            "Refund an invoice",
            "Records a refund: of `amount`, or without it of all that was paid. An invoice that is refunded in full is \
             cancelled.",
            Some(schema::<PaymentInput>),
        ),
        act(
            "voidInvoice",
            "/{id}/void",
            handlers::void_invoice,
            "Void an invoice",
            "Cancels an invoice on which nothing was paid.",
            None,
        ),
        operation(
            Area::Records,
            "markOverdueInvoices",
            (Method::POST, &format!("{ACCOUNT}/invoices/mark-overdue")),
            "invoices",
            handlers::mark_overdue,
            [
                "Mark overdue invoices",
                "Checks the next of the account's unpaid invoices, and marks as `overdue` those whose due date is before \
                 today. Repeat the request with `next` until it is null.",
                "The invoices that became overdue.",
            ],
            Shape { body: Some(schema::<inputs::OverdueInput>), ..one(schema::<MarkedInvoices>, StatusCode::OK) },
        ),
    ]
}

fn quotes() -> Vec<Operation> {
    let act = |id, path: &str, parse, summary, description| {
        operation(
            Area::Records,
            id,
            (Method::POST, &format!("{ACCOUNT}/quotes/{{id}}{path}")),
            "quotes",
            parse,
            [summary, description, "The quote after the change."],
            Shape { has_etag: true, ..one(wrapped::<Quote>, StatusCode::OK) },
        )
    };
    vec![
        act(
            "acceptQuote",
            "/accept",
            handlers::accept_quote,
            "Accept a quote",
            "Records that the customer has accepted the quote.",
        ),
        act(
            "declineQuote",
            "/decline",
            handlers::decline_quote,
            "Decline a quote",
            "Records that the customer has declined the quote.",
        ),
    ]
}

fn events() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        operation(Area::Events, id, (method, &format!("{ACCOUNT}/events{path}")), "events", parse, texts, shape)
    };
    vec![
        act(
            "listEvents",
            Method::GET,
            "",
            lists::events,
            [
                "List events",
                "Returns a page of the events of the account, the newest first, for as long as events are kept.",
                "A page of events.",
            ],
            Shape {
                query: const { &[inline::<LogParams>, inline::<LogFilter>] },
                ..one(list_of::<EventRecord>, StatusCode::OK)
            },
        ),
        act(
            "emitEvent",
            Method::POST,
            "",
            handlers::emit_event,
            [
                "Emit an event",
                "Writes an event of a record that this service does not store: of a stay or a cohort, or of a kind of the \
                 application. All subscriptions to its kind receive it. Events of records are fired by their own \
                 operations alone.",
                "The event and its deliveries.",
            ],
            Shape { body: Some(schema::<EventInput>), ..one(wrapped::<EmittedEvent>, StatusCode::CREATED) },
        ),
        act(
            "emitSampleEvent",
            Method::POST,
            "/samples",
            handlers::emit_sample,
            [
                "Emit a sample event",
                "Writes an event with the sample record of its kind, for receivers that are being developed. It is \
                 delivered as any event is, and changes no record.",
                "The event and its deliveries.",
            ],
            Shape { body: Some(schema::<SampleInput>), ..one(wrapped::<EmittedEvent>, StatusCode::CREATED) },
        ),
        act(
            "getEvent",
            Method::GET,
            "/{id}",
            handlers::get_event,
            ["Retrieve an event", "Returns the event with this id.", "The event with this id."],
            Shape { has_etag: true, ..one(wrapped::<EventRecord>, StatusCode::OK) },
        ),
    ]
}

fn webhooks() -> Vec<Operation> {
    let act = |id, method, path: &str, parse, texts, shape| {
        let path = format!("{ACCOUNT}/webhooks/{{id}}{path}");
        operation(Area::Webhooks, id, (method, &path), "webhooks", parse, texts, shape)
    };
    vec![
        act(
            "rotateWebhookSecret",
            Method::POST,
            "/rotate-secret",
            handlers::rotate_webhook_secret,
            [
                "Rotate a signing secret",
                "Replaces the signing secret of the webhook subscription. The previous secret signs beside the new one \
                 during the overlap. Store the new secret, as no other request returns it.",
                "The webhook subscription, with its new secret.",
            ],
            Shape {
                body: Some(schema::<SecretRotation>),
                ..one(wrapped::<WebhookSubscriptionWithSecret>, StatusCode::OK)
            },
        ),
        act(
            "finishWebhookSecretRotation",
            Method::POST,
            "/finish-rotation",
            handlers::finish_webhook_rotation,
            [
                "Finish a rotation",
                "Ends the overlap of a rotation at once: from the next attempt on, the new secret alone signs.",
                "The webhook subscription.",
            ],
            Shape { has_etag: true, ..one(wrapped::<WebhookSubscription>, StatusCode::OK) },
        ),
        act(
            "testWebhook",
            Method::POST,
            "/test",
            handlers::test_webhook,
            [
                "Send a test event",
                "Sends an event with the sample record of its kind to this webhook subscription alone. Without `kind` it is \
                 of the first kind that the subscription is for. A subscription that is disabled or paused, or is not for \
                 the kind, is refused with 409 `not_allowed`.",
                "The delivery of the test event.",
            ],
            Shape { body: Some(schema::<TestInput>), ..one(wrapped::<DeliveryRecord>, StatusCode::CREATED) },
        ),
        act(
            "getWebhookStatistics",
            Method::GET,
            "/statistics",
            handlers::webhook_statistics,
            [
                "Retrieve the statistics of a webhook",
                "Returns the attempts of the last 24 hours at this endpoint by hour, and how many of its deliveries are \
                 pending and held.",
                "The statistics of the webhook subscription.",
            ],
            one(wrapped::<Statistics>, StatusCode::OK),
        ),
    ]
}

fn deliveries() -> Vec<Operation> {
    let act = |id, method, path: &str, collection, parse, texts, shape| {
        operation(Area::Deliveries, id, (method, &format!("{ACCOUNT}{path}")), collection, parse, texts, shape)
    };
    vec![
        act(
            "listDeliveries",
            Method::GET,
            "/deliveries",
            "deliveries",
            lists::deliveries,
            [
                "List deliveries",
                "Returns a page of the deliveries of the account, the newest event first. The deliveries of one event stay \
                 on one page, which may have more of them than `limit`. A page may have fewer, and even none, although \
                 there are more: read on while `next_cursor` is not null.",
                "A page of deliveries.",
            ],
            Shape {
                query: const { &[inline::<LogParams>, inline::<DeliveryListFilter>] },
                ..one(list_of::<DeliveryRecord>, StatusCode::OK)
            },
        ),
        act(
            "getDelivery",
            Method::GET,
            "/deliveries/{id}",
            "deliveries",
            handlers::get_delivery,
            [
                "Retrieve a delivery",
                "Returns the delivery with its event and the log of its attempts.",
                "The delivery with this id.",
            ],
            Shape { has_etag: true, ..one(wrapped::<DeliveryDetails>, StatusCode::OK) },
        ),
        act(
            "replayDelivery",
            Method::POST,
            "/deliveries/{id}/replay",
            "deliveries",
            handlers::replay_delivery,
            [
                "Replay a delivery",
                "Sends the delivery again: its next attempt is due now, and all its retries are ahead. It keeps its id. A \
                 delivery of a subscription that is disabled, paused or deleted is refused with 409 `not_allowed`.",
                "The delivery.",
            ],
            one(wrapped::<DeliveryRecord>, StatusCode::OK),
        ),
        act(
            "listReplays",
            Method::GET,
            "/replays",
            "replays",
            lists::replays,
            [
                "List bulk replays",
                "Returns the newest bulk replays of the account with their progress, the newest first.",
                "The newest bulk replays.",
            ],
            Shape {
                query: const { &[inline::<inputs::NewestParams>] },
                ..one(list_of::<ReplayRecord>, StatusCode::OK)
            },
        ),
        act(
            "createReplay",
            Method::POST,
            "/replays",
            "replays",
            handlers::create_replay,
            [
                "Start a bulk replay",
                "Sends the deliveries of a time span to a webhook subscription again. The sender works on it in the \
                 background; get the replay to follow its progress. A subscription that is disabled or paused is refused \
                 with 409 `not_allowed`.",
                "The bulk replay.",
            ],
            Shape { body: Some(schema::<ReplayInput>), ..one(wrapped::<ReplayRecord>, StatusCode::CREATED) },
        ),
        act(
            "getReplay",
            Method::GET,
            "/replays/{id}",
            "replays",
            handlers::get_replay,
            ["Retrieve a bulk replay", "Returns the bulk replay with its progress.", "The bulk replay with this id."],
            Shape { has_etag: true, ..one(wrapped::<ReplayRecord>, StatusCode::OK) },
        ),
        act(
            "getStatistics",
            Method::GET,
            "/statistics",
            "statistics",
            handlers::statistics,
            [
                "Retrieve the statistics of an account",
                "Returns the attempts of the last 24 hours at all endpoints of the account, by hour.",
                "The statistics of the account.",
            ],
            one(wrapped::<Statistics>, StatusCode::OK),
        ),
    ]
}

fn logs() -> Vec<Operation> {
    vec![operation(
        Area::Audit,
        "listAuditLog",
        (Method::GET, &format!("{ACCOUNT}/audit-log")),
        "audit-log",
        lists::audit_log,
        [
            "List the audit log",
            "Returns a page of the changes in the account, the newest first, with who made them. Changes made at the same \
             time stay on one page, which may have more of them than `limit`.",
            "A page of changes.",
        ],
        Shape {
            query: const { &[inline::<LogParams>, inline::<LogFilter>] },
            ..one(list_of::<AuditEntry>, StatusCode::OK)
        },
    )]
}

#[cfg(test)]
mod tests;
