"""velocpy itself: the device tier where the card is one, the host tier as the first where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import velocpy
from velocpy.choices import Policy

from .card import Bytes
from .workload import Workload

# What crosses a link arrives in the tier below it.
LINKS = {("host", "written"): "down GB", ("host", "read"): "up GB"}
REASONS = {"capture": "for room s", "restore": "for bytes s"}


class Ours:
    """A store, with a history for each shot. Every restore is the last of its checkpoint, and a lease unless told."""

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        *,
        on_device: bool,
        policy: Policy = "score",
        into: Bytes | None = None,
        name: str = "velocpy",
        **options: Any,
    ) -> None:
        self.name = name
        self._workload, self._into = workload, into
        tiers: dict[str, Any] = {"host": workload.host, "disk": workload.disk or None}
        if on_device:
            tiers["device"] = workload.device
        self.store = velocpy.open(
            folder if workload.disk else None,
            **tiers,
            durable=False,
            tuning=velocpy.Tuning(policy=policy, lookahead=max(1024, len(workload.sizes)), **options),
        )
        self._shots = 0
        self._history: velocpy.History | None = None
        self._leases: dict[int, velocpy.Lease] = {}

    def begin(self, workload: Workload) -> None:
        self._workload = workload
        if self._history is not None:
            self._history.clear()
        self._history = self.store.history(f"shot {self._shots}")
        self._shots += 1
        if self._workload.hints == "all" and self._workload.restores:
            self._history.hint(self._workload.keys, last=True)
        self._before = self.store.stats()

    @property
    def history(self) -> velocpy.History:
        """The history of the present shot."""
        assert self._history is not None
        return self._history

    def checkpoint(self, key: int, source: Bytes) -> None:
        self.history.checkpoint(key, u=source)

    def wait_flushed(self) -> None:
        self.history.wait("disk" if self._workload.disk else "host")

    def turn(self) -> None:
        self.history.prefetch()

    def restore(self, key: int, following: int | None) -> Bytes:
        if following is not None and self._workload.hints == "one":
            self.history.hint(following, last=True)
        if self._into is not None:
            into = self._into[: self._workload.sizes[key]]
            self.history.restore(key, into={"u": into}, last=True)
            return into
        lease = self._leases[key] = self.history.restore(key, last=True)
        return lease["u"]

    def done(self, key: int) -> None:
        lease = self._leases.pop(key, None)
        if lease is not None:
            lease.release()

    def ready(self, key: int) -> bool:
        return self.history.ready(key)

    def facts(self) -> dict[str, Any]:
        now: dict[str, Any] = {**self.store.stats()}
        before: dict[str, Any] = {**self._before}
        facts: dict[str, Any] = {}
        for tier, counters in now["tiers"].items():
            for name in ("written", "read"):
                moved = counters[f"{name}_bytes"] - before["tiers"][tier][f"{name}_bytes"]
                if moved:
                    facts[LINKS.get((tier, name), f"{tier} {name} GB")] = moved / 1e9
        for reason, nanoseconds in now["waits_ns"].items():
            waited = (nanoseconds - before["waits_ns"].get(reason, 0)) / 1e9
            facts[REASONS.get(reason, f"for {reason} s")] = waited
        restores, earlier = now["restores"], before["restores"]
        count = restores["count"] - earlier["count"]
        if count:
            facts["hits"] = (restores["hits"] - earlier["hits"]) / count
        return facts

    def close(self) -> None:
        self._leases.clear()
        self.store.close()
