//! What each tool is: its name, its schemas and its hints, which are true.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::platform::operations;

use super::{arguments_of, call, failure, message, names, result, server, success, tools_of};
use crate::harness::{Call, SeededServer, sample};

/// The operations that are no tools: the check of a key, an event that tests a webhook, and what returns a secret.
const NO_TOOLS: [&str; 3] = ["ping", "test_webhook", "rotate_webhook_secret"];

fn snake_case(id: &str) -> String {
    id.chars()
        .flat_map(|char| char.is_ascii_uppercase().then_some('_').into_iter().chain([char.to_ascii_lowercase()]))
        .collect()
}

#[tokio::test]
async fn every_operation_is_a_tool_or_is_left_out_on_purpose() {
    let server = server();
    let operations = operations::public().into_iter().chain(operations::extensions());
    let mut expected: BTreeSet<String> = operations.map(|operation| snake_case(operation.id)).collect();
    for name in NO_TOOLS {
        assert!(expected.remove(name), "{name}");
    }
    expected.extend(["search".to_owned(), "search_docs".to_owned()]);
    let tools = tools_of(&server, "/mcp", server.key("write")).await;
    assert_eq!(names(&tools).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    assert_eq!(tools.len(), expected.len());
}

/// Returns all tools.
async fn all_tools() -> Vec<Value> {
    let server = server();
    tools_of(&server, "/mcp", server.key("write")).await
}

/// An assistant reads all of them before its first call.
#[tokio::test]
async fn what_an_assistant_reads_of_the_tools_is_bounded() {
    let server = server();
    let tools = tools_of(&server, "/mcp", server.key("write")).await;
    let size: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
    assert!(size < 85_000, "{size} bytes");
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| {
            let arguments = tool["inputSchema"]["properties"].as_object().unwrap().keys();
            let arguments: Vec<&str> = arguments.map(String::as_str).collect();
            format!(
                "{}({})\n  {}",
                tool["name"].as_str().unwrap(),
                arguments.join(", "),
                tool["description"].as_str().unwrap()
            )
        })
        .collect();
    insta::assert_snapshot!("tools", shown.join("\n"));
    let one = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    insta::assert_snapshot!("tool_list_contacts", serde_json::to_string_pretty(one("list_contacts")).unwrap());
    insta::assert_snapshot!("tool_update_quote", serde_json::to_string_pretty(one("update_quote")).unwrap());
}

/// Returns all records and webhooks of the tenant, with what is known of each.
async fn records(server: &SeededServer) -> Vec<Value> {
    let mut all = Vec::new();
    for collection in ["contacts?include_deleted=true&", "invoices?", "bookings?", "quotes?", "jobs?", "webhooks?"] {
        let page = server.expect(200, Call::get(&format!("/{collection}limit=200"))).await.json();
        all.extend(page["data"].as_array().unwrap().iter().cloned());
    }
    all
}

/// Returns the number of changes of the tenant that are in its audit log.
async fn changes(server: &SeededServer) -> usize {
    super::actors(server).await.len()
}

#[tokio::test]
async fn the_hints_of_each_tool_are_true() {
    for tool in all_tools().await {
        let (name, hints) = (tool["name"].as_str().unwrap(), &tool["annotations"]);
        let server = server();
        let arguments = arguments_of(&server, name).await;
        let (before, changes_before) = (records(&server).await, changes(&server).await);
        if hints["readOnlyHint"] == false {
            let mut tried = arguments.clone();
            tried["dry_run"] = true.into();
            success(&server, name, tried).await;
            assert_eq!((&records(&server).await, changes(&server).await), (&before, changes_before), "{name}, tried");
        }
        success(&server, name, arguments.clone()).await;
        let (after, changes_after) = (records(&server).await, changes(&server).await);
        let changes_something = before != after || changes_before != changes_after;
        assert_eq!(hints["readOnlyHint"], !changes_something, "{name}");

        let is_gone_or_changed = before.iter().any(|record| !after.contains(record));
        assert_eq!(hints["destructiveHint"], is_gone_or_changed, "{name}");

        // What repeats it may fail, but changes nothing more if the hint says so.
        result(&server, name, repeatable(name, arguments)).await;
        let changes_more = records(&server).await != after || changes(&server).await != changes_after;
        assert_eq!(hints["idempotentHint"], !changes_more, "{name}");
        // Replays are sent to somebody else. All other effects stay here, but for the events that they fire.
        assert_eq!(hints["openWorldHint"], name.starts_with("replay_"), "{name}");
    }
}

