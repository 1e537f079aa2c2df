//! Compatibility with the released document: a client of `openapi/released/v1.json` works with the document of today.
//!
//! The file is replaced at each release. A change that fails here needs a new version of the API.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{resolve, v1};

/// The direction of a value, which decides which changes of its schema break clients.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    /// To the service: values that were accepted must still be accepted.
    Request,
    /// To the client: what was promised must still hold.
    Response,
}

struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    breaks: Vec<String>,
}

/// Returns the changes from `old` to `new` that break a client.
fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = Comparison { old, new, breaks: Vec::new() };
    for (path, item) in old["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let now = &new["paths"][path][method];
            let at = format!("{} {path}", method.to_uppercase());
            if now.is_null() {
                comparison.breaks.push(format!("{at} is gone"));
            } else {
                comparison.operation(&at, operation, now);
            }
        }
    }
    comparison.breaks
}

impl<'a> Comparison<'a> {
    fn operation(&mut self, at: &str, old: &'a Value, new: &'a Value) {
        let named = |document, operation: &'a Value| {
            let all = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().map(move |parameter| resolve(document, parameter)).collect::<Vec<_>>()
        };
        let (before, now) = (named(self.old, old), named(self.new, new));
        for parameter in &before {
            let name = parameter["name"].as_str().unwrap();
            match now.iter().find(|other| (&other["name"], &other["in"]) == (&parameter["name"], &parameter["in"])) {
                Some(other) => {
                    self.schema(&format!("{at}, {name}"), Direction::Request, &parameter["schema"], &other["schema"])
                }
                None => self.breaks.push(format!("{at}: the parameter {name} is gone")),
            }
        }
        for parameter in now.iter().filter(|parameter| parameter["required"] == true) {
            let was = before.iter().find(|other| other["name"] == parameter["name"]);
            if was.is_none_or(|was| was["required"] != true) {
                self.breaks.push(format!("{at} now requires {}", parameter["name"]));
            }
        }
        let body = |operation: &'a Value| &operation["requestBody"]["content"]["application/json"]["schema"];
        self.schema(&format!("{at}, body"), Direction::Request, body(old), body(new));
        for (status, response) in old["responses"].as_object().unwrap() {
            let (response, now) = (resolve(self.old, response), resolve(self.new, &new["responses"][status]));
            let content = |response: &'a Value| &response["content"]["application/json"]["schema"];
            if now.is_null() {
                self.breaks.push(format!("{at} no longer has the response {status}"));
            }
            self.schema(&format!("{at}, {status}"), Direction::Response, content(response), content(now));
        }
    }

    fn schema(&mut self, at: &str, direction: Direction, old: &Value, new: &Value) {
        let (old, new) = (&merged(self.old, old), &merged(self.new, new));
        // A schema of requests may become wider, and a schema of responses may become narrower.
        let (wide, narrow) = match direction {
            Direction::Request => (new, old),
            Direction::Response => (old, new),
        };
        if wide["type"].is_null() != narrow["type"].is_null() && !old.is_null() {
            self.breaks.push(format!("{at}: it has a type in one of the two only"));
        }
        if !types(narrow).is_subset(&types(wide)) {
            self.breaks.push(format!("{at}: the type was {} and is {}", old["type"], new["type"]));
        }
        // Responses may get new values, which clients are told to expect.
        if direction == Direction::Request && !values(old).is_subset(&values(new)) {
            self.breaks.push(format!("{at}: the values were {} and are {}", old["enum"], new["enum"]));
        }
        for (bound, sign) in [("minimum", 1.0), ("minLength", 1.0), ("minItems", 1.0), ("minProperties", 1.0)]
            .into_iter()
            .chain([("maximum", -1.0), ("maxLength", -1.0), ("maxItems", -1.0)])
        {
            let of = |schema: &Value| schema[bound].as_f64().map_or(f64::NEG_INFINITY, |value| value * sign);
            if of(wide) > of(narrow) && direction == Direction::Request {
                self.breaks.push(format!("{at}: {bound} was {} and is {}", old[bound], new[bound]));
            }
        }
        let (must, had) = match direction {
            Direction::Request => (strings(&new["required"]), strings(&old["required"])),
            Direction::Response => (strings(&old["required"]), strings(&new["required"])),
        };
        for name in must.difference(&had) {
            self.breaks.push(match direction {
                Direction::Request => format!("{at}: {name} is now required"),
                Direction::Response => format!("{at}: {name} may be missing now"),
            });
        }
        for (name, property) in old["properties"].as_object().into_iter().flatten() {
            match &new["properties"][name] {
                Value::Null => self.breaks.push(format!("{at}: {name} is gone")),
                now => self.schema(&format!("{at}.{name}"), direction, property, now),
            }
        }
        if !old["items"].is_null() {
            self.schema(&format!("{at}[]"), direction, &old["items"], &new["items"]);
        }
    }
}

