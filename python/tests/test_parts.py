"""Restores of parts of regions, compared with NumPy's basic indexing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from bits import bits, random_array, same
from conftest import RunPython
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import velocpy
from velocpy.errors import CheckpointNotFound, InvalidArgument, InvalidType

LEAF = 256 << 10
HOOKS = {"VELOCPY_TEST_HOOKS": "1"}

DTYPES: list[Any] = [
    np.uint8, np.bool_, np.int16, np.float32, np.float64, np.complex128, np.dtype(">i4"), np.dtype("V7"),
    np.dtype("datetime64[ns]"), np.dtype("S3"), np.dtype([("a", "i1"), ("b", "f8")]), ml_dtypes.bfloat16, np.longdouble,
]  # fmt: skip


@pytest.fixture
def history() -> Iterator[velocpy.History]:
    with velocpy.open(host="16MiB", disk="256MiB") as store:
        yield store.history("h")


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Basic indices without new axes, and without the tuple around a single one at times."""
    index: Any = draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    if isinstance(index, tuple) and draw(st.booleans()):  # NumPy's integers are indices, too
        index = tuple(np.int32(each) if type(each) is int else each for each in index)
    return index


def selected(array: np.ndarray[Any, Any], index: Any) -> np.ndarray[Any, Any]:
    """What NumPy selects, as an array also where it is one element."""
    index = index if isinstance(index, tuple) else (index,)
    view: np.ndarray[Any, Any] = array[index if any(each is ... for each in index) else (*index, ...)]
    return view