/// Returns the arguments of a repeat: the same, but for an email address, of which there can be one.
fn repeatable(name: &str, mut arguments: Value) -> Value {
    if name == "create_contact" {
        arguments["email"] = "another@example.com".into();
    }
    arguments
}

#[tokio::test]
async fn results_and_arguments_are_as_the_schemas_say() {
    for tool in all_tools().await {
        let server = server();
        let name = tool["name"].as_str().unwrap();
        let [input, output] = ["inputSchema", "outputSchema"].map(|schema| {
            assert!(!tool[schema].to_string().contains("$ref"), "{name}: whole in itself");
            jsonschema::validator_for(&tool[schema]).unwrap()
        });
        let arguments = arguments_of(&server, name).await;
        input.validate(&arguments).unwrap_or_else(|error| panic!("{name}: {error}: {arguments}"));
        if tool["annotations"]["readOnlyHint"] == false {
            let mut tried = arguments.clone();
            tried["dry_run"] = true.into();
            let tried = success(&server, name, tried).await;
            output.validate(&tried).unwrap_or_else(|error| panic!("{name}, tried: {error}: {tried}"));
        }
        let result = success(&server, name, arguments).await;
        output.validate(&result).unwrap_or_else(|error| panic!("{name}: {error}: {result}"));
    }
}

#[tokio::test]
async fn a_client_sees_the_tools_that_it_may_call() {
    let server = server();
    let all = tools_of(&server, "/mcp", server.key("write")).await;
    let reading: Vec<&Value> = all.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true).collect();
    assert!(reading.len() > 15 && all.len() > reading.len() + 10);
    // A key that signs its writes would have to sign what an assistant sends.
    for (path, role) in [("/mcp", "read"), ("/mcp", "signed"), ("/mcp/readonly", "read"), ("/mcp/readonly", "write")] {
        let seen = tools_of(&server, path, server.key(role)).await;
        assert_eq!(seen.iter().collect::<Vec<_>>(), reading, "{path} {role}");
    }
    let create = json!({ "email": "new@example.com" });
    let refused = server.expect(403, call("/mcp", "create_contact", create.clone()).key(server.key("read"))).await;
    assert_eq!(refused.code(), "insufficient_scope");
    let unknown = server.expect(200, call("/mcp/readonly", "create_contact", create.clone())).await.json();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let signed = server.expect(200, call("/mcp", "create_contact", create).key(server.key("signed"))).await.json();
    assert!(signed["result"]["content"][0]["text"].as_str().unwrap().contains("signature_required"), "{signed}");
    assert_eq!(server.new_events().await, [""; 0]);
}

#[tokio::test]
async fn keys_that_are_not_valid_reach_no_tool() {
    let server = server();
    for (role, status, code) in
        [("revoked", 401, "key_revoked"), ("expired", 401, "key_expired"), ("pending", 403, "access_not_approved")]
    {
        let refused = server.expect(status, message("/mcp", "tools/list", json!({})).key(server.key(role))).await;
        assert_eq!(refused.code(), code);
    }
    let refused = server.expect(401, message("/mcp", "tools/list", json!({})).anonymous()).await;
    assert_eq!(refused.code(), "missing_credentials");
    // A key in a URL would be in logs.
    let key = server.key("write").text.clone();
    let in_url = message(&format!("/mcp?access_token={key}&key={key}"), "tools/list", json!({})).anonymous();
    server.expect(401, in_url).await;
}

#[tokio::test]
async fn lists_have_pages_of_20_and_the_fields_that_are_asked_for() {
    let server = server();
    for number in 0..25 {
        server.expect(201, Call::post("/contacts", sample(&server, "contacts", number))).await;
    }
    let first = success(&server, "list_contacts", json!({})).await;
    assert_eq!(first["data"].as_array().unwrap().len(), 20);
    // Fields without a value are left out.
    assert!(first["data"][0].get("company_name").is_none() && first["data"][0].get("email").is_some(), "{first}");
    let next = json!({ "cursor": first["next_cursor"], "fields": ["id", "phone"], "limit": 3 });
    let next = success(&server, "list_contacts", next).await;
    assert_eq!(next["data"].as_array().unwrap().len(), 3);
    let keys: Vec<&String> = next["data"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "phone"]);

    let over = failure(&server, "list_contacts", json!({ "limit": 200 })).await;
    assert_eq!(over["error"], "limit must be a whole number from 1 to 20.");
    let problem =
        json!([{ "field": "limit", "code": "out_of_range", "message": "limit must be a whole number from 1 to 20" }]);
    assert_eq!((&over["field"], &over["errors"]), (&json!("limit"), &problem));
    let unknown = failure(&server, "get_contact", json!({ "id": server.id("contact_id"), "fields": ["emial"] })).await;
    assert!(unknown["error"].as_str().unwrap().starts_with("fields has emial; there are id, email,"), "{unknown}");
    // The data of events is long, so it is asked for.
    let events = success(&server, "list_events", json!({ "limit": 1 })).await;
    assert!(events["data"][0].get("data").is_none(), "{events}");
    let events = success(&server, "list_events", json!({ "limit": 1, "fields": ["kind", "data"] })).await;
    assert_eq!(events["data"][0]["data"]["first_name"], "Grace");
}

