"""Nested dicts, lists and tuples of arrays and values: captured as they are, and back."""

from __future__ import annotations

import dataclasses
import gc
import math
import struct
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import velocpy
from velocpy import _core, ondisk, tree

U = np.arange(3.0)


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="64MiB") as opened:
        yield opened


@pytest.fixture
def history(store: velocpy.Store) -> velocpy.History:
    return store.history("h")


def same(one: Any, other: Any) -> None:
    """Compares two trees: types of containers, order and types of keys, bits of values and of arrays."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, dict):
        assert [(type(key), key) for key in one] == [(type(key), key) for key in other]
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for each, its in zip(one, other, strict=True):
            same(each, its)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert one.hex() == other.hex()
    elif type(one).__module__ == "torch":
        import torch

        assert (one.dtype, one.shape, torch.equal(one, other)) == (other.dtype, other.shape, True)
    else:
        assert one == other


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=True).map(lambda x: math.nan if x != x else x)
    | st.text(st.characters(), max_size=8)
)
ARRAYS = arrays.arrays(
    st.sampled_from(["f4", "f8", "i8", "u1", "c16", "?", ">i2", "M8[ms]"]), arrays.array_shapes(min_dims=0, max_side=3)
)
KEYS = st.text("ab./~12é", max_size=3) | st.integers(-3, 12) | st.integers()


def trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda node: (
            st.lists(node, max_size=4)
            | st.lists(node, max_size=4).map(tuple)
            | st.dictionaries(keys, node, max_size=4)
            | st.dictionaries(keys, node, max_size=4).map(OrderedDict)
        ),
        max_leaves=25,
    )


TREES = trees(VALUES | ARRAYS, KEYS)


def is_tree(root: Any) -> bool:
    return type(root) in (dict, OrderedDict, list, tuple) and tree.is_nested(root)


@settings(max_examples=150, deadline=None)
@given(root=TREES.filter(is_tree), meta=st.none() | st.dictionaries(st.text(max_size=3), st.integers()))
def test_a_tree_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, root: Any, meta: Any) -> None:
    path = tmp_path_factory.mktemp("tree") / "store"
    with velocpy.open(path, host="4MiB", disk="64MiB", durable=True) as store:
        history = store.history("h")
        history.checkpoint(0, root, meta=meta)
        with history.restore(0) as lease:
            same(lease.tree, root)
            assert lease.meta == history.meta(0) == meta
            assert len(lease) == len(tree.flatten(root).regions)
            for name, array in tree.flatten(root).regions.items():
                same(lease[name], array)
    assert ondisk.check(path, read_data=True).sound
    for mode in ("a", "r"):
        with velocpy.open(path, host="4MiB", disk="64MiB", mode=mode) as store:  # type: ignore[call-overload]
            same(store.history("h").restore(0).tree, root)
            assert store.history("h").meta(0) == meta


ORDINARY = trees(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("aé", max_size=2) | ARRAYS,
    st.text("ab~1", max_size=3) | st.integers(-3, 12),
).filter(lambda root: type(root) in (dict, OrderedDict, list, tuple))


@settings(max_examples=400, deadline=None)
@given(root=TREES | ORDINARY)
def test_both_walks_over_a_tree_find_the_same(root: Any) -> None:
    """The core's module walks over usual trees, and leaves the others to Python."""
    quick = _core.flatten(root)
    if quick is None:
        return
    slow = tree._flattened(root)
    assert list(quick[0]) == list(slow.regions)
    assert all(quick[0][name] is array for name, array in slow.regions.items())
    assert quick[1] == slow.structure
    assert all(one is other for one, other in zip(quick[2], slow.values, strict=True))


@settings(deadline=None)
@given(root=ORDINARY)
def test_usual_trees_are_left_to_the_quick_walk(root: Any) -> None:
    names = tree._Walk()
    names.node(root, ())
    plain = [tree.name(path) for path in names.paths]
    usual = "é" not in repr(root) and len(set(plain)) == len(plain)
    assert (_core.flatten(root) is not None) == usual


def test_a_moved_key_of_an_ordered_dict_stays_where_it_was_moved() -> None:
    moved = OrderedDict(a=U, b=U + 1, c=4)
    moved.move_to_end("a")
    assert tree.flatten(moved) == tree._flattened(moved)
    assert list(tree.flatten(moved).regions) == ["b", "a"]


