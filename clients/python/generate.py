"""Writes the generated modules of the client: its types, from OpenAPI documents with datamodel-code-generator, and the client
without async, from the one with it with unasync.

    python generate.py DOCUMENT DOCUMENT_WITH_EXTENSIONS FOLDER

The first document is svc-server/openapi/v1.json. The second one is what a server with `--extensions on` serves. The texts of
refused deliveries are in clients/refusals.json.

Responses become dataclasses, which msgspec fills from JSON and checks. Inputs become typed dictionaries, as a field of a change
that is left out means something else than one that is None.
"""

# pyright: basic
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import unasync

Schemas = dict[str, Any]

RECORDS = ["Booking", "Contact", "Event", "Invoice", "Job", "Quote", "WebhookSubscription", "WebhookSubscriptionWithSecret"]
# Bounds are left to the service, which may widen them.
DROPPED = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "examples", "if", "then"}
ETAG = {
    "type": ["string", "null"],
    "default": None,
    "description": "The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events.",
}
# What these names stand for depends on the version of Python, or differs between type checkers and msgspec.
IMPORTS = {name: "svc_client._typing" for name in ("NotRequired", "datetime", "Literal")}
HEADER = """# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
\"\"\"{}\"\"\"

from __future__ import annotations

"""


def references(schema: Any) -> set[str]:
    """Returns the names of the schemas that a part of a document refers to."""
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))


def reachable(schemas: Schemas, roots: set[str]) -> set[str]:
    """Returns these names, and those of all schemas that theirs refer to."""
    found: set[str] = set()
    while roots:
        found |= roots
        roots = {name for root in roots for name in references(schemas[root])} - found
    return found


