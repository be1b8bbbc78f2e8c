"""Compiles a tool: what it is in a manifest, and a function from the JSON of its arguments to that of its result."""

from __future__ import annotations

import functools
import inspect
import json
import json.encoder
import typing
from collections.abc import Callable
from typing import Any

from ._anything import ANYTHING, Anything, plain
from ._check import check
from ._derive import Deriver, member_of
from ._docstring import Docstring, parse
from ._errors import DeclarationError, Misfit, ResultError, ToolError
from ._field import MISSING, FieldInfo
from ._node import GENERATED, Code, Definitions, Node, Schema
from ._objects import Member, members_schema, slow_members
from ._place import in_function
from ._scalars import Digits, Exact
from ._tool import Tool, hints_of, near


class Compiled:
    """A tool that is ready to be called."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.function = tool.function
        try:
            self._read()
        except DeclarationError as error:
            raise tool.failed(error) from None

    def _read(self) -> None:
        function = self.function
        doc = parse(function.__doc__)
        if not self.tool.options.description.strip():
            raise DeclarationError(
                "it has no description: write a docstring that says what it does and when to call it; agents choose tools by that"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise DeclarationError("it yields, and a result is sent as a whole: return a list")
        hints = hints_of(function)
        deriver = Deriver()
        self.members, self._positional = _parameters(function, hints, deriver, doc)
        self.result: Node | None = None
        if "return" in hints:
            self.result = _located("->", lambda: deriver.of(hints["return"], "result"))
        self.asynchronous = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.parameters = self._arguments_schema(doc)
        self.result_schema = self._described_result(doc)
        self._check_examples()
        self.exact_numbers = '"number", "string"' in json.dumps(self.parameters)
        self.run = self._compile()

    def _arguments_schema(self, doc: Docstring) -> Schema:
        for name in doc.parameters:
            if name not in {member.name for member in self.members}:
                known = [member.name for member in self.members]
                raise DeclarationError(f'its docstring describes "{name}", which is not a parameter{near(name, known)}', '"""')
        definitions = Definitions(arguments=True)
        for member in self.members:  # once before, so that an error has its place
            _located(member.name, functools.partial(member.schema, Definitions(arguments=True)))
        schema = members_schema(self.members, definitions)
        if definitions.schemas:
            schema["$defs"] = definitions.schemas
        for member in self.members:
            _located(member.name, functools.partial(_check_values, member.name, schema["properties"][member.json], definitions))
        for name, inner in definitions.schemas.items():
            for key, part in inner.get("properties", {}).items():
                _check_values(f"{name}.{key}", part, definitions)
        return schema

    def _described_result(self, doc: Docstring) -> Schema | None:
        if self.result is None:
            return None
        definitions = Definitions(arguments=False)
        result = self.result
        schema = _located("->", lambda: result.content(definitions))
        if not schema:
            return None
        if doc.result and "description" not in schema and "$ref" not in schema:
            schema = {**schema, "description": doc.result}
        return {**schema, "$defs": definitions.schemas} if definitions.schemas else schema

    def _check_examples(self) -> None:
        for number, example in enumerate(self.tool.options.examples, 1):
            wrong = check(self.parameters, example.arguments, self.parameters.get("$defs", {}))
            if wrong:
                raise DeclarationError(f"example {number}: its arguments do not fit: {wrong}", "@")
            if example.result is not MISSING and self.result_schema is not None:
                wrong = check(self.result_schema, example.result, self.result_schema.get("$defs", {}), "result")
                if wrong:
                    raise DeclarationError(f"example {number}: its result does not fit: {wrong}", "@")

    def described(self) -> dict[str, Any]:
        """Returns the tool as a manifest has it."""
        options = self.tool.options
        out: dict[str, Any] = {"name": options.name}
        if options.title:
            out["title"] = options.title
        out["description"] = options.description
        if options.hints:
            out["annotations"] = options.hints
        if options.icons:
            out["icons"] = [icon.described() for icon in options.icons]
        out["parameters"] = self.parameters
        if self.result_schema is not None:
            out["result"] = self.result_schema
        if options.examples:
            out["examples"] = [
                {"arguments": example.arguments, **({} if example.result is MISSING else {"result": example.result})}
                for example in options.examples
            ]
        if options.needs is not None:
            out["needs"] = options.needs.described()
        return out

    def _compile(self) -> Callable[[str], str]:
        """Returns the function that a call runs. All that a small call does stands in one place, so that it touches few pages."""
        for member in self.members:
            member.node.compile()
        code = Code()
        scan = code.bind(_scanner(self.exact_numbers))
        function, refused, broken = code.bind(self.function), code.bind(self._refused), code.bind(self._broken)
        loads, passed = [], []
        for i, member in enumerate(self.members):
            if member.optional and member.default is None:  # of a TypedDict
                loads.append(f"        p{i} = {{{member.name!r}: {member.load_code(code)}}} if {member.json!r} in a else {{}}")
                passed.append(f"**p{i}")
                continue
            loads.append(f"        p{i} = {member.load_code(code)}")
            passed.append(f"p{i}" if member.name in self._positional else f"{member.name}=p{i}")
        call = f"{function}({', '.join(passed)})"
        if self.asynchronous:
            call = f"{code.bind(run_coroutine)}({call})"
        result = self.result
        encode = _encoder_code(result, code)
        lines = [
            "def run(text):",
            "    try:",
            f"        a = {scan}(text, 0)[0]",
            *loads,
            f"    except Exception as e: raise {refused}(text, e) from None",
            f"    r = {call}",
            "    try:",
            f"        return {encode}",
            f"    except (Exception, RecursionError) as e: raise {broken}(r, e) from None",
        ]
        exec(compile("\n".join(lines), GENERATED, "exec"), code.names)
        run: Callable[[str], str] = code.names["run"]
        return run

    def _refused(self, text: str, error: Exception) -> ToolError:
        """Returns the error of arguments that could not be converted. The server has checked them, so it is seldom wanted."""
        try:
            value = json.loads(text or "{}", parse_float=Digits if self.exact_numbers else None)
            slow_members(self.members, value, "")
        except Misfit as misfit:
            return ToolError(str(misfit), code="invalid_arguments")
        except (ValueError, RecursionError) as other:
            return ToolError(f"the arguments can't be read: {other}", code="invalid_arguments")
        return ToolError(str(error) or type(error).__name__, code="invalid_arguments")

    def _broken(self, value: Any, error: Exception) -> ResultError:
        """Returns the error of a result that can't be sent, with the place of the function in a note for the log."""
        if isinstance(error, MemoryError):
            raise error
        said = self._misfit(value, error)
        file, line, _ = in_function(self.function, "->")
        said.add_note(f"It was returned by {self.function.__name__}, {file}, line {line}.")
        return said

    def _misfit(self, value: Any, error: Exception) -> ResultError:
        try:
            (self.result or ANYTHING).slow_dump(value, "result")
        except Misfit as misfit:
            return ResultError(str(misfit))
        except RecursionError:
            return ResultError("result: it is nested too deeply, or holds itself")
        return ResultError(f"result: {error}")


