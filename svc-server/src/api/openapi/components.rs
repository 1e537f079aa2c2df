//! What operations share: parameters, headers and the answers to failures.

use std::time::Duration;

use serde_json::{Map, Value, json};
use svc_core::error::{Error, FieldCode, Issue, StoreError};
use uuid::Uuid;

use crate::api::problem::Problem;

/// Headers of every answer.
const COMMON_HEADERS: [&str; 6] = [
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
];

/// Answers that are no success: status, name among the components, when it is given.
const ANSWERS: [(u16, &str, &str); 15] = [
    (304, "NotModified", "The record still has an ETag that `If-None-Match` names."),
    (400, "BadRequest", "The request is not valid; `field` and `errors` name what fails."),
    (401, "Unauthorized", "The key or the request signature is missing or not valid."),
    (403, "Forbidden", "The key lacks the `write` scope, or developer access is not approved."),
    (404, "NotFound", "Nothing has this id: it is unknown, deleted, or of another account."),
    (408, "RequestTimeout", "The body did not arrive whole and in time."),
    (409, "Conflict", "Another contact has the email, or a request with this Idempotency-Key is still running."),
    (412, "PreconditionFailed", "The record has none of the ETags that `If-Match` names; nothing was done."),
    (413, "ContentTooLarge", "The body is larger than 1 MiB."),
    (414, "UriTooLong", "The request target is longer than 8 KiB."),
    (415, "UnsupportedMediaType", "The body is not `application/json`, or has a Content-Encoding."),
    (429, "TooManyRequests", "A rate limit is used up; nothing was done."),
    (431, "HeadersTooLarge", "The headers are larger than 16 KiB in all."),
    (500, "InternalError", "Something failed on our side."),
    (503, "Unavailable", "The service is shutting down, or its database is away."),
];

/// The name among the components of the answer with this status.
pub(super) fn response_name(status: u16) -> &'static str {
    ANSWERS.iter().find(|(known, ..)| *known == status).map_or("InternalError", |(_, name, _)| name)
}

/// A reference to a component.
pub(super) fn component(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// A body of JSON.
pub(super) fn content(schema: Value, example: Option<Value>) -> Value {
    let mut media = json!({ "schema": schema });
    if let Some(example) = example {
        media["example"] = example;
    }
    json!({ "application/json": media })
}

/// References to the headers of every answer.
pub(super) fn common_headers() -> Value {
    Value::Object(COMMON_HEADERS.map(|name| (name.to_owned(), component("headers", name))).into_iter().collect())
}

fn request_header(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

/// Parameters that several operations have.
pub(super) fn parameters() -> Value {
    let text = |longest: u32| json!({ "type": "string", "minLength": 1, "maxLength": longest });
    json!({
        "Id": {
            "name": "id",
            "in": "path",
            "required": true,
            "description": "The record's id.",
            "schema": { "type": "string", "format": "uuid" },
        },
        "RequestId": request_header(
            "X-Request-Id",
            "Comes back on the answer. One is made up when it is left out or has another form.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
        ),
        "IdempotencyKey": request_header(
            "Idempotency-Key",
            "Any text that is the same for all tries of one request, and new for each new request. Kept for 24 hours.",
            text(255),
        ),
        "IfMatch": request_header(
            "If-Match",
            "ETags, or `*`. The change is made only when the record has one of them, else 412.",
            text(8192),
        ),
        "IfNoneMatch": request_header(
            "If-None-Match",
            "ETags, or `*`. The answer is 304 while the record has one of them.",
            text(8192),
        ),
        "SignatureTimestamp": request_header(
            "X-SVC-Timestamp",
            "For keys that sign their writes: the time in Unix seconds, within 300 s of the server's clock.",
            json!({ "type": "string", "pattern": "^[0-9]+$" }),
        ),
        "Signature": request_header(
            "X-SVC-Signature",
            "For keys that sign their writes: `sha256=` and the hex HMAC-SHA256, keyed with the key's signing secret, of \
             four lines: timestamp, method, path with query, and the hex SHA-256 of the body. A line feed stands between \
             them and none at the end. Each signature is accepted once.",
            json!({ "type": "string", "pattern": "^sha256=[0-9a-f]{64}$" }),
        ),
    })
}

fn answer_header(description: &str, schema: Value, example: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema, "example": example })
}

