"""Two cores beside each other: rows are matched by name, medians compared, and noise estimated from the same rounds."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import BENCHMARKS, BRIEF
from benchmarks.compare import cores, medians, rounds, timings
from benchmarks.report import claims, page


def small(micros, faults=0):
    rows = [
        {"what": "checkpoint()", "median µs": micros, "p99 µs": 90.0},
        {"what": "ten numpy copies", "median µs": 12.0, "p99 µs": 40.0},
    ]
    return {"benchmark": "small", "rows": rows, "bars": [{"what": "x", "value": faults, "measured": False}]}


def compared(before, after, **changes):
    """The report of rounds of `small` with these medians."""
    results = {"before": [small(value) for value in before], "after": [small(value, **changes) for value in after]}
    reports = [("small", core, result) for core, found in results.items() for result in found]
    return cores.report_of(reports, {"rounds": len(before)})


def row_of(report, timing):
    (row,) = [row for row in report.rows if row["timing"] == timing]
    return row


def test_rows_are_matched_by_their_names_not_their_places():
    first, second = small(4.0), small(8.0)
    second["rows"].reverse()
    report = cores.report_of([("small", "before", first), ("small", "after", second)], {"rounds": 1})
    row = row_of(report, "what checkpoint(), median µs")
    assert (row["before"], row["after"], row["ratio"]) == (4.0, 8.0, 2.0)
    assert row_of(report, "what ten numpy copies, median µs")["ratio"] == 1.0


def test_every_form_finds_the_timings_of_its_benchmark():
    rows = {
        "capture": [{"MiB": 1, "memcpy, 1 thread GB/s": 9.0, "checksum on GB/s": 8.0, "checksum on: of the best": 0.9}],
        "sweep": [{"interval": "sleeping", "hints": "all", "blocked s": 0.1, "compute s": 1.0, "runs": [[{}]]}],
        "disk": [{"velocpy write GB/s": 1.0, "disk write GB/s": 2.0}, {"tool": "threads", "GB/s": 2.0}],
        "durable": [
            {"stream": "2 × 4 MiB", "who": who, "per sync": 2, "GB/s": 1.0, "checkpoints/s": 9.0}
            for who in ("velocpy", "velocpy, one at a time", "raw, sync after 2")
        ],
        "scale": [
            {"checkpoints": 9, "order": order, "lease µs": 1.0} for order in ("random", "random, a dict of copies")
        ],
        "lease": [
            {"bytes": 4096, "first lease, verified, µs": 9.0, "median µs": 1.0, "with its array, median µs": 2.0}
        ],
        "device": [
            {"what": "copy()", "host median µs": 9.0, "first, host median µs": 50.0, "device µs": 90.0},
            {"what": "checkpoint(), checksum on", "host median µs": 9.0, "host p99 µs": 99.0, "of a plain copy": 1.1},
            {"what": "transfers, up", "GB/s": 50.0},
            {"what": "ring: write, the device waited for before", "host median µs": 9.0},
        ],
        "shot": [{"shot": "192 uniform", "who": "velocpy", "blocked s": 1.0, "bound s": 1.0, "restore p99 µs": 9.0}],
        "coldstart": [{"start": "128 uniform", "blocked s": 1.0, "open ms": 9.0, "each": [[]]}],
    }
    held = {
        name: [what for what, timing in timings.timings({"benchmark": name, "rows": some}).items() if timing.held]
        for name, some in rows.items()
    }
    assert held == {
        "capture": ["MiB 1, checksum on GB/s"],
        "sweep": ["interval sleeping, hints all, blocked s"],
        "disk": ["velocpy write GB/s"],
        "durable": ["stream 2 × 4 MiB, who velocpy, GB/s", "stream 2 × 4 MiB, who velocpy, one at a time, GB/s"],
        "scale": ["checkpoints 9, order random, lease µs"],
        "lease": ["bytes 4096, median µs", "bytes 4096, with its array, median µs"],
        "device": ["what checkpoint(), checksum on, host median µs", "what transfers, up, GB/s"],
        "shot": ["shot 192 uniform, blocked s"],
        "coldstart": ["start 128 uniform, blocked s", "start 128 uniform, open ms"],
    }
    assert timings.timings({"benchmark": "disk", "rows": rows["disk"]})["velocpy write GB/s"].rate
    assert not timings.timings({"benchmark": "scale", "rows": rows["scale"][:1]}).popitem()[1].rate


def test_two_rows_of_one_name_are_refused():
    doubled = small(1.0)
    doubled["rows"] *= 2
    with pytest.raises(ValueError, match="two rows are named 'what checkpoint"):
        timings.timings(doubled)


def test_every_benchmark_that_is_compared_has_brief_settings():
    assert timings.FORMS.keys() == BRIEF.keys()
    assert BRIEF.keys() <= BENCHMARKS.keys()


def test_a_slower_rate_is_a_ratio_above_one():
    assert medians.compared([4.0] * 5, [2.0] * 5, rate=True).ratio == 2.0
    assert medians.compared([4.0] * 5, [2.0] * 5, rate=False).ratio == 0.5


def test_noise_is_that_of_the_noisier_core_and_falls_with_more_rounds():
    calm, noisy = [10.0] * 5, [8.0, 9.0, 10.0, 11.0, 12.0]
    assert medians.noise_of(calm) == 0
    assert 0.1 < medians.noise_of(noisy) <= 0.5
    assert medians.noise_of(noisy) == medians.noise_of(noisy), "the same numbers, the same noise"
    assert medians.noise_of(noisy * 5) < medians.noise_of(noisy)
    for pair in ((calm, noisy), (noisy, calm)):
        assert medians.compared(*pair, rate=False).noise == medians.noise_of(noisy)


@pytest.mark.parametrize(("after", "holds"), [(10.29, True), (10.31, False), (5.0, True)])
def test_the_bar_is_three_percent_where_there_is_no_noise(after, holds):
    report = compared([10.0] * 5, [after] * 5)
    assert report.bars[0].what == "small: the worst ratio of medians, less its noise"
    assert report.bars[0].holds == holds
    assert row_of(report, "what checkpoint(), median µs")["bar"] == ("holds" if holds else "misses")
    assert row_of(report, "what checkpoint(), p99 µs")["bar"] == "shown"
    assert row_of(report, "what ten numpy copies, median µs")["bar"] == "baseline"


def test_noise_widens_the_bar_but_hides_no_large_loss():
    noisy = [8.0, 9.0, 10.0, 11.0, 12.0]
    assert compared(noisy, [value * 1.06 for value in noisy]).bars[0].holds
    assert not compared(noisy, [value * 2 for value in noisy]).bars[0].holds
    assert "1 of 1 timings have more noise than 10%, which hides as much." in compared(noisy, noisy).notes


def test_a_loss_of_all_timings_is_said_where_each_holds_its_bar():
    report = compared([8.0, 10.0, 12.0], [8.5, 10.5, 12.5])
    assert report.bars[0].holds
    assert "small: 1 of 1 timings are slower, median ratio 1.05." in report.notes
    assert "small: 0 of 1 timings are slower, median ratio 1." in compared([10.0] * 3, [10.0] * 3).notes


def test_a_timing_that_a_round_lacks_and_wrong_bytes_miss_bars():
    lacking = small(4.0)
    del lacking["rows"][0]["median µs"]
    reports = [("small", "before", small(4.0)), ("small", "after", lacking)]
    report = cores.report_of(reports, {"rounds": 1})
    (bar,) = [bar for bar in report.bars if "lacks" in bar.what]
    assert (bar.value, bar.holds) == (1, False)
    assert "Missing in a round: small: what checkpoint(), median µs." in report.notes
    faults = [bar for bar in compared([1.0] * 3, [1.0] * 3, faults=1).bars if "faults" in bar.what]
    assert [(bar.what.partition(":")[0], bar.value) for bar in faults] == [("before", 0), ("after", 3)]


def test_the_order_of_the_cores_alternates():
    played = []

    def measure(name, core):
        played.append((name, core))
        return {}

    found = list(rounds.play(("small", "disk"), {"before": "A", "after": "B"}, 2, measure))
    assert "".join(core for _, core in played) == "ABBABAAB"
    assert [name for name, _ in played] == ["small", "small", "disk", "disk"] * 2
    assert [(name, {"before": "A", "after": "B"}[core]) for name, core, _ in found] == played


def test_the_command_writes_a_result_that_the_pages_show(tmp_path, monkeypatch):
    monkeypatch.setattr(
        cores, "measured", lambda name, core, folder: small(4.0 if core.library.name == "a.so" else 8.0)
    )
    for name in ("a.so", "b.so"):
        (tmp_path / name).write_text(name)
    arguments = ["small", "--before", tmp_path / "a.so", "--after", tmp_path / "b.so", "--rounds", 2]
    arguments += ["--before-commit", "12ab", "--after-commit", "34cd", "--out", tmp_path / "out"]
    done = CliRunner().invoke(cores.main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert (result["settings"]["before"], result["settings"]["after"]) == ("12ab", "34cd")
    assert result["settings"]["core before"] != result["settings"]["core after"]
    assert result["rows"][0]["rounds"] == [{"before": [4.0, 4.0], "after": [8.0, 8.0]}]
    assert "misses: small: the worst ratio" in done.output
    assert "what checkpoint(), median µs | 4 | 8 | 2" in page.tables(tmp_path / "out")
    assert len(claims.judge([result])) == 2


def test_a_benchmark_that_fails_ends_the_comparison(tmp_path):
    with pytest.raises(rounds.click.ClickException, match=r"none\.so failed"):
        rounds.measured("small", rounds.Core(tmp_path / "none.so"), tmp_path)


def test_a_core_may_be_used_by_another_package_than_the_installed_one(tmp_path):
    (tmp_path / "velocpy").mkdir()
    (tmp_path / "velocpy" / "__init__.py").write_text("import os\nprint(os.environ['VELOCPY_CORE'], __file__)\n")
    core = rounds.Core(tmp_path / "old.so", tmp_path)
    printed = subprocess.check_output([sys.executable, "-c", "import velocpy"], env=core.environment(), text=True)
    assert printed.split() == [str(tmp_path / "old.so"), str(tmp_path / "velocpy" / "__init__.py")]
    report = cores.report_of(
        [("small", core, small(4.0)) for core in rounds.CORES], {"rounds": 1, "before: own package": True}
    )
    assert "The Python package of the core before is its own" in report.notes[0]
    assert "The Python package is the same for both." in compared([1.0], [1.0]).notes[0]
