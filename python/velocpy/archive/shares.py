"""What one rank does of a plan: it reads, sends, receives and writes, or uploads.

Senders, receivers and writers are those of the paper (section 4.3). A rank reads what lies in its store, and sends it
to a leader of the file, from a few buffers; the leader receives into a few buffers, and writes. What lies on the
leader's own node it reads itself, with the threads that nothing from other nodes needs.

Where the archive is in a bucket, one rank of each node uploads what the node's stores have. No bytes go between ranks.
"""

from __future__ import annotations

import hashlib
import mmap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from velocpy.errors import CorruptCheckpoint, WaitTimeout
from velocpy.ondisk import Opened

from .exchange import Bytes, Exchange, Parcel

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Carrying", "Share", "Uploading"]

T = TypeVar("T")

#: Behind the bytes of each message: their sum, a mark of the plan, and which bytes they are. A plan has two marks: one
#: for bytes that are what the store has, one for others.
_TRAILER = np.dtype([("sum", "<u8"), ("mark", "<u8"), ("copy", "<u8"), ("at", "<u8")])

#: What was under way when a push was given up. A late message may still be written into these buffers.
_abandoned: list[_Stages] = []

#: Seconds in which threads start.
_PATIENCE = 60

#: Bytes that a thread copies on a node, unless they have to be read in order.
_PIECE = 4 << 20

#: Messages of one rank that a leader waits for at once.
_AHEAD = 2

#: Seconds between two looks, if nothing has come.
_SHORTEST, _LONGEST = 0.0001, 0.002


class Share(Opened):
    """The part of the core in what a rank does."""

    _opens, _closes = "share", "share_close"

    def begin(self, text: bytes) -> None:
        """Takes a plan, as a text."""
        self.ask("share_begin", np.frombuffer(bytearray(text), np.uint8))

    def end(self) -> Mapping[str, Any]:
        """Ends this rank's part of the plan, and returns its report."""
        report, _ = self.ask("share_end")
        return report


@dataclass(frozen=True)
class _Message:
    """A piece of a copy."""

    copy: int
    file: int
    #: Where it begins, in the copy and in the archive.
    at: int
    place: int
    nbytes: int


class _Copied(NamedTuple):
    """What one thread copies from one file of this node to another: a range of a copy."""

    copy: int
    at: int
    nbytes: int


@dataclass
class _Work:
    """What a plan has for one rank."""

    #: By the other rank: to be sent to it, and to be received from it.
    sent: dict[int, deque[_Message]] = field(default_factory=dict)
    received: dict[int, deque[_Message]] = field(default_factory=dict)
    #: Copies between two files of this node.
    copied: deque[_Copied] = field(default_factory=deque)

    @classmethod
    def of(cls, plan: Mapping[str, Any], rank: int, nbytes: int) -> _Work:
        """The share of a rank, in messages of at most so many bytes."""
        work = cls()
        for number, copy in enumerate(plan["copies"] or ()):
            part = plan["parts"][copy["part"]]
            reader, leader = part["reader"], copy["leader"]
            if reader == leader == rank:
                work.copied.extend(_pieces(number, copy["end"] - copy["from"], part["plain"]))
            elif reader == rank:
                work.sent.setdefault(leader, deque()).extend(_messages(number, copy, nbytes))
            elif leader == rank:
                work.received.setdefault(reader, deque()).extend(_messages(number, copy, nbytes))
        return work


def _messages(number: int, copy: Mapping[str, int], most: int) -> Iterator[_Message]:
    length = copy["end"] - copy["from"]
    for at in range(0, length, most):
        yield _Message(number, copy["file"], at, copy["at"] + at, min(most, length - at))


def _pieces(number: int, nbytes: int, in_order: bool) -> Iterator[_Copied]:
    """A copy in pieces that several threads take; one that is compared with its checksums as it is read is one."""
    most = nbytes if in_order else _PIECE
    for at in range(0, nbytes, max(most, 1)):
        yield _Copied(number, at, min(most, nbytes - at))


