"""Histories that are de-duplicated on their way to the disk."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bits import random_array
from conftest import RunPython
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import velocpy
from velocpy import errors, ondisk

METHODS = ["full", "basic", "list", "tree", "runs"]
DIGESTS = ["xxh3", "murmur3"]
MIXED = ["<f2", "<f4", "<f8", "<c8", "<i2", "<u4", "<i8", "|u1", "|b1", ">f4", "<M8[ns]", "<U3"]
MIB = 1 << 20

State = dict[str, np.ndarray[Any, Any]]


def saved(store: velocpy.Store, name: str = "h") -> Any:
    return store.stats()["histories"][name]["reduction"]


def used(store: velocpy.Store) -> int:
    return store.stats()["tiers"]["disk"]["used"]


def settled(store: velocpy.Store) -> int:
    """Bytes in use when drops have reached the disk: a call does not wait for that."""
    store.wait("disk")
    before, now = -1, used(store)
    while before != now or store.stats()["tiers"]["disk"]["pending_changes"]:
        time.sleep(0.3)
        before, now = now, used(store)
    return now


def same(found: Any, wanted: State) -> None:
    """The arrays are those wanted, to the last bit, and no others."""
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert np.asarray(found[name]).tobytes() == array.tobytes(), name


def evolving(count: int, size: int = 300_000, seed: int = 0) -> Iterator[State]:
    """States of which each changes a few bytes of the one before, and moves a few thousand to another place."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 256, size, dtype=np.uint8)
    for _ in range(count):
        x = x.copy()
        x[random.integers(0, size, 5)] += 1
        begin, end = random.integers(0, size - 4096, 2) // 64 * 64
        x[end : end + 4096] = x[begin : begin + 4096]
        yield {"x": x}


def regions_of_all_kinds(step: int) -> State:
    """Arrays of every dtype, of random bytes: NaN payloads, -0, odd sizes, and nothing at all. A few change by step."""
    arrays = {f"a{i}": random_array(20_000 + i, dtype, seed=i) for i, dtype in enumerate(MIXED) if dtype[1] not in "MU"}
    arrays |= {"times": np.arange(30_000).astype("<M8[ns]"), "text": np.array(["abc", "d", ""] * 9000, "<U3")}
    arrays |= {
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5 + step),
        "odd": random_array(4097 + step, np.uint8, seed=99),
        "fortran": np.asfortranarray(random_array((200, 301), "<f4", seed=98)),
        "every second": random_array(90_001, "<f4", seed=97)[::2],
        "backwards": random_array(50_001, "<i2", seed=96)[::-1],
    }
    arrays["a1"][step * 1000 : step * 1000 + 10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1, 2, 3, 4]
    return arrays


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("chunk", [32, 512, 4096])
@pytest.mark.parametrize("method", METHODS)
def test_all_dtypes_come_back_bit_by_bit(tmp_path: Path, method: Any, chunk: int, durable: bool) -> None:
    path = tmp_path / "s" if durable else None
    states = [regions_of_all_kinds(step) for step in range(4)]
    size = sum(array.nbytes for array in states[0].values())
    with velocpy.open(path, host="8MiB", disk="128MiB") as store:
        history = store.history("h", reduce=method, chunk=chunk)
        for step, arrays in enumerate(states):
            history.checkpoint(step, arrays).wait("disk")
        found = saved(store)
        assert (found["method"], found["chunk"], found["digest"], found["plain"]) == (method, chunk, "xxh3", 0)
        assert (found["encoded"], found["differences"]) == (4, 0 if method == "full" else 3)
        assert found["encoded_from"] == sum(array.nbytes for state in states for array in state.values())
        if method != "full":
            assert found["first_bytes"] < 1.1 * size
            assert found["encoded_to"] < 1.25 * size
        for step in range(4, 12):  # more than the host tier has room for
            history.checkpoint(step, states[step % 4]).wait("disk")
        for step in (4, 0, 2, 1, 3):
            with history.restore(step) as state:
                same(state, states[step % 4])
        assert saved(store)["decoded"] > 0
    if durable:
        with velocpy.open(path, host="8MiB", mode="r") as store:
            for step in (2, 11, 0):
                same(store.history("h").restore(step), states[step % 4])


@pytest.mark.parametrize("digest", ["xxh3", "murmur3"])
def test_either_digest_finds_the_duplicates(tmp_path: Path, digest: Any) -> None:
    states = list(evolving(10))
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree", chunk=256, digest=digest)
        for step, state in enumerate(states):
            history.checkpoint(step, state).wait("disk")
        assert saved(store)["digest"] == digest
        assert saved(store)["encoded_from"] == 3_000_000
        assert saved(store)["encoded_to"] < 400_000
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        for step in reversed(range(10)):
            same(store.history("h").restore(step), states[step])


