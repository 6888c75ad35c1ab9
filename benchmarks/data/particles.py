"""Particles as HACC-IO has them: nine variables for each, 38 bytes, and in numbers that differ from rank to rank.

A miniature, no cosmology: each particle moves in one harmonic potential, by additions and multiplications alone. So a
run of any number of ranks computes the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]

#: The variables of HACC-IO, in its order: positions, velocities, potential, number and mask of a particle.
VARIABLES: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("xx", "yy", "zz", "vx", "vy", "vz", "phi"), np.dtype(np.float32)),
    "pid": np.dtype(np.int64),
    "mask": np.dtype(np.uint16),
}

#: Bytes of a particle.
PARTICLE = sum(each.itemsize for each in VARIABLES.values())

#: Length of the box, and strength of the potential.
SIDE, STRENGTH = np.float32(256), np.float32(1e-3)

#: Where loads are uneven, they differ by so much, and this rank has so many times what the others have on average.
SPREAD, LOADED, TIMES = 0.3, 1, 3.0


def loads(ranks: int, *, uneven: bool) -> list[float]:
    """What each rank has, by the mean: the same, or with a spread, and one rank that has much more."""
    if not uneven:
        return [1.0] * ranks
    each = [1 - SPREAD + 2 * SPREAD * (rank * 7 % 8) / 7 for rank in range(ranks)]
    if ranks > LOADED:
        each[LOADED] = TIMES
    return [load * ranks / sum(each) for load in each]


def particles(rank: int, count: int) -> State:
    """The particles with which a rank begins."""
    rng = np.random.default_rng(rank)
    state: State = {name: rng.random(count, np.float32) * SIDE for name in ("xx", "yy", "zz")}
    state |= {name: rng.standard_normal(count, np.float32) for name in ("vx", "vy", "vz")}
    state["phi"] = np.zeros(count, np.float32)
    state["pid"] = np.arange(count, dtype=np.int64) + (rank << 40)
    state["mask"] = rng.integers(0, 1 << 16, count, np.uint16)
    return state


def move(state: State, dt: float = 0.1) -> None:
    """Moves all particles by one step: a kick, a drift, and the potential at the new places."""
    step = np.float32(dt)
    state["phi"][...] = 0
    for place, speed in (("xx", "vx"), ("yy", "vy"), ("zz", "vz")):
        from_centre = state[place] - SIDE / 2
        state[speed] -= from_centre * (STRENGTH * step)
        state[place] += state[speed] * step
        state["phi"] += from_centre * from_centre * (STRENGTH / 2)


def same(found: State, expected: State) -> bool:
    """Whether all variables are there, bit for bit."""
    return not differing(found, expected)


def differing(found: State, expected: State) -> int:
    """Bytes of the variables that differ; one with another shape or type counts as all of its bytes."""
    count = 0
    for name, array in expected.items():
        there = found.get(name)
        if there is None or there.shape != array.shape or there.dtype != array.dtype:
            count += array.nbytes
        else:
            count += int(np.count_nonzero(_bytes(there) != _bytes(array)))
    return count


def joined(states: Iterable[State]) -> State:
    """The particles of several ranks in one state."""
    every = list(states)
    return {name: np.concatenate([state[name] for state in every]) for name in VARIABLES}


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)
