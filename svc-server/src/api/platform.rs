//! The platform API: what programs of the operator do with every account (`docs/platform.md`).
//!
//! Its table of operations drives the router, the limits, the OpenAPI document and the tests, as that of the public API
//! does. The operations on records are the same lines with the account in their path. The others call the functions that
//! `svc` calls.

pub mod handlers;
mod invoices;
pub mod lists;
mod lookup;
mod transfer;
mod webhooks;

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::members::Member;
use svc_core::accounts::platform_keys::Area;
use svc_core::pages::Page;
use svc_core::platform::{
    Account, AccountCreate, AccountListParams, AccountUpdate, ApiKey, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret,
    AuditEntry, DashboardLink, DashboardLinkCreate, LogFilter, LogParams, MemberCreate, MemberUpdate, OperatorLink,
    OperatorLinkCreate, OverdueCheck, PaymentAmount,
};
use svc_core::resources::invoices::{InvoiceCreate, InvoiceUpdate};
use svc_core::resources::quotes::Quote;

use crate::api::handlers::ParseFn;
use crate::api::platform::invoices::{InvoiceWithPayments, MarkedInvoices};
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
    all.extend(invoice_operations());
    all.extend(quotes());
    all.extend(webhooks::events());
    all.extend(webhooks::webhooks());
    all.extend(webhooks::deliveries());
    all.extend(logs());
    all.extend(lookup::lookups());
    all.extend(transfer::transfers());
    all
}

/// Returns the operation of the public API as one on the account in the path.
fn of_account(operation: Operation) -> Operation {
    let area = if operation.collection == "webhooks" { Area::Webhooks } else { Area::Records };
    let operation = Operation { path: format!("{ACCOUNT}{}", operation.path), area: Some(area), ..operation };
    match operation.id {
        "getInvoice" => {
            let shape = Shape { response: Some(wrapped::<InvoiceWithPayments>), ..operation.shape };
            Operation { parse: invoices::get, shape, ..operation }
        }
        "listInvoices" => {
            let shape = Shape { response: Some(list_of::<InvoiceWithPayments>), ..operation.shape };
            Operation { parse: invoices::list, shape, ..operation }
        }
        _ => operation,
    }
}

fn list_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Page<T>>()
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
            Shape { query: const { &[inline::<AccountListParams>] }, ..one(list_of::<Account>, StatusCode::OK) },
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
                "All API keys of the account.",
            ],
            one(list_of::<ApiKey>, StatusCode::OK),
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
            Shape {
                body: Some(schema::<ApiKeyCreate>),
                has_etag: true,
                ..one(wrapped::<ApiKeyWithSecret>, StatusCode::CREATED)
            },
        ),
        act(
            "getKey",
            Method::GET,
            "/{id}",
            handlers::get_key,
            ["Retrieve an API key", "Returns the API key with this id, without its text.", "The API key with this id."],
            Shape { has_etag: true, ..one(wrapped::<ApiKey>, StatusCode::OK) },
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
            one(wrapped::<ApiKey>, StatusCode::OK),
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
            Shape { body: Some(schema::<ApiKeyRotation>), ..one(wrapped::<ApiKeyWithSecret>, StatusCode::CREATED) },
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
                "All members of the account.",
            ],
            one(list_of::<Member>, StatusCode::OK),
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
            Shape { body: Some(schema::<MemberCreate>), has_etag: true, ..one(wrapped::<Member>, StatusCode::CREATED) },
        ),
        act(
            "getMember",
            Method::GET,
            "/{id}",
            handlers::get_member,
            ["Retrieve a member", "Returns the member with this id.", "The member with this id."],
            Shape { has_etag: true, ..one(wrapped::<Member>, StatusCode::OK) },
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
            Shape { body: Some(schema::<MemberUpdate>), has_etag: true, ..one(wrapped::<Member>, StatusCode::OK) },
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
            Shape { body: Some(schema::<DashboardLinkCreate>), ..one(wrapped::<DashboardLink>, StatusCode::CREATED) },
        ),
        operation(
            Area::Operators,
            "createOperatorLink",
            (Method::POST, "/operator-links"),
            "operator-links",
            handlers::create_operator_link,
            [
                "Create a link for an operator",
                "Creates a link that signs an operator in to the dashboard, who sees all accounts, approves them and sets \
                 their limits. It works once, for ten minutes. The key needs the scope `operators:write`, which `*` does \
                 not include: the session that the link begins goes on when the key is revoked.",
                "The created link.",
            ],
            Shape { body: Some(schema::<OperatorLinkCreate>), ..one(wrapped::<OperatorLink>, StatusCode::CREATED) },
        ),
    ]
}

