//! The OpenAPI 3.1 document, made from the table of operations and the types' own schemas.
//!
//! `openapi/v1.json` is the committed form; a test fails when it drifts.

use bytes::Bytes;
use http::{Method, StatusCode};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use svc_core::keys::Scope;

use crate::problem::{ErrorBody, RateLimitBody};
use crate::reply::{Reply, etag};
use crate::routes::{DEFAULT_WRITE_CAPS, Operation};
use crate::service::VERSIONS;

/// One example per schema; the document wraps them as the operations do.
const EXAMPLES: &str = include_str!("../openapi/examples.json");

const INFO: &str = "Contacts, invoices, quotes, bookings, jobs and webhook subscriptions of one business account, \
    which the API key determines.\n\nAmounts are exact JSON numbers. Timestamps are RFC 3339 with microseconds, in UTC. \
    Bodies are strict: unknown fields are refused. Every answer carries `X-Request-Id` and `X-RateLimit-*`.";

/// What each tag is about.
const TAGS: [(&str, &str); 7] = [
    ("ping", "Whether the key works."),
    ("contacts", "People and companies that the business deals with."),
    ("invoices", "Demands for payment; read-only, changes are reported by webhooks."),
    ("bookings", "Appointments."),
    ("quotes", "Offers with a price."),
    ("jobs", "Work on a site."),
    ("webhooks", "Endpoints that receive events."),
];

/// Failures that any operation can meet.
const COMMON: [u16; 8] = [401, 403, 408, 414, 429, 431, 500, 503];
/// Failures that any operation but ping declares (contract, "Errors").
const BUT_PING: [u16; 4] = [400, 404, 409, 415];

/// The documents of both versions, rendered once.
pub struct Document {
    rendered: Vec<(Bytes, String)>,
}

impl Document {
    /// The documents of these operations under a mount path.
    pub fn new(operations: &[Operation], mount: &str) -> Self {
        let render = |version: &&str| {
            let text = serde_json::to_vec(&document(operations, mount, version)).unwrap_or_default();
            let tag = etag(&text);
            (text.into(), tag)
        };
        Self { rendered: VERSIONS.iter().map(render).collect() }
    }

    /// The answer of `/api/vN/openapi.json`, by position in [`VERSIONS`].
    pub fn reply(&self, version: usize) -> Reply {
        let (body, etag) = &self.rendered[version];
        Reply { status: StatusCode::OK, body: body.clone(), etag: Some(etag.clone()), ..Reply::no_content() }
    }
}

/// The document of one version as JSON.
pub fn document(operations: &[Operation], mount: &str, version: &str) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator();
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
    let error = reference(generator.subschema_for::<ErrorBody<'_>>());
    let rate_limit_error = reference(generator.subschema_for::<RateLimitBody<'_>>());
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let item = describe(operation, &mut generator, &examples);
        let path = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = item;
    }
    let mut schemas = generator.take_definitions(true);
    for (name, schema) in &mut schemas {
        if let (Some(example), Some(schema)) = (examples.get(name), schema.as_object_mut()) {
            schema.insert("examples".into(), json!([example]));
        }
    }
    let number = if version.ends_with("v1") { "1.0.0" } else { "2.0.0-preview" };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Business Operations API",
            "version": number,
            "description": INFO,
            "contact": { "name": "The svc authors", "url": "https://github.com/svc-api/svc" },
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": format!("{mount}{version}"), "description": "This server." }],
        "security": [{ "bearer": [] }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key, `svc_live_…`, created in the dashboard under Settings, API keys.",
            } },
            "parameters": parameters(),
            "headers": headers(),
            "responses": failures(&error, &rate_limit_error),
            "schemas": schemas,
        },
    })
}

