"""Judges values by the schemas that this package derives: defaults and examples at build, arguments in tests. The server has the
whole of JSON Schema, and judges what callers send."""

from __future__ import annotations

import binascii
import json
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from ._node import Schema


def check(schema: Schema, value: Any, definitions: dict[str, Schema], path: str = "") -> str:
    """Returns what is wrong with a value and where, or nothing."""
    return next(problems(schema, value, definitions, path), "")


def problems(schema: Schema, value: Any, definitions: dict[str, Schema], path: str) -> Iterator[str]:
    """Yields what is wrong with a value."""
    if "$ref" in schema:
        yield from problems(definitions[schema["$ref"].removeprefix("#/$defs/")], value, definitions, path)
    for part in schema.get("allOf", ()):
        yield from problems(part, value, definitions, path)
    if "anyOf" in schema and all(check(part, value, definitions, path) for part in schema["anyOf"]):
        yield _at(path, "it is none of what it can be")
    kinds = schema.get("type")
    if kinds is not None:
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if not any(_is(value, kind) for kind in kinds):
            yield _at(path, f"{_shown(value)} is not of type {' or '.join(kinds)}")
            return
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        yield _at(path, f"{_shown(value)} is not one of {', '.join(map(_shown, schema['enum']))}")
    if isinstance(value, str):
        yield from _text(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(schema, value, path)
    elif isinstance(value, list):
        yield from _array(schema, value, definitions, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, definitions, path)


def _at(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer())
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    types: dict[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
    return isinstance(value, types[kind])


def _same(value: Any, choice: Any) -> bool:
    return isinstance(value, bool) == isinstance(choice, bool) and value == choice


def _size(schema: Schema, size: int, what: str, unit: str, path: str) -> Iterator[str]:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if low is not None and size < low:
        yield _at(path, f"it has {size} {unit}, at least {low} are wanted")
    if high is not None and size > high:
        yield _at(path, f"it has {size} {unit}, at most {high} are wanted")


# The formats that types of this package have, and those whose values authors mistake most. Others are left to the server.
_FORMATS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
    "uuid": re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*"),
}


def _text(schema: Schema, value: str, path: str) -> Iterator[str]:
    yield from _size(schema, len(value), "Length", "characters", path)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield _at(path, f"{_shown(value)} does not match the pattern {schema['pattern']}")
    form = _FORMATS.get(schema.get("format", ""))
    if form is not None and not form.fullmatch(value):
        yield _at(path, f"{_shown(value)} is not of the format {schema['format']}")
    if schema.get("contentEncoding") == "base64":
        try:
            binascii.a2b_base64(value, strict_mode=True)
        except ValueError as error:
            yield _at(path, f"it is not base64: {error}")


def _no_multiple(value: Any, of: Any) -> bool:
    return bool(abs(value / of - round(value / of)) > 1e-9)


_COMPARISONS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", operator.lt, "less than"),
    ("exclusiveMinimum", operator.le, "not greater than"),
    ("maximum", operator.gt, "greater than"),
    ("exclusiveMaximum", operator.ge, "not less than"),
    ("multipleOf", _no_multiple, "not a multiple of"),
)


def _number(schema: Schema, value: float, path: str) -> Iterator[str]:
    for bound, wrong, words in _COMPARISONS:
        if bound in schema and wrong(value, schema[bound]):
            yield _at(path, f"{_shown(value)} is {words} {schema[bound]}")


def _array(schema: Schema, value: list[Any], definitions: dict[str, Schema], path: str) -> Iterator[str]:
    yield from _size(schema, len(value), "Items", "elements", path)
    first = schema.get("prefixItems", [])
    for i, item in enumerate(value):
        part = first[i] if i < len(first) else schema.get("items", {})
        yield from problems(part, item, definitions, f"{path}[{i}]")
    if schema.get("uniqueItems") and any(item in value[:i] for i, item in enumerate(value)):
        yield _at(path, "it has an element twice")


def _object(schema: Schema, value: dict[str, Any], definitions: dict[str, Schema], path: str) -> Iterator[str]:
    yield from _size(schema, len(value), "Properties", "members", path)
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield _at(f"{path}.{name}" if path else name, "it is missing")
    more = schema.get("additionalProperties", {})
    for name, item in value.items():
        at = f"{path}.{name}" if path else name
        if "propertyNames" in schema:
            yield from problems(schema["propertyNames"], name, definitions, f"the name {name}")
        if name in known:
            yield from problems(known[name], item, definitions, at)
        elif more is False:
            yield _at(at, "it is not known")
        elif more:
            yield from problems(more, item, definitions, at)


def filled(schema: Schema, value: Any, definitions: dict[str, Schema]) -> Any:
    """Returns a value with the defaults of what it leaves out, as the server fills them in."""
    if "$ref" in schema:
        value = filled(definitions[schema["$ref"].removeprefix("#/$defs/")], value, definitions)
    for part in schema.get("allOf", ()):
        value = filled(part, value, definitions)
    if isinstance(value, list) and "items" in schema:
        return [filled(schema["items"], item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    out = {name: part["default"] for name, part in known.items() if "default" in part and name not in value}
    more = schema.get("additionalProperties") or {}
    for name, item in value.items():
        out[name] = filled(known.get(name, more), item, definitions)
    return out