@st.composite
def laid_out(draw: st.DrawFn, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same elements in other memory: axes in any order and direction, with gaps."""
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, -1, 2, -3])) for _ in order]
    memory = random_array([array.shape[axis] * abs(step) for axis, step in zip(order, steps, strict=True)], array.dtype)
    backwards: Any = (..., *(slice(None, None, step) for step in steps))
    view: np.ndarray[Any, Any] = memory[backwards].transpose(np.argsort(order))
    view[...] = array
    return view


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_parts_are_those_of_numpy(data: st.DataObject, place: tuple[velocpy.History, Callable[[], None]]) -> None:
    """Any shape to four axes, dtype, order of axes and indices, some regions whole; also empty parts."""
    history, push_out = place
    source: dict[str, Any] = {}
    for i in range(data.draw(st.integers(1, 3), label="regions")):
        shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7), label="shape")
        array = random_array(shape, data.draw(st.sampled_from(DTYPES), label="dtype"), seed=i)
        source[f"r{i}"] = data.draw(laid_out(array), label="layout")
    history.checkpoint("k", source)
    if data.draw(st.booleans(), label="pushed out"):
        push_out()
    into: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for name, array in source.items():
        index = ()
        if data.draw(st.booleans(), label="part"):
            index = parts[name] = data.draw(indices(array.shape), label="index")
        wanted[name] = selected(array, index)
        into[name] = data.draw(laid_out(random_array(wanted[name].shape, array.dtype, seed=9)), label="destination")
    before = {name: bits(array.base) for name, array in into.items() if array.base is not None}
    assert history.restore("k", into=into, parts=parts) is into
    for name, array in into.items():
        assert same(array, wanted[name]), (name, parts.get(name))
        if array.base is not None:  # nothing beside the destination was written
            whole, view = array.base.copy(), array
            offset = view.__array_interface__["data"][0] - array.base.__array_interface__["data"][0]
            old = np.frombuffer(before[name], np.uint8).copy()
            new = np.frombuffer(whole.tobytes(), np.uint8).copy()
            at = _offsets(view, offset)
            old[at] = new[at] = 0
            assert old.tobytes() == new.tobytes(), name


def _offsets(view: np.ndarray[Any, Any], offset: int) -> np.ndarray[Any, Any]:
    """Where the bytes of a view lie, in bytes from those of its base."""
    at = np.full(view.shape, offset, np.int64)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        at += (np.arange(n) * stride).reshape([-1 if i == axis else 1 for i in range(view.ndim)])
    return (at.reshape(-1, 1) + np.arange(view.itemsize)).reshape(-1)


@pytest.fixture(params=["host", "disk", "unverified"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[velocpy.History, Callable[[], None]]]:
    """A history, and what drives all of it to the disk, if it has one."""
    verify: Any = "off" if request.param == "unverified" else "moved"
    disk = None if request.param == "host" else "256MiB"
    with velocpy.open(host="1MiB", disk=disk, verify=verify) as store:
        history = store.history("h")

        def push_out() -> None:
            if disk is None:
                return
            for i in range(12):
                history.checkpoint(f"ballast {i}", b=np.zeros(120_000, np.uint8))
            for i in range(12):
                history.drop(f"ballast {i}")

        yield history, push_out


def read_from_disk(store: velocpy.Store) -> int:
    return store.stats()["tiers"]["disk"]["read_bytes"]


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """Of a region of 32 MiB, whose rows have 4 leaves: by another process's store, and counted."""
    u = random_array((32, LEAF), np.float32)
    with velocpy.open(tmp_path, host="64MiB", disk="256MiB") as store:
        store.history("h").checkpoint(1, u=u, v=np.arange(10.0)).wait("disk")
    for index, leaves in (
        (np.s_[3], 4),
        (np.s_[10:12], 8),
        (np.s_[::16], 8),
        (np.s_[:, 100:200], 32),
        (np.s_[5:7, 65_500:65_600], 4),
        (np.s_[0:0], 0),
        (np.s_[31, -1], 1),
        (np.s_[:, ::1000], 128),
    ):
        with velocpy.open(tmp_path, host="64MiB", disk="256MiB") as store:
            history = store.history("h")
            into = np.empty(u[index].shape, np.float32)
            before = read_from_disk(store)
            history.restore(1, "u", into=into, parts=index)
            assert same(np.asarray(into), np.asarray(u[index]))
            assert read_from_disk(store) - before == leaves * LEAF, index


@pytest.mark.parametrize("durable", [False, True])
def test_damage_in_a_part_is_found(run_python: RunPython, durable: bool) -> None:
    """On the disk, and in host memory; damage beside the leaves of a part is not looked at."""
    done = run_python(
        f"""
import numpy as np, tempfile, velocpy

LEAF = 256 << 10
u = np.random.default_rng(3).integers(0, 256, (8, LEAF), dtype=np.uint8)
directory = tempfile.mkdtemp()

def opened():
    return velocpy.open(directory, host="4MiB", disk="64MiB", durable={durable},
                        tuning=velocpy.Tuning(guess=False))

def expect(tier, *parts):
    for index in parts:
        try:
            history.restore(1, into={{"u": np.zeros(u[index].shape, np.uint8)}}, parts={{"u": index}})
        except velocpy.errors.CorruptCheckpoint as error:
            assert (error.history, error.key, error.region, error.tier) == ("h", 1, "u", tier), vars(error)
        else:
            raise AssertionError("nobody noticed")

def whole(index):
    into = np.zeros(u[index].shape, np.uint8)
    assert (history.restore(1, "u", into=into, parts=index) == u[index]).all()

store = opened()
history = store.history("h")
history.checkpoint(1, u=u).wait("disk")
if {durable}:
    store.close()
    store = opened()
    history = store.history("h")
else:
    for i in range(2, 10):
        history.checkpoint(i, u=np.zeros(1 << 20, np.uint8))
assert history.tiers(1) == ("disk",)
history._core.corrupt(1, 2, 3 * LEAF + 17)
expect("disk", np.s_[3, 10:20], np.s_[3, -10:], np.s_[:, 17], np.s_[::-1])
whole(np.s_[4, 10:20])
whole(np.s_[4:])

history.checkpoint(1, u=u)
history._core.corrupt(1, 1, 5 * LEAF + 11)
assert history.tiers(1)[0] == "host"
expect("host", np.s_[5, 11:12], np.s_[5, -1], np.s_[::5, :7])
whole(np.s_[4, 10:20])
print("noticed")
""",
        env=HOOKS,
    )
    assert done.stdout == "noticed\n", done.stderr


def test_tree_sequence_and_one_array(history: velocpy.History) -> None:
    u, w = np.arange(12.0).reshape(3, 4), np.arange(5)
    history.checkpoint("tree", {"model": {"u": u, "w": w}, "step": 3})
    into: dict[str, Any] = {"model": {"u": np.zeros(4), "w": np.zeros(5, int)}}
    assert history.restore("tree", into=into, parts={"model.u": 1}) is into
    assert same(into["model"]["u"], u[1])
    assert same(into["model"]["w"], w)

    history.checkpoint("sequence", [u, w])
    pair = [np.zeros((3, 2)), np.zeros(2, int)]
    assert history.restore("sequence", into=pair, parts={1: np.s_[::3], 0: np.s_[..., 1:3]}) is pair
    assert same(pair[0], u[..., 1:3])
    assert same(pair[1], w[::3])

    alone = history.restore("sequence", 1, into=np.zeros(3, int), parts=np.s_[::-2])
    assert same(alone, w[::-2])
    assert history.restore("sequence", 0, into=np.zeros(()), parts=(2, 3)) == 11.0
    assert same(history.restore("sequence", 1, into=np.zeros(5, int), parts={}), w)


def test_last_consumes(history: velocpy.History) -> None:
    history.checkpoint(1, u=np.arange(5))
    assert history.restore(1, "u", into=np.zeros((), int), parts=3, last=True) == 3
    with pytest.raises(CheckpointNotFound):
        history.restore(1, "u", into=np.zeros((), int), parts=3)


def test_restore_iter(history: velocpy.History) -> None:
    for i in range(6):
        history.checkpoint(i, u=np.arange(i, i + 10))
    history.hint(reversed(range(6)))
    into = np.zeros(2, int)
    seen = [(key, array.tolist()) for key, array in history.restore_iter(into=into, parts=np.s_[3:5])]
    assert seen == [(i, [i + 3, i + 4]) for i in reversed(range(6))]


def test_raw_memory(history: velocpy.History) -> None:
    """Its bytes come in the order of the checkpoint: that of the memory that was captured."""
    u = np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    history.checkpoint(1, u=u)
    buffer = (ctypes.c_int32 * 4)()
    history.restore(1, into={"u": (ctypes.addressof(buffer), 16)}, parts={"u": np.s_[1:, 2:]})
    assert list(buffer) == u[1:, 2:].ravel("F").tolist()
    with pytest.raises(InvalidArgument, match=r"'u' has 12 bytes, the part .* has 16"):
        history.restore(1, into={"u": (ctypes.addressof(buffer), 12)}, parts={"u": np.s_[1:, 2:]})


def test_torch(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    u = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    history.checkpoint(1, u=u.t())
    into = torch.zeros(3, 2, dtype=torch.bfloat16)
    history.restore(1, into={"u": into}, parts={"u": (slice(0, 3), slice(1, 3))})
    assert torch.equal(into, u.t()[0:3, 1:3])
    history.restore(1, "u", into=into[0], parts=(torch.tensor(5), slice(None, 2)))
    assert torch.equal(into[0], u.t()[5, :2])


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (np.s_[5], InvalidArgument, "'u': index 5 is out of range for axis 0, which has the length 3"),
        (np.s_[0, -5], InvalidArgument, "index -5 is out of range for axis 1"),
        (np.s_[2**80], InvalidArgument, "out of range"),
        (np.s_[0, 0, 0], InvalidArgument, "has 3 indices, the region 2 axes"),
        (np.s_[..., ...], InvalidArgument, "two ellipses"),
        (np.s_[::0], InvalidArgument, "zero"),
        ((None,), InvalidArgument, "makes an axis"),
        (np.s_[True], InvalidType, "type bool"),
        (np.s_[1.0], InvalidType, "type float"),
        (np.s_[[0, 1]], InvalidType, "type list"),
        (np.s_[np.array([0, 1])], InvalidType, "type numpy.ndarray"),
        (np.s_["a":], InvalidType, "slice indices must be integers"),
        (np.s_["a"], InvalidType, "type str"),
        (np.s_[1:], InvalidArgument, r"'u' has the shape \(4,\), the part of the region that is wanted \(2,4\)"),
        (np.s_[:, 0], InvalidArgument, r"'u' has the shape \(4,\), the part of the region that is wanted \(3,\)"),
    ],
)
def test_refused(history: velocpy.History, index: Any, error: type[Exception], text: str) -> None:
    history.checkpoint(1, u=np.zeros((3, 4)))
    into = np.ones(4)
    for parts in (index, {"u": index}):
        with pytest.raises(error, match=text):
            history.restore(1, into={"u": into}, parts=parts)
    assert same(into, np.ones(4))


def test_refused_together(history: velocpy.History) -> None:
    u, v = np.zeros((3, 4)), np.zeros(5)
    history.checkpoint(1, u=u, v=v)
    with pytest.raises(InvalidArgument, match="into="):
        history.restore(1, parts={"u": 1})  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match="'v', into= has no array"):
        history.restore(1, into={"u": np.zeros(4)}, parts={"u": 1, "v": 1})
    with pytest.raises(InvalidArgument, match="no region 'w'"):
        history.restore(1, into={"u": np.zeros(4)}, parts={"w": 1})
    with pytest.raises(InvalidArgument, match="one region"):
        history.restore(1, into={"u": np.zeros(4), "v": v}, parts=1)
    with pytest.raises(InvalidArgument, match="dtype"):
        history.restore(1, into={"u": np.zeros(4, np.float32)}, parts={"u": 1})
    shared = np.zeros(10)
    with pytest.raises(InvalidArgument, match="overlap"):
        history.restore(1, into={"u": shared[:4], "v": shared[3:6]}, parts={"u": 1, "v": np.s_[1:4]})
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    with pytest.raises(InvalidArgument, match="read-only"):
        history.restore(1, into={"u": read_only}, parts={"u": 1})
