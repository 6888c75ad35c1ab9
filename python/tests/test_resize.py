"""Budgets of host and disk that change while a store is open, and memory that is given back."""

from __future__ import annotations

import contextlib
import mmap
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import velocpy

MIB = 1 << 20


def state(i: int, nbytes: int = MIB) -> np.ndarray:
    return np.full(nbytes // 8, i, dtype=np.int64)


def filled(store: velocpy.Store, n: int) -> velocpy.History:
    history = store.history("forward")
    for i in range(n):
        history.checkpoint(i, u=state(i))
    return history


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.005)


def test_memory_of_the_process_falls() -> None:
    with velocpy.open(host="256MiB", disk="512MiB") as store:
        history = filled(store, 200)
        before = resident()
        assert store.resize(host="16MiB") <= 16 * MIB
        assert resident() < before - 150 * MIB
        tier = store.stats()["tiers"]["host"]
        assert (tier["capacity"], tier["resident_bytes"] <= 16 * MIB) == (16 * MIB, True)
        assert tier["given_back_bytes"] >= 150 * MIB
        assert "host 16.0 MiB" in repr(store)
        for i in range(200):
            np.testing.assert_array_equal(history.restore(i)["u"], state(i))
        assert store.resize(host="256MiB") == 256 * MIB  # what it was opened with
        for i in range(200, 300):
            history.checkpoint(i, u=state(i))
        for i in range(300):
            np.testing.assert_array_equal(history.restore(i)["u"], state(i))


def test_sizes_are_those_of_open() -> None:
    with velocpy.open(host="64MiB", disk="64MiB") as store:
        assert store.resize(host=8 * MIB) == 8 * MIB
        assert store.resize(host="1.5 MiB") == 3 * MIB // 2
        assert store.resize(host=0) == 0
        assert store.resize(host=1.0) == 64 * MIB  # the most that it can have
        assert store.resize(host="auto") == 64 * MIB
        store.resize(disk="128MiB")
        assert store.stats()["tiers"]["disk"]["capacity"] == 128 * MIB
        store.resize(disk="1%")
        for wrong in (-1, "much", True, 2.0, "101%"):
            with pytest.raises(velocpy.errors.InvalidBudget):
                store.resize(host=wrong)
            with pytest.raises(velocpy.errors.InvalidBudget):
                store.resize(disk=wrong)
        with velocpy.knobs.override(node_processes=4):
            store.resize(host="64MiB/node")
        assert store.stats()["tiers"]["host"]["capacity"] == 16 * MIB


def test_more_than_the_store_was_opened_with() -> None:
    with velocpy.open(host="4MiB", disk="64MiB") as store:
        with pytest.raises(velocpy.errors.InvalidArgument, match=r"opened with 4\.0 MiB"):
            store.resize(host="5MiB", disk="1MiB")
        tiers = store.stats()["tiers"]
        assert (tiers["host"]["capacity"], tiers["disk"]["capacity"]) == (4 * MIB, 64 * MIB)  # nothing has changed


def test_tiers_that_are_not_there() -> None:
    with velocpy.open(host="4MiB") as store:
        with pytest.raises(velocpy.errors.TierUnavailable, match="disk"):
            store.resize(disk="1MiB")
        with pytest.raises(velocpy.errors.InvalidArgument, match="nothing"):
            store.resize()
    with velocpy.open(host=None, disk="64MiB") as store:
        with pytest.raises(velocpy.errors.TierUnavailable, match="host"):
            store.resize(host="1MiB")
        assert store.trim() == 0
    for call in (lambda: store.resize(host=1), store.trim):
        with pytest.raises(velocpy.errors.StoreClosed):
            call()


def test_what_exists_nowhere_else_stays() -> None:
    with velocpy.open(host="16MiB") as store:
        history = filled(store, 10)
        with pytest.raises(velocpy.errors.TierFull, match="Nothing is lost") as caught:
            store.resize(host="4MiB")
        assert caught.value.tier == "host"
        assert "host 4.0 MiB" in repr(store)
        with pytest.raises(velocpy.errors.TierFull):
            history.checkpoint(10, u=state(10))
        for i in range(10):
            np.testing.assert_array_equal(history.restore(i)["u"], state(i))
        for i in range(2, 10):
            history.drop(i)
        eventually(lambda: store.stats()["tiers"]["host"]["resident_bytes"] <= 4 * MIB)
        history.checkpoint(10, u=state(10))
        assert store.resize(host="4MiB") == 4 * MIB


