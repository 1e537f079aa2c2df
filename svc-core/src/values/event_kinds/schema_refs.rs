//! References within a JSON Schema that becomes a part of another document.

use serde_json::Value;

/// Keywords whose members are schemas under names of their own.
const NAMED_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];
/// Keywords whose values are data and no schemas.
const DATA: [&str; 4] = ["examples", "default", "const", "enum"];
/// Keywords that give a part of a schema an address of its own. They mean another place when the schema is moved.
const ADDRESSES: [&str; 4] = ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef"];
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Checks that a schema can become a part of another document. Otherwise returns the place and the reason.
pub(super) fn check(schema: &Value) -> Result<(), (String, String)> {
    let Value::Object(members) = schema else {
        return Err(("#".to_owned(), "must be a JSON object".to_owned()));
    };
    if let Some(dialect) = members.get("$schema")
        && dialect != DIALECT
    {
        return Err(("#/$schema".to_owned(), format!("must be {DIALECT}, or left out")));
    }
    let mut wrong = None;
    visit(&mut without_address(schema.clone()), "#", &mut |place, keyword, value| {
        let reason = match value.as_str() {
            Some(to) if keyword == "$ref" && to != "#" && !to.starts_with("#/") => {
                format!("must lead to a place within the schema, such as #/$defs/address, and not to {to}")
            }
            _ if ADDRESSES.contains(&keyword) => "is not supported; leave it out, and refer to #/$defs/…".to_owned(),
            _ => return,
        };
        wrong.get_or_insert((place.to_owned(), reason));
    });
    wrong.map_or(Ok(()), Err)
}

/// Returns a schema for a document that has it at `place`, such as `#/components/schemas/order.shipped`.
pub(super) fn moved(schema: Value, place: &str) -> Value {
    let mut schema = without_address(schema);
    visit(&mut schema, "#", &mut |_, keyword, value| {
        if keyword == "$ref"
            && let Some(to) = value.as_str().and_then(|to| to.strip_prefix('#'))
        {
            *value = format!("{place}{to}").into();
        }
    });
    schema
}

/// Drops the address of the whole schema, to which nothing refers.
fn without_address(mut schema: Value) -> Value {
    if let Value::Object(members) = &mut schema {
        members.remove("$id");
        members.remove("$schema");
    }
    schema
}

/// Calls `keyword` with the place, the name and the value of every keyword of a schema.
fn visit(schema: &mut Value, place: &str, keyword: &mut impl FnMut(&str, &str, &mut Value)) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let place = format!("{place}/{name}");
                if NAMED_SCHEMAS.contains(&name.as_str()) {
                    let schemas = value.as_object_mut().into_iter().flatten();
                    schemas.for_each(|(name, schema)| visit(schema, &format!("{place}/{name}"), keyword));
                } else if !DATA.contains(&name.as_str()) {
                    keyword(&place, name, value);
                    visit(value, &place, keyword);
                }
            }
        }
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(n, item)| visit(item, &format!("{place}/{n}"), keyword));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_where_the_schema_is() {
        let schema = json!({
            "$schema": DIALECT,
            "$id": "https://example.com/order.json",
            "properties": { "to": { "$ref": "#/$defs/address" }, "enum": { "items": [{ "$ref": "#" }] } },
            "$defs": { "address": { "type": "string" } },
            "examples": [{ "$ref": "#/kept" }],
        });
        assert_eq!(check(&schema), Ok(()));
        let expected = json!({
            "properties": {
                "to": { "$ref": "#/components/schemas/x/$defs/address" },
                "enum": { "items": [{ "$ref": "#/components/schemas/x" }] },
            },
            "$defs": { "address": { "type": "string" } },
            "examples": [{ "$ref": "#/kept" }],
        });
        assert_eq!(moved(schema, "#/components/schemas/x"), expected);
    }

    #[test]
    fn a_schema_stands_alone() {
        let place = |schema: Value| check(&schema).map_err(|(place, _)| place).unwrap_err();
        assert_eq!(place(json!(true)), "#");
        assert_eq!(place(json!({ "$schema": "http://json-schema.org/draft-07/schema#" })), "#/$schema");
        let outside = json!({ "properties": { "to": { "$ref": "address.json" } } });
        assert_eq!(place(outside), "#/properties/to/$ref");
        let anchor = json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "$anchor": "a" } } });
        assert_eq!(place(anchor), "#/$defs/a/$anchor");
        assert_eq!(place(json!({ "$ref": "#a" })), "#/$ref");
    }
}
