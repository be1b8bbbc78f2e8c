import asyncio

from google import genai
from google.genai import types
from mcp import Client


async def main():
    async with Client("http://localhost:8000/mcp") as server:
        declarations = [
            types.FunctionDeclaration(name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema)
            for tool in (await server.list_tools()).tools
        ]
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declarations)])
        chat = genai.Client().aio.chats.create(model="gemini-3-flash", config=config)
        response = await chat.send_message("What is 2 + 3?")
        while response.function_calls:
            parts = []
            for call in response.function_calls:
                result = await server.call_tool(call.name, call.args)
                text = "\n".join(block.text for block in result.content if block.type == "text")
                parts.append(types.Part.from_function_response(name=call.name, response={"result": text}))
            response = await chat.send_message(parts)
        print(response.text)


asyncio.run(main())
