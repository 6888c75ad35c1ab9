"""The benchmarks run, compare the bytes that they restore, and write results that say what they were measured on."""

import json

import pytest
from click.testing import CliRunner

from velocpy.bench import report
from velocpy.bench.__main__ import BENCHMARKS, QUICK, main


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_quick_run_writes_a_result(name, tmp_path):
    if name == "storages":
        pytest.importorskip("pyrevolve")
    ran = CliRunner().invoke(main, [name, "--quick", "--folder", str(tmp_path), "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output + repr(ran.exception)
    result = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert result["benchmark"] == name
    assert result["rows"]
    assert {"cpu", "cores", "commit", "command", "go", "kernel"} <= result["machine"].keys()
    for bar in result["bars"]:
        assert bar["holds"] == ((bar["value"] >= bar["bound"]) if bar["at_least"] else (bar["value"] <= bar["bound"]))
        assert bar["what"] in ran.output


def test_every_benchmark_has_a_quick_form():
    assert QUICK.keys() == BENCHMARKS.keys()


def test_a_missed_bar_is_said():
    missed = report.Report("x", {})
    missed.bar("of memcpy", 0.5, 0.9, at_least=True)
    missed.bar("µs", 10.0, 30.0, at_least=False)
    assert [b.holds for b in missed.bars] == [False, True]
