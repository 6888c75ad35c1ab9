"""The benchmark of histories that a device encodes: its data, its rows and its bars."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data import acoustic
from benchmarks.device import histories, kinds
from benchmarks.engines.card import HostCard
from benchmarks.report import claims
from velocpy.bench.report import Report

SHAPE = (32, 32, 64)


def fields(put, *steps):
    return list(acoustic.fields(put, SHAPE, steps))


@pytest.mark.parametrize(
    ("count", "shape"), [(1 << 12, (16, 16, 16)), (1 << 14, (16, 32, 32)), (1 << 17, (32, 64, 64))]
)
def test_volumes_are_near_to_cubes(count, shape):
    assert acoustic.shape_of(count) == shape


@pytest.mark.parametrize("count", [0, 1 << 11, 3 << 12])
def test_volumes_of_other_counts_are_refused(count):
    with pytest.raises(ValueError, match="power of two"):
        acoustic.shape_of(count)


def test_a_wave_spreads_and_stays_bounded():
    first, second, much = fields(lambda array: array, 3, 9, 600)
    assert first.dtype == np.float32
    assert first.shape == SHAPE
    assert 0 < np.count_nonzero(first) < np.count_nonzero(second) < np.count_nonzero(much)
    assert np.isfinite(much).all()
    assert np.abs(much).max() < 10
    for edge in (much[:2], much[-2:], much[:, :2], much[:, :, -2:]):
        assert not edge.any()


def test_a_wave_travels_at_the_speed_of_its_layer():
    # Behind the wavelet, a front in the layers around the centre; no wave is faster than the fastest.
    steps = 24 + acoustic.PERIOD
    (field,) = acoustic.fields(lambda array: array, (64, 64, 64), [steps])
    distance = np.sqrt(sum((axis - 32.0) ** 2 for axis in np.indices(field.shape)))
    strength = np.abs(field)
    far = distance > acoustic.STABLE * steps + 4
    assert strength[far].max(initial=0) < 0.02 * strength.max()
    assert strength[(distance > 3) & (distance < 12)].max() > 0.02 * strength.max()


def test_fields_do_not_depend_on_the_steps_between_them():
    (alone,) = fields(lambda array: array, 40)
    assert np.array_equal(fields(lambda array: array, 7, 40)[1], alone)


def test_torch_computes_the_same_wave():
    torch = pytest.importorskip("torch")
    (ours,) = fields(lambda array: array, 50)
    (theirs,) = fields(torch.from_numpy, 50)
    np.testing.assert_allclose(theirs.numpy(), ours, rtol=1e-3, atol=1e-5 * np.abs(ours).max())


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_checkpoints_have_their_size_and_all_differ(kind):
    arrays = kinds.made(kind, HostCard(8), 64 << 10, 4)
    assert [array.nbytes for array in arrays] == [64 << 10] * 4
    assert len({array.tobytes() for array in arrays}) == 4


def test_early_fields_are_mostly_zeros_and_late_ones_are_not():
    early, late = (kinds.made(kind, HostCard(8), 1 << 20, 2) for kind in ("early", "late"))
    assert kinds.zeros(early[-1]) > 0.9
    assert kinds.zeros(late[0]) < 0.5


def test_zeros_of_either_sign_and_payloads_of_nan_differ():
    array = np.array([0.0, np.nan], np.float32)
    other = array.copy()
    assert kinds.same(array, other)
    other[0] = -0.0
    assert not kinds.same(array, other)
    other = array.copy()
    other.view(np.uint32)[1] ^= 1
    assert not kinds.same(array, other)


def test_a_wrong_kind_lists_the_right_ones():
    assert kinds.chosen("noise, late") == ["noise", "late"]
    with pytest.raises(ValueError, match="there are late, early, bf16, fp32, steps, frozen, noise"):
        kinds.chosen("smooth")


def test_rows_hold_every_round():
    report = histories.run(size=64 << 10, rounds=3, cells="noise")
    rows = [row for row in report.rows if row["what"] == kinds.KINDS["noise"]]
    assert [row["method"] for row in rows] == ["raw", "codec", "reference", "tree", "auto"]
    for row in rows:
        assert {len(row[f"{name} of rounds"]) for name in (*histories.TIMES, "ratio", "encoded", "plain")} == {3}
        assert row["with another"] == 0
    assert all(rows[0][f"{name} by raw"] == 1 for name in histories.TIMES)
    assert [row["method"] for row in report.rows[5:]] == ["alone", "raw", "codec", "tree"]
    assert [(bar.what, bar.value) for bar in report.bars] == [("bytes that differ, of all restores", 0)]


def test_bytes_that_differ_are_counted(monkeypatch):
    monkeypatch.setattr(histories, "same", lambda ours, theirs: False)
    report = histories.run(size=64 << 10, rounds=1, cells="noise")
    laps, loops = len(histories.METHODS) * 2 * histories.COUNT, 3 * 2 * histories.CHUNKS
    assert [bar.value for bar in report.bars] == [(laps + loops) * (64 << 10)]
    assert not report.bars[0].holds


def test_no_round_begins_after_the_limit_but_one_counts():
    report = histories.run(size=64 << 10, rounds=4, cells="noise", limit=0)
    assert [row["rounds counted"] for row in report.rows[:5]] == [1, 1, 1, 1, 1]


def test_every_bar_belongs_to_a_claim():
    report = Report("encoded", {"rounds": 5})
    rows = {method: {f"{name} by raw": 0.5 for name in histories.TIMES} for method in ("tree", "auto")}
    histories._bars(report, "x", rows, waves=True)
    report.never("bytes that differ, of all restores", 0)
    assert [bar.value for bar in report.bars] == [2, 0.5, 0.5, 0.5, 0.5, 0]
    assert all(bar.holds for bar in report.bars)
    judged = claims.judge([report.facts({})])
    assert [each.bars for each in judged] == [1, 4, 1]  # blocked time, other times, bytes that differ
