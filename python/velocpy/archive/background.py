"""A store whose checkpoints go on to an archive while the application computes: ``velocpy.open(archive=)``.

One thread of each rank does it. At intervals the threads of all ranks tell each other whether there is something new,
and then push together, by a communicator of their own. What ends it, they tell each other too.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from velocpy.choices import TierName
from velocpy.errors import (
    TIERS,
    DurabilityLost,
    InvalidArgument,
    RankFailed,
    StoreClosed,
    TierUnavailable,
    VelocError,
    WaitTimeout,
    timed_out,
)
from velocpy.figures import ArchiveStats
from velocpy.store import Store

from .alone import Omission, Options, store_path
from .destination import Destination
from .exchange import Exchange, own_exchange_of
from .tickets import ARCHIVE, ArchivedTicket
from .together import Run, joined

__all__ = ["Background", "opened"]

log = logging.getLogger("velocpy")

_DISK: TierName = "disk"

#: Seconds between two looks at whether a checkpoint was dropped that somebody waits for.
_GLANCE = 0.2

#: Seconds between two turns of the ranks at least, however many callers wait.
_LEAST = 0.02

#: Seconds in which the other ranks hear that this one goes because of an error.
_FAREWELL = 10.0


def opened(archive: str | os.PathLike[str] | Destination, ranks: Any, make: Callable[[], Store]) -> Store:
    """The store that ``make`` opens, with what brings its checkpoints to an archive. All ranks make this call.

    If one of them cannot, no store is open on any.
    """
    to = archive if isinstance(archive, Destination) else Destination(archive)
    store: Store | None = None

    def take_part() -> tuple[Options, Any]:
        nonlocal store
        chosen, _, _ = to._options(), to._pause(), to._patience()
        store = make()
        if store._config["read_only"]:
            raise InvalidArgument("archive= is for a store that is written to: leave it out with mode='r'.")
        return chosen, store_path(store, None)

    try:
        patience = to._patience()
    except VelocError:  # which take_part raises, once the other ranks have been told
        patience = None
    others = own_exchange_of(ranks, patience)
    try:
        run = joined(others, take_part, patience)
        assert store is not None
        store._archiving = Background(store, to, run, others)
    except BaseException:
        if store is not None:
            store._archiving = None
            store.close(flush=False)
        raise
    return store


class Background:
    """The thread of one rank, and what it knows of the checkpoints of its store."""

    def __init__(self, store: Store, to: Destination, run: Run, others: Exchange) -> None:
        chosen = run.options
        self._histories = None if chosen.histories is None else frozenset(chosen.histories)
        self._path = chosen.archive
        self._core = store._core
        self._run, self._others = run, others
        self._every = self._pause = to._pause()
        self._changed = threading.Condition()  # guards what follows
        self._pending: dict[int, ArchivedTicket] = {}  # by their numbers: those that are not in the archive
        self._incomplete: set[int] = set()  # of these, those that other ranks lacked in the last push
        self._seen = -1  # commits of the store before the last push
        self._leaving = False
        self._why = ""  # this rank leaves because of an error
        self._failure: VelocError | None = None  # of the latest push
        self._failures = 0
        self._end: VelocError | None = None  # why the ranks push no more
        self._stats: ArchiveStats = {
            "pushes": 0, "failures": 0, "keys": 0, "parts": 0, "bytes": 0, "pushing_ns": 0, "waiting": 0,
        }  # fmt: skip
        self._hurry = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="velocpy-archive", daemon=True)
        self._thread.start()

    # ---- what the application asks ----

    def ticket(self, history: Any, key: int | str, identity: int, place: Any) -> ArchivedTicket:
        """The ticket of a checkpoint that was captured, and that the archive is to have."""
        ticket = ArchivedTicket(history, key, identity, place)
        if self._histories is None or ticket._history.name in self._histories:
            with self._changed:
                if self._end is None:
                    self._pending[ticket._id] = ticket
        return ticket

    def wait_for(self, ticket: ArchivedTicket, timeout: float | None) -> None:
        """Waits until a checkpoint is in the archive.

        Raises
        ------
        WaitTimeout
            After ``timeout`` seconds.
        CheckpointDropped
            The version went before it was known to be there.
        VelocError
            What the latest push has failed by. The next one goes on by itself.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._histories is not None and ticket._history.name not in self._histories:
            raise InvalidArgument(f"the archive takes other histories than {ticket._history.name!r}: see histories=.")
        if ticket._archived is None:
            self._wait_on_disk(ticket, timeout)
            self._wait(
                lambda: ticket._archived is not None, lambda: self._require_there(ticket), deadline, timeout, ticket
            )
        if isinstance(ticket._archived, VelocError):
            raise copy.copy(ticket._archived)

    @staticmethod
    def _wait_on_disk(ticket: ArchivedTicket, timeout: float | None) -> None:
        ticket._history._core.wait_ticket(ticket._id, ticket.key, TIERS.index(_DISK), timeout)

    def _require_there(self, ticket: ArchivedTicket) -> None:
        if ticket.dropped:
            self._wait_on_disk(ticket, 0)  # which says what has become of it
            raise DurabilityLost("it was dropped before it was known to be in the archive.")

    def wait(self, timeout: float | None) -> None:
        """Waits until everything captured so far is in the archive, also what was there when the store was opened."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._core.wait(TIERS.index(_DISK), timeout)
        with self._changed:
            awaited = list(self._pending.values())
        self._wait(
            lambda: self._seen >= 0 and all(each._archived is not None or each.dropped for each in awaited),
            lambda: None, deadline, timeout, None,
        )  # fmt: skip
        for each in awaited:
            if isinstance(each._archived, VelocError):
                raise copy.copy(each._archived)

    def _wait(
        self,
        reached: Callable[[], bool],
        require: Callable[[], None],
        deadline: float | None,
        timeout: float | None,
        ticket: ArchivedTicket | None,
    ) -> None:
        self._hurry.set()
        with self._changed:
            failures = self._failures
            while not reached():
                if self._end is not None:
                    raise copy.copy(self._end)
                if self._failure is not None and self._failures > failures:
                    raise copy.copy(self._failure)
                require()
                left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
                if left <= 0:
                    history, key = (None, None) if ticket is None else (ticket._history.name, ticket.key)
                    raise timed_out(timeout or 0.0, history, key, "promise", TIERS.index(ARCHIVE))
                self._changed.wait(left)

    def stats(self) -> ArchiveStats:
        """What it has done so far."""
        with self._changed:
            return {**self._stats, "waiting": len(self._pending)}

    def leave(self, timeout: float | None) -> VelocError | None:
        """Waits until all ranks have left, and everything is in the archive; returns what has failed.

        Raises
        ------
        WaitTimeout
            After ``timeout`` seconds. The store goes on, and so does the archive.
        """
        self._leaving = True
        self._hurry.set()
        try:
            if not self._ended.wait(timeout):
                raise WaitTimeout(
                    f"after {timeout:g} s not everything is in the archive, or not all ranks have closed their stores. "
                    "The store is still open. Close it again to wait on, or with flush=False not to wait.",
                    tier=ARCHIVE,
                )
        except BaseException:
            self._leaving = False
            raise
        return self._failure if self._end is None or isinstance(self._end, StoreClosed) else self._end

    def abandon(self, why: str) -> None:
        """Lets the other ranks know that this one goes because of an error, and does not wait for them long."""
        self._why = why
        self._hurry.set()
        self._ended.wait(_FAREWELL)

    # ---- the thread ----

    def _work(self) -> None:
        try:
            while self._turn():
                pass
            self._others.close()
            end: VelocError = StoreClosed(
                "all ranks have closed their stores, so nothing goes to the archive any more."
            )
        except VelocError as error:
            end = copy.copy(error)
        except BaseException as error:
            end = TierUnavailable(
                f"what brings checkpoints to the archive has failed: {type(error).__name__}: {error}. Each key is "
                "there as a whole or not at all, and the store goes on.",
                tier=ARCHIVE,
            )
        with self._changed:
            self._end, waiting = end, len(self._pending)
            self._pending.clear()
            self._changed.notify_all()
        self._ended.set()
        if not isinstance(end, StoreClosed) and not self._why:
            log.error("%s", str(end))
        if waiting and not self._why:
            log.warning(
                "%d checkpoints of this rank are not known to be in the archive %s. Those that were durable are on the "
                "rank's disk, and velocpy.archive.push brings what all ranks have.", waiting, self._path,
            )  # fmt: skip

    def _turn(self) -> bool:
        """Looks with all ranks whether there is something new, and pushes; False if all have left."""
        time.sleep(min(_LEAST, self._every))
        self._hurry.wait(self._pause)
        self._hurry.clear()
        leaving, why, mine = self._leaving, self._why, None
        commits, durable = self._seen, dict[int, ArchivedTicket]()
        try:
            commits, durable = self._look()
        except (
            Exception
        ) as error:  # the store was closed, or its core has failed: the others must not wait for this rank
            why, mine = why or f"{type(error).__name__}: {error}", error
        new = commits != self._seen or not durable.keys() <= self._incomplete
        said = {"leaving": leaving, "why": why, "new": new}
        told = [json.loads(each) for each in self._others.all_gather(json.dumps(said).encode())]
        if mine is not None:
            raise mine
        for rank, each in enumerate(told):
            if each["why"]:
                failed = RankFailed(
                    f"rank {rank} has closed its store because of an error, so nothing goes to the archive any more. "
                    f"Each key is there as a whole or not at all: {each['why']}"
                )
                failed.rank = rank
                raise failed
        if any(each["new"] for each in told):
            self._push(commits, durable)
        return not all(each["leaving"] for each in told)

    def _look(self) -> tuple[int, dict[int, ArchivedTicket]]:
        """How many commits the store has had, and the checkpoints among those awaited that are durable there.

        What is durable now is seen by a push that begins later.
        """
        tiers = json.loads(self._core.stats())["tiers"]
        with self._changed:
            awaited = list(self._pending.items())
        durable = {}
        for number, ticket in awaited:
            if ticket.dropped:
                self._settle(ticket, None)
            elif ticket.durable(_DISK):
                durable[number] = ticket
        return int(tiers[_DISK]["commits"]), durable

    def _push(self, commits: int, durable: Mapping[int, ArchivedTicket]) -> None:
        began = time.perf_counter_ns()
        try:
            outcome = self._run.push(tells=True)
        except VelocError as error:
            if isinstance(error, WaitTimeout) or (isinstance(error, RankFailed) and error._cut_off):
                raise
            self._note(error)
            return
        omitted = {(each.history, each.key): each for each in outcome.omissions}
        incomplete = set()
        for number, ticket in durable.items():
            omission = omitted.get((ticket._history.name, ticket.key))
            if omission is not None and omission.why != "damaged":
                incomplete.add(number)
            elif ticket.dropped:  # perhaps before the push has read it
                self._settle(ticket, None)
            else:
                self._settle(ticket, True if omission is None else _damaged(omission))
        pushed = outcome.pushed
        took = time.perf_counter_ns() - began
        self._pause = max(self._every, took / 1e9)  # a push reads all catalogs: half of the time at most goes to that
        with self._changed:
            self._seen, self._incomplete, self._failure = commits, incomplete, None
            s = self._stats
            s["pushes"] += 1
            s["keys"] += pushed.keys
            s["parts"] += pushed.parts
            s["bytes"] += pushed.nbytes
            s["pushing_ns"] += took
            self._changed.notify_all()
        for part in pushed.damaged:
            log.error("the archive %s lacks a checkpoint, as its bytes are not those captured: %s", self._path, part)

    def _settle(self, ticket: ArchivedTicket, archived: bool | VelocError | None) -> None:
        with self._changed:
            self._pending.pop(ticket._id, None)
            ticket._archived = archived

    def _note(self, error: VelocError) -> None:
        """Keeps the error of a push for those who wait. The next turn tries again."""
        with self._changed:
            if self._failure is None or str(self._failure) != str(error):
                log.warning("nothing went to the archive %s, and will be tried again: %s", self._path, str(error))
            self._failure = copy.copy(error)  # without its traceback, whose frames keep the store
            self._failures += 1
            self._stats["failures"] += 1
            self._changed.notify_all()


def _damaged(omission: Omission) -> VelocError:
    return DurabilityLost(
        "a rank's part of it is damaged, so the key is not in the archive. Capture it again, or drop it.",
        history=omission.history, key=omission.key, tier=ARCHIVE,
    )  # fmt: skip