def test_tensors_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weights = torch.randn(300, 500, generator=torch.Generator().manual_seed(1)).bfloat16()
    frozen = torch.randn(400, 500, generator=torch.Generator().manual_seed(2))
    with velocpy.open(tmp_path / "s", host="16MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree", chunk=128)
        for step in range(4):
            history.checkpoint(step, model={"w": weights + step, "frozen": frozen}, lr=0.1 * step).wait("disk")
        assert saved(store)["first_bytes"] <= 4 * weights.nbytes + frozen.nbytes + 4096
    with velocpy.open(tmp_path / "s", host="16MiB", disk="64MiB") as store:
        for step in (3, 0):
            with store.history("h").restore(step) as state:
                assert torch.equal(state["model.w"], weights + step)
                assert torch.equal(state["model.frozen"], frozen)
                assert state.tree["lr"] == 0.1 * step


@pytest.mark.parametrize("method", METHODS)
def test_regions_grow_shrink_come_and_go(tmp_path: Path, method: Any) -> None:
    x, y = random_array(200_003, np.uint8, seed=1), random_array(100_001, np.uint8, seed=2)
    states: list[State] = [
        {"x": x, "y": y},
        {"x": x[:150_001], "y": y},  # shrinks
        {"x": np.concatenate([x, y[:777]]), "y": y},  # grows
        {"y": y, "x": x},  # in another order
        {"y": y},  # goes
        {"x": x, "y": y, "z": x[4096:]},  # comes back, and its bytes come once more at other places
        {"y": x, "x": y},  # change their names
        {"x": x[::-1].copy()},  # nothing is known of it
        {"x": x, "none": x[:0], "y": y},
    ]
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h", reduce=method, chunk=64)
        for step, state in enumerate(states):
            history.checkpoint(step, state).wait("disk")
        if method in ("list", "tree", "runs"):  # x and y once, each forwards, x backwards, and the ends of regions
            assert saved(store)["first_bytes"] < 2 * len(x) + len(y) + len(states) * 1024
        for step in (8, 0, 5, 7, 1, 6, 2, 4, 3):
            same(history.restore(step), states[step])
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        for step in (3, 7, 0, 6, 1, 8, 5, 2, 4):
            same(store.history("h").restore(step), states[step])


def test_shifted_duplicates_are_found(tmp_path: Path) -> None:
    """Of the methods with shifted duplicates a permutation of rows costs metadata alone."""
    rows = random_array((512, 256), "<f8", seed=5)
    order = np.random.default_rng(6).permutation(512)
    took = {}
    for method in METHODS:
        with velocpy.open(tmp_path / method, host="8MiB", disk="64MiB") as store:
            history = store.history("h", reduce=method, chunk=2048)
            history.checkpoint(0, rows=rows).wait("disk")
            before = saved(store)["encoded_to"]
            history.checkpoint(1, rows=rows[order]).wait("disk")
            took[method] = saved(store)["encoded_to"] - before
            same(history.restore(1), {"rows": rows[order]})
    assert max(took[method] for method in ("list", "tree", "runs")) < 32_768
    assert min(took["full"], took["basic"]) > 0.5 * rows.nbytes


def test_parts_of_regions(tmp_path: Path) -> None:
    states = list(evolving(6, size=4 * MIB))
    with velocpy.open(tmp_path / "s", host="32MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree", chunk=512)
        for step, state in enumerate(states):
            history.checkpoint(step, w=state["x"].reshape(4096, 1024), x=state["x"][:1000]).wait("disk")
    random = np.random.default_rng(7)
    with velocpy.open(tmp_path / "s", host="1MiB", disk="64MiB") as store:
        history = store.history("h")
        into = {"w": np.empty((4, 1024), np.uint8)}
        history.restore(5, into=into, parts={"w": np.s_[100:104]})
        assert into["w"].tobytes() == states[5]["x"][102_400:106_496].tobytes()
        assert store.stats()["tiers"]["disk"]["read_bytes"] < 2 * MIB  # of 4
        for step in (4, 0, 5, 2):
            rows = int(random.integers(0, 4096))
            part = np.s_[rows : rows + int(random.integers(1, 3000)), 3:1000:7]
            wanted = states[step]["x"].reshape(4096, 1024)[part]
            into = {"w": np.empty_like(wanted)}
            history.restore(step, into=into, parts={"w": part})
            assert into["w"].tobytes() == wanted.tobytes()
            assert history.restore(step, regions=["x"])["x"].tobytes() == states[step]["x"][:1000].tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_dropping_what_later_ones_need(tmp_path: Path, method: Any) -> None:
    states = list(evolving(8))
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h", reduce=method, chunk=128)
        for step, state in enumerate(states):
            history.checkpoint(step, state).wait("disk")
        before = used(store)
        for step in range(7):
            history.drop(step)
        if method == "full":
            assert settled(store) < 0.3 * before
        else:
            assert settled(store) > 0.7 * before  # the last one needs the first
        same(history.restore(7), states[7])
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h")
        (entry,) = ondisk.checkpoints(tmp_path / "s", "h")
        (about,) = ondisk.contents(tmp_path / "s").histories
        assert (about.kept_nbytes == entry.source_nbytes > 0) == (method != "full")
        assert settled(store) == about.nbytes + about.kept_nbytes
        with history.restore(7, last=True) as state:
            same(state, states[7])
        assert settled(store) == 0


