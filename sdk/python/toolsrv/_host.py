"""What a tool is given by the host: a log, progress, and the time that is left. Outside of the sandbox, the nearest of Python's own."""

from __future__ import annotations

import json
import math
from typing import Any, Final, cast

from ._errors import Failure

try:
    import _toolsrv as _guest_functions  # type: ignore[import-not-found]
except ImportError:
    _guest_functions = None

# What the sandbox offers, or None under an ordinary Python.
host: Final[Any] = _guest_functions

DEBUG, INFO, WARNING, ERROR = range(4)


# What stands in for the host under an ordinary Python, which toolsrv.testing adds: the latest is asked.
doubles: Final[list[Any]] = []


def use(function: str, first: str | bytes = b"", second: str | bytes = b"", x: int = 0, y: int = 0) -> bytes:
    """Calls a function of a capability, and returns its answer. Raises a Failure where the host says no."""
    giver = host or (doubles[-1] if doubles else None)
    if giver is None:
        raise Failure(
            f"{function.partition('.')[0]}: there is no host here: in a test, toolsrv.testing.grant says what stands in for it",
            code="not_granted",
        )
    done, answer = giver.use(function, first, second, x, y)
    if done:
        return cast(bytes, answer)
    said = json.loads(answer)
    raise Failure(said["message"], code=said["code"], tool_code=said.get("tool_code", ""), data=said.get("data"))


class Log:
    """Writes lines to the log of the operator, who chooses which levels are shown. Clients see none of them.

    Arguments are put into the message as `%` does: `log.info("found %d of %s", n, name)`. Under an ordinary Python the lines go to
    the logger "toolsrv" of package logging.
    """

    def debug(self, message: object, *args: object) -> None:
        """Logs what helps to debug the tool."""
        _write(DEBUG, message, args)

    def info(self, message: object, *args: object) -> None:
        """Logs what the tool does."""
        _write(INFO, message, args)

    def warning(self, message: object, *args: object) -> None:
        """Logs what looks wrong but does not stop the tool."""
        _write(WARNING, message, args)

    def error(self, message: object, *args: object) -> None:
        """Logs what broke. The call goes on; raise an exception to end it."""
        _write(ERROR, message, args)


log: Final = Log()


def _write(level: int, message: object, args: tuple[object, ...]) -> None:
    if host is None:
        import logging

        logging.getLogger("toolsrv").log(10 * (level + 1), message, *args, stacklevel=3)
        return
    text = str(message)
    if args:
        text = text % (args[0] if len(args) == 1 and isinstance(args[0], dict) else args)
    host.log(level, _writable(text))


def _writable(text: str) -> str:
    """Returns the text without what UTF-8 can't hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Reports how much of its work the call has done, to clients that ask for it.

    `total` is how much there is to do in the same unit, such as rows or per cent, and None where that is not known. Report as often as
    you like: the host passes on a few reports in a second, and only those whose `done` is greater than before.
    """
    if host is not None:
        host.progress(float(done), float(total or 0), _writable(str(message)))
    elif listeners:
        listeners[-1](float(done), float(total or 0), str(message))


# Who hears progress under an ordinary Python: toolsrv.testing adds itself during a call.
listeners: Final[list[Any]] = []


def time_left() -> float:
    """Returns how many seconds the call may still take. Without a deadline they are infinite.

    The host ends the call then, whatever the tool does, so a tool that can answer in part should do so before.
    """
    if host is None:
        return math.inf
    left: int = host.deadline()
    return left / 1000 if left >= 0 else math.inf
