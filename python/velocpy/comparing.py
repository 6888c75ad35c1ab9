"""Compares checkpoints, and reads only what differs.

Every checkpoint has checksums of its regions, and hashes of their leaves of 256 KiB (docs/format.md), in whatever tier
it lies. Leaves with equal hashes have equal bytes and are not read. The others are read in pieces of some MiB, as parts
of restores, which verify them and do not advance plans. Where the hashes of either side are not known, all bytes of the
region are read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from . import nodes
from .checks import require_whole
from .comparison import Comparison, HistoryComparison, RegionDifference
from .dtypes import dtype_from_text, same_dtype
from .elements import Array, Kind, Tally, Tolerance
from .errors import CheckpointDropped, CheckpointNotFound, CorruptCheckpoint, InvalidArgument, InvalidType, VelocError
from .interfaces import HistoryState, Key, StoreState

#: Bytes of a leaf of the checksum.
LEAF = 256 << 10

#: Bytes of each side that are in memory at once, and where the axes of the two lie in different orders.
_PIECE, _SLAB = 2 << 20, 64 << 20

#: How often a comparison begins anew because another thread has replaced a checkpoint meanwhile.
_ATTEMPTS = 5


class ComparedHistory(HistoryState, Protocol):
    """What a comparison needs of a history."""

    @property
    def _store(self) -> Any: ...

    def __contains__(self, key: object) -> bool: ...


@dataclass(frozen=True)
class Options:
    """How checkpoints are compared; see `History.compare`."""

    limit: int
    tolerance: Tolerance | None
    timeout: float | None


def options_of(limit: int, rtol: float | None, atol: float | None, timeout: float | None) -> Options:
    """The options that a caller gave.

    Raises
    ------
    InvalidArgument, InvalidType
    """
    require_whole("limit", limit, 0)
    tolerance = None
    if rtol is not None or atol is not None:
        tolerance = Tolerance(_share("rtol", rtol), _share("atol", atol))
    return Options(limit, tolerance, timeout)


def _share(name: str, value: object) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(f"{name} is {value!r}; give a number from 0 up, or None.")
    number = float(value)
    if not (0 <= number < math.inf):
        raise InvalidArgument(f"{name} is {value!r}; give a finite number from 0 up, or None.")
    return number


def compare(one: ComparedHistory, key: Key, other: ComparedHistory, other_key: Key, options: Options) -> Comparison:
    """Compares two checkpoints."""
    sides = _Side(one, key, "first", options.timeout), _Side(other, other_key, "second", options.timeout)
    for _ in range(_ATTEMPTS):
        versions = sides[0].version(), sides[1].version()
        if not any(_to_be_read(*pair) for pair in _pairs(*versions)):
            return _compared(sides, versions, options)
        try:
            found = _compared(sides, versions, options)
        except CheckpointDropped:  # by this process; or for good, by one that writes to a store that this one reads
            if _are_still(sides, versions):
                raise
            continue
        if _are_still(sides, versions):
            return found
    raise CheckpointDropped(
        f"the checkpoints {key!r:.80} of history {one.name!r:.80} and {other_key!r:.80} of history {other.name!r:.80} "
        f"were replaced {_ATTEMPTS} times while they were compared. Nothing was changed; compare them when no other "
        "thread writes them.",
        history=one.name,
        key=key,
    )


def _are_still(sides: tuple[_Side, _Side], versions: tuple[_Version, _Version]) -> bool:
    """Whether all that was read since is of these versions."""
    return all(side.version().is_that(version) for side, version in zip(sides, versions, strict=True))


class Walk:
    """Compares the checkpoints of keys that two histories have, one after the other, as they were written in the first.

    Iterating gives those that differ.
    """

    def __init__(self, one: ComparedHistory, other: ComparedHistory, options: Options) -> None:
        self._sides = one, other
        self._options = options
        self._keys = list(one)
        #: Keys that only one of the two has.
        self.only = [key for key in self._keys if key not in other], [key for key in other if key not in one]
        #: How many checkpoints were compared, and how many bytes of each history were read.
        self.compared = self.read_nbytes = 0

    def __iter__(self) -> Iterator[Comparison]:
        missing = set(self.only[0])
        for key in self._keys:
            if key in missing:
                continue
            try:
                found = compare(self._sides[0], key, self._sides[1], key, self._options)
            except CheckpointNotFound:  # it was dropped since the keys were listed
                self._dropped(key)
                continue
            self.compared += 1
            self.read_nbytes += found.read_nbytes
            if not found.equal:
                yield found

    def _dropped(self, key: Key) -> None:
        there = [key in side for side in self._sides]
        if there == [True, False]:
            self.only[0].append(key)
        elif there == [False, True]:
            self.only[1].append(key)


def compare_all(one: ComparedHistory, other: ComparedHistory, options: Options, *, stop: bool) -> HistoryComparison:
    """Compares all checkpoints of keys that both have; with ``stop`` up to the first that differs."""
    walk = Walk(one, other, options)
    left = iter(walk)
    differing = tuple(itertools.islice(left, 1)) if stop else tuple(left)
    return HistoryComparison(
        (one.name, other.name),
        walk.compared,
        differing,
        (tuple(walk.only[0]), tuple(walk.only[1])),
        not (stop and differing),
        walk.read_nbytes,
    )


@dataclass(frozen=True)
class _Region:
    """What is known of a region without its bytes."""

    number: int
    name: str | int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    #: Bytes from one element to the next, by axis, as they lie in the checkpoint.
    strides: tuple[int, ...]
    nbytes: int
    checksum: int | None
    #: Hashes of its leaves; None: they are not known.
    leaves: Array | None

    @property
    def order(self) -> tuple[int, ...]:
        """Its axes from the slowest to the fastest, as they lie in the checkpoint."""
        return tuple(sorted(range(len(self.shape)), key=lambda axis: (-self.strides[axis], axis)))

    def lies_as(self, other: _Region) -> bool:
        """Whether the elements of a region of the same shape and dtype lie in the same order."""
        pairs = zip(self.shape, self.strides, other.strides, strict=True)
        return self.nbytes == 0 or all(one == two for length, one, two in pairs if length > 1)


@dataclass(frozen=True)
class _Version:
    """A version of a checkpoint."""

    ticket: int
    serial: int
    layout: int
    sequence: bool
    structure: bytes | None
    regions: tuple[_Region, ...]
    meta: bytes | None

    def is_that(self, other: _Version) -> bool:
        """Whether both are one version. It gets a ticket at its first use, and a serial when it becomes durable."""
        if self.serial and other.serial:
            return self.serial == other.serial
        return self.ticket != 0 and self.ticket == other.ticket


class _Side:
    """One of the two checkpoints."""

    def __init__(self, history: ComparedHistory, key: Key, which: str, timeout: float | None) -> None:
        self.history = history
        self.key = key
        self._core = history._core  # that of this moment, also after a refresh of the store
        self._which = which
        self._timeout = timeout
        self.read_nbytes = 0

    def version(self) -> _Version:
        """Its current version."""
        with self._errors():
            ticket, serial, layout, sequence, structure, described, sums, meta = self._core.describe(self.key)
        regions = tuple(
            _Region(number, *facts, *((None, None) if sums is None else _hashes(sums[number], facts[-1])))
            for number, facts in enumerate(described)
        )
        return _Version(ticket, serial, layout, sequence, structure, regions, meta)

    def read(self, version: _Version, region: _Region, first: int, end: int) -> Array:
        """The bytes of some elements, in the order in which they lie in the checkpoint."""
        to = np.empty((end - first) * region.itemsize, np.uint8)
        if to.size:
            with self._errors():
                offset = first * region.itemsize
                self._core.read(self.key, version.layout, region.number, offset, to, self._timeout)
            self.read_nbytes += to.size
        return to

    def read_as(self, region: _Region, index: tuple[slice, ...], order: tuple[int, ...]) -> Array:
        """The bytes of a part of a region, with its axes in another order."""
        lengths = [each.stop - each.start for each in index]
        lying = np.empty([lengths[axis] for axis in order], dtype_from_text(region.dtype, region.itemsize))
        into = lying.transpose(np.argsort(order))
        with self._errors():
            self._core.restore_into(
                self.key, (region.name,), (into,), (index,), False, self._timeout, None, _unseen, None, True
            )
        self.read_nbytes += lying.nbytes
        return lying.reshape(-1).view(np.uint8)

    def note(self, version: _Version) -> nodes.Note:
        """The values of its tree, and its meta."""
        try:
            return nodes.note_of(version.structure, version.meta)
        except ValueError as error:
            raise CorruptCheckpoint(
                f"{self._place()}: its meta cannot be read: {error}. Its regions and other checkpoints are not "
                "affected; write this one again.",
                history=self.history.name,
                key=self.key,
            ) from None

    def _place(self) -> str:
        return f"the {self._which} of the two that are compared, key {self.key!r:.80} of {_told(self.history)}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Lets errors say which side they are of."""
        try:
            yield
        except VelocError as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (f"{self._place()}: {error.args[0]}", *error.args[1:])
            raise


