"""Says what an exception means, to the author of a script."""

from __future__ import annotations

import sys
import traceback

from ._errors import said
from ._place import author_frames, column_of, pointed
from ._tool import Located

# How many lines of a traceback are logged: a call may write 100.
_MAX_LINES = 60


def explained(error: BaseException, files: frozenset[str], script: str) -> str:
    """Returns what is wrong with a script: file, line and column, the line itself, a caret, and what to do."""
    if isinstance(error, Located):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        text = error.text or ""
        return pointed(f"{type(error).__name__}: {error.msg}", error.filename, error.lineno, error.offset or 0, _remedy(error), text)
    if isinstance(error, SyntaxError):  # of bytes that are no text, and where they are nobody says
        return pointed(f"{type(error).__name__}: {error.msg}", error.filename or script, 1)
    frames = author_frames(error.__traceback__, files.__contains__)
    if not frames:
        return said(error)
    last = frames[-1]
    file = last.tb_frame.f_code.co_filename
    return pointed(said(error), file, last.tb_lineno, column_of(last), _remedy(error))


def _remedy(error: BaseException) -> str:
    """Returns what to do about an error that many authors meet."""
    if isinstance(error, ModuleNotFoundError) and error.name and " " not in str(error.name):
        top = error.name.partition(".")[0]
        if top not in sys.stdlib_module_names:
            return (
                f"Put {top} beside the script, or install it into your virtual environment and name it in pyproject.toml: "
                f'[tool.toolsrv] dependencies = ["{top}"].'
            )
    if isinstance(error, TabError):
        return "Indent with spaces only."
    if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
        return "A tool has no files but those in its tool file: read them with importlib.resources, or put the data into a module."
    return ""


def logged(error: BaseException, files: frozenset[str]) -> tuple[str, ...]:
    """Returns the lines of a traceback with the author's frames only."""
    try:
        summary = traceback.TracebackException.from_exception(error, compact=True)
        _prune(summary, files, set())
        lines = "".join(summary.format()).rstrip("\n").split("\n")
    except BaseException:
        return (said(error),)
    if len(lines) > _MAX_LINES:
        lines = [*lines[:20], f"  ... {len(lines) - _MAX_LINES} lines", *lines[20 - _MAX_LINES :]]
    return tuple(line.encode("utf-8", "replace").decode() for line in lines)


def _prune(summary: traceback.TracebackException | None, files: frozenset[str], seen: set[int]) -> None:
    """Removes the frames of a traceback that are not in the author's files, and those of what led to it."""
    if summary is None or id(summary) in seen:
        return
    seen.add(id(summary))
    own = [frame for frame in summary.stack if frame.filename in files]
    if own:
        summary.stack[:] = own
    else:
        summary.stack.clear()
    _prune(summary.__cause__, files, seen)
    _prune(summary.__context__, files, seen)
    for part in summary.exceptions or ():
        _prune(part, files, seen)
