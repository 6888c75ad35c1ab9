"""Processes killed while they work on durable stores: what was acknowledged is there, whole, and nothing partial is."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from oracle import Contents, Oracle, verify

import velocpy

VICTIM = Path(__file__).with_name("durable_victim.py")
#: Where a process may be told to kill itself, and at the how-manieth passing at most: gocore/base/killpoint.
PLACES = {
    "directory made": 1,
    "identity written": 1,
    "data written": 24,
    "index written": 3,
    "data synced": 3,
    "catalog begun": 3,
    "commit written": 12,
    "batch written": 3,
    "batch synced": 12,
    "snapshot half": 2,
    "snapshot complete": 2,
    "old file removed": 3,
}
#: A new store passes these, and no other.
BIRTHS = ("directory made", "identity written")
TIMER = "timer"
PATIENCE = 120
#: Seconds after which a process that does not come to its place is killed all the same.
AWAY = 2.0
KILLS = 300
LONG_KILLS = 2000
AT_ONCE = 4
#: Another one for each run; VELOCPY_SEED gives one back.
SEED = int(os.environ.get("VELOCPY_SEED", random.SystemRandom().getrandbits(32)))
#: Ones born beside each other: a store is born once.
NEWBORN = 6


class Lane:
    """A store and its oracle, and the processes that die over it, one after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.store, self.oracle = folder / "above" / "store", folder / "oracle"
        folder.mkdir(parents=True)
        self._random, self._seed = random.Random(seed), seed
        self._environment = {
            **os.environ,
            "VELOCPY_TEST_HOOKS": "1",
            "VELOCPY_SEGMENT_BYTES": str(self._random.choice([1 << 20, 1 << 22, 1 << 28])),
        }

    def kill(self, aim: str, delay: float | None = None) -> str:
        """Lets one process work on the store until it dies, at a place, or after a while; says where it did."""
        if delay is None:
            delay = 0.5 * self._random.random() ** 2
        seed = self._random.getrandbits(32)
        slack = 1 if "snapshot" in aim or "file" in aim else self._random.choice([1, 2000, 20_000, 500_000])
        environment = {**self._environment, "VELOCPY_CATALOG_SLACK": str(slack)}
        if aim != TIMER:
            environment["VELOCPY_KILLPOINT"] = f"{aim}:{1 + int(PLACES[aim] * self._random.random() ** 2)}"
        command = [sys.executable, str(VICTIM), str(self.store), str(self.oracle), str(seed)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as victim:
            assert victim.stdout is not None
            assert victim.stderr is not None
            guard = threading.Timer(PATIENCE, victim.kill)
            guard.start()
            try:
                assert victim.stdout.readline() == "opens\n", victim.stderr.read()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    victim.wait(delay if aim == TIMER else AWAY)
                    assert victim.returncode == -signal.SIGKILL, self._why(victim.stderr.read(), seed, environment)
                    return aim
                victim.kill()
                assert victim.wait(PATIENCE) == -signal.SIGKILL, self._why(victim.stderr.read(), seed, environment)
                return TIMER
            finally:
                guard.cancel()
                victim.kill()

    def require(self) -> None:
        """What the last one left is what the oracle allows: to who reads, to who writes, and to who reads then."""
        with self._told():
            if not (self.store / "velocpy.store").exists():
                assert not [place for place in self._oracle().places() if min(self._oracle().states(place)) > 0]
                return
            contents, oracle = Contents(), self._oracle()
            found = None
            for options in ({"mode": "r"}, {"disk": "64MiB"}, {"mode": "r"}):
                with velocpy.open(self.store, host="8MiB", **options) as store:
                    again = verify(store, oracle, contents)
                    assert found in (None, again)
                    found = again

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (AssertionError, velocpy.errors.VelocError) as error:
            raise AssertionError(self._why(str(error))) from error

    def _why(self, error: str, *more: object) -> str:
        lines = self.oracle.read_text(encoding="utf-8").splitlines()[-15:] if self.oracle.exists() else []
        return "\n".join(
            [error, f"store {self.store}, seed {self._seed}", *map(str, more), *(line[:400] for line in lines)]
        )

    def _oracle(self) -> Oracle:
        return Oracle.read(self.oracle) if self.oracle.exists() else Oracle()

    def read_on(self, ended: threading.Event) -> Counter[str]:
        """Reads what is there, over and over, until the end; says how often it was right, and how often replaced.

        What was replaced since the reader came may be gone; then that is told, and nothing else given out.
        """
        contents, seen = Contents(), Counter[str]()
        while not ended.is_set():
            with self._told():
                try:
                    store = velocpy.open(self.store, mode="r", host="8MiB")
                except velocpy.errors.NotAStore:
                    continue
                with store:
                    for history in store.histories:
                        for key in history:
                            seen[self._read(history, key, contents)] += 1
                seen["stores"] += 1
        return seen

    def _read(self, history: velocpy.History, key: int | str, contents: Contents) -> str:
        try:
            with history.restore(key, timeout=60) as lease:
                contents.require(lease, lease.meta["operation"], lease.meta["sizes"])
            return "right"
        except velocpy.errors.CheckpointDropped:  # since this reader came: its place may be another's by now
            operation = history.meta(key)["operation"]
            states = self._oracle().states((history.name, key))
            assert states != [operation], f"{history.name!r}[{key!r}] is {operation}, and was not replaced"
            return "replaced"


def kill(folder: Path, kills: int, at_once: int) -> Counter[str]:
    """Kills so many processes over a few stores; says at which places they died."""
    print(f"VELOCPY_SEED={SEED}")
    lanes = [Lane(folder / str(number), SEED + number) for number in range(at_once)]
    born = [Lane(folder / f"born-{number}", SEED + 1000 + number) for number in range(NEWBORN)]
    older = [place for place in PLACES if place not in BIRTHS]
    aims = [TIMER if count % 3 == 0 else older[(count - count // 3) % len(older)] for count in range(kills)]
    for count, birth in enumerate(BIRTHS):
        aims[count * at_once : (count + 1) * at_once] = [birth] * at_once

    def run(number: int) -> Counter[str]:
        lane, died = lanes[number], Counter[str]()
        for count in range(number, kills, at_once):
            died[lane.kill(aims[count])] += 1
        lane.require()
        for lane in born[number::at_once]:
            for aim in (*BIRTHS, "catalog begun", "batch written"):
                died[lane.kill(aim)] += 1
                lane.require()
        return died

    with ThreadPoolExecutor(at_once) as pool:
        died = sum(pool.map(run, range(at_once)), Counter[str]())
    assert died.total() == kills + 4 * NEWBORN
    print(dict(died))
    return died


@pytest.mark.slow
def test_processes_killed_over_their_stores(tmp_path: Path) -> None:
    died = kill(tmp_path, KILLS, AT_ONCE)
    assert died.total() >= KILLS
    for place in PLACES:
        assert died[place] >= 5, died
    assert died[TIMER] >= KILLS // 5, died


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get("VELOCPY_LONG"), reason="takes a quarter of an hour; VELOCPY_LONG=1 runs it")
def test_many_more_processes_killed_over_their_stores(tmp_path: Path) -> None:
    died = kill(tmp_path, LONG_KILLS, AT_ONCE)
    assert died.total() >= LONG_KILLS
    for place in PLACES:
        assert died[place] >= (NEWBORN if place in BIRTHS else LONG_KILLS // 40), died


@pytest.mark.slow
def test_processes_killed_while_others_read(tmp_path: Path) -> None:
    lane, ended = Lane(tmp_path / "lane", SEED), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(lane.read_on, ended) for _ in range(2)]
        try:
            for count in range(12):
                lane.kill(TIMER if count % 2 else "old file removed", delay=1.0)
        finally:
            ended.set()
        seen = sum((reader.result() for reader in readers), Counter[str]())
    print(dict(seen))
    lane.require()
    assert seen["stores"] >= 12, seen
    assert seen["right"] >= 100, seen


HOLDER = """
    import os, subprocess, sys, time
    import numpy, velocpy

    store = velocpy.open(sys.argv[1], host="1MiB", disk="8MiB")
    store.history("h").checkpoint(0, u=numpy.arange(100.0)).wait("disk")
    child = os.fork()
    if child == 0:
        time.sleep(600)
    spawned = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, close_fds=False)
    print(child, spawned.pid, flush=True)
    time.sleep(600)
"""


def test_lock_goes_with_its_process(tmp_path: Path) -> None:
    """Also when children of it live on, forked and spawned, with all the descriptors that they could inherit."""
    path = tmp_path / "store"
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        children = [int(pid) for pid in holder.stdout.readline().split()]
        try:
            with pytest.raises(velocpy.errors.StoreLocked):
                velocpy.open(path, host="1MiB", disk="8MiB")
            holder.kill()
            holder.wait(PATIENCE)
            for child in children:
                os.kill(child, 0)  # it lives
            with velocpy.open(path, host="1MiB", disk="8MiB") as store:
                found = store.history("h").restore(0)["u"]
                assert np.array_equal(found, np.arange(100.0))
                store.history("h").checkpoint(1, u=found).wait("disk")
        finally:
            holder.kill()
            for child in children:
                os.kill(child, signal.SIGKILL)
