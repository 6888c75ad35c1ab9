"""Comparisons of checkpoints and of histories, against NumPy, and what they read."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from bits import random_array
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import velocpy
from velocpy import comparing, ondisk
from velocpy.comparison import Comparison, RegionDifference
from velocpy.elements import alike, largest_difference
from velocpy.errors import CheckpointDropped, CheckpointNotFound, CorruptCheckpoint, InvalidArgument, InvalidType

LEAF = 256 << 10

#: Of these any bytes are elements, and NumPy says by itself which are equal.
NUMBERS: list[Any] = [
    np.uint8, np.int8, np.uint16, np.int64, np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128,
    np.dtype(">i4"), np.dtype(">f8"), ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
]  # fmt: skip

DTYPES: list[Any] = [
    *NUMBERS, np.bool_, np.dtype("V7"), np.dtype("datetime64[ns]"), np.dtype("m8[s]"), np.dtype("S3"), np.dtype("U2"),
    np.longdouble, np.dtype([("a", "i1"), ("b", "f8")]), np.dtype([("a", "i1"), ("b", "f4", (2,))], align=True),
    np.dtype("V0"),
]  # fmt: skip

_numbers = itertools.count()


@pytest.fixture
def histories(tmp_path: Path) -> Iterator[dict[str, velocpy.History]]:
    """Histories in memory, on disk alone, without checksums, and unverified; two of one store."""
    bare = velocpy.Tuning(checksum=False)
    with (
        velocpy.open(host="64MiB") as memory,
        velocpy.open(tmp_path / "disk", host=None, disk="1GiB") as disk,
        velocpy.open(tmp_path / "bare", host="1MiB", disk="1GiB", tuning=bare) as unsummed,
        velocpy.open(tmp_path / "off", host="1MiB", disk="1GiB", verify="off") as unverified,
    ):
        yield {
            "memory": memory.history("a"),
            "same store": memory.history("b"),
            "disk": disk.history("a"),
            "unsummed": unsummed.history("a"),
            "unverified": unverified.history("a"),
        }


def lying(array: Any, like: Any) -> Any:
    """The elements of an array in the order in which those of another one lie in memory."""
    order = sorted(range(like.ndim), key=lambda axis: (-abs(like.strides[axis]), axis))
    return np.ascontiguousarray(array.transpose(order)).reshape(-1)


def whole(array: Any) -> Any:
    """The array with elements that are bytes alone: copies of others leave out what is between the fields."""
    return array.view(np.dtype(("V", array.itemsize))) if array.itemsize else array


def bytes_of(array: Any) -> bytes:
    """All bytes of the elements, in C order."""
    found: bytes = whole(array).tobytes()
    return found


def unlike(one: Any, other: Any) -> Any:
    """Which elements differ, as a mask of the shape."""
    if one.size == 0 or one.itemsize == 0:
        return np.zeros(one.shape, bool)
    ones, others = (np.frombuffer(bytes_of(side), np.uint8).reshape(-1, one.itemsize) for side in (one, other))
    mask = (ones != others).any(axis=1)
    return mask.reshape(one.shape)


def runs(mask: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[0, mask.astype(np.int8), 0]))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def checked(found: RegionDifference, one: Any, other: Any) -> None:
    """Compares what was found with what NumPy says; both arrays have the axes in any order."""
    mask = unlike(one, other)
    assert found.why == "bytes"
    assert found.count == np.count_nonzero(mask)
    flat = lying(mask, one)
    assert found.ranges == tuple(runs(flat))[: len(found.ranges)]
    assert len(found.ranges) + found.more_ranges == len(runs(flat))
    if one.ndim:
        where = np.nonzero(mask)
        assert found.bounds == tuple((at.min(), at.max() + 1) for at in where)
        assert mask[found.index].sum() == found.count
        numbers = lying(np.arange(one.size).reshape(one.shape), one)
        assert found.first == np.unravel_index(numbers[flat][0], one.shape)
        assert mask[found.first]
    assert found.first is not None
    place = (*found.first, ...)  # an array, which keeps the order of bytes
    assert found.raw == (bytes_of(one[place])[:64], bytes_of(other[place])[:64])


@st.composite
def laid_out(draw: st.DrawFn, array: Any) -> Any:
    """The same elements in other memory: axes in any order and direction, with gaps."""
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, -1, 2])) for _ in order]
    memory = random_array([array.shape[axis] * abs(step) for axis, step in zip(order, steps, strict=True)], array.dtype)
    backwards: Any = (..., *(slice(None, None, step) for step in steps))
    view = memory[backwards].transpose(np.argsort(order))
    whole(view)[...] = whole(array)
    return view


def flipped(draw: st.DrawFn, array: Any) -> Any:
    """The array with single bits of some elements changed; of truth values the lowest."""
    changed = whole(array).copy(order="K")
    raw = np.frombuffer(changed.tobytes(), np.uint8).copy()
    for _ in range(draw(st.integers(0, 4))):
        if raw.size:
            bit = 0 if array.dtype.kind == "b" else draw(st.integers(0, 7))
            raw[draw(st.integers(0, raw.size - 1))] ^= 1 << bit
    if raw.size:
        changed[...] = raw.view(changed.dtype).reshape(array.shape)
    return changed.view(array.dtype)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_differs_is_what_numpy_says(data: st.DataObject, histories: dict[str, velocpy.History]) -> None:
    """Any dtype, shape, order of axes and single bits, in any two of the stores."""
    draw = data.draw
    sides = [histories[draw(st.sampled_from(sorted(histories)), label="side")] for _ in range(2)]
    ones: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for i in range(draw(st.integers(0, 3), label="regions")):
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5), label="shape")
        dtype = np.dtype(draw(st.sampled_from(DTYPES), label="dtype"))
        raw = np.zeros(shape, dtype) if dtype.kind == "U" else random_array(shape, dtype, seed=i)
        one = draw(laid_out(raw), label="layout")
        ones[f"r{i}"], others[f"r{i}"] = one, flipped(draw, one)
        if draw(st.booleans(), label="elsewhere"):
            others[f"r{i}"] = draw(laid_out(others[f"r{i}"]), label="other layout")
    keys = f"one {next(_numbers)}", f"other {next(_numbers)}"
    for history, key, regions in zip(sides, keys, (ones, others), strict=True):
        history.checkpoint(key, regions or {"none": np.zeros(0)})
    found = sides[0].compare(keys[0], sides[1], keys[1], limit=draw(st.sampled_from([0, 1, 3, 1000]), label="limit"))
    wanted = {name for name in ones if unlike(ones[name], others[name]).any()}
    assert {region.name for region in found.regions} == wanted
    assert found.equal == bool(found) == (not wanted)
    assert str(found)
    for region in found.regions:
        checked(region, ones[region.name], others[region.name])
    for history, key in zip(sides, keys, strict=True):
        history.drop(key)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_leaves_that_are_equal_are_not_read(data: st.DataObject, histories: dict[str, velocpy.History]) -> None:
    """Regions of several leaves, also of elements over the end of a leaf, with single bits that differ."""
    draw = data.draw
    sides = [histories[draw(st.sampled_from(["memory", "same store", "disk", "unverified"]))] for _ in range(2)]
    dtype = np.dtype(
        draw(
            st.sampled_from(
                [np.uint8, np.float32, np.complex128, np.dtype("V7"), np.dtype("S100003"), np.dtype("S400009")]
            )
        )
    )
    nbytes = draw(st.integers(1, 5 * LEAF))
    one = random_array(max(1, nbytes // dtype.itemsize), np.dtype(("V", dtype.itemsize))).view(dtype)
    raw = one.tobytes()
    places = draw(st.lists(st.integers(0, len(raw) - 1), max_size=4))
    changed = np.frombuffer(raw, np.uint8).copy()
    for place in places:
        changed[place] ^= 4
    other = changed.view(dtype)
    for history, array in zip(sides, (one, other), strict=True):
        history.checkpoint(f"leaves {array is other}", a=array, b=one)
    found = sides[0].compare("leaves False", sides[1], "leaves True")
    differing = {at // LEAF for at in np.flatnonzero(np.frombuffer(raw, np.uint8) != changed).tolist()}
    if not differing:
        assert found.equal
        assert found.read_nbytes == 0
        return
    (region,) = found.regions
    assert region.count == np.count_nonzero(unlike(one, other))
    assert region.ranges == tuple(runs(unlike(one, other)))
    assert found.read_nbytes <= len(differing) * (LEAF + 2 * dtype.itemsize)


def test_an_element_over_several_leaves_is_one(histories: dict[str, velocpy.History]) -> None:
    """It differs in the first and the last of its leaves, and not in the one between."""
    one = random_array(2, "V800000")
    other = one.copy()
    other.view(np.uint8)[[5, 799_999]] ^= 1
    for key, array in ((0, one), (1, other)):
        histories["memory"].checkpoint(key, u=array)
    (region,) = histories["memory"].compare(0, histories["memory"], 1).regions
    assert (region.count, region.ranges, region.bounds) == (1, ((0, 1),), ((0, 1),))


def flip(path: Path, history: str, key: Any, offset: int) -> None:
    """Changes a byte of a checkpoint's slot in its data file."""
    for extent in ondisk.describe(path, history, key).extents:
        if offset < extent.nbytes:
            with (path / extent.file).open("r+b") as file:
                file.seek(extent.offset + offset)
                (byte,) = file.read(1)
                file.seek(extent.offset + offset)
                file.write(bytes([byte ^ 1]))
            return
        offset -= extent.nbytes
    raise AssertionError("the slot is shorter")