@pytest.mark.parametrize(
    "unusual",
    [
        U,
        None,
        {True: U},
        {1 << 70: U},
        {"a\tb": U},
        {'a"b': U},
        {"a\\": U},
        {"a\x7f": U},
        {"a": {"b": U}, "a.b": U},
        {"a": np.float64(1)},
        {"a": U.view(np.recarray)},
        {"a": {1, 2}},
        defaultdict(int, a=U),
    ],
)
def test_unusual_trees_are_left_to_python(unusual: Any) -> None:
    assert _core.flatten(unusual) is None


def test_both_walks_end_at_the_same_structure() -> None:
    count = (tree.STRUCTURE_LIMIT - len(b'["list","array"]')) // len(b',"value"')
    quick = _core.flatten([U] + [0] * count)
    assert quick is not None
    assert len(quick[1]) == tree.STRUCTURE_LIMIT
    assert _core.flatten([U] + [0] * (count + 1)) is None
    with pytest.raises(velocpy.errors.InvalidArgument, match="structure of the tree"):
        tree.flatten([U] + [0] * (count + 1))


def test_both_walks_end_at_the_same_depth() -> None:
    for depth in (98, 99, 100, 101):
        nested: Any = U
        for _ in range(depth):
            nested = [nested]
        quick = _core.flatten(nested)
        assert (quick is None) == (depth > tree.DEPTH)
        if quick is not None:
            assert tree.Flat(*quick) == tree._flattened(nested)


@settings(deadline=None)
@given(
    paths=st.lists(
        st.lists(KEYS, min_size=1, max_size=4).map(tuple), unique_by=lambda p: [(type(k), k) for k in p].__repr__()
    )
)
def test_names_are_unique(paths: list[Any]) -> None:
    assert len(set(tree.names(paths))) == len(paths)


def test_numbers_that_are_not_finite(history: velocpy.History) -> None:
    history.checkpoint(0, {"u": U, "values": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1 + 0.2]})
    same(history.restore(0).tree["values"], [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1 + 0.2])


def test_scalars_of_numpy(history: velocpy.History) -> None:
    """They are values if Python has the same one, and else arrays, as 0-dimensional arrays are."""
    given = {
        "f": np.float64(0.1), "h": np.float16(0.1), "i": np.int64(-(2**63)), "b": np.True_, "s": np.str_("psi"),
        "c": np.complex64(1j), "t": np.datetime64(5, "ms"), "d": np.timedelta64(5, "ms"), "a": np.array(2.5), "step": 3,
    }  # fmt: skip
    history.checkpoint(0, given)
    lease = history.restore(0)
    assert list(lease) == ["c", "t", "d", "a"]
    found = lease.tree
    same(
        {name: found[name] for name in "fhibs"},
        {"f": 0.1, "h": float(np.float16(0.1)), "i": -(2**63), "b": True, "s": "psi"},
    )
    assert [found[name].dtype.str for name in "ctda"] == ["<c8", "<M8[ms]", "<m8[ms]", "<f8"]
    assert [found[name].item() for name in "ca"] == [1j, 2.5]


def test_what_is_flat_stays_flat(history: velocpy.History) -> None:
    for key, regions in enumerate(({"u": U}, [U, U], {"u": np.float64(1), "v": b"bytes"}, {}, (), OrderedDict(u=U))):
        history.checkpoint(key, regions)
        lease = history.restore(key)
        assert lease._held().structure() is None
        assert type(lease.tree) is (list if isinstance(regions, (list, tuple)) else dict)
    assert history.restore(0).tree["u"] is not history.restore(0)["u"]
    with history.restore(0) as lease:
        assert lease.tree["u"] is lease["u"]
        assert lease.tree is not lease.tree


