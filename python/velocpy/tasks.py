"""Loops over the restores of a plan in tasks of asyncio.

Each loop has a thread in which its restores run, one after the other; the event loop goes on meanwhile. Loops share no
threads: one whose restore waits for room must not keep back another whose task gives that room back.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Real
from typing import Any

from . import _core
from .errors import WaitTimeout, timed_out
from .interfaces import Key, LoopOwner
from .streams import CurrentStreams

#: Seconds that a lease waits for room until its thread looks whether the task was cancelled, and the bytes per second
#: that a restore reads at least: it is not given up before its bytes can have come.
_SLICE, _SLOWEST = 0.2, 100e6

#: Seconds between two looks of a thread whether the event loop that has its result was closed.
_LOOK = 1.0


class TaskRestores:
    """An asynchronous iterator of (key, lease), or of (key, into).

    A step that is cancelled ends when its thread does nothing more. It has not happened: the next step, of this loop or
    of another one, has the same key. One exception: if a checkpoint was consumed into the caller's arrays by then, the
    next step of this loop yields it.
    """

    def __init__(self, history: LoopOwner, arguments: dict[str, Any]) -> None:
        self._history = history
        self._patience = _Patience(arguments["timeout"]) if _waits_for_room(arguments) else None
        self._current = _CurrentStep(history, arguments)
        changed = {"observe": self._current.offer, "watchers": [None]}  # the core calls observe if there are watchers
        self._loop = _core.Loop(**(arguments | changed | ({"timeout": self._patience} if self._patience else {})))
        self._filled: tuple[Key, Any] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="velocpy-restores")

    def __aiter__(self) -> TaskRestores:
        return self

    async def __anext__(self) -> tuple[Key, Any]:
        if self._filled is not None:
            filled, self._filled = self._filled, None
            return filled
        step = _Step(self._history)
        work = self._thread.submit(self._run, step)
        work.add_done_callback(step.tell)
        try:
            await step.offered
        except BaseException as error:
            step.refuse()
            if isinstance(error, asyncio.CancelledError):
                await _ended(work)
                self._filled = None if work.exception() is not None else work.result()
            raise
        step.accept()
        item = work.result()  # blocks for microseconds: a task that waited here could be cancelled with a lease in hand
        if item is None:
            raise StopAsyncIteration
        return item

    def _run(self, step: _Step) -> tuple[Key, Any] | None:
        """A step, in the thread of this loop."""
        step.require_wanted()
        self._current.step = step
        try:
            step.streams.adopt()
            return next(self._loop, None) if self._patience is None else self._next(step, self._patience)
        finally:
            self._current.step = None

    def _next(self, step: _Step, patience: _Patience) -> tuple[Key, Any] | None:
        """The next item, waited for in slices until the timeout is over or the step is refused."""
        end = time.monotonic() + patience.timeout
        seconds = _SLICE
        while True:
            patience.seconds = max(0.0, min(seconds, end - time.monotonic()))
            try:
                return next(self._loop, None)
            except WaitTimeout as error:
                step.require_wanted()
                if time.monotonic() >= end:
                    raise timed_out(patience.timeout, error.history, error.key, "bytes") from None
                seconds = _SLICE + self._size(error.key) / _SLOWEST

    def _size(self, key: Key | None) -> int:
        found = None if key is None else self._history._core.lookup(key)
        return 0 if found is None else found[0]


class _CurrentStep:
    """The step that a loop is at. The loop refers to it, and so it refers to no loop: the core's have no collector."""

    def __init__(self, history: LoopOwner, arguments: dict[str, Any]) -> None:
        self.step: _Step | None = None
        self._history = history
        self._into = arguments["into"] is not None
        self._observe = arguments["observe"]

    def offer(self, key: Key) -> None:
        """Called by the core when a restore has succeeded. If it raises, the restore is due again."""
        assert self.step is not None
        consumed = self._into and self._history._core.lookup(key) is None
        self.step.offer(may_be_refused=not consumed)
        self._observe(key)


class _Refused(Exception):
    """The task was cancelled."""


class _Step:
    """One restore: begun by a task, carried out by the thread of its loop, and accepted or refused by the task."""

    def __init__(self, history: LoopOwner) -> None:
        self.streams = CurrentStreams(history._store._places)
        self._tasks = asyncio.get_running_loop()
        self.offered = self._tasks.create_future()
        self._answered = threading.Event()
        self._refused = False

    def accept(self) -> None:
        self._answered.set()

    def refuse(self) -> None:
        self._refused = True
        self._answered.set()

    def require_wanted(self) -> None:
        if self._refused:
            raise _Refused

    def offer(self, *, may_be_refused: bool) -> None:
        """Tells the task that the restore has succeeded, and waits for its answer."""
        self.tell()
        while not self._answered.wait(_LOOK):
            if self._tasks.is_closed():
                self.refuse()
        if may_be_refused:
            self.require_wanted()

    def tell(self, work: Future[Any] | None = None) -> None:
        """Wakes the task: there is something to accept, or ``work`` has ended."""
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._tasks.call_soon_threadsafe(_wake, self.offered)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Patience:
    """The timeout of a loop: the core asks for its value at each restore, and `TaskRestores` sets it before."""

    __slots__ = ("seconds", "timeout")

    def __init__(self, timeout: Any) -> None:
        self.timeout = float(timeout)
        self.seconds = self.timeout

    def __float__(self) -> float:
        return self.seconds


def _waits_for_room(arguments: dict[str, Any]) -> bool:
    """Whether restores of these arguments wait until the application gives room back.

    Only leases with a timeout do. Others wait for the store's own work alone, and end with it.
    """
    timeout = arguments["timeout"]
    number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    return arguments["into"] is None and number and float(timeout) > 0


async def _ended(work: Future[Any]) -> None:
    """Waits for the end of a step, which is near, whatever cancels the task meanwhile."""
    ended = asyncio.wrap_future(work)
    while not ended.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ended])
    ended.exception()  # so that asyncio does not log it
