"""Makes tools of functions."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, overload

from ._docstring import parse
from ._errors import DeclarationError
from ._field import MISSING, FieldInfo
from ._icon import Icon, check_icons, check_title
from ._needs import Needs
from ._place import in_function, pointed

_F = TypeVar("_F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Example:
    """A call of a tool, for the documentation and for tests: arguments and result as JSON has them.

    Leave the result out where it is not worth comparing, as a time or a random number.
    """

    arguments: dict[str, Any]
    result: Any = MISSING


class Options:
    """What the decorator says of a tool."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        hints: dict[str, bool | None],
        icons: Sequence[Icon],
        examples: Sequence[Example],
        needs: Needs | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.hints = {name: value for name, value in hints.items() if value is not None}
        self.icons = list(icons)
        self.examples = list(examples)
        self.needs = needs

    def check(self) -> None:
        """Raises a DeclarationError for what the server would refuse."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise DeclarationError(f"{self.name!r:.80} is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ -")
        for name, value in self.hints.items():
            if not isinstance(value, bool):
                own = re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name)  # as the author writes it
                raise DeclarationError(f"{own}={value!r:.80} is not True or False")
        if self.hints.get("readOnly") and self.hints.get("destructive"):
            raise DeclarationError("it is both read-only and destructive: a tool that changes nothing destroys nothing; remove one")
        if self.needs is not None:
            if not isinstance(self.needs, Needs):
                raise DeclarationError(f"needs={self.needs!r:.80}: write needs=Needs(http=[…])")
            self.needs.described()
        try:
            check_title(self.title)
            check_icons(self.icons)
        except ValueError as error:
            raise DeclarationError(str(error)) from None
        for number, example in enumerate(self.examples, 1):
            if not isinstance(example, Example) or not isinstance(example.arguments, dict):
                raise DeclarationError(f"example {number} is {example!r:.80}: write Example({{…}}, result=…)")


class Tool:
    """A function, and what was said of it. Its types are looked at when all of the script has been read."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.function = function
        self.options = options
        self.home = function.__module__

    def failed(self, error: DeclarationError) -> DeclarationError:
        """Returns an error with the place in the author's file."""
        file, line, column = in_function(self.function, error.place)
        message = f'tool "{self.options.name}": {error}'
        return Located(pointed(message, file, line, column), error.place)


class Located(DeclarationError):
    """A DeclarationError that says where."""


# All tools, in the order of their functions.
tools: Final[list[Tool]] = []


@dataclass
class Module:
    """What a script says of itself."""

    namespace: str = ""
    version: str = ""


# What each script has said, by its module's name.
modules: Final[dict[str, Module]] = {}


def module(*, namespace: str = "", version: str = "") -> None:
    """Says what all tools of the script have in common: the path before their names, and the author's version.

    The namespace is one or more names joined by "/". Without it, the folder of the file below the server's tools directory is it.
    """
    if not isinstance(namespace, str) or namespace and not all(map(_NAME.fullmatch, namespace.split("/"))):
        raise DeclarationError(f"namespace {namespace!r:.80}: use names of the characters A-Z a-z 0-9 _ - with / between")
    if not isinstance(version, str):
        raise DeclarationError(f"version {version!r:.80} is not a text")
    home = sys._getframe(1).f_globals.get("__name__", "")
    if home in modules:
        raise DeclarationError("module is called twice: say it once")
    modules[home] = Module(namespace, version)


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon] = (),
    examples: Sequence[Example] = (),
    needs: Needs | None = None,
) -> Callable[[_F], _F]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon] = (),
    examples: Sequence[Example] = (),
    needs: Needs | None = None,
) -> Any:
    """Makes a tool of a function, which stays what it is.

    Its name is the function's, its description the docstring, its schema that of the annotations. `title` is its name for people.
    `read_only` says that it changes nothing outside of itself, `destructive` that it may overwrite or delete something, `idempotent`
    that a second call with the same arguments has no further effect, `open_world` that it deals with what is outside of the service.
    The examples run before the first call, so that what a call needs is prepared by then. `needs` says what this tool reaches for, besides
    what [toolsrv.needs] says of all tools of the script.
    """

    def declare(function: Any) -> Any:
        hints = {"readOnly": read_only, "destructive": destructive, "idempotent": idempotent, "openWorld": open_world}
        if not inspect.isfunction(function):
            what = "a class" if inspect.isclass(function) else f"{function!r:.60}"
            raise DeclarationError(f"@tool is for functions, and this is {what}: put it above a def")
        options = Options(
            name or function.__name__, title, description or parse(function.__doc__).description, hints, icons, examples, needs
        )
        made = Tool(function, options)
        try:
            options.check()
        except DeclarationError as error:
            error.place = "@"
            raise made.failed(error) from None
        _replace_fields(function)
        tools.append(made)
        return function

    return declare if function is None else declare(function)


def _replace_fields(function: Any) -> None:
    """Has a Field that stands as a default be its default where Python calls the function. Its parameter keeps the Field."""
    signature = inspect.signature(function)
    if any(isinstance(parameter.default, FieldInfo) for parameter in signature.parameters.values()):
        function.__signature__ = signature

        def plain(value: Any) -> Any:
            if not isinstance(value, FieldInfo):
                return value
            return value.default_factory() if value.default is MISSING and value.default_factory else value.default

        if function.__defaults__:
            function.__defaults__ = tuple(plain(value) for value in function.__defaults__)
        for key, value in (function.__kwdefaults__ or {}).items():
            function.__kwdefaults__[key] = plain(value)


def hints_of(function: Any) -> dict[str, Any]:
    """Returns a function's annotations, with what they name as texts looked up."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        place = next((name for name, hint in function.__annotations__.items() if str(error.name) in str(hint)), "")
        raise DeclarationError(
            f'nothing is called "{error.name}" here: define it in the script, or import it', "->" if place == "return" else place
        ) from None
    except (TypeError, SyntaxError) as error:
        raise DeclarationError(f"its annotations can't be read: {error}") from None


def near(name: str, known: Sequence[str]) -> str:
    """Returns a question after the name that was meant, or nothing."""
    import difflib

    found = difflib.get_close_matches(name, known, 1)
    return f': did you mean "{found[0]}"?' if found else ""