def test_descriptions(tmp_path: Path) -> None:
    """To the byte, as docs/format.md has them: those of flat regions are what earlier versions wrote."""

    def region(name: bytes, offset: int) -> bytes:
        return b"".join(
            (
                struct.pack("<I", len(name)) + name,
                struct.pack("<Bi", 0, 0),
                b"\3\0\0\0<f8",
                struct.pack("<QBQ", 8, 1, 3),
                struct.pack("<BQQ", 0, offset, 24),
            )
        )

    expected = {
        0: ({"u": U}, b"L\2\0\1\0\0\0" + region(b"u", 0)),
        1: ([U, U], b"L\2\1\2\0\0\0" + region(b"", 0) + region(b"", 64)),
        2: (
            {"m": OrderedDict([("w", U), (-1, (U, 0.5))]), "l": []},
            b"L\2\2\2\0\0\0"
            + region(b"m.w", 0)
            + region(b"m.-1.0", 64)
            + b'["dict","m",["ordered","w","array",-1,["tuple","array","value"]],"l",["list"]]',
        ),
    }
    path = tmp_path / "store"
    with velocpy.open(path, host="4MiB", disk="64MiB") as store:
        for key, (regions, _) in expected.items():
            store.history("h").checkpoint(key, regions, meta={"t": 1})
    for key, (_, text) in expected.items():
        assert described(path, key) == text
    assert [described(path, key, "meta") for key in expected] == [b'{"t":1}', b'{"t":1}', b'[[0.5],{"t":1}]']


def test_a_tree_without_arrays(history: velocpy.History) -> None:
    root = {"state": {}, "groups": [{"lr": 0.1, "params": [0, 1]}], 3: ((), OrderedDict())}
    history.checkpoint(0, root)
    same(history.restore(0).tree, root)
    assert list(history.restore(0)) == []
    assert history.size(0) == 0


def test_names_of_regions(history: velocpy.History) -> None:
    history.checkpoint(
        0, {"model": OrderedDict({"0.weight": U, "0.bias": U}), "state": {0: {"m": U}}, "l": [U, (U, 3)]}
    )
    assert list(history.restore(0)) == ["model.0.weight", "model.0.bias", "state.0.m", "l.0", "l.1.0"]
    history.checkpoint(1, {"a": {"b": U, 1: U, "1": U}, "a.b": U + 1, "[1]": [U]})
    assert list(history.restore(1)) == ["/a/b", "/a/~21", "/a/1", "/a.b", "/[1]/~20"]
    assert history.restore(1).tree["a.b"][0] == 1
    for part in ({"a.b": U.copy()}, {"a": {"b": U.copy()}}):  # which of the two is meant, the name does not tell
        with pytest.raises(velocpy.errors.InvalidArgument, match=r"no region 'a\.b'"):
            history.restore(1, into=part)
    part = history.restore(0, ["state.0.m"])
    assert list(part) == ["state.0.m"]
    assert part.tree["model"] == {"0.weight": ..., "0.bias": ...}
    assert part.tree["state"][0]["m"] is part["state.0.m"]
    assert part.tree["l"][1] == (..., 3)


def test_checkpoints_of_one_structure_share_a_description(tmp_path: Path) -> None:
    """Values are no part of it: a counter in the tree makes none anew."""
    path = tmp_path / "store"
    with velocpy.open(path, host="4MiB", disk="64MiB") as store:
        for step in range(50):
            store.history("h").checkpoint(step, {"model": {f"w{i}": U for i in range(100)}, "step": step})
    assert len({described(path, step) for step in range(50)}) == 1


def described(path: Path, key: int, what: str = "layout") -> bytes:
    with ondisk.View(path) as view:
        return view.whole("blob", what=what, history=ondisk.bytes_of_text("h"), key={"number": key})


def test_refusals_say_where(history: velocpy.History) -> None:
    @dataclasses.dataclass
    class Config:
        lr: float

    pair = namedtuple("pair", "x y")
    cycle: list[Any] = [U]
    cycle.append(cycle)
    deep: Any = U
    for _ in range(101):
        deep = [deep]
    for wrong, told in (
        (Config(1), "'m.x'.*Config"), (pair(1, 2), "'m.x'.*pair"), (pair(U, U), "'m.x'.*pair"), ({1, 2}, "'m.x'.*set"),
        (defaultdict(list), "'m.x'.*defaultdict"), (object(), "'m.x'.*object"), ({None: U}, "'m.x'.*None"),
        ({True: U}, "'m.x'.*bool"), ({(1, 2): U}, "'m.x'.*tuple"), (cycle, "deep, or holds itself"), (deep, "deep"),
        (np.array([object()]), "'m.x'.*object"), ("\ud83d\ude00", "'m.x'.*surrogates"), ("x" * 2_000_000, "values"),
        (10**5000, "JSON"), ({10**5000: U}, "'m.x'.*bits"), (range(3), "'m.x'.*range"),
        (velocpy, "'m.x'.*module"), (dict.fromkeys(range(600_000)), "structure"),
    ):  # fmt: skip
        for regions in ({"m": {"x": wrong}}, {"m": {"x": wrong, "y": U}, "step": 3}):
            with pytest.raises(velocpy.errors.InvalidArgument, match=told):
                history.checkpoint(0, regions)
    for wrong in (Config(1), {1, 2}, pair(U, U), {None: U}):
        with pytest.raises(velocpy.errors.InvalidType):
            history.checkpoint(0, {"m": {"x": wrong}})
    for raw in ((U.ctypes.data, U.nbytes), (U.ctypes.data, U.nbytes, 0)):  # it belongs into a mapping or a sequence
        with pytest.raises(velocpy.errors.InvalidArgument):
            history.checkpoint(0, raw)
    assert not len(history)


