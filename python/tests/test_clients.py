"""Random clients in threads of one store, each with a dictionary of what it wrote: whatever comes back is compared."""

from __future__ import annotations

import random
import threading
import time
import traceback
from typing import Any

import numpy as np
import pytest
from bits import random_array

import velocpy

SECONDS = 6.0
SIZES = (0, 10, 1000, 30_000, 100_000, 250_000)


class Client:
    """One thread's history, and the dictionary beside it."""

    def __init__(self, store: velocpy.Store, number: int, seed: int) -> None:
        self.history = store.history(f"client {number}")
        self.random = random.Random(seed)
        self.written: dict[int, tuple[dict[str, bytes], int]] = {}
        self.leases: list[tuple[velocpy.Lease, dict[str, bytes]]] = []
        self.seed = seed * 1_000_000
        self.calls = 0
        self.failure: str | None = None

    def run(self, until: float) -> None:
        actions = [self.checkpoint] * 7 + [self.restore] * 5 + [self.into] * 2 + [self.part, self.drop, self.hint]
        actions += [self.look_again, self.list_keys, self.prefetch, self.wait]
        try:
            while time.monotonic() < until:
                self.calls += 1
                try:
                    self.random.choice(actions)(self.random.randrange(25))
                except (velocpy.errors.TierFull, velocpy.errors.WaitTimeout):
                    self.leases.clear()  # held by leases: its own, or those of the others
        except BaseException:
            self.failure = traceback.format_exc()
        self.leases.clear()

    def patience(self) -> float | None:
        return self.random.choice([None, None, 0.2])

    def checkpoint(self, key: int) -> None:
        self.seed += 1
        count = self.random.randrange(3)
        regions = {f"r{i}": random_array(self.random.choice(SIZES), np.uint8, self.seed + i) for i in range(count)}
        copy, tier = self.random.random() < 0.6, self.random.choice([None, None, "disk"])
        self.history.checkpoint(key, regions, copy=copy, meta=self.seed, tier=tier, timeout=self.patience())
        self.written[key] = {name: array.tobytes() for name, array in regions.items()}, self.seed

    def restore(self, key: int) -> None:
        if key not in self.written:
            return
        last = self.random.random() < 0.2
        lease = self.history.restore(key, last=last, timeout=self.patience())
        held, meta = self.written.pop(key) if last else self.written[key]
        assert lease.meta == meta
        self.compare(lease, held)
        self.leases.append((lease, held))
        if len(self.leases) > self.random.randrange(4):
            self.leases.pop(self.random.randrange(len(self.leases)))

    def into(self, key: int) -> None:
        if key not in self.written:
            return
        last = self.random.random() < 0.2
        into = {name: np.empty(len(held), np.uint8) for name, held in self.written[key][0].items()}
        self.history.restore(key, into=into, last=last, timeout=self.patience())
        held, _ = self.written.pop(key) if last else self.written[key]
        self.compare(into, held)

    def part(self, key: int) -> None:
        if key in self.written and self.written[key][0]:
            name = list(self.written[key][0])[-1]
            assert self.history.restore(key, name)[name].tobytes() == self.written[key][0][name]

    def drop(self, key: int) -> None:
        self.history.drop(key)
        self.written.pop(key, None)

    def hint(self, key: int) -> None:
        if key == 0:
            self.history.hint_clear()
        self.history.hint([self.random.randrange(25) for _ in range(key % 10)])

    def look_again(self, key: int) -> None:
        for lease, held in self.leases:
            self.compare(lease, held)

    def list_keys(self, key: int) -> None:
        assert sorted(self.history) == sorted(self.written)

    def prefetch(self, key: int) -> None:
        self.history.prefetch()

    def wait(self, key: int) -> None:
        self.history.wait(self.random.choice([None, "host", "disk"]), timeout=60)

    def compare(self, arrays: Any, held: dict[str, bytes]) -> None:
        assert {name: array.tobytes() for name, array in arrays.items()} == held


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_clients(seed: int) -> None:
    options = random.Random(seed)
    store = velocpy.open(
        host=options.choice(["700KiB", "2MiB", "5MiB"]),
        disk="300MiB",
        verify=options.choice(["moved", "first", "always"]),
        debug=options.random() < 0.3,
        tuning=velocpy.Tuning(
            flush=options.choice(["lazy", "eager"]),
            policy=options.choice(["score", "lru", "fifo"]),
            guess=options.random() < 0.7,
            prefetch=options.random() < 0.8,
            workers=options.choice([1, 2, 4]),
        ),
    )
    clients = [Client(store, number, 10 * seed + number) for number in range(4)]
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    store.close(timeout=60)
    for client in clients:
        assert client.failure is None, client.failure
        assert client.calls > 20
