"""Scripts that do what they should not, and bundles that are broken: each call ends with an answer, and the engine goes on."""

import json

import pytest

from toolsrv._bundle import Bundle

HOSTILE = """
    import sys
    from toolsrv import ToolError, tool

    class Mute(Exception):
        def __str__(self):
            raise ValueError("no")

    class Loud(Exception):
        def __str__(self):
            return "x" * 100_000

    class Odd(Exception):
        def __str__(self):
            return "half \\ud800 and \\0"

    class Coded(ToolError):
        def __str__(self):
            return self.__str__()

    def deep(n):
        return deep(n + 1)

    @tool
    def do(what: str) -> str:
        "Does."
        match what:
            case "mute": raise Mute
            case "loud": raise Loud
            case "odd": raise Odd
            case "coded": raise Coded("x")
            case "exit": sys.exit(3)
            case "interrupt": raise KeyboardInterrupt
            case "deep": deep(0)
            case "memory": raise MemoryError
            case "empty": raise ToolError("")
            case "data": raise ToolError("x", data={"a": object()})
            case "nan": raise ToolError("x", data=float("nan"))
            case "large": raise ToolError("x", data="y" * 100_000)
            case "loop":
                data = []
                data.append(data)
                raise ToolError("x", data=data)
            case "status": raise ToolError("x", status=200)
            case "group": raise ExceptionGroup("many", [ValueError(1), TypeError(2)])
            case "cause":
                try:
                    1 / 0
                except ZeroDivisionError as error:
                    raise ValueError("wrapped") from error
            case "stream":
                sys.stdout.close()
                sys.stdout = None
                return "x"
            case "surrogate": return "\\ud83d"
            case "print":
                print("\\ud800", "\\0", end="")
                print("x" * 1_000_000)
                return ""
            case "stderr":
                print("a", file=sys.stderr)
                sys.stderr.write("b")
                return ""
            case "modules":
                sys.modules.clear()
                return "x"
        return what
"""

FAILURES = {
    "mute": {"message": "Mute: its __str__ raises ValueError", "status": 500},
    "odd": {"message": "Odd: half ? and \0", "status": 500},
    "exit": {"message": "SystemExit: 3", "status": 500},
    "interrupt": {"message": "KeyboardInterrupt", "status": 500},
    "deep": {"message": "RecursionError: maximum recursion depth exceeded", "status": 500},
    "empty": {"message": "the tool failed", "status": 400},
    "group": {"message": "ExceptionGroup: many (2 sub-exceptions)", "status": 500},
    "cause": {"message": "ValueError: wrapped", "status": 500},
    "status": {"message": "ValueError: status is 200: use an HTTP status from 400 to 599", "status": 500},
}


@pytest.mark.parametrize("what", FAILURES)
def test_failures(engine, what):
    got = engine(HOSTILE, (0, {"what": what}), (0, {"what": "fine"}))
    assert got.calls[0]["status"] == 1
    assert json.loads(got.calls[0]["failure"]) == FAILURES[what]
    assert got.calls[1]["output"] == '"fine"'
    assert len(got.calls[0]["events"]) < 90


def test_long_messages_are_cut(engine):
    got = engine(HOSTILE, (0, {"what": "loud"}))
    assert len(json.loads(got.calls[0]["failure"])["message"]) < 9000


def test_a_tool_error_that_can_not_be_told(engine):
    got = engine(HOSTILE, (0, {"what": "coded"}))
    assert got.calls[0]["status"] == 1
    assert json.loads(got.calls[0]["failure"])["status"] == 400


@pytest.mark.parametrize("what", ["data", "nan", "large", "loop"])
def test_data_that_can_not_be_sent(engine, what):
    got = engine(HOSTILE, (0, {"what": what}))
    assert got.calls[0]["status"] == 3
    assert got.calls[0]["events"][0][2].startswith("the data of a ToolError can't be sent: ")