fn reference(schema: Schema) -> Value {
    schema.to_value()
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator, examples: &Value) -> Value {
    let shape = &operation.shape;
    let mut parameters: Vec<Value> = Vec::new();
    if operation.has_id() {
        parameters.push(component("parameters", "Id"));
    }
    for query in shape.query {
        let schema = query(generator).to_value();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        parameters.extend(properties.into_iter().map(|(name, schema)| query_parameter(&name, schema)));
    }
    parameters.push(component("parameters", "RequestId"));
    if operation.method == Method::POST {
        parameters.push(component("parameters", "IdempotencyKey"));
    }
    if operation.method == Method::GET && shape.tagged {
        parameters.push(component("parameters", "IfNoneMatch"));
    }
    if operation.current.is_some() {
        parameters.push(component("parameters", "IfMatch"));
    }
    if operation.scope == Scope::Write {
        parameters.push(component("parameters", "SignatureTimestamp"));
        parameters.push(component("parameters", "Signature"));
    }
    let mut item = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "description": description(operation),
        "tags": [operation.collection],
        "parameters": parameters,
    });
    if let Some(body) = shape.body {
        let schema = body(generator).to_value();
        let example = example_of(&schema, examples);
        item["requestBody"] = json!({ "required": true, "content": content(schema, example) });
    }
    item["responses"] = responses(operation, generator, examples);
    item
}

fn description(operation: &Operation) -> String {
    let cap = DEFAULT_WRITE_CAPS.iter().find(|(name, _)| *name == operation.collection);
    match (operation.scope, cap) {
        (Scope::Write, Some((_, cap))) => {
            format!("{} By default {cap} requests a minute per key.", operation.description)
        }
        _ => operation.description.to_owned(),
    }
}

/// A parameter that is left out is absent, never null.
fn query_parameter(name: &str, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
    if let Some(types) = schema["type"].as_array_mut() {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator, examples: &Value) -> Value {
    let shape = &operation.shape;
    let mut responses = Map::new();
    let mut success = json!({ "description": success_text(operation), "headers": success_headers(operation) });
    if let Some(answer) = shape.answer {
        let schema = answer(generator).to_value();
        let example = example_of(&schema, examples);
        success["content"] = content(schema, example);
    }
    responses.insert(shape.status.as_str().to_owned(), success);
    if operation.method == Method::GET && shape.tagged {
        responses.insert("304".to_owned(), component("responses", "304"));
    }
    let mut failures: Vec<u16> = COMMON.to_vec();
    if operation.collection != "ping" {
        failures.extend(BUT_PING);
    }
    if operation.current.is_some() {
        failures.push(412);
    }
    if operation.scope == Scope::Write {
        failures.push(413);
    }
    failures.sort_unstable();
    for status in failures {
        responses.insert(status.to_string(), component("responses", &status.to_string()));
    }
    responses.into()
}

fn success_text(operation: &Operation) -> &'static str {
    match operation.shape.status {
        StatusCode::CREATED => "Created.",
        StatusCode::NO_CONTENT => "Deleted.",
        _ => "Done.",
    }
}

fn success_headers(operation: &Operation) -> Value {
    let mut headers = common_headers();
    let mut add = |name: &str| headers[name] = component("headers", name);
    if operation.shape.tagged {
        add("ETag");
    }
    if operation.method == Method::POST {
        add("Location");
        add("Idempotent-Replayed");
    }
    headers
}

fn common_headers() -> Value {
    let names = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    let more = ["RateLimit-Policy", "RateLimit"];
    let all = names.into_iter().chain(more);
    Value::Object(all.map(|name| (name.to_owned(), component("headers", name))).collect())
}

fn component(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn content(schema: Value, example: Option<Value>) -> Value {
    let mut media = json!({ "schema": schema });
    if let Some(example) = example {
        media["example"] = example;
    }
    json!({ "application/json": media })
}

/// The example of a schema: of what it refers to, or of the pages and wrappers around that.
fn example_of(schema: &Value, examples: &Value) -> Option<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return examples.get(name).cloned();
    }
    let data = &schema["properties"]["data"];
    if data["items"].is_object() {
        let item = example_of(&data["items"], examples)?;
        return Some(json!({ "data": [item], "next_cursor": null }));
    }
    Some(json!({ "data": example_of(data, examples)? }))
}

