"""One of the stores in a directory, and what it says of names."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import velocpy
from velocpy import paths
from velocpy.errors import CheckpointDropped, VelocError
from velocpy.store import Store, log

from .entries import Entry, entry_of

if TYPE_CHECKING:
    from velocpy.choices import Reduction

FILES = "files"

#: The only region of a file.
BYTES = "bytes"

#: For so long after a change a store is read anew each time: the change may still be on its way to the disk, and the
#: next one may leave the same time.
_RECENT_NS = 5_000_000_000

#: Numbers that name a store.
MOST = 100_000

#: How often a store is read whose writer drops or replaces files meanwhile.
_TRIES = 100


def directory_of(path: Path, number: int) -> Path:
    """The directory of the store with this number."""
    return paths.numbered(path, "writer", number)


def numbers_of(path: Path) -> list[int]:
    """The numbers of the stores that there are, ascending."""
    return paths.numbers(path, "writer")


class Part:
    """One store, open to write or to read."""

    def __init__(self, path: Path, number: int, *, reads: bool, reduce: Reduction | None, **budgets: Any) -> None:
        self.number = number
        self.reads = reads
        self.path = directory_of(path, number)
        self._seen = _signature(self.path)
        self._settled = _settled(self._seen)
        self.store: Store = velocpy.open(self.path, mode="r" if reads else "a", **budgets)
        self.entries: dict[str, Entry] = {}
        try:
            self.history = self.store.history(FILES, reduce=None if reads else reduce)
            self.load()
        except BaseException:
            self.store.close()
            raise

    def load(self) -> set[str]:
        """Reads anew what has changed; gives its names.

        Raises
        ------
        CheckpointDropped
            The writer of the store has dropped or replaced files again and again meanwhile.
        """
        changed: set[str] = set()
        tries = 1
        while True:
            try:
                self._load(changed)
            except CheckpointDropped:
                if not self.reads or tries == _TRIES:
                    raise
                tries += 1
                self.store.refresh()  # the file may have a new version: it must not be taken for a removed one
            else:
                return changed

    def _load(self, changed: set[str]) -> None:
        """Reads anew what has changed, and adds its names, also where it fails."""
        names = {key for key in self.history if isinstance(key, str)}
        for name in [name for name in self.entries if name not in names]:
            del self.entries[name]
            changed.add(name)
        for name in names:
            if self.load_entry(name):
                changed.add(name)

    def load_entry(self, name: str) -> bool:
        """Reads the entry of a name; tells whether it has changed."""
        before = self.entries.get(name)
        try:
            captured = self.history.captured(name)
            if before is not None and before.captured == captured:
                return False
            now = entry_of(self.history.meta(name), self.number, captured)
        except KeyError:
            now = None
        if now is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = now
        return now != before

    def refresh(self) -> set[str]:
        """Takes over what the writer of this store has written since; gives the names that have changed."""
        now = _signature(self.path)
        if not self.reads or (now == self._seen and self._settled):
            return set()
        settled = _settled(now)
        self.store.refresh()
        self._seen, self._settled = now, settled
        return self.load()

    def is_there(self) -> bool:
        """Whether its directory is there by its name."""
        return self.path.is_dir()

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

    def abandon(self) -> None:
        """Closes a store whose directory was removed: nothing there can become durable."""
        try:
            self.store.close(flush=False)
        except VelocError:
            log.warning("%r was removed while it was open", str(self.path))


def _signature(path: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever the writer of a store commits: small commits change a data file alone.

    The files are opened, since network file systems compare what they have cached with the server then.
    """
    found = []
    try:
        for name in sorted(os.listdir(path)):  # noqa: PTH208
            if name.startswith(("catalog-", "data-")):
                with (path / name).open("rb") as file:
                    status = os.fstat(file.fileno())
                found.append((name, status.st_size, status.st_mtime_ns))
    except FileNotFoundError:
        return ()
    return tuple(found)


def _settled(signature: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether the last change is complete, and the next one will have another time."""
    return all(abs(time.time_ns() - changed) > _RECENT_NS for _, _, changed in signature)