def _apart(all_of_them: list[T], chosen: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those for which it holds, and the others."""
    held = [(each, chosen(each)) for each in all_of_them]
    return [each for each, holds in held if holds], [each for each, holds in held if not holds]


class _Buffers:
    """A fixed number of buffers, aligned to pages as direct I/O needs them. Unused ones are not resident."""

    def __init__(self, count: int, nbytes: int) -> None:
        self._free = deque(np.frombuffer(mmap.mmap(-1, nbytes + mmap.PAGESIZE), np.uint8) for _ in range(count))

    def __bool__(self) -> bool:
        return bool(self._free)

    def take(self) -> Bytes:
        """One that is free."""
        return self._free.popleft()

    def give(self, buffer: Bytes) -> None:
        """Gives a buffer back."""
        self._free.append(buffer)


class Carrying:
    """Carries out the shares of one rank in the plans of a push.

    Parameters
    ----------
    share
        What of it the core does.
    others
        The ranks. All of them carry out the same plans.
    nbytes, buffers, writers
        Bytes of a buffer, buffers for sending and as many for receiving, and threads that read and write.
    timeout
        Seconds without any progress after which another rank is given up; None: never.
    """

    def __init__(
        self, share: Share, others: Exchange, nbytes: int, buffers: int, writers: int, timeout: float | None
    ) -> None:
        self._share, self._others, self._nbytes, self._writers, self._timeout = share, others, nbytes, writers, timeout
        self._count = buffers
        self._threads = ThreadPoolExecutor(writers, thread_name_prefix="velocpy-share")
        self._failed: BaseException | None = None
        self._sound = self._unsound = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def prepare(self) -> None:
        """Makes buffers and threads. That there cannot be as many is an error here, and not between two messages."""
        self._outgoing, self._incoming = _Buffers(self._count, self._nbytes), _Buffers(self._count, self._nbytes)
        everyone = threading.Barrier(self._writers + 1)
        try:
            for _ in range(self._writers):
                self._threads.submit(everyone.wait, _PATIENCE)
            everyone.wait(_PATIENCE)
        except BaseException:
            everyone.abort()  # those that have started do not wait for the others
            raise

    def carry_out(self, text: bytes, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carries out a plan, which comes as a text and parsed, and returns what this rank reports of it.

        Whatever fails when stores are read and the archive is written, all messages of the plan are exchanged, so that
        no other rank waits for them; then the first error is raised. Buffers for sending and for receiving are
        different ones, so that no two ranks wait for each other's.

        Raises
        ------
        WaitTimeout
            Another rank made no progress.
        """
        self._failed = None
        # A message of an earlier plan, or one whose trailer has changed, has neither mark.
        self._sound, self._unsound = np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), "<u8").tolist()
        try:
            self._share.begin(text)
        except BaseException as error:  # the others wait for messages of this rank all the same
            self._failed = error
        self._run(_Work.of(plan, self._others.rank, self._nbytes))
        if self._failed is None:
            return self._share.end()
        raise self._failed

    def _run(self, work: _Work) -> None:
        stages = _Stages(self, work)
        pause, moved = _SHORTEST, time.monotonic()
        try:
            while stages.unfinished():
                if stages.step():
                    pause, moved = _SHORTEST, time.monotonic()
                    continue
                if stages.at_work():
                    moved = time.monotonic()
                elif self._timeout is not None and time.monotonic() - moved > self._timeout:
                    raise WaitTimeout(
                        f"for {self._timeout} s nothing has come from rank {stages.awaited()}. Nothing of this part of "
                        "the push is in the archive. The communicator has calls under way, and must not be used any "
                        "more."
                    )
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
        finally:
            if stages.unfinished():
                _abandoned.append(stages)


class Uploading:
    """Carries out the shares of one rank in the plans of a push into a bucket. It has the calls of `Carrying`.

    Parameters
    ----------
    share
        What of it the core does.
    senders
        Goroutines that send parts of a pack; None: the default.
    """

    def __init__(self, share: Share, senders: int | None) -> None:
        self._share, self._senders = share, senders

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left: each call of the core ends its own goroutines."""

    def prepare(self) -> None:
        """Nothing is needed before the first plan."""

    def carry_out(self, text: bytes, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carries out a plan, which comes as a text and parsed, and returns what this rank reports of it."""
        self._share.begin(text)
        self._share.ask("share_upload", writers=self._senders or 0)
        return self._share.end()