/// Returns a schema with its alternatives as one: the types and values of all of them, and the widest bounds.
fn merged(document: &Value, schema: &Value) -> Value {
    let mut schema = resolve(document, schema).clone();
    let Some(Value::Array(forms)) = schema.as_object_mut().and_then(|schema| schema.remove("anyOf")) else {
        return schema;
    };
    let forms: Vec<Value> = forms.iter().map(|form| merged(document, form)).collect();
    let all = |key: &str| -> BTreeSet<String> {
        forms.iter().flat_map(|form| strings(&form[key])).map(str::to_owned).collect()
    };
    if schema["type"].is_null() {
        schema["type"] = json!(all("type"));
    }
    if forms.iter().all(|form| form["enum"].is_array()) {
        schema["enum"] = json!(all("enum"));
    }
    let items: Vec<&Value> = forms.iter().map(|form| &form["items"]).filter(|items| !items.is_null()).collect();
    if schema["items"].is_null() && !items.is_empty() {
        schema["items"] = json!({ "anyOf": items });
    }
    for bound in ["minItems", "maxItems", "maxLength"] {
        let bounds: Option<Vec<u64>> = forms.iter().map(|form| form[bound].as_u64()).collect();
        let widest =
            bounds.and_then(|all| if bound == "minItems" { all.into_iter().min() } else { all.into_iter().max() });
        if let Some(widest) = widest {
            schema[bound] = json!(widest);
        }
    }
    schema
}

fn strings(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::String(one) => BTreeSet::from([one.as_str()]),
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    }
}

/// Returns the types that a schema allows. An integer is a number, too.
fn types(schema: &Value) -> BTreeSet<&str> {
    let mut types = strings(&schema["type"]);
    if types.contains("number") {
        types.insert("integer");
    }
    types
}

fn values(schema: &Value) -> BTreeSet<String> {
    schema["enum"].as_array().into_iter().flatten().map(ToString::to_string).collect()
}

#[test]
fn clients_of_the_last_release_still_work() {
    let released: Value = serde_json::from_str(include_str!("../../../../openapi/released/v1.json")).unwrap();
    let mut found = String::new();
    for line in breaks(&released, &v1()) {
        let _ = writeln!(found, "{line}");
    }
    assert_eq!(found, "", "this needs a new version of the API");
}

#[test]
fn breaking_changes_are_found() {
    let old = v1();
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 10] = [
        ("DELETE /contacts/{id} is gone", |new| {
            new["paths"]["/contacts/{id}"].as_object_mut().unwrap().remove("delete");
        }),
        ("the parameter limit is gone", |new| {
            new["paths"]["/contacts"]["get"]["parameters"].as_array_mut().unwrap().remove(0);
        }),
        ("now requires \"page\"", |new| {
            let page = json!({ "name": "page", "in": "query", "required": true, "schema": { "type": "integer" } });
            new["paths"]["/contacts"]["get"]["parameters"].as_array_mut().unwrap().push(page);
        }),
        ("no longer has the response 201", |new| {
            new["paths"]["/jobs"]["post"]["responses"].as_object_mut().unwrap().remove("201");
        }),
        ("body: phone is now required", |new| {
            new["components"]["schemas"]["ContactCreate"]["required"] = json!(["email", "phone"]);
        }),
        ("body: phone is gone", |new| {
            new["components"]["schemas"]["ContactCreate"]["properties"].as_object_mut().unwrap().remove("phone");
        }),
        ("body.first_name: maxLength", |new| {
            new["components"]["schemas"]["ContactCreate"]["properties"]["first_name"]["maxLength"] = json!(299);
        }),
        ("body.first_name: the type was", |new| {
            new["components"]["schemas"]["ContactCreate"]["properties"]["first_name"]["type"] = json!("string");
        }),
        ("total: the type was", |new| {
            new["components"]["schemas"]["Invoice"]["properties"]["total"]["type"] = json!(["number", "null"]);
        }),
        ("created_at may be missing now", |new| {
            let required = new["components"]["schemas"]["Contact"]["required"].as_array_mut().unwrap();
            required.retain(|name| name != "created_at");
        }),
    ];
    for (want, change) in cases {
        let mut new = old.clone();
        change(&mut new);
        let found = breaks(&old, &new);
        assert!(found.iter().any(|line| line.contains(want)), "{want}: {found:?}");
    }
    let harmless: [Change; 4] = [
        |new| new["paths"]["/stays"] = json!({ "get": { "responses": {} } }),
        |new| new["components"]["schemas"]["ContactCreate"]["properties"]["fax"] = json!({ "type": "string" }),
        |new| new["components"]["schemas"]["Contact"]["properties"]["fax"] = json!({ "type": "string" }),
        |new| new["components"]["schemas"]["ContactCreate"]["properties"]["first_name"]["maxLength"] = json!(400),
    ];
    for change in harmless {
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(breaks(&old, &new), Vec::<String>::new());
    }
}

