//! Tests of the operations: their responses, parameters and headers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use svc_core::accounts::idempotency;

use super::{each_operation, errors, names, parameter, resolve, v1};

#[test]
fn there_are_25_operations_with_unique_ids() {
    let document = v1();
    let ids: BTreeSet<&str> =
        each_operation(&document).map(|(.., operation)| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!((each_operation(&document).count(), ids.len()), (25, 25));
    for (_, path, operation) in each_operation(&document) {
        for text in ["summary", "description"] {
            assert!(operation[text].as_str().is_some_and(|text| !text.is_empty()), "{path} has no {text}");
        }
    }
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}

/// The statuses of `docs/contract.md`, "Statuses".
#[test]
fn every_operation_declares_its_responses() {
    let document = v1();
    for (method, path, operation) in each_operation(&document) {
        let mut want = BTreeSet::from([401, 403, 429, 500, 414, 431, 503]);
        want.insert(match method {
            "post" => 201,
            "delete" => 204,
            _ => 200,
        });
        if path != "/ping" {
            want.extend([400, 404, 409, 415]);
        }
        if method == "get" && path.ends_with("/{id}") {
            want.insert(304);
        }
        if method != "get" {
            want.extend([408, 413]);
        }
        if matches!(method, "patch" | "delete") {
            want.insert(412);
        }
        let responses = operation["responses"].as_object().unwrap();
        let got: BTreeSet<u16> = responses.keys().map(|status| status.parse().unwrap()).collect();
        assert_eq!(got, want, "{method} {path}");

        for (status, response) in responses {
            let response = resolve(&document, response);
            let headers = &response["headers"];
            for name in ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] {
                assert!(headers[name].is_object(), "{method} {path} {status} has no {name}");
            }
            let particular = [
                ("Retry-After", matches!(status.as_str(), "429" | "503")),
                ("WWW-Authenticate", status == "401"),
                ("Location", status == "201"),
                ("Idempotent-Replayed", matches!(status.as_str(), "201" | "409")),
                ("ETag", status == "304" || status == "201" || (status == "200" && path.ends_with("/{id}"))),
            ];
            for (name, wanted) in particular {
                assert_eq!(headers[name].is_object(), wanted, "{method} {path} {status} {name}");
            }
            let body = &response["content"]["application/json"]["schema"];
            match status.as_str() {
                "204" | "304" => assert!(response.get("content").is_none()),
                "429" => assert_eq!(body["$ref"], "#/components/schemas/RateLimitError"),
                "200" | "201" => assert!(body.is_object()),
                _ => assert_eq!(body["$ref"], "#/components/schemas/Error"),
            }
        }
    }
}

#[test]
fn lists_have_the_common_parameters_and_their_own_filters() {
    let document = v1();
    let own = BTreeMap::from([
        ("/contacts", vec!["email", "include_deleted"]),
        ("/invoices", vec!["status", "number"]),
        ("/bookings", vec![]),
        ("/quotes", vec!["status"]),
        ("/jobs", vec!["status", "job_number"]),
        ("/webhooks", vec![]),
    ]);
    for (method, path, operation) in each_operation(&document) {
        let queries = operation["parameters"].as_array().unwrap().iter().map(|parameter| resolve(&document, parameter));
        let queries: Vec<&Value> = queries.filter(|parameter| parameter["in"] == "query").collect();
        let got: Vec<&str> = queries.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let Some(own) = own.get(path).filter(|_| method == "get") else {
            assert_eq!(got, [""; 0], "{method} {path}");
            continue;
        };
        assert_eq!(got, [["limit", "cursor", "updated_since"].as_slice(), own].concat(), "{path}");
        for query in queries {
            let schema = resolve(&document, &query["schema"]);
            assert!(schema["type"].is_string() && query["required"].is_null(), "{query}");
        }
        let limit = &parameter(&document, operation, "limit").unwrap()["schema"];
        assert_eq!(*limit, json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 }));
        for (name, format) in [("cursor", "uuid"), ("updated_since", "date-time")] {
            assert_eq!(parameter(&document, operation, name).unwrap()["schema"]["format"], format);
        }
        let page = resolve(&document, &operation["responses"]["200"]["content"]["application/json"]["schema"]);
        assert_eq!(names(&page["required"]), ["data", "next_cursor"]);
        assert_eq!(page["properties"]["next_cursor"]["type"], json!(["string", "null"]));
    }
}

#[test]
fn operations_declare_their_request_headers() {
    let document = v1();
    for (method, path, operation) in each_operation(&document) {
        let has = |name: &str| parameter(&document, operation, name).is_some();
        let write = method != "get";
        assert!(has("X-Request-Id"));
        assert_eq!((has("X-SVC-Timestamp"), has("X-SVC-Signature")), (write, write), "{method} {path}");
        assert_eq!(has("Idempotency-Key"), method == "post");
        assert_eq!(has("If-Match"), matches!(method, "patch" | "delete"));
        assert_eq!(has("If-None-Match"), method == "get" && path.ends_with("/{id}"));
        assert_eq!(has("id"), path.ends_with("/{id}"));
        assert_eq!(operation["requestBody"]["required"] == true, matches!(method, "post" | "patch"), "{method} {path}");
    }
}

/// Headers that the service takes in any form are plain texts, and the schema of the one that it checks accepts the same
/// values. Spaces around a value are not part of it.
#[test]
fn schemas_of_request_headers_say_what_is_accepted() {
    let document = v1();
    for name in ["RequestId", "IfMatch", "IfNoneMatch", "SignatureTimestamp", "Signature"] {
        assert_eq!(document["components"]["parameters"][name]["schema"], json!({ "type": "string" }), "{name}");
    }
    let key = &document["components"]["parameters"]["IdempotencyKey"]["schema"];
    for text in ["a", "two words", "!~", &"k".repeat(255), "", &"k".repeat(256), "k\u{e9}", "a\tb", "a\u{7f}"] {
        let is_accepted = idempotency::check_key(text).is_ok();
        assert_eq!(errors(&document, key, &json!(text)).is_empty(), is_accepted, "{text:?}");
    }
    assert!(!errors(&document, key, &json!(" ")).is_empty(), "a value of spaces arrives empty");
}
