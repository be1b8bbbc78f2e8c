"""What a type is in JSON. A node knows its schema, and converts values both ways: those of a call as fast as can be, trusting what
the host has checked; where that fails, once more and slowly, to name the member that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import Misfit

Schema = dict[str, Any]


class Definitions:
    """The named schemas of one tool's arguments or result."""

    def __init__(self, arguments: bool) -> None:
        self.arguments = arguments
        self.schemas: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}

    def reference(self, key: Any, own: str, content: Callable[[Definitions], Schema]) -> Schema:
        """Returns a reference to a type's definition, which it makes at the first use. Two types of one name are told apart."""
        name = self._names.get(key)
        if name is None:
            name, n = own, 2
            while name in self.schemas:
                name, n = f"{own}{n}", n + 1
            self._names[key] = name
            self.schemas[name] = {}  # holds the place: the type may hold itself
            self.schemas[name] = content(self)
        return {"$ref": f"#/$defs/{name}"}


class Code:
    """Python code that converts values, and the names that it uses."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def bind(self, value: Any) -> str:
        """Returns a name for a value."""
        name = f"_{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, parameter: str, body: str) -> Callable[[Any], Any]:
        """Compiles a function of one parameter. A line of the body is a statement."""
        lines = "".join(f"\n    {line}" for line in body.splitlines())
        exec(compile(f"def convert({parameter}):{lines}", GENERATED, "exec"), self.names)
        convert: Callable[[Any], Any] = self.names["convert"]
        return convert


# The file's name in tracebacks, where such frames are left out.
GENERATED = "<toolsrv>"


class Node:
    """A type. The methods of this class are those of one whose values are the same in Python and in JSON."""

    # The JSON type of its values, or "" where there are several.
    kind = ""
    # What authors call it.
    name = "object"
    # Whether a value from JSON is what the function takes.
    as_is = True
    # The types whose values are written as they are.
    exact: frozenset[type] = frozenset()

    def schema(self, definitions: Definitions) -> Schema:
        """Returns the schema where the type is used: a reference, if it has a definition."""
        return self.content(definitions)

    def content(self, definitions: Definitions) -> Schema:
        """Returns the schema of the values."""
        return {"type": self.kind} if self.kind else {}

    def compile(self) -> None:
        """Makes the node ready to convert. It is called when all nodes of a tool are known, perhaps several times."""

    def fits(self, value: Any) -> bool:
        """Reports whether a value from JSON is one of the type: where there are alternatives, nobody else has looked."""
        return type(value) in self.exact

    def load(self, value: Any) -> Any:
        """Converts a value from JSON that fits the schema."""
        return value

    def slow_load(self, value: Any, path: str) -> Any:
        """Does what load does, and says in a Misfit where it can't."""
        try:
            return self.load(value)
        except Misfit as error:
            raise Misfit(error.message, error.path or path) from None
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise Misfit(str(error) or type(error).__name__, path) from error

    def dump(self, value: Any) -> Any:
        """Converts a value of the type into one for JSON."""
        if type(value) in self.exact:
            return value
        raise self.misfit(value)

    def slow_dump(self, value: Any, path: str) -> Any:
        """Does what dump does, and says in a Misfit where it can't."""
        try:
            return self.dump(value)
        except Misfit as error:
            raise Misfit(error.message, error.path or path) from None

    def load_code(self, source: str, code: Code) -> str:
        """Returns an expression that loads what another one is."""
        return source if self.as_is else f"{code.bind(self.load)}({source})"

    def dump_code(self, source: str, code: Code) -> str:
        """Returns an expression that dumps what another one is."""
        return f"{code.bind(self.dump)}({source})"

    def takes(self, value: Any) -> bool:
        """Reports whether a value of a function is one of the type."""
        try:
            self.dump(value)
        except Misfit:
            return False
        return True

    def misfit(self, value: Any) -> Misfit:
        """Returns the error of a value of another type."""
        return Misfit(f"{shown(value)} is not {article(self.name)}")


def shown(value: Any) -> str:
    """Returns a value and its type for a message."""
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:
        text = "a value"
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} of type {type(value).__name__}"


def article(name: str) -> str:
    """Returns a type's name with its article."""
    if name == "None":
        return name
    return f"{'an' if name[:1].lower() in 'aeiou' and not name.startswith('U') else 'a'} {name}"


def free(schema: Schema) -> bool:
    """Reports whether a schema accepts everything."""
    return not schema


def annotated(schema: Schema) -> Schema:
    """Returns a schema that can take more members: a $ref stands best alone, since some clients look at nothing beside it."""
    return {"allOf": [schema]} if "$ref" in schema else schema


def nullable(schema: Schema) -> Schema:
    """Returns what a schema accepts, or null."""
    if free(schema):
        return schema
    if "$ref" in schema or "allOf" in schema or "anyOf" in schema:
        if list(schema) == ["anyOf"]:
            return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
        if list(schema) == ["allOf"] and len(schema["allOf"]) == 1:
            schema = schema["allOf"][0]
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    out = {**schema, "type": [*kinds, "null"]}
    if "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out
