"""The Python SDK, in both versions of MCP that it speaks, and left to choose one itself."""

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from walk import READONLY_URL, URL, walk, walk_readonly


async def all_tools(client):
    page = await client.list_tools()
    tools = page.tools
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


async def main():
    headers = {"Authorization": f"Bearer {os.environ['SVC_KEY']}"}
    for mode, version in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")]:
        for url, steps in [(URL, walk), (READONLY_URL, walk_readonly)]:
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                    assert client.protocol_version == version, client.protocol_version
                    await steps(await all_tools(client), client.call_tool)


asyncio.run(main())
print("ok")