def test_replacing(tmp_path: Path) -> None:
    """A key that is written again and again, in a lineage of its own versions."""
    states = list(evolving(30))
    with velocpy.open(tmp_path / "s", host="4MiB", disk="16MiB") as store:
        history = store.history("h", reduce="tree", chunk=256)
        for step, state in enumerate(states):
            ticket = history.checkpoint("key", state)
            if step % 4:
                ticket.wait("disk")
        history.wait("disk")
        same(history.restore("key"), states[-1])
        assert len(history) == 1
        assert settled(store) < 1_000_000
    with velocpy.open(tmp_path / "s", host="4MiB", disk="16MiB") as store:
        same(store.history("h").restore("key", last=True), states[-1])
        assert settled(store) == 0


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_consuming_in_reverse(tmp_path: Path, method: Any, durable: bool) -> None:
    """Forwards and backwards, as an adjoint does: the disk is empty in the end, also of several passes."""
    states = list(evolving(40, size=200_001))
    with velocpy.open(tmp_path / "s" if durable else None, host="1MiB", disk="16MiB") as store:
        history = store.history("h", reduce=method, chunk=512)
        for _ in range(3):
            history.hint(reversed(range(40)))
            for step, state in enumerate(states):
                history.checkpoint(step, state)
            for step, lease in history.restore_iter(last=True):
                same(lease, states[step])
        assert settled(store) == 0
        assert saved(store)["decoded"] > 0