def _told(history: ComparedHistory) -> str:
    store: StoreState = history._store
    where = "in memory" if store.path is None else f"in {str(store.path)!r}"
    return f"history {history.name!r:.80} of the store {where}"


def _unseen(_: Any) -> None:
    """Told of arrays that were written: nothing else has these."""


def _hashes(known: tuple[int, bytes], nbytes: int) -> tuple[int, Array | None]:
    """The checksum of a region of so many bytes, and the hashes of its leaves: that of a single one is the checksum."""
    checksum, leaves = known
    if nbytes <= LEAF:
        return checksum, np.array([checksum] if nbytes else [], np.uint64)
    return checksum, np.frombuffer(leaves, np.uint64) if leaves else None


def _pairs(one: _Version, other: _Version) -> Iterator[tuple[_Region | None, _Region | None]]:
    """The regions of both by their names, in the order of the first; those that only the other one has come last."""
    theirs = {(type(region.name), region.name): region for region in other.regions}
    for region in one.regions:
        yield region, theirs.pop((type(region.name), region.name), None)
    yield from ((None, region) for region in theirs.values())


def _to_be_read(one: _Region | None, other: _Region | None) -> bool:
    """Whether bytes have to be read to compare two regions."""
    if one is None or other is None:
        return False
    if one.shape != other.shape or one.nbytes == 0 or not same_dtype(one.dtype, other.dtype):
        return False
    return not one.lies_as(other) or one.checksum is None or one.checksum != other.checksum


