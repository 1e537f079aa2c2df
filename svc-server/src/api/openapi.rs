//! The OpenAPI 3.1 document, generated from the operations and the schemas of the types.
//!
//! `openapi/v1.json` is the committed document, and a test fails when it is out of date. The module `components` has the
//! parameters, headers and responses that operations share, and `webhooks` the requests that subscribers receive.

mod components;
#[cfg(test)]
mod tests;
pub(crate) mod webhooks;

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::operation::{About, AnyOperation, Method, Success};
use svc_core::platform::operations;
use svc_core::values::{EventKind, EventKinds};
use svc_core::webhooks::{options, samples};

use self::components::{common_headers, component, content, response_name};
use crate::api::run;
use crate::kernel::problem::{ErrorBody, RateLimitBody};
use crate::kernel::response::{ApiResponse, etag};
use crate::kernel::versions::{self, VERSIONS, Version};

/// One example per schema that no event carries. The document wraps them in `data` or in a page where an operation does.
const EXAMPLES: &str = include_str!("../../openapi/examples.json");

/// One example per schema that only the platform API has.
const PLATFORM_EXAMPLES: &str = include_str!("../../openapi/platform-examples.json");

/// The schemas that events carry. Their examples are the samples of these kinds.
const SAMPLES: [(&str, EventKind); 9] = [
    ("Contact", EventKind::ContactCreated),
    ("DeletedContact", EventKind::ContactDeleted),
    ("Invoice", EventKind::InvoicePaid),
    ("RefundedInvoice", EventKind::InvoiceRefunded),
    ("Payment", EventKind::PaymentSucceeded),
    ("Booking", EventKind::BookingCreated),
    ("Quote", EventKind::QuoteCreated),
    ("Job", EventKind::JobScheduled),
    ("ExternalRecord", EventKind::StayCreated),
];

/// The introduction, in Markdown.
const INFO: &str = include_str!("openapi/introduction.md");

/// The introduction of the platform API, in Markdown.
const PLATFORM_INFO: &str = include_str!("openapi/platform.md");

/// The tags of the platform API that the public API does not have, or describes otherwise.
const PLATFORM_TAGS: &[(&str, &str)] = &[
    (
        "accounts",
        "An account is that of one business. Everything else belongs to one account, whose id is in its path.",
    ),
    (
        "keys",
        "An API key opens the public API for the data of one account. Its text is returned once, at its creation.",
    ),
    (
        "apps",
        "An app is a program of somebody else, which owners of accounts can let work on them (OAuth 2.0). A grant says that \
         an account does.",
    ),
    ("members", "A member is a person who signs in to the dashboard of an account with an email address."),
    (
        "dashboard-links",
        "A dashboard link signs a person in to the dashboard of one account, once and within ten minutes.",
    ),
    ("operator-links", "An operator link signs an operator in to the dashboard, once and within ten minutes."),
    (
        "invoices",
        "An invoice asks a contact for payment. It is created and changed here, and is read-only in the public API.",
    ),
    (
        "events",
        "An event says what happened to a record of an account. It is delivered to every webhook subscription to its kind.",
    ),
    ("deliveries", "A delivery is one event on its way to one webhook subscription, with the log of its attempts."),
    (
        "replays",
        "A bulk replay sends the deliveries of a time span to a webhook subscription again, in the background.",
    ),
    ("statistics", "The statistics count the attempts of the last 24 hours by hour."),
    ("audit-log", "The audit log says who changed what in an account, and when."),
    ("requests", "The request log has the newest requests of an account's API keys, without their bodies."),
    ("import", "An import adds records that were made elsewhere, or that an export returned."),
    (
        "export",
        "An export returns all records of an account, to keep them elsewhere or to import them into another account.",
    ),
];

