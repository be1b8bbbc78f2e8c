"""Runs Python that a model wrote: each call in an interpreter of its own, with nothing granted but, for one of the tools, other tools."""

import ast
import io
import linecache
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Annotated, Any

from toolsrv import Example, Field, Needs, module, tool, tools

module(namespace="code", version="1.0.0")

NAME = "<code>"
MAX_PRINTED = 64 << 10
MAX_DEPTH = 100


@dataclass
class Failure:
    """What ended the code."""

    type: str
    message: str
    traceback: Annotated[str, Field(description="With the lines of the code.")]


@dataclass
class Outcome:
    """What the code did."""

    result: Annotated[Any, Field(description="The value of the last line, if that is an expression. What JSON can't express is its repr.")]
    stdout: Annotated[str, Field(description="What was printed.")]
    error: Failure | None


@tool(
    name="python",
    title="Run Python",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {"code": "from statistics import mean\nprint(len(input))\nmean(input)", "input": [1, 2, 6]},
            result={"result": 3, "stdout": "3\n", "error": None},
        ),
        Example(
            {"code": "1 / 0"},
            result={
                "result": None,
                "stdout": "",
                "error": {
                    "type": "ZeroDivisionError",
                    "message": "division by zero",
                    "traceback": 'File "<code>", line 1\n    1 / 0\nZeroDivisionError: division by zero\n',
                },
            },
        ),
    ],
)
def run(code: Annotated[str, Field(max_length=200_000)], input: Any = None) -> Outcome:
    """Runs Python code and returns the value of its last line, what it printed, and its error if it raised one.

    The code begins in a new interpreter, has the standard library, and reaches no file and no network. Nothing is left of it afterwards.

    Args:
        code: The program. If its last line is an expression, that is the result.
        input: Any data for the code, which finds it in the variable `input`.
    """
    return outcome(code, {"input": input})


@tool(
    name="python-tools",
    title="Run Python with tools",
    read_only=True,
    open_world=False,
    needs=Needs(tools=["units/convert", "time/add", "time/convert", "time/difference", "math/add"]),
    examples=[
        Example(
            {"code": "round(tools.call('units/convert', {'value': 5, 'from': 'km', 'to': 'mi'})['value'], 2)"},
            {"result": 3.11, "stdout": "", "error": None},
        )
    ],
)
def run_with_tools(code: Annotated[str, Field(max_length=200_000)], input: Any = None) -> Outcome:
    """Runs Python code as code/python does, which may also call other tools, as often as it likes, and compute with their results.

    `tools.call("units/convert", {"value": 5, "from": "km", "to": "mi"})` returns the result of that tool, or raises an error. The tools are
    units/convert, time/add, time/convert, time/difference and math/add.

    Args:
        code: The program. If its last line is an expression, that is the result.
        input: Any data for the code, which finds it in the variable `input`.
    """
    return outcome(code, {"input": input, "tools": tools})


def outcome(code: str, variables: dict[str, Any]) -> Outcome:
    """Runs code with variables of its own."""
    printed = Printed()
    result, error = None, None
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            result = plain(execute(code, {"__name__": "__main__", "__builtins__": __builtins__, **variables}))
        except SystemExit as e:
            if e.code not in (None, 0):
                error = failure(e, code)
        except BaseException as e:  # of the code, whatever it is
            error = failure(e, code)
    return Outcome(result, whole(printed.getvalue()), error)


def execute(code: str, variables: dict[str, Any]) -> Any:
    """Runs the code, and returns the value of its last line."""
    tree = ast.parse(code, NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NAME, "exec"), variables)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), NAME, "eval"), variables)


def failure(error: BaseException, code: str) -> Failure:
    """Returns an error with the lines of the code that led to it."""
    linecache.cache[NAME] = len(code), None, code.splitlines(True), NAME
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
    lines = []
    for frame in frames if len(frames) <= 20 else frames[:10] + frames[-10:]:
        where = "" if frame.name == "<module>" else f", in {frame.name}"
        lines.append(f'File "{NAME}", line {frame.lineno}{where}\n    {frame.line}\n')
    if len(frames) > 20:
        lines.insert(10, f"... {len(frames) - 20} more\n")
    try:
        message = str(error)
        lines += traceback.format_exception_only(error)
    except BaseException:  # of a __str__ of the code
        message = "its text can't be had"
    return Failure(type(error).__name__, whole(message[:10_000]), whole("".join(lines)[:20_000]))


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value as JSON can express it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, int):
        return value if value.bit_length() < 14_000 else hex(value)  # Python writes no longer ones as decimals
    if isinstance(value, float):
        return value if value - value == 0 else repr(value)  # infinity and NaN are not in JSON
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, dict):
        return {whole(key if isinstance(key, str) else repr(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    return whole(repr(value))


def whole(text: str) -> str:
    """Returns a text without halves of characters, which JSON can't hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Printed(io.StringIO):
    """Keeps the beginning of what is printed."""

    def write(self, text: str) -> int:
        room = MAX_PRINTED - self.tell()
        if room > 0:
            super().write(text if len(text) <= room else text[:room] + "\n...")
        return len(text)