def fine_tuned(count: int, size: int = 1 << 21) -> Iterator[State]:
    """States of which a few layers are trained, and the others stay: those of a fine-tuning with LoRA."""
    random = np.random.default_rng(5)
    frozen = {f"layer{i}": random.integers(0, 256, size // 4, dtype=np.uint8) for i in range(4)}
    for _ in range(count):
        yield {
            **frozen,
            "lora": random.standard_normal(size // 128).astype("<f4"),
            "step": np.array(random.integers(1 << 40)),
        }


@pytest.mark.parametrize("method", ["basic", "list", "tree", "runs"])
def test_a_store_that_is_opened_again_goes_on(tmp_path: Path, method: Any) -> None:
    states = list(fine_tuned(12))
    nbytes = sum(array.nbytes for array in states[0].values())
    for opening in range(4):
        with velocpy.open(tmp_path / "s", host="32MiB", disk="64MiB") as store:
            run = store.history("h", reduce=method)
            if opening == 2:  # as a training does that resumes: the last checkpoint is in the host tier by then
                same(run.restore(5), states[5])
            for step in range(3 * opening, 3 * opening + 3):
                before = used(store)
                run.checkpoint(step, **states[step]).wait("disk")
                assert (used(store) - before < nbytes / 8) == (step > 0), step
            assert saved(store)["differences"] == (2 if opening == 0 else 3)
        found = [each for each in ondisk.checkpoints(tmp_path / "s", "h") if each.sources == 0]
        assert [each.key for each in found] == [0]
    with velocpy.open(tmp_path / "s", host="32MiB") as store:
        run = store.history("h")
        for step in range(6):
            run.drop(step)
        for step in reversed(range(6, 12)):
            same(run.restore(step, last=True), states[step])
        assert settled(store) == 0


def test_a_store_that_is_opened_with_other_options_begins_anew(tmp_path: Path) -> None:
    states = list(fine_tuned(8))
    nbytes = sum(array.nbytes for array in states[0].values())
    ways: list[tuple[dict[str, Any], bool]] = [
        ({"reduce": "tree"}, True),
        ({"reduce": "tree", "chunk": 512}, True),
        ({"reduce": "tree", "digest": "murmur3"}, True),
        ({"reduce": "tree", "compress": "zstd"}, True),
        ({"reduce": "codec"}, True),
        ({"reduce": "raw"}, True),
        ({"reduce": "tree"}, False),
        ({"reduce": "tree", "compress": "zstd"}, False),
    ]
    for step, (way, whole) in enumerate(ways):
        with velocpy.open(tmp_path / "s", host="32MiB", disk="64MiB") as store:
            before = used(store)
            store.history("h", **way).checkpoint(step, **states[step]).wait("disk")
            assert (used(store) - before > nbytes / 8) == whole, way
    with velocpy.open(tmp_path / "s", host="32MiB") as store:
        for step, state in enumerate(states):
            same(store.history("h").restore(step), state)


def test_any_order_after_reopening(tmp_path: Path) -> None:
    """Lineages of several openings stand beside each other, and each opening begins with a checkpoint as a whole."""
    states = list(evolving(15))
    for opening in range(3):
        with velocpy.open(tmp_path / "s", host="2MiB", disk="64MiB") as store:
            history = store.history("h", reduce=METHODS[2 + opening], chunk=256)  # type: ignore[arg-type]
            for step in range(5 * opening, 5 * opening + 5):
                history.checkpoint(step, states[step]).wait("disk")
            assert (saved(store)["encoded"], saved(store)["differences"]) == (5, 4)
    sources = [entry.sources for entry in ondisk.checkpoints(tmp_path / "s", "h")]
    assert [step for step, count in enumerate(sources) if count == 0] == [0, 5, 10]
    order = np.random.default_rng(4).permutation(15)
    with velocpy.open(tmp_path / "s", host="1MiB", disk="64MiB") as store:
        history = store.history("h")
        for step in map(int, (*order, *reversed(order))):
            same(history.restore(step), states[step])
        for step in map(int, order):
            same(history.restore(step, last=True), states[step])
        assert settled(store) == 0


@pytest.mark.parametrize("kept_by", [{"last": 5}, {"last": 3, "every": 20}, {"last": 2, "best": 3, "by": "loss"}])
def test_a_long_run_under_a_rule_of_retention(tmp_path: Path, kept_by: Any) -> None:
    """What is kept is right, and the disk has what the figures say of it: objects of checkpoints, and those they need.

    Few bytes change in a step. So the objects needed are a base and some that are small, however long the run.
    """
    last, random = 150, np.random.default_rng(8)
    states, most = {}, 0
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree", chunk=256)
        history.retain(**kept_by)
        for step, state in enumerate(evolving(last)):
            history.checkpoint(step, state, meta={"loss": float(random.random())}).wait("disk")
            states[step] = state
            if step > 10:
                most = max(most, used(store))
        kept = list(history)
        assert len(kept) < 15
        assert most < 30 * 300_000 * 0.25, "a quarter of the bytes that the run has written"
        for step in kept:
            same(history.restore(step), states[step])
        in_use = settled(store)
    (about,) = ondisk.contents(tmp_path / "s").histories
    assert about.nbytes + about.kept_nbytes == in_use
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h")
        assert sorted(history) == sorted(kept)
        for step in kept:
            same(history.restore(step), states[step])


def test_the_method_can_change(tmp_path: Path) -> None:
    states = list(evolving(12))
    methods: list[Any] = [
        "raw",
        "tree",
        "tree",
        "codec",
        "list",
        "raw",
        "basic",
        "basic",
        "codec",
        "runs",
        "full",
        "tree",
    ]
    with velocpy.open(tmp_path / "s", host="2MiB", disk="64MiB") as store:
        for step, method in enumerate(methods):
            store.history("h", reduce=method).checkpoint(step, states[step]).wait("disk")
        assert saved(store)["differences"] == 2  # each change begins a lineage
        for step in (5, 2, 11, 7, 1):
            same(store.history("h").restore(step), states[step])
    found = {entry.key: entry for entry in ondisk.checkpoints(tmp_path / "s", "h")}
    assert {step for step, entry in found.items() if entry.form == "difference"} == {1, 2, 4, 6, 7, 9, 10, 11}
    assert {step for step, entry in found.items() if entry.sources} == {2, 7}


def test_histories_are_apart(tmp_path: Path) -> None:
    """Each has a lineage of its own: one can go without the other."""
    states = list(evolving(5))
    with velocpy.open(tmp_path / "s", host="2MiB", disk="64MiB") as store:
        for step, state in enumerate(states):
            for name in ("one", "other"):
                store.history(name, reduce="runs").checkpoint(step, state)
        store.wait("disk")
        store.history("one").clear()
        for step in (4, 0, 2):
            same(store.history("other").restore(step), states[step])
    assert [about.name for about in ondisk.contents(tmp_path / "s").histories if about.checkpoints] == ["other"]


def test_small_checkpoints_and_stores_without_a_disk_stay_as_they_are(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "s", host="2MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree")
        for step in range(3):
            history.checkpoint(step, x=np.full(30_000, step, np.uint8)).wait("disk")
        assert saved(store)["encoded"] == 0
    assert {entry.form for entry in ondisk.checkpoints(tmp_path / "s", "h")} == {"raw"}
    with velocpy.open(host="2MiB") as store:
        history = store.history("h", reduce="tree")
        history.checkpoint(0, x=np.zeros(1 << 20, np.uint8))
        assert not history.restore(0)["x"].any()
        assert saved(store)["encoded"] == 0


def test_without_a_host_tier_it_is_encoded_only(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "s", host=None, disk="64MiB") as store:
        history = store.history("h", reduce="tree")
        for step in range(3):
            history.checkpoint(step, x=np.full(1 << 18, step)).wait("disk")
        assert (saved(store)["encoded"], saved(store)["differences"]) == (3, 0)
        for step in range(3):
            assert (history.restore(step)["x"] == step).all()
    assert {entry.form for entry in ondisk.checkpoints(tmp_path / "s", "h")} == {"encoded"}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"reduce": "zip"}, "reduce is 'zip'; it is one of raw, codec, auto, full, basic, list, tree, runs, reference"),
        ({"reduce": []}, "it is one of raw, codec"),
        ({"reduce": "tree", "chunk": 500}, "chunk is 500; give a power of two from 32 to 4096"),
        ({"reduce": "tree", "chunk": 16}, "chunk is 16; give a power of two from 32 to 4096"),
        ({"reduce": "runs", "chunk": 8192}, "chunk is 8192; give a power of two from 32 to 4096"),
        ({"reduce": "tree", "chunk": 0}, "chunk is 0; give a number from 1 up"),
        ({"reduce": "tree", "chunk": 1 << 70}, "give a number from 1 up"),
        ({"chunk": 512}, "chunk, digest, compress and schedule belong to a method of reduction; give reduce="),
        ({"digest": "xxh3"}, "chunk, digest, compress and schedule belong to a method of reduction; give reduce="),
        ({"compress": "zstd"}, "chunk, digest, compress and schedule belong to a method of reduction; give reduce="),
        ({"reduce": "codec", "compress": "gzip"}, "compress is 'gzip'; it is one of zstd, s2, huff0"),
        (
            {"reduce": "raw", "compress": "s2"},
            "reduce='raw' has no compressor: leave compress out, or give reduce= one of ",
        ),
        ({"reduce": "auto", "compress": "s2"}, "one of codec, full, basic, list, tree, runs."),
        ({"reduce": "codec", "digest": "xxh3"}, "leave them out, or give reduce= one of "),
        ({"reduce": "raw", "chunk": 512}, "leave them out, or give reduce= one of "),
        ({"reduce": "reference", "chunk": 512}, "give reduce= one of auto, full, basic, list, tree, runs."),
        ({"reduce": "reference", "compress": "zstd"}, "give reduce= one of codec, full, basic, list, tree, runs."),
        ({"reduce": "tree", "digest": "md5"}, "digest is 'md5'; it is one of xxh3, murmur3"),
    ],
)
def test_bad_arguments(named: Any, message: str) -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        store.history("h", reduce="list", chunk=64)
        with pytest.raises(errors.InvalidArgument, match=re.escape(message)):
            store.history("h", **named)
        assert (saved(store)["method"], saved(store)["chunk"]) == ("list", 64)


