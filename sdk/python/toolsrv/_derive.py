"""Makes nodes of annotations."""

from __future__ import annotations

import collections
import collections.abc as abc
import copy
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import types
import typing
import uuid
from typing import Any

from . import _scalars as scalars
from ._anything import ANYTHING, AnyDict, AnyList
from ._containers import Constrained, List, Map, Tuple, Union
from ._docstring import parse
from ._errors import DeclarationError
from ._field import EMPTY, MISSING, Field, FieldInfo
from ._node import Node
from ._objects import Definition, Member, Object, Typed

_LISTS: dict[Any, tuple[str, Any, bool]] = {
    list: ("list", None, False),
    abc.Sequence: ("list", None, False),
    abc.MutableSequence: ("list", None, False),
    abc.Iterable: ("list", None, False),
    abc.Collection: ("list", None, False),
    collections.deque: ("deque", collections.deque, False),
    set: ("set", set, True),
    abc.MutableSet: ("set", set, True),
    frozenset: ("frozenset", frozenset, True),
    abc.Set: ("frozenset", frozenset, True),
}
_DICTS = (dict, abc.Mapping, abc.MutableMapping)

# What authors may take for a type that there is, and what to write.
_REMEDIES: dict[Any, str] = {
    complex: "use a tuple of two floats",
    range: "use a tuple of two ints",
    type: "use a text, or a Literal of names",
    collections.defaultdict: "use dict",
    collections.OrderedDict: "use dict, which keeps its order, too",
    collections.Counter: "use dict[str, int]",
    memoryview: "use bytes",
    abc.Callable: "a function has no place in JSON",
    abc.Iterator: "return a list: the result is sent as a whole",
    abc.Generator: "return a list: the result is sent as a whole",
    abc.AsyncIterator: "return a list: the result is sent as a whole",
    abc.AsyncGenerator: "return a list: the result is sent as a whole",
    abc.Awaitable: "write async def, and annotate what it returns",
    abc.Coroutine: "write async def, and annotate what it returns",
}


