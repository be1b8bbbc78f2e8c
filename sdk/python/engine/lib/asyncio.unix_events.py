"""The event loop of a program without files, sockets, signals and threads: it runs what is ready, and sleeps until the next timer."""

import time

from . import base_events
from . import events

__all__ = ("SelectorEventLoop", "DefaultEventLoopPolicy", "EventLoop")


class _Sleeper:
    """Takes the place of a selector: nothing but time can wake the loop."""

    @staticmethod
    def select(timeout):
        if timeout is None:
            raise RuntimeError("the program waits for something that never comes: no task can run, and no timer is set")
        if timeout > 0:
            time.sleep(timeout)
        return ()


class SelectorEventLoop(base_events.BaseEventLoop):
    """The loop that asyncio.run uses."""

    _selector = _Sleeper

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass


class DefaultEventLoopPolicy(events.BaseDefaultEventLoopPolicy):
    """Makes such loops."""

    _loop_factory = SelectorEventLoop


EventLoop = SelectorEventLoop