#[tokio::test]
async fn bad_arguments_say_what_to_mend() {
    let server = server();
    for (tool, arguments, error) in [
        ("get_contact", json!({}), "id is required: the id of the record, as a text."),
        ("get_contact", json!({ "id": 7 }), "id is required: the id of the record, as a text."),
        ("get_contact", json!({ "id": "../../webhooks" }), "id must be a UUID"),
        ("update_contact", json!({ "id": "x", "dry_run": "yes" }), "dry_run must be true or false."),
        ("create_contact", json!({ "idempotency_key": 7 }), "idempotency_key must be a text."),
        ("create_contact", json!({ "idempotency_key": "a\nb" }), "idempotency_key must be printable ASCII."),
        ("create_contact", json!({ "emial": "a@b.co" }), "email is required; 1 more in errors."),
        ("list_contacts", json!({ "limit": "many" }), "limit must be a whole number from 1 to 20."),
        (
            "create_job",
            json!({ "title": "x", "estimated_total": "12.5" }),
            "estimated_total must be a number, without quotes.",
        ),
        ("update_webhook", json!({ "id": "x", "enabled": "true" }), "id must be a UUID"),
        (
            "create_quote",
            json!({ "contact_id": "x", "total": 1, "line_items": [{ "text": "a" }] }),
            "line_items is not an argument of this tool, as the service does not store it.",
        ),
        (
            "list_contacts",
            json!({ "emial": "a@b.co" }),
            "emial is not a parameter of this operation (did you mean email?).",
        ),
        ("list_contacts", json!({ "email": ["a@b.co"] }), "email must be an email address"),
        ("list_contacts", json!({ "fields": "id" }), "fields must be an array of the names of fields."),
        ("search_docs", json!({ "query": " " }), "query is required: words to look for."),
        (
            "delete_contact",
            json!({ "id": "x", "dryRun": true }),
            "dryRun is not an argument of this tool; there are id,",
        ),
        (
            "replay_delivery",
            json!({ "id": "x", "dry-run": true }),
            "dry-run is not an argument of this tool; there are",
        ),
        ("search_docs", json!({ "query": "a".repeat(201) }), "query must have at most 200 characters."),
        ("delete_contact", json!({ "id": "00000000-0000-7000-8000-000000000000" }), "Nothing was found"),
    ] {
        let said = failure(&server, tool, arguments.clone()).await;
        assert!(said["error"].as_str().unwrap().starts_with(error), "{tool} {arguments}: {said}");
    }
}