fn invoice_operations() -> Vec<Operation> {
    let act = |id, path: &str, parse, summary, description, body| {
        operation(
            Area::Records,
            id,
            (Method::POST, &format!("{ACCOUNT}/invoices{path}")),
            "invoices",
            parse,
            [summary, description, "The invoice after the change."],
            Shape { body, has_etag: true, ..one(wrapped::<InvoiceWithPayments>, StatusCode::OK) },
        )
    };
    let create = act(
        "createInvoice",
        "",
        invoices::create,
        "Create an invoice",
        "Creates an invoice with the status `draft` and the next `invoice_number` of the account.",
        Some(schema::<InvoiceCreate>),
    );
    let update = operation(
        Area::Records,
        "updateInvoice",
        (Method::PATCH, &format!("{ACCOUNT}/invoices/{{id}}")),
        "invoices",
        invoices::update,
        [
            "Update an invoice",
            "Changes the fields that you send of an invoice that is neither paid nor cancelled. An amount that becomes \
             equal to what was paid makes the invoice `paid`.",
            "The invoice after the change.",
        ],
        Shape {
            body: Some(schema::<InvoiceUpdate>),
            has_etag: true,
            ..one(wrapped::<InvoiceWithPayments>, StatusCode::OK)
        },
    );
    vec![
        Operation {
            success: "The created invoice.".to_owned(),
            shape: Shape { status: StatusCode::CREATED, ..create.shape },
            ..create
        },
        Operation { current: Some(invoices::get), ..update },
        act("sendInvoice", "/{id}/send", invoices::send, "Send an invoice", "Marks the draft as sent.", None),
        act(
            "viewInvoice",
            "/{id}/view",
            invoices::view,
            "Mark an invoice as viewed",
            "Records that the customer has seen the invoice.",
            None,
        ),
        act(
            "resendInvoice",
            "/{id}/resend",
            invoices::resend,
            "Send an invoice again",
            "Fires the event of an invoice that was sent once more.",
            None,
        ),
        act(
            "payInvoice",
            "/{id}/pay",
            invoices::pay,
            "Record a payment",
            "Records a payment of the invoice: of `amount`, or without it of all that is left to pay.",
            Some(schema::<PaymentAmount>),
        ),
        act(
            "refundInvoice",
            "/{id}/refund",
            invoices::refund,
            "Refund an invoice",
            "Records a refund: of `amount`, or without it of all that was paid. An invoice that is refunded in full is \
             cancelled.",
            Some(schema::<PaymentAmount>),
        ),
        act(
            "voidInvoice",
            "/{id}/void",
            invoices::void,
            "Void an invoice",
            "Cancels an invoice on which nothing was paid.",
            None,
        ),
        operation(
            Area::Records,
            "markOverdueInvoices",
            (Method::POST, &format!("{ACCOUNT}/invoices/mark-overdue")),
            "invoices",
            invoices::mark_overdue,
            [
                "Mark overdue invoices",
                "Checks the next of the account's unpaid invoices, and marks as `overdue` those whose due date is before \
                 today. Repeat the request with `next` until it is null.",
                "The invoices that became overdue.",
            ],
            Shape { body: Some(schema::<OverdueCheck>), ..one(schema::<MarkedInvoices>, StatusCode::OK) },
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
