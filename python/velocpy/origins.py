"""What a checkpoint of a lineage consists of, and which colour stands for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Key = int | str

#: Colour of bytes in the checkpoint's own object; from the earliest to the latest of the other objects whose
#: checkpoints are there; the same where these were dropped or replaced.
OWN_COLOUR = "#e8590c"
THERE, GONE = ("#dbe7f4", "#2f6aa8"), ("#e3e3e3", "#6b6b6b")

#: An object of a history: its lineage, and its number there. Of a checkpoint that is no difference: "", and the serial.
Identity = tuple[str, int]


@dataclass(frozen=True)
class Origin:
    """An object that a checkpoint consists of."""

    #: Its number in the lineage, which grows from checkpoint to checkpoint; None where the checkpoint is no difference.
    number: int | None
    #: The checkpoint whose own object it is; None where that was dropped or replaced: the object stays for others.
    key: Key | None
    #: Bytes that it takes in the data files, in whole blocks.
    stored_nbytes: int
    #: Bytes of the checkpoint's regions that lie in it, as they were captured. 0: only its metadata are needed.
    nbytes: int


@dataclass(frozen=True)
class RegionOrigins:
    """Which objects have the bytes of a region. Objects are given by their places in `CheckpointOrigins.origins`."""

    #: Its name, or its number in a sequence.
    name: str | int
    #: Its length in bytes.
    nbytes: int
    #: Bytes of the region that each of the objects has; those that have none are left out.
    shares: dict[int, int]
    #: The object that has most bytes of each bin; of several, the latest. Bin i of n is bytes i * nbytes // n up to
    #: (i + 1) * nbytes // n of the region. A region with fewer bytes than bins were asked for has one for each byte.
    bins: tuple[int, ...]
    #: Bytes of each bin that the checkpoint's own object has: those that are new.
    own: tuple[int, ...]


class Span(NamedTuple):
    """Neighbouring bins of a checkpoint whose bytes come mostly from one object, and which are alike otherwise."""

    #: In bytes, where the regions lie behind one another without gaps.
    start: int
    stop: int
    #: The place of the object in `CheckpointOrigins.origins`.
    origin: int
    #: Whether some bytes of each bin are new, so that they lie in the checkpoint's own object.
    new: bool


class Column(NamedTuple):
    """One of the equal parts of a checkpoint."""

    #: As of `Span`.
    origin: int
    new: bool


@dataclass(frozen=True)
class CheckpointOrigins:
    """Where the bytes of a checkpoint lie."""

    key: Key
    serial: int
    #: As ``form`` of `velocpy.ondisk.checkpoints`. Only a "difference" may have bytes in other objects than its own.
    form: str
    #: Which lineage it belongs to, 16 hexadecimal digits; None where it is no difference. A history begins a new one
    #: whenever its store is opened.
    lineage: str | None
    #: Bytes of its regions.
    nbytes: int
    #: The objects that it consists of, from the earliest on; the last one is its own.
    origins: tuple[Origin, ...]
    regions: tuple[RegionOrigins, ...]

    @property
    def stored_nbytes(self) -> int:
        """Bytes that it takes in the data files by itself, in whole blocks."""
        return self.origins[-1].stored_nbytes

    @property
    def own_nbytes(self) -> int:
        """Bytes of its regions that its own object has: those that no earlier object of the lineage had."""
        return self.origins[-1].nbytes

    def identity(self, origin: int) -> Identity:
        """What an object is told from the others of the history by."""
        number = self.origins[origin].number
        return ("", self.serial) if self.lineage is None or number is None else (self.lineage, number)

    def spans(self) -> Iterator[Span]:
        """The bins of all regions from left to right; neighbours of a region that are alike are one."""
        begin = 0
        for region in self.regions:
            start, count = 0, len(region.bins)
            kinds = [(origin, own > 0) for origin, own in zip(region.bins, region.own, strict=True)]
            for place, kind in enumerate(kinds):
                if place + 1 == count or kinds[place + 1] != kind:
                    stop = (place + 1) * region.nbytes // count
                    yield Span(begin + start, begin + stop, *kind)
                    start = stop
            begin += region.nbytes

    def columns(self, count: int) -> list[Column]:
        """So many equal parts, made of the bins that they touch; as many as bytes where these are fewer."""
        count = min(count, self.nbytes)
        most: list[dict[int, int]] = [{} for _ in range(count)]
        new = [False] * count
        for start, stop, origin, own in self.spans():
            column = start * count // self.nbytes
            while start < stop:
                end = min(stop, -(-(column + 1) * self.nbytes // count))
                most[column][origin] = most[column].get(origin, 0) + end - start
                new[column] = new[column] or own
                start, column = end, column + 1
        return [
            Column(max(found, key=lambda origin: (found[origin], origin)), own)
            for found, own in zip(most, new, strict=True)
        ]


def objects_of(checkpoints: Sequence[CheckpointOrigins]) -> dict[Identity, Key | None]:
    """The objects that any of the checkpoints consists of, from the earliest on, with the keys as `Origin.key`."""
    found = {
        checkpoint.identity(place): origin.key
        for checkpoint in checkpoints
        for place, origin in enumerate(checkpoint.origins)
    }
    # A lineage stands where the first of its checkpoints does.
    begins = {checkpoint.lineage or "": checkpoint.serial for checkpoint in reversed(checkpoints)}
    places = {each: (begins[each[0]] if each[0] else each[1], each[1]) for each in found}
    return {each: found[each] for each in sorted(found, key=places.__getitem__)}


def colours_of(objects: Mapping[Identity, Key | None]) -> dict[Identity, str]:
    """A colour for each object: blue where its checkpoint is there, grey where not, the darker the later."""
    last = max(len(objects) - 1, 1)
    return {
        each: _between(*(GONE if key is None else THERE), place / last)
        for place, (each, key) in enumerate(objects.items())
    }


def _between(low: str, high: str, share: float) -> str:
    """A colour between two."""
    ends = ([int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in (low, high))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
