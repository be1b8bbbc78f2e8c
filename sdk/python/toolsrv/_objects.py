"""Types with named members: dataclasses, TypedDicts, NamedTuples, and the parameters of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._containers import described
from ._errors import DeclarationError, Misfit
from ._field import FieldInfo
from ._node import Code, Definitions, Node, Schema


@dataclass
class Member:
    """A member of an object, or a parameter."""

    name: str  # in Python
    json: str
    node: Node
    info: FieldInfo
    default: list[Any] | None = None  # of one value: what it is where a caller leaves it out
    factory: Callable[[], Any] | None = None  # or what makes that
    shows: bool = True  # whether the default is in the schema
    optional: bool = False  # whether it may be missing in Python, too
    given: bool = True  # whether arguments have it; a result has each

    @property
    def required(self) -> bool:
        """Whether arguments must have it."""
        return self.default is None and self.factory is None and not self.optional

    def schema(self, definitions: Definitions) -> Schema:
        """Returns the member's schema. Errors name it."""
        try:
            return described(self.node, self.info, definitions, self.default if self.shows else None)
        except Misfit as error:
            raise DeclarationError(f"{self.name}: {error}") from None
        except ValueError as error:
            raise DeclarationError(f"{self.name}: {error}") from None

    def load_code(self, code: Code) -> str:
        """Returns an expression for its value in the object a."""
        value = self.node.load_code(f"a[{self.json!r}]", code)
        if self.required:
            return value
        if self.factory is not None:
            return f"({value} if {self.json!r} in a else {code.bind(self.factory)}())"
        default = self.default[0] if self.default else None
        return f"({value} if {self.json!r} in a else {'None' if default is None else code.bind(default)})"


def members_schema(members: list[Member], definitions: Definitions) -> Schema:
    """Returns the schema of an object with members."""
    out: Schema = {"type": "object"}
    shown_members = [member for member in members if member.given or not definitions.arguments]
    if shown_members:
        out["properties"] = {member.json: member.schema(definitions) for member in shown_members}
    if definitions.arguments:
        required = [member.json for member in shown_members if member.required]
    else:
        required = [member.json for member in shown_members if not member.optional]
    if required:
        out["required"] = required
    if definitions.arguments:
        out["additionalProperties"] = False  # a misspelt member is an error, not dropped
    return out


class Object(Node):
    """A type with members. What makes one of it, and what reads one, is compiled."""

    kind, as_is = "object", False

    def __init__(self, cls: Any, name: str, doc: str) -> None:
        self.cls = cls
        self.name = name
        self.doc = doc
        self.members: list[Member] = []
        self._load: Callable[[Any], Any] | None = None
        self._dump: Callable[[Any], Any] | None = None

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self, self.name, self.content)

    def content(self, definitions: Definitions) -> Schema:
        out = members_schema(self.members, definitions)
        return {"type": "object", "description": self.doc, **out} if self.doc else out

    def compile(self) -> None:
        if self._load is not None:
            return
        self._load = self._dump = self._late  # a type that holds itself is compiled once
        for member in self.members:
            member.node.compile()
        self._load, self._dump = self._compiled_load(), self._compiled_dump()

    def _late(self, value: Any) -> Any:
        raise AssertionError("a type is used before it is compiled")

    def load(self, value: Any) -> Any:
        assert self._load is not None
        return self._load(value)

    def dump(self, value: Any) -> Any:
        assert self._dump is not None
        return self._dump(value)

    def _compiled_load(self) -> Callable[[Any], Any]:
        code = Code()
        given = [member for member in self.members if member.given]
        parts = "".join(f"{member.name}={member.load_code(code)}, " for member in given)
        return code.function("a", f"return {code.bind(self.cls)}({parts})")

    def _compiled_dump(self) -> Callable[[Any], Any]:
        code = Code()
        cls, misfit = code.bind(self.cls), code.bind(self.misfit)
        parts = "".join(f"{member.json!r}: {member.node.dump_code(f'o.{member.name}', code)}, " for member in self.members)
        return code.function("o", f"if not isinstance(o, {cls}): raise {misfit}(o)\nreturn {{{parts}}}")

    def fits(self, value: Any) -> bool:
        if type(value) is not dict:
            return False
        by_name = {member.json: member for member in self.members if member.given}
        return all(member.json in value for member in by_name.values() if member.required) and all(
            name in by_name and by_name[name].node.fits(item) for name, item in value.items()
        )

    def slow_load(self, value: Any, path: str) -> Any:
        slow_members(self.members, value, path)
        return Node.slow_load(self, value, path)

    def takes(self, value: Any) -> bool:
        return isinstance(value, self.cls)

    def slow_dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.cls):
            raise Misfit(self.misfit(value).message, path)
        out = {}
        for member in self.members:
            at = f"{path}.{member.name}"
            try:
                item = getattr(value, member.name)
            except AttributeError:
                raise Misfit("it is not set", at) from None
            out[member.json] = member.node.slow_dump(item, at)
        return out


