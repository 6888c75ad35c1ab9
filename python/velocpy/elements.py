"""Elements of two arrays of one dtype that differ in their bytes: where they are, and by how much."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .comparison import RegionDifference

Array = np.ndarray[Any, Any]

#: Element sizes that NumPy compares as one number.
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

#: What NumPy raises for texts of characters that there are not, and for times that Python cannot tell.
_UNSHOWN = (OverflowError, SystemError, TypeError, ValueError)

#: Bytes of an element whose value is told, and those that are told as they are.
_LARGEST_VALUE, _RAW = 4096, 64


class Tolerance(NamedTuple):
    """By how much numbers may differ: |a - b| <= atol + rtol |b|, as `numpy.isclose` has it, and NaN is near NaN."""

    rtol: float
    atol: float


class Kind(NamedTuple):
    """What an element is."""

    text: str
    itemsize: int
    #: None: NumPy does not know it.
    dtype: np.dtype[Any] | None


class Tally:
    """Collects what differs in a region, from pieces that ascend in the order in which its elements lie.

    shape is that of the region; order, its axes from the slowest to the fastest in memory.
    """

    def __init__(
        self, kind: Kind, shape: tuple[int, ...], order: tuple[int, ...], limit: int, tolerance: Tolerance | None
    ) -> None:
        self._kind = kind
        self._order = order
        self._lying = tuple(shape[axis] for axis in order)  # the shape as it lies in memory
        self._shape = shape
        self._limit = limit
        self._tolerance = tolerance
        self._count = self._ranges_count = self._payloads = self._same = 0
        self._ranges: list[tuple[int, int]] = []
        self._end = -1  # of the latest range
        self._low: list[int] | None = None
        self._high: list[int] = []
        self._first: tuple[tuple[int, ...], tuple[Any, Any] | None, tuple[bytes, bytes]] | None = None
        self._largest: int | float | None = None

    def add(self, first: int, one: Array, other: Array) -> None:
        """Compares the bytes of some elements, of which the first has that number."""
        at = np.flatnonzero(_unlike(one, other, self._kind.itemsize))
        if at.size:
            with np.errstate(all="ignore"):  # NaN that signal
                self._add(first, one, other, at)

    def _add(self, first: int, one: Array, other: Array, at: Array) -> None:
        pair = self._elements(one, at), self._elements(other, at)
        if self._tolerance is not None and self._kind.dtype is not None:
            far = ~near(*pair, self._tolerance)
            at, pair = at[far], (pair[0][far], pair[1][far])
            if not at.size:
                return
        self._count += int(at.size)
        if self._first is None:
            size = self._kind.itemsize
            raw = [side[at[0] * size : (at[0] + 1) * size][:_RAW].tobytes() for side in (one, other)]
            values = None if self._kind.dtype is None or size > _LARGEST_VALUE else (_value(pair[0]), _value(pair[1]))
            self._first = self._index(first + int(at[0])), values, (raw[0], raw[1])
        if self._kind.dtype is not None:
            self._figures(*pair)
        self._place(first + at)

    def _elements(self, side: Array, at: Array) -> Array:
        """Those elements, or their bytes where NumPy does not know the dtype."""
        if self._kind.dtype is None:
            return side.reshape(-1, self._kind.itemsize)[at]
        elements: Array = side.view(self._kind.dtype)[at]
        return elements

    def _index(self, number: int) -> tuple[int, ...]:
        index = [0] * len(self._order)
        for axis in reversed(range(len(self._order))):
            number, index[self._order[axis]] = divmod(number, self._lying[axis])
        return tuple(index)

    def _figures(self, one: Array, other: Array) -> None:
        same, nan = alike(one, other)
        self._payloads += int(np.count_nonzero(same & nan))
        self._same += int(np.count_nonzero(same & ~nan))
        found = largest_difference(one, other)
        if found is not None and (self._largest is None or found > self._largest):
            self._largest = found

    def _place(self, at: Array) -> None:
        """Takes the numbers of elements into ranges and bounds."""
        cuts = np.flatnonzero(np.diff(at) != 1)
        begins, ends = at[np.r_[0, cuts + 1]], at[np.r_[cuts, at.size - 1]] + 1
        self._bound(begins, ends - 1)
        if begins[0] == self._end:  # it goes on behind the latest piece
            if self._ranges_count <= self._limit:
                self._ranges[-1:] = [(begin, int(ends[0])) for begin, _ in self._ranges[-1:]]
            begins, self._end, ends = begins[1:], int(ends[0]), ends[1:]
        if begins.size:
            room = max(0, self._limit - len(self._ranges))
            self._ranges += zip(begins[:room].tolist(), ends[:room].tolist(), strict=True)
            self._ranges_count += int(begins.size)
            self._end = int(ends[-1])

    def _bound(self, begins: Array, last: Array) -> None:
        """Widens the bounds by ranges, given by their first and last elements.

        Where these differ in a slower axis, a range goes over the end of a faster one, and takes all of it.
        """
        if not self._order:
            return
        ones, others = np.unravel_index(begins, self._lying), np.unravel_index(last, self._lying)
        together = np.ones(begins.size, bool)  # whether all slower axes are the same
        low, high = [0] * len(self._order), [0] * len(self._order)
        for number, axis in enumerate(self._order):
            low[axis] = int(np.where(together, ones[number], 0).min())
            high[axis] = int(np.where(together, others[number], self._lying[number] - 1).max()) + 1
            together &= ones[number] == others[number]
        self._low = low if self._low is None else list(map(min, self._low, low))
        self._high = high if not self._high else list(map(max, self._high, high))

    def difference(self, name: str | int) -> RegionDifference | None:
        """What was found; None: nothing differs."""
        if self._first is None:
            return None
        index, values, raw = self._first
        return RegionDifference(
            name,
            "bytes",
            (self._kind.text, self._kind.text),
            (self._shape, self._shape),
            self._count,
            tuple(self._ranges),
            self._ranges_count - len(self._ranges),
            tuple(zip(self._low or (), self._high, strict=True)),
            index,
            values,
            raw,
            self._largest,
            self._payloads,
            self._same,
        )


def _unlike(one: Array, other: Array, itemsize: int) -> Array:
    """Which elements differ in their bytes."""
    word = _WORDS.get(itemsize)
    if word is not None:
        unlike: Array = one.view(word) != other.view(word)
        return unlike
    bytes_: Array = one != other
    return np.logical_or.reduceat(bytes_, np.arange(0, one.size, itemsize)) if bytes_.any() else np.zeros(0, bool)


def _value(elements: Array) -> Any:
    """The first of some elements; None where NumPy cannot show it, as a text of characters that there are not."""
    try:
        value = elements[0]
        str(value)
    except _UNSHOWN:
        return None
    return value


def plain(array: Array) -> Array:
    """Numbers of the package ml_dtypes as floats or complex numbers, which have their values; others as they are."""
    if array.dtype.type.__module__.partition(".")[0] != "numpy":
        kind = np.complex128 if "complex" in array.dtype.name else np.float64
        with np.errstate(all="ignore"):
            return array.astype(kind)
    return array


def alike(one: Array, other: Array) -> tuple[Array, Array]:
    """Which elements are equal as values, where NaN equals NaN, and which of them have a NaN on either side.

    Examples
    --------
    >>> import numpy as np
    >>> from velocpy.elements import alike
    >>> alike(np.array([0.0, np.nan, 1.0]), np.array([-0.0, -np.nan, 2.0]))
    (array([ True,  True, False]), array([False,  True, False]))
    """
    if one.dtype.names is not None:
        same, nan = np.ones(one.shape, bool), np.zeros(one.shape, bool)
        for name in one.dtype.names:
            found = alike(one[name], other[name])
            inner = tuple(range(one.ndim, one[name].ndim))  # the axes of a field that is an array itself
            same &= found[0].all(axis=inner)
            nan |= found[1].any(axis=inner)
        return same, nan
    one, other = plain(one), plain(other)
    if one.dtype.kind == "b":
        one, other = (side.view(np.uint8) != 0 for side in map(np.ascontiguousarray, (one, other)))
    if one.dtype.kind == "c":
        return _both(alike(one.real, other.real), alike(one.imag, other.imag))
    if one.dtype.kind == "f":
        nans = np.isnan(one), np.isnan(other)
        return (one == other) | (nans[0] & nans[1]), nans[0] | nans[1]
    return _equal(one, other), np.zeros(one.shape, bool)


def _both(real: tuple[Array, Array], imaginary: tuple[Array, Array]) -> tuple[Array, Array]:
    return real[0] & imaginary[0], real[1] | imaginary[1]


def _equal(one: Array, other: Array) -> Array:
    try:
        equal: Array = np.asarray(one == other)
    except _UNSHOWN:
        equal = np.zeros(one.shape, bool)
    return equal if equal.shape == one.shape else np.zeros(one.shape, bool)


def largest_difference(one: Array, other: Array) -> int | float | None:
    """The largest absolute difference of numbers; None without any, and for what is no number.

    Examples
    --------
    >>> import numpy as np
    >>> from velocpy.elements import largest_difference
    >>> largest_difference(np.array([-(2**63), 0]), np.array([2**63 - 1, 3]))
    18446744073709551615
    >>> largest_difference(np.array([1.0, np.nan]), np.array([1.5, 0.0]))
    0.5
    """
    found = _distances(one, other)
    if found is None:
        return None
    found = found[~np.isnan(found)] if found.dtype.kind == "f" else found
    if not found.size:
        return None
    largest = found.max()
    return int(largest) if found.dtype.kind == "u" else float(largest)


def _distances(one: Array, other: Array) -> Array | None:
    """Absolute differences: of integers exactly, of others in the precision of float64 or more."""
    one, other = plain(one), plain(other)
    if one.dtype.kind in "iu":
        wide = np.int64 if one.dtype.kind == "i" else np.uint64
        ones, others = (side.astype(wide).view(np.uint64) for side in (one, other))
        above = one > other
        return np.where(above, ones - others, others - ones)
    if one.dtype.kind not in "fc":
        return None
    least = np.dtype(np.float64 if one.dtype.kind == "f" else np.complex128)
    with np.errstate(all="ignore"):
        wider = np.result_type(one.dtype, least)
        distances: Array = np.abs(one.astype(wider) - other.astype(wider))
    return distances


def near(one: Array, other: Array, tolerance: Tolerance) -> Array:
    """Which numbers are as near as a tolerance says; none of what is no number.

    Examples
    --------
    >>> import numpy as np
    >>> from velocpy.elements import Tolerance, near
    >>> near(np.array([1.0, np.nan, np.inf]), np.array([1.1, np.nan, 1.0]), Tolerance(0.0, 0.2))
    array([ True,  True, False])
    """
    found = _distances(one, other)
    if found is None:
        return np.zeros(one.shape, bool)
    ones, others = plain(one), plain(other)
    with np.errstate(all="ignore"):
        close = found <= tolerance.atol + tolerance.rtol * np.abs(
            others.astype(np.result_type(others.dtype, np.float64))
        )
        finite = np.isfinite(ones) & np.isfinite(others)
    same, _ = alike(ones, others)
    near_: Array = same | (finite & close)
    return near_
