import asyncio

from langchain.agents import create_agent
from langchain.mcp import MCPAdapter


async def main():
    async with MCPAdapter("http://localhost:8000/mcp") as adapter:
        agent = create_agent("anthropic:claude-sonnet-5", await adapter.list_tools())
        answer = await agent.ainvoke({"messages": [{"role": "user", "content": "What is 2 + 3?"}]})
        print(answer["messages"][-1].text)


asyncio.run(main())
