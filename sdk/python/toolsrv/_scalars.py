"""Types whose values are a text, a number, true, false or null in JSON."""

from __future__ import annotations

import binascii
import datetime
import math
import sys
from decimal import Decimal
from typing import Any, Final

from ._errors import Misfit
from ._field import check_number
from ._node import Code, Definitions, Node, Schema, shown


class Text(Node):
    """str."""

    kind, name, exact = "string", "str", frozenset({str})

    def dump(self, value: Any) -> Any:
        if isinstance(value, str):
            return str.__str__(value)
        raise self.misfit(value)

    def dump_code(self, source: str, code: Code) -> str:
        return f"(v if type(v := {source}) is str else {code.bind(self.dump)}(v))"


class Bool(Node):
    """bool."""

    kind, name, exact = "boolean", "bool", frozenset({bool})


class Null(Node):
    """None."""

    kind, name, exact = "null", "None", frozenset({type(None)})


class Int(Node):
    """int, of any size."""

    kind, name, exact, as_is = "integer", "int", frozenset({int}), False

    def load(self, value: Any) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            return int(value)
        raise Misfit("the number is too large" if isinstance(value, float) and math.isinf(value) else f"{value!r:.60} is not an integer")

    def dump(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        raise self.misfit(value)

    def load_code(self, source: str, code: Code) -> str:
        return f"(v if type(v := {source}) is int else {code.bind(self.load)}(v))"

    def dump_code(self, source: str, code: Code) -> str:
        return f"(v if type(v := {source}) is int else {code.bind(self.dump)}(v))"


class Float(Node):
    """float, which whole numbers are, too."""

    kind, name, as_is = "number", "float", False
    exact = frozenset({float, int})

    def fits(self, value: Any) -> bool:
        return type(value) in (float, int, Digits) and abs(value) <= sys.float_info.max

    def load(self, value: Any) -> Any:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if number - number == 0.0:
            return number
        raise Misfit("the number is too large for a float")

    def dump(self, value: Any) -> Any:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise self.misfit(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise Misfit(f"{value} has no place in JSON: raise a ToolError, or return None")
        return float(value) if isinstance(value, float) else int(value)

    def slow_dump(self, value: Any, path: str) -> Any:
        return Node.slow_dump(self, value, path)

    def load_code(self, source: str, code: Code) -> str:
        return f"(v if type(v := {source}) is float and v - v == 0.0 else {code.bind(self.load)}(v))"

    def dump_code(self, source: str, code: Code) -> str:
        return f"(v if type(v := {source}) is float else {code.bind(self.dump)}(v))"


_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


class Digits(float):
    """A number from JSON that keeps its digits, for tools that take a Decimal."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Digits:
        number = float.__new__(cls, text)
        number.text = text
        return number


class Exact(Node):
    """Decimal. A caller passes a number or a text, and gets a text back: most readers of JSON would round a number."""

    kind, name, as_is = "number", "Decimal", False

    def __init__(self, bounds: dict[str, Any] | None = None) -> None:
        self.bounds = bounds or {}

    def content(self, definitions: Definitions) -> Schema:
        return {"type": ["number", "string"] if definitions.arguments else "string", "pattern": _NUMBER}

    def fits(self, value: Any) -> bool:
        if type(value) is str:
            try:
                return Decimal(value).is_finite()
            except ArithmeticError:
                return False
        return type(value) in (int, float, Digits) and (type(value) is int or math.isfinite(value))

    def load(self, value: Any) -> Any:
        try:
            number = Decimal(value.text if isinstance(value, Digits) else repr(value) if isinstance(value, float) else value)
        except ArithmeticError:
            raise Misfit(f"{value!r:.60} is not a number") from None
        if not number.is_finite():
            raise Misfit(f"{value!r:.60} is not a finite number")
        if self.bounds:
            check_number(number, self.bounds)
        return number

    def dump(self, value: Any) -> Any:
        if type(value) is int:
            return str(value)
        if not isinstance(value, Decimal):
            raise self.misfit(value)
        if not value.is_finite():
            raise Misfit(f"{value} has no place in JSON: raise a ToolError, or return None")
        return str(value)


class Choice(Node):
    """Literal, with values that JSON has."""

    def __init__(self, values: list[Any], members: dict[Any, Any] | None = None) -> None:
        """Members are what the values stand for, where that is something else."""
        self.values = values
        self.members = members
        self.as_is = members is None
        kinds = {_KINDS[type(value)] for value in values}
        self.kind = kinds.pop() if len(kinds) == 1 else ""
        self.name = " or ".join(repr(value) for value in values)
        if members is None:
            self._dumped = {(type(value), value): value for value in values}
        else:
            self._dumped = {(type(member), member): value for value, member in members.items()}

    def content(self, definitions: Definitions) -> Schema:
        kinds = list(dict.fromkeys(_KINDS[type(value)] for value in self.values))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(self.values)}

    def fits(self, value: Any) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in self.values)

    def load(self, value: Any) -> Any:
        if self.members is None:
            return value
        try:
            return self.members[value]
        except (KeyError, TypeError):
            raise Misfit(f"{value!r:.60} is not {self.name}") from None

    def dump(self, value: Any) -> Any:
        try:
            return self._dumped[type(value), value]
        except (KeyError, TypeError):
            raise Misfit(f"{shown(value)} is not one of {self.name}") from None


_KINDS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Parsed(Node):
    """A type whose values are texts in JSON, such as dates."""

    kind, as_is = "string", False

    def fits(self, value: Any) -> bool:
        try:
            return type(value) is str and self.load(value) is not None
        except (Misfit, ValueError):
            return False


class DateTime(Parsed):
    """datetime, by RFC 3339."""

    name = "datetime"

    def content(self, definitions: Definitions) -> Schema:
        return {"type": "string", "format": "date-time"}

    def load(self, value: Any) -> Any:
        try:
            time = datetime.datetime.fromisoformat(value.upper())
        except ValueError as error:
            raise Misfit(f"{value!r:.60} is not a date with a time: {error}") from None
        if time.tzinfo is None:
            raise Misfit(f"{value!r:.60} has no time zone: write it like 2026-01-31T12:00:00Z")
        return time

    def dump(self, value: Any) -> Any:
        if not isinstance(value, datetime.datetime):
            raise self.misfit(value)
        offset = value.utcoffset()
        if offset is None:
            raise Misfit(f"{value} has no time zone, so nobody knows when that is: give it one, as datetime.now(timezone.utc) has")
        if offset % datetime.timedelta(minutes=1):  # before there were zones, noon was when the sun stood highest
            value = value.astimezone(datetime.UTC)
        return value.isoformat()


class Date(Parsed):
    """date."""

    name = "date"

    def content(self, definitions: Definitions) -> Schema:
        return {"type": "string", "format": "date"}

    def load(self, value: Any) -> Any:
        try:
            return datetime.date.fromisoformat(value)
        except ValueError as error:
            raise Misfit(f"{value!r:.60} is not a date: {error}") from None

    def dump(self, value: Any) -> Any:
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            raise self.misfit(value)
        return value.isoformat()


class Time(Parsed):
    """time. The format "time" of JSON Schema wants a zone, which a time of day seldom has."""

    name = "time"

    def content(self, definitions: Definitions) -> Schema:
        zone = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
        return {"type": "string", "pattern": rf"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?{zone}$"}

    def load(self, value: Any) -> Any:
        try:
            return datetime.time.fromisoformat(value)
        except ValueError as error:
            raise Misfit(f"{value!r:.60} is not a time: {error}") from None

    def dump(self, value: Any) -> Any:
        if not isinstance(value, datetime.time):
            raise self.misfit(value)
        return value.isoformat()


_LONGEST: Final = datetime.timedelta.max.total_seconds()


class Duration(Node):
    """timedelta, in seconds."""

    kind, name, as_is = "number", "timedelta", False

    def content(self, definitions: Definitions) -> Schema:
        return {"type": "number", "description": "A duration in seconds."}

    def fits(self, value: Any) -> bool:
        return type(value) in (int, float, Digits) and abs(value) < _LONGEST

    def load(self, value: Any) -> Any:
        try:
            return datetime.timedelta(seconds=float(value))
        except (OverflowError, ValueError) as error:
            raise Misfit(f"the duration is too long: {error}") from None

    def dump(self, value: Any) -> Any:
        if not isinstance(value, datetime.timedelta):
            raise self.misfit(value)
        seconds = value.days * 86400 + value.seconds
        return seconds + value.microseconds / 1_000_000 if value.microseconds else seconds


class Identifier(Parsed):
    """UUID."""

    name = "UUID"

    def __init__(self, type: type) -> None:
        self._type = type

    def content(self, definitions: Definitions) -> Schema:
        return {"type": "string", "format": "uuid"}

    def load(self, value: Any) -> Any:
        return self._type(value)

    def dump(self, value: Any) -> Any:
        if not isinstance(value, self._type):
            raise self.misfit(value)
        return str(value)


class Bytes(Parsed):
    """bytes, in base64."""

    name = "bytes"

    def __init__(self, type: type) -> None:
        self._type = type

    def content(self, definitions: Definitions) -> Schema:
        return {"type": "string", "contentEncoding": "base64"}

    def load(self, value: Any) -> Any:
        try:
            raw = binascii.a2b_base64(value, strict_mode=True)
        except ValueError as error:
            raise Misfit(f"it is not base64: {error}") from None
        return raw if self._type is bytes else self._type(raw)

    def dump(self, value: Any) -> Any:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise self.misfit(value)
        return binascii.b2a_base64(value, newline=False).decode()