@pytest.mark.parametrize("chunk", ["512", 512.0, True, [512]])
def test_a_chunk_is_a_whole_number(chunk: Any) -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store, pytest.raises(errors.InvalidType, match="a whole number"):
        store.history("h", reduce="tree", chunk=chunk)


def test_reading_takes_no_method(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        for step, state in enumerate(evolving(3)):
            store.history("h", reduce="tree").checkpoint(step, state).wait("disk")
    with velocpy.open(tmp_path / "s", mode="r") as store, pytest.raises(errors.ReadOnlyStore):
        store.history("h", reduce="tree")


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "velocpy", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_it_compares_with_a_raw_store(tmp_path: Path) -> None:
    states = list(evolving(6))
    for name, method in (("raw", None), ("tree", "tree"), ("other", "runs")):
        with velocpy.open(tmp_path / name, host="4MiB", disk="64MiB") as store:
            history = store.history("h", reduce=method, chunk=None if method is None else 256)  # type: ignore[arg-type]
            for step, state in enumerate(states):
                x = state["x"].copy()
                if name == "other" and step >= 4:
                    x[77] ^= 1
                history.checkpoint(step, x=x)
    with velocpy.open(tmp_path / "raw", mode="r") as raw, velocpy.open(tmp_path / "other", mode="r") as other:
        found = raw.history("h").first_difference(other.history("h"))
        assert found.first is not None
        assert found.first.keys == (4, 4)
    assert command("diff", tmp_path / "raw", tmp_path / "tree").returncode == 0
    differs = command("diff", tmp_path / "tree", tmp_path / "other")
    assert differs.returncode == 1
    assert "1 of 300000 elements differ" in differs.stdout


def test_the_commands_tell_what_a_difference_takes(tmp_path: Path) -> None:
    states = list(evolving(5))
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h", reduce="tree", chunk=256)
        for step, state in enumerate(states):
            history.checkpoint(step, state).wait("disk")
        in_use = settled(store)
    listed = [json.loads(line) for line in command("ls", tmp_path / "s", "h", "--json").stdout.splitlines()]
    assert [facts["form"] for facts in listed] == ["difference"] * 5
    assert sum(facts["stored_bytes"] for facts in listed) == in_use
    assert (listed[0]["sources"], listed[0]["source_bytes"]) == (0, 0)
    for step in range(1, 5):
        assert 1 <= listed[step]["sources"] <= step
        assert listed[0]["stored_bytes"] <= listed[step]["source_bytes"] < in_use
    found = ondisk.describe(tmp_path / "s", "h", 4)
    assert (found.form, found.sources, found.source_nbytes) == (
        "difference",
        listed[4]["sources"],
        listed[4]["source_bytes"],
    )
    assert found.stored_nbytes == listed[4]["stored_bytes"] == sum(extent.nbytes for extent in found.extents)
    shown = command("show", tmp_path / "s", "h", 4).stdout
    assert re.search(r"^on disk +\S+ KiB, difference, 1 : [0-9.]+$", shown, re.MULTILINE)
    assert re.search(rf"^needs +{found.sources} objects? of earlier checkpoints, \S+ KiB$", shown, re.MULTILINE)
    assert "needs" not in command("show", tmp_path / "s", "h", 0).stdout
    detail = json.loads(command("show", tmp_path / "s", "h", 4, "--json").stdout)
    assert (detail["sources"], detail["source_nbytes"]) == (found.sources, found.source_nbytes)
    (about,) = (json.loads(line) for line in command("ls", tmp_path / "s", "--json").stdout.splitlines())
    assert (about["bytes"], about["kept_bytes"]) == (in_use, 0)
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        store.history("h").drop(0)
    (about,) = (json.loads(line) for line in command("ls", tmp_path / "s", "--json").stdout.splitlines())
    assert about["kept_bytes"] == listed[0]["stored_bytes"]
    assert about["bytes"] + about["kept_bytes"] == in_use
    assert command("export", tmp_path / "s", "h", 4, tmp_path / "x.npz").returncode == 0
    with np.load(tmp_path / "x.npz") as exported:
        assert exported["x"].tobytes() == states[4]["x"].tobytes()


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("method", METHODS)
def test_damaged_first_occurrences_are_reported_by_all_that_need_them(tmp_path: Path, method: Any) -> None:
    """One bit of the first checkpoint's object: either the bytes of a checkpoint are right, or it is corrupt."""
    states = list(evolving(6, size=200_000))
    with velocpy.open(tmp_path / "s", host="4MiB", disk="64MiB") as store:
        history = store.history("h", reduce=method, chunk=256)
        for step, state in enumerate(states):
            history.checkpoint(step, state).wait("disk")
    (extent,) = ondisk.describe(tmp_path / "s", "h", 0).extents
    data = tmp_path / "s" / extent.file
    whole = data.read_bytes()
    outcomes = set()
    for at in (5, 100, 70_000, 150_001, 190_000):
        flip(data, extent.offset + at)
        with velocpy.open(tmp_path / "s", host="4MiB", mode="r") as store:
            corrupt = {}
            for step, state in enumerate(states):
                try:
                    found = store.history("h").restore(step)
                except errors.CorruptCheckpoint as error:
                    corrupt[step] = (error.history, error.key, error.tier, error.region)
                else:
                    same(found, state)
        data.write_bytes(whole)
        outcomes.add(len(corrupt))
        assert all(told in (("h", step, "disk", "x"), ("h", step, "disk", None)) for step, told in corrupt.items())
        assert 0 in corrupt, f"byte {at} of the object"
    assert max(outcomes) == 1 if method == "full" else max(outcomes) > 4
    with velocpy.open(tmp_path / "s", host="4MiB", mode="r") as store:
        for step, state in enumerate(states):
            same(store.history("h").restore(step), state)


def test_bytes_that_change_while_the_store_is_open(run_python: RunPython) -> None:
    """The damaged chunk is one of the first checkpoint's, and a later one says so; parts without it can be restored."""
    done = run_python(
        """
import numpy as np
import velocpy

store = velocpy.open(host="8MiB", disk="128MiB")
history = store.history("h", reduce="tree", chunk=256)
x = np.random.default_rng(0).integers(0, 256, 3 << 20, dtype=np.uint8)
states = []
for step in range(4):
    x[step] ^= 1
    states.append(x.copy())
    history.checkpoint(step, x=x, y=np.arange(100_000.0)).wait("disk")
filler = store.history("filler")
step = 0
while any("host" in history.tiers(key) for key in range(4)):
    filler.checkpoint(step % 3, z=np.full(1 << 20, step)).wait("disk")
    step += 1
history._core.corrupt(3, 2, 2 << 20)
for key in (0, 3, 2, 1):
    try:
        history.restore(key)
    except velocpy.errors.CorruptCheckpoint as error:
        assert (error.history, error.key, error.region, error.tier) == ("h", key, "x", "disk"), vars(error)
    else:
        raise AssertionError("nobody noticed")
    into = {"x": np.empty(1000, np.uint8)}
    history.restore(key, into=into, parts={"x": np.s_[:1000]})
    assert into["x"].tobytes() == states[key][:1000].tobytes()
    assert (history.restore(key, regions=["y"])["y"] == np.arange(100_000.0)).all()
history.checkpoint(3, x=x, y=np.arange(100_000.0)).wait("disk")
assert history.restore(3)["x"].tobytes() == x.tobytes()
store.close()
""",
        env={"VELOCPY_TEST_HOOKS": "1"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", METHODS[1:])
def test_damaged_bytes_come_from_memory(run_python: RunPython, tmp_path: Path, method: str) -> None:
    """With a warning for each restore. Without any in memory they are damaged, and what is written again is not."""
    done = run_python(
        f"""
import logging

import numpy as np
import velocpy

logged = []
handler = logging.Handler()
handler.emit = lambda record: logged.append(record.getMessage())
logging.getLogger("velocpy").addHandler(handler)

store = velocpy.open({str(tmp_path / "s")!r}, host="8MiB", disk="128MiB", tuning=velocpy.Tuning(prefetch=False))
history = store.history("h", reduce={method!r}, chunk=256)
x = np.random.default_rng(0).integers(0, 256, 2 << 20, dtype=np.uint8)
states = []
for step in range(3):
    x[step] ^= 1
    states.append(x.copy())
    history.checkpoint(step, x=x).wait("disk")
filler = store.history("filler")

def out_of_memory():
    step = 0
    while any("host" in history.tiers(key) for key in range(3)):
        filler.checkpoint(step % 3, z=np.full(1 << 20, step)).wait("disk")
        step += 1

def fails(key):
    try:
        history.restore(key)
    except velocpy.errors.CorruptCheckpoint as error:
        return (error.key, error.region, error.tier) == (key, "x", "disk")
    return False

out_of_memory()
assert (history.restore(1)["x"] == states[1]).all()
history._core.corrupt(2, 2, 1 << 20)
for key in (2, 0):
    assert (history.restore(key)["x"] == states[key]).all()
assert store.stats()["histories"]["h"]["reduction"]["mended"] == 2
out_of_memory()
assert fails(0) and fails(1) and fails(2)
history.checkpoint(2, x=states[2]).wait("disk")
out_of_memory()
assert fails(0) and fails(1)
assert (history.restore(2)["x"] == states[2]).all()
store.close()
warnings = [message for message in logged if "taken from other checkpoints in memory" in message]
assert [message[:26] for message in warnings] == [f'history "h", checkpoint {{key}}:' for key in (2, 0)], logged
""",
        env={"VELOCPY_TEST_HOOKS": "1"},
    )
    assert done.returncode == 0, done.stderr


VICTIM = """
import sys

import numpy as np
import velocpy

path, first, method = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.path.insert(0, sys.argv[4])
from test_deduplication import evolving

with velocpy.open(path, host="4MiB", disk="64MiB") as store:
    history = store.history("h", reduce=method, chunk=256)
    history.retain(last=8)
    before = None
    for step, state in enumerate(evolving(10_000, size=150_000, seed=1)):
        if step < first:
            continue
        ticket = history.checkpoint(step, state)
        if before is not None and step % 3:
            before.wait("disk")
            print(step - 1, flush=True)
        before = ticket
"""


def states_of(steps: list[int]) -> dict[int, State]:
    """The states that the victim writes in these steps."""
    each = enumerate(evolving(max(steps) + 1, size=150_000, seed=1))
    return {step: state for step, state in each if step in steps}


@pytest.mark.parametrize("method", ["basic", "tree", "runs"])
def test_processes_killed_in_the_middle(tmp_path: Path, method: str) -> None:
    """What was acknowledged is there, and everything that is there is right; the next process goes on behind it."""
    random, acknowledged = np.random.default_rng(METHODS.index(method)), [-1]
    for _ in range(6):
        command = [sys.executable, "-c", VICTIM, str(tmp_path / "s"), str(acknowledged[-1] + 1), method]
        with subprocess.Popen([*command, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            told = victim.stdout.readline()
            time.sleep(0.3 * float(random.random()) ** 2)
            victim.send_signal(signal.SIGKILL)
            told += victim.stdout.read()
            assert victim.wait() == -signal.SIGKILL
        whole = told[: told.rindex("\n")]  # a last line that was cut tells nothing
        acknowledged = sorted({*acknowledged, *map(int, whole.split())})
        with velocpy.open(tmp_path / "s", host="2MiB", mode="r") as store:
            history = store.history("h")
            steps = sorted(map(int, history))
            for step in set(acknowledged[1:]) - {*steps}:  # dropped, as the last eight that are durable stay
                assert sum(each > step for each in steps) >= 8
            wanted = states_of(steps)
            for step in map(int, random.permutation(steps)):
                same(history.restore(step), wanted[step])
    with velocpy.open(tmp_path / "s", host="2MiB", disk="64MiB") as store:
        in_use = settled(store)
        left = sorted(map(int, store.history("h")), reverse=True)
        assert len(left) == min(8, len(steps))  # the rule holds again
        for step in left:
            same(store.history("h").restore(step, last=True), wanted[step])
        assert settled(store) == 0 < in_use


class Lineages(RuleBasedStateMachine):
    """A history against a dictionary, with methods, chunks and openings that change."""

    @initialize(seed=st.integers(0, 1 << 30))
    def begin(self, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.model: dict[int, State] = {}
        self.state = {
            f"r{i}": random_array(n, np.uint8, seed=seed + i) for i, n in enumerate((70_001, 4096, 50_000, 0))
        }
        self.open()

    def open(self) -> None:
        self.store = velocpy.open(self.folder.name, host="512KiB", disk="64MiB")
        self.history = self.store.history("h")

    @rule(method=st.sampled_from(METHODS), chunk=st.sampled_from([32, 256, 4096]), digest=st.sampled_from(DIGESTS))
    def reduce(self, method: Any, chunk: int, digest: Any) -> None:
        self.store.history("h", reduce=method, chunk=chunk, digest=digest)

    @rule(method=st.sampled_from(["raw", "codec", "auto"]))
    def reduce_otherwise(self, method: Any) -> None:
        self.store.history("h", reduce=method)

    @rule(region=st.sampled_from(["r0", "r2"]), at=st.integers(0, 40_000), length=st.integers(1, 3000))
    def change(self, region: str, at: int, length: int) -> None:
        x = self.state[region] = self.state[region].copy()
        x[at : at + length] += 1

    @rule(
        at=st.integers(0, 100),
        to=st.integers(0, 100),
        length=st.integers(1, 20_000),
        grain=st.sampled_from([1, 64, 256]),
    )
    def move(self, at: int, to: int, length: int, grain: int) -> None:
        x = self.state["r0"] = self.state["r0"].copy()
        piece = x[at * grain : at * grain + length].copy()
        x[to * grain : to * grain + len(piece)] = piece[: len(x) - to * grain]

    @rule(size=st.integers(1, 90_000))
    def resize(self, size: int) -> None:
        self.state["r2"] = np.resize(self.state["r2"], size)

    @rule()
    def come_and_go(self) -> None:
        if "more" in self.state:
            del self.state["more"]
        else:
            self.state["more"] = self.state["r0"][256:].copy()

    @rule(key=st.integers(0, 7), waits=st.booleans())
    def checkpoint(self, key: int, waits: bool) -> None:
        ticket = self.history.checkpoint(key, self.state)
        self.model.pop(key, None)
        self.model[key] = dict(self.state)
        if waits:
            ticket.wait("disk", timeout=60)

    @rule(key=st.integers(0, 7), last=st.booleans())
    def restore(self, key: int, last: bool) -> None:
        if key in self.model:
            with self.history.restore(key, last=last, timeout=60) as lease:
                same(lease, self.model[key])
            if last:
                del self.model[key]

    @rule(
        key=st.integers(0, 7),
        region=st.sampled_from(["r0", "r2"]),
        begin=st.integers(0, 60_000),
        step=st.integers(1, 9),
    )
    def restore_part(self, key: int, region: str, begin: int, step: int) -> None:
        if key in self.model:
            part = np.s_[begin : begin + 9000 : step]
            wanted = self.model[key][region][part]
            into = {region: np.empty_like(wanted)}
            self.history.restore(key, into=into, parts={region: part}, timeout=60)
            assert into[region].tobytes() == wanted.tobytes()

    @rule(key=st.integers(0, 7))
    def drop(self, key: int) -> None:
        self.history.drop(key)
        self.model.pop(key, None)

    @rule(last=st.integers(1, 5))
    def keep(self, last: int) -> None:
        self.history.wait("disk", timeout=60)
        self.history.retain(last)
        self.history.retain()
        for key in list(self.model)[:-last]:
            del self.model[key]

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "model"):
            assert sorted(self.history) == sorted(self.model)

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.store.close()
        with velocpy.open(self.folder.name, host="512KiB", disk="64MiB") as store:
            for key, state in self.model.items():
                same(store.history("h").restore(key, last=True), state)
        with velocpy.open(self.folder.name, host="512KiB", disk="64MiB") as store:
            assert used(store) == 0
        self.folder.cleanup()


Lineages.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLineages = Lineages.TestCase