class Deriver:
    """Makes the nodes of one tool, and each once: types may hold themselves."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}

    def of(self, hint: Any, path: str, variables: dict[Any, Any] | None = None) -> Node:
        """Returns the node of an annotation. The path names its place for errors."""
        node, info = self.split(hint, path, variables or {})
        return self.constrain(node, info)

    def constrain(self, node: Node, info: FieldInfo) -> Node:
        """Returns a node whose values are bounded as Field says."""
        if isinstance(node, scalars.Exact) and info.bounds:
            node = scalars.Exact(info.bounds)
        return Constrained(node, info) if info.bounds or info.description or info.examples else node

    def split(self, hint: Any, path: str, variables: dict[Any, Any]) -> tuple[Node, FieldInfo]:
        """Returns the node of an annotation without Annotated, and what the Fields in that say."""
        info = EMPTY
        while True:
            origin = typing.get_origin(hint)
            if origin is typing.Annotated:
                hint, *extras = typing.get_args(hint)
                for extra in extras:
                    if isinstance(extra, FieldInfo):
                        info = extra.over(info)
                    elif isinstance(extra, type) and issubclass(extra, FieldInfo) or extra is Field:
                        raise DeclarationError(f"{path}: Annotated has Field itself: write Field(…)")
                    elif isinstance(extra, str):
                        info = FieldInfo(MISSING, None, extra, (), "", {}).over(info)
            elif origin in (typing.Required, typing.NotRequired, typing.Final, dataclasses.InitVar, _READ_ONLY):
                hint = typing.get_args(hint)[0]
            elif isinstance(hint, typing.TypeVar) and hint in variables:
                hint = variables[hint]
            elif _is_scalar_alias(hint):
                hint = hint.__supertype__ if isinstance(hint, typing.NewType) else hint.__value__
            else:
                return self._node(hint, path, variables), info

    def _node(self, hint: Any, path: str, variables: dict[Any, Any]) -> Node:
        if isinstance(hint, str | typing.ForwardRef):
            name = hint if isinstance(hint, str) else hint.__forward_arg__
            raise DeclarationError(f'{path}: nothing is called "{name}" here: define it in the script, or import it')
        scalar = _scalar(hint)
        if scalar is not None:
            return scalar
        if hint is typing.Any or hint is object:
            return ANYTHING
        key = (hint, tuple(variables.items())) if variables and _open(hint) else hint
        try:
            known = self._nodes.get(key)
        except TypeError:  # Literal[[]]
            known, key = None, None
        if known is not None:
            return known
        return self._made(hint, key, path, variables)

    def _made(self, hint: Any, key: Any, path: str, variables: dict[Any, Any]) -> Node:
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Literal:
            return self._literal(args, path)
        if origin in (typing.Union, types.UnionType):
            arms = [self.of(arg, path, variables) for arg in args]
            return Union(arms)
        if isinstance(hint, typing.NewType) or _is_type_alias(hint):
            return self._definition(hint, key, path, variables)
        if isinstance(hint, typing.TypeVar):
            bound = hint.__constraints__ or ((hint.__bound__,) if hint.__bound__ else ())
            if not bound:
                raise DeclarationError(f"{path}: {hint} can be any type: name one")
            return Union([self.of(arg, path) for arg in bound]) if len(bound) > 1 else self.of(bound[0], path)
        base = origin or hint
        if base is tuple:
            return self._tuple(args, path, variables)
        if base in _LISTS:
            name, make, unique = _LISTS[base]
            if not args and not unique and make is None:
                return AnyList()
            return List(name, self.of(args[0], path + "[]", variables) if args else ANYTHING, make, unique)
        if base in _DICTS:
            return self._map(args, path, variables) if args else AnyDict()
        if isinstance(base, type):
            if issubclass(base, enum.Enum):
                return self._enum(base, path)
            if typing.is_typeddict(base) or dataclasses.is_dataclass(base) or _is_namedtuple(base):
                return self._object(base, args, key, path, variables)
        raise DeclarationError(f"{path}: {_name(hint)} has no form in JSON: {_remedy(base)}")

    def _literal(self, values: tuple[Any, ...], path: str) -> Node:
        plain: list[Any] = []
        members: dict[Any, Any] = {}
        for value in values:
            raw = value.value if isinstance(value, enum.Enum) else value
            if raw is not None and type(raw) not in (str, int, bool):
                raise DeclarationError(f"{path}: Literal[{value!r}] has no form in JSON: use texts, whole numbers, True, False or None")
            plain.append(raw)
            members[raw] = value
        return scalars.Choice(plain, members if any(isinstance(value, enum.Enum) for value in values) else None)

    def _enum(self, cls: type[enum.Enum], path: str) -> Node:
        if issubclass(cls, enum.Flag):
            raise DeclarationError(f"{path}: {cls.__name__} is a Flag, whose values are combined: use a set of an Enum")
        values = [member.value for member in cls]
        if not values:
            raise DeclarationError(f"{path}: {cls.__name__} has no members")
        for member in cls:
            if type(member.value) not in (str, int, float, bool):
                raise DeclarationError(
                    f"{path}: {cls.__name__}.{member.name} is {member.value!r:.60}, which has no form in JSON: give members texts as values"
                )
        choice = scalars.Choice(values, {member.value: member for member in cls})
        choice.name = cls.__name__
        return choice

    def _tuple(self, args: tuple[Any, ...], path: str, variables: dict[Any, Any]) -> Node:
        if not args:
            return List("tuple", ANYTHING, tuple)
        if len(args) == 2 and args[1] is Ellipsis:
            return List("tuple", self.of(args[0], path + "[]", variables), tuple)
        if args == ((),):
            args = ()
        alike = all(arg == args[0] for arg in args)
        return Tuple([self.of(arg, f"{path}[{i}]", variables) for i, arg in enumerate(args)], alike)

    def _map(self, args: tuple[Any, ...], path: str, variables: dict[Any, Any]) -> Node:
        key = self.of(args[0], f"a key of {path}", variables)
        inner = key.inner if isinstance(key, Constrained) else key
        fine = inner.kind in ("string", "integer") and not isinstance(inner, scalars.Bytes)
        if isinstance(inner, scalars.Choice) and inner.kind != "string" or not fine:
            raise DeclarationError(
                f"{path}: {_name(args[0])} can't be the name of a member in JSON: use str, int, or an Enum of texts as keys"
            )
        return Map(key, self.of(args[1], path + "{}", variables))

    def _definition(self, hint: Any, key: Any, path: str, variables: dict[Any, Any]) -> Node:
        target = hint.__supertype__ if isinstance(hint, typing.NewType) else hint.__value__
        base = typing.get_origin(target) or target
        kind = "object" if base in _DICTS else "array" if base in _LISTS or base is tuple else ""
        node = Definition(hint.__name__, kind)
        self._nodes[key] = node
        node.inner = self.of(target, path, variables)
        node.kind = node.inner.kind
        return node

    def _object(self, cls: Any, args: tuple[Any, ...], key: Any, path: str, variables: dict[Any, Any]) -> Node:
        parameters = getattr(cls, "__parameters__", ())
        if args:
            variables = dict(zip(parameters, (variables.get(arg, arg) for arg in args), strict=True))
        doc = parse(_own_docstring(cls))
        node = (Typed if typing.is_typeddict(cls) else Object)(cls, cls.__name__, doc.description)
        if key is not None:
            self._nodes[key] = node
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError as error:
            raise DeclarationError(
                f'{path}: {cls.__name__} names "{error.name}", which is not known: define it in the script, or import it'
            ) from None
        described = doc.parameters
        for name, hint, default, factory, given in _fields(cls, hints, path):
            at = f"{path}.{name}"
            inner, info = self.split(hint, at, variables)
            if not info.description and name in described:
                info = FieldInfo(MISSING, None, described[name], (), "", {}).over(info)
            optional = typing.is_typeddict(cls) and name in cls.__optional_keys__
            member = member_of(name, inner, info, default, factory, at)
            member.optional, member.given = optional, given
            node.members.append(member)
        return node


def member_of(name: str, node: Node, info: FieldInfo, default: Any, factory: Any, path: str) -> Member:
    """Returns a member with its default, which stands behind it or in its Field."""
    if isinstance(default, FieldInfo):
        info = default.over(info)
        default = MISSING
    if isinstance(node, scalars.Exact) and info.bounds:
        node = scalars.Exact(info.bounds)
    elif isinstance(node, Union) and info.bounds and isinstance(node.without_null(), scalars.Exact):
        node = Union([scalars.Exact(info.bounds), scalars.Null()])
    if default is MISSING:
        default = info.default
    if factory is None:
        factory = info.default_factory
    member = Member(name, info.alias or name, node, info)
    if default is not MISSING:
        member.default = [default]
        if isinstance(default, list | dict | set | bytearray):
            member.factory = functools.partial(copy.deepcopy, default)
    elif factory is not None:
        member.factory = factory
        # What others make may differ each time, as a date does.
        if factory in (list, dict, set, frozenset, tuple):
            member.default = [factory()]
        else:
            member.shows = False
    return member


def _fields(cls: Any, hints: dict[str, Any], path: str) -> list[tuple[str, Any, Any, Any, bool]]:
    """Returns a class's members: name, annotation, default, factory, and whether arguments have it."""
    out: list[tuple[str, Any, Any, Any, bool]] = []
    if dataclasses.is_dataclass(cls):
        for name, entry in cls.__dataclass_fields__.items():
            kind = getattr(entry, "_field_type", None)
            if str(kind) == "_FIELD_INITVAR":
                raise DeclarationError(f"{path}.{name}: an InitVar is no member, so callers can't pass it and read it: make it a member")
        for field in dataclasses.fields(cls):
            default = MISSING if field.default is dataclasses.MISSING else field.default
            factory = None if field.default_factory is dataclasses.MISSING else field.default_factory
            out.append((field.name, hints[field.name], default, factory, field.init))
    elif typing.is_typeddict(cls):
        out = [(name, hint, MISSING, None, True) for name, hint in hints.items()]
    else:
        defaults = cls._field_defaults
        out = [(name, hints.get(name, Any), defaults.get(name, MISSING), None, True) for name in cls._fields]
    return out