/// The tags, which group the operations by collection.
const TAGS: &[(&str, &str)] = &[
    ("ping", "Check an API key and the connection to the service."),
    (
        "contacts",
        "A contact is a person or company that the business deals with. Bookings, quotes, jobs and invoices refer to \
         contacts.",
    ),
    (
        "invoices",
        "An invoice asks a contact for payment. Invoices are read-only in this API: they are created and changed \
         elsewhere in the service, and webhook events report their changes.",
    ),
    ("bookings", "A booking is an appointment with a contact, with a start and an end."),
    ("quotes", "A quote offers work to a contact at a price, up to a date."),
    ("jobs", "A job is work at a site, from the first quote to the invoice."),
    (
        "webhooks",
        "A webhook subscription is an endpoint of yours that receives events, such as `contact.created`.\n\n\
         The service delivers an event as a POST with the JSON body `{event, data, delivered_at, tenant_id}`. `event` is \
         the kind of event, and `data` is the record as a GET would have returned it right after the change, unless its kind says \
         otherwise below `webhook-events`. A test says so in `X-SVC-Test`, and so does a sandbox. The header \
         `X-SVC-Signature` is `sha256=` and the hex HMAC-SHA256 of the raw body, keyed with the secret that the create \
         returned: verify it before you trust a delivery. Deliveries are also signed as Standard Webhooks defines it.\n\n\
         A delivery succeeds with a 2xx response within 10 seconds. By default a failed attempt is retried five times \
         over about six hours; a 410 ends the retries. After ten failed attempts in a row, which take minutes since they \
         are made one at a time, the service pauses the subscription: further events \
         become held deliveries. Enable the subscription again in the dashboard or by PATCH, then replay what is held in \
         the dashboard, or ask the operator of the service to. A delivery \
         can arrive more than once, always with the same `X-SVC-Delivery`, and deliveries can arrive in any order.",
    ),
    (webhooks::TAG, "The request that the endpoint of a webhook subscription receives, for each kind of event."),
];

/// The failures that every operation declares.
const COMMON_FAILURES: [u16; 7] = [401, 403, 414, 429, 431, 500, 503];
/// The failures that every operation except `ping` declares as well (`docs/contract.md`, "Statuses").
const RECORD_FAILURES: [u16; 4] = [400, 404, 409, 415];
/// The failures of operations that read a body. All writes do, as the signature of a DELETE covers its body.
const WRITE_FAILURES: [u16; 2] = [408, 413];

/// The documents of all versions, rendered once.
pub struct Documents(Vec<RenderedDocument>);

struct RenderedDocument {
    version: Version,
    response: ApiResponse,
}

impl Documents {
    /// Renders the documents of these versions, which have these operations and event kinds. `mount` is the path of the API
    /// in a host application, empty for none.
    ///
    /// `public_url` is the URL at which clients reach this service, if it is known, and `issuer` its URL as an authorization
    /// server for apps, if it is one.
    pub fn new(
        operations: &[&'static dyn AnyOperation],
        versions: &[Version],
        mount: &str,
        kinds: &EventKinds,
        public_url: Option<&str>,
        issuer: Option<&str>,
    ) -> Self {
        let render = |version: Version| {
            let mut document = document(operations, mount, version, kinds);
            if let Some(url) = public_url {
                let server = &mut document["servers"][0]["url"];
                *server = format!("{url}{}", server.as_str().unwrap_or_default()).into();
            }
            if let Some(issuer) = issuer {
                add_oauth2(&mut document, issuer);
            }
            let mut body = serde_json::to_vec(&document).unwrap_or_default();
            body.push(b'\n');
            let etag = Some(etag(&body));
            let response = ApiResponse { status: StatusCode::OK, body: body.into(), etag, ..ApiResponse::no_content() };
            RenderedDocument { version, response }
        };
        Self(versions.iter().copied().map(render).collect())
    }

    /// Returns the response to `GET …/openapi.json`.
    pub fn response(&self, version: Version) -> ApiResponse {
        let rendered = self.0.iter().find(|rendered| rendered.version == version);
        rendered.map_or_else(ApiResponse::no_content, |rendered| rendered.response.clone())
    }
}

/// Returns the committed form of a document, without a mount path. `version` is `v1`, `v2` or `platform-v1`; for any other
/// name the result is `None`.
pub fn text(version: &str) -> Option<String> {
    let version = VERSIONS.into_iter().chain([Version::Platform]).find(|known| known.name() == version)?;
    let operations = if version == Version::Platform { operations::platform() } else { operations::public() };
    let document = document(&operations, "", version, &EventKinds::default());
    serde_json::to_string_pretty(&document).map(|text| text + "\n").ok()
}

/// Generates the schemas of requests and of responses, which differ: a limit on a request field is not promised of
/// responses.
struct Schemas {
    input: SchemaGenerator,
    output: SchemaGenerator,
    examples: Value,
}

impl Schemas {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let mut examples: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
        let platform: Map<String, Value> = serde_json::from_str(PLATFORM_EXAMPLES).unwrap_or_default();
        platform.into_iter().for_each(|(name, example)| examples[name] = example);
        for (name, kind) in SAMPLES {
            examples[name] = samples::data(&EventKinds::default(), kind).unwrap_or_default();
        }
        Self {
            input: settings.clone().for_deserialize().into_generator(),
            output: settings.for_serialize().into_generator(),
            examples,
        }
    }

