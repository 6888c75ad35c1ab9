"""`History.retain` by a number of the meta, against a model in plain Python."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
import second_reader
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import ondisk
from velocpy.backup import backup
from velocpy.cli import main

#: Numbers that JSON holds, with some that are equal, and some that are larger than any float.
NUMBERS = st.one_of(
    st.integers(-3, 3), st.floats(), st.integers(-(10**400), 10**400), st.sampled_from([0.0, -0.0, 0.5])
)
#: What may stand where a number is wanted.
VALUES = st.one_of(NUMBERS, NUMBERS, st.sampled_from([None, True, False, "1", [1], {"loss": 1}]))
METAS = st.one_of(
    st.none(),
    st.builds(lambda loss: {"loss": loss}, VALUES),
    st.builds(lambda loss, more: {"loss": more, "val": {"loss": loss, "ä\ud800": more}}, VALUES, VALUES),
    st.sampled_from([3, [{"loss": 1}], {"val": 1}, {"los": 1}]),
)
KEYS = st.one_of(st.integers(0, 6), st.sampled_from(["a", "b"]))
RULES = st.fixed_dictionaries(
    {
        "best": st.integers(1, 3),
        "by": st.sampled_from(["loss", ("loss",), ["val", "loss"], ("val", "ä\ud800")]),
        "order": st.sampled_from(["min", "max"]),
    },
    optional={"last": st.integers(1, 2), "every": st.just(3), "named": st.just(True), "keys": st.just([1])},
)


def number(meta: Any, by: str | Sequence[str]) -> float | None:
    """The one by which a checkpoint is compared; None: it has none."""
    for name in (by,) if isinstance(by, str) else by:
        meta = meta.get(name) if isinstance(meta, dict) else None
    if isinstance(meta, bool) or not isinstance(meta, (int, float)):
        return None
    try:
        return float(meta) if math.isfinite(meta) else None
    except OverflowError:
        return None


def kept(there: dict[Any, Any], rule: dict[str, Any]) -> dict[Any, Any]:
    """Which of the checkpoints, from the oldest to the newest, stay."""
    keys = list(there)
    sign = -1 if rule["order"] == "max" else 1
    scores = [(key, number(meta, rule["by"])) for key, meta in there.items()]
    ranked = sorted((sign * score, at) for at, (_, score) in enumerate(scores) if score is not None)
    stay = {keys[at] for _, at in ranked[: rule["best"]]} | set(keys[-rule["last"] :] if "last" in rule else [])
    stay |= {key for key in keys if isinstance(key, str)} if "named" in rule else set()
    stay |= {key for key in keys if not isinstance(key, str) and key % rule["every"] == 0} if "every" in rule else set()
    stay |= set(rule.get("keys", ()))
    return {key: meta for key, meta in there.items() if key in stay}


STEPS = st.lists(
    st.one_of(st.tuples(KEYS, METAS), st.tuples(KEYS, METAS), st.tuples(KEYS, METAS), st.tuples(KEYS, st.just(...))),
    max_size=20,
)


@given(rule=RULES, steps=STEPS, before=st.integers(0, 8))
@settings(max_examples=150, deadline=None)
def test_what_stays_is_what_a_model_keeps(rule: dict[str, Any], steps: list[tuple[Any, Any]], before: int) -> None:
    there: dict[Any, Any] = {}
    with velocpy.open(host="1MiB") as store:
        run = store.history("run")
        for at, (key, meta) in enumerate(steps):
            if at == before:
                run.retain(**rule)
                there = kept(there, rule)
            had = there.pop(key, None)
            if meta is ...:
                run.drop(key)
            else:
                run.checkpoint(key, u=np.zeros(1), meta=meta)
                there[key] = meta
            if at >= before:
                there = kept(there, rule)
            assert list(run) == list(there), (key, meta, had)


@given(rule=RULES, steps=STEPS, tree=st.booleans(), reopened=st.integers(0, 20))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_rule_outlives_the_process(
    rule: dict[str, Any],
    steps: list[tuple[Any, Any]],
    tree: bool,
    reopened: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Beside a tree the meta stands behind its values; on disk there is what the rule keeps, and nothing else."""
    path = tmp_path_factory.mktemp("best")
    there: dict[Any, Any] = {}
    store = velocpy.open(path, host="1MiB", disk="8MiB")
    store.history("run").retain(**rule)
    for at, (key, meta) in enumerate(steps):
        if at == reopened:
            store.close()
            store = velocpy.open(path, host="1MiB", disk="8MiB")
        run = store.history("run")
        there.pop(key, None)
        if meta is ...:
            run.drop(key)
            continue
        state = {"w": {"loss": np.zeros(1)}, "loss": 0.25, "val": [1]} if tree else {"u": np.zeros(1)}
        with contextlib.suppress(velocpy.errors.CheckpointDropped):  # it was durable, and no rule kept it
            run.checkpoint(key, state, meta=meta).wait("disk")
        there[key] = meta
        there = kept(there, rule)
        assert list(run) == list(there), (key, meta)
    store.close()
    assert [entry.key for entry in ondisk.checkpoints(path, "run")] == list(there)
    assert ondisk.collect(path, dry_run=True).dropped == 0


