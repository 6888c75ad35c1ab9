"""A store whose checkpoints go on to an archive while the application computes: ``velocpy.open(archive=)``.

One thread of each rank does it. At intervals the threads of all ranks tell each other whether there is something new,
and then push together, by a communicator of their own. What ends it, they tell each other too: no thread ends before
the others have heard of it, unless they cannot be reached any more.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from velocpy.errors import (
    TIERS,
    DurabilityLost,
    InvalidArgument,
    RankFailed,
    StoreClosed,
    StoreLocked,
    TierUnavailable,
    VelocError,
    WaitTimeout,
    timed_out,
)
from velocpy.figures import ArchiveStats
from velocpy.interfaces import Key
from velocpy.store import Store
from velocpy.ticket import GONE

from .alone import Name, Options, Outcome, push_alone, store_path
from .destination import Destination
from .exchange import Exchange, own_exchange_of
from .tickets import ARCHIVE, ArchivedTicket, Entry
from .together import Renewed, Run, joined

__all__ = ["Background", "opened"]

log = logging.getLogger("velocpy")

_DISK = TIERS.index("disk")

#: Seconds between two looks at whether a checkpoint was dropped that somebody waits for.
_GLANCE = 0.2

#: Seconds between two turns of the ranks at least, however many callers wait.
_LEAST = 0.02

#: Seconds in which the other ranks hear that this one goes because of an error, beside those between two turns.
_FAREWELL = 10.0

#: So many pushes in a row may fail when all ranks have closed their stores.
_TRIES = 3

#: Damaged parts that were logged, and are not logged again.
_MOST_TOLD = 1000


def opened(archive: str | os.PathLike[str] | Destination, ranks: Any, make: Callable[[], Store]) -> Store:
    """The store that ``make`` opens, with what brings its checkpoints to an archive. All ranks make this call.

    If one of them cannot, no store is open on any.
    """
    to = archive if isinstance(archive, Destination) else Destination(archive)
    store: Store | None = None

    def take_part() -> tuple[Options, Path]:
        nonlocal store
        chosen, _, _ = to._options().for_ranks(others.size), to._pause(), to._patience()
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
        run.decided(lambda: _require_archive(run.options, store_path(store, None)))
        store._archiving = Background(store, to, run, others)
    except BaseException:
        if store is not None:
            store.close(flush=False)
        raise
    return store


def _require_archive(options: Options, store: Path) -> None:
    """Raises what keeps the archive from being written to. It is made, if there is none."""
    with contextlib.suppress(StoreLocked):  # another run pushes now, and has ended when this one does
        push_alone({0: store}, options._replace(histories=()))


def _is_cut_off(error: BaseException) -> bool:
    """Whether the ranks cannot make another call together."""
    return isinstance(error, WaitTimeout) or (isinstance(error, RankFailed) and error._cut_off)


def _again(error: VelocError) -> VelocError:
    """The same error for another thread, without the traceback, whose frames keep the store."""
    other = copy.copy(error)
    if isinstance(error, OSError) and isinstance(other, OSError):
        other.errno, other.strerror, other.filename = error.errno, error.strerror, error.filename
    return other


class Background:
    """The thread of one rank, and what it knows of the checkpoints of its store."""

    def __init__(self, store: Store, to: Destination, run: Run, others: Exchange) -> None:
        chosen = run.options
        self._histories = None if chosen.histories is None else frozenset(chosen.histories)
        self._path = chosen.archive
        self._core: Any = store._core
        self._run, self._others = run, others
        self._every = self._pause = to._pause()
        self._changed = threading.Condition()  # guards what follows
        self._pending: dict[int, Entry] = {}  # by their numbers: those that are not known to be in the archive
        self._omitted: set[int] = set()  # of these, those that the last push left out though their disk has them
        self._captures: dict[Name, int] = {}  # of each key since all ranks have last brought it together
        self._renewed = Renewed({}, set())  # what the push that is under way brings
        self._unreachable: set[int] = set()  # of these, those that other ranks lack, which have all closed their stores
        self._seen = -1  # commits of the store before the last push
        self._leavers = 0  # callers that wait in `leave`
        self._confirmed = False  # this rank has told that it has left, and the others are about to
        self._why = ""  # this rank leaves because of an error
        self._failure: VelocError | None = None  # of the latest push
        self._failures = 0
        self._end: VelocError | None = None  # why the ranks push no more
        self._stats: ArchiveStats = {
            "pushes": 0, "failures": 0, "keys": 0, "parts": 0, "bytes": 0, "pushing_ns": 0, "requests": 0,
            "sent_bytes": 0, "received_bytes": 0, "waiting": 0,
        }  # fmt: skip
        self._broken: BaseException | None = None  # what has failed in the last turn, and the others do not know yet
        self._tries = 0  # pushes in a row that have failed while this rank leaves
        self._told: set[str] = set()  # damaged parts
        self._hurry = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="velocpy-archive", daemon=True).start()

    @property
    def alone(self) -> bool:
        """Whether there are no other ranks."""
        return self._others.size == 1

    # ---- what the application asks ----

    def ticket(self, history: Any, key: Key, identity: int, place: Any) -> ArchivedTicket:
        """The ticket of a checkpoint that was captured, and that the archive is to have."""
        entry = Entry(identity, history.name, key)
        if self._histories is None or history.name in self._histories:
            with self._changed:
                if self._end is None:
                    self._pending[identity] = entry
                    entry.captures = self._captures[entry.name] = self._captures.get(entry.name, 0) + 1
        return ArchivedTicket(history, key, identity, place, entry)

    def wait_for(self, ticket: ArchivedTicket, timeout: float | None) -> None:
        """Waits until a checkpoint is in the archive.

        Raises
        ------
        WaitTimeout
            After ``timeout`` seconds.
        CheckpointDropped
            The version went before it was known to be there.
        DurabilityLost
            It cannot get there: a part of its key is damaged, or the ranks that lack it have closed their stores.
        VelocError
            What the latest push has failed by. The next one goes on by itself.
        """
        entry, deadline = ticket._entry, _deadline(timeout)
        if self._histories is not None and entry.history not in self._histories:
            raise InvalidArgument(f"the archive takes other histories than {entry.history!r}: see histories=.")
        ticket._history._core.wait_ticket(entry.number, entry.key, _DISK, timeout)
        self._wait([entry], entry.settled, deadline, timeout)
        if entry.gone and not entry.archived:
            ticket._history._core.wait_ticket(entry.number, entry.key, _DISK, 0)  # which says what has become of it
            raise DurabilityLost(
                "the checkpoint went before it was known to be in the archive.",
                history=entry.history, key=entry.key, tier=ARCHIVE,
            )  # fmt: skip

    def wait(self, timeout: float | None, history: str | None = None) -> None:
        """Waits until everything captured so far is in the archive, also what was there when the store was opened.

        With ``history``, what that has captured.
        """
        deadline = _deadline(timeout)
        with self._changed:
            if self._end is not None:
                raise _again(self._end)
            core = self._core
        core.wait(_DISK, timeout)
        with self._changed:
            awaited = [each for each in self._pending.values() if history is None or each.history == history]
        self._wait(awaited, lambda: self._seen >= 0 and all(each.settled() for each in awaited), deadline, timeout)

    def _wait(
        self, awaited: Sequence[Entry], reached: Callable[[], bool], deadline: float | None, timeout: float | None
    ) -> None:
        one = awaited[0] if len(awaited) == 1 else None
        self._hurry.set()
        with self._changed:
            failures = self._failures
            while True:
                for entry in awaited:
                    self._look_at(entry)
                if self._end is not None and not (awaited and all(each.settled() for each in awaited)):
                    raise _again(self._end)
                if reached():
                    break
                if self._failure is not None and self._failures > failures:
                    raise _again(self._failure)
                self._require_reachable(awaited)
                left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
                if left <= 0:
                    of = (None, None) if one is None else (one.history, one.key)
                    raise timed_out(timeout or 0.0, of[0], of[1], "promise", TIERS.index(ARCHIVE))
                self._changed.wait(left)
            for entry in awaited:
                entry.require_sound()

    def _look_at(self, entry: Entry) -> None:
        """Notes that a checkpoint has gone."""
        if self._core is not None and not entry.archived and self._core.ticket(entry.number)[0] & GONE:
            self._settle(entry)

    def _require_reachable(self, awaited: Sequence[Entry]) -> None:
        for entry in awaited:
            if entry.number in self._unreachable:
                raise DurabilityLost(
                    f"not all ranks have kept checkpoint {entry.key!r} of history {entry.history!r}, and all others "
                    "have closed their stores, so it will not be in the archive. It is on the disk of this rank; "
                    "velocpy.archive.push with partial=True brings it.",
                    history=entry.history, key=entry.key, tier=ARCHIVE,
                )  # fmt: skip

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
        deadline = _deadline(timeout)
        with self._changed:
            self._leavers += 1
            self._hurry.set()
            try:
                while self._end is None:
                    # Once this rank has confirmed, the others are about to: then it is known at once.
                    left = None if deadline is None or self._confirmed else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        raise WaitTimeout(
                            "the time is over, and not everything is in the archive, or not all ranks have closed "
                            "their stores. The store is still open. Close it again to wait on, or with flush=False "
                            "not to wait.",
                            tier=ARCHIVE,
                        )
                    self._changed.wait(left)
            finally:
                self._leavers -= 1
            end = self._failure if isinstance(self._end, StoreClosed) else self._end
            if end is None:
                try:
                    for entry in self._pending.values():
                        entry.require_sound()
                except DurabilityLost as error:
                    end = error
        return None if end is None else _again(end)

    def abandon(self, why: str, *, wait: bool = True) -> None:
        """Lets the other ranks know that this one goes because of an error, and does not wait for them long."""
        self._why = why
        self._hurry.set()
        if wait:
            self._ended.wait(_FAREWELL + min(self._every, _FAREWELL))

    # ---- the thread ----

    def _work(self) -> None:
        try:
            while self._turn():
                pass
            self._others.close()
            end: VelocError = StoreClosed("all ranks have closed their stores: nothing goes to the archive any more.")
        except BaseException as error:
            end = error if isinstance(error, VelocError) else _unforeseen(error)
        ended = not isinstance(end, StoreClosed)
        with self._changed:
            self._end, self._core, waiting = _again(end), None, len(self._pending)
            self._changed.notify_all()
        self._ended.set()
        if ended and not self._why:
            log.error("%s", str(end))
        if waiting:
            log.warning(
                "%d checkpoints of this rank are not known to be in the archive %s. Those that were durable are on the "
                "rank's disk, and velocpy.archive.push brings what all ranks have.", waiting, self._path,
            )  # fmt: skip

    def _turn(self) -> bool:
        """Looks with all ranks whether there is something new, and pushes; False if all have left.

        Whatever fails between two exchanges is told by the next one.
        """
        time.sleep(min(_LEAST, self._every))
        self._hurry.wait(self._pause)
        self._hurry.clear()
        leaving = self._leavers > 0  # before the look: what was durable when they began to wait is seen
        commits, durable = self._seen, dict[int, Entry]()
        if self._broken is None:
            try:
                commits, durable = self._look()
            except BaseException as error:  # the store was closed, or its core has failed
                self._broken = error
        told = self._tell(
            leaving=leaving,
            why=self._why or ("" if self._broken is None else f"{type(self._broken).__name__}: {self._broken}"),
            new=commits != self._seen or not durable.keys() <= self._omitted,
            tries=self._tries,
        )
        if self._broken is not None:
            raise self._broken
        self._require_no_rank_failed(told)
        all_leave = all(each["leaving"] for each in told)
        gives_up = all_leave and max(each["tries"] for each in told) >= _TRIES
        if any(each["new"] for each in told) and not gives_up:
            self._push(commits, durable)
            if all_leave and self._failure is None:
                self._hurry.set()  # nobody waits for what comes later
            return True
        self._give_up_waits([each["leaving"] for each in told])
        return not (all_leave and self._confirm())

    def _tell(self, **said: Any) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self._others.all_gather(json.dumps(said).encode())]

    @staticmethod
    def _require_no_rank_failed(told: Sequence[Mapping[str, Any]]) -> None:
        for rank, each in enumerate(told):
            if each["why"]:
                failed = RankFailed(
                    f"rank {rank} has closed its store because of an error, so nothing goes to the archive any more. "
                    f"Each key is there as a whole or not at all: {each['why']}"
                )
                failed.rank = rank
                raise failed

    def _confirm(self) -> bool:
        """Whether all ranks still leave: a caller may have given up meanwhile. None can from now on."""
        with self._changed:
            self._confirmed = self._leavers > 0
        whole = all(each["leaves"] for each in self._tell(leaves=self._confirmed))
        if not whole:
            with self._changed:
                self._confirmed = False
                self._changed.notify_all()
        return whole

    def _give_up_waits(self, leaving: Sequence[bool]) -> None:
        """Lets nobody wait for what all other ranks lack that have closed their stores."""
        rest = [each for rank, each in enumerate(leaving) if rank != self._others.rank]
        with self._changed:
            self._unreachable = set(self._omitted) if rest and all(rest) else set()
            if self._unreachable:
                self._changed.notify_all()

    def _look(self) -> tuple[int, dict[int, Entry]]:
        """How many commits the store has had, and the checkpoints among those awaited that are durable there.

        What is durable now is seen by a push that begins later.
        """
        commits = int(json.loads(self._core.stats())["tiers"]["disk"]["commits"])
        with self._changed:
            awaited = list(self._pending.items())
        durable = {}
        for number, entry in awaited:
            flags, tiers, _ = self._core.ticket(number)
            if flags & GONE:
                self._settle(entry)
            elif tiers >> _DISK & 1:
                durable[number] = entry
        return commits, durable

    def _push(self, commits: int, durable: Mapping[int, Entry]) -> None:
        """A push of all ranks. If it fails, it fails on all of them, and the next turn tries again."""
        began = time.perf_counter_ns()
        try:
            outcome = self._run.push(lambda: self._look_again(durable))
        except BaseException as error:
            if _is_cut_off(error):
                raise
            self._note(error if isinstance(error, VelocError) else _unforeseen(error))
            return
        finally:
            took = time.perf_counter_ns() - began
            self._pause = max(self._every, took / 1e9)  # it reads all catalogs: half of the time at most goes to that
        try:
            self._take(outcome, commits, durable, took)
        except BaseException as error:
            self._broken = error

    def _look_again(self, durable: Mapping[int, Entry]) -> Renewed:
        """What this rank has captured, after the push has read the catalogs: it brings what was durable before that."""
        with self._changed:
            awaited = list(self._pending.items())
        certain, uncertain = dict[Name, int](), set[Name]()
        for number, entry in awaited:
            if number in durable and not self._core.ticket(number)[0] & GONE:
                certain[entry.name] = entry.captures
            else:
                uncertain.add(entry.name)
        self._renewed = Renewed({name: count for name, count in certain.items() if name not in uncertain}, uncertain)
        return self._renewed

    def _take(self, outcome: Outcome, commits: int, durable: Mapping[int, Entry], took: int) -> None:
        """Settles what has got there."""
        why = {(each.history, each.key): each.why for each in outcome.omissions}
        omitted = set()
        for number, entry in durable.items():
            if entry.name in why:
                entry.damaged = why[entry.name] == "damaged"
                omitted.add(number)
            elif self._core.ticket(number)[0] & GONE:  # perhaps before the push has read it
                self._settle(entry)
            else:
                entry.archived, entry.damaged = True, False
                self._settle(entry)
        pushed = outcome.pushed
        self._count_anew({name: count for name, count in self._renewed.certain.items() if name not in why})
        with self._changed:
            self._seen, self._omitted, self._failure, self._tries = commits, omitted, None, 0
            s = self._stats
            s["pushes"] += 1
            s["keys"] += pushed.keys
            s["parts"] += pushed.parts
            s["bytes"] += pushed.nbytes
            s["pushing_ns"] += took
            s["requests"] += pushed.requests
            s["sent_bytes"] += pushed.sent_nbytes
            s["received_bytes"] += pushed.received_nbytes
            self._changed.notify_all()
        for part in pushed.damaged:
            if part not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(part)
                log.error("the archive %s lacks a key, as bytes of it are not those captured: %s", self._path, part)

    def _count_anew(self, together: Mapping[Name, int]) -> None:
        """All ranks have brought these keys, captured so often: they count from there."""
        with self._changed:
            for name, count in together.items():
                self._captures[name] -= count
                if not self._captures[name]:
                    del self._captures[name]
            for entry in self._pending.values():
                entry.captures -= together.get(entry.name, 0)

    def _settle(self, entry: Entry) -> None:
        """The archive has it, or it has gone."""
        with self._changed:
            self._pending.pop(entry.number, None)
            entry.gone = not entry.archived

    def _note(self, error: VelocError) -> None:
        """Keeps the error of a push for those who wait."""
        with self._changed:
            if self._failure is None or str(self._failure) != str(error):
                log.warning("nothing went to the archive %s, and will be tried again: %s", self._path, str(error))
            self._failure = _again(error)
            self._failures += 1
            self._tries += self._leavers > 0
            self._stats["failures"] += 1
            self._changed.notify_all()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + min(timeout, threading.TIMEOUT_MAX)


def _unforeseen(error: BaseException) -> TierUnavailable:
    return TierUnavailable(
        f"what brings checkpoints to the archive has failed: {type(error).__name__}: {error}. Each key is there as a "
        "whole or not at all, and the store goes on.",
        tier=ARCHIVE,
    )
