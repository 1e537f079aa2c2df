"""What the Python programs of this folder share: the server, and the walk that each takes through its tools."""

import json
import os
import uuid

# The origin of the server, such as http://127.0.0.1:8080.
ORIGIN = os.environ["SVC_URL"]
URL = ORIGIN + "/mcp"
# The same server without the tools that change records.
READONLY_URL = ORIGIN + "/mcp/readonly"


def data(result):
    """Returns the data of a result that is no error, and checks that its text says the same."""
    assert not result.is_error, result
    assert [block.type for block in result.content] == ["text"], result
    assert json.loads(result.content[0].text) == result.structured_content, result
    assert isinstance(result.structured_content["notice"], str), result
    return result.structured_content.get("data")


def refused(result):
    """Checks that a call was refused by its tool, and returns the text of the error."""
    assert result.is_error, result
    assert result.content[0].text, result
    return result.content[0].text


def check_tools(tools):
    """Checks the description of the tools that the walk uses."""
    tools = {tool.name: tool for tool in tools}
    for name, read_only in [("list_contacts", True), ("create_contact", False)]:
        assert name in tools, f"there is no tool {name} in {list(tools)}"
        tool = tools[name]
        assert tool.description, f"{name} has no description"
        assert tool.input_schema["type"] == "object", tool
        assert tool.output_schema and tool.output_schema["type"] == "object", f"{name} has no output schema"
        assert tool.annotations and tool.annotations.read_only_hint is read_only, tool


async def walk(tools, call):
    """Creates, changes, reads, lists and deletes a contact. `tools` are all tools, and `call` calls one."""
    check_tools(tools)

    email = f"ada-{uuid.uuid4()}@example.com"
    create = {"first_name": "Ada", "last_name": "Lovelace", "email": email, "idempotency_key": str(uuid.uuid4())}
    contact = data(await call("create_contact", create))
    assert contact["email"] == email, contact
    id = contact["id"]
    assert data(await call("create_contact", create))["id"] == id

    data(await call("update_contact", {"id": id, "city": "Hobart", "dry_run": True}))
    assert data(await call("get_contact", {"id": id})) == contact
    assert data(await call("update_contact", {"id": id, "city": "Hobart"}))["city"] == "Hobart"

    listed = data(await call("list_contacts", {"email": email, "limit": 5}))
    assert [contact["id"] for contact in listed] == [id], listed
    deleted = await call("delete_contact", {"id": id})
    assert not deleted.is_error, deleted
    assert data(await call("list_contacts", {"email": email})) == []
    refused(await call("get_contact", {"id": id}))


async def walk_readonly(tools, call):
    """Checks that no tool changes records, and that calling one is refused, by the tool or by the protocol."""
    assert "list_contacts" in {tool.name for tool in tools}
    writing = [tool.name for tool in tools if not (tool.annotations and tool.annotations.read_only_hint)]
    assert not writing, writing

    email = f"ada-{uuid.uuid4()}@example.com"
    try:
        result = await call("create_contact", {"first_name": "Ada", "last_name": "Lovelace", "email": email})
    except Exception as error:
        # Only an error of the protocol has a code. Others are failures of this program.
        assert isinstance(getattr(error, "code", None), int), error
    else:
        refused(result)
    assert data(await call("list_contacts", {"email": email})) == []