class _Stages:
    """The stages through which the messages of a plan go, and what is under way in each."""

    def __init__(self, carrying: Carrying, work: _Work) -> None:
        self._c, self._work = carrying, work
        self._reading: dict[int, tuple[_Message, Bytes, Future[Any]]] = {}  # by the rank that gets it: one at once
        self._sending: list[tuple[int, Bytes, Parcel]] = []
        self._receiving: dict[int, deque[tuple[_Message, Bytes, Parcel]]] = {rank: deque() for rank in work.received}
        self._writing: list[tuple[Bytes, Future[Any]]] = []
        self._copying: list[Future[Any]] = []
        self._first = 0  # whose turn it is to be read for

    def unfinished(self) -> bool:
        """Whether anything is left to be done."""
        work = self._work
        return bool(
            self._reading or self._sending or self._writing or self._copying or work.copied
            or any(work.sent.values()) or any(work.received.values()) or any(self._receiving.values())
        )  # fmt: skip

    def at_work(self) -> bool:
        """Whether a thread of this rank reads or writes."""
        return bool(self._reading or self._writing or self._copying)

    def awaited(self) -> str:
        """The ranks that this one waits for."""
        ranks = {rank for rank, all_of_them in self._receiving.items() if all_of_them}
        return " and ".join(map(str, sorted(ranks | {rank for rank, _, _ in self._sending}))) or "itself"

    def step(self) -> bool:
        """Does what can be done without waiting; whether it was anything."""
        some = False
        for move in (
            self._receive, self._write, self._written, self._send, self._sent, self._read, self._copy, self._copied
        ):  # fmt: skip
            some = move() or some
        return some

    def _receive(self) -> bool:
        """Lets the next messages of all ranks come, by turns, as long as there are buffers."""
        some = False
        for rank, waiting in self._work.received.items():
            coming = self._receiving[rank]
            if waiting and len(coming) < _AHEAD and self._c._incoming:
                message, buffer = waiting[0], self._c._incoming.take()
                into = buffer[: message.nbytes + _TRAILER.itemsize]
                coming.append((message, buffer, self._c._others.receive(rank, into)))
                waiting.popleft()
                some = True
        return some

    def _write(self) -> bool:
        """Hands what has come over to the threads that write."""
        some = False
        for rank, coming in self._receiving.items():
            while coming and coming[0][2].done():
                message, buffer, _ = coming.popleft()
                some = True
                told = buffer[message.nbytes : message.nbytes + _TRAILER.itemsize].view(_TRAILER)[0]
                planned = (told["copy"], told["at"]) == (message.copy, message.at)
                if self._c._failed is not None or (planned and told["mark"] == self._c._unsound):
                    self._c._incoming.give(buffer)
                elif not planned or told["mark"] != self._c._sound:
                    self._c._incoming.give(buffer)
                    self._c._failed = CorruptCheckpoint(f"rank {rank} has sent other bytes than the plan says.")
                else:
                    self._writing.append((buffer, self._submit(self._write_one, message, buffer, int(told["sum"]))))
        return some

    def _write_one(self, message: _Message, buffer: Bytes, told: int) -> None:
        self._c._share.ask("share_write", buffer[: message.nbytes], file=message.file, at=message.place, sum=told)

    def _written(self) -> bool:
        done, self._writing = _apart(self._writing, lambda each: each[1].done())
        for buffer, written in done:
            self._c._incoming.give(buffer)
            self._note(written)
        return bool(done)

    def _read(self) -> bool:
        """Reads the next message for each rank that nothing is read for, by turns, as long as there are buffers."""
        some = False
        ranks = [rank for rank, waiting in self._work.sent.items() if waiting and rank not in self._reading]
        for rank in ranks[self._first % max(len(ranks), 1) :] + ranks[: self._first % max(len(ranks), 1)]:
            if not self._c._outgoing:
                break
            message, buffer = self._work.sent[rank][0], self._c._outgoing.take()
            self._reading[rank] = (message, buffer, self._submit(self._read_one, message, buffer))
            self._work.sent[rank].popleft()
            self._first += 1
            some = True
        return some

    def _read_one(self, message: _Message, buffer: Bytes) -> None:
        trailer = buffer[message.nbytes : message.nbytes + _TRAILER.itemsize].view(_TRAILER)
        trailer["mark"], trailer["copy"], trailer["at"] = self._c._unsound, message.copy, message.at
        if self._c._failed is None:
            told, _ = self._c._share.ask("share_read", buffer[: message.nbytes], copy=message.copy, at=message.at)
            trailer["sum"] = told["sum"]
            if told["sound"]:
                trailer["mark"] = self._c._sound

    def _send(self) -> bool:
        some = False
        for rank, (message, buffer, read) in list(self._reading.items()):
            if read.done():
                self._note(read)
                sent = self._c._others.send(rank, buffer[: message.nbytes + _TRAILER.itemsize])
                self._sending.append((rank, buffer, sent))
                del self._reading[rank]
                some = True
        return some

    def _sent(self) -> bool:
        done, self._sending = _apart(self._sending, lambda each: each[2].done())
        for _, buffer, _ in done:
            self._c._outgoing.give(buffer)
        return bool(done)

    def _copy(self) -> bool:
        """Copies what lies on this node, with the threads that nothing else needs."""
        if self._c._failed is not None:
            self._work.copied.clear()
        some = False
        while self._work.copied and len(self._copying) + len(self._writing) + len(self._reading) < self._c._writers:
            piece = self._work.copied.popleft()
            self._copying.append(
                self._submit(self._c._share.ask, "share_copy", None, copy=piece.copy, at=piece.at, length=piece.nbytes)
            )
            some = True
        return some

    def _copied(self) -> bool:
        done, self._copying = _apart(self._copying, lambda each: each.done())
        for copied in done:
            self._note(copied)
        return bool(done)

    def _submit(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Future[Any]:
        return self._c._threads.submit(call, *arguments, **more)

    def _note(self, done: Future[Any]) -> None:
        """Keeps the first error."""
        error = done.exception()
        if error is not None and self._c._failed is None:
            self._c._failed = error