/// Headers of answers.
pub(super) fn headers() -> Value {
    let count = || json!({ "type": "integer", "minimum": 0 });
    let text = || json!({ "type": "string" });
    let mut headers = json!({
        "X-Request-Id": answer_header(
            "Names this request in the log: the one that was sent, or a UUID.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
            json!("0195a3c8-8a00-7000-8000-000000000001"),
        ),
        "X-RateLimit-Limit": answer_header("Requests per window of 60 s, of the tighter limit.", count(), json!(60)),
        "X-RateLimit-Remaining": answer_header("Requests left in the window.", count(), json!(59)),
        "X-RateLimit-Reset": answer_header(
            "When the window ends: Unix seconds, rounded up.",
            count(),
            json!(1_773_500_967),
        ),
        "RateLimit-Policy": answer_header(
            "The limit as a structured field (IETF draft).",
            text(),
            json!("\"default\";q=60;w=60"),
        ),
        "RateLimit": answer_header(
            "What is left as a structured field (IETF draft).",
            text(),
            json!("\"default\";r=59;t=60"),
        ),
        "Retry-After": answer_header("Whole seconds to wait.", json!({ "type": "integer", "minimum": 1 }), json!(12)),
        "ETag": answer_header("Strong tag of the record.", text(), json!("\"9b2cf535f27731c974343645a3985328\"")),
        "Location": answer_header(
            "Path of the record that was created.",
            json!({ "type": "string", "format": "uri-reference" }),
            json!("/api/v1/contacts/0195a3c8-8a00-7000-8000-00000000c001"),
        ),
        "Idempotent-Replayed": answer_header(
            "Present when this is the kept answer to an earlier request.",
            json!({ "type": "string", "const": "true" }),
            json!("true"),
        ),
        "WWW-Authenticate": answer_header(
            "The scheme to use.",
            json!({ "type": "string", "const": "Bearer" }),
            json!("Bearer"),
        ),
    });
    headers["Idempotent-Replayed"]["required"] = false.into();
    headers
}

/// The answers that are no success.
pub(super) fn failures(error: &Value, rate_limit_error: &Value) -> Value {
    let mut responses = Map::new();
    for (status, name, description) in ANSWERS {
        let mut headers = common_headers();
        match status {
            304 => headers["ETag"] = component("headers", "ETag"),
            401 => headers["WWW-Authenticate"] = component("headers", "WWW-Authenticate"),
            // A conflict is kept under the Idempotency-Key, too.
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

/// What the service really answers, by code.
fn examples(status: u16) -> Value {
    let all = samples().into_iter().filter(|sample| sample.status() == status);
    let example = |sample: Problem| {
        let value: Value = serde_json::from_slice(&sample.body()).unwrap_or_default();
        (sample.code().to_owned(), json!({ "value": value }))
    };
    Value::Object(all.map(example).collect())
}

/// One problem for each code that an operation can answer with.
pub(super) fn samples() -> Vec<Problem> {
    let email = Issue::new(FieldCode::InvalidFormat, "must be an email address such as ada@example.com").on("email");
    let existing_id = Uuid::from_u128(0x0195_a3c8_8a00_7000_8000_0000_0000_c001);
    let core = [
        Error::InvalidJson("The body must be a JSON object.".into()),
        email,
        Error::UnknownParameter("colour".to_owned()),
        Error::InvalidCursor,
        Error::EmptyPatch,
        Error::ReferenceNotFound("contact_id"),
        Error::IdempotencyKeyReused,
        Error::MissingCredentials,
        Error::InvalidKey,
        Error::KeyRevoked,
        Error::KeyExpired,
        Error::SignatureRequired,
        Error::SignatureInvalid("X-SVC-Timestamp is more than 300 seconds off; set the clock and sign again."),
        Error::InsufficientScope,
        Error::AccessNotApproved,
        Error::NotFound,
        Error::EmailTaken { existing_id },
        Error::IdempotencyInProgress,
        Error::PreconditionFailed,
        Error::Store(StoreError::Internal(String::new())),
        Error::Store(StoreError::Unavailable(String::new())),
    ];
    let mut all: Vec<Problem> = core.into_iter().map(Problem::Core).collect();
    all.extend([
        Problem::BodyIncomplete("The body did not arrive in time; send it again."),
        Problem::BodyTooLarge,
        Problem::UriTooLong,
        Problem::UnsupportedMediaType("Send the body as Content-Type: application/json."),
        Problem::RateLimited { retry_after: Duration::from_millis(11_400) },
        Problem::HeadersTooLarge,
    ]);
    all
}
