"""Turns the tools of a server into tool definitions for the model APIs, and has the client libraries of these check them. It
takes the tools from tools/list, from /openapi.json and from LangChain.

Its arguments are the server's address and, as JSON, the names of the tools that `toolsrv check --models` says Anthropic's
strict mode takes: its library, which makes schemas for that mode, must know what to do with theirs.
"""

import asyncio
import json
import sys
import urllib.request

import jsonschema
from anthropic import transform_schema
from anthropic.types import ToolParam
from google.genai import types
from langchain.mcp import MCPAdapter
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import Client
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter


def check(name, description, schema):
    """Makes a definition for each API. The libraries raise where one is wrong."""
    jsonschema.Draft202012Validator.check_schema(schema)
    function = {"name": name, "description": description, "parameters": schema, "strict": False}
    TypeAdapter(FunctionToolParam).validate_python({"type": "function", **function})
    TypeAdapter(ChatCompletionToolParam).validate_python({"type": "function", "function": function})
    TypeAdapter(ToolParam).validate_python({"name": name, "description": description, "input_schema": schema})
    types.FunctionDeclaration(name=name, description=description, parameters_json_schema=schema)


def inline(schema, components):
    """A schema of the document as it stands alone: what it refers to is in its $defs."""
    definitions = {}

    def copy(value):
        if isinstance(value, list):
            return [copy(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = {key: copy(item) for key, item in value.items()}
        to = value.get("$ref")
        if isinstance(to, str) and to.startswith("#/components/schemas/"):
            name = to.rpartition("/")[2]
            value["$ref"] = "#/$defs/" + name
            if name not in definitions:
                definitions[name] = None  # on the way
                definitions[name] = copy(components[name])
        return value

    schema = copy(schema)
    return {**schema, "$defs": definitions} if definitions else schema


async def main(server, strict):
    async with Client(server + "/mcp") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in listed.values():
        check(tool.name, tool.description, tool.input_schema)
    for name in strict:
        transform_schema(listed[name].input_schema)

    document = json.load(urllib.request.urlopen(server + "/openapi.json"))
    operations = {item["post"]["operationId"]: item["post"] for item in document["paths"].values() if "post" in item}
    assert sorted(operations) == sorted(listed), f"{sorted(operations)} in /openapi.json, {sorted(listed)} in tools/list"
    for name, operation in operations.items():
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        check(name, operation["description"], inline(body, document["components"]["schemas"]))

    async with MCPAdapter(server + "/mcp") as adapter:
        for tool in await adapter.list_tools():
            function = convert_to_openai_tool(tool)["function"]
            check(function["name"], function["description"], function["parameters"])
            assert set(function["parameters"]["properties"]) == set(listed[tool.name].input_schema.get("properties", {})), tool.name
    print(len(listed), "tools")


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
