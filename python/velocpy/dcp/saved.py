"""Checkpoints that a `Writer` has saved: in the stores of ranks, or in an archive that has the parts of all ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import velocpy
from velocpy.archive import buckets
from velocpy.archive.names import part
from velocpy.choices import Size
from velocpy.errors import NotAStore
from velocpy.history import Checkpoints
from velocpy.store import Store

from .layout import COMMITS, DATA, LOCAL, METADATA, directory_of, ranks_of


class Saved(Protocol):
    """Checkpoints of a `Writer`, as they were when they were first asked for."""

    @property
    def stores(self) -> list[Store]:
        """Those that are open."""

    def data(self, rank: int) -> Checkpoints:
        """The tensors of a rank, by the names of saves."""

    def metadata(self, key: str, rank: int | None) -> bytes | None:
        """The packed metadata of a checkpoint; with a rank, those that it saved by itself. None: there are none."""

    def keys(self, *, by_itself: bool) -> Iterator[str]:
        """Identifiers of the checkpoints that are complete, or of those of which a rank saved its part by itself."""

    def close(self) -> None:
        """Closes the stores; a later call opens them again."""


def saved_at(path: str | os.PathLike[str], host: Size | None) -> Saved:
    """The checkpoints that a path names: a directory with the stores of ranks, or an archive."""
    if buckets.is_place(path):
        return Archive(os.fspath(path), host)
    directory = Path(path)
    if not ranks_of(directory) and (directory / "velocpy.store").exists():
        return Archive(directory, host)
    return Directory(directory, host)


class Directory:
    """The stores of ranks, each in a directory of its own."""

    def __init__(self, path: Path, host: Size | None) -> None:
        self._path, self._host = path, host
        self._stores: dict[int, Store] = {}

    @property
    def stores(self) -> list[Store]:
        """Those that are open."""
        return list(self._stores.values())

    def data(self, rank: int) -> Checkpoints:
        """The tensors of a rank."""
        return self._store(rank).history(DATA)

    def metadata(self, key: str, rank: int | None) -> bytes | None:
        """Those at the rank that was the coordinator, or at the rank that saved them by itself."""
        ranks = ranks_of(self._path)
        for each in ranks if rank is None else [rank] if rank in ranks else []:
            history = self._history(each, METADATA if rank is None else LOCAL)
            if history is not None and key in history:
                return _packed(history, key)
        return None

    def keys(self, *, by_itself: bool) -> Iterator[str]:
        """Rank by rank."""
        for rank in ranks_of(self._path):
            yield from map(str, self._history(rank, LOCAL if by_itself else METADATA) or ())

    def close(self) -> None:
        """Closes the stores."""
        stores, self._stores = self.stores, {}
        for store in stores:
            store.close()

    def _history(self, rank: int, name: str) -> Checkpoints | None:
        """A history of a rank's store; None: it is about to make the store."""
        try:
            return self._store(rank).history(name)
        except NotAStore:
            return None

    def _store(self, rank: int) -> Store:
        if rank not in self._stores:
            self._stores[rank] = velocpy.open(directory_of(self._path, rank), mode="r", host=self._host)
        return self._stores[rank]


class Archive:
    """An archive. A save counts if the tensors of all ranks that have committed it are there."""

    def __init__(self, path: str | Path, host: Size | None) -> None:
        self._path, self._host = path, host
        self._store: Store | None = None

    @property
    def stores(self) -> list[Store]:
        """The archive, if it is open."""
        return [] if self._store is None else [self._store]

    def data(self, rank: int) -> Checkpoints:
        """The tensors of a rank."""
        return self._opened().history(part(DATA, rank))

    def metadata(self, key: str, rank: int | None) -> bytes | None:
        """Those of the latest save of this identifier, at the rank that was its coordinator."""
        if rank is not None:
            return None
        for save, checkpoint, coordinator in reversed(list(self._saves())):
            if checkpoint == key and self._is_whole(save):
                return _packed(self._opened().history(part(COMMITS, coordinator)), save)
        return None

    def keys(self, *, by_itself: bool) -> Iterator[str]:
        """In the order of their latest saves."""
        whole = [] if by_itself else [name for save, name, _ in self._saves() if self._is_whole(save)]
        latest = {name: at for at, name in enumerate(whole)}
        yield from sorted(latest, key=latest.__getitem__)

    def close(self) -> None:
        """Closes the archive."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _saves(self) -> Iterator[tuple[str, str, int]]:
        """The saves that rank 0 has committed, which every run has: name, identifier of the checkpoint, coordinator."""
        commits = self._opened().history(part(COMMITS, 0))
        for save in commits:
            told = commits.meta(save)
            checkpoint, coordinator = (
                (told.get(name) for name in ("checkpoint", "coordinator")) if told else (None, None)
            )
            if isinstance(checkpoint, str) and isinstance(coordinator, int):
                yield str(save), checkpoint, coordinator

    def _is_whole(self, save: str) -> bool:
        """Whether the tensors of all ranks are there that have committed a save.

        A push brings each key by itself: it leaves out tensors that are damaged on the disk of a rank, or that were
        freed meanwhile.
        """
        committed, there = (self._ranks(name, save) for name in (COMMITS, DATA))
        return committed is not None and committed == there

    def _ranks(self, history: str, save: str) -> list[int] | None:
        """The ranks of which the archive has a part of this key; None: it does not have the key."""
        keys = self._opened().history(history)
        if save not in keys:
            return None
        with keys.restore(save) as lease:
            ranks: list[int] = lease["ranks"].tolist()
        return ranks

    def _opened(self) -> Store:
        if self._store is None:
            self._store = velocpy.open(self._path, mode="r", host=self._host)
        return self._store


def _packed(history: Checkpoints, key: str) -> bytes:
    with history.restore(key) as lease:
        raw: bytes = lease["metadata"].tobytes()
    return raw
