"""Does what programs do with their settings: starts or reaches the server that they name, and calls math-add. Standard input
has a JSON object with the settings of each program, as `toolsrv mcp --print-config` prints them; the argument is the token
that the programs know. It writes a line of JSON for each, as client.py does.
"""

import asyncio
import json
import re
import sys
import tomllib
import traceback

from fastmcp import Client


def entry(text):
    """The entry of the one server in the settings, and its form in all clients."""
    settings = json.loads(text) if text.startswith("{") else tomllib.loads(text)
    table = next(key for key in settings if key != "inputs")
    (server,) = settings[table].values()
    return server


def config(server, token):
    """The entry as FastMCP has it: the same as Claude Code's."""
    if "command" in server:
        return {"command": server["command"], "args": server["args"]}
    url = server.get("url") or server.get("httpUrl") or server.get("serverUrl")
    if "bearer_token_env_var" in server:
        return {"url": url, "headers": {"Authorization": "Bearer " + token}}
    header = re.sub(r"\$\{[^}]*\}|TOOLSRV_TOKEN", token, server["headers"]["Authorization"])
    return {"url": url, "headers": {"Authorization": header}}


async def attempt(name, text, token):
    error = {}
    try:
        async with asyncio.timeout(60), Client({"mcpServers": {"toolsrv": config(entry(text), token)}}) as client:
            result = await client.call_tool("math-add", {"a": 2, "b": 3})
            assert result.content[0].text == "5", result
    except Exception:
        error = {"error": f"{traceback.format_exc()}\n{text}"}
    print(json.dumps({"check": name} | error), flush=True)


async def main(programs, token):
    for name, text in programs.items():
        await attempt(name, text, token)


asyncio.run(main(json.load(sys.stdin), sys.argv[1]))