/// What does this customer owe, and what is booked for them?
#[tokio::test]
async fn records_are_listed_by_their_contact() {
    let server = server();
    let key = server.key("write");
    let contact =
        success(&server, "create_contact", json!({ "email": "owes@example.com" })).await["data"]["id"].clone();
    let other = server.id("contact_id");
    for number in 0..3 {
        let start = format!("2026-05-0{}T09:00:00Z", number + 1);
        let booking = |contact: &Value| json!({ "contact_id": contact, "service_name": "Repair", "start_time": start });
        success(&server, "create_booking", booking(&contact)).await;
        success(&server, "create_booking", booking(&json!(other))).await;
    }
    for (tool, body) in [
        ("create_quote", json!({ "contact_id": contact, "total": 5 })),
        ("create_job", json!({ "contact_id": contact, "title": "Repair" })),
    ] {
        success(&server, tool, body).await;
    }
    let of = async |tool: &str, arguments: Value| {
        let mut arguments = arguments;
        arguments["contact_id"] = contact.clone();
        success(&server, tool, arguments).await
    };
    for (tool, count) in [("list_bookings", 3), ("list_quotes", 1), ("list_jobs", 1), ("list_invoices", 0)] {
        let listed = of(tool, json!({})).await;
        let records = listed["data"].as_array().unwrap();
        assert!(
            records.len() == count && records.iter().all(|record| record["contact_id"] == contact),
            "{tool}: {listed}"
        );
    }
    // Page by page, each record once, with the other filters.
    let first = of("list_bookings", json!({ "limit": 2 })).await;
    let rest = of("list_bookings", json!({ "limit": 2, "cursor": first["next_cursor"] })).await;
    let starts: Vec<&Value> = [&first, &rest]
        .into_iter()
        .flat_map(|page| page["data"].as_array().unwrap())
        .map(|one| &one["start_time"])
        .collect();
    assert_eq!(starts, ["2026-05-03T09:00:00.000000Z", "2026-05-02T09:00:00.000000Z", "2026-05-01T09:00:00.000000Z"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    let cancelled = json!({ "id": first["data"][1]["id"], "status": "cancelled" });
    let changed = success(&server, "update_booking", cancelled).await["data"].clone();
    let found = of("list_bookings", json!({ "status": "cancelled" })).await["data"].clone();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &changed["id"]));
    let since = of("list_bookings", json!({ "updated_since": changed["updated_at"] })).await["data"].clone();
    assert_eq!((since.as_array().unwrap().len(), &since[0]["id"]), (1, &changed["id"]));
    let all = success(&server, "list_bookings", json!({ "status": "cancelled" })).await["data"].clone();
    assert!(all.as_array().unwrap().iter().any(|booking| booking["id"] == changed["id"]), "{all}");
    // A cursor belongs to its contact, and the contract has no such parameter.
    let foreign = json!({ "contact_id": other, "cursor": first["next_cursor"] });
    assert_eq!(failure(&server, "list_bookings", foreign).await["code"], "invalid_cursor");
    let contract = Call::get(&format!("/bookings?contact_id={other}")).key(key);
    assert_eq!(server.expect(400, contract).await.code(), "unknown_parameter");
}

/// What is on tomorrow?
#[tokio::test]
async fn what_starts_in_a_range_is_listed() {
    let server = server();
    let contact = server.id("contact_id");
    // Tomorrow in Sydney, and a moment before and after it.
    let tomorrow = json!({ "starts_from": "2026-05-02T00:00:00+10:00", "starts_before": "2026-05-03T00:00:00+10:00" });
    let starts = [
        "2026-05-02T15:00:00+10:00",
        "2026-05-01T23:59:59+10:00",
        "2026-05-02T00:00:00+10:00",
        "2026-05-03T00:00:00+10:00",
        "2026-05-02T09:00:00+10:00",
        "2026-05-02T09:00:00+10:00",
    ];
    let of_day = [
        "2026-05-01T14:00:00.000000Z",
        "2026-05-01T23:00:00.000000Z",
        "2026-05-01T23:00:00.000000Z",
        "2026-05-02T05:00:00.000000Z",
    ];
    for (number, start) in starts.into_iter().enumerate() {
        let booking = json!({ "contact_id": contact, "service_name": format!("Visit {number}"), "start_time": start });
        success(&server, "create_booking", booking).await;
        success(&server, "create_job", json!({ "title": format!("Job {number}"), "scheduled_start": start })).await;
    }
    success(&server, "create_job", json!({ "title": "Not planned" })).await;
    let ask = async |tool: &str, more: Value| {
        let mut arguments = tomorrow.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        success(&server, tool, arguments).await
    };
    let values = |page: &Value, field: &str| -> Vec<String> {
        let records = page["data"].as_array().unwrap().iter();
        records.map(|record| record[field].as_str().unwrap().to_owned()).collect()
    };
    for (tool, name, start, names) in [
        ("list_bookings", "service_name", "start_time", ["Visit 2", "Visit 4", "Visit 5", "Visit 0"]),
        ("list_jobs", "title", "scheduled_start", ["Job 2", "Job 4", "Job 5", "Job 0"]),
    ] {
        let day = ask(tool, json!({})).await;
        assert_eq!(
            (values(&day, name), values(&day, start)),
            (names.map(str::to_owned).into(), of_day.map(str::to_owned).into())
        );
        assert_eq!(day["next_cursor"], Value::Null, "{tool}");
        // Page by page, also between two that start together.
        let first = ask(tool, json!({ "limit": 2 })).await;
        let rest = ask(tool, json!({ "limit": 2, "cursor": first["next_cursor"] })).await;
        assert_eq!([values(&first, name), values(&rest, name)].concat(), names);
        assert_eq!(rest["next_cursor"], Value::Null, "{tool}");
        let foreign = json!({ "cursor": first["next_cursor"], "starts_from": "2026-05-02T00:00:00Z" });
        assert_eq!(failure(&server, tool, foreign).await["code"], "invalid_cursor");

        let never = json!({ "starts_from": "2026-05-02T00:00:00Z", "starts_before": "2026-05-02T00:00:00Z" });
        let refused = failure(&server, tool, never).await;
        assert_eq!(
            (&refused["field"], &refused["error"]),
            (&json!("starts_before"), &json!("starts_before must be after starts_from."))
        );
        let no_offset = failure(&server, tool, json!({ "starts_from": "2026-05-02" })).await;
        assert_eq!(no_offset["field"], "starts_from", "{no_offset}");
    }
    // With the other filters: those of a contact, of a status, and those that changed.
    assert_eq!(
        values(&ask("list_bookings", json!({ "contact_id": contact })).await, "service_name"),
        ["Visit 2", "Visit 4", "Visit 5", "Visit 0"]
    );
    let visits = ask("list_bookings", json!({})).await;
    let cancelled = json!({ "id": visits["data"][3]["id"], "status": "cancelled" });
    let changed = success(&server, "update_booking", cancelled).await["data"]["updated_at"].clone();
    for more in [json!({ "status": "cancelled" }), json!({ "updated_since": changed })] {
        assert_eq!(values(&ask("list_bookings", more).await, "service_name"), ["Visit 0"]);
    }
    assert_eq!(values(&ask("list_bookings", json!({ "status": "no_show" })).await, "id"), [""; 0]);
    assert_eq!(values(&ask("list_jobs", json!({ "status": "on_hold" })).await, "id"), [""; 0]);
    // The contract has no such parameters.
    let contract = Call::get("/bookings?starts_from=2026-05-02T00:00:00Z");
    assert_eq!(server.expect(400, contract).await.code(), "unknown_parameter");
}

