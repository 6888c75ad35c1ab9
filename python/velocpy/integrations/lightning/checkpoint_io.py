"""Checkpoints of a Lightning Trainer in a store."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightning.fabric.plugins.io import CheckpointIO, TorchCheckpointIO

from velocpy.budget import reads_as_size
from velocpy.choices import DeviceBudgets, Reduction, Size
from velocpy.errors import InvalidArgument, InvalidType, VelocError
from velocpy.opening import open as open_store
from velocpy.replacing import sync_directory
from velocpy.store import History, Store
from velocpy.ticket import Ticket

from .content import tree_of
from .loading import is_same, load_checkpoint
from .marker import Marker, local, local_or_none
from .removals import Removal, Removals, identity

log = logging.getLogger("velocpy")


class VelocCheckpointIO(CheckpointIO):
    """A plugin of a Trainer that keeps its checkpoints in a store: ``Trainer(plugins=[VelocCheckpointIO("store")])``.

    ``save_checkpoint`` returns once the checkpoint is captured in memory; the store writes it to the disk while the
    training goes on. Where Lightning expects the file of a checkpoint there is a marker: a small file that names the
    store and the checkpoint in it. A ``ModelCheckpoint``, ``ckpt_path="best"`` and ``ckpt_path="last"`` work with
    markers as with files of torch. Files that ``torch.save`` wrote are still loaded.

    **After a crash** there is a checkpoint that can be loaded, once the first one was durable:

    - ``remove_checkpoint`` waits: it removes nothing until every checkpoint that was saved by then, and stays, is
      durable. The removal is carried out by a later call that finds them durable, at the latest by `teardown`. Until
      then marker and data are both there.
    - Then the marker goes first, and the data after it. So a marker that is there has its data, unless they never
      became durable. A crash between the two leaves data without a marker.
    - A marker is written behind the capture, as a file of its own that takes the name of the marker. One that replaces
      another marker, as ``last.ckpt`` does, names the former checkpoint too: that one is loaded, with a warning in the
      log, if the new one never became durable. A file of torch is replaced when the new checkpoint is durable.
    - A marker without data is an error of `load_checkpoint`, which names the checkpoints that are there. Those whose
      removal still waited are there, too.

    A store that cannot make a checkpoint durable raises the error from the next ``save_checkpoint``, which has captured
    its own checkpoint by then, or from `teardown`.

    Nothing is pickled. A checkpoint consists of tensors, arrays, dicts with str and int as keys, lists, tuples, sets,
    numbers, texts, None, paths, and a few types of torch. Mappings of other types come back as dicts. Anything else, in
    ``hyper_parameters`` say, is an error that names the entry. Numbers and texts take 256 KiB at most; arrays are not
    limited.

    For strategies that save one file. FSDP, ModelParallel and DeepSpeed strategies read and write their files
    themselves, and do not load a marker; strategies that start processes from the one that runs (``ddp_spawn``) are not
    supported. ``LightningModule.load_from_checkpoint`` reads no markers: see `load_checkpoint`. Calls come from one
    thread at a time.

    Parameters
    ----------
    path
        Directory of a store of the plugin's own. It is opened by the first save, closed by `teardown`, which the
        Trainer calls at the end of ``fit()``, and opened again by the next save. A save after that, as by
        ``trainer.save_checkpoint()``, leaves it open until `teardown` is called or Python ends.
    store
        A store that is open, in place of ``path``, and stays so. It has to outlive the process.
    device, host, disk
        As for `velocpy.open`, of a store of its own. The disk has to hold twice what stays.
    history
        Name of the history in the store.
    reduce
        How checkpoints become smaller, as for `velocpy.Store.history`.

    Examples
    --------
    >>> import tempfile, torch
    >>> from pathlib import Path
    >>> from velocpy.integrations.lightning import VelocCheckpointIO
    >>> with tempfile.TemporaryDirectory() as path:
    ...     io = VelocCheckpointIO(path + "/store", host="16MiB", disk="64MiB")
    ...     # Trainer(plugins=[io], callbacks=[ModelCheckpoint(path)]).fit(model, data)
    ...     io.save_checkpoint({"epoch": 3, "state_dict": {"weight": torch.ones(2)}}, path + "/a.ckpt")
    ...     io.teardown()
    ...     print(io.load_checkpoint(path + "/a.ckpt"), Path(path, "a.ckpt").stat().st_size < 1000)
    {'epoch': 3, 'state_dict': {'weight': tensor([1., 1.])}} True
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        store: Store | None = None,
        device: DeviceBudgets | None = None,
        host: Size | None = "auto",
        disk: Size | None = "auto",
        history: str = "lightning",
        reduce: Reduction | None = None,
    ) -> None:
        if (path is None) == (store is None):
            raise InvalidArgument("VelocCheckpointIO needs either path=, the directory of a store, or store=.")
        if store is not None and not store.durable:
            raise InvalidArgument("the store does not outlive the process: open it with a path and a disk tier.")
        self._path = _absolute(path)
        self._store = store
        self._budgets: dict[str, Any] = {"device": device, "host": host, "disk": disk}
        self._name = history
        self._reduce: Reduction | None = reduce
        self._history: History | None = None
        self._removals = Removals()

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any | None = None
    ) -> None:
        """Captures a checkpoint and writes its marker.

        Raises
        ------
        InvalidType, InvalidArgument
            Names the entry that cannot be saved. Nothing was saved.
        TierFull, TierIOError, DurabilityLost
            The checkpoint does not fit, or the marker cannot be written: nothing was saved. Or an earlier checkpoint
            cannot become durable.
        """
        if storage_options is not None:
            raise InvalidType("VelocCheckpointIO takes no storage_options.")
        file = local(path)
        history = self._opened()
        failures = self._settle()
        key = f"{file.name}@{secrets.token_hex(6)}"
        ticket = history.checkpoint(key, tree_of(checkpoint), meta=_meta(checkpoint, file, history))
        try:
            self._mark(file, history, ticket)
        except BaseException:
            history.drop(key)
            raise
        failures += self._settle()
        _raise(failures)

    def load_checkpoint(
        self, path: str | os.PathLike[str], map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """As `velocpy.integrations.lightning.load_checkpoint`: from any store that a marker names."""
        return load_checkpoint(path, map_location, weights_only)

    def remove_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Notes that a checkpoint is to be removed, and carries out the removals that are due.

        Of a marker that names another store or history, the file alone is removed.
        """
        file = local_or_none(path)
        self._removals.ask(path, identity(file), () if file is None else self._stored(file))
        _raise(self._settle())

    def teardown(self) -> None:
        """Waits until all checkpoints that stay are durable, carries out the removals, and closes a store of its own.

        Raises
        ------
        TierFull, TierIOError, DurabilityLost
            A checkpoint cannot become durable. Removals that waited for it are not carried out.
        """
        failures: list[VelocError] = []
        try:
            failures += self._removals.wait()
            failures += self._settle()
        finally:
            if self._path is not None:
                self._close()
        _raise(failures)

    def _close(self) -> None:
        """Closes the store of its own; the next save opens it again."""
        store, self._store, self._history = self._store, None, None
        self._removals = Removals()
        if store is not None:
            store.close()

    def _opened(self) -> History:
        """The history, of a store of its own that is opened if need be."""
        if self._history is None or self._history.store.closed:
            if self._store is None or (self._path is not None and self._store.closed):
                self._store = open_store(self._path, verify="first", **self._budgets)
            self._history = self._store.history(self._name, reduce=self._reduce)
        return self._history

    def _mark(self, file: Path, history: History, ticket: Ticket) -> None:
        """Writes the marker of a new checkpoint; the checkpoints of the marker that it replaces are to be removed."""
        before = self._before(file, history)
        if not before and file.is_file() and not file.is_symlink() and Marker.read(file) is None:
            ticket.wait("disk")
        Marker(_directory(history.store), history.name, str(ticket.key), before).write(file)
        self._removals.saved(ticket)
        if before:
            self._removals.ask(None, None, before)

    def _before(self, file: Path, history: History) -> tuple[str, ...]:
        """Keys of the checkpoints for which a file stands, up to the first one that is durable."""
        found: list[str] = []
        for key in self._stored(file):
            if key in history:
                found.append(key)
                if self._removals.is_durable(key):
                    break
        return tuple(found)

    def _stored(self, file: Path) -> tuple[str, ...]:
        """Keys of the checkpoints for which a file stands, if they are in the history of this plugin."""
        marker = None if file.is_symlink() else Marker.read(file)
        if marker is None:
            return ()
        directory = self._path if self._store is None else self._store.path
        here = marker.history == self._name and directory is not None and is_same(marker.store, Path(directory))
        return marker.keys if here else ()

    def _settle(self) -> list[VelocError]:
        """Carries out the removals that are due. Returns why checkpoints will never be durable."""
        failures = self._removals.look()
        for removal in self._removals.take_due():
            self._remove(removal)
        return failures

    def _remove(self, removal: Removal) -> None:
        """Removes the file, if it is still the one that was meant, and then the data."""
        file = None if removal.path is None else local_or_none(removal.path)
        if removal.path is not None and identity(file) == removal.identity:
            TorchCheckpointIO().remove_checkpoint(removal.path)
            if file is not None:
                with suppress(FileNotFoundError):
                    sync_directory(file.parent)
        for key in removal.keys:
            self._opened().drop(key)


def _meta(checkpoint: dict[str, Any], file: Path, history: History) -> dict[str, Any]:
    """What is told of a checkpoint beside its content."""
    numbers = {name: checkpoint.get(name) for name in ("epoch", "global_step")}
    place = os.path.relpath(file, _directory(history.store))
    return {"file": place, **{name: number for name, number in numbers.items() if type(number) is int}}


def _absolute(path: str | os.PathLike[str] | None) -> str | os.PathLike[str] | None:
    """The directory from the root, as the process may change its own; what names none is refused when it is opened."""
    if path is None or path == "" or reads_as_size(os.fspath(path)):
        return path
    return Path(path).absolute()


def _directory(store: Store) -> Path:
    if store.path is None:  # a durable store has one
        raise InvalidArgument("the store has no directory.")
    return store.path.resolve()


def _raise(failures: list[VelocError]) -> None:
    if failures:
        raise failures[0]
