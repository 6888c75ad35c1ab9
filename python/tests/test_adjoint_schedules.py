"""velocpy.adjoint: every schedule of checkpoint_schedules gives the gradient of a run with everything in memory."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy
from velocpy.adjoint import ScheduleError, drive, plan_of
from velocpy.adjoint.schedule import drained, hints
from velocpy.demo.backend import numpy_backend
from velocpy.demo.migration import InMemory, Migration, blank_image
from velocpy.demo.settings import Settings
from velocpy.demo.shot import ShotModel
from velocpy.demo.survey import Survey

cs = pytest.importorskip("checkpoint_schedules")

#: The package says this of its largest table.
pytestmark = pytest.mark.filterwarnings("ignore:Numba not available:RuntimeWarning")

Make = Callable[[int], Any]


def quietly(make: Make) -> Make:
    """PeriodicDiskRevolve prints its period when it is made."""

    def silent(steps: int) -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            return make(steps)

    return silent


RAM, DISK = cs.StorageType.RAM, cs.StorageType.DISK

ONE_ADJOINT: dict[str, Make] = {
    "revolve": lambda n: cs.Revolve(n, 5),
    "multistage": lambda n: cs.MultistageCheckpointSchedule(n, 3, 4),
    "multistage, memory": lambda n: cs.MultistageCheckpointSchedule(n, 4, 0),
    "multistage, disk": lambda n: cs.MultistageCheckpointSchedule(n, 0, 4, trajectory="revolve"),
    "mixed, disk": lambda n: cs.MixedCheckpointSchedule(n, 6),
    "mixed, memory": lambda n: cs.MixedCheckpointSchedule(n, 6, storage=RAM),
    "h-revolve": lambda n: cs.HRevolve(n, 3, 4),
    "h-revolve, dear disk": lambda n: cs.HRevolve(n, 2, 3, uf=1.0, ub=2.5, wd=7.0, rd=5.0),
    "disk revolve": lambda n: cs.DiskRevolve(n, 3),
    "periodic disk revolve": quietly(lambda n: cs.PeriodicDiskRevolve(n, 3)),
    "single disk, moving": lambda n: cs.SingleDiskStorageSchedule(move_data=True),
}
MANY_ADJOINTS: dict[str, Make] = {
    "two level": lambda n: cs.TwoLevelCheckpointSchedule(7, 3),
    "two level, memory": lambda n: cs.TwoLevelCheckpointSchedule(9, 2, binomial_storage=RAM),
    "two level, one period": lambda n: cs.TwoLevelCheckpointSchedule(1000, 4),
    "single memory": lambda n: cs.SingleMemoryStorageSchedule(),
    "single disk": lambda n: cs.SingleDiskStorageSchedule(),
}
SCHEDULES = {**ONE_ADJOINT, **MANY_ADJOINTS}


def fresh_store() -> Any:
    """A store too small to hold everything that the schedules write in memory."""
    return velocpy.open(host="256KiB", disk="16MiB")


class Oscillators:
    """A control problem: a chain of nonlinear oscillators, pushed at every step; the gradient is per push.

    The state is position and speed; the adjoint of a step needs the positions alone, which makes two kinds of data of
    two sizes. With ``width`` every array is a strided view into a larger one.
    """

    def __init__(self, steps: int, width: int = 400) -> None:
        random = np.random.default_rng(steps)
        self._padded = [random.standard_normal((width // 20, 20 + 6)), np.zeros((width // 20, 20 + 6))]
        self.position, self.speed = (array[:, 3:-3] for array in self._padded)
        self.push = random.standard_normal((steps, *self.position.shape))
        self.gradient = np.zeros_like(self.push)
        self.sweeps = 0

    def force(self) -> Any:
        return np.roll(self.position, 1) - 2 * self.position + np.roll(self.position, -1) - np.sin(self.position)

    def state(self) -> Mapping[str, Any]:
        return {"position": self.position, "speed": self.speed}

    def step(self, n: int, keep: bool) -> Mapping[str, Any] | None:
        kept = {"position": self.position.copy()} if keep else None
        self.speed += 0.05 * (self.force() + self.push[n])
        self.position += 0.05 * self.speed
        return kept

    def cost(self) -> float:
        return float((self.position**2).sum() / 2)

    def begin_adjoint(self, steps: int) -> None:
        self.sweeps += 1
        self.gradient[...] = 0
        self._of_position, self._of_speed = self.position_at_end(), np.zeros(self.position.shape)

    def position_at_end(self) -> Any:
        """The final condition; remembered, since later sweeps start from other states."""
        if self.sweeps == 1:
            self._end = self.position.copy()
        return self._end.copy()

    def adjoint_step(self, n: int, kept: Mapping[str, Any]) -> None:
        self._of_speed += 0.05 * self._of_position
        self.gradient[n] = 0.05 * self._of_speed
        a = 0.05 * self._of_speed
        self._of_position += np.roll(a, 1) - 2 * a + np.roll(a, -1) - np.cos(kept["position"]) * a


class Borrowing(Oscillators):
    """The same, but what a step keeps is a live array that the next step overwrites."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self._before = np.zeros(self.position.shape)

    def step(self, n: int, keep: bool) -> Mapping[str, Any] | None:
        self._before[...] = self.position
        super().step(n, False)
        return {"position": self._before} if keep else None


