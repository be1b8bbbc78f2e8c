"""The Python guest of the conformance kit: testdata/abi/README.md says what its tools do."""

import os
import secrets
import sys
import time
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from toolsrv import Field, Icon, ToolError, log, module, progress, time_left, tool

module(namespace="conformance", version="1.0.0")

Signed = int
Unsigned = Annotated[int, Field(ge=0)]
Float = float
calls = 0


@tool(
    title='Return "the" value',
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
    icons=[
        Icon("https://example.com/echo.svg", mime_type="image/svg+xml", sizes=["any"], theme="dark"),
        Icon("data:image/png;base64,iVBORw0KGgo="),
    ],
)
def echo(value: Any) -> Any:
    """Return the value."""
    return value


@tool
def text(text: str) -> str:
    """Return the text."""
    return text


@dataclass
class Numbers:
    int: Signed = 0
    uint: Unsigned = 0
    float: Float = 0


@tool
def numbers(int: Signed = 0, uint: Unsigned = 0, float: Float = 0) -> Numbers:
    """Return the numbers."""
    return Numbers(int, uint, float)


@dataclass
class Inner:
    amount: float
    unit: str = "kg"


@dataclass
class Parcel:
    name: str = "world"
    count: int = 3
    tags: Annotated[list[str], Field(default=["a", "b"])] = field(default_factory=list)
    inner: Inner | None = None


@tool
def defaults(name: str = "world", count: int = 3, tags: list[str] = ["a", "b"], inner: Inner | None = None) -> Parcel:
    """Return the arguments."""
    return Parcel(name, count, tags, inner)


@dataclass
class Tree:
    name: str
    children: list["Tree"] = field(default_factory=list)


@tool
def tree(name: str, children: list[Tree] = []) -> Tree:
    """Return the tree."""
    return Tree(name, children)


@tool
def empty() -> dict:
    """Return an object without members."""
    return {}


@tool
def null():
    """Return null."""


@tool(name="list")
def no_elements() -> list[int]:
    """Return a list without elements."""
    return []


@tool
def fail(message: str, code: str = "", status: int = 0, data: Annotated[Any, Field(default_factory=lambda: None)] = None) -> dict:
    """Fail as told."""
    error = ToolError(message, code=code, data=data)
    error.status = status or 400
    raise error


@dataclass
class Line:
    level: Literal["debug", "info", "warn", "error"]
    text: str


@tool(name="log")
def write(lines: list[Line]) -> dict:
    """Log the lines."""
    levels = {"debug": log.debug, "info": log.info, "warn": log.warning, "error": log.error}
    for line in lines:
        levels[line.level](line.text)
    return {}


@tool
def panic(text: str) -> dict:
    """Panic with the text."""
    print(text, file=sys.stderr, flush=True)
    os.abort()


@tool
def count() -> int:
    """Count the calls of this sandbox."""
    global calls
    calls += 1
    return calls


@tool
def random() -> str:
    """Return what no other call returns."""
    return secrets.token_hex(16)


@tool
def clock() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@tool
def deadline() -> int:
    """Return how many milliseconds the call has left."""
    return round(time_left() * 1000)


@dataclass
class Report:
    done: float
    total: float = 0
    message: str = ""


@tool(name="progress")
def report(reports: list[Report]) -> dict:
    """Report the progress."""
    for entry in reports:
        progress(entry.done, entry.total, entry.message)
    return {}


@tool
def rewrite() -> str:
    """Write one output, then return another."""
    import _toolsrv

    _toolsrv.output(b'"first"')
    return "second"


@tool
def repeat(text: str, times: Annotated[int, Field(ge=0, le=10_000_000)]) -> str:
    """Return the text so many times."""
    return text * times


@tool
def spin() -> dict:
    """Never return."""
    while True:
        pass


@tool
def hoard() -> dict:
    """Take memory until there is none."""
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
