import asyncio

from anthropic import AsyncAnthropic
from anthropic.lib.tools.mcp import async_mcp_tool
from mcp import Client


async def main():
    async with Client("http://localhost:8000/mcp") as server:
        runner = AsyncAnthropic().beta.messages.tool_runner(
            model="claude-sonnet-5",
            max_tokens=1024,
            messages=[{"role": "user", "content": "What is 2 + 3?"}],
            tools=[async_mcp_tool(tool, server) for tool in (await server.list_tools()).tools],
        )
        message = await runner.until_done()
        print(message.content[-1].text)


asyncio.run(main())
