"""Has package logging keep the level of what it writes to standard output or standard error, which are the log in a sandbox."""

from __future__ import annotations

import logging

from ._host import DEBUG, ERROR, INFO, WARNING, host
from ._streams import LogStream

_write = logging.StreamHandler.emit


def install() -> None:
    """Changes how records are written to a [LogStream]: a record is a line of its level."""
    logging.StreamHandler.emit = _emit  # type: ignore[method-assign, assignment]


def _emit(handler: logging.StreamHandler[LogStream], record: logging.LogRecord) -> None:
    if type(handler.stream) is not LogStream:
        _write(handler, record)
        return
    try:
        text = handler.format(record)
        level = ERROR if record.levelno >= logging.ERROR else WARNING if record.levelno >= logging.WARNING else INFO
        host.log(DEBUG if record.levelno < logging.INFO else level, text.encode("utf-8", "replace").decode())
    except RecursionError:
        raise
    except Exception:
        handler.handleError(record)
