"""Every type of the design: its schema, how arguments arrive, how results are sent, and what is refused."""

import asyncio
import collections
import datetime
import enum
import functools
import json
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import pytest

from toolsrv import Field, ResultError, ToolError, testing, tool
from toolsrv._call import Compiled
from toolsrv._errors import Misfit
from toolsrv._tool import tools

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    S = 1
    L = 2


@dataclass
class Point:
    x: float
    y: float = 0


@dataclass(frozen=True, slots=True)
class Circle:
    kind: Literal["circle"]
    center: Point
    radius: Annotated[float, Field(gt=0)]


@dataclass
class Box:
    kind: Literal["box"]
    corners: tuple[Point, Point]


@dataclass
class Span:
    start: datetime.date
    end: datetime.date

    def __post_init__(self):
        if self.end < self.start:
            raise ValueError("the end is before the start")


@dataclass
class Page(Generic[T]):
    items: list[T]
    more: bool = False


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Movie(TypedDict, total=False):
    name: str
    year: int


class Whole(TypedDict):
    at: datetime.date


UserId = NewType("UserId", int)
UTC = datetime.UTC
NAMES = {"$ref": "#/$defs/Point"}


def compiled(annotation, give=None):
    """Returns a tool that takes a value and returns another, or the same."""

    def made(v, /):
        seen.append(v)
        return v if give is None else give[0]

    seen = []
    made.__doc__ = "T."
    made.__annotations__ = {"v": annotation, "return": annotation}
    tool(made)
    return Compiled(tools[-1]), seen


