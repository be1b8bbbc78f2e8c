"""The types of testdata/derive, under the same names as in the SDK for Go, have the same schemas."""

import inspect
import json
import pathlib
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, NewType, TypedDict, Unpack

import pytest

from toolsrv import Field, ToolError, testing, tool
from toolsrv._call import Compiled
from toolsrv._tool import tools

HERE = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "derive"
SAID = "What it is."


@dataclass
class Scalars:
    text: str
    flag: bool
    whole: int
    count: Annotated[int, Field(ge=0)]
    i8: Annotated[int, Field(ge=-128, le=127)]
    i16: Annotated[int, Field(ge=-32768, le=32767)]
    i32: Annotated[int, Field(ge=-2147483648, le=2147483647)]
    u8: Annotated[int, Field(ge=0, le=255)]
    u16: Annotated[int, Field(ge=0, le=65535)]
    u32: Annotated[int, Field(ge=0, le=4294967295)]
    f32: float
    f64: float


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Optional:
    text: str | None = None
    whole: Annotated[int | None, Field(ge=1, le=9)] = None
    texts: list[str] = field(default_factory=list)
    point: Point | None = None


@dataclass
class Lists:
    texts: list[str]
    matrix: list[list[float]]
    pair: tuple[int, int]
    points: list[Point]
    gaps: list[int | None]


@dataclass
class Maps:
    counts: dict[str, int]
    points: dict[str, Point]
    lists: dict[str, list[str]]


@dataclass
class Address:
    street: str
    country: str = "DE"


@dataclass
class Part:
    code: str


@dataclass
class Item:
    name: str
    price: float
    parts: list[Part] = field(default_factory=list)


@dataclass
class Order:
    customer: str
    ship: Address
    bill: Address
    items: list[Item]


@dataclass
class Tree:
    name: str
    children: "list[Tree]" = field(default_factory=list)


Texts = list[str]


@dataclass
class Defaults:
    text: str = "world"
    empty: str = ""
    whole: int = -3
    ratio: float = 0.5
    flag: bool = True
    list: Annotated[Texts, Field(default=["a", "b"])] = field(default_factory=lambda: ["a", "b"])
    unset: str = field(default_factory=str)


@dataclass
class Bounds:
    percent: Annotated[int, Field(ge=0, le=100)]
    positive: Annotated[float, Field(gt=0)]
    below: Annotated[float, Field(lt=1.5)]
    name: Annotated[str, Field(min_length=1, max_length=5)]
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d+$")]
    mail: Annotated[str, Field(format="email")]
    link: Annotated[str, Field(format="uri")]
    words: Annotated[list[str], Field(min_length=1, max_length=3)]


Level = Literal["debug", "info", "warn"]


@dataclass
class Choices:
    level: Level
    size: Literal[1, 2, 3]
    order: Literal["asc", "desc"] = "asc"


@dataclass
class Described:
    """
    Attributes:
        days: How many days.
        point: Its place on the map.
    """

    city: Annotated[str, Field(description="Where to look: a city's name, in any language.", examples=["Paris", "Rome"])]
    point: Point
    days: Annotated[int, Field(examples=[1, 14])] = 7
    extra: Annotated[str | None, 'Whatever "else" <there> is.'] = None


Words = NewType("Words", list[str])
Table = NewType("Table", dict[str, int])


@dataclass
class Members:
    point: Point
    point_said: Annotated[Point, SAID]
    points: list[Point]
    points_said: Annotated[list[Point], SAID]
    by_name: dict[str, Point]
    by_name_said: Annotated[dict[str, Point], SAID]
    level: Level
    level_said: Annotated[Level, SAID]
    words: Words
    words_said: Annotated[Words, SAID]
    table: Table
    table_said: Annotated[Table, SAID]


@dataclass
class Maybes:
    point: Point | None = None
    point_said: Annotated[Point | None, SAID] = None
    points: list[Point] | None = None
    points_said: Annotated[list[Point] | None, SAID] = None
    by_name: dict[str, Point] | None = None
    by_name_said: Annotated[dict[str, Point] | None, SAID] = None
    level: Level | None = None
    level_said: Annotated[Level | None, SAID] = None
    words: Words | None = None
    words_said: Annotated[Words | None, SAID] = None
    table: Table | None = None
    table_said: Annotated[Table | None, SAID] = None


class Renamed(TypedDict):
    first_name: Annotated[str, Field(alias="firstName")]
    type: str
    dashed: Annotated[int, Field(alias="with-dash")]