def test_no_memory_is_for_the_host_to_say(engine):
    got = engine(HOSTILE, (0, {"what": "memory"})).calls[0]
    assert got["status"] == 2 and json.loads(got["failure"])["message"] == "MemoryError"


def test_causes_are_logged(engine):
    lines = [event[2] for event in engine(HOSTILE, (0, {"what": "cause"})).calls[0]["events"]]
    assert "ZeroDivisionError: division by zero" in lines and lines[-1] == "ValueError: wrapped"
    lines = [event[2] for event in engine(HOSTILE, (0, {"what": "group"})).calls[0]["events"]]
    assert any("TypeError: 2" in line for line in lines)


def test_streams(engine):
    got = engine(HOSTILE, (0, {"what": "print"}), (0, {"what": "stderr"}), (0, {"what": "stream"}))
    assert [len(event[2]) for event in got.calls[0]["events"]] == [1 << 16]
    assert got.calls[1]["events"] == [["log", 1, "a"], ["log", 1, "b"]]
    assert got.calls[2]["output"] == '"x"'


def test_half_a_character(engine):
    assert engine(HOSTILE, (0, {"what": "surrogate"})).calls[0]["output"] == '"\\ud83d"'


def test_what_breaks_the_interpreter_breaks_the_call_only(engine):
    assert engine(HOSTILE, (0, {"what": "modules"})).calls[0]["status"] in (0, 1, 2)


def test_arguments_that_the_host_did_not_check(engine):
    got = engine(
        'from toolsrv import tool\n@tool\ndef f(a: int, b: list[float] = []) -> list[float]:\n    "F."\n    return [a, *b]\n',
        (0, "{}"),
        (0, '{"a": "x"}'),
        (0, "[]"),
        (0, ""),
        (0, '{"a": 1, "b": 5}'),
        (0, '{"a": 1, "c": 5}'),
        (0, '{"a": 1'),
        (0, "[" * 100_000),
        (0, ' \n{"a": 1.0}'),
    )
    told = [json.loads(call["failure"])["message"] if call["failure"] else call["output"] for call in got.calls]
    assert told[:5] == ["a: it is missing", "a: 'x' is not an integer", "[] is not an object", "a: it is missing", "b: 5 is not a list"]
    assert told[5] == "[1]" and told[6].startswith("the arguments can't be read") and told[7].startswith("the arguments can't be read")
    assert told[8] == "[1]"
    assert all(json.loads(call["failure"])["code"] == "invalid_arguments" for call in got.calls if call["failure"])


def packed(*files):
    out = b"TSB1" + len(files).to_bytes(4, "little")
    for name, data in files:
        out += len(name).to_bytes(4, "little") + len(data).to_bytes(4, "little") + name + data
    return out


BROKEN = [
    b"",
    b"TSB",
    b"TSB2" + packed((b"a.py", b""))[4:],
    b"TSB1",
    b"TSB1\0\0\0\0",
    b"TSB1\xff\xff\xff\xff",
    b"TSB1\1\0\0\0",
    b"TSB1\1\0\0\0\4\0\0\0\0\0\0\0a",
    b"TSB1\1\0\0\0\1\0\0\0\xff\xff\xff\xffa",
    b"TSB1\1\0\0\0\xff\xff\xff\xff\1\0\0\0a",
    b"TSB1\2\0\0\0\1\0\0\0\0\0\0\0a",
    packed((b"", b"")),
    packed((b"a.py", b""), (b"a.py", b"")),
    packed((b"../a.py", b"")),
    packed((b"/a.py", b"")),
    packed((b"a//b.py", b"")),
    packed((b"a/./b.py", b"")),
    packed((b"a\0.py", b"")),
    packed((b"a\\b.py", b"")),
    packed((b"\xff.py", b"")),
    packed((b"x" * 5000, b"")),
]


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: repr(raw[:20]))
def test_broken_bundles(engine, raw):
    with pytest.raises(ValueError):
        Bundle(raw)
    got = engine("", (0, "{}"), raw=raw.hex())
    assert got.problem and got.calls[0]["status"] == 1


