"""What tests of scripts use: toolsrv.testing, and what a tool is given by the host, under an ordinary Python."""

import logging
import math

import pytest

from toolsrv import DeclarationError, ToolError, log, testing, time_left

SCRIPT = """
from typing import Annotated
from toolsrv import Example, Field, ToolError, log, module, progress, tool

module(namespace="texts", version="1.0.0")

@tool(examples=[Example({"text": "abc"}, "cba"), Example({"text": "x"})])
def reverse(text: Annotated[str, Field(min_length=1)], times: int = 1) -> str:
    "Reverses."
    for i in range(times):
        progress(i, times, "turning")
    log.info("%d times", times)
    if text == "stop":
        raise ToolError("stopped", code="stop", status=409)
    return text[::-1] if times % 2 else text
"""


def test_call(script):
    texts = script(SCRIPT)
    assert texts.reverse("abc") == "cba"
    assert testing.call(texts.reverse, text="abc") == "cba"
    assert testing.call(texts.reverse, {"text": "abc", "times": 2}) == "abc"
    assert testing.call(texts.reverse, '{"text": "ä"}') == "ä"
    testing.examples(texts)
    with pytest.raises(ToolError, match="stopped") as stopped:
        testing.call(texts.reverse, text="stop")
    assert (stopped.value.code, stopped.value.status) == ("stop", 409)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "text: it is missing"),
        ({"text": ""}, "text: it has 0 characters, at least 1 are wanted"),
        ({"text": 5}, "text: 5 is not of type string"),
        ({"text": "a", "more": 1}, "more: it is not known"),
        ({"text": "a", "times": True}, "times: true is not of type integer"),
        ({"text": "a", "times": 1.5}, "times: 1.5 is not of type integer"),
    ],
)
def test_refused(script, arguments, message):
    texts = script(SCRIPT)
    with pytest.raises(ToolError) as refused:
        testing.call(texts.reverse, arguments)
    assert str(refused.value) == message
    assert (refused.value.code, refused.value.status) == ("invalid_arguments", 422)


def test_progress(script):
    texts = script(SCRIPT)
    assert testing.progress(texts.reverse, text="ab", times=2) == ("ab", [(0.0, 2.0, "turning"), (1.0, 2.0, "turning")])


def test_manifest(script):
    texts = script(SCRIPT)
    got = testing.manifest(texts)
    assert (got["abi"], got["namespace"], got["version"]) == (1, "texts", "1.0.0")
    assert got["tools"][0]["examples"] == [{"arguments": {"text": "abc"}, "result": "cba"}, {"arguments": {"text": "x"}}]


def test_wrong_examples(script):
    texts = script(SCRIPT.replace('"cba"', '"abc"'))
    with pytest.raises(AssertionError, match="example 1 of reverse: got 'cba', want 'abc'"):
        testing.examples(texts)


def test_not_a_tool(script):
    with pytest.raises(TypeError, match="is not a tool: put @tool above it"):
        testing.call(len, {})
    with pytest.raises(AssertionError, match="has no tools"):
        testing.examples(script("x = 1"))


def test_a_mistake_has_its_place(script):
    texts = script("from toolsrv import tool\n@tool\ndef f(a: type):\n    'F.'\n")
    with pytest.raises(DeclarationError) as wrong:
        testing.manifest(texts)
    assert ':3:10: tool "f": a: type has no form in JSON: use a text, or a Literal of names\n    def f(a: type):\n' in str(wrong.value)


def test_log_and_time(caplog):
    with caplog.at_level(logging.DEBUG, "toolsrv"):
        log.debug("a %s", 1)
        log.warning("b")
        log.error({"c": 1})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "a 1"),
        ("WARNING", "b"),
        ("ERROR", "{'c': 1}"),
    ]
    assert caplog.records[0].filename == "test_testing.py"
    assert time_left() == math.inf
