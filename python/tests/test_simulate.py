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
    with pytest.raises(velocpy.InvalidArgument):
        shot(**changes)


def test_what_fits_nowhere_is_tier_full():
    with pytest.raises(velocpy.VelocError):
        shot(sizes=[1 << 41] * 64)
