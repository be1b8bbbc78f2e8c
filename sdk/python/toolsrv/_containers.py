"""Types that hold others: lists, tuples, sets, dicts, and alternatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ._anything import tidy
from ._errors import Misfit
from ._field import FieldInfo, constrained
from ._node import Code, Definitions, Node, Schema, annotated, article, free, nullable, shown


class Constrained(Node):
    """A type with what Field says of its values."""

    def __init__(self, inner: Node, info: FieldInfo) -> None:
        self.inner = inner
        self.info = info
        self.kind, self.name, self.exact, self.as_is = inner.kind, inner.name, inner.exact, inner.as_is

    def content(self, definitions: Definitions) -> Schema:
        return described(self.inner, self.info, definitions, None)

    def schema(self, definitions: Definitions) -> Schema:
        return self.content(definitions)

    def compile(self) -> None:
        self.inner.compile()
        self.as_is = self.inner.as_is

    def fits(self, value: Any) -> bool:
        from ._check import check

        return self.inner.fits(value) and not check({**self.content(Definitions(True))}, value, {})

    def load(self, value: Any) -> Any:
        return self.inner.load(value)

    def slow_load(self, value: Any, path: str) -> Any:
        return self.inner.slow_load(value, path)

    def dump(self, value: Any) -> Any:
        return self.inner.dump(value)

    def slow_dump(self, value: Any, path: str) -> Any:
        return self.inner.slow_dump(value, path)

    def load_code(self, source: str, code: Code) -> str:
        return self.inner.load_code(source, code)

    def dump_code(self, source: str, code: Code) -> str:
        return self.inner.dump_code(source, code)


def described(node: Node, info: FieldInfo, definitions: Definitions, default: list[Any] | None) -> Schema:
    """Returns the schema of a member: that of its type, with what Field says. The default is a list of one value, or None."""
    inner, optional = node, False
    if isinstance(node, Union) and node.optional:
        inner, optional = node.without_null(), True
    schema = inner.schema(definitions)
    shows = default is not None and default != [None]
    if info.bounds or info.description or info.examples or shows:
        schema = annotated(schema)
    if info.bounds:
        kind = inner.kind or ("string" if schema.get("type") == "string" else "")
        bounds = info.bounds
        if "pattern" in schema and "type" in schema and schema["type"] != "string":
            kind = "number"
        elif inner.kind == "number" and schema.get("type") == "string":
            bounds = {}  # Decimal in a result, a text
        schema = {**schema}
        constrained(schema, bounds, kind)
    if optional:
        # In arguments a definition that may be left out takes no null: that would take an anyOf, and no default is filled in below one.
        leaves_out = definitions.arguments and default == [None] and ("$ref" in schema or "allOf" in schema)
        schema = schema if leaves_out else nullable(schema)
    schema = {**schema}
    if info.description:
        schema["description"] = info.description
    if default is not None and shows:
        schema["default"] = tidy(inner.slow_dump(default[0], "default"))
    if info.examples:
        schema["examples"] = [tidy(_example(node, value)) for value in info.examples]
    return schema


def _example(node: Node, value: Any) -> Any:
    """Returns an example as JSON has it: authors write values of the type, or of JSON."""
    try:
        return node.slow_dump(value, "examples")
    except Misfit:
        if node.fits(value):
            return value
        raise


class List(Node):
    """list, tuple of one type, set and what else is an array whose elements are alike."""

    kind = "array"

    def __init__(self, name: str, item: Node, make: Callable[[Any], Any] | None, unique: bool = False) -> None:
        """Make is called with the list; None leaves it as it is."""
        self.name = name
        self.item = item
        self.make = make
        self.unique = unique
        self._load: Callable[[Any], Any] = list
        self.as_is = False
        self.takes_types = (AbstractSet,) if unique else (list, tuple, Sequence)

    def content(self, definitions: Definitions) -> Schema:
        out: Schema = {"type": "array"}
        items = self.item.schema(definitions)
        if not free(items):
            out["items"] = items
        if self.unique:
            out["uniqueItems"] = True
        return out

    def compile(self) -> None:
        self.item.compile()
        self.as_is = self.item.as_is and self.make is None
        code = Code()
        body = "a" if self.item.as_is else f"[{self.item.load_code('x', code)} for x in a]"
        if self.make is not None:
            body = f"{code.bind(self.make)}({body})"
        self._load = code.function("a", f"return {body}")

    def fits(self, value: Any) -> bool:
        return type(value) is list and all(map(self.item.fits, value))

    def load(self, value: Any) -> Any:
        return self._load(value)

    def slow_load(self, value: Any, path: str) -> Any:
        if type(value) is not list:
            raise Misfit(f"{value!r:.60} is not a list", path)
        for i, item in enumerate(value):
            self.item.slow_load(item, f"{path}[{i}]")
        return Node.slow_load(self, value, path)

    def _items(self, value: Any) -> list[Any]:
        if not isinstance(value, self.takes_types) or isinstance(value, str | bytes | bytearray):
            raise self.misfit(value)
        if not self.unique:
            return value if type(value) is list else list(value)
        try:
            return sorted(value)
        except TypeError:
            return list(value)

    def dump(self, value: Any) -> Any:
        items = self._items(value)
        if self.item.exact and self.item.exact.issuperset(map(type, items)):
            return items
        dump = self.item.dump
        return [dump(item) for item in items]

    def slow_dump(self, value: Any, path: str) -> Any:
        try:
            items = self._items(value)
        except Misfit as error:
            raise Misfit(error.message, path) from None
        return [self.item.slow_dump(item, f"{path}[{i}]") for i, item in enumerate(items)]


class Tuple(Node):
    """tuple with a type for each place."""

    kind, as_is = "array", False

    def __init__(self, items: list[Node], alike: bool) -> None:
        self.items = items
        self.alike = alike
        self.name = f"tuple of {len(items)}"
        self._load: Callable[[Any], Any] = tuple

    def content(self, definitions: Definitions) -> Schema:
        out: Schema = {"type": "array"}
        if self.alike:
            items = self.items[0].schema(definitions) if self.items else {}
            if not free(items):
                out["items"] = items
        else:
            out["prefixItems"] = [item.schema(definitions) for item in self.items]
        return {**out, "minItems": len(self.items), "maxItems": len(self.items)}

    def compile(self) -> None:
        code = Code()
        for item in self.items:
            item.compile()
        parts = "".join(f"{item.load_code(f'a[{i}]', code)}, " for i, item in enumerate(self.items))
        self._load = code.function("a", f"return ({parts})")

    def fits(self, value: Any) -> bool:
        return type(value) is list and len(value) == len(self.items) and all(n.fits(v) for n, v in zip(self.items, value, strict=True))

    def load(self, value: Any) -> Any:
        return self._load(value)

    def slow_load(self, value: Any, path: str) -> Any:
        if type(value) is not list or len(value) != len(self.items):
            raise Misfit(f"{value!r:.60} is not a list of {len(self.items)}", path)
        return tuple(node.slow_load(item, f"{path}[{i}]") for i, (node, item) in enumerate(zip(self.items, value, strict=True)))

    def _whole(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise self.misfit(value)
        if len(value) != len(self.items):
            raise Misfit(f"{shown(value)} has {len(value)} elements, not {len(self.items)}")
        return value

    def dump(self, value: Any) -> Any:
        return [node.dump(item) for node, item in zip(self.items, self._whole(value), strict=True)]

    def slow_dump(self, value: Any, path: str) -> Any:
        Node.slow_dump(self, value, path) if not isinstance(value, list | tuple) or len(value) != len(self.items) else None
        return [node.slow_dump(item, f"{path}[{i}]") for i, (node, item) in enumerate(zip(self.items, value, strict=True))]


class Map(Node):
    """dict with a type of its values, and keys that a member's name can say."""

    kind, name = "object", "dict"

    def __init__(self, key: Node, value: Node) -> None:
        self.key = key
        self.value = value
        self._load: Callable[[Any], Any] = dict
        self._plain_keys = key.as_is and key.kind == "string"

    def content(self, definitions: Definitions) -> Schema:
        out: Schema = {"type": "object"}
        names = {name: value for name, value in self.key.schema(definitions).items() if name != "type"}
        if self.key.kind == "integer":
            names = {"pattern": "^[0-9]+$" if names.get("minimum", -1) >= 0 else "^-?[0-9]+$"}
        if names:
            out["propertyNames"] = names
        values = self.value.schema(definitions)
        if not free(values):
            out["additionalProperties"] = values
        return out

    def compile(self) -> None:
        self.value.compile()
        self.key.compile()
        self.as_is = self._plain_keys and self.value.as_is
        code = Code()
        key = self.key.load_code("int(k)" if self.key.kind == "integer" else "k", code)
        self._load = code.function("a", f"return {{{key}: {self.value.load_code('x', code)} for k, x in a.items()}}")

    def fits(self, value: Any) -> bool:
        return type(value) is dict and all(map(self._fits_key, value)) and all(map(self.value.fits, value.values()))

    def _fits_key(self, name: str) -> bool:
        if self.key.kind != "integer":
            return self.key.fits(name)
        return name.removeprefix("-").isdecimal() and self.key.fits(int(name))

    def load(self, value: Any) -> Any:
        return value if self.as_is else self._load(value)

    def slow_load(self, value: Any, path: str) -> Any:
        if type(value) is not dict:
            raise Misfit(f"{value!r:.60} is not an object", path)
        for name, item in value.items():
            if not self._plain_keys:
                if not self._fits_key(name):
                    self.key.slow_load(name, f"{path}.{name}")
                    raise Misfit(f"{name!r:.60} is not {article(self.key.name)}", f"{path}.{name}")
            self.value.slow_load(item, f"{path}.{name}")
        return Node.slow_load(self, value, path)

    def dump(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise self.misfit(value)
        if self.key.exact == {str} and self.key.exact.issuperset(map(type, value)):
            if self.value.exact and self.value.exact.issuperset(map(type, value.values())):
                return value if type(value) is dict else dict(value)
            dump = self.value.dump
            return {name: dump(item) for name, item in value.items()}
        return self.slow_dump(value, "")

    def slow_dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise Misfit(self.misfit(value).message, path)
        out = {}
        for key, item in value.items():
            name = str(self.key.slow_dump(key, f"a key of {path}" if path else "a key"))
            out[name] = self.value.slow_dump(item, f"{path}.{name}" if path else name)
        return out


class Union(Node):
    """Alternatives: the first that fits is taken."""

    as_is = False

    def __init__(self, arms: list[Node]) -> None:
        self.arms = arms
        self.optional = any(arm.kind == "null" for arm in arms)
        self.name = " or ".join(arm.name for arm in arms)
        self.exact = frozenset().union(*(arm.exact for arm in arms)) if all(arm.exact for arm in arms) else frozenset()
        self._some = [arm for arm in arms if arm.kind != "null"]
        self.kind = self._some[0].kind if len(self._some) == 1 else ""

    def without_null(self) -> Node:
        """Returns the alternatives but None."""
        return self._some[0] if len(self._some) == 1 else Union(self._some)

    def content(self, definitions: Definitions) -> Schema:
        if self.optional:
            return nullable(self.without_null().schema(definitions))
        schemas: list[Schema] = []
        for arm in self.arms:
            schema = arm.schema(definitions)
            if schema not in schemas:
                schemas.append(schema)
        if any(free(schema) for schema in schemas):
            return {}
        if {"type": "number"} in schemas and {"type": "integer"} in schemas:
            schemas.remove({"type": "integer"})
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def compile(self) -> None:
        for arm in self.arms:
            arm.compile()
        self.as_is = all(arm.as_is for arm in self.arms)

    def fits(self, value: Any) -> bool:
        return any(arm.fits(value) for arm in self.arms)

    def load(self, value: Any) -> Any:
        if self.as_is:
            return value
        if self.optional:
            if value is None:
                return None
            if len(self._some) == 1:
                return self._some[0].load(value)
        return self._arm(value).load(value)

    def _arm(self, value: Any) -> Node:
        if type(value) is int and (whole := [arm for arm in self.arms if arm.kind == "integer" and arm.fits(value)]):
            return whole[0]
        for arm in self.arms:
            if arm.fits(value):
                return arm
        raise Misfit(f"{value!r:.60} is not {self.name}")

    def slow_load(self, value: Any, path: str) -> Any:
        if value is not None and len(self._some) == 1:
            return self._some[0].slow_load(value, path)
        return Node.slow_load(self, value, path)

    def load_code(self, source: str, code: Code) -> str:
        if self.as_is:
            return source
        if self.optional and len(self._some) == 1:
            return f"(None if (w := {source}) is None else {self._some[0].load_code('w', code)})"
        return f"{code.bind(self.load)}({source})"

    def dump(self, value: Any) -> Any:
        if type(value) in self.exact:
            return value
        if len(self._some) == 1:
            return None if value is None else self._some[0].dump(value)
        for arm in self.arms:
            if arm.takes(value):
                return arm.dump(value)
        raise self.misfit(value)

    def slow_dump(self, value: Any, path: str) -> Any:
        if value is not None and len(self._some) == 1:
            return self._some[0].slow_dump(value, path)
        return Node.slow_dump(self, value, path)
