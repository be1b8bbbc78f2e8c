import asyncio
import os

from fastmcp import Client
from fastmcp.exceptions import ToolError


async def main():
    async with Client("http://localhost:8000/mcp", auth=os.environ["TOOLSRV_TOKEN"]) as client:
        result = await client.call_tool("math-add", {"a": 2, "b": 3})
        print(result.content[0].text)
        try:
            await client.call_tool("math-add", {"a": "two", "b": 3})
        except ToolError as error:
            print(error)


asyncio.run(main())
