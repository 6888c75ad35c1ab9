"""Random work of two threads on a real GPU: whatever the order in which streams get on, every byte comes back.

VELOCPY_LONG=1 plays a thousand schedules, otherwise forty are played.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

import velocpy

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SCHEDULES = 1000 if os.environ.get("VELOCPY_LONG") else 40
BLOCK = 20  # schedules of one store
STEPS = 60
KEYS = 24
#: Of four bytes. Two leases and two last ones leave room for another one, wherever they lie.
ELEMENTS = (0, 1, 255, 16_384, 75_001, 262_144, 400_003)


def pattern(elements: int, version: int) -> Any:
    """What a version consists of, computed on the device in the current stream."""
    return torch.arange(elements, dtype=torch.int32, device="cuda").mul_(2_654_435).add_(version)


class Worker:
    """A history, the versions that it should have, and streams."""

    def __init__(self, store: velocpy.Store, name: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store, self.history = store, store.history(name)
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.expected: dict[int, tuple[int, int]] = {}  # by key: elements and version
        self.leases: list[tuple[Any, Any]] = []  # with what they must show
        self.compared: list[tuple[str, Any]] = []  # what was found, and whether it was wrong
        self.version = seed << 12
        torch.cuda.synchronize()

    def play(self) -> None:
        steps = (
            [self.capture] * 6 + [self.into] * 4 + [self.lease] * 3 + [self.end_lease] * 2
            + [self.last, self.drop, self.hint, self.wait, self.stays]
        )  # fmt: skip
        for _ in range(STEPS):
            with torch.cuda.stream(self.chance.choice(self.streams)):
                if self.chance.random() < 0.5:
                    torch.cuda._sleep(self.chance.randrange(1, 2_000_000))
                self.chance.choice(steps)()
        while self.leases:
            self.end_lease()
        for key in list(self.expected):
            self.fill(key)
        torch.cuda.synchronize()

    def new(self, key: int) -> Any:
        self.version += 1
        self.expected[key] = (self.chance.choice(ELEMENTS), self.version)
        return pattern(*self.expected[key])

    def some(self) -> int | None:
        return self.chance.choice(list(self.expected)) if self.expected else None

    def compare(self, what: str, found: Any, want: Any) -> None:
        if found.numel():
            self.compared.append((what, (found != want).sum()))

    def wrong(self) -> list[tuple[str, int]]:
        return [(what, int(count)) for what, count in self.compared if int(count)]

    def capture(self) -> None:
        key = self.chance.randrange(KEYS)
        source = self.new(key)
        self.history.checkpoint(key, u=source)
        source.fill_(-1)  # right behind it, in the same stream

    def stays(self) -> None:
        key = self.chance.randrange(KEYS)
        source = self.new(key)
        self.history.checkpoint(key, u=source, copy=False).wait()
        source.fill_(-2)

    def into(self) -> None:
        if (key := self.some()) is not None:
            self.fill(key)

    def fill(self, key: int) -> None:
        found = torch.full((self.expected[key][0],), -3, dtype=torch.int32, device="cuda")
        self.history.restore(key, into={"u": found})
        self.compare(f"{key} into", found, pattern(*self.expected[key]))

    def last(self) -> None:
        if (key := self.some()) is not None:
            with self.history.restore(key, last=True) as state:
                self.compare(f"{key} last", state["u"], pattern(*self.expected.pop(key)))

    def lease(self) -> None:
        if (key := self.some()) is not None and not self.leases:
            self.leases.append((self.history.restore(key), pattern(*self.expected[key])))
            torch.cuda.current_stream().synchronize()  # the pattern is compared in another stream

    def end_lease(self) -> None:
        if self.leases:
            lease, want = self.leases.pop(self.chance.randrange(len(self.leases)))
            stream = torch.cuda.current_stream()
            for other in self.streams:  # it was lent to one of them
                stream.wait_stream(other)
            want.record_stream(stream)  # it was made in another one
            self.compare("leased", lease["u"], want)
            lease.release()

    def drop(self) -> None:
        if (key := self.some()) is not None:
            self.history.drop(key)
            del self.expected[key]

    def hint(self) -> None:
        keys = list(self.expected)
        self.chance.shuffle(keys)
        self.history.hint(keys)

    def wait(self) -> None:
        self.history.wait(self.chance.choice(["host", "disk"]))


@pytest.mark.parametrize("durable", [False, True])
def test_schedules(tmp_path: Path, durable: bool) -> None:
    for block in range(SCHEDULES // 2 // BLOCK):
        path = tmp_path / str(block)
        path.mkdir()
        with velocpy.open(path, device="16MiB", host="24MiB", disk="512MiB", durable=durable) as store:
            for seed in range(block * BLOCK, (block + 1) * BLOCK):
                play(store, seed)


def play(store: velocpy.Store, seed: int) -> None:
    """Two workers at once, each with a history of its own; afterwards both are empty."""
    workers = [Worker(store, f"{seed} {name}", 2 * seed + i) for i, name in enumerate("ab")]
    failed: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            worker.play()
        except BaseException as error:  # told by the thread that runs the test
            failed.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, (seed, failed)
    assert [worker.wrong() for worker in workers] == [[], []], seed
    for worker in workers:
        worker.history.clear()
