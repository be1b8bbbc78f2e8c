"""Tries a running server with a Python client, and writes one line of JSON for each check: {"check": …} where it holds,
and {"check": …, "error": …} where it doesn't. Its argument is JSON:

    {"client": "mcp" | "mcp1" | "fastmcp", "era": "legacy" | "auto" | a version, "url": …}    over HTTP
    {"client": …, "era": …, "command": [program, argument…]}                                 over stdio
    "from": a file of tools, "to": where it is put while the client is connected, "appears": a tool in it

The checks are those of client.mjs. mcp1 is line 1 of the SDK, which needs an environment of its own.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import sys
import traceback
from datetime import timedelta

import anyio

SECONDS = 20  # until a check that hangs has failed
MODERN = "2026-07-28"  # the first version that announces changes by subscriptions/listen


def plain(value):
    """A model as it went over the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


class MCP:
    """The client of the SDK, line 2."""

    def __init__(self, options):
        from mcp import Client, StdioServerParameters

        self.changed = anyio.Event()
        self.client = Client(
            options["url"] if "url" in options else StdioServerParameters(command=options["command"][0], args=options["command"][1:], env=dict(os.environ)),
            mode=options["era"],
            message_handler=self.hear,
            cache=None,
        )

    async def hear(self, message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.changed.set()

    @contextlib.asynccontextmanager
    async def connected(self):
        async with self.client:
            yield

    async def list(self):
        return [plain(tool) for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, progress=None):
        return plain(await self.client.call_tool(name, arguments, progress_callback=progress))

    @contextlib.asynccontextmanager
    async def change(self):
        """Yields what waits until the server has said that its tools have changed."""
        if self.client.protocol_version < MODERN:
            yield self.changed.wait
            return
        async with self.client.listen(tools_list_changed=True) as subscription:
            yield subscription.__aiter__().__anext__


class FastMCP(MCP):
    """FastMCP's client."""

    def __init__(self, options):
        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport

        self.changed = anyio.Event()
        self.client = Client(
            options["url"] if "url" in options else StdioTransport(options["command"][0], options["command"][1:], env=dict(os.environ), keep_alive=False),
            mode=options["era"],
            message_handler=self.hear,
        )

    async def list(self):
        return [plain(tool) for tool in await self.client.list_tools()]

    async def call(self, name, arguments, progress=None):
        return plain(await self.client.call_tool_mcp(name, arguments, progress_handler=progress))

    @contextlib.asynccontextmanager
    async def change(self):
        from mcp.client.subscriptions import listen

        if self.client.protocol_version < MODERN:
            yield self.changed.wait
            return
        async with listen(self.client.session, tools_list_changed=True) as subscription:
            yield subscription.__aiter__().__anext__


class MCP1(MCP):
    """The session of the SDK, line 1."""

    def __init__(self, options):
        self.options = options
        self.changed = anyio.Event()

    async def hear(self, message):
        await super().hear(getattr(message, "root", message))

    @contextlib.asynccontextmanager
    async def connected(self):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        if "url" in self.options:
            transport = streamable_http_client(self.options["url"])
        else:
            program, *arguments = self.options["command"]
            transport = stdio_client(StdioServerParameters(command=program, args=arguments, env=dict(os.environ)))
        async with transport as streams, ClientSession(streams[0], streams[1], message_handler=self.hear) as self.client:
            await self.client.initialize()
            yield

    async def call(self, name, arguments, progress=None):
        from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

        request = self.client._request_id  # of the request to come
        try:
            return plain(await self.client.call_tool(name, arguments, read_timeout_seconds=timedelta(seconds=SECONDS), progress_callback=progress))
        except anyio.get_cancelled_exc_class():
            # This line does not tell the server by itself.
            with anyio.CancelScope(shield=True):
                told = CancelledNotification(params=CancelledNotificationParams(requestId=request, reason="no longer needed"))
                await self.client.send_notification(ClientNotification(told))
            raise

    @contextlib.asynccontextmanager
    async def change(self):
        yield self.changed.wait


def first(result, kind):
    """The first block of a kind."""
    for block in result["content"]:
        if block["type"] == kind:
            return block
    raise AssertionError(f"no block {kind} in {result['content']}")


def code(result):
    """Why a call failed, in structured form."""
    return result["_meta"]["io.github.toolsrv/error"]["code"]


class Checks:
    def __init__(self, client, options):
        self.client, self.options = client, options

    async def list(self):
        tools = await self.client.list()
        names = [tool["name"] for tool in tools]
        assert names == sorted(names), f"names are not sorted: {names}"
        assert "test_simple_text" in names, names
        for tool in tools:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]), tool["name"]
            assert tool.get("description"), f"{tool['name']} has no description"
            assert tool["inputSchema"]["type"] == "object", f"{tool['name']}: inputSchema"

    async def call(self):
        result = await self.client.call("test_simple_text", {})
        assert not result.get("isError"), result
        assert "simple text response" in first(result, "text")["text"], result

    async def structured(self):
        arguments = {"region": "west", "count": 3}
        result = await self.client.call("test_custom_header", arguments)
        assert result["structuredContent"] == arguments, result
        assert json.loads(first(result, "text")["text"]) == arguments, result

    async def wrongArguments(self):
        result = await self.client.call("test_custom_header", {"region": 5, "more": True})
        assert result["isError"], result
        text = result["content"][0]["text"]
        for word in ("region", "string", "more"):
            assert word in text, f"no {word} in {text}"
        assert code(result) == "invalid_arguments", result

    async def toolError(self):
        result = await self.client.call("test_error_handling", {})
        assert result["isError"] and "intentionally returns an error" in result["content"][0]["text"], result
        assert code(result) == "tool_error", result

    async def unknownTool(self):
        try:
            result = await self.client.call("no_such_tool", {})
        except Exception as error:
            error = getattr(error, "error", error)
            assert error.code == -32602, error
            return
        raise AssertionError(f"got {result}, want an error")

    async def disabledTool(self):
        result = await self.client.call("test_logging_tool", {})
        assert result["isError"] and "being repaired" in result["content"][0]["text"], result
        assert code(result) == "tool_disabled", result

    async def image(self):
        result = await self.client.call("test_image_content", {})
        image = first(result, "image")
        assert image["mimeType"] == "image/png", image
        assert base64.b64decode(image["data"])[1:4] == b"PNG", image
        assert not any(image["data"] in block.get("text", "") for block in result["content"]), "the bytes are repeated as text"

    async def audio(self):
        audio = first(await self.client.call("test_audio_content", {}), "audio")
        assert audio["mimeType"] == "audio/wav", audio
        assert base64.b64decode(audio["data"])[:4] == b"RIFF", audio

    async def mixed(self):
        result = await self.client.call("test_multiple_content_types", {})
        assert sorted(block["type"] for block in result["content"]) == ["image", "resource", "text"], result
        resource = first(result, "resource")["resource"]
        assert resource["mimeType"] == "application/json", resource
        text = resource["text"] if "text" in resource else base64.b64decode(resource["blob"]).decode()
        assert text == '{"test":"data","value":123}', resource

    async def progress(self):
        seen = []

        async def hear(progress, total, message):
            seen.append((progress, total))

        await self.client.call("test_tool_with_progress", {}, hear)
        assert seen == [(0, 100), (50, 100), (100, 100)], seen

    # test_spin computes for ever, and only one call of it may run: that another begins shows that the first has ended.
    async def cancellation(self):
        async with self.spin() as outcome:
            assert outcome == "Waiting", outcome
            second = await self.client.call("test_spin", {})
            assert code(second) == "overloaded", second
        with anyio.fail_after(2):
            while True:
                async with self.spin() as outcome:
                    if outcome == "Waiting":
                        return

    @contextlib.asynccontextmanager
    async def spin(self):
        """Calls test_spin and yields the message of its first progress, or how the call ended before. In the end it is cancelled."""
        send, receive = anyio.create_memory_object_stream(8)

        async def hear(progress, total, message):
            send.send_nowait(message)

        async def call():
            send.send_nowait(await self.client.call("test_spin", {}, hear))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            yield await receive.receive()
            tasks.cancel_scope.cancel()

    async def changes(self):
        async with self.client.change() as changed:
            shutil.copyfile(self.options["from"], self.options["to"] + ".tmp")
            os.rename(self.options["to"] + ".tmp", self.options["to"])
            await changed()
        names = [tool["name"] for tool in await self.client.list()]
        assert self.options["appears"] in names, names
        result = await self.client.call(self.options["appears"], {"a": 2, "b": 3})
        assert not result.get("isError"), result


def report(check, error=None):
    print(json.dumps({"check": check} | ({"error": error} if error else {})), flush=True)


async def attempt(check, work):
    try:
        with anyio.fail_after(SECONDS):
            await work()
        report(check)
    except Exception:
        report(check, traceback.format_exc())


async def main(options):
    client = {"mcp": MCP, "mcp1": MCP1, "fastmcp": FastMCP}[options["client"]](options)
    checks = Checks(client, options)
    step = "connect"
    try:
        async with client.connected():
            report(step)
            for name in ("list", "call", "structured", "wrongArguments", "toolError", "unknownTool", "disabledTool", "image", "audio", "mixed", "progress", "cancellation", "changes"):
                await attempt(name, getattr(checks, name))
            step = "close"
        report(step)
    except Exception:
        report(step, traceback.format_exc())


anyio.run(main, json.loads(sys.argv[1]))
