"""What an author can get wrong in a declaration: each is an error at build, with the place and the remedy."""

import json
import pathlib

import pytest

from toolsrv import DeclarationError, Icon, tool
from toolsrv._tool import Options

HEAD = """
from __future__ import annotations
import asyncio, collections, dataclasses, datetime, enum, re, socket, typing
from collections.abc import *
from typing import *
from toolsrv import *
"""

# declaration, message after the place, what the caret points at, remedy and all: the line of the message is compared whole
CASES = [
    ('@tool\ndef f(a: socket.socket) -> str:\n    "F."', "a: socket has no form in JSON: make it a dataclass, or use str,", "socket.socket"),
    ('@tool\ndef f(a: list[dict[str, complex]]) -> str:\n    "F."', "a[]{}: complex has no form in JSON: use a tuple of two floats", "list[dict"),
    ('@tool\ndef f(\n    a: int,\n    b: type,\n):\n    "F."', "b: type has no form in JSON: use a text, or a Literal of names", "type"),
    ('@tool\ndef f() -> Iterator[str]:\n    "F."', "result: Iterator[str] has no form in JSON: return a list", "Iterator"),
    ('@tool\ndef f():\n    "F."\n    yield 1', "it yields, and a result is sent as a whole: return a list", "f():"),
    ('@tool\nasync def f():\n    "F."\n    yield 1', "it yields", "f():"),
    ('@tool\ndef f(a) -> str:\n    "F."', "a has no type: write one, as in a: str", "a)"),
    ('class A:\n @tool\n def f(self) -> str:\n  "F."', "self: a tool is a function, and this is a method: move it out of its class", "self"),
    ('@tool\ndef f(*a: int):\n    "F."', "*a: a caller passes arguments by name: take a list", "int):"),
    ('@tool\ndef f(**a: int):\n    "F."', "**a: nobody could know which arguments there are: name them, write a: dict[str, Any], or", "int):"),
    ("@tool\ndef f(a: str) -> str:\n    return a", "it has no description: write a docstring", "f(a"),
    ('@tool\ndef f(a: "Nothing"):\n    "F."', 'nothing is called "Nothing" here: define it in the script, or import it', '"Nothing"'),
    ('@tool\ndef f() -> "Nothing":\n    "F."', 'nothing is called "Nothing" here', '"Nothing"'),
    ('@tool\ndef f(a: Annotated[str, Field(ge=1)]):\n    "F."', "a: ge is for a JSON integer or number, and this is a JSON string: remove ge", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field(ge=5, le=4)]):\n    "F."', "a: no value is within the minimum 5 and the maximum 4", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field(gt=5, lt=5)]):\n    "F."', "a: no value is within the exclusiveMinimum 5", "Annotated"),
    ('@tool\ndef f(a: Annotated[tuple[int, int], Field(max_length=3)]):\n    "F."', "a: max_length=3 is beyond what the type holds, which is 2", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field(multiple_of=0)]):\n    "F."', "a: multiple_of=0 is not greater than 0", "Annotated"),
    ('@tool\ndef f(a: Annotated[str, Field(pattern="(")]):\n    "F."', "a: pattern='(' is not a regular expression: ", "Annotated"),
    ('@tool\ndef f(a: Annotated[str, Field(min_length=-1)]):\n    "F."', "a: min_length=-1 is not a count: write a whole number from 0", "Annotated"),
    ('@tool\ndef f(a: Annotated[bytes, Field(content_media_type="png")]):\n    "F."', "a: content_media_type='png' is not a media type", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field(ge="1")]):\n    "F."', "a: ge='1' is not a number", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field]):\n    "F."', "a: Annotated has Field itself: write Field(…)", "Annotated"),
    ('@tool\ndef f(a: int = "x"):\n    "F."', "a: default: 'x' of type str is not an int", "int ="),
    ('@tool\ndef f(a: Annotated[int, Field(le=5)] = 6):\n    "F."', "a: its default does not fit: 6 is greater than 5", "Annotated"),
    ('@tool\ndef f(a: Literal["x"] = "y"):\n    "F."', "a: default: 'y' of type str is not one of 'x'", "Literal"),
    ('@tool\ndef f(a: Annotated[int, Field(examples=["x"])]):\n    "F."', "a: examples: 'x' of type str is not an int", "Annotated"),
    ('@tool\ndef f(a: Annotated[str, Field(max_length=1, examples=["xy"])]):\n    "F."', "a: its example does not fit: it has 2 characters", "Annotated"),
    ('@tool\ndef f(a: Annotated[int, Field(alias="b")], b: int):\n    "F."', 'b and a are both called "b": rename one', "int):"),
    ('@tool\ndef f(a: Literal[1.5]):\n    "F."', "a: Literal[1.5] has no form in JSON", "Literal"),
    ('class E(enum.Flag):\n    A = 1\n@tool\ndef f(a: E):\n    "F."', "a: E is a Flag, whose values are combined: use a set of an Enum", "E):"),
    ('class E(enum.Enum):\n    A = (1, 2)\n@tool\ndef f(a: E):\n    "F."', "a: E.A is (1, 2), which has no form in JSON: give members texts", "E):"),
    ('@tool\ndef f(a: dict[float, int]):\n    "F."', "a: float can't be the name of a member in JSON: use str, int, or an Enum", "dict"),
    ('T = TypeVar("T")\n@tool\ndef f(a: list[T]):\n    "F."', "a[]: ~T can be any type: name one", "list[T]"),
    (
        '@dataclasses.dataclass\nclass D:\n    x: dataclasses.InitVar[int]\n@tool\ndef f(a: D):\n    "F."',
        "a.x: an InitVar is no member",
        "D):",
    ),
    ('@dataclasses.dataclass\nclass D:\n    x: Nothing\n@tool\ndef f(a: D):\n    "F."', 'a: D names "Nothing", which is not known', "D):"),
    ('@dataclasses.dataclass\nclass D:\n    x: re.Pattern\n@tool\ndef f(a: list[D]):\n    "F."', "a[].x: Pattern has no form in JSON", "list[D]"),
    ('@tool\ndef f(a: int):\n    """F.\n\n    Args:\n        aa: x\n    """', 'its docstring describes "aa", which is not a parameter: did you mean "a"?', '"""F.'),
    ('@tool(name="a b")\ndef f():\n    "F."', "'a b' is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ -", "tool("),
    ('@tool(title="a\\nb")\ndef f():\n    "F."', "its title: it has line breaks", "tool("),
    ('@tool(read_only=True, destructive=True)\ndef f():\n    "F."', "it is both read-only and destructive", "tool("),
    ('@tool(read_only="yes")\ndef f():\n    "F."', "read_only='yes' is not True or False", "tool("),
    ('@tool(icons=[Icon("http://x")])\ndef f():\n    "F."', "icon 1: its src is neither an https nor a data URI", "tool("),
    ('@tool(examples=[{"a": 1}])\ndef f(a: int):\n    "F."', "example 1 is {'a': 1}: write Example({…}, result=…)", "tool("),
    ('@tool(examples=[Example({"a": "x"})])\ndef f(a: int):\n    "F."', 'example 1: its arguments do not fit: a: "x" is not of type integer', "tool("),
    ('@tool(examples=[Example({}, "x")])\ndef f() -> int:\n    "F."', 'example 1: its result does not fit: result: "x" is not of type integer', "tool("),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1][:50])