    /// Adds the options of webhook subscriptions to their examples.
    fn add_options(&mut self) {
        for name in ["WebhookSubscription", "WebhookSubscriptionWithSecret"] {
            if let Some(example) = self.examples.get_mut(name) {
                options::FIELDS.iter().for_each(|field| example[*field] = Value::Null);
                example["filter"] = "data.total >= 100".into();
            }
        }
    }

    /// Returns the example of the component that a schema refers to. That of a response is made of the example of its
    /// record.
    fn example_of(&self, schema: &Value) -> Option<Value> {
        let name = schema["$ref"].as_str()?.rsplit('/').next()?;
        if let Some(example) = self.examples.get(name) {
            return Some(example.clone());
        }
        let data = &self.output.definitions().get(name)?["properties"]["data"];
        match data.get("items") {
            Some(item) => Some(json!({ "data": [self.example_of(item)?], "next_cursor": null })),
            None => Some(json!({ "data": self.example_of(data)? })),
        }
    }

    /// Returns the schemas that were referred to, by name.
    fn finish(mut self, kinds: &EventKinds) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<String, Value> = self.output.take_definitions(true).into_iter().collect();
        let mut bodies = self.input.take_definitions(true);
        for schema in bodies.values_mut() {
            let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
            fields.into_iter().flat_map(Map::values_mut).for_each(accept_blank);
        }
        all.extend(bodies);
        all.extend(webhooks::schemas().map(|(name, schema)| (name.to_owned(), schema)));
        webhooks::add_custom_kinds(&mut all, kinds);
        for (name, schema) in &mut all {
            if let Some(example) = self.examples.get(name) {
                schema["examples"] = json!([example]);
            }
        }
        all
    }
}

/// Lets a text with a pattern be blank if it can be null, as the service reads blank text as null.
///
/// It reads a blank time, date, id, email address or object as null as well. The document does not say so, since it could only
/// do it by alternatives, of which many generators of clients make a type without fields. A client sends null.
fn accept_blank(field: &mut Value) {
    let can_be_null = field["type"] == json!(["string", "null"]);
    if let Some(pattern) = field["pattern"].as_str().filter(|_| can_be_null) {
        field["pattern"] = format!("{pattern}|^\\s*$").into();
    }
}

/// Generates the document of one version as JSON.
pub fn document(operations: &[&'static dyn AnyOperation], mount: &str, version: Version, kinds: &EventKinds) -> Value {
    let texts = Texts::of(version);
    let mut schemas = Schemas::new();
    let has_options =
        version == Version::Platform || operations.iter().any(|operation| operation.id == operations::LIST_EVENTS.id);
    if has_options {
        schemas.add_options();
    }
    let error = schemas.output.subschema_for::<ErrorBody<'_>>().to_value();
    let rate_limit_error = schemas.output.subschema_for::<RateLimitBody<'_>>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let item = describe(*operation, version, &mut schemas);
        let path = paths.entry(version.path_of(operation)).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = item;
    }
    let webhooks = match version {
        Version::Platform => webhooks::describe_operational(&mut schemas),
        _ => webhooks::describe(&mut schemas, kinds),
    };
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": texts.title,
            "version": version.number(),
            "description": texts.introduction,
            "contact": { "name": "The svc authors" },
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{
            "url": format!("{mount}{}", version.path()),
            "description": "The server that this document was loaded from.",
        }],
        "security": [{ "bearer": [] }],
        "tags": tags(version, operations),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": texts.key,
                "description": texts.security,
            } },
            "parameters": components::parameters(),
            "headers": components::headers(),
            "responses": components::failures(&error, &rate_limit_error),
            "schemas": schemas.finish(kinds),
        },
    });
    if version == Version::Platform {
        components::adapt_to_platform(&mut document);
    } else if !has_options {
        leave_out_options(&mut document);
    }
    document
}

