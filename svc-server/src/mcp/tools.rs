//! The tools, made of the operations: their names, texts and hints.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use rmcp::model::{self, JsonObject, ToolAnnotations};
use serde_json::{Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::operation::{self, About, AnyOperation};
use svc_core::values::EventKinds;

use super::schemas::{Schemas, ToolSchemas};
use crate::kernel::versions::{self, Version};

/// The longest query for the documentation, in characters.
pub(super) const MAX_QUERY: usize = 200;

/// The additions of a tool to its operation.
struct Extra {
    operation: &'static str,
    /// The members of a record that are left out of results. Those of a list are in it if `fields` names them.
    left_out: &'static [&'static str],
    /// A note on it.
    note: &'static str,
}

const EXTRAS: [Extra; 3] = [
    Extra { operation: "listEvents", left_out: &["data"], note: "The data of an event is left out; get_event has it." },
    Extra {
        operation: "createWebhook",
        left_out: &["secret"],
        note: "The signing secret is not returned to an assistant. A developer gets one by rotating it, in the dashboard or \
               with the API.",
    },
    Extra {
        operation: "getDelivery",
        left_out: &[],
        note: "To find out why a webhook failed, read the status, the error and the response of each attempt.",
    },
];

/// The tools in the order of the table.
pub(super) struct Tools(Vec<Tool>);

/// A tool.
pub(crate) struct Tool {
    /// The description for an assistant.
    pub(super) described: model::Tool,
    /// The operation that it calls. `None` for the search of the documentation.
    pub(crate) operation: Option<ToolOperation>,
}

/// The parts of an operation that a call needs.
pub(crate) struct ToolOperation {
    pub(super) about: &'static About,
    pub(super) method: Method,
    /// The path below that of the version.
    pub(super) path: String,
    pub(super) is_list: bool,
    /// Whether the list has pages of a number of records that the client chooses.
    pub(super) is_paged: bool,
    pub(super) left_out: &'static [&'static str],
    /// The names of the fields of the record that is returned.
    pub(super) fields: Vec<String>,
}

impl ToolOperation {
    /// Returns whether the operation changes something.
    pub(crate) fn writes(&self) -> bool {
        self.about.scope() == Scope::Write
    }
}

impl Tools {
    pub(super) fn new(operations: &[&'static dyn AnyOperation], version: Version, kinds: &EventKinds) -> Self {
        let mut schemas = Schemas::new(kinds);
        let mut tools: Vec<Tool> = operations.iter().map(|operation| tool(*operation, version, &mut schemas)).collect();
        tools.push(search_docs());
        Self(tools)
    }

    /// Returns the tools that a client may call.
    pub(super) fn list(&self, is_read_only: bool, may_call: impl Fn(&ToolOperation) -> bool) -> Vec<model::Tool> {
        let all = self.0.iter().filter(|tool| is_in(tool, is_read_only));
        all.filter(|tool| tool.operation.as_ref().is_none_or(&may_call)).map(|tool| tool.described.clone()).collect()
    }

    /// Returns the tool with this name.
    pub(super) fn named(&self, name: &str, is_read_only: bool) -> Option<&Tool> {
        self.0.iter().find(|tool| tool.described.name == name).filter(|tool| is_in(tool, is_read_only))
    }
}

/// Returns whether a tool is among those that change nothing, or those are not asked for.
fn is_in(tool: &Tool, is_read_only: bool) -> bool {
    !is_read_only || tool.operation.as_ref().is_none_or(|operation| !operation.writes())
}

/// Returns the tool of an operation.
fn tool(operation: &'static dyn AnyOperation, version: Version, schemas: &mut Schemas<'_>) -> Tool {
    let extra = EXTRAS.iter().find(|extra| extra.operation == operation.id);
    let left_out = extra.map_or(&[][..], |extra| extra.left_out);
    let ToolSchemas { arguments, result, fields, is_list, is_paged } = schemas.of(operation, left_out);
    let text = description(operation, extra.map(|extra| extra.note));
    let described = model::Tool::new(snake_case(operation.id), text, object(arguments))
        .with_title(operation.texts().summary)
        .with_raw_output_schema(Arc::new(object(result)))
        .with_annotations(hints(operation));
    let operation = ToolOperation {
        about: operation.about(),
        method: versions::method_of(operation),
        path: version.path_of(operation),
        is_list,
        is_paged,
        left_out,
        fields,
    };
    Tool { described, operation: Some(operation) }
}

/// Returns what an assistant reads of an operation: the first paragraph of its description, whose rest is about HTTP, and a note.
fn description(operation: &About, note: Option<&str>) -> String {
    let texts = operation.texts();
    let first = texts.description.split("\n\n").next().unwrap_or_default().trim();
    match note {
        Some(note) => format!("{first} {note}"),
        None => first.to_owned(),
    }
}

/// Returns the hints of an operation, which follow from its method.
fn hints(operation: &About) -> ToolAnnotations {
    let reads = operation.scope() == Scope::Read;
    let replaces = matches!(operation.method, operation::Method::Patch | operation::Method::Delete);
    ToolAnnotations::new()
        .read_only(reads)
        // A POST adds something, or does again what was done before.
        .destructive(!reads && replaces)
        .idempotent(reads || replaces)
        // A replay sends something to a receiver elsewhere.
        .open_world(operation.action == "replay")
}

/// Returns the tool that searches the documentation.
fn search_docs() -> Tool {
    let arguments = json!({
        "type": "object",
        "properties": { "query": {
            "type": "string", "minLength": 1, "maxLength": MAX_QUERY,
            "description": "Words to look for, such as: verify webhook signature.",
        } },
        "required": ["query"],
        "additionalProperties": false,
    });
    let section = json!({
        "type": "object",
        "properties": {
            "page": { "type": "string", "description": "The name of the page." },
            "title": { "type": "string", "description": "The heading of the section." },
            "text": { "type": "string", "description": "The text, in Markdown." },
        },
        "required": ["page", "title", "text"],
    });
    let result = json!({
        "type": "object",
        "properties": { "data": { "type": "array", "items": section } },
        "required": ["data"],
    });
    let title = "Search the documentation";
    let described = model::Tool::new(
        "search_docs",
        "Returns the sections of the documentation of this service that fit best, at most three: how the API and webhooks work, \
         what errors mean, how to verify signatures, to keep a copy in sync, or to connect an app.",
        object(arguments),
    );
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let described =
        described.with_title(title).with_raw_output_schema(Arc::new(object(result))).with_annotations(hints);
    Tool { described, operation: None }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// Returns the name of the tool of an operation, such as `list_contacts` for `listContacts`.
fn snake_case(id: &str) -> Cow<'static, str> {
    let mut name = String::with_capacity(id.len() + 4);
    for character in id.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    // People and assistants expect this name.
    if name == "find_records" { Cow::Borrowed("search") } else { Cow::Owned(name) }
}
