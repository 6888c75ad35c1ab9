"""What goes into a file, and what comes out of one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import numpy as np

from velocpy.arrays import dtype_from_text
from velocpy.errors import InvalidArgument, InvalidType
from velocpy.history import Checkpoints
from velocpy.ondisk import Checkpoint
from velocpy.training.encoding import KIND, SAME
from velocpy.tree import name

#: Bytes of the regions that are restored at once.
BATCH = 128 << 20


@dataclass
class Content:
    """What a file has: the regions or the tree of a checkpoint, which may lie in mapped files."""

    regions: Any
    #: The meta as JSON.
    meta: str | None
    #: Bytes of the regions, or more.
    nbytes: int
    #: Bytes of the files.
    file_nbytes: int


@dataclass(frozen=True)
class Facts:
    """What a region is."""

    #: As `velocpy.arrays.dtype_from_text` reads it.
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    #: As the checkpoint names it: a number in a sequence.
    label: str | int


@dataclass(frozen=True)
class Array:
    """The bytes of a region in C order, and what they are."""

    dtype: str
    shape: tuple[int, ...]
    elements: np.ndarray[Any, Any]  # of voids: no library has to know the dtype


@dataclass
class Outgoing:
    """A checkpoint that is read region by region, so that memory holds a part of it."""

    history: Checkpoints
    key: int | str
    regions: dict[str, Facts]
    #: The meta as JSON.
    meta: str | None
    #: Names of tensors that are others of the checkpoint, with the names of those.
    ties: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, history: Checkpoints, known: Checkpoint) -> Outgoing:
        """The checkpoint that `velocpy.ondisk.describe` has described."""
        regions = {}
        for region in known.regions:
            # The regions of a checkpoint lie in its slot in the strides that they have there.
            regions[_name(region.name)] = Facts(region.dtype, region.shape, region.nbytes, region.name)
        if len(regions) < len(known.regions):
            raise InvalidArgument("two regions of the checkpoint would have one name in the file.")
        with history.restore(known.key, ()) as lease:
            meta = _meta_text(lease.meta)
            ties = _ties(lease.tree, regions) if known.structure is not None else {}
        return cls(history, known.key, regions, meta, ties)

    def arrays(self, names: Iterable[str]) -> Iterator[tuple[str, Array]]:
        """The regions of these names, in this order; each is valid until the next one is asked for."""
        for batch in _batches((each, self.regions[each]) for each in names):
            labels = list(dict.fromkeys(facts.label for _, facts in batch))
            with self.history.restore(self.key, labels) as lease:
                memory = lease._held()
                for each, facts in batch:
                    number = memory.find(facts.label)
                    text, itemsize, shape, strides = memory.description(number)
                    if itemsize == 0 or 0 in shape:
                        elements = np.zeros(0, np.uint8)
                    else:
                        elements = np.ndarray(shape, f"V{itemsize}", memory.raw(number), strides=strides)
                    yield each, Array(text, shape, np.ascontiguousarray(elements))


def room(known: Checkpoint) -> int:
    """Host memory through which the regions of a checkpoint are read."""
    return min(known.slot_nbytes, max(BATCH, *(region.nbytes for region in known.regions), 0)) + (2 << 20)


def elements_in(shape: tuple[int, ...]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


def _batches(regions: Iterable[tuple[str, Facts]]) -> Iterator[list[tuple[str, Facts]]]:
    batch: list[tuple[str, Facts]] = []
    nbytes = 0
    for each, facts in regions:
        if batch and nbytes + facts.nbytes > BATCH:
            yield batch
            batch, nbytes = [], 0
        batch.append((each, facts))
        nbytes += facts.nbytes
    if batch:
        yield batch


def _name(label: str | int) -> str:
    """The name of a region in a file, which is UTF-8 in all formats."""
    text = str(label)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidType(f"region {text!r} has a lone surrogate in its name, which no file can have.") from None
    return text


def _meta_text(meta: Any) -> str | None:
    try:
        return None if meta is None else json.dumps(meta, separators=(",", ":"))
    except RecursionError as error:
        raise InvalidType(f"the meta is nested too deep to be written again: {error}.") from None


def _ties(tree: Any, regions: Mapping[str, Facts]) -> dict[str, str]:
    """The tensors that `velocpy.training.encoding.encode` has written as the paths of others."""
    found = {}
    for path, target in _references(tree, ()):
        # A Checkpointer encodes each part by itself; then paths begin at the part.
        for whole in ((*path[:1], *target), tuple(target)):
            kept, tied = name(whole), name(path)
            if kept in regions and tied not in regions:
                found[tied] = kept
                break
    return found


def _references(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    if isinstance(node, Mapping):
        if node.get(KIND) == SAME and isinstance(node.get("of"), list):
            yield path, node["of"]
            return
        for key, child in node.items():
            yield from _references(child, (*path, key))
    elif isinstance(node, (list, tuple)) and not isinstance(node, EllipsisType):
        for number, child in enumerate(node):
            yield from _references(child, (*path, number))


def plain(label: str, array: Array, format_: str, other: str) -> np.ndarray[Any, Any]:
    """The array as NumPy knows it, which needs no more memory than the region."""
    dtype = dtype_from_text(array.dtype)
    if array.elements.size:
        return np.ndarray(array.shape, dtype, array.elements)
    try:
        return np.empty(array.shape, dtype)
    except ValueError:  # without elements the other extents may still be more than NumPy counts
        raise InvalidType(
            f"{format_} knows no array of shape {array.shape} and dtype {array.dtype} (region {label!r}); {other} may."
        ) from None
