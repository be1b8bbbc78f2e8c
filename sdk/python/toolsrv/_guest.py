"""What the engine calls: it loads a script, describes its tools and calls them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from . import _logging
from ._anything import ANYTHING
from ._bundle import Bundle, run_script
from ._errors import Failure, Misfit, ToolError, clipped, said, text_of
from ._explain import explained, logged
from ._host import ERROR, INFO, host
from ._manifest import Script
from ._streams import LogStream

# What toolsrv_call and toolsrv_describe return.
OK, FAILED, NO_MEMORY, BROKEN = range(4)
_NO_MEMORY = b'{"message": "MemoryError", "status": 500}'


class _State:
    """The script, or why there is none."""

    def __init__(self) -> None:
        self.script: Script | None = None
        self.problem = ""
        self.starved = False
        self.trace: tuple[str, ...] = ()
        self.files: frozenset[str] = frozenset()
        self.stream: LogStream | None = None


# What the tools are called by: a list of its own, because every call reads it.
_runs: list[Callable[[str], str]] = []


_state = _State()


def reset() -> None:
    """Forgets the script."""
    _state.__init__()  # type: ignore[misc]
    _runs.clear()


def rehearse() -> None:
    """Prepares the engine for scripts, before the snapshot that all of them share."""
    from ._rehearsal import rehearse

    rehearse()


def load(bundle: bytes | memoryview) -> None:
    """Loads the script of a bundle. What is wrong with it is kept for [describe] and [call]."""
    _state.stream = LogStream(lambda line: host.log(INFO, line.encode("utf-8", "replace").decode()))
    sys.stdout = sys.stderr = _state.stream
    _logging.install()
    opened: Bundle | None = None
    try:
        opened = Bundle(bundle)
        _state.files = frozenset(opened)
        module = run_script(opened)
        _state.script = Script(module)
        if not _state.script.tools:
            _state.problem = f"{opened.script}:1:1: it has no tools\nWrite @tool above a function: from toolsrv import tool"
    except BaseException as error:  # whatever the script does, the engine goes on
        _state.problem = explained(error, _state.files, opened.script if opened else "script")
        _state.starved = isinstance(error, MemoryError) and not error.args
        _state.trace = logged(error, _state.files)
    if _state.script is not None and not _state.problem:
        _runs[:] = [tool.run for tool in _state.script.tools]


def warm() -> None:
    """Runs the examples, so that what they make stands in the snapshot. Python adapts code that has run a few times, too.

    The engine collects garbage after that.
    """
    if _state.script is not None and not _state.problem:
        if any(tool.asynchronous for tool in _state.script.tools):
            from ._loop import prepare

            prepare()
        for tool in _state.script.tools:
            _warm(tool.run, [json.dumps(example.arguments) for example in tool.tool.options.examples])


def _warm(run: Callable[[str], str], examples: list[str]) -> None:
    began = time.monotonic()
    for text in examples:
        for _ in range(_WARM_RUNS):
            try:
                run(text)
            except BaseException:  # a warning at build, which runs them again
                break
            if time.monotonic() - began > _WARM_SECONDS:
                return


_WARM_RUNS, _WARM_SECONDS = 20, 0.05


def describe() -> int:
    """Writes the manifest, or fails with what the author should read."""
    if _state.script is None or _state.problem:
        host.fail(json.dumps({"message": clipped(_state.problem, 32 << 10)}).encode())
        return NO_MEMORY if _state.starved else FAILED
    host.output(json.dumps(_state.script.manifest(), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    return OK


def call(number: int) -> int:
    """Calls a tool."""
    try:
        output = _runs[number](str(host.input(), "utf-8"))
    except BaseException as error:
        return _failed(number, error)
    try:
        host.output(output.encode())
    except UnicodeEncodeError:  # half a character, which JSON can only say with an escape
        host.output(json.dumps(json.loads(output)).encode())
    if _state.stream is not None and _state.stream._parts:
        _state.stream.finish()
    return OK


def _failed(number: int, error: BaseException) -> int:
    """Writes the failure of a call, and returns the status for it."""
    if _state.stream is not None:
        _state.stream.finish()
    if not 0 <= number < len(_runs):
        for line in _state.trace or (_state.problem,):
            host.log(ERROR, line)
        return _write({"message": clipped(_state.problem or f"there is no tool number {number}"), "status": 500})
    if isinstance(error, MemoryError) and not error.args:  # the parser's own has a message, and memory is left then
        error.__traceback__ = None
        host.fail(_NO_MEMORY)
        return NO_MEMORY
    if isinstance(error, ToolError):
        return _write_error(error)
    for line in logged(error, _state.files):
        host.log(ERROR, line)
    used = failure_of(error)
    if used is not None:
        code = used.code if isinstance(used.code, str) else "unavailable"
        return _write({"message": clipped(text_of(used)), "code": clipped(code, 120), "status": 502})
    return _write({"message": clipped(said(error)), "status": 500})


def failure_of(error: BaseException) -> Failure | None:
    """Returns the failure that an error is or, where it is one of urllib, has as its reason."""
    for found in (error, getattr(error, "reason", None)):
        if isinstance(found, Failure):
            return found
    return None


def _write_error(error: ToolError) -> int:
    failure: dict[str, Any] = {"message": clipped(text_of(error) or error.code), "status": error.status}
    if error.code:
        failure["code"] = error.code
    if error.data is not None:
        failure["data"] = error.data
    return _write(failure)


# How large a failure may be, in bytes.
_MAX_FAILURE = 64 << 10


def _write(failure: dict[str, Any]) -> int:
    text = ""
    if "data" in failure:
        try:
            text = json.dumps({**failure, "data": ANYTHING.slow_dump(failure["data"], "data")}, allow_nan=False)
            if len(text) > _MAX_FAILURE:
                raise ValueError(f"{len(text)} bytes are more than the {_MAX_FAILURE} that are allowed")
        except (Misfit, ValueError, RecursionError) as error:
            host.log(ERROR, f"the data of a ToolError can't be sent: {error}")
            return BROKEN
    host.fail((text or json.dumps(failure)).encode())
    return FAILED
