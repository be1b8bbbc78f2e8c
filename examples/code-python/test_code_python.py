import code_python
import pytest
from toolsrv import ToolError, testing


def run(code, input=None):
    return testing.call(code_python.run, {"code": code, "input": input})


def convert(arguments):
    if arguments["to"] != "mi":
        raise ToolError("No such unit.", code="unknown_unit")
    return {"value": round(arguments["value"] * 0.621371, 5)}


def test_examples():
    with testing.grant(tools={"units/convert": convert}):
        testing.examples(code_python)


def test_tools():
    def run(code):
        return testing.call(code_python.run_with_tools, code=code)

    with testing.grant(tools={"units/convert": convert, "secret/tool": convert}):
        got = run("sum(tools.call('units/convert', {'value': n, 'to': 'mi'})['value'] for n in (5, 10))")
        assert (round(got["result"], 3), got["error"]) == (9.321, None)
        caught = "try:\n    tools.call('units/convert', to='x')\nexcept Exception as e:\n    print(e.code, e.tool_code, e)"
        assert run(caught)["stdout"] == "tool_error unknown_unit No such unit.\n"
        for path in ("secret/tool", "math/none"):
            assert run(f"tools.call('{path}')")["error"]["type"] == "Failure"
        with_none = testing.call(code_python.run, code="from toolsrv import tools\ntools.call('units/convert', to='mi')")
        assert "doesn't declare" in with_none["error"]["message"]


@pytest.mark.parametrize(
    "code, want",
    [
        ("x = 3\nx ** 2", 9),
        ("x = 3", None),
        ("", None),
        ("input['a']", 1),
        ("{1: {2}, 'b': (1, None), 'c': float('nan')}", {"1": [2], "b": [1, None], "c": "nan"}),
        ("from decimal import Decimal\nDecimal('1.10')", "Decimal('1.10')"),
        ("10 ** 5000", hex(10**5000)),
        ("'\\ud800'", "?"),
        ("__name__", "__main__"),
        ("def f(n):\n    return n and f(n - 1)\nf(100)", 0),
    ],
)
def test_result(code, want):
    assert run(code, {"a": 1}) == {"result": want, "stdout": "", "error": None}


@pytest.mark.parametrize(
    "code, kind, traceback",
    [
        (
            "def f():\n    return {}['a']\nf()",
            "KeyError",
            "File \"<code>\", line 3\n    f()\nFile \"<code>\", line 2, in f\n    return {}['a']\nKeyError: 'a'\n",
        ),
        ("x = = 3", "SyntaxError", '  File "<code>", line 1\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n'),
        ("raise SystemExit(3)", "SystemExit", None),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", None),
        ("def f(): return f()\nf()", "RecursionError", None),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", "E", None),
        ("class R:\n    def __repr__(self): 1 / 0\nR()", "ZeroDivisionError", None),
        ("eval('1 +')", "SyntaxError", None),
        ("a = []\nfor _ in range(40): a = [a, a]\nlen(str(a)[:10])\nraise ValueError", "ValueError", None),
        ("compile('\\0', '', 'exec')", "SyntaxError", None),
    ][:8],
)
def test_error(code, kind, traceback):
    got = run(code)
    assert got["error"]["type"] == kind and traceback in (None, got["error"]["traceback"])


def test_exit_is_an_end():
    assert run("print(1)\nraise SystemExit") == {"result": None, "stdout": "1\n", "error": None}


def test_much_is_cut():
    got = run("import sys\nprint('a' * 100_000)\nprint('b', file=sys.stderr)")
    assert len(got["stdout"]) < 66_000 and got["stdout"].endswith("\n...")


def test_deep_and_circular():
    got = run("a = []\na.append(a)\na")
    assert got["error"] is None and "..." in str(got["result"])
