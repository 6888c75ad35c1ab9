"""``velocpy bench``: small, for a user's machine; all else is measured from a checkout."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import RunPython

from benchmarks.__main__ import BENCHMARKS as OF_THE_CHECKOUT
from velocpy.bench import disk, memory, timing
from velocpy.bench.__main__ import BENCHMARKS, MOVED, QUICK, main
from velocpy.bench.table import compared

ROOT = Path(__file__).resolve().parents[2]
HERE = ("memory", "disk")  # without a GPU


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", HERE)
def test_a_quick_run_compares_bytes_and_gives_no_figures(name: str, tmp_path: Path) -> None:
    result = bench(name, "--quick", "--folder", tmp_path / "new", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert facts["rows"] == []
    assert [(bar["value"], bar["measured"]) for bar in facts["bars"]] == [(0, False)]
    assert facts["machine"]["command"] == f"velocpy bench {name} --quick --folder {tmp_path}/new --out {tmp_path}/out"
    assert "it runs, and gives back what it was given" in result.stdout
    assert not re.search(r"GB/s|ratio", result.stdout)
    assert list((tmp_path / "new").iterdir()) == []


def test_memory_has_a_row_for_each_direction() -> None:
    report = memory.run(size=64 << 10, rounds=2, ring=512 << 10)
    assert [row["what"] for row in report.rows] == ["capture", "restore"]
    for row in report.rows:
        assert row["plain copy"].startswith("memcpy, ")
        assert row["ratio"] == pytest.approx(row["velocpy GB/s"] / row["plain GB/s"])
        assert {len(values) for values in row["seconds"][0].values()} == {2}
    assert all(bar.holds for bar in report.bars)


def test_disk_has_rows_of_scratch_and_durable_writes(tmp_path: Path) -> None:
    report = disk.run(tmp_path, total=40 << 20, size=4 << 20, rounds=1)
    assert [row["what"] for row in report.rows] == ["write", "read", "write, durable"]
    assert all(bar.holds for bar in report.bars)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("measured", [memory, disk])
def test_bytes_that_differ_miss_the_bar(measured: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("velocpy.bench.stamped.Stamped.same", lambda self, key, array: key != 1)
    if measured is memory:
        report = memory.run(size=64 << 10, rounds=1, ring=256 << 10)
        assert [bar.value for bar in report.bars] == [1]
    else:
        report = disk.run(tmp_path, total=16 << 20, size=4 << 20, rounds=1)
        assert [bar.value for bar in report.bars] == [2], "one in each of two stores"
    assert not report.bars[0].holds


def test_the_fastest_plain_copy_counts() -> None:
    row = compared("x", 10**9, {"slow": [2.0, 2.0, 0.1], "fast": [1.0, 1.0, 9.0]}, [0.5, 4.0, 2.0])
    assert (row["plain copy"], row["plain GB/s"], row["velocpy GB/s"], row["ratio"]) == ("fast", 1.0, 0.5, 0.5)


def test_rounds_end_when_the_time_is_over_but_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    took = timing.by_turns({"a": lambda: 1.0, "b": lambda: 2.0}, 9, seconds=2.5)
    assert took == {"a": [1.0] * 3, "b": [2.0] * 3}
    assert timing.by_turns({"a": lambda: 1.0}, 9, seconds=0) == {"a": [1.0]}
    assert timing.by_turns({"a": lambda: 1.0}, 9) == {"a": [1.0] * 9}


def test_every_benchmark_has_a_quick_form() -> None:
    assert QUICK.keys() == BENCHMARKS.keys()


#: Benchmarks that the package never had.
NEW = {
    "accumulated",
    "aggregation",
    "archive",
    "bucket",
    "deduplicated",
    "encoded",
    "hacc",
    "offload",
    "reduced",
    "scheduled",
    "sharded",
    "snapshots",
    "staging",
    "stored",
    "twins",
}


def test_names_that_moved_say_where_they_are() -> None:
    assert OF_THE_CHECKOUT.keys() - BENCHMARKS.keys() - NEW == MOVED
    for name in MOVED:
        result = bench(name)
        assert result.exit_code == 2
        assert f"`python -m benchmarks {name}` from a checkout" in " ".join(result.stderr.split())


@pytest.mark.parametrize("option", ["--cells", "--count", "--limit", "--streams"])
def test_options_that_moved_say_so(option: str) -> None:
    result = bench("disk", option, "1")
    assert result.exit_code == 2
    assert "`python -m benchmarks` from a checkout" in " ".join(result.stderr.split())
    assert option not in bench("--help").stdout


def test_the_package_imports_nothing_of_the_checkout() -> None:
    for file in (ROOT / "python" / "velocpy").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "benchmarks"], file


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [[], ["wrong"]])
def test_the_link_on_the_double(run_python: RunPython, double_core: Path, root: Path, wrong: list[str]) -> None:
    path = os.pathsep.join([str(root / "python" / "tests"), os.environ.get("PYTHONPATH", "")])
    code = "import sys, link_on_double; link_on_double.main(*sys.argv[1:])"
    done = run_python(code, *wrong, timeout=200, env={"VELOCPY_CORE": str(double_core), "PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.gpu
def test_the_link_has_rows_for_the_device_and_both_directions() -> None:
    from velocpy.bench import link

    if not link.available():
        pytest.skip("PyTorch finds no GPU")
    report = link.run(size=1 << 20, rounds=1)
    assert [row["what"] for row in report.rows] == ["capture on the device", "device to host", "host to device"]
    assert all(bar.holds for bar in report.bars)
