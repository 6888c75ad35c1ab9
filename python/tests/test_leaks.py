"""That what tests leave behind is found, and that stores which nobody closes leave nothing."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import leaks
import numpy as np
import pytest

import velocpy


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "PATIENCE", 0.05)


def test_what_is_left_is_named(tmp_path: Path) -> None:
    gc.collect()
    before = leaks.held()
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="left behind", daemon=True)
    thread.start()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    store = velocpy.open(tmp_path / "store", host="1MiB", disk="64MiB")
    lease = store.history("h")
    more = leaks.left(before)
    assert more["stores of the core"] == more["histories of the core"] == more["thread left behind"] == 1
    assert more[f"descriptor of {tmp_path}"] == more[f"open store in {tmp_path / 'store'}"] == 1
    assert more["mapped_bytes of the core"] >= 1 << 20
    assert more["goroutines of the core"] >= more["goroutine transfer worker of the core"] > 0
    del lease
    store.close()
    os.close(descriptor)
    end.set()
    thread.join()


def test_a_thread_that_has_called_the_core_is_no_goroutine() -> None:
    """The Go runtime gives each such thread a goroutine until the thread ends: torch's threads never do."""
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        _ = 0 in history
        before, called, end = leaks.held(), threading.Event(), threading.Event()

        def call() -> None:
            _ = 0 in history
            called.set()
            end.wait()

        thread = threading.Thread(target=call, name="calls the core")
        thread.start()
        called.wait()
        more = leaks.held() - before
        end.set()
        thread.join()
    assert more == {"thread calls the core": 1}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("durable", [False, True])
def test_a_store_that_nobody_closes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    monkeypatch.setattr(leaks, "PATIENCE", 20.0)
    gc.collect()
    before = leaks.held()
    for number in range(5):
        store = velocpy.open(tmp_path / str(number) if durable else None, host="1MiB", disk="64MiB")
        store.history("h").checkpoint(number, u=np.zeros(1000))
        lease = store.history("h").restore(number)
        del store
        lease.release()
        del lease
        gc.collect()
    assert not leaks.left(before)


def test_a_lease_that_outlives_its_store_is_counted() -> None:
    gc.collect()
    before = leaks.held()
    with velocpy.open(host="1MiB") as store:
        store.history("h").checkpoint(0, u=np.zeros(1000))
        lease = store.history("h").restore(0)
    del store
    assert leaks.left(before)["leases of the core"] == 1
    lease.release()
    del lease
    assert not leaks.left(before)