/// Leaves out the options of webhook subscriptions, which the contract does not have.
fn leave_out_options(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    for name in ["WebhookCreate", "WebhookUpdate", "WebhookSubscription", "WebhookSubscriptionWithSecret"] {
        if let Some(properties) = schemas.get_mut(name).and_then(|schema| schema["properties"].as_object_mut()) {
            properties.retain(|field, _| !options::FIELDS.contains(&field.as_str()));
            if name == "WebhookCreate" {
                properties.remove(options::SECRET);
            }
        }
    }
    components::remove_unused(document);
}

/// Adds OAuth 2.0 as a second way to authenticate, for third-party apps.
fn add_oauth2(document: &mut Value, issuer: &str) {
    document["security"] = json!([{ "bearer": [] }, { "oauth2": [] }]);
    document["components"]["securitySchemes"]["oauth2"] = json!({
        "type": "oauth2",
        "description": "An access token of an app, as a bearer token. An owner of the account consents to what the app may do. \
                        The app has to be registered with the operator of the service first.",
        "flows": { "authorizationCode": {
            "authorizationUrl": format!("{issuer}/oauth/authorize"),
            "tokenUrl": format!("{issuer}/oauth/token"),
            "refreshUrl": format!("{issuer}/oauth/token"),
            "scopes": { "read": "Read all records.", "write": "Create, change and delete records; includes `read`." },
        } },
    });
    components::add_challenges(document);
}

/// The differences between the documents, besides their operations.
struct Texts {
    title: &'static str,
    introduction: &'static str,
    /// The form of a key.
    key: &'static str,
    /// The description of the keys.
    security: &'static str,
}

impl Texts {
    fn of(version: Version) -> Self {
        match version {
            Version::V1 | Version::V2 | Version::Mcp | Version::McpReadOnly => Self {
                title: "Business Operations API",
                introduction: INFO,
                key: "svc_live_…",
                security: "An API key, such as `svc_live_…`, or `svc_test_…` for a sandbox, as a bearer token. Keys are \
                           created in the dashboard under Developers, API keys, or by the operator of the service. A key \
                           has the scope `read`, or `read` and `write`; POST, PATCH and DELETE need `write`.",
            },
            Version::Platform => Self {
                title: "Platform API",
                introduction: PLATFORM_INFO,
                key: "svc_plat_…",
                security: "A platform key, such as `svc_plat_…`, as a bearer token. The operator creates keys with \
                           `svc platform-key create`. Its scopes are areas with `read` or `write`, such as \
                           `records:write`, or `*` for everything except `operators:write`; `write` includes `read`.",
            },
        }
    }
}

fn tags(version: Version, operations: &[&'static dyn AnyOperation]) -> Vec<Value> {
    // The extension is that of Redoc and Scalar. Generated clients name their modules by the tag itself.
    let tag = |(name, description): &(&str, &str)| json!({ "name": name, "description": description, "x-displayName": title(name) });
    match version {
        Version::V1 | Version::V2 | Version::Mcp | Version::McpReadOnly => {
            let is_extension = |name: &str| {
                TAGS.iter().all(|(own, _)| *own != name) && operations.iter().any(|operation| operation.tag == name)
            };
            TAGS.iter().chain(PLATFORM_TAGS.iter().filter(|(name, _)| is_extension(name))).map(tag).collect()
        }
        Version::Platform => {
            let records = TAGS.iter().filter(|(name, _)| !["ping", "invoices"].contains(name));
            PLATFORM_TAGS.iter().chain(records).map(tag).collect()
        }
    }
}

/// Returns a tag as people write it, such as `Audit log`.
fn title(tag: &str) -> String {
    let words = tag.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn describe(operation: &'static dyn AnyOperation, version: Version, schemas: &mut Schemas) -> Value {
    let texts = operation.texts();
    let mut parameters: Vec<Value> = Vec::new();
    if version == Version::Platform && operation.has_account {
        parameters.push(component("parameters", "AccountId"));
    }
    if operation.has_id {
        parameters.push(component("parameters", "Id"));
    }
    if operation.has_input && operation.method == Method::Get {
        let schema = operation.input_schema(&mut schemas.input).to_value();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|own| own == name));
        let parameter = |(name, schema): (String, Value)| query_parameter(&name, schema, required(&name));
        parameters.extend(properties.into_iter().map(parameter));
    }
    parameters.push(component("parameters", "RequestId"));
    if operation.method == Method::Post {
        parameters.push(component("parameters", "IdempotencyKey"));
    }
    if operation.method == Method::Get && operation.has_etag() {
        parameters.push(component("parameters", "IfNoneMatch"));
    }
    if operation.takes_if_match() {
        parameters.push(component("parameters", "IfMatch"));
    }
    if operation.scope() == Scope::Write && version != Version::Platform {
        parameters.push(component("parameters", "SignatureTimestamp"));
        parameters.push(component("parameters", "Signature"));
    }
    let mut item = json!({
        "operationId": operation.id,
        "summary": texts.summary,
        "description": description(operation, version, &texts.description),
        "tags": [operation.tag],
        "parameters": parameters,
    });
    if operation.takes_body() {
        let schema = operation.input_schema(&mut schemas.input).to_value();
        let example = schemas.example_of(&schema);
        item["requestBody"] = json!({ "required": true, "content": content(schema, example) });
    }
    item["responses"] = responses(operation, &texts.success, schemas);
    item
}

