//! The parameters, headers and failure responses that operations share.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};
use svc_core::accounts::keys::KEY_PREFIX;
use svc_core::accounts::signing::SignatureError;
use svc_core::error::{Error, FieldCode, Issue, StoreError};
use uuid::Uuid;

use super::webhooks;
use crate::kernel::problem::Problem;

/// The headers of every response.
const COMMON_HEADERS: [&str; 6] = [
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
];

/// A response that is not a success.
struct FailureResponse {
    status: u16,
    /// The name of the component.
    name: &'static str,
    description: &'static str,
}

const FAILURES: [FailureResponse; 15] = [
    failure(
        304,
        "NotModified",
        "The record has not changed: its ETag is one of those in `If-None-Match`. The response has no body.",
    ),
    failure(
        400,
        "BadRequest",
        "The request is not valid. When fields failed, `field` is the first one and `errors` lists all of them, 100 at most.",
    ),
    failure(
        401,
        "Unauthorized",
        "The API key or the request signature is missing or not valid. `code` says which of them, and whether the key \
         was revoked or has expired.",
    ),
    failure(403, "Forbidden", "The API key lacks the `write` scope, or the account has no approved developer access."),
    failure(
        404,
        "NotFound",
        "The account has no record with this id: the id is unknown, or the record was deleted or belongs to another \
         account.",
    ),
    failure(
        408,
        "RequestTimeout",
        "The request body did not arrive in full within 30 seconds. Nothing was changed; send the request again.",
    ),
    failure(
        409,
        "Conflict",
        "Another contact has the email address, or a request with this `Idempotency-Key` is still running.",
    ),
    failure(
        412,
        "PreconditionFailed",
        "The record has changed: its ETag is none of those in `If-Match`. Nothing was written; get the record again.",
    ),
    failure(413, "ContentTooLarge", "The request body is larger than 1 MiB."),
    failure(414, "UriTooLong", "The path with its query is longer than 8 KiB."),
    failure(415, "UnsupportedMediaType", "The request body is not sent as JSON, or has a `Content-Encoding`."),
    failure(
        429,
        "TooManyRequests",
        "A rate limit is used up. Nothing was changed; try again after the time in `Retry-After`.",
    ),
    failure(431, "HeadersTooLarge", "All request headers together are larger than 16 KiB."),
    failure(
        500,
        "InternalError",
        "The service failed. Retry the request, and report its `X-Request-Id` if it keeps failing.",
    ),
    failure(
        503,
        "Unavailable",
        "The service is stopping, or its database or memory is not available. Try again after the time in \
         `Retry-After`. If `error` says that the outcome of a change is unknown, read the record first, or repeat the \
         request with the same `Idempotency-Key`.",
    ),
];

const fn failure(status: u16, name: &'static str, description: &'static str) -> FailureResponse {
    FailureResponse { status, name, description }
}

/// Returns the name of the component with the response of this status.
pub(super) fn response_name(status: u16) -> &'static str {
    FAILURES.iter().find(|failure| failure.status == status).map_or("InternalError", |failure| failure.name)
}

/// Returns a reference to a component.
pub(super) fn component(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Returns the content of a JSON body.
pub(super) fn content(schema: Value, example: Option<Value>) -> Value {
    let mut media = json!({ "schema": schema });
    if let Some(example) = example {
        media["example"] = example;
    }
    json!({ "application/json": media })
}

/// Returns references to the headers of every response.
pub(super) fn common_headers() -> Value {
    Value::Object(COMMON_HEADERS.map(|name| (name.to_owned(), component("headers", name))).into_iter().collect())
}

fn request_header(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

/// Returns the parameters that several operations have.
pub(super) fn parameters() -> Value {
    // What the service accepts, which is any text for most headers. HTTP removes spaces around a value.
    let text = || json!({ "type": "string" });
    let mut parameters = json!({
        "Id": {
            "name": "id",
            "in": "path",
            "required": true,
            "description": "The unique identifier of the record.",
            "schema": { "type": "string", "format": "uuid" },
        },
        "RequestId": request_header(
            "X-Request-Id",
            "An identifier of your choice for the request, which the response returns and the server's log contains: 1 to \
             128 letters, digits, full stops, underscores and hyphens. If the header is missing or has another form, the \
             server generates a UUID.",
            text(),
        ),
        "IdempotencyKey": request_header(
            "Idempotency-Key",
            "A key that makes it safe to retry the request: 1 to 255 printable ASCII characters, such as a UUID. Use a new \
             key for each new request, and the same key when you retry it. The response is stored for 24 hours.",
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$" }),
        ),
        "IfMatch": request_header(
            "If-Match",
            "A list of ETags, or `*` for any. The change is made only if the ETag of the record is in the list; otherwise the \
             response is 412.",
            text(),
        ),
        "IfNoneMatch": request_header(
            "If-None-Match",
            "A list of ETags, or `*` for any. The response is 304 without a body if the ETag of the record is in the list.",
            text(),
        ),
        "SignatureTimestamp": request_header(
            "X-SVC-Timestamp",
            "When the request was signed, in Unix seconds with up to six decimals. It may differ from the time of the server by at most 300 seconds. \
             Required if the API key was created with signed writes; ignored otherwise.",
            text(),
        ),
        "Signature": request_header(
            "X-SVC-Signature",
            "The signature of the request: `sha256=` and the lower-case hex HMAC-SHA256 of the signed text. The HMAC key is the \
             whole signing secret of the API key, including `svcsig_`. The signed text has four lines, with a line feed \
             between them and none at the end: the value of `X-SVC-Timestamp`, the method, the path with its query, and \
             the lower-case hex SHA-256 of the body. A signature is accepted only once; a repeat of the same \
             request gets the response that is stored under its `Idempotency-Key`, and is refused without one. \
             Required if the API key was created with signed writes; ignored otherwise.",
            text(),
        ),
    });
    for (name, parameter) in webhooks::parameters() {
        parameters[name] = parameter;
    }
    parameters
}

fn response_header(description: &str, schema: Value, example: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema, "example": example })
}

