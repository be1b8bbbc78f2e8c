"""The engine's side: load, describe, warm and call."""

import json

import pytest

HELLO = """
    from typing import Annotated, Literal
    from toolsrv import Example, Field, ToolError, log, module, progress, time_left, tool

    module(namespace="greetings", version="1.0.0")

    @tool(examples=[Example({"name": "Ada"}, "Hello, Ada!")])
    def greet(name: Annotated[str, Field(min_length=1)], style: Literal["short", "long"] = "short") -> str:
        \"\"\"Greets somebody.\"\"\"
        return f"Hello, {name}!"

    @tool
    def add(a: float, b: float) -> float:
        \"\"\"Add two numbers.\"\"\"
        return a + b

    @tool
    def fail(text: str, code: str = "") -> None:
        \"\"\"Fail.\"\"\"
        if code:
            raise ToolError(text, code=code, status=409, data={"left": 2})
        inner(text)

    def inner(text):
        raise ValueError(text)

    @tool
    def say(text: str) -> float:
        \"\"\"Say.\"\"\"
        print(text)
        log.warning("%d%%", 5)
        progress(1, 2, "half")
        print("rest", end="")
        return time_left()
"""


@pytest.mark.parametrize("rehearse", [False, True])
def test_calls(engine, rehearse):
    got = engine(HELLO, (0, {"name": "Grüße 😀"}), (1, {"a": 1, "b": 2}), (1, ' {"a": 0.1, "b": 0.2}'), rehearse=rehearse)
    assert got.manifest["namespace"] == "greetings" and got.manifest["version"] == "1.0.0"
    assert [tool["name"] for tool in got.manifest["tools"]] == ["greet", "add", "fail", "say"]
    assert [call["output"] for call in got.calls] == ['"Hello, Grüße 😀!"', "3.0", "0.30000000000000004"]
    assert all(call["status"] == 0 and not call["failure"] and not call["events"] for call in got.calls)


def test_failures(engine):
    got = engine(HELLO, (2, {"text": "There are 2 left.", "code": "not_in_stock"}), (2, {"text": "no"}), (9, "{}"))
    assert [call["status"] for call in got.calls] == [1, 1, 1]
    assert json.loads(got.calls[0]["failure"]) == {
        "message": "There are 2 left.",
        "code": "not_in_stock",
        "status": 409,
        "data": {"left": 2},
    }
    assert not got.calls[0]["events"]
    assert json.loads(got.calls[1]["failure"]) == {"message": "ValueError: no", "status": 500}
    lines = [text for _, level, text in got.calls[1]["events"] if level == 3]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith('  File "script.py", line 22, in fail')
    assert lines[2] == "    inner(text)"
    assert lines[-1] == "ValueError: no"
    assert not any("toolsrv" in line for line in lines)


def test_prints_and_reports(engine):
    got = engine(HELLO, (3, {"text": "a\nb"}), deadline=1500)
    assert got.calls[0]["events"] == [
        ["log", 1, "a"],
        ["log", 1, "b"],
        ["log", 2, "5%"],
        ["progress", 1.0, 2.0, "half"],
        ["log", 1, "rest"],
    ]
    assert got.calls[0]["output"] == "1.5"


def test_logging_keeps_its_levels(engine):
    text = """
        import logging, sys
        from toolsrv import tool
        logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
        plain = logging.getLogger("plain")
        plain.propagate = False
        plain.addHandler(logging.StreamHandler(sys.stdout))

        @tool
        def f() -> None:
            "F."
            for level in (5, 10, 20, 30, 40, 50):
                logging.getLogger("x").log(level, "%d", level)
            plain.error("half \\ud800")
            logging.info("%d", "x")
        """
    got = engine(text, (0, "{}"))
    assert not got.problem
    events = got.calls[0]["events"]
    assert events[:6] == [
        ["log", 0, "x 10"],
        ["log", 1, "x 20"],
        ["log", 2, "x 30"],
        ["log", 3, "x 40"],
        ["log", 3, "x 50"],
        ["log", 3, "half ?"],
    ]
    assert events[6] == ["log", 1, "--- Logging error ---"]
    assert got.calls[0]["output"] == "null"


def test_a_broken_result_names_the_function(engine):
    got = engine('from toolsrv import tool\n@tool\ndef f() -> int:\n    "F."\n    return "x"\n', (0, "{}"))
    assert json.loads(got.calls[0]["failure"]) == {"message": "ResultError: result: 'x' of type str is not an int", "status": 500}
    lines = [event[2] for event in got.calls[0]["events"]]
    assert lines == ["toolsrv.ResultError: result: 'x' of type str is not an int", "It was returned by f, script.py, line 3."]


def test_syntax_error(engine):
    got = engine("def greet(:\n    pass\n", (0, "{}"))
    assert got.problem == "script.py:1:11: SyntaxError: invalid syntax\n    def greet(:\n              ^"
    failure = json.loads(got.calls[0]["failure"])
    assert failure["status"] == 500 and failure["message"] == got.problem
