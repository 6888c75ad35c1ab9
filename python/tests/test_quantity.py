"""Sizes for people have binary units, rates decimal ones, in messages, commands and documents."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy.cli.store_commands import summary
from velocpy.quantity import exact, rated, sized

#: A size in a decimal unit, which budgets may be written in; a rate is none.
DECIMAL = re.compile(r"\b\d[\d.,]* ?[kMGT]B\b(?!/s)")


def test_units() -> None:
    assert [sized(n) for n in (1023, 1 << 40, 1 << 50, 1 << 60)] == ["1023 B", "1.0 TiB", "1.0 PiB", "1.0 EiB"]
    assert (exact(1023), exact(1 << 20)) == ("1023 B", "1.0 MiB (1048576 bytes)")
    assert [rated(r) for r in (0, 999.6e3, 2 << 30, 3.35e12)] == ["0 kB/s", "1 MB/s", "2.15 GB/s", "3.35 TB/s"]


def test_pictures() -> None:
    pytest.importorskip("matplotlib")
    from velocpy.plot.timeline import draw_timeline

    with velocpy.open(host="8MiB", disk="64MiB", timeline=1000) as store:
        history = store.history("h")
        for i in range(16):
            history.checkpoint(i, u=np.zeros(1 << 17))
        history.wait("disk")
        labels = [axes.get_ylabel() for axes in draw_timeline(store.timeline(), {"host": 8 << 20}).axes]
    assert "MiB" in labels
    assert next(label for label in labels if label.endswith("/s")) in ("kB/s", "MB/s", "GB/s")


LARGE: dict[str, tuple[Callable[[velocpy.History], Any], str]] = {
    "meta": (lambda h: h.checkpoint(0, u=np.zeros(1), meta="x" * 70_000), "meta takes 68.4 KiB (70002 bytes)"),
    "values": (lambda h: h.checkpoint(0, {"u": np.zeros(1), "s": "x" * 300_000}), "at most 256.0 KiB (262144 bytes)"),
    "budget": (lambda h: velocpy.open(host=2**61), "at least 1 B and at most 1.0 EiB"),
}


@pytest.mark.parametrize("case", LARGE)
def test_messages(case: str) -> None:
    call, expected = LARGE[case]
    with velocpy.open(host="1MiB") as store, pytest.raises(velocpy.errors.InvalidArgument, match=re.escape(expected)):
        call(store.history("h"))


def test_the_line_of_a_check() -> None:
    report = SimpleNamespace(
        checkpoints=1, nbytes=1 << 20, read=0, sound=True, faults=(), damaged=0, without_checksums=0, unknown=0,
        superseded=0, torn_nbytes=123_456, unused=(),
    )  # fmt: skip
    assert "the catalog ends in 120.6 KiB that are no whole batch" in summary(report)


def test_the_documents(root: Path) -> None:
    """Where a unit is explained, or quoted from a paper, it stands in backquotes or is named here."""
    quoted = ("the paper's 32 GB and 4 GB", "NVIDIA H100 80GB HBM3")
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        for line in page.read_text(encoding="utf-8").splitlines():
            plain = re.sub("|".join(["`[^`]*`", *map(re.escape, quoted)]), "", line)
            assert not DECIMAL.search(plain), f"{page.name}: {line}"