/// Returns the headers of responses.
pub(super) fn headers() -> Value {
    let count = || json!({ "type": "integer", "minimum": 0 });
    let text = || json!({ "type": "string" });
    let mut headers = json!({
        "X-Request-Id": response_header(
            "The identifier of the request, which the server's log contains: the one that you sent, or a UUID.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
            json!("0195a3c8-8a00-7000-8000-000000000001"),
        ),
        "X-RateLimit-Limit": response_header("The number of requests that are allowed in the current window of 60 seconds. A write counts in two windows, that of all requests and that of its operation; the headers describe the one that has fewer requests left.", count(), json!(60)),
        "X-RateLimit-Remaining": response_header("The number of requests that are left in the window.", count(), json!(59)),
        "X-RateLimit-Reset": response_header(
            "When the window ends, in Unix seconds, rounded up.",
            count(),
            json!(1_773_500_967),
        ),
        "RateLimit-Policy": response_header(
            "The limit as a structured field of draft-ietf-httpapi-ratelimit-headers: `q` requests per `w` seconds. The name \
             is `default` for the limit of all requests and `write` for the limit of a write operation.",
            text(),
            json!("\"default\";q=60;w=60"),
        ),
        "RateLimit": response_header(
            "The state of the limit as a structured field of draft-ietf-httpapi-ratelimit-headers: `r` requests are left, \
             and the window ends in `t` seconds.",
            text(),
            json!("\"default\";r=59;t=60"),
        ),
        "Retry-After": response_header("The number of seconds to wait before you retry the request.", json!({ "type": "integer", "minimum": 1 }), json!(12)),
        "ETag": response_header("The version of the record, as a strong ETag. It changes whenever the record changes.", text(), json!("\"9b2cf535f27731c974343645a3985328\"")),
        "Location": response_header(
            "The path of the created record.",
            json!({ "type": "string", "format": "uri-reference" }),
            json!("/api/v1/contacts/0195a3c8-8a00-7000-8000-00000000c001"),
        ),
        "Idempotent-Replayed": response_header(
            "Present when this is the stored response to an earlier request with the same `Idempotency-Key`.",
            json!({ "type": "string", "const": "true" }),
            json!("true"),
        ),
        "WWW-Authenticate": response_header(
            "The authentication scheme of the API.",
            json!({ "type": "string", "const": "Bearer" }),
            json!("Bearer"),
        ),
    });
    headers["Idempotent-Replayed"]["required"] = false.into();
    headers
}

/// Says what `WWW-Authenticate` has where apps get in by OAuth: the metadata of the server, and why a token is refused, as
/// well if its scope is.
pub(super) fn add_challenges(document: &mut Value) {
    document["components"]["headers"]["WWW-Authenticate"] = response_header(
        "The authentication scheme of the API, with the URL of the metadata by which an app finds the authorization server, and \
         the `error` of an access token that is refused (RFC 6750, RFC 9728).",
        json!({ "type": "string", "pattern": "^Bearer( .+)?$" }),
        json!(
            "Bearer error=\"invalid_token\", resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource\""
        ),
    );
    document["components"]["headers"]["InsufficientScope"] = response_header(
        "The scope that the operation needs, for an app whose access token lacks it (RFC 6750).",
        json!({ "type": "string", "pattern": "^Bearer .+$" }),
        json!("Bearer error=\"insufficient_scope\", scope=\"read write\""),
    );
    document["components"]["headers"]["InsufficientScope"]["required"] = false.into();
    document["components"]["responses"]["Forbidden"]["headers"]["WWW-Authenticate"] =
        component("headers", "InsufficientScope");
}