def _scalar(hint: Any) -> Node | None:
    try:
        make = _SCALARS.get(hint)
    except TypeError:
        return None
    return None if make is None else make()


_SCALARS: dict[Any, Any] = {
    str: scalars.Text,
    int: scalars.Int,
    float: scalars.Float,
    bool: scalars.Bool,
    None: scalars.Null,
    type(None): scalars.Null,
    decimal.Decimal: scalars.Exact,
    datetime.datetime: scalars.DateTime,
    datetime.date: scalars.Date,
    datetime.time: scalars.Time,
    datetime.timedelta: scalars.Duration,
    uuid.UUID: lambda: scalars.Identifier(uuid.UUID),
    bytes: lambda: scalars.Bytes(bytes),
    bytearray: lambda: scalars.Bytes(bytearray),
}

_READ_ONLY: Any = getattr(typing, "ReadOnly", object())


def _is_type_alias(hint: Any) -> bool:
    kind = getattr(typing, "TypeAliasType", None)
    return kind is not None and isinstance(hint, kind)


def _is_scalar_alias(hint: Any) -> bool:
    """Reports whether an alias is of a type that is described where it is used."""
    if isinstance(hint, typing.NewType):
        target = hint.__supertype__
    elif _is_type_alias(hint):
        target = hint.__value__
    else:
        return False
    while typing.get_origin(target) is typing.Annotated:
        target = typing.get_args(target)[0]
    if isinstance(target, typing.NewType) or _is_type_alias(target):
        return _is_scalar_alias(target)
    base = typing.get_origin(target) or target
    union = base in (typing.Union, types.UnionType)
    return not (base in _LISTS or base in _DICTS or base is tuple or union)


def _is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def _open(hint: Any) -> bool:
    return bool(getattr(hint, "__parameters__", ())) or isinstance(hint, typing.TypeVar)


def _own_docstring(cls: Any) -> str:
    """Returns the docstring that an author wrote for a class, not what dataclasses and NamedTuple make up."""
    doc = cls.__dict__.get("__doc__") or ""
    if doc.startswith(f"{cls.__name__}("):
        return ""
    return doc


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def _remedy(base: Any) -> str:
    try:
        known = _REMEDIES.get(base)
    except TypeError:
        known = None
    if known:
        return known
    if inspect.isclass(base):
        return "make it a dataclass, or use str, int, float, bool, list, dict or another type that JSON has"
    return "use a type, such as str, int, float, bool, list[str] or a dataclass"
