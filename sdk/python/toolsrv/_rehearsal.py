"""Does once what every script makes the engine do, before the engine's own snapshot: what that prepares, no tool has to keep for itself."""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Callable
from typing import Any

from . import _guest
from ._bundle import Finder
from ._host import host
from ._needs import scripts
from ._tool import modules, tools

_SCRIPT = '''
import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

from toolsrv import Example, Field, Icon, ToolError, log, module, progress, time_left, tool

module(namespace="rehearsal", version="1.0.0")


class Color(Enum):
    RED = "red"


class Size(TypedDict):
    width: float
    height: float


@dataclass
class Point:
    """A place.

    Attributes:
        x: To the right.
    """

    x: float
    y: Annotated[float, Field(ge=0)] = 0
    names: list[str] = field(default_factory=list)


@tool(title="Add", read_only=True, icons=[Icon("https://example.com/a.png")], examples=[Example({"a": 1, "b": 2}, 3)])
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def draw(
    at: Point,
    color: Color = Color.RED,
    style: Literal["short", "long"] = "short",
    sizes: dict[str, Size] | None = None,
    when: datetime.datetime | None = None,
    price: Decimal = Decimal("1.5"),
    rest: Any = None,
    tags: list[str] = [],
) -> list[Point]:
    """Draws.

    Args:
        style: How.
    """
    print("drawing")
    log.debug("at %s", at)
    progress(1, 2)
    time_left()
    if style == "long":
        raise ToolError("no", code="no", status=409, data={"a": 1})
    return [at] if at.x else at.none


@tool
async def wait(count: Annotated[int, Field(ge=0, description="How often.")]) -> str:
    """Waits."""
    import asyncio

    await asyncio.sleep(0)
    return "x" * count
'''

_CALLS = (
    (0, {"a": 1.5, "b": 2}),
    (1, {"at": {"x": 1, "names": ["a"]}, "sizes": {"a": {"width": 1, "height": 2}}, "when": "2024-02-29T12:00:00Z"}),
    (1, {"at": {"x": 1}, "style": "long"}),
    (1, {"at": {"x": 0}}),
    (1, {"at": {"x": 0}, "when": "2024-02-30T12:00:00Z"}),
    (2, {"count": 3}),
)

_ROUNDS = 20


def rehearse() -> None:
    """Loads, warms, describes and calls a script of its own, and forgets it."""
    streams = sys.stdout, sys.stderr
    given = b""
    functions: dict[str, Callable[..., Any]] = {
        "input": lambda: given,
        "output": lambda data: None,
        "fail": lambda data: None,
        "log": lambda level, text: None,
        "progress": lambda done, total, text: None,
    }
    own = {name: getattr(host, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(host, name, function)
        for script in (_SCRIPT, "def broken(:\n", "import nothing_like_that\n"):
            _guest.load(_packed("rehearsal.py", script.encode()))
            _guest.warm()
            _guest.describe()
            for _ in range(_ROUNDS):
                for number, arguments in _CALLS:
                    given = json.dumps(arguments).encode()
                    _guest.call(number)
            _forget()
    finally:
        for name, function in own.items():
            setattr(host, name, function)
        sys.stdout, sys.stderr = streams
        _forget()


def _packed(name: str, data: bytes) -> bytes:
    size = len(name.encode()).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return b"TSB1" + (1).to_bytes(4, "little") + size + name.encode() + data


def _forget() -> None:
    """Makes the SDK what it was before a script was loaded."""
    tools.clear()
    modules.clear()
    scripts.clear()
    _guest.reset()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    sys.modules.pop("rehearsal", None)
    linecache.clearcache()
