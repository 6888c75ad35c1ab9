"""What the stores of a directory say of names, and what is there when all of them have spoken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from .location import parent

#: "gone" hides entries of the same name in other stores.
Kind = Literal["file", "directory", "gone"]


@dataclass(frozen=True)
class Entry:
    """What one store says of a name."""

    kind: Kind
    #: Bytes of a file.
    size: int
    #: When it was written, in nanoseconds since 1970, and later than every entry that its writer saw.
    stamp: int
    #: The store's number.
    number: int
    #: When the core captured the checkpoint: tells whether the store still has this one.
    captured: datetime | None

    @property
    def order(self) -> tuple[int, int]:
        """The entry with the greatest order counts."""
        return self.stamp, self.number


def meta_of(kind: Kind, size: int, stamp: int) -> dict[str, Any]:
    """The meta of an entry's checkpoint."""
    return {"type": kind, "size": size, "created": stamp}


def entry_of(meta: Any, number: int, captured: datetime | None) -> Entry | None:
    """The entry that a checkpoint's meta tells of; None: this package did not write it."""
    if not isinstance(meta, dict) or meta.get("type") not in get_args(Kind):
        return None
    size, stamp = meta.get("size"), meta.get("created")
    if not isinstance(size, int) or not isinstance(stamp, int):
        return None
    return Entry(meta["type"], size, stamp, number, captured)


class Names:
    """The files and directories that are there, by name.

    Examples
    --------
    >>> names = Names()
    >>> names.put("a/b", Entry("file", 3, 1, 0, None))
    >>> names.is_directory("a"), list(names.children("a")), names.is_directory("a/b")
    (True, ['b'], False)
    >>> names.put("a/b", None)
    >>> names.is_directory("a")
    False
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        #: Of each directory its children, and how many entries there are at or below each of them.
        self._children: dict[str, dict[str, int]] = {"": {}}

    def get(self, name: str) -> Entry | None:
        """The entry of a file, or of a directory that was made; None of one that its files imply."""
        return self._entries.get(name)

    def put(self, name: str, entry: Entry | None) -> None:
        """Replaces the entry of a name; None or "gone" removes it."""
        before = self._entries.pop(name, None)
        now = None if entry is None or entry.kind == "gone" else entry
        if now is not None:
            self._entries[name] = now
        if (before is None) != (now is None):
            self._count(name, 1 if before is None else -1)

    def _count(self, name: str, more: int) -> None:
        while name:
            above = parent(name)
            children = self._children.setdefault(above, {})
            child = name[len(above) + 1 :] if above else name
            children[child] = children.get(child, 0) + more
            if not children[child]:
                del children[child]
            if not children and above:
                del self._children[above]
            name = above

    def is_file(self, name: str) -> bool:
        """Whether there is a file of this name."""
        entry = self._entries.get(name)
        return entry is not None and entry.kind == "file"

    def is_directory(self, name: str) -> bool:
        """Whether there is a directory of this name."""
        if self.is_file(name):
            return False
        return name in self._children or name in self._entries

    def children(self, name: str) -> Iterator[str]:
        """The last parts of the names in a directory, in their order."""
        return iter(sorted(self._children.get(name, ())))
