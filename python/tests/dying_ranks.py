"""Ranks that die at one step of a push, and messages that do not come as they were sent.

The ranks are threads of this process, and `Board` is a double of the transport between them. A rank makes a step before
each call of the core, before each call of the exchange, and twice within each call of all ranks: when some of the
others have heard it, and when all have. `Point` names a step at which a rank dies. From then on it sends nothing and
makes no call of the core, not even one that closes something. `play` copies the archive as it is when all other ranks
have ended, and looks at the copy: no handler of the dead rank has changed it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import velocpy
from velocpy import errors, knobs, ondisk
from velocpy.archive import Destination, Pushed, background, part, push, shares, together
from velocpy.archive.alone import Options
from velocpy.archive.exchange import Bytes, _await, _named

PAGE = 4096
RANKS = 4
SIZES: dict[str, Any] = {"host": "16MiB", "disk": "64MiB"}

#: Seconds in which every rank that lives has ended. One that has not hangs.
HANG = 60.0
#: Seconds that a rank waits for messages of a plan, and more of them where it has given up a rank that lives.
TIMEOUTS = (0.4, 5.0, 30.0)
#: Seconds by which a message is delayed that still comes in time.
DELAY = 0.05

#: Of each history: how it reduces, and the keys that the archive has before in version 0.
HISTORIES: dict[str, dict[str, Any]] = {"forward": {}, "encoded": {"reduce": "codec"}}
OLD = {("forward", 0): 0, ("forward", 1): 0, ("encoded", 0): 0}
#: What the push brings: a key in a new version, and keys that the archive lacks.
NEW = {("forward", 1): 1, ("forward", 2): 0, ("forward", 3): 0, ("encoded", 1): 0}


def state_of(rank: int, history: str, key: int, version: int) -> dict[str, np.ndarray[Any, Any]]:
    """What a rank keeps. Sizes differ from rank to rank."""
    rng = np.random.default_rng([rank, key, version, len(history)])
    return {
        "noise": rng.integers(0, 256, 9000 + 1500 * rank, np.uint8),
        "slow": np.repeat(rng.random(50), 10),
        "version": np.array([version]),
    }


def same(found: Any, rank: int, history: str, key: int, version: int) -> bool:
    """Whether these are the bytes of a version."""
    expected = state_of(rank, history, key, version)
    return set(found) == set(expected) and all(
        found[name].dtype == array.dtype and np.array_equal(found[name], array) for name, array in expected.items()
    )


def copied(folder: Path, to: Path) -> Path:
    """A copy of a store or an archive in a directory. Its data files are long, and have holes."""
    to.mkdir()
    for path in folder.iterdir():
        with path.open("rb") as source, (to / path.name).open("wb") as copy:
            length, at = path.stat().st_size, 0
            copy.truncate(length)
            with contextlib.suppress(OSError):  # behind the last data there is a hole
                while at < length:
                    start = os.lseek(source.fileno(), at, os.SEEK_DATA)
                    at = os.lseek(source.fileno(), start, os.SEEK_HOLE)
                    os.pwrite(copy.fileno(), os.pread(source.fileno(), at - start, start), start)
    return to


def store_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank:05d}"


def keep(folder: Path, versions: dict[tuple[str, int], int]) -> None:
    """Every rank captures these keys."""
    for rank in range(RANKS):
        with velocpy.open(store_of(folder, rank), **SIZES) as store:
            for (history, key), version in versions.items():
                store.history(history, **HISTORIES[history]).checkpoint(key, **state_of(rank, history, key, version))
            store.wait("disk")


def versions_of(archive: Path | str) -> dict[tuple[str, int], int]:
    """The version of each key of an archive, which all ranks have in it.

    Raises
    ------
    AssertionError
        A key is there in part, or its bytes are those of no version.
    """
    found: dict[tuple[str, int], int] = {}
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        for history in HISTORIES:
            keys = sorted(store.history(history))
            for rank in range(RANKS):
                assert sorted(store.history(part(history, rank))) == keys, f"keys of rank {rank} in {history}"
            for key in keys:
                assert store.history(history).restore(key)["ranks"].tolist() == list(range(RANKS))
                states = [store.history(part(history, rank)).restore(key) for rank in range(RANKS)]
                version = int(states[0]["version"][0])
                for rank, state in enumerate(states):
                    assert same(state, rank, history, int(key), version), f"{history} {key}: rank {rank}"
                found[history, int(key)] = version
    return found


def require_old_or_new(archive: Path | str) -> dict[tuple[str, int], int]:
    """Each key is there in its old version or in the new one, or not yet; all bytes have their checksums."""
    assert ondisk.check(archive, read_data=True).sound
    found = versions_of(archive)
    for name, version in OLD.items():
        assert found[name] in {version, NEW.get(name, version)}, f"{name} is there in version {found[name]}"
    for name, version in found.items():
        assert version in {OLD.get(name), NEW.get(name)}, f"{name} is there in version {version}"
    return found


#: Has the rank of each thread.
_local = threading.local()


class Dead(BaseException):
    """Ends a thread whose rank has died. All that it calls meanwhile raises this again."""


class Configuration(NamedTuple):
    """Where ranks and archive are."""

    nodes: tuple[int, ...]
    files: int
    #: The most leaders of a file; None: one on every node.
    leaders: int | None
    bucket: bool = False

    @property
    def name(self) -> str:
        nodes = len(set(self.nodes))
        if self.bucket:
            return f"bucket, {nodes} {'nodes' if nodes > 1 else 'node'}"
        leads = "one leader of a file" if self.leaders else "a leader on every node"
        return f"{self.files} {'files' if self.files > 1 else 'file'}, {nodes} {'nodes' if nodes > 1 else 'node'}" + (
            f", {leads}" if nodes > 1 else ""
        )


class Point(NamedTuple):
    """The step at which a rank dies."""

    rank: int
    step: int
    #: All ranks of its node die with it.
    node: bool = False
    #: "told": the others get an error as soon as they wait for it. "silent": they do not get any, and give it up after
    #: their timeout. "outlived": so it is, and the next push runs while they still write what the dead one has planned.
    notice: str = "told"
    #: "push", or "background": the stores are opened with ``archive=``, and the rank dies at a step of their threads.
    way: str = "push"


class Fate(NamedTuple):
    """What happens to a message."""

    #: "lost", "duplicated", "reordered" or "delayed".
    kind: str
    sender: int
    #: The rank that gets it; -1: all of them, as the message is what a rank says in a call of all ranks.
    to: int
    #: How many there were on this way.
    number: int


@dataclass
class Board:
    """What is on its way between ranks, and which of them live."""

    nodes: Sequence[int]
    point: Point | None = None
    fate: Fate | None = None
    #: Whether a message is sent when its receiver has taken it, as large ones are by MPI, or at once.
    rendezvous: bool = False
    guard: threading.Condition = field(default_factory=threading.Condition)
    dead: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    #: What dead ranks were about to do.
    died: str = ""
    happened: bool = False  # what the fate says
    steps: Counter[int] = field(default_factory=Counter)
    #: What each rank has done, for those who choose points.
    log: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    said: dict[int, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    #: By call and speaker: the ranks that have heard it before it died.
    heard: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    sent: dict[tuple[int, int], deque[_Message]] = field(default_factory=lambda: defaultdict(deque))
    held: dict[tuple[int, int], _Message] = field(default_factory=dict)
    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: Ranks that wait, and what for.
    waiting: dict[int, Callable[[], bool]] = field(default_factory=dict)
    sleeping: int = 0
    resume: threading.Event = field(default_factory=threading.Event)
    opened: list[ondisk.Opened] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)

    def step(self, rank: int, what: str, last: Callable[[], None] = lambda: None) -> None:
        """A rank is about to do something. If it dies here, ``last`` is what it still does."""
        with self.guard:
            if rank in self.dead:
                raise Dead
            self.steps[rank] += 1
            if self.point is None:
                self.log[rank].append(what)
                return
            if self.point[:2] == (rank, self.steps[rank]):
                last()
                node = self.nodes[rank]
                self.dead |= {
                    each for each in range(RANKS) if each == rank or (self.point.node and self.nodes[each] == node)
                }
                self.died = what
                self.guard.notify_all()
                raise Dead
            late = self.dead and self.point.notice == "outlived" and what.startswith("before share_")
        if late:
            self.resume.wait(HANG)

    def gone(self, rank: int) -> bool:
        """Whether others notice that this rank is dead."""
        return rank in self.dead and self.point is not None and self.point.notice == "told"

    def hopeless(self) -> bool:
        """Whether every rank that lives waits for something that will not come: then its timeout passes."""
        return not self.sleeping and all(
            rank in self.dead or rank in self.ended or (rank in self.waiting and not self.waiting[rank]())
            for rank in range(RANKS)
        )  # fmt: skip

    def await_(self, rank: int, come: Callable[[], bool]) -> None:
        """Waits on behalf of a rank. The caller holds the guard."""
        self.waiting[rank] = come
        try:
            while not come():
                if rank in self.dead:
                    raise Dead
                if self.hopeless():
                    self.guard.notify_all()
                    raise errors.WaitTimeout("the time is over, and not all ranks have come")
                self.guard.wait(0.05)
        finally:
            del self.waiting[rank]

    def met(self, kind: str, way: tuple[int, int], number: int) -> bool:
        """Whether this fate is that of a message."""
        it = self.fate is not None and self.fate == Fate(kind, *way, number)
        self.happened = self.happened or it
        return it


class _Message(NamedTuple):
    bytes_: bytes
    #: When it comes.
    at: float
    taken: threading.Event


class Ranks:
    """The exchange of one rank."""

    any_thread = True
    size = RANKS

    def __init__(self, board: Board, rank: int) -> None:
        self._b, self.rank, self._calls = board, rank, 0

    def all_gather(self, text: bytes) -> list[bytes]:
        return self._all("all_gather", text)

    def broadcast(self, text: bytes) -> bytes:
        return self._all("broadcast", text)[0]

    def _all(self, name: str, text: bytes) -> list[bytes]:
        b, rank = self._b, self.rank
        _local.rank = rank  # also of the thread that a store has for its archive
        self._calls += 1
        call = self._calls
        with b.guard:  # a finalizer may let another thread run while a missing entry is made
            said = b.said[call]

        def say_to_some() -> None:
            said[rank] = text
            b.heard[call, rank] = {each for each in range(RANKS) if (each + call) % 2}

        b.step(rank, f"before {name}")
        b.step(rank, f"in {name}, heard by some", say_to_some)
        if b.met("delayed", (rank, -1), call):
            b.sleeping += 1
            time.sleep(DELAY)
            b.sleeping -= 1
        with b.guard:
            if not b.met("lost", (rank, -1), call):
                said[rank] = text
            b.guard.notify_all()
        b.step(rank, f"in {name}, heard by all")

        def heard() -> bool:
            return all(each in said and rank in b.heard.get((call, each), {rank}) for each in range(RANKS))

        def come() -> bool:
            return heard() or any(b.gone(each) for each in range(RANKS))

        with b.guard:
            b.await_(rank, come)
            if not heard():
                with _named(None):
                    raise RuntimeError("Connection closed by peer")
            return [said[each] for each in range(RANKS)]

    def send(self, to: int, bytes_: Bytes) -> Any:
        b, way = self._b, (self.rank, to)
        b.step(self.rank, "before send")
        with b.guard:
            if b.gone(to):
                with _named(to):
                    raise RuntimeError("Connection closed by peer")
            b.counts[way] += 1
            number = b.counts[way]
            delay = DELAY if b.met("delayed", way, number) else 0.0
            message = _Message(bytes_.tobytes(), time.monotonic() + delay, threading.Event())
            queue = b.sent[way]
            if b.met("reordered", way, number):
                b.held[way] = message
            elif not b.met("lost", way, number):
                queue.extend([message] * (2 if b.met("duplicated", way, number) else 1))
                if way in b.held:
                    queue.append(b.held.pop(way))
            b.guard.notify_all()
        return _Parcel(self, to, lambda: not b.rendezvous or message.taken.is_set())

    def receive(self, sender: int, into: Bytes) -> Any:
        b = self._b
        b.step(self.rank, "before receive")
        with b.guard:
            queue = b.sent[sender, self.rank]

        def come() -> bool:
            if not queue or queue[0].at > time.monotonic():
                return False
            content = queue[0].bytes_
            if len(content) > len(into):
                raise RuntimeError("the message is longer than the buffer")
            into[: len(content)] = np.frombuffer(content, np.uint8)
            queue.popleft().taken.set()
            b.guard.notify_all()
            return True

        return _Parcel(self, sender, come)

    def wait(self, parcel: _Parcel) -> None:
        b = self._b
        b.step(self.rank, "before wait")
        with b.guard:
            b.await_(self.rank, lambda: parcel.done() or self._late(parcel))
        _await(parcel.done, HANG)  # a message that is delayed

    def _late(self, parcel: _Parcel) -> bool:
        return bool(queue := self._b.sent[parcel.other, self.rank]) and queue[0].at > time.monotonic()

    def close(self) -> None:
        """There is nothing to give back."""


class _Parcel:
    def __init__(self, of: Ranks, other: int, come: Callable[[], bool]) -> None:
        self._of, self.other, self._come, self._done = of, other, come, False

    def done(self) -> bool:
        b = self._of._b
        with b.guard:
            if self._of.rank in b.dead:
                raise Dead
            with _named(self.other):
                self._done = self._done or self._come()
                if not self._done and b.gone(self.other):
                    raise RuntimeError("Connection closed by peer")
        return self._done


@contextlib.contextmanager
def watched(board: Board) -> Iterator[None]:
    """Every call of the core by a rank is a step of it."""
    kept = together.Opened._reserve, together.Opened.ask, shares.Share.begin, knobs.node_name
    reserve, ask, begin, _ = kept

    def reserved(self: Any) -> None:
        self._rank_of_test = getattr(_local, "rank", None)
        reserve(self)
        if self._rank_of_test is not None:
            with board.guard:
                board.opened.append(self)

    def asked(self: Any, op: str, *rest: Any, **more: Any) -> Any:
        if (rank := getattr(self, "_rank_of_test", None)) is not None:
            board.step(rank, f"before {op}")
        return ask(self, op, *rest, **more)

    def begun(self: Any, text: bytes) -> None:
        begin(self, text)
        if self._rank_of_test == 0:
            board.plans.append(json.loads(text))

    opened: Any = together.Opened
    opened._reserve, opened.ask, shares.Share.begin = reserved, asked, begun  # type: ignore[method-assign]
    knobs.node_name = lambda: str(board.nodes[_local.rank])  # type: ignore[assignment]
    try:
        yield
    finally:
        opened._reserve, opened.ask, shares.Share.begin, knobs.node_name = kept  # type: ignore[method-assign]


def close_what_dead_ranks_left(board: Board, ranks: set[int]) -> None:
    """As the kernel does it when a process dies: nothing is written but what `play` does not look at."""
    for each in board.opened:
        if each._open and getattr(each, "_rank_of_test", None) in ranks:
            each._rank_of_test = None  # type: ignore[attr-defined]
            with contextlib.suppress(errors.VelocError):
                each.close()
            each._open = False


def push_all(
    folder: Path, archive: Path | str, of: Configuration, board: Board, timeout: float, during: Callable[[], None]
) -> list[Any]:
    """What the push of each rank returns or raises. ``during`` is called when all have begun."""
    chosen = Options(archive, of.files, 2, False, None, PAGE, 2, of.leaders)

    def pushed(rank: int) -> Pushed:
        return together.push_together(Ranks(board, rank), store_of(folder, rank), lambda: chosen, timeout)

    return all_ranks(board, pushed, during)


def archive_all(folder: Path, archive: Path | str, of: Configuration, board: Board, timeout: float) -> list[Any]:
    """What each rank raises that opens its store with ``archive=``, waits and closes it; "closed": nothing."""
    shape: dict[str, Any] = {"files": of.files, "leaders": of.leaders, "buffer": PAGE, "buffers": 2}
    to = Destination(archive, **({} if of.bucket else shape), writers=2, every=0.01, timeout=timeout)

    def closed(rank: int) -> str:
        with velocpy.open(store_of(folder, rank), **SIZES, archive=to, ranks=rank) as store:
            store.wait("archive", timeout=HANG / 2)
        return "closed"

    kept = background.own_exchange_of
    background.own_exchange_of = lambda rank, _: Ranks(board, rank)  # type: ignore[assignment]
    try:
        return all_ranks(board, closed, lambda: None)
    finally:
        background.own_exchange_of = kept


def all_ranks(board: Board, do: Callable[[int], Any], during: Callable[[], None]) -> list[Any]:
    """What each rank returns or raises that does something, in a thread of its own."""
    came: dict[int, Any] = {}

    def run(rank: int) -> None:
        _local.rank = rank
        try:
            came[rank] = do(rank)
        except BaseException as error:
            came[rank] = error.with_traceback(None)  # its frames hold what the rank has opened
            error.__context__ = error.__cause__ = None
        finally:
            with board.guard:
                board.ended.add(rank)
                board.guard.notify_all()

    with watched(board):
        threads = [
            threading.Thread(target=run, args=(rank,), name=f"rank-{rank}", daemon=True) for rank in range(RANKS)
        ]
        for thread in threads:
            thread.start()
        during()
        end = time.monotonic() + HANG
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        assert not any(thread.is_alive() for thread in threads), f"a rank hangs:\n{stacks()}"
        shares._abandoned.clear()  # the double writes into no buffer later
        together._abandoned.clear()
    return [came[rank] for rank in range(RANKS)]


def stacks() -> str:
    """Where each thread is."""
    frames = sys._current_frames()
    return "\n".join(
        f"{each.name}:\n{''.join(traceback.format_stack(frames[each.ident])[-8:])}"
        for each in threading.enumerate()
        if each.ident in frames
    )


class Base:
    """Stores whose ranks push, and archives that have their older keys, for many pushes."""

    def __init__(self, folder: Path, place: Callable[[str], str] | None = None, objects: Path | None = None) -> None:
        """``place`` names an archive in a bucket, whose objects are files in ``objects``."""
        self.folder, self._place, self._objects = folder, place, objects
        self._numbers = itertools.count()
        keep(folder, OLD)
        stores = [store_of(folder, rank) for rank in range(RANKS)]
        for files in (1, 2):
            push(stores, folder / f"base-{files}", files=files)
        if place is not None:
            push(stores, place("base"))
        keep(folder, NEW)

    def archive(self, of: Configuration) -> Path | str:
        """An archive with the older keys."""
        name = f"archive-{next(self._numbers)}"
        if of.bucket:
            assert self._place is not None
            assert self._objects is not None
            shutil.copytree(self._objects / "base", self._objects / name)
            return self._place(name)
        return copied(self.folder / f"base-{of.files}", self.folder / name)

    def copy(self, archive: Path | str) -> Path | str:
        """What is in an archive now, where no rank reaches it."""
        if isinstance(archive, Path):
            return copied(archive, archive.with_name(f"{archive.name}-left"))
        assert self._place is not None
        assert self._objects is not None
        name = archive.rpartition("/")[2]
        shutil.copytree(self._objects / name, self._objects / f"{name}-left")
        return self._place(f"{name}-left")

    def remove(self, archive: Path | str) -> None:
        if isinstance(archive, Path):
            shutil.rmtree(archive)
        else:
            assert self._objects is not None
            shutil.rmtree(self._objects / archive.rpartition("/")[2])

    @contextlib.contextmanager
    def copied_stores(self) -> Iterator[Path]:
        """The stores, for ranks that open them to write."""
        folder = self.folder / f"stores-{next(self._numbers)}"
        folder.mkdir()
        try:
            for rank in range(RANKS):
                copied(store_of(self.folder, rank), store_of(folder, rank))
            yield folder
        finally:
            shutil.rmtree(folder)

    def stores(self) -> list[Path]:
        return [store_of(self.folder, rank) for rank in range(RANKS)]


class Played(NamedTuple):
    """What came of a point."""

    #: What the rank was about to do; "": it had ended before.
    died: str
    #: Of the ranks that live, by their outcomes: "succeeded", "RankFailed, named", …
    outcomes: Counter[str]


def outcome_of(came: Any, dead: set[int], named: bool) -> str:
    """The outcome of a rank that lives.

    Raises
    ------
    AssertionError
        It is none that the documentation names, or names a rank that lives.
    """
    if isinstance(came, Pushed) or came == "closed":
        return "succeeded"
    assert isinstance(came, errors.RankFailed | errors.WaitTimeout | errors.CorruptCheckpoint), repr(came)
    if isinstance(came, errors.RankFailed):
        if named and came.rank is not None:
            assert came.rank in dead, f"rank {came.rank} lives: {came}"
        return "RankFailed" + (", named" if came.rank is not None else "")
    return type(came).__name__ + (", named" if "from rank" in str(came) else "")


def play(base: Base, of: Configuration, point: Point) -> Played:
    """A push in which a rank dies, and the next push.

    Raises
    ------
    AssertionError
        An older key is harmed, a key is there in part, a rank that lives hangs or raises something else, or the next
        push does not complete the archive.
    """
    for timeout in TIMEOUTS:
        board = Board(of.nodes, point, rendezvous=point.step % 2 == 0)
        archive = base.archive(of)

        def during(board: Board = board, archive: Path | str = archive) -> None:
            if point.notice == "outlived":
                outlive(base, board, archive)

        try:
            if point.way == "push":
                came = push_all(base.folder, archive, of, board, timeout, during)
            else:
                with base.copied_stores() as folder:
                    came = archive_all(folder, archive, of, board, timeout)
            if not board.dead and any(isinstance(each, BaseException) for each in came):
                continue  # a rank that lives has not come in time: this machine is slow
            return _settle(base, of, point.step, board, archive, came)
        finally:
            close_what_dead_ranks_left(board, set(range(RANKS)))
            base.remove(archive)
    raise AssertionError(f"ranks that live were given up: {came}")


def _settle(base: Base, of: Configuration, number: int, board: Board, archive: Path | str, came: list[Any]) -> Played:
    """Looks at what a push has left, and pushes again: all ranks together, or one process for all of them."""
    left = base.copy(archive)
    try:
        found = require_old_or_new(left)
        alive = [rank for rank in range(RANKS) if rank not in board.dead]
        outcomes = Counter(outcome_of(came[rank], board.dead, board.fate is None) for rank in alive)
        if outcomes["succeeded"]:
            assert found == {**OLD, **NEW}, "a push has returned, and the archive lacks something"
        if number % 2:
            again: Any = push(base.stores(), left)
        else:
            all_of_them = push_all(base.folder, left, of, Board(of.nodes), 30, lambda: None)
            again = next(
                (each for each in all_of_them if not isinstance(each, Pushed | errors.WaitTimeout)), all_of_them[0]
            )
        assert isinstance(again, Pushed), again
        assert not again.damaged
        assert require_old_or_new(left) == {**OLD, **NEW}
    finally:
        base.remove(left)
    return Played(board.died, outcomes)


def outlive(base: Base, board: Board, archive: Path | str) -> None:
    """When the lowest rank has died, pushes again, and then lets the others go on with its plan."""
    end = time.monotonic() + HANG
    with board.guard:
        while 0 not in board.dead and len(board.ended) < RANKS:
            assert board.guard.wait(max(0.0, end - time.monotonic())), "a rank hangs"
    try:
        if 0 in board.dead:
            while 0 not in board.ended:  # its thread ends
                time.sleep(0.001)
            close_what_dead_ranks_left(board, {0})
            again = push(base.stores(), archive)
            assert again.keys + again.known == len({**OLD, **NEW})
            assert require_old_or_new(archive) == {**OLD, **NEW}
    finally:
        board.resume.set()


def steps_of(base: Base, of: Configuration, way: str = "push") -> Board:
    """A push in which no rank dies, as `Point.way` says: its board has the steps of each."""
    board = Board(of.nodes)
    archive = base.archive(of)
    try:
        if way == "push":
            came = push_all(base.folder, archive, of, board, 30, lambda: None)
        else:
            with base.copied_stores() as folder:
                came = archive_all(folder, archive, of, board, 30)
        assert [outcome_of(each, set(), True) for each in came] == ["succeeded"] * RANKS, came
    finally:
        base.remove(archive)
    return board


def roles_of(board: Board) -> dict[int, str]:
    """What each rank does by the plans of a push."""
    roles = dict.fromkeys(range(RANKS), "waits")
    for plan in board.plans:
        for copy in plan["copies"] or ():
            if plan["parts"][copy["part"]]["reader"] != copy["leader"]:
                roles[plan["parts"][copy["part"]]["reader"]] = "sender"
        for each in plan["files"] or ():
            roles[each["leader"]] = "leader"
        for each in plan["packs"] or ():
            roles[each["leader"]] = "representative"
    return {rank: f"lowest, {role}" if rank == 0 else role for rank, role in roles.items()}


def play_fate(base: Base, of: Configuration, fate: Fate) -> Counter[str]:
    """A push in which one message does not come as it was sent, and the next push.

    Raises
    ------
    AssertionError
        As `play`; or a message that was delayed has made the push fail.
    """
    for timeout in TIMEOUTS:
        board = Board(of.nodes, fate=fate, rendezvous=fate.number % 2 == 0)
        archive = base.archive(of)
        try:
            came = push_all(base.folder, archive, of, board, timeout, lambda: None)
            if fate.kind == "delayed" and any(isinstance(each, BaseException) for each in came):
                continue
            assert board.happened
            return _settle(base, of, fate.number, board, archive, came).outcomes
        finally:
            base.remove(archive)
    raise AssertionError(f"a message was delayed for {DELAY} s: {came}")


def fates_of(board: Board) -> list[Fate]:
    """What may happen to each message of a push."""
    fates = [
        Fate(kind, sender, to, number)
        for (sender, to), count in sorted(board.counts.items())
        for number in range(1, count + 1)
        for kind in ("lost", "duplicated", "reordered", "delayed")
    ]
    for kind in ("lost", "delayed"):
        fates += [Fate(kind, rank, -1, call) for call in sorted(board.said) for rank in range(RANKS)]
    return fates
