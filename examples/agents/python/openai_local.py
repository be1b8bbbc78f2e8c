import asyncio
import json

from mcp import Client
from openai import AsyncOpenAI


async def main():
    async with Client("http://localhost:8000/mcp") as server:
        tools = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": False}
            for tool in (await server.list_tools()).tools
        ]
        model = AsyncOpenAI()
        conversation = [{"role": "user", "content": "What is 2 + 3?"}]
        while True:
            response = await model.responses.create(model="gpt-5", input=conversation, tools=tools)
            conversation += response.output
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                result = await server.call_tool(call.name, json.loads(call.arguments))
                text = "\n".join(block.text for block in result.content if block.type == "text")
                conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
        print(response.output_text)


asyncio.run(main())
