"""Writes checkpoints of DCP."""

from __future__ import annotations

import dataclasses
import io
import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

import velocpy
from velocpy.archive import Destination
from velocpy.budget import passed_by
from velocpy.checks import require_whole
from velocpy.choices import Reduction, Size
from velocpy.closing import Closing
from velocpy.errors import InvalidArgument, NotAStore
from velocpy.store import Store

from .layout import COMMITS, DATA, LOCAL, METADATA, Place, directory_of, key_of, packed, ranks_of, region_of
from .together import NOTHING, Agreed, Together

#: Held while a writer opens its store: DCP calls a writer from several threads, and pickles it for another process.
_OPENING = threading.Lock()


class Needed(NamedTuple):
    """The saves that must stay, which the coordinator sends to all ranks with their plans."""

    saves: frozenset[str]
    #: Differs between any two saves. A planner that caches plans hands out old ones.
    token: str


@dataclass
class _Save:
    """The save that a thread makes: DCP calls all steps of a save in one thread."""

    #: Key of the metadata.
    key: str
    #: Keys in the history "data" that were there when this save began, except those of saves in progress.
    old: list[str] = field(default_factory=list)
    #: Key in the history "data".
    name: str = ""
    #: History of the metadata.
    metadata: str = METADATA
    #: Of a save that goes to an archive.
    agreed: Agreed | None = None


