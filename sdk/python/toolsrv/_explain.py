"""Says what an exception means, to the author of a script."""

from __future__ import annotations

import sys
import traceback

from ._errors import said
from ._place import author_frames, column_of, pointed
from ._tool import Located

# Packages that are not called as their modules are, by the latter.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "googleapiclient": "google-api-python-client",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "markdown": "Markdown",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "slugify": "python-slugify",
    "yaml": "PyYAML",
}

# What to use instead of modules that can't work in the sandbox, since they are compiled for a processor or open connections.
_REQUESTS = "use toolsrv.http, which asks what the tool was granted"
_NUMBERS = "use lists with math and statistics"
_DATABASE = "ask a service over HTTP with toolsrv.http, or keep values with toolsrv.kv"
_MODEL = "call its HTTP interface with toolsrv.http"
_PICTURES = "write the tool in Rust or Go, which have libraries for pictures"
_INSTEAD = {
    "PIL": _PICTURES,
    "aiohttp": _REQUESTS,
    "anthropic": _MODEL,
    "boto3": _MODEL,
    "botocore": _MODEL,
    "cryptography": "use hashlib, hmac and secrets",
    "Crypto": "use hashlib, hmac and secrets",
    "cv2": _PICTURES,
    "fastapi": "write a function with @tool: toolsrv serves it",
    "flask": "write a function with @tool: toolsrv serves it",
    "httpx": _REQUESTS,
    "lxml": "use xml.etree.ElementTree",
    "matplotlib": "return the numbers, or write SVG as text",
    "msgspec": "annotate with a dataclass or TypedDict: toolsrv checks arguments by it",
    "numpy": _NUMBERS,
    "openai": _MODEL,
    "orjson": "use json",
    "pandas": "use csv, statistics and lists of dicts",
    "polars": "use csv, statistics and lists of dicts",
    "psycopg": _DATABASE,
    "psycopg2": _DATABASE,
    "pydantic": "annotate with a dataclass or TypedDict: toolsrv checks arguments by it",
    "pymongo": _DATABASE,
    "redis": _DATABASE,
    "requests": _REQUESTS,
    "scipy": _NUMBERS,
    "simplejson": "use json",
    "sklearn": _NUMBERS,
    "sqlalchemy": _DATABASE,
    "tensorflow": _MODEL,
    "torch": _MODEL,
    "ujson": "use json",
    "urllib3": _REQUESTS,
}

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
            return _without(top)
    if isinstance(error, TabError):
        return "Indent with spaces only."
    if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
        return "A tool has no files but those in its tool file: read them with importlib.resources, or put the data into a module."
    return ""


def _without(module: str) -> str:
    """Returns what to do about a module that is not there."""
    if module in _INSTEAD:
        return f"{module} doesn't run in the sandbox: {_INSTEAD[module]}."
    if module in _PACKAGES:
        package = _PACKAGES[module]
        return (
            f'{module} is in the package {package}: name that in pyproject.toml, as in dependencies = ["{package}"] below [project], '
            f"and install it: python3 -m venv .venv && .venv/bin/pip install {package}"
        )
    return (
        f"Put {module} beside the script. Or find out which package has it, as its name may be another, "
        "name the package in pyproject.toml, in dependencies below [project], and install it into .venv."
    )


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