@dataclass
class Anything:
    value: Any
    list: list[Any]
    map: dict[str, Any]
    maybe: Any = None


class Paging(TypedDict):
    page: Annotated[int, Field(default=1, ge=1)]
    limit: Annotated[int, Field(default=20, le=100)]


class Filter(TypedDict, total=False):
    after: str


class Composed(Paging, Filter):
    query: str


class Media(TypedDict):
    picture: Annotated[bytes, Field(content_media_type="image/png")]
    said: Annotated[bytes, Field(content_media_type="image/png", description=SAID)]
    recording: Annotated[str, Field(content_encoding="base64", content_media_type="audio/wav")]
    page: Annotated[str, Field(content_media_type="text/html")]
    maybe: Annotated[bytes | None, Field(content_media_type="image/png", default=None)]
    data: bytes


def takes(cls):
    """Returns a tool whose parameters are the members of a class, which it returns."""
    if not hasattr(cls, "__dataclass_fields__"):

        def typed(**members: Unpack[cls]) -> cls:
            """T."""
            return members

        return tool(typed)

    def made(**members):
        return cls(**members)

    made.__doc__ = "T."
    if "Attributes:" in (cls.__doc__ or ""):
        made.__doc__ += "\n\nArgs:\n" + cls.__doc__.partition("Attributes:\n")[2]
    signature = inspect.signature(cls)
    by_name = {entry.name: entry for entry in fields(cls)}
    made.__signature__ = signature.replace(
        parameters=[
            parameter.replace(
                kind=parameter.KEYWORD_ONLY,
                default=Field(default_factory=by_name[name].default_factory) if "factory" in repr(parameter.default) else parameter.default,
            )
            for name, parameter in signature.parameters.items()
        ],
        return_annotation=cls,
    )
    made.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()} | {"return": cls}
    return tool(made)


def gives(cls):
    """Returns a tool whose result is of a type."""

    def made():
        """T."""

    made.__annotations__ = {"return": cls}
    return tool(made)


CASES = {
    "scalars": takes(Scalars),
    "optional": takes(Optional),
    "lists": takes(Lists),
    "maps": takes(Maps),
    "nested": takes(Order),
    "recursive": takes(Tree),
    "defaults": takes(Defaults),
    "bounds": takes(Bounds),
    "choices": takes(Choices),
    "described": takes(Described),
    "members": takes(Members),
    "maybes": takes(Maybes),
    "renamed": takes(Renamed),
    "anything": takes(Anything),
    "embedded": takes(Composed),
    "media": takes(Media),
    "number": gives(float),
    "list": gives(list[Point]),
    "map": gives(dict[str, int]),
    "maybe": gives(list[Point | None]),
    "picture": gives(Annotated[bytes, Field(content_media_type="image/png")]),
}
COMPILED = {name: Compiled(next(t for t in tools if t.function is function)) for name, function in CASES.items()}


def golden(name):
    return json.loads((HERE / f"{name}.json").read_text())


def test_every_golden_of_python_is_here():
    named = {path.stem for path in HERE.glob("*.json") if "python" in json.loads(path.read_text())["languages"]}
    assert named == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_schema(name):
    want, got = golden(name), COMPILED[name]
    assert canonical(got.result_schema) == canonical(want["result"]["schema"])
    if "arguments" in want:
        assert canonical(got.parameters) == canonical(want["arguments"]["schema"])


def canonical(schema):
    """Returns a schema as text. The order of what is required does not matter: Python wants members with a default last."""
    if isinstance(schema, dict):
        return {key: sorted(value) if key == "required" else canonical(value) for key, value in schema.items()}
    return [canonical(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("name", [name for name in CASES if "arguments" in golden(name)])
def test_values(name):
    want = golden(name)["arguments"]
    for value in want["accepted"]:
        got = testing.call(CASES[name], value)
        assert not leaves_out(value, got), f"{value} came back as {got}"
    for value in want["refused"]:
        with pytest.raises(ToolError) as refused:
            testing.call(CASES[name], value)
        assert refused.value.code == "invalid_arguments"


def leaves_out(value, got):
    """Returns whether something of a value is not in another one."""
    if isinstance(value, dict):
        return any(name not in got or leaves_out(item, got[name]) for name, item in value.items())
    if isinstance(value, list):
        return len(value) != len(got) or any(leaves_out(a, b) for a, b in zip(value, got, strict=True))
    return value != got