/// Changes what the components of the public API say differently of the platform API, and removes what it does not have.
pub(super) fn adapt_to_platform(document: &mut Value) {
    let text = |text: &str| Value::from(text);
    document["components"]["responses"]["Forbidden"]["description"] =
        text("The platform key lacks the scope that the operation needs.");
    document["components"]["responses"]["NotFound"]["description"] =
        text("There is no account with this id, or it has no record with this id.");
    document["components"]["responses"]["Conflict"]["description"] = text(
        "The state of the record does not allow this step, another contact has the email address, or a request with this \
         `Idempotency-Key` is still running.",
    );
    document["components"]["parameters"]["AccountId"] = json!({
        "name": "account_id",
        "in": "path",
        "required": true,
        "description": "The unique identifier of the account.",
        "schema": { "type": "string", "format": "uuid" },
    });
    let code = &mut document["components"]["schemas"]["Error"]["properties"]["code"]["description"];
    if let Some(codes) = code.as_str() {
        *code = codes.replace(" No operation returns it today.", "").into();
    }
    remove_unused(document);
}

/// Removes the components that nothing refers to.
pub(super) fn remove_unused(document: &mut Value) {
    loop {
        let mut used = BTreeSet::new();
        find_references(document, &mut used);
        let mut has_unused = false;
        for kind in ["parameters", "headers", "responses", "schemas"] {
            if let Some(components) = document["components"][kind].as_object_mut() {
                let before = components.len();
                components.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
                has_unused |= components.len() < before;
            }
        }
        if !has_unused {
            return;
        }
    }
}

fn find_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| find_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, found)),
        _ => {}
    }
}

/// Returns the responses that are not a success.
pub(super) fn failures(error: &Value, rate_limit_error: &Value) -> Value {
    let mut responses = Map::new();
    for FailureResponse { status, name, description } in FAILURES {
        let mut headers = common_headers();
        match status {
            304 => headers["ETag"] = component("headers", "ETag"),
            401 => headers["WWW-Authenticate"] = component("headers", "WWW-Authenticate"),
            // The response to a conflict is stored with the idempotency key, too.
            409 => headers["Idempotent-Replayed"] = component("headers", "Idempotent-Replayed"),
            429 | 503 => headers["Retry-After"] = component("headers", "Retry-After"),
            _ => {}
        }
        let mut response = json!({ "description": description, "headers": headers });
        if status != 304 {
            let schema = if status == 429 { rate_limit_error } else { error };
            response["content"] = content(schema.clone(), None);
            response["content"]["application/json"]["examples"] = examples(status);
        }
        responses.insert(name.to_owned(), response);
    }
    responses.into()
}

/// Returns the bodies that the service sends with a status, by code.
fn examples(status: u16) -> Value {
    let all = samples().into_iter().filter(|sample| sample.status() == status);
    let example = |sample: Problem| {
        let value: Value = serde_json::from_slice(&sample.body()).unwrap_or_default();
        (sample.code().to_owned(), json!({ "value": value }))
    };
    Value::Object(all.map(example).collect())
}

/// Returns one problem for each code that an operation can fail with.
pub(super) fn samples() -> Vec<Problem> {
    let email = Issue::new(FieldCode::InvalidFormat, "must be an email address such as ada@example.com").on("email");
    let existing_id = Uuid::from_u128(0x0195_a3c8_8a00_7000_8000_0000_0000_c001);
    let core = [
        Error::InvalidJson("The body must be a JSON object.".into()),
        email,
        Error::InvalidCursor,
        Error::EmptyPatch,
        Error::ReferenceNotFound("contact_id"),
        Error::IdempotencyKeyReused,
        Error::InvalidKey,
        Error::KeyRevoked,
        Error::KeyExpired,
        Error::InsufficientScope,
        Error::AccessNotApproved,
        Error::NotFound,
        Error::EmailTaken { existing_id },
        Error::LimitReached { limit: 100 },
        Error::IdempotencyInProgress,
        Error::PreconditionFailed,
        Error::Store(StoreError::Internal(String::new())),
        Error::Store(StoreError::Unavailable(String::new())),
    ];
    let mut all: Vec<Problem> = core.into_iter().map(Problem::Core).collect();
    all.extend([
        Problem::UnknownParameter { name: "colour".to_owned(), meant: None },
        Problem::MissingCredentials(KEY_PREFIX),
        Problem::SignatureRequired,
        Problem::SignatureInvalid(SignatureError::TimestampOutOfRange),
        Problem::SignatureReused,
        Problem::BodyIncomplete("The body did not arrive in time; send it again."),
        Problem::BodyTooLarge,
        Problem::UriTooLong,
        Problem::UnsupportedMediaType("Send the body as Content-Type: application/json."),
        Problem::RateLimited { retry_after: Duration::from_millis(11_400) },
        Problem::HeadersTooLarge,
    ]);
    all
}
