"""Checkpoints by their markers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.fabric.plugins.io import TorchCheckpointIO

from velocpy.errors import CheckpointNotFound, NotAStore
from velocpy.opening import open as open_store
from velocpy.store import History, Store, stores

from .content import checkpoint_of, placement
from .marker import Marker, local_or_none

log = logging.getLogger("velocpy")

#: How many checkpoints an error lists.
_LISTED = 6


def load_checkpoint(
    path: str | os.PathLike[str], map_location: Any = None, weights_only: bool | None = None
) -> dict[str, Any]:
    """The checkpoint for which a file stands that `VelocCheckpointIO` wrote, in any process.

    Its arrays are the caller's own. Nothing is unpickled, whatever ``weights_only`` says. A file that ``torch.save``
    wrote is loaded by Lightning's TorchCheckpointIO. ``LightningModule.load_from_checkpoint`` asks no plugin, and reads
    files of torch alone: ``torch.save(load_checkpoint(path), other)`` makes one.

    Parameters
    ----------
    path
        The file, or a link to it. The store is found beside it as it was when the file was written, or else where it
        was then.
    map_location
        Where tensors are put: a device or its name, or as `velocpy.integrations.lightning.content.placement` says.
        None: on the CPU.
    weights_only
        For files that ``torch.save`` wrote.

    Raises
    ------
    CheckpointNotFound
        The checkpoint never became durable, as its process ended before, or was dropped. The text names those that are
        there.
    NotAStore
        The store is not where the file says.
    CorruptCheckpoint, FormatTooNew, TierIOError, AccessDenied
        The file or the checkpoint cannot be read.
    FileNotFoundError
        There is no file.
    """
    file = local_or_none(path)
    marker = None if file is None else Marker.read(file)
    if marker is None:
        where = {} if map_location is None else {"map_location": map_location}
        return TorchCheckpointIO().load_checkpoint(os.fspath(path), weights_only=weights_only, **where)
    place = placement(map_location)
    with _reading(marker, path) as history, history.restore(_present(marker, history, path)) as lease:
        return checkpoint_of(lease.tree, place)


def open_here(directory: Path) -> Store | None:
    """The store of a directory that is open for writing in this process, or None: it alone knows what is in memory."""
    for store in stores():
        if (
            store.path is not None
            and store.durable
            and not store._config["read_only"]
            and is_same(store.path, directory)
        ):
            return store
    return None


@contextmanager
def _reading(marker: Marker, path: Any) -> Iterator[History]:
    store = open_here(marker.store)
    if store is not None:
        yield store.history(marker.history)
        return
    try:
        store = open_store(marker.store, mode="r", host=None)
    except NotAStore as error:
        raise NotAStore(
            f"{path} stands for a checkpoint in the store {marker.store}, and no store is there. Move the store to "
            "where it was, or so that it lies to the file as it did."
        ) from error
    with store:
        yield store.history(marker.history)


def _present(marker: Marker, history: History, path: Any) -> str:
    """The key of the latest checkpoint that the file stands for."""
    found = next((key for key in marker.keys if key in history), None)
    if found is None:
        raise CheckpointNotFound(
            f"{path} stands for checkpoint {marker.key!r} of history {marker.history!r} in {marker.store}, and that is "
            "not there: its process ended before it was durable, or is still writing it, or it was dropped. "
            f"{_listing(history)}",
            history=marker.history,
            key=marker.key,
        )
    if found != marker.key:
        log.warning("%s: the latest checkpoint never became durable; the one before it, %r, is loaded", path, found)
    return found


def _listing(history: History) -> str:
    keys = list(history)
    if not keys:
        return "The history has no checkpoints."
    shown = ", ".join(repr(file_of(history, key)) for key in keys[-_LISTED:])
    return f"{len(keys)} are there; load by {'its file' if len(keys) == 1 else 'their files'}: {shown}."


def file_of(history: History, key: int | str) -> str:
    """The file that was written for a checkpoint, or else its key."""
    meta = history.meta(key)
    return str(meta["file"]) if isinstance(meta, dict) and "file" in meta else str(key)


def is_same(one: Path, other: Path) -> bool:
    """Whether both are one directory that is there."""
    try:
        return one.samefile(other)
    except OSError:
        return False
