import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main():
    headers = {"Authorization": "Bearer " + os.environ["TOOLSRV_TOKEN"]}
    async with httpx2.AsyncClient(headers=headers) as http:
        async with Client(streamable_http_client("http://localhost:8000/mcp", http_client=http)) as client:
            result = await client.call_tool("math-add", {"a": 2, "b": 3})
            print(result.content[0].text)


asyncio.run(main())