def slow_members(members: list[Member], value: Any, path: str) -> None:
    """Says in a Misfit which member of an object does not fit."""
    if type(value) is not dict:
        raise Misfit(f"{value!r:.60} is not an object", path)
    before = f"{path}." if path else ""
    given = [member for member in members if member.given]
    for member in given:
        if member.json in value:
            member.node.slow_load(value[member.json], before + member.json)
        elif member.required:
            raise Misfit("it is missing", before + member.json)
    for name in value.keys() - {member.json for member in given}:
        raise Misfit("it is not known", before + name)


class Typed(Object):
    """A TypedDict, a dict in Python, too."""

    def _compiled_load(self) -> Callable[[Any], Any]:
        code = Code()
        if all(member.node.as_is and member.required | member.optional and member.json == member.name for member in self.members):
            return code.function("a", "return a")
        lines = ["o = {}"]
        for member in self.members:
            line = f"o[{member.name!r}] = {member.load_code(code)}"
            lines.append(f"if {member.json!r} in a: {line}" if member.optional and member.default is None else line)
        return code.function("a", "\n".join([*lines, "return o"]))

    def _compiled_dump(self) -> Callable[[Any], Any]:
        code = Code()
        misfit, count = code.bind(self._broken), code.bind(len)
        lines = [f"if not isinstance(o, dict): raise {misfit}(o)", "out = {}"]
        for member in self.members:
            line = f"out[{member.json!r}] = {member.node.dump_code(f'o[{member.name!r}]', code)}"
            lines.append(f"if {member.name!r} in o: {line}" if member.optional else line)
        lines += [f"if {count}(out) != {count}(o): raise {misfit}(o)", "return out"]
        names = "\n".join(f"    {line}" for line in lines)
        return code.function("o", f"try:\n{names}\nexcept KeyError: raise {misfit}(o)")

    def _broken(self, value: Any) -> Misfit:
        try:
            self._members_of(value, "")
        except Misfit as error:
            return error
        return self.misfit(value)

    def _members_of(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise Misfit(self.misfit(value).message, path)
        for member in self.members:
            if member.name not in value and not member.optional:
                raise Misfit("it is missing", f"{path}.{member.name}" if path else member.name)
        for name in value.keys() - {member.name for member in self.members}:
            raise Misfit(f"{self.name} does not have it", f"{path}.{name}" if path else str(name))

    def takes(self, value: Any) -> bool:
        return Node.takes(self, value)

    def slow_dump(self, value: Any, path: str) -> Any:
        self._members_of(value, path)
        return {
            member.json: member.node.slow_dump(value[member.name], f"{path}.{member.name}")
            for member in self.members
            if member.name in value
        }


class Definition(Node):
    """A list or a dict that has a name: a NewType, or a type statement's. It may hold itself."""

    as_is = False

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.inner: Node | None = None
        self._compiling = False

    def _node(self) -> Node:
        assert self.inner is not None
        return self.inner

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self, self.name, self.content)

    def content(self, definitions: Definitions) -> Schema:
        return self._node().content(definitions)

    def compile(self) -> None:
        if not self._compiling:
            self._compiling = True
            self._node().compile()

    def fits(self, value: Any) -> bool:
        return self._node().fits(value)

    def load(self, value: Any) -> Any:
        return self._node().load(value)

    def slow_load(self, value: Any, path: str) -> Any:
        return self._node().slow_load(value, path)

    def dump(self, value: Any) -> Any:
        return self._node().dump(value)

    def slow_dump(self, value: Any, path: str) -> Any:
        return self._node().slow_dump(value, path)

    def takes(self, value: Any) -> bool:
        return self._node().takes(value)
