import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main():
    client = MultiServerMCPClient({"toolsrv": {"transport": "http", "url": "http://localhost:8000/mcp"}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    message = await tools["math-add"].ainvoke({"type": "tool_call", "id": "1", "name": "math-add", "args": {"a": 2, "b": 3}})
    print(message.content[0]["text"])


asyncio.run(main())
