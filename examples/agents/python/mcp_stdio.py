import asyncio

from mcp import Client, StdioServerParameters


async def main():
    async with Client(StdioServerParameters(command="toolsrv", args=["mcp", "tools"])) as client:
        result = await client.call_tool("math-add", {"a": 2, "b": 3})
        print(result.content[0].text)


asyncio.run(main())
