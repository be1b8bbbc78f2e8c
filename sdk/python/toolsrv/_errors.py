"""The errors of a tool, of its declaration and of values that do not fit."""

from __future__ import annotations

from typing import Any

# How much of a message is sent, in bytes: quoted as JSON it still fits into what the host takes.
_MAX_MESSAGE = 8 << 10


class ToolError(Exception):
    """Fails a call with a message for the client: what is wrong, where, and what to do.

    `code` is a stable word of the tool's own for programs to act on, such as "not_in_stock", of at most 128 bytes. `status` is the
    HTTP status, 400 to 599. `data` is any further data that JSON can express.
    """

    def __init__(self, message: str, *, code: str = "", status: int = 400, data: Any = None) -> None:
        super().__init__(message)
        if not isinstance(code, str) or len(code.encode("utf-8", "replace")) > 128:
            raise ValueError(f"code is {code!r:.80}: use a word of at most 128 bytes")
        if type(status) is not int or not 400 <= status <= 599:
            raise ValueError(f"status is {status!r:.80}: use an HTTP status from 400 to 599")
        self.message = message
        self.code = code
        self.status = status
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[ToolError], args: tuple[Any, ...], members: dict[str, Any]) -> ToolError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(members)
    return error


class Failure(Exception):
    """What went wrong with something that the tool was granted, or was not. One that a tool lets through fails the call with its code
    and message, and the status 502.

    `code` is a word such as "not_granted", "too_large", "limit", "timeout", "conflict", "quota" or "tool_error". `tool_code` and `data`
    are those of the ToolError of a tool that was called.
    """

    def __init__(self, message: str, *, code: str, tool_code: str = "", data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.tool_code = tool_code
        self.data = data


class DeclarationError(TypeError):
    """Says what of a tool's declaration can't be, and what to write instead.

    `place` is the part of the declaration: the name of a parameter, "->" for the result, or nothing.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class ResultError(TypeError):
    """A result that is not of the type that the tool promises: the tool's fault, not the caller's."""


# Where authors know them from, in tracebacks too.
for _public in (ToolError, Failure, DeclarationError, ResultError):
    _public.__module__ = "toolsrv"


class Misfit(Exception):
    """A value that is not what its type says. `path` names the member."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def clipped(message: str, size: int = _MAX_MESSAGE) -> str:
    """Returns a message that JSON can hold, of at most so many bytes, and one that is not blank."""
    text = message.encode("utf-8", "replace")
    if len(text) > size:
        return text[:size].decode("utf-8", "ignore") + "..."
    return text.decode() or "the tool failed"


def text_of(error: BaseException) -> str:
    """Returns the text of an exception, whatever its methods do."""
    try:
        return str(error)
    except Exception as broken:
        return f"its __str__ raises {type(broken).__name__}"


def said(error: BaseException) -> str:
    """Returns the type and the text of an exception."""
    text = text_of(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name
