"""Sends what is printed to the log, line by line."""

from __future__ import annotations

import io
from collections.abc import Callable

# What is behind so many characters of a line is dropped: the host clips it much earlier.
_LONG = 1 << 16


class LogStream(io.TextIOBase):
    """A text stream whose lines are log lines. What stands behind the last line break is one, too, when the call ends."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._log = write
        self._parts: list[str] = []
        self._size = 0
        self._cut = False  # the line has been logged as far as anybody reads it

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "replace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno: what is printed goes to the log, there is no file")

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text:
            return 0
        size = len(text)
        if self._cut:
            _, found, text = text.partition("\n")
            self._cut = not found
            if not text:
                return size
        self._parts.append(text)
        self._size += len(text)
        if "\n" in text or self._size > _LONG:
            *lines, rest = "".join(self._parts).split("\n")
            if len(rest) > _LONG:
                lines, rest, self._cut = [*lines, rest], "", True
            self._parts = [rest] if rest else []
            self._size = len(rest)
            for line in lines:
                self._log(line[:_LONG])
        return size

    def finish(self) -> None:
        """Logs what stands behind the last line break."""
        if self._parts:
            self._log("".join(self._parts))
            self._parts, self._size = [], 0
