"""How checkpoints of DCP lie in the stores of a directory.

The store of rank r is the directory ``rank-0000r``. In its history "data" each save of a checkpoint has a key of its
own, so that a save that is cut short leaves those before it alone; its regions are tensors, and the bytes of other
objects. The history "metadata", at the coordinator, has one checkpoint for each identifier: DCP's metadata, with the
place of each item. Of a save with ``use_collectives=False`` each rank has the metadata of its own items, in the history
"metadata-of-rank".

Where the ranks send to an archive, all of them give a save the same name, and each has a key of that name in the
history "commits" too: the coordinator with the metadata, the others with nothing. A key is in an archive when it has
the parts of all ranks, so this one comes when the tensors of all ranks and the metadata are durable.
"""

from __future__ import annotations

import io
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.distributed.checkpoint import metadata as dcp_metadata

from velocpy import paths
from velocpy.errors import CorruptCheckpoint, InvalidType

DATA, METADATA, LOCAL, COMMITS = "data", "metadata", "metadata-of-rank", "commits"

#: The key of a checkpoint whose identifier is None.
UNNAMED = "checkpoint"


@dataclass(frozen=True)
class Place:
    """Where an item of a checkpoint lies."""

    rank: int
    #: Key in the history "data" of this rank.
    save: str
    region: str


#: What metadata may consist of: nothing else is made when they are read.
_KNOWN: list[Any] = [
    Place,
    dcp_metadata.Metadata,
    dcp_metadata.MetadataIndex,
    dcp_metadata.TensorStorageMetadata,
    dcp_metadata.BytesStorageMetadata,
    dcp_metadata.ChunkStorageMetadata,
    dcp_metadata.TensorProperties,
    dcp_metadata.StorageMeta,
    dcp_metadata._MEM_FORMAT_ENCODING,
]

#: Held while metadata are loaded: torch has one list of safe types for all threads.
_LOADING = threading.Lock()


def directory_of(path: Path, rank: int) -> Path:
    """The directory of a rank's store."""
    return paths.numbered(path, "rank", rank)


def ranks_of(path: Path) -> list[int]:
    """The ranks that have a store, ascending."""
    return paths.numbers(path, "rank")


def key_of(checkpoint_id: str | os.PathLike[str] | None) -> str:
    """The key of a checkpoint's metadata."""
    return UNNAMED if checkpoint_id is None else os.fspath(checkpoint_id)


def region_of(index: dcp_metadata.MetadataIndex) -> str:
    """The name of the region that has an item: chunks of one tensor differ in their offsets.

    No two items have one name: what follows the last "@" is an offset, or nothing where the name of an object has one.

    Examples
    --------
    >>> from torch.distributed.checkpoint.metadata import MetadataIndex
    >>> region_of(MetadataIndex("model.w", [0, 4])), region_of(MetadataIndex("step")), region_of(MetadataIndex("a@0"))
    ('model.w@0,4', 'step', 'a@0@')
    """
    if index.offset is None:
        return f"{index.fqn}@" if "@" in index.fqn else index.fqn
    return f"{index.fqn}@{','.join(map(str, index.offset))}"


def packed(metadata: dcp_metadata.Metadata) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The metadata as bytes.

    Raises
    ------
    InvalidType
        `unpacked` would refuse them.
    """
    buffer = io.BytesIO()
    torch.save(metadata, buffer)
    try:
        _loaded(buffer)
    except Exception as error:
        raise InvalidType(
            "the metadata hold objects other than those of DCP, and could not be loaded; the checkpoint was not "
            "completed. Use a planner whose planner_data and indices consist of containers, texts and numbers. "
            f"{error}"
        ) from error
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _loaded(buffer: io.BytesIO) -> Any:
    buffer.seek(0)
    with _LOADING, torch.serialization.safe_globals(_KNOWN):
        return torch.load(buffer, weights_only=True)


def unpacked(raw: bytes, key: str) -> dcp_metadata.Metadata:
    """The metadata that `packed` made.

    Raises
    ------
    CorruptCheckpoint
        They hold something that metadata do not consist of; nothing of it was made.
    """
    try:
        metadata = _loaded(io.BytesIO(raw))
    except Exception as error:
        raise CorruptCheckpoint(
            f"the metadata of checkpoint {key!r} are none that DCP wrote: {error}. Other checkpoints are not affected.",
            history=METADATA,
            key=key,
        ) from error
    if not isinstance(metadata, dcp_metadata.Metadata):
        raise CorruptCheckpoint(
            f"the metadata of checkpoint {key!r} are a {type(metadata).__name__}.", history=METADATA, key=key
        )
    return metadata
