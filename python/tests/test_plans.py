"""Plans: lazy, extendable, wrong, endless, raising; and the loop over them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

import velocpy
from velocpy.plan import Advance, Drop, Last, Plan, Restore


@pytest.fixture
def history() -> Iterator[velocpy.History]:
    with velocpy.open(host="4MiB", disk="64MiB", tuning=velocpy.Tuning(lookahead=16)) as store:
        yield store.history("h")


def fill(history: velocpy.History, keys: Iterable[int | str]) -> None:
    for key in keys:
        history.checkpoint(key, u=np.full(10_000, hash(key) % 251, np.uint8))


def drained(history: velocpy.History, **options: bool) -> list[int | str]:
    keys = []
    for key, lease in history.restore_iter(**options):
        assert lease["u"][0] == hash(key) % 251
        keys.append(key)
    return keys


def test_reverse_sweep(history: velocpy.History) -> None:
    history.hint(reversed(range(300)))
    fill(history, range(300))
    assert drained(history) == list(reversed(range(300)))
    assert len(history) == 300
    assert drained(history) == []


def test_sweep_that_consumes(history: velocpy.History) -> None:
    history.hint(Plan.reverse(range(300), last=True))
    fill(history, range(300))
    assert drained(history) == list(reversed(range(300)))
    assert len(history) == 0
    fill(history, range(30))
    history.hint(range(30))
    assert drained(history, last=True) == list(range(30))
    assert len(history) == 0


def test_repeated_keys_and_constants(history: velocpy.History) -> None:
    fill(history, range(20))
    order = [key for i in range(19) for key in (i, 19)]
    history.hint(order)
    assert drained(history) == order


def test_hinted_last_consumes(history: velocpy.History) -> None:
    fill(history, range(3))
    history.hint([0, Last(0), 1])
    assert history.restore(0)["u"].size
    assert 0 in history
    assert history.restore(0).writable
    assert 0 not in history
    history.hint([2, 2], last=True)
    with pytest.raises(velocpy.errors.CheckpointNotFound):
        drained(history)


def test_single_hints(history: velocpy.History) -> None:
    fill(history, ["a", "b", 1])
    for hint in ("a", 1, Restore("b"), np.int64(1)):
        history.hint(hint)
    assert drained(history) == ["a", 1, "b", 1]


def test_lazy(history: velocpy.History) -> None:
    read = []

    def keys() -> Iterator[int]:
        for i in range(1000):
            read.append(i)
            yield i % 50

    fill(history, range(50))
    history.hint(keys())
    assert 0 < len(read) <= 32
    for i in range(100):
        history.restore(i % 50)
        assert len(read) <= i + 40
    assert len(read) > 100


def test_endless(history: velocpy.History) -> None:
    fill(history, range(7))
    history.hint(itertools.cycle(range(7)))
    for expected, (key, _) in zip(itertools.cycle(range(7)), itertools.islice(history.restore_iter(), 500)):
        assert key == expected
    history.hint_clear()
    assert drained(history) == []
    history.hint(itertools.repeat(Advance(1)))  # nothing to restore in it, and still no endless reading
    history.hint_clear()


def test_endless_and_ignored(history: velocpy.History) -> None:
    """A plan that nobody follows is not read for ever."""
    read = itertools.count()
    history.hint(next(read) + 1000 for _ in itertools.count())
    fill(history, range(50))
    for _ in range(20):
        for i in range(50):
            history.restore(i)
    assert next(read) < 500


def test_extended_while_running(history: velocpy.History) -> None:
    fill(history, range(10))
    plan = Plan([0, 1])
    history.hint(plan)
    seen = []
    for key, _ in history.restore_iter():
        seen.append(key)
        if key < 8:
            plan.extend([key + 2])
    assert seen == list(range(10))


def test_extended_after_it_ran_out(history: velocpy.History) -> None:
    fill(history, range(10))
    plan = Plan([1])
    history.hint(plan)
    assert drained(history) == [1]
    plan.extend([2, 3])
    assert drained(history) == [2, 3]


def test_several_plans_follow_each_other(history: velocpy.History) -> None:
    fill(history, range(100))
    history.hint(range(40))
    history.hint(reversed(range(40, 100)))
    assert drained(history) == [*range(40), *reversed(range(40, 100))]


def test_keys_that_do_not_exist_yet(history: velocpy.History) -> None:
    history.hint(range(100, 120))
    fill(history, range(100, 120))
    assert drained(history) == list(range(100, 120))
    history.hint([500])
    with pytest.raises(velocpy.errors.CheckpointNotFound):
        drained(history)
    fill(history, [500])
    assert drained(history) == [500]  # the failed step is still to be done


def test_deviation_costs_nothing_but_time(history: velocpy.History) -> None:
    fill(history, range(100))
    history.hint(range(100))
    rng = np.random.default_rng(4)
    for key in rng.integers(0, 100, 400):
        assert history.restore(int(key))["u"][0] == hash(int(key)) % 251


def test_restores_beside_the_loop(history: velocpy.History) -> None:
    fill(history, [*range(30), "velocity"])
    history.hint(range(30))
    seen = []
    for key, _ in history.restore_iter():
        seen.append(key)
        assert history.restore("velocity")["u"].size
        assert history.restore(29)["u"].size  # also hinted, further on
    assert seen == list(range(30))


def test_skipping(history: velocpy.History) -> None:
    """Every other key of the plan is restored: the plan follows."""
    fill(history, range(200))
    history.hint(reversed(range(200)))
    for i in reversed(range(0, 200, 2)):
        history.restore(i)
    assert len(drained(history)) < 40


@pytest.mark.parametrize("moment", ["hint", "checkpoint", "restore", "loop"])
def test_a_plan_that_raises(history: velocpy.History, moment: str) -> None:
    fill(history, range(40))

    class Mine(Exception):
        pass

    def keys(count: int) -> Iterator[int]:
        yield from range(count)
        raise Mine

    if moment == "hint":
        with pytest.raises(Mine):
            history.hint(keys(5))
    else:
        history.hint(keys(20))
        with pytest.raises(Mine):  # noqa: PT012
            for i in range(40):
                if moment == "checkpoint":
                    history.restore(i)
                    fill(history, [i])
                elif moment == "restore":
                    history.restore(i)
                else:
                    assert len(drained(history)) == 20
    for i in range(40):  # surfaced once, and nothing was harmed
        assert history.restore(i)["u"][0] == hash(i) % 251


def test_a_plan_that_uses_the_store(history: velocpy.History) -> None:
    fill(history, range(50))

    def keys() -> Iterator[int]:
        for i in range(50):
            assert history.restore(i)["u"].size
            history.checkpoint(f"from the plan {i}", u=np.zeros(3))
            assert len(history) > i
            yield i

    history.hint(keys())
    assert drained(history) == list(range(50))


@pytest.mark.parametrize("wrong", [[1.5], [None], [b"x"], [True], [[1]], 1.5, None, [2**64], [object()]])
def test_plans_that_make_no_sense(history: velocpy.History, wrong: object) -> None:
    fill(history, range(3))
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.hint(wrong)  # type: ignore[arg-type]
    history.hint([1])
    assert drained(history) == [1]


def test_advance_checks_its_steps() -> None:
    for wrong in (-1, True, 1.5, "3"):
        with pytest.raises(velocpy.errors.InvalidArgument):
            Advance(wrong)  # type: ignore[arg-type]


def test_drop_in_a_plan(history: velocpy.History) -> None:
    fill(history, range(4))
    history.hint([0, Drop(3), Advance(2), 1])
    assert 3 in history
    assert drained(history) == [0, 1]
    assert 3 not in history


def test_builders() -> None:
    assert list(Plan.reverse(iter(range(3)))) == [Restore(2), Restore(1), Restore(0)]
    assert list(Plan.forward([1, 2], last=True)) == [Last(1), Last(2)]
    groups = [[(i, j) for j in range(2)] for i in range(3)]
    grouped = Plan.grouped_reverse([[f"{i}.{j}" for i, j in group] for group in groups])
    assert [op.key for op in grouped if isinstance(op, Restore)] == ["2.0", "2.1", "1.0", "1.1", "0.0", "0.1"]
    assert next(iter(Plan.reverse(range(10**15)))) == Restore(10**15 - 1)


def test_learned_plan(history: velocpy.History) -> None:
    fill(history, range(60))
    rng = np.random.default_rng(1)
    order = [int(key) for key in rng.permutation(60)]
    plan = Plan.learn()
    history.hint(plan)
    for key in order:
        history.restore(key)
    assert plan.recorded == ()
    history.hint(plan)
    assert plan.recorded == tuple(order)
    ahead = history.restore_iter()
    assert next(ahead)[0] == order[0]
    del ahead
    history.hint_clear()
    history.hint(plan)  # its sweep has one restore: that is what is told next
    assert plan.recorded == (order[0],)
    history.restore(order[0])
    for key in order[1:]:
        history.restore(key)
    history.hint(plan)
    assert plan.recorded == tuple(order)
    # a sweep that leaves out twenty, and comes back to the order
    deviated = [*order[:10], *order[30:]]
    for key in deviated:
        assert history.restore(key)["u"][0] == hash(key) % 251
    history.hint(plan)
    assert plan.recorded == tuple(deviated)
    assert drained(history) == deviated


def test_learned_plan_resynchronises(history: velocpy.History) -> None:
    fill(history, range(100))
    plan = Plan.learn()
    history.hint(plan)
    for i in range(100):
        history.restore(i)
    history.hint(plan)
    history.restore(50)
    history.restore(51)
    assert next(history.restore_iter())[0] == 52


def test_loop_gives_leases_back(history: velocpy.History) -> None:
    history.hint(range(40))
    for i in range(40):
        history.checkpoint(i, u=np.full(400_000, i, np.uint8))
    deadline = time.monotonic() + 30
    while history.store.stats()["users"] > 0:  # the store's own work of its opening: it touches memory ahead
        assert time.monotonic() < deadline, "the store is still busy with itself"
        time.sleep(0.01)
    kept = []
    for key, lease in history.restore_iter(timeout=30):
        assert history.store.stats()["users"] <= 1 + len(kept)
        if key == 3:
            kept.append(lease["u"])
    assert (kept[0] == 3).all()


def test_loop_into(history: velocpy.History) -> None:
    fill(history, range(20))
    history.hint(reversed(range(20)))
    u = np.zeros(10_000, np.uint8)
    for key, into in history.restore_iter(into={"u": u}):
        assert into["u"] is u
        assert (u == hash(key) % 251).all()


def test_loop_left_early_goes_on_later(history: velocpy.History) -> None:
    fill(history, range(20))
    history.hint(range(20))
    for key, _ in history.restore_iter():
        if key == 7:
            break
    assert drained(history) == list(range(8, 20))


def test_prefetch_without_a_restore(history: velocpy.History) -> None:
    for i in range(60):
        history.checkpoint(i, u=np.full(200_000, i, np.uint8))
    history.hint(range(60))
    history.prefetch()
    history.prefetch()
    assert drained_values(history) == list(range(60))


def drained_values(history: velocpy.History) -> list[int]:
    return [int(lease["u"][0]) for _, lease in history.restore_iter()]


def test_clear_withdraws(history: velocpy.History) -> None:
    fill(history, range(10))
    history.hint(range(10))
    history.clear()
    assert len(history) == 0
    assert drained(history) == []


def test_keys_of_numpy_become_ints(history: velocpy.History) -> None:
    ticket = history.checkpoint(np.int64(5), u=np.zeros(3))
    lease = history.restore(np.int32(5))
    assert type(ticket.key) is type(lease.key) is int
    assert "[5]" in repr(ticket)
    assert "[5]" in repr(lease)
    for plan in ([np.int64(5)], [Restore(np.int64(5))], Plan.reverse(np.array([5]))):
        history.hint(plan)
        assert [type(key) for key, _ in history.restore_iter()] == [int]
    with pytest.raises(velocpy.errors.CheckpointNotFound) as raised:
        history.restore(np.int64(6))
    assert type(raised.value.key) is int


class Truth:
    """A scalar of a library that calls its truth values numbers."""

    dtype = "bool"

    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("wrong", [True, np.True_, np.bool_(False), np.array(True), Truth(), 1.0, np.float64(1), b"1"])
def test_truth_values_are_no_keys(history: velocpy.History, wrong: object) -> None:
    fill(history, range(3))
    for call in (
        lambda: history.checkpoint(wrong, u=np.zeros(3)),
        lambda: history.restore(wrong),
        lambda: history.restore(wrong, into={"u": np.zeros(3)}),
        lambda: history.drop(wrong),
        lambda: history.size(wrong),
        lambda: history.retain(keys=[wrong]),
        lambda: history.hint([wrong]),
        lambda: history.hint(velocpy.plan.Restore(wrong)),
    ):
        with pytest.raises(velocpy.errors.InvalidType):
            call()
    assert wrong not in history
    assert len(history) == 3


def test_tensors_that_are_truth_values_are_no_keys(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    fill(history, range(3))
    with pytest.raises(velocpy.errors.InvalidType):
        history.restore(torch.tensor(True))
    for number in (np.int64(1), np.uint8(1), np.array(1), torch.tensor(1)):
        assert history.restore(number)["u"][0] == hash(1) % 251
