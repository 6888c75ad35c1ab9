"""What may be found in a store after its process died, told by a file that it wrote to before and after each operation.

A line is a JSON list: what, the number of the operation, and more. One that is none was cut by the kill: what it tells
had not begun. The file only grows, so that it can be read while it is written.

========  ===========================================================================
open      a store is about to be opened: its options
put       a checkpoint is about to be taken: history, key, sizes of its regions
ack       it is durable
refused   it raised, and was never begun
drop      a checkpoint is about to be dropped: history, key
clear     a history is about to be cleared: history
closed    the store was closed, and had waited for all that it was given
found     what a store that was opened had: lists of history, key, operation
========  ===========================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

Place = tuple[str, "int | str"]
#: Bytes of the largest region.
LARGEST = 3 << 20


class Oracle:
    """For each place the operations of which one is what it holds: the first is acknowledged, the others are begun."""

    def __init__(self) -> None:
        self.operation = 0
        self.sizes: dict[int, list[int]] = {}  # of the regions of each version
        self._states: dict[Place, list[int]] = {}  # negative: what drops left, nothing
        self._drops: list[tuple[int, Place]] = []  # that are not known to be durable
        self._places: dict[int, Place] = {}

    @classmethod
    def read(cls, path: Path) -> Oracle:
        oracle = cls()
        whole, _, _ = path.read_bytes().rpartition(b"\n")  # behind it somebody may be writing
        for line in whole.splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                oracle.hear(*json.loads(line))
        return oracle

    def states(self, place: Place) -> list[int]:
        """The operations of which one is what the place holds; 0 and below: nothing."""
        return self._states.get(place, [0])

    def places(self) -> list[Place]:
        return list(self._states)

    def hear(self, what: str, operation: int, *more: Any) -> None:
        self.operation = max(self.operation, operation)
        getattr(self, f"_{what}")(operation, *more)

    def _open(self, operation: int, options: dict[str, Any]) -> None:
        pass

    def _put(self, operation: int, history: str, key: int | str, sizes: list[int]) -> None:
        place = (history, key)
        self.sizes[operation] = sizes
        self._places[operation] = place
        self._states.setdefault(place, [0]).append(operation)

    def _refused(self, operation: int) -> None:
        self._states[self._places[operation]].remove(operation)

    def _drop(self, operation: int, history: str, key: int | str) -> None:
        place = (history, key)
        self._states.setdefault(place, [0]).append(-operation)
        self._drops.append((operation, place))

    def _clear(self, operation: int, history: str) -> None:
        for place in self._states:
            if place[0] == history:
                self._drop(operation, *place)

    def _ack(self, operation: int) -> None:
        self._settle(self._places[operation], operation)
        while (
            self._drops and self._drops[0][0] < operation
        ):  # what was dropped before the checkpoint began is so for ever
            before, place = self._drops.pop(0)
            self._settle(place, -before)

    def _settle(self, place: Place, state: int) -> None:
        states = self._states[place]
        if state in states:
            del states[: states.index(state)]

    def _closed(self, operation: int) -> None:
        for states in self._states.values():
            del states[:-1]
        self._drops.clear()

    def _found(self, operation: int, found: list[tuple[str, int | str, int]]) -> None:
        self._states = {(history, key): [held] for history, key, held in found}
        self._drops.clear()
        held = {state for (state,) in self._states.values()}
        self.sizes = {each: sizes for each, sizes in self.sizes.items() if each in held}
        self._places = {each: place for each, place in self._places.items() if each in held}


class Teller:
    """Writes to an oracle's file, and keeps the oracle."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if path.read_bytes()[-1:] not in (b"", b"\n"):
            os.write(self._file, b"\n")  # the last line was cut
        self.oracle = Oracle.read(path)

    def say(self, what: str, *more: Any, operation: int | None = None) -> int:
        """Gives the number of the operation: a new one, where none is named."""
        number = self.oracle.operation + 1 if operation is None else operation
        line = json.dumps([what, number, *more]) + "\n"
        assert os.write(self._file, line.encode()) == len(line)
        self.oracle.hear(what, number, *more)
        return number


class Contents:
    """What versions hold: for every operation, and every region of it, other bytes."""

    def __init__(self) -> None:
        self._noise = np.random.default_rng(4).integers(0, 256, LARGEST + 8192, dtype=np.uint8)

    def region(self, operation: int, number: int, size: int) -> np.ndarray[Any, Any]:
        begin = (operation * 61 + number * 7) % 8191
        return self._noise[begin : begin + size] + np.uint8(operation >> 4 & 0xFF)

    def regions(self, operation: int, sizes: list[int]) -> dict[str, np.ndarray[Any, Any]]:
        return {f"r{number}": self.region(operation, number, size) for number, size in enumerate(sizes)}

    @staticmethod
    def meta(operation: int, sizes: list[int]) -> dict[str, Any]:
        """What it is; now and then a long one: catalogs of several MiB come from that."""
        return {
            "operation": operation,
            "sizes": sizes,
            "pad": "x" * (50_000 if operation % 37 == 0 else operation % 50),
        }

    def require(self, lease: Any, operation: int, sizes: list[int]) -> None:
        """What is there is that version, whole, to the last bit."""
        assert lease.meta == self.meta(operation, sizes), (operation, lease.meta)
        wanted = self.regions(operation, sizes)
        assert list(lease) == list(wanted), (operation, list(lease))
        for name, array in wanted.items():
            found = np.asarray(lease[name])
            assert found.dtype == array.dtype, (operation, name)
            assert found.shape == array.shape, (operation, name, found.shape)
            assert np.array_equal(found, array), (operation, name, np.flatnonzero(found != array)[:4])


def verify(store: Any, oracle: Oracle, contents: Contents) -> list[tuple[str, int | str, int]]:
    """A store that was just opened has of every place what the oracle allows, bit by bit; gives what that is."""
    found = []
    for history in store.histories:
        for key in history:
            place = (history.name, key)
            with history.restore(key) as lease:
                operation = lease.meta["operation"]
                assert operation in oracle.states(place), f"{place} has {operation}; allowed are {oracle.states(place)}"
                contents.require(lease, operation, oracle.sizes[operation])
            found.append((history.name, key, operation))
    seen = {(history, key) for history, key, _ in found}
    for place in oracle.places():
        if place not in seen:
            assert min(oracle.states(place)) <= 0, f"{place} has nothing; allowed are {oracle.states(place)}"
    return found
