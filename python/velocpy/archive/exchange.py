"""What ranks tell each other: short texts, by the communicator that the application has."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from velocpy.checks import require_seconds
from velocpy.errors import InvalidType, WaitTimeout

__all__ = ["Exchange", "exchange_of"]

#: Seconds between two looks at whether the others have come. MPI would wait by computing, and take a processor from
#: those who work.
_SHORTEST, _LONGEST = 0.0002, 0.02


class Exchange(Protocol):
    """The ranks of a run."""

    rank: int

    def all_gather(self, text: bytes) -> list[bytes]:
        """What each rank has said, by ranks. All of them make this call."""


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


def _await(arrived: Callable[[], bool], timeout: float | None) -> None:
    end = None if timeout is None else time.monotonic() + timeout
    pause = _SHORTEST
    while not arrived():
        if end is not None and time.monotonic() >= end:
            raise WaitTimeout(
                f"after {timeout} s not all ranks have come. Nothing was changed by this one. The communicator has a "
                "call under way, and must not be used any more."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


class _OfMpi:
    """By a communicator of mpi4py."""

    def __init__(self, comm: Any, timeout: float | None) -> None:
        self._comm, self._timeout = comm, timeout
        self.rank: int = comm.Get_rank()

    def all_gather(self, text: bytes) -> list[bytes]:
        """Lengths first, and then the texts."""
        lengths = np.empty(self._comm.Get_size(), np.int64)
        lengths_sent = np.array([len(text)], np.int64)
        _await(self._comm.Iallgather(lengths_sent, lengths).Test, self._timeout)
        all_of_them = np.empty(int(lengths.sum()), np.uint8)
        sent = np.frombuffer(text, np.uint8)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        received = [all_of_them, (lengths.tolist(), starts.tolist())]
        _await(self._comm.Iallgatherv(sent, received).Test, self._timeout)
        return [all_of_them[at : at + length].tobytes() for at, length in zip(starts, lengths, strict=True)]


class _OfTorch:
    """By a process group of torch.distributed."""

    def __init__(self, group: Any, timeout: float | None) -> None:
        self._group, self._timeout = group, timeout
        self.rank: int = group.rank()

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
        all_of_them = [torch.empty_like(mine) for _ in range(self._group.size())]
        work = distributed.all_gather(all_of_them, mine, group=self._group, async_op=True)
        _await(work.is_completed, self._timeout)
        work.wait()
        return np.stack([values.numpy() for values in all_of_them])
