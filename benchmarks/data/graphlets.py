"""Graphlet degree vectors: for each vertex, how often it is in each orbit of the graphlets of 2 to 5 vertices.

They are the data of Tan et al., ICPP'23, section 3.2: 73 counts of 4 bytes a vertex, checkpointed while they accumulate
over the vertices in order. A subgraph is counted, for all its vertices, when its least vertex is processed. Graphlets
have the order of Pržulj (Bioinformatics 2007); within a graphlet, orbits are in the order of their degrees.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .graphs import Graph

ORBITS = 73
MOST = 5
SOURCE = Path(__file__).with_name("graphlets.c")
Edge = tuple[int, int]

#: The edges of each graphlet, as pairs of digits; for those with few edges missing, what is missing follows a minus.
GRAPHLETS = (
    "01",
    "01 12",
    "01 12 02",
    "01 12 23",
    "01 02 03",
    "01 12 23 03",
    "01 12 02 23",
    "01 12 02 13 23",
    "01 02 03 12 13 23",
    "01 12 23 34",
    "01 12 23 24",
    "01 02 03 04",
    "01 12 02 03 14",
    "01 12 02 23 34",
    "01 12 02 23 24",
    "01 12 23 34 04",
    "01 12 23 03 04",
    "01 02 12 13 23 14",
    "01 02 12 23 24 34",
    "01 02 12 13 23 34",
    "03 04 13 14 23 24",
    "01 12 23 03 04 14",
    "01 02 03 04 12 13 14",
    "01 02 03 12 13 23 34",
    "01 12 23 04 14 24 34",
    "- 01 12 34",
    "- 01 12",
    "- 01 23",
    "- 01",
    "-",
)


class Orbits(NamedTuple):
    """The orbit of each member of a subgraph, by its size and its code.

    The code of a subgraph has a bit for each pair of members in the order (0, 1), (0, 2), (1, 2), (0, 3), …: whether
    there is an edge.
    """

    table: np.ndarray
    #: Of each size, the row of code 0.
    first: np.ndarray


def edges_of(text: str) -> tuple[int, frozenset[Edge]]:
    """How many vertices a graphlet has, and its edges."""
    pairs = frozenset((int(pair[0]), int(pair[1])) for pair in text.removeprefix("-").split())
    if text.startswith("-"):
        return MOST, frozenset(itertools.combinations(range(MOST), 2)) - pairs
    return 1 + max(max(pair) for pair in pairs), pairs


def orbits_of(size: int, edges: frozenset[Edge]) -> list[int]:
    """The orbit of each vertex within its graphlet: equal for those that an automorphism exchanges, by degree."""
    images = [
        order
        for order in itertools.permutations(range(size))
        if {(min(order[a], order[b]), max(order[a], order[b])) for a, b in edges} == edges
    ]
    least = [min(order[vertex] for order in images) for vertex in range(size)]
    degree = [sum(vertex in edge for edge in edges) for vertex in range(size)]
    ranks = sorted(set(least), key=lambda vertex: (degree[vertex], vertex))
    return [ranks.index(vertex) for vertex in least]


@functools.cache
def orbit_table() -> Orbits:
    """The orbits of all subgraphs of 2 to 5 vertices; those that are not connected have none, and 255 stands there."""
    first = np.zeros(MOST + 1, np.int32)
    for size in range(2, MOST + 1):
        first[size] = first[size - 1] + (1 << (size - 1) * (size - 2) // 2)
    table = np.full((int(first[MOST]) + (1 << MOST * (MOST - 1) // 2), MOST), 255, np.uint8)
    known = 0
    for size, edges in map(edges_of, GRAPHLETS):
        within = orbits_of(size, edges)
        bit = {pair: index for index, pair in enumerate((a, b) for b in range(size) for a in range(b))}
        for order in itertools.permutations(range(size)):
            code = sum(1 << bit[min(order[a], order[b]), max(order[a], order[b])] for a, b in edges)
            for vertex in range(size):
                table[first[size] + code, order[vertex]] = known + within[vertex]
        known += max(within) + 1
    assert known == ORBITS
    return Orbits(table, first)


def has_compiler() -> bool:
    """Whether there is a C compiler, which the counts need."""
    return shutil.which("cc") is not None


@functools.cache
def _library() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "graphlets.so"
        subprocess.run(["cc", "-std=c11", "-O3", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
        library = ctypes.CDLL(str(built))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.velocpy_count_orbits.argtypes = [
        pointer,
        pointer,
        number,
        number,
        pointer,
        pointer,
        number,
        number,
        pointer,
    ]
    return library


def count(graph: Graph, first: int, last: int, counts: np.ndarray) -> None:
    """Adds to ``counts`` all subgraphs whose least vertex is at least ``first`` and less than ``last``."""
    assert counts.shape == (graph.vertices, ORBITS)
    assert counts.dtype == np.uint32
    assert counts.flags.c_contiguous
    orbits = orbit_table()
    arrays = (graph.begins, graph.ends, orbits.table, orbits.first, counts)
    begins, ends, table, codes, target = (array.ctypes.data for array in arrays)
    most = int(np.diff(graph.begins).max(initial=0))
    if _library().velocpy_count_orbits(begins, ends, graph.vertices, most, table, codes, first, last, target):
        raise MemoryError("counting graphlets")


class Accumulated:
    """The counts at even distances while they accumulate, without a copy for each.

    All subgraphs of a vertex that has been processed are counted, so that its row stays as it is. Of the others the
    few are kept that have a count already. `state` changes the array that it has given before.
    """

    def __init__(self, graph: Graph, checkpoints: int) -> None:
        self.cuts = [graph.vertices * (number + 1) // checkpoints for number in range(checkpoints)]
        self._final = np.zeros((graph.vertices, ORBITS), np.uint32)
        self._begun: list[tuple[np.ndarray, np.ndarray]] = []
        for first, last in zip([0, *self.cuts], self.cuts, strict=False):
            count(graph, first, last, self._final)
            rows = last + np.flatnonzero(self._final[last:].any(axis=1))
            self._begun.append((rows, self._final[rows]))
        self._state = np.zeros_like(self._final)
        self._shown: int | None = None

    def state(self, number: int) -> np.ndarray:
        """The counts at a checkpoint."""
        cut, shown = self.cuts[number], 0
        if self._shown is not None:
            shown = self.cuts[self._shown]
            self._state[self._begun[self._shown][0]] = 0
        self._state[shown:cut] = self._final[shown:cut]
        self._state[cut:shown] = 0
        rows, begun = self._begun[number]
        self._state[rows] = begun
        self._shown = number
        return self._state
