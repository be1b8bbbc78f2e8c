"""The operator's settings of a tool.

from dataclasses import dataclass
from toolsrv import needs, settings

@dataclass
class Settings:
    units: str = "metric"

needs(settings=Settings)
loaded = settings.load(Settings)

loaded.get().units  # in a call
"""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from ._errors import Failure, Misfit
from ._host import host, use

_T = TypeVar("_T")


@overload
def read() -> dict[str, Any]: ...


@overload
def read(kind: type[_T], /) -> _T: ...


def read(kind: Any = None, /) -> Any:
    """Returns the settings as JSON has them or, of a dataclass or a TypedDict, as such."""
    return _maker(kind)(json.loads(use("settings.read")))


class Loaded(Generic[_T]):
    """Settings, or what is made of them. While the tool starts it is made already, so that calls need not."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._made: tuple[bytes, _T] | None = None
        if host is not None and host.deadline() < 0:
            try:
                self.get()
            except Failure:  # where a tool is built there are no settings
                pass

    def get(self) -> _T:
        """Returns it, in a call."""
        source = use("settings.read")
        if self._made is None or self._made[0] != source:
            self._made = source, self._make(json.loads(source))
        return self._made[1]


@overload
def load() -> Loaded[dict[str, Any]]: ...


@overload
def load(kind: type[_T], /) -> Loaded[_T]: ...


@overload
def load(make: Callable[[dict[str, Any]], _T], /) -> Loaded[_T]: ...


def load(make: Any = None, /) -> Loaded[Any]:
    """Makes something of the settings while the tool starts: a dataclass, a TypedDict, or what a function of them returns.

    Use it at the top of the script. `get()` returns it in a call.
    """
    return Loaded(_maker(make))


def _maker(kind: Any) -> Callable[[Any], Any]:
    if kind is None:
        return lambda settings: settings
    if not inspect.isclass(kind) and typing.get_origin(kind) is None:
        made: Callable[[Any], Any] = kind
        return made
    from ._derive import Deriver

    node = Deriver().of(kind, "settings")
    node.compile()
    return functools.partial(_converted, node)


def _converted(node: Any, settings: Any) -> Any:
    try:
        return node.slow_load(settings, "")
    except Misfit as error:
        raise Failure(f"settings: {error}", code="invalid") from None
