use serde_json::json;

use super::*;

fn name(text: &str) -> KindName {
    KindName::from_text(text).unwrap()
}

fn shipped() -> Value {
    json!({ "type": "object", "examples": [{ "id": 1 }] })
}

fn has_id(data: &Value) -> Vec<Issue> {
    if data["id"].is_null() { vec![Issue::new(FieldCode::Required, "is required").at("id")] } else { Vec::new() }
}

#[test]
fn a_service_has_its_own_kinds_and_those_that_are_registered() {
    let mut kinds = EventKinds::default();
    let before = kinds.clone();
    kinds.register_with_check("order.shipped", shipped(), has_id).unwrap();
    let order = EventKind::from_text("order.shipped").unwrap();
    assert!(kinds.contains(order) && kinds.contains(EventKind::JobCreated) && !before.contains(order));
    assert_eq!(kinds.all().count(), 30);
    assert_eq!(kinds.all().last(), Some(order));
    assert_eq!(kinds.example(name("order.shipped")), Some(&json!({ "id": 1 })));
    assert_eq!(kinds.issues(name("order.shipped"), &json!({ "id": 7 })), Some(Vec::new()));
    assert_eq!(kinds.issues(name("order.lost"), &json!({ "id": 7 })), None);
    let codes =
        |data| kinds.issues(name("order.shipped"), &data).unwrap().iter().map(|issue| issue.code).collect::<Vec<_>>();
    assert_eq!((codes(json!({})), codes(json!([1]))), (vec![FieldCode::Required], vec![FieldCode::InvalidType]));
}

#[test]
fn a_kind_that_cannot_be_registered_is_refused() {
    let mut kinds = EventKinds::default();
    let mut refused = |text: &str, schema| kinds.register_with_check(text, schema, has_id).unwrap_err();
    assert_eq!(refused("Order", shipped()), EventKindError::Name("Order".to_owned()));
    assert_eq!(refused("invoice.paid", shipped()), EventKindError::BuiltIn(EventKind::InvoicePaid));
    assert_eq!(refused("order.shipped", json!({})), EventKindError::NoExample(name("order.shipped")));
    let example = refused("order.shipped", json!({ "examples": [{}] })).to_string();
    assert_eq!(example, "the example of order.shipped cannot be used: id is required");
    kinds.register_with_check("order.shipped", shipped(), has_id).unwrap();
    let again = kinds.register_with_check("order.shipped", shipped(), has_id);
    assert_eq!(again, Err(EventKindError::Registered(name("order.shipped"))));
}

#[test]
fn a_subscription_may_keep_a_kind_that_is_no_longer_registered() {
    let kinds = EventKinds::default();
    let set = |text: &str| EventSet::from_names(text.split(' ')).unwrap();
    assert_eq!(kinds.check(&set("job.created"), None), Ok(()));
    assert_eq!(kinds.check(&EventSet::All, None), Ok(()));
    assert!(kinds.check(&set("order.shipped"), None).is_err());
    assert_eq!(kinds.check(&set("job.created order.shipped"), Some(&set("order.shipped"))), Ok(()));
    assert!(kinds.check(&set("order.shipped order.lost"), Some(&set("order.shipped"))).is_err());
    assert!(kinds.check(&set("order.shipped"), Some(&EventSet::All)).is_err());
}

#[cfg(feature = "json-schema")]
mod with_schemas {
    use super::*;

    const SHIPPED: &str = r##"{ "order.shipped": {
        "type": "object",
        "properties": {
            "id": { "type": "string", "format": "uuid" },
            "lines": { "type": "array", "maxItems": 2, "items": { "$ref": "#/$defs/line" } }
        },
        "required": ["id"],
        "additionalProperties": false,
        "$defs": { "line": { "properties": { "count": { "minimum": 1 } } } },
        "examples": [{ "id": "0195a3c8-8a00-7000-8000-00000000a001" }]
    } }"##;

    #[test]
    fn data_is_checked_with_the_schema() {
        let kinds = EventKinds::from_json(SHIPPED.as_bytes()).unwrap();
        let wrong = |data: Value| {
            let issues = kinds.issues(name("order.shipped"), &data).unwrap();
            issues.iter().map(|issue| format!("{:?} {}", issue.path, issue.code)).collect::<Vec<_>>()
        };
        let id = "0195a3c8-8a00-7000-8000-00000000a001";
        assert_eq!(wrong(json!({ "id": id, "lines": [{ "count": 1 }] })), [""; 0]);
        assert_eq!(wrong(json!({})), ["None required"]);
        assert_eq!(wrong(json!({ "id": "A-17" })), ["Some(\"id\") invalid_format"]);
        assert_eq!(wrong(json!({ "id": id, "extra": 1 })), ["None unknown_field"]);
        let lines = json!([{ "count": 0 }, {}, {}]);
        let mut both = wrong(json!({ "id": id, "lines": lines }));
        both.sort();
        assert_eq!(both, ["Some(\"lines\") too_long", "Some(\"lines.0.count\") out_of_range"]);
    }

    #[test]
    fn an_error_says_which_kind_and_where() {
        let error = |text: &str| EventKinds::from_json(text.as_bytes()).unwrap_err().to_string();
        let schema = error(r#"{ "order.shipped": { "properties": { "id": { "type": "strin" } }, "examples": [{}] } }"#);
        let reason = "\"strin\" is not valid under any of the schemas listed in the 'anyOf' keyword";
        assert_eq!(schema, format!("the schema of order.shipped is not valid at #/properties/id/type: {reason}"));
        let reference = error(r#"{ "order.shipped": { "$ref": "https://example.com/a.json", "examples": [{}] } }"#);
        assert!(reference.contains("order.shipped") && reference.contains("https://example.com/a.json"), "{reference}");
        let example = error(&SHIPPED.replace("8a00", "zzzz"));
        assert!(example.contains("example of order.shipped") && example.contains(": id "), "{example}");
        for (text, want) in [
            ("", "JSON object"),
            ("[]", "JSON object"),
            ("{", "line 1"),
            (r#"{ "order.shipped": 7 }"#, "order.shipped"),
            (r#"{ "a.b": {}, "a.b": {} }"#, "a.b must be sent only once"),
            (r#"{ "stay.created": { "examples": [{}] } }"#, "stay.created is an event kind of the service itself"),
        ] {
            assert!(error(text).contains(want), "{text}: {}", error(text));
        }
    }
}