def _compared(sides: tuple[_Side, _Side], versions: tuple[_Version, _Version], options: Options) -> Comparison:
    before = sides[0].read_nbytes
    found = [_compared_regions(sides, versions, pair, options) for pair in _pairs(*versions)]
    regions = tuple(region for region in found if region is not None)
    notes = sides[0].note(versions[0]), sides[1].note(versions[1])
    only = any(region.why == "only in one" for region in regions)
    values = nodes.differences(*notes, regions_differ=only)
    return Comparison(
        (sides[0].history.name, sides[1].history.name),
        (sides[0].key, sides[1].key),
        (len(versions[0].regions), len(versions[1].regions)),
        regions,
        tuple(values[: options.limit]),
        max(0, len(values) - options.limit),
        notes[0].meta == notes[1].meta,
        max(sum(region.nbytes for region in version.regions) for version in versions),
        sides[0].read_nbytes - before,
    )


def _compared_regions(
    sides: tuple[_Side, _Side],
    versions: tuple[_Version, _Version],
    pair: tuple[_Region | None, _Region | None],
    options: Options,
) -> RegionDifference | None:
    one, other = pair
    known = one or other
    assert known is not None
    dtypes = None if one is None else one.dtype, None if other is None else other.dtype
    shapes = None if one is None else one.shape, None if other is None else other.shape
    if one is None or other is None:
        return RegionDifference(known.name, "only in one", dtypes, shapes)
    if not same_dtype(one.dtype, other.dtype):
        return RegionDifference(one.name, "dtype", dtypes, shapes)
    if one.shape != other.shape:
        return RegionDifference(one.name, "shape", dtypes, shapes)
    if not _to_be_read(one, other):
        return None
    tally = Tally(_kind(one), one.shape, one.order, options.limit, options.tolerance)
    if one.lies_as(other):
        for first, end in _pieces(one, other):
            tally.add(first, sides[0].read(versions[0], one, first, end), sides[1].read(versions[1], other, first, end))
    else:
        for first, end, index in _slabs(one):
            tally.add(first, sides[0].read(versions[0], one, first, end), sides[1].read_as(other, index, one.order))
    return tally.difference(one.name)


def _kind(region: _Region) -> Kind:
    try:
        dtype = dtype_from_text(region.dtype, region.itemsize)
    except InvalidType:  # a package is missing that knows it: the bytes are compared
        dtype = None
    return Kind(region.dtype, region.itemsize, dtype)


def _pieces(one: _Region, other: _Region) -> Iterator[tuple[int, int]]:
    """Ranges of elements in which the leaves lie that differ, in pieces that fit into memory, ascending."""
    done, step = 0, max(1, _PIECE // one.itemsize)
    for begin, end in _unlike_leaves(one, other):
        first = max(done, begin // one.itemsize)
        done = -(-end // one.itemsize)
        for at in range(first, done, step):
            yield at, min(at + step, done)


def _unlike_leaves(one: _Region, other: _Region) -> Iterator[tuple[int, int]]:
    """Ranges of bytes of leaves whose hashes differ; the whole region where they are not known."""
    if one.leaves is None or other.leaves is None:
        yield 0, one.nbytes
        return
    unlike = np.flatnonzero(one.leaves != other.leaves)
    for run in np.split(unlike, np.flatnonzero(np.diff(unlike) != 1) + 1):
        if run.size:
            yield int(run[0]) * LEAF, min((int(run[-1]) + 1) * LEAF, one.nbytes)


def _slabs(region: _Region) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
    """Parts of a region that fit into memory: ranges of elements as they lie there, and the same as indices."""
    order = region.order
    lying = [region.shape[axis] for axis in order]
    cut, behind = len(lying) - 1, 1  # the axis that is cut, and the elements behind one step along it
    while cut > 0 and behind * lying[cut] * region.itemsize <= _SLAB:
        behind *= lying[cut]
        cut -= 1
    step = max(1, _SLAB // (behind * region.itemsize))
    for number, before in enumerate(np.ndindex(*lying[:cut])):
        for at in range(0, lying[cut], step):
            end = min(at + step, lying[cut])
            index = [slice(0, length) for length in region.shape]
            for axis, place in zip(order, before, strict=False):
                index[axis] = slice(place, place + 1)
            index[order[cut]] = slice(at, end)
            first = (number * lying[cut] + at) * behind
            yield first, first + (end - at) * behind, tuple(index)