def test_a_lease_keeps_its_memory() -> None:
    with velocpy.open(host="64MiB", disk="128MiB") as store:
        history = filled(store, 40)
        with history.restore(39) as lent:
            store.resize(host="2MiB")
            np.testing.assert_array_equal(lent["u"], state(39))
        eventually(lambda: store.stats()["tiers"]["host"]["resident_bytes"] <= 2 * MIB)
        np.testing.assert_array_equal(history.restore(39)["u"], state(39))


def test_a_durable_disk_is_smaller_and_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "store"

    def taken() -> int:
        return sum(entry.stat().st_blocks * 512 for entry in path.iterdir())

    with velocpy.open(path, host="16MiB", disk="1GiB") as store:
        history = filled(store, 100)
        store.wait("disk")
        for i in range(90):
            history.drop(i)
        eventually(lambda: store.stats()["tiers"]["disk"]["used"] < 11 * MIB)
        before = taken()
        assert store.resize(disk="32MiB") <= 32 * MIB
        assert taken() < before - 50 * MIB
        for i in range(100, 110):
            history.checkpoint(i, u=state(i)).wait("disk")
        store.resize(disk="1GiB")
        for i in range(110, 160):
            history.checkpoint(i, u=state(i)).wait("disk")
    with velocpy.open(path, mode="r", host="16MiB") as store:
        for i in range(90, 160):
            np.testing.assert_array_equal(store.history("forward").restore(i)["u"], state(i))
        store.resize(host="4MiB")
        store.refresh()
        assert store.stats()["tiers"]["host"]["capacity"] == 4 * MIB
        assert store.resize(host="16MiB") == 16 * MIB
        with pytest.raises(velocpy.errors.VelocError):
            store.resize(disk="1MiB")


def test_idle_memory_is_given_back() -> None:
    with velocpy.open(host="64MiB", idle=0.02) as store:
        for _ in range(2):
            history = filled(store, 50)
            history.clear()
            eventually(lambda: store.stats()["tiers"]["host"]["resident_bytes"] == 0)
    for wrong, error in (
        (0, velocpy.errors.InvalidArgument),
        (-1.0, velocpy.errors.InvalidArgument),
        (float("nan"), velocpy.errors.InvalidArgument),
        ("30s", velocpy.errors.InvalidType),
        (True, velocpy.errors.InvalidType),
    ):
        with pytest.raises(error):
            velocpy.open(host="1MiB", idle=wrong)  # type: ignore[arg-type]


def test_memory_stays_unless_asked() -> None:
    with velocpy.open(host="64MiB") as store:
        filled(store, 50).clear()
        assert store.stats()["tiers"]["host"]["resident_bytes"] >= 50 * MIB
        assert store.trim() >= 50 * MIB
        assert store.stats()["tiers"]["host"]["resident_bytes"] == 0


def capture(history: velocpy.History, i: int, refusals: int) -> None:
    """Each change refuses a capture at most once: one that waits while the host becomes too small for it."""
    for _ in range(refusals):
        with contextlib.suppress(velocpy.errors.TierFull):
            history.checkpoint(i, u=state(i, 300_000))
            return
    history.checkpoint(i, u=state(i, 300_000))


@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(
    st.booleans(), st.lists(st.tuples(st.sampled_from(["host", "disk", "trim"]), st.integers(0, 8)), max_size=12)
)
def test_budgets_change_while_threads_work(durable: bool, changes: list[tuple[str, int]]) -> None:
    failures: list[BaseException] = []
    with tempfile.TemporaryDirectory() as path:
        place = Path(path) / "store" if durable else None
        with velocpy.open(place, host="8MiB", disk="256MiB") as store:

            def work(name: str) -> None:
                try:
                    history = store.history(name)
                    for i in range(30):
                        capture(history, i, refusals=len(changes))
                        if i >= 3:
                            with history.restore(i - 3) as lent:
                                np.testing.assert_array_equal(lent["u"], state(i - 3, 300_000))
                        if i % 7 == 6:
                            history.drop(i - 6)
                    for i in range(30):
                        if i % 7 or i > 22:
                            np.testing.assert_array_equal(history.restore(i)["u"], state(i, 300_000))
                except BaseException as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
            for thread in threads:
                thread.start()
            for what, size in changes:
                if what == "host":
                    store.resize(host=size * MIB)
                elif what == "disk":
                    store.resize(disk=(64 + size) * MIB)
                else:
                    store.trim()
            for thread in threads:
                thread.join()
    assert not failures, failures
