"""Reads checkpoints of DCP."""

from __future__ import annotations

import io
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from velocpy.choices import Size
from velocpy.closing import Closing
from velocpy.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument
from velocpy.history import Checkpoints

from .layout import Place, key_of, unpacked
from .saved import Saved, saved_at


class Reader(Closing, StorageReader):
    """Reads checkpoints that a `Writer` has written, also while it has its stores open.

    Of each tensor the parts alone are read that this rank asks for, straight into its memory, and compared with their
    checksums: in leaves of 256 KiB, which are verified one by one. What belongs on a device is copied there from host
    memory.

    Parameters
    ----------
    path
        That of the writer, or its archive: a directory, or ``"s3://bucket/prefix"``.
    host
        Host memory for what is on its way, as for `velocpy.open`: of each store that this rank reads.
    """

    def __init__(self, path: str | os.PathLike[str], *, host: Size | None = "64MiB") -> None:
        super().__init__()
        self._path, self._host = path, host
        self._key = key_of(None)
        self._saved: Saved | None = None
        self._places: dict[Any, Place] = {}
        self._stored: dict[str, Any] = {}
        self._load = ""

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins to read the checkpoint of this identifier, as the stores are now."""
        self.close()
        self._key, self._load = key_of(checkpoint_id), uuid.uuid4().hex

    def checkpoints(self) -> tuple[str, ...]:
        """The identifiers of the checkpoints that are complete, those saved last at the end.

        They are those of the last `reset`, or of the first call after `close`. One that was saved with
        ``use_collectives=False`` is among them as soon as one rank has completed its part.
        """
        saved = self._opened()
        return tuple(dict.fromkeys([*saved.keys(by_itself=True), *saved.keys(by_itself=False)]))

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """DCP's metadata of the checkpoint; with ``rank=``, those that this rank saved with ``use_collectives=False``.

        Raises
        ------
        CheckpointNotFound
            There is none, or it was not completed; the text has those that there are.
        """
        own, saved = kwargs.get("rank"), self._opened()
        if (packed := saved.metadata(self._key, own)) is None:
            there = ", ".join(map(repr, dict.fromkeys(saved.keys(by_itself=own is not None)))) or "none"
            raise CheckpointNotFound(
                f"there is no complete checkpoint {self._key!r} in {os.fspath(self._path)!r}; there are: {there}.",
                key=self._key,
            )
        metadata = unpacked(packed, self._key)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self._load
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Takes over the places of the items."""
        places = metadata.storage_data
        if not isinstance(places, dict) or not all(isinstance(place, Place) for place in places.values()):
            raise CorruptCheckpoint(f"the metadata of checkpoint {self._key!r} are not those of a velocpy.dcp.Writer.")
        self._places, self._stored = places, metadata.state_dict_metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the items of this rank, store by store.

        Raises
        ------
        CheckpointDropped, CheckpointNotFound
            A writer has replaced the checkpoint since `reset`, and a later save has freed its tensors. The tensors that
            were to be loaded may hold parts of it; load again.
        CorruptCheckpoint, TierIOError
            A store cannot be read.
        """
        items: dict[tuple[int, str], list[ReadItem]] = defaultdict(list)
        for item in plan.items:
            place = self._places[item.storage_index]
            items[place.rank, place.save].append(item)
        for (rank, save), some in items.items():
            self._read(self._opened().data(rank), save, some, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this can be the identifier of a checkpoint: any text."""
        return isinstance(checkpoint_id, (str, os.PathLike)) and bool(os.fspath(checkpoint_id))

    @property
    def read_nbytes(self) -> int:
        """Bytes that were read from disks, or from a bucket, since the last `reset`: by this rank, for all loads."""
        stores = [] if self._saved is None else self._saved.stores
        return sum(int(store.stats()["tiers"]["disk"]["read_bytes"]) for store in stores)

    def close(self) -> None:
        """Closes the stores; a later call opens them again."""
        saved, self._saved = self._saved, None
        if saved is not None:
            saved.close()

    def _opened(self) -> Saved:
        if self._saved is None:
            self._saved = saved_at(self._path, self._host)
        return self._saved

    def _read(self, history: Checkpoints, save: str, items: Iterable[ReadItem], planner: LoadPlanner) -> None:
        tensors = []
        for item in items:
            if item.type == LoadItemType.BYTE_IO:
                region = self._places[item.storage_index].region
                with history.restore(save, region) as lease:
                    planner.load_bytes(item, io.BytesIO(lease[region].tobytes()))
            else:
                tensors.append((item, planner.resolve_tensor(item).detach()))
        for batch in _of_different_regions(tensors, self._places):
            self._restore(history, save, batch)
            for item, tensor in batch.values():
                planner.commit_tensor(item, tensor)

    def _restore(self, history: Checkpoints, save: str, batch: dict[str, tuple[ReadItem, torch.Tensor]]) -> None:
        """Fills tensors with parts of regions, each of another one."""
        for item, tensor in batch.values():
            if tuple(tensor.shape) != tuple(item.lengths):
                raise InvalidArgument(
                    f"the part of {item.storage_index.fqn!r} has the shape {tuple(item.lengths)}, and the tensor "
                    f"{tuple(tensor.shape)}."
                )
        rooms = {region: _room(tensor, self._dtype(item)) for region, (item, tensor) in batch.items()}
        history.restore(save, into=rooms, parts={region: _part(item) for region, (item, _) in batch.items()})
        for region, (_, tensor) in batch.items():
            if rooms[region] is not tensor:
                tensor.copy_(rooms[region])

    def _dtype(self, item: ReadItem) -> torch.dtype:
        stored = self._stored[item.storage_index.fqn]
        if not isinstance(stored, TensorStorageMetadata):
            raise CorruptCheckpoint(
                f"{item.storage_index.fqn!r} is no tensor in checkpoint {self._key!r}.", key=self._key
            )
        return stored.properties.dtype


def _room(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Where a store puts elements of this dtype for a tensor: DCP casts, and stores that are read have no device."""
    if tensor.dtype == dtype and tensor.device.type == "cpu":
        return tensor
    return torch.empty_like(tensor, dtype=dtype, device="cpu")


def _part(item: ReadItem) -> tuple[Any, ...]:
    """The part of a region that an item asks for."""
    ranges = zip(item.storage_offsets, item.lengths, strict=True)
    return (*(slice(begin, begin + length) for begin, length in ranges), ...)


def _of_different_regions(
    tensors: Iterable[tuple[ReadItem, torch.Tensor]], places: dict[Any, Place]
) -> list[dict[str, tuple[ReadItem, torch.Tensor]]]:
    """The items in batches, in each of which no region comes twice."""
    batches: list[dict[str, tuple[ReadItem, torch.Tensor]]] = []
    met: dict[str, int] = defaultdict(int)
    for item, tensor in tensors:
        region = places[item.storage_index].region
        if met[region] == len(batches):
            batches.append({})
        batches[met[region]][region] = (item, tensor)
        met[region] += 1
    return batches
