"""The client of FastMCP, in both versions of MCP that it speaks."""

import asyncio
import os

from fastmcp import Client

from walk import READONLY_URL, URL, walk, walk_readonly


async def main():
    for mode in ["legacy", "auto"]:
        for url, steps in [(URL, walk), (READONLY_URL, walk_readonly)]:
            async with Client(url, auth=os.environ["SVC_KEY"], mode=mode) as client:

                async def call(name, arguments):
                    return await client.call_tool(name, arguments, raise_on_error=False)

                await steps(await client.list_tools(), call)


asyncio.run(main())
print("ok")
