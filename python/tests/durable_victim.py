"""A process that works on a durable store until it is killed, and tells an oracle before and after whatever it does.

As a program: ``durable_victim.py STORE ORACLE SEED``. Before it opens the store it writes a line to its output. What a
process before it has left has to be what the oracle allows. It ends by itself only with an error.
"""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path
from typing import Any

from oracle import LARGEST, Contents, Place, Teller, verify
from tuned import tuned

import velocpy

KEYS: list[int | str] = [*range(10), -1, (1 << 62) + 3, "", "\0", "ü/…", "a"]
HISTORIES = ["run", "", "other\n"]
MIB = 1 << 20
#: Disk budgets, and the bytes that live at once: far less, as what is replaced stays until the new version is durable.
LIVE = {16 * MIB: 3 * MIB, 64 * MIB: 12 * MIB}


class Victim:
    """One store after the other in the same directory."""

    def __init__(self, path: str, oracle: Path, seed: int) -> None:
        self._path, self._random = path, random.Random(seed)
        self._teller, self._contents = Teller(oracle), Contents()
        self._present: dict[Place, int] = {}
        self._waited: list[tuple[int, velocpy.Ticket]] = []

    def work(self) -> None:
        options = self._options()
        self._teller.say("open", options)
        store = velocpy.open(self._path, **tuned(options))
        found = verify(store, self._teller.oracle, self._contents)
        self._teller.say("found", found)
        self._present = {(history, key): operation for history, key, operation in found}
        self._waited = []
        self._live = LIVE[options["disk"]]
        for _ in range(self._random.choice([3, 30, 150])):
            self._step(store)
        if self._random.random() < 0.5:
            store.close(flush=False)  # what was only begun may be there then, or not
        else:
            store.close()
            self._teller.say("closed")

    def _options(self) -> dict[str, Any]:
        pick = self._random.choice
        return {
            "host": pick([None, 256 << 10, MIB, 8 * MIB, 32 * MIB]),
            "disk": pick(list(LIVE)),
            "flush": pick(["lazy", "eager", "eager"]),
            "direct": pick([True, True, False]),
            "workers": pick([None, 1, 5]),
            "policy": pick(["score", "lru"]),
        }

    def _step(self, store: velocpy.Store) -> None:
        """Something at random."""
        step = self._random.choices(
            [self._put, self._ask, self._ask_all, self._restore, self._consume, self._drop, self._clear],
            [60, 20, 3, 8, 2, 8, 0.5],
        )[0]
        step(store.history(self._random.choice(HISTORIES)))

    def _put(self, history: velocpy.History) -> None:
        sizes = [self._size() for _ in range(self._random.choice([1, 1, 1, 2, 5]))]
        if self._bytes() + sum(sizes) > self._live:
            self._drop(history)
            return
        place = (history.name, self._random.choice(KEYS))
        operation = self._teller.say("put", *place, sizes)
        regions = self._contents.regions(operation, sizes)
        try:
            ticket = history.checkpoint(
                place[1],
                regions,
                meta=self._contents.meta(operation, sizes),
                copy=self._random.random() < 0.8,
                tier=self._random.choice([None, None, "disk"]),
                timeout=60,
            )
        except velocpy.errors.TierFull:
            self._teller.say("refused", operation=operation)
            return
        self._present[place] = operation
        self._waited.append((operation, ticket))

    def _bytes(self) -> int:
        sizes = self._teller.oracle.sizes
        return sum(sum(sizes[operation]) + 4096 for operation in self._present.values())

    def _size(self) -> int:
        kind = self._random.random()
        if kind < 0.6:
            return self._random.randrange(300)
        if kind < 0.8:
            return self._random.choice([4095, 4096, 4097, 8192, 65536])
        return self._random.randrange(100_000 if kind < 0.96 else LARGEST)

    def _ask(self, _: velocpy.History) -> None:
        """Waits for a checkpoint of those that it has not waited for."""
        if not self._waited:
            return
        operation, ticket = self._waited.pop(self._random.randrange(len(self._waited)))
        with contextlib.suppress(velocpy.errors.CheckpointDropped):  # or replaced
            ticket.wait("disk", timeout=60)
            self._teller.say("ack", operation=operation)

    def _ask_all(self, history: velocpy.History) -> None:
        while self._waited:
            self._ask(history)

    def _restore(self, history: velocpy.History) -> None:
        key = self._random.choice(KEYS)
        operation = self._present.get((history.name, key))
        assert (key in history) == (operation is not None), (history.name, key, operation)
        if operation is not None:
            with history.restore(key, timeout=60) as lease:
                self._contents.require(lease, operation, self._teller.oracle.sizes[operation])

    def _consume(self, history: velocpy.History) -> None:
        key = self._random.choice(KEYS)
        operation = self._present.get((history.name, key))
        if operation is not None:
            self._teller.say("drop", history.name, key)
            with history.restore(key, last=True, timeout=60) as lease:
                self._contents.require(lease, operation, self._teller.oracle.sizes[operation])
            del self._present[(history.name, key)]

    def _drop(self, any_history: velocpy.History) -> None:
        if self._present:
            name, key = place = self._random.choice(list(self._present))
            self._teller.say("drop", *place)
            any_history.store.history(name).drop(key, missing_ok=False)
            del self._present[place]

    def _clear(self, history: velocpy.History) -> None:
        self._teller.say("clear", history.name)
        history.clear()
        for place in [place for place in self._present if place[0] == history.name]:
            del self._present[place]


def main(path: str, oracle: str, seed: str) -> None:
    victim = Victim(path, Path(oracle), int(seed))
    print("opens", flush=True)
    while True:
        victim.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
