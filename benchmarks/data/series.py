"""Series of checkpoints, by name: what the benchmark `deduplicated` writes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import graphlets, graphs, wavefields

if TYPE_CHECKING:
    import torch

State = Mapping[str, "np.ndarray | torch.Tensor"]


@dataclass(frozen=True)
class Series:
    """Checkpoints of one computation. A state is valid until the next is asked for."""

    count: int
    state: Callable[[int], State]
    #: What it is, for the table: sizes that tell how large the computation was.
    words: str = ""

    @property
    def size(self) -> int:
        """Bytes of a checkpoint."""
        return sum(len(flat(array)) for array in self.state(0).values())


def flat(array: Any) -> np.ndarray:
    """The bytes of an array or tensor, without a copy if it has no gaps."""
    if not isinstance(array, np.ndarray):
        import torch

        array = array.contiguous().reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def width(array: Any) -> int:
    """Bytes of an element."""
    return int(array.dtype.itemsize)


def same(ours: State, theirs: State) -> int:
    """Bytes that differ, and those that one of both lacks."""
    differ = sum(len(flat(array)) for name, array in theirs.items() if name not in ours)
    for name, array in theirs.items():
        if name in ours:
            mine, its = flat(ours[name]), flat(array)
            differ += _unequal(mine, its) if len(mine) == len(its) else max(len(mine), len(its))
    return differ


def _unequal(mine: np.ndarray, its: np.ndarray) -> int:
    """Bytes that differ, found piece by piece, so that little memory is taken."""
    pieces = range(0, len(mine), 1 << 24)
    return sum(int(np.count_nonzero(mine[at : at + (1 << 24)] != its[at : at + (1 << 24)])) for at in pieces)


def of_list(states: Sequence[State], words: str) -> Series:
    """A series whose states lie in memory."""
    return Series(len(states), states.__getitem__, words)


def of_graph(kind: str, vertices: int, checkpoints: int) -> Series:
    """Graphlet degree vectors of a graph of a kind, while they accumulate."""
    graph = _graph(kind, vertices)
    counts = graphlets.Accumulated(graph, checkpoints)
    words = f"{graph.vertices} vertices, {graph.edges} edges"
    return Series(checkpoints, lambda number: {"gdv": counts.state(number)}, words)


@functools.lru_cache(maxsize=1)
def _graph(kind: str, vertices: int) -> graphs.Graph:
    return graphs.KINDS[kind](vertices, 0)


def of_training(kind: str, checkpoints: int, megabytes: float) -> Series:
    """States of a training, with its optimizer's."""
    from . import training

    states, words = training.KINDS[kind](checkpoints, megabytes)
    return of_list(states, words)


def of_waves(side: int, checkpoints: int) -> Series:
    """Wavefields of the forward sweep of the demo's migration."""
    return of_list(list(wavefields.forward(side, checkpoints)), f"{side} × {side} cells, two fields")