class Handed(Oscillators):
    """The same, its state handed over as if its arrays could not be written."""

    handed = 0

    def set_state(self, arrays: Mapping[str, Any]) -> None:
        self.handed += 1
        self.position, self.speed = np.array(arrays["position"]), np.array(arrays["speed"])


def in_memory(model: Oscillators, steps: int) -> bytes:
    """The gradient with everything in memory, without any executor."""
    kept = [model.step(n, True) for n in range(steps)]
    model.begin_adjoint(steps)
    for n in reversed(range(steps)):
        model.adjoint_step(n, kept[n] or {})
    return model.gradient.tobytes()


def test_the_control_problem_has_the_gradient_of_its_cost() -> None:
    steps, shift = 23, 1e-6
    model = Oscillators(steps)
    in_memory(model, steps)
    costs = []
    for sign in (1, -1):
        other = Oscillators(steps)
        other.push[5, 2, 3] += sign * shift
        in_memory(other, steps)
        costs.append(other.cost())
    assert model.gradient[5, 2, 3] == pytest.approx((costs[0] - costs[1]) / (2 * shift), rel=1e-6)


#: The package cannot plan a single step with these.
NEED_TWO_STEPS = {"h-revolve", "h-revolve, dear disk"}


@pytest.mark.parametrize("kind", [Oscillators, Borrowing, Handed])
@pytest.mark.parametrize(
    ("name", "steps"), [(name, n) for name in SCHEDULES for n in (1, 2, 61) if n > 1 or name not in NEED_TWO_STEPS]
)
def test_gradient_is_bitwise_that_of_memory(name: str, steps: int, kind: type[Oscillators]) -> None:
    model = kind(steps)
    with fresh_store() as store:
        history = store.history("control")
        tally = drive(SCHEDULES[name](steps), model, history, steps=steps)
        assert len(history) == 0
    assert model.gradient.tobytes() == in_memory(Oscillators(steps), steps)
    assert model.gradient.any()
    assert (tally.steps, tally.adjoint_steps) == (steps, steps)
    assert tally.forward_steps >= steps


@pytest.mark.parametrize("name", MANY_ADJOINTS)
def test_several_adjoints(name: str) -> None:
    model = Oscillators(40)
    with fresh_store() as store:
        tally = drive(SCHEDULES[name](40), model, store.history("control"), steps=40, adjoints=3)
    assert model.sweeps == 3
    assert tally.adjoint_steps == 120
    assert model.gradient.tobytes() == in_memory(Oscillators(40), 40)


@pytest.mark.parametrize("name", MANY_ADJOINTS)
def test_length_found_on_the_way(name: str) -> None:
    model = Oscillators(50)
    with fresh_store() as store:
        tally = drive(SCHEDULES[name](0), model, store.history("control"), until=lambda done: done == 33)
    assert tally.steps == 33
    reference = Oscillators(50)
    in_memory(reference, 33)
    assert model.gradient.tobytes() == reference.gradient.tobytes()