def plain(schema: Any) -> Any:
    """Returns a schema with the types that this client has."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: plain(value) for name, value in schema.items() if name not in DROPPED or isinstance(value, dict)}
    if kept.get("type") in ("number", ["number", "null"]):
        kept["format"] = "decimal"
    elif kept.get("format") not in ("date", "date-time"):
        # Ids are text, as databases and JSON keep them.
        kept.pop("format", None)
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    if kept.get("type") == "object" and "properties" in kept and not kept["properties"]:
        return kept
    if kept.get("type") == "object" and set(kept.get("properties", {})) <= {"id"} and not kept.get("additionalProperties"):
        # Any fields may be there.
        kept = {"type": "object", "additionalProperties": {}, "description": kept.get("description", "")}
    return kept


def filters(document: Any) -> Schemas:
    """Returns the filters of each list as a schema, without the parameters that all lists have."""
    found: Schemas = {"NoFilter": {"type": "object", "properties": {}, "description": "The filters of a list that has none."}}
    for path in document["paths"].values():
        operation = path.get("get", {})
        parameters = [it for it in operation.get("parameters", []) if it.get("in") == "query"]
        parameters = [it for it in parameters if it["name"] not in ("limit", "cursor", "updated_since")]
        if parameters:
            name = operation["operationId"].removeprefix("list").removesuffix("s").replace("Deliverie", "Delivery")
            properties = {it["name"]: {**it["schema"], "description": it["description"]} for it in parameters}
            description = "Which records a list has. Without a filter, it has all."
            found[f"{name}Filter"] = {"type": "object", "description": description, "properties": properties}
    return found


def event_name(kind: str) -> str:
    """Returns the name of the type of an event, such as InvoicePaidEvent."""
    return "".join(word.title() for word in re.split("[._]", kind)) + "Event"


def events(document: Any) -> Schemas:
    """Returns the body of each kind of event as a schema."""
    found: Schemas = {}
    body: Any = {}
    for kind, path in document["webhooks"].items():
        body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
        properties = dict(body["properties"])
        properties["event"] = {**properties["event"], "description": "The kind of the event."}
        properties["data"] = {"allOf": [properties["data"]], "description": "The record as it was right after the change."}
        properties["delivered_at"] = {**properties["delivered_at"], "description": "When this attempt was made."}
        description = path["post"]["description"].partition("\n")[0]
        found[event_name(kind)] = {**body, "properties": properties, "description": description}
        body = found[event_name(kind)]
    # Of an event that has no type.
    event = {"type": "string", "description": "The kind of the event."}
    id = {"type": "string", "description": "The id of the event, in a thin payload, with which it can be read."}
    data = {"type": "object", "description": "The record, with exact numbers. In a thin payload it has its `id` alone."}
    description = "An event of a kind or a form that this version does not know, or with a thin payload."
    properties = {**body["properties"], "event": event, "data": data, "event_id": id}
    return {**found, "OtherEvent": {**body, "properties": properties, "description": description}}


def generate(schemas: Schemas, kind: str, imported: dict[str, str], folder: Path) -> str:
    """Returns the code of these schemas. Those in `imported` are of another module."""
    source, output = folder / "document.json", folder / "output.py"
    info = {"openapi": "3.1.0", "info": {"title": "SVC", "version": "1"}, "paths": {}}
    source.write_text(json.dumps({**info, "components": {"schemas": schemas}}))
    program = str(Path(sys.executable).with_name("datamodel-codegen"))
    command = [program, "--input", str(source), "--output", str(output)]
    command += ["--input-file-type", "openapi", "--target-python-version", "3.10", "--disable-timestamp"]
    command += ["--output-model-type", kind, "--enum-field-as-literal", "all", "--use-type-alias", "--strict-refs"]
    command += ["--use-schema-description", "--use-field-description", "--use-single-line-docstring"]
    command += ["--output-datetime-class", "datetime", "--formatters", "builtin", "--keep-model-order"]
    command += ["--dataclass-arguments", json.dumps({"kw_only": True, "slots": True})]
    command += ["--import-overrides", json.dumps(IMPORTS), "--type-overrides", json.dumps(imported)]
    subprocess.run(command, check=True, stderr=None)
    return output.read_text()


def module(name: str, document: Any, imported: Schemas, folder: Path) -> tuple[str, Schemas]:
    """Returns the module `name` with the types of a document, and their schemas. `types` has those in `imported`."""
    schemas: Schemas = deepcopy(document["components"]["schemas"])
    schemas = {it: schema for it, schema in schemas.items() if not re.search("(List|Response)$", it)}
    # A deleted contact is no contact for a type checker, as its `deleted_at` is of another type.
    schemas["DeletedContact"] = {
        **schemas["DeletedContact"],
        **schemas["Contact"],
        "description": "A contact that was deleted.",
    }
    del schemas["DeletedContact"]["allOf"]
    schemas["DeletedContact"]["required"] = [*schemas["Contact"]["required"], "deleted_at"]
    for it in ("Error", "FieldError"):
        schemas[f"{it}Code"] = schemas[it]["properties"]["code"]
        schemas[it]["properties"]["code"] = {"$ref": f"#/components/schemas/{it}Code"}
    # One type for the body of every failure, also at the endpoint for tokens.
    optional = {"error_description": {"type": "string", "description": "What is wrong, at the endpoint for tokens."}}
    error, limited = schemas.pop("Error"), schemas.pop("RateLimitError")
    properties = {**limited["properties"], **error["properties"], **optional}
    description = "The body of a failure."
    schemas["Problem"] = {"type": "object", "properties": properties, "required": ["error"], "description": description}
    # Each type has other fields, among which msgspec cannot choose.
    schemas.update({it: {"type": "object"} for it in ("EndpointAuthentication",) if it in schemas})
    schemas = plain(schemas | filters(document) | events(document))
    bodies = [operation.get("requestBody") for path in document["paths"].values() for operation in path.values()]
    inputs = reachable(schemas, references(bodies) | set(filters(document)))
    responses = reachable(schemas, set(schemas) - inputs)
    for record in set(RECORDS) & set(schemas):
        schemas[record]["properties"]["etag"] = ETAG
    known, schemas = schemas, {name: schema for name, schema in schemas.items() if imported.get(name) != schema}
    parts: list[str] = []
    for kind, names in (("dataclasses.dataclass", responses), ("typing.TypedDict", inputs - responses)):
        part = {it: known[it] for it in sorted(reachable(known, names & set(schemas)))}
        others = {it: f"svc_client.{name if it in schemas else 'types'}.{it}" for it in part if it not in names & set(schemas)}
        parts.append(generate(part, kind, others, folder))
    return merged(parts, name), schemas


def merged(parts: list[str], name: str) -> str:
    """Returns the module with this name of the code of several, with their imports at its beginning."""
    imports: dict[str, set[str]] = {}
    bodies: list[str] = []
    for part in parts:
        statements = ast.parse(part).body
        found = [it for it in statements if isinstance(it, ast.ImportFrom)]
        for it in found:
            imports.setdefault(str(it.module), set()).update(alias.name for alias in it.names)
        bodies.append("\n".join(part.splitlines()[found[-1].end_lineno :]).strip())
    own = {"__future__", f"svc_client.{name}"}
    header = [f"from {it} import {', '.join(sorted(imports[it]))}" for it in sorted(imports.keys() - own)]
    return "\n".join([*header, "", "", "\n\n\n".join(bodies), ""])


def error_classes(document: Any) -> str:
    """Returns a class for each code of an error."""
    code = document["components"]["schemas"]["Error"]["properties"]["code"]
    meanings = dict(re.findall(r"\| `(\w+)` \| (.+) \|", code["description"]))
    names = {it: "".join(word.title() for word in it.split("_")) for it in code["enum"]}
    classes = [f'class {names[it]}(ApiError):\n    """{meanings[it]} The code is `{it}`."""' for it in names]
    table = "".join(f'    "{it}": {name},\n' for it, name in names.items())
    table = f"BY_CODE: dict[str | None, type[ApiError]] = {{\n{table}}}\n"
    return "\n\n\n".join(["from .errors import ApiError", *classes, table])


def refusals() -> str:
    """Returns what both verifiers of deliveries know, from clients/refusals.json."""
    data = json.loads((Path(__file__).parent.parent / "refusals.json").read_text())
    texts, forms = (json.dumps(data[name], indent=4) for name in ("texts", "forms"))
    return f"TEXTS: dict[str, str] = {texts}\nFORMS: dict[str, dict[str, str]] = {forms}\n"


def response_type(operation: Any, schemas: Schemas) -> str:
    """Returns the name of the type of the record in a response of an operation, or of the records in a list."""
    body = next(it for status, it in operation["responses"].items() if status.startswith("2"))
    (envelope,) = references(body["content"])
    (name,) = references(schemas[envelope]["properties"]["data"])
    return name


def collections(document: Any, known: Any, name: str, types: str) -> str:
    """Returns a class for the records of each path that has a list and a GET by id, and one with a property for each.

    Of what `known` has, only webhook subscriptions are here, whose types differ.
    """
    paths, schemas = document["paths"], document["components"]["schemas"]
    classes: list[str] = []
    properties: list[str] = []
    for path, operations in paths.items():
        one, record = paths.get(f"{path}/{{id}}", {}), path.strip("/")
        if "get" not in one or (known and path in known["paths"] and path != "/webhooks"):
            continue
        kind = response_type(one["get"], schemas)
        filter = f"{kind}Filter" if f"{kind}Filter" in filters(document) else "NoFilter"
        parameters = [it.get("name") for it in operations["get"]["parameters"]]
        filter = filter if filter == "NoFilter" else f"types.{filter}"
        bases, arguments = [f"AsyncRecords[types.{kind}, {filter}]"], [f"types.{kind}"]
        if "post" in operations:
            bases = []
        if "updated_at" in schemas[kind]["properties"] and "updated_since" in parameters:
            bases = [f"AsyncSyncable[types.{kind}, {filter}]"]
        if "post" in operations:
            new = response_type(operations["post"], schemas)
            inputs = [next(iter(references(it["requestBody"]))) for it in (operations["post"], one["patch"])]
            names = [f"types.{it}" for it in (kind, new, *inputs)]
            bases.append(f"AsyncWritable[{', '.join(names)}, {filter}]")
            arguments += [f"types.{new}"] if new != kind else []
        bases += [f"AsyncDeletable[types.{kind}, {filter}]"] if "delete" in one else []
        arguments += ['everything={"include_deleted": True}'] if "include_deleted" in parameters else []
        summary = f'"""The {record} of the account."""'
        title = f"Async{'Extended' if known and path in known['paths'] else ''}{record.title()}"
        classes.append("class " + title + "(\n    " + ",\n    ".join(bases) + f",\n):\n    {summary}")
        client = "self._client" if known else "cast(Any, self)"
        returned = f"return {title}({client}, {json.dumps(record)}, {', '.join(arguments)})"
        properties.append(f"    @property\n    def {record}(self) -> {title}:\n        {summary}\n        {returned}")
    owner = f"class Async{name}Collections:\n"
    owner += '    """A property for the records of each kind."""\n\n'
    owner += ("    _client: AsyncClient\n\n" if known else "") + "\n\n".join(properties)
    imports = "AsyncDeletable, AsyncRecords, AsyncSyncable, AsyncWritable"
    header = f"from typing import TYPE_CHECKING, Any, cast\n\nfrom . import {types}\nfrom ._async_records import {imports}\n"
    header += "from .types import NoFilter\n\nif TYPE_CHECKING:\n    from ._async_client import AsyncClient"
    header = header if known else header.partition("\n\nif TYPE")[0].replace("TYPE_CHECKING, ", "")
    header = header if known else header.replace("AsyncRecords, ", "")
    header = header.replace(", Any, cast", "").replace("AsyncSyncable, ", "") if known else header
    return "\n\n\n".join([header, *classes, owner]) + "\n"


def derive(target: Path) -> None:
    """Makes the client without async of the one with it."""
    names = set(re.findall(r"\bAsync([A-Z]\w+)", "".join(path.read_text() for path in target.glob("_async_*.py"))))
    replacements = {f"Async{name}": name for name in names - {"Iterator"}}
    replacements |= {"AsyncStore": "SyncStore", "aclose": "close", "aclosing": "closing", "aiter_bytes": "iter_bytes"}
    replacements |= {"anyio": ".blocking"}
    replacements |= {path.stem: path.stem.replace("_async_", "_sync_") for path in target.glob("_async_*.py")}
    with tempfile.TemporaryDirectory() as folder:
        for path in target.glob("_async_*.py"):
            source = Path(folder, "_async", path.name)
            source.parent.mkdir(exist_ok=True)
            shutil.copy(path, source)
            unasync.unasync_files([str(source)], [unasync.Rule("/_async/", "/_sync/", replacements)])
            made = Path(folder, "_sync", path.name).read_text()
            origin = f"# Written by generate.py from {path.name} with unasync. Do not edit it.\n"
            (target / path.name.replace("_async_", "_sync_")).write_text(origin + made)


def main() -> None:
    """Writes all generated modules."""
    document, extended = (json.loads(Path(argument).read_text()) for argument in sys.argv[1:3])
    target = Path(sys.argv[3]).resolve()

    def write(name: str, title: str, code: str) -> None:
        (target / f"{name}.py").write_text(HEADER.format(title) + code)

    with tempfile.TemporaryDirectory() as folder:
        code, schemas = module("types", document, {}, Path(folder))
        kinds = " | ".join([*(event_name(kind) for kind in document["webhooks"]), "OtherEvent"])
        code += f'\n\nWebhookEvent: TypeAlias = {kinds}\n"""The event of a delivery."""\n'
        write("types", "The records, inputs and events of the API.", code)
        code, _ = module("extension_types", extended, schemas, Path(folder))
    write("extension_types", "The types of what a service with `--extensions on` has beyond the contract.", code)
    write("refusals", "The reasons for which deliveries are refused, and the forms that their parts have.", refusals())
    write("error_classes", "A class for each code of an error.", error_classes(document))
    code = collections(document, None, "", "types")
    write("_async_collections", "The records of the API and their operations.", code)
    code = collections(extended, document, "Extended", "extension_types as types")
    write("_async_extended_collections", "The records of the extensions and their operations.", code)
    derive(target)


main()
