"""Where metrics come from: the stores of this process, which are held weakly and read when somebody scrapes."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence

from velocpy.errors import VelocError
from velocpy.store import Store, stores

from .families import Reading, readings

#: Values of one family, each with the values of its labels, the store's first.
Values = list[tuple[tuple[str, ...], float]]

#: Seconds for which what was read serves those families that have not been asked for since.
_FRESH = 1.0


class Source:
    """Reads the figures of stores; any thread may call anything."""

    def __init__(self, chosen: Sequence[Store], histories: bool) -> None:
        self._chosen = [weakref.ref(store) for store in chosen] if chosen else None
        self._histories = histories
        self._lock = threading.Lock()
        self._read: dict[str, Values] = {}
        self._served: set[str] = set()
        self._at = float("-inf")

    def read(self) -> dict[str, Values]:
        """The values of all families now. A store that is closed, or has failed, has none."""
        found: dict[str, Values] = {}
        for store in self._stores():
            try:
                stats = store.stats()
            except VelocError:  # closed meanwhile, or failed: its own calls tell
                continue
            name = _name(store)
            for family, labels, value in (_info(store), *readings(stats, self._histories)):
                found.setdefault(family, []).append(((name, *map(_printable, labels)), value))
        return found

    def values(self, family: str) -> Values:
        """The values of one family. A collection that asks for one after the other reads the stores once.

        A family that is asked for again begins another collection.
        """
        with self._lock:
            if family in self._served or time.monotonic() - self._at > _FRESH:
                self._read, self._at = self.read(), time.monotonic()
                self._served.clear()
            self._served.add(family)
            return self._read.get(family, [])

    def _stores(self) -> Sequence[Store]:
        if self._chosen is None:
            return stores()
        return [store for each in self._chosen if (store := each()) is not None and not store.closed]


def _name(store: Store) -> str:
    """What tells a store from the others of this process. One process at a time writes to a durable one."""
    if store.durable and not store._config["read_only"]:
        return _printable(str(store.path))
    return str(store._turn)


def _info(store: Store) -> Reading:
    path = str(store.path) if store.durable else ""
    return "store.info", (path, "r" if store._config["read_only"] else "a"), 1


def _printable(text: str) -> str:
    """A text without lone surrogates: expositions are UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
