"""What the GPU benchmarks are made of, without a GPU: workloads, the ring's order of things, bounds, bars."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import random
import threading
import time
from collections import deque

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.__main__ import main
from benchmarks.engines import contenders
from benchmarks.engines.card import HostCard
from benchmarks.engines.keep import Keep
from benchmarks.engines.managed import Managed
from benchmarks.engines.ring import RESERVED, Ring
from benchmarks.engines.spill import SpillFile
from benchmarks.engines.synchronous import Synchronous
from benchmarks.engines.workload import (
    GIB,
    HINTS,
    MIB,
    ORDERS,
    Workload,
    keys,
    trace_sizes,
    uniform,
    variable,
)
from benchmarks.paper import cells, cold, coldstart, contest, play, ranks, shot, team
from benchmarks.paper.bound import lower_bound
from benchmarks.paper.contest import Contest, Played
from benchmarks.paper.play import Outcome, Walls
from benchmarks.report import page, plots
from velocpy.bench.report import Report

KIB = 1 << 10


# --- workloads ---


def test_the_trace_is_the_published_one():
    trace = trace_sizes()
    assert len(trace) == 30 * 8
    assert (min(trace), max(trace)) == (100_161_084, 155_237_880)
    assert trace[:2] == (100_161_084, 129_387_140)


def test_variable_sizes_reach_the_total_and_no_further():
    sizes = variable(total=48 * 10**9)
    assert sum(sizes) >= 48 * 10**9 > sum(sizes[:-1])
    assert sizes[240:250] == sizes[:10], "the trace is repeated"
    assert variable(count=5, rank=3) == trace_sizes()[3:8]


@pytest.mark.parametrize("order", ORDERS)
def test_every_checkpoint_is_restored_once(order):
    assert sorted(keys(order, 384)) == list(range(384))
    assert keys(order, 384) == keys(order, 384), "every contender gets the same"


def test_irregular_is_neither_of_the_others():
    assert keys("irregular", 384) not in (keys("reverse", 384), keys("sequential", 384))


@pytest.mark.parametrize("wrong", [{"order": "backwards"}, {"hints": "some"}, {"sizes": ()}, {"sizes": (0,)}])
def test_workloads_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=r"none of|bytes"):
        Workload(**({"sizes": (1,)} | wrong))


# --- a card whose lanes lag behind ---


class Lagging:
    """A device that does nothing before somebody waits, and then as late and as mixed as its lanes allow."""

    name = "lagging"

    def __init__(self, seed: int, largest: int) -> None:
        self._host = HostCard(largest)
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self._lanes: dict[int, deque] = {0: deque()}
        self._done: dict[int, int] = {0: 0}
        self._told: dict[int, int] = {0: 0}

    def lane(self):
        with self._lock:
            lane = len(self._lanes)
            self._lanes[lane], self._done[lane], self._told[lane] = deque(), 0, 0
            return lane

    def device(self, size):
        return self._host.device(size)

    def pinned(self, count, size):
        return self._host.pinned(count, size)

    def memory(self, piece):
        return self._host.memory(piece)

    def _enqueue(self, lane, work):
        with self._lock:
            self._lanes[lane or 0].append(work)
            self._told[lane or 0] += 1

    def copy(self, to, source, lane=None):
        self._enqueue(lane, lambda: np.copyto(to, source))

    def mark(self, lane=None):
        with self._lock:
            return _LaneMark(self, lane or 0, self._told[lane or 0])

    def after(self, marks, lane=None):
        for mark in marks:
            self._enqueue(lane, mark)

    def spin(self, seconds):
        pass

    def stamp(self, to, key):
        self._enqueue(None, lambda: self._host.stamp(to, key))

    def compare(self, found, key):
        self._enqueue(None, lambda: self._host.compare(found, key))

    def differences(self):
        self.join()
        return self._host.differences()

    def join(self):
        self.mark().wait()

    def rates(self, size):
        return self._host.rates(size)

    def room(self):
        return self._host.room()

    def reach(self, lane, point):
        """Does work of random lanes until this one has come so far."""
        with self._lock:
            while self._done[lane] < point:
                able = [n for n, works in self._lanes.items() if works and self._able(works[0])]
                assert able, "the lanes wait for each other"
                self._one(lane if lane in able and self._random.random() < 0.3 else self._random.choice(able))

    def _able(self, work):
        return not isinstance(work, _LaneMark) or self._done[work.lane] >= work.point

    def _one(self, lane):
        work = self._lanes[lane].popleft()
        if not isinstance(work, _LaneMark):
            work()
        self._done[lane] += 1


class _LaneMark:
    def __init__(self, card, lane, point):
        self.card, self.lane, self.point = card, lane, point

    def wait(self):
        self.card.reach(self.lane, self.point)


def small(order="reverse", hints="all", *, disk=True, count=24, wait=False, **changes):
    sizes = tuple(8 * KIB - 13 * (i % 7) for i in range(count))
    return Workload(
        sizes,
        order=order,
        hints=hints,
        wait_flushed=wait,
        interval=0,
        **{"device": 32 * KIB, "host": (8 if disk else count) * 8 * KIB, "disk": MIB if disk else 0} | changes,
    )


def played(card, workload, engine, rounds=2):
    source = card.device(workload.largest)
    return [play.shot(card, workload, engine, source, Walls(0, 0)) for _ in range(rounds)]


def test_the_lagging_card_finds_a_missing_wait():
    """The double is worth something only if it shows what forgetting an order does."""
    found = 0
    for seed in range(20):
        card = Lagging(seed, 64)
        side, a, b = card.lane(), card.device(64), card.device(64)
        card.stamp(a, 1)
        card.copy(b, a, side)  # nothing says that it comes after the stamp
        card.mark(side).wait()
        card.compare(b, 1)
        found += card.differences() > 0
    assert found > 5


@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(ORDERS),
    hints=st.sampled_from(HINTS),
    disk=st.booleans(),
    spill=st.sampled_from(["lazy", "eager"]),
    wait=st.booleans(),
    device=st.integers(2, 9),
    count=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_the_ring_brings_everything_back(tmp_path_factory, seed, order, hints, disk, spill, wait, device, count):
    workload = small(order, hints, disk=disk, wait=wait, count=count, device=device * 8 * KIB)
    card = Lagging(seed, workload.largest)
    ring = Ring(card, workload, tmp_path_factory.getbasetemp(), spill=spill)
    try:
        for outcome in played(card, workload, ring):
            assert outcome.differences == 0
            assert len(outcome.restore_calls) == count
    finally:
        ring.close()


@pytest.mark.parametrize("order", ORDERS)
def test_baselines_bring_everything_back(order, tmp_path):
    workload = small(order, hints="one")
    for make in (
        lambda card: Keep(card, workload),
        lambda card: Synchronous(card, workload, tmp_path),
        lambda card: Managed(card, workload, tmp_path),
    ):
        card = HostCard(workload.largest)
        engine = make(card)
        assert [o.differences for o in played(card, workload, engine)] == [0, 0]
        engine.close()


@given(order=st.sampled_from(ORDERS), hints=st.sampled_from(HINTS), wait=st.booleans(), count=st.integers(14, 60))
@settings(max_examples=40, deadline=None)
def test_unified_memory_keeps_to_its_budgets_and_brings_everything_back(tmp_path_factory, order, hints, wait, count):
    workload = small(order, hints, count=count, wait=wait)
    card = HostCard(workload.largest)
    engine = Managed(card, workload, tmp_path_factory.getbasetemp())
    for outcome in played(card, workload, engine):
        assert outcome.differences == 0
        beyond = workload.total - workload.device - workload.host
        assert outcome.facts["disk written GB"] * 1e9 >= beyond
        assert outcome.facts["disk read GB"] * 1e9 >= beyond
    engine.close()


def test_a_wrong_byte_is_counted():
    workload = small("sequential", disk=False)
    card = HostCard(workload.largest)

    class Forgetful(Keep):
        def restore(self, key, following):
            found = super().restore(key, following).copy()
            found[-1] ^= key == 3
            return found

    assert [o.differences for o in played(card, workload, Forgetful(card, workload), rounds=1)] == [1]


def test_the_ring_prefetches_as_far_as_its_slots_reach(tmp_path):
    workload = small("sequential", "all", disk=False)
    card = HostCard(workload.largest)
    ring = Ring(card, workload, tmp_path)
    source = card.device(workload.largest)
    outcome = play.shot(card, workload, ring, source, Walls(0, 0), trace=True)
    assert outcome.distances[:-4] == [4] * 20
    assert outcome.distances[-4:] == [3, 2, 1, 0]
    assert outcome.facts["down GB"] * 1e9 == workload.total
    # Four checkpoints were on the device when the restores began, and had to go for those that are wanted first.
    assert outcome.facts["up GB"] * 1e9 == pytest.approx(workload.total, rel=0.2)
    ring.close()


def test_without_hints_the_ring_knows_nothing(tmp_path):
    workload = small("irregular", "none", disk=False)
    card = HostCard(workload.largest)
    ring = Ring(card, workload, tmp_path)
    outcome = play.shot(card, workload, ring, card.device(workload.largest), Walls(0, 0), trace=True)
    assert outcome.distances[0] <= 4
    assert max(outcome.distances[6:]) <= 4
    ring.close()


def test_the_ring_says_what_went_wrong_with_its_disk(tmp_path):
    workload = small("reverse")
    card = HostCard(workload.largest)
    ring = Ring(card, workload, tmp_path)

    def broken(*_):
        raise OSError("no space left")

    ring._file.write = broken
    with pytest.raises(OSError, match="no space left"):
        played(card, workload, ring)
    with pytest.raises(OSError, match="no space left"):
        ring.close()  # and gives everything back all the same


def test_the_ring_wants_host_slots_for_its_reads(tmp_path):
    with pytest.raises(ValueError, match="host slots"):
        Ring(HostCard(8 * KIB), small(host=RESERVED * 8 * KIB), tmp_path)


@pytest.mark.parametrize("direct", [True, False])
def test_the_spill_file_gives_back_what_it_took(direct, tmp_path):
    file = SpillFile(tmp_path, (100, 9000, 5000), direct)
    first, second = HostCard(8).pinned(2, 5000)
    first[:] = np.random.default_rng(1).integers(0, 256, len(first), dtype=np.uint8)
    file.write(2, memoryview(first), 5000)
    file.load(2, memoryview(second), 5000)
    assert np.array_equal(first[:5000], second[:5000])
    assert (file.written, file.read) == (8192, 8192), "whole blocks"
    assert not list(tmp_path.iterdir()), "nothing is left behind, whatever happens"
    file.close()


# --- the bound ---

RATES = {"device": 2e12, "down": 50e9, "up": 50e9, "disk write": 2e9, "disk read": 2e9}


def test_nothing_to_wait_for_but_the_copies():
    writing, reading = lower_bound(Workload(uniform(192)), RATES)
    assert writing == pytest.approx(192 * 128 * MIB / 2e12, rel=0.01)
    assert reading == 0
    _, copied = lower_bound(Workload(uniform(192)), RATES, leases=False)
    assert copied == pytest.approx(writing, rel=0.01)


def test_what_the_caches_do_not_hold_goes_over_the_disk():
    workload = Workload(uniform(192), interval=10e-3, host=16 * GIB, disk=60 * GIB)
    writing, reading = lower_bound(workload, RATES)
    beyond = workload.total - 18 * GIB
    assert writing == pytest.approx(beyond / 2e9 - 192 * 10e-3, abs=0.1)
    assert reading == pytest.approx(writing, abs=0.1)
    faster, _ = lower_bound(workload, RATES | {"disk write": 4e9})
    assert faster < writing


# --- cells, rows, bars ---


def test_cells_are_chosen_by_name():
    assert len(cells.chosen("link")) == 9
    assert len(cells.chosen("bars")) == sum(len(cells.GROUPS[g]()) for g in cells.SETS["bars"])
    with pytest.raises(ValueError, match="disk-uniform"):
        cells.chosen("everything")
    with pytest.raises(ValueError, match="backwards"):
        cells.chosen("link:backwards")
    assert {c.workload.order for c in cells.chosen("link:reverse")} == {"reverse"}


def test_all_cells_make_sense_and_differ():
    every = cells.chosen("all")
    assert len({(cell.figure, cell.name, cell.contenders) for cell in every}) == len(every)
    for cell in every:
        assert cell.workload.disk == 0 or cell.workload.disk >= cell.workload.total
        assert cell.workload.disk or cell.workload.host >= cell.workload.total, "the host holds all"
    groups = cells.together(every)
    assert sum(map(len, groups)) == len(every)
    assert len(groups) < len(every) / 2, "engines are opened once for many cells"


def outcome(writing, reading, differences=0):
    return Outcome(writing, reading, 0.0, [1e-5] * 10, [2e-5] * 10, differences, [], {})


def report_of(group, blocked, differences=0):
    """A report of one group of cells, with this blocked time by contender."""
    cell = cells.GROUPS[group]()[0]
    rows = [
        Played(0, who, [outcome(seconds / 2, seconds / 2, differences)], Walls(0.5, 0.5))
        for who, seconds in blocked.items()
    ]
    report = Report("shot", {})
    report.rows += shot.rows_of(cell, 0, [Contest("card", RATES, rows)], RATES)
    shot.add_bars(report)
    return report


@pytest.mark.parametrize(("ours", "holds"), [(0.049, True), (0.051, False)])
def test_the_link_bar_is_half_of_the_rings(ours, holds):
    report = report_of("link", {"ring": 0.1, "velocpy": ours})
    (bar,) = [b for b in report.bars if "ring" in b.what]
    assert bar.holds == holds


def test_what_can_be_had_stands_beside_the_ring():
    report = report_of("link", {"ring": 0.1, "keep": 0.09, "velocpy": 0.15, "velocpy unchecked": 0.11})
    (note,) = report.notes
    assert "everything kept on the device: 0.90, velocpy without checksums: 1.10" in note
    assert report_of("link", {"ring": 0.1, "velocpy": 0.15}).notes == []


def test_the_disk_bar_takes_the_better_ring():
    report = report_of("disk-uniform", {"ring lazy": 10.0, "ring eager": 5.0, "velocpy": 2.1})
    (bar,) = [b for b in report.bars if "ring" in b.what]
    assert bar.value == pytest.approx(0.42)
    assert not bar.holds


def test_unified_memory_counts_by_its_second_run():
    rows = {"unified memory, first run": 100.0, "unified memory, second run": 5.0, "velocpy": 1.0}
    (bar,) = [b for b in report_of("paper-uniform", rows).bars if "Unified" in b.what]
    assert bar.value == pytest.approx(5)
    assert not bar.holds


def test_a_difference_misses_a_bar():
    assert not report_of("link", {"velocpy": 0.01}, differences=1).bars[-1].holds
    assert report_of("link", {"velocpy": 0.01}).bars[-1].holds


def test_rows_of_several_processes_are_means():
    cell = cells.GROUPS["processes"]()[1]
    contests = [
        Contest("card", RATES, [Played(0, "ring", [outcome(seconds, 0)], Walls(1, 1))]) for seconds in (1.0, 3.0)
    ]
    (row,) = shot.rows_of(cell, 0, contests, RATES)
    assert row["writing s"] == pytest.approx(2)


@pytest.mark.parametrize(("times", "holds"), [(51, True), (49, False)])
def test_the_cold_bar(times, holds):
    report = Report("coldstart", {})
    start = cold.Start("bar", "uniform", 10e-3)
    for who, blocked in (("velocpy", 0.1), ("direct pinning", 0.1 * times)):
        report.rows.append(coldstart.row_of(start, who, [[cold.Cold(0.01, 0.001, blocked, "card", {})]] * 3))
    coldstart.add_bars(report)
    assert report.bars[0].holds == holds
    assert all(bar.holds for bar in report.bars[1:])


def test_cold_bars_are_those_of_the_medians():
    report = Report("coldstart", {})
    start = cold.Start("bar", "uniform", 10e-3)
    for who, blocked in (("velocpy", (0.3, 0.12, 0.13)), ("keep", (0.04, 0.05, 0.9))):
        rounds = [[cold.Cold(0.01, 0.001, seconds, "card", {})] for seconds in blocked]
        report.rows.append(coldstart.row_of(start, who, rounds))
    coldstart.add_bars(report)
    beyond = next(bar for bar in report.bars if "beyond keep" in bar.what)
    assert beyond.value == pytest.approx(0.08)
    assert report.rows[0]["rounds"] == 3


def test_the_bar_on_fresh_memory():
    report = Report("coldstart", {})
    start = cold.Start("fresh", "uniform", 1.0, count=10, size=10, device=40, fresh=True)
    row = coldstart.row_of(start, "velocpy", [[cold.Cold(0.01, 0.001, 3.4, "card", {})]])
    bound = coldstart.fresh_bound(start.workload(0).sizes, start.device, start.interval, 5.0)
    report.rows.append(row | {"bound s": bound})
    coldstart.add_bars(report)
    assert (bound, report.bars[0].value, report.bars[0].holds) == (3.0, pytest.approx(3.4 / 3), True)


def test_touched_memory_is_given_back():
    with cold.Touched(8 * MIB) as touched:
        assert touched.rate > 0
    with pytest.raises(ValueError, match="closed"):
        len(touched._whole)


def test_a_cold_start_takes_what_the_machine_has():
    start = cold.Start("x", "uniform", 1e-3, processes=4)
    fitted = start.fitted(96 * GIB)
    assert fitted.host * 4 <= 64 * GIB
    assert fitted.count * 128 * MIB <= fitted.host
    assert start.fitted(512 * GIB) == start


# --- the whole, small ---


def test_two_coupled_processes(tmp_path):
    workload = small("reverse", disk=False)
    cell = cells.Cell("x", workload, ("keep", "ring", "velocpy"), processes=2, coupled=True)
    contests = ranks.play([cell], tmp_path, deadline=time.monotonic() + 60)
    assert len(contests) == 2
    for each in contests:
        assert [p.contender for p in each.played] == ["keep", "ring", "velocpy"]
        assert all(o.differences == 0 for p in each.played for o in p.outcomes)


def test_a_process_that_fails_fails_the_run(tmp_path):
    cell = cells.Cell("x", small(disk=False), ("nobody",), processes=2)
    with pytest.raises(team.MemberFailed, match="nobody is called"):
        ranks.play([cell], tmp_path, deadline=time.monotonic() + 60)


def test_a_process_that_dies_is_noticed():
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    members = [context.Process(target=os._exit, args=(3,)) for _ in range(2)]
    with pytest.raises(team.MemberFailed, match="3"):
        team.run(members, answers, patience=60)


def test_figures_are_explained():
    for cell in cells.chosen("all"):
        assert cell.figure in cells.ABOUT or cell.figure.split()[0] in cells.ABOUT


def test_who_cannot_play_is_left_out(monkeypatch, tmp_path):
    card = HostCard(8)
    monkeypatch.setattr(card, "room", lambda: 10)
    with pytest.raises(contenders.LeftOut, match="no room"):
        contenders.engine_for("keep", card, small(), tmp_path)


def test_no_time_is_said(tmp_path):
    report = shot.run(tmp_path, "tiny", limit=0)
    assert not report.rows
    assert any("no time was left" in note for note in report.notes)


def test_results_become_pictures_and_a_page_that_shows_them(tmp_path):
    pytest.importorskip("matplotlib")
    report = report_of("link", {"ring": 0.1, "velocpy": 0.04})
    report.name = "shot-link"
    report.rows[1]["distances"] = [[4, 3, 2, 1, 0]]
    facts = {"command": "x", "date": "", "commit": "", "cores": 1, "cpu": "", "memory_gib": 1, "kernel": ""}
    report.save(tmp_path, facts | {"python": "", "numpy": "", "go": "", "load": [0.0]})
    assert [p.name for p in plots.draw(tmp_path)] == ["shot-link.svg", "shot-link.distance.svg"]
    assert "<svg" in (tmp_path / "shot-link.svg").read_text()
    assert page.tables(tmp_path).count("](../benchmarks/results/shot-link") == 2
    assert page.page(tmp_path).count("](../benchmarks/results/shot-link") == 1
    drawn = (tmp_path / "shot-link.svg").read_bytes()
    plots.draw(tmp_path)
    assert (tmp_path / "shot-link.svg").read_bytes() == drawn, "the same numbers, the same picture"


def test_categories_are_what_distinguishes_cells():
    cellz = cells.GROUPS["figure6-uniform"]()
    rows = [{"about": [shot.about(cell)], "who": "x"} for cell in cellz]
    assert plots.categories(rows)[0] == "sequential\nhints none"
    assert len(plots.categories(rows)) == 9
    assert plots.categories(rows[:1]) == ["all"]


def test_the_cuda_cards_comparison_on_tensors_of_the_cpu():
    """Every word and every odd byte of the tail is written, and looked at; the arithmetic is that of the GPU."""
    torch = pytest.importorskip("torch")
    from benchmarks.engines.cuda import CudaCard

    card = CudaCard.__new__(CudaCard)
    card._torch = torch
    card._pattern = torch.randint(-(2**62), 2**62, (13,), dtype=torch.int64)
    card._scratch, card._mask = torch.empty_like(card._pattern), torch.empty(13, dtype=torch.bool)
    card._differences = torch.zeros((), dtype=torch.int64)
    for size in (1, 7, 8, 9, 64, 95, 96):
        memory = torch.zeros(size, dtype=torch.uint8)
        card.stamp(memory, 5)
        card.compare(memory, 5)
        assert int(card._differences) == 0
        card.compare(memory, 6)
        assert int(card._differences) == size // 8 + sum(
            a != b for a, b in zip(card._tail(size, 5).tolist(), card._tail(size, 6).tolist(), strict=True)
        )
        card._differences.zero_()
        for at in (0, size // 2, size - 1):
            memory[at] ^= 1
            card.compare(memory, 5)
            assert int(card._differences) == 1
            card._differences.zero_()
            memory[at] ^= 1


def test_a_wrong_name_lists_the_right_ones():
    for name in ("shot", "coldstart"):
        shown = CliRunner().invoke(main, [name, "--cells", "everything"])
        assert shown.exit_code == 1
        assert "quick" in shown.output
        assert "bars" in shown.output


# --- the order of things in a contest ---


def contest_of(monkeypatch, tmp_path, group, rounds, deadline=None):
    """Plays a group with engines that do nothing, and returns what happened and the contest."""
    happened = []

    class Fake:
        def close(self):
            happened.append("close")

    def compute_only(card, workload, source, pace):
        happened.append("baseline")
        return Walls(1, 1)

    def engine_for(name, card, workload, folder):
        happened.append(name)
        return Fake()

    monkeypatch.setattr(contest, "compute_only", compute_only)
    monkeypatch.setattr(contest, "engine_for", engine_for)
    monkeypatch.setattr(contest, "shot", lambda *_: outcome(1.0, 1.0))
    card = HostCard(group[0].workload.largest)
    return happened, contest._play(group, tmp_path, card, play.Pace(), deadline or time.monotonic() + 60, rounds)


def test_baselines_of_all_cells_are_measured_before_anything_is_opened(monkeypatch, tmp_path):
    group = [cells.Cell("x", dataclasses.replace(small(), interval=i), ("keep", "velocpy")) for i in (1.0, 2.0, 1.0)]
    happened, played = contest_of(monkeypatch, tmp_path, group, 1)
    assert happened == ["baseline"] * 5 + ["velocpy", "close", "keep", "close"], "a warm-up, and two for each interval"
    assert {p.cell for p in played.played} == {0, 1, 2}


def test_each_round_begins_with_another_contender_and_velocpy_is_the_first(monkeypatch, tmp_path):
    group = [cells.Cell("x", small(), ("keep", "ring", "velocpy", "velocpy lru"))]
    happened, played = contest_of(monkeypatch, tmp_path, group, 2)
    opened = [name for name in happened if name not in ("baseline", "close")]
    assert opened == ["velocpy", "velocpy lru", "keep", "ring", "velocpy lru", "keep", "ring", "velocpy"]
    assert {p.contender: len(p.outcomes) for p in played.played} == dict.fromkeys(group[0].contenders, 2)
    assert contest.turns(["keep", "ring"], 1) == ["ring", "keep"]


def test_rounds_for_which_no_time_is_left_are_said(monkeypatch, tmp_path):
    clock = iter([0.0, 0.0, 0.0, 0.0, *[2.0] * 9])
    monkeypatch.setattr(contest.time, "monotonic", lambda: next(clock))
    group = [cells.Cell("x", small(), ("keep", "velocpy"))]
    _, played = contest_of(monkeypatch, tmp_path, group, 2, deadline=1.0)
    assert [p.contender for p in played.played if p.outcomes] == ["keep", "velocpy"]
    absences = [p.left_out for p in played.played if p.left_out]
    assert absences == ["keep: no time was left in round 2", "velocpy: no time was left in round 2"]


def test_rounds_of_unified_memory_keep_first_and_second_runs_apart(monkeypatch, tmp_path):
    _, played = contest_of(monkeypatch, tmp_path, [cells.Cell("x", small(), ("unified memory", "velocpy"))], 3)
    runs = {p.contender: len(p.outcomes) for p in played.played}
    assert runs == {"velocpy": 3, "unified memory, first run": 3, "unified memory, second run": 3}


def test_shots_have_rounds(monkeypatch, tmp_path):
    asked = []

    def played(group, folder, deadline, rounds):
        asked.append((rounds, {cell.rounds for cell in group}))
        return [Contest("card", RATES, [])]

    monkeypatch.setattr(shot.ranks, "play", played)
    monkeypatch.setattr(shot, "_disk_rates", lambda folder, groups: {})
    assert shot.run(tmp_path, "disk-alone", rounds=4).settings["rounds"] == 4
    assert asked
    assert all(each == (4, {1}) for each in asked)
    asked.clear()
    assert "rounds" not in shot.run(tmp_path, "disk-alone").settings
    assert all(each == (1, {3}) for each in asked)


# --- who does not fit ---


@pytest.mark.parametrize("when", ["open", "write"])
def test_a_cold_start_that_does_not_fit_is_left_out(monkeypatch, tmp_path, when):
    torch = pytest.importorskip("torch")

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 128 MiB.\nGPU 0 has too little.")

    monkeypatch.setattr(cold, "engine_for" if when == "open" else "write", full)
    start = cold.Start("x", "uniform", 1e-4, count=4, size=8 * KIB, host=MIB, device=MIB)
    with pytest.raises(contenders.LeftOut, match=r"^keep: does not fit: CUDA out of memory[^\n]*$"):
        cold.measure(start, "keep", tmp_path, 0, lambda: None)


def test_another_error_of_a_contender_is_no_matter_of_room():
    with pytest.raises(RuntimeError, match="broken"), contenders.fitting("keep"):
        raise RuntimeError("broken")