def read_from_disk(history: velocpy.History) -> int:
    return history.store.stats()["tiers"]["disk"]["read_bytes"]


@pytest.mark.parametrize("mode", ["r", "a"])
def test_only_what_differs_is_read_from_disk(tmp_path: Path, mode: Any) -> None:
    """All other leaves are damaged on disk, and bytes read are counted: 3 leaves of 32 on either side."""
    u = random_array((32, LEAF // 8), np.float64)
    v = u.copy()
    v[5, 7], v[6, 0], v[20, -1] = 1, 2, 3
    for name, array in (("a", u), ("b", v)):
        with velocpy.open(tmp_path / name, host="64MiB", disk="256MiB") as store:
            store.history("h").checkpoint(1, u=array, w=np.zeros(100_000))
        offset = ondisk.describe(tmp_path / name, "h", 1).regions[0].offset
        for leaf in set(range(32)) - {5, 6, 20}:
            flip(tmp_path / name, "h", 1, offset + leaf * LEAF + 17)
    with (
        velocpy.open(tmp_path / "a", host="64MiB", mode=mode) as one,
        velocpy.open(tmp_path / "b", host="64MiB", mode=mode) as other,
    ):
        found = one.history("h").compare(1, other.history("h"))
        (region,) = found.regions
        checked(region, u, v)
        assert found.read_nbytes == 3 * LEAF
        for store in (one, other):
            assert 3 * LEAF <= read_from_disk(store.history("h")) <= 3 * LEAF + 16384
            with pytest.raises(CorruptCheckpoint):  # the damage is there
                store.history("h").restore(1)
    offset = ondisk.describe(tmp_path / "b", "h", 1).regions[0].offset
    flip(tmp_path / "b", "h", 1, offset + 20 * LEAF)
    with (
        velocpy.open(tmp_path / "a", mode="r", host=None) as one,
        velocpy.open(tmp_path / "b", mode="r", host=None) as other,
    ):
        for pair, which in (((one, other), "second"), ((other, one), "first")):
            with pytest.raises(CorruptCheckpoint, match=f"the {which} of the two .*/b'.*checksum") as raised:
                pair[0].history("h").compare(1, pair[1].history("h"))
            assert (raised.value.history, raised.value.key, raised.value.region) == ("h", 1, "u")


def test_equal_checkpoints_are_not_read(histories: dict[str, velocpy.History], monkeypatch: pytest.MonkeyPatch) -> None:
    regions = {"u": random_array((700, 300), np.float64), "v": np.zeros(5), "e": np.zeros((0, 3))}
    for history in histories.values():
        history.checkpoint("equal", regions, meta={"t": 1})
    found = histories["unsummed"].compare("equal", histories["disk"])
    assert found.equal
    assert found.read_nbytes == sum(array.nbytes for array in regions.values())  # nothing is known of one side
    monkeypatch.setattr(comparing._Side, "read", lambda *_: pytest.fail("it was read"))
    for one, other in itertools.product(("memory", "same store", "disk", "unverified"), repeat=2):
        found = histories[one].compare("equal", histories[other])
        assert (found.equal, found.same_meta, found.read_nbytes) == (True, True, 0)


@pytest.mark.parametrize("verify", ["moved", "off"])
def test_encoded_checkpoints(tmp_path: Path, histories: dict[str, velocpy.History], verify: Any) -> None:
    """They are compared by the hashes of what was captured, with plain ones too."""
    u = np.sin(np.linspace(0, 9, 500_000, dtype=np.float32)).reshape(500, 1000)
    v = u.copy()
    v[300, 17:20] += 1
    with velocpy.open(tmp_path / "encoded", host=None, disk="64MiB", verify=verify) as store:
        encoded = store.history("h", reduce="codec")
        for key, array in (("u", u), ("v", v)):
            encoded.checkpoint(key, a=array).wait("disk")
            histories["memory"].checkpoint(key, a=array)
        saved = store.stats()["histories"]["h"]["reduction"]
        assert saved is not None
        assert saved["encoded"] == 2
        for other in (encoded, histories["memory"]):
            found = encoded.compare("u", other)
            assert (found.equal, found.read_nbytes) == (True, 0)
            found = encoded.compare("u", other, "v")
            checked(only(found), u, v)
            assert found.read_nbytes == LEAF
    histories["memory"].clear()


def test_large_differences_take_little_memory(histories: dict[str, velocpy.History]) -> None:
    """All elements differ, and every other one, over several pieces."""
    u = np.zeros(3 * comparing._PIECE + 10, np.uint8)
    every, other = u + 1, u.copy()
    other[::2] = 9
    for key, array in (("u", u), ("every", every), ("other", other)):
        histories["memory"].checkpoint(key, a=array)
    (region,) = histories["memory"].compare("u", histories["memory"], "every").regions
    assert (region.count, region.ranges, region.more_ranges) == (u.size, ((0, u.size),), 0)
    assert (region.bounds, region.max_difference) == (((0, u.size),), 1)
    (region,) = histories["memory"].compare("u", histories["memory"], "other", limit=2).regions
    assert (region.count, region.ranges, region.max_difference) == (u.size // 2, ((0, 1), (2, 3)), 9)
    assert region.more_ranges == u.size // 2 - 2
    every[1:10] = 0
    histories["memory"].checkpoint("every", a=every)
    (region,) = histories["memory"].compare("u", histories["memory"], "every", limit=1).regions
    assert (region.count, region.ranges, region.more_ranges) == (u.size - 9, ((0, 1),), 1)
    histories["memory"].clear()


def compared(one: Any, other: Any, **options: Any) -> Comparison:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        for key, given_ in ((0, one), (1, other)):
            history.checkpoint(key, given_ if isinstance(given_, (dict, list)) else {"u": given_})
        return history.compare(0, history, 1, **options)


def only(found: Comparison) -> RegionDifference:
    (region,) = found.regions
    return region


def test_zeros_and_nans_differ_in_their_bits() -> None:
    one = np.array([0.0, np.nan, 1.0, np.nan, 2.0, np.inf])
    other = np.array([-0.0, -np.nan, np.nan, 5.0, 2.25, -np.inf])
    region = only(compared(one, other))
    assert (region.count, region.nan_payloads, region.same_values, region.max_difference) == (6, 1, 1, np.inf)
    region = only(compared(one[:5], other[:5]))
    assert region.max_difference == 0.25
    assert region.raw == (bytes(8), bytes(7) + b"\x80")
    assert "1 by the payload" in str(region)
    assert "bytes 0000000000000000 and" not in str(region)  # -0.0 looks unlike 0.0
    payload = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(np.float64)
    region = only(compared(payload[:1], payload[1:]))
    assert (region.nan_payloads, region.max_difference) == (1, None)
    assert "0100000000 00f87f".replace(" ", "") in str(region)
    pairs = np.array([complex(np.nan, 1), complex(0, 1)]), np.array([complex(-np.nan, 1), complex(-0.0, 1)])
    region = only(compared(*pairs))
    assert (region.nan_payloads, region.same_values) == (1, 1)


def test_a_tolerance() -> None:
    one, other = np.array([1.0, 2.0, np.nan, np.inf, 0.0]), np.array([1.001, 2.0, -np.nan, np.inf, -0.0])
    assert not compared(one, other)
    assert compared(one, other, atol=0.01)
    assert compared(one, other, rtol=0.01)
    assert only(compared(one, other, rtol=1e-6)).ranges == ((0, 1),)
    assert only(compared(one, other, atol=0)).count == 1
    assert not compared(np.array([np.inf]), np.array([1.0]), rtol=1e9)
    assert compared(np.array([10, -3]), np.array([11, -4]), atol=1)
    assert not compared(np.array([10]), np.array([12]), atol=1)
    assert compared(np.array([1 + 1j]), np.array([1 + 1.001j]), atol=0.01)
    assert not compared(np.array([b"a"]), np.array([b"b"]), atol=100)
    assert not compared(np.array([True]), np.array([False]), atol=100)
    assert compared(np.array([1.0], ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16), atol=0.01)
    for wrong in (-1, np.nan, np.inf):
        with pytest.raises(InvalidArgument, match="rtol"):
            compared(one, other, rtol=wrong)
    with pytest.raises(InvalidType, match="atol"):
        compared(one, other, atol="small")
    for wrong in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="limit"):
            compared(one, other, limit=wrong)


@given(dtype=st.sampled_from(NUMBERS), seed=st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_figures_of_numbers(dtype: Any, seed: int) -> None:
    """The largest difference of all numbers is that of Python's; what is alike is what NumPy has as equal or NaN."""
    one, other = random_array(50, dtype, seed), random_array(50, dtype, seed + 1)
    if np.dtype(dtype).kind in "iu":
        assert largest_difference(one, other) == max(abs(int(a) - int(b)) for a, b in zip(one, other, strict=True))
        return
    with np.errstate(all="ignore"):
        wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
        ones, others = one.astype(wide), other.astype(wide)
        distances = np.abs(ones - others)
        distances = distances[~np.isnan(distances)]
        assert largest_difference(one, other) == (distances.max() if distances.size else None)
        same, nan = alike(one, one)
        assert same.all()
        assert (nan == np.isnan(ones)).all()


def test_values_are_told_whatever_they_are() -> None:
    for one, other, told in (
        (np.array(3), np.array(4), (3, 4)),
        (np.array(["ab"]), np.array(["ac"]), ("ab", "ac")),
        (np.array([b"ab"]), np.array([b"ac"]), (b"ab", b"ac")),
        (np.array([True]), np.array([False]), (True, False)),
        (np.array(["2020"], "M8[D]"), np.array(["NaT"], "M8[D]"), None),
        (np.array([(1, 2.0)], "i1,f8"), np.array([(1, 2.5)], "i1,f8"), None),
        (np.array([1], ml_dtypes.int4), np.array([2], ml_dtypes.int4), (1, 2)),
    ):
        region = only(compared(one, other))
        assert region.values is not None
        if told is not None:
            assert region.values == told
        assert str(region)
    impossible = np.array([0x7FFFFFFF], np.uint32).view("U1"), np.array(["a"])
    assert only(compared(*impossible)).values == (None, "a")
    assert only(compared(np.zeros(1, "V5000"), np.ones(5000, np.uint8).view("V5000"))).values is None
    truth = np.array([1], np.uint8).view(bool), np.array([2], np.uint8).view(bool)
    assert only(compared(*truth)).same_values == 1
    holes = np.dtype({"names": ["a"], "formats": ["i1"], "itemsize": 4})
    padded = np.zeros(4, np.uint8).view(holes), np.array([0, 1, 1, 1], np.uint8).view(holes)
    assert only(compared(*padded)).same_values == 1


def test_regions_that_cannot_be_compared() -> None:
    one = {"gone": np.zeros(1), "dtype": np.zeros(2), "shape": np.zeros((2, 3)), "same": np.ones(2)}
    other = {"same": np.ones(2), "shape": np.zeros((3, 2)), "dtype": np.zeros(2, ">f8"), "new": np.zeros(1)}
    found = compared(one, other)
    assert [(region.name, region.why) for region in found.regions] == [
        ("gone", "only in one"),
        ("dtype", "dtype"),
        ("shape", "shape"),
        ("new", "only in one"),
    ]
    assert (found.regions[0].shapes, found.regions[3].shapes) == (((1,), None), (None, (1,)))
    assert found.regions[1].dtypes == ("<f8", ">f8")
    assert found.read_nbytes == 0
    assert str(found).count("\n") == 4
    assert [region.name for region in compared([np.zeros(1), np.zeros(2)], [np.zeros(1)]).regions] == [1]


def test_the_order_of_regions_and_of_axes_and_the_library_count_for_nothing() -> None:
    torch = pytest.importorskip("torch")
    u = np.arange(24.0).reshape(2, 3, 4)
    found = compared({"a": u, "b": u}, {"b": torch.from_numpy(u), "a": np.asfortranarray(u)})
    assert found.equal
    half = torch.arange(6).to(torch.bfloat16)
    assert compared(half, np.arange(6).astype(ml_dtypes.bfloat16))
    assert only(compared(half, half + 1)).max_difference == 1


@pytest.mark.parametrize("slab", [1, 5, 30, 100])
def test_axes_in_other_orders_are_compared_in_slabs(slab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_SLAB", slab)
    one = random_array((5, 1, 4, 3), np.int16)
    for order in itertools.permutations(range(4)):
        other = np.ascontiguousarray(one.transpose(order)).transpose(np.argsort(order)).copy(order="K")
        assert compared(one, other)
        other[4, 0, 2, 1] += 1
        other[0, 0, 3, 2] -= 1
        checked(only(compared(one, other)), one, other)


def test_trees() -> None:
    w = np.arange(3.0)
    one = {"model": {"w": w}, "lr": 0.1, "betas": (0.9, 0.99), "step": 3, "none": None}
    assert compared(one, {**one})
    assert compared(one, dict(reversed(one.items())))
    found = compared(one, {**one, "lr": 0.2, "step": 3.0, "betas": [0.9, 0.98]})
    assert not found
    assert not found.regions
    assert [(value.name, value.why, *value.texts) for value in found.values] == [
        ("lr", "value", "0.1", "0.2"),
        ("betas", "kind", "tuple", "list"),
        ("betas.1", "value", "0.99", "0.98"),
        ("step", "value", "3", "3.0"),
    ]
    found = compared(one, {**one, "more": {"a": 1}, "model": {"w": w, "v": w}}, limit=0)
    assert (found.values, found.more_values, [region.name for region in found.regions]) == ((), 1, ["model.v"])
    (value,) = compared(one, {**one, "lr": w}).values
    assert (value.name, value.why, value.texts) == ("lr", "kind", ("0.1", "array"))
    nan = {"w": w, "x": float("nan"), "y": 0.0}
    assert compared(nan, {**nan})
    assert [value.name for value in compared(nan, {**nan, "y": -0.0}).values] == ["y"]
    assert not compared({"w": w}, {"w": w, "s": 1})
    assert not compared({"a": {"b": w}}, {"a.b": w})
    assert not compared({"a": {"b": w, "c": {}}}, {"a": {"b": w}})
    assert not compared({"a": {"b": w}, "x": 1}, {"a": {"b": w}, "x": 1, "e": {}})
    assert not compared({1: w, "s": 1}, {"1": w, "s": 1})
    assert "value 'lr'" in str(compared(one, {**one, "lr": 7}))


def test_the_meta_is_told_and_counts_for_nothing() -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        for key, meta in enumerate([{"t": 1, "u": [2]}, {"u": [2], "t": 1}, {"t": 2}, None]):
            history.checkpoint(key, w=np.zeros(1), meta=meta)
            history.checkpoint(key + 10, {"w": np.zeros(1), "s": 1}, meta=meta)
        for first in (0, 10):
            found = [history.compare(first, history, first + other) for other in range(4)]
            assert all(found)
            assert [each.same_meta for each in found] == [True, True, False, False]
        assert "with another meta" in str(history.compare(0, history, 2))


def test_histories() -> None:
    with velocpy.open(host="16MiB") as store, velocpy.open(host="16MiB") as elsewhere:
        one, other = store.history("h"), elsewhere.history("h")
        for key in (3, "best", 1, 2):
            one.checkpoint(key, u=np.full(3, 7))
        for key in (2, 1, 9, "best", "last"):
            other.checkpoint(key, u=np.full(3, 7 if key == 1 else 8))
        found = one.compare_all(other)
        assert found.only_in_one == ((3,), (9, "last"))
        assert [each.keys for each in found.differing] == [("best", "best"), (2, 2)]
        assert (found.compared, found.equal, bool(found), found.complete) == (3, False, False, True)
        assert found.first is found.differing[0]
        assert str(found.first).startswith("checkpoint 'best' of both histories named 'h': 1 of 1 regions differ\n")
        head = "both histories named 'h': 3 checkpoints compared, 2 differ"
        assert str(found) == f"{head}, 1 only in the first, 2 only in the second\n{found.first}"
        first = one.first_difference(other)
        assert (first.compared, first.differing, first.complete) == (1, found.differing[:1], False)
        assert "1 checkpoint compared, stopped at the first that differs" in str(first)
        assert one.compare_all(one)
        assert one.first_difference(one).first is None
        one.clear()
        other.clear()
        assert one.compare_all(other)
        one.checkpoint(1, u=np.zeros(1))
        assert one.first_difference(other).first is None
        assert not one.first_difference(other)


def test_what_is_refused() -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint(np.int32(1), u=np.zeros(1))
        assert history.compare(np.int64(1), history)
        with pytest.raises(CheckpointNotFound, match=r"the second of the two .*key 2 .* has no checkpoint 2") as raised:
            history.compare(1, history, 2)
        assert raised.value.key == 2
        with pytest.raises(CheckpointNotFound, match="the first of the two"):
            history.compare(3, history, 1)
        with pytest.raises(InvalidType, match="give a History"):
            history.compare(1, "/scratch/run")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument):
            history.compare(True, history)
    with pytest.raises(velocpy.errors.StoreClosed):
        history.compare(1, history)


def test_plans_do_not_advance() -> None:
    with velocpy.open(host="1MiB", disk="64MiB") as store:
        history, other = store.history("h"), store.history("other")
        for key in range(8):
            history.checkpoint(key, u=np.full(60_000, key, np.float32), v=np.zeros((2, 3)))
            other.checkpoint(key, u=np.full(60_000, -1, np.float32), v=np.asfortranarray(np.ones((2, 3))))
        history.hint(range(8))
        before = store.stats()["restores"]["count"]
        for key in range(8):
            assert len(history.compare(key, other).regions) == 2
        assert [key for key, _ in history.restore_iter()] == list(range(8))
        assert store.stats()["restores"]["count"] - before >= 8


def test_sources_that_are_not_captured_yet() -> None:
    """With copy=False a comparison waits for the capture."""
    with velocpy.open(host="64MiB") as store:
        history = store.history("h")
        u = random_array(1 << 20, np.uint8)
        tickets = [history.checkpoint(key, copy=False, u=u) for key in range(2)]
        assert history.compare(0, history, 1)
        for ticket in tickets:
            ticket.wait()


def test_a_checkpoint_that_is_replaced_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is of one version on either side; a thread that never stops is told."""
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(4))
        history.checkpoint(1, u=np.ones(4))
        read, replacements = comparing._Side.read, iter([np.full(4, 2.0), np.zeros(5)])

        def replacing(side: Any, *arguments: Any) -> Any:
            array = next(replacements, None)
            if array is not None:
                history.checkpoint(1, u=array)
            return read(side, *arguments)

        monkeypatch.setattr(comparing._Side, "read", replacing)
        region = only(history.compare(0, history, 1))
        assert (region.why, region.shapes) == ("shape", ((4,), (5,)))
        history.checkpoint(1, u=np.ones(4))
        replacements = iter([np.full(4, float(n)) for n in range(2, 100)])
        with pytest.raises(CheckpointDropped, match="were replaced 5 times"):
            history.compare(0, history, 1)


def test_beside_a_thread_that_writes() -> None:
    """A version has the same number in all its elements: each comparison sees one of them."""
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint("fixed", u=np.zeros(50_000))
        history.checkpoint("moving", u=np.ones(50_000))
        done = threading.Event()

        def write() -> None:
            number = 1
            while not done.wait(0.002):
                number += 1
                history.checkpoint("moving", u=np.full(50_000, float(number)))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(30):
                try:
                    region = only(history.compare("fixed", history, "moving"))
                except CheckpointDropped:
                    continue
                assert region.count == 50_000
                assert region.values is not None
                assert region.max_difference == region.values[1]
        finally:
            done.set()
            thread.join()


def test_a_reader_beside_a_writer(tmp_path: Path) -> None:
    """A reader compares what it has opened; what the writer replaced since is an error, and never other bytes."""
    with velocpy.open(tmp_path, host="16MiB", disk="64MiB") as writer:
        run = writer.history("run")
        for key in range(2):
            run.checkpoint(key, u=np.full(100_000, key)).wait("disk")
        with velocpy.open(tmp_path, mode="r", host=None) as reader:
            seen = reader.history("run")
            assert only(seen.compare(0, seen, 1)).max_difference == 1
            assert run.compare(0, seen)
            run.checkpoint(1, u=np.full(100_000, 5)).wait("disk")
            assert only(run.compare(1, seen, 0)).max_difference == 5
            for _ in range(20):
                run.checkpoint(2, u=np.zeros(100_000)).wait("disk")
            found = None
            with suppress(CheckpointDropped):
                found = only(seen.compare(0, seen, 1))
            assert found is None or found.max_difference == 1
            reader.refresh()
            assert only(seen.compare(0, seen, 1)).max_difference == 5
