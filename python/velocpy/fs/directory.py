"""The stores in one directory, as this process has them open."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from velocpy import node, paths
from velocpy.errors import (
    CheckpointDropped,
    CheckpointNotFound,
    ForeignDirectory,
    InvalidArgument,
    NotAStore,
    StoreClosed,
    StoreLocked,
)

from .entries import Entry, Kind, Names, meta_of
from .part import BYTES, MOST, Part, numbers_of

if TYPE_CHECKING:
    from velocpy.choices import Reduction, Size
    from velocpy.ticket import Ticket

Array = np.ndarray[Any, np.dtype[np.uint8]]

#: Host memory of a store that is only read.
_READERS_HOST = "64MiB"


class Options(NamedTuple):
    """How the stores of a directory are opened; None: as they are, or as usual."""

    host: Size | None = None
    disk: Size | None = None
    reduce: Reduction | None = None


class Change(NamedTuple):
    """A name, and what takes its place."""

    name: str
    kind: Kind
    data: Array | None = None


class Directory:
    """The stores in a directory: one that this process writes to, from its first write on, and those that it reads.

    Any thread may call anything.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._options = Options()
        #: Held while stores are opened, and while names change; not while bytes are moved.
        self._lock = threading.RLock()
        self._parts: dict[int, Part] = {}
        self._writer: Part | None = None
        self._names = Names()
        self._latest = 0

    def require(self, options: Options) -> None:
        """Takes over options.

        Raises
        ------
        InvalidArgument
            Stores are open with others.
        """
        with self._lock:
            merged = self._options
            for field, wanted in options._asdict().items():
                now = getattr(merged, field)
                if wanted is None or wanted == now:
                    continue
                if self._parts if field == "host" else self._writer:
                    said = "the usual one" if now is None else repr(now)
                    raise InvalidArgument(
                        f"{field} is {wanted!r}, and the stores in {str(self._path)!r} are open here with {said}. Give "
                        "the same options everywhere, or close the stores first: VelocFileSystem.close()."
                    )
                merged = merged._replace(**{field: wanted})
            self._options = merged

    def exists(self) -> bool:
        """Whether there is such a directory."""
        return self._path.is_dir()

    # --- names ---

    def names(self) -> Names:
        """The names that there are now, in all stores."""
        with self._lock:
            self._forget_removed()
            for number in numbers_of(self._path):
                if number in self._parts:
                    self._refresh(self._parts[number])
                else:
                    self._read(number)
            return self._names

    def _forget_removed(self) -> None:
        for part in [part for part in self._parts.values() if not part.is_there()]:
            part.abandon()
            self._forget(part)

    def _refresh(self, part: Part) -> None:
        try:
            self._update(part.refresh())
        except (InvalidArgument, NotAStore):  # its directory was removed, and maybe another one is there
            part.abandon()
            self._forget(part)
            self._read(part.number)

    def _forget(self, part: Part) -> None:
        del self._parts[part.number]
        if part is self._writer:
            self._writer = None
        self._update(part.entries)

    def _read(self, number: int) -> None:
        """Opens a store to read it, unless its writer is about to make it."""
        host = _READERS_HOST if self._options.host is None else self._options.host
        try:
            part = Part(self._path, number, reads=True, reduce=None, host=host)
        except NotAStore:
            return
        self._take(part)

    def _take(self, part: Part) -> None:
        self._parts[part.number] = part
        self._update(part.entries)

    def _update(self, names: Iterable[str]) -> None:
        """Looks anew which entries of these names count."""
        for name in names:
            said = [part.entries[name] for part in self._parts.values() if name in part.entries]
            latest = max(said, key=lambda entry: entry.order, default=None)
            self._names.put(name, latest)
            if latest is not None:
                self._latest = max(self._latest, latest.stamp)

    # --- bytes ---

    def read(self, name: str, entry: Entry, start: int, into: Array) -> None:
        """Reads bytes of a file; of the disk those leaves alone in which they lie.

        Raises
        ------
        CheckpointDropped
            The file is not the one of this entry any more.
        """
        if not into.size:
            return
        part = self._part(entry.number)
        try:
            if part is not None:
                part.history.restore(name, BYTES, into=into, parts=slice(start, start + into.size))
        except (CheckpointNotFound, CheckpointDropped, InvalidArgument):
            if self._has(part, name, entry):
                raise
        except StoreClosed:  # another thread has closed it, or opened it to write
            if self._part(entry.number) is part:
                raise
            self.read(name, entry, start, into)
            return
        if not self._has(part, name, entry):
            raise CheckpointDropped(
                f"the file {name!r} in {str(self._path)!r} was replaced or removed after it was opened. Open it again.",
                key=name,
            )

    def _part(self, number: int) -> Part | None:
        with self._lock:
            if number not in self._parts:
                self.names()
            return self._parts.get(number)

    @staticmethod
    def _has(part: Part | None, name: str, entry: Entry) -> bool:
        """Whether a store still has the file of an entry: captures of one name differ in their times."""
        try:
            return part is not None and part.history.captured(name) == entry.captured
        except CheckpointNotFound:
            return False

    # --- changes ---

    def write(self, changes: Iterable[Change], *, durable: bool = True) -> None:
        """Writes files, directories and marks; with ``durable`` they are on disk when it returns."""
        changes = tuple(changes)
        with contextlib.ExitStack() as stack:
            with self._lock:
                part = self._writing()
                stack.callback(self._reload, part, [change.name for change in changes])
                items = [self._item(change) for change in changes]
                # A borrowed source goes to the disk as it is: only what is in the host tier is reduced.
                reduced = self._options.reduce not in (None, "raw")
                tickets = part.history.checkpoint_many(items, copy=reduced, tier="disk")
            if durable:
                _wait(part, tickets)

    def _item(self, change: Change) -> tuple[str, dict[str, Array], dict[str, Any]]:
        """A checkpoint as `History.checkpoint_many` takes it, with a stamp behind all that are known here."""
        self._latest = max(time.time_ns(), self._latest + 1)
        size, regions = (0, {}) if change.data is None else (change.data.size, {BYTES: change.data})
        return change.name, regions, meta_of(change.kind, size, self._latest)

    def _reload(self, part: Part, names: Iterable[str]) -> None:
        with self._lock:
            self._update([name for name in names if part.load_entry(name)])

    def remove(self, names: Iterable[str]) -> None:
        """Removes files and directories, durably."""
        names = tuple(names)
        self.write([Change(name, "gone") for name in names])
        with self._lock:
            if self._writer is not None:
                self._drop_marks(self._writer, names)

    def _drop_marks(self, writer: Part, names: Iterable[str]) -> None:
        """Drops marks that hide nothing."""
        others = [part for part in self._parts.values() if part is not writer]
        for name in names:
            entry = writer.entries.get(name)
            if entry is not None and entry.kind == "gone" and not any(name in part.entries for part in others):
                writer.history.drop(name)
                del writer.entries[name]

    def _drop_hidden(self, writer: Part) -> None:
        """Drops what a later entry in another store hides."""
        for name, entry in list(writer.entries.items()):
            others = (part.entries.get(name) for part in self._parts.values() if part is not writer)
            if any(other is not None and other.order > entry.order for other in others):
                writer.history.drop(name)
                del writer.entries[name]

    def _writing(self) -> Part:
        """The store of this process, opened where it is not."""
        self.names()
        if self._writer is None:
            self._require_own()
            first = node.rank(os.environ) % MOST
            for offset in range(MOST):
                number = (first + offset) % MOST
                try:
                    self._writer = self._opened(number)
                except StoreLocked:
                    continue
                self._clean(self._writer)
                break
            else:
                raise StoreLocked(f"other processes have all stores in {str(self._path)!r} open to write.")
        return self._writer

    def _opened(self, number: int) -> Part:
        """Opens a store to write to it, in the place of one to read."""
        options = {key: value for key, value in self._options._asdict().items() if value is not None}
        part = Part(self._path, number, reads=False, **{"reduce": None, **options})
        reader = self._parts.get(number)
        if reader is not None:
            reader.close()
            self._forget(reader)
        self._take(part)
        return part

    def _clean(self, writer: Part) -> None:
        self._drop_hidden(writer)
        self._drop_marks(writer, list(writer.entries))

    def _require_own(self) -> None:
        """Refuses a directory that is a store of `velocpy.open`, or has files of others."""
        if not self._path.exists() or numbers_of(self._path):
            return
        if (self._path / "velocpy.store").exists():
            raise ForeignDirectory(
                f"the directory {str(self._path)!r} is a store of velocpy.open(), and those of a file system lie in "
                "a directory of their own. Nothing was changed. Name another directory that ends in .velocpy."
            )
        paths.require_own(self._path)

    # --- the end ---

    def sweep(self) -> None:
        """Frees what is removed or replaced, in all stores that no other process has open."""
        with self._lock:
            for _ in range(2):  # files first; then no store has what their marks hide
                for number in numbers_of(self._path):
                    self._sweep(number)
            self.names()

    def _sweep(self, number: int) -> None:
        self.names()  # what hides something, or is hidden, may be in any store
        if self._writer is not None and number == self._writer.number:
            self._clean(self._writer)
            return
        try:
            part = self._opened(number)
        except StoreLocked:
            return
        self._clean(part)
        part.close()
        self._forget(part)

    def sync(self) -> None:
        """Waits until everything written here is durable."""
        with self._lock:
            writer = self._writer
        if writer is not None:
            writer.store.wait("disk")

    def close(self) -> None:
        """Closes the stores, that which is written to first; a later call opens them again."""
        with self._lock, contextlib.ExitStack() as stack:
            for part in sorted(self._parts.values(), key=lambda part: not part.reads):  # called in the reverse order
                stack.callback(part.close if part.is_there() else part.abandon)
            self._parts, self._writer, self._names = {}, None, Names()

    def renew_lock(self) -> None:
        """Makes a lock that no thread holds; after a fork the threads of the parent are gone."""
        self._lock = threading.RLock()


def _wait(part: Part, tickets: Iterable[Ticket]) -> None:
    """Waits until checkpoints are durable, or others that another thread has put in their places."""
    for ticket in tickets:
        try:
            ticket.wait("disk")
        except CheckpointDropped:
            part.history.wait("disk")


_directories: dict[str, Directory] = {}


def directory_at(path: str, options: Options) -> Directory:
    """The stores of a directory: the same ones for everything in this process."""
    directory = _directories.setdefault(path, Directory(path))
    directory.require(options)
    return directory


def sync_all() -> None:
    """Waits until everything that file systems of this process have written is durable."""
    for directory in list(_directories.values()):
        directory.sync()


def close_all() -> None:
    """Closes all stores that file systems of this process have opened."""
    with contextlib.ExitStack() as stack:
        for directory in list(_directories.values()):
            stack.callback(directory.close)


def _renew_locks() -> None:
    for directory in _directories.values():
        directory.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)