def test_declaration(engine, case):
    text, message, at = case
    got = engine((HEAD + text).strip() + "\n")
    first, line, caret = got.problem.split("\n")[:3]
    place, _, said = first.partition(": ")
    file, row, column = place.split(":")
    assert file == "script.py" and said.startswith(f'tool "{"a b" if "a b" in text else "f"}": {message}'), got.problem
    assert (HEAD + text).strip().split("\n")[int(row) - 1] == line[4:]
    assert line[4:][int(column) - 1 :].startswith(at) and caret == " " * (int(column) + 3) + "^", got.problem


SCRIPTS = [
    ("x = 1", "script.py:1:1: it has no tools\nWrite @tool above a function: from toolsrv import tool"),
    ("import numpy as np\n", "script.py:1:1: ModuleNotFoundError: No module named 'numpy'\n    import numpy as np\n    ^\nnumpy doesn't run in the sandbox: use lists with math and statistics."),
    ("from dateutil import tz\n", "script.py:1:1: ModuleNotFoundError: No module named 'dateutil'\n    from dateutil import tz\n    ^\ndateutil is in the package python-dateutil: name"),
    ("import fooo\n", "script.py:1:1: ModuleNotFoundError: No module named 'fooo'\n    import fooo\n    ^\nPut fooo beside the script. Or find out which package has it,"),
    ("x = (1,\n", "script.py:1:5: SyntaxError: '(' was never closed\n    x = (1,\n        ^"),
    ("if 1:\n\tx = 1\n        y = 2\n", "script.py:3:"),
    ("é = 1; x = 1/0\n", "script.py:1:12: ZeroDivisionError: division by zero\n    é = 1; x = 1/0\n               ^"),
    ("from toolsrv import tool\ntool(5)\n", "script.py:2:1: DeclarationError: @tool is for functions, and this is 5: put it above a def\n    tool(5)\n    ^"),
    ("from toolsrv import *\n@tool\nclass A: pass\n", "script.py:2:2: DeclarationError: @tool is for functions, and this is a class"),
    ("from toolsrv import *\nmodule(namespace='a b')\n", "script.py:2:1: DeclarationError: namespace 'a b': use names of the characters"),
    ("from toolsrv import *\nmodule(version='1')\nmodule(version='1')\n", "script.py:3:1: DeclarationError: module is called twice"),
    ("from toolsrv import *\n@tool\ndef a():\n 'A.'\n@tool(name='a')\ndef b():\n 'B.'\n", 'script.py:6:5: tool "a": another tool is called "a", too: rename one\n    def b():\n        ^'),
    ("raise SystemExit(3)", "script.py:1:1: SystemExit: 3\n    raise SystemExit(3)\n    ^"),
    ("def f(): f()\nf()", "script.py:1:10: RecursionError: maximum recursion depth exceeded"),
    ("open('x')", "script.py:1:1: FileNotFoundError: [Errno 2] No such file or directory: 'x'\n    open('x')\n    ^\nA tool has no files but those"),
    ("x = '\0'", "script.py:"),
    ("\udcff", "script.py:"),
]  # fmt: skip


