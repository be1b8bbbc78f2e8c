"""Values that outlive calls: bytes under names, in a space that all tools of a namespace share.

from toolsrv import kv, needs

needs(kv=True)

count = kv.get("count")
kv.set("count", str(int(count.text()) + 1 if count else 1), expect=count.version if count else 0)

A Failure says what went wrong: its code is "conflict" where a value has another version than the one that was expected, and "quota" where
there is no more room.
"""

from __future__ import annotations

import builtins
import json as _json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ._host import use

_PAGE = 1000  # keys in a page of a list


@dataclass(frozen=True)
class Entry:
    """A value, its version, and when it goes: None of one that stays."""

    value: bytes
    version: int
    expires: datetime | None = None

    def text(self) -> str:
        """Returns the value as a text."""
        return self.value.decode()

    def json(self) -> Any:
        """Returns the value as JSON has it."""
        return _json.loads(self.value)


def get(key: str) -> Entry | None:
    """Returns what a key has, or None where there is no such key."""
    answer = use("kv.get", _text(key))
    if not answer:
        return None
    version, expires = (int.from_bytes(answer[at : at + 8], "little") for at in (0, 8))
    return Entry(answer[16:], version, datetime.fromtimestamp(expires / 1000, UTC) if expires else None)


def set(key: str, value: str | bytes, *, ttl: float | timedelta = 0, expect: int | None = None) -> int:
    """Keeps a value, and returns its version: when it has returned, the value is there whatever happens.

    The value goes after `ttl`, in seconds; 0 keeps it. With `expect` the key has to have that version, or to be new where it is 0.
    """
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if not 0 <= seconds < 1e12:
        raise ValueError(f"ttl is {ttl!r}: it is how many seconds the value is kept, and 0 keeps it")
    if not isinstance(value, str | bytes):
        raise TypeError(f"a value is a str or bytes, not {type(value).__name__}: json.dumps makes a str of anything else")
    return int.from_bytes(use("kv.set", _text(key), value, -int(-seconds * 1000 // 1), _version(expect)), "little")


def delete(key: str, *, expect: int | None = None) -> bool:
    """Removes a key, and says whether it was there."""
    return use("kv.delete", _text(key), b"", _version(expect)) == b"\1"


def list(prefix: str = "", *, after: str = "", limit: int | None = None) -> Iterator[str]:
    """Yields the keys that begin with a text, in the order of their UTF-8: those behind `after`, at most `limit`."""
    left = limit
    more = True
    while more and left != 0:
        answer = use("kv.list", _text(prefix), _text(after), min(_PAGE, left or _PAGE))
        keys = _keys(answer)
        more = answer[:1] == b"\1" and bool(keys)
        yield from keys
        if keys:
            after = keys[-1]
        if left is not None:
            left = max(0, left - len(keys))


def _keys(answer: bytes) -> builtins.list[str]:
    keys, at = [], 1
    while at < len(answer):
        end = at + 4 + int.from_bytes(answer[at : at + 4], "little")
        keys.append(answer[at + 4 : end].decode())
        at = end
    return keys


def _text(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {type(key).__name__}")
    return key


def _version(expect: int | None) -> int:
    """Returns what the host takes: -1 is whatever there is."""
    if expect is None:
        return -1
    if type(expect) is not int or expect < 0:
        raise ValueError(f"expect is {expect!r}: it is the version of an entry, or 0 where there is to be none")
    return expect if expect < 1 << 63 else expect - (1 << 64)