def test_no_adjoint_at_all() -> None:
    model = Oscillators(30)
    with fresh_store() as store:
        history = store.history("control")
        tally = drive(cs.NoneCheckpointSchedule(), model, history, steps=30)
        assert (tally.forward_steps, tally.saved, tally.adjoint_steps) == (30, 0, 0)
    reference = Oscillators(30)
    in_memory(reference, 30)
    assert model.position.tobytes() == reference.position.tobytes()


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 90), st.integers(1, 8), st.integers(0, 8), st.sampled_from(["multistage", "mixed", "two level"]))
def test_any_size_of_schedule(steps: int, ram: int, disk: int, kind: str) -> None:
    schedule = {
        "multistage": lambda: cs.MultistageCheckpointSchedule(steps, ram, disk),
        "mixed": lambda: cs.MixedCheckpointSchedule(steps, ram, storage=RAM if disk % 2 else DISK),
        "two level": lambda: cs.TwoLevelCheckpointSchedule(disk + 1, ram),
    }[kind]()
    model = Oscillators(steps, width=40)
    with fresh_store() as store:
        drive(schedule, model, store.history("control"), steps=steps)
    assert model.gradient.tobytes() == in_memory(Oscillators(steps, width=40), steps)


# --- the migration ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shot() -> tuple[Survey, Any, bytes]:
    """A survey, its recording, and the image with everything in memory."""
    backend = numpy_backend()
    survey = Settings(size=(40, 50), steps=151, shots=1).survey()
    engine = Migration(backend, survey)
    engine.record()
    image = blank_image(backend, survey)
    engine.migrate(0, InMemory(backend, survey), image)
    assert not image.blank(backend)
    return survey, engine.recordings[0], image.cross.tobytes() + image.light.tobytes()


@pytest.mark.parametrize("name", SCHEDULES)
def test_migration_is_bitwise_that_of_memory(name: str, shot: tuple[Survey, Any, bytes]) -> None:
    survey, recording, expected = shot
    model = ShotModel(numpy_backend(), survey, survey.sources[0], recording)
    with fresh_store() as store:
        drive(SCHEDULES[name](survey.steps), model, store.history("shot"), steps=survey.steps)
        disk = store.stats()["tiers"]["disk"]
    assert (disk["written_bytes"] > 0) == (name != "single memory"), "the schedules were to overflow the memory"
    assert model.image.cross.tobytes() + model.image.light.tobytes() == expected


def test_migration_on_torch(shot: tuple[Survey, Any, bytes]) -> None:
    pytest.importorskip("torch")
    from velocpy.demo.backend import torch_backend

    survey, recording, _ = shot
    backend = torch_backend()

    def image(schedule: Any) -> bytes:
        model = ShotModel(backend, survey, survey.sources[0], backend.array(recording))
        with fresh_store() as store:
            drive(schedule, model, store.history("shot"), steps=survey.steps)
        assert not model.image.blank(backend)
        return backend.numpy(model.image.cross).tobytes()

    assert image(cs.HRevolve(survey.steps, 3, 4)) == image(cs.SingleMemoryStorageSchedule())


# --- plans ------------------------------------------------------------------------------------------------------------


class Watched:
    """A history that writes down what is asked of it, and passes it on."""

    def __init__(self, history: Any) -> None:
        self._history = history
        self.reads: list[tuple[str, str]] = []
        self.tiers: set[str | None] = set()

    def checkpoint(self, key: Any, arrays: Any, *, tier: str | None = None) -> Any:
        self.tiers.add(tier)
        return self._history.checkpoint(key, arrays, tier=tier)

    def restore(self, key: Any, **options: Any) -> Any:
        self.reads.append(("last" if options["last"] else "restore", key))
        return self._history.restore(key, **options)

    def drop(self, key: Any) -> None:
        self._history.drop(key)

    def hint(self, plan: Any) -> None:
        self._history.hint(plan)


@pytest.mark.parametrize(
    ("name", "adjoints"), [(name, 1) for name in SCHEDULES] + [(name, 2) for name in MANY_ADJOINTS]
)
def test_plan_is_what_will_be_asked(name: str, adjoints: int) -> None:
    steps = 45
    plan = hints(drained(SCHEDULES[name](steps), steps), adjoints)
    with fresh_store() as store:
        watched = Watched(store.history("control"))
        drive(SCHEDULES[name](steps), Oscillators(steps), watched, steps=steps, adjoints=adjoints)
    assert [
        (type(op).__name__.lower(), op.key) for op in plan if isinstance(op, (velocpy.plan.Restore, velocpy.plan.Last))
    ] == watched.reads


def test_levels_are_tiers() -> None:
    with fresh_store() as store:
        watched = Watched(store.history("control"))
        drive(cs.HRevolve(40, 3, 4), Oscillators(40), watched)
    assert watched.tiers == {"host", "disk"}