/// The error codes that were added since the release. The document tells clients to expect new ones.
const ADDED_CODES: [&str; 2] = ["limit_reached", "signature_reused"];

/// Other changes since the release: descriptions of webhooks were added, schemas of request headers, and of a code
/// that can be blank, say what the service has always accepted, alternatives are gone so that generated clients have
/// exact types, events have a tag of their own, and responses promise no format that texts kept as sent may not have.
const CHANGED: [&str; 19] = [
    "/tags",
    "/webhooks",
    "/components/parameters/IdempotencyKey/schema/pattern",
    "/components/parameters/IfMatch/schema",
    "/components/parameters/IfNoneMatch/schema",
    "/components/parameters/RequestId/schema",
    "/components/parameters/Signature/schema",
    "/components/parameters/SignatureTimestamp/schema",
    "/components/schemas/Contact/properties/email/format",
    "/components/schemas/Job/properties/customer_email/format",
    "/components/schemas/JobCreate/properties/status/default",
    "/components/schemas/QuoteCreate/properties/currency",
    "/components/schemas/EventSelection",
    "/components/schemas/QuoteCreate/properties/valid_until",
    "/components/schemas/QuoteUpdate/properties/valid_until",
    "/components/schemas/WebhookSubscription/properties/disabled_reason",
    "/components/schemas/WebhookSubscription/properties/url/format",
    "/components/schemas/WebhookSubscriptionWithSecret/properties/disabled_reason",
    "/components/schemas/WebhookSubscriptionWithSecret/properties/url/format",
];

/// Since the release only texts have changed, and error codes were added. Name any other addition here as well.
#[test]
fn the_document_differs_from_the_released_one_in_texts_and_named_additions_only() {
    let released: Value = serde_json::from_str(include_str!("../../../../openapi/released/v1.json")).unwrap();
    let mut today = v1();
    let codes = today["components"]["schemas"]["Error"]["properties"]["code"]["enum"].as_array_mut().unwrap();
    codes.retain(|code| !ADDED_CODES.iter().any(|added| code == added));
    let (old, new) = (without_texts(&released), without_texts(&today));
    let mut differences = Vec::new();
    compare((&old, &new), &old, &new, "", &mut differences);
    let is_named = |line: &String| {
        CHANGED.iter().any(|path| line.strip_prefix(path).is_some_and(|rest| rest.starts_with([':', '/'])))
    };
    differences.retain(|line| !is_named(line));
    assert!(differences.is_empty(), "only texts may differ:\n{}", differences.join("\n"));
}

/// Removes the descriptions, summaries and examples, and the contact. A field that has one of these names stays: its
/// schema is an object inside `properties`.
fn without_texts(document: &Value) -> Value {
    match document {
        Value::Object(members) => {
            let is_text = |name: &str, value: &Value| match name {
                "description" | "summary" => value.is_string(),
                "example" | "examples" | "contact" => true,
                _ => false,
            };
            let kept = members.iter().filter(|(name, value)| !is_text(name, value));
            Value::Object(kept.map(|(name, value)| (name.clone(), without_texts(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_texts).collect(),
        other => other.clone(),
    }
}

/// Compares two values of the documents. A schema that has become a component is compared with what it was in its place.
fn compare(documents: (&Value, &Value), old: &Value, new: &Value, path: &str, differences: &mut Vec<String>) {
    let new = if old["$ref"].is_null() && !old.is_null() { resolve(documents.1, new) } else { new };
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                compare(documents, &old[name.as_str()], &new[name.as_str()], &path, differences);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (position, (old, new)) in before.iter().zip(after).enumerate() {
                compare(documents, old, new, &format!("{path}/{position}"), differences);
            }
        }
        // What uses a new component differs as well, or is the same as before.
        (Value::Null, _) if path.starts_with("/components/") && path.matches('/').count() == 3 => {}
        (old, new) if old != new => differences.push(format!("{path}: {old} has become {new}")),
        _ => {}
    }
}
