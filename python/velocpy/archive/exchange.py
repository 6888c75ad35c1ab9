"""What ranks tell and send each other, by the communicator that the application has."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import numpy as np

from velocpy.checks import require_seconds
from velocpy.errors import InvalidType, RankFailed, TierUnavailable, VelocError, WaitTimeout

__all__ = ["Alone", "Bytes", "Exchange", "Parcel", "exchange_of", "own_exchange_of"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Calls that were given up, with the memory that they read and write. Any later call of MPI may complete them.
_given_up: list[Any] = []

#: Threads that wait for messages of gloo. One that wakes up while Python ends would end the process by a signal, so
#: Python waits for them for a moment first.
_waiting: set[threading.Thread] = set()
_MOMENT = 1.0


@atexit.register
def _let_end() -> None:
    end = time.monotonic() + _MOMENT
    for thread in list(_waiting):
        thread.join(max(0.0, end - time.monotonic()))


#: Tells bytes from rank to rank from messages of the application on the same communicator.
_TAG = 20_571

#: gloo gives up after half an hour if it is not told otherwise.
_PATIENCE = timedelta(days=365)

#: Seconds between two looks at whether the others have come. MPI would wait by computing, and take a processor from
#: those who work.
_SHORTEST, _LONGEST = 0.0002, 0.02


class Parcel(Protocol):
    """Bytes on their way from one rank to another. The buffer must stay as it is until they are done."""

    def done(self) -> bool:
        """Whether the buffer is free again, or filled. Raises what has failed."""


class Exchange(Protocol):
    """The ranks of a run."""

    rank: int
    size: int
    #: Whether another thread than the main one may make calls.
    any_thread: bool

    def all_gather(self, text: bytes) -> list[bytes]:
        """What each rank has said, by ranks. All of them make this call."""

    def broadcast(self, text: bytes) -> bytes:
        """What rank 0 has said. All of them make this call."""

    def send(self, to: int, bytes_: Bytes) -> Parcel:
        """Sends bytes to another rank, which receives as many. Bytes from one rank to another keep their order."""

    def receive(self, sender: int, into: Bytes) -> Parcel:
        """Receives bytes of another rank."""

    def wait(self, parcel: Parcel) -> None:
        """Waits until a parcel is done."""

    def close(self) -> None:
        """Gives back what `own_exchange_of` has taken. All ranks make this call, which is the last one."""


def exchange_of(ranks: Any, timeout: float | None) -> Exchange:
    """The exchange by a communicator.

    Raises
    ------
    InvalidType
        It is neither one of mpi4py nor a process group of `torch.distributed`.
    """
    seconds = None if timeout is None else require_seconds("timeout", timeout)
    if hasattr(ranks, "Iallgatherv") and hasattr(ranks, "Get_rank"):
        return _OfMpi(ranks, seconds)
    torch = sys.modules.get("torch")  # whoever has a process group has imported it
    if torch is not None and torch.distributed.is_available() and isinstance(ranks, torch.distributed.ProcessGroup):
        return _OfTorch(ranks, seconds)
    raise InvalidType(
        f"ranks= is a {type(ranks).__name__}; give a communicator of mpi4py, or a process group of torch.distributed."
    )


def own_exchange_of(ranks: Any, timeout: float | None) -> Exchange:
    """The exchange by a communicator that nobody else uses: a copy of the one given, which all ranks make.

    Raises
    ------
    InvalidType
        As `exchange_of`.
    TierUnavailable
        MPI lets only one thread make calls, and the application makes its own.
    """
    if ranks is None:
        return Alone()
    exchange = exchange_of(ranks, timeout)
    if isinstance(exchange, _OfMpi):
        return exchange.copied()
    assert isinstance(exchange, _OfTorch)
    return exchange.copied()


class Alone:
    """A run of one process."""

    rank, size, any_thread = 0, 1, True

    def all_gather(self, text: bytes) -> list[bytes]:
        """What it says itself."""
        return [text]

    def broadcast(self, text: bytes) -> bytes:
        """What it says itself."""
        return text

    def send(self, to: int, bytes_: Bytes) -> Parcel:
        """There is nobody."""
        raise NotImplementedError

    def receive(self, sender: int, into: Bytes) -> Parcel:
        """There is nobody."""
        raise NotImplementedError

    def wait(self, parcel: Parcel) -> None:
        """There is nothing to wait for."""
        raise NotImplementedError

    def close(self) -> None:
        """There is nothing to give back."""


def _await(arrived: Callable[[], bool], timeout: float | None) -> None:
    end = None if timeout is None else time.monotonic() + timeout
    pause = _SHORTEST
    while not arrived():
        if end is not None and time.monotonic() >= end:
            raise WaitTimeout(
                f"after {timeout} s not all ranks have come. Each key is in the archive as a whole, in its old version "
                "or in the new one. The communicator has a call under way, and must not be used any more."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


@contextmanager
def _named(other: int | None) -> Iterator[None]:
    """Errors of MPI and of gloo, which are `RuntimeError`, say which rank is concerned, as far as that is known."""
    try:
        yield
    except VelocError:
        raise
    except RuntimeError as error:
        who = "another rank" if other is None else f"rank {other}"
        failed = RankFailed(
            f"the connection to {who} has failed; it may have died. What was being brought is not in the archive. "
            f"The communicator must not be used any more: {error}"
        )
        failed.rank, failed._cut_off = other, True
        raise failed from error


class _Patient:
    """Waits for parcels as long as it may."""

    _timeout: float | None

    def wait(self, parcel: Parcel) -> None:
        """Looks again and again."""
        try:
            _await(parcel.done, self._timeout)
        except BaseException:
            _given_up.append(parcel)
            raise


class _OfMpi(_Patient):
    """By a communicator of mpi4py."""

    def __init__(self, comm: Any, timeout: float | None) -> None:
        self._comm, self._timeout = comm, timeout
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        mpi = sys.modules.get("mpi4py.MPI")
        self.any_thread = mpi is None or bool(mpi.Query_thread() >= mpi.THREAD_SERIALIZED)

    def copied(self) -> _OfMpi:
        """The same ranks, with a communicator of its own, for a thread beside those of the application."""
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is not None and mpi.Query_thread() < mpi.THREAD_MULTIPLE:
            raise TierUnavailable(
                "MPI lets one thread at a time make calls, and an archive needs a thread of its own beside those of "
                "the application. Nothing was opened. Initialize MPI with THREAD_MULTIPLE, as mpi4py does unless it is "
                "told otherwise, or call velocpy.archive.push where the application waits anyway.",
                tier="archive",
            )
        copy, request = self._comm.Idup()
        with _named(None):
            _await(request.Test, self._timeout)
        return _OfMpi(copy, self._timeout)

    def close(self) -> None:
        """Frees the communicator."""
        self._comm.Free()

    def all_gather(self, text: bytes) -> list[bytes]:
        """Lengths first, and then the texts."""
        lengths = np.empty(self.size, np.int64)
        lengths_sent = np.array([len(text)], np.int64)
        self._all(lambda: self._comm.Iallgather(lengths_sent, lengths), lengths_sent, lengths)
        all_of_them = np.empty(int(lengths.sum()), np.uint8)
        sent = np.frombuffer(text, np.uint8)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        received = [all_of_them, (lengths.tolist(), starts.tolist())]
        self._all(lambda: self._comm.Iallgatherv(sent, received), text, received)
        return [all_of_them[at : at + length].tobytes() for at, length in zip(starts, lengths, strict=True)]

    def broadcast(self, text: bytes) -> bytes:
        """The length first, and then the text."""
        length = np.array([len(text)], np.int64)
        self._all(lambda: self._comm.Ibcast(length, root=0), length)
        said = np.frombuffer(text, np.uint8) if self.rank == 0 else np.empty(int(length[0]), np.uint8)
        self._all(lambda: self._comm.Ibcast(said, root=0), text, said)
        return said.tobytes()

    def _all(self, begin: Callable[[], Any], *memory: Any) -> None:
        """Begins a call of all ranks that uses some memory, and waits for them."""
        with _named(None):
            request = begin()
            try:
                _await(request.Test, self._timeout)
            except BaseException:
                _given_up.append((request, memory))
                raise

    def send(self, to: int, bytes_: Bytes) -> Parcel:
        """Without waiting: MPI takes large messages when they are received."""
        with _named(to):
            return _MpiParcel(to, self._comm.Isend(bytes_, dest=to, tag=_TAG), bytes_)

    def receive(self, sender: int, into: Bytes) -> Parcel:
        """Without waiting."""
        with _named(sender):
            return _MpiParcel(sender, self._comm.Irecv(into, source=sender, tag=_TAG), into)


class _MpiParcel:
    """A request of MPI."""

    def __init__(self, other: int, request: Any, memory: Bytes) -> None:
        self._other, self._request, self._memory = other, request, memory

    def done(self) -> bool:
        with _named(self._other):
            return bool(self._request.Test())


class _OfTorch(_Patient):
    """By a process group of torch.distributed."""

    def __init__(self, group: Any, timeout: float | None) -> None:
        self._group, self._timeout = group, timeout
        self.rank: int = group.rank()
        self.size: int = group.size()
        self.any_thread = True

    def copied(self) -> _OfTorch:
        """The same ranks, with a group of its own."""
        from torch import distributed

        with _named(None):
            group = distributed.new_group(
                distributed.get_process_group_ranks(self._group),
                timeout=_PATIENCE if self._timeout is None else timedelta(seconds=self._timeout),
                backend="gloo",
                use_local_synchronization=True,
            )
        return _OfTorch(group, self._timeout)

    def close(self) -> None:
        """The group stays: gloo has no way to end it without the others noticing a lost connection."""

    def all_gather(self, text: bytes) -> list[bytes]:
        """Lengths first, and then the texts, each as long as the longest."""
        lengths = self._gathered(np.array([len(text)], np.int64))[:, 0]
        padded = np.zeros(max(int(lengths.max()), 1), np.uint8)
        padded[: len(text)] = np.frombuffer(text, np.uint8)
        rows = self._gathered(padded)
        return [rows[rank, :length].tobytes() for rank, length in enumerate(lengths)]

    def _gathered(self, values: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
        import torch
        from torch import distributed

        mine = torch.from_numpy(values)
        all_of_them = [torch.empty_like(mine) for _ in range(self.size)]
        self._all(lambda: distributed.all_gather(all_of_them, mine, group=self._group, async_op=True))
        return np.stack([values.numpy() for values in all_of_them])

    def broadcast(self, text: bytes) -> bytes:
        """The length first, and then the text."""
        length = self._from_lowest(np.array([len(text)], np.int64))
        said = np.zeros(max(int(length[0]), 1), np.uint8)
        if self.rank == 0:
            said[: len(text)] = np.frombuffer(text, np.uint8)
        return self._from_lowest(said)[: int(length[0])].tobytes()

    def _from_lowest(self, values: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
        import torch
        from torch import distributed

        said = torch.from_numpy(values)
        lowest = distributed.get_global_rank(self._group, 0)
        self._all(lambda: distributed.broadcast(said, lowest, group=self._group, async_op=True))
        return values

    def _all(self, begin: Callable[[], Any]) -> None:
        """Begins a call of all ranks, and waits for them."""
        with _named(None):
            work = begin()
            _await(work.is_completed, self._timeout)
            work.wait()

    def send(self, to: int, bytes_: Bytes) -> Parcel:
        """By a thread that waits until it is done."""
        import torch
        from torch import distributed

        other = distributed.get_global_rank(self._group, to)
        with _named(to):
            return _TorchParcel(to, distributed.isend(torch.from_numpy(bytes_), other, group=self._group, tag=_TAG))

    def receive(self, sender: int, into: Bytes) -> Parcel:
        """By a thread that waits."""
        import torch
        from torch import distributed

        other = distributed.get_global_rank(self._group, sender)
        with _named(sender):
            return _TorchParcel(sender, distributed.irecv(torch.from_numpy(into), other, group=self._group, tag=_TAG))


class _TorchParcel:
    """A message of gloo. A thread waits for it, since gloo tells nothing to a caller that does not wait."""

    def __init__(self, other: int, work: Any) -> None:
        self._other, self._work = other, work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._wait, name="velocpy-parcel", daemon=True)
        self._thread.start()
        _waiting.add(self._thread)

    def _wait(self) -> None:
        try:
            self._work.wait()
        except BaseException as error:
            self._error = error

    def done(self) -> bool:
        if self._thread.is_alive():
            return False
        _waiting.discard(self._thread)
        with _named(self._other):
            if self._error is not None:
                raise self._error
        return True
