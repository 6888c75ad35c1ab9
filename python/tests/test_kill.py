"""Processes that are killed at any moment: the next one works, and nothing of the dead one is left."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from victim import WORKS

from velocpy.cli import diagnosis

VICTIM = Path(__file__).with_name("victim.py")
#: Where the processes of a user take turns to pin memory.
TURN = Path(f"/dev/shm/velocpy-pinning-{os.getuid()}")
MIB = 1 << 20
PATIENCE = 120
MORE = 60  # kills
SLACK = 128 * MIB


class Lane:
    """Processes in the same folder, one after the other: each shows that the death of the one before did no harm."""

    def __init__(self, folder: Path, seed: int, device: int | None) -> None:
        self.tier, self._shown = folder / "tier", folder / "shown"
        self.tier.mkdir(parents=True)
        self._shown.write_bytes(b"\0")
        with self._shown.open("r+b") as file:
            self._byte = mmap.mmap(file.fileno(), 1)
        self._random, self._device = random.Random(seed), device
        self._strays: list[Path] = []

    def kill(self, aim: str, within: float = 0.02) -> str:
        """Starts a process, kills it within seconds after it has begun with a work, and says at which it died."""
        with self._victim() as victim:
            self._wait(victim, lambda: self._work() == aim)
            time.sleep(within * self._random.random() ** 3)
            victim.kill()
            assert victim.wait(PATIENCE) == -9, self._why(victim)
        self._strays = list(self.tier.iterdir())
        self._require_nothing_left()
        require_turn()
        return self._work()

    def survive(self) -> None:
        """After the last death as after the others."""
        with self._victim() as victim:
            victim.kill()
            victim.wait(PATIENCE)

    def _require_nothing_left(self) -> None:
        """No file; where files cannot be made without names, an empty one may stay until the next process."""
        for stray in self._strays:
            assert stray.name.startswith(".velocpy-scratch-"), f"the dead process has left {stray}"
            assert stray.stat().st_size == 0

    @contextmanager
    def _victim(self) -> Iterator[subprocess.Popen[str]]:
        """A process whose first store has worked to the last bit."""
        self._byte[0] = 0
        command = [sys.executable, str(VICTIM), str(self.tier), str(self._shown), str(self._random.getrandbits(32))]
        command += [] if self._device is None else [str(self._device)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as victim:
            guard = threading.Timer(PATIENCE, victim.kill)
            guard.start()
            try:
                assert victim.stdout is not None
                assert victim.stdout.readline() == "works\n", self._why(victim)
                assert not any(stray.exists() for stray in self._strays), self._strays
                yield victim
            finally:
                guard.cancel()
                victim.kill()

    def _wait(self, victim: subprocess.Popen[str], done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert victim.poll() is None, self._why(victim)
            assert time.monotonic() < deadline, f"it is still at {self._work()}"
            time.sleep(0.0005)

    def _work(self) -> str:
        return WORKS[self._byte[0]]

    @staticmethod
    def _why(victim: subprocess.Popen[str]) -> str:
        victim.kill()
        assert victim.stderr is not None
        return f"it ended by itself or was too slow: {victim.stderr.read()}"


def require_turn() -> None:
    """The turn to pin memory can be had: those who live have it for moments, and the dead must not."""
    if not TURN.exists():
        return
    deadline = time.monotonic() + PATIENCE
    with TURN.open("r+b") as file:
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                assert time.monotonic() < deadline, "a dead process has the turn"
                time.sleep(0.0005)
            else:
                return


def kill(folder: Path, kills: int, at_once: int, works: int, device: int | None = None) -> Counter[str]:
    """Kills so many processes, several beside each other; says at which work they died.

    A machine that is busy with other things kills late. Until so many works have been met, more processes die.
    """
    aims = [WORKS[1 + i % (len(WORKS) - 1)] for i in range(kills)]
    lanes = [Lane(folder / str(i), i, device) for i in range(at_once)]

    def run(number: int) -> list[str]:
        died = [lanes[number].kill(aim) for aim in aims[number::at_once]]
        lanes[number].survive()
        return died

    with ThreadPoolExecutor(at_once) as pool:
        died = Counter(work for each in pool.map(run, range(at_once)) for work in each)
    assert died.total() == kills
    for _ in range(MORE):
        missed = [work for work in WORKS[1:] if work not in died]
        if len(WORKS) - 1 - len(missed) >= works:
            break
        died[lanes[0].kill(random.choice(missed), within=0)] += 1
    lanes[0].survive()
    return died


def test_processes_killed_on_the_host(tmp_path: Path) -> None:
    died = kill(tmp_path, kills=20, at_once=2, works=4)
    assert len(died) >= 4, died


@pytest.mark.gpu
def test_processes_killed_on_a_device(tmp_path: Path) -> None:
    free_before = free_memory()
    died = kill(tmp_path, kills=100, at_once=12, works=len(WORKS) - 1, device=0)
    assert set(died) == set(WORKS[1:]), died
    deadline = time.monotonic() + 30
    while free_memory() < free_before - SLACK:  # the driver may still be clearing up
        assert time.monotonic() < deadline, f"{free_before - free_memory()} bytes of the device are missing"
        time.sleep(0.5)


def free_memory() -> int:
    """Bytes of the device that nobody uses."""
    facts = [finding.get("facts", {}) for finding in diagnosis.examine(0, rates=False)["findings"]]
    (free,) = (fact["free_bytes"] for fact in facts if "copy_engines" in fact)
    return int(free)