def test_a_meta_beside_a_tree_is_as_deep_as_a_reader_allows(history: velocpy.History) -> None:
    from velocpy.history import META_DEPTH, _beside

    deep: Any = 1
    for _ in range(META_DEPTH - 600):
        deep = [deep]
    history.checkpoint(0, {"m": {"u": U}}, meta=deep)
    assert history.meta(0) == deep
    with pytest.raises(velocpy.errors.InvalidArgument, match="deep"):
        _beside(tree.flatten({"m": [U]}), b"[" * META_DEPTH + b"]" * META_DEPTH)


def test_arrays_of_a_tree_live_as_those_of_a_lease(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, {"m": [np.full(1000, 7.0)], "step": 1})
    lease = history.restore(0)
    found = lease.tree
    with pytest.raises(ValueError, match="read-only"):
        found["m"][0][0] = 1
    gone = weakref.ref(lease)
    lease.release()
    with pytest.raises(velocpy.errors.LeaseReleased):
        _ = lease.tree
    del lease
    gc.collect()
    assert gone() is None
    history.drop(0)
    history.checkpoint(1, {"m": [np.full(1000, 8.0)], "step": 1})
    assert (found["m"][0] == 7).all()
    last = history.restore(1, last=True).tree
    last["m"][0][:] = 9
    assert 1 not in history


def whole() -> Any:
    return {"model": OrderedDict(w=U.copy(), b=[np.ones(2), (np.zeros((2, 2)), 0.5)]), "state": {0: U + 5}, "step": 3}


def blank() -> Any:
    empty = whole()
    for array in tree.flatten(empty).regions.values():
        array[...] = -1
    return {**empty, "step": 0}


def test_into_a_tree(history: velocpy.History) -> None:
    history.checkpoint(0, whole())
    into = blank()
    assert history.restore(0, into=into) is into
    same(into, {**whole(), "step": 0})  # values stay as they are


def test_into_a_part_of_a_tree(history: velocpy.History) -> None:
    history.checkpoint(0, whole())
    for part in ({"model": blank()["model"]}, {"state": {0: U.copy()}, "step": None}, {"model.w": U.copy()}):
        history.restore(0, into=part)
        for name, array in tree.flatten(part).regions.items():
            same(array, tree.flatten(whole()).regions[name])
    back = blank()["model"]
    history.restore(0, ["model.w", "model.b.0", "model.b.1.0"], into={"model": back})
    same(back, whole()["model"])
    with pytest.raises(velocpy.errors.InvalidArgument, match="different regions"):
        history.restore(0, ["model.w"], into={"model": back})


def test_into_a_list_of_a_tree(history: velocpy.History) -> None:
    for key, regions in enumerate(([U, 3, U + 1], {0: U, 1: U + 1}, [U, U + 1])):
        history.checkpoint(key, regions)
        one, other = np.zeros(3), np.zeros(3)
        history.restore(key, into=[one, other])
        assert (one.tolist(), other.tolist()) == (U.tolist(), (U + 1).tolist())
    one, other = np.zeros(3), np.zeros(3)
    history.restore(0, into=[one, 0, other])
    assert (one.tolist(), other.tolist()) == (U.tolist(), (U + 1).tolist())
    assert history.restore(1, into={0: one * 0, 1: other * 0})[1].tolist() == (U + 1).tolist()
    assert list(history.restore(1, [1])) == list(history.restore(1, "1")) == ["1"]