def test_what_is_dropped_does_not_come_back_and_others_take_its_place() -> None:
    with velocpy.open(host="1MiB") as store:
        run = store.history("run")
        run.retain(last=2, best=2, by="loss")
        for key, loss in enumerate([3, 1, 2, 4, 5]):
            run.checkpoint(key, u=np.zeros(1), meta={"loss": loss})
        assert list(run) == [1, 2, 3, 4]
        run.drop(1)
        run.checkpoint(5, u=np.zeros(1), meta={"loss": 9})
        assert list(run) == [2, 3, 4, 5]  # 3 was the third best when it was the last but one, 0 is gone
        run.checkpoint(6, u=np.zeros(1), meta={"loss": 8})
        assert list(run) == [2, 3, 5, 6]


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ({"best": 2}, "give by="),
        ({"by": "loss"}, "give best="),
        ({"last": 1, "by": ("loss",)}, "give best="),
        ({"order": "max"}, "give best="),
        ({"best": 2, "by": ()}, "the name of a number in the meta"),
        ({"best": 2, "by": 3}, "the name of a number in the meta"),
        ({"best": 2, "by": ("val", 3)}, "the name of a number in the meta"),
        ({"best": 2, "by": b"loss"}, "the name of a number in the meta"),
        ({"best": 2, "by": ["a"] * 1001}, "the name of a number in the meta"),
        ({"best": 2, "by": "a" * 65537}, "at most 64.0 KiB"),
        ({"best": 2, "by": "loss", "order": "least"}, "one of min, max"),
        ({"best": 0, "by": "loss"}, "a whole number from 1 up"),
        ({"best": True, "by": "loss"}, "a whole number from 1 up"),
        ({"best": 1.5, "by": "loss"}, "a whole number from 1 up"),
    ],
)
def test_refused(rule: dict[str, Any], hint: str) -> None:
    with velocpy.open(host="1MiB") as store:
        run = store.history("run")
        run.retain(last=1)
        with pytest.raises(velocpy.errors.InvalidArgument, match=hint):
            run.retain(**rule)
        for key in range(3):
            run.checkpoint(key, u=np.zeros(1), meta={"loss": key})
        assert list(run) == [2]  # the rule before holds


@pytest.mark.parametrize("order", ["min", "max"])
def test_what_a_store_says_of_the_rule(tmp_path: Path, order: Any) -> None:
    with velocpy.open(tmp_path, host="1MiB", disk="8MiB") as store:
        store.history("run").retain(last=2, best=3, by=("val", 'ä\n"\ud800'), order=order)
        store.history("old").retain(last=2)
    of = {entry.name: entry.retention for entry in ondisk.contents(tmp_path).histories}
    assert of["run"] == ondisk.Retention(2, 0, False, (), 0, 3, ("val", 'ä\n"\ud800'), order)
    assert of["old"] == ondisk.Retention(2, 0, False, ())
    told = CliRunner().invoke(main, ["ls", str(tmp_path), "--json"]).output
    rules = {line["history"]: line["retention"] for line in map(json.loads, told.splitlines())}
    assert (rules["run"]["best"], rules["run"]["by"], rules["run"]["order"]) == (3, ["val", 'ä\n"\ud800'], order)
    found = second_reader.histories(tmp_path)
    assert found.best == {b"run": (3, [b"val", 'ä\n"\ud800'.encode("utf-8", "surrogatepass")], order == "max")}
    assert found.retention == {b"run": (False, 2, 0, []), b"old": (False, 2, 0, [])}


def test_a_reader_without_the_rule_refuses_it() -> None:
    """Version 0.1 refuses flags of a retention but 1: it drops nothing for not having heard of the best."""
    said = bytes([6, 0, 0, 0, 28, 0, 0, 0, 1, 0, 0, 0, 8]) + bytes(23)
    with pytest.raises(ValueError, match="of a later version"):
        catalog.catalog([bytes([1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 104]) + said])


def test_a_backup_keeps_the_rule_and_the_best(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "a", host="1MiB", disk="8MiB") as store:
        run = store.history("run")
        run.retain(last=1, best=2, by="loss")
        for key, loss in enumerate([3, 1, 2, 4]):
            run.checkpoint(key, u=np.zeros(1), meta={"loss": loss}).wait("disk")
    backup(tmp_path / "a", tmp_path / "b")
    with velocpy.open(tmp_path / "b", host="1MiB", disk="8MiB") as store:
        run = store.history("run")
        assert sorted(run) == [1, 2, 3]
        run.checkpoint(4, u=np.zeros(1), meta={"loss": 0}).wait("disk")
        assert sorted(run) == [1, 4]
