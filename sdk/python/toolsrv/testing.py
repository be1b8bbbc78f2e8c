"""Calls tools as a client would, under an ordinary Python: for the tests of a script.

from toolsrv import testing
import hello

def test_greet():
    assert testing.call(hello.greet, name="Ada") == "Hello, Ada!"

def test_examples():
    testing.examples(hello)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from . import _double
from . import http as _http
from ._call import Compiled
from ._check import check, filled
from ._errors import ToolError
from ._field import MISSING
from ._host import doubles, listeners
from ._manifest import Script, tools_of
from ._tool import tools


def call(tool: Callable[..., Any], arguments: dict[str, Any] | str | None = None, /, **more: Any) -> Any:
    """Calls a tool with arguments as JSON has them, and returns its result as JSON has it.

    The arguments are checked against the schema, and what they leave out is filled in, as the server does. A ToolError is raised as it
    is, and one with the code "invalid_arguments" where the server would refuse the arguments.
    """
    given: dict[str, Any] = json.loads(arguments) if isinstance(arguments, str) else arguments or {}
    compiled = _compiled(tool)
    given = {**given, **more}
    definitions = compiled.parameters.get("$defs", {})
    wrong = check(compiled.parameters, given, definitions)
    if wrong:
        raise ToolError(wrong, code="invalid_arguments", status=422)
    with _double.limited(compiled.tool):
        return json.loads(compiled.run(json.dumps(filled(compiled.parameters, given, definitions))))


def progress(
    tool: Callable[..., Any], arguments: dict[str, Any] | str | None = None, /, **more: Any
) -> tuple[Any, list[tuple[float, float, str]]]:
    """Does what call does, and also returns what the tool reports: each done, total and message."""
    reports: list[tuple[float, float, str]] = []

    def hear(done: float, total: float, message: str) -> None:
        reports.append((done, total, message))

    listeners.append(hear)
    try:
        return call(tool, arguments, **more), reports
    finally:
        listeners.remove(hear)


@contextmanager
def grant(
    *,
    http: Callable[[_http.Request], _http.Response] | None = None,
    kv: MutableMapping[str, bytes] | None = None,
    secrets: Mapping[str, str | bytes] | None = None,
    settings: Any = None,
    tools: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
) -> Iterator[None]:
    """Has tools find what stands in for the world, as long as the block lasts.

        with testing.grant(http=lambda request: http.Response(200, json={"rain": 3}), kv={}):
            assert testing.call(weather.today, city="Ulm") == "rain"

    `http` answers requests, those of urllib and http.client too. `kv` holds values, which a test may look at afterwards. A tool of `tools`
    takes its arguments as a dict; a ToolError that it raises is its own. What [call] calls may use what the tool declares that it needs.
    """
    double = _double.Double(http, kv, secrets, settings, tools)
    doubles.append(double)
    try:
        with _double.wired():
            yield
    finally:
        doubles.remove(double)


def examples(script: ModuleType) -> None:
    """Calls each tool of a script with its examples, and asserts that the results are theirs."""
    found = tools_of(script)
    assert found, f"{script.__name__} has no tools"
    for tool in found:
        for number, example in enumerate(tool.options.examples, 1):
            got = call(tool.function, example.arguments)
            if example.result is not MISSING:
                assert got == example.result, f"example {number} of {tool.options.name}: got {got!r}, want {example.result!r}"


def manifest(script: ModuleType) -> dict[str, Any]:
    """Returns what a tool file of a script says of itself. Raises a DeclarationError for what can't be built."""
    return Script(script).manifest()


def _compiled(function: Callable[..., Any]) -> Compiled:
    for tool in tools:
        if tool.function is function:
            return Compiled(tool)
    raise TypeError(f"{function!r:.80} is not a tool: put @tool above it")
