//! The OpenAPI document of the platform API. How the API behaves is tested on both databases, in `tests/suite/platform.rs`.

use std::collections::BTreeSet;

use serde_json::Value;
use svc_core::operation::Success;
use svc_core::platform::operations::{extensions, platform, public};

/// Fails once after a change and writes the document, so that its difference can be read.
#[test]
fn the_committed_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/platform-v1.json");
    let document = crate::api::openapi::text("platform-v1").unwrap();
    let is_changed = std::fs::read_to_string(path).ok().as_ref() != Some(&document);
    if is_changed {
        std::fs::write(path, document).unwrap();
    }
    assert!(!is_changed, "openapi/platform-v1.json is written; look at the difference");
}

/// A usable document: everything is described, refers to what is there, and has an example.
#[test]
fn the_document_is_complete() {
    let document: Value = serde_json::from_str(&crate::api::openapi::text("platform-v1").unwrap()).unwrap();
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().filter_map(|tag| tag["name"].as_str()).collect();
    let mut used: BTreeSet<&str> = platform().iter().map(|operation| operation.tag).collect();
    used.insert("webhook-events");
    assert_eq!(tags, used);
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    for operation in platform() {
        let method = operation.method.as_str().to_ascii_lowercase();
        let item = &document["paths"][&operation.path()][method];
        let body = &item["requestBody"]["content"]["application/json"];
        assert!(!operation.takes_body() || body["example"].is_object(), "{} has no example of its body", operation.id);
        let response =
            &item["responses"][operation.success.status().to_string().as_str()]["content"]["application/json"];
        let has_example = operation.success == Success::NoContent || response["example"].is_object();
        assert!(has_example, "{} has no example of its response", operation.id);
    }
}

#[test]
fn every_operation_of_svc_core_is_served() {
    let served: BTreeSet<&str> =
        platform().iter().chain(&extensions()).chain(&public()).map(|operation| operation.id).collect();
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../svc-core/src/platform/operations")).unwrap();
    let mut described = BTreeSet::new();
    for file in files {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        // The operations of a resource have names that follow from it.
        let ids = source.split("Operation::new(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
        described.extend(ids.filter_map(|id| id.split('"').next()).map(str::to_owned));
    }
    assert!(described.len() > 60, "{described:?}");
    let not_served: Vec<_> = described.iter().filter(|id| !served.contains(id.as_str())).collect();
    assert!(not_served.is_empty(), "{not_served:?}");
}
