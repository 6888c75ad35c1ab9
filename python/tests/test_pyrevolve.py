"""velocpy.adjoint.pyrevolve: revolvers compute the same bits on a velocpy history as on their own storages."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import velocpy

pyrevolve = pytest.importorskip("pyrevolve")

from pyrevolve.profiling import Profiler  # noqa: E402
from pyrevolve.schedulers import Action  # noqa: E402
from pyrevolve.storage import NumpyStorage  # noqa: E402

from velocpy.adjoint import weights  # noqa: E402
from velocpy.adjoint.pyrevolve import VelocStorage  # noqa: E402

STEPS = 60


class Halo(np.ndarray):  # type: ignore[type-arg]
    """An array as PDE frameworks have them: a live field whose indexing leaves out its halo."""

    halo = 3

    def __getitem__(self, index: Any) -> Any:
        inner = np.asarray(self)[self.halo : -self.halo, self.halo : -self.halo]
        return inner[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        np.asarray(self)[self.halo : -self.halo, self.halo : -self.halo][index] = value


class Fields(pyrevolve.Checkpoint):  # type: ignore[misc]
    """Three live arrays: strided inside a larger one, a subclass with a halo, and another dtype's size."""

    dtype = np.float64

    def __init__(self) -> None:
        random = np.random.default_rng(7)
        whole = random.standard_normal((14, 33))
        self.arrays = [whole[2:11, 4:27], random.standard_normal((9, 23)).view(Halo), random.standard_normal((5, 4, 3))]
        assert self.arrays[0].strides[-1] == 8
        assert not self.arrays[0].flags.c_contiguous

    @property
    def size(self) -> int:
        return sum(array.size for array in self.arrays)

    def get_data(self, timestep: int) -> list[Any]:
        return self.arrays

    def get_data_location(self, timestep: int) -> list[Any]:
        return self.arrays


class Forward(pyrevolve.Operator):  # type: ignore[misc]
    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def apply(self, t_start: int, t_end: int) -> None:
        a, b, c = (np.asarray(array) for array in self.fields.arrays)
        for t in range(t_start, t_end):
            b[...] = 0.9 * b + np.sin(a + t)
            a[...] = 0.5 * a + 0.3 * b * b
            c[...] = np.cos(c + a[:5, :4, None])


class Reverse(pyrevolve.Operator):  # type: ignore[misc]
    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.gradient = np.zeros((9, 23))

    def apply(self, t_start: int, t_end: int) -> None:
        a, b, c = (np.asarray(array) for array in self.fields.arrays)
        self.gradient = 0.7 * self.gradient + a * b + c.sum()


@pytest.fixture
def store() -> Iterator[Any]:
    with velocpy.open(host="64KiB", disk="8MiB") as small:
        yield small


def gradient_in_memory() -> bytes:
    """Without any revolver: every state copied, then backwards."""
    fields = Fields()
    forward, reverse = Forward(fields), Reverse(fields)
    states = []
    for t in range(STEPS):
        forward.apply(t, t + 1)
        states.append([np.array(np.asarray(array)) for array in fields.arrays])
    for state in reversed(states):
        for array, saved in zip(fields.arrays, state, strict=True):
            np.asarray(array)[...] = saved
        reverse.apply(0, 1)
    return reverse.gradient.tobytes()


def gradient(revolver: Any) -> bytes:
    revolver.apply_forward()
    revolver.apply_reverse()
    assert revolver.rev_operator.gradient.any()
    return bytes(revolver.rev_operator.gradient.tobytes())


def single_level(store: Any | None, slots: int, follow: bool = True) -> Any:
    fields = Fields()
    revolver = pyrevolve.MemoryRevolver(fields, Forward(fields), Reverse(fields), slots, STEPS)
    if store is not None:
        storage = VelocStorage(store.history("slots"), fields.size, slots, fields.dtype, revolver.profiler)
        revolver.storage_list[0] = storage
        if follow:
            storage.follow(revolver.scheduler)
    return revolver


def multi_level(store: Any | None, follow: bool = True) -> Any:
    fields = Fields()
    costs = [(4, 0, 0), (7, 2, 3)]
    storages: list[Any]
    if store is None:
        storages = [NumpyStorage(fields.size, n, fields.dtype, wd=wd, rd=rd) for n, wd, rd in costs]
    else:
        storages = [
            VelocStorage(store.history(tier), fields.size, n, fields.dtype, wd=wd, rd=rd, tier=tier)
            for tier, (n, wd, rd) in zip(("host", "disk"), costs, strict=True)
        ]
    revolver = pyrevolve.MultiLevelRevolver(fields, Forward(fields), Reverse(fields), STEPS, storages)
    if store is not None and follow:
        for level, storage in enumerate(storages):
            storage.follow(revolver.scheduler, level)
    return revolver


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("slots", [1, 2, 8, 61])
def test_slots(store: Any, slots: int, follow: bool) -> None:
    assert gradient(single_level(store, slots, follow)) == gradient(single_level(None, slots)) == gradient_in_memory()