fn description(operation: &About, version: Version, text: &str) -> String {
    let mut text = text.to_owned();
    let is_platform = version == Version::Platform;
    if let Some(default) = versions::default_write_limit(operation) {
        let who = if is_platform {
            "a platform key can make {} of these requests per minute and account"
        } else {
            "an API key can make {} of these requests per minute"
        };
        let limit = who.replace("{}", &default.limit.to_string());
        text.push_str(&format!("\n\nBy default {limit}."));
    }
    if is_platform {
        text.push_str(&format!("\n\nThe platform key needs the scope `{}:{}`.", operation.area, operation.scope()));
    }
    text
}

/// Converts the schema of a filter to a query parameter, which is never null or empty. It can be left out unless it is required.
fn query_parameter(name: &str, mut schema: Value, is_required: bool) -> Value {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
    if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice)
        && null == "null"
    {
        schema["type"] = kind.clone();
    }
    if let Some([values, null]) = schema["anyOf"].as_array().map(Vec::as_slice)
        && null["type"] == "null"
    {
        schema = values.clone();
    }
    let lacks = |keywords: &[&str]| keywords.iter().all(|keyword| schema.get(keyword).is_none());
    let may_be_empty = lacks(&["pattern", "enum", "minLength"]) && (lacks(&["format"]) || !lacks(&["maxLength"]));
    if schema["type"] == "string" && may_be_empty {
        schema["minLength"] = 1.into();
    }
    let mut parameter = json!({ "name": name, "in": "query", "description": description, "schema": schema });
    if is_required {
        parameter["required"] = true.into();
    }
    parameter
}

fn responses(operation: &'static dyn AnyOperation, success: &str, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    let mut success = json!({ "description": success, "headers": success_headers(operation) });
    if let Some(schema) = operation.output_schema(&mut schemas.output) {
        let schema = schema.to_value();
        let example = schemas.example_of(&schema);
        success["content"] = content(schema, example);
    }
    responses.insert(run::status(operation.success).as_str().to_owned(), success);
    if operation.method == Method::Get && operation.has_etag() {
        responses.insert("304".to_owned(), component("responses", response_name(304)));
    }
    let mut failures: Vec<u16> = COMMON_FAILURES.to_vec();
    if operation.tag != "ping" {
        failures.extend(RECORD_FAILURES);
    }
    if operation.takes_if_match() {
        failures.push(412);
    }
    if operation.scope() == Scope::Write {
        failures.extend(WRITE_FAILURES);
    }
    failures.sort_unstable();
    for status in failures {
        responses.insert(status.to_string(), component("responses", response_name(status)));
    }
    responses.into()
}

fn success_headers(operation: &About) -> Value {
    let mut headers = common_headers();
    let mut add = |name: &str| headers[name] = component("headers", name);
    if operation.has_etag() {
        add("ETag");
    }
    if operation.method == Method::Post {
        if operation.success == Success::Created && operation.has_etag() {
            add("Location");
        }
        add("Idempotent-Replayed");
    }
    headers
}
