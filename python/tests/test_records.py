"""DEBUG records of normal work: what they say, and that they cost nothing when nobody wants them."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy import records
from velocpy.figures import Causes, WaitCauses


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="velocpy")
    return caplog


def test_the_life_of_a_store(tmp_path: Path, debug: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with velocpy.open(tmp_path, host="1MiB", disk="64MiB") as store:
            run = store.history("run")
            for n in range(30):
                run.checkpoint(n, u=np.zeros(10_000))
            store.wait("disk")
            for n in range(30):
                run.restore(n).release()
    told = [record.getMessage() for record in debug.records]
    shown = "<Store host 1.0 MiB, disk 64.0 MiB: 1 histories>"
    patterns = [
        r"opened <Store host 1.0 MiB, disk 64.0 MiB: 0 histories> in .*s: 0 checkpoints are there, in 0 histories",
        rf"{shown}: 30 captures of 2.3 MiB; .* evicted in host; 2.3 MiB written in disk.*",
        rf"{shown}: 30 restores, \d+ of them found in the fastest tier; .* read in disk.*",
        r"closed <Store .*: closed>",
        r"opened .* in .*s: 30 checkpoints are there, in 1 histories",
    ]
    assert len(told) == 8
    for pattern, message in zip(patterns, told, strict=False):
        assert re.fullmatch(pattern, message), (pattern, message)
    assert {record.levelno for record in debug.records} == {logging.DEBUG}


def test_plans_and_rules(debug: pytest.LogCaptureFixture) -> None:
    with velocpy.open(host="1MiB") as store:
        run = store.history("a\nb")
        run.checkpoint(0, u=np.zeros(1))
        debug.clear()
        run.hint([0])
        run.hint(velocpy.Plan([1, 2]))
        run.hint_clear()
        run.retain(last=2, keys=[7])
        run.retain(last=2, best=3, by=("val", "loss"))
        assert [record.getMessage() for record in debug.records] == [
            "history 'a\\nb': hints from a list",
            "history 'a\\nb': hints from <Plan: 0 hints read, more to come>",
            "history 'a\\nb': the plan is withdrawn",
            "history 'a\\nb': retention is last=2, every=None, named=False, 1 keys; 1 checkpoints stay",
            "history 'a\\nb': retention is last=2, every=None, named=False, 0 keys, best=3 by 'val.loss', order=min; "
            "1 checkpoints stay",
        ]


def test_a_refresh_is_told(tmp_path: Path, debug: pytest.LogCaptureFixture) -> None:
    velocpy.open(tmp_path, host="1MiB", disk="8MiB").close()
    with velocpy.open(tmp_path, mode="r", host="1MiB") as reader:
        debug.clear()
        reader.refresh()
    told = [record.getMessage() for record in debug.records[:2]]
    assert told[0] == "<Store host 1.0 MiB: 0 histories>: nothing moved", told
    assert told[1].startswith("refreshed <Store host 1.0 MiB"), told


def test_hot_calls_make_no_record(debug: pytest.LogCaptureFixture) -> None:
    with velocpy.open(host="1MiB", disk="8MiB") as store:
        run = store.history("run")
        debug.clear()
        for n in range(100):
            run.checkpoint(n, u=np.zeros(1000), meta=n)
            run.restore(n).release()
            run.meta(n)
            run.restore(n, last=True).release()
            run.drop(n)
        assert not debug.records


def test_nothing_is_done_without_debug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not records.wanted()

    def called(*_: Any) -> None:
        raise AssertionError("a record nobody wants")

    for name in ("opened", "moved", "planned"):
        monkeypatch.setattr(records, name, called)
    with velocpy.open(tmp_path, host="1MiB", disk="8MiB") as store:
        run = store.history("run")
        run.checkpoint(0, u=np.zeros(1))
        run.hint([0])
        run.hint_clear()
        run.retain(last=1)
        store.wait("disk")


@pytest.mark.alone
def test_a_look_at_the_level_is_cheap() -> None:
    """A tenth of a microsecond on an idle machine; the best of several tries counts."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(1000):
            records.wanted()
        times.append(time.perf_counter() - began)
    assert min(times) / 1000 < 2e-6


def test_a_store_that_cannot_tell_is_closed_all_the_same(
    debug: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = velocpy.open(host="1MiB")
    core = store._core

    class Broken:
        def __getattr__(self, name: str) -> Any:
            if name == "stats":
                raise velocpy.errors.StoreLost("gone")
            return getattr(core, name)

    monkeypatch.setattr(store, "_core", Broken())
    store.close()
    assert store.closed


def test_waits_are_told_by_cause() -> None:
    """Those of streams on devices too, which no call shows."""
    with velocpy.open(host="16MiB") as store:
        stats = store.stats()
        causes = stats["waits_by_cause_ns"]
        assert set(causes) == set(WaitCauses.__annotations__)
        assert all(set(x) == set(Causes.__annotations__) for x in causes.values())
        none = dict.fromkeys(Causes.__annotations__, 0)
        assert stats["tiers"]["host"]["streams_waited_ns"] == {"capture": none, "restore": none}
        before = records._counters(stats)
        stats["waits_ns"]["capture_on_device"] = 3_000_000
        causes["capture_on_device"] |= {"flush": 1_000_000, "reader": 2_000_000}
        now = records._counters(stats)
    words = records._summary({name: number - before[name] for name, number in now.items()})
    assert words == "waited 3 ms for room on devices (flush 1 ms, reader 2 ms)"