@pytest.mark.parametrize("case", SCRIPTS, ids=lambda case: case[0][:40])
def test_script(engine, case):
    text, want = case
    got = engine(text, (0, "{}"))
    assert got.problem.startswith(want)
    assert json.loads(got.calls[0]["failure"])["status"] == 500
    assert got.calls[0]["status"] == 1 and got.calls[0]["events"]


def test_an_error_in_another_file(engine):
    got = engine("import shapes\n", files={"shapes/__init__.py": "from .round import x\n", "shapes/round.py": "x = 1\ny = x.z\n"})
    assert got.problem == "shapes/round.py:2:5: AttributeError: 'int' object has no attribute 'z'\n    y = x.z\n        ^"


OPTIONS = json.loads((pathlib.Path(__file__).resolve().parents[3] / "testdata" / "abi" / "options.json").read_text())


def options(told):
    icons = [Icon(i["src"], i.get("mimeType", ""), i.get("sizes", []), i.get("theme", "")) for i in told.get("icons", [])]
    return Options("a", told.get("title", ""), "A.", told.get("annotations", {}), icons, [])


@pytest.mark.parametrize("case", OPTIONS["accepted"], ids=lambda case: case["name"])
def test_accepted_options(case):
    options(case["tool"]).check()


@pytest.mark.parametrize("case", OPTIONS["refused"], ids=lambda case: case["name"])
def test_refused_options(case):
    with pytest.raises(DeclarationError):
        options(case["tool"]).check()


def test_a_tool_stays_a_function():
    @tool
    def made(a: int, b: int = 2) -> int:
        """Made."""
        return a + b

    assert made(1) == 3 and made.__name__ == "made"
