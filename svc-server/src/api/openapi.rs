//! The OpenAPI 3.1 document, made from the table of operations and the types' own schemas.
//!
//! `openapi/v1.json` is the committed form; a test fails when it drifts. What operations share stands in
//! `components`.

mod components;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, StatusCode};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use svc_core::accounts::keys::Scope;

use self::components::{common_headers, component, content, response_name};
use crate::api::VERSIONS;
use crate::api::problem::{ErrorBody, RateLimitBody};
use crate::api::response::{ApiResponse, etag};
use crate::api::routes::{self, Operation};

/// One example per schema; the document wraps them as the operations do.
const EXAMPLES: &str = include_str!("../../openapi/examples.json");

const INFO: &str = "Contacts, invoices, quotes, bookings, jobs and webhook subscriptions of one business access, \
    which the API key determines.

- Amounts are exact JSON numbers, with no more decimals than their currency has.
- Timestamps are RFC 3339. Answers have them in UTC with microseconds; requests may use any offset.
- Bodies are strict: unknown, read-only and repeated fields are refused, and so are unknown query parameters.
- Fields of a record are always present, and null when empty.
- Every answer carries `X-Request-Id`, the `X-RateLimit-*` headers and `Cache-Control`: `private, no-cache` to GET and HEAD, so \
    that it is asked for again with its `ETag`, and `no-store` to anything else.
- Failures have the `Error` schema, 429 has `RateLimitError`.
- HEAD works wherever GET does. Another method on a known path is answered with 405 and `Allow`.
- By default a key has 60 requests a minute. Writes have tighter limits, which their descriptions give.";

/// What each tag is about.
const TAGS: [(&str, &str); 7] = [
    ("ping", "Whether the key works."),
    ("contacts", "People and companies that the business deals with."),
    ("invoices", "Demands for payment. They are read-only here; webhooks tell of their changes."),
    ("bookings", "Appointments."),
    ("quotes", "Offers with a price."),
    ("jobs", "Work on a site."),
    (
        "webhooks",
        "Endpoints that receive events.\n\nA delivery is a POST of `{event, data, delivered_at, tenant_id}`. `data` is the \
         record as a GET would return it when the event happened. `X-SVC-Event` names the kind. `X-SVC-Signature` is \
         `sha256=` and the hex HMAC-SHA256 of the raw body, keyed with the secret that was returned at creation.",
    ),
];

/// Failures that any operation can meet.
const COMMON: [u16; 7] = [401, 403, 414, 429, 431, 500, 503];
/// Failures that any operation but ping declares (contract, "Errors").
const BUT_PING: [u16; 4] = [400, 404, 409, 415];
/// Failures of operations that read a body: all writes, as the body of a signed DELETE is read too.
const WRITES: [u16; 2] = [408, 413];

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
    pub fn response(&self, version: usize) -> ApiResponse {
        let (body, etag) = &self.rendered[version];
        ApiResponse {
            status: StatusCode::OK,
            body: body.clone(),
            etag: Some(etag.clone()),
            ..ApiResponse::no_content()
        }
    }
}

/// The document of a version (`v1`) without a mount, as it is committed. `None` when there is no such version.
pub fn text(version: &str) -> Option<String> {
    let version = VERSIONS.iter().find(|path| path.strip_prefix("/api/") == Some(version))?;
    serde_json::to_string_pretty(&document(&routes::operations(), "", version)).map(|text| text + "\n").ok()
}

/// Makes the schemas of what is sent and of what is answered: limits on input promise nothing about answers.
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
        Self {
            input: settings.clone().for_deserialize().into_generator(),
            output: settings.for_serialize().into_generator(),
            examples: serde_json::from_str(EXAMPLES).unwrap_or_default(),
        }
    }

    /// The components that were referred to, by name.
    fn finish(mut self) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<String, Value> = self.output.take_definitions(true).into_iter().collect();
        all.extend(self.input.take_definitions(true));
        for (name, schema) in &mut all {
            if let Some(example) = self.examples.get(name) {
                schema["examples"] = json!([example]);
            }
        }
        all
    }
}

/// The document of one version as JSON.
pub fn document(operations: &[Operation], mount: &str, version: &str) -> Value {
    let mut schemas = Schemas::new();
    let error = schemas.output.subschema_for::<ErrorBody<'_>>().to_value();
    let rate_limit_error = schemas.output.subschema_for::<RateLimitBody<'_>>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let item = describe(operation, &mut schemas);
        let path = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = item;
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
                "bearerFormat": "svc_live_…",
                "description": "An API key, `svc_live_…`, created in the dashboard under Settings, API keys. Its scope \
                                is `read`, or `read` and `write`; POST, PATCH and DELETE need `write`.",
            } },
            "parameters": components::parameters(),
            "headers": components::headers(),
            "responses": components::failures(&error, &rate_limit_error),
            "schemas": schemas.finish(),
        },
    })
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let shape = &operation.shape;
    let mut parameters: Vec<Value> = Vec::new();
    if operation.has_id() {
        parameters.push(component("parameters", "Id"));
    }
    for query in shape.query {
        let schema = query(&mut schemas.input).to_value();
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
        let schema = body(&mut schemas.input).to_value();
        let example = example_of(&schema, &schemas.examples);
        item["requestBody"] = json!({ "required": true, "content": content(schema, example) });
    }
    item["responses"] = responses(operation, schemas);
    item
}

fn description(operation: &Operation) -> String {
    match operation.write_cap() {
        Some((_, cap)) => format!("{} By default {cap} requests a minute per key.", operation.description),
        None => operation.description.to_owned(),
    }
}

/// A parameter that is left out is absent, never null and never empty.
fn query_parameter(name: &str, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
    if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice)
        && null == "null"
    {
        schema["type"] = kind.clone();
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if schema.get("maxLength").is_some() {
        schema["minLength"] = 1.into();
    }
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

fn responses(operation: &Operation, schemas: &mut Schemas) -> Value {
    let shape = &operation.shape;
    let mut responses = Map::new();
    let mut success = json!({ "description": success_text(operation), "headers": success_headers(operation) });
    if let Some(answer) = shape.answer {
        let schema = answer(&mut schemas.output).to_value();
        let example = example_of(&schema, &schemas.examples);
        success["content"] = content(schema, example);
    }
    responses.insert(shape.status.as_str().to_owned(), success);
    if operation.method == Method::GET && shape.tagged {
        responses.insert("304".to_owned(), component("responses", response_name(304)));
    }
    let mut failures: Vec<u16> = COMMON.to_vec();
    if operation.collection != "ping" {
        failures.extend(BUT_PING);
    }
    if operation.current.is_some() {
        failures.push(412);
    }
    if operation.scope == Scope::Write {
        failures.extend(WRITES);
    }
    failures.sort_unstable();
    for status in failures {
        responses.insert(status.to_string(), component("responses", response_name(status)));
    }
    responses.into()
}

fn success_text(operation: &Operation) -> &'static str {
    match operation.method {
        Method::POST => "The record that was created.",
        Method::PATCH => "The record after the change.",
        Method::DELETE => "It is deleted; there is no body.",
        _ if operation.has_id() => "The record.",
        _ if operation.collection == "ping" => "The key is valid.",
        _ => "One page of records.",
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
