"""The acoustic wave equation, second order in time, fourth or eighth in space, between absorbing walls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .backend import Array, Backend, Field

#: Weights of the central second difference by order of accuracy: the centre, then each pair of neighbours.
WEIGHTS = {
    4: (-5.0 / 2.0, 4.0 / 3.0, -1.0 / 12.0),
    8: (-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0),
}


def stable_step(fastest: float, spacing: float, dimensions: int, order: int) -> float:
    """The time step at 0.7 of the stability limit of the scheme, in seconds."""
    centre, *pairs = WEIGHTS[order]
    largest = dimensions * (abs(centre) + 2.0 * sum(map(abs, pairs)))
    return 0.7 * 2.0 * spacing / (fastest * float(np.sqrt(largest)))


@dataclass(frozen=True)
class _Block:
    """Views of one piece of the grid, cut once, so that a step slices nothing."""

    neighbours: tuple[tuple[Array, ...], ...]  # per distance: both neighbours on each axis
    centre: Array
    target: Array  # the step before, which the step after replaces
    of_centre: Array
    of_target: Array
    of_neighbours: Array
    sum: Array
    term: Array


class Wave:
    """A pressure field that advances in place, without allocating.

    Around the ``shape`` of the earth lie ``sponge`` cells that damp and a rim that stays zero. `current` is the field
    at the present step, `previous` the one before; both change roles at every step, so ask anew after `step`.

    Parameters
    ----------
    backend
        Where the arrays live and what computes.
    speed
        Speed of sound per cell of the earth, m/s.
    spacing, dt
        Size of a cell in m, length of a step in s.
    order
        Order of accuracy in space, 4 or 8.
    sponge
        Thickness of the absorbing walls in cells.
    columns
        Which columns of the earth with its walls, along axis 1, this field has; None: all. The rim beside others takes
        what is there from whoever has them.
    """

    def __init__(
        self,
        backend: Backend,
        speed: Field,
        spacing: float,
        dt: float,
        order: int = 8,
        sponge: int = 32,
        columns: range | None = None,
    ) -> None:
        self.backend = backend
        self.dt = dt
        self._rim = len(WEIGHTS[order]) - 1
        walled = np.pad(speed, sponge, mode="edge").astype(np.float64)
        columns = range(walled.shape[1]) if columns is None else columns
        mine = (slice(None), slice(columns.start, columns.stop))
        earth = earth_columns(columns, speed.shape[1], sponge)
        self.shape = (speed.shape[0], len(earth), *speed.shape[2:])
        self._inside = tuple(slice(self._rim + sponge, self._rim + sponge + n) for n in self.shape)
        first = self._rim + sponge + earth.start - columns.start
        self._inside = (self._inside[0], slice(first, first + len(earth)), *self._inside[2:])
        computed = walled[mine].shape
        whole = tuple(n + 2 * self._rim for n in computed)
        self._fields: list[Array] = [backend.zeros(whole), backend.zeros(whole)]

        centre, *self._weights = WEIGHTS[order]
        damping = _damping(walled.shape, sponge, float(walled.max()), spacing, dt)
        courant = (walled * dt / spacing) ** 2 / (1.0 + damping)
        of_centre = 2.0 / (1.0 + damping) + courant * centre * speed.ndim
        self._of_neighbours = backend.array(courant[mine].astype(np.float32))
        self._of_centre = backend.array(of_centre[mine].astype(np.float32))
        self._of_target = backend.array((-(1.0 - damping) / (1.0 + damping))[mine].astype(np.float32))
        #: What a source of strength one adds to a cell of the earth.
        self._gain = ((speed[:, earth.start : earth.stop].astype(np.float64) * dt) ** 2).astype(np.float32)
        self._blocks = self._cut(computed)

    @property
    def current(self) -> Array:
        """The whole field at the present step, walls and rim included."""
        return self._fields[1]

    @property
    def previous(self) -> Array:
        """The whole field one step earlier."""
        return self._fields[0]

    @property
    def earth(self) -> Array:
        """A view of `current` without walls and rim: strided, of the earth's shape."""
        return self._fields[1][self._inside]

    @property
    def earth_before(self) -> Array:
        """The same view of `previous`."""
        return self._fields[0][self._inside]

    def rest(self) -> None:
        """Sets both fields to zero."""
        for field in self._fields:
            field[...] = 0.0

    def gain(self, place: tuple[Any, ...]) -> Array:
        """How much a source of strength one adds at ``place`` (an index into the earth) in one step."""
        gain = self._gain[place]
        return float(gain) if np.ndim(gain) == 0 else self.backend.array(np.asarray(gain))

    def step(self) -> None:
        """Advances the field by one step, piece by piece; the result is the same whatever the pieces."""
        xp = self.backend.xp
        for block in self._blocks[0]:
            total, term = block.sum, block.term
            for distance, (weight, cells) in enumerate(zip(self._weights, block.neighbours, strict=True)):
                into = term if distance else total
                xp.add(cells[0], cells[1], out=into)
                for cell in cells[2:]:
                    xp.add(into, cell, out=into)
                xp.multiply(into, weight, out=into)
                if distance:
                    xp.add(total, term, out=total)
            xp.multiply(total, block.of_neighbours, out=total)
            xp.multiply(block.target, block.of_target, out=block.target)
            xp.add(block.target, total, out=block.target)
            xp.multiply(block.centre, block.of_centre, out=term)
            xp.add(block.target, term, out=block.target)
        self._fields.reverse()
        self._blocks.reverse()

    def _cut(self, walled: tuple[int, ...]) -> list[list[_Block]]:
        """The pieces for both roles of the two fields: slabs of rows that fit a core's cache."""
        rows = max(1, self.backend.block // int(np.prod(walled[1:]))) if self.backend.block else walled[0]
        scratch = [self.backend.zeros((min(rows, walled[0]), *walled[1:])) for _ in range(2)]
        starts = range(0, walled[0], rows)
        return [
            [self._block(field, target, start, min(rows, walled[0] - start), scratch) for start in starts]
            for target, field in (self._fields, self._fields[::-1])
        ]

    def _block(self, field: Array, target: Array, start: int, rows: int, scratch: list[Array]) -> _Block:
        rim = self._rim
        first = (start + rim, *([rim] * (len(self.shape) - 1)))
        extent = (rows, *(n - 2 * rim for n in field.shape[1:]))

        def shifted(axis: int, by: int) -> Array:
            begin = [f + (by if a == axis else 0) for a, f in enumerate(first)]
            return field[tuple(slice(b, b + n) for b, n in zip(begin, extent, strict=True))]

        here = tuple(slice(f, f + n) for f, n in zip(first, extent, strict=True))
        inner = slice(start, start + rows)
        return _Block(
            neighbours=tuple(
                tuple(shifted(axis, sign * k) for axis in range(len(extent)) for sign in (-1, 1))
                for k in range(1, rim + 1)
            ),
            centre=field[here],
            target=target[here],
            of_centre=self._of_centre[inner],
            of_target=self._of_target[inner],
            of_neighbours=self._of_neighbours[inner],
            sum=scratch[0][:rows],
            term=scratch[1][:rows],
        )


def earth_columns(columns: range, width: int, sponge: int) -> range:
    """Which columns of an earth of a width lie among columns of the same earth between walls.

    Examples
    --------
    >>> earth_columns(range(0, 20), 40, 16), earth_columns(range(20, 72), 40, 16)
    (range(0, 4), range(4, 40))
    """
    start = min(max(columns.start - sponge, 0), width)
    return range(start, max(start, min(columns.stop - sponge, width)))


def _damping(
    shape: tuple[int, ...], sponge: int, fastest: float, spacing: float, dt: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Half the damping of one step per cell: nothing inside, growing with the square of the way into a wall."""
    damping = np.zeros(shape)
    if not sponge:
        return damping
    strongest = 1.5 * fastest * np.log(1.0 / 1e-4) / (sponge * spacing) * dt
    for axis, cells in enumerate(shape):
        at = np.arange(cells)
        way = np.maximum(0, np.maximum(sponge - at, at - (cells - 1 - sponge))) / sponge
        wall = 0.5 * strongest * way**2
        damping = np.maximum(damping, wall.reshape([-1 if a == axis else 1 for a in range(len(shape))]))
    return damping