def test_plan_of_leaves_the_schedule_fresh() -> None:
    schedule = cs.HRevolve(40, 3, 4)
    plan_of(schedule)
    model = Oscillators(40)
    with fresh_store() as store:
        drive(schedule, model, store.history("control"))
    assert model.gradient.tobytes() == in_memory(Oscillators(40), 40)


@pytest.mark.parametrize("as_plan", [plan_of, lambda schedule: schedule])
def test_a_schedule_may_be_hinted_by_hand(as_plan: Callable[[Any], Any]) -> None:
    schedule = cs.MultistageCheckpointSchedule(40, 3, 4)
    expected = [(type(op), op.key) for op in plan_of(schedule) if not isinstance(op, velocpy.plan.Advance)]
    with fresh_store() as store:
        history = store.history("control")
        for _, key in expected:
            history.checkpoint(key, u=np.zeros(3))
        history.hint(as_plan(schedule))
        assert [key for key, _ in history.restore_iter()] == [key for _, key in expected]
        history.clear()
        model = Oscillators(40)
        drive(schedule, model, history)
    assert model.gradient.tobytes() == in_memory(Oscillators(40), 40)


def test_an_online_schedule_cannot_be_hinted() -> None:
    with fresh_store() as store, pytest.raises(ScheduleError, match="online"):
        store.history("control").hint(cs.TwoLevelCheckpointSchedule(7, 3))


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_a_started_schedule_is_refused() -> None:
    schedule = cs.Revolve(20, 3)
    next(schedule)
    with pytest.raises(ScheduleError, match="started"):
        plan_of(schedule)
    with fresh_store() as store, pytest.raises(ScheduleError, match="started"):
        drive(schedule, Oscillators(20), store.history("control"))


def test_an_online_schedule_needs_a_length() -> None:
    with pytest.raises(ScheduleError, match="online"):
        plan_of(cs.SingleDiskStorageSchedule())
    with fresh_store() as store, pytest.raises(ScheduleError, match="online"):
        drive(cs.SingleDiskStorageSchedule(), Oscillators(20), store.history("control"))


def test_another_length_is_refused() -> None:
    with fresh_store() as store, pytest.raises(ScheduleError, match="20 steps"):
        drive(cs.Revolve(20, 3), Oscillators(20), store.history("control"), steps=21)


def test_more_adjoints_than_the_schedule_allows() -> None:
    with fresh_store() as store:
        history = store.history("control")
        with pytest.raises(ScheduleError, match="left to do: 1"):
            drive(cs.Revolve(20, 3), Oscillators(20), history, adjoints=2)
        assert len(history) == 0


def test_a_model_that_keeps_nothing_is_told() -> None:
    class Forgetful(Oscillators):
        def step(self, n: int, keep: bool) -> None:
            super().step(n, False)

    with fresh_store() as store, pytest.raises(ScheduleError, match="gave nothing"):
        drive(cs.Revolve(20, 3), Forgetful(20), store.history("control"))


def test_a_model_that_fails_leaves_a_usable_history() -> None:
    class Failing(Oscillators):
        def adjoint_step(self, n: int, kept: Mapping[str, Any]) -> None:
            if n == 11:
                raise ZeroDivisionError("on purpose")
            super().adjoint_step(n, kept)

    with fresh_store() as store:
        history = store.history("control")
        with pytest.raises(ZeroDivisionError):
            drive(cs.HRevolve(20, 2, 3), Failing(20), history)
        assert len(history) == 0
        model = Oscillators(20)
        drive(cs.HRevolve(20, 2, 3), model, history)
    assert model.gradient.tobytes() == in_memory(Oscillators(20), 20)


def test_other_keys_of_the_history_stay() -> None:
    with fresh_store() as store:
        history = store.history("control")
        history.checkpoint("mine", {"a": np.arange(5)})
        drive(cs.HRevolve(20, 2, 3), Oscillators(20), history)
        with history.restore("mine") as mine:
            assert mine["a"].tolist() == [0, 1, 2, 3, 4]


def test_what_is_no_schedule_model_or_history_is_a_typed_error() -> None:
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        for wrong in ((5, 5, 5), (cs.Revolve(4, 2), 5, history), (cs.Revolve(4, 2), Oscillators(4), 5)):
            with pytest.raises(velocpy.errors.InvalidType):
                drive(*wrong)
    with pytest.raises(velocpy.errors.InvalidType):
        plan_of(5)