/// One or two characters find whole words alone, so that nothing does not mean that there is none.
#[tokio::test]
async fn a_search_for_a_short_text_that_finds_nothing_says_so() {
    let server = server();
    success(&server, "create_contact", json!({ "email": "new@example.com", "last_name": "Ng", "first_name": "Zoe" }))
        .await;
    let note = "Nothing was found. One or two characters find whole words alone; give at least three of a longer one.";
    let notes = [
        ("zo", json!(note)),
        (" z ", json!(note)),
        ("ng", Value::Null),
        ("zoe", Value::Null),
        ("zof", Value::Null),
        ("伟", Value::Null),
    ];
    for (text, expected) in notes {
        let found = success(&server, "search", json!({ "text": text })).await;
        assert_eq!(found["note"], expected, "{text}: {found}");
        let is_found = ["ng", "zoe"].contains(&text);
        assert_eq!(found["data"].as_array().unwrap().is_empty(), !is_found, "{text}: {found}");
    }
}

/// Models send a text for a number or a word, and an empty one for a filter that they do not want.
#[tokio::test]
async fn values_that_are_sent_as_texts_are_read() {
    let server = server();
    let all = success(&server, "list_jobs", json!({})).await;
    let empty =
        json!({ "limit": "20", "cursor": "", "status": "", "job_number": " ", "updated_since": "", "fields": "" });
    assert_eq!(success(&server, "list_jobs", empty).await, all);
    let one = success(&server, "list_jobs", json!({ "limit": "1" })).await;
    assert_eq!(one["data"].as_array().unwrap().len(), 1);
    let email = json!({ "email": "new@example.com", "dry_run": "true" });
    assert_eq!(success(&server, "create_contact", email.clone()).await["dry_run"], true);
    assert_eq!(server.new_events().await, [""; 0]);
    let made = json!({ "email": "new@example.com", "dry_run": "false" });
    assert_eq!(success(&server, "create_contact", made).await.get("dry_run"), None);
    assert_eq!(server.new_events().await, ["contact.created"]);
}

