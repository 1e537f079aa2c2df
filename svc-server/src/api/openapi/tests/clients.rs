//! The needs of generators of clients, validators and other readers of the documents.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::accounts::operational::OperationalKind;
use svc_core::error::{Error, FieldCode};
use svc_core::operation::{AnyOperation, Method, Request};
use svc_core::platform::operations;
use svc_core::values::EventKinds;
use svc_core::webhooks::samples;

use super::{each_operation, errors, parameter, platform_v1, resolve, v1, walk, with_extensions};
use crate::api::run::OperationCall;
use crate::kernel::problem::Problem;
use crate::kernel::versions::Version;

fn documents() -> [Value; 3] {
    [v1(), with_extensions(), platform_v1()]
}

/// Returns the parameters that the server refuses a request without.
fn refused_without(operation: &'static dyn AnyOperation) -> BTreeSet<String> {
    let event_kinds = EventKinds::default();
    let id = Some("0195a3c8-8a00-7000-8000-00000000c001");
    match OperationCall::parse(operation, id, Request { query: "", body: b"", event_kinds: &event_kinds }) {
        Err(Problem::Core(Error::Validation(violations))) => violations
            .as_slice()
            .iter()
            .map(|violation| {
                assert_eq!(violation.code, FieldCode::Required, "{}: {}", operation.id, violation.field);
                violation.field.clone()
            })
            .collect(),
        Err(problem) => panic!("{}: {}", operation.id, problem.code()),
        Ok(_) => BTreeSet::new(),
    }
}

#[test]
fn a_parameter_is_required_if_the_server_refuses_a_request_without_it() {
    let public = [operations::public(), operations::extensions()].concat();
    let mut all = BTreeSet::new();
    for (document, version, operations) in
        [(with_extensions(), Version::V1, public), (platform_v1(), Version::Platform, operations::platform())]
    {
        for operation in operations.into_iter().filter(|operation| operation.method == Method::Get) {
            let item = &document["paths"][&version.path_of(operation)]["get"];
            let parameters = item["parameters"].as_array().unwrap().iter().map(|one| resolve(&document, one));
            let required: BTreeSet<String> = parameters
                .filter(|one| one["in"] == "query" && one["required"] == true)
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(required, refused_without(operation), "{}", operation.id);
            all.extend(required.into_iter().map(|name| format!("{}.{name}", operation.id)));
        }
    }
    let expected = ["findAccounts.id", "findAccounts.kind", "findIds.kind", "findIds.part", "findRecords.text"];
    assert_eq!(all, expected.map(str::to_owned).into());
}

#[test]
fn each_operational_event_has_a_schema_of_its_own_that_its_example_fits() {
    let document = platform_v1();
    let mut schemas = BTreeSet::new();
    for kind in OperationalKind::ALL {
        let body = &document["webhooks"][kind.as_str()]["post"]["requestBody"]["content"]["application/json"];
        let data = &body["schema"]["properties"]["data"];
        assert_eq!(body["example"]["data"], samples::operational(*kind));
        assert_eq!(errors(&document, &body["schema"], &body["example"]), [""; 0], "{kind}");
        // Another schema may fit as well, but the fields are those of this one.
        let fields = resolve(&document, data)["properties"].as_object().unwrap().keys();
        let example = body["example"]["data"].as_object().unwrap().keys();
        assert_eq!(fields.collect::<BTreeSet<_>>(), example.collect(), "{kind}");
        assert!(schemas.insert(data["$ref"].as_str().unwrap().to_owned()), "{kind} has the schema of another");
    }
    assert_eq!(schemas.len(), document["webhooks"].as_object().unwrap().len());
}

/// Of alternatives that differ by nothing that a type can say, many generators make a type without fields.
#[test]
fn alternatives_are_types_that_clients_can_tell_apart() {
    for document in documents() {
        walk(&document, &mut |value| {
            assert_ne!(value["const"], "", "blank text beside null: {value}");
            let forms: Vec<&Value> = value["anyOf"].as_array().into_iter().flatten().collect();
            let of = |kind: &str| forms.iter().filter(|form| resolve(&document, form)["type"] == kind).count();
            assert!(of("array") <= 1 && of("string") <= 1, "{value}");
        });
        let selection = &document["components"]["schemas"]["EventSelection"];
        assert_eq!(
            (&selection["type"], &selection["minItems"], &selection["maxItems"]),
            (&json!("array"), &json!(1), &json!(64))
        );
        let event = resolve(&document, &selection["items"]);
        let kinds = event["enum"].as_array().unwrap();
        assert_eq!((kinds.len(), &kinds[0], event["x-enum-varnames"].as_array().unwrap().len()), (30, &json!("*"), 30));
    }
}

#[test]
fn every_request_that_the_document_describes_has_a_name() {
    for document in documents() {
        let mut ids: Vec<&str> =
            each_operation(&document).map(|(.., operation)| operation["operationId"].as_str().unwrap()).collect();
        for (kind, item) in document["webhooks"].as_object().unwrap() {
            assert_eq!(item["post"]["operationId"], **kind);
            ids.push(kind);
        }
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }
}

#[test]
fn a_query_parameter_is_never_empty() {
    for document in documents() {
        for (.., operation) in each_operation(&document) {
            for one in operation["parameters"].as_array().unwrap() {
                let one = resolve(&document, one);
                if one["in"] == "query" {
                    let fits = errors(&document, &one["schema"], &json!("")).is_empty();
                    assert!(!fits, "{} takes an empty {}", operation["operationId"], one["name"]);
                }
            }
        }
    }
}

/// An external kind can be emitted, and no other one: what this service fires itself is fired by its operations alone.
#[test]
fn the_kinds_that_can_be_emitted_are_those_of_other_systems() {
    let document = platform_v1();
    let kinds = &document["components"]["schemas"]["EmittableKind"];
    for kind in kinds["enum"].as_array().unwrap() {
        let kind = kind.as_str().unwrap();
        assert!(kind.starts_with("stay.") || kind.starts_with("cohort."), "{kind}");
        assert!(kinds["description"].as_str().unwrap().contains(&format!("- `{kind}`: ")), "{kind}");
    }
    assert_eq!(kinds["enum"].as_array().unwrap().len(), 7);
}

#[test]
fn a_shortest_length_is_the_one_of_the_server() {
    let document = platform_v1();
    for (.., operation) in each_operation(&document).filter(|(.., operation)| operation["operationId"] == "findIds") {
        let part = &parameter(&document, operation, "part").unwrap()["schema"];
        assert_eq!(part["minLength"], svc_core::lookup::MIN_PART);
    }
}
