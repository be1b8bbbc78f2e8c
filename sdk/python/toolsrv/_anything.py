"""Values of any type: Any, list and dict without types, and what JSON does not have."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import math
import types
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from ._errors import Misfit
from ._node import Code, Node, shown


class Anything(Node):
    """Any, or a result without an annotation. What JSON does not have is written by [plain]."""

    name = "Any"

    def fits(self, value: Any) -> bool:
        return True

    def dump(self, value: Any) -> Any:
        return value

    def slow_dump(self, value: Any, path: str) -> Any:
        return _plain_at(value, path, 0)

    def dump_code(self, source: str, code: Code) -> str:
        return source

    def takes(self, value: Any) -> bool:
        return True


class AnyList(Anything):
    """list, without a type of its elements."""

    kind, name = "array", "list"

    def fits(self, value: Any) -> bool:
        return type(value) is list

    def dump(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise self.misfit(value)
        return value

    def slow_dump(self, value: Any, path: str) -> Any:
        return _plain_at(Node.slow_dump(self, value, path), path, 0)

    def dump_code(self, source: str, code: Code) -> str:
        return Node.dump_code(self, source, code)

    def takes(self, value: Any) -> bool:
        return Node.takes(self, value)


class AnyDict(AnyList):
    """dict, without types of its members."""

    kind, name = "object", "dict"

    def fits(self, value: Any) -> bool:
        return type(value) is dict

    def dump(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise self.misfit(value)
        return value if isinstance(value, dict) else dict(value)


ANYTHING: Final = Anything()


def tidy(value: Any) -> Any:
    """Returns a value as a schema has it: whole numbers without a point, as in other languages, and nothing that is not JSON."""
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items()}
    return value if value is None or type(value) in (str, int, float, bool) else plain(value)


def plain(value: Any) -> Any:
    """Returns what a value of a type that JSON does not have is in JSON, one level deep; what is in it may need that, too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, Sequence):
        return list(value)
    hint = "write await before the call" if isinstance(value, types.CoroutineType) else "return what JSON has, or a dataclass"
    raise Misfit(f"{shown(value)} can't be written as JSON: {hint}")


def _plain_at(value: Any, path: str, depth: int) -> Any:
    """Returns a value of any type as JSON has it, and says in a Misfit where that can't be."""
    if depth > 900:
        raise Misfit("it is nested too deeply, or holds itself", path[:80] + "…")
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Misfit(f"{value} has no place in JSON: raise a ToolError, or return None", path)
        return value
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            if key is not None and not isinstance(key, str | int | float):
                raise Misfit(f"{shown(key)} can't be the name of a member: use a text", f"a key of {path}")
            out[key] = _plain_at(item, f"{path}.{key}", depth + 1)
        return out
    if isinstance(value, list | tuple):
        return [_plain_at(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    try:
        value = plain(value)
    except Misfit as error:
        raise Misfit(error.message, path) from None
    return _plain_at(value, path, depth + 1)
