//! The webhooks: for each event kind, the request that the endpoints of subscribers receive (`docs/contract.md`, "Events"
//! and "Webhook deliveries").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use svc_core::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use svc_core::platform::operational_data;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{Invoice, Payment, RefundedInvoice};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::{EventKind, EventKinds, TenantId, Timestamp};
use svc_core::webhooks::samples;

use super::Schemas;
use super::components::{component, content};

/// The tag of the requests that endpoints receive. It is no collection, as generators make a file of each tag from its
/// operations, and those on subscriptions would share it with these.
pub(super) const TAG: &str = "webhook-events";

/// The headers of a delivery, as components.
const HEADERS: [&str; 8] = [
    "DeliveryEvent",
    "DeliveryId",
    "DeliveryAttempt",
    "DeliveryTest",
    "DeliverySignature",
    "StandardWebhooksId",
    "StandardWebhooksTimestamp",
    "StandardWebhooksSignature",
];

/// Returns the webhooks by event kind.
pub(super) fn describe(schemas: &mut Schemas, kinds: &EventKinds) -> Value {
    let describe = |kind: EventKind| {
        let meaning = kinds.meaning(kind);
        let example = samples::data(kinds, kind).unwrap_or_default();
        let data = data(kind, schemas);
        let tenant = "0195a3c8-8a00-7000-8000-00000000a001";
        (kind.to_string(), json!({ "post": delivery(kind.as_str(), &meaning, data, &example, tenant, schemas) }))
    };
    kinds.all().map(describe).collect::<Map<String, Value>>().into()
}

/// Returns the webhooks that the platform webhook receives, by operational kind.
pub(super) fn describe_operational(schemas: &mut Schemas) -> Value {
    let describe = |kind: &OperationalKind| {
        let (schema, description) = operational_data(*kind, &mut schemas.output);
        let (data, tenant) = (Data { schema: schema.to_value(), description }, PLATFORM_ACCOUNT.to_string());
        let post = delivery(kind.as_str(), kind.meaning(), data, &samples::operational(*kind), &tenant, schemas);
        (kind.to_string(), json!({ "post": post }))
    };
    OperationalKind::ALL.iter().map(describe).collect::<Map<String, Value>>().into()
}

/// Adds the custom kinds to the schema of event kinds, and the schema of the data of each under its name.
pub(super) fn add_custom_kinds(schemas: &mut BTreeMap<String, Value>, kinds: &EventKinds) {
    for name in kinds.custom() {
        let place = component("schemas", name.as_str());
        let schema = kinds.schema_at(name, place["$ref"].as_str().unwrap_or_default()).unwrap_or_default();
        schemas.insert(name.to_string(), schema);
        for list in ["EventKind", "SelectedEvent", "EmittableKind"] {
            let Some(all) = schemas.get_mut(list) else { continue };
            if let Some(names) = all["enum"].as_array_mut() {
                names.push(name.as_str().into());
            }
            if let Some(names) = all.get_mut("x-enum-varnames").and_then(Value::as_array_mut) {
                names.push(EventKind::Custom(name).code_name().into());
            }
            let meanings = all["description"].as_str().unwrap_or_default();
            all["description"] =
                format!("{meanings}\n- `{name}`: {}", kinds.meaning(EventKind::Custom(name)).replace('\n', " ")).into();
        }
    }
}