fn parameters() -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "description": description, "schema": schema });
    let text = |longest: u32| json!({ "type": "string", "minLength": 1, "maxLength": longest });
    json!({
        "Id": {
            "name": "id", "in": "path", "required": true, "description": "The record's id.",
            "schema": { "type": "string", "format": "uuid" },
        },
        "RequestId": header(
            "X-Request-Id",
            "Comes back on the answer; made up when left out.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
        ),
        "IdempotencyKey": header("Idempotency-Key", "The same for all tries of one request, kept for 24 hours.", text(255)),
        "IfMatch": header("If-Match", "Only change the version with this ETag, else 412.", text(8192)),
        "IfNoneMatch": header("If-None-Match", "Answer 304 while the ETag is this.", text(8192)),
        "SignatureTimestamp": header(
            "X-SVC-Timestamp",
            "For keys that sign: Unix seconds, within 300 of the server's clock.",
            json!({ "type": "string", "pattern": "^[0-9]+$" }),
        ),
        "Signature": header(
            "X-SVC-Signature",
            "For keys that sign: sha256= and the hex HMAC-SHA256, with the key's signing secret, of timestamp, method, \
             path with query and the hex SHA-256 of the body, joined by line feeds. Accepted once.",
            json!({ "type": "string", "pattern": "^sha256=[0-9a-f]{64}$" }),
        ),
    })
}

fn headers() -> Value {
    let header = |description: &str, schema: Value| json!({ "description": description, "schema": schema });
    let count = || json!({ "type": "integer", "minimum": 0 });
    let text = || json!({ "type": "string" });
    json!({
        "X-Request-Id": header("Names this request in the log.", text()),
        "X-RateLimit-Limit": header("Requests per window of 60 s, of the tighter limit.", count()),
        "X-RateLimit-Remaining": header("Requests left in the window.", count()),
        "X-RateLimit-Reset": header("When the window ends: Unix seconds, rounded up.", count()),
        "RateLimit-Policy": header("The limit as a structured field (IETF draft).", text()),
        "RateLimit": header("The standing as a structured field (IETF draft).", text()),
        "Retry-After": header("Seconds to wait.", json!({ "type": "integer", "minimum": 1 })),
        "ETag": header("Strong tag of the representation.", text()),
        "Location": header("Address of what was created.", json!({ "type": "string", "format": "uri-reference" })),
        "Idempotent-Replayed": header("Present on the kept answer to an earlier request.", json!({ "type": "string", "const": "true" })),
        "WWW-Authenticate": header("The scheme to use.", json!({ "type": "string", "const": "Bearer" })),
    })
}

fn failures(error: &Value, rate_limit_error: &Value) -> Value {
    let texts = [
        (304, "Not changed."),
        (400, "The request is not valid; `field` and `errors` name what fails."),
        (401, "The key or the request signature is missing or not valid."),
        (403, "The key may not do this, or developer access is not approved."),
        (404, "Not found: unknown, deleted, or of another account."),
        (408, "The body did not arrive in time."),
        (409, "Another contact has the email, or the Idempotency-Key is in flight."),
        (412, "The resource has another ETag."),
        (413, "The body is larger than 1 MiB."),
        (414, "The request target is longer than 8 KiB."),
        (415, "The body is not plain application/json."),
        (429, "Too many requests; nothing was counted or done."),
        (431, "The headers are larger than 16 KiB."),
        (500, "Something failed on our side."),
        (503, "The service is shutting down or its database is away."),
    ];
    let mut responses = Map::new();
    for (status, description) in texts {
        let mut headers = common_headers();
        match status {
            304 => headers["ETag"] = component("headers", "ETag"),
            401 => headers["WWW-Authenticate"] = component("headers", "WWW-Authenticate"),
            429 | 503 => headers["Retry-After"] = component("headers", "Retry-After"),
            _ => {}
        }
        let mut response = json!({ "description": description, "headers": headers });
        match status {
            304 => {}
            429 => response["content"] = content(rate_limit_error.clone(), None),
            _ => response["content"] = content(error.clone(), None),
        }
        responses.insert(status.to_string(), response);
    }
    responses.into()
}
