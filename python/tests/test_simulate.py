"""The simulator answers Python: sensible shots, and requests that make no sense."""

import pytest

import velocpy

MIB = 1 << 20


def shot(**changes):
    n = 64
    request = {
        "sizes": [MIB] * n,
        "order": list(reversed(range(n))),
        "interval": 5e-3,
        "tiers": [(8 * MIB, 1e9, 1e9), (1 << 40, 0, 0)],
        "copy_rate": 10e9,
    } | changes
    return velocpy.simulate(request.pop("sizes"), request.pop("order"), **request)


def test_with_time_enough_only_copies_block():
    answer = shot()
    assert answer["hits"] == answer["restores"] == 64
    assert answer["blocked"] == pytest.approx(answer["copying"], rel=0.02)
    assert answer["lower_bound"] == pytest.approx(answer["copying"])


@pytest.mark.parametrize("policy", ["score", "lru", "fifo"])
@pytest.mark.parametrize("flush", ["lazy", "eager"])
@pytest.mark.parametrize("hints", ["none", "one", "all"])
def test_nothing_beats_the_lower_bound(policy, flush, hints):
    answer = shot(interval=1e-4, policy=policy, flush=flush, hints=hints)
    assert answer["blocked"] >= answer["lower_bound"] > answer["copying"]


def test_lazy_writes_less_than_eager():
    assert shot(flush="lazy")["written"] < shot(flush="eager")["written"] == 64 * MIB


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "magic"},
        {"flush": "never"},
        {"hints": "some"},
        {"tiers": []},
        {"tiers": [(0, 1e9, 1e9), (1, 0, 0)]},
        {"tiers": [(MIB, 0, 1e9), (1 << 40, 0, 0)]},
        {"copy_rate": 0},
        {"interval": -1},
        {"sizes": [-1], "order": []},
        {"order": [64]},
        {"order": [-1]},
        {"tiers": [(MIB, 1e9, 1e9)] * 9},
    ],
)
def test_requests_that_make_no_sense(changes):
    with pytest.raises(velocpy.errors.InvalidArgument):
        shot(**changes)


def test_what_fits_nowhere_is_tier_full():
    with pytest.raises(velocpy.errors.VelocError):
        shot(sizes=[1 << 41] * 64)


def histories(**changes):
    request = {
        "sizes": {"state": [MIB] * 64, "field": [4 * MIB] * 16},
        "order": {
            "state": list(reversed(range(64))),
            "field": [op for k in reversed(range(16)) for op in (velocpy.plan.Advance(3), k)],
        },
        "interval": 20e-3,
        "tiers": [(24 * MIB, 1e9, 1e9), (1 << 40, 0, 0)],
        "copy_rate": 10e9,
    } | changes
    return velocpy.simulate(request.pop("sizes"), request.pop("order"), **request)


@pytest.mark.parametrize("hints", ["none", "one", "all"])
def test_several_histories_add_up(hints):
    answer = histories(hints=hints)
    parts = answer["histories"]
    assert set(parts) == {"state", "field"}
    assert parts["state"]["restores"] == 64
    assert parts["field"]["restores"] == 16
    for what in ("hits", "restores", "capture_blocked", "restore_blocked"):
        assert sum(part[what] for part in parts.values()) == pytest.approx(answer[what])
    assert answer["blocked"] >= answer["lower_bound"] > 0
    # 64 steps forward and 64 back, in each of which the application computes once
    assert answer["elapsed"] - answer["blocked"] == pytest.approx(128 * 20e-3)


def test_each_history_has_its_own_order():
    answer = histories()
    assert {name: part["hits"] for name, part in answer["histories"].items()} == {"state": 64, "field": 16}
    assert "histories" not in shot()


def test_advance_lets_steps_pass():
    at_once = shot(order=[3, 2, 1])
    later = shot(order=[3, velocpy.plan.Advance(5), velocpy.plan.Advance(0), 2, 1])
    assert later["elapsed"] - later["blocked"] == pytest.approx(at_once["elapsed"] - at_once["blocked"] + 5 * 5e-3)
    assert later["restores"] == at_once["restores"] == 3


def test_any_mapping_and_any_integer():
    numpy = pytest.importorskip("numpy")
    sizes = {"a": numpy.full(8, MIB), "b": [MIB] * 8}
    answer = histories(sizes=sizes, order={"b": iter(range(8)), "a": numpy.arange(8)})
    assert answer["restores"] == 16


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"order": [0]}, velocpy.errors.InvalidType),
        ({"sizes": [MIB]}, velocpy.errors.InvalidType),
        ({"sizes": {}, "order": {}}, velocpy.errors.InvalidArgument),
        ({"order": {"state": [0]}}, velocpy.errors.InvalidArgument),
        ({"order": {"state": [0], "field": [0], "other": []}}, velocpy.errors.InvalidArgument),
        ({"sizes": {1: [MIB]}, "order": {1: [0]}}, velocpy.errors.InvalidType),
        ({"order": {"state": [64], "field": [0]}}, velocpy.errors.InvalidArgument),
        ({"order": {"state": [velocpy.plan.Last(0)], "field": [0]}}, velocpy.errors.InvalidType),
        ({"order": {"state": [True], "field": [0]}}, velocpy.errors.InvalidType),
        ({"order": {"state": [0.0], "field": [0]}}, velocpy.errors.InvalidType),
        (
            {"order": {"state": [velocpy.plan.Advance(1 << 24), 0, velocpy.plan.Advance((1 << 24) + 1)], "field": [0]}},
            velocpy.errors.InvalidArgument,
        ),
        (
            {"sizes": {str(n): [1] for n in range(257)}, "order": {str(n): [0] for n in range(257)}},
            velocpy.errors.InvalidArgument,
        ),
    ],
)
def test_histories_that_make_no_sense(changes, error):
    with pytest.raises(error):
        histories(**changes)