/// Returns the schemas that only webhooks refer to.
pub(super) fn schemas() -> [(&'static str, Value); 2] {
    [
        (
            "DeletedContact",
            json!({
                "description": "A contact that was deleted.",
                // The field is that of a contact, which need not have it; described again, it would be another field to some
                // generators of clients. Some read what is required here, and some in the second schema.
                "allOf": [component("schemas", "Contact"), { "type": "object", "required": ["deleted_at"] }],
                "required": ["deleted_at"],
            }),
        ),
        (
            "ExternalRecord",
            json!({
                "type": "object",
                "description": "The record of a hotel stay or a cohort. Both are kept elsewhere in the service, and the \
                                object is passed on as it was given. It may have any fields besides its `id`.",
                "properties": { "id": {
                    "description": "The identifier of the stay or cohort: a number, or a string that is not empty.",
                    "type": ["string", "number"],
                    "minLength": 1,
                } },
                "required": ["id"],
            }),
        ),
    ]
}

/// Returns the headers of a delivery.
pub(super) fn parameters() -> [(&'static str, Value); HEADERS.len()] {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "required": true, "description": description, "schema": schema });
    let uuid = || json!({ "type": "string", "format": "uuid" });
    let [event, id, attempt, test, signature, standard_id, standard_timestamp, standard_signature] = HEADERS;
    [
        (
            event,
            header(
                "X-SVC-Event",
                "The kind of event. The signatures do not cover this header, so read `event` in the body instead.",
                json!({ "type": "string" }),
            ),
        ),
        (id, header("X-SVC-Delivery", "The identifier of the delivery, the same on every attempt and replay.", uuid())),
        (
            attempt,
            header(
                "X-SVC-Attempt",
                "The number of the attempt, from 1 on. Replays continue to count.",
                json!({ "type": "integer", "minimum": 1 }),
            ),
        ),
        (
            test,
            json!({
                "name": "X-SVC-Test",
                "in": "header",
                "description": "Present on a test, which the dashboard or the operator of the service can send to a \
                                subscription with any of its event kinds: `data` is the example of the kind, and nothing happened to any record. \
                                Present as well on every delivery of a sandbox, whose `data` is a record of the sandbox. The signatures do not cover \
                                this header.",
                "schema": { "type": "string", "const": "true" },
            }),
        ),
        (
            signature,
            header(
                "X-SVC-Signature",
                "`sha256=` and the lower-case hex HMAC-SHA256 of the raw body. The HMAC key is the whole signing secret of \
                 the subscription, including `whsec_`.",
                json!({ "type": "string", "pattern": "^sha256=[0-9a-f]{64}$" }),
            ),
        ),
        (standard_id, header("webhook-id", "The same identifier as `X-SVC-Delivery`, for Standard Webhooks.", uuid())),
        (
            standard_timestamp,
            header(
                "webhook-timestamp",
                "The time of the attempt in Unix seconds, for Standard Webhooks.",
                json!({ "type": "integer" }),
            ),
        ),
        (
            standard_signature,
            header(
                "webhook-signature",
                "The signatures of Standard Webhooks, separated by spaces: `v1,` and the base64 HMAC-SHA256 of \
                 `{webhook-id}.{webhook-timestamp}.{body}`. There are two for a time after the secret was rotated. A subscription \
                 that asks for public keys has `v1a,` and the base64 Ed25519 signature of the same as well.",
                json!({
                    "type": "string",
                    "pattern": "^v1,[0-9A-Za-z+/]{43}=( v1,[0-9A-Za-z+/]{43}=)*( v1a,[0-9A-Za-z+/]{86}==)*$",
                }),
            ),
        ),
    ]
}

/// Returns the request with an event of this kind.
fn delivery(
    kind: &str,
    meaning: &str,
    data: Data,
    example: &Value,
    tenant_example: &str,
    schemas: &mut Schemas,
) -> Value {
    let Data { schema, description } = data;
    let tenant = schemas.output.subschema_for::<TenantId>().to_value();
    let time = schemas.output.subschema_for::<Timestamp>().to_value();
    let body = json!({
        "type": "object",
        "properties": {
            "event": { "type": "string", "const": kind },
            "data": schema,
            "delivered_at": time,
            "tenant_id": tenant,
        },
        "required": ["event", "data", "delivered_at", "tenant_id"],
    });
    let example = json!({
        "event": kind,
        "data": example,
        "delivered_at": "2026-03-14T15:09:27.041302Z",
        "tenant_id": tenant_example,
    });
    json!({
        // The names of kinds are unique, and those that an application registers may differ by nothing but a separator.
        "operationId": kind,
        "summary": kind,
        "description": format!(
            "{meaning}\n\n`data` is {description}. It is the same on every attempt, unless its contact is erased meanwhile. \
             `delivered_at` is the time of the attempt, and `tenant_id` the account. Verify a signature before you use the body."
        ),
        "tags": [TAG],
        "security": [],
        "parameters": HEADERS.map(|name| component("parameters", name)),
        "requestBody": { "required": true, "content": content(body, Some(example)) },
        "responses": {
            "2XX": { "description": "The delivery succeeded. The body is not used." },
            "default": { "description": "The attempt failed, and the delivery is sent again later while retries are left." },
        },
    })
}

/// The `data` of an event.
struct Data {
    schema: Value,
    /// The description, to follow "`data` is".
    description: &'static str,
}

fn data(kind: EventKind, schemas: &mut Schemas) -> Data {
    use EventKind as K;
    fn of<T: JsonSchema>(schemas: &mut Schemas, description: &'static str) -> Data {
        Data { schema: schemas.output.subschema_for::<T>().to_value(), description }
    }
    const AS_GET: &str = "the record as a GET would have returned it right after the change";
    match kind {
        K::InvoiceCreated
        | K::InvoiceSent
        | K::InvoicePaid
        | K::InvoiceVoided
        | K::InvoiceUpdated
        | K::InvoiceResent => of::<Invoice>(schemas, AS_GET),
        K::InvoiceRefunded => of::<RefundedInvoice>(
            schemas,
            "the invoice as a GET would have returned it right after the refund, with the amount and the time of the refund",
        ),
        K::QuoteCreated | K::QuoteAccepted | K::QuoteDeclined | K::QuoteUpdated => of::<Quote>(schemas, AS_GET),
        K::BookingCreated | K::BookingCancelled | K::BookingUpdated => of::<Booking>(schemas, AS_GET),
        K::JobCreated | K::JobScheduled | K::JobCompleted | K::JobUpdated => of::<Job>(schemas, AS_GET),
        K::ContactCreated | K::ContactUpdated => of::<Contact>(schemas, AS_GET),
        K::ContactDeleted => Data {
            schema: component("schemas", "DeletedContact"),
            description: "the contact as it was, with the time of its deletion in `deleted_at`, or the `id` alone if it was \
                          erased",
        },
        K::PaymentSucceeded => of::<Payment>(schemas, "the payment, which no operation returns"),
        K::StayCreated
        | K::StayConfirmed
        | K::StayCheckedIn
        | K::StayCheckedOut
        | K::StayCancelled
        | K::StayNoShow
        | K::CohortSessionsGenerated => Data {
            schema: component("schemas", "ExternalRecord"),
            description: "the object that the back office gave, with its `id`",
        },
        K::Custom(name) => Data {
            schema: component("schemas", name.as_str()),
            description: "the object that the application gave, which has the schema of its kind",
        },
    }
}