@pytest.mark.parametrize("end", range(1, 60, 7))
def test_a_bundle_that_ends_early(end):
    whole = packed((b"script.py", b"x = 1"), (b"a/b.txt", b"y" * 20))
    with pytest.raises(ValueError):
        Bundle(whole[:-end])
    assert Bundle(whole + b"\0" * 100).read("a/b.txt") == b"y" * 20


def test_modules_and_data(engine):
    got = engine(
        """
        import importlib.metadata, importlib.resources, pkgutil
        from pathlib import Path
        import shapes.round, space.inner
        from shapes import data
        from toolsrv import tool

        @tool
        def read() -> list[str]:
            "Reads."
            files = importlib.resources.files("shapes")
            return [
                pkgutil.get_data("shapes", "data/pi.txt").decode(),
                files.joinpath("data", "pi.txt").read_text(),
                (files / "data/pi.txt").open().read(),
                ",".join(sorted(entry.name for entry in files.iterdir())),
                shapes.round.__file__, shapes.__path__[0], __name__, __file__, space.inner.x,
                shapes.round.area.__module__,
                importlib.metadata.version("my.Shapes"),
            ]
        """,
        (0, "{}"),
        files={
            "shapes/__init__.py": "",
            "shapes/round.py": "from . import data\ndef area(): pass\n",
            "shapes/data/__init__.py": "",
            "shapes/data/pi.txt": "3.14",
            "space/inner.py": "x = 'found'",
            "my_shapes-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-shapes\nVersion: 1.5\n",
        },
    )
    assert not got.problem
    assert json.loads(got.calls[0]["output"]) == [
        "3.14",
        "3.14",
        "3.14",
        "__init__.py,data,round.py",
        "/shapes/round.py",
        "/shapes",
        "script",
        "/script.py",
        "found",
        "shapes.round",
        "1.5",
    ]


def test_a_name_of_pythons_own(engine):
    assert engine("import toolsrv\n", name="random.py").problem.startswith('random.py:1:1: Python has a module "random" of its own')
    assert 'string.py:1:1: Python has a module "string"' in engine("x = 1\n", files={"string.py": ""}).problem


def test_tools_of_other_files(engine):
    one = 'from toolsrv import tool\n@tool\ndef one() -> int:\n    "One."\n    return 1\n'
    two = 'from toolsrv import tool\n@tool\ndef two() -> int:\n    "Two."\n    return 2\n'
    got = engine("import other\nfrom more import two\n" + one, (0, "{}"), (1, "{}"), files={"other.py": one, "more.py": two})
    assert [tool["name"] for tool in got.manifest["tools"]] == ["two", "one"]
    assert [call["output"] for call in got.calls] == ["2", "1"]


def test_examples_run_before_calls_and_leave_no_word(engine):
    text = """
        from toolsrv import Example, tool
        runs = 0

        @tool(examples=[Example({}), Example({"fail": True})])
        def count(fail: bool = False) -> int:
            "Counts."
            global runs
            runs += 1
            if fail:
                raise ValueError
            return runs
        """
    got = engine(text, (0, "{}"))
    assert not got.problem and got.started["output"] is None
    assert int(got.calls[0]["output"]) > 2


def test_async_tools(engine):
    text = """
        import asyncio
        from toolsrv import ToolError, tool

        @tool
        async def wait(n: int) -> list[int]:
            "Waits."
            async def one(i):
                await asyncio.sleep(0)
                return i
            if n < 0:
                raise ToolError("negative")
            asyncio.get_running_loop().create_task(asyncio.sleep(1000))
            return await asyncio.gather(*(one(i) for i in range(n)))
        """
    got = engine(text, (0, {"n": 3}), (0, {"n": -1}), (0, {"n": 1}))
    assert [call["output"] for call in got.calls] == ["[0,1,2]", None, "[0]"]
    assert json.loads(got.calls[1]["failure"])["message"] == "negative"
