"""Runs async functions. The loop is made before the first call: making one takes longer than most calls."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ._host import host

_T = TypeVar("_T")

# The loop of all calls in a sandbox. A call leaves nothing in it: its memory is reset.
_kept: list[asyncio.AbstractEventLoop] = []


def prepare() -> None:
    """Makes the loop."""
    if not _kept:
        _kept.append(asyncio.new_event_loop())


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine to its end. What it has started and not awaited is cancelled, as asyncio.run does."""
    if host is None:
        return asyncio.run(coroutine)
    prepare()
    loop = _kept[0]
    try:
        return loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