/// What clients of Gemini and of OpenAI do with schemas of arguments: they know one word for `type`, the format `date-time`, and
/// objects that name their members.
#[tokio::test]
async fn schemas_of_arguments_are_those_that_every_client_reads() {
    fn walk(schema: &Value, visit: &mut impl FnMut(&Value)) {
        visit(schema);
        for (name, member) in schema.as_object().into_iter().flatten() {
            match member {
                Value::Object(members) if name == "properties" => {
                    members.values().for_each(|member| walk(member, visit))
                }
                Value::Array(forms) if name == "anyOf" => forms.iter().for_each(|form| walk(form, visit)),
                Value::Object(_) if name == "items" => walk(member, visit),
                _ => {}
            }
        }
    }
    for tool in all_tools().await {
        let name = tool["name"].as_str().unwrap();
        walk(&tool["inputSchema"], &mut |schema| {
            assert!(schema["type"].is_string() || schema["anyOf"].is_array(), "{name}: {schema}");
            assert!(schema["format"].is_null() || schema["format"] == "date-time", "{name}: {schema}");
            let has_members = schema["properties"].as_object().is_some_and(|members| !members.is_empty());
            assert!(schema["type"] != "object" || has_members, "{name}: {schema}");
            let forms = schema["anyOf"].as_array().map_or(2, Vec::len);
            assert!(forms > 1, "{name}: {schema}");
            // Null clears a field of an update, and is the same as nothing elsewhere.
            let can_be_null = schema["anyOf"].as_array().into_iter().flatten().any(|form| form["type"] == "null");
            assert!(!can_be_null || name.starts_with("update_"), "{name}: {schema}");
        });
        if name.starts_with("list_") || name.starts_with("get_") {
            let fields = &tool["inputSchema"]["properties"]["fields"]["items"]["enum"];
            assert!(fields.as_array().is_some_and(|names| !names.is_empty()), "{name}: {fields}");
        }
    }
}

#[tokio::test]
async fn another_accounts_records_are_unknown_to_every_tool() {
    let unknown = "00000000-0000-7000-8000-000000000000";
    for tool in all_tools().await {
        let server = server();
        let name = tool["name"].as_str().unwrap();
        if tool["inputSchema"]["properties"].get("id").is_none() {
            continue;
        }
        // The ids are those of the account of the key `other`, whose caller sees them.
        let own = arguments_of(&server, name).await;
        let ask = |id: &str, key| {
            let mut arguments = own.clone();
            arguments["id"] = id.into();
            call("/mcp", name, arguments).key(server.key(key))
        };
        let own_id = own["id"].as_str().unwrap();
        let [foreign, missing] = [ask(own_id, "other"), ask(unknown, "other")];
        let [foreign, missing] = [server.expect(200, foreign).await.json(), server.expect(200, missing).await.json()];
        assert_eq!(foreign, missing, "{name}");
        assert_eq!(foreign["result"]["isError"], true, "{name}: {foreign}");
    }
    let server = server();
    for tool in ["list_contacts", "list_invoices", "list_webhooks", "list_events", "search"] {
        let arguments = if tool == "search" { json!({ "text": "Ada" }) } else { json!({}) };
        let seen = server.expect(200, call("/mcp", tool, arguments).key(server.key("other"))).await;
        for (_, id) in server.seed.ids.iter().filter(|(name, _)| !name.starts_with("other")) {
            assert!(!seen.text.contains(&id.to_string()), "{tool}: {}", seen.text);
        }
    }
}

#[tokio::test]
async fn no_tool_returns_the_secret_of_a_webhook() {
    let server = server();
    let created = success(&server, "create_webhook", sample(&server, "webhooks", 0)).await;
    assert!(!created.to_string().contains("whsec_") && created["data"].get("secret").is_none(), "{created}");
    let id = &created["data"]["id"];
    for (tool, arguments) in
        [("get_webhook", json!({ "id": id })), ("update_webhook", json!({ "id": id, "enabled": true }))]
    {
        let result = success(&server, tool, arguments).await;
        assert!(!result.to_string().contains("whsec_"), "{result}");
    }
}

#[tokio::test]
async fn without_the_setting_there_are_no_tools() {
    let server = SeededServer::new();
    let gone = server.expect(404, message("/mcp", "tools/list", json!({}))).await;
    assert_eq!(gone.code(), "route_not_found");
    // The paths of calls are for calls alone.
    let server = super::server();
    for path in ["/mcp/contacts", "/mcp/readonly/contacts", "/mcp/"] {
        server.expect(404, Call::absolute(http::Method::GET, path)).await;
    }
    let slash = server.expect(404, Call::absolute(http::Method::POST, "/mcp/")).await;
    assert_eq!(slash.json()["error"], "No operation has this path with a slash at its end; leave the slash out.");
}