class Writer(Closing, StorageWriter):
    """Writes checkpoints into a store of this rank, which it opens at the first save and keeps open until `close`.

    Tensors go to the disk from where they are, without a copy in host memory unless they are reduced or lie on a
    device. ``dcp.save`` returns when all of them are durable and the checkpoint is complete. With ``dcp.async_save``
    that happens in its thread; where one process saves alone, several of them may be in progress. Only one writer at a
    time can have the store of a rank open: the save of another one raises `StoreLocked`, which DCP reports within its
    ``CheckpointException``.

    Parameters
    ----------
    path
        A directory that all ranks share, or one of each rank, as long as the reader finds all of them there.
    keep
        So many checkpoints stay, those saved last. None: all. The next save frees the disk space of older ones, and of
        saves that were not completed.
    reduce
        How the tensors become smaller, as for `Store.history`; ``"tree"`` writes what has changed since the last save.
        They are copied into the host tier first; what does not fit there is not reduced. None: not at all.
    host, disk
        As for `velocpy.open`, for each rank.
    archive, ranks
        As for `velocpy.open`: what is saved goes on to an archive in the background, as a whole or not at all, and a
        `Reader` of the archive loads it. ``ranks`` is a process group of gloo with the ranks that save together; a
        process that saves alone leaves it out. All of these ranks call `close`, which waits until everything is there;
        ``writer.store.wait("archive")`` waits before. What ``keep=`` frees on the disk stays in the archive. Before
        each save the ranks agree about its name. A rank that waits for the others for `Destination.timeout` seconds, or
        ten minutes, raises `WaitTimeout`; make a new writer then.

    Examples
    --------
    >>> import tempfile, torch, warnings
    >>> import torch.distributed.checkpoint as dcp
    >>> from velocpy.dcp import Reader, Writer
    >>> warnings.simplefilter("ignore", UserWarning)  # DCP warns of one process alone
    >>> with tempfile.TemporaryDirectory() as path:
    ...     state = {"w": torch.arange(4.0), "step": 7}
    ...     with Writer(path, host="16MiB") as writer:
    ...         _ = dcp.save(state, storage_writer=writer, checkpoint_id="a", no_dist=True)
    ...     state = {"w": torch.zeros(4), "step": 0}
    ...     with Reader(path) as reader:
    ...         dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
    >>> state
    {'w': tensor([0., 1., 2., 3.]), 'step': 7}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keep: int | None = None,
        reduce: Reduction | None = None,
        host: Size | None = "auto",
        disk: Size | None = "auto",
        archive: str | os.PathLike[str] | Destination | None = None,
        ranks: Any = None,
    ) -> None:
        super().__init__()
        self._path = Path(path)
        self._keep = None if keep is None else require_whole("keep", keep, 1)
        self._reduce = reduce
        self._budgets: dict[str, Any] = {"host": host, "disk": disk}
        if archive is None and ranks is not None:
            raise InvalidArgument("ranks= is for writers with archive=: DCP itself tells the others of a save.")
        self._together = None if archive is None else Together(archive, ranks)
        self._store: Store | None = None
        #: The CUDA device of the store: that of its rank, if it has one. Another thread, in which DCP uploads, may have
        #: another current device.
        self._device = _current_device()
        self._rank = 0
        self._key = key_of(None)
        self._saves: dict[threading.Thread, _Save] = {}
        self._token = ""

    @property
    def store(self) -> Store | None:
        """The store of this rank, or None before the first save."""
        return self._store

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a checkpoint. DCP does not call this where no identifier is given: then it is that of the last one."""
        self._key = key_of(checkpoint_id)
        self._saves[threading.current_thread()] = _Save(self._key)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Opens the store of this rank."""
        rank, together = kwargs.get("rank"), kwargs.get("use_collectives", True)
        self._rank = _own_rank() if rank is None else int(rank)
        agreed, to = None, self._together
        if to is not None:
            if not together:
                raise InvalidArgument("archive= needs use_collectives=True: a checkpoint is in it as a whole.")
            agreed = to.agree(self._rank, is_coordinator, self._own_key())
        with _OPENING:
            if self._store is None or self._store.closed:
                if self._device is None or not _in_use(self._device):
                    self._device = _current_device()
                device = None if self._device is None else passed_by([self._device])
                more = {} if to is None else {"archive": to.to, "ranks": to.ranks}
                self._store = velocpy.open(directory_of(self._path, self._rank), device=device, **self._budgets, **more)
        self._begin(self._store, METADATA if together else LOCAL, agreed)

    def _begin(self, store: Store, metadata: str, agreed: Agreed | None) -> None:
        """Notes the saves that this one may free: those that are there, and that no other thread makes."""
        key, own = self._own_key(), threading.current_thread()
        there = list(map(str, store.history(DATA)))
        for thread in list(self._saves):
            if not thread.is_alive():
                self._saves.pop(thread, None)
        others = {save.name for thread, save in list(self._saves.items()) if thread is not own}
        old = [name for name in there if name not in others]
        self._saves[own] = _Save(key, old, metadata=metadata, agreed=agreed)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The same plans with the names of the saves that must stay."""
        needed = Needed(frozenset(self._needed(self._opened()) or ()), uuid.uuid4().hex)
        return [dataclasses.replace(plan, storage_data=needed) for plan in plans]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Frees what no checkpoint needs, writes this rank's items, and waits until they are durable."""
        store = self._opened()
        self._drop_unneeded(store, plan.storage_data)
        current = self._saves[threading.current_thread()]
        agreed = current.agreed
        save = current.name = f"{current.key}#{uuid.uuid4().hex}" if agreed is None else agreed.save
        regions = {region_of(item.index): _region(item, planner, self._device) for item in plan.items}
        if regions or agreed is not None:
            history = store.history(DATA, reduce=self._reduce)
            # Only what lies in the host tier is reduced; the rest goes down from where it is.
            plain = self._reduce in (None, "raw")
            some = regions or NOTHING
            history.checkpoint(save, some, copy=not plain, tier="disk" if plain else None).wait("disk")
        if agreed is not None and agreed.coordinator != self._rank:
            self._commit(store, current, NOTHING)
        future: Future[list[WriteResult]] = Future()
        future.set_result(
            [
                WriteResult(
                    item.index, regions[region_of(item.index)].nbytes, Place(self._rank, save, region_of(item.index))
                )
                for item in plan.items
            ]
        )
        return future

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the metadata: from now on the checkpoint is there, and takes the place of one of its identifier.

        Raises
        ------
        InvalidType
            The planner has put objects into the metadata that a `Reader` would refuse.
        """
        store, save = self._opened(), self._saves[threading.current_thread()]
        history, key = store.history(save.metadata), save.key
        places = {result.index: result.storage_data for each in results for result in each}
        metadata.storage_data = places
        metadata.storage_meta = self.storage_meta()
        saves = sorted({place.save for place in places.values()})
        regions = {"metadata": packed(metadata)}
        if save.agreed is not None:  # first: a load from the disk must not find what the archive will never have
            self._commit(store, save, regions)
        history.checkpoint(key, regions, meta={"saves": saves}, tier="disk").wait("disk")
        if save.metadata == LOCAL:
            store.history(METADATA).drop(key)  # a reader would prefer them
        if self._keep is not None:
            history.retain(last=self._keep)

    def storage_meta(self) -> StorageMeta:
        """The identifier."""
        return StorageMeta(checkpoint_id=self._own_key())

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this can be the identifier of a checkpoint: any text."""
        return isinstance(checkpoint_id, (str, os.PathLike)) and bool(os.fspath(checkpoint_id))

    def close(self) -> None:
        """Closes the store; a later save opens it again."""
        if self._store is not None:
            self._store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the store; after an error it does not wait for other ranks, which may not come."""
        if self._store is not None:
            self._store.__exit__(kind, error, trace)

    @staticmethod
    def _commit(store: Store, save: _Save, regions: Mapping[str, Any]) -> None:
        """Says for the archive that this rank's part of a save is durable."""
        assert save.agreed is not None
        history, meta = store.history(COMMITS), save.agreed.commit(save.key)
        history.checkpoint(save.agreed.save, regions, meta=meta, tier="disk").wait("disk")

    def _own_key(self) -> str:
        """Key of the checkpoint that the calling thread saves."""
        save = self._saves.get(threading.current_thread())
        return self._key if save is None else save.key

    def _opened(self) -> Store:
        if self._store is None:
            raise InvalidArgument("the writer has not been set up: use dcp.save(…, storage_writer=writer).")
        return self._store

    def _drop_unneeded(self, store: Store, told: Any) -> None:
        """Drops saves of this rank that the metadata of no checkpoint names.

        A rank whose directory is not that of the coordinator sees no metadata there: it drops by the coordinator's
        message alone.
        """
        old = self._saves[threading.current_thread()].old
        if not old:
            return
        needed = self._needed(store)
        if isinstance(told, Needed) and told.token != self._token:
            self._token = told.token
            needed = {*told.saves, *(needed or ())}
        if needed is not None:
            for save in old:
                if save not in needed:
                    if self._together is not None:
                        store.history(COMMITS).drop(save)
                    store.history(DATA).drop(save)
        if self._together is not None:  # of a process that died between the two
            data, commits = store.history(DATA), store.history(COMMITS)
            for save in [str(save) for save in commits if save not in data]:
                commits.drop(save)

    def _needed(self, own: Store) -> set[str] | None:
        """The saves that metadata at any rank in this rank's directory name; None: there are no metadata."""
        found = _saves_in(own)
        for rank in ranks_of(self._path):
            if rank != self._rank:
                try:
                    with velocpy.open(directory_of(self._path, rank), mode="r", host="1MiB") as store:
                        more = _saves_in(store)
                except NotAStore:  # that rank is about to make its store
                    continue
                if more is not None:
                    found = more | (found or set())
        return found


def _own_rank() -> int:
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def _saves_in(store: Store) -> set[str] | None:
    found = [history for history in store.histories if history.name in (METADATA, LOCAL)]
    if not found:
        return None
    return {save for history in found for key in history for save in (history.meta(key) or {}).get("saves", ())}


def _current_device() -> int | None:
    """The device that is current in this thread, if the process uses it."""
    used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    device = torch.cuda.current_device() if used else None
    return device if device is not None and _in_use(device) else None


def _in_use(device: int) -> bool:
    """Whether this process has a context on a device: a store must not make one, which takes half a GiB there."""
    used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return used and bool(torch._C._cuda_hasPrimaryContext(device))


def _region(item: WriteItem, planner: SavePlanner, device: int | None) -> Any:
    """What is written for an item: a tensor, on the host where it lies on another device, or bytes of an object."""
    data = planner.resolve_data(item)
    if isinstance(data, io.BytesIO):
        return np.frombuffer(data.getbuffer(), np.uint8)
    data = data.detach()
    return data if data.device.type == "cuda" and data.device.index == device else data.cpu()