def _located(place: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DeclarationError as error:
        error.place = error.place or place
        raise
    except Misfit as error:
        raise DeclarationError(str(error), place) from None


def _check_values(name: str, part: Schema, definitions: Definitions) -> None:
    """Raises a DeclarationError for a default or an example that does not fit."""
    values = [("default", part["default"])] if "default" in part else []
    values += [("example", value) for value in part.get("examples", ())]
    for what, value in values:
        wrong = check({key: member for key, member in part.items() if key not in ("default", "examples")}, value, definitions.schemas)
        if wrong:
            raise DeclarationError(f"{name}: its {what} does not fit: {wrong}")


def _parameters(function: Any, hints: dict[str, Any], deriver: Deriver, doc: Docstring) -> tuple[list[Member], set[str]]:
    """Returns a function's parameters, and which of them are passed by their place."""
    members: list[Member] = []
    positional: set[str] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise DeclarationError(f"*{name}: a caller passes arguments by name: take a list", name)
        if parameter.kind is parameter.VAR_KEYWORD:
            members += _unpacked(name, hints.get(name), deriver)
            continue
        if name not in hints and name in ("self", "cls"):
            raise DeclarationError(f"{name}: a tool is a function, and this is a method: move it out of its class", name)
        if name not in hints:
            raise DeclarationError(f"{name} has no type: write one, as in {name}: str", name)
        default = MISSING if parameter.default is parameter.empty else parameter.default

        def made(name: str = name, default: Any = default) -> Member:
            node, info = deriver.split(hints[name], name, {})
            if not info.description and name in doc.parameters and not (isinstance(default, FieldInfo) and default.description):
                info = FieldInfo(MISSING, None, doc.parameters[name], (), "", {}).over(info)
            return member_of(name, node, info, default, None, name)

        members.append(_located(name, made))
        if parameter.kind is not parameter.KEYWORD_ONLY:
            positional.add(name)
    taken: dict[str, str] = {}
    for member in members:
        if member.json in taken:
            raise DeclarationError(f'{member.name} and {taken[member.json]} are both called "{member.json}": rename one', member.name)
        taken[member.json] = member.name
    return members, positional


def _unpacked(name: str, hint: Any, deriver: Deriver) -> list[Member]:
    """Returns the parameters of **name: Unpack[…]."""
    if typing.get_origin(hint) is not typing.Unpack or not typing.is_typeddict(cls := typing.get_args(hint)[0]):
        raise DeclarationError(
            f"**{name}: nobody could know which arguments there are: name them, write {name}: dict[str, Any], or Unpack a TypedDict", name
        )
    node = _located(name, lambda: deriver.of(cls, name))
    members: list[Member] = node.members
    return members


def _scanner(exact: bool) -> Callable[[str, int], tuple[Any, int]]:
    """Returns what reads a JSON value. Space before it is rare, and the scanner of package json does not take it."""
    decoder: Any = json.JSONDecoder(parse_float=Digits if exact else None)
    scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once

    def read(text: str, at: int) -> tuple[Any, int]:
        try:
            return scan(text, at)
        except StopIteration:
            return scan(text.lstrip(" \t\r\n") or "{}", at)

    return read


_quote = json.encoder.encode_basestring


def _encoder_code(result: Node | None, code: Code) -> str:
    """Returns an expression for the JSON of the result r."""
    slow = code.bind(_encode)
    dump = code.bind((result or ANYTHING).dump)
    if result is not None:
        result.compile()
    general = f"{slow}({dump}(r))" if result is not None and not isinstance(result, Anything) else f"{slow}(r)"
    if result is None or isinstance(result, Exact):
        return general
    if result.exact == {str}:
        return f"{code.bind(_quote)}(r) if type(r) is str else {general}"
    if result.exact == {int}:
        return f"repr(r) if type(r) is int else {general}"
    if result.exact == {int, float}:
        return f"repr(r) if type(r) is float and r - r == 0.0 else {general}"
    if result.exact == {type(None)}:
        return f"'null' if r is None else {general}"
    return general


def _make_encoder() -> Callable[[Any], str]:
    """Returns what writes JSON. What json.dumps makes for each call is made once here."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain).encode
    markers: dict[int, Any] = {}
    encoder = make(markers, plain, _quote, None, ":", ",", False, False, False)

    def encode(value: Any) -> str:
        try:
            return "".join(encoder(value, 0))
        finally:
            markers.clear()

    return encode


_encode = _make_encoder()


def run_coroutine(coroutine: Any) -> Any:
    """Runs what an async function returns to its end. A decorator may have done so already."""
    from ._loop import run

    return run(coroutine) if inspect.iscoroutine(coroutine) else coroutine