CASES = [
    # annotation, schema, JSON, what arrives, JSON of the result (the same where left out)
    (str, {"type": "string"}, "ä\n\u0000", "ä\n\u0000"),
    (int, {"type": "integer"}, 10**30, 10**30),
    (float, {"type": "number"}, 2, 2.0, 2.0),
    (bool, {"type": "boolean"}, True, True),
    (None, {"type": "null"}, None, None),
    (Any, {}, {"a": [1, 2.5, None, {}]}, {"a": [1, 2.5, None, {}]}),
    (list, {"type": "array"}, [1, "a"], [1, "a"]),
    (dict[str, object], {"type": "object"}, {"a": [None]}, {"a": [None]}),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
    (list[float], {"type": "array", "items": {"type": "number"}}, [1, 2.5], [1.0, 2.5], [1.0, 2.5]),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
    (Iterable[str], {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
    (collections.deque[int], {"type": "array", "items": {"type": "integer"}}, [1], collections.deque([1])),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["b", "a"], {"a", "b"}, ["a", "b"]),
    (frozenset[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [2, 1], frozenset({1, 2}), [1, 2]),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
    (tuple, {"type": "array"}, [1, "a"], (1, "a")),
    (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}, [1, 2], (1, 2)),
    (
        tuple[int, str],
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        [1, "a"],
        (1, "a"),
    ),
    (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1}, {"a": 1.0}, {"a": 1.0}),
    (Mapping[str, Any], {"type": "object"}, {"a": 1}, {"a": 1}),
    (
        dict[int, str],
        {"type": "object", "propertyNames": {"pattern": "^-?[0-9]+$"}, "additionalProperties": {"type": "string"}},
        {"-1": "a"},
        {-1: "a"},
    ),
    (
        dict[Annotated[int, Field(ge=0)], bool],
        {"type": "object", "propertyNames": {"pattern": "^[0-9]+$"}, "additionalProperties": {"type": "boolean"}},
        {"7": True},
        {7: True},
    ),
    (
        dict[Color, int],
        {"type": "object", "propertyNames": {"enum": ["red", "blue"]}, "additionalProperties": {"type": "integer"}},
        {"red": 1},
        {Color.RED: 1},
    ),
    (
        dict[datetime.date, int],
        {"type": "object", "propertyNames": {"format": "date"}, "additionalProperties": {"type": "integer"}},
        {"2024-02-29": 1},
        {datetime.date(2024, 2, 29): 1},
    ),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "a"),
    (Literal[1, "a", None], {"type": ["integer", "string", "null"], "enum": [1, "a", None]}, None, None),
    (Literal[True], {"type": "boolean", "enum": [True]}, True, True),
    (Literal[Color.RED], {"type": "string", "enum": ["red"]}, "red", Color.RED),
    (Color, {"type": "string", "enum": ["red", "blue"]}, "blue", Color.BLUE),
    (Size, {"type": "integer", "enum": [1, 2]}, 2, Size.L),
    (Color | None, {"type": ["string", "null"], "enum": ["red", "blue", None]}, None, None),
    (Optional[int], {"type": ["integer", "null"]}, 5, 5),
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5"),
    (Union[float, int], {"type": "number"}, 5, 5),
    (int | float, {"type": "number"}, 5.5, 5.5),
    (float | None, {"type": ["number", "null"]}, 5, 5.0, 5.0),
    (
        datetime.date | str,
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]},
        "2024-02-29",
        datetime.date(2024, 2, 29),
    ),
    (datetime.date | str, {"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, "soon", "soon"),
    (list[int | None], {"type": "array", "items": {"type": ["integer", "null"]}}, [1, None], [1, None]),
    (datetime.datetime, {"type": "string", "format": "date-time"}, "2024-02-29T12:00:00.5Z",
     datetime.datetime(2024, 2, 29, 12, 0, 0, 500000, UTC), "2024-02-29T12:00:00.500000+00:00"),
    (datetime.datetime, {"type": "string", "format": "date-time"}, "2024-02-29t12:00:00+02:00",
     datetime.datetime(2024, 2, 29, 10, tzinfo=UTC), "2024-02-29T12:00:00+02:00"),
    (datetime.date, {"type": "string", "format": "date"}, "2024-02-29", datetime.date(2024, 2, 29)),
    (datetime.time, None, "23:59", datetime.time(23, 59), "23:59:00"),
    (datetime.timedelta, {"type": "number", "description": "A duration in seconds."}, 90, datetime.timedelta(minutes=1, seconds=30)),
    (datetime.timedelta, {"type": "number", "description": "A duration in seconds."}, 0.25, datetime.timedelta(milliseconds=250)),
    (uuid.UUID, {"type": "string", "format": "uuid"}, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678123456781234567812345678")),
    (Decimal, None, "0.10", Decimal("0.10")),
    (Decimal, None, 12345678901234567890.5, Decimal("1.2345678901234567E+19"), "1.2345678901234567E+19"),
    (bytes, {"type": "string", "contentEncoding": "base64"}, "AAH/", b"\x00\x01\xff"),
    (bytearray, {"type": "string", "contentEncoding": "base64"}, "", bytearray()),
    (Point, NAMES, {"x": 1}, Point(1.0, 0), {"x": 1.0, "y": 0}),
    (list[Point], {"type": "array", "items": NAMES}, [{"x": 1, "y": 2}], [Point(1.0, 2.0)], [{"x": 1.0, "y": 2.0}]),
    (Pair, {"$ref": "#/$defs/Pair"}, {"left": 1}, Pair(1, "r"), {"left": 1, "right": "r"}),
    (Movie, {"$ref": "#/$defs/Movie"}, {"year": 1}, {"year": 1}),
    (Whole, {"$ref": "#/$defs/Whole"}, {"at": "2024-02-29"}, {"at": datetime.date(2024, 2, 29)}),
    (Circle | Box, None, {"kind": "circle", "center": {"x": 1, "y": 1}, "radius": 1}, Circle("circle", Point(1.0, 1.0), 1.0),
     {"kind": "circle", "center": {"x": 1.0, "y": 1.0}, "radius": 1.0}),
    (Circle | Box, None, {"kind": "box", "corners": [{"x": 1}, {"x": 2}]}, Box("box", (Point(1.0), Point(2.0))),
     {"kind": "box", "corners": [{"x": 1.0, "y": 0}, {"x": 2.0, "y": 0}]}),
    (Page[Point], {"$ref": "#/$defs/Page"}, {"items": [{"x": 1, "y": 2}]}, Page([Point(1.0, 2.0)]), {"items": [{"x": 1.0, "y": 2.0}], "more": False}),
    (Page[list[datetime.date]], {"$ref": "#/$defs/Page"}, {"items": [["2024-02-29"]]}, Page([[datetime.date(2024, 2, 29)]]),
     {"items": [["2024-02-29"]], "more": False}),
    (UserId, {"type": "integer"}, 5, 5),
    (Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=2)],
     {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 2}, ["a"], ["a"]),
    (Annotated[dict[str, int], Field(min_length=1)], {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}, {"a": 1}, {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_type(case):
    annotation, schema, sent, arrives, *result = case
    made, seen = compiled(annotation)
    if schema is not None:
        assert made.parameters["properties"]["v"] == schema
    got = json.loads(made.run(json.dumps({"v": sent})))
    assert seen == [arrives] and type(seen[0]) is type(arrives)
    want = result[0] if result else sent
    assert got == want and type(got) is type(want)


REFUSED = [
    (datetime.date, "2024-02-30", "v: '2024-02-30' is not a date: day is out of range for month"),
    (datetime.datetime, "2024-02-29T12:00:60Z", "v: '2024-02-29T12:00:60Z' is not a date with a time"),
    (list[datetime.date], ["2024-02-29", "x"], "v[1]: 'x' is not a date"),
    (dict[str, list[Decimal]], {"a": ["1", "Infinity"]}, "v.a[1]: 'Infinity' is not a finite number"),
    (Annotated[Decimal, Field(ge=0)], "-1", "v: -1 is less than 0"),
    (Annotated[Decimal, Field(lt=10)] | None, "10.0", "v: 10.0 is not less than 10"),
    (bytes, "A", "v: it is not base64"),
    (bytes, "AAE", "v: it is not base64"),
    (Span, {"start": "2024-02-29", "end": "2024-01-01"}, "v: the end is before the start"),
    (list[Span], [{"start": "2024-02-29", "end": "2024-01-01"}], "v[0]: the end is before the start"),
    (Circle | Box, {"kind": "ball"}, "v: "),
    (tuple[int, datetime.date], [1, "x"], "v[1]: 'x' is not a date"),
    (datetime.timedelta, 1e300, "v: the duration is too long"),
    (uuid.UUID, "x", "v: badly formed"),
    (Page[datetime.date], {"items": ["x"]}, "v.items[0]: 'x' is not a date"),
    (Whole, {"at": "x"}, "v.at: 'x' is not a date"),
    (dict[datetime.date, int], {"x": 1}, "v.x: 'x' is not a date"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}-{case[1]}"[:60])
def test_refused_arguments(case):
    annotation, sent, message = case
    made, seen = compiled(annotation)
    with pytest.raises(ToolError) as refused:
        made.run(json.dumps({"v": sent}))
    assert str(refused.value).startswith(message)
    assert refused.value.code == "invalid_arguments" and refused.value.status == 400
    assert not seen


@pytest.mark.parametrize(
    ("annotation", "text", "message"),
    [
        (float, '{"v": 1e999}', "v: the number is too large for a float"),
        (int, '{"v": 1e999}', "v: the number is too large"),
        (int, f'{{"v": {"9" * 5000}}}', "the arguments can't be read"),
        (list[float], '{"v": [1, -1e999]}', "v[1]: the number is too large for a float"),
    ],
)
def test_numbers_that_python_can_not_hold(annotation, text, message):
    made, _ = compiled(annotation)
    with pytest.raises(ToolError) as refused:
        made.run(text)
    assert str(refused.value).startswith(message)


def test_digits_are_kept():
    made, seen = compiled(Decimal)
    assert made.run('{"v": 0.1000000000000000000000000000001}') == '"0.1000000000000000000000000000001"'
    assert seen == [Decimal("0.1000000000000000000000000000001")]
    made, _ = compiled(tuple[Decimal, float, Any, int])
    assert made.run('{"v": [1.10, 1.10, {"a": 1.10}, 3]}') == '["1.10",1.1,{"a":1.1},3]'


BROKEN = [
    (str, 5, "result: 5 of type int is not a str"),
    (str, None, "result: None is not a str"),
    (int, True, "result: True of type bool is not an int"),
    (int, 1.0, "result: 1.0 of type float is not an int"),
    (float, "1", "result: '1' of type str is not a float"),
    (float, float("nan"), "result: nan has no place in JSON"),
    (list[float], [1.0, float("inf")], "result[1]: inf has no place in JSON"),
    (Any, {"a": [float("nan")]}, "result.a[0]: nan has no place in JSON"),
    (Any, {"a": {1, object}}, "result.a"),
    (Any, {(1, 2): 1}, "a key of result: (1, 2) of type tuple can't be the name of a member"),
    (bool, 1, "result: 1 of type int is not a bool"),
    (list[int], [1, "a"], "result[1]: 'a' of type str is not an int"),
    (list[int], "ab", "result: 'ab' of type str is not a list"),
    (dict[str, int], {"a": "b"}, "result.a: 'b' of type str is not an int"),
    (dict[str, int], {1: 1}, "a key of result: 1 of type int is not a str"),
    (Literal["a"], "b", "result: 'b' of type str is not one of 'a'"),
    (Literal[1], True, "result: True of type bool is not one of 1"),
    (Color, "red", "result: 'red' of type str is not one of Color"),
    (datetime.datetime, datetime.datetime(2024, 1, 1), "result: 2024-01-01 00:00:00 has no time zone"),
    (datetime.date, datetime.datetime(2024, 1, 1), "result: datetime.datetime(2024, 1, 1, 0, 0) of type datetime is not a date"),
    (Decimal, 1.5, "result: 1.5 of type float is not a Decimal"),
    (Decimal, Decimal("NaN"), "result: NaN has no place in JSON"),
    (Point, {"x": 1}, "result: {'x': 1} of type dict is not a Point"),
    (Point, Point("a"), "result.x: 'a' of type str is not a float"),
    (list[Point], [Point(1), None], "result[1]: None is not a Point"),
    (Point | None, 5, "result: 5 of type int is not a Point"),
    (Circle | Box, Point(1), "result: Point(x=1, y=0) of type Point is not a Circle or Box"),
    (Movie, {"name": 5}, "result.name: 5 of type int is not a str"),
    (Movie, {"nam": "x"}, "result.nam: Movie does not have it"),
    (Whole, {}, "result.at: it is missing"),
    (tuple[int, int], (1,), "result: (1,) of type tuple has 1 elements, not 2"),
    (None, 1, "result: 1 of type int is not None"),
    (bytes, "x", "result: 'x' of type str is not a bytes"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case[0]}-{case[1]!r}"[:60])
def test_broken_results(case):
    annotation, given, message = case

    def made():
        return given

    made.__doc__ = "T."
    made.__annotations__ = {"return": annotation}
    tool(made)
    with pytest.raises(ResultError) as broken:
        Compiled(tools[-1]).run("{}")
    assert str(broken.value).startswith(message)


def test_results_of_any_type():
    loop: list[Any] = []
    loop.append(loop)

    def made(which: int):
        """T."""
        return [
            Point(1, Decimal("1.5")),
            {"a": {Color.RED}, "b": b"\x00", "c": datetime.timedelta(seconds=1)},
            Pair(1, "x"),
            ({3, 1, 2}, uuid.UUID(int=0), datetime.date(2024, 1, 1)),
            loop,
            made,
        ][which]

    tool(made)
    run = Compiled(tools[-1]).run
    assert json.loads(run('{"which": 0}')) == {"x": 1, "y": "1.5"}
    assert json.loads(run('{"which": 1}')) == {"a": ["red"], "b": "AA==", "c": 1.0}
    assert json.loads(run('{"which": 3}')) == [[1, 2, 3], "00000000-0000-0000-0000-000000000000", "2024-01-01"]
    with pytest.raises(ResultError, match="nested too deeply, or holds itself"):
        run('{"which": 4}')
    with pytest.raises(ResultError, match="result: <function .* can't be written as JSON"):
        run('{"which": 5}')
    assert json.loads(run('{"which": 2}')) == [1, "x"]


def test_results_may_be_of_a_narrower_type():
    for annotation, given, want in [
        (str, type("Name", (str,), {})("a"), "a"),
        (float, 5, 5),
        (int, Size.L, 2),
        (list[int], (1, 2), [1, 2]),
        (Sequence[int], range(3), [0, 1, 2]),
        (dict[str, int], collections.Counter("aab"), {"a": 2, "b": 1}),
        (list[Point], [type("Further", (Point,), {})(1, 2)], [{"x": 1, "y": 2}]),
        (
            datetime.datetime,
            datetime.datetime(1880, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(seconds=3208))),
            "1879-12-31T23:06:32+00:00",
        ),
    ]:
        made, _ = compiled(annotation, [given])
        sent = {"v": None}

        def run(made=made):
            return made.function(None)

        assert run() is given
        result = made.result.slow_dump(given, "result")
        made.result.compile()
        assert json.loads(json.dumps(made.result.dump(given))) == json.loads(json.dumps(result)) == want
        assert sent


def test_async_and_keyword_only_and_positional_only():
    @tool
    async def wait(a: int, /, b: int = 2, *, c: int) -> list[int]:
        """T."""
        import asyncio

        await asyncio.sleep(0)
        return [a, b, c]

    assert testing.call(wait, {"a": 1, "c": 3}) == [1, 2, 3]


def test_decorated_functions():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    def done(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return asyncio.run(function(*args, **kwargs))

        return wrapper

    @tool
    @twice
    def plain(a: int, b: int = 2) -> int:
        """T."""
        return a + b

    @tool
    @twice
    async def waits(a: int) -> int:
        """T."""
        return a

    @tool
    @done
    async def ran(a: int) -> int:
        """T."""
        return a

    assert testing.call(plain, a=1) == 3
    assert testing.call(waits, a=1) == testing.call(ran, a=1) == 1


def test_fields_as_defaults():
    @tool
    def made(a: int = Field(ge=1, description="How many."), b: list[str] = Field(["x"]), c: str = Field(default_factory=str)) -> list[Any]:
        """T."""
        return [a, b, c]

    assert testing.call(made, {"a": 1}) == [1, ["x"], ""]
    assert made(1) == [1, ["x"], ""]
    schema = Compiled(tools[-1]).parameters
    assert schema["required"] == ["a"]
    assert schema["properties"] == {
        "a": {"type": "integer", "minimum": 1, "description": "How many."},
        "b": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
        "c": {"type": "string"},
    }


def test_a_default_is_new_for_each_call():
    @tool
    def made(a: list[int] = []) -> list[int]:  # noqa: B006
        """T."""
        a.append(1)
        return a

    run = Compiled(tools[-1]).run
    assert run("{}") == run("{}") == "[1]"
    assert run('{"a": [5]}') == "[5,1]"


@dataclass
class Late:
    at: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(UTC))
    hidden: int = field(init=False, default=5)


def test_factories_and_what_is_not_passed():
    made, seen = compiled(Late)
    late = made.parameters["$defs"]["Late"]
    assert late == {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}, "additionalProperties": False}
    assert json.loads(made.run('{"v": {}}'))["hidden"] == 5
    assert seen[0].at.tzinfo is UTC


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements came with 3.12")
def test_type_statements(script):
    module = script(
        """
        from toolsrv import tool
        type Json = None | bool | float | str | list[Json] | dict[str, Json]
        type Names = list[str]
        type Tree = dict[str, Tree]

        @tool
        def made(names: Names, tree: Tree) -> Tree:
            "T."
            return tree
        """
    )
    got = testing.manifest(module)["tools"][0]["parameters"]
    assert got["$defs"] == {
        "Names": {"type": "array", "items": {"type": "string"}},
        "Tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}},
    }
    assert testing.call(module.made, {"names": ["a"], "tree": {"a": {"b": {}}}}) == {"a": {"b": {}}}


ODD = [
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    float("inf"),
    "",
    "x",
    "2024-02-29",
    "é\ud800",
    [],
    [[]],
    [1, 2, 3],
    {},
    {"x": {}},
    {"kind": "circle"},
]


def spoilt(value):
    """Yields a value with each of its parts replaced by odd ones."""
    yield from ODD
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield [*value[:i], *value[i + 1 :]]
            for odd in spoilt(item):
                yield [*value[:i], odd, *value[i + 1 :]]
    elif isinstance(value, dict):
        for name, item in value.items():
            yield {key: other for key, other in value.items() if key != name}
            for odd in spoilt(item):
                yield {**value, name: odd}


def outcome(convert, value):
    try:
        return convert(value)
    except RecursionError:
        raise
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_fast_and_slow_conversion_agree(case):
    made, _ = compiled(case[0])
    node = made.members[0].node
    for sent in [case[2], *spoilt(case[2])]:
        slow = outcome(lambda value: node.slow_load(value, "v"), sent)
        fast = outcome(node.load, sent)
        if isinstance(fast, type):
            assert slow is Misfit, f"{sent!r} is refused without a place"
        elif not isinstance(slow, type):
            assert repr(fast) == repr(slow), sent
        if node.fits(sent):
            assert not isinstance(slow, type), f"{sent!r} seems to fit"
    for value in [case[3], *spoilt(case[3]), *(outcome(node.load, sent) for sent in spoilt(case[2]))]:
        slow = outcome(lambda value: node.slow_dump(value, "result"), value)
        fast = outcome(node.dump, value)
        if isinstance(fast, type):
            assert slow is fast is Misfit, f"{value!r} is refused without a place"
        elif not isinstance(slow, type):
            assert json.dumps(fast, default=repr) == json.dumps(slow, default=repr), value
