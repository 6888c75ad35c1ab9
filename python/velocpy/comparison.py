"""What `History.compare` and `History.compare_all` find: results, which hold no bytes of the checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .interfaces import Key
from .quantity import counted

__all__ = ["Comparison", "HistoryComparison", "RegionDifference", "ValueDifference"]

#: Why a region is among those that differ: the other checkpoint has none of this name; or it has one of another dtype,
#: or of another shape, and no bytes were compared; or elements differ.
RegionReason = Literal["only in one", "dtype", "shape", "bytes"]

#: Why a value of a tree is: nothing stands in its place in the other one; or another value; or something of another
#: kind, as a tuple in place of a list.
ValueReason = Literal["only in one", "value", "kind"]

_SIDES = ("first", "second")

#: Half-open ranges: the begin, and the end, which is not in it.
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RegionDifference:
    """How a region of two checkpoints differs."""

    #: Its name, or its number in a sequence.
    name: str | int
    why: RegionReason
    #: The dtypes on either side, as `velocpy.arrays.dtype_from_text` reads them; None where it is not.
    dtypes: tuple[str | None, str | None]
    #: The shapes, likewise.
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    #: How many elements differ. This and what follows is 0, empty or None unless ``why`` is "bytes".
    count: int = 0
    #: The first ranges of elements that differ, ascending, as positions in ``array.ravel("K")``: elements are numbered
    #: as they lie in the checkpoint. Of an array in C order these are positions in ``array.reshape(-1)``.
    ranges: Ranges = ()
    #: How many ranges there are behind these.
    more_ranges: int = 0
    #: The smallest range of each axis within which all that differs lies.
    bounds: Ranges = ()
    #: Index of the first element that differs, in the order of ``ranges``.
    first: tuple[int, ...] | None = None
    #: That element on either side, as NumPy's scalars; None where NumPy does not know the dtype, or it has more than
    #: 4096 bytes.
    values: tuple[Any, Any] | None = None
    #: Its bytes on either side, the first 64 of them at most.
    raw: tuple[bytes, bytes] | None = None
    #: The largest absolute difference of two numbers: an int of integers, a float otherwise. Pairs with a NaN are not
    #: among them; None without any others, and for what is no number.
    max_difference: int | float | None = None
    #: So many of ``count`` are NaN on both sides, and differ in the payload or the sign of the NaN alone.
    nan_payloads: int = 0
    #: So many of ``count`` are equal as values: zeros of different signs, and where bytes differ that belong to no
    #: value, as padding.
    same_values: int = 0

    @property
    def index(self) -> tuple[slice, ...]:
        """An index of the part within which all that differs lies, for the region and for ``parts=`` of a restore."""
        return tuple(slice(begin, end) for begin, end in self.bounds)

    def __str__(self) -> str:
        if self.why == "only in one":
            side = _SIDES[0] if self.dtypes[1] is None else _SIDES[1]
            return f"region {self.name!r}: only in the {side}"
        if self.why == "dtype":
            return f"region {self.name!r}: dtypes {self.dtypes[0]} and {self.dtypes[1]}"
        if self.why == "shape":
            return f"region {self.name!r}: shapes {self.shapes[0]} and {self.shapes[1]}"
        text = f"region {self.name!r}: {', '.join(self._words())}; first"
        if self.first:
            text += f" at {list(self.first)}"
        one, other = self.raw or (b"", b"")
        if self.values is None or str(self.values[0]) == str(self.values[1]):
            return f"{text}: bytes {one.hex()} and {other.hex()}"
        return f"{text}: {self.values[0]!s:.40} and {self.values[1]!s:.40}"

    def _words(self) -> Iterator[str]:
        yield f"{self.count} of {self.elements} elements differ"
        if self.bounds:
            yield f"within {index_text(self.bounds)}"
        if self.max_difference is not None:
            yield f"by at most {self.max_difference:.6g}"
        if self.nan_payloads:
            yield f"{self.nan_payloads} by the payload or the sign of a NaN alone"
        if self.same_values:
            yield f"{self.same_values} by bits of the same value"

    @property
    def elements(self) -> int:
        """How many elements the region has; 0 where the sides have different shapes."""
        one, other = self.shapes
        if one is None or one != other:
            return 0
        number = 1
        for length in one:
            number *= length
        return number


@dataclass(frozen=True)
class ValueDifference:
    """How a tree of two checkpoints differs beside its arrays."""

    #: Its path, as regions are named by theirs; empty: the tree itself.
    name: str
    why: ValueReason
    #: What stands there on either side, as JSON; the kind of a container or "array"; None: nothing.
    texts: tuple[str | None, str | None]

    def __str__(self) -> str:
        one, other = ("nothing" if text is None else f"{text:.60}" for text in self.texts)
        return f"value {self.name!r}: {one} and {other}"


@dataclass(frozen=True)
class Comparison:
    """What two checkpoints differ in. It is true when they are equal.

    They are equal when regions of the same names have the same dtype, shape and bytes, and trees the same values. The
    library that arrays came from, the order of regions and of axes in memory, and the meta count for nothing.

    Examples
    --------
    >>> import numpy, velocpy
    >>> with velocpy.open(host="16MiB") as store:
    ...     one, other = store.history("one"), store.history("other")
    ...     for step in range(4):
    ...         for run in (one, other):
    ...             _ = run.checkpoint(step, u=numpy.arange(6.0).reshape(2, 3), v=numpy.ones(3))
    ...     u = numpy.arange(6.0).reshape(2, 3)
    ...     u[1, :2] += 0.5
    ...     _ = other.checkpoint(2, u=u, v=numpy.ones(3))
    ...     found = one.first_difference(other).first
    >>> print(found)
    checkpoint 2 of history 'one' and of history 'other': 1 of 2 regions differ
    region 'u': 2 of 6 elements differ, within [1, 0:2], by at most 0.5; first at [1, 0]: 3.0 and 3.5
    >>> [region.ranges for region in found.regions], found.equal
    ([((3, 5),)], False)
    """

    #: Names of the histories, and the keys.
    histories: tuple[str, str]
    keys: tuple[Key, Key]
    #: How many regions either checkpoint has.
    region_counts: tuple[int, int]
    #: The regions that differ, in the order of the first checkpoint; those that only the second one has come last.
    regions: tuple[RegionDifference, ...]
    #: What of the trees differs beside the arrays, at most as many as ranges of a region.
    values: tuple[ValueDifference, ...]
    #: How many there are behind these.
    more_values: int
    #: Whether the meta is the same.
    same_meta: bool
    #: Bytes of the larger checkpoint.
    nbytes: int
    #: Bytes that were read of each checkpoint. What has equal hashes on both sides is not read.
    read_nbytes: int

    @property
    def equal(self) -> bool:
        """Whether they are equal."""
        return not self.regions and not self.values

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        (one, other), (key, other_key) = self.histories, self.keys
        if (one, key) == (other, other_key):  # of two stores
            both = f"checkpoint {key!r} of both histories named {one!r}"
        else:
            both = f"checkpoint {key!r} of history {one!r} and "
            both += f"of history {other!r}" if key == other_key else f"checkpoint {other_key!r} of history {other!r}"
        if self.equal:
            yield f"{both}: equal" + ("" if self.same_meta else ", with another meta")
            return
        words = []
        if self.regions:
            words.append(f"{len(self.regions)} of {max(self.region_counts)} regions differ")
        if self.values:
            words.append(f"{len(self.values) + self.more_values} values differ")
        yield f"{both}: {', '.join(words)}"
        yield from map(str, self.regions)
        yield from map(str, self.values)
        if self.more_values:
            yield f"and {self.more_values} values more"


@dataclass(frozen=True)
class HistoryComparison:
    """What two histories differ in. It is true when they are equal."""

    #: Names of the histories.
    histories: tuple[str, str]
    #: How many checkpoints were compared: of keys that both have, in the order in which the first one was written.
    compared: int
    #: Those that differ, in that order.
    differing: tuple[Comparison, ...]
    #: Keys that only the first has, and those that only the second has, in the order of writing.
    only_in_one: tuple[tuple[Key, ...], tuple[Key, ...]]
    #: False: the comparison stopped at the first checkpoint that differs; those behind it were not compared.
    complete: bool
    #: Bytes that were read of each history.
    read_nbytes: int

    @property
    def first(self) -> Comparison | None:
        """The first checkpoint that differs; None: none does."""
        return self.differing[0] if self.differing else None

    @property
    def equal(self) -> bool:
        """Whether both have the same keys, and equal checkpoints."""
        return not self.differing and not any(self.only_in_one)

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        words = [
            f"{counted(self.compared, 'checkpoint')} compared",
            counted(len(self.differing), "differs", "differ"),
        ]
        if not self.complete:
            words[1] = "stopped at the first that differs"
        words += [
            f"{len(keys)} only in the {side}" for keys, side in zip(self.only_in_one, _SIDES, strict=True) if keys
        ]
        one, other = self.histories
        both = f"both histories named {one!r}" if one == other else f"history {one!r} and history {other!r}"
        head = f"{both}: {', '.join(words)}"
        return head if self.first is None else f"{head}\n{self.first}"


def index_text(bounds: Ranges) -> str:
    """Ranges of axes as an index is written.

    Examples
    --------
    >>> from velocpy.comparison import index_text
    >>> index_text(((3, 4), (0, 10)))
    '[3, 0:10]'
    """
    return f"[{', '.join(str(begin) if end == begin + 1 else f'{begin}:{end}' for begin, end in bounds)}]"
