"""The benchmarks run, compare the bytes that they restore, and write results that say what they were measured on."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import BENCHMARKS, QUICK, main
from benchmarks.host import gobench
from benchmarks.report import claims, page
from benchmarks.report.reasons import REASONS
from velocpy.bench import report

ROOT = Path(__file__).resolve().parents[2]

#: What the claim with the bars of `lease` and `small` says.
ON_THE_HOST = (
    "eviction decision among 4096 fragments, lease of host memory, checkpoint() of ten regions of 1 KiB, µs; "
    "memory of a record, bytes"
)


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_quick_run_writes_a_result(name, tmp_path):
    if name == "storages":
        pytest.importorskip("pyrevolve")
    of_go = name in ("aggregation", "bucket", "decision", "twins")
    if of_go and not ((ROOT / "gocore").is_dir() and shutil.which("go")):
        pytest.skip("needs Go and a checkout")
    # In a process of its own: pyrevolve wants a standard output with a descriptor.
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--folder", tmp_path, "--out", tmp_path / "out"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (written,) = (tmp_path / "out").glob("*.json")
    result = json.loads(written.read_text())
    assert result["benchmark"] == written.stem
    assert written.stem in (name, f"{name}-tiny")
    assert result["rows"] == []
    assert {"cpu", "cores", "commit", "command", "go", "kernel"} <= result["machine"].keys()
    for bar in result["bars"]:  # so little tells nothing of speeds; what comes back has to be right all the same
        assert bar["holds"], bar
        assert not bar["measured"], bar
        assert bar["what"] in ran.stdout
    assert "misses" not in ran.stdout
    assert "it runs, and gives back what it was given" in ran.stdout
    # Nothing that looks like a verdict: no rate, no ceiling, no ratio, no time.
    assert not re.search(r"B/s|ceiling of|best way|µs|\bms\b|\d s\b|interval_ms", ran.stdout), ran.stdout


def test_every_benchmark_has_a_quick_form():
    assert QUICK.keys() == BENCHMARKS.keys()


def test_a_missed_bar_is_said():
    missed = report.Report("x", {})
    missed.bar("of memcpy", 0.5, 0.9, at_least=True)
    missed.bar("µs", 10.0, 30.0, at_least=False)
    missed.never("bytes that differ", 1)
    assert [b.holds for b in missed.bars] == [False, True, False]
    missed.settings["rounds"] = 1
    missed.measure({"ceiling GB/s": 38.0})
    missed.rows.append({"velocpy read GB/s": 38.0})
    missed.notes.append("figures are medians")
    missed.remark("Left out: no fio.")
    missed.only_tried()
    assert [b.what for b in missed.bars] == ["bytes that differ"]
    assert (missed.settings, missed.rows, missed.notes[:-1]) == ({"rounds": 1}, [], ["Left out: no fio."])


def test_the_page_of_results_is_the_committed_results():
    if not (ROOT / "benchmarks" / "results").is_dir():
        pytest.skip("not a checkout")
    results = ROOT / "benchmarks" / "results"
    for name, text in (("results.md", page.page(results)), ("results-tables.md", page.tables(results))):
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "make generate writes it anew"


def test_every_missed_claim_of_the_committed_results_has_its_reason():
    assert REASONS.keys() <= {claim.bars for claim in claims.CLAIMS}
    if not (ROOT / "benchmarks" / "results").is_dir():
        pytest.skip("not a checkout")
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert "**misses**" in text
    assert "Not explained yet" not in text


def test_what_is_missed_is_listed_with_peer_figure_bar_and_reason():
    judged = claims.judge([result("lease", "lease of 64 KiB, µs", 30.0, 20), result("device", "training", 1, 2)])
    assert claims.missed(judged) == [f"* **{ON_THE_HOST}**: 30, bar ≤ 20. Not explained yet."]
    (line,) = claims.missed(claims.judge([result("shot-link", "x: of the ring's blocked time", 0.9, 0.5)]))
    assert line.startswith(
        "* **shots with a disk, and over the link, by blocked time**, beside a ring; with a disk the better of two "
        "with O_DIRECT: 0.9, bar ≤ 0.5. With a disk,"
    )


def table_of(results):
    return claims.table(claims.judge(results))


def result(benchmark, what, value, bound, *, at_least=False, rounds=9):
    bar = {"what": what, "value": value, "bound": bound, "at_least": at_least}
    return {"benchmark": benchmark, "settings": {"rounds": rounds} if rounds else {}, "bars": [bar]}


def test_a_claim_is_missed_by_the_median_of_one_of_its_bars():
    def measured(bound, value, what="64 KiB"):
        return result("lease", f"lease of {what}, µs", value, bound)

    runs = [measured(20, value) for value in (30.0, 10.0, 15.0)]
    head, rule, line = table_of(runs)
    assert head == "| claim | peer | ceiling | ratio or figure | bar | holds |"
    assert rule.count("|") == head.count("|")
    assert line == f"| {ON_THE_HOST} | – | – | 15 | ≤ 20 | holds |"
    beside = result("device", "training", 2, 1)
    lines = table_of([*runs, measured(20, 21.0, "1 MiB"), beside, measured(30, 1.0, "2 MiB")])[2:]
    assert lines == [
        "| training beside flushes, by time | plain copies of the same bytes | – | 2 | ≤ 1 | **misses** |",
        f"| {ON_THE_HOST} | – | – | 1 … 21 | ≤ 20, ≤ 30 | **2 of 3** |",
    ]
    with pytest.raises(ValueError, match="no claim"):
        table_of([result("new", "x", 1, 1)])


def test_peers_and_ceilings_have_columns_of_their_own():
    commits = result("commits", "commits a second, of SQLite", 1.0, 0.9, at_least=True)
    assert table_of([commits])[2].split(" | ")[1:3] == [
        "of commits: SQLite in WAL mode; of archives: a file for each rank, MPI-IO",
        "raw writes with as many per fdatasync; O_DIRECT beside it",
    ]
    ring = result("shot-link", "x: of the ring's blocked time", 0.2, 0.5)
    assert table_of([ring])[2].split(" | ")[1:3] == ["a ring; with a disk the better of two with O_DIRECT", "–"]


@pytest.mark.parametrize(
    ("rounds", "mark"),
    [([3], ""), ([1, 1, 1], ""), ([2], " (2 rounds)"), ([None, 1], " (2 rounds)"), ([1], " (1 round)")],
)
def test_figures_of_few_rounds_are_marked(rounds, mark):
    (line,) = table_of([result("small", "x, µs", 12.0, 30, rounds=each) for each in rounds])[2:]
    assert line == f"| {ON_THE_HOST} | – | – | 12{mark} | ≤ 30 | holds |"


def test_simulated_figures_have_no_rounds():
    one = result("aggregation", "4096 simulated ranks: rate", 1.2, 1, at_least=True)
    one["bars"][0]["measured"] = False
    (line,) = table_of([one])[2:]
    assert line.endswith("| 1.2 | ≥ 1 | holds |")


def test_one_run_with_wrong_bytes_is_not_hidden_by_others():
    runs = [
        result("commits", "checkpoints that did not come back as they were", faults, 0, rounds=1)
        for faults in (0, 4, 0)
    ]
    (line,) = table_of(runs)[2:]
    assert line.endswith("| 4 | ≤ 0 | **misses** |")


def test_the_page_begins_with_forty_lines_at_most():
    if not (ROOT / "benchmarks" / "results").is_dir():
        pytest.skip("not a checkout")
    title, empty, head, _, *lines = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    assert (title, empty) == ("# Measured results", "")
    assert head == "| claim | peer | ceiling | ratio or figure | bar | holds |"
    assert 25 <= lines.index("") <= 35


def test_help_names_every_benchmark_in_one_piece():
    shown = CliRunner().invoke(main, ["--help"], terminal_width=60).output
    assert "[NAMES]..." in shown.splitlines()[0]
    assert set(BENCHMARKS) <= set(re.findall(r"[a-z]+", shown.partition("NAMES: ")[2]))


def test_what_go_says_is_read_by_name_and_unit():
    said = (
        "goos: linux\nBenchmarkDecode/raw-2  17515   66814 ns/op\t 15693.93 MB/s\t  0.9993 ratio\n"
        "BenchmarkDecode/raw-2  2  70000 ns/op\t 15000 MB/s\nBenchmarkThousand/spread=0  3  1e+06 ns/op\nPASS\n"
    )
    assert gobench.parse(said) == {
        "Decode/raw": {"ns/op": [66814, 70000], "MB/s": [15693.93, 15000], "ratio": [0.9993]},
        "Thousand/spread=0": {"ns/op": [1e6]},
    }
    words = gobench.command(["a", "b/c"], "^BenchmarkX$", 3, "1x")
    assert words[2:6] == ["-p", "1", "./gocore/a", "./gocore/b/c"]
    assert words[-4:] == ["-count", "3", "-benchtime", "1x"]


def test_go_that_says_nothing_is_an_error(monkeypatch):
    with pytest.raises(click.ClickException, match="nothing that is understood"):
        gobench.measure(["echo", "PASS"])
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(click.ClickException, match="needs Go"):
        gobench.measure(["go"])