def test_into_another_tree_is_refused_before_anything_is_written(history: velocpy.History) -> None:
    history.checkpoint(0, whole())
    history.checkpoint(1, u=U)
    for key, change, told in (
        (0, {"model": {"w": 0.0}}, "region 'model.w'"),
        (0, {"model": {"w": [U.copy()]}}, "'model.w"),
        (0, {"model": {"w": (8, 8)}}, "region 'model.w'"),
        (0, {"model": {"w": U.copy(), "x": U.copy()}}, "'model.x'"),
        (0, {"model": {"b": U.copy()}}, "'model.b'"),
        (0, {"state": {0: np.zeros(4)}}, "shape"),
        (0, {"step": U.copy()}, "'step'"),
        (1, {"u": {"v": U.copy()}}, "'u"),
    ):
        into = {**blank(), **change} if key == 0 else change
        before = [array.tolist() for array in tree.flatten(into).regions.values()]
        for last in (False, True):
            with pytest.raises(velocpy.errors.InvalidArgument, match=told):
                history.restore(key, into=into, last=last)
        assert before == [array.tolist() for array in tree.flatten(into).regions.values()]
        assert key in history
    for nothing in ({"step": 3}, {"model": {}}, [1, 2], {"u": None}):
        with pytest.raises(velocpy.errors.InvalidArgument, match="no array"):
            history.restore(0, into=nothing)


def test_a_loop_into_a_tree(history: velocpy.History) -> None:
    for step in range(5):
        history.checkpoint(step, {"m": {"u": np.full(3, float(step))}, "step": step})
    history.hint(range(5))
    into = {"m": {"u": np.zeros(3)}, "step": None}
    for step, filled in history.restore_iter(into=into):
        assert filled is into
        assert into["m"]["u"].tolist() == [step] * 3  # type: ignore[index]
    history.hint(reversed(range(5)))
    assert [lease.tree["step"] for _, lease in history.restore_iter()] == [4, 3, 2, 1, 0]


def test_a_loop_into_regions_by_their_numbers(history: velocpy.History) -> None:
    for key, regions in enumerate(([U, U + 1], {0: U, 1: U + 1}, [U, 3, U + 1])):
        history.checkpoint(key, regions)
        into = {number: np.zeros(3) for number in (0, 2 if key == 2 else 1)}
        history.hint(key)
        for _, filled in history.restore_iter(into=into):
            assert [array.tolist() for array in filled.values()] == [U.tolist(), (U + 1).tolist()]


def test_sources_of_a_tree_that_stay(store: velocpy.Store) -> None:
    history = store.history("h")
    ticket = history.checkpoint(None, whole(), copy=False, meta="m")
    ticket.wait()
    same(history.restore(ticket.key).tree, whole())
    assert history.meta(ticket.key) == "m"


torch = pytest.importorskip("torch")


def trained(steps: int) -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    optim = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        optim.zero_grad()
        model(torch.full((4, 3), float(step))).sum().backward()
        optim.step()
    return model, optim


@pytest.mark.parametrize("mode", ["memory", "a", "r"])
def test_a_training_goes_on(tmp_path: Path, mode: Any) -> None:
    model, optim = trained(3)
    whole = {"model": model.state_dict(), "optim": optim.state_dict(), "step": 3}
    path = None if mode == "memory" else tmp_path / "store"
    with velocpy.open(path, host="16MiB", disk="64MiB") as store:
        store.history("run").checkpoint(3, whole)
        if mode == "memory":
            goes_on(store, whole)
    if mode != "memory":
        with velocpy.open(path, host="16MiB", disk="64MiB", mode=mode) as store:
            goes_on(store, whole)


def goes_on(store: velocpy.Store, whole: Any) -> None:
    with store.history("run").restore(3) as state:
        same(state.tree, {**whole, "model": OrderedDict(whole["model"])})
        model, optim = trained(0)
        model.load_state_dict(state.tree["model"])
        optim.load_state_dict(state.tree["optim"])
    expected, _ = trained(4)
    again, its = trained(5)
    into = {"model": again.state_dict(), "optim": its.state_dict(), "step": 0}
    version = again[0].weight._version
    store.history("run").restore(3, into=into)
    assert again[0].weight._version > version
    same(into["model"], OrderedDict(whole["model"]))
    same(into["optim"]["state"], whole["optim"]["state"])
    optim.zero_grad()
    model(torch.full((4, 3), 3.0)).sum().backward()
    optim.step()
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(one, other)
