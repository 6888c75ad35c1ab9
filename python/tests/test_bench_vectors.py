"""The benchmark of graphlet degree vectors on a device, on emulated kernels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from emulated import EmulatedDriver, Fault, compiled

from benchmarks.data.series import Series, of_list
from benchmarks.device import nvcomp, vectors
from benchmarks.report import claims

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def emulated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(root / "cuda" / "emulated" / "kernels.cpp", tmp_path_factory.mktemp("vectors") / "kernels")


def accumulated(kind: str) -> Series:
    """Vectors of which few change, and some move. Their bytes are no multiple of a chunk."""
    random = np.random.default_rng(len(kind))
    state = np.zeros((200, 73), np.uint32)
    states = []
    for number in range(4):
        state = state.copy()
        state[40 * number : 40 * number + 60] += random.integers(0, 3, (60, 73), np.uint32)
        state[150:180] = state[10:40]
        states.append({"gdv": state})
    return of_list(states, "200 vertices")


def played(
    program: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault | None = None, rounds: int = 2
) -> vectors.Report:
    monkeypatch.setattr(nvcomp, "load", lambda: None)
    driver = EmulatedDriver(program, fault)
    try:
        return vectors.run(driver, accumulated, ["message race", "roads"], rounds, float("inf"))
    finally:
        driver.close()


def test_every_way_brings_the_vectors_to_the_host(emulated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = played(emulated, monkeypatch)
    ratios = {(row["graph"], row["way"]): row["ratio"] for row in report.rows}
    assert [row["wrong"] for row in report.rows] == [0] * 8
    assert all(len(row["s"]) == 2 for row in report.rows)
    for graph in ("message race", "roads"):
        found = [ratios[graph, way] for way in ("Full", "Basic", "List", "Tree")]
        assert found[0] == 1
        assert found == sorted(found)
    assert [bar.what for bar in report.bars] == [
        "bytes of restored vectors that differ",
        "message race, Tree: its ratio by List's",
    ]
    assert nvcomp.MISSING in report.remarks
    assert sum(claim.bars for claim in claims.judge([report.facts({})])) == len(report.bars)


@pytest.mark.parametrize(("kernel", "member"), [("gather_firsts", "data"), ("list_shifts", "shift_entries")])
def test_wrong_bytes_are_told(emulated: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, member: str) -> None:
    def fault(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
        if kernel in name:
            driver.part(int(parameter[member][0]) + 16, 1)[:] ^= 64

    report = played(emulated, monkeypatch, fault, rounds=1)
    assert not report.bars[0].holds


def test_bars_compare_with_nvcomps_zstd() -> None:
    report = vectors.alone.new_report("vectors", {"rounds": 3})
    rates = {"Tree": (9.0, 20.0), "List": (3.0, 20.0), vectors.ZSTD: (8.0, 1.0)}
    report.rows = [
        {"graph": "mesh exchange", "way": way, "ratio": ratio, "GB/s": rate, "wrong": 0}
        for way, (ratio, rate) in rates.items()
    ]
    vectors.judge(report)
    assert [(bar.value, bar.holds) for bar in report.bars] == [(0, True), (3, False), (9 / 8, True), (20, True)]
    assert sum(claim.bars for claim in claims.judge([report.facts({})])) == len(report.bars)


def test_command(emulated: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[EmulatedDriver] = []
    monkeypatch.setattr(vectors, "Driver", lambda _: made.append(EmulatedDriver(emulated)) or made[0])
    monkeypatch.setattr(nvcomp, "load", lambda: None)
    monkeypatch.setattr(vectors.series, "of_graph", lambda kind, vertices, checkpoints: accumulated(kind))
    out = tmp_path / "vectors.json"
    command = ["--fatbin", __file__, "--graphs", "roads", "--rounds", "1", "--limit", "60", "--out", str(out)]
    result = CliRunner().invoke(vectors.main, [*command, "--commit", "abc"])
    made[0].close()
    assert result.exit_code == 0, result.output
    assert [row["way"] for row in json.loads(out.read_text(encoding="utf-8"))["rows"]] == [
        "Full",
        "Basic",
        "List",
        "Tree",
    ]
    assert CliRunner().invoke(vectors.main, ["--graphs", "trees"]).exit_code == 2