@pytest.mark.parametrize("durable", [True, False])
def test_following_drops_nothing_from_a_durable_store(tmp_path: Any, durable: bool) -> None:
    """Each drop would be a change of the catalog, with a sync of its own; the slot is written again anyway."""
    with velocpy.open(tmp_path, host="1MiB", disk="8MiB", durable=durable) as store:
        assert store.durable == durable
        assert gradient(single_level(store, 8, follow=True)) == gradient_in_memory()
        assert (store.stats()["consumed"] == 0) == durable
        assert (len(store.history("slots")) == 8) == durable  # as without following


@pytest.mark.parametrize("follow", [True, False])
def test_stacks(store: Any, follow: bool) -> None:
    assert gradient(multi_level(store, follow)) == gradient(multi_level(None)) == gradient_in_memory()


class Watched:
    """A history that writes down its restores, and passes everything on."""

    def __init__(self, history: Any) -> None:
        self._history = history
        self.store = history.store
        self.hints: list[Any] = []
        self.reads: list[Any] = []

    def checkpoint(self, key: Any, arrays: Any, **options: Any) -> Any:
        return self._history.checkpoint(key, arrays, **options)

    def restore(self, key: Any, **options: Any) -> Any:
        self.reads.append(key)
        return self._history.restore(key, **options)

    def hint(self, plan: Any) -> None:
        self.hints = list(plan)
        self._history.hint(self.hints)


def test_follow_foretells_every_restore(store: Any) -> None:
    revolver = single_level(store, 8, follow=False)
    watched = revolver.storage_list[0]._history = Watched(store.history("slots"))
    revolver.storage_list[0].follow(revolver.scheduler)
    gradient(revolver)
    assert [hint.key for hint in watched.hints] == watched.reads
    assert sum(isinstance(hint, velocpy.plan.Last) for hint in watched.hints) >= 8


def test_follow_foretells_every_level(store: Any) -> None:
    revolver = multi_level(store, follow=False)
    watched = []
    for level, storage in enumerate(revolver.storage_list):
        storage._history = Watched(storage._history)
        watched.append(storage._history)
        storage.follow(revolver.scheduler, level)
    gradient(revolver)
    for history in watched:
        assert [hint.key for hint in history.hints] == history.reads
        assert history.reads


def test_follow_leaves_the_scheduler_alone() -> None:
    class Deaf:
        def hint(self, plan: Any) -> None:
            list(plan)

    revolver = multi_level(None)
    before = copy.deepcopy(revolver.scheduler)
    VelocStorage(Deaf(), 1, 1, np.float64).follow(revolver.scheduler, 0)
    while True:
        mine, its = revolver.scheduler.next(), before.next()
        assert repr(mine) == repr(its)
        if mine.type == Action.TERMINATE:
            break


def test_any_number_and_kind_of_arrays(store: Any) -> None:
    storage = VelocStorage(store.history("any"), 0, 3, np.float32)
    first = [
        np.arange(7, dtype=np.int16),
        np.zeros((0, 4)),
        np.array(3.5),
        np.arange(12, dtype=complex).reshape(3, 4)[:, ::2],
    ]
    storage.save(0, first)
    storage.save(1, [np.full(100, 9, np.uint8)])
    storage.save(0, [array + 1 for array in first])
    found = [np.empty(array.shape, array.dtype) for array in first]
    storage.load(0, found)
    for array, expected in zip(found, first, strict=True):
        assert array.tobytes() == (expected + 1).tobytes()


def test_stack_interface(store: Any) -> None:
    storage = VelocStorage(store.history("stack"), 4, 2, np.float64)
    found = np.zeros(4)
    storage.peek([found])
    assert not found.any()
    with pytest.raises(ValueError, match="empty"):
        storage.pop([found])
    storage.push([np.full(4, 1.0)])
    storage.push([np.full(4, 2.0)])
    assert storage.isFull()
    with pytest.raises(ValueError, match="full"):
        storage.push([np.full(4, 3.0)])
    for expected in (2.0, 1.0):
        storage.peek([found])
        assert (found == expected).all()
        found[...] = 0
        storage.pop([found])
        assert (found == expected).all()
    assert storage.isEmpty()
    assert len(store.history("stack")) == 0


def test_a_slot_that_was_never_written(store: Any) -> None:
    with pytest.raises(KeyError):
        VelocStorage(store.history("slots"), 4, 2, np.float64, Profiler()).load(1, [np.zeros(4)])


def test_weights_come_from_the_store(store: Any) -> None:
    history = store.history("slots")
    storage = VelocStorage(history, 4, 200, np.float64)
    for slot in range(200):
        storage.save(slot, [np.full(1000, slot)])
    for slot in reversed(range(200)):
        storage.load(slot, [np.zeros(1000, int)])
    cheap = weights(store, nbytes=8000, step_seconds=1.0)
    dear = weights(store, nbytes=8000, step_seconds=1e-3)
    assert 0 < cheap["wd"] < dear["wd"]
    assert 0 < cheap["rd"] < dear["rd"]
    assert dear["wd"] == pytest.approx(1000 * cheap["wd"], rel=0.5)
