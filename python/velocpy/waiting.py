"""Waits of asyncio's tasks for tickets: one thread waits for all of them, so that no event loop is blocked.

The thread exists while a task waits. It waits for one ticket after the other inside the core, which wakes it at once,
and at intervals reads the states of all of them. A state tells of success; only a wait tells of every failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

from .errors import TIERS, VelocError, WaitTimeout, timed_out
from .interfaces import AwaitedTicket

#: Seconds between two passes over the tickets, at least, and how much of the thread's time passes may take.
_INTERVAL, _SHARE = 0.02, 0.05


async def reached(ticket: AwaitedTicket, tier: str | None, timeout: float | None) -> None:
    """Returns, or raises, as ``ticket.wait(tier, timeout)`` does, and lets the event loop run meanwhile."""
    wait = Wait(ticket, tier, timeout)
    _waiter.add(wait)
    try:
        await wait.future
    finally:
        _waiter.remove(wait)


class Wait:
    """One task's wait for one ticket."""

    __slots__ = ("_deadline", "_loop", "_ticket", "_tier", "_timeout", "future")

    def __init__(self, ticket: AwaitedTicket, tier: str | None, timeout: float | None) -> None:
        self._ticket = ticket
        self._tier = tier
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def has_news(self) -> bool:
        """Whether `attempt` may end the wait now. Costs less than an attempt, and asks for no flush."""
        if self._loop.is_closed() or (self._deadline is not None and time.monotonic() >= self._deadline):
            return True
        try:
            return self._ticket._settled(self._tier)
        except VelocError:  # an attempt raises it again
            return True

    def attempt(self, seconds: float) -> bool:
        """Waits for at most that long. Whether the wait has ended; the task is told."""
        if self._loop.is_closed():
            return True
        try:
            self._ticket.wait(self._tier, seconds)
        except WaitTimeout as error:
            if self._deadline is None or time.monotonic() < self._deadline:
                return False
            self._end(self._too_late(error))
        except BaseException as error:  # it is the task's
            self._end(error)
        else:
            self._end(None)
        return True

    def _too_late(self, error: WaitTimeout) -> WaitTimeout:
        """The error with the seconds that the task has waited, instead of those of one attempt."""
        tier = -1 if self._tier is None else TIERS.index(self._tier)
        return timed_out(self._timeout or 0.0, error.history, error.key, "promise", tier)

    def _end(self, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(_settle, self.future, error)


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():  # the task was cancelled
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


class Waiter:
    """The waits of all event loops of this process, and the thread that serves them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[Wait, None] = {}  # in the order of their turns
        self._thread: threading.Thread | None = None

    def add(self, wait: Wait) -> None:
        """Begins to serve a wait."""
        with self._lock:
            self._waits[wait] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="velocpy-waiter", daemon=True)
                self._thread.start()

    def remove(self, wait: Wait) -> None:
        """Forgets a wait; a second call is nothing."""
        with self._lock:
            self._waits.pop(wait, None)

    def _run(self) -> None:
        due = time.monotonic() + _INTERVAL
        while (wait := self._first()) is not None:
            if wait.attempt(max(0.0, due - time.monotonic())):
                self.remove(wait)
            else:
                self._put_last(wait)
            if time.monotonic() >= due:
                due = self._pass()

    def _first(self) -> Wait | None:
        """The wait whose turn it is. Without one the thread ends, and the next wait starts another."""
        with self._lock:
            first = next(iter(self._waits), None)
            if first is None:
                self._thread = None
            return first

    def _put_last(self, wait: Wait) -> None:
        with self._lock:
            if wait in self._waits:  # its task may have been cancelled
                del self._waits[wait]
                self._waits[wait] = None

    def _pass(self) -> float:
        """Ends the waits that can end; returns when the next pass is due."""
        with self._lock:
            waits = list(self._waits)
        began = time.monotonic()
        for wait in waits:
            if wait.has_news() and wait.attempt(0):
                self.remove(wait)
        now = time.monotonic()
        return now + max(_INTERVAL, (now - began) / _SHARE)


_waiter = Waiter()
