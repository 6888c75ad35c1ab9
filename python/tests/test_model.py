"""A history against a dictionary: random operations, a host tier far too small, bytes compared at every step."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from bits import bits, random_array
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from tuned import tuned

import velocpy

KEYS = st.one_of(st.integers(0, 11), st.sampled_from(["a", "b/c", "", "\0"]))
SIZES = st.one_of(st.integers(0, 300), st.integers(1000, 60_000), st.integers(100_000, 260_000))


class HistoryMachine(RuleBasedStateMachine):
    """The model: what each key holds, and what each lease must show for ever."""

    leases: Bundle[Any] = Bundle("leases")

    @initialize(
        host=st.sampled_from([300_000, 600_000, 2_000_000]),
        flush=st.sampled_from(["lazy", "eager"]),
        policy=st.sampled_from(["score", "lru", "fifo"]),
        guess=st.booleans(),
        prefetch=st.booleans(),
        verify=st.sampled_from(["moved", "first", "always"]),
    )
    def begin(self, **options: Any) -> None:
        self.store = velocpy.open(disk="64MiB", debug=True, **tuned(options))
        self.history = self.store.history("model")
        self.model: dict[Any, tuple[dict[str, bytes], Any]] = {}
        self.seed = 0

    @rule(
        key=KEYS,
        sizes=st.lists(SIZES, max_size=3),
        copy=st.booleans(),
        down=st.booleans(),
        meta=st.sampled_from([None, 1, {"a": "b"}]),
    )
    def checkpoint(self, key: Any, sizes: list[int], copy: bool, down: bool, meta: Any) -> None:
        self.seed += 1
        regions = {f"r{i}": random_array(size, np.uint8, seed=self.seed + i) for i, size in enumerate(sizes)}
        try:
            ticket = self.history.checkpoint(key, regions, copy=copy, meta=meta, tier="disk" if down else None)
        except velocpy.errors.TierFull:
            return  # leases fill the host tier; what was there before is compared below
        self.model.pop(key, None)  # a dictionary keeps the place of a key that is written again, a history does not
        self.model[key] = {name: array.tobytes() for name, array in regions.items()}, meta
        if not copy and self.seed % 2:
            ticket.wait(timeout=30)
            assert ticket.captured

    @rule(target=leases, key=KEYS, last=st.booleans(), partial=st.booleans())
    def restore(self, key: Any, last: bool, partial: bool) -> Any:
        expected = self.model.get(key)
        if expected is None:
            with pytest.raises(velocpy.errors.CheckpointNotFound):
                self.history.restore(key)
            return multiple()
        regions, meta = expected
        names = list(regions)[:1] if partial else None
        try:
            lease = self.history.restore(key, names, last=last)
        except velocpy.errors.TierFull:
            return multiple()
        if last:
            del self.model[key]
        assert lease.meta == meta
        wanted = regions if names is None else {name: regions[name] for name in names}
        self.compare(lease, wanted)
        return lease, wanted

    @rule(key=KEYS, last=st.booleans())
    def restore_into(self, key: Any, last: bool) -> None:
        if key not in self.model:
            return
        regions = self.model[key][0]
        into = {name: np.empty(len(held), np.uint8) for name, held in regions.items()}
        try:
            self.history.restore(key, into=into, last=last)
        except velocpy.errors.TierFull:
            return
        if last:
            del self.model[key]
        for name, held in regions.items():
            assert bits(into[name]) == held

    @rule(lease=consumes(leases))
    def release(self, lease: Any) -> None:
        self.compare(*lease)
        lease[0].release()

    @rule(lease=leases)
    def look_again(self, lease: Any) -> None:
        if not lease[0].released:
            self.compare(*lease)

    @rule(key=KEYS)
    def drop(self, key: Any) -> None:
        if key in self.model:
            self.history.drop(key, missing_ok=False)
            del self.model[key]
        else:
            self.history.drop(key)
            with pytest.raises(velocpy.errors.CheckpointNotFound):
                self.history.drop(key, missing_ok=False)

    @rule(plan=st.lists(KEYS, max_size=12))
    def hint(self, plan: list[Any]) -> None:
        self.history.hint(plan)

    @rule()
    def hint_clear(self) -> None:
        self.history.hint_clear()

    @rule()
    def prefetch(self) -> None:
        self.history.prefetch()

    @rule()
    def follow_the_plan(self) -> None:
        try:
            for key, lease in self.history.restore_iter():
                self.compare(lease, self.model[key][0])
        except (velocpy.errors.CheckpointNotFound, velocpy.errors.TierFull) as error:
            missing = error.key
            full = isinstance(error, velocpy.errors.TierFull)
            self.history.hint_clear()
        else:
            return
        assert full or missing not in self.model

    @rule(tier=st.sampled_from([None, "host", "disk"]))
    def wait(self, tier: str | None) -> None:
        self.history.wait(tier, timeout=60)

    @rule()
    def clear(self) -> None:
        self.history.clear()
        self.model.clear()

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        assert list(self.history) == list(self.model)
        for key, (regions, meta) in self.model.items():
            assert self.history.size(key) == sum(map(len, regions.values()))
            assert self.history.meta(key) == meta

    def compare(self, lease: velocpy.Lease, expected: dict[str, bytes]) -> None:
        assert list(lease) == list(expected)
        for name, held in expected.items():
            assert bits(lease[name]) == held

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        gc.collect()


HistoryMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHistory = HistoryMachine.TestCase
