"""Progress of long waits: told as it is, shown by what there is, and only when it takes long."""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy import errors, progress
from velocpy.extra import MissingLibrary


def behind(monkeypatch: pytest.MonkeyPatch, store: velocpy.Store, figures: list[int]) -> None:
    """Lets a store have so many bytes to write, one number for each look, and be done then."""
    left = list(figures)

    def wait(seconds: float) -> None:
        if left:
            time.sleep(min(seconds, 0.01))
            raise errors.WaitTimeout("not yet")

    def stats() -> Any:
        tier = {"dirty": left.pop(0), "flushing": 0}
        return {"tiers": {"host": tier, "disk": {"dirty": 1 << 40, "flushing": 0}}}

    real = progress.waiting
    monkeypatch.setattr(progress, "waiting", lambda _, __, *more: real(wait, stats, *more))


def test_bytes_are_told_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [100, 70, 70, 120, 30])
        store.wait("disk", progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 100), (30, 100), (30, 100), (0, 120), (90, 120), (120, 120)]


def test_a_real_wait() -> None:
    told: list[tuple[int, int]] = []
    with velocpy.open(host="64MiB", disk="256MiB") as store:
        for n in range(40):
            store.history("h").checkpoint(n, u=np.zeros(100_000))
        assert progress.remaining(store.stats(), 2) > 0
        store.wait("disk", progress=lambda done, total: told.append((done, total)))
        assert progress.remaining(store.stats(), 2) == 0
    assert all(0 <= done <= total for done, total in told)


def test_the_timeout_is_that_of_the_whole_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [1] * 10_000)
        with pytest.raises(errors.WaitTimeout, match=r"not durable in tier 'disk' after 0\.25 s"):
            store.wait("disk", 0.25, progress=lambda done, total: None)


def test_an_error_of_the_function_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(done: int, total: int) -> None:
        raise KeyError("mine")

    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [1, 1])
        with pytest.raises(KeyError, match="mine"):
            store.wait("disk", progress=fail)


def test_what_is_no_progress() -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        with pytest.raises(errors.InvalidArgument, match="name it"):
            store.wait(progress=True)
        with pytest.raises(errors.InvalidType, match="progress is 'yes'"):
            store.wait("disk", progress="yes")  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidArgument, match="there is no tier"):
            store.wait("dsik", progress=True)  # type: ignore[arg-type]


def test_a_bar_of_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [1 << 20] * 20)
        store.wait("disk", progress=True)
    output = capsys.readouterr()
    assert "waiting for the disk tier" in output.err
    assert output.out == ""


def test_a_bar_of_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [1 << 20, 1 << 19, 1 << 18])
        store.wait("disk", progress=True)
    assert "waiting for the disk tier" in capsys.readouterr().err


def test_without_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        behind(monkeypatch, store, [1, 1])
        with pytest.raises(MissingLibrary) as raised:
            store.wait("disk", progress=True)
        assert str(raised.value) == "a progress bar needs rich, which is not installed: pip install rich, or tqdm"


def test_a_short_wait_needs_no_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    empty = ModuleType("empty")
    monkeypatch.setitem(sys.modules, "rich.progress", empty)
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        store.wait("disk", progress=True)
    assert capsys.readouterr().err == ""
