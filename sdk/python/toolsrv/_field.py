"""What an author adds to a type: bounds, a description, a default."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from ._errors import Misfit


class Missing:
    """Where there is no value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

# The options that bound values, and the JSON types that they are for.
_BOUNDS: Final = {
    "ge": ("minimum", ("integer", "number")),
    "le": ("maximum", ("integer", "number")),
    "gt": ("exclusiveMinimum", ("integer", "number")),
    "lt": ("exclusiveMaximum", ("integer", "number")),
    "multiple_of": ("multipleOf", ("integer", "number")),
    "min_length": ("minLength", ("string", "array", "object")),
    "max_length": ("maxLength", ("string", "array", "object")),
    "pattern": ("pattern", ("string",)),
    "format": ("format", ("string",)),
    "content_encoding": ("contentEncoding", ("string",)),
    "content_media_type": ("contentMediaType", ("string",)),
}


class FieldInfo:
    """What [Field] returns."""

    __slots__ = ("alias", "bounds", "default", "default_factory", "description", "examples")

    def __init__(
        self,
        default: Any,
        default_factory: Callable[[], Any] | None,
        description: str,
        examples: Sequence[Any],
        alias: str,
        bounds: dict[str, Any],
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.description = description
        self.examples = list(examples)
        self.alias = alias
        self.bounds = bounds

    def __repr__(self) -> str:
        return f"Field({', '.join(f'{name}={value!r}' for name, value in self.bounds.items())})"

    def over(self, other: FieldInfo) -> FieldInfo:
        """Returns what both say; where both say something, self holds."""
        return FieldInfo(
            other.default if self.default is MISSING else self.default,
            self.default_factory or other.default_factory,
            self.description or other.description,
            self.examples or other.examples,
            self.alias or other.alias,
            {**other.bounds, **self.bounds},
        )


EMPTY: Final = FieldInfo(MISSING, None, "", (), "", {})


def Field(  # noqa: N802
    default: Any = MISSING,
    *,
    default_factory: Callable[[], Any] | None = None,
    description: str = "",
    examples: Sequence[Any] = (),
    alias: str = "",
    ge: float | Decimal | None = None,
    gt: float | Decimal | None = None,
    le: float | Decimal | None = None,
    lt: float | Decimal | None = None,
    multiple_of: float | Decimal | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    format: str | None = None,
    content_encoding: str | None = None,
    content_media_type: str | None = None,
) -> Any:
    """Says more of a parameter or a member than its type does. It stands in Annotated, or as a parameter's default.

    The names are pydantic's. `ge`, `gt`, `le`, `lt` and `multiple_of` bound numbers; `min_length` and `max_length` texts, lists, sets and
    dicts; `pattern` and `format` (such as "email") texts. `alias` is the name in JSON. `content_media_type` says what bytes are, such as
    "image/png". `default` is the value where a caller leaves the member out.
    """
    given = {
        "ge": ge,
        "gt": gt,
        "le": le,
        "lt": lt,
        "multiple_of": multiple_of,
        "min_length": min_length,
        "max_length": max_length,
        "pattern": pattern,
        "format": format,
        "content_encoding": content_encoding,
        "content_media_type": content_media_type,
    }
    return FieldInfo(
        default, default_factory, description, examples, alias, {name: value for name, value in given.items() if value is not None}
    )


def constrained(schema: dict[str, Any], bounds: dict[str, Any], kind: str) -> None:
    """Adds bounds to a schema whose values are of a JSON type. Raises a ValueError where that makes no sense."""
    for name, value in bounds.items():
        member, kinds = _BOUNDS[name]
        if kind not in kinds:
            this = f"a JSON {kind}" if kind else "of more than one JSON type"
            raise ValueError(f"{name} is for a JSON {' or '.join(kinds)}, and this is {this}: remove {name}")
        if kind in ("array", "object") and "Length" in member:
            member = member.replace("Length", "Items" if kind == "array" else "Properties")
        _check_bound(name, value)
        own = schema.get(member)  # of the type, such as a tuple of two
        if own is not None and (name in ("ge", "min_length") and value < own or name in ("le", "max_length") and value > own):
            raise ValueError(f"{name}={value} is beyond what the type holds, which is {own}")
        schema[member] = plain_number(value) if isinstance(value, (float, Decimal)) else value
    _check_contradiction(schema)


def plain_number(value: Any) -> Any:
    """Returns a number as a schema has it: whole ones without a point, as in other languages."""
    return int(value) if value == int(value) else float(value)


def _check_bound(name: str, value: Any) -> None:
    if name in ("min_length", "max_length"):
        if type(value) is not int or value < 0:
            raise ValueError(f"{name}={value!r:.80} is not a count: write a whole number from 0")
    elif name in ("pattern", "format", "content_encoding", "content_media_type"):
        _check_text(name, value)
    elif type(value) not in (int, float, Decimal) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r:.80} is not a number")
    elif name == "multiple_of" and value <= 0:
        raise ValueError(f"multiple_of={value} is not greater than 0")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name}={value!r:.80} is not a text")
    if name == "pattern":
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"pattern={value!r:.80} is not a regular expression: {error}") from None
    if name == "content_encoding" and value != "base64":
        raise ValueError(f'content_encoding={value!r:.80} is not known: it can be "base64"')
    if name == "content_media_type" and not re.fullmatch(r"[^/ ,]+/[^ ,]+", value):
        raise ValueError(f'content_media_type={value!r:.80} is not a media type: write it like "image/png"')


def _check_contradiction(schema: dict[str, Any]) -> None:
    for least, most, equal in (
        ("minimum", "maximum", False),
        ("minimum", "exclusiveMaximum", True),
        ("exclusiveMinimum", "maximum", True),
        ("exclusiveMinimum", "exclusiveMaximum", True),
        ("minLength", "maxLength", False),
        ("minItems", "maxItems", False),
        ("minProperties", "maxProperties", False),
    ):
        low, high = schema.get(least), schema.get(most)
        if low is not None and high is not None and (low > high or equal and low == high):
            raise ValueError(f"no value is within the {least} {low} and the {most} {high}")


_COMPARISONS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("ge", operator.lt, "less than"),
    ("gt", operator.le, "not greater than"),
    ("le", operator.gt, "greater than"),
    ("lt", operator.ge, "not less than"),
    ("multiple_of", operator.mod, "not a multiple of"),
)


def check_number(value: Any, bounds: dict[str, Any]) -> None:
    """Raises a Misfit for a number that is out of bounds: for those that come as texts, which the server does not compare."""
    for name, wrong, words in _COMPARISONS:
        bound = bounds.get(name)
        if bound is not None and wrong(value, Decimal(str(bound))):
            raise Misfit(f"{value} is {words} {bound}")
