"""Has a tool server that is not ours count the words of texts: others.py WHAT FILE, with a list of texts in JSON on standard input."""

import asyncio
import json
import sys


def fastmcp(file):
    from fastmcp import Client

    async def ask():
        async with Client(file) as client:
            return [(await client.call_tool("count_words", {"text": text})).data for text in texts]

    return asyncio.run(ask())


def component(file):
    """Calls a component as Wassette does, which has Wasmtime in it."""
    from wasmtime import Config, Engine, Store, WasiConfig
    from wasmtime.component import Component, Linker

    config = Config()
    config.cranelift_opt_level = "none"  # 18 MB, with CPython: compiled in a third of the time
    store = Store(Engine(config))
    store.set_wasi(WasiConfig())
    linker = Linker(store.engine)
    linker.add_wasip2()
    count = linker.instantiate(store, Component.from_file(store.engine, file)).get_func(store, "count-words")
    answers = []
    for text in texts:
        answers.append(count(store, text))
        count.post_return(store)
    return answers


def plugin(file):
    from extism import Plugin

    with open(file, "rb") as f:
        return Plugin(f.read(), wasi=True)


def extism(file):
    called = plugin(file)
    return [int(called.call("count_words", text)) for text in texts]


def hyper(file):
    """Calls what hyper-mcp calls, with what it passes: https://github.com/hyper-mcp-rs/hyper-mcp, src/plugin.rs."""
    called = plugin(file)
    context = {"id": 1, "_meta": {}}
    tool = json.loads(called.call("list_tools", json.dumps({"context": context})))["tools"][0]
    assert tool["name"] == "count_words" and tool["inputSchema"]["required"] == ["text"], tool
    answers = []
    for text in texts:
        request = {"name": "count_words", "arguments": {"text": text}}
        answer = json.loads(called.call("call_tool", json.dumps({"request": request, "context": context})))
        answers.append(int(answer["content"][0]["text"]))
    return answers


texts = json.load(sys.stdin)
print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
