"""Many threads, many calls: no deadlock, no lost byte, and the GIL is free while the core works."""

from __future__ import annotations

import gc
import re
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from bits import random_array, same

import velocpy

MIB = 1 << 20


def test_ten_thousand_calls_from_a_pool() -> None:
    with velocpy.open(host="4MiB", disk="64MiB") as store, ThreadPoolExecutor(64) as pool:

        def call(number: int) -> int:
            history = store.history(f"h{number % 7}")
            key = number // 7
            history.checkpoint(key, u=np.full(1000 + number % 13, number), meta=number)
            lease = history.restore(key)
            assert (lease["u"] == number).all()
            assert lease["u"].size == 1000 + number % 13
            assert lease.meta == number
            if number % 3 == 0:
                history.drop(key)
            return number

        assert sum(pool.map(call, range(10_000))) == sum(range(10_000))
        assert sum(len(history) for history in store.histories) == sum(1 for n in range(10_000) if n % 3)


def test_thousands_of_short_lived_threads() -> None:
    with velocpy.open(host="4MiB", disk="16MiB") as store:
        history = store.history("h")
        failures: list[BaseException] = []

        def call(number: int) -> None:
            try:
                history.checkpoint(number % 50, u=np.full(500, number % 50))
                assert history.restore(number % 50)["u"][0] == number % 50
            except BaseException as error:
                failures.append(error)

        for batch in range(0, 3000, 100):
            threads = [threading.Thread(target=call, args=(batch + n,)) for n in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert failures == []


def test_one_key_fought_over() -> None:
    """Writers, readers and droppers of one key: whoever reads gets one whole version."""
    with velocpy.open(host="2MiB", disk="64MiB") as store:
        history = store.history("h")
        stop = time.monotonic() + 3
        failures: list[object] = []

        def write(seed: int) -> None:
            rng = np.random.default_rng(seed)
            while time.monotonic() < stop:
                value = int(rng.integers(256))
                size = int(rng.integers(1, 30_000))
                if value % 2:
                    history.checkpoint("k", u=np.full(size, value, np.uint8), n=np.array([size]))
                else:
                    history.checkpoint(
                        "k", n=np.array([size]), u=np.full(size, value, np.uint8), extra=np.zeros(value), copy=False
                    )

        def read(seed: int) -> None:
            while time.monotonic() < stop:
                try:
                    lease = history.restore("k", ["u", "n"] if seed % 2 else None)
                except (velocpy.errors.CheckpointNotFound, velocpy.errors.CheckpointDropped):
                    continue
                u = lease["u"]
                if u.size != lease["n"][0] or (u != u[0]).any():
                    failures.append((u.size, lease["n"][0]))

        def drop() -> None:
            while time.monotonic() < stop:
                history.drop("k")
                time.sleep(0.002)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        threads += [threading.Thread(target=read, args=(n,)) for n in range(4)]
        threads += [threading.Thread(target=drop)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


@pytest.mark.alone
def test_gil_released_during_large_copies() -> None:
    """A counter in another thread goes on while the core copies."""
    with velocpy.open(host="1GiB") as store:
        history = store.history("h")
        u = np.ones(256 * MIB, np.uint8)
        history.checkpoint(0, u=u)
        ticks = 0
        stop = threading.Event()

        def count() -> None:
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        began = time.perf_counter()
        for _ in range(6):
            history.checkpoint(0, u=u)
            history.restore(0, into={"u": u})
        took = time.perf_counter() - began
        stop.set()
        thread.join()
        assert ticks > took / 0.001 * 0.05, (ticks, took)


def test_gil_released_during_waits() -> None:
    with velocpy.open(host="2MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(3 * MIB // 2, np.uint8))
        lease = history.restore(0)
        seen = []
        waiter = threading.Thread(
            target=lambda: seen.append(history.checkpoint(1, u=np.ones(MIB, np.uint8), timeout=60))
        )
        waiter.start()
        time.sleep(0.3)
        assert not seen
        history.drop(0)
        del lease  # makes the room the other thread waits for
        waiter.join(timeout=20)
        assert not waiter.is_alive()
        assert history.restore(1)["u"].all()


# What a destructor, a queue or an error path calls with the GIL held, and why that may be.
HELD = {
    "KeptSources::ask": "a lock of microseconds, while the queue is not to change",
    "History::fail": "an error is under way",
    "LeaseMemory::meta": "the lease has it; no lock is taken",
    "Store::~Store": "nobody else knows the store",
    "History::corrupt": "for tests",
    "test_panic": "for tests",
}


def test_calls_into_the_core_release_the_gil(root: Path) -> None:
    calls, held = 0, set()
    for path in sorted((root / "cshim").glob("*.cpp")):
        for body in re.split(r"^}$", path.read_text(), flags=re.MULTILINE):
            body = re.sub(r"//.*", "", body)
            found = re.findall(r"(?:\btable|\bcore|core\(\))(?:\.|->)(\w+)\((?!\))", body)
            if not found or path.name == "loader.cpp":
                continue
            calls += len(found)
            name = re.findall(r"^(?:\S.*?[ *])??((?:\w+::)?~?\w+)\([^;]*\{$", body, flags=re.MULTILINE)
            released = re.search(r"\bNogil\b|\bdrive\(|\bfilled\(|\bfinish\(", body)
            if not released:
                held |= set(name) & HELD.keys() or {f"{path.name}: {', '.join(found)}"}
    assert held <= HELD.keys(), held - HELD.keys()
    assert calls > 25


def test_close_under_fire() -> None:
    for round_ in range(10):
        store = velocpy.open(host="2MiB", disk="32MiB")
        failures: list[BaseException] = []

        def use(name: str, store: velocpy.Store = store, failures: list[BaseException] = failures) -> None:
            try:
                history = store.history(name)
                for i in range(100_000):
                    history.checkpoint(i % 40, u=np.full(20_000, i % 251, np.uint8), copy=i % 2 == 0)
                    lease = history.restore(i % 40)
                    assert lease["u"][0] == i % 251
            except velocpy.errors.StoreClosed:
                pass
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use, args=(str(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.02 * round_)
        closers = [threading.Thread(target=store.close) for _ in range(2)]
        for closer in closers:
            closer.start()
        for thread in [*threads, *closers]:
            thread.join(timeout=30)
            assert not thread.is_alive()
        assert failures == []


def test_drops_from_destructors_in_any_thread_also_after_close() -> None:
    class Owner:
        def __init__(self, history: velocpy.History, key: int) -> None:
            self.history, self.key = history, key
            self.me = self  # the collector, in whichever thread it runs, has to find it
            history.checkpoint(key, u=np.full(1000, key))

        def __del__(self) -> None:
            self.history.drop(self.key)

    import gc

    store = velocpy.open(host="2MiB", disk="16MiB")
    history = store.history("h")

    def churn(start: int) -> None:
        for key in range(start, start + 300):
            Owner(history, key)
            if key % 50 == 0:
                gc.collect()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(churn, range(0, 6000, 1000)))
    gc.collect()
    assert len(history) == 0
    late = [Owner(history, key) for key in range(20)]
    store.close()
    del late
    gc.collect()


def test_two_stores_at_once(tmp_path) -> None:
    with (
        velocpy.open(tmp_path, host="2MiB", disk="16MiB", durable=False) as one,
        velocpy.open(tmp_path, host="2MiB", disk="16MiB", durable=False) as two,
    ):
        for i in range(60):
            one.history("h").checkpoint(i, u=random_array(20_000, np.uint8, seed=i))
            two.history("h").checkpoint(i, u=random_array(20_000, np.uint8, seed=i + 1000))
        one.close()
        for i in range(60):
            assert same(two.history("h").restore(i)["u"], random_array(20_000, np.uint8, seed=i + 1000))
    with pytest.raises(velocpy.errors.StoreClosed):
        two.history("h").restore(0)


def test_many_stores_after_each_other() -> None:
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # every other one is forgotten
        for i in range(60):
            store = velocpy.open(host="1MiB", disk="2MiB")
            store.history("h").checkpoint(0, u=np.full(1000, i))
            assert store.history("h").restore(0)["u"][0] == i
            if i % 2:
                store.close()
            del store
        gc.collect()
    assert threading.active_count() == before
    assert len(Path("/proc/self/maps").read_text().splitlines()) < 20_000
